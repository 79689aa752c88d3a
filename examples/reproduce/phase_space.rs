//! The effect of batches on the volume of phase space, and how friction undoes it.
//!
//! A cloud of particles on a spring, whose force is the gradient of a normal model's
//! posterior, all records' or a batch's. With all records the dynamics keep the cloud's area;
//! batches make it grow without end; friction holds the growth, and friction that knows the
//! batches' noise holds it at the posterior's. Everything is linear, so that the cloud's
//! covariance is known beforehand, step by step: the column `predicted`.

use std::error::Error;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use dpm::testing::density::Density;
use dpm::testing::privacy::{InclusionRate, NotPrivate, PrivateRng, Rows, Subsampling};
use dpm::{Constants, Model, OnBadRows, Real, Vault};

use crate::chart::{Figure, Panel, Series};
use crate::experiment::{Course, Experiment};
use crate::problem::{normal, read};
use crate::table::{Table, number};

pub const LODE: Experiment = Experiment {
    name: "lode-phase-space",
    of: "Lode's thesis, figures 6.1 to 6.5 and table 6.1: volume of phase space",
    time: ["3 minutes", "30 seconds"],
    settings: || {
        let mut lines = vec![format!(
            "posterior N(0, 1) of {RECORDS} records, eta {ETA}, {STEPS} steps, batches of rate {RATE}; the thesis's own settings are not at hand"
        )];
        let line = |v: &Variant| format!("{}: F {}, B {}", v.name, v.friction, v.noise_estimate);
        lines.extend(VARIANTS.iter().map(line));
        lines
    },
    run,
};

const RECORDS: usize = 1000;
const ETA: f64 = 0.05;
const STEPS: u64 = 400;
const RATE: f64 = 0.05;
/// Variance of a batch's gradient about the exact one: (1 - r)/r times the sum of squares of
/// the records' gradients, which is 1.
const BATCH_VARIANCE: f64 = (1.0 - RATE) / RATE;
/// Where the cloud begins, with this sd.
const START: [f64; 2] = [2.0, 0.0];
const START_SD: f64 = 0.1;
/// From one line of the table to the next.
const STRIDE: u64 = 10;

struct Variant {
    name: &'static str,
    batches: bool,
    /// F
    friction: f64,
    /// B; none: without noise.
    noise_estimate: f64,
}

const VARIANTS: &[Variant] = &[
    Variant {
        name: "all records",
        batches: false,
        friction: 0.0,
        noise_estimate: 0.0,
    },
    Variant {
        name: "batches",
        batches: true,
        friction: 0.0,
        noise_estimate: 0.0,
    },
    Variant {
        name: "batches and friction without noise",
        batches: true,
        friction: 1.0,
        noise_estimate: 1.0,
    },
    Variant {
        name: "batches and friction",
        batches: true,
        friction: 1.0,
        noise_estimate: 0.0,
    },
    Variant {
        name: "batches and friction with B",
        batches: true,
        friction: 1.0,
        noise_estimate: ETA * BATCH_VARIANCE / 2.0,
    },
];

impl Variant {
    /// Variance of the noise that a step adds to p beside the batch's.
    fn noise(&self) -> f64 {
        2.0 * ETA * (self.friction - self.noise_estimate)
    }
}

