//! `dpm diagnose`: how a run went, in words.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::chains::{is_private, parameters, read_chains};
use super::failure::Failure;
use super::{Common, pretty, print, say_always};
use crate::diagnostics::{
    ChainRecord, Diagnosis, Evidence, Kind as Rule, RunFacts, Severity, diagnose,
};
use crate::output::stan_csv::StanCsv;
use crate::sampler::{self, Kind};

/// Sentences about what is wrong that a run ends with; `dpm diagnose` has them all.
const SHOWN: usize = 3;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Says whether the chains have converged, whether noise is what the draws are made of, and what
would help, from released draws and public settings: it costs no privacy, and the exit code is 0
whatever it finds. docs/diagnostics.md explains each verdict and its threshold.

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
            "note: there is no config.json beside the chains, so nothing can be said of the noise",
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
            "convergence": diagnosis.convergence,
            "verdicts": diagnosis.verdicts,
        })),
    })
}

/// The worst verdicts, at the end of a run whose files are written. What cannot be read back
/// is no failure of the run.
pub(super) fn say_verdicts(run: &Path, common: &Common) {
    let diagnosis = match read_chains(run).and_then(|files| evidence(run, &files)) {
        Ok(evidence) => diagnose(&evidence),
        Err(_) => return,
    };
    common.say(format!("verdict: {}", diagnosis.headline()));
    let speaks = |v: &&crate::diagnostics::Verdict| v.kind != Rule::Convergence;
    let severe = |v: &&crate::diagnostics::Verdict| v.severity <= Severity::Warning;
    let rest: Vec<_> = diagnosis.verdicts.iter().filter(speaks).collect();
    let shown: Vec<_> = rest.iter().copied().filter(severe).take(SHOWN).collect();
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
            "verdict: more of this, and what would help: dpm diagnose {}",
            run.display()
        ));
    }
}

/// What makes a summary useless, said beside it.
pub(super) fn say_problems(run: &Path, files: &[StanCsv], common: &Common) {
    let Ok(evidence) = evidence(run, files) else {
        return;
    };
    let Diagnosis { verdicts, .. } = diagnose(&evidence);
    for verdict in verdicts.iter().filter(|v| v.severity == Severity::Problem) {
        common.say(format!("problem: {}", verdict.sentence));
    }
}

pub(super) fn evidence(run: &Path, files: &[StanCsv]) -> Result<Evidence, Failure> {
    let names = parameters(run, files)?;
    let config = read_json(&run.join("config.json"))?;
    let report = read_json(&run.join("privacy.json"))?;
    let algorithm = config["algorithm"]
        .as_str()
        .or_else(|| files.first()?.key("dpm_algorithm"));
    Ok(Evidence {
        names,
        chains: files.iter().map(record).collect(),
        facts: facts(algorithm, &config, &report),
    })
}

/// A file that is not there is null.
pub(super) fn read_json(path: &Path) -> Result<Value, Failure> {
    if !path.exists() {
        return Ok(Value::Null);
    }
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::input(format!("cannot read `{}`: {e}", path.display())))?;
    serde_json::from_str(&text).map_err(|e| {
        Failure::input(format!(
            "`{}` is not valid JSON: {e}; expected what `dpm sample` wrote there",
            path.display()
        ))
    })
}

fn record(file: &StanCsv) -> ChainRecord {
    let column = |name: &str| -> Vec<f64> {
        let Some(index) = file.columns.iter().position(|c| c == name) else {
            return Vec::new();
        };
        let value = |row: &Vec<f64>| row.get(index).copied();
        file.draws.iter().filter_map(value).collect()
    };
    ChainRecord {
        draws: file.parameter_draws(),
        accept_stat: column("accept_stat__"),
        step_size: column("stepsize__"),
        divergent: column("divergent__"),
        energy: column("energy__"),
        tree_depth: column("treedepth__"),
    }
}

fn facts(algorithm: Option<&str>, config: &Value, report: &Value) -> RunFacts {
    let kind = algorithm.and_then(sampler::lookup).map(|a| a.kind);
    let tests_proposals = match kind {
        Some(Kind::Private(sampler)) => sampler.target_acceptance().is_some(),
        Some(Kind::Open(_)) => false,
        Some(Kind::Exact | Kind::Clipped(_)) | None => true,
    };
    let clips = |what: &str| report["clipping"][what]["never_activates"] == Value::Bool(false);
    RunFacts {
        has_budget: matches!(kind, Some(Kind::Private(_))),
        tests_proposals,
        adapts_step: tests_proposals && config["step_size"].is_null(),
        unit_metric: config["metric"].as_str().is_none_or(|m| m == "unit"),
        noise: serde_json::from_value(config["noise"].clone()).unwrap_or_default(),
        leapfrog_steps: config["leapfrog_steps"].as_u64(),
        max_depth: config["max_depth"].as_u64().map(|d| d as u32),
        plan_warnings: serde_json::from_value(config["plan_warnings"].clone()).unwrap_or_default(),
        may_clip: clips("gradient") || clips("log_ratio"),
        tempered: config["temperature"].as_f64(),
    }
}
