//! How wide the intervals of a run will be, forecast on simulated records.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::Serialize;

use super::simulation::{Made, Scene, Simulation, median};
use crate::diagnostics::{bracket_name, quantile};
use crate::linear::Matrix;
use crate::model::Model;
use crate::sampler::{SampleError, draw_prior_margins, prior_curvature};

/// The seed of everything here: the forecast is the same each time.
const SEED: u64 = 1;
/// Draws of the prior at which records are simulated.
const POINTS: usize = 10;
/// Records simulated at each.
const RECORDS: usize = 1000;
/// Draws of the two normal posteriors at each.
const DRAWS: usize = 200;
/// Draws of the prior for its widths.
const PRIOR_DRAWS: usize = 500;
/// The ends of the interval.
const ENDS: [f64; 2] = [0.05, 0.95];

/// A forecast of the width of a 90% interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Width {
    /// The parameter, in bracket form.
    pub name: String,
    /// In widths of the posterior's without privacy.
    pub of_reference: f64,
    /// In widths of the prior's, where that is known.
    pub of_prior: Option<f64>,
}

/// The widths of intervals from `n` records (less, where the posterior is tempered), if the noise of
/// each direction that records tell of has `noise` standard deviations of what they tell. None where
/// simulated records do not determine a posterior.
///
/// About each of a few draws of the prior, the posterior is taken to be normal, with the information
/// of records simulated there and the curvature of the prior; the noise divides the information by
/// 1 + `noise`^2.
///
/// # Errors
///
/// No point has a finite prior density.
pub fn forecast_widths(
    model: &Model,
    noise: f64,
    n: f64,
) -> Result<Option<Vec<Width>>, SampleError> {
    let made = Made {
        records: RECORDS,
        public: None,
        seed: SEED,
    };
    let simulation = Simulation::from_prior(model, POINTS, &made)?;
    let density = &simulation.density;
    let widths = simulation.scenes.iter().enumerate();
    let widths: Vec<[Vec<f64>; 2]> = widths
        .filter_map(|(k, scene)| scene.widths(&simulation, (noise, n), SEED + k as u64))
        .collect();
    if widths.is_empty() {
        return Ok(None);
    }
    let prior = prior_widths(&simulation);
    let names = density.output_names().map(bracket_name).enumerate();
    let forecast = names.filter_map(|(j, name)| {
        let over_points = |of: &dyn Fn(&[Vec<f64>; 2]) -> f64| {
            let all = widths.iter().map(of).filter(|width| width.is_finite());
            median(all.collect())
        };
        Some(Width {
            name,
            of_reference: over_points(&|[with, without]| with[j] / without[j])?,
            of_prior: prior[j].and_then(|prior| over_points(&|[with, _]| with[j] / prior)),
        })
    });
    Ok(Some(forecast.collect()))
}

impl Scene {
    /// The widths of all outputs with and without noise.
    fn widths(
        &self,
        simulation: &Simulation,
        (noise, n): (f64, f64),
        seed: u64,
    ) -> Option<[Vec<f64>; 2]> {
        let density = &simulation.density;
        let (d, gradients) = (self.theta.len(), self.gradients());
        let mut products = Matrix::new(d, d, |_, _| 0.0);
        for gradient in gradients {
            for (i, j) in (0..d).flat_map(|i| (0..d).map(move |j| (i, j))) {
                products[(i, j)] += gradient[i] * gradient[j];
            }
        }
        let prior = prior_curvature(density, &self.theta);
        let each = n / gradients.len() as f64;
        let width_of = |weight: f64| {
            let precision = Matrix::new(d, d, |i, j| {
                weight * each * products[(i, j)] + prior[(i, j)]
            });
            let (values, _) = precision.eigen();
            if !values.iter().all(|value| *value > 0.0) {
                return None;
            }
            let root = precision.with_eigenvalues(|value| value.sqrt().recip());
            // The same numbers with and without noise.
            let rng = &mut ChaCha8Rng::seed_from_u64(seed);
            let outputs: Vec<Vec<f64>> = (0..DRAWS)
                .map(|_| {
                    let z: Vec<f64> = (0..d).map(|_| StandardNormal.sample(rng)).collect();
                    let moved = root.times(&z);
                    let at: Vec<f64> = self.theta.iter().zip(moved).map(|(t, m)| t + m).collect();
                    density.outputs(&at)
                })
                .collect();
            Some(width_of_each(&outputs))
        };
        Some([width_of((1.0 + noise * noise).recip())?, width_of(1.0)?])
    }
}

