//! The chains of a run's directory.

use std::path::Path;

use super::failure::Failure;
use crate::output;
use crate::output::stan_csv::StanCsv;

pub(super) use crate::output::is_private;

/// Reads `chain-1.csv`, `chain-2.csv`, ...: at least one.
pub(super) fn read_chains(run: &Path) -> Result<Vec<StanCsv>, Failure> {
    output::read_chains(run).map_err(Failure::input)
}

/// The parameters' names, bracket form, which all chains of a run share.
pub(super) fn parameters(run: &Path, chains: &[StanCsv]) -> Result<Vec<String>, Failure> {
    output::parameters(run, chains).map_err(Failure::input)
}
