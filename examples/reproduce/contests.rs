//! The papers' comparisons of samplers: which, with which settings, on what.

use crate::comparison::Contest;
use crate::experiment::Experiment;
use crate::problem::{self, Posterior};
use crate::setting::{Batch, Entry, Sampler};

const PAPER_EPSILONS: &[f64] = &[2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 15.0];
const THESIS_EPSILONS: &[f64] = &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

const AUTOMATIC: Entry = Entry {
    label: "automatic",
    sampler: Sampler::Automatic,
};

const fn hmc(
    [tau_l, tau_g]: [f64; 2],
    leapfrog: u64,
    eta: f64,
    [b_l, b_g]: [f64; 2],
    fresh: bool,
) -> Entry {
    Entry {
        label: "dp-hmc",
        sampler: Sampler::Hmc {
            tau_l,
            tau_g,
            eta,
            leapfrog,
            b_l,
            b_g,
            fresh,
        },
    }
}

const fn penalty(tau: f64, sd: f64, b_l: f64) -> Entry {
    Entry {
        label: "dp-penalty",
        sampler: Sampler::Penalty {
            tau,
            sd,
            b_l,
            guided: false,
        },
    }
}

const fn guided(tau: f64, sd: f64, b_l: f64) -> Entry {
    Entry {
        label: "dp-penalty-guided",
        sampler: Sampler::Penalty {
            tau,
            sd,
            b_l,
            guided: true,
        },
    }
}

const fn batch_penalty(
    label: &'static str,
    variance: f64,
    sd: f64,
    b_l: f64,
    batch: Batch,
    guided: bool,
) -> Entry {
    Entry {
        label,
        sampler: Sampler::BatchPenalty {
            variance,
            sd,
            b_l,
            batch,
            guided,
        },
    }
}

const fn barker(sd: f64, batch: u64) -> Entry {
    Entry {
        label: "dp-barker",
        sampler: Sampler::Barker { sd, batch },
    }
}

const fn sgld(clip: f64, eta0: f64) -> Entry {
    Entry {
        label: "dp-sgld",
        sampler: Sampler::Sgld { clip, eta0 },
    }
}

const fn sgnht(clip: f64, eta0: f64, friction: f64) -> Entry {
    Entry {
        label: "dp-sgnht",
        sampler: Sampler::Sgnht {
            clip,
            eta0,
            friction,
        },
    }
}

const fn paper(name: &'static str, posterior: Posterior, entries: &'static [Entry]) -> Contest {
    Contest {
        name,
        posterior,
        epsilons: PAPER_EPSILONS,
        quick_epsilons: &[2.0, 4.0],
        chains: 4,
        repeats: 10,
        quick_repeats: 4,
        most_iterations: [200_000, 5_000],
        entries,
    }
}

const fn thesis(name: &'static str, posterior: Posterior, entries: &'static [Entry]) -> Contest {
    Contest {
        name,
        posterior,
        epsilons: THESIS_EPSILONS,
        quick_epsilons: &[2.0, 4.0],
        chains: 1,
        repeats: 20,
        quick_repeats: 3,
        most_iterations: [200_000, 20_000],
        entries,
    }
}

