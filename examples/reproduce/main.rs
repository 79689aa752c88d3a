//! The experiments of three works on private Markov chains, made again with dpm's own models:
//! Räisä, Koskela and Honkela 2021 (the paper), Räisä 2021 and Lode 2019 (the theses); and some of
//! our own, on what dpm does with epsilon and delta alone.
//!
//! ```sh
//! cargo run --release --example reproduce -- list
//! cargo run --release --example reproduce -- all --quick
//! cargo run --release --example reproduce -- paper-banana --epsilon 4,15 --repeats 3
//! ```
//!
//! Each experiment writes a line per run to `OUT/EXPERIMENT.csv` and figures beside it; with
//! `--resume` it goes on where an earlier call stopped. At the end it prints medians and
//! quartiles. Data, starting points and momenta follow from fixed seeds; the noise of private
//! samplers comes from the operating system, so that other runs give other numbers from the
//! same distribution. docs/results.md has the numbers of one call, beside the published ones.

mod accounting;
mod automatic;
mod calibration;
mod chain;
mod chart;
mod clipped;
mod clipping;
mod comparison;
mod contests;
mod experiment;
mod limit;
mod phase_space;
mod problem;
mod published;
mod radon;
mod random;
mod rows;
mod setting;
mod subjects;
mod survey;
mod table;
#[cfg(test)]
mod tests;
mod traps;
mod trial;

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use clap::Parser;

use experiment::{Course, EXPERIMENTS, Experiment, Form};

#[derive(Debug, Parser)]
struct Arguments {
    /// One of the experiments, `all` of them, or `list` to be told what there is
    experiment: String,
    /// Where tables and figures go
    #[arg(long, default_value = "results", value_name = "FOLDER")]
    out: PathBuf,
    /// Keep the runs that are in FOLDER and make the others
    #[arg(long)]
    resume: bool,
    /// Fewer repeats, budgets and settings: all experiments in under 40 minutes on two cores
    #[arg(long)]
    quick: bool,
    /// One short run of everything on little data, to see that it works
    #[arg(long, conflicts_with = "quick")]
    smoke: bool,
    /// Budgets, instead of the experiment's own
    #[arg(long, value_delimiter = ',')]
    epsilon: Vec<f64>,
    /// Samplers, instead of all of the experiment's
    #[arg(long, value_delimiter = ',')]
    sampler: Vec<String>,
    /// Posteriors, instead of all of an experiment on several
    #[arg(long, value_delimiter = ',')]
    posterior: Vec<String>,
    /// Runs of each setting, instead of the experiment's own number
    #[arg(long)]
    repeats: Option<u64>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    if arguments.experiment == "list" {
        list();
        return Ok(());
    }
    let all = arguments.experiment == "all";
    let chosen: Vec<&Experiment> = EXPERIMENTS
        .iter()
        .filter(|e| all || e.name == arguments.experiment)
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = EXPERIMENTS.iter().map(|e| e.name).collect();
        return Err(format!(
            "there is no experiment `{}`; there are {}, and `all`",
            arguments.experiment,
            names.join(", ")
        )
        .into());
    }
    let course = Course {
        out: arguments.out,
        form: match (arguments.quick, arguments.smoke) {
            (true, _) => Form::Quick,
            (_, true) => Form::Smoke,
            _ => Form::Full,
        },
        resume: arguments.resume,
        epsilons: arguments.epsilon,
        samplers: arguments.sampler,
        posteriors: arguments.posterior,
        repeats: arguments.repeats,
    };
    for experiment in chosen {
        let [full, quick] = experiment.time;
        println!("## {}: {}", experiment.name, experiment.of);
        println!(
            "This takes about {} on two cores.",
            course.form.of(full, quick, "a second")
        );
        let started = Instant::now();
        (experiment.run)(&course)?;
        let seconds = started.elapsed().as_secs_f64();
        println!("{} took {seconds:.0} seconds.\n", experiment.name);
    }
    Ok(())
}

fn list() {
    for experiment in EXPERIMENTS {
        let [full, quick] = experiment.time;
        println!("{}: {}", experiment.name, experiment.of);
        for line in (experiment.settings)() {
            println!("    {line}");
        }
        println!("    full: about {full} on two cores; --quick: {quick}");
    }
}
