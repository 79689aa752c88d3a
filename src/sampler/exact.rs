//! Chains of the samplers without privacy, with Stan's warm-up.

use rand::{Rng, RngExt};

use super::adaptation::{Covariance, DualAveraging, Windows};
use super::hamiltonian::{Info, State, reasonable_step};
use super::metric::{Metric, MetricForm};
use super::oracle::{ExactOracle, SampleError};
use super::run::{Chain, Draw, Initial, Observer, Phase, Recorder, in_parallel, public_rng, start};
use super::{Algorithm, hmc, nuts, rwmh};
use crate::privacy::{NotPrivate, Vault};

/// Settings of the samplers without privacy.
#[derive(Debug, Clone)]
pub struct NonPrivateSettings {
    /// `nuts`, `hmc` or `rwmh`.
    pub algorithm: &'static Algorithm,
    pub chains: usize,
    pub num_warmup: u64,
    pub num_samples: u64,
    /// Most steps of a trajectory of `hmc`.
    pub leapfrog_steps: usize,
    /// Most doublings of a trajectory of `nuts`.
    pub max_depth: u32,
    /// The first step size; adapted during warm-up. `None`: found by doubling.
    pub step_size: Option<f64>,
    /// Mean acceptance aimed at by warm-up; `None`: 0.8, and 0.234 for `rwmh`.
    pub target_acceptance: Option<f64>,
    pub metric: MetricForm,
    /// T, the power of the likelihood.
    pub temperature: f64,
}

impl NonPrivateSettings {
    fn step(
        &self,
        state: State,
        oracle: &ExactOracle,
        h: f64,
        metric: &Metric,
        rng: &mut impl Rng,
    ) -> (State, Info) {
        match self.algorithm.name {
            "nuts" => nuts::step(state, oracle, h, self.max_depth, metric, rng),
            "rwmh" => rwmh::step(state, oracle, h, metric, rng),
            _ => hmc::step(state, oracle, h, self.leapfrog_steps, metric, rng),
        }
    }

    fn target(&self) -> f64 {
        self.target_acceptance.unwrap_or(match self.algorithm.name {
            "rwmh" => rwmh::TARGET_ACCEPTANCE,
            _ => 0.8,
        })
    }

    /// The sampler's own columns, in the order of [`Algorithm::columns`].
    fn columns(&self, info: &Info) -> Vec<f64> {
        let of = |name: &&str| match *name {
            "treedepth__" => f64::from(info.depth),
            "n_leapfrog__" => f64::from(info.leapfrogs),
            "energy__" => info.energy,
            _ => f64::NAN,
        };
        self.algorithm.columns.iter().map(of).collect()
    }
}

/// Runs a sampler without privacy. Everything it gives is NOT PRIVATE.
///
/// Errors: no initial point with a finite density.
pub fn sample_exactly(
    vault: &Vault,
    settings: &NonPrivateSettings,
    initial: &Initial,
    seed: u64,
    permission: NotPrivate,
    observer: &impl Observer,
) -> Result<Vec<Chain>, SampleError> {
    in_parallel(settings.chains, observer, |chain, stop| {
        let mut rng = public_rng(seed, chain);
        let oracle = ExactOracle {
            vault,
            permission,
            temperature: settings.temperature,
        };
        let density = vault.density();
        let mut state = first_state(initial, chain, &oracle, &mut rng)?;
        let mut warmup = Warmup::new(settings, &state, &oracle, &mut rng);
        let mut recorder = Recorder::new(chain, settings.num_warmup, observer).timed(permission);
        for iteration in 0..settings.num_warmup + settings.num_samples {
            if stop() {
                return Ok(recorder.finish(true));
            }
            let warming = iteration < settings.num_warmup;
            let h = warmup.step_size(warming, &mut rng);
            let (next, info) = settings.step(state, &oracle, h, &warmup.metric, &mut rng);
            state = next;
            if warming {
                warmup.learn(iteration as usize, &state, &info, &oracle, &mut rng);
            }
            recorder.record(
                iteration,
                info.accepted,
                Draw {
                    phase: Phase::Sampling,
                    accept_stat: info.accept_stat,
                    step_size: h,
                    divergent: info.divergent && !warming,
                    sampler: settings.columns(&info),
                    values: density.outputs(&state.theta),
                },
            );
        }
        Ok(recorder.finish(false))
    })
}

/// Step size and metric as warm-up learns them.
struct Warmup<'a> {
    settings: &'a NonPrivateSettings,
    adaptation: DualAveraging,
    windows: Windows,
    covariance: Covariance,
    metric: Metric,
}

impl<'a> Warmup<'a> {
    fn new(
        settings: &'a NonPrivateSettings,
        state: &State,
        oracle: &ExactOracle,
        rng: &mut impl Rng,
    ) -> Self {
        let metric = Metric::Unit;
        let first = settings
            .step_size
            .unwrap_or_else(|| reasonable_step(state, oracle, &metric, 1.0, rng));
        Warmup {
            settings,
            adaptation: DualAveraging::new(first, settings.target()),
            windows: Windows::new(settings.num_warmup as usize),
            covariance: Covariance::new(state.theta.len(), settings.metric == MetricForm::Dense),
            metric,
        }
    }

    fn step_size(&self, warming: bool, rng: &mut impl Rng) -> f64 {
        let step = if warming {
            self.adaptation.step()
        } else {
            self.adaptation.average_step()
        };
        match self.settings.algorithm.name {
            // A little jitter against resonance, as Stan's `stepsize_jitter`.
            "hmc" => step * rng.random_range(0.9..1.1),
            _ => step,
        }
    }

    fn learn(
        &mut self,
        iteration: usize,
        state: &State,
        info: &Info,
        oracle: &ExactOracle,
        rng: &mut impl Rng,
    ) {
        self.adaptation.update(info.accept_stat);
        if self.settings.metric == MetricForm::Unit {
            return;
        }
        if self.windows.collects(iteration) {
            self.covariance.add(&state.theta);
        }
        if self.windows.closes(iteration) {
            let dense = self.settings.metric == MetricForm::Dense;
            let fresh = Covariance::new(state.theta.len(), dense);
            let window = std::mem::replace(&mut self.covariance, fresh);
            if let Some(estimate) = window.metric() {
                self.metric = estimate;
                let now = self.adaptation.step();
                let step = reasonable_step(state, oracle, &self.metric, now, rng);
                self.adaptation = DualAveraging::new(step, self.settings.target());
            }
        }
    }
}

fn first_state(
    initial: &Initial,
    chain: usize,
    oracle: &ExactOracle,
    rng: &mut rand_chacha::ChaCha8Rng,
) -> Result<State, SampleError> {
    let tries = if matches!(initial, Initial::Random) {
        100
    } else {
        1
    };
    for _ in 0..tries {
        let state = State::new(start(initial, chain, oracle.density(), rng)?, oracle);
        if state.log_density.is_finite() {
            return Ok(state);
        }
    }
    match initial {
        Initial::Random => Err(SampleError::NoInitialPoint),
        Initial::Points(_) => Err(SampleError::BadInitialPoint),
    }
}
