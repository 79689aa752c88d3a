//! Chains of the samplers without privacy, with Stan's warm-up.

use rand::{Rng, RngExt};

use crate::privacy::{NotPrivate, Vault};
use crate::sampler::chain::adaptation::{Covariance, DualAveraging, Windows};
use crate::sampler::chain::draw::{Draw, Phase};
use crate::sampler::chain::run::{Chain, Observer, Recorder, in_parallel};
use crate::sampler::contract::Algorithm;
use crate::sampler::contract::initial::Initial;
use crate::sampler::contract::initial::start;
use crate::sampler::contract::metric::{Metric, MetricForm};
use crate::sampler::contract::oracle::SampleError;
use crate::sampler::contract::request::PlanRequest;
use crate::sampler::contract::settings::Settings;
use crate::sampler::hamiltonian::{Info, State, reasonable_step};
use crate::sampler::hamiltonian::{hmc, nuts};
use crate::sampler::random::public_rng;
use crate::sampler::reference::NonPrivateRun;
use crate::sampler::reference::exact_oracle::ExactOracle;
use crate::sampler::walks::rwmh;

/// The settings of the steps of a run's chains.
struct Steps {
    /// `nuts`, `hmc` or `rwmh`.
    algorithm: &'static Algorithm,
    /// The largest number of steps in a trajectory of `hmc`.
    leapfrog_steps: usize,
    /// The largest number of doublings of a trajectory of `nuts`.
    max_depth: u32,
    metric: MetricForm,
    /// The mean acceptance that warm-up aims at.
    target: f64,
}

/// The settings of a run, with the defaults of the exact samplers for those that are not given.
pub fn exact_settings(request: &PlanRequest) -> Settings {
    let settled = request.settled();
    Settings {
        metric: settled.metric.or(Some(default_metric(request.dimension))),
        ..settled
    }
}

/// The dimension up to which the dense metric is the default, as `Unset::DENSE` says.
const DENSE_METRIC_UP_TO: u64 = 50;

/// The form of the metric of samplers whose trajectories do not adapt their length.
fn default_metric(dimension: u64) -> MetricForm {
    if dimension > DENSE_METRIC_UP_TO {
        MetricForm::Diagonal
    } else {
        MetricForm::Dense
    }
}

impl Steps {
    fn new(request: &PlanRequest) -> Steps {
        let settings = exact_settings(request);
        Steps {
            algorithm: request.algorithm,
            leapfrog_steps: settings.leapfrog_steps.unwrap_or(1) as usize,
            max_depth: settings.max_depth.unwrap_or(0) as u32,
            metric: settings.metric.unwrap_or(MetricForm::Unit),
            target: settings.target_acceptance.unwrap_or(f64::NAN),
        }
    }

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

    /// The sampler's own columns, in the order of [`Algorithm::columns`].
    fn columns(&self, info: &Info) -> Vec<f64> {
        let column = |name: &&str| match *name {
            "treedepth__" => f64::from(info.depth),
            "n_leapfrog__" => f64::from(info.leapfrogs),
            "energy__" => info.energy,
            _ => f64::NAN,
        };
        self.algorithm.columns.iter().map(column).collect()
    }
}

/// Runs `nuts`, `hmc` or `rwmh`.
pub(crate) fn sample(
    vault: &Vault,
    run: &NonPrivateRun,
    permission: NotPrivate,
    observer: &impl Observer,
) -> Result<Vec<Chain>, SampleError> {
    let request = &run.request;
    request.settings.check_values().map_err(Box::new)?;
    let steps = Steps::new(request);
    in_parallel(request.chains as usize, observer, |chain, stop| {
        let mut rng = public_rng(run.seed, chain);
        let oracle = ExactOracle {
            vault,
            permission,
            temperature: request.temperature,
        };
        let density = vault.density();
        let mut state = first_state(&run.initial, chain, &oracle, &mut rng)?;
        let mut warmup = Warmup::new(&steps, run, &state, &oracle, &mut rng);
        let mut recorder = Recorder::new(chain, run.num_warmup, observer).timed(permission);
        for iteration in 0..run.iterations() {
            if stop() {
                return Ok(recorder.finish(true));
            }
            let warming = iteration < run.num_warmup;
            let h = warmup.step_size(warming, &mut rng);
            let (next, info) = steps.step(state, &oracle, h, &warmup.metric, &mut rng);
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
                    sampler: steps.columns(&info),
                    values: density.outputs(&state.theta),
                },
            );
        }
        Ok(recorder.finish(false))
    })
}

/// Step size and metric as warm-up learns them.
struct Warmup<'a> {
    steps: &'a Steps,
    adaptation: DualAveraging,
    windows: Windows,
    covariance: Covariance,
    metric: Metric,
}

impl<'a> Warmup<'a> {
    fn new(
        steps: &'a Steps,
        run: &NonPrivateRun,
        state: &State,
        oracle: &ExactOracle,
        rng: &mut impl Rng,
    ) -> Self {
        let metric = Metric::Unit;
        let first = (run.request.settings.step_size)
            .unwrap_or_else(|| reasonable_step(state, oracle, &metric, 1.0, rng));
        Warmup {
            steps,
            adaptation: DualAveraging::new(first, steps.target),
            windows: Windows::new(run.num_warmup as usize),
            covariance: Covariance::new(state.theta.len(), steps.metric == MetricForm::Dense),
            metric,
        }
    }

    fn step_size(&self, warming: bool, rng: &mut impl Rng) -> f64 {
        let step = if warming {
            self.adaptation.step()
        } else {
            self.adaptation.average_step()
        };
        match self.steps.algorithm.name {
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
        if self.steps.metric == MetricForm::Unit {
            return;
        }
        if self.windows.collects(iteration) {
            self.covariance.add(&state.theta);
        }
        if self.windows.closes(iteration) {
            let dense = self.steps.metric == MetricForm::Dense;
            let fresh = Covariance::new(state.theta.len(), dense);
            let window = std::mem::replace(&mut self.covariance, fresh);
            if let Some(estimate) = window.metric() {
                self.metric = estimate;
                let now = self.adaptation.step();
                let step = reasonable_step(state, oracle, &self.metric, now, rng);
                self.adaptation = DualAveraging::new(step, self.steps.target);
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
