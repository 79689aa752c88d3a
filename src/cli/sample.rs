//! `dpm sample`: the main job.

mod resume;
mod without_privacy;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::clip_bounds::ClipBounds;
use super::data_file::DataSettings;
use super::diagnose;
use super::failure::Failure;
use super::foreseen::{self, Foreseen};
use super::headings;
use super::initial::initial_values;
use super::ledger::{self, Account};
use super::model_file::ModelFile;
use super::plan::{figure, unproved};
use super::report;
use super::run_settings::{Lengths, RunSettings, refuse_foreign};
use super::summary::marked_csv;
use super::{Common, pretty, say_always};
use crate::density::Density;
use crate::diagnostics::Summary;
use crate::output::stan_csv::{Metric, StanCsvHeader};
use crate::output::{
    PrivateRun, RECORD, RunDirectory, Unfinished, chain_csv, private_report, sampled,
};
use crate::privacy::{LoadError, NotPrivate, PrivateRng, Subsampling, Vault};
use crate::sampler::{
    self, ALGORITHMS, Algorithm, Chain, DEFAULT_MAX_DEPTH, Initial, Kind, MetricForm, NoiseChoice,
    Plan, PrivateSettings, Question, SampleError,
};
use crate::syntax::did_you_mean;

use resume::{Kept, Ran};

/// The form of the metric, as CmdStan names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum MetricChoice {
    Unit,
    Diag,
    Dense,
}

impl From<MetricChoice> for MetricForm {
    fn from(choice: MetricChoice) -> MetricForm {
        match choice {
            MetricChoice::Unit => MetricForm::Unit,
            MetricChoice::Diag => MetricForm::Diagonal,
            MetricChoice::Dense => MetricForm::Dense,
        }
    }
}

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_SHORT_HELP, after_long_help = after_long_help())]
pub(super) struct Arguments {
    /// The model
    #[arg(required_unless_present = "resume")]
    model: Option<PathBuf>,
    /// The data: CSV with a header line, may be gzipped
    #[arg(required_unless_present = "resume")]
    data: Option<PathBuf>,
    #[command(flatten)]
    settings: RunSettings,
    /// Public constants (default: MODEL with .constants.json for .dpm, where that exists)
    #[arg(long, value_name = "FILE.json", help_heading = headings::DATA)]
    constants: Option<PathBuf>,
    /// Sampler, one of those that --help lists [default: dp-laplace, which needs no settings; dp-hmc where one of its settings is given]
    #[arg(
        long,
        value_name = "NAME",
        help_heading = headings::CHAINS,
        value_hint = clap::ValueHint::Other
    )]
    algorithm: Option<String>,
    /// Allow a sampler without privacy; everything it writes is marked NOT PRIVATE
    #[arg(long, help_heading = headings::CHAINS)]
    not_private: bool,
    /// What warm-up estimates of the posterior's scales [default: unit where private or clipped, diagonal for nuts, dense for hmc and rwmh up to 50 parameters]
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        help_heading = headings::STEPS,
        hide_short_help = true
    )]
    metric: Option<MetricChoice>,
    /// Without privacy: most doublings of a nuts trajectory [default: 10]
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=20),
        help_heading = headings::STEPS,
        hide_short_help = true
    )]
    max_depth: Option<u32>,
    /// Mean acceptance that warm-up aims at [default: dp-hmc 0.5, dp-penalty 0.3, dp-barker 0.25, nuts and (clipped-)hmc 0.8, (clipped-)rwmh 0.234]
    #[arg(long, value_name = "P", help_heading = headings::STEPS, hide_short_help = true)]
    target_acceptance: Option<f64>,
    /// The budget of these data, as made by `dpm ledger create`: the run is charged to it, or refused
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
    /// Initial values: `random`, or a JSON file with an object of parameter values (or a list of them, one per chain)
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
    /// Seed of the public randomness: momenta, jitter, initial values; never of the noise
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
    /// Threads (default: one per core)
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "N",
        help_heading = headings::CHAINS,
        hide_short_help = true
    )]
    threads: Option<usize>,
    /// Go on with a private run that was interrupted or killed, on the charge it has and with its settings; of other flags only --threads, --quiet and --color
    #[arg(
        long,
        value_name = "RUN",
        conflicts_with_all = resume::SETTLED,
        help_heading = headings::OUTPUT
    )]
    resume: Option<PathBuf>,
    /// Directory of the run [default: MODEL-run]
    #[arg(long, value_name = "DIR", help_heading = headings::OUTPUT)]
    out: Option<PathBuf>,
    /// Replace an earlier run
    #[arg(long, help_heading = headings::OUTPUT)]
    overwrite: bool,
    /// Do not write report.html, which `dpm report` can make later
    #[arg(long, help_heading = headings::OUTPUT, hide_short_help = true)]
    no_report: bool,
}

