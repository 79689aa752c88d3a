//! The normal distribution.

use rand::Rng;

use super::draw::{DrawError, numbers, standard_normal};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::{HALF_LOG_TWO_PI, Unary};

pub(super) static FAMILY: Family = Family {
    name: "normal",
    documentation: "Normal: -((y - mu)/sigma)^2/2 - log sigma - log(2 pi)/2",
    variate: Kind::Real,
    support: Domain::Real,
    arguments: &[
        Argument::real("mu", Domain::Real, "mean"),
        Argument::real("sigma", Domain::Positive, "standard deviation"),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [mu, sigma]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    let z = (y - mu) / sigma;
    -0.5 * z.squared() - sigma.ln() - HALF_LOG_TWO_PI
}

/// The logarithm of the standard distribution function.
pub(super) fn log_below<A: Algebra>(z: Quantity<'_, A>) -> Quantity<'_, A> {
    z.apply(Unary::LogPhi)
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [mu, sigma] = numbers(arguments);
    Ok(vec![mu + sigma * standard_normal(rng)])
}
