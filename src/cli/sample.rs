//! `dpm sample`: the main job.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::charge;
use super::data_file::{DATA, DataSettings, HoldOut, Loaded, published_name, unreadable};
use super::failure::{Failure, place_advice};
use super::headings;
use super::initial::start_of;
use super::model_file::{CONSTANTS, METADATA, ModelFile, model_name};
use super::planned::{describe, unproved};
use super::progress::{Audience, Progress, ProgressFlag, Spending};
use super::ranks::{self, Role};
use super::run_settings::{RunSettings, SamplerFlags, SamplerName, promise};
use super::threads::set_threads;
use super::verdicts::say_verdicts;
use super::words::{flag, how_to_resume, in_flags};
use super::{Common, say_always};
use crate::accounting::{LedgerError, Meter, Outcome, Real, Relation, Session, figure};
use crate::analysis::{
    Analysis, Caller, Charge, EndedRun, Error, Foreseen, Job, OpenJob, RunFiles, SavedRun, Watch,
    Written, run as run_private,
};
use crate::density::Density;
use crate::diagnostics::Summary;
use crate::model::Model;
use crate::output::{RECORD, RunDirectory};
use crate::privacy::ranks::{Follower, Leader, Share};
use crate::privacy::{LoadError, NotPrivate, Split, Vault};
use crate::sampler::{ALGORITHMS, Algorithm, Observer, Plan};

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_SHORT_HELP, after_long_help = after_long_help())]
pub(super) struct Arguments {
    /// The model
    #[arg(required_unless_present = "resume")]
    model: Option<PathBuf>,
    #[arg(required_unless_present = "resume", help = DATA)]
    data: Vec<PathBuf>,
    #[command(flatten)]
    settings: RunSettings,
    #[command(flatten)]
    sampler: SamplerFlags,
    #[arg(
        long,
        value_name = "FILE.yaml",
        help = METADATA,
        help_heading = headings::DATA,
        hide_short_help = true
    )]
    metadata: Option<PathBuf>,
    #[arg(long, value_name = "FILE.json", help = CONSTANTS, help_heading = headings::DATA)]
    constants: Option<PathBuf>,
    /// Sampler [default: dp-laplace]
    ///
    /// The default is dp-langevin or dp-hmc where settings are given that dp-laplace lacks. The samplers are listed below.
    #[arg(
        long,
        value_name = "NAME",
        help_heading = headings::CHAINS,
        value_parser = SamplerName::Any,
        hide_possible_values = true
    )]
    algorithm: Option<String>,
    /// Allow a sampler without privacy; everything it writes is marked NOT PRIVATE
    #[arg(long, help_heading = headings::CHAINS, hide_short_help = true)]
    not_private: bool,
    /// Ledger of these data: the run is charged to it, or refused
    #[arg(long, value_name = "FILE", help_heading = headings::BUDGET)]
    ledger: Option<PathBuf>,
    /// Keep every N-th iteration
    #[arg(
        long,
        allow_negative_numbers = true,
        default_value_t = 1,
        value_name = "N",
        help_heading = headings::CHAINS,
        hide_short_help = true
    )]
    thin: u64,
    /// Initial values: `random`, or a JSON file with an object of parameter values (or a list, one per chain)
    #[arg(
        long,
        default_value = "random",
        value_name = "FILE.json|random",
        help_heading = headings::CHAINS,
        hide_short_help = true
    )]
    init: String,
    #[command(flatten)]
    reading: DataSettings,
    #[command(flatten)]
    hold_out: HoldOut,
    /// Seed of momenta, jitter and initial values, never of noise
    #[arg(
        long,
        allow_negative_numbers = true,
        default_value_t = 1,
        value_name = "S",
        help_heading = headings::CHAINS
    )]
    seed: u64,
    /// Seed of the noise, for tests: the output is then NOT PRIVATE
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "S",
        help_heading = headings::CHAINS,
        hide_short_help = true
    )]
    insecure_noise_seed: Option<u64>,
    /// Threads [default: one per core]
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "N",
        help_heading = headings::CHAINS,
        hide_short_help = true
    )]
    threads: Option<usize>,
    /// Directory of the run [default: MODEL-run]
    #[arg(long, value_name = "DIR", help_heading = headings::OUTPUT)]
    out: Option<PathBuf>,
    /// Replace an earlier run
    #[arg(long, help_heading = headings::OUTPUT)]
    overwrite: bool,
    /// Resume an interrupted or killed private run, at no further charge
    ///
    /// It has its settings already: only --threads, --progress, --quiet and --color can be given with it.
    #[arg(
        long,
        value_name = "RUN",
        conflicts_with_all = SETTLED,
        help_heading = headings::OUTPUT
    )]
    resume: Option<PathBuf>,
    /// Do not write report.html, which `dpm report` can make later
    #[arg(long, help_heading = headings::OUTPUT, hide_short_help = true)]
    no_report: bool,
    #[command(flatten)]
    progress: ProgressFlag,
}

