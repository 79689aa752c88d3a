//! The lognormal distribution.

use rand::Rng;

use super::draw::{DrawError, numbers, standard_normal};
use super::quantity::{Quantity, is_not_positive, positive_or_one};
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::{HALF_LOG_TWO_PI, Unary};

pub(super) static FAMILY: Family = Family {
    name: "lognormal",
    documentation: "Lognormal: log y is normal(mu, sigma)",
    variate: Kind::Real,
    support: Domain::Positive,
    arguments: &[
        Argument::real("mu", Domain::Real, "mean of log y"),
        Argument::real("sigma", Domain::Positive, "standard deviation of log y"),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [mu, sigma]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    let log = positive_or_one(y).ln();
    let z = (log - mu) / sigma;
    -0.5 * z.squared() - sigma.ln() - HALF_LOG_TWO_PI - log + y.above(0.0).support()
}

pub(super) fn log_cdf<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [mu, sigma]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    let inside = positive_or_one(y);
    let log = ((inside.ln() - mu) / sigma).apply(Unary::LogPhi);
    log.unless(is_not_positive(y), f64::NEG_INFINITY)
}

pub(super) fn log_ccdf<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [mu, sigma]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    let inside = positive_or_one(y);
    let log = ((mu - inside.ln()) / sigma).apply(Unary::LogPhi);
    log.unless(is_not_positive(y), 0.0)
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [mu, sigma] = numbers(arguments);
    Ok(vec![(mu + sigma * standard_normal(rng)).exp()])
}
