//! `dpm summary`: what the draws of a run say.

use std::path::PathBuf;

use super::failure::Failure;
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
    loop {
        let path = arguments.run.join(format!("chain-{}.csv", chains.len() + 1));
        if !path.exists() {
            break;
        }
        let csv = read_stan_csv(&path).map_err(Failure::input)?;
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
    match arguments.format {
        Format::Table => print!("{}", summary.to_table()),
        Format::Csv => print!("{}", summary.to_csv()),
        Format::Json => println!("{}", super::info::pretty(&summary.to_json())),
    }
    Ok(())
}
