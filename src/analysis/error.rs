//! Whatever can go wrong between a model and its draws.

use crate::accounting::{BudgetError, LedgerError, TermsError};
use crate::model::{ConstantsError, ModelFileError, SourceError};
use crate::output::{ConvertError, RunError};
use crate::privacy::LoadError;
use crate::sampler::{PlanError, SampleError};

use super::fit::SaveError;

/// An error of any part of the library, for functions that use several of them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The program is wrong, or does not fit its constants.
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    ModelFile(#[from] ModelFileError),
    #[error(transparent)]
    Constants(#[from] ConstantsError),
    /// The private data do not fit the model.
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Budget(#[from] BudgetError),
    #[error(transparent)]
    Terms(#[from] TermsError),
    /// The session refuses the analysis, or its ledger cannot be used.
    #[error(transparent)]
    Session(#[from] LedgerError),
    /// The settings are wrong, or the analysis does not fit the share of the budget that it
    /// was given.
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error(transparent)]
    Sample(#[from] SampleError),
    /// A setting of an analysis makes no sense for its model or its data.
    #[error("{0}")]
    Settings(String),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Convert(#[from] ConvertError),
    #[error(transparent)]
    Save(#[from] SaveError),
    /// Of a sampler that is not of this crate.
    #[error(transparent)]
    Own(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Whether a budget refuses, so that the same settings would do with more of it.
    pub fn is_refusal(&self) -> bool {
        match self {
            Error::Plan(error) => error.is_refusal(),
            Error::Session(error) => matches!(error, LedgerError::Refused(_)),
            _ => false,
        }
    }
}
