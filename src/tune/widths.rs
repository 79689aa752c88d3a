//! How wide the intervals of a run will be at least, forecast on simulated records: the noise of all
//! that is learnt beside the gradients is left out.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::Serialize;

use super::simulation::{Recipe, Scene, Simulation, median};
use crate::diagnostics::{bracket_name, quantile};
use crate::linear::{Matrix, length};
use crate::model::Model;
use crate::sampler::{Foresight, SampleError, draw_prior_margins, prior_curvature};

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
/// The room that the sampler's foresight leaves above equal lengths.
const SPARE: f64 = 1.5;
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

/// The gradients that a run of the default sampler is foreseen to ask for.
#[derive(Debug, Clone, Copy)]
pub struct Demand {
    /// The sampling noise of a sum of gradients, in posterior sds, if all were of the same length and
    /// had the whole budget.
    pub noise: f64,
    /// The share of the budget that gradients have.
    pub share: f64,
    /// The number of directions that records tell of.
    pub coordinates: f64,
    /// The number of records; less, where the posterior is tempered.
    pub records: f64,
}

impl Demand {
    /// From the foresight of a sampler that learns the likelihood.
    pub fn new(foresight: &Foresight, records: f64) -> Demand {
        let share = foresight
            .shares
            .iter()
            .find(|(what, _)| *what == "gradients");
        Demand {
            noise: foresight.noise / SPARE,
            share: share.map_or(1.0, |(_, share)| *share),
            coordinates: foresight.coordinates.max(1) as f64,
            records,
        }
    }
}

/// The widths of intervals. None where simulated records do not determine a posterior.
///
/// About each of a few draws of the prior, the posterior is taken to be normal, with the information
/// of records simulated there and the curvature of the prior. In axes in which both add up to the
/// identity, the sum of gradients gets the noise of vectors that are clipped where noise and loss are
/// least: with information h along an axis and noise s, the released likelihood has the precision
/// h^2 / (h + s^2) there.
///
/// # Errors
///
/// No point has a finite prior density.
pub fn forecast_widths(model: &Model, demand: &Demand) -> Result<Option<Vec<Width>>, SampleError> {
    let recipe = Recipe {
        records: RECORDS,
        public: None,
        seed: SEED,
    };
    let simulation = Simulation::from_prior(model, POINTS, &recipe)?;
    let density = &simulation.density;
    let widths = simulation.scenes.iter().enumerate();
    let widths: Vec<[Vec<f64>; 2]> = widths
        .filter_map(|(k, scene)| scene.widths(&simulation, demand, SEED + k as u64))
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
    fn widths(&self, simulation: &Simulation, demand: &Demand, seed: u64) -> Option<[Vec<f64>; 2]> {
        let density = &simulation.density;
        let (d, gradients) = (self.theta.len(), self.gradients());
        let each = demand.records / gradients.len() as f64;
        let mut told = Matrix::new(d, d, |_, _| 0.0);
        for gradient in gradients {
            for (i, j) in (0..d).flat_map(|i| (0..d).map(move |j| (i, j))) {
                told[(i, j)] += each * gradient[i] * gradient[j];
            }
        }
        let precision = &told + &prior_curvature(density, &self.theta);
        let (values, _) = precision.eigen();
        if !values.iter().all(|value| *value > 0.0) {
            return None;
        }
        let root = precision.with_eigenvalues(|value| value.sqrt().recip());
        let lengths = gradients.iter().map(|g| length(&root.times(g)));
        let noise =
            demand.noise * (demand.records / demand.coordinates).sqrt() / demand.share.sqrt();
        let noise = noise * clipped_at_best(lengths.collect());
        let (told, axes) = (&(&root * &told) * &root).eigen();
        let width_of = |noise: f64| {
            // The same numbers with and without noise.
            let rng = &mut ChaCha8Rng::seed_from_u64(seed);
            let outputs: Vec<Vec<f64>> = (0..DRAWS)
                .map(|_| {
                    let along = told.iter().map(|told| {
                        let told = told.clamp(0.0, 1.0);
                        let released = match told {
                            0.0 => 0.0,
                            told => told * told / (told + noise * noise),
                        };
                        let z: f64 = StandardNormal.sample(rng);
                        z / (released + 1.0 - told).sqrt()
                    });
                    let moved = root.times(&axes.times(&along.collect::<Vec<f64>>()));
                    let at: Vec<f64> = self.theta.iter().zip(moved).map(|(t, m)| t + m).collect();
                    density.outputs(&at)
                })
                .collect();
            width_of_each(&outputs)
        };
        Some([width_of(noise), width_of(0.0)])
    }
}

