//! `dpm diagnose`: how a run went, in words.

use std::path::PathBuf;

use serde_json::json;

use super::chains::{is_private, read_chains};
use super::failure::Failure;
use super::format::Format;
use super::verdicts::evidence;
use super::words::in_flags;
use super::{Common, pretty, print, say_always};
use crate::diagnostics::diagnose;

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

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let files = read_chains(&arguments.run)?;
    let private = files.iter().all(is_private);
    if !arguments.run.join("config.json").exists() {
        common.say(
            "note: there is no config.json next to the chains, so nothing is known about the noise",
        );
    }
    let mut diagnosis = diagnose(&evidence(&arguments.run, &files)?);
    if !private {
        say_always("NOT PRIVATE: these draws come from a run without privacy");
    }
    print(&match arguments.format {
        Format::Text => {
            for verdict in &mut diagnosis.verdicts {
                verdict.advice = verdict.advice.as_deref().map(in_flags);
            }
            diagnosis.to_text()
        }
        Format::Json => pretty(&json!({
            "private": private,
            "decision": diagnosis.decision,
            "convergence": diagnosis.convergence,
            "verdicts": diagnosis.verdicts,
        })),
    })
}
