//! The verdicts on a run's draws, as its end and its summary say them.

use std::path::Path;

use serde_json::Value;

use super::chains::parameters;
use super::failure::Failure;
use super::{Common, say_always};
use crate::diagnostics::{Decision, Diagnosis, Evidence, Severity, Verdict, diagnose};
use crate::output;
use crate::output::stan_csv::StanCsv;

/// Sentences about what is wrong that a run ends with; `dpm diagnose` has them all.
const SHOWN: usize = 3;

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
fn read_json(path: &Path) -> Result<Value, Failure> {
    output::read_json(path).map_err(Failure::input)
}
