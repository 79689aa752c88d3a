//! A made-up table, what can be known of its posterior, and runs of the default on it.
//!
//! Places and intervals are compared on the unconstrained scale, where posteriors are about
//! normal and a standard deviation means the same on both sides.

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use dpm::accounting::Terms;
use dpm::diagnostics::{Severity, mean, quantile, sd};
use dpm::testing::density::Density;
use dpm::testing::privacy::NotPrivate;
use dpm::testing::sampler::{Initial, NonPrivateRun, PlanRequest, lookup, sample_without_privacy};
use dpm::{
    Accountant, Analysis, Budget, Constants, Fit, MetricForm, Model, PrivateData, Real, Relation,
    Session, Settings, Vault,
};
use serde_json::Value;

use crate::experiment::Form;
use crate::random::Random;
use crate::subjects::Subject;

pub const DELTA: f64 = 1e-6;
/// Coordinates up to which the sampler without privacy learns all of a covariance.
const DENSE: usize = 20;

/// A table in its vault.
pub struct Trial {
    vault: Vault,
    /// One name for each coordinate.
    pub names: Vec<String>,
    /// Draws from the posterior without privacy, by coordinates.
    reference: Vec<Vec<f64>>,
    /// The values that a run should find.
    truth: Vec<f64>,
}

/// A run, beside what it should have found. Numbers are one for each coordinate, in its order.
pub struct Outcome {
    pub fit: Fit,
    /// Whether the truth is in the central 90% and 50% of the draws, and the mean of the posterior
    /// without privacy in the central 90%.
    pub covers: [Vec<bool>; 3],
    /// The truth's distance from the draws' mean, and that of the posterior without privacy, in
    /// the draws' standard deviations.
    pub errors: Vec<f64>,
    pub errors_of_mean: Vec<f64>,
    /// The draws' standard deviations, and their central 90%, by those of the posterior without
    /// privacy.
    pub sd_ratios: Vec<f64>,
    pub width_ratios: Vec<f64>,
    pub seconds: f64,
}

impl Trial {
    /// The table of that number, and `draws` from its posterior.
    pub fn new(
        subject: &Subject,
        n: usize,
        number: u64,
        draws: u64,
    ) -> Result<Trial, Box<dyn Error>> {
        // Tables of one number are drawn alike whatever else is made.
        let made = (subject.make)(&mut Random::new(1_000_000 * number + n as u64), n);
        let model = Model::from_source(subject.program, &Constants::none())?;
        let columns = model.columns.iter().enumerate().map(|(j, column)| {
            let values: Vec<f64> = made.records.iter().map(|record| record[j]).collect();
            (column.name.clone(), values)
        });
        let vault = PrivateData::from_columns(columns).bind(&model)?;
        let density = vault.density();
        let names: Vec<String> = density.output_names().map(str::to_owned).collect();
        let place = unconstrained(density, &made.parameters)?;
        let reference = posterior(&vault, &place, number, draws)?;
        let truth = if subject.is_true {
            place
        } else {
            reference.iter().map(|x| mean_of(x)).collect()
        };
        Ok(Trial {
            names,
            reference,
            truth,
            vault,
        })
    }

    /// The truth's distance from the mean of the posterior without privacy, in its standard
    /// deviations, for each coordinate.
    #[cfg(test)]
    pub fn errors_without_privacy(&self) -> Vec<f64> {
        let pairs = self.reference.iter().zip(&self.truth);
        pairs
            .map(|(draws, x)| (x - mean_of(draws)) / sd_of(draws))
            .collect()
    }

