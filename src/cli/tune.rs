//! `dpm tune`: good settings, found on records simulated from the model.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::failure::Failure;
use super::format::Format;
use super::headings;
use super::initial::{points_of, start_of};
use super::model_file::{CONSTANTS, METADATA, ModelFile, PUBLIC_SAMPLE, model_name};
use super::planned::{describe, json_of};
use super::progress::{CountProgress, ProgressFlag};
use super::run_settings::{RunSettings, SamplerFlags, SamplerName};
use super::words::flag;
use super::{Common, pretty, print, public_data};
use crate::accounting::Relation;
use crate::analysis::{AskedIterations, AskedLengths};
use crate::density::Density;
use crate::model::Model;
use crate::sampler::{DEFAULT_CHAINS, Setting, Settings};
use crate::tune::{Effort, Free, Recipe, Simulation, TuneError, Tuned, tune};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Simulates records from the model, with parameters drawn from its prior (or public guesses, --pilot)
and covariates uniform between their declared bounds (or from --public-sample), runs the sampler on
them with many settings under the budget, and prints the settings whose draws come closest to the
posterior. No data are read, so it costs no privacy; settings found by looking at private results
would. Settings that are given are kept.

Examples:
  dpm tune models/adult_income.dpm --rows 48842 --epsilon 4 --delta 1e-6 --simulate
  dpm tune models/adult_income.dpm --rows 48842 --epsilon 4 --delta 1e-6 --simulate --algorithm dp-penalty --tries 60")]
pub(super) struct Arguments {
    /// The model
    model: PathBuf,
    /// Number of records the run would have (of units, if it will protect units)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    rows: u64,
    #[command(flatten)]
    settings: RunSettings,
    /// Private sampler, listed by `dpm sample --help`
    #[arg(
        long,
        default_value = "dp-hmc",
        value_name = "NAME",
        help_heading = headings::CHAINS,
        value_parser = SamplerName::Private,
        hide_possible_values = true
    )]
    algorithm: String,
    /// Initial values of the run: `random`, or a JSON file as for `dpm sample`
    #[arg(long, default_value = "random", value_name = "FILE.json|random", help_heading = headings::CHAINS)]
    init: String,
    /// Tune on records simulated from the model (required: there is no other way so far)
    #[arg(long, help_heading = headings::SIMULATION)]
    simulate: bool,
    /// Simulate at these public guesses of the parameters, not at draws from the prior: a JSON object, or a list of them
    #[arg(long, value_name = "FILE.json", help_heading = headings::SIMULATION)]
    pilot: Option<PathBuf>,
    #[arg(long, value_name = "FILE.csv", help = PUBLIC_SAMPLE, help_heading = headings::SIMULATION)]
    public_sample: Option<PathBuf>,
    #[arg(long, value_name = "FILE.yaml", help = METADATA, help_heading = headings::SIMULATION)]
    metadata: Option<PathBuf>,
    #[arg(long, value_name = "FILE.json", help = CONSTANTS, help_heading = headings::SIMULATION)]
    constants: Option<PathBuf>,
    /// Draws from the prior at which records are simulated
    #[arg(
        long,
        default_value_t = 2,
        value_name = "N",
        conflicts_with = "pilot",
        value_parser = clap::value_parser!(u64).range(1..=100),
        help_heading = headings::SIMULATION
    )]
    points: u64,
    /// Records simulated at each of them; each stands for many
    #[arg(
        long,
        default_value_t = 300,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(10..=100_000),
        help_heading = headings::SIMULATION
    )]
    records: u64,
    /// Number of settings to try
    #[arg(long, default_value_t = 40, value_name = "N", help_heading = headings::SIMULATION)]
    tries: usize,
    /// Seed of everything random here
    #[arg(long, default_value_t = 1, value_name = "S", help_heading = headings::SIMULATION)]
    seed: u64,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text, help_heading = headings::OUTPUT)]
    format: Format,
    #[command(flatten)]
    progress: ProgressFlag,
    #[command(flatten)]
    sampler: SamplerFlags,
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let settings = &arguments.settings;
    let name = Some(arguments.algorithm.as_str());
    let mut analysis = settings.analysis(model_name(&arguments.model), name, &arguments.sampler)?;
    if let Some(start) = start_of(&arguments.init)? {
        analysis = analysis.start_at(start);
    }
    let algorithm = analysis.sampler()?;
    if !algorithm.is_private() {
        return Err(Failure::input(format!(
            "`{}` has no budget to tune for; nuts and hmc adapt on their own",
            arguments.algorithm
        )));
    }
    if !arguments.simulate {
        return Err(Failure::input(
            "give --simulate: settings are tuned on records simulated from the model, and no data are read",
        ));
    }
    if arguments.rows == 0 || arguments.tries == 0 {
        return Err(Failure::input("--rows and --tries must be at least 1"));
    }
    analysis.check(algorithm)?;
    let file = ModelFile::read(&arguments.model, common)?;
    let model = file.bind_guessed(
        arguments.constants.as_deref(),
        arguments.metadata.as_deref(),
        common,
    )?;
    let (promise, _) = settings.promise(arguments.rows, None)?;
    let request = analysis.request(&model, &promise)?;
    let free = Free::of(
        &arguments.sampler.0,
        algorithm,
        settings.lengths() == AskedLengths::default(),
    );
    let effort = Effort {
        records: arguments.rows,
        initial: analysis.initial(&Density::new(model.clone()))?,
        tries: arguments.tries,
        seed: arguments.seed,
    };
    let simulation = simulation(arguments, &model, common)?;
    let audience = arguments.progress.audience(common);
    let progress = CountProgress::new("settings", arguments.tries, audience);
    let tuned = tune(&simulation, &request, &free, &effort, |done, best| {
        let best = best.map(|mmd| format!("best MMD {mmd:.3}"));
        progress.done(done, &best.unwrap_or_default());
    });
    drop(progress);
    let tuned = tuned.map_err(|error| match error {
        TuneError::Plan(error) => crate::analysis::Error::from(error).into(),
        TuneError::Sample(_) => Failure::run(error),
        _ => Failure::input(error),
    })?;
    let mut flags = flags(&tuned, &free);
    flags.extend(kept(settings, &arguments.sampler.0));
    print(&match arguments.format {
        Format::Json => pretty(&json!({
            "settings": settings_json(&tuned),
            "flags": flags,
            "predicted": tuned.predicted,
            "tried": tuned.tried,
            "plan": json_of(&tuned.plan),
        })),
        Format::Text => text(arguments, &tuned, &flags),
    })
}

