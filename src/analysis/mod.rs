//! Whole analyses for programs: what `dpm sample` does for a person, in a few calls.
//!
//! Everything that reads records here is charged to a
//! [`Session`](crate::accounting::Session) first, in whole, and gives back released values
//! only.

mod clip;
mod error;
mod files;
mod fit;
mod foreseen;
mod generated;
mod initial;
mod job;
mod lengths;
mod marginals;
mod once;
mod own;
mod predictive;
mod prepare;
mod report;
mod request;
mod run;
mod sampling;
mod saved;
mod sbc;
mod score;
mod synthetic;
mod tables;
mod without_privacy;

pub use error::{Error, SaveError};
pub(crate) use files::{RunFiles, Written, marked_csv, pretty};
pub use fit::Fit;
pub(crate) use foreseen::Foreseen;
pub use generated::GeneratedQuantities;
pub(crate) use initial::unconstrained_point;
pub(crate) use job::{Charge, Job};
pub(crate) use lengths::{AskedIterations, AskedLengths};
pub(crate) use marginals::Marginals;
pub use own::{Oracle, Questions};
pub(crate) use predictive::{QUANTILES, in_words, predicted};
pub(crate) use prepare::{Prepared, Promise};
pub(crate) use report::{REPORT, name_of, of_directory as report_of};
pub use request::{Analysis, Progress};
pub(crate) use run::{EndedRun, Watch, run};
pub(crate) use saved::{Caller, SavedRun};
pub(crate) use sbc::{Calibrated, Sbc};
pub(crate) use score::{
    Check, Estimate, HeldOut, Predictor, ScorePlan, Scores, bounds_of, with_statistics,
};
pub(crate) use synthetic::{About, OfCovariates, Synthesis};
pub use tables::{Table, Tables};
pub(crate) use without_privacy::OpenJob;

#[cfg(test)]
mod tests;
