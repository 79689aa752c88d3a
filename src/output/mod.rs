//! The files a run writes.

mod chain_csv;
mod clipping;
mod convert;
mod draws;
mod draws_csv;
mod folder;
mod generated_csv;
#[cfg(feature = "parquet")]
mod parquet;
mod prior;
mod privacy_report;
mod report;
mod run;
mod run_directory;
pub mod stan_csv;
mod table;
mod unfinished;
mod zarr;

pub(crate) use chain_csv::{chain_csv, sampled};
pub use clipping::{ClipReport, Clipping};
pub use convert::ConvertError;
pub use draws::Draws;
pub use draws_csv::{DrawsTable, read_draws_csv};
pub use folder::RunDirectoryError;
pub use generated_csv::{check_files, generated_csv, write_files};
pub(crate) use prior::{CODEBOOK, CONSTANTS, MODEL, density_of, prior_draws, prior_ranges_of};
pub use privacy_report::{PrivateRun, RECORD, RunLedger, not_private_report, private_report};
pub(crate) use report::CalibrationPage;
pub use report::{Report, ReportFile, ReportPrior};
pub use run::{Run, RunError};
pub(crate) use run::{evidence, facts, is_private, parameters, read_chains, read_json};
pub use run_directory::RunDirectory;
pub use table::table_csv;
#[cfg(feature = "parquet")]
pub use table::table_parquet;
pub use unfinished::{RunState, Unfinished, UnfinishedError, is_unfinished};
