//! Constraints that the distribution of a parameter contradicts, and hard ends
//! where the distribution has none.

use super::super::typed::*;
use super::factors::Factors;
use super::sampled;
use crate::distribution::{Domain, FAMILIES};
use crate::syntax::Diagnostic;

pub(super) fn lint(checked: &Checked, factors: &Factors, found: &mut Vec<Diagnostic>) {
    for factor in &factors.all {
        let Some((family, variate, arguments)) = factor.sampling else {
            continue;
        };
        let Some(id) = sampled(variate) else { continue };
        let variable = checked.variable(id);
        if variable.role != Role::Parameter {
            continue;
        }
        let family = FAMILIES[family];
        let Some(instead) = contradiction(variable, family.support(), arguments) else {
            continue;
        };
        found.push(
            Diagnostic::warning(
                "W0113",
                variate.span,
                format!(
                    "`{}` may take values that `{}` gives no density to",
                    variable.name,
                    family.name()
                ),
            )
            .label(format!(
                "`{}` wants {}",
                family.name(),
                family.support_in_words()
            ))
            .note(variable.span, "declared here")
            .help(format!(
                "declare it {instead}: the sampler would stop at the edge"
            )),
        );
    }
    for &id in &checked.parameters {
        hard_interval(checked, factors, id, found);
    }
}

/// How to declare the variable instead, when its declared values reach outside
/// the support.
fn contradiction(variable: &Variable, support: Domain, arguments: &[Expr]) -> Option<String> {
    let joint = match variable.structure {
        Structure::Joint(joint) => Some(joint),
        _ => None,
    };
    let wants = |fits: bool, instead: &str| (!fits).then(|| instead.to_string());
    match support {
        Domain::Positive | Domain::NonNegative => wants(
            is_from(variable, 0.0)
                || matches!(joint, Some(Joint::PositiveOrdered | Joint::Simplex)),
            "with `lower=0`",
        ),
        Domain::Unit => wants(
            (is_from(variable, 0.0) && is_to(variable, 1.0)) || joint == Some(Joint::Simplex),
            "with `lower=0, upper=1`",
        ),
        Domain::Above(k) | Domain::From(k) => {
            let end = number(arguments.get(k)?)?;
            wants(is_from(variable, end), &format!("with `lower={end}`"))
        }
        Domain::Between(a, b) => {
            let ends = (number(arguments.get(a)?), number(arguments.get(b)?));
            let (Some(low), Some(high)) = ends else {
                // Computed ends: two bounds are assumed to be the same.
                return wants(
                    variable.lower.is_some() && variable.upper.is_some(),
                    "with these ends as `lower` and `upper`",
                );
            };
            wants(
                is_from(variable, low) && is_to(variable, high),
                &format!("with `lower={low}, upper={high}`"),
            )
        }
        Domain::Simplex => wants(joint == Some(Joint::Simplex), "`simplex[K]`"),
        Domain::Ordered => wants(
            matches!(joint, Some(Joint::Ordered | Joint::PositiveOrdered)),
            "`ordered[K]`",
        ),
        Domain::Covariance => wants(
            matches!(joint, Some(Joint::CovMatrix | Joint::CorrMatrix)),
            "`cov_matrix[K]`",
        ),
        Domain::Correlation => wants(joint == Some(Joint::CorrMatrix), "`corr_matrix[K]`"),
        Domain::CholeskyCovariance => wants(
            matches!(
                joint,
                Some(Joint::CholeskyFactorCov | Joint::CholeskyFactorCorr)
            ),
            "`cholesky_factor_cov[K]`",
        ),
        Domain::CholeskyCorrelation => wants(
            joint == Some(Joint::CholeskyFactorCorr),
            "`cholesky_factor_corr[K]`",
        ),
        Domain::Real
        | Domain::Binary
        | Domain::Counts
        | Domain::CountsTo(_)
        | Domain::Categories(..) => None,
    }
}

/// A computed bound is assumed to be correct.
fn is_from(variable: &Variable, end: f64) -> bool {
    let bound = variable.lower.as_ref();
    bound.is_some_and(|b| number(b).is_none_or(|b| b >= end))
}

fn is_to(variable: &Variable, end: f64) -> bool {
    let bound = variable.upper.as_ref();
    bound.is_some_and(|b| number(b).is_none_or(|b| b <= end))
}

/// A number as written.
fn number(e: &Expr) -> Option<f64> {
    match &e.kind {
        ExprKind::Int(v) => Some(*v as f64),
        ExprKind::Real(v) => Some(*v),
        ExprKind::Negate(inner) => number(inner).map(|v| -v),
        _ => None,
    }
}

/// `real<lower=0, upper=10> x` with a distribution that extends beyond, as in Stan's pedantic mode;
/// the ends of probabilities and correlations are natural.
fn hard_interval(
    checked: &Checked,
    factors: &Factors,
    id: VariableId,
    found: &mut Vec<Diagnostic>,
) {
    let variable = checked.variable(id);
    let ends = (
        variable.lower.as_ref().and_then(number),
        variable.upper.as_ref().and_then(number),
    );
    let (Some(low), Some(high)) = ends else {
        return;
    };
    if high == 1.0 && (low == 0.0 || low == -1.0) {
        return;
    }
    let ends_too = |support: Domain| matches!(support, Domain::Unit | Domain::Between(..));
    let families: Vec<Domain> = factors
        .all
        .iter()
        .filter_map(|f| f.sampling)
        .filter(|(_, variate, _)| sampled(variate) == Some(id))
        .map(|(family, ..)| FAMILIES[family].support())
        .collect();
    // Without any, it is uniform between the bounds.
    if families.is_empty() || families.into_iter().any(ends_too) {
        return;
    }
    found.push(
        Diagnostic::warning(
            "W0114",
            variable.span,
            format!(
                "`{}` is cut off at {low} and at {high}, though its distribution is not",
                variable.name
            ),
        )
        .label("hard bounds on both sides")
        .help("hard bounds are for what cannot be otherwise, such as a probability; where values outside are only unlikely, leave them out and give a prior like `normal`"),
    );
}
