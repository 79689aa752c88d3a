//! `dpm compare`: a run's draws against reference draws.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::chains::{parameters, read_chains};
use super::failure::Failure;
use super::{Common, pretty, print, say_always};
use crate::diagnostics::compare;
use crate::output::stan_csv::StanCsv;
use crate::output::{DrawsTable, read_draws_csv};

/// Chooses the pairs that set the width of the MMD's kernel; fixed, so that the same files
/// give the same figures.
const SEED: u64 = 1;
/// The unbiased estimate divides by the pairs of each sample.
const LEAST_DRAWS: usize = 2;

const UNKNOWN_ORIGIN: &str = "a file does not say whether its draws are private: if the reference was made from the same private data, these figures are not private";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Prints JSON: `mmd`, the maximum mean discrepancy as Räisä, Koskela and Honkela (2021) use it,
over the parameters that both have; `mmd_standardised`, the same after each parameter was
scaled by the reference's mean and sd; and per parameter `mean_error`, in reference sds, and
`sd_ratio`. The MMD depends on the parameters' units, so that one with a large spread outweighs
the others; the standardised one does not. Neither is 0 for equal distributions: compare them
with what a second reference sample would get.

If the reference was made from the same private data, what this prints is not private.

Examples:
  dpm compare adult_income-run reference_draws.csv
  dpm compare adult_income-run adult_income-reference-run")]
pub(super) struct Arguments {
    /// The run's directory
    run: PathBuf,
    /// Reference draws: a CSV with a column per parameter (`beta.1` or `beta[1]`), a Stan CSV, or the directory of a run; may be gzipped
    #[arg(value_name = "REFERENCE.csv")]
    reference: PathBuf,
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let run = read_run(&arguments.run)?;
    let reference = if arguments.reference.is_dir() {
        read_run(&arguments.reference)?
    } else {
        read_draws_csv(&arguments.reference).map_err(Failure::input)?
    };
    for (table, path) in [(&run, &arguments.run), (&reference, &arguments.reference)] {
        if table.draws.len() < LEAST_DRAWS {
            return Err(Failure::input(format!(
                "`{}` has {} of the draws that a comparison needs: expected at least {LEAST_DRAWS}",
                path.display(),
                table.draws.len()
            )));
        }
    }
    let shared = Shared::of(&run, &reference)?;
    let comparison = compare(
        &shared.names,
        &select(&run.draws, &shared.in_run),
        &select(&reference.draws, &shared.in_reference),
        SEED,
    )
    .map_err(Failure::run)?;
    let private = both(run.private, reference.private);
    if private == Some(false) {
        say_always(
            "NOT PRIVATE: the draws come from a run without privacy, and so do these figures",
        );
    }
    let mut notes = shared.notes();
    if private.is_none() {
        notes.push(UNKNOWN_ORIGIN.to_owned());
    }
    for note in &notes {
        common.say(format!("note: {note}"));
    }
    print(&pretty(&json!({
        "mmd": comparison.mmd,
        "mmd_standardised": comparison.mmd_standardised,
        "width": comparison.width,
        "draws": run.draws.len(),
        "reference_draws": reference.draws.len(),
        "parameters": comparison.parameters,
        "only_in_run": shared.only_in_run,
        "only_in_reference": shared.only_in_reference,
        "not_finite": shared.not_finite,
        "notes": notes,
        "private": private,
    })))
}

fn read_run(place: &Path) -> Result<DrawsTable, Failure> {
    let chains = read_chains(place)?;
    Ok(DrawsTable {
        names: parameters(place, &chains)?,
        draws: chains.iter().flat_map(|c| c.parameter_draws()).collect(),
        private: chains.iter().map(says).reduce(both).flatten(),
    })
}

/// Whether the run that wrote the file was private, where it says so.
fn says(chain: &StanCsv) -> Option<bool> {
    chain.key("privacy_private").map(|value| value != "false")
}

/// A comparison of two runs is private where both are known to be, and not where one is not.
fn both(a: Option<bool>, b: Option<bool>) -> Option<bool> {
    match (a, b) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// The parameters that can be compared, in the run's order, and where they stand.
#[derive(Default)]
struct Shared {
    names: Vec<String>,
    in_run: Vec<usize>,
    in_reference: Vec<usize>,
    only_in_run: Vec<String>,
    only_in_reference: Vec<String>,
    /// In both, with a draw that is NaN or infinite in either.
    not_finite: Vec<String>,
}

impl Shared {
    fn of(run: &DrawsTable, reference: &DrawsTable) -> Result<Shared, Failure> {
        let finite = |table: &DrawsTable, column: usize| {
            let value = |draw: &Vec<f64>| draw.get(column).is_some_and(|x| x.is_finite());
            table.draws.iter().all(value)
        };
        let mut shared = Shared::default();
        for (own, name) in run.names.iter().enumerate() {
            let Some(other) = reference.names.iter().position(|n| n == name) else {
                shared.only_in_run.push(name.clone());
                continue;
            };
            if finite(run, own) && finite(reference, other) {
                shared.names.push(name.clone());
                shared.in_run.push(own);
                shared.in_reference.push(other);
            } else {
                shared.not_finite.push(name.clone());
            }
        }
        let missing = |name: &&String| !run.names.contains(name);
        let only = reference.names.iter().filter(missing);
        shared.only_in_reference = only.cloned().collect();
        if !shared.names.is_empty() {
            return Ok(shared);
        }
        Err(Failure::input(if shared.not_finite.is_empty() {
            format!(
                "the run and the reference have no parameter in common: the run has {}; expected a column per parameter, named as in the run (`beta.1` or `beta[1]`). The columns of the reference are not shown, since it may not be a file of draws",
                listed(&run.names)
            )
        } else {
            format!(
                "no parameter that both have is finite in all draws ({}): there is nothing to compare",
                listed(&shared.not_finite)
            )
        }))
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if !self.only_in_run.is_empty() {
            let names = listed(&self.only_in_run);
            notes.push(format!("only in the run, and not compared: {names}"));
        }
        if !self.only_in_reference.is_empty() {
            let names = listed(&self.only_in_reference);
            notes.push(format!("only in the reference, and not compared: {names}"));
        }
        if !self.not_finite.is_empty() {
            let names = listed(&self.not_finite);
            notes.push(format!(
                "NaN or infinite in some draw, and not compared: {names}"
            ));
        }
        notes
    }
}

/// All of a few names; of many the first.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<String> = names.iter().take(SHOWN).map(|n| format!("`{n}`")).collect();
    match names.len() {
        0 => "none".to_owned(),
        n if n > SHOWN => format!("{} and {} more", shown.join(", "), n - SHOWN),
        _ => shown.join(", "),
    }
}

fn select(draws: &[Vec<f64>], columns: &[usize]) -> Vec<Vec<f64>> {
    let of_draw = |draw: &Vec<f64>| {
        let values = columns.iter().filter_map(|&c| draw.get(c).copied());
        values.collect()
    };
    draws.iter().map(of_draw).collect()
}
