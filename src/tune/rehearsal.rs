//! Runs of a plan on simulated records, beside what they should give.

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
    Initial, Kind, MetricForm, NonPrivateSettings, Plan, SampleError, lookup, sample_exactly,
};

/// Iterations of the exact sampler, as many for warm-up, in each of two chains.
const EXACT: u64 = 250;
/// Doublings of its trajectories: posteriors that need more are for `--pilot`.
const MAX_DEPTH: u32 = 7;
/// Chains that are rehearsed, of those planned.
const CHAINS: u64 = 2;
/// Draws that are compared, of each of the two.
const COMPARED: usize = 400;

/// How good draws are that a plan gives; each figure is the mean over the simulated points.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rehearsed {
    /// MMD to the posterior, after scaling each parameter by its posterior mean and sd.
    pub mmd: f64,
    /// How far means are off, in posterior sds, averaged over parameters.
    pub mean_error: f64,
    /// Share of proposals that were accepted.
    pub acceptance: f64,
}

impl Rehearsed {
    /// What is to be small. Where draws and posterior do not overlap, MMD is the same
    /// however far away they are, and the distance decides.
    pub(super) fn score(&self) -> f64 {
        let score = self.mmd + 0.05 * self.mean_error.ln_1p();
        if score.is_nan() { f64::INFINITY } else { score }
    }
}

/// The posterior of a scene.
pub(super) struct Target {
    draws: Vec<Vec<f64>>,
    /// Of each output: mean and standard deviation; none of one that does not vary.
    moments: Vec<Option<(f64, f64)>>,
}

impl Target {
    /// By NUTS, with each record counting `weight` times, to the power `temperature`.
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
        let vault = Vault::new(Density::new(model.clone()), rows);
        let settings = NonPrivateSettings {
            algorithm: lookup("nuts").ok_or(TuneError::NotTuned("nuts"))?,
            chains: 2,
            num_warmup: EXACT,
            num_samples: EXACT,
            leapfrog_steps: 1,
            max_depth: MAX_DEPTH,
            step_size: None,
            target_acceptance: None,
            metric: MetricForm::Diagonal,
            temperature: temperature * weight,
        };
        // The records were simulated in memory: there is nobody behind them.
        let permission = NotPrivate::acknowledged();
        let start = Initial::Points(vec![scene.theta.clone()]);
        let chains = sample_exactly(&vault, &settings, &start, 1, permission, &())?;
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
    seed: u64,
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
        let theta = start(density, &mut rng)?;
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

/// Uniform on (-2, 2), as a run starts that is given no initial values.
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
