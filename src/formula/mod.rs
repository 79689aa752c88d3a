//! A model from a formula and a codebook: what `dpm new` writes.
//!
//! `parse` reads the formula into a `tree`, `codebook` what is publicly known of the columns, with a
//! `guess` of how each is distributed. `design` finds the
//! columns that the formula's coefficients multiply, coded as R codes them, and standardises them by
//! public bounds; `outcome` checks the outcome against its `family`; `priors` has each family's
//! priors. `program` writes the program, with coefficients on the scale of the data from `original`.
//! Nothing here reads data.

mod codebook;
mod design;
mod explain;
mod family;
mod grammar;
mod guess;
mod original;
mod outcome;
mod parse;
mod priors;
mod program;
mod tree;
mod yaml;

use crate::check::examine;
use crate::syntax::{Diagnostic, Span, format};
use design::Reader;
use program::Program;
use tree::{Argument, Formula, Function, Variable};

pub use codebook::{Codebook, CodebookError};
pub use family::{FAMILIES, Family};
pub(crate) use guess::Guess;

/// A program in the form of `dpm fmt`, without errors or warnings.
#[derive(Debug)]
pub struct Written {
    pub program: String,
    /// Remarks on the translation that the user must know.
    pub notes: Vec<String>,
}

/// The program for a formula.
///
/// # Errors
///
/// Text that cannot be read or names that are unknown, at their place in the formula.
pub fn program(text: &str, family: Family, book: &Codebook) -> Result<Written, Vec<Diagnostic>> {
    let formula = parse::parse(text).map_err(|diagnostic| vec![diagnostic])?;
    let mut reader = Reader::new(book);
    let outcome = outcome::outcome(&mut reader, &formula, family);
    refuse_outcome_on_the_right(&mut reader, &formula);
    let has_thresholds = family == Family::Cumulative;
    if has_thresholds && !formula.sum.intercept {
        let message = "`cumulative` has thresholds in place of an intercept".to_owned();
        let help = "leave out the `0 +` or `- 1`".to_owned();
        reader.error(&formula.response.column, message, help);
    }
    let mut exposures = formula.offsets.clone();
    if let Some(addition) = outcome.as_ref().and_then(|o| o.addition.as_ref())
        && addition.function.name == "rate"
        && let Argument::Column(column) = &addition.argument
    {
        exposures.push(Variable {
            column: column.clone(),
            function: Some(Function::Log),
        });
    }
    let mut offset = 0.0;
    for variable in &exposures {
        if let Some(((lower, upper), _)) = reader.range(variable) {
            offset += f64::midpoint(lower, upper);
        }
    }
    let design = reader.design(&formula, has_thresholds)?;
    let Some(outcome) = outcome else {
        return Err(Vec::new());
    };
    let population = &design.population;
    if !population.intercept && population.columns.is_empty() && design.groups.is_empty() {
        let message = "the formula has no terms";
        let end = Span::new(text.len(), text.len());
        return Err(vec![
            Diagnostic::error("F002", end, message).help("write `1` for an intercept"),
        ]);
    }
    let has_intercept = population.intercept;
    let priors = priors::priors(family, &outcome, has_intercept, offset);
    let written = Program::new(family, book, &design, &outcome, &priors).write(&formula, text);
    let program = format(&written.program)?;
    let examined = examine(&program);
    if !examined.diagnostics.is_empty() {
        let said = examined.diagnostics.iter().map(|d| d.message.clone());
        let message = format!(
            "the program for this formula is not right: {}",
            said.collect::<Vec<_>>().join("; ")
        );
        return Err(vec![
            Diagnostic::error("F000", Span::new(0, text.len()), message).help(
                "this is a mistake in dpm: please report it with the formula and the codebook",
            ),
        ]);
    }
    Ok(Written {
        program,
        notes: written.notes,
    })
}

fn refuse_outcome_on_the_right(reader: &mut Reader<'_>, formula: &Formula) {
    let outcome = &formula.response.column;
    let groups = formula.groups.iter().map(|g| &g.sum);
    let terms = groups.chain([&formula.sum]).flat_map(|sum| &sum.terms);
    let columns = terms.flat_map(|term| term.0.iter().map(|a| &a.variable.column));
    let again = columns.chain(formula.groups.iter().map(|g| &g.by));
    let again = again.chain(formula.offsets.iter().map(|o| &o.column));
    if let Some(again) = again.into_iter().find(|c| c.name == outcome.name) {
        let message = format!("the outcome `{}` is also on the right", outcome.name);
        reader.error(&again.clone(), message, "leave it out there".to_owned());
    }
}
