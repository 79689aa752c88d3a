//! `dpm tune`: settings that are good on records made up from the model.

use std::fmt::Write as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::clip_bounds::{ClipBounds, ClipChoice};
use super::failure::Failure;
use super::model_file::ModelFile;
use super::plan::{describe, json_of};
use super::run_settings::{IterationsChoice, RunSettings};
use super::{Common, initial, pretty, print, public_data, sample};
use crate::accounting::{Real, Relation};
use crate::density::Density;
use crate::model::Model;
use crate::sampler::{DEFAULT_CHAINS, NoiseChoice, PlanRequest};
use crate::tune::{Effort, Free, Made, Simulation, TuneError, Tuned, tune};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Makes up records from the model, with parameters drawn from its prior (or from --pilot, a public
guess) and covariates uniform between their declared bounds (or from --public-sample), runs the
sampler on them with many settings under the budget, and prints the settings whose draws come
closest to the posterior. No data are read, so it costs no privacy; settings found by looking at
private results would. Settings that are given are kept.

Examples:
  dpm tune models/adult_income.dpm --rows 48842 --epsilon 4 --delta 1e-6 --simulate
  dpm tune models/adult_income.dpm --rows 48842 --epsilon 4 --delta 1e-6 --simulate --algorithm dp-penalty --tries 60")]
