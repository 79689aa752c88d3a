//! Noise and clipping of a plan, on simulated records.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::Serialize;

use crate::density::{Density, PublicSample, Simulator};
use crate::function::linear::cholesky;
use crate::model::Model;
use crate::sampler::{Plan, SampleError, Scale, Setting, draw_prior};

/// Records simulated from a model at several points of its prior.
pub struct Simulation {
    pub(super) density: Density,
    pub(super) scenes: Vec<Scene>,
    /// Unconstrained coordinates without a proper prior, for which a standard normal was used.
    pub stand_ins: Vec<usize>,
}

/// How records are simulated. The same seed gives the same records.
#[derive(Debug, Clone)]
pub struct Recipe {
    /// The number at each point.
    pub records: usize,
    /// The source of covariates, if not uniform between their bounds.
    pub public: Option<PublicSample>,
    pub seed: u64,
}

/// One point and its records.
pub(super) struct Scene {
    /// Unconstrained.
    pub theta: Vec<f64>,
    pub records: usize,
    /// Declared columns, in declaration order.
    pub raw: Vec<Vec<f64>>,
    /// The columns that the density reads.
    columns: Vec<Vec<f64>>,
    /// The gradients of the records at `theta`; only of records where they are finite.
    gradients: Vec<Vec<f64>>,
}

/// The predicted noise and clipping of a plan. Each figure is the median over the points.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// Points of the prior.
    pub points: usize,
    /// Records simulated at each.
    pub records: usize,
    /// How much a coordinate of the (clipped) gradient over all records varies across the
    /// posterior: the root mean square over coordinates of `sqrt(T n F_jj)`, with F the Fisher
    /// information of one record.
    pub gradient_sd: Option<f64>,
    /// The standard deviation of a gradient's noise over `gradient_sd`; of a batch's, scaled
    /// up to all records.
    pub noise_to_gradient: Option<f64>,
    /// The same for the difference between a batch and all records.
    pub batch_to_gradient: Option<f64>,
    /// Share of records whose gradient is longer than its clip bound.
    pub clipped_gradients: Option<f64>,
    /// Share of records whose log-ratio is clipped, for proposals of the typical length in
    /// random directions.
    pub clipped_log_ratios: Option<f64>,
    /// For a sampler that learns its coordinates: how long a chain travels, in units of the time
    /// that it takes to forget its position.
    pub travel: Option<f64>,
    /// For such a sampler: the best number of gradients from one draw to the next.
    pub gradients_per_draw: Option<u64>,
}

impl Simulation {
    /// Simulates records at this many draws from the prior of `model`.
    ///
    /// # Errors
    ///
    /// No point has a finite prior density.
    pub fn from_prior(
        model: &Model,
        points: usize,
        recipe: &Recipe,
    ) -> Result<Simulation, SampleError> {
        let prior = draw_prior(&Density::new(model.clone()), points, recipe.seed)?;
        let simulation = Simulation::at_points(model, prior.draws, recipe);
        Ok(Simulation {
            stand_ins: prior.stand_ins,
            ..simulation
        })
    }

    /// Simulates records at each of these parameters (unconstrained), public guesses.
    pub fn at_points(model: &Model, points: Vec<Vec<f64>>, recipe: &Recipe) -> Simulation {
        let density = Density::new(model.clone());
        let mut rng = ChaCha8Rng::seed_from_u64(recipe.seed);
        let scenes = points
            .into_iter()
            .map(|theta| Scene::new(&density, theta, recipe, &mut rng))
            .collect();
        Simulation {
            density,
            scenes,
            stand_ins: Vec::new(),
        }
    }

