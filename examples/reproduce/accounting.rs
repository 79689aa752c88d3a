//! The iterations that budgets allow by different accountants, and the epsilon of Lode's schedules.

use std::error::Error;

use dpm::Relation;
use dpm::accounting::{Accountant, Event, Gaussian, GuaranteeBounds, Query, Real, Subsampled};

use crate::chart::{Figure, Mark, Panel, Point, Series};
use crate::experiment::{Course, Experiment};
use crate::table::Table;

pub const THESIS: Experiment = Experiment {
    name: "thesis-accounting",
    of: "Räisä's thesis, figure 6.1: iterations that budgets allow by accountant",
    time: ["20 seconds", "5 seconds"],
    settings: || {
        vec![
            "n 100000, delta 1e-6, epsilon 0.5 to 6; flat banana in 2 dimensions".into(),
            "dp-penalty: tau 0.1; batch-penalty: tau 0.7 on the variance, 1000 records; dp-hmc: tau_l 0.1, tau_g 0.4, L 10".into(),
        ]
    },
    run: thesis,
};

pub const LODE: Experiment = Experiment {
    name: "lode-accounting",
    of: "Lode's thesis, table 6.3: epsilon of steps that get smaller",
    time: ["10 seconds", "10 seconds"],
    settings: || {
        vec!["sigma_t = sqrt(2 C/(eta_t L^2)), eta_t = 3 t^(-1/3), C 1, L 0.7, J 10, rate 0.01, add/remove".into()]
    },
    run: lode,
};

const N: f64 = 100_000.0;

/// The releases of an algorithm in k iterations.
type Releases = fn(u64) -> Result<Vec<Event>, Box<dyn Error>>;

/// An algorithm under an accountant.
struct Accounted {
    algorithm: &'static str,
    by: &'static str,
    accountant: Accountant,
    releases: Releases,
}

/// A sum over all records with noise of tau sensitivities.
fn whole(tau: f64, count: u64) -> Result<Event, Box<dyn Error>> {
    let release = Gaussian::of_clip("sum", 1.0, Relation::Substitute, 2.0 * tau)?;
    Ok(Event::Gaussian(release.times(count)))
}

fn penalty(k: u64) -> Result<Vec<Event>, Box<dyn Error>> {
    Ok(vec![whole(0.1 * N.sqrt(), k)?])
}

fn hmc(k: u64) -> Result<Vec<Event>, Box<dyn Error>> {
    Ok(vec![
        whole(0.1 * N.sqrt(), k)?,
        whole(0.4 * N.sqrt(), 10 * k + 1)?,
    ])
}

const BATCH_TAU: f64 = 0.7;

fn fixed_batches(k: u64) -> Result<Vec<Event>, Box<dyn Error>> {
    let sigma = 2.0 * BATCH_TAU.sqrt();
    let relation = Relation::Substitute;
    let rate = "0.01".parse::<Real>()?;
    let release = Subsampled::without_replacement("test", 1.0, relation, rate, sigma)?;
    Ok(vec![Event::Subsampled(release.times(k))])
}

fn poisson(sigma: f64, k: u64) -> Result<Vec<Event>, Box<dyn Error>> {
    let rate = "0.01".parse::<Real>()?;
    let release = Subsampled::poisson("test", 1.0, Relation::Substitute, rate, sigma)?;
    Ok(vec![Event::Subsampled(release.times(k))])
}

const ACCOUNTED: &[Accounted] = &[
    Accounted {
        algorithm: "dp-penalty",
        by: "zcdp",
        accountant: Accountant::Zcdp,
        releases: penalty,
    },
    Accounted {
        algorithm: "dp-penalty",
        by: "gaussian",
        accountant: Accountant::Gaussian,
        releases: penalty,
    },
    Accounted {
        algorithm: "dp-hmc",
        by: "zcdp",
        accountant: Accountant::Zcdp,
        releases: hmc,
    },
    Accounted {
        algorithm: "dp-hmc",
        by: "gaussian",
        accountant: Accountant::Gaussian,
        releases: hmc,
    },
    Accounted {
        algorithm: "batch-penalty",
        by: "rdp, fixed size",
        accountant: Accountant::Rdp,
        releases: fixed_batches,
    },
    Accounted {
        algorithm: "batch-penalty",
        by: "pld, fixed size",
        accountant: Accountant::Pld,
        releases: fixed_batches,
    },
    Accounted {
        algorithm: "batch-penalty",
        by: "pld, Poisson",
        accountant: Accountant::Pld,
        releases: |k| poisson(2.0 * BATCH_TAU.sqrt(), k),
    },
    // As the thesis has it: the sensitivity is in sigma already.
    Accounted {
        algorithm: "batch-penalty",
        by: "pld, Poisson, sensitivity doubled",
        accountant: Accountant::Pld,
        releases: |k| poisson(BATCH_TAU.sqrt(), k),
    },
];

