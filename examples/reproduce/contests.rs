//! The papers' comparisons of samplers: which, with which settings, on what.

use crate::comparison::Contest;
use crate::experiment::Experiment;
use crate::problem::{self, Posterior};
use crate::setting::{Batch, Dynamics, Entry, Sampler, Trajectories};

const PAPER_EPSILONS: &[f64] = &[2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 15.0];
const THESIS_EPSILONS: &[f64] = &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

/// The guided walk's label, and its name in the thesis's tables.
const GUIDED: &str = "dp-penalty-guided";

pub const AUTOMATIC: Entry = Entry {
    label: "automatic",
    sampler: Sampler::Automatic,
};

pub const fn hmc(
    [tau_l, tau_g]: [f64; 2],
    leapfrog: u64,
    eta: f64,
    [b_l, b_g]: [f64; 2],
    trajectories: Trajectories,
) -> Entry {
    Entry {
        label: "dp-hmc",
        sampler: Sampler::Hmc {
            dynamics: Dynamics {
                tau_l,
                tau_g,
                eta,
                leapfrog,
                b_l,
                b_g,
            },
            trajectories,
        },
    }
}

const fn walk(label: &'static str, [tau, sd, b_l]: [f64; 3], guided: bool) -> Entry {
    Entry {
        label,
        sampler: Sampler::Penalty {
            tau,
            sd,
            b_l,
            guided,
        },
    }
}

pub const fn penalty(tau: f64, sd: f64, b_l: f64) -> Entry {
    walk("dp-penalty", [tau, sd, b_l], false)
}

const fn guided(tau: f64, sd: f64, b_l: f64) -> Entry {
    walk(GUIDED, [tau, sd, b_l], true)
}

