//! The request from which a run is planned.

use crate::accounting::{Real, Relation};
use crate::privacy::{InclusionRate, Subsampling};
use crate::sampler::contract::Algorithm;
use crate::sampler::contract::form::Form;
use crate::sampler::contract::plan::PlanError;
use crate::sampler::contract::settings::{Clip, Settings};

/// The default number of chains of a private run.
pub const DEFAULT_CHAINS: u64 = 4;
/// Sampling iterations per chain; warm-up has the same number.
pub const DEFAULT_SAMPLES: u64 = 500;
pub const DEFAULT_LEAPFROG_STEPS: u64 = 5;
/// Clip bounds on gradients and on log-ratios per unit of distance: generous for
/// a regression with a handful of covariates of size one.
pub const DEFAULT_CLIP: f64 = 3.0;
/// Share of the budget for a start.
pub const DEFAULT_START_SHARE: f64 = 0.4;
/// Gradients between draws of the samplers that learn, where their number is not chosen by
/// simulation.
pub const DEFAULT_GRADIENTS_PER_DRAW: u64 = 3;
/// Share of the budget for gradients.
pub const DEFAULT_SPLIT: f64 = 0.5;

/// Share of the records in a Poisson batch.
pub const DEFAULT_BATCH_RATE: &str = "0.01";
/// Records in a batch of fixed size, or all of them.
pub const DEFAULT_BATCH_SIZE: u64 = 1000;

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
    /// Whether several rows may share a unit; only dp-laplace uses it.
    pub shared_units: bool,
    /// The form of the model, if it was looked at; only dp-laplace uses it.
    pub form: Option<Form>,
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

    /// The sampler's settings, with the defaults of those that were left open and have one.
    pub fn settled(&self) -> Settings {
        let settings = Settings {
            leapfrog_steps: Some(self.leapfrog_steps()),
            noise_split: self.noise_from_budget().then(|| self.noise_split()),
            noise_estimate: Some(self.noise_estimate()),
            start_share: Some(self.start_share()),
            gradients_per_draw: Some(self.gradients_per_draw()),
            ..self.settings.clone()
        };
        settings.of(self.algorithm)
    }

    /// L
    pub fn leapfrog_steps(&self) -> u64 {
        self.settings
            .leapfrog_steps
            .unwrap_or(DEFAULT_LEAPFROG_STEPS)
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
        self.settings.noise_split.unwrap_or(DEFAULT_SPLIT)
    }

    /// The share of the budget for what is learnt before the chains begin.
    pub fn start_share(&self) -> f64 {
        self.settings.start_share.unwrap_or(DEFAULT_START_SHARE)
    }

    /// Gradients from one draw to the next.
    pub fn gradients_per_draw(&self) -> u64 {
        (self.settings.gradients_per_draw).unwrap_or(DEFAULT_GRADIENTS_PER_DRAW)
    }

    /// B of SGHMC: the variance of batch gradients apart from the noise, per unit of time.
    pub fn noise_estimate(&self) -> f64 {
        self.settings.noise_estimate.unwrap_or(0.0)
    }

    /// Poisson batches of the rate asked for, or of [`DEFAULT_BATCH_RATE`].
    pub(crate) fn poisson_batches(&self) -> Result<Subsampling, PlanError> {
        let rate = match self.settings.batch_rate {
            Some(rate) => rate,
            None => DEFAULT_BATCH_RATE.parse().unwrap_or(Real::ONE),
        };
        Ok(Subsampling::Poisson(InclusionRate::new(rate)?))
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
