//! Why a run cannot be planned.

use crate::accounting::{AccountError, BudgetError, CalibrateError, EventError};
use crate::privacy::{BarkerError, BatchPenaltyError, PenaltyError, RateError, ScaleError};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    #[error(
        "this run needs epsilon {requested:.6} at delta {delta:e}, but the budget is {budget}: short by {short:.6}. Spent so far: 0, remaining: {budget}. Use {advice}fewer iterations or chains, or as many iterations as the budget allows (`iterations` max)"
    )]
    Budget {
        requested: f64,
        budget: f64,
        delta: f64,
        short: f64,
        /// Further settings that could be changed.
        advice: &'static str,
    },
    #[error("not one iteration fits this budget: use larger noise multipliers or fewer chains")]
    NoIteration,
    #[error(
        "epsilon {epsilon} is more than can be accounted for at delta {delta:e}: noise on a lattice differs from a Gaussian by total variation {total_variation:.1e}, which adds (1 + e^epsilon) times that to delta. Give an epsilon of at most about {most} (or larger noise multipliers)"
    )]
    Lattice {
        epsilon: f64,
        delta: f64,
        total_variation: f64,
        most: f64,
    },
    #[error("{0}")]
    Settings(String),
    #[error(transparent)]
    Scale(#[from] ScaleError),
    #[error(transparent)]
    Penalty(#[from] PenaltyError),
    #[error(transparent)]
    BatchPenalty(#[from] BatchPenaltyError),
    #[error(transparent)]
    Barker(#[from] BarkerError),
    #[error(transparent)]
    Rate(#[from] RateError),
    #[error(transparent)]
    Event(#[from] EventError),
    #[error(transparent)]
    Account(#[from] AccountError),
    #[error(transparent)]
    Calibrate(#[from] CalibrateError),
    #[error(transparent)]
    InvalidBudget(#[from] BudgetError),
}

impl PlanError {
    /// Whether the budget refuses the run, rather than the settings being wrong.
    pub fn is_refusal(&self) -> bool {
        matches!(self, PlanError::Budget { .. } | PlanError::NoIteration)
    }
}
