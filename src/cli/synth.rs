//! `dpm synth`: synthetic tables from the released draws of a run.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::failure::Failure;
use super::{Common, pretty, public_data, say_always};
use crate::analysis::{About, Synthesis};
use crate::model::RecordColumn;
use crate::output::{Run, check_files, density_of, table_csv, write_files};

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
    let place = Place::of(arguments)?;
    let names: Vec<String> = place.tables.iter().chain(&place.about).cloned().collect();
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
    let drawn = synthesis
        .draws(place.tables.len())
        .map_err(Failure::input)?;
    let mark = (!run.is_private()).then(|| mark(&model.columns));
    let mut files: Vec<(String, Vec<u8>)> = Vec::with_capacity(names.len());
    for (number, (name, drawn)) in place.tables.iter().zip(&drawn).enumerate() {
        let values = synthesis.table(number, drawn);
        files.push((
            name.clone(),
            place.format.bytes(&model.columns, &values, mark.as_ref())?,
        ));
    }
    let of_sample = arguments.public_sample.as_deref().map(shown);
    let about = About::new(&synthesis, &place.tables, drawn, of_sample);
    let texts = [pretty(&json!(about)), about.to_markdown()];
    files.extend(
        place
            .about
            .iter()
            .cloned()
            .zip(texts.map(String::into_bytes)),
    );
    write_files(&place.folder, &files, arguments.overwrite).map_err(Failure::run)?;
    report(&about, &place, &run, common);
    Ok(())
}

fn report(about: &About, place: &Place, run: &Run, common: &Common) {
    let made_up = about.made_up();
    if !made_up.is_empty() {
        common.say(format!(
            "note: the model does not explain {made_up}: made up from the declared bounds, and not like the real ones"
        ));
    }
    common.say(format!(
        "{} and {} written to {}; the latter say what {} good for and what not",
        match &place.tables[..] {
            [one] => one.clone(),
            [first, .., last] => format!("{first} to {last}"),
            [] => String::new(),
        },
        place.about.join(", "),
        place.folder.display(),
        if place.tables.len() == 1 {
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
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Csv,
    #[cfg(feature = "parquet")]
    Parquet,
}

impl Format {
    fn of(path: &Path) -> Result<Format, Failure> {
        let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
        match ending.to_str() {
            Some("csv") => Ok(Format::Csv),
            #[cfg(feature = "parquet")]
            Some("parquet") => Ok(Format::Parquet),
            _ => Err(Failure::input(format!(
                "`{}`: expected a name that ends in .csv{}",
                path.display(),
                if cfg!(feature = "parquet") {
                    " or .parquet"
                } else {
                    "; this dpm was built without Parquet"
                }
            ))),
        }
    }

    fn bytes(
        self,
        columns: &[RecordColumn],
        values: &[Vec<f64>],
        mark: Option<&RecordColumn>,
    ) -> Result<Vec<u8>, Failure> {
        let marks = vec![1.0; values.first().map_or(0, Vec::len)];
        let values = values.iter().map(Vec::as_slice);
        let marked = mark.map(|mark| (mark, &marks[..]));
        let table = columns.iter().zip(values).chain(marked);
        match self {
            Format::Csv => Ok(table_csv(table).into_bytes()),
            #[cfg(feature = "parquet")]
            Format::Parquet => crate::output::table_parquet(table).map_err(Failure::run),
        }
    }
}

/// Where the files go.
struct Place {
    folder: PathBuf,
    format: Format,
    tables: Vec<String>,
    about: [String; 2],
}

impl Place {
    fn of(arguments: &Arguments) -> Result<Place, Failure> {
        let out = &arguments.out;
        let format = Format::of(out)?;
        let part = |part: Option<&std::ffi::OsStr>| part.map(|p| p.to_string_lossy().into_owned());
        let stem = part(out.file_stem()).unwrap_or_default();
        let ending = part(out.extension()).unwrap_or_default();
        Ok(Place {
            folder: match out.parent() {
                Some(folder) if folder != Path::new("") => folder.to_path_buf(),
                _ => PathBuf::from("."),
            },
            format,
            tables: match arguments.tables {
                1 => vec![format!("{stem}.{ending}")],
                tables => (1..=tables)
                    .map(|m| format!("{stem}-{m}.{ending}"))
                    .collect(),
            },
            about: ["json", "md"].map(|ending| format!("{stem}.about.{ending}")),
        })
    }
}
