//! `dpm summary`: what the draws of a run say.

use std::path::PathBuf;

use super::failure::Failure;
use super::{pretty, print, say_always};
use crate::diagnostics::Summary;
use crate::output::stan_csv::read_stan_csv;

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

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let mut chains = Vec::new();
    let mut names = Vec::new();
    let mut private = true;
    loop {
        let path = arguments
            .run
            .join(format!("chain-{}.csv", chains.len() + 1));
        if !path.exists() {
            break;
        }
        let csv = read_stan_csv(&path).map_err(Failure::input)?;
        private &= csv.key("privacy_private") != Some("false");
        names = csv.parameters();
        chains.push(csv.parameter_draws());
    }
    if chains.is_empty() {
        return Err(Failure::input(format!(
            "`{}` holds no chain-1.csv: expected the directory of a run of `dpm sample`",
            arguments.run.display()
        )));
    }
    let summary = Summary::of_draws(&names, &chains).map_err(Failure::input)?;
    if !private {
        say_always("NOT PRIVATE: these draws come from a run without privacy");
    }
    print(&match arguments.format {
        Format::Table => summary.to_table(),
        Format::Csv => marked_csv(&summary, private),
        Format::Json => pretty(&summary.to_json()),
    })
}

/// The summary as CSV; one of a run without privacy says so in every row.
pub(super) fn marked_csv(summary: &Summary, private: bool) -> String {
    let csv = summary.to_csv();
    if private {
        return csv;
    }
    let mut marked = String::new();
    for (i, line) in csv.lines().enumerate() {
        marked.push_str(line);
        marked.push_str(if i == 0 {
            ",privacy\n"
        } else {
            ",NOT_PRIVATE\n"
        });
    }
    marked
}
