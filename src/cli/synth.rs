//! `dpm synth`: synthetic tables from the released draws of a run.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::charge;
use super::data_file::{DataSettings, Loaded};
use super::failure::Failure;
use super::headings;
use super::model_file::codebook;
use super::run_settings::{RelationChoice, promise};
use super::table_files::TableFiles;
use super::words::in_flags;
use super::{Common, pretty, public_data, say_always};
use crate::accounting::{Real, Relation, Session};
use crate::analysis::{About, Marginals, OfCovariates, Promise, Synthesis};
use crate::density::Density;
use crate::formula::Codebook;
use crate::model::{Model, RecordColumn};
use crate::output::{RECORD, Run, check_files, density_of, write_files};
use crate::privacy::{LoadError, Rows};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Draws the columns that the model explains from its likelihood, each table at its own
released draw. It reads the run's directory and no data, and costs no privacy, however many tables are
made. Columns that the model does not explain are uniform between their declared bounds, and not
like the real ones, unless a codebook guesses them or --public-sample has them. FILE.about.md and
FILE.about.json say what the tables are good for and what they are not.

With --covariates the distribution of each column that the model does not explain is released from
the data, with noise, at a separate epsilon. It is kept in FILE.codebook.json, with which
--metadata makes further tables free of charge.

Examples:
  dpm synth adult_income-run --rows 48842 --out synthetic.csv
  dpm synth adult_income-run --rows 48842 --tables 20 --public-sample census.csv --out synthetic.parquet
  dpm synth adult_income-run --rows 48842 --covariates models/adult_income.csv.gz --epsilon 0.5 --delta 1e-6 --out synthetic.csv")]
pub(super) struct Arguments {
    /// The run's directory
    run: PathBuf,
    /// Rows of each table
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    rows: u64,
    /// Where to write, as CSV or Parquet according to the extension; several tables are FILE-1, FILE-2, ...
    #[arg(long, short, value_name = "FILE.csv|FILE.parquet")]
    out: PathBuf,
    /// Number of tables, each from its own draw; `dpm pool` combines their estimates
    #[arg(long, default_value_t = 1, value_name = "M", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    tables: u64,
    /// Take the columns that the model does not explain from the rows of this public table
    #[arg(long, value_name = "FILE.csv")]
    public_sample: Option<PathBuf>,
    /// Codebook that guesses how the columns that the model does not explain are distributed [default: the run's]
    #[arg(long, value_name = "FILE.yaml")]
    metadata: Option<PathBuf>,
    /// Release how the columns that the model does not explain are distributed, each by itself, from these data; may be given several times
    #[arg(long, value_name = "DATA", requires = "epsilon", conflicts_with_all = ["metadata", "public_sample"])]
    covariates: Vec<PathBuf>,
    /// Privacy budget epsilon of --covariates
    #[arg(long, value_name = "E", allow_negative_numbers = true, requires = "covariates", help_heading = headings::BUDGET)]
    epsilon: Option<Real>,
    /// Privacy budget delta [default: 0.1 / records (or units); required under add-remove]
    #[arg(long, value_name = "D", allow_negative_numbers = true, requires = "covariates", help_heading = headings::BUDGET)]
    delta: Option<Real>,
    /// How neighbouring data sets differ
    #[arg(long, value_enum, default_value_t = RelationChoice::Substitute, help_heading = headings::BUDGET)]
    relation: RelationChoice,
    /// Ledger of these data: --covariates is charged to it, or refused
    #[arg(long, value_name = "FILE", requires = "covariates", help_heading = headings::BUDGET)]
    ledger: Option<PathBuf>,
    #[command(flatten)]
    reading: DataSettings,
    /// Seed of the noise, for tests: the output is then NOT PRIVATE
    #[arg(
        long,
        value_name = "S",
        requires = "covariates",
        conflicts_with = "ledger",
        hide_short_help = true
    )]
    insecure_noise_seed: Option<u64>,
    /// Seed of everything else random here
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// Replace files that exist
    #[arg(long)]
    overwrite: bool,
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let place = TableFiles::of(&arguments.out, arguments.tables)?;
    let about_names = ["json", "md"].map(|ending| place.about(ending));
    let of_covariates = (!arguments.covariates.is_empty()).then(|| place.codebook());
    let names = place.names.iter().chain(&about_names).chain(&of_covariates);
    let names: Vec<String> = names.cloned().collect();
    check_files(&place.folder, &names, arguments.overwrite).map_err(Failure::run)?;
    arguments.check()?;
    let run = Run::open(&arguments.run).map_err(Failure::input)?;
    let density = density_of(run.place()).map_err(Failure::input)?;
    if density.model().outcomes.is_empty() {
        return Err(Failure::input(
            "the run's model explains no column of its record (`y ~ ...` in `model`), so that there is nothing to draw",
        ));
    }
    let density = match &arguments.metadata {
        None => density,
        Some(path) => guessed(density.model().clone(), &codebook(path, common)?)?,
    };
    let sample = match &arguments.public_sample {
        Some(path) => Some(public_data::sample_of(path, &density.model().columns)?),
        None => None,
    };
    let synthesis = |density, released| Synthesis {
        run: &run,
        density,
        public: sample.as_ref(),
        released,
        rows: arguments.rows as usize,
        seed: arguments.seed,
    };
    let drawn = synthesis(&density, false).draws(place.names.len());
    let drawn = drawn.map_err(Failure::input)?;
    // Whatever may be wrong was found before: this is charged.
    let released = match of_covariates {
        None => None,
        Some(name) => Some(arguments.release(&run, density.model(), name, common)?),
    };
    let (with_covariates, of_covariates) = released.unzip();
    let density = with_covariates.as_ref().unwrap_or(&density);
    let synthesis = synthesis(density, of_covariates.is_some());
    let model = density.model();
    let is_private = run.is_private() && arguments.insecure_noise_seed.is_none();
    let mark = (!is_private).then(|| mark(&model.columns));
    let mut files: Vec<(String, Vec<u8>)> = Vec::with_capacity(names.len());
    for (number, (name, drawn)) in place.names.iter().zip(&drawn).enumerate() {
        let values = synthesis.table(number, drawn);
        let marks = vec![1.0; synthesis.rows];
        let columns = model.columns.iter().zip(values.iter().map(Vec::as_slice));
        let columns = columns.chain(mark.as_ref().map(|mark| (mark, &marks[..])));
        files.push((name.clone(), place.contents(columns)?));
    }
    let of_sample = arguments.public_sample.as_deref().map(shown);
    let of_covariates = of_covariates.map(|(text, of)| {
        files.push((of.codebook.clone(), text.into_bytes()));
        of
    });
    let about = About::new(&synthesis, &place.names, drawn, of_sample, of_covariates);
    let texts = [pretty(&json!(about)), about.to_markdown()];
    let texts = texts.map(String::into_bytes);
    files.extend(about_names.iter().cloned().zip(texts));
    write_files(&place.folder, &files, arguments.overwrite).map_err(Failure::run)?;
    report(&about, &place, &about_names, &run, common);
    if arguments.insecure_noise_seed.is_some() {
        say_always("NOT PRIVATE: the noise is made from --insecure-noise-seed");
    }
    Ok(())
}

