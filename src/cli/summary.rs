//! `dpm summary`: what the draws of a run say.

use std::path::PathBuf;

use super::chains::{is_private, read_chains};
use super::failure::Failure;
use super::verdicts::say_beside_summary;
use super::{Common, pretty, print, say_always};
use crate::analysis::marked_csv;
use crate::diagnostics::Summary;
use crate::output::is_unfinished;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: dpm summary adult_income-run")]
pub(super) struct Arguments {
    /// The run's directory
    run: PathBuf,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Table,
    Csv,
    Json,
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let files = read_chains(&arguments.run)?;
    let private = files.iter().all(is_private);
    let names = files[0].parameters();
    let chains: Vec<_> = files.iter().map(|csv| csv.parameter_draws()).collect();
    let summary = Summary::of_draws(&names, &chains).map_err(Failure::input)?;
    if !private {
        say_always("NOT PRIVATE: these draws come from a run without privacy");
    }
    if is_unfinished(&arguments.run) {
        say_always(format!(
            "note: the run in `{0}` is not finished, and these are not all of its draws: resume it with `dpm sample --resume {0}`",
            arguments.run.display()
        ));
    }
    say_beside_summary(&arguments.run, &files, common);
    print(&match arguments.format {
        Format::Table => summary.to_table(),
        Format::Csv => marked_csv(&summary, private),
        Format::Json => pretty(&summary.to_json()),
    })
}