const AFTER_SHORT_HELP: &str = "\
Example: dpm sample models/adult_income.dpm models/adult_income.csv.gz --epsilon 1 --delta 1e-6

`dpm sample --help` lists all options, and the samplers.";

fn after_long_help() -> String {
    let mut text = String::from(
        "Example: dpm sample models/adult_income.dpm models/adult_income.csv.gz --epsilon 1 --delta 1e-6\n\nSamplers, and the flags of each in addition to the common ones:\n",
    );
    for algorithm in ALGORITHMS {
        let _ = write!(
            text,
            "  {}: {}\n      {}\n",
            algorithm.name,
            algorithm.summary,
            flags_of(algorithm)
        );
    }
    text.push_str(
        "\nThe run directory holds chain-1.csv ... (Stan CSV), summary.csv, privacy.json, config.json, the model and its constants, and the report, report.html.\n\nCtrl-C stops after the current iterations, writes the draws so far and exits with code 130; a second one stops at once. `dpm sample --resume RUN` resumes a private run, also after a kill or a full disk, at no further charge. A ledger ensures that no copy of a run is resumed too; without one, never resume a copy.",
    );
    text
}

/// The flags of a sampler's settings.
fn flags_of(algorithm: &Algorithm) -> String {
    let flags = algorithm
        .settings
        .iter()
        .map(|own| flag(own.setting.name()));
    flags.collect::<Vec<_>>().join(" ")
}

/// The arguments that a resumed run has settled before.
const SETTLED: [&str; 18] = [
    "model",
    "data",
    "constants",
    "metadata",
    "algorithm",
    "not_private",
    "RunSettings",
    "SamplerFlags",
    "ledger",
    "thin",
    "init",
    "DataSettings",
    "HoldOut",
    "seed",
    "insecure_noise_seed",
    "out",
    "overwrite",
    "no_report",
];

/// The files of a run and the rest that it needs to be resumed, in addition to its analysis.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sources {
    model: PathBuf,
    data: Vec<PathBuf>,
    constants: Option<PathBuf>,
    metadata: Option<PathBuf>,
    ledger: Option<PathBuf>,
    init: String,
    reading: DataSettings,
    split: Option<Split>,
    /// Without loss.
    delta: Option<[f64; 2]>,
    relation: Relation,
    threads: Option<usize>,
    no_report: bool,
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let leader = match ranks::start()? {
        Role::Alone => None,
        Role::Leader(leader) => Some(leader),
        Role::Follower(follower) => return follow(follower, common),
    };
    let (command, saved) = match &arguments.resume {
        Some(place) => resumed(place, arguments, common)?,
        None => (arguments.command(common)?, None),
    };
    command.run(saved, leader)
}

/// The sources that rank 0 tells the others to load.
#[derive(Debug, Serialize, Deserialize)]
struct Order {
    sources: Sources,
    ranks: usize,
}

/// A rank other than 0: loads its share of the data, and answers.
fn follow(mut follower: Follower, common: &Common) -> Result<(), Failure> {
    let Some(order) = follower.order()? else {
        return Ok(());
    };
    let order: Order = serde_json::from_slice(&order).map_err(Failure::run)?;
    let share = Share {
        rank: follower.rank(),
        ranks: order.ranks,
    };
    let loaded = order.sources.load_alone(share, common);
    Ok(follower.serve(loaded.map_err(|failure| failure.message().to_owned()))?)
}

impl Sources {
    fn bind(&self, file: &ModelFile, common: &Common) -> Result<Model, Failure> {
        let [constants, metadata] = [&self.constants, &self.metadata].map(Option::as_deref);
        file.bind_guessed(constants, metadata, common)
    }

    fn load_alone(&self, share: Share, common: &Common) -> Result<Vault, Failure> {
        let file = ModelFile::read(&self.model, common)?;
        let model = self.bind(&file, common)?;
        set_threads(self.threads)?;
        self.load(model, Some(share))
    }

