//! The chi-square distribution.

use rand::Rng;

use super::draw::{self, DrawError, numbers};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "chi_square",
    documentation: "Chi-square: gamma(nu/2, 1/2)",
    variate: Kind::Real,
    support: Domain::NonNegative,
    arguments: &[Argument::real("nu", Domain::Positive, "degrees of freedom")],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [nu]: [Quantity<'a, A>; 1],
) -> Quantity<'a, A> {
    super::gamma::log_density(y, [0.5 * nu, nu.constant(0.5)])
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [nu] = numbers(arguments);
    Ok(vec![2.0 * draw::log_gamma(rng, 0.5 * nu).exp()])
}
