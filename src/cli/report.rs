//! `dpm report`: a run as one page.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::chains::{parameters, read_chains};
use super::diagnose::{evidence, read_json};
use super::failure::Failure;
use super::{Common, say_always};
use crate::diagnostics::diagnose;
pub(super) use crate::output::{CONSTANTS, MODEL};
use crate::output::{Report, ReportFile, ReportPrior, RunDirectory, prior_draws};

/// The report as `dpm sample` writes it.
pub(super) const REPORT: &str = "report.html";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
One HTML file that needs no network and holds no scripts: what was asked, what is promised,
what the draws say and whether to believe them, and a place to sign. It is made from released
draws and public settings, so that it costs no privacy.

Example: dpm report adult_income-run -o adult_income.html")]
pub(super) struct Arguments {
    /// The run's directory
    run: PathBuf,
    /// Where to write [default: RUN/report.html]
    #[arg(long = "out", short, value_name = "FILE.html")]
    out: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let name = name_of(&arguments.run);
    let report = report(&arguments.run, name)?;
    let place = match &arguments.out {
        Some(out) => out.clone(),
        None => arguments.run.join(REPORT),
    };
    std::fs::write(&place, report.to_html()).map_err(|e| {
        Failure::run(format!(
            "cannot write the report `{}`: {e}; choose another place with --out",
            place.display()
        ))
    })?;
    if report.privacy["private"] != serde_json::Value::Bool(true) {
        say_always("NOT PRIVATE: the report shows draws of a run without privacy");
    }
    common.say(format!("written to {}", place.display()));
    Ok(())
}

/// Writes the report of a run whose other files are there, and which will stand at `place`. A
/// report that cannot be made is no failure of the run.
pub(super) fn write_beside(
    run: &RunDirectory,
    place: &Path,
    common: &Common,
) -> Result<(), Failure> {
    match report(run.path(), name_of(place)) {
        Ok(report) => run.write(REPORT, &report.to_html()).map_err(Failure::run),
        Err(_) => {
            common.say(format!(
                "note: no report was made; `dpm report {}` says why",
                place.display()
            ));
            Ok(())
        }
    }
}

/// The report of the run in `directory`, which may still stand under another name.
pub(super) fn report(directory: &Path, name: String) -> Result<Report, Failure> {
    if !directory.join("privacy.json").exists() {
        return Err(Failure::input(format!(
            "`{}` holds no privacy.json: expected the directory of a run of `dpm sample`",
            directory.display()
        )));
    }
    let config = read_json(&directory.join("config.json"))?;
    let privacy = read_json(&directory.join("privacy.json"))?;
    // A run that was interrupted early has no chains.
    let files = match directory.join("chain-1.csv").exists() {
        true => read_chains(directory)?,
        false => Vec::new(),
    };
    let names = parameters(directory, &files)?;
    let diagnosis = match files.is_empty() {
        true => None,
        false => Some(diagnose(&evidence(directory, &files)?)),
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
pub(super) fn name_of(run: &Path) -> String {
    let whole = run.canonicalize().unwrap_or_else(|_| run.to_path_buf());
    whole.file_name().map_or_else(
        || "run".to_owned(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// `None` of a file that is not there.
fn read_text(path: &Path) -> Result<Option<String>, Failure> {
    if !path.exists() {
        return Ok(None);
    }
    let bytes = std::fs::read(path)
        .map_err(|e| Failure::input(format!("cannot read `{}`: {e}", path.display())))?;
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// The files of a run that are there, but for the report itself.
fn hashes(directory: &Path, chains: usize) -> Result<Vec<ReportFile>, Failure> {
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
            let bytes = std::fs::read(&path)
                .map_err(|e| Failure::input(format!("cannot read `{}`: {e}", path.display())))?;
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
