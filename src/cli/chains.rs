//! The chains of a run's directory.

use std::path::Path;

use super::failure::Failure;
use crate::output::is_unfinished;
use crate::output::stan_csv::{StanCsv, read_stan_csv};

/// Reads `chain-1.csv`, `chain-2.csv`, ...: at least one.
pub(super) fn read_chains(run: &Path) -> Result<Vec<StanCsv>, Failure> {
    let mut chains = Vec::new();
    loop {
        let path = run.join(format!("chain-{}.csv", chains.len() + 1));
        if !path.exists() {
            break;
        }
        chains.push(read_stan_csv(&path).map_err(Failure::input)?);
    }
    if chains.is_empty() && is_unfinished(run) {
        return Err(Failure::input(format!(
            "`{0}` holds a run that is not finished, and no draws yet: go on with it by `dpm sample --resume {0}`",
            run.display()
        )));
    }
    if chains.is_empty() {
        return Err(Failure::input(format!(
            "`{}` holds no chain-1.csv: expected the directory of a run of `dpm sample`",
            run.display()
        )));
    }
    Ok(chains)
}

/// The parameters' names, bracket form, which all chains of a run share.
pub(super) fn parameters(run: &Path, chains: &[StanCsv]) -> Result<Vec<String>, Failure> {
    let names = chains.first().map(StanCsv::parameters).unwrap_or_default();
    for (i, chain) in chains.iter().enumerate() {
        if chain.parameters() != names {
            return Err(Failure::input(format!(
                "chain-{}.csv of `{}` has other parameters than chain-1.csv: expected the files of one run",
                i + 1,
                run.display()
            )));
        }
    }
    Ok(names)
}

/// Whether the draws came from a private run; a file that says nothing is not
/// taken for a run without privacy.
pub(super) fn is_private(chain: &StanCsv) -> bool {
    chain.key("privacy_private") != Some("false")
}
