//! The Dirichlet distribution.

use rand::Rng;

use super::deviance::at_zero;
use super::draw::{self, DrawError};
use super::quantity::Quantity;
use super::vector::adds_up_to_one;
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::HALF_LOG_TWO_PI;

pub(super) static FAMILY: Family = Family {
    name: "dirichlet",
    documentation: "Dirichlet: lgamma(sum(alpha)) + sum of (alpha - 1) log theta - lgamma(alpha)",
    variate: Kind::Vector("K"),
    support: Domain::Simplex,
    arguments: &[Argument::of(
        "alpha",
        Kind::Vector("K"),
        Domain::Positive,
        "shapes",
    )],
    draw_arguments: None,
    draw,
};

/// Gamma variates given their sum. On the simplex derivatives agree along it: the density is that
/// of y/sum(y), except for the product of the y below it.
pub(super) fn log_density<'a, A: Algebra>(
    y: Container<'_, Quantity<'a, A>>,
    [alpha]: [Container<'_, Quantity<'a, A>>; 1],
) -> Quantity<'a, A> {
    let Some(&first) = y.elements.first() else {
        unreachable!("a simplex has an element")
    };
    let total = first.sum(alpha.elements.iter().copied());
    let log_total = total.ln();
    let terms = y.elements.iter().zip(alpha.elements).map(|(&y, &alpha)| {
        let zero = y.below(f64::MIN_POSITIVE);
        let inside = y.unless(zero, 1.0);
        let log = inside.ln();
        let kernel = super::gamma::kernel(alpha, total * inside, log_total + log);
        zero.choose(at_zero(y, alpha, log_total), kernel) - log
            + y.support_from(y.constant(0.0))
            + alpha.domain_positive()
    });
    let sum = first.sum(y.elements.iter().copied());
    first.sum(terms) + total.stirling_error() - 0.5 * log_total
        + HALF_LOG_TWO_PI
        + adds_up_to_one(sum).support()
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let logs: Vec<f64> = arguments[0]
        .elements
        .iter()
        .map(|&alpha| draw::log_gamma(rng, alpha))
        .collect();
    let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = logs.iter().map(|l| (l - largest).exp()).sum();
    Ok(logs.iter().map(|l| (l - largest).exp() / total).collect())
}
