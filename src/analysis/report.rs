//! The report of a run, from its directory.

use std::path::Path;

use sha2::{Digest, Sha256};

use crate::diagnostics::diagnose;
use crate::output::{
    CONSTANTS, MODEL, Report, ReportFile, ReportPrior, RunError, evidence, parameters, prior_draws,
    read_chains, read_json,
};

/// The report as `dpm sample` writes it.
pub(crate) const REPORT: &str = "report.html";

/// The report of the run in `directory`, which may still stand under another name.
///
/// # Errors
///
/// It is not the directory of a run, or its files are damaged.
pub(crate) fn of_directory(directory: &Path, name: String) -> Result<Report, RunError> {
    if !directory.join("privacy.json").exists() {
        return Err(RunError::NoReport(directory.to_path_buf()));
    }
    let config = read_json(&directory.join("config.json"))?;
    let privacy = read_json(&directory.join("privacy.json"))?;
    // A run that was interrupted early has no chains.
    let files = if directory.join("chain-1.csv").exists() {
        read_chains(directory)?
    } else {
        Vec::new()
    };
    let names = parameters(directory, &files)?;
    let diagnosis = if files.is_empty() {
        None
    } else {
        Some(diagnose(&evidence(
            directory,
            names.clone(),
            &files,
            &config,
            &privacy,
        )))
    };
    let model = read_text(&directory.join(MODEL))?;
    let constants = read_text(&directory.join(CONSTANTS))?;
    let prior = match (&model, names.is_empty()) {
        (_, true) => ReportPrior::None("there are no draws to compare it with".to_owned()),
        (None, _) => ReportPrior::None("the run holds no copy of the model".to_owned()),
        // A model that does not fit the run any more is no reason to write no report.
        (Some(model), _) => match prior_draws(model, constants.as_deref(), &names) {
            Ok(draws) => ReportPrior::Drawn(draws),
            Err(why) => ReportPrior::None(why),
        },
    };
    let acceptance = files.iter().map(|file| {
        let column = file.columns.iter().position(|c| c == "accept_stat__");
        let values: Vec<f64> = column
            .map(|c| {
                file.draws
                    .iter()
                    .filter_map(|d| d.get(c).copied())
                    .collect()
            })
            .unwrap_or_default();
        values.iter().sum::<f64>() / values.len() as f64
    });
    Ok(Report {
        name,
        acceptance: acceptance.collect(),
        draws: files.iter().map(|file| file.parameter_draws()).collect(),
        files: hashes(directory, files.len())?,
        model,
        constants,
        config,
        privacy,
        names,
        diagnosis,
        prior,
    })
}

/// The last part of the path, however it was written.
pub(crate) fn name_of(run: &Path) -> String {
    let whole = run.canonicalize().unwrap_or_else(|_| run.to_path_buf());
    whole.file_name().map_or_else(
        || "run".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// `None` of a file that is not there.
fn read_text(path: &Path) -> Result<Option<String>, RunError> {
    if !path.exists() {
        return Ok(None);
    }
    let bytes = bytes_of(path)?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// The files of a run that are there, but for the report itself.
fn hashes(directory: &Path, chains: usize) -> Result<Vec<ReportFile>, RunError> {
    let mut names: Vec<String> = [
        "privacy.json",
        "config.json",
        MODEL,
        CONSTANTS,
        "summary.csv",
    ]
    .map(str::to_owned)
    .to_vec();
    names.extend((1..=chains).map(|i| format!("chain-{i}.csv")));
    names.retain(|name| directory.join(name).exists());
    names
        .into_iter()
        .map(|name| {
            let path = directory.join(&name);
            let bytes = bytes_of(&path)?;
            let digits: Vec<String> = Sha256::digest(&bytes)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            Ok(ReportFile {
                name,
                size: bytes.len() as u64,
                hash: digits.concat(),
            })
        })
        .collect()
}

fn bytes_of(path: &Path) -> Result<Vec<u8>, RunError> {
    std::fs::read(path).map_err(|source| RunError::Read {
        path: path.to_path_buf(),
        source,
    })
}
