//! Runs of a plan on simulated records, compared with the exact posterior.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use super::TuneError;
use super::oracle::SimulatedOracle;
use super::simulation::{Scene, Simulation};
use crate::density::Density;
use crate::diagnostics::{self, mmd};
use crate::privacy::{NotPrivate, OnBadRows, Rows, Vault};
use crate::sampler::{
    Initial, Kind, NonPrivateRun, Plan, PlanRequest, SampleError, Settings, lookup,
    sample_without_privacy,
};

/// Iterations of the exact sampler, as many for warm-up, in each of two chains.
const EXACT: u64 = 250;
/// Doublings of its trajectories: posteriors that need more are for `--pilot`.
const MAX_DEPTH: u64 = 7;
/// Chains that are rehearsed, of those planned.
const CHAINS: u64 = 2;
/// The draws compared, from each of the two.
const COMPARED: usize = 400;

/// The quality of the draws of a plan; each figure is the mean over the simulated points.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rehearsed {
    /// MMD to the posterior, after scaling each parameter by its posterior mean and sd.
    pub mmd: f64,
    /// The error of means, in posterior sds, averaged over parameters.
    pub mean_error: f64,
    /// Share of proposals that were accepted.
    pub acceptance: f64,
}

impl Rehearsed {
    /// The score, which should be small. Where draws and posterior do not overlap, MMD is the same
    /// at any distance, and the distance decides.
    pub(super) fn score(&self) -> f64 {
        let score = self.mmd + 0.05 * self.mean_error.ln_1p();
        if score.is_nan() { f64::INFINITY } else { score }
    }
}

/// The posterior of a scene.
pub(super) struct Target {
    draws: Vec<Vec<f64>>,
    /// Mean and standard deviation of each output; none for one that does not vary.
    moments: Vec<Option<(f64, f64)>>,
}

impl Target {
    /// Samples the posterior by NUTS, with each record counting `weight` times, to the power
    /// `temperature`.
    pub fn new(
        simulation: &Simulation,
        scene: &Scene,
        weight: f64,
        temperature: f64,
    ) -> Result<Target, TuneError> {
        let model = simulation.density.model();
        let columns = model.columns.iter().zip(&scene.raw);
        let columns = columns.map(|(c, values)| (c.name.clone(), values.clone()));
        let rows = Rows::from_columns(&model.columns, columns.collect(), OnBadRows::Skip)?;
        let vault = Vault::new(Density::new(model.clone()), rows)?;
        let nuts = lookup("nuts").ok_or(TuneError::NotTuned("nuts"))?;
        let run = NonPrivateRun {
            request: PlanRequest {
                chains: 2,
                temperature: temperature * weight,
                settings: Settings::new().max_depth(MAX_DEPTH),
                ..PlanRequest::without_budget(nuts, model.dimension)
            },
            num_warmup: EXACT,
            num_samples: EXACT,
            initial: Initial::Points(vec![scene.theta.clone()]),
            seed: 1,
        };
        // The records were simulated in memory and belong to nobody.
        let permission = NotPrivate::acknowledged();
        let chains = sample_without_privacy(&vault, &run, permission, &())?;
        let draws: Vec<Vec<f64>> = chains
            .into_iter()
            .flat_map(|chain| chain.draws.into_iter().skip(EXACT as usize))
            .map(|draw| draw.values)
            .collect();
        let outputs = draws.first().map_or(0, Vec::len);
        let moments = (0..outputs)
            .map(|j| {
                let column = [draws.iter().map(|d| d[j]).collect::<Vec<f64>>()];
                let (mean, sd) = (diagnostics::mean(&column), diagnostics::sd(&column));
                (sd > 0.0 && sd.is_finite()).then_some((mean, sd))
            })
            .collect();
        Ok(Target { draws, moments })
    }

    /// In posterior sds from the posterior mean.
    fn standardised(&self, draws: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let every = draws.len().div_ceil(COMPARED).max(1);
        let scaled = |draw: &Vec<f64>| {
            let pairs = draw.iter().zip(&self.moments);
            pairs
                .filter_map(|(x, m)| m.map(|(mean, sd)| (x - mean) / sd))
                .collect()
        };
        draws.iter().step_by(every).map(scaled).collect()
    }
}

