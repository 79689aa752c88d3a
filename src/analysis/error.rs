//! Whatever can go wrong between a model and its draws.

use std::path::PathBuf;

use crate::accounting::{BudgetError, LedgerError, TermsError};
use crate::model::{ConstantsError, ModelFileError, SourceError};
use crate::output::stan_csv::WriteStanCsvError;
use crate::output::{ConvertError, RunDirectoryError, RunError, UnfinishedError};
use crate::privacy::LoadError;
use crate::sampler::{PlanError, SampleError};

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
    /// Where a chain is to begin is no point of the model.
    #[error("{0}")]
    InitialPoint(String),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Convert(#[from] ConvertError),
    #[error(transparent)]
    Save(#[from] SaveError),
    /// A run that is to be resumed.
    #[error(transparent)]
    Unfinished(#[from] UnfinishedError),
    /// The run ended early. What it released stays charged, and it can be
    /// [resumed](crate::Analysis::resume) at its place.
    #[error(
        "{error}. What was released before is kept and stays charged; the run in `{}` can be resumed",
        place.display()
    )]
    Cut { error: Box<Error>, place: PathBuf },
    /// The operating system gives no random numbers.
    #[error("no randomness: {0}")]
    Randomness(std::io::Error),
    /// Of a sampler that is not of this crate.
    #[error(transparent)]
    Own(Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// A directory that cannot be written.
    pub(crate) fn write(error: RunDirectoryError) -> Error {
        SaveError::Directory(error).into()
    }

    /// Whether a budget refuses, so that the same settings would do with more of it.
    pub fn is_refusal(&self) -> bool {
        match self {
            Error::Plan(error) => error.is_refusal(),
            Error::Session(error) => matches!(error, LedgerError::Refused(_)),
            _ => false,
        }
    }
}

/// A run that could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    #[error(transparent)]
    Directory(#[from] RunDirectoryError),
    #[error(transparent)]
    Chain(#[from] WriteStanCsvError),
    #[error("there are no draws to write: no chain kept any")]
    NoDraws,
}
