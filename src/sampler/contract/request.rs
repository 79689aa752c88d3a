//! The request from which a run is planned.

use crate::accounting::{Real, Relation};
use crate::privacy::{InclusionRate, Subsampling};
use crate::sampler::contract::error::PlanError;
use crate::sampler::contract::settings::{Clip, DEFAULT_CLIP, Settings};
use crate::sampler::contract::{Algorithm, OptionalFacts};

/// The default number of chains of a private run.
pub const DEFAULT_CHAINS: u64 = 4;
/// Sampling iterations per chain; warm-up has the same number.
pub const DEFAULT_SAMPLES: u64 = 500;

/// The number of iterations of one chain, including warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Iterations {
    Fixed(u64),
    /// As many as the budget allows; needs noise that does not itself depend on the
    /// budget: given multipliers, or that of the dynamics.
    Max,
}

/// Everything that determines a plan. None of it depends on a row.
#[derive(Debug, Clone)]
pub struct PlanRequest {
    pub algorithm: &'static Algorithm,
    pub epsilon: Real,
    pub delta: Real,
    pub relation: Relation,
    pub chains: u64,
    pub iterations: Iterations,
    /// The settings of the sampler.
    pub settings: Settings,
    /// Number of unconstrained coordinates.
    pub dimension: u64,
    /// T, the power of the likelihood: n0 / n, or 1.
    pub temperature: f64,
    /// n, where it is public.
    pub records: Option<u64>,
    /// Whether several rows may share a unit.
    pub shared_units: bool,
    /// The sampler's facts about the model, if it was looked at.
    pub facts: OptionalFacts,
    /// The questions of one chain in one iteration, where the sampler is outside of this crate.
    pub allowance: Allowance,
}

impl PlanRequest {
    /// The request of a run without privacy, with no settings given.
    pub fn without_budget(algorithm: &'static Algorithm, dimension: usize) -> Self {
        PlanRequest {
            algorithm,
            ..PlanRequest::new(Real::ONE, Real::ONE, dimension)
        }
    }

    /// The sampler's settings, with the defaults of those that are not given and have one.
    pub fn settled(&self) -> Settings {
        self.settings.clone().or_defaults(self.algorithm)
    }

    /// L
    pub fn leapfrog_steps(&self) -> u64 {
        self.settled().leapfrog_steps.unwrap_or(1)
    }

    /// b_g: bound on the l2 norm of one record's gradient.
    pub fn clip_gradient(&self) -> f64 {
        bound(self.settings.clip_gradient)
    }

    /// b_l: bound on one record's log-ratio per unit of distance.
    pub fn clip_log_ratio(&self) -> f64 {
        bound(self.settings.clip_log_ratio)
    }

    /// Whether the noise is decided by the budget rather than by given multipliers.
    pub fn noise_from_budget(&self) -> bool {
        self.settings.tau_gradient.is_none() && self.settings.tau_log_ratio.is_none()
    }

    /// The share of the budget that goes to gradients, where the budget decides and a sampler
    /// asks for log-ratios as well.
    pub fn noise_split(&self) -> f64 {
        self.settled().noise_split.unwrap_or(1.0)
    }

    /// The share of the budget for what is learnt before the chains begin.
    pub fn start_share(&self) -> f64 {
        self.settled().start_share.unwrap_or(0.0)
    }

    /// Gradients from one draw to the next.
    pub fn gradients_per_draw(&self) -> u64 {
        self.settled().gradients_per_draw.unwrap_or(1)
    }

    /// Poisson batches of the rate asked for or the sampler's, or all records.
    pub(crate) fn batches(&self) -> Result<Subsampling, PlanError> {
        Ok(match self.settled().batch_rate {
            Some(rate) => Subsampling::Poisson(InclusionRate::new(rate)?),
            None => Subsampling::All,
        })
    }
}

/// The most that one chain of a sampler outside of this crate may ask.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    pub gradients: u64,
    pub log_ratios: u64,
}

impl Allowance {
    /// The line of the gradients: the first.
    pub const GRADIENTS: usize = 0;

    /// The line of the log-ratios: after the gradients, if there are any.
    pub fn line_of_log_ratios(self) -> usize {
        usize::from(self.gradients > 0)
    }
}

/// A clip bound that is already a number; plans contain only those.
fn bound(clip: Option<Clip>) -> f64 {
    match clip {
        Some(Clip::At(bound)) => bound,
        Some(Clip::Derived) | None => DEFAULT_CLIP,
    }
}