/// Runs `plan` at one scene, the first half of each chain discarded.
pub(super) fn rehearse(
    density: &Density,
    scene: &Scene,
    target: &Target,
    (plan, weight): (&Plan, f64),
    (initial, seed): (&Initial, u64),
) -> Result<Rehearsed, SampleError> {
    let Kind::Private(sampler) = plan.request.algorithm.kind else {
        return Err(SampleError::NotPrivate(plan.request.algorithm.name));
    };
    let iterations = plan.iterations_per_chain;
    let (mut draws, mut accepted, mut steps) = (Vec::new(), 0.0, 0.0);
    for chain in 0..plan.request.chains.min(CHAINS) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(chain);
        let mut oracle = SimulatedOracle {
            density,
            scene,
            plan,
            weight,
            rng: ChaCha8Rng::seed_from_u64(seed ^ (chain + 1)),
        };
        let theta = match initial {
            Initial::Random => start(density, &mut rng)?,
            Initial::Points(points) => points[chain as usize % points.len()].clone(),
        };
        let mut walker = sampler.chain(plan, theta, &mut oracle, &mut rng);
        for iteration in 0..iterations {
            let step = walker.step(&mut oracle, &mut rng)?;
            if 2 * iteration >= iterations {
                draws.push(density.outputs(walker.theta()));
                accepted += f64::from(step.accepted);
                steps += 1.0;
            }
        }
    }
    let found = target.standardised(&draws);
    let outputs = found.first().map_or(0, Vec::len);
    let mean = |j: usize| found.iter().map(|d| d[j]).sum::<f64>() / found.len() as f64;
    let mean_error = (0..outputs).map(|j| mean(j).abs()).sum::<f64>() / outputs.max(1) as f64;
    Ok(Rehearsed {
        mmd: mmd(&found, &target.standardised(&target.draws), 1),
        mean_error,
        acceptance: accepted / steps,
    })
}

