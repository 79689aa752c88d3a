//! The logistic distribution.

use rand::Rng;

use super::draw::{DrawError, numbers, open_unit};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::Unary;
use std::f64::consts::LN_2;

pub(super) static FAMILY: Family = Family {
    name: "logistic",
    documentation: "Logistic: -z - log sigma - 2 log1p(exp(-z)), z = (y - mu)/sigma",
    variate: Kind::Real,
    support: Domain::Real,
    arguments: &[
        Argument::real("mu", Domain::Real, "location"),
        Argument::real("sigma", Domain::Positive, "scale"),
    ],
    draw_arguments: None,
    draw,
};

/// `z + 2 log1p(exp(-z))` is `2 log(2 cosh(z/2))`, which is even in z.
pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [mu, sigma]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    let z = (y - mu) / sigma;
    -2.0 * (0.5 * z).apply(Unary::LogCosh) - sigma.ln() - 2.0 * LN_2
}

/// The logarithm of the standard distribution function.
pub(super) fn log_below<A: Algebra>(z: Quantity<'_, A>) -> Quantity<'_, A> {
    z.apply(Unary::LogInvLogit)
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [mu, sigma] = numbers(arguments);
    let u = open_unit(rng);
    Ok(vec![mu + sigma * (u.ln() - (-u).ln_1p())])
}