    /// The predicted noise and clipping of `plan` for `n` records.
    pub fn predict(&self, plan: &Plan, n: u64) -> Prediction {
        let over_points = |of: &dyn Fn(&Scene) -> Option<f64>| {
            median(self.scenes.iter().filter_map(of).collect())
        };
        let request = &plan.request;
        let line = plan.lines.iter().find_map(|line| match line.scale {
            Scale::Gradient(scale) => Some((line, scale.sigma())),
            _ => None,
        });
        let noise =
            line.map(|(line, sigma)| request.temperature * line.line.weight(request) * sigma);
        // Of a Poisson batch with rate r: (1 - r) / r of the squares' sum.
        let left_out = line.map(|(line, _)| {
            let excess = line.line.weight(request) - 1.0;
            (request.temperature * excess.max(0.0)).sqrt()
        });
        let learns = request.algorithm.learns();
        let travel = |scene: &Scene| {
            let learner = request.algorithm.learner().filter(|l| l.travels())?;
            learner.travel(plan, scene.whitened_lengths()?, n as f64)
        };
        let gradient_sd = |scene: &Scene| {
            // In coordinates that are not known yet.
            if learns {
                return None;
            }
            let information =
                scene.information(request.clip_gradient())? * request.temperature * n as f64;
            Some(information.sqrt())
        };
        let asks = |setting: Setting| request.algorithm.has(setting);
        let clips_gradients = asks(Setting::clip_gradient);
        let proposal = plan
            .typical_proposal()
            .filter(|_| asks(Setting::clip_log_ratio));
        Prediction {
            points: self.scenes.len(),
            records: self.scenes.first().map_or(0, |scene| scene.records),
            gradient_sd: over_points(&gradient_sd),
            noise_to_gradient: over_points(&|scene| {
                let ratio = noise? / gradient_sd(scene)?;
                ratio.is_finite().then_some(ratio)
            }),
            batch_to_gradient: left_out.filter(|ratio| *ratio > 0.0),
            clipped_gradients: over_points(&|scene| {
                clips_gradients.then(|| scene.longer_than(request.clip_gradient()))
            }),
            clipped_log_ratios: over_points(&|scene| {
                let (distance, _) = proposal?;
                Some(scene.steeper_than(&self.density, request.clip_log_ratio(), distance))
            }),
            travel: over_points(&|scene| Some(travel(scene)?.time)),
            gradients_per_draw: over_points(&|scene| {
                Some(travel(scene)?.gradients_per_draw as f64)
            })
            .map(|wanted| wanted as u64),
        }
    }
}

impl Scene {
    fn new(density: &Density, theta: Vec<f64>, recipe: &Recipe, rng: &mut ChaCha8Rng) -> Scene {
        let records = recipe.records;
        let raw = Simulator::new(density).records(&theta, records, recipe.public.as_ref(), rng);
        let (columns, _) = density.load_columns(&raw, records);
        let mut scene = Scene {
            theta,
            records,
            raw,
            columns,
            gradients: Vec::new(),
        };
        scene.gradients = scene
            .gradients_at(density, &scene.theta)
            .chunks(density.dimension().max(1))
            .filter(|gradient| gradient.iter().all(|g| g.is_finite()))
            .map(<[f64]>::to_vec)
            .collect();
        scene
    }

    /// The gradients of the records at its own point.
    pub fn gradients(&self) -> &[Vec<f64>] {
        &self.gradients
    }

    /// Every record's gradient at a point, `dimension` numbers each.
    pub fn gradients_at(&self, density: &Density, theta: &[f64]) -> Vec<f64> {
        density.record_gradients(theta, &self.columns, self.records)
    }

    /// Every record's log-likelihood at a point, nats.
    pub fn log_likelihoods_at(&self, density: &Density, theta: &[f64]) -> Vec<f64> {
        density.record_log_likelihoods(theta, &self.columns, self.records)
    }

    /// The length that all but this share of the records' gradients do not exceed.
    pub fn gradient_quantile(&self, share: f64) -> Option<f64> {
        let mut lengths: Vec<f64> = self.gradients.iter().map(|g| norm(g)).collect();
        lengths.sort_by(f64::total_cmp);
        let at = ((1.0 - share) * lengths.len() as f64).ceil() as usize;
        lengths.get(at.saturating_sub(1)).copied()
    }

    /// Standard deviations of the posterior of `n` records about the point, each coordinate
    /// given the others: 1 / sqrt(n F_jj).
    pub fn scales(&self, n: f64) -> Vec<f64> {
        let count = self.gradients.len().max(1) as f64;
        (0..self.theta.len())
            .map(|j| {
                let squares: f64 = self.gradients.iter().map(|g| g[j] * g[j]).sum();
                (n * squares / count).sqrt().recip()
            })
            .collect()
    }

    /// The Fisher information of one record, averaged over coordinates, as far as clipped gradients
    /// show it.
    fn information(&self, clip: f64) -> Option<f64> {
        let d = self.theta.len();
        let squares = self.gradients.iter().map(|g| norm(g).min(clip).powi(2));
        let count = d * self.gradients.len();
        (count > 0).then(|| squares.sum::<f64>() / count as f64)
    }

    /// Lengths of the gradients in coordinates in which their products are the identity on
    /// average; none where there are too few gradients to estimate these.
    fn whitened_lengths(&self) -> Option<Vec<f64>> {
        let (d, count) = (self.theta.len(), self.gradients.len());
        if count <= 2 * d {
            return None;
        }
        let mut products = vec![0.0; d * d];
        for gradient in &self.gradients {
            for i in 0..d {
                for j in 0..d {
                    products[i * d + j] += gradient[i] * gradient[j] / count as f64;
                }
            }
        }
        let mut factor = vec![0.0; d * d];
        cholesky(d, &products, &mut factor);
        let whitened = |gradient: &Vec<f64>| -> f64 {
            let mut solved = vec![0.0; d];
            for i in 0..d {
                let rest: f64 = (0..i).map(|j| factor[i + j * d] * solved[j]).sum();
                solved[i] = (gradient[i] - rest) / factor[i + i * d];
            }
            norm(&solved)
        };
        let lengths: Vec<f64> = self.gradients.iter().map(whitened).collect();
        lengths.iter().all(|l| l.is_finite()).then_some(lengths)
    }

