//! `dpm synth`: synthetic tables from the released draws of a run.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::failure::Failure;
use super::table_files::TableFiles;
use super::{Common, pretty, public_data, say_always};
use crate::analysis::{About, Synthesis};
use crate::model::RecordColumn;
use crate::output::{Run, check_files, density_of, write_files};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Draws the columns that the model explains from its likelihood, each table at a released draw of its
own. It reads the run's directory and no data, and costs no privacy, however many tables are made.
Columns that the model does not explain are uniform between their declared bounds, and not like the
real ones, or rows of --public-sample. FILE.about.md and FILE.about.json say what the tables are
good for and what not.

Examples:
  dpm synth adult_income-run --rows 48842 --out synthetic.csv
  dpm synth adult_income-run --rows 48842 --tables 20 --public-sample census.csv --out synthetic.parquet")]
pub(super) struct Arguments {
    /// The run's directory
    run: PathBuf,
    /// Rows of each table
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    rows: u64,
    /// Where to write, as CSV or Parquet by its ending; several tables are FILE-1, FILE-2, ...
    #[arg(long, short, value_name = "FILE.csv|FILE.parquet")]
    out: PathBuf,
    /// How many tables, each from a draw of its own; `dpm pool` combines their estimates
    #[arg(long, default_value_t = 1, value_name = "M", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    tables: u64,
    /// Take the columns that the model does not explain from the rows of this public table
    #[arg(long, value_name = "FILE.csv")]
    public_sample: Option<PathBuf>,
    /// Seed of everything random here
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// Replace files that exist
    #[arg(long)]
    overwrite: bool,
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let place = TableFiles::of(&arguments.out, arguments.tables)?;
    let about_names = ["json", "md"].map(|ending| place.about(ending));
    let names: Vec<String> = place.names.iter().chain(&about_names).cloned().collect();
    check_files(&place.folder, &names, arguments.overwrite).map_err(Failure::run)?;
    let run = Run::open(&arguments.run).map_err(Failure::input)?;
    let density = density_of(run.place()).map_err(Failure::input)?;
    let model = density.model();
    if model.outcomes.is_empty() {
        return Err(Failure::input(
            "the run's model explains no column of its record (`y ~ ...` in `model`), so that there is nothing to draw",
        ));
    }
    let sample = match &arguments.public_sample {
        Some(path) => Some(public_data::sample_of(path, &model.columns)?),
        None => None,
    };
    let synthesis = Synthesis {
        run: &run,
        density: &density,
        public: sample.as_ref(),
        rows: arguments.rows as usize,
        seed: arguments.seed,
    };
    let drawn = synthesis.draws(place.names.len()).map_err(Failure::input)?;
    let mark = (!run.is_private()).then(|| mark(&model.columns));
    let mut files: Vec<(String, Vec<u8>)> = Vec::with_capacity(names.len());
    for (number, (name, drawn)) in place.names.iter().zip(&drawn).enumerate() {
        let values = synthesis.table(number, drawn);
        let marks = vec![1.0; synthesis.rows];
        let columns = model.columns.iter().zip(values.iter().map(Vec::as_slice));
        let columns = columns.chain(mark.as_ref().map(|mark| (mark, &marks[..])));
        files.push((name.clone(), place.contents(columns)?));
    }
    let of_sample = arguments.public_sample.as_deref().map(shown);
    let about = About::new(&synthesis, &place.names, drawn, of_sample);
    let texts = [pretty(&json!(about)), about.to_markdown()];
    let texts = texts.map(String::into_bytes);
    files.extend(about_names.iter().cloned().zip(texts));
    write_files(&place.folder, &files, arguments.overwrite).map_err(Failure::run)?;
    report(&about, &place, &about_names, &run, common);
    Ok(())
}

fn report(about: &About, place: &TableFiles, about_names: &[String], run: &Run, common: &Common) {
    let made_up = about.made_up();
    if !made_up.is_empty() {
        common.say(format!(
            "note: the model does not explain {made_up}: made up from the declared bounds, and not like the real ones"
        ));
    }
    common.say(format!(
        "{} and {} written to {}; the latter say what {} good for and what not",
        match &place.names[..] {
            [one] => one.clone(),
            [first, .., last] => format!("{first} to {last}"),
            [] => String::new(),
        },
        about_names.join(", "),
        place.folder.display(),
        if place.names.len() == 1 {
            "the table is"
        } else {
            "the tables are"
        }
    ));
    if !about.problems().is_empty() {
        say_always("verdict: Do not use these draws, nor tables made from them.");
    }
    for problem in about.problems() {
        say_always(format!("problem: {problem}"));
    }
    if run.is_unfinished() {
        say_always(format!(
            "note: the run in `{}` is not finished, and these are not all of its draws",
            run.place().display()
        ));
    }
    if !run.is_private() {
        say_always(
            "NOT PRIVATE: the draws come from a run without privacy, and so do these tables",
        );
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// The column that marks each row of a table that is not private.
fn mark(columns: &[RecordColumn]) -> RecordColumn {
    let mut name = "privacy".to_owned();
    while columns.iter().any(|column| column.name == name) {
        name.push('_');
    }
    RecordColumn {
        variable: name.clone(),
        name,
        is_int: true,
        lower: Some(1.0),
        upper: Some(1.0),
        levels: vec!["NOT_PRIVATE".to_owned()],
        used: false,
        guess: None,
    }
}
