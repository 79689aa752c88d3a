//! `dpm sbc`: whole runs on tables made up from a model, compared with the parameters that made them.

mod answer;

use std::num::NonZero;
use std::path::{Path, PathBuf};

use self::answer::{Question, ranks_csv, table};
use super::failure::{Failure, place_advice};
use super::headings;
use super::interrupt::Interrupt;
use super::made_up::{say_stand_ins, with_covariates};
use super::model_file::{METADATA, ModelFile, PUBLIC_SAMPLE};
use super::progress::{CountProgress, ProgressFlag};
use super::run_settings::{RunSettings, SamplerFlags, SamplerName};
use super::threads::set_threads;
use super::words::in_flags;
use super::{Common, pretty, print};
use crate::analysis::{Analysis, Calibrated, Promise, Sbc, Tables};
use crate::model::Model;
use crate::output::{CalibrationPage, RunDirectory, RunDirectoryError};
use crate::sampler::Kind;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Shows, before a row is read, what a run with these flags will give: simulates tables from the model,
with parameters drawn from its prior (as `dpm simulate` does), runs on each of them as `dpm sample`
would, and compares the draws with the parameters that made the table: how often intervals contain
them, whether their ranks are uniform, and how wide intervals are, compared with the posterior
without privacy and with the prior. No data are read and nothing is charged.

MODEL-sbc holds sbc.json, ranks.csv and sbc.html with a drawing for each parameter. The exit code
is 0 whatever is found. docs/workflow.md explains it.

Examples:
  dpm sbc model.dpm --rows 5000 --epsilon 1 --delta 1e-6
  dpm sbc model.dpm --rows 300 --algorithm nuts --not-private --tables 50
  dpm sbc model.dpm --rows 5000 --epsilon 1 --delta 1e-6 --simulate-from heavy-tails.dpm")]
pub(super) struct Arguments {
    /// The model
    model: PathBuf,
    /// Number of records of a run
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..))]
    rows: u64,
    #[command(flatten)]
    settings: RunSettings,
    /// Sampler, listed by `dpm sample --help` [default: as for `dpm sample`]
    #[arg(
        long,
        value_name = "NAME",
        help_heading = headings::CHAINS,
        value_parser = SamplerName::Any,
        hide_possible_values = true
    )]
    algorithm: Option<String>,
    /// Allow a sampler without privacy
    #[arg(long, help_heading = headings::CHAINS)]
    not_private: bool,
    /// Number of tables, and of runs
    #[arg(
        long,
        default_value_t = 100,
        value_name = "K",
        value_parser = clap::value_parser!(u64).range(1..=10_000),
        help_heading = headings::SIMULATION
    )]
    tables: u64,
    /// Simulate the tables from this model, which has the same parameters and columns: shows what happens if MODEL is wrong
    #[arg(long, value_name = "OTHER.dpm", help_heading = headings::SIMULATION)]
    simulate_from: Option<PathBuf>,
    #[arg(long, value_name = "FILE.csv", help = PUBLIC_SAMPLE, help_heading = headings::SIMULATION)]
    public_sample: Option<PathBuf>,
    #[arg(long, value_name = "FILE.yaml", help = METADATA, help_heading = headings::SIMULATION)]
    metadata: Option<PathBuf>,
    /// Public constants of both models [default: MODEL.constants.json, if it exists]
    #[arg(long, value_name = "FILE.json", help_heading = headings::SIMULATION)]
    constants: Option<PathBuf>,
    /// Do not sample each table's posterior without privacy
    #[arg(long, help_heading = headings::SIMULATION)]
    no_reference: bool,
    /// Seed of everything random here, the noise included
    #[arg(long, default_value_t = 1, value_name = "S", help_heading = headings::SIMULATION)]
    seed: u64,
    /// Tables at a time [default: one per core]
    #[arg(long, value_name = "N", help_heading = headings::SIMULATION)]
    threads: Option<usize>,
    /// Directory of the results [default: MODEL-sbc]
    #[arg(long, value_name = "DIR", help_heading = headings::OUTPUT)]
    out: Option<PathBuf>,
    /// Replace earlier results
    #[arg(long, help_heading = headings::OUTPUT)]
    overwrite: bool,
    #[command(flatten)]
    progress: ProgressFlag,
    #[command(flatten)]
    sampler: SamplerFlags,
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let file = ModelFile::read(&arguments.model, common)?;
    let name = file.stem();
    let settings = &arguments.settings;
    let chosen = arguments.algorithm.as_deref();
    let analysis = settings.analysis(name.clone(), chosen, &arguments.sampler)?;
    let algorithm = analysis.sampler()?;
    settings.check_privacy(algorithm, arguments.not_private)?;
    analysis.check(algorithm)?;
    let place = match &arguments.out {
        Some(out) => out.clone(),
        None => PathBuf::from(format!("{name}-sbc")),
    };
    RunDirectory::check(&place, arguments.overwrite).map_err(|e| cannot_write(&e, true))?;
    set_threads(arguments.threads)?;
    file.show_warnings(common);
    let model = file.bind_guessed(
        arguments.constants.as_deref(),
        arguments.metadata.as_deref(),
        common,
    )?;
    let tables = arguments.tables_of(&model, common)?;
    let promise = if algorithm.is_private() {
        Some(arguments.promise(&analysis, &model, common)?)
    } else {
        None
    };
    say_stand_ins(&tables, common);
    let question = Question {
        name,
        model: &arguments.model,
        simulate_from: arguments.simulate_from.as_deref(),
        rows: arguments.rows,
        tables: arguments.tables,
        seed: arguments.seed,
        algorithm,
        promise: promise.as_ref(),
    };
    let sbc = Sbc {
        tables: &tables,
        model: &model,
        analysis: &analysis,
        promise: promise.clone(),
        relation: settings.relation.into(),
        // An exact sampler is its own reference.
        reference: !arguments.no_reference && !matches!(algorithm.kind, Kind::Exact),
        seed: arguments.seed,
    };
    let found = arguments.run_all(&sbc, common)?;
    let answer = question.answer(&found);
    let files =
        RunDirectory::create(&place, arguments.overwrite).map_err(|e| cannot_write(&e, true))?;
    let write =
        |name: &str, text: &str| files.write(name, text).map_err(|e| cannot_write(&e, false));
    write(
        "sbc.json",
        &pretty(&question.json(&found, &answer, &tables)),
    )?;
    write("ranks.csv", &ranks_csv(&found))?;
    let page = CalibrationPage {
        name: &question.name,
        answer: &answer,
        about: &question.about(),
        calibration: &found.calibration,
    };
    write("sbc.html", &page.to_html())?;
    let place = files
        .publish(arguments.overwrite)
        .map_err(|e| cannot_write(&e, false))?;
    common.say(question.about());
    print(&format!("{}\n\n{}", answer.join("\n"), table(&found)))?;
    common.say(format!("written to {}", place.display()));
    Ok(())
}