const BANANA: Contest = paper(
    "paper-banana",
    problem::PAPER_BANANA,
    &[
        hmc([0.10, 0.55], 25, 0.006, [0.1, 0.05], true),
        penalty(0.17, 0.06, 0.15),
        sgld(0.2, 1.0),
        sgnht(0.2, 100.0, 50.0),
        AUTOMATIC,
    ],
);
const GAUSS: Contest = Contest {
    quick_epsilons: &[4.0],
    quick_repeats: 2,
    ..paper(
        "paper-gauss",
        problem::PAPER_GAUSS,
        &[
            hmc([0.1, 0.25], 12, 1.5e-4, [6.0, 10.0], true),
            penalty(0.05, 7e-4, 10.0),
            sgld(15.0, 0.008),
            sgnht(12.0, 0.2, 30.0),
            AUTOMATIC,
        ],
    )
};
const MILD_GAUSS: Contest = Contest {
    quick_epsilons: &[4.0],
    quick_repeats: 3,
    ..paper(
        "paper-gauss-mild",
        problem::MILD_GAUSS,
        &[
            hmc([0.1, 0.25], 12, 1.5e-4, [6.0, 10.0], true),
            penalty(0.05, 7e-4, 10.0),
            sgld(15.0, 0.008),
            sgnht(12.0, 0.2, 30.0),
            AUTOMATIC,
        ],
    )
};
const FLAT_BANANA_2: Contest = thesis(
    "thesis-flat-2",
    problem::FLAT_BANANA_2,
    &[
        hmc([0.1, 0.4], 10, 5e-4, [2.0, 1.0], false),
        penalty(0.1, 0.008, 2.0),
        guided(0.1, 0.008, 1.8),
        batch_penalty("batch-penalty", 0.7, 0.001, 1.0, Batch::Fixed(1000), false),
        batch_penalty(
            "batch-penalty-guided",
            0.7,
            0.001,
            1.0,
            Batch::Fixed(1000),
            true,
        ),
        barker(8e-4, 1300),
        AUTOMATIC,
    ],
);
const TEMPERED_BANANA_2: Contest = Contest {
    quick_repeats: 2,
    ..thesis(
        "thesis-tempered-2",
        problem::TEMPERED_BANANA_2,
        &[
            hmc([0.2, 0.6], 10, 0.01, [2.5, 2.0], false),
            penalty(0.2, 0.035, 5.0),
            guided(0.2, 0.04, 3.5),
            batch_penalty("batch-penalty", 1.5, 0.025, 4.0, Batch::Fixed(1000), false),
            batch_penalty(
                "batch-penalty-guided",
                2.0,
                0.04,
                4.0,
                Batch::Fixed(1000),
                true,
            ),
            batch_penalty(
                "batch-penalty-poisson",
                1.5,
                0.025,
                4.0,
                Batch::Poisson("0.01"),
                false,
            ),
            barker(0.12, 1300),
            AUTOMATIC,
        ],
    )
};
const FLAT_BANANA_10: Contest = Contest {
    quick_repeats: 2,
    ..thesis(
        "thesis-flat-10",
        problem::FLAT_BANANA_10,
        &[
            hmc([0.05, 0.2], 10, 1.5e-4, [2.5, 3.0], false),
            penalty(0.1, 0.0015, 2.0),
            guided(0.1, 0.0015, 3.0),
            batch_penalty("batch-penalty", 0.6, 1e-4, 3.0, Batch::Fixed(1000), false),
            batch_penalty(
                "batch-penalty-guided",
                0.5,
                3.2e-4,
                2.0,
                Batch::Fixed(1000),
                true,
            ),
            barker(8e-4, 2600),
            AUTOMATIC,
        ],
    )
};
const TEMPERED_BANANA_10: Contest = Contest {
    quick_epsilons: &[1.0, 2.0],
    ..thesis(
        "thesis-tempered-10",
        problem::TEMPERED_BANANA_10,
        &[
            hmc([0.08, 0.2], 10, 0.015, [2.5, 3.5], false),
            penalty(0.18, 0.02, 3.0),
            guided(0.1, 0.04, 3.0),
            batch_penalty("batch-penalty", 0.7, 0.02, 2.0, Batch::Fixed(1200), false),
            batch_penalty(
                "batch-penalty-guided",
                0.8,
                0.028,
                2.0,
                Batch::Fixed(1200),
                true,
            ),
            barker(0.04, 2600),
            AUTOMATIC,
        ],
    )
};
const HIGH_GAUSS: Contest = Contest {
    quick_epsilons: &[1.0, 2.0],
    quick_repeats: 2,
    ..thesis(
        "thesis-gauss-30",
        problem::GAUSS_30,
        &[
            hmc([0.05, 0.1], 5, 2.5e-4, [2.5, 6.0], false),
            penalty(0.06, 8.4e-4, 3.0),
            guided(0.2, 8.4e-4, 3.0),
            AUTOMATIC,
        ],
    )
};
const NARROW_BANANA: Contest = thesis(
    "thesis-narrow",
    problem::NARROW_BANANA,
    &[
        hmc([0.15, 0.25], 5, 4.5e-4, [5.0, 2.8], false),
        penalty(0.2, 0.0015, 5.5),
        guided(0.1, 0.0015, 8.5),
        AUTOMATIC,
    ],
);
const CORRELATED_GAUSS: Contest = thesis(
    "thesis-correlated",
    problem::CORRELATED,
    &[
        hmc([0.05, 0.2], 8, 7e-5, [30.0, 29.0], false),
        penalty(0.07, 1.5e-4, 50.0),
        guided(0.1, 2e-4, 45.0),
        AUTOMATIC,
    ],
);
const RING: Contest = Contest {
    epsilons: &[0.5, 0.75, 1.0],
    quick_epsilons: &[0.5, 1.0],
    quick_repeats: 2,
    ..thesis(
        "thesis-circle",
        problem::CIRCLE,
        &[
            hmc([0.6, 1.9], 40, 0.07, [0.001, 0.0015], false),
            penalty(4.0, 0.2, 0.002),
            AUTOMATIC,
        ],
    )
};

