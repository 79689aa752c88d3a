//! The double exponential (Laplace) distribution.

use rand::Rng;

use super::draw::{DrawError, numbers, open_unit};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use std::f64::consts::LN_2;

pub(super) static FAMILY: Family = Family {
    name: "double_exponential",
    documentation: "Double exponential: -log(2 sigma) - |y - mu|/sigma",
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
    -((y - mu) / sigma).abs() - sigma.ln() - LN_2
}

/// The logarithm of the standard distribution function.
pub(super) fn log_below<A: Algebra>(z: Quantity<'_, A>) -> Quantity<'_, A> {
    let upper = (0.5 * (-z.abs()).exp()).ln_1m();
    z.below(0.0).choose(z - LN_2, upper)
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [mu, sigma] = numbers(arguments);
    let sign = if open_unit(rng) < 0.5 { -1.0 } else { 1.0 };
    Ok(vec![mu + sign * sigma * -open_unit(rng).ln()])
}
