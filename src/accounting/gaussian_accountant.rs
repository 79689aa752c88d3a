//! The accountant of releases about all rows: tight, by the curve of one Gaussian.

use super::accountant::{AccountError, Accountant, Query, delta_unreachable};
use super::composition::Composition;
use super::discrete::LatticeCurve;
use super::gaussian::{GaussianCurve, exp_up};
use super::guarantee::{Found, Guarantee};
use super::real::Real;

pub(super) fn account(
    composition: &Composition<'_>,
    query: Query,
) -> Result<Guarantee, AccountError> {
    composition.check_about_all_rows(Accountant::Gaussian)?;
    let found = found(composition, query)?;
    Ok(Guarantee::new(Accountant::Gaussian, composition, found))
}

/// Bounds for the releases about all rows.
pub(super) fn found(composition: &Composition<'_>, query: Query) -> Result<Found, AccountError> {
    let gaussian = GaussianCurve::new(composition.mu());
    let total_variation = composition.total_variation();
    let curve = LatticeCurve::new(gaussian, total_variation);
    let continuous = total_variation <= Real::ZERO;
    Ok(match query {
        Query::Epsilon { delta } => Found::Epsilon {
            delta,
            lower: continuous.then(|| gaussian.epsilon(delta).lower),
            upper: curve.epsilon_upper(delta).ok_or_else(|| {
                let best = Real::exact(curve.epsilon_of_smallest_delta());
                delta_unreachable(delta, total_variation, exp_up(curve.ln_delta_upper(best)))
            })?,
        },
        Query::Delta { epsilon } => Found::Delta {
            epsilon,
            lower: continuous.then(|| gaussian.delta(epsilon).lower),
            ln_upper: curve.ln_delta_upper(epsilon),
        },
    })
}
