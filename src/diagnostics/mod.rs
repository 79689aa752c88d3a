//! Convergence diagnostics, summaries and comparisons of draws.
//!
//! Everything here is a function of draws that have already been released (or
//! that are marked not private): nothing in this module reads rows, so nothing in it costs privacy.
//!
//! Draws of one scalar quantity are given as chains × draws: a slice of chains of
//! equal length, `&[Vec<f64>]` or `&[&[f64]]`. The definitions are those of
//! Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021), *Rank-normalization,
//! folding, and localization: An improved R-hat for assessing convergence of
//! MCMC*, Bayesian Analysis 16(2), as the R package posterior and arviz compute
//! them; `tests/fixtures/diagnostics` holds arviz's values.
//!
//! No function panics. Where a diagnostic is undefined it is NaN: fewer than four
//! draws in a chain, chains of unequal length, a draw that is NaN or infinite
//! (posterior's rule), a constant parameter (R-hat; its ESS is the number of
//! draws, as in arviz), or a single chain (R-hat, as in arviz).

mod autocovariance;
mod calibration;
mod chains;
mod comparison;
mod ecdf;
mod ess;
mod mcse;
mod mmd;
mod moments;
mod parameter_name;
mod pool;
mod r_hat;
mod rank;
mod summary;
mod verdict;

#[cfg(test)]
mod arviz_fixtures;

pub(crate) use calibration::{Calibration, Coverage, ParameterCalibration, RANKED, Recovered};
pub use comparison::{Comparison, ComparisonError, ParameterComparison, compare};
pub(crate) use ecdf::EcdfBand;
pub use ess::{ess_bulk, ess_mean, ess_quantile, ess_tail};
pub use mcse::{mcse_mean, mcse_sd};
pub use mmd::{median_distance, mmd, mmd_with_width};
pub use moments::{mad, mean, quantile, sd};
pub use parameter_name::{bracket_name, dot_name, element_names};
pub use pool::{PoolError, PoolRule, Pooled, pool};
pub use r_hat::r_hat;
pub(crate) use rank::average_ranks;
pub use summary::{ParameterSummary, Summary, SummaryError};
pub use verdict::{
    Certificate, ChainRecord, Conflict, Decision, Diagnosis, Evidence, Grade, Kind,
    LikelihoodFacts, PriorRange, Pull, RunFacts, SearchFacts, Severity, Verdict, diagnose,
};
