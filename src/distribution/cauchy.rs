//! The Cauchy distribution.

use rand::Rng;

use super::draw::{DrawError, numbers, open_unit};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::Unary;
use std::f64::consts::PI;

pub(super) static FAMILY: Family = Family {
    name: "cauchy",
    documentation: "Cauchy: -log(pi sigma) - log1p(((y - mu)/sigma)^2)",
    variate: Kind::Real,
    support: Domain::Real,
    arguments: &[
        Argument::real("mu", Domain::Real, "location"),
        Argument::real("sigma", Domain::Positive, "scale"),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [mu, sigma]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    let z = (y - mu) / sigma;
    -z.squared().ln_1p() - sigma.ln() - PI.ln()
}

/// The logarithm of the standard distribution function.
pub(super) fn log_below<A: Algebra>(z: Quantity<'_, A>) -> Quantity<'_, A> {
    z.apply(Unary::LogCauchyCdf)
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [mu, sigma] = numbers(arguments);
    // From the median outwards, so that both tails are covered completely.
    let tail = 1.0 / (0.5 * PI * open_unit(rng)).tan();
    let sign = if open_unit(rng) < 0.5 { -1.0 } else { 1.0 };
    Ok(vec![mu + sign * sigma * tail])
}
