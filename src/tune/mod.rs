//! Predictions about a run before there is data, from records simulated from the model.
//!
//! Parameters come from the prior, or are a public guess; records are drawn from the model
//! at them. No code here reads private rows, so it costs no privacy.

mod foresight;
mod oracle;
mod rehearsal;
mod search;
mod simulation;
mod widths;

pub use foresight::{for_model, foresee, short_simulation, tuned_plan};
pub use search::{Effort, Free, Tuned, tune};
pub use simulation::{Prediction, Recipe, Simulation};
pub use widths::{Demand, Width, forecast_widths};

/// The reason why nothing could be tuned.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    #[error(
        "`{0}` cannot be rehearsed on simulated records; dp-hmc, dp-penalty on all records, dp-sghmc, dp-sgld and dp-sgnht can"
    )]
    NotTuned(&'static str),
    #[error("no settings were tried: give a larger number of them")]
    NothingTried,
    #[error(transparent)]
    Plan(#[from] crate::sampler::PlanError),
    #[error("the simulated records cannot be loaded: {0}")]
    Records(#[from] crate::privacy::LoadError),
    #[error(transparent)]
    Sample(#[from] crate::sampler::SampleError),
}