fn run(course: &Course) -> Result<(), Box<dyn Error>> {
    let table = Table::open(
        course,
        "lode-phase-space",
        &["variant", "step", "log_volume", "predicted", "energy"],
    )?;
    let clouds = Table::open(
        course,
        "lode-phase-space-clouds",
        &["variant", "step", "theta", "p"],
    )?;
    let vault = oscillator()?;
    let particles = course.form.of(2000, 300, 10);
    let steps = course.form.of(STEPS, STEPS, 2 * STRIDE);
    for variant in VARIANTS {
        if table.has(&[variant.name.to_string()])? {
            continue;
        }
        let mut cloud = Cloud::new(particles);
        let mut expected = Moments::start();
        let mut batches = PrivateRng::insecure(61, NotPrivate::acknowledged());
        for step in 0..=steps {
            if step > 0 {
                cloud.step(&vault, variant, &mut batches)?;
                expected = expected.step(variant);
            }
            if step.is_multiple_of(STRIDE) {
                table.add_quietly(std::iter::once(vec![
                    variant.name.into(),
                    step.to_string(),
                    format!("{:.4}", cloud.log_volume()),
                    format!("{:.4}", expected.log_volume()),
                    format!("{:.4}", cloud.energy()),
                ]))?;
            }
            if step.is_multiple_of(steps / 4) {
                clouds.add_quietly(cloud.at.iter().take(300).map(|[theta, p]| {
                    let place = [theta, p].map(|x| format!("{x:.4}"));
                    [vec![variant.name.into(), step.to_string()], place.to_vec()].concat()
                }))?;
            }
        }
    }
    last_lines(&table)?;
    figures(course, &table, &clouds)
}

/// The volumes at the end, for the table.
fn last_lines(table: &Table) -> Result<(), Box<dyn Error>> {
    println!("| variant | ln(volume at the end/at the start) | predicted | mean energy |");
    println!("|---|---|---|---|");
    for variant in VARIANTS {
        let rows = table.rows()?;
        if let Some(row) = rows.iter().rev().find(|row| row[0] == variant.name) {
            println!("| {} | {} | {} | {} |", row[0], row[2], row[3], row[4]);
        }
    }
    Ok(())
}

fn figures(course: &Course, table: &Table, clouds: &Table) -> Result<(), Box<dyn Error>> {
    let mut volumes = Panel {
        title: "area of the cloud".into(),
        x: "time",
        y: "ln(volume/first volume)",
        ..Panel::default()
    };
    let rows = table.rows()?;
    let points = clouds.rows()?;
    let mut panels = Vec::new();
    for variant in VARIANTS {
        let of_variant = |row: &&Vec<String>| row[0] == variant.name;
        let parse = |row: &Vec<String>, at: usize| row[at].parse::<f64>().unwrap_or(f64::NAN);
        let time = |row: &Vec<String>| ETA * parse(row, 1);
        let curve = rows
            .iter()
            .filter(of_variant)
            .map(|r| (time(r), parse(r, 2)));
        volumes.series.push(Series::line(variant.name, curve));
        let mut panel = Panel {
            title: variant.name.into(),
            x: "theta",
            y: "p",
            ..Panel::default()
        };
        let mut steps: Vec<&String> = points.iter().filter(of_variant).map(|r| &r[1]).collect();
        steps.dedup();
        for step in steps {
            let at_step = points.iter().filter(of_variant).filter(|r| &r[1] == step);
            let label = format!("time {}", number(ETA * step.parse::<f64>()?));
            let cloud = at_step.map(|r| (parse(r, 2), parse(r, 3)));
            panel.series.push(Series::dots(&label, cloud));
        }
        panels.push(panel);
    }
    Figure {
        title: "volume of phase space".into(),
        panels: vec![volumes],
    }
    .write(&course.out.join("lode-phase-space.svg"))?;
    Figure {
        title: "clouds in phase space".into(),
        panels,
    }
    .write(&course.out.join("lode-phase-space-clouds.svg"))
}

/// The model on records whose mean is 0 and whose variance is their number: the posterior is
/// a standard normal.
fn oscillator() -> Result<Vault, Box<dyn Error>> {
    let n = RECORDS as f64;
    let constants = Constants::from_json(&format!("{{\"sd\": {}}}", n.sqrt()))?;
    let model = Model::from_source(&read("papers/oscillator.dpm")?, &constants)?;
    let mut rng = ChaCha8Rng::seed_from_u64(60);
    let z: Vec<f64> = (0..RECORDS).map(|_| normal(&mut rng)).collect();
    let mean = z.iter().sum::<f64>() / n;
    let variance = z.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / n;
    let y = z
        .iter()
        .map(|z| (z - mean) * (n / variance).sqrt())
        .collect();
    let rows = Rows::from_columns(&model.columns, vec![("y".into(), y)], OnBadRows::Error)?;
    Ok(Vault::new(Density::new(model), rows)?)
}