const AFTER_SHORT_HELP: &str = "\
Example: dpm sample models/adult_income.dpm models/adult_income.csv.gz --epsilon 1 --delta 1e-6

`dpm sample --help` lists all options, and the samplers.";

fn after_long_help() -> String {
    let mut text = String::from(
        "Example: dpm sample models/adult_income.dpm models/adult_income.csv.gz --epsilon 1 --delta 1e-6\n\nSamplers, and the flags that each has beside the common ones:\n",
    );
    for algorithm in ALGORITHMS {
        let _ = write!(
            text,
            "  {}: {}\n      {}\n",
            algorithm.name,
            algorithm.summary,
            algorithm.settings.join(" ")
        );
    }
    text.push_str(
        "\nThe run directory holds chain-1.csv ... (Stan CSV), summary.csv, privacy.json, config.json, the model and its constants, and report.html, a page about all of it.\n\nCtrl-C stops after the iterations under way, writes the draws so far and ends with exit code 130; a second one ends at once. `dpm sample --resume RUN` goes on with a private run, also after a kill or a full disk, at no further charge. A ledger sees to it that no copy of a run goes on as well; without one, never go on with a copy.",
    );
    text
}

/// The sampler of that name.
pub(super) fn known_algorithm(name: &str) -> Result<&'static Algorithm, Failure> {
    if let Some(algorithm) = sampler::lookup(name) {
        return Ok(algorithm);
    }
    let known = ALGORITHMS.iter().map(|a| a.name);
    let hint = did_you_mean(name, known)
        .map(|s| format!(" (did you mean `{s}`?)"))
        .unwrap_or_default();
    Err(Failure::input(format!(
        "there is no sampler `{name}`{hint}; there are {}",
        list_of_algorithms()
    )))
}

fn list_of_algorithms() -> String {
    let names: Vec<String> = ALGORITHMS.iter().map(|a| format!("`{}`", a.name)).collect();
    names.join(", ")
}

impl Arguments {
    /// Required, unless a run goes on, whose arguments are those it began with.
    fn model(&self) -> &Path {
        self.model.as_deref().unwrap_or(Path::new(""))
    }

    /// The sampler's name, as given or by the settings that are.
    fn algorithm(&self) -> &str {
        let given = [self.metric.is_some(), self.target_acceptance.is_some()];
        match &self.algorithm {
            Some(name) => name,
            None => self.settings.default_algorithm(given.contains(&true)),
        }
    }

    fn data(&self) -> &Path {
        self.data.as_deref().unwrap_or(Path::new(""))
    }
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    match &arguments.resume {
        Some(place) => resume::run(place, arguments, common),
        None => begin(arguments, None, common),
    }
}

/// A new run, or one that goes on from what was kept.
fn begin(arguments: &Arguments, kept: Option<Kept>, common: &Common) -> Result<(), Failure> {
    let algorithm = known_algorithm(arguments.algorithm())?;
    check_usage(arguments, algorithm)?;
    let file = ModelFile::read(arguments.model(), common)?;
    file.show_warnings(common);
    let model = file.bind(arguments.constants.as_deref(), common)?;
    let place = match (&kept, &arguments.out) {
        (Some(kept), _) => kept.store.place().to_path_buf(),
        (None, Some(out)) => out.clone(),
        (None, None) => PathBuf::from(format!("{}-run", file.stem())),
    };
    match &kept {
        Some(kept) => kept.check_model(&file, arguments)?,
        None => RunDirectory::check(&place, arguments.overwrite).map_err(Failure::input)?,
    }
    let account = arguments.ledger.as_deref().map(Account::open).transpose()?;
    set_threads(arguments.threads)?;
    let rows = arguments.reading.load(arguments.data(), &model.columns)?;
    let vault = Vault::new(Density::new(model), rows);
    let settings = &arguments.settings;
    let n_is_private = algorithm.is_private() && settings.public_n(0).is_none();
    if vault.n() == 0 && !n_is_private {
        return Err(Failure::input(LoadError::no_rows()));
    }
    let initial = initial_values(&arguments.init, arguments.settings.chains, vault.density())?;
    let job = Job {
        arguments,
        common,
        file: &file,
        vault: &vault,
        initial,
        place: &place,
        account,
        kept,
    };
    match algorithm.kind {
        Kind::Private(_) => job.private(algorithm),
        Kind::Exact => job.not_private(algorithm),
        Kind::Open(_) | Kind::Clipped(_) => job.reference(algorithm),
    }
}