    /// The records that `share` has, or all.
    fn load(&self, model: Model, share: Option<Share>) -> Result<Vault, Failure> {
        let portion = self.split.as_ref().map(Split::training);
        let part = Loaded {
            share,
            portion: portion.as_ref(),
        };
        let rows = self.reading.load(&self.data, &model.columns, part)?;
        Vault::new(Density::new(model), rows).map_err(unreadable)
    }

    /// The records of all ranks.
    fn load_with(&self, mut leader: Leader, model: Model) -> Result<Vault, Failure> {
        let ranks = leader.ranks();
        let order = Order {
            sources: self.clone(),
            ranks,
        };
        leader.order(&serde_json::to_vec(&order).map_err(Failure::run)?)?;
        let loaded = self.load(model, Some(Share { rank: 0, ranks }));
        Ok(leader.join(loaded.map_err(|failure| failure.message().to_owned()))?)
    }
}

/// A run to resume.
fn resumed<'a>(
    place: &Path,
    arguments: &Arguments,
    common: &'a Common,
) -> Result<(SampleCommand<'a>, Option<SavedRun>), Failure> {
    let saved = SavedRun::open(place)?;
    let mut sources: Sources =
        serde_json::from_value(saved.command().clone()).map_err(|_| saved.unknown())?;
    sources.threads = arguments.threads.or(sources.threads);
    let (done, lost) = saved.done_and_lost();
    let chains: Vec<String> = done.iter().map(u64::to_string).collect();
    common.say(format!(
        "resuming `{}`: its chains have done {} iterations, {lost} of them lost in interruptions",
        place.display(),
        chains.join(" and ")
    ));
    let command = SampleCommand {
        common,
        analysis: saved.analysis()?,
        sources,
        place: place.to_path_buf(),
        overwrite: false,
        audience: arguments.progress.audience(common),
    };
    Ok((command, Some(saved)))
}

impl Arguments {
    /// A new run.
    fn command<'a>(&self, common: &'a Common) -> Result<SampleCommand<'a>, Failure> {
        // Required, unless a run is resumed.
        let model = self.model.clone().unwrap_or_default();
        let sources = Sources {
            data: self.data.clone(),
            constants: self.constants.clone(),
            metadata: self.metadata.clone(),
            ledger: self.ledger.clone(),
            init: self.init.clone(),
            reading: self.reading.clone(),
            split: self.hold_out.split()?,
            delta: self.settings.delta.map(Real::parts),
            relation: self.settings.relation.into(),
            threads: self.threads,
            no_report: self.no_report,
            model,
        };
        let stem = model_name(&sources.model);
        let settings = &self.settings;
        let unnamed = settings.analysis(stem.clone(), self.algorithm.as_deref(), &self.sampler);
        let algorithm = unnamed?.sampler()?;
        self.check_usage(algorithm)?;
        let name = format!("{stem} ({})", algorithm.name);
        let mut analysis = settings
            .analysis(name, Some(algorithm.name), &self.sampler)?
            .thin(self.thin)
            .seed(self.seed);
        if let Some(start) = start_of(&self.init)? {
            analysis = analysis.start_at(start);
        }
        if let Some(seed) = self.insecure_noise_seed {
            analysis = analysis.insecure_noise_seed(seed);
        }
        analysis.check(algorithm)?;
        Ok(SampleCommand {
            common,
            analysis,
            sources,
            place: match &self.out {
                Some(out) => out.clone(),
                None => PathBuf::from(format!("{stem}-run")),
            },
            overwrite: self.overwrite,
            audience: self.progress.audience(common),
        })
    }

    fn check_usage(&self, algorithm: &Algorithm) -> Result<(), Failure> {
        self.settings.check_privacy(algorithm, self.not_private)?;
        let name = algorithm.name;
        let wrong = match (algorithm.is_private(), self.not_private) {
            (false, true) if self.ledger.is_some() => format!(
                "`{name}` is not private, so there is no charge that could cover it: leave --ledger out, and do not publish what it writes"
            ),
            (true, false) if self.ledger.is_some() && self.reading.unit() == Some(RECORD) => {
                format!(
                    "in a ledger the unit `{RECORD}` is a row, and not a column of that name: call the column something else"
                )
            }
            (true, false) if self.ledger.is_some() && self.insecure_noise_seed.is_some() => {
                "noise from --insecure-noise-seed is not private, so there is no charge that could cover it: leave out either it or --ledger".to_owned()
            }
            _ => return Ok(()),
        };
        Err(Failure::input(wrong))
    }
}