/// The model with the guesses of a codebook.
fn guessed(model: Model, codebook: &Codebook) -> Result<Density, Failure> {
    let model = model.with_codebook(codebook).map_err(Failure::input)?;
    Ok(Density::new(model))
}

impl Arguments {
    fn check(&self) -> Result<(), Failure> {
        if self.covariates.is_empty() && self.reading.is_given() {
            return Err(Failure::input(
                "no data are read without --covariates: leave out what says how to read them",
            ));
        }
        Ok(())
    }

    /// Releases the covariates' distributions: the model with them, the text of their codebook, and
    /// what is said of the release.
    fn release(
        &self,
        run: &Run,
        model: &Model,
        codebook: String,
        common: &Common,
    ) -> Result<(Density, (String, OfCovariates)), Failure> {
        let (promise, rows) = self.promise(run, model, common)?;
        let plan = Marginals::new(model, &promise)
            .map_err(|error| Failure::input(in_flags(&error.to_string())))?;
        let name = format!("covariates of {}", run.place().display());
        let session = self.ledger.as_ref().map(Session::open).transpose()?;
        if let Some(session) = &session {
            let quote = charge::fitting(plan.once.quote(session, &name, &promise)?)?;
            common.say(charge::line(&quote));
        }
        let released = plan.release(
            rows,
            &name,
            &promise,
            session.as_ref(),
            self.insecure_noise_seed,
        )?;
        common.say(format!(
            "the covariates' distributions were released for epsilon {:.6} at delta {:e}; a share has noise of {:.4}",
            plan.once.epsilon,
            promise.delta.to_f64(),
            released.noise_of_share
        ));
        let text = pretty(&released.codebook);
        let book = Codebook::read(&text).map_err(|wrong| Failure::run(wrong.message))?;
        let of = OfCovariates {
            epsilon: plan.once.epsilon,
            delta: promise.delta.to_f64(),
            relation: promise.relation.name(),
            unit: promise.unit_name().to_owned(),
            private: self.insecure_noise_seed.is_none(),
            noise_of_share: released.noise_of_share,
            codebook,
            events: [plan.once.event],
            ledger: released.ledger,
        };
        Ok((guessed(model.clone(), &book)?, (text, of)))
    }

    /// The rows, and what is promised of their release: of the unit and under the relation of the
    /// run, so that both can be added up.
    fn promise(
        &self,
        run: &Run,
        model: &Model,
        common: &Common,
    ) -> Result<(Promise, Rows), Failure> {
        let relation = Relation::from(self.relation);
        let of_run = run.config()["relation"].as_str().unwrap_or(relation.name());
        if of_run != relation.name() {
            return Err(Failure::input(format!(
                "the run was made under {of_run}, and its covariates are to be released under {relation}: give --relation {of_run}"
            )));
        }
        let unit = run.config()["unit"].as_str().filter(|unit| *unit != RECORD);
        if unit != self.reading.unit() {
            return Err(Failure::input(match unit {
                Some(unit) => format!("the run was made with --unit {unit}: give the same here"),
                None => "the run was made without --unit: leave it out here".to_owned(),
            }));
        }
        let columns = Marginals::columns_of(model);
        let rows = (self.reading).load(&self.covariates, &columns, Loaded::default())?;
        let n = rows.n() as u64;
        if n == 0 && relation.n_is_public() {
            return Err(Failure::input(LoadError::no_rows()));
        }
        // Required with --covariates.
        let epsilon = self.epsilon.unwrap_or(Real::ZERO);
        let asked = (epsilon, self.delta);
        let (promise, default_delta) = promise(asked, relation, self.reading.unit(), n)?;
        if default_delta {
            common.say(format!(
                "delta was not given: taking 0.1 / number of records = {:.3e}",
                promise.delta.to_f64()
            ));
        }
        Ok((promise, rows))
    }
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
        lower: Some(1.0),
        upper: Some(1.0),
        levels: vec!["NOT_PRIVATE".to_owned()],
        used: false,
        ..RecordColumn::named(&name, true)
    }
}
