//! The beta distribution.

use rand::Rng;

use super::deviance::{Outcome, at_zero, minus_deviance};
use super::draw::{self, DrawError, numbers};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::HALF_LOG_TWO_PI;

pub(super) static FAMILY: Family = Family {
    name: "beta",
    documentation: "Beta: (alpha - 1) log y + (beta - 1) log(1 - y) - lbeta(alpha, beta)",
    variate: Kind::Real,
    support: Domain::Unit,
    arguments: &[
        Argument::real("alpha", Domain::Positive, "shape at one"),
        Argument::real("beta", Domain::Positive, "shape at zero"),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [alpha, beta]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    log_density_by_total(y, alpha, beta, alpha + beta)
}

/// The log density, where `total` is alpha + beta: with A for it, alpha beta/(A y (1 - y)) times
/// the binomial probability of alpha successes in A trials at chance y.
pub(super) fn log_density_by_total<'a, A: Algebra>(
    y: Quantity<'a, A>,
    alpha: Quantity<'a, A>,
    beta: Quantity<'a, A>,
    total: Quantity<'a, A>,
) -> Quantity<'a, A> {
    let (zero, one) = (y.below(f64::MIN_POSITIVE), 1.0 - y.below(1.0));
    let inside = y.unless(zero, 0.5).unless(one, 0.5);
    let rest = 1.0 - inside;
    let (log, log_rest) = (inside.ln(), inside.ln_1m());
    let apart = beta * inside - alpha * rest;
    let left = Outcome {
        times: alpha,
        off: apart / alpha,
        log_ratio: log - (alpha / total).ln(),
    };
    let right = Outcome {
        times: beta,
        off: -apart / beta,
        log_ratio: log_rest - (beta / total).ln(),
    };
    let normaliser = total.stirling_error() - alpha.stirling_error() - beta.stirling_error()
        + 0.5 * (alpha * (beta / total)).ln()
        - HALF_LOG_TWO_PI;
    let kernel = normaliser + minus_deviance(&left, &right);
    let kernel = one.choose(at_zero(1.0 - y, beta, alpha.ln()), kernel);
    let kernel = zero.choose(at_zero(y, alpha, beta.ln()), kernel);
    let edge = log_rest + log;
    kernel - edge.unless(zero, 0.0).unless(one, 0.0)
        + y.support_from(y.constant(0.0))
        + y.support_to(y.constant(1.0))
        + alpha.domain_positive()
        + beta.domain_positive()
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [alpha, beta] = numbers(arguments);
    Ok(vec![draw::beta(rng, alpha, beta).0])
}