fn check_usage(arguments: &Arguments, algorithm: &Algorithm) -> Result<(), Failure> {
    let is_private = algorithm.is_private();
    if is_private && arguments.not_private {
        return Err(Failure::input(format!(
            "`{}` is private; --not-private goes with `--algorithm hmc`",
            arguments.algorithm()
        )));
    }
    if !is_private && !arguments.not_private {
        return Err(Failure::input(format!(
            "`{}` gives no privacy at all: add --not-private if that is meant",
            arguments.algorithm()
        )));
    }
    if !is_private && (arguments.settings.epsilon.is_some() || arguments.settings.delta.is_some()) {
        return Err(Failure::input(format!(
            "--epsilon and --delta mean nothing for `{}`, which is not private: leave them out",
            arguments.algorithm()
        )));
    }
    if arguments.ledger.is_some() && !is_private {
        return Err(Failure::input(format!(
            "`{}` is not private, so there is no charge that could cover it: leave --ledger out, and do not publish what it writes",
            arguments.algorithm()
        )));
    }
    if arguments.ledger.is_some() && arguments.reading.unit() == Some(RECORD) {
        return Err(Failure::input(format!(
            "in a ledger the unit `{RECORD}` is a row, and not a column of that name: call the column something else"
        )));
    }
    if arguments.ledger.is_some() && arguments.insecure_noise_seed.is_some() {
        return Err(Failure::input(
            "noise from --insecure-noise-seed is not private, so there is no charge that could cover it: leave one of it and --ledger out",
        ));
    }
    refuse_foreign(
        algorithm,
        &[
            ("--metric", arguments.metric.is_some()),
            ("--max-depth", arguments.max_depth.is_some()),
            ("--target-acceptance", arguments.target_acceptance.is_some()),
        ],
    )?;
    // The others take the step size as a first one.
    let fixes_steps = matches!(algorithm.kind, Kind::Private(_) | Kind::Clipped(_));
    if fixes_steps
        && arguments.target_acceptance.is_some()
        && arguments.settings.step_size.is_some()
    {
        return Err(Failure::input(
            "--target-acceptance adapts the step size, which --step-size fixes: leave one of them out",
        ));
    }
    if arguments
        .target_acceptance
        .is_some_and(|p| !(p > 0.0 && p < 1.0))
    {
        return Err(Failure::input(
            "--target-acceptance is a number between 0 and 1",
        ));
    }
    if arguments.thin == 0 {
        return Err(Failure::input("--thin must be at least 1"));
    }
    arguments.settings.check(algorithm)
}

fn set_threads(threads: Option<usize>) -> Result<(), Failure> {
    let Some(threads) = threads else {
        return Ok(());
    };
    if threads == 0 {
        return Err(Failure::input("--threads must be at least 1"));
    }
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build_global()
        .map_err(Failure::run)
}

/// Everything is read and checked; now the work.
struct Job<'a> {
    arguments: &'a Arguments,
    common: &'a Common,
    file: &'a ModelFile,
    vault: &'a Vault,
    initial: Initial,
    place: &'a Path,
    /// The ledger to charge.
    account: Option<Account>,
    /// Of a run that goes on.
    kept: Option<Kept>,
}

/// What is written beside the draws.
struct Papers<'a> {
    report: &'a Value,
    config: Value,
    /// For the comments of the chains' files.
    keys: Vec<(String, String)>,
    metric: MetricForm,
    /// The state of a run that keeps one.
    store: Option<&'a Unfinished>,
}

