//! The command line: one file per command.
//!
//! Machine-readable output goes to standard output or to files, everything for
//! people to standard error. Exit codes: 0 success, 1 a failed run, 2 wrong
//! usage or bad input, 3 a privacy budget refuses the run, 130 interrupted.

mod account;
mod calibrate;
mod chains;
mod charge;
mod check;
mod compare;
mod completions;
mod convert;
mod data_file;
mod diagnose;
mod failure;
mod fmt;
mod format;
mod generate;
mod headings;
mod info;
mod initial;
mod interrupt;
mod ledger;
mod log_prob;
mod lsp;
mod made_up;
mod man;
mod model_file;
mod new;
mod plan;
mod planned;
mod pool;
mod progress;
mod public_data;
mod ranks;
mod releases;
mod report;
mod run_settings;
mod sample;
mod sbc;
mod score;
mod simulate;
mod summary;
mod synth;
mod table_files;
mod threads;
mod tune;
mod verdicts;
mod words;

use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal, Write};

use clap::{Parser, Subcommand};

use crate::analysis::pretty;
use failure::Failure;

/// Differentially private Bayesian modelling.
#[derive(Debug, Parser)]
#[command(
    name = "dpm",
    version,
    about = "Differentially private Bayesian modelling",
    long_about = "dpm draws from the posterior of a model of private records, so that the draws are (epsilon, delta)-differentially private.\n\nWrite the likelihood of one record in model.dpm, then:\n\n    dpm sample model.dpm data.csv --epsilon 1 --delta 1e-6",
    after_help = "Exit codes: 0 success, 1 a failed run, 2 wrong usage or bad input, 3 a privacy budget refuses the run, 130 interrupted."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    common: Common,
}

/// Flags of every command.
#[derive(Debug, Clone, clap::Args)]
struct Common {
    /// Colours on standard error
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN", help_heading = headings::ALL, display_order = 1000)]
    color: ColorChoice,
    /// Print only errors, and the verdict that draws are not to be used
    ///
    /// For scheduled jobs, since progress reveals the number of records.
    #[arg(long, short, global = true, help_heading = headings::ALL, display_order = 1001)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ColorChoice {
    Auto,
    Always,
    Never,
}

impl Common {
    /// Whether messages on standard error are coloured.
    fn color(&self) -> bool {
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => colors_by_itself(std::io::stderr().is_terminal(), |name| {
                std::env::var_os(name)
            }),
        }
    }

    /// A line for people.
    fn say(&self, line: impl AsRef<str>) {
        if !self.quiet {
            say_always(line);
        }
    }
}

/// Whether colours are wanted where nobody has said so on the command line: NO_COLOR
/// (no-color.org) before CLICOLOR_FORCE before CLICOLOR (bixense.com/clicolors), and else
/// wherever a terminal can show them.
fn colors_by_itself(is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    if set("NO_COLOR").is_some() {
        return false;
    }
    if set("CLICOLOR_FORCE").is_some_and(|value| value != "0") {
        return true;
    }
    let refused = set("CLICOLOR").is_some_and(|value| value == "0");
    is_terminal && !refused && !is_dumb(set("TERM"))
}

/// A terminal that can neither colour nor overwrite a line.
fn is_dumb(term: Option<OsString>) -> bool {
    term.is_some_and(|value| value == "dumb")
}

/// A line for people, with `--quiet` too: that something is NOT PRIVATE is never
/// left unsaid.
fn say_always(line: impl AsRef<str>) {
    // A standard error that nobody reads is no reason to stop.
    let _ = writeln!(std::io::stderr(), "{}", line.as_ref());
}