    fn longer_than(&self, bound: f64) -> f64 {
        let longer = self.gradients.iter().filter(|g| norm(g) > bound).count();
        longer as f64 / self.gradients.len().max(1) as f64
    }

    /// The share of records whose log-ratio over a `distance` exceeds `bound` per unit.
    fn steeper_than(&self, density: &Density, bound: f64, distance: f64) -> f64 {
        const DIRECTIONS: u64 = 10;
        let here = self.log_likelihoods_at(density, &self.theta);
        let mut steeper = 0;
        for seed in 0..DIRECTIONS {
            let direction = direction(self.theta.len(), &mut ChaCha8Rng::seed_from_u64(seed));
            let step = self.theta.iter().zip(&direction);
            let to: Vec<f64> = step.map(|(t, u)| t + distance * u).collect();
            let there = self.log_likelihoods_at(density, &to);
            let ratios = there.iter().zip(&here).map(|(b, a)| (b - a).abs());
            steeper += ratios.filter(|r| *r > bound * distance).count();
        }
        steeper as f64 / (self.records.max(1) as u64 * DIRECTIONS) as f64
    }
}

pub(super) fn norm(vector: &[f64]) -> f64 {
    vector.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// Uniform on the unit sphere.
pub(super) fn direction(dimension: usize, rng: &mut impl Rng) -> Vec<f64> {
    let normal: Vec<f64> = (0..dimension).map(|_| StandardNormal.sample(rng)).collect();
    let length = norm(&normal);
    normal.iter().map(|x| x / length).collect()
}

pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    Some(0.5 * (values[middle - 1] + upper))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounting::Real;
    use crate::model::Constants;
    use crate::sampler::PlanRequest;
    use crate::sampler::Settings;

    const RECIPE: Recipe = Recipe {
        records: 200,
        public: None,
        seed: 1,
    };

    /// y ~ normal(mu, 2), with mu next to 5: F = 1/4.
    fn normal_mean() -> Simulation {
        let model = Model::from_source(
            "record { real y; } parameters { real mu; }
             model { mu ~ normal(5, 1e-3); y ~ normal(mu, 2); }",
            &Constants::none(),
        );
        Simulation::from_prior(&model.unwrap(), 5, &RECIPE).unwrap()
    }

    // If it failed: the plan would wrongly call noise small or large. Oracle: for y ~ normal(mu,
    // 2), mu ~ normal(5, 1e-3), a record's gradient is z / 2 with z standard normal, whatever mu: F
    // = 1/4, and |z / 2| > 1 for 4.55% of the records. A median of five shares of 200 records: 5
    // standard errors of one of them, false alarm 1e-6.
    #[test]
    fn figures_are_those_of_the_model() {
        let simulation = normal_mean();
        assert!(simulation.stand_ins.is_empty());
        let (n, temperature) = (40_000, 0.25);
        let plan = |clip_gradient: f64| {
            let request = PlanRequest {
                temperature,
                records: Some(n),
                settings: Settings::new()
                    .clip_gradient(clip_gradient)
                    .clip_log_ratio(0.5),
                ..PlanRequest::new(Real::from(4.0), Real::from(1e-6), 1)
            };
            Plan::new(request).unwrap()
        };
        let found = simulation.predict(&plan(10.0), n);
        let gradient_sd = (temperature * n as f64 * 0.25).sqrt();
        let error = 5.0 * (0.5 / 200.0_f64).sqrt();
        let ratio = found.gradient_sd.unwrap() / gradient_sd;
        assert!((ratio - 1.0).abs() < error, "{ratio}");
        let (noise, _) = plan(10.0).gradient_and_noise().unwrap();
        let ratio = found.noise_to_gradient.unwrap() / (noise / gradient_sd);
        assert!((ratio - 1.0).abs() < error, "{ratio}");
        let share = |s: Option<f64>, expected: f64| {
            let error = 5.0 * (expected * (1.0 - expected) / 200.0).sqrt();
            assert!(
                (s.unwrap() - expected).abs() < error,
                "{s:?} for {expected}"
            );
        };
        assert_eq!(found.clipped_gradients, Some(0.0));
        let clipped = simulation.predict(&plan(1.0), n);
        share(clipped.clipped_gradients, 0.0455);
        assert!(clipped.gradient_sd < found.gradient_sd);
        // |z| / 2 > 1/2, but for the curvature of a short step.
        share(found.clipped_log_ratios, 0.3173);
    }

    // If it failed: the noise of batches would not be scaled up with them. Oracle: by hand, for
    // the model above, F = 1/4: noise sigma / r over sqrt(T n F), and sqrt(T (1 - r) / r).
    #[test]
    fn batches_have_their_own_noise() {
        let simulation = normal_mean();
        let (n, rate, temperature) = (10_000, 0.2, 0.5);
        let plan = Plan::new(PlanRequest {
            algorithm: crate::sampler::lookup("dp-sgld").unwrap(),
            temperature,
            records: Some(n),
            settings: Settings::new()
                .batch_rate(Real::exact(rate))
                .clip_gradient(10.0),
            ..PlanRequest::new(Real::from(1.0), Real::from(1e-6), 1)
        })
        .unwrap();
        let Scale::Gradient(scale) = plan.lines[0].scale else {
            panic!("gradients")
        };
        let found = simulation.predict(&plan, n);
        let gradient_sd = (temperature * n as f64 * 0.25).sqrt();
        let expected = temperature * scale.sigma() / rate / gradient_sd;
        let ratio = found.noise_to_gradient.unwrap() / expected;
        assert!(
            (ratio - 1.0).abs() < 5.0 * (0.5 / 200.0_f64).sqrt(),
            "{ratio}"
        );
        let batch = found.batch_to_gradient.unwrap();
        assert!(
            (batch - (temperature * 4.0_f64).sqrt()).abs() < 1e-12,
            "{batch}"
        );
        assert_eq!(found.clipped_log_ratios, None);
    }

    // If it failed: a plan would promise a sampler that tunes itself more time than it will have, or
    // less. Oracle: two independent normal means, whose gradients are z in whitened coordinates
    // whatever the scales: with `n` records of which k are clipped, the clip bound is the
    // 1 - k/n quantile of |z| with two coordinates, sqrt(-2 ln(k/n)), over sqrt(n). Of 1000 records
    // the quantile of 1 - 1% has a standard error of 8%, and time goes with its square.
    #[test]
    fn the_time_of_chains_is_foreseen() {
        let model = Model::from_source(
            "record { real y; real x; } parameters { real a; real b; }
             model { a ~ normal(0, 1); b ~ normal(0, 1); y ~ normal(a, 2); x ~ normal(b, 100); }",
            &Constants::none(),
        );
        let recipe = Recipe {
            records: 1000,
            ..RECIPE
        };
        let simulation = Simulation::from_prior(&model.unwrap(), 5, &recipe).unwrap();
        let n = 3000;
        let request = PlanRequest {
            records: Some(n),
            algorithm: crate::sampler::lookup("dp-langevin").unwrap(),
            ..PlanRequest::automatic(Real::from(1.0), Real::from(1e-6), 2)
        };
        let plan = Plan::new(request).unwrap();
        let found = simulation.predict(&plan, n);
        assert_eq!((found.gradient_sd, found.clipped_gradients), (None, None));
        // The sum of all chain gradients: 2 tau sqrt(d / count) records are clipped.
        let line = &plan.lines[plan.lines.len() - 1];
        let clipped = 2.0 * line.tau * (2.0 / line.line.count as f64).sqrt();
        let length = (-2.0 * (clipped / n as f64).ln()).sqrt();
        let learner = plan.request.algorithm.learner().unwrap();
        let expected = learner.travel(&plan, vec![length], n as f64).unwrap().time;
        let ratio = found.travel.unwrap() / expected;
        assert!((0.7..1.4).contains(&ratio), "{ratio} {expected} {clipped}");
        let few = Recipe {
            records: 4,
            ..RECIPE
        };
        let simulation = Simulation::at_points(
            &simulation.density.model().clone(),
            vec![vec![0.0; 2]],
            &few,
        );
        assert_eq!(simulation.predict(&plan, n).travel, None);
    }

    // A model without a proper prior, and one whose likelihood is nowhere finite.
    #[test]
    fn nothing_is_predicted_where_nothing_can_be() {
        let model = Model::from_source(
            "record { real<lower=2, upper=3> y; } parameters { real mu; }
             model { y ~ beta(exp(mu), 1); }",
            &Constants::none(),
        )
        .unwrap();
        let simulation = Simulation::from_prior(&model, 5, &RECIPE).unwrap();
        assert_eq!(simulation.stand_ins, [0]);
        let request = PlanRequest::new(Real::from(1.0), Real::from(1e-6), 1);
        let found = simulation.predict(&Plan::new(request).unwrap(), 100);
        assert!(found.noise_to_gradient.is_none_or(f64::is_finite));
    }
}
