//! The contract between a sampler and everything else: its name and settings, the questions that it
//! asks, their planning, and the oracle that answers them.

pub mod beginning;
pub mod dynamics;
pub mod error;
pub mod initial;
pub mod metric;
pub mod oracle;
pub mod plan;
pub mod request;
pub mod schedule;
pub mod settings;

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::model::Model;
use beginning::Learner;
use dynamics::Dynamics;
use error::PlanError;
use metric::Metric;
use oracle::{Oracle, SampleError};
use plan::Plan;
use request::PlanRequest;
use schedule::Line;
use settings::{OwnSetting, Setting};

/// A sampler, as the command line and the planner see it.
#[derive(Debug)]
pub struct Algorithm {
    /// The name after `--algorithm`.
    pub name: &'static str,
    /// One line for `--help`.
    pub summary: &'static str,
    pub kind: Kind,
    /// The columns that it writes in addition to the draws, after acceptance, step size and
    /// divergence; names end in `__`, as in Stan.
    pub columns: &'static [&'static str],
    /// The settings that it uses, in addition to those of every run, with their defaults.
    pub settings: &'static [OwnSetting],
}

impl Algorithm {
    /// Whether its draws are differentially private.
    pub fn is_private(&self) -> bool {
        matches!(self.kind, Kind::Private(_))
    }

    /// Whether it uses a setting.
    pub fn has(&self, setting: Setting) -> bool {
        self.settings.iter().any(|own| own.setting == setting)
    }

    /// Whether its steps keep the size that is given; for others, it is only the first.
    pub(crate) fn fixes_steps(&self) -> bool {
        matches!(self.kind, Kind::Private(_) | Kind::Clipped(_))
    }

    /// The facts about a model on which its plan depends ([`Sampler::look`]).
    pub fn look(&self, model: &Model, shared_units: bool) -> Result<OptionalFacts, SampleError> {
        match self.kind {
            Kind::Private(sampler) => sampler.look(model, shared_units),
            Kind::Exact | Kind::Open(_) | Kind::Clipped(_) => Ok(None),
        }
    }

    /// Whether the remaining budget limits how far its chains go ([`Learner::travels`]).
    pub fn travels(&self) -> bool {
        self.learner().is_some_and(Learner::travels)
    }

    /// Whether it learns from releases before its chains begin.
    pub fn learns(&self) -> bool {
        self.learner().is_some()
    }

    /// The part that learns before the chains begin, if there is one.
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
    Open(&'static dyn Dynamics),
    /// Values clipped as by a private sampler, without its noise: NOT PRIVATE.
    Clipped(&'static dyn Reference),
}

/// A sampler that sees the data through releases only.
pub trait Sampler: Sync + Debug {
    /// The releases of `iterations` of each chain, all chains together. They must not
    /// depend on the data: the run is charged for exactly these.
    fn lines(&self, request: &PlanRequest, iterations: u64) -> Result<Vec<Line>, PlanError>;

    /// Foreseeable reasons why the run may be useless, in words.
    fn warnings(&self, plan: &Plan) -> Vec<String>;

    /// The default step size (unconstrained scale).
    fn default_step_size(&self, request: &PlanRequest) -> f64;

    /// The step size that was asked for, or else the default.
    fn step_size(&self, request: &PlanRequest) -> f64 {
        let asked = request.settings.step_size;
        asked.unwrap_or_else(|| self.default_step_size(request))
    }

    /// The approximate length of a proposal whose answers are all noise (unconstrained scale);
    /// `None` for samplers whose steps do not depend on a noisy log-ratio.
    fn typical_distance(&self, _: &PlanRequest) -> Option<f64> {
        None
    }

    /// The facts about a model on which its lines depend, where they depend on any
    /// ([`PlanRequest::facts`]); `shared_units`: several rows may share a unit.
    ///
    /// Errors: no point with a finite prior density.
    fn look(&self, _: &Model, _shared_units: bool) -> Result<OptionalFacts, SampleError> {
        Ok(None)
    }

    /// The part that learns before the chains begin, if there is one.
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

/// The findings of a sampler about a model before a row is read, which only that sampler understands.
pub trait ModelFacts: Any + Debug + Send + Sync {}

impl<T: Any + Debug + Send + Sync> ModelFacts for T {}

/// The findings, where the sampler looks at the model.
pub type OptionalFacts = Option<Arc<dyn ModelFacts>>;

/// A private sampler that can also run without noise.
pub trait Reference: Sampler {
    /// A chain at `theta` (unconstrained scale), before its first step.
    fn walker(
        &self,
        request: &PlanRequest,
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

    /// Everything on which the next iterations depend, apart from the run's settings: released
    /// values and what follows from them. A chain that is restored from it continues exactly as
    /// this one would, to the bit.
    fn save(&self) -> Value;

    /// Takes over what [`save`](Walker::save) wrote.
    ///
    /// # Errors
    ///
    /// `saved` is not of this sampler.
    fn restore(&mut self, saved: &Value) -> Result<(), SampleError>;

    /// Skips iterations whose releases were made and then lost.
    fn skip(&mut self, iterations: u64) {
        let _ = iterations;
    }

    /// The line of a release that the next iteration makes in addition to those of every
    /// iteration; planned once for each chain.
    fn first_release(&self) -> Option<usize> {
        None
    }
}

/// Statistics of one iteration. They depend on the data only through released values.
#[derive(Debug, Clone)]
pub struct Step {
    /// min(1, e^log a).
    pub accept_stat: f64,
    pub accepted: bool,
    /// Whether a trajectory without noise became infinite or not a number.
    pub divergent: bool,
    pub step_size: f64,
    /// The sampler's own columns ([`Algorithm::columns`]).
    pub columns: Vec<f64>,
}

impl Step {
    /// A proposal that was rejected without a test.
    pub fn rejected(step_size: f64) -> Step {
        Step {
            accept_stat: 0.0,
            accepted: false,
            divergent: false,
            step_size,
            columns: Vec::new(),
        }
    }

    /// A proposal that was tested with log probability `log_a`.
    pub fn tested(log_a: f64, accepted: bool, step_size: f64) -> Step {
        Step {
            accept_stat: log_a.exp().min(1.0),
            accepted,
            divergent: false,
            step_size,
            columns: Vec::new(),
        }
    }
}
