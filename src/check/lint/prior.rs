//! Parameters without a prior, and with more than one.

use std::collections::BTreeSet;

use super::super::typed::*;
use super::factors::{Factor, Factors};
use super::sampled;
use crate::syntax::Diagnostic;

pub(super) fn lint(checked: &Checked, factors: &Factors, found: &mut Vec<Diagnostic>) {
    for &id in &checked.parameters {
        let variable = checked.variable(id);
        let name = &variable.name;
        if factors.in_density(id) && !has_prior(factors, id) && !is_bounded(variable) {
            found.push(
                Diagnostic::warning(
                    "W0111",
                    variable.span,
                    format!("`{name}` has no prior, and its values have no bounds"),
                )
                .label("flat to infinity")
                .help(if variable.ty.dimensions() > 1 {
                    "say what is known before the data: under noise the data alone may not determine it".to_string()
                } else {
                    format!(
                        "say what is known before the data, for example `{name} ~ normal(0, 5);`: under noise the data alone may not determine it"
                    )
                }),
            );
        }
        several(checked, factors, id, found);
    }
}

/// Whether some term is a prior of the parameter: it involves the parameter alone, or it and others
/// that records inform only through it.
fn has_prior(factors: &Factors, id: VariableId) -> bool {
    let of_others = |f: &Factor| {
        f.parameters
            .iter()
            .copied()
            .filter(move |&p| p != id)
            .collect()
    };
    factors
        .all
        .iter()
        .filter(|f| !f.private && f.parameters.contains(&id))
        .any(|factor| {
            let alone = |v: &BTreeSet<VariableId>| v.len() == 1 && v.contains(&id);
            if factor.variates.iter().any(alone) {
                return true;
            }
            let mut reached: BTreeSet<VariableId> = of_others(factor);
            let mut rest: Vec<VariableId> = reached.iter().copied().collect();
            while let Some(other) = rest.pop() {
                for next in factors.all.iter().filter(|f| f.parameters.contains(&other)) {
                    if next.private {
                        return false;
                    }
                    for p in of_others(next) as BTreeSet<VariableId> {
                        if reached.insert(p) {
                            rest.push(p);
                        }
                    }
                }
            }
            true
        })
}

/// Whether a flat density on the parameter's values is a distribution.
fn is_bounded(variable: &Variable) -> bool {
    match &variable.structure {
        Structure::Free => variable.lower.is_some() && variable.upper.is_some(),
        Structure::Affine { .. } => false,
        Structure::Joint(joint) => matches!(
            joint,
            Joint::Simplex | Joint::UnitVector | Joint::CholeskyFactorCorr | Joint::CorrMatrix
        ),
    }
}

/// A whole parameter that is sampled twice. Statements about single elements, and those of which a
/// condition selects one, are assumed to be intended.
fn several(checked: &Checked, factors: &Factors, id: VariableId, found: &mut Vec<Diagnostic>) {
    let statements: Vec<&Expr> = factors
        .all
        .iter()
        .filter(|f| !f.private && !f.conditional)
        .filter_map(|f| f.sampling)
        .map(|(_, variate, _)| variate)
        .filter(|variate| sampled(variate) == Some(id))
        .collect();
    let whole = |e: &&Expr| matches!(e.kind, ExprKind::Variable(_));
    if let [first, .., last] = statements[..]
        && statements.iter().any(whole)
    {
        let name = &checked.variable(id).name;
        found.push(
            Diagnostic::warning(
                "W0112",
                last.span,
                format!("`{name}` has {} priors", statements.len()),
            )
            .label("given again here")
            .note(first.span, "given here first")
            .help("their densities are multiplied: keep one, unless that is meant"),
        );
    }
}
