//! The normal distribution with mean 0 and standard deviation 1.

use rand::Rng;

use super::draw::{DrawError, numbers, standard_normal};
use super::quantity::Quantity;
use super::{Algebra, Container, Domain, Family, Kind};
use crate::function::{HALF_LOG_TWO_PI, Unary};

pub(super) static FAMILY: Family = Family {
    name: "std_normal",
    documentation: "Standard normal: -y^2/2 - log(2 pi)/2",
    variate: Kind::Real,
    support: Domain::Real,
    arguments: &[],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    []: [Quantity<'a, A>; 0],
) -> Quantity<'a, A> {
    -0.5 * y.squared() - HALF_LOG_TWO_PI
}

pub(super) fn log_cdf<'a, A: Algebra>(
    y: Quantity<'a, A>,
    []: [Quantity<'a, A>; 0],
) -> Quantity<'a, A> {
    y.apply(Unary::LogPhi)
}

pub(super) fn log_ccdf<'a, A: Algebra>(
    y: Quantity<'a, A>,
    []: [Quantity<'a, A>; 0],
) -> Quantity<'a, A> {
    (-y).apply(Unary::LogPhi)
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [] = numbers(arguments);
    Ok(vec![standard_normal(rng)])
}