fn cannot_write(error: &RunDirectoryError, beforehand: bool) -> Failure {
    let failure = if beforehand {
        Failure::input(error)
    } else {
        Failure::run(error)
    };
    failure.and_maybe(place_advice(error))
}

impl Arguments {
    /// The tables, from the model or another one.
    fn tables_of(&self, model: &Model, common: &Common) -> Result<Tables, Failure> {
        let rows = self.rows as usize;
        let tables = match &self.simulate_from {
            None => Tables::from_prior(model, rows)?,
            Some(path) => {
                let file = ModelFile::read(path, common)?;
                let other =
                    file.bind_guessed(self.constants.as_deref(), self.metadata.as_deref(), common)?;
                fits(&other, model, path)?;
                Tables::from_prior(&other, rows)?
            }
        };
        with_covariates(tables.seed(self.seed), self.public_sample.as_deref())
    }

    /// The promise of each run; whatever is wrong with the plan is said now.
    fn promise(
        &self,
        analysis: &Analysis,
        model: &Model,
        common: &Common,
    ) -> Result<Promise, Failure> {
        let (promise, default_delta) = self.settings.promise(self.rows, None)?;
        if default_delta {
            let delta = promise.delta.to_f64();
            common.say(format!(
                "delta was not given: taking 0.1 / number of records = {delta:.3e}"
            ));
        }
        let prepared = analysis.prepare(model, promise.clone())?;
        for warning in &prepared.plan.warnings {
            common.say(in_flags(&format!("warning: {warning}")));
        }
        Ok(promise)
    }

    fn run_all(&self, sbc: &Sbc, common: &Common) -> Result<Calibrated, Failure> {
        let cores = || std::thread::available_parallelism().map_or(1, NonZero::get);
        let threads = self.threads.unwrap_or_else(cores);
        let interrupt = Interrupt::watch();
        let progress = CountProgress::new(
            "tables",
            self.tables as usize,
            self.progress.audience(common),
        );
        let found = sbc.run(
            self.tables as usize,
            threads,
            &|| interrupt.came(),
            &|tables| progress.done(tables, ""),
        );
        drop(progress);
        let found = found?.ok_or_else(|| {
            Failure::interrupted("interrupted: nothing is written. Fewer --tables take less time")
        })?;
        if let Some(error) = &found.first_error {
            common.say(in_flags(&format!(
                "warning: {} of {} runs failed, the first with: {error}",
                found.failed, self.tables
            )));
        }
        Ok(found)
    }
}

/// Whether another model has the parameters and columns of this one.
fn fits(other: &Model, model: &Model, path: &Path) -> Result<(), Failure> {
    let parameters = |m: &Model| -> Vec<String> {
        let each = m.parameters.iter();
        let mut all: Vec<String> = each
            .map(|p| format!("`{}`, {}", p.name, p.shape.describe()))
            .collect();
        all.sort();
        all
    };
    let columns = |m: &Model| -> Vec<String> {
        let mut all: Vec<String> = m.columns.iter().map(|c| format!("`{}`", c.name)).collect();
        all.sort();
        all
    };
    for (what, theirs, ours) in [
        ("parameters", parameters(other), parameters(model)),
        ("columns", columns(other), columns(model)),
    ] {
        // More columns do no harm.
        let lacks = ours.iter().find(|name| !theirs.contains(name));
        let more = theirs.iter().find(|name| !ours.contains(name));
        let differs = lacks.or(more.filter(|_| what == "parameters"));
        if let Some(differs) = differs {
            return Err(Failure::input(format!(
                "`{}` does not have the same {what} as the model: {differs} is in only one of them. Tables can be simulated only from a model with the same parameters and columns",
                path.display()
            )));
        }
    }
    Ok(())
}