fn thesis(course: &Course) -> Result<(), Box<dyn Error>> {
    let table = Table::open(
        course,
        "thesis-accounting",
        &[
            "algorithm",
            "accountant",
            "epsilon",
            "iterations",
            "by_formula",
        ],
    )?;
    let points = course.form.of(23, 6, 2);
    let step = 5.5 / f64::from(points - 1);
    let grid = (0..points).map(|i| 0.5 + step * f64::from(i));
    let epsilons: Vec<f64> = if course.epsilons.is_empty() {
        grid.collect()
    } else {
        course.epsilons.clone()
    };
    for accounted in ACCOUNTED {
        for &epsilon in &epsilons {
            let epsilon = (1000.0 * epsilon).round() / 1000.0;
            let key = vec![
                accounted.algorithm.into(),
                accounted.by.replace(", ", " "),
                epsilon.to_string(),
            ];
            if table.has(&key)? {
                continue;
            }
            let iterations = most_iterations(accounted, epsilon)?;
            let formula = by_formula(accounted, epsilon);
            let formula = formula.map_or(String::new(), |k| format!("{k:.0}"));
            table.add([key, vec![iterations.to_string(), formula]].concat())?;
        }
    }
    table.print(&["algorithm", "accountant", "epsilon"], &["iterations"])?;
    let panels = ["dp-penalty", "batch-penalty", "dp-hmc"].map(|algorithm| {
        Ok::<Panel, Box<dyn Error>>(Panel {
            title: algorithm.into(),
            x: "epsilon",
            y: "iterations",
            log_y: true,
            series: series(&table, algorithm)?,
            ..Panel::default()
        })
    });
    Figure {
        title: "iterations that a budget allows".into(),
        panels: panels.into_iter().collect::<Result<_, _>>()?,
    }
    .write(&course.out.join("thesis-accounting.svg"))
}

fn series(table: &Table, algorithm: &str) -> Result<Vec<Series>, Box<dyn Error>> {
    let mut series: Vec<Series> = Vec::new();
    for group in table.groups(&["algorithm", "accountant", "epsilon"], "iterations")? {
        if group.key[0] != algorithm {
            continue;
        }
        let point = Point::new(group.key[2].parse()?, group.values[0]);
        match series.iter_mut().find(|s| s.label == group.key[1]) {
            Some(s) => s.points.push(point),
            None => series.push(Series {
                label: group.key[1].clone(),
                mark: Mark::Line,
                points: vec![point],
            }),
        }
    }
    Ok(series)
}

fn most_iterations(accounted: &Accounted, epsilon: f64) -> Result<u64, Box<dyn Error>> {
    let query = Query::Epsilon {
        delta: Real::from(0.1 / N),
    };
    let fits = |k: u64| -> Result<bool, Box<dyn Error>> {
        let events = (accounted.releases)(k)?;
        let (by, relation) = (accounted.accountant, Relation::Substitute);
        match by.account(&events, relation, query) {
            Ok(guarantee) => Ok(upper(guarantee.bounds) <= epsilon),
            Err(error) if error.is_lack_of_noise() => Ok(false),
            Err(error) => Err(error.into()),
        }
    };
    let (mut kept, mut exceeded) = (0, 1);
    while fits(exceeded)? {
        kept = exceeded;
        exceeded *= 2;
    }
    while exceeded - kept > 1 {
        let middle = kept.midpoint(exceeded);
        if fits(middle)? {
            kept = middle;
        } else {
            exceeded = middle;
        }
    }
    Ok(kept)
}

fn upper(bounds: GuaranteeBounds) -> f64 {
    match bounds {
        GuaranteeBounds::Epsilon { epsilon_upper, .. } => epsilon_upper,
        GuaranteeBounds::Delta { .. } => f64::NAN,
    }
}

/// The thesis's own zCDP numbers: rho = (sqrt(eps + ln 1/delta) - sqrt(ln 1/delta))^2.
fn by_formula(accounted: &Accounted, epsilon: f64) -> Option<f64> {
    if accounted.accountant != Accountant::Zcdp {
        return None;
    }
    let log = (N / 0.1).ln();
    let rho = ((epsilon + log).sqrt() - log.sqrt()).powi(2);
    let (ratio, gradient) = (1.0 / (2.0 * 0.01 * N), 1.0 / (2.0 * 0.16 * N));
    Some(match accounted.algorithm {
        "dp-hmc" => ((rho - gradient) / (ratio + 10.0 * gradient)).floor(),
        _ => (rho / ratio).floor(),
    })
}

/// T J, delta and the epsilon of Lode's table 6.3.
const TABLE_6_3: [(u64, &str, f64); 5] = [
    (2000, "1e-5", 0.763),
    (10_000, "1e-5", 1.324),
    (2000, "1e-6", 0.881),
    (2000, "1e-4", 0.629),
    (2000, "1e-3", 0.473),
];

fn lode(course: &Course) -> Result<(), Box<dyn Error>> {
    const J: u64 = 10;
    let table = Table::open(
        course,
        "lode-accounting",
        &["releases", "delta", "epsilon_lower", "epsilon", "published"],
    )?;
    let rows = course.form.of(5, 5, 1);
    for &(releases, delta, published) in &TABLE_6_3[..rows] {
        let key = vec![releases.to_string(), delta.to_string()];
        if table.has(&key)? {
            continue;
        }
        let events: Vec<Event> = (1..=releases / J)
            .map(|t| {
                let eta = 3.0 * (t as f64).powf(-1.0 / 3.0);
                let sigma = (2.0 / (eta * 0.49)).sqrt();
                let rate = "0.01".parse::<Real>()?;
                let relation = Relation::AddRemove;
                let release = Subsampled::poisson("gradient", 1.0, relation, rate, sigma)?;
                Ok(Event::Subsampled(release.times(J)))
            })
            .collect::<Result<_, Box<dyn Error>>>()?;
        let query = Query::Epsilon {
            delta: delta.parse()?,
        };
        let guarantee = Accountant::Pld.account(&events, Relation::AddRemove, query)?;
        let GuaranteeBounds::Epsilon {
            epsilon_lower,
            epsilon_upper,
        } = guarantee.bounds
        else {
            return Err("an epsilon was asked for".into());
        };
        let lower = epsilon_lower.map_or(String::new(), |e| format!("{e:.5}"));
        let numbers = vec![lower, format!("{epsilon_upper:.5}"), published.to_string()];
        table.add([key, numbers].concat())?;
    }
    table.print(&["releases", "delta"], &["epsilon", "published"])
}
