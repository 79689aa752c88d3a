//! `dpm convert`: a run's draws in the formats of other programs.

use std::path::{Path, PathBuf};

use super::failure::Failure;
use super::{Common, say_always};
use crate::output::{ConvertError, Run};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Zarr is arviz's InferenceData layout, with the groups posterior and sample_stats: arviz 1 reads it
through xarray, and arviz 0 with az.InferenceData.from_datatree. Parquet and CSV are one table with
the columns chain and draw, which count from 0, and one column per parameter. Zarr and Parquet carry
the run's privacy statement and report. None of them contains the data, which are private.

Example: dpm convert adult_income-run --to parquet

    import xarray as xr;     xr.open_datatree(\"adult_income-run.zarr\", engine=\"zarr\")
    import polars as pl;     pl.read_parquet(\"adult_income-run.parquet\")")]
pub(super) struct Arguments {
    /// The run's directory
    run: PathBuf,
    /// The format to write
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: Format,
    /// Where to write [default: RUN.zarr, RUN.parquet or RUN.csv]
    #[arg(long, short, value_name = "PATH")]
    out: Option<PathBuf>,
    /// Replace what an earlier conversion wrote there
    #[arg(long)]
    overwrite: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A folder for arviz and xarray
    Zarr,
    /// A file for polars, pandas, DuckDB and the like
    #[cfg(feature = "parquet")]
    Parquet,
    /// One table as text
    Csv,
}

impl Format {
    fn ending(self) -> &'static str {
        match self {
            Format::Zarr => "zarr",
            #[cfg(feature = "parquet")]
            Format::Parquet => "parquet",
            Format::Csv => "csv",
        }
    }
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let run = Run::open(&arguments.run).map_err(Failure::input)?;
    let place = match &arguments.out {
        Some(place) => place.clone(),
        None => beside(&arguments.run, arguments.to),
    };
    match arguments.to {
        Format::Zarr => run.write_zarr(&place, arguments.overwrite),
        #[cfg(feature = "parquet")]
        Format::Parquet => run.write_parquet(&place, arguments.overwrite),
        Format::Csv => run.write_csv(&place, arguments.overwrite),
    }
    .map_err(|error| {
        let advice = match error {
            ConvertError::Exists(_) => {
                Some("Choose another place with -o, or give --overwrite to replace it".to_owned())
            }
            ConvertError::Write { .. } => Some("Choose another place with -o".to_owned()),
            ConvertError::NotOurs(_) => None,
        };
        Failure::run(error).and_maybe(advice)
    })?;
    if !run.is_private() {
        say_always("NOT PRIVATE: these draws come from a run without privacy");
    }
    if run.is_unfinished() {
        say_always(format!(
            "note: the run in `{}` is not finished, and these draws are not all",
            arguments.run.display()
        ));
    }
    common.say(format!("written to {}", place.display()));
    Ok(())
}

/// The run's name with another ending, next to it.
fn beside(run: &Path, format: Format) -> PathBuf {
    // `.` and the like have no name of their own.
    let whole = run.canonicalize().unwrap_or_else(|_| run.to_path_buf());
    let named = match run.file_name() {
        Some(_) => run,
        None => &whole,
    };
    let mut name = named.file_name().unwrap_or_default().to_os_string();
    name.push(".");
    name.push(format.ending());
    named.with_file_name(name)
}
