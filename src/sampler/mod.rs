//! The samplers, one file each, and the list of them.
//!
//! A sampler sees an [`Oracle`] and says beforehand what it will ask. To add
//! one: one file, one line in [`ALGORITHMS`].

mod adaptation;
mod barker_correction;
mod beginning;
#[cfg(test)]
mod bias_tests;
mod checkpoint;
mod clipped;
mod dp_barker;
mod dp_hmc;
mod dp_langevin;
mod dp_penalty;
mod dp_sghmc;
mod dp_sgld;
mod dp_sgnht;
mod exact;
mod exact_number;
mod form;
mod gaussian;
mod hamiltonian;
mod hmc;
mod information;
#[cfg(test)]
mod invariance_tests;
mod jitter;
mod laplace;
mod lengths;
mod metric;
mod nuts;
mod open;
mod oracle;
mod own;
mod plan;
mod prior;
mod prior_margins;
mod request;
mod run;
mod rwmh;
mod schedule;
mod settings;
mod start;
mod stochastic;
mod warmup;
mod without_privacy;

use rand_chacha::ChaCha8Rng;
use serde_json::Value;

pub use beginning::{Beginning, Foresight, Learner};
pub use checkpoint::{Begun, Checkpoint, Keeper, Keeping, released_before};
pub use dp_langevin::{foreseen_time, gradients_wanted};
pub use exact::exact_settings;
pub use form::Form;
pub use metric::{Metric, MetricForm};
pub use nuts::DEFAULT_MAX_DEPTH;
pub use oracle::{ExactOracle, Oracle, PrivateOracle, Ratio, SampleError, View};
pub use own::{Asked, OWN};
pub use plan::{NoiseScales, Plan, PlanError};
pub use prior::draw_prior;
pub use prior_margins::{draw_independent_margins, draw_prior_margins};
pub use request::{
    DEFAULT_CHAINS, DEFAULT_CLIP, DEFAULT_SAMPLES, Iterations, PlanRequest, default_algorithm,
};
pub use run::{
    Chain, Draw, Initial, Observer, Oracles, Phase, PrivateSettings, sample_from, sample_privately,
    sample_with_checkpoints,
};
pub(crate) use run::{public_rng, start};
pub use schedule::{Line, Noise, PlannedLine, Question, Scale};
pub use settings::{Clip, Setting, Settings};
pub use without_privacy::{NonPrivateRun, sample_without_privacy};

/// A sampler, as the command line and the planner see it.
#[derive(Debug)]
pub struct Algorithm {
    /// The name after `--algorithm`.
    pub name: &'static str,
    /// One line for `--help`.
    pub summary: &'static str,
    pub kind: Kind,
    /// What it writes beside the draws, after acceptance, step size and
    /// divergence; names end in `__`, as in Stan.
    pub columns: &'static [&'static str],
    /// The settings that it uses, beside those of every run.
    pub settings: &'static [Setting],
}

impl Algorithm {
    /// Whether its draws are differentially private.
    pub fn is_private(&self) -> bool {
        matches!(self.kind, Kind::Private(_))
    }

    /// Whether a plan of it depends on what is known of the model ([`PlanRequest::form`]).
    pub fn looks_at_model(&self) -> bool {
        matches!(self.kind, Kind::Private(sampler) if sampler.looks_at_model())
    }

    /// Whether its chains travel with the budget that is left ([`foreseen_time`]).
    pub fn travels(&self) -> bool {
        self.settings.contains(&Setting::gradients_per_draw)
    }

    /// Whether a run of it learns from releases before its chains begin.
    pub fn learns(&self) -> bool {
        self.learner().is_some()
    }

    /// What learns then.
    pub fn learner(&self) -> Option<&'static dyn Learner> {
        match self.kind {
            Kind::Private(sampler) => sampler.learner(),
            Kind::Exact | Kind::Open(_) | Kind::Clipped(_) => None,
        }
    }
}

