//! The files a run writes.

mod clipping;
mod draws_csv;
mod generated_csv;
mod privacy_report;
mod report;
mod run_directory;
pub mod stan_csv;
mod unfinished;

pub use clipping::{ClipReport, Clipping};
pub use draws_csv::{DrawsTable, ReadDrawsError, ReadDrawsErrorKind, read_draws_csv};
pub use generated_csv::{WriteFilesError, check_files, generated_csv, write_files};
pub use privacy_report::{PrivateRun, RECORD, RunLedger, not_private_report, private_report};
pub use report::{Report, ReportFile, ReportPrior};
pub use run_directory::{RunDirectory, RunDirectoryError};
pub use unfinished::{Outset, Unfinished, UnfinishedError, is_unfinished};