/// The bound at which clipped vectors of these lengths have the least noise, over the share of their
/// squares that is left.
fn clipped_at_best(mut lengths: Vec<f64>) -> f64 {
    lengths.sort_by(f64::total_cmp);
    let whole: f64 = lengths.iter().map(|x| x * x).sum();
    let (mut shorter, mut longer) = (0.0, lengths.iter().sum::<f64>());
    let mut best = f64::INFINITY;
    for x in &lengths {
        shorter += x * x;
        longer -= x;
        let left = (shorter + x * longer) / whole;
        if left > 0.0 {
            best = best.min(x / left);
        }
    }
    best
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

    fn forecast(prior: &str, noise: f64, records: f64) -> Option<Vec<Width>> {
        let source = format!(
            "record {{ int<lower=0, upper=1> y; }} parameters {{ real mu; }}
             transformed parameters {{ real twice = 2 * mu; }}
             model {{ {prior} target += y == 1 ? mu : -mu; }}"
        );
        let model = Model::from_source(&source, &Constants::none()).unwrap();
        let demand = Demand {
            noise,
            share: 0.5,
            coordinates: 1.0,
            records,
        };
        forecast_widths(&model, &demand).unwrap()
    }

    // If it failed: a plan would promise other intervals than a run gives. Oracle: each record has the
    // gradient 1 or -1, so that the information is n, nothing is lost by clipping at 1, and the
    // noise's variance is 2 noise^2 in posterior sds as half of the budget is left. With mu ~ normal(0,
    // 10) the posterior's precision is n + 1/100 without noise, and with it n / (1 + s^2) + 1/100,
    // where s^2 = 2 noise^2 n / (n + 1/100) and n / (n + 1/100) is about 1. Widths of 200 draws that are the
    // same on both sides: 1e-9. The prior's are of 500 other draws: 20% is four standard errors.
    #[test]
    fn widths_are_those_of_gradients_of_one_length() {
        for (noise, n) in [(1.0, 1000.0), (3.0, 1000.0), (0.1, 50.0)] {
            let found = forecast("mu ~ normal(0, 10);", noise, n).expect("a forecast");
            let names: Vec<&str> = found.iter().map(|w| w.name.as_str()).collect();
            assert_eq!(names, ["mu", "twice"]);
            let told = n / (n + 0.01);
            // In units of the posterior: a length is sqrt(told / n), a noise that times sqrt(n).
            let s2 = 2.0 * noise * noise * told;
            let ratio = (told * told / (told + s2) + 1.0 - told).sqrt().recip();
            for width in found {
                let prior = width.of_prior.expect("a prior");
                assert!(
                    (width.of_reference / ratio - 1.0).abs() < 1e-6,
                    "{width:?} {ratio}"
                );
                let of_prior = ratio / (n + 0.01).sqrt() / 10.0;
                assert!(
                    (prior / of_prior - 1.0).abs() < 0.2,
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
        let demand = Demand {
            noise: 1.0,
            share: 1.0,
            coordinates: 1.0,
            records: 100.0,
        };
        assert_eq!(forecast_widths(&model.unwrap(), &demand).unwrap(), None);
    }

    // Oracle: by hand. All alike: their length. Nine of 1 and one of 10: whole 109; at 1 it leaves
    // (9 + 10) / 109 and costs 5.74, at 10 all and costs 10.
    #[test]
    fn vectors_are_clipped_where_noise_and_loss_are_least() {
        assert!((clipped_at_best(vec![2.0; 5]) - 2.0).abs() < 1e-12);
        let uneven = [vec![1.0; 9], vec![10.0]].concat();
        assert!((clipped_at_best(uneven) - 109.0 / 19.0).abs() < 1e-12);
    }
}