/// Uniform on (-2, 2), as for a run without given initial values.
fn start(density: &Density, rng: &mut ChaCha8Rng) -> Result<Vec<f64>, SampleError> {
    for _ in 0..100 {
        let point: Vec<f64> = (0..density.dimension())
            .map(|_| rng.random_range(-2.0..2.0))
            .collect();
        if density.log_prior(&point).is_finite() {
            return Ok(point);
        }
    }
    Err(SampleError::NoInitialPoint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounting::Real;
    use crate::model::{Constants, Model};
    use crate::sampler::{Iterations, Oracle, Ratio};
    use crate::tune::Recipe;

    fn simulation(points: Vec<Vec<f64>>) -> Simulation {
        let model = Model::from_source(
            "record { real y; } parameters { real mu; }
             model { mu ~ normal(0, 0.3); y ~ normal(mu, 1); }",
            &Constants::none(),
        )
        .unwrap();
        let recipe = Recipe {
            records: 50,
            public: None,
            seed: 2,
        };
        Simulation::at_points(&model, points, &recipe)
    }

    /// Mean and variance.
    fn moments(values: &[f64]) -> (f64, f64) {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares = values.iter().map(|v| (v - mean).powi(2));
        (mean, squares.sum::<f64>() / n)
    }

    /// Those of gradients at a point.
    fn gradients(oracle: &mut SimulatedOracle, draws: u32, at: f64) -> (f64, f64) {
        let gradients = (0..draws).map(|_| oracle.gradient(0, &[at]).unwrap()[0]);
        moments(&gradients.collect::<Vec<f64>>())
    }

    /// Those of log-ratios between two points.
    fn ratios(oracle: &mut SimulatedOracle, draws: u32, [from, to]: [f64; 2]) -> (f64, f64) {
        let ratio = |_| match oracle.log_ratio(1, &[from], &[to]).unwrap() {
            Ratio::Penalised(ratio) => ratio,
            Ratio::Refused => panic!("a short step"),
        };
        moments(&(0..draws).map(ratio).collect::<Vec<f64>>())
    }

    // If it failed: settings would be tuned for another posterior than the run's. Oracle: the
    // tempered posterior by hand, each record counting 20 times, clipped at a bound that none
    // reaches. Six standard errors of 4000 draws (false alarm 2e-9); the smallest possible mistake,
    // leaving out the prior, is more than ten.
    #[test]
    fn answers_are_the_tempered_posteriors_with_the_plans_noise() {
        let simulation = simulation(vec![vec![0.2]]);
        let scene = &simulation.scenes[0];
        let (weight, temperature) = (20.0, 0.5);
        let plan = Plan::new(PlanRequest {
            chains: 1,
            iterations: Iterations::Fixed(10),
            temperature,
            records: Some(1000),
            settings: Settings::new().clip_gradient(9.0).clip_log_ratio(9.0),
            ..PlanRequest::new(Real::from(20.0), Real::from(1e-2), 1)
        })
        .unwrap();
        let mut oracle = SimulatedOracle {
            density: &simulation.density,
            scene,
            plan: &plan,
            weight,
            rng: ChaCha8Rng::seed_from_u64(3),
        };
        let (from, to) = (-0.4, -0.5);
        let likelihood = |mu: f64| {
            let square = |y: &f64| -0.5 * (y - mu) * (y - mu);
            weight * temperature * scene.raw[0].iter().map(square).sum::<f64>()
        };
        let pull = scene.raw[0].iter().map(|y| y - from).sum::<f64>();
        let prior = -from / 0.09;
        let gradient = weight * temperature * pull + prior;
        let draws = 4000;
        let (mean, variance) = gradients(&mut oracle, draws, from);
        let sd = variance.sqrt();
        let error = sd / f64::from(draws).sqrt();
        assert!(
            (mean - gradient).abs() < 6.0 * error,
            "{mean} for {gradient}"
        );
        assert!(prior > 2.0 * 6.0 * error, "{error}");
        let (noise, _) = plan.gradient_and_noise().unwrap();
        assert!((sd / noise - 1.0).abs() < 0.1, "{sd} for {noise}");

        let (mean, variance) = ratios(&mut oracle, draws, [from, to]);
        let sd = variance.sqrt();
        let expected = likelihood(to) - likelihood(from) - 0.5 * variance;
        let error = 2.0 * sd / f64::from(draws).sqrt();
        assert!(
            (mean - expected).abs() < 6.0 * error,
            "{mean} for {expected}"
        );
        assert!((likelihood(to) - likelihood(from)).abs() > 12.0 * error);
    }

    // If it failed: rehearsals would not clip as runs do, or batches would be too quiet or too
    // loud. Oracle: by hand, with bounds that most records exceed, and the variance of a sum
    // over a Poisson batch scaled up by 1/r. Six standard errors of 4000 draws, for a variance
    // 0.14 of it (false alarm 2e-9); without the batch's part it would be less than half.
    #[test]
    fn records_are_clipped_and_batches_drawn_as_in_a_run() {
        let simulation = simulation(vec![vec![0.2]]);
        let scene = &simulation.scenes[0];
        let (weight, rate, clip, theta) = (4000.0, 0.02, 0.25, -0.4);
        let plan = |algorithm: &str| {
            let mut settings = Settings::new()
                .clip_gradient(clip)
                .clip_log_ratio(clip)
                .step_size(1e-3);
            settings.batch_rate = (algorithm == "dp-sgld").then(|| Real::exact(rate));
            Plan::new(PlanRequest {
                algorithm: lookup(algorithm).unwrap(),
                chains: 1,
                iterations: Iterations::Fixed(1),
                records: Some(200_000),
                settings,
                ..PlanRequest::new(Real::from(20.0), Real::from(1e-2), 1)
            })
            .unwrap()
        };
        let oracle = |plan| SimulatedOracle {
            density: &simulation.density,
            scene,
            plan,
            weight,
            rng: ChaCha8Rng::seed_from_u64(3),
        };
        let clipped = scene.raw[0].iter().map(|y| (y - theta).clamp(-clip, clip));
        let clipped: Vec<f64> = clipped.collect();
        assert!(clipped.iter().filter(|g| g.abs() == clip).count() > 25);
        let draws = 4000;

        let sgld = plan("dp-sgld");
        let crate::sampler::Scale::Gradient(scale) = sgld.lines[0].scale else {
            panic!("gradients")
        };
        let mut batches = oracle(&sgld);
        let (mean, variance) = gradients(&mut batches, draws, theta);
        let expected = weight * clipped.iter().sum::<f64>() - theta / 0.09;
        let error = (variance / f64::from(draws)).sqrt();
        assert!((mean - expected).abs() < 6.0 * error, "{mean} {expected}");
        let noise = (scale.sigma() / rate).powi(2);
        let squares = clipped.iter().map(|g| g * g).sum::<f64>();
        let batch = (1.0 / rate - 1.0) * weight * squares;
        assert!(batch > noise, "{batch} {noise}");
        let ratio = variance / (batch + noise);
        assert!((ratio - 1.0).abs() < 0.14, "{ratio}");

        let hmc = plan("dp-hmc");
        let mut tests = oracle(&hmc);
        let to = theta - 0.1;
        let (mean, variance) = ratios(&mut tests, draws, [theta, to]);
        let square = |y: f64, mu: f64| -0.5 * (y - mu) * (y - mu);
        let ratio = |y: &f64| (square(*y, to) - square(*y, theta)).clamp(-0.1 * clip, 0.1 * clip);
        let sum = weight * scene.raw[0].iter().map(ratio).sum::<f64>();
        let expected = sum - 0.5 * variance;
        let error = (variance / f64::from(draws)).sqrt() * (1.0 + variance.sqrt());
        assert!((mean - expected).abs() < 6.0 * error, "{mean} {expected}");
    }

    // If it failed: good settings could not be told from bad ones. From where they start,
    // chains with a sensible step reach the posterior; with steps a thousand times shorter
    // they stay where they are, a few posterior sds off.
    #[test]
    fn a_rehearsal_tells_good_settings_from_bad() {
        let simulation = simulation(vec![vec![0.2]]);
        let scene = &simulation.scenes[0];
        let weight = 40.0;
        let target = Target::new(&simulation, scene, weight, 1.0).unwrap();
        let with_step = |step: f64| {
            let plan = Plan::new(PlanRequest {
                chains: 2,
                iterations: Iterations::Fixed(300),
                records: Some(2000),
                settings: Settings::new().step_size(step),
                ..PlanRequest::new(Real::from(20.0), Real::from(1e-4), 1)
            });
            let initial = Initial::Points(vec![vec![0.5]]);
            let with = (&plan.unwrap(), weight);
            rehearse(&simulation.density, scene, &target, with, (&initial, 1)).unwrap()
        };
        let (good, bad) = (with_step(0.02), with_step(2e-5));
        assert!(good.mmd < 0.4, "{good:?}");
        assert!(bad.mmd > 0.8 && bad.mean_error > 2.0, "{bad:?}");
        assert!(good.score() < bad.score());
    }
}