fn simulation(
    arguments: &Arguments,
    model: &Model,
    common: &Common,
) -> Result<Simulation, Failure> {
    let public = match &arguments.public_sample {
        Some(path) => Some(public_data::sample_of(path, &model.columns)?),
        None => None,
    };
    let recipe = Recipe {
        records: arguments.records as usize,
        public,
        seed: arguments.seed,
    };
    if let Some(pilot) = &arguments.pilot {
        let density = Density::new(model.clone());
        let points = points_of(&pilot.display().to_string(), &density)?;
        return Ok(Simulation::at_points(model, points, &recipe));
    }
    let simulation = Simulation::from_prior(model, arguments.points as usize, &recipe)
        .map_err(Failure::input)?;
    if !simulation.stand_ins.is_empty() {
        common.say(format!(
            "note: {} of the unconstrained parameters have no proper prior, and a standard normal is used instead: put what is known before the data into the model, or give --pilot",
            simulation.stand_ins.len()
        ));
    }
    Ok(simulation)
}

/// The settings that were found, as flags of `dpm sample`.
fn flags(tuned: &Tuned, free: &Free) -> Vec<String> {
    let mut flags = Vec::new();
    if free.iterations {
        flags.push(format!("--iterations {}", tuned.plan.iterations_per_chain));
    }
    let found = tuned.plan.request.settings.clone();
    flags.extend(
        free.settings
            .iter()
            .filter_map(|setting| setting_flag(&found, *setting)),
    );
    flags
}

/// A setting as a flag, where it is given.
fn setting_flag(settings: &Settings, setting: Setting) -> Option<String> {
    let (flag, text) = (flag(setting.name()), settings.text(setting)?);
    if setting.is_switch() {
        (text == "true").then_some(flag)
    } else {
        Some(format!("{flag} {text}"))
    }
}

/// The settings that the user gave and the search kept, as flags.
fn kept(s: &RunSettings, given: &Settings) -> Vec<String> {
    let count = |name: &str, value: Option<u64>| value.map(|v| format!("{} {v}", flag(name)));
    let relation = Relation::from(s.relation);
    let mut flags: Vec<String> = [
        (relation != Relation::Substitute).then(|| format!("--relation {relation}")),
        count("chains", Some(s.chains).filter(|c| *c != DEFAULT_CHAINS)),
        count("num_warmup", s.num_warmup),
        count("num_samples", s.num_samples),
        s.iterations.map(|i| match i {
            AskedIterations::Count(count) => format!("--iterations {count}"),
            AskedIterations::Max => "--iterations max".to_string(),
        }),
        s.temperature
            .map(|records| format!("--temperature {records}")),
    ]
    .into_iter()
    .flatten()
    .collect();
    flags.extend(
        given
            .given()
            .filter_map(|setting| setting_flag(given, setting)),
    );
    flags
}

fn settings_json(tuned: &Tuned) -> Value {
    let request = &tuned.plan.request;
    let settings = tuned.plan.settings();
    let mut json = json!({
        "algorithm": request.algorithm.name,
        "iterations": tuned.plan.iterations_per_chain,
        "chains": request.chains,
        "step_size": request.settings.step_size,
    });
    for setting in [
        Setting::leapfrog_steps,
        Setting::clip_gradient,
        Setting::clip_log_ratio,
        Setting::noise_split,
    ] {
        json[setting.name()] = settings.json(setting);
    }
    json
}

fn text(arguments: &Arguments, tuned: &Tuned, flags: &[String]) -> String {
    let predicted = &tuned.predicted;
    let plan = &tuned.plan;
    let half = plan.iterations_per_chain / 2;
    let mut text = format!(
        "best of {} settings on simulated records: MMD {:.3} (of parameters in posterior sds; 0 is exact, and draws far from the posterior give about 1), means off by {:.2} posterior sds, {:.0}% of the proposals accepted\n\n",
        tuned.tried,
        predicted.mmd,
        predicted.mean_error,
        100.0 * predicted.acceptance,
    );
    let _ = writeln!(
        text,
        "dpm sample {} DATA --algorithm {} --epsilon {} --delta {:e} {}{}\n",
        arguments.model.display(),
        plan.request.algorithm.name,
        plan.request.epsilon.to_f64(),
        plan.request.delta.to_f64(),
        flags.join(" "),
        match arguments.init.as_str() {
            "random" => String::new(),
            file => format!(" --init {file}"),
        },
    );
    for line in describe(plan, half, plan.iterations_per_chain - half) {
        text.push_str(&line);
        text.push('\n');
    }
    text
}