const fn batch_penalty(variance: f64, sd: f64, b_l: f64, batch: Batch, guided: bool) -> Entry {
    Entry {
        label: match (batch, guided) {
            (_, true) => "batch-penalty-guided",
            (Batch::Fixed(_), false) => "batch-penalty",
            (Batch::Poisson(_), false) => "batch-penalty-poisson",
        },
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

const fn amagold(
    label: &'static str,
    like: Entry,
    friction: f64,
    rate: Option<&'static str>,
) -> Entry {
    let Sampler::Hmc { dynamics, .. } = like.sampler else {
        panic!("an entry of dp-hmc")
    };
    Entry {
        label,
        sampler: Sampler::Amagold {
            dynamics,
            friction,
            rate,
        },
    }
}

/// DP-HMC, and DP-AMAGOLD with its settings: almost without friction, and as it comes; and on batches.
const fn amortised(like: Entry, friction: f64) -> [Entry; 4] {
    [
        like,
        amagold("no friction", like, 1e-3 * friction, None),
        amagold("friction", like, friction, None),
        amagold("batches", like, friction, Some("0.1")),
    ]
}

const fn paper(name: &'static str, posterior: Posterior, entries: &'static [Entry]) -> Contest {
    Contest {
        name,
        posterior,
        epsilons: PAPER_EPSILONS,
        quick_epsilons: &[2.0, 4.0],
        chains: 4,
        repeats: 10,
        quick_repeats: 2,
        most_iterations: [200_000, 5_000],
        entries,
        published: &[],
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
        published: &[],
    }
}

/// DP-HMC and DP-penalty as the paper has them.
pub const ON_THE_BANANA: [Entry; 2] = [
    hmc([0.10, 0.55], 25, 0.006, [0.1, 0.05], Trajectories::Paper),
    penalty(0.17, 0.06, 0.15),
];
pub const ON_THE_GAUSS: [Entry; 2] = [
    hmc([0.1, 0.25], 12, 1.5e-4, [6.0, 10.0], Trajectories::Paper),
    penalty(0.05, 7e-4, 10.0),
];

const AMAGOLD_BANANA: Contest = Contest {
    quick_repeats: 5,
    quick_epsilons: &[2.0, 4.0, 6.0],
    ..thesis(
        "amagold-flat-2",
        problem::FLAT_BANANA_2,
        &amortised(
            hmc([0.1, 0.4], 10, 5e-4, [2.0, 1.0], Trajectories::Default),
            200.0,
        ),
    )
};
const AMAGOLD_GAUSS: Contest = Contest {
    quick_epsilons: &[4.0, 8.0],
    ..paper(
        "amagold-gauss",
        problem::PUBLISHED_GAUSS,
        &amortised(
            hmc([0.1, 0.25], 12, 1.5e-4, [6.0, 10.0], Trajectories::Default),
            600.0,
        ),
    )
};
const BANANA: Contest = paper(
    "paper-banana",
    problem::PUBLISHED_BANANA,
    &[
        ON_THE_BANANA[0],
        ON_THE_BANANA[1],
        sgld(0.2, 1.0),
        sgnht(0.2, 100.0, 50.0),
        AUTOMATIC,
    ],
);
const ON_A_GAUSS: [Entry; 5] = [
    ON_THE_GAUSS[0],
    ON_THE_GAUSS[1],
    sgld(15.0, 0.008),
    sgnht(12.0, 0.2, 30.0),
    AUTOMATIC,
];
const GAUSS: Contest = Contest {
    quick_epsilons: &[4.0],
    ..paper("paper-gauss", problem::PUBLISHED_GAUSS, &ON_A_GAUSS)
};
const STEEP_GAUSS: Contest = Contest {
    quick_epsilons: &[4.0],
    quick_repeats: 1,
    ..paper("paper-gauss-steep", problem::PAPER_GAUSS, &ON_A_GAUSS)
};
const FLAT_BANANA_2: Contest = Contest {
    published: &[
        ("dp-hmc", &[0.478, 0.320, 0.299, 0.263, 0.183, 0.163]),
        ("dp-penalty", &[0.367, 0.342, 0.250, 0.153, 0.111, 0.122]),
        (GUIDED, &[0.356, 0.260, 0.244, 0.207, 0.114, 0.127]),
    ],
    ..thesis(
        "thesis-flat-2",
        problem::FLAT_BANANA_2,
        &[
            hmc([0.1, 0.4], 10, 5e-4, [2.0, 1.0], Trajectories::Thesis),
            penalty(0.1, 0.008, 2.0),
            guided(0.1, 0.008, 1.8),
            batch_penalty(0.7, 0.001, 1.0, Batch::Fixed(1000), false),
            batch_penalty(0.7, 0.001, 1.0, Batch::Fixed(1000), true),
            barker(8e-4, 1300),
            AUTOMATIC,
        ],
    )
};
const TEMPERED_BANANA_2: Contest = Contest {
    published: &[
        ("dp-hmc", &[0.389, 0.278, 0.229, 0.202, 0.163, 0.138]),
        ("dp-penalty", &[0.494, 0.405, 0.388, 0.316, 0.266, 0.271]),
        (GUIDED, &[0.467, 0.418, 0.354, 0.277, 0.284, 0.226]),
        ("batch-penalty", &[0.512, 0.459, 0.404, 0.415, 0.357, 0.320]),
        ("dp-barker", &[0.404, 0.287, 0.224, 0.349, 0.250, 0.217]),
    ],
    quick_repeats: 1,
    ..thesis(
        "thesis-tempered-2",
        problem::TEMPERED_BANANA_2,
        &[
            hmc([0.2, 0.6], 10, 0.01, [2.5, 2.0], Trajectories::Thesis),
            penalty(0.2, 0.035, 5.0),
            guided(0.2, 0.04, 3.5),
            batch_penalty(1.5, 0.025, 4.0, Batch::Fixed(1000), false),
            batch_penalty(2.0, 0.04, 4.0, Batch::Fixed(1000), true),
            batch_penalty(1.5, 0.025, 4.0, Batch::Poisson("0.01"), false),
            barker(0.12, 1300),
            AUTOMATIC,
        ],
    )
};
const FLAT_BANANA_10: Contest = Contest {
    published: &[
        ("dp-hmc", &[0.715, 0.615, 0.543, 0.520, 0.438, 0.383]),
        ("dp-penalty", &[0.663, 0.489, 0.361, 0.334, 0.363, 0.270]),
        (GUIDED, &[0.707, 0.527, 0.443, 0.373, 0.337, 0.276]),
    ],
    quick_repeats: 1,
    ..thesis(
        "thesis-flat-10",
        problem::FLAT_BANANA_10,
        &[
            hmc([0.05, 0.2], 10, 1.5e-4, [2.5, 3.0], Trajectories::Thesis),
            penalty(0.1, 0.0015, 2.0),
            guided(0.1, 0.0015, 3.0),
            batch_penalty(0.6, 1e-4, 3.0, Batch::Fixed(1000), false),
            batch_penalty(0.5, 3.2e-4, 2.0, Batch::Fixed(1000), true),
            barker(8e-4, 2600),
            AUTOMATIC,
        ],
    )
};
const TEMPERED_BANANA_10: Contest = Contest {
    published: &[
        ("dp-hmc", &[0.333, 0.271, 0.306, 0.270, 0.198, 0.203]),
        ("dp-penalty", &[0.475, 0.433, 0.353, 0.326, 0.330, 0.296]),
        (GUIDED, &[0.531, 0.488, 0.437, 0.412, 0.398, 0.404]),
    ],
    quick_epsilons: &[1.0, 2.0],
    quick_repeats: 1,
    ..thesis(
        "thesis-tempered-10",
        problem::TEMPERED_BANANA_10,
        &[
            hmc([0.08, 0.2], 10, 0.015, [2.5, 3.5], Trajectories::Thesis),
            penalty(0.18, 0.02, 3.0),
            guided(0.1, 0.04, 3.0),
            batch_penalty(0.7, 0.02, 2.0, Batch::Fixed(1200), false),
            batch_penalty(0.8, 0.028, 2.0, Batch::Fixed(1200), true),
            barker(0.04, 2600),
            AUTOMATIC,
        ],
    )
};
const HIGH_GAUSS: Contest = Contest {
    published: &[
        ("dp-hmc", &[0.730, 0.687, 0.618, 0.566, 0.490, 0.412]),
        ("dp-penalty", &[0.735, 0.658, 0.593, 0.518, 0.428, 0.394]),
        (GUIDED, &[0.675, 0.570, 0.500, 0.355, 0.253, 0.227]),
    ],
    quick_epsilons: &[1.0, 2.0],
    quick_repeats: 1,
    ..thesis(
        "thesis-gauss-30",
        problem::GAUSS_30,
        &[
            hmc([0.05, 0.1], 5, 2.5e-4, [2.5, 6.0], Trajectories::Thesis),
            penalty(0.06, 8.4e-4, 3.0),
            guided(0.2, 8.4e-4, 3.0),
            AUTOMATIC,
        ],
    )
};
const NARROW_BANANA: Contest = Contest {
    published: &[
        ("dp-hmc", &[0.610, 0.595, 0.603, 0.582, 0.576, 0.577]),
        ("dp-penalty", &[0.606, 0.577, 0.564, 0.533, 0.526, 0.526]),
        (GUIDED, &[0.610, 0.595, 0.576, 0.582, 0.580, 0.561]),
    ],
    quick_repeats: 2,
    ..thesis(
        "thesis-narrow",
        problem::NARROW_BANANA,
        &[
            hmc([0.15, 0.25], 5, 4.5e-4, [5.0, 2.8], Trajectories::Thesis),
            penalty(0.2, 0.0015, 5.5),
            guided(0.1, 0.0015, 8.5),
            AUTOMATIC,
        ],
    )
};
const CORRELATED_GAUSS: Contest = Contest {
    published: &[
        ("dp-hmc", &[0.664, 0.631, 0.557, 0.551, 0.444, 0.505]),
        ("dp-penalty", &[0.728, 0.671, 0.687, 0.664, 0.597, 0.720]),
        (GUIDED, &[0.729, 0.695, 0.704, 0.608, 0.640, 0.605]),
    ],
    quick_repeats: 2,
    ..thesis(
        "thesis-correlated",
        problem::CORRELATED,
        &[
            hmc([0.05, 0.2], 8, 7e-5, [30.0, 29.0], Trajectories::Thesis),
            penalty(0.07, 1.5e-4, 50.0),
            guided(0.1, 2e-4, 45.0),
            AUTOMATIC,
        ],
    )
};
const RING: Contest = Contest {
    published: &[
        ("dp-hmc", &[1.30, 1.20, 0.91]),
        ("dp-penalty", &[1.41, 0.68, 1.01]),
    ],
    epsilons: &[0.5, 0.75, 1.0],
    quick_epsilons: &[0.5, 1.0],
    quick_repeats: 1,
    ..thesis(
        "thesis-circle",
        problem::CIRCLE,
        &[
            hmc([0.6, 1.9], 40, 0.07, [0.001, 0.0015], Trajectories::Thesis),
            penalty(4.0, 0.2, 0.002),
            guided(4.0, 0.3, 0.002),
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

pub const AMAGOLD_2: Experiment = experiment!(
    AMAGOLD_BANANA,
    "our own: DP-AMAGOLD beside DP-HMC on Räisä's flat banana in 2 dimensions",
    ["2 hours", "5 minutes"]
);
pub const AMAGOLD_10: Experiment = experiment!(
    AMAGOLD_GAUSS,
    "our own: the same on the paper's Gaussian in 10 dimensions",
    ["10 hours", "10 minutes"]
);
pub const PAPER_BANANA: Experiment = experiment!(
    BANANA,
    "the paper's figures 1 and 2, banana",
    ["9 hours", "2 minutes"]
);
pub const PAPER_GAUSS: Experiment = experiment!(
    GAUSS,
    "the paper's figures 1 and 2, Gaussian in 10 dimensions",
    ["10 hours", "3 minutes"]
);
pub const PAPER_GAUSS_STEEP: Experiment = experiment!(
    STEEP_GAUSS,
    "the same, on a Gaussian whose condition number is 43,000",
    ["10 hours", "2 minutes"]
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
    ["4 hours", "2 minutes"]
);
pub const TEMPERED_10: Experiment = experiment!(
    TEMPERED_BANANA_10,
    "Räisä's thesis, the same, tempered banana in 10 dimensions",
    ["6 hours", "1 minute"]
);
pub const GAUSS_30: Experiment = experiment!(
    HIGH_GAUSS,
    "Räisä's thesis, the same, Gaussian in 30 dimensions",
    ["13 hours", "2 minutes"]
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
    ["90 minutes", "1 minute"]
);