/// A run of `dpm sample`.
struct SampleCommand<'a> {
    common: &'a Common,
    analysis: Analysis,
    sources: Sources,
    place: PathBuf,
    overwrite: bool,
    audience: Audience,
}

impl SampleCommand<'_> {
    /// Reads model and data, and runs; `saved`: what is resumed.
    fn run(&self, saved: Option<SavedRun>, leader: Option<Leader>) -> Result<(), Failure> {
        let (common, sources) = (self.common, &self.sources);
        let file = ModelFile::read(&sources.model, common)?;
        file.show_warnings(common);
        let model = sources.bind(&file, common)?;
        match &saved {
            Some(saved) => {
                let constants = file.constants_path(sources.constants.as_deref());
                let constants = constants.unwrap_or_default();
                let metadata = sources.metadata.clone().unwrap_or_default();
                let names = [
                    format!("the model `{}`", sources.model.display()),
                    format!("the file of constants `{}`", constants.display()),
                    format!("the codebook `{}`", metadata.display()),
                ];
                saved.check_model(&model, [&names[0], &names[1], &names[2]])?;
            }
            None => RunDirectory::check(&self.place, self.overwrite).map_err(|error| {
                let advice = place_advice(&error);
                Failure::input(error).and_maybe(advice)
            })?,
        }
        let session = sources.ledger.as_ref().map(Session::open).transpose()?;
        set_threads(sources.threads)?;
        let algorithm = self.analysis.sampler()?;
        let vault = match leader {
            None => sources.load(model, None)?,
            Some(_) if sources.split.is_some() => {
                return Err(Failure::input(
                    "--hold-out divides the table by the places of its records, which no rank knows: start one process",
                ));
            }
            Some(_) if !algorithm.is_private() => {
                return Err(Failure::input(format!(
                    "`{}` adds up floating-point numbers, whose sum depends on how the records are divided: start one process",
                    algorithm.name
                )));
            }
            Some(leader) => sources.load_with(leader, model)?,
        };
        let n_is_private = algorithm.is_private() && !sources.relation.n_is_public();
        if vault.n() == 0 && !n_is_private {
            return Err(Failure::input(LoadError::no_rows()));
        }
        let origin = self.origin(&file);
        if algorithm.is_private() {
            self.private(&vault, session.as_ref(), saved, origin)
        } else {
            self.not_private(&vault, origin)
        }
    }

    /// Where the run came from, for `config.json`.
    fn origin(&self, file: &ModelFile) -> Value {
        let sources = &self.sources;
        let constants = file.constants_path(sources.constants.as_deref());
        json!({
            "model": sources.model.display().to_string(),
            "data": published_name(&sources.data),
            "constants": constants.map(|p| p.display().to_string()),
            "metadata": sources.metadata.as_ref().map(|p| p.display().to_string()),
            "init": sources.init,
            "columns": sources.reading.columns,
            "on_bad_rows": sources.reading.on_bad_rows.name(),
            "multiline_records": sources.reading.multiline_records,
            "max_memory": sources.reading.max_memory,
            "spill_dir": sources.reading.spill_dir.as_ref().map(|p| p.display().to_string()),
            "no_spill": sources.reading.no_spill,
            "threads": sources.threads,
            "ledger": sources.ledger.as_ref().map(|p| p.display().to_string()),
        })
    }

    fn private(
        &self,
        vault: &Vault,
        session: Option<&Session>,
        saved: Option<SavedRun>,
        origin: Value,
    ) -> Result<(), Failure> {
        let (common, analysis, sources) = (self.common, &self.analysis, &self.sources);
        let unit = sources.reading.unit();
        let asked = (analysis.epsilon(), sources.delta.map(Real::of_parts));
        let (promise, default_delta) = promise(asked, sources.relation, unit, vault.n() as u64)?;
        let promise = promise.about(vault)?;
        let prepared = analysis.prepare(vault.density().model(), promise)?;
        let (plan, lengths) = (&prepared.plan, prepared.lengths);
        if let Some(saved) = &saved {
            saved.check_plan(plan)?;
        }
        let delta = prepared.promise.delta.to_f64();
        if default_delta {
            let whose = match unit {
                None => "records",
                Some(_) => "units",
            };
            common.say(format!(
                "delta was not given: taking 0.1 / number of {whose} = {delta:.3e}"
            ));
        }
        let described = describe(plan, lengths.num_warmup, lengths.num_samples);
        let foretold = prepared.foreseen.as_ref().map(Foreseen::line);
        let warnings = plan.warnings.iter().map(|w| format!("warning: {w}"));
        let clipping = prepared.clips.lines().into_iter();
        for line in (described.into_iter().chain(clipping))
            .chain(foretold)
            .chain(warnings)
        {
            common.say(in_flags(&line));
        }
        let secure_noise = analysis.noise_seed().is_none();
        if !secure_noise {
            say_always("NOT PRIVATE: the noise is made from --insecure-noise-seed");
        }
        let job = Job {
            analysis,
            vault,
            initial: analysis.initial(vault.density())?,
            charge: session.map_or(Charge::Nothing, Charge::Session),
            prepared,
        };
        if let (None, Some(session)) = (&saved, session) {
            let quote = charge::quote(session, &job.prepared.promise, &job.prepared.plan)?;
            common.say(charge::line(&quote));
        }
        let saved = match saved {
            Some(saved) => saved,
            None => {
                let caller = Caller {
                    command: json!(sources),
                    origin,
                    no_report: sources.no_report,
                };
                SavedRun::create(&self.place, self.overwrite, &job, caller)?
            }
        };
        let shown = Shown {
            plan: &job.prepared.plan,
            audience: self.audience,
        };
        let ended = run_private(&job, Some(saved), &shown).map_err(not_begun)?;
        self.say_settled(&ended);
        let fit = ended.fit?;
        let Some(saved) = ended.saved else {
            return Err(Failure::interrupted(
                "interrupted before the first release: nothing was charged, and nothing is written",
            ));
        };
        for line in fit.what_was_learnt() {
            common.say(line);
        }
        let files = fit.files();
        let written = saved.write(files).map_err(|error| {
            Failure::run(error).and(format!(
                "The draws that were made are kept, and the run stays charged; once there is room on the disk they can still be written. {}",
                how_to_resume(&self.place)
            ))
        })?;
        self.say_written(files, &written);
        self.say_interruptions(files, job.prepared.plan.iterations_per_chain)?;
        if secure_noise {
            let promise = &job.prepared.promise;
            common.say(format!(
                "epsilon spent {} of {} at delta {delta:e}{}",
                figure(fit.epsilon()),
                figure(promise.epsilon.to_f64()),
                unproved(&job.prepared.plan),
            ));
        } else {
            say_always("NOT PRIVATE: noise from a seed");
        }
        Ok(())
    }

    /// The exact samplers, and a private sampler's dynamics without privacy.
    fn not_private(&self, vault: &Vault, origin: Value) -> Result<(), Failure> {
        let unit = self.sources.reading.unit();
        let job = OpenJob::new(&self.analysis, vault, unit, self.sources.relation)?;
        say_always("NOT PRIVATE: this run uses exact values of the data");
        let (chains, iterations) = job.size();
        let progress = Progress::new((chains, false), iterations, &[], None, self.audience);
        let files = job.sample(NotPrivate::acknowledged(), &progress);
        drop(progress);
        let files = files?;
        if files.is_unfinished() && files.num_samples == 0 {
            return Err(Failure::interrupted(
                "interrupted before the end of warm-up: there are no draws, and nothing is written",
            ));
        }
        let written = files
            .write(
                &self.place,
                self.overwrite,
                !self.sources.no_report,
                &origin,
            )
            .map_err(Error::from)?;
        self.say_written(&files, &written);
        say_always("NOT PRIVATE: do not publish these draws");
        if files.is_unfinished() {
            return Err(Failure::interrupted(format!(
                "interrupted: the {} draws so far of each chain are written. Only private runs, whose releases cost budget, can be resumed",
                files.num_samples
            )));
        }
        Ok(())
    }

    fn say_settled(&self, ended: &EndedRun) {
        match &ended.settled {
            Some(Ok(Outcome::NothingReleased)) => self
                .common
                .say("nothing was released, so the ledger's charge is lifted"),
            Some(Err(error)) => self.common.say(format!(
                "warning: the ledger could not note how the run ended, so it stays charged as if the run had died: {error}"
            )),
            Some(Ok(_)) | None => {}
        }
    }

    fn say_written(&self, files: &RunFiles, written: &Written) {
        let common = self.common;
        let place = &written.place;
        if written.lacks_report {
            common.say(format!(
                "note: no report was made; `dpm report {}` says why",
                place.display()
            ));
        }
        if files.num_samples > 0 {
            self.show(files);
        }
        // How far an interrupted run came tells how long an iteration takes, and with it the number
        // of records: --quiet says nothing of it, nor of draws that are counted in a verdict.
        let silent = files.is_unfinished() && common.quiet;
        if files.num_samples > 0 && !silent {
            say_verdicts(place, &files.diagnosis, common);
        }
        common.say(format!("written to {}", place.display()));
    }

    fn show(&self, files: &RunFiles) {
        const SHOWN: usize = 20;
        let summary = files.draws.summary();
        let total = summary.rows.len();
        let first = Summary {
            rows: summary.rows.into_iter().take(SHOWN).collect(),
        };
        self.common.say(first.to_table().trim_end());
        if total > SHOWN {
            self.common
                .say(format!("... and {} more: see summary.csv", total - SHOWN));
        }
        let acceptance = files.chains.iter().map(|c| format!("{:.2}", c.acceptance));
        let acceptance: Vec<String> = acceptance.collect();
        self.common
            .say(format!("accepted: {}", acceptance.join(" ")));
    }

    /// Says what a run lost, and how to resume one that is not finished.
    ///
    /// # Errors
    ///
    /// The run is not finished, or has no draws.
    fn say_interruptions(&self, files: &RunFiles, iterations: u64) -> Result<(), Failure> {
        let lost: u64 = files.chains.iter().map(|chain| chain.lost).sum();
        if lost > 0 {
            self.common.say(format!(
                "{lost} iterations (all chains together) were lost in interruptions: they are charged, and have no draws"
            ));
        }
        if files.is_unfinished() {
            let over = files.chains.iter().map(|c| c.draws.len() as u64 + c.lost);
            let over = over.min().unwrap_or(0);
            let so_far = match files.num_samples {
                // How far it came tells how long an iteration takes.
                _ if self.common.quiet => "interrupted".to_owned(),
                0 => format!(
                    "interrupted after {over} of {iterations} iterations; there are no draws yet, since warm-up was not over"
                ),
                n => format!(
                    "interrupted after {over} of {iterations} iterations; the {n} draws so far of each chain are written"
                ),
            };
            let advice = how_to_resume(&self.place);
            return Err(Failure::interrupted(format!("{so_far}. {advice}")));
        }
        if files.num_samples == 0 {
            return Err(Failure::run(
                "interruptions lost all iterations of a chain after warm-up, so there are no draws: begin another run, with its own charge",
            ));
        }
        Ok(())
    }
}