/// Where a sampler gets its answers from.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Charged, noisy releases of the vault.
    Private(&'static dyn Sampler),
    /// Exact values: NOT PRIVATE.
    Exact,
    /// Exact gradients of batches, with the noise of the dynamics: NOT PRIVATE.
    Open(&'static dyn stochastic::Dynamics),
    /// Clipped as by a private sampler, without its noise: NOT PRIVATE.
    Clipped(&'static dyn clipped::Reference),
}

/// A sampler whose every look at the data is a release.
pub trait Sampler: Sync + std::fmt::Debug {
    /// What `iterations` of each chain release, all chains together. Needs no data,
    /// and none may be looked at: the run is charged for exactly this.
    fn lines(&self, request: &PlanRequest, iterations: u64) -> Result<Vec<Line>, PlanError>;

    /// What can be told beforehand to make the run useless, in words.
    fn warnings(&self, plan: &Plan) -> Vec<String>;

    /// The step size of a run that gives none (unconstrained scale).
    fn default_step_size(&self, request: &PlanRequest) -> f64;

    /// How far a proposal goes whose answers are all noise, about (unconstrained scale);
    /// none for samplers whose steps do not depend on a noisy log-ratio.
    fn typical_distance(&self, _: &PlanRequest) -> Option<f64> {
        None
    }

    /// The mean acceptance that warm-up aims at by changing the step size, for
    /// samplers that accept and reject.
    fn target_acceptance(&self) -> Option<f64>;

    /// Whether its lines depend on what is known of the model ([`PlanRequest::form`]).
    fn looks_at_model(&self) -> bool {
        false
    }

    /// What a run of it learns before its chains begin, where it does.
    fn learner(&self) -> Option<&dyn Learner> {
        None
    }

    /// A chain at `theta` (unconstrained scale), before its first step.
    fn chain(
        &self,
        plan: &Plan,
        theta: Vec<f64>,
        oracle: &mut dyn Oracle,
        rng: &mut ChaCha8Rng,
    ) -> Box<dyn Walker>;
}

/// The state of one chain.
pub trait Walker {
    /// One iteration.
    fn step(&mut self, oracle: &mut dyn Oracle, rng: &mut ChaCha8Rng) -> Result<Step, SampleError>;

    /// Where the chain is, on the unconstrained scale.
    fn theta(&self) -> &[f64];

    /// Takes over what warm-up has learnt from released values.
    fn tune(&mut self, step_size: f64, metric: &Metric);

    /// All that the next iterations depend on beside the run's settings: released values
    /// and what follows from them. A chain that is restored from it goes on as this one,
    /// to the bit.
    fn save(&self) -> Value;

    /// Takes over what [`save`](Walker::save) wrote.
    ///
    /// # Errors
    ///
    /// It is not this sampler's.
    fn restore(&mut self, saved: &Value) -> Result<(), SampleError>;

    /// Goes past iterations whose releases were made and lost.
    fn skip(&mut self, iterations: u64) {
        let _ = iterations;
    }

    /// The line of a release that the next iteration makes beside those that every
    /// iteration makes; planned once for each chain.
    fn first_release(&self) -> Option<usize> {
        None
    }
}

/// What one iteration says of itself; all of it follows from released values.
#[derive(Debug, Clone)]
pub struct Step {
    /// min(1, e^log a).
    pub accept_stat: f64,
    pub accepted: bool,
    /// Whether a trajectory without noise left the numbers.
    pub divergent: bool,
    pub step_size: f64,
    /// The sampler's own columns ([`Algorithm::columns`]).
    pub columns: Vec<f64>,
}

impl Step {
    /// A proposal that was rejected without a test.
    fn rejected(step_size: f64) -> Step {
        Step {
            accept_stat: 0.0,
            accepted: false,
            divergent: false,
            step_size,
            columns: Vec::new(),
        }
    }

    /// A proposal that was tested with log probability `log_a`.
    fn tested(log_a: f64, accepted: bool, step_size: f64) -> Step {
        Step {
            accept_stat: log_a.exp().min(1.0),
            accepted,
            divergent: false,
            step_size,
            columns: Vec::new(),
        }
    }
}

/// Every sampler, the default first.
pub static ALGORITHMS: &[Algorithm] = &[
    laplace::ALGORITHM,
    dp_langevin::ALGORITHM,
    dp_hmc::ALGORITHM,
    dp_penalty::ALGORITHM,
    dp_barker::ALGORITHM,
    dp_sgld::ALGORITHM,
    dp_sgnht::ALGORITHM,
    dp_sghmc::ALGORITHM,
    nuts::ALGORITHM,
    hmc::ALGORITHM,
    rwmh::ALGORITHM,
    dp_sgld::OPEN,
    dp_sgnht::OPEN,
    dp_sghmc::OPEN,
    dp_sghmc::NAIVE,
    dp_hmc::CLIPPED,
    dp_penalty::CLIPPED,
];

/// The sampler of that name.
pub fn lookup(name: &str) -> Option<&'static Algorithm> {
    ALGORITHMS.iter().find(|a| a.name == name)
}