struct Cloud {
    /// theta and p
    at: Vec<[f64; 2]>,
    rng: ChaCha8Rng,
}

impl Cloud {
    fn new(particles: usize) -> Cloud {
        let mut rng = ChaCha8Rng::seed_from_u64(62);
        let mut place = || START.map(|x| x + START_SD * normal(&mut rng));
        Cloud {
            at: (0..particles).map(|_| place()).collect(),
            rng,
        }
    }

    /// p += eta g - eta F p + N(0, 2 eta (F - B));  theta += eta p
    fn step(
        &mut self,
        vault: &Vault,
        variant: &Variant,
        batches: &mut PrivateRng,
    ) -> Result<(), Box<dyn Error>> {
        let (subsampling, weight) = if variant.batches {
            (
                Subsampling::Poisson(InclusionRate::new(Real::from(RATE))?),
                1.0 / RATE,
            )
        } else {
            (Subsampling::All, 1.0)
        };
        let sd = variant.noise().sqrt();
        for [theta, p] in &mut self.at {
            let permission = NotPrivate::acknowledged();
            let gradient = vault.batch_gradient(&[*theta], subsampling, permission, batches);
            *p += ETA * (weight * gradient[0] - variant.friction * *p) + sd * normal(&mut self.rng);
            *theta += ETA * *p;
        }
        Ok(())
    }

    fn log_volume(&self) -> f64 {
        let n = self.at.len() as f64;
        let mean = [0, 1].map(|j| self.at.iter().map(|x| x[j]).sum::<f64>() / n);
        let covariance = |j: usize, k: usize| {
            let products = self.at.iter().map(|x| (x[j] - mean[j]) * (x[k] - mean[k]));
            products.sum::<f64>() / n
        };
        log_volume(covariance(0, 0), covariance(0, 1), covariance(1, 1))
    }

    fn energy(&self) -> f64 {
        let energies = self
            .at
            .iter()
            .map(|[theta, p]| (theta * theta + p * p) / 2.0);
        energies.sum::<f64>() / self.at.len() as f64
    }
}

/// ln of the area of the ellipse of a covariance, over that of the first cloud.
fn log_volume(theta: f64, both: f64, p: f64) -> f64 {
    (theta * p - both * both).ln() / 2.0 - 2.0 * START_SD.ln()
}

/// Second moments of the cloud about its centre, and the centre.
#[derive(Clone, Copy)]
struct Moments {
    centre: [f64; 2],
    theta: f64,
    both: f64,
    p: f64,
}

impl Moments {
    fn start() -> Moments {
        Moments {
            centre: START,
            theta: START_SD * START_SD,
            both: 0.0,
            p: START_SD * START_SD,
        }
    }

    fn step(self, variant: &Variant) -> Moments {
        // p' = c p - eta theta + noise;  theta' = theta + eta p'
        let c = 1.0 - ETA * variant.friction;
        let batch = if variant.batches {
            // A batch's noise grows with the square of theta, by one record's share.
            let square = self.theta + self.centre[0] * self.centre[0];
            ETA * ETA * BATCH_VARIANCE * (1.0 + square / RECORDS as f64)
        } else {
            0.0
        };
        let p = c * c * self.p - 2.0 * c * ETA * self.both
            + ETA * ETA * self.theta
            + batch
            + variant.noise();
        // Covariance of theta with p'.
        let crossed = c * self.both - ETA * self.theta;
        let centre_p = c * self.centre[1] - ETA * self.centre[0];
        Moments {
            centre: [self.centre[0] + ETA * centre_p, centre_p],
            theta: self.theta + 2.0 * ETA * crossed + ETA * ETA * p,
            both: crossed + ETA * p,
            p,
        }
    }

    fn log_volume(&self) -> f64 {
        log_volume(self.theta, self.both, self.p)
    }
}