/// Shows how a private run goes.
struct Shown<'a> {
    plan: &'a Plan,
    audience: Audience,
}

impl Watch for Shown<'_> {
    fn observer<'m>(&'m self, meter: &'m Meter, done: &[u64]) -> Box<dyn Observer + 'm> {
        let request = &self.plan.request;
        let spending = Spending {
            meter,
            relation: request.relation,
            total: request.epsilon.to_f64(),
            delta: request.delta,
        };
        Box::new(Progress::new(
            (
                request.chains as usize,
                request.algorithm.learner().is_some(),
            ),
            self.plan.iterations_per_chain,
            done,
            Some(spending),
            self.audience,
        ))
    }
}

/// A run that could not be charged.
fn not_begun(error: Error) -> Failure {
    let is_lost = matches!(
        error,
        Error::Session(LedgerError::Write { .. } | LedgerError::Watermark { .. })
    );
    let failure = Failure::from(error);
    if is_lost {
        failure.and("The run is refused, and has released nothing")
    } else {
        failure
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::super::Cli;
    use super::*;

    // If it failed: a setting that a run has fixed before would be taken next to --resume, and
    // nobody would look at it.
    #[test]
    fn whatever_a_run_has_settled_is_refused_beside_resume() {
        let program = Cli::command();
        let sample = program.find_subcommand("sample").unwrap();
        let in_group = |id: &clap::Id| {
            let of_settled = sample.get_groups().filter(|group| {
                let name = group.get_id().as_str();
                SETTLED.contains(&name)
            });
            of_settled
                .flat_map(|group| group.get_args())
                .any(|arg| arg == id)
        };
        let free = ["resume", "threads", "progress", "color", "quiet", "help"];
        for argument in sample.get_arguments() {
            let id = argument.get_id();
            let settled = SETTLED.contains(&id.as_str()) || in_group(id);
            assert_ne!(settled, free.contains(&id.as_str()), "{id}");
        }
    }
}