/// The width of the central 90% of each column.
fn width_of_each(rows: &[Vec<f64>]) -> Vec<f64> {
    let columns = rows.first().map_or(0, Vec::len);
    (0..columns)
        .map(|j| {
            let column: Vec<f64> = rows.iter().map(|row| row[j]).collect();
            let [low, high] = ENDS.map(|p| quantile(&[&column], p));
            high - low
        })
        .collect()
}

fn prior_widths(simulation: &Simulation) -> Vec<Option<f64>> {
    let density = &simulation.density;
    let Ok(prior) = draw_prior_margins(density, PRIOR_DRAWS, SEED) else {
        return vec![None; density.output_names().count()];
    };
    let outputs: Vec<Vec<f64>> = prior.draws.iter().map(|t| density.outputs(t)).collect();
    let widths = width_of_each(&outputs).into_iter().enumerate();
    widths
        .map(|(j, width)| (!prior.unknown.contains(&j) && width > 0.0).then_some(width))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Constants;

    fn forecast(prior: &str, noise: f64, n: f64) -> Option<Vec<Width>> {
        let source = format!(
            "record {{ real y; }} parameters {{ real mu; }} transformed parameters {{ real twice = 2 * mu; }}
             model {{ {prior} y ~ normal(mu, 1); }}"
        );
        let model = Model::from_source(&source, &Constants::none()).unwrap();
        forecast_widths(&model, noise, n).unwrap()
    }

    // If it failed: a plan would promise other intervals than a run gives. Oracle: for y ~
    // normal(mu, 1) and mu ~ normal(0, 10) the posterior's variance is 1 / (n + 1/100) without
    // noise, and 1 / (n / (1 + noise^2) + 1/100) with it. Widths of 200 draws that are the same on
    // both sides, information from 10 times 1000 records: 10% is more than five standard errors of
    // the first ratio, and 20% of the second, which has widths of 200 and 500 draws.
    #[test]
    fn widths_are_those_of_a_normal_mean() {
        for (noise, n) in [(1.0, 1000.0), (3.0, 1000.0), (0.1, 50.0), (2.0, 1e-4)] {
            let found = forecast("mu ~ normal(0, 10);", noise, n).expect("a forecast");
            let names: Vec<&str> = found.iter().map(|w| w.name.as_str()).collect();
            assert_eq!(names, ["mu", "twice"]);
            let with = (n / (1.0 + noise * noise) + 0.01_f64).sqrt().recip();
            let without = (n + 0.01_f64).sqrt().recip();
            for width in found {
                let prior = width.of_prior.expect("a prior");
                assert!(
                    (width.of_reference / (with / without) - 1.0).abs() < 0.1,
                    "{width:?}"
                );
                assert!(
                    (prior / (with / 10.0) - 1.0).abs() < 0.2,
                    "{noise} {n}: {width:?}"
                );
            }
        }
    }

    #[test]
    fn a_flat_prior_has_no_width() {
        let found = forecast("", 1.0, 100.0).expect("a forecast");
        assert!(
            found.iter().all(|width| width.of_prior.is_none()),
            "{found:?}"
        );
        // Nothing tells of the parameter.
        let model = Model::from_source(
            "record { real y; } parameters { real mu; real nu; } model { mu ~ normal(0, 1); y ~ normal(mu, 1); }",
            &Constants::none(),
        );
        assert_eq!(forecast_widths(&model.unwrap(), 1.0, 100.0).unwrap(), None);
    }
}
