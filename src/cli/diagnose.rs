//! `dpm diagnose`: how a run went, in words.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::chains::{is_private, parameters, read_chains};
use super::failure::Failure;
use super::{Common, pretty, print, say_always};
use crate::diagnostics::{Decision, Diagnosis, Evidence, Severity, Verdict, diagnose};
use crate::output;
use crate::output::stan_csv::StanCsv;

/// Sentences about what is wrong that a run ends with; `dpm diagnose` has them all.
const SHOWN: usize = 3;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Says whether the draws can be used, with care, or not at all: whether the posterior was found,
whether the chains have converged, whether the draws are mostly noise; and what would help. It reads
released draws and public settings only, so it costs no privacy. The exit code is 0 whatever it
finds. docs/diagnostics.md explains each verdict and its threshold.

Example: dpm diagnose adult_income-run")]
pub(super) struct Arguments {
    /// The run's directory
    run: PathBuf,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let files = read_chains(&arguments.run)?;
    let private = files.iter().all(is_private);
    if !arguments.run.join("config.json").exists() {
        common.say(
            "note: there is no config.json next to the chains, so nothing is known about the noise",
        );
    }
    let diagnosis = diagnose(&evidence(&arguments.run, &files)?);
    if !private {
        say_always("NOT PRIVATE: these draws come from a run without privacy");
    }
    print(&match arguments.format {
        Format::Text => diagnosis.to_text(),
        Format::Json => pretty(&json!({
            "private": private,
            "decision": diagnosis.decision,
            "convergence": diagnosis.convergence,
            "verdicts": diagnosis.verdicts,
        })),
    })
}

/// The worst verdicts, at the end of a run whose files are written. What the draws are not to be
/// used for is said to those as well who want to hear nothing: a job that runs by itself must not
/// lose it.
pub(super) fn say_verdicts(run: &Path, diagnosis: &Diagnosis, common: &Common) {
    let in_short = format!("verdict: {}", diagnosis.in_short());
    if common.quiet {
        if diagnosis.decision == Decision::DoNotUse {
            say_always(in_short);
        }
        return;
    }
    common.say(in_short);
    let (_, rest) = diagnosis.headline_and_rest();
    let severe = |v: &&&Verdict| v.severity <= Severity::Warning;
    let shown: Vec<_> = rest.iter().filter(severe).take(SHOWN).collect();
    for verdict in &shown {
        common.say(format!(
            "verdict: {}: {}",
            verdict.severity.name(),
            verdict.sentence
        ));
    }
    let has_advice = diagnosis.verdicts.iter().any(|v| v.advice.is_some());
    if has_advice || rest.len() > shown.len() {
        common.say(format!(
            "verdict: for details, and what would help: dpm diagnose {}",
            run.display()
        ));
    }
}

/// The warnings that belong to a summary: problems in any case, cautions unless `--quiet` is given.
pub(super) fn say_beside_summary(run: &Path, files: &[StanCsv], common: &Common) {
    let Ok(evidence) = evidence(run, files) else {
        return;
    };
    let diagnosis = diagnose(&evidence);
    let said = |severity: Severity| match (severity, common.quiet) {
        (Severity::Problem, _) => true,
        (severity, quiet) => severity == Severity::Warning && !quiet,
    };
    let verdicts: Vec<&Verdict> = (diagnosis.verdicts.iter())
        .filter(|v| said(v.severity))
        .collect();
    if !verdicts.is_empty() {
        say_always(format!("verdict: {}", diagnosis.decision.sentence()));
    }
    for verdict in verdicts {
        say_always(format!("{}: {}", verdict.severity.name(), verdict.sentence));
    }
}

pub(super) fn evidence(run: &Path, files: &[StanCsv]) -> Result<Evidence, Failure> {
    let names = parameters(run, files)?;
    let config = read_json(&run.join("config.json"))?;
    let report = read_json(&run.join("privacy.json"))?;
    Ok(output::evidence(run, names, files, &config, &report))
}

/// A file that is not there is null.
pub(super) fn read_json(path: &Path) -> Result<Value, Failure> {
    output::read_json(path).map_err(Failure::input)
}
