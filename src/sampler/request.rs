//! The settings of a run that is made of releases.

use super::form::Form;
use super::own::Asked;
use super::plan::PlanError;
use super::{Algorithm, dp_hmc, laplace};
use crate::accounting::{Real, Relation};
use crate::privacy::{InclusionRate, Subsampling};

/// Chains of a private run that does not say how many.
pub const DEFAULT_CHAINS: u64 = 4;
/// Sampling iterations per chain; as many again are warm-up.
pub const DEFAULT_SAMPLES: u64 = 500;
pub const DEFAULT_LEAPFROG_STEPS: u64 = 5;
/// Clip bounds on gradients and on log-ratios per unit of distance: generous for
/// a regression with a handful of covariates of size one.
pub const DEFAULT_CLIP: f64 = 3.0;
/// Share of the budget for a start.
pub const DEFAULT_START_SHARE: f64 = 0.4;
/// Gradients between draws of the samplers that learn, where records are not simulated to
/// choose.
pub const DEFAULT_GRADIENTS_PER_DRAW: u64 = 3;
/// Half of the budget for gradients.
pub const DEFAULT_SPLIT: f64 = 0.5;

/// Share of the records in a Poisson batch.
pub const DEFAULT_BATCH_RATE: &str = "0.01";
/// Records in a batch of fixed size, or all of them.
pub const DEFAULT_BATCH_SIZE: u64 = 1000;

/// How much noise there is to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoiseChoice {
    /// As much as the budget needs for the given number of iterations;
    /// `split` is the share of the budget that goes to gradients, where a sampler
    /// asks for log-ratios as well.
    FromBudget { split: f64 },
    /// These noise multipliers, in units of the sensitivity (the paper's tau); a
    /// sampler needs those of what it asks for.
    Multipliers {
        gradient: Option<f64>,
        log_ratio: Option<f64>,
    },
}

/// How many iterations one chain runs, warm-up included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Iterations {
    Fixed(u64),
    /// As many as the budget allows; needs noise that does not itself depend on the
    /// budget, such as [`NoiseChoice::Multipliers`].
    Max,
}

/// The settings that a plan follows from. None of them depends on a row. A sampler
/// looks at those that [`Algorithm::settings`] lists.
#[derive(Debug, Clone)]
pub struct PlanRequest {
    pub algorithm: &'static Algorithm,
    pub epsilon: Real,
    pub delta: Real,
    pub relation: Relation,
    pub chains: u64,
    pub iterations: Iterations,
    pub noise: NoiseChoice,
    /// Number of unconstrained coordinates.
    pub dimension: u64,
    /// T, the power of the likelihood: n0 / n, or 1.
    pub temperature: f64,
    /// b_g: bound on the l2 norm of one record's gradient.
    pub clip_gradient: f64,
    /// b_l: bound on one record's log-ratio per unit of distance.
    pub clip_log_ratio: f64,
    /// Largest leapfrog step eta, or standard deviation of a proposal; unconstrained
    /// scale. `None`: the sampler's own, adapted where it adapts.
    pub step_size: Option<f64>,
    /// L
    pub leapfrog_steps: u64,
    /// Draw the first gradient of every trajectory anew.
    pub fresh_gradients: bool,
    /// Leapfrog steps of one size, without jitter.
    pub fixed_steps: bool,
    /// Propose a change of one coordinate at a time.
    pub one_component: bool,
    /// Propose one coordinate, in the direction that was accepted last.
    pub guided_walk: bool,
    /// n, where it is public.
    pub records: Option<u64>,
    /// r: the probability of a record to be in a batch. `None`: the sampler's own.
    pub batch_rate: Option<Real>,
    /// b: records in a batch of fixed size. `None`: the sampler's own.
    pub batch_size: Option<u64>,
    /// The power of 1/t by which steps get smaller; 0 for constant steps. `None`: the
    /// sampler's own.
    pub step_decay: Option<f64>,
    /// Friction of the samplers with momentum that need one, per unit of time. `None`:
    /// the sampler's own.
    pub friction: Option<f64>,
    /// The share of the budget that goes to what is learnt before the chains begin, for
    /// samplers that learn.
    pub start_share: f64,
    /// Gradients from one draw to the next, for samplers that learn.
    pub gradients_per_draw: u64,
    /// B of SGHMC: the variance of batch gradients beside the noise, per unit of time.
    pub noise_estimate: f64,
    /// Whether several rows may share a unit; only dp-laplace asks.
    pub shared_units: bool,
    /// What is known of the model, where it was looked at; only dp-laplace asks for it.
    pub form: Option<Form>,
    /// What one chain asks in one iteration, where the sampler is not of this crate.
    pub asked: Asked,
}

impl PlanRequest {
    /// The defaults of `dpm sample --algorithm dp-hmc` for a model with `dimension`
    /// unconstrained coordinates.
    pub fn new(epsilon: Real, delta: Real, dimension: usize) -> Self {
        PlanRequest {
            algorithm: &dp_hmc::ALGORITHM,
            epsilon,
            delta,
            relation: Relation::Substitute,
            chains: DEFAULT_CHAINS,
            iterations: Iterations::Fixed(2 * DEFAULT_SAMPLES),
            noise: NoiseChoice::FromBudget {
                split: DEFAULT_SPLIT,
            },
            dimension: dimension as u64,
            temperature: 1.0,
            clip_gradient: DEFAULT_CLIP,
            clip_log_ratio: DEFAULT_CLIP,
            step_size: None,
            leapfrog_steps: DEFAULT_LEAPFROG_STEPS,
            fresh_gradients: false,
            fixed_steps: false,
            one_component: false,
            guided_walk: false,
            records: None,
            batch_rate: None,
            batch_size: None,
            step_decay: None,
            friction: None,
            start_share: DEFAULT_START_SHARE,
            gradients_per_draw: DEFAULT_GRADIENTS_PER_DRAW,
            noise_estimate: 0.0,
            shared_units: false,
            form: None,
            asked: Asked::default(),
        }
    }

    /// What `dpm sample` does with epsilon and delta alone: the sampler that tunes itself.
    pub fn automatic(epsilon: Real, delta: Real, dimension: usize) -> Self {
        PlanRequest {
            algorithm: &laplace::ALGORITHM,
            iterations: Iterations::Fixed(DEFAULT_SAMPLES + DEFAULT_SAMPLES / 2),
            ..PlanRequest::new(epsilon, delta, dimension)
        }
    }

    /// Poisson batches of the rate asked for, or of [`DEFAULT_BATCH_RATE`].
    pub(super) fn poisson_batches(&self) -> Result<Subsampling, PlanError> {
        let rate = match self.batch_rate {
            Some(rate) => rate,
            None => DEFAULT_BATCH_RATE.parse().unwrap_or(Real::ONE),
        };
        Ok(Subsampling::Poisson(InclusionRate::new(rate)?))
    }
}