/// Text for machines, to standard output. A reader that has seen enough (`| head`)
/// closes the pipe, which is no failure.
fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => Err(Failure::run(format!(
            "cannot write to standard output: {e}"
        ))),
        _ => Ok(()),
    }
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Draw from a private posterior (the main job)
    Sample(Box<sample::Arguments>),
    /// Check a model: types, stages, and how the likelihood depends on records
    Check(check::Arguments),
    /// Write a model from a formula and a codebook, without any data
    New(new::Arguments),
    /// Format models
    Fmt(fmt::Arguments),
    /// Serve an editor with errors, completion and more while you write a model
    Lsp(lsp::Arguments),
    /// Show what a run would release and cost, without any data
    Plan(Box<plan::Arguments>),
    /// Find good settings on simulated records, without any data
    Tune(Box<tune::Arguments>),
    /// Simulate tables from a model, without any data
    Simulate(simulate::Arguments),
    /// Measure width and calibration of intervals, by runs on simulated tables
    Sbc(Box<sbc::Arguments>),
    /// Log density and gradient at given points (NOT PRIVATE)
    LogProb(log_prob::Arguments),
    /// Describe a model as JSON
    Info(info::Arguments),
    /// Compute epsilon or delta of a list of releases
    Account(account::Arguments),
    /// Compute generated quantities of a run's draws, and predictions for public rows
    Generate(generate::Arguments),
    /// Make synthetic tables from a run's released draws
    Synth(synth::Arguments),
    /// Combine the estimates of several synthetic tables
    Pool(pool::Arguments),
    /// Track the privacy budget of a data set across all runs on it
    Ledger(ledger::Arguments),
    /// Compute the noise that a budget requires, or the repetitions it allows
    Calibrate(calibrate::Arguments),
    /// Summarise the draws of a run
    Summary(summary::Arguments),
    /// Say in words whether a run's draws can be used, and what is wrong with them
    Diagnose(diagnose::Arguments),
    /// Write the report of a run: what was asked, what is promised, what the draws say
    Report(report::Arguments),
    /// Score runs on held-out records, under a budget
    Score(Box<score::Arguments>),
    /// Compare a run's draws with reference draws
    Compare(compare::Arguments),
    /// Write a run's draws as Zarr, Parquet or one CSV
    Convert(convert::Arguments),
    /// Print a script for completion of commands and flags in a shell
    Completions(completions::Arguments),
    /// Write the manual pages of all commands
    Man(man::Arguments),
}

/// Runs the program and gives its exit code.
pub fn main() -> std::process::ExitCode {
    // Whatever goes wrong inside, a user sees a sentence, not a backtrace.
    std::panic::set_hook(Box::new(|_| {}));
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            if ranks::is_spoken_for() {
                return std::process::ExitCode::SUCCESS;
            }
            let _ = error.print();
            return std::process::ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let common = cli.common.clone();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run(cli)));
    let failure = match outcome {
        Ok(Ok(())) => return std::process::ExitCode::SUCCESS,
        Ok(Err(failure)) => failure,
        // The message of a panic may quote data, so it is not shown.
        Err(_) => Failure::run(
            "an internal error stopped the command; nothing was released beyond what was charged. Please report it with the model file (not the data)",
        ),
    };
    if ranks::is_spoken_for() {
        return std::process::ExitCode::SUCCESS;
    }
    failure.print(common.color());
    failure.exit_code()
}

fn run(cli: Cli) -> Result<(), Failure> {
    let common = &cli.common;
    match cli.command {
        Command::Sample(arguments) => sample::run(&arguments, common),
        Command::Check(arguments) => check::run(&arguments, common),
        Command::New(arguments) => new::run(&arguments, common),
        Command::Fmt(arguments) => fmt::run(&arguments, common),
        Command::Lsp(arguments) => lsp::run(&arguments),
        Command::Plan(arguments) => plan::run(&arguments, common),
        Command::Tune(arguments) => tune::run(&arguments, common),
        Command::Simulate(arguments) => simulate::run(&arguments, common),
        Command::Sbc(arguments) => sbc::run(&arguments, common),
        Command::LogProb(arguments) => log_prob::run(&arguments, common),
        Command::Info(arguments) => info::run(&arguments, common),
        Command::Generate(arguments) => generate::run(&arguments, common),
        Command::Synth(arguments) => synth::run(&arguments, common),
        Command::Pool(arguments) => pool::run(&arguments),
        Command::Ledger(arguments) => ledger::run(&arguments, common),
        Command::Account(arguments) => account::run(&arguments, common),
        Command::Calibrate(arguments) => calibrate::run(&arguments, common),
        Command::Summary(arguments) => summary::run(&arguments, common),
        Command::Diagnose(arguments) => diagnose::run(&arguments, common),
        Command::Report(arguments) => report::run(&arguments, common),
        Command::Score(arguments) => score::run(&arguments, common),
        Command::Compare(arguments) => compare::run(&arguments, common),
        Command::Convert(arguments) => convert::run(&arguments, common),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man(arguments) => man::run(&arguments, common),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn colours_follow_the_terminal_and_the_customary_variables() {
        let colors = |terminal: bool, set: &[(&str, &str)]| {
            super::colors_by_itself(terminal, |name| {
                let found = set.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| value.into())
            })
        };
        assert!(colors(true, &[]) && !colors(false, &[]));
        assert!(!colors(true, &[("NO_COLOR", "1")]) && colors(true, &[("NO_COLOR", "")]));
        assert!(!colors(true, &[("CLICOLOR", "0")]) && colors(true, &[("CLICOLOR", "1")]));
        assert!(colors(false, &[("CLICOLOR_FORCE", "1")]));
        assert!(!colors(
            false,
            &[("CLICOLOR_FORCE", "0"), ("CLICOLOR", "1")]
        ));
        assert!(!colors(true, &[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "x")]));
        assert!(!colors(true, &[("TERM", "dumb")]) && colors(true, &[("TERM", "xterm")]));
    }

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
