//! The scaled inverse chi-square distribution.

use rand::Rng;

use super::draw::{self, DrawError, numbers};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "scaled_inv_chi_square",
    documentation: "Scaled inverse chi-square: inv_gamma(nu/2, nu sigma^2/2)",
    variate: Kind::Real,
    support: Domain::Positive,
    arguments: &[
        Argument::real("nu", Domain::Positive, "degrees of freedom"),
        Argument::real("sigma", Domain::Positive, "scale"),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [nu, sigma]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    let x = 0.5 * nu;
    super::inv_gamma::log_density(y, [x, x * sigma.squared()]) + sigma.domain_positive()
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [nu, sigma] = numbers(arguments);
    let x = 0.5 * nu;
    Ok(vec![x * sigma * sigma * (-draw::log_gamma(rng, x)).exp()])
}