/// An entry of the list of experiments for a contest.
macro_rules! experiment {
    ($contest:ident, $of:literal, $time:expr) => {
        Experiment {
            name: $contest.name,
            of: $of,
            time: $time,
            settings: || $contest.settings(),
            run: |course| $contest.run(course),
        }
    };
}

pub const PAPER_BANANA: Experiment = experiment!(
    BANANA,
    "the paper's figures 1 and 2, banana",
    ["9 hours", "4 minutes"]
);
pub const PAPER_GAUSS: Experiment = experiment!(
    GAUSS,
    "the paper's figures 1 and 2, Gaussian in 10 dimensions",
    ["10 hours", "3 minutes"]
);
pub const PAPER_GAUSS_MILD: Experiment = experiment!(
    MILD_GAUSS,
    "the same, on a Gaussian that the published clip bounds fit",
    ["10 hours", "3 minutes"]
);
pub const FLAT_2: Experiment = experiment!(
    FLAT_BANANA_2,
    "Räisä's thesis, figures 6.3 to 6.7, flat banana in 2 dimensions",
    ["35 minutes", "1 minute"]
);
pub const TEMPERED_2: Experiment = experiment!(
    TEMPERED_BANANA_2,
    "Räisä's thesis, the same, tempered banana in 2 dimensions",
    ["2 hours", "2 minutes"]
);
pub const FLAT_10: Experiment = experiment!(
    FLAT_BANANA_10,
    "Räisä's thesis, the same, flat banana in 10 dimensions",
    ["4 hours", "3 minutes"]
);
pub const TEMPERED_10: Experiment = experiment!(
    TEMPERED_BANANA_10,
    "Räisä's thesis, the same, tempered banana in 10 dimensions",
    ["6 hours", "2 minutes"]
);
pub const GAUSS_30: Experiment = experiment!(
    HIGH_GAUSS,
    "Räisä's thesis, the same, Gaussian in 30 dimensions",
    ["13 hours", "3 minutes"]
);
pub const NARROW: Experiment = experiment!(
    NARROW_BANANA,
    "Räisä's thesis, the same, narrow banana",
    ["1 hour", "2 minutes"]
);
pub const CORRELATED: Experiment = experiment!(
    CORRELATED_GAUSS,
    "Räisä's thesis, the same, correlated Gaussian",
    ["75 minutes", "2 minutes"]
);
pub const CIRCLE: Experiment = experiment!(
    RING,
    "Räisä's thesis, figure 6.8, circle",
    ["90 minutes", "2 minutes"]
);
