//! The skew normal distribution.

use rand::Rng;

use super::draw::{DrawError, numbers, standard_normal};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::{HALF_LOG_TWO_PI, Unary};
use std::f64::consts::LN_2;

pub(super) static FAMILY: Family = Family {
    name: "skew_normal",
    documentation: "Skew normal: log 2 - log omega + log phi(z) + log Phi(alpha z), z = (y - xi)/omega",
    variate: Kind::Real,
    support: Domain::Real,
    arguments: &[
        Argument::real("xi", Domain::Real, "location"),
        Argument::real("omega", Domain::Positive, "scale"),
        Argument::real("alpha", Domain::Real, "slant"),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [xi, omega, alpha]: [Quantity<'a, A>; 3],
) -> Quantity<'a, A> {
    let z = (y - xi) / omega;
    -0.5 * z.squared() - omega.ln() - HALF_LOG_TWO_PI + LN_2 + (alpha * z).apply(Unary::LogPhi)
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [xi, omega, alpha] = numbers(arguments);
    // Azzalini (1985): alpha |z0| and z1, over their length.
    let length = 1.0f64.hypot(alpha);
    let sum = alpha / length * standard_normal(rng).abs() + standard_normal(rng) / length;
    Ok(vec![xi + omega * sum])
}