    /// Runs as `dpm sample` does with epsilon and delta alone.
    pub fn run(
        &self,
        epsilon: f64,
        relation: Relation,
        number: u64,
        form: Form,
    ) -> Result<Outcome, Box<dyn Error>> {
        let budget = Budget::new(epsilon, DELTA)?;
        let terms = Terms::new(budget, relation, "record", Accountant::Gaussian)?;
        let session = Session::in_memory(terms)?;
        let dimension = self.names.len();
        let usual = PlanRequest::automatic(epsilon.into(), DELTA.into(), dimension);
        let (warmup, samples) = form.of((250, 500), (250, 500), (20, 20));
        let started = Instant::now();
        let fit = Analysis::new("calibration", Real::from(epsilon))
            .algorithm(usual.algorithm.name)
            .iterations(warmup, samples)
            .seed(number)
            .sample(&self.vault, &session)?;
        let seconds = started.elapsed().as_secs_f64();
        let pooled = fit.draws().chains().iter().flatten();
        let draws = by_coordinates(self.vault.density(), pooled)?;
        let means: Vec<f64> = self.reference.iter().map(|x| mean_of(x)).collect();
        let each = |of: &dyn Fn(usize) -> f64| (0..dimension).map(of).collect::<Vec<f64>>();
        let covers = |target: &[f64], share: f64| {
            let inside = |(x, draws): (&f64, &Vec<f64>)| {
                let [low, high] = interval(draws, share);
                (low..=high).contains(x)
            };
            target.iter().zip(&draws).map(inside).collect::<Vec<bool>>()
        };
        let width = |draws: &Vec<f64>| {
            let [low, high] = interval(draws, 0.9);
            high - low
        };
        let off = |x: f64, draws: &Vec<f64>| (mean_of(draws) - x).abs() / sd_of(draws);
        Ok(Outcome {
            covers: [
                covers(&self.truth, 0.9),
                covers(&self.truth, 0.5),
                covers(&means, 0.9),
            ],
            errors: each(&|j| off(self.truth[j], &draws[j])),
            errors_of_mean: each(&|j| off(means[j], &draws[j])),
            sd_ratios: each(&|j| sd_of(&draws[j]) / sd_of(&self.reference[j])),
            width_ratios: each(&|j| width(&draws[j]) / width(&self.reference[j])),
            fit,
            seconds,
        })
    }
}

impl Outcome {
    /// The kinds of the verdicts that say that the draws are not to be used.
    pub fn problems(&self) -> Vec<String> {
        let diagnosis = self.fit.diagnosis();
        let problems = diagnosis.verdicts.iter();
        problems
            .filter(|v| v.severity == Severity::Problem)
            .map(|v| format!("{:?}", v.kind))
            .collect()
    }

    /// Writes the run, and gives what the search for the posterior says of itself.
    pub fn save(&self, place: &Path) -> Result<Value, Box<dyn Error>> {
        let place = self.fit.save(place)?;
        let config = std::fs::read_to_string(place.join("config.json"))?;
        let mut config: Value = serde_json::from_str(&config)?;
        Ok(config["start"].take())
    }
}

/// By the no-U-turn sampler, one chain from `place`.
fn posterior(
    vault: &Vault,
    place: &[f64],
    seed: u64,
    draws: u64,
) -> Result<Vec<Vec<f64>>, Box<dyn Error>> {
    let density = vault.density();
    let metric = if place.len() <= DENSE {
        MetricForm::Dense
    } else {
        MetricForm::Diagonal
    };
    let run = NonPrivateRun {
        request: PlanRequest {
            chains: 1,
            settings: Settings::new().metric(metric),
            ..PlanRequest::without_budget(lookup("nuts").ok_or("no nuts")?, place.len())
        },
        num_warmup: draws / 2,
        num_samples: draws,
        initial: Initial::Points(vec![place.to_vec()]),
        seed,
    };
    let chains = sample_without_privacy(vault, &run, NotPrivate::acknowledged(), &())?;
    let kept = chains
        .iter()
        .flat_map(|chain| &chain.draws[(draws / 2) as usize..]);
    by_coordinates(density, kept.map(|draw| &draw.values))
}

fn by_coordinates<'a>(
    density: &Density,
    draws: impl Iterator<Item = &'a Vec<f64>>,
) -> Result<Vec<Vec<f64>>, Box<dyn Error>> {
    let mut coordinates = vec![Vec::new(); density.dimension()];
    for draw in draws {
        for (coordinate, value) in coordinates.iter_mut().zip(unconstrained(density, draw)?) {
            coordinate.push(value);
        }
    }
    Ok(coordinates)
}

/// The point with these values of the parameters, in the program's order.
fn unconstrained(density: &Density, values: &[f64]) -> Result<Vec<f64>, String> {
    let mut values = values.iter().copied();
    density.unconstrain(|name, _| values.next().ok_or_else(|| format!("no value of `{name}`")))
}

fn interval(draws: &[f64], share: f64) -> [f64; 2] {
    [0.5 - 0.5 * share, 0.5 + 0.5 * share].map(|p| quantile(&[draws], p))
}

fn mean_of(draws: &[f64]) -> f64 {
    mean(&[draws])
}

fn sd_of(draws: &[f64]) -> f64 {
    sd(&[draws])
}
