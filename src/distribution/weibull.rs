//! The Weibull distribution.

use rand::Rng;

use super::deviance::at_zero;
use super::draw::{DrawError, numbers, open_unit};
use super::quantity::{Quantity, is_not_positive, positive_or_one};
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "weibull",
    documentation: "Weibull: log(alpha/sigma) + (alpha - 1) log(y/sigma) - (y/sigma)^alpha",
    variate: Kind::Real,
    support: Domain::NonNegative,
    arguments: &[
        Argument::real("alpha", Domain::Positive, "shape"),
        Argument::real("sigma", Domain::Positive, "scale"),
    ],
    draw_arguments: None,
    draw,
};

/// With u = alpha log(y/sigma): `log alpha - log y + u - exp(u)`.
pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [alpha, sigma]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    let zero = y.below(f64::MIN_POSITIVE);
    let log = y.unless(zero, 1.0).ln();
    let log_power = alpha * (log - sigma.ln());
    let kernel = alpha.ln() - 1.0 - log_power.exp_m1_minus();
    zero.choose(at_zero(y, alpha, -sigma.ln()), kernel) - log
        + y.support_from(y.constant(0.0))
        + alpha.domain_positive()
        + sigma.domain_positive()
}

pub(super) fn log_cdf<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [alpha, sigma]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    let power = (alpha * (positive_or_one(y).ln() - sigma.ln())).exp();
    (-power)
        .ln_1m_exp()
        .unless(is_not_positive(y), f64::NEG_INFINITY)
}

pub(super) fn log_ccdf<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [alpha, sigma]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    let power = (alpha * (positive_or_one(y).ln() - sigma.ln())).exp();
    (-power).unless(is_not_positive(y), 0.0)
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [alpha, sigma] = numbers(arguments);
    Ok(vec![sigma * ((-open_unit(rng).ln()).ln() / alpha).exp()])
}