pub(super) struct Arguments {
    /// The model
    model: PathBuf,
    /// Number of records the run would have (of units, if --unit is to be given)
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    rows: u64,
    /// Tune on records simulated from the model: the only way so far
    #[arg(long)]
    simulate: bool,
    /// Simulate at these parameter values, a public guess, instead of at draws from the prior: a JSON object, or a list of them
    #[arg(long, value_name = "FILE.json")]
    pilot: Option<PathBuf>,
    /// Take covariates from the rows of this public table, instead of from between their bounds
    #[arg(long, value_name = "FILE.csv")]
    public_sample: Option<PathBuf>,
    /// Sampler, one of the private ones that `dpm sample --help` lists
    #[arg(long, default_value = "dp-hmc", value_name = "NAME", value_hint = clap::ValueHint::Other)]
    algorithm: String,
    /// Public constants (default: MODEL with .constants.json for .dpm, where that exists)
    #[arg(long, value_name = "FILE.json")]
    constants: Option<PathBuf>,
    /// Initial values of the run: `random`, or a JSON file as for `dpm sample`
    #[arg(long, default_value = "random", value_name = "FILE.json|random")]
    init: String,
    /// How many settings to try
    #[arg(long, default_value_t = 40, value_name = "N")]
    tries: usize,
    /// Draws from the prior at which records are simulated
    #[arg(long, default_value_t = 2, value_name = "N", conflicts_with = "pilot", value_parser = clap::value_parser!(u64).range(1..=100))]
    points: u64,
    /// Records simulated at each; each stands for many
    #[arg(long, default_value_t = 300, value_name = "N", value_parser = clap::value_parser!(u64).range(10..=100_000))]
    records: u64,
    /// Seed of everything random here
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    settings: RunSettings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let algorithm = sample::known_algorithm(&arguments.algorithm)?;
    if !algorithm.is_private() {
        return Err(Failure::input(format!(
            "`{}` has no budget to tune for; nuts and hmc adapt by themselves",
            arguments.algorithm
        )));
    }
    if !arguments.simulate {
        return Err(Failure::input(
            "on which data? Give --simulate: records are made up from the model, and no data are read",
        ));
    }
    if arguments.rows == 0 || arguments.tries == 0 {
        return Err(Failure::input("--rows and --tries must be at least 1"));
    }
    let settings = &arguments.settings;
    settings.check(algorithm)?;
    let file = ModelFile::read(&arguments.model, common)?;
    let model = file.bind(arguments.constants.as_deref(), common)?;
    let n = settings.public_n(arguments.rows);
    let clips = ClipBounds::choose(settings, algorithm, &model, None)?;
    let lengths = settings.lengths(crate::sampler::DEFAULT_SAMPLES, algorithm)?;
    let request = settings.request(algorithm, n, model.dimension, lengths, &clips)?;
    let free = free(settings, &request);
    let effort = Effort {
        records: arguments.rows,
        initial: initial::initial_values(
            &arguments.init,
            settings.chains,
            &Density::new(model.clone()),
        )?,
        tries: arguments.tries,
        seed: arguments.seed,
    };
    let simulation = simulation(arguments, &model, common)?;
    let tuned = tune(&simulation, &request, free, &effort, |done, of, best| {
        if let (true, Some(mmd)) = (done % 10 == 0 || done == of, best) {
            common.say(format!("{done} of {of} settings tried, best MMD {mmd:.3}"));
        }
    })
    .map_err(|error| match error {
        TuneError::Plan(error) if error.is_refusal() => Failure::budget(error),
        TuneError::Sample(_) => Failure::run(error),
        _ => Failure::input(error),
    })?;
    let mut flags = flags(&tuned, free);
    flags.extend(kept(settings));
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

/// What the user has left open.
fn free(settings: &RunSettings, request: &PlanRequest) -> Free {
    let asks = |flag| request.algorithm.settings.contains(&flag);
    let from_budget = matches!(request.noise, NoiseChoice::FromBudget { .. });
    Free {
        clip_gradient: asks("--clip-gradient") && settings.clip_gradient.is_none(),
        clip_log_ratio: asks("--clip-log-ratio") && settings.clip_log_ratio.is_none(),
        step_size: asks("--step-size") && settings.step_size.is_none(),
        leapfrog_steps: asks("--leapfrog-steps") && settings.leapfrog_steps.is_none(),
        iterations: settings.iterations.is_none()
            && settings.num_samples.is_none()
            && settings.num_warmup.is_none(),
        noise_split: asks("--noise-split") && settings.noise_split.is_none() && from_budget,
    }
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
    let made = Made {
        records: arguments.records as usize,
        public,
        seed: arguments.seed,
    };
    if let Some(pilot) = &arguments.pilot {
        let density = Density::new(model.clone());
        let points = initial::points_of(&pilot.display().to_string(), &density)?;
        return Ok(Simulation::at_points(model, points, &made));
    }
    let simulation =
        Simulation::from_prior(model, arguments.points as usize, &made).map_err(Failure::input)?;
    if !simulation.stand_ins.is_empty() {
        common.say(format!(
            "note: {} of the unconstrained parameters have no proper prior, and a standard normal stands in: say what is known before the data, or give --pilot",
            simulation.stand_ins.len()
        ));
    }
    Ok(simulation)
}

/// The settings that were found, as flags of `dpm sample`.
fn flags(tuned: &Tuned, free: Free) -> Vec<String> {
    let request = &tuned.plan.request;
    let mut flags = Vec::new();
    let mut add = |found: bool, flag: &str, value: String| {
        if found {
            flags.push(format!("{flag} {value}"));
        }
    };
    add(
        free.iterations,
        "--iterations",
        tuned.plan.iterations_per_chain.to_string(),
    );
    add(
        free.leapfrog_steps,
        "--leapfrog-steps",
        request.leapfrog_steps.to_string(),
    );
    if let Some(step) = request.step_size {
        add(free.step_size, "--step-size", format!("{step:.3e}"));
    }
    let (gradient, log_ratio) = (request.clip_gradient, request.clip_log_ratio);
    add(
        free.clip_gradient,
        "--clip-gradient",
        format!("{gradient:.3e}"),
    );
    add(
        free.clip_log_ratio,
        "--clip-log-ratio",
        format!("{log_ratio:.3e}"),
    );
    if let NoiseChoice::FromBudget { split } = request.noise {
        add(free.noise_split, "--noise-split", format!("{split:.2}"));
    }
    flags
}

/// The settings that the user gave and the search kept, as flags.
fn kept(settings: &RunSettings) -> Vec<String> {
    let number = |flag: &str, value: Option<f64>| value.map(|v| format!("{flag} {v}"));
    let count = |flag: &str, value: Option<u64>| value.map(|v| format!("{flag} {v}"));
    let real = |flag: &str, value: Option<Real>| value.map(|v| format!("{flag} {}", v.to_f64()));
    let switch = |flag: &str, on: bool| on.then(|| flag.to_string());
    let clip = |flag: &str, choice: Option<ClipChoice>| {
        choice.map(|choice| match choice {
            ClipChoice::Bound(bound) => format!("{flag} {bound}"),
            ClipChoice::Derived => format!("{flag} derived"),
        })
    };
    let s = settings;
    let relation = Relation::from(s.relation);
    [
        (relation != Relation::Substitute).then(|| format!("--relation {relation}")),
        count("--chains", Some(s.chains).filter(|c| *c != DEFAULT_CHAINS)),
        count("--num-warmup", s.num_warmup),
        count("--num-samples", s.num_samples),
        s.iterations.map(|i| match i {
            IterationsChoice::Count(count) => format!("--iterations {count}"),
            IterationsChoice::Max => "--iterations max".to_string(),
        }),
        count("--leapfrog-steps", s.leapfrog_steps),
        number("--step-size", s.step_size),
        clip("--clip-gradient", s.clip_gradient),
        clip("--clip-log-ratio", s.clip_log_ratio),
        number("--noise-split", s.noise_split),
        number("--tau-gradient", s.tau_gradient),
        number("--tau-log-ratio", s.tau_log_ratio),
        switch("--one-component", s.one_component),
        switch("--guided-walk", s.guided_walk),
        switch("--fresh-gradients", s.fresh_gradients),
        switch("--fixed-steps", s.fixed_steps),
        real("--batch-rate", s.batch_rate),
        count("--batch-size", s.batch_size),
        number("--step-decay", s.step_decay),
        number("--friction", s.friction),
        number("--noise-estimate", s.noise_estimate),
        number("--temperature", s.temperature),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn settings_json(tuned: &Tuned) -> Value {
    let r = &tuned.plan.request;
    let asks = |flag| r.algorithm.settings.contains(&flag);
    json!({
        "algorithm": r.algorithm.name,
        "iterations": tuned.plan.iterations_per_chain,
        "chains": r.chains,
        "step_size": r.step_size,
        "leapfrog_steps": asks("--leapfrog-steps").then_some(r.leapfrog_steps),
        "clip_gradient": asks("--clip-gradient").then_some(r.clip_gradient),
        "clip_log_ratio": asks("--clip-log-ratio").then_some(r.clip_log_ratio),
        "noise_split": match r.noise {
            NoiseChoice::FromBudget { split } if asks("--noise-split") => Some(split),
            _ => None,
        },
    })
}

fn text(arguments: &Arguments, tuned: &Tuned, flags: &[String]) -> String {
    let predicted = &tuned.predicted;
    let plan = &tuned.plan;
    let half = plan.iterations_per_chain / 2;
    let mut text = format!(
        "best of {} settings on simulated records: MMD {:.3} (of parameters in posterior sds; 0 is exact, and draws that are nowhere near give about 1), means off by {:.2} posterior sds, {:.0}% of the proposals accepted\n\n",
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