impl Job<'_> {
    fn private(mut self, algorithm: &'static Algorithm) -> Result<(), Failure> {
        let settings = &self.arguments.settings;
        let n = settings.public_n(self.vault.n() as u64);
        let (epsilon, delta, default_delta) = settings.budget(n)?;
        let model = self.vault.density().model();
        let unit = self.arguments.reading.unit();
        let clips = ClipBounds::choose(settings, algorithm, model, unit)?;
        let (plan, lengths, foreseen) =
            foreseen::plan(settings, algorithm, n, model, &clips, unit.is_some())?;
        let goes_on = self.kept.take();
        if let Some(kept) = &goes_on {
            kept.check_plan(&plan)?;
        }
        if default_delta {
            self.common.say(format!(
                "delta was not given: taking 0.1 / number of {} = {:.3e}",
                match self.arguments.reading.unit() {
                    None => "records",
                    Some(_) => "units",
                },
                delta.to_f64()
            ));
        }
        let described = super::plan::describe(&plan, lengths.num_warmup, lengths.num_samples);
        let foretold = foreseen.as_ref().map(Foreseen::line);
        for line in described.into_iter().chain(clips.lines()).chain(foretold) {
            self.common.say(line);
        }
        for warning in &plan.warnings {
            self.common.say(format!("warning: {warning}"));
        }
        let noise = match self.arguments.insecure_noise_seed {
            None => PrivateRng::from_os().map_err(Failure::run)?,
            Some(seed) => {
                say_always("NOT PRIVATE: the noise is made from --insecure-noise-seed");
                PrivateRng::insecure(seed, NotPrivate::acknowledged())
            }
        };
        let secure_noise = noise.is_secure();
        let unit = self.arguments.reading.unit().unwrap_or(RECORD);
        if goes_on.is_none()
            && let Some(account) = &self.account
        {
            self.common.say(ledger::line(&account.quote(&plan, unit)?));
        }
        let run = PrivateSettings {
            num_warmup: lengths.num_warmup,
            initial: self.initial.clone(),
            seed: self.arguments.seed,
            noise,
            metric: self.adapted_metric(),
            target_acceptance: self.arguments.target_acceptance,
        };
        let Ran {
            kept,
            chains,
            released,
            start,
        } = self.run_kept(goes_on, run, &plan)?;
        let unfinished = chains.iter().any(|chain| chain.interrupted);
        let lost = chains.iter().map(|chain| chain.lost).sum();
        // The schedule was fixed beforehand and is charged whole: how much of it
        // the chains happened to use depends on what was released.
        let spent = plan.epsilon();
        let report = private_report(&PrivateRun {
            epsilon: epsilon.to_f64(),
            delta: delta.to_f64(),
            epsilon_spent: spent,
            relation: plan.request.relation,
            unit: self.arguments.reading.unit(),
            guarantee: &plan.guarantee,
            events: &plan.events,
            released: &released,
            ledger: kept.ledger(),
            secure_noise,
            unfinished,
            lost_iterations: lost,
            tempered: plan.request.temperature != 1.0,
            clipping: clips.report(&plan),
        });
        let used = |flag: &str| algorithm.settings.contains(&flag);
        for line in start.iter().flat_map(|start| start.describe(&plan)) {
            self.common.say(line);
        }
        let split = match plan.request.noise {
            NoiseChoice::FromBudget { split } if used("--noise-split") => Some(split),
            _ => None,
        };
        let mut config = self.config(lengths, plan.request.chains);
        merge(
            &mut config,
            json!({
                "epsilon": epsilon.to_f64(),
                "delta": delta.to_f64(),
                "relation": plan.request.relation.name(),
                "leapfrog_steps": used("--leapfrog-steps").then_some(plan.request.leapfrog_steps),
                "batch_rate": used("--batch-rate").then(|| batch_rate(&plan)).flatten(),
                "batch_size": used("--batch-size").then(|| batch_size(&plan)).flatten(),
                "step_decay": plan.request.step_decay,
                "friction": plan.request.friction,
                "noise_estimate": used("--noise-estimate").then_some(plan.request.noise_estimate),
                "one_component": plan.request.one_component,
                "guided_walk": plan.request.guided_walk,
                "ledger": self.arguments.ledger.as_ref().map(|p| p.display().to_string()),
                "accountant": plan.guarantee.accountant.name(),
                "step_size": plan.step_size(),
                "noise_split": split,
                "clip_gradient": used("--clip-gradient").then_some(plan.request.clip_gradient),
                "clip_log_ratio": used("--clip-log-ratio").then_some(plan.request.clip_log_ratio),
                "tau_gradient": plan.tau(Question::Gradient),
                "tau_log_ratio": plan.tau(Question::LogRatio),
                "fresh_gradients": plan.request.fresh_gradients,
                "fixed_steps": plan.request.fixed_steps,
                "insecure_noise_seed": self.arguments.insecure_noise_seed,
                "start_share": used("--start-share").then_some(plan.request.start_share),
                "gradients_per_draw": used("--gradients-per-draw").then_some(plan.request.gradients_per_draw),
                "foreseen": foreseen.as_ref().map(Foreseen::json),
                "start": start.as_ref().map(|start| start.report(&plan)),
                "noise": plan.noise_scales(),
                "plan_warnings": plan.warnings,
            }),
        );
        let mut keys = vec![
            ("privacy_private".to_string(), secure_noise.to_string()),
            ("privacy_epsilon".into(), epsilon.to_f64().to_string()),
            ("privacy_delta".into(), delta.to_f64().to_string()),
            (
                "privacy_relation".into(),
                plan.request.relation.name().into(),
            ),
        ];
        if !secure_noise {
            keys.push(("privacy_note".into(), "NOT_PRIVATE".into()));
        }
        let papers = Papers {
            report: &report,
            config,
            keys,
            metric: self.adapted_metric(),
            store: Some(&kept.store),
        };
        let written = self.write(&chains, lengths, papers);
        let draws = written.map_err(|failure| {
            failure.and(format!(
                "The draws that were made are kept, and the run stays charged; with room on the disk they can still be had. {}",
                kept.advice()
            ))
        })?;
        self.tell_of_interruptions(&kept, &chains, &plan, draws)?;
        if secure_noise {
            self.common.say(format!(
                "epsilon spent {} of {} at delta {:e}{}",
                figure(spent),
                figure(epsilon.to_f64()),
                delta.to_f64(),
                unproved(&plan),
            ));
        } else {
            say_always("NOT PRIVATE: noise from a seed");
        }
        Ok(())
    }

    /// The metric that warm-up adapts, where none is asked for unless given.
    fn adapted_metric(&self) -> MetricForm {
        self.arguments
            .metric
            .map_or(MetricForm::Unit, MetricForm::from)
    }

    /// Settings of every run.
    fn config(&self, lengths: Lengths, chains: u64) -> Value {
        let a = self.arguments;
        let constants = self.file.constants_path(a.constants.as_deref());
        json!({
            "model": a.model().display().to_string(),
            "data": a.data().display().to_string(),
            "constants": constants.map(|p| p.display().to_string()),
            "algorithm": a.algorithm(),
            "not_private": a.not_private,
            "chains": chains,
            "num_warmup": lengths.num_warmup,
            "num_samples": lengths.num_samples,
            "thin": a.thin,
            "temperature": a.settings.temperature,
            "init": a.init,
            "seed": a.seed,
            "columns": a.reading.columns,
            "unit": a.reading.unit().unwrap_or(RECORD),
            "on_bad_rows": a.reading.on_bad_rows.name(),
            "multiline_records": a.reading.multiline_records,
            "threads": a.threads,
            "metric": a.metric.map(|m| metric_name(m.into())),
            "max_depth": a.max_depth,
            "target_acceptance": a.target_acceptance,
            "private": sampler::lookup(a.algorithm()).is_some_and(Algorithm::is_private)
                && a.insecure_noise_seed.is_none(),
            "version": env!("CARGO_PKG_VERSION"),
        })
    }

    /// Writes the directory of a run, and gives the number of draws of each chain before
    /// thinning. Chains that were interrupted end at different iterations; all are written
    /// as far as the shortest, since readers want them alike. Without draws there are no
    /// chains, and no summary.
    fn write(&self, chains: &[Chain], lengths: Lengths, papers: Papers) -> Result<usize, Failure> {
        let density = self.vault.density();
        let names: Vec<String> = density.output_names().map(str::to_string).collect();
        let shortest = chains.iter().map(|chain| sampled(chain).count()).min();
        let num_samples = shortest.unwrap_or(0);
        let run = match papers.store {
            Some(store) => RunDirectory::of_unfinished(store),
            None => RunDirectory::create(self.place, self.arguments.overwrite),
        }
        .map_err(Failure::run)?;
        let mut kept: Vec<Vec<Vec<f64>>> = Vec::new();
        let written = match num_samples {
            0 => &[],
            _ => chains,
        };
        for (i, chain) in written.iter().enumerate() {
            let header = StanCsvHeader {
                model: self.file.stem(),
                id: i as u32 + 1,
                num_samples,
                num_warmup: lengths.num_warmup as usize,
                thin: self.arguments.thin as usize,
                algorithm: self.arguments.algorithm().to_owned(),
                metric: match papers.metric {
                    MetricForm::Unit => Metric::Unit,
                    MetricForm::Diagonal => Metric::Diagonal,
                    MetricForm::Dense => Metric::Dense,
                },
                max_depth: (self.arguments.algorithm() == "nuts")
                    .then(|| self.arguments.max_depth.unwrap_or(DEFAULT_MAX_DEPTH)),
                extra: papers.keys.clone(),
            };
            let (text, draws) = chain_csv(chain, header, &names).map_err(Failure::run)?;
            run.write(&format!("chain-{}.csv", i + 1), &text)
                .map_err(Failure::run)?;
            kept.push(draws);
        }
        let names: Vec<String> = names
            .iter()
            .map(|n| crate::diagnostics::bracket_name(n))
            .collect();
        let summary = match num_samples {
            0 => None,
            _ => Some(Summary::of_draws(&names, &kept).map_err(Failure::run)?),
        };
        let private = papers.report["private"] == Value::Bool(true);
        let unfinished = chains.iter().any(|chain| chain.interrupted);
        let mut config = papers.config;
        merge(&mut config, json!({ "unfinished": unfinished }));
        let files = [
            summary
                .as_ref()
                .map(|summary| ("summary.csv", marked_csv(summary, private))),
            Some(("config.json", pretty(&config))),
            Some((report::MODEL, self.file.source.clone())),
            self.file
                .constants_text(self.arguments.constants.as_deref())?
                .map(|text| (report::CONSTANTS, text)),
        ];
        for (name, text) in files.into_iter().flatten() {
            run.write(name, &text).map_err(Failure::run)?;
        }
        let mut report = papers.report.clone();
        let diagnosis = match num_samples {
            0 => None,
            _ => diagnose::of_draws(run.path(), &config, &report),
        };
        if let Some(diagnosis) = &diagnosis {
            merge(&mut report, diagnosis.to_report());
        }
        run.write("privacy.json", &pretty(&report))
            .map_err(Failure::run)?;
        if !self.arguments.no_report {
            report::write_beside(&run, self.place, self.common)?;
        }
        if let Some(store) = papers.store.filter(|_| unfinished) {
            store.copy_into(&run).map_err(Failure::run)?;
        }
        let place = run
            .publish(self.arguments.overwrite)
            .map_err(Failure::run)?;
        if let Some(summary) = &summary {
            self.show(chains, summary);
        }
        // How far an interrupted run came tells how long an iteration takes, and with it the number
        // of records: --quiet says nothing of it, nor of draws that are counted in a verdict.
        let silent = unfinished && self.common.quiet;
        if let Some(diagnosis) = diagnosis.as_ref().filter(|_| !silent) {
            diagnose::say_verdicts(&place, diagnosis, self.common);
        }
        self.common.say(format!("written to {}", place.display()));
        Ok(num_samples)
    }

    fn show(&self, chains: &[Chain], summary: &Summary) {
        const SHOWN: usize = 20;
        let total = summary.rows.len();
        let first = Summary {
            rows: summary.rows.iter().take(SHOWN).cloned().collect(),
        };
        self.common.say(first.to_table().trim_end());
        if total > SHOWN {
            self.common
                .say(format!("... and {} more: see summary.csv", total - SHOWN));
        }
        let acceptance: Vec<String> = chains
            .iter()
            .map(|c| format!("{:.2}", c.acceptance))
            .collect();
        self.common
            .say(format!("accepted: {}", acceptance.join(" ")));
    }
}

fn metric_name(form: MetricForm) -> &'static str {
    match form {
        MetricForm::Unit => "unit",
        MetricForm::Diagonal => "diag",
        MetricForm::Dense => "dense",
    }
}

/// The rate of a plan's Poisson batches.
fn batch_rate(plan: &Plan) -> Option<f64> {
    plan.lines
        .iter()
        .find_map(|line| match line.line.subsampling {
            Subsampling::Poisson(rate) => Some(rate.rate().to_f64()),
            Subsampling::All | Subsampling::FixedSize(_) => None,
        })
}

/// The size of a plan's batches of fixed size.
fn batch_size(plan: &Plan) -> Option<u64> {
    plan.lines
        .iter()
        .find_map(|line| match line.line.subsampling {
            Subsampling::FixedSize(size) => Some(size),
            Subsampling::All | Subsampling::Poisson(_) => None,
        })
}

fn failed_run(error: SampleError) -> Failure {
    match error {
        SampleError::BadInitialPoint | SampleError::Plan(_) => Failure::input(error),
        _ => Failure::run(error),
    }
}

fn merge(into: &mut Value, more: Value) {
    if let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) {
        into.extend(more);
    }
}
