//! The prior of a run's columns, from the copy of the model that the run keeps.

use std::path::Path;

use crate::check::{check, on_deep_stack};
use crate::density::Density;
use crate::diagnostics::{PriorRange, bracket_name};
use crate::model::{Constants, Model};
use crate::sampler::{draw_independent_margins, draw_prior_margins};
use crate::syntax::{Diagnostic, parse};

/// The model, its constants and the guesses of its covariates as a run keeps them.
pub(crate) const MODEL: &str = "model.dpm";
pub(crate) const CONSTANTS: &str = "model.constants.json";
pub(crate) const CODEBOOK: &str = "model.codebook.json";

const SEED: u64 = 1;
/// The number of draws that show the shape of a prior.
const SHOWN: usize = 500;
/// Draws for ranges: of the lowest and the highest strata of probability 1/4000 each, the second is
/// still outside the central 99.9%.
const FOR_RANGES: usize = 4000;
/// With more columns than this the draws for ranges take seconds, and are not made.
const MOST_COLUMNS: usize = 1000;

/// Draws from the prior for each of the columns (bracket form); empty where it is flat or was not
/// drawn.
pub(crate) fn prior_draws(
    source: &str,
    constants: Option<&str>,
    names: &[String],
) -> Result<Vec<Vec<f64>>, String> {
    on_deep_stack(|| {
        let density = Density::new(model(source, constants)?);
        let prior = draw_prior_margins(&density, SHOWN, SEED).map_err(|e| e.to_string())?;
        let mut columns = vec![Vec::new(); density.output_names().count()];
        for theta in &prior.draws {
            for (column, value) in columns.iter_mut().zip(density.outputs(theta)) {
                column.push(value);
            }
        }
        for &unknown in &prior.unknown {
            columns[unknown].clear();
        }
        Ok(by_name(&density, columns, names))
    })
}

/// Ranges of the prior for each of the columns (bracket form) of the run in this directory, where
/// known: none without the model, or for parameters whose priors depend on each other.
pub(super) fn prior_ranges(directory: &Path, names: &[String]) -> Vec<Option<PriorRange>> {
    match density_of(directory) {
        Ok(density) => on_deep_stack(|| by_name(&density, prior_ranges_of(&density), names)),
        Err(_) => Vec::new(),
    }
}

/// The model of the run in this directory, with its constants and guesses.
///
/// # Errors
///
/// The directory does not hold it, or it is no program.
pub(crate) fn density_of(directory: &Path) -> Result<Density, String> {
    let place = directory.join(MODEL);
    let source = std::fs::read_to_string(&place)
        .map_err(|e| format!("cannot read the run's model `{}`: {e}", place.display()))?;
    let [constants, codebook] =
        [CONSTANTS, CODEBOOK].map(|name| std::fs::read_to_string(directory.join(name)).ok());
    on_deep_stack(|| {
        let model = model(&source, constants.as_deref())?;
        let guessed = model.with_kept_codebook(codebook.as_deref());
        Ok(Density::new(guessed.map_err(|e| e.to_string())?))
    })
    .map_err(|e: String| format!("`{}`: {e}", directory.display()))
}

/// The same for a model's outputs, in their order.
pub(crate) fn prior_ranges_of(density: &Density) -> Vec<Option<PriorRange>> {
    let count = density.output_names().count();
    if count > MOST_COLUMNS {
        return vec![None; count];
    }
    let Ok(prior) = draw_independent_margins(density, FOR_RANGES, SEED) else {
        return vec![None; count];
    };
    let mut columns = vec![Vec::with_capacity(prior.draws.len()); count];
    for theta in &prior.draws {
        for (column, value) in columns.iter_mut().zip(density.outputs(theta)) {
            column.push(value);
        }
    }
    let mut ranges: Vec<_> = columns.into_iter().map(range).collect();
    for &unknown in &prior.unknown {
        ranges[unknown] = None;
    }
    ranges
}

/// None for draws that are not numbers, or all the same.
fn range(mut draws: Vec<f64>) -> Option<PriorRange> {
    draws.sort_by(f64::total_cmp);
    let last = draws.len().checked_sub(1)?;
    let tail = draws.len() / 20;
    let central = |tail: usize| [draws[tail], draws[last - tail]];
    let range = PriorRange {
        central_90: central(tail),
        central_999: central(1.min(tail)),
    };
    let sound = draws.iter().all(|x| x.is_finite()) && range.central_90[0] < range.central_90[1];
    sound.then_some(range)
}

fn model(source: &str, constants: Option<&str>) -> Result<Model, String> {
    let parsed = parse(source);
    let checked = if parsed.diagnostics.iter().any(Diagnostic::is_error) {
        None
    } else {
        parsed.program.as_ref().and_then(|p| check(p).checked)
    };
    let checked = checked.ok_or(format!("{MODEL} is not a program"))?;
    let constants = match constants {
        Some(text) => Constants::from_json(text).map_err(|e| format!("{CONSTANTS}: {e}"))?,
        None => Constants::none(),
    };
    let model = Model::bind(&checked, &constants).map_err(|e| e.to_string())?;
    Ok(model.from(source, Path::new(MODEL)))
}

/// The value for each of the names, from values by output.
fn by_name<T: Clone + Default>(density: &Density, values: Vec<T>, names: &[String]) -> Vec<T> {
    let outputs: Vec<String> = density.output_names().map(bracket_name).collect();
    let of_name = |name: &String| {
        let place = outputs.iter().position(|o| *o == bracket_name(name))?;
        values.get(place).cloned()
    };
    names
        .iter()
        .map(|name| of_name(name).unwrap_or_default())
        .collect()
}
