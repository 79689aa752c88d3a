//! The gamma distribution, by shape and inverse scale.

use rand::Rng;

use super::deviance::{at_zero, poisson_deviance};
use super::draw::{self, DrawError, numbers};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::HALF_LOG_TWO_PI;

pub(super) static FAMILY: Family = Family {
    name: "gamma",
    documentation: "Gamma: alpha log beta - lgamma alpha + (alpha - 1) log y - beta y",
    variate: Kind::Real,
    support: Domain::NonNegative,
    arguments: &[
        Argument::real("alpha", Domain::Positive, "shape"),
        Argument::real("beta", Domain::Positive, "inverse scale"),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [alpha, beta]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    let zero = y.below(f64::MIN_POSITIVE);
    let inside = y.unless(zero, 1.0);
    let log = inside.ln();
    let kernel = kernel(alpha, beta * inside, log + beta.ln());
    let at_zero = at_zero(y, alpha, beta.ln());
    zero.choose(at_zero, kernel) - log
        + y.support_from(y.constant(0.0))
        + alpha.domain_positive()
        + beta.domain_positive()
}

/// The log density of log y, from `y beta` and its logarithm: alpha times a Poisson probability of
/// alpha at that rate.
pub(super) fn kernel<'a, A: Algebra>(
    alpha: Quantity<'a, A>,
    rate: Quantity<'a, A>,
    log_rate: Quantity<'a, A>,
) -> Quantity<'a, A> {
    let deviance = poisson_deviance(alpha, rate, log_rate - alpha.ln());
    0.5 * alpha.ln() - alpha.stirling_error() - HALF_LOG_TWO_PI - deviance
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [alpha, beta] = numbers(arguments);
    Ok(vec![draw::log_gamma(rng, alpha).exp() / beta])
}
