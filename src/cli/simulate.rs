//! `dpm simulate`: tables made up from a model.

use std::path::{Path, PathBuf};

use rand::RngExt;
use serde_json::{Map, Value, json};

use super::failure::Failure;
use super::format::Format;
use super::headings;
use super::initial::start_of;
use super::made_up::{say_stand_ins, with_covariates};
use super::model_file::{CONSTANTS, METADATA, ModelFile, PUBLIC_SAMPLE};
use super::table_files::TableFiles;
use super::{Common, pretty, print, say_always};
use crate::analysis::{QUANTILES, Table, Tables, in_words, predicted};
use crate::model::Model;
use crate::output::{Run, check_files, table_csv, write_files};
use crate::sampler::public_rng;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Parameters come from the prior (or from --parameters, or from a run's draws), covariates are
uniform between their declared bounds (or as --metadata guesses, or from the rows of
--public-sample), and outcomes are drawn from the likelihood. FILE.parameters.json has the
parameters, in the form that `dpm sample --init` takes: what a run on the table should find.
Standard error describes the outcomes; if they are absurd, the prior is probably too wide. No data are read, so it costs no privacy.

Examples:
  dpm simulate model.dpm --rows 5000 --out made-up.csv
  dpm simulate model.dpm --rows 5000 --tables 20 --out prior.parquet --format json
  dpm simulate model.dpm --rows 1000 --run model-run --out - | head")]
pub(super) struct Arguments {
    /// The model
    model: PathBuf,
    /// Number of rows of a table
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..))]
    rows: u64,
    /// Where to write: a name that ends in .csv or .parquet, or `-` for CSV on standard output. With --tables 3, FILE-1.csv to FILE-3.csv
    #[arg(long, short, value_name = "FILE", help_heading = headings::OUTPUT)]
    out: PathBuf,
    /// Number of tables, each at its own parameters
    #[arg(long, default_value_t = 1, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    tables: u64,
    /// Parameter values, as for `dpm sample --init`: a JSON object, or a list of them, used by the tables in turn
    #[arg(long, value_name = "FILE.json", conflicts_with = "run")]
    parameters: Option<PathBuf>,
    /// Take the parameters from a random draw of this run
    #[arg(long, value_name = "RUN")]
    run: Option<PathBuf>,
    #[arg(long, value_name = "FILE.csv", help = PUBLIC_SAMPLE)]
    public_sample: Option<PathBuf>,
    #[arg(long, value_name = "FILE.yaml", help = METADATA)]
    metadata: Option<PathBuf>,
    #[arg(long, value_name = "FILE.json", help = CONSTANTS)]
    constants: Option<PathBuf>,
    /// Seed of everything random here
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// Replace files that exist
    #[arg(long, help_heading = headings::OUTPUT)]
    overwrite: bool,
    /// How to describe the outcomes: `text` on standard error, `json` on standard output
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = headings::OUTPUT)]
    format: Format,
}

/// Where the tables go.
enum Target {
    StandardOutput,
    /// The tables, and the name of the file of their parameters.
    Files(TableFiles, String),
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let target = arguments.target()?;
    let file = ModelFile::read(&arguments.model, common)?;
    file.show_warnings(common);
    let model = file.bind_guessed(
        arguments.constants.as_deref(),
        arguments.metadata.as_deref(),
        common,
    )?;
    if let Target::Files(files, parameters) = &target {
        let all = [files.names.as_slice(), std::slice::from_ref(parameters)].concat();
        check_files(&files.folder, &all, arguments.overwrite).map_err(Failure::input)?;
    }
    let tables = arguments.tables(&model)?.seed(arguments.seed);
    let tables = with_covariates(tables, arguments.public_sample.as_deref())?;
    say_stand_ins(&tables, common);
    let made: Vec<Table> = (0..arguments.tables as usize)
        .map(|number| tables.table(number))
        .collect();
    let found = predicted(&tables, &made);
    let parameters = match made.as_slice() {
        [one] => one.parameters().clone(),
        several => several
            .iter()
            .map(|table| table.parameters().clone())
            .collect(),
    };
    match target {
        Target::StandardOutput => {
            for table in &made {
                print(&table_csv(table.declared()))?;
            }
            common.say(format!("parameters: {parameters}"));
        }
        Target::Files(place, of_parameters) => {
            let mut files = Vec::new();
            for (name, table) in place.names.iter().zip(&made) {
                files.push((name.clone(), place.contents(table.declared())?));
            }
            files.push((of_parameters, pretty(&parameters).into_bytes()));
            write_files(&place.folder, &files, arguments.overwrite).map_err(Failure::run)?;
            for (name, _) in &files {
                let place = arguments.out.with_file_name(name);
                common.say(format!("written to {}", place.display()));
            }
        }
    }
    match arguments.format {
        Format::Text => {
            let many = if made.len() == 1 {
                ""
            } else {
                ", all tables together"
            };
            common.say(format!("outcomes, made up from the model{many}:"));
            in_words(&found)
                .iter()
                .for_each(|line| common.say(format!("  {line}")));
            Ok(())
        }
        Format::Json => print(&pretty(&json!({
            "rows": arguments.rows,
            "tables": arguments.tables,
            "seed": arguments.seed,
            "without_prior": tables.without_prior(),
            "probabilities": QUANTILES,
            "outcomes": found,
        }))),
    }
}

impl Arguments {
    fn target(&self) -> Result<Target, Failure> {
        if self.out == Path::new("-") {
            if self.tables > 1 || self.format == Format::Json {
                return Err(Failure::input(
                    "standard output takes one table and nothing else: give --out FILE.csv for --tables or --format json",
                ));
            }
            return Ok(Target::StandardOutput);
        }
        let files = TableFiles::of(&self.out, self.tables)?;
        let name = self.out.file_name().unwrap_or_default();
        let parameters = format!("{}.parameters.json", name.to_string_lossy());
        Ok(Target::Files(files, parameters))
    }

    fn tables(&self, model: &Model) -> Result<Tables, Failure> {
        let rows = self.rows as usize;
        let (values, origin) = match (&self.parameters, &self.run) {
            (Some(path), _) => (start_of(&path.display().to_string())?, path),
            (None, Some(run)) => (Some(self.draws(run)?), run),
            (None, None) => return Ok(Tables::from_prior(model, rows)?),
        };
        let named = |e| Failure::input(format!("`{}`: {e}", origin.display()));
        Tables::at_values(model, rows, &values.unwrap_or_default()).map_err(named)
    }

    /// One draw for each table, at random.
    fn draws(&self, place: &Path) -> Result<Value, Failure> {
        let run = Run::open(place).map_err(Failure::input)?;
        if !run.is_private() {
            say_always(
                "NOT PRIVATE: the parameters come from a run without privacy, and so do the tables",
            );
        }
        let draws: Vec<&Vec<f64>> = run.draws().chains().iter().flatten().collect();
        if draws.is_empty() {
            return Err(Failure::input(format!(
                "`{}` has no draws",
                place.display()
            )));
        }
        // A stream that no table has.
        let mut rng = public_rng(self.seed, usize::MAX - 1);
        let pick = |_| {
            let draw = draws[rng.random_range(0..draws.len())];
            let names = run.draws().names().iter().cloned();
            Value::Object(
                names
                    .zip(draw.iter().map(|&x| x.into()))
                    .collect::<Map<_, _>>(),
            )
        };
        Ok((0..self.tables).map(pick).collect())
    }
}
