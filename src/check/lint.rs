//! Warnings about programs that are valid but perhaps not intended, after Stan's pedantic mode:
//! unused names, parameters with no prior, with several, with constraints that their distributions
//! contradict.

mod factors;
mod prior;
mod support;

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::scope::find_variable;
use super::typed::*;
use crate::syntax::{Diagnostic, Span};
use factors::Factors;

/// All warnings about a program without errors, in the order of the source.
pub(super) fn lints(checked: &Checked) -> Vec<Diagnostic> {
    let factors = Factors::of(checked);
    let mut found = Vec::new();
    unused(checked, &factors, &mut found);
    prior::lint(checked, &factors, &mut found);
    support::lint(checked, &factors, &mut found);
    found.sort_by_key(|d: &Diagnostic| (d.span.start, d.code));
    found
}

/// Variables that the program declares and never reads.
fn unused(checked: &Checked, factors: &Factors, found: &mut Vec<Diagnostic>) {
    let mut warn = |code, span: Span, message: String, help: &str| {
        found.push(
            Diagnostic::warning(code, span, message)
                .label("not used")
                .help(help),
        );
    };
    for &id in &checked.parameters {
        let variable = checked.variable(id);
        if !factors.in_density(id) {
            warn(
                "W0110",
                variable.span,
                format!("no statement of the model depends on `{}`", variable.name),
                "its draws would follow no data and no prior: give it a role, or leave it out",
            );
        }
    }
    for &id in checked.constants.iter().filter(|id| !factors.is_read(**id)) {
        let variable = checked.variable(id);
        warn(
            "W0115",
            variable.span,
            format!("the constant `{}` is never used", variable.name),
            "leave it out of the model; the constants file may keep it",
        );
    }
    for &id in checked.record.iter().filter(|id| !factors.is_read(**id)) {
        let variable = checked.variable(id);
        warn(
            "W0116",
            variable.span,
            format!("the record column `{}` is never used", variable.name),
            "leave it out of the model; the data file may keep it",
        );
    }
}

/// Every variable that an expression names.
fn variables_in(expression: &Expr) -> BTreeSet<VariableId> {
    let found = RefCell::new(BTreeSet::new());
    find_variable(expression, &|id| {
        found.borrow_mut().insert(id);
        false
    });
    found.into_inner()
}

/// The variable that is sampled: `b` in `b ~ ...` and in `b[k] ~ ...`.
fn sampled(variate: &Expr) -> Option<VariableId> {
    match &variate.kind {
        ExprKind::Variable(id) => Some(*id),
        ExprKind::Index { base, .. } => sampled(base),
        _ => None,
    }
}
