//! The Poisson distribution.

use rand::Rng;

use super::deviance::log_poisson;
use super::draw::{self, DrawError, numbers};
use super::quantity::{Quantity, domain_not_negative};
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "poisson",
    documentation: "Poisson: y log lambda - lambda - lgamma(y + 1)",
    variate: Kind::Int,
    support: Domain::Counts,
    arguments: &[Argument::real("lambda", Domain::NonNegative, "rate")],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [lambda]: [Quantity<'a, A>; 1],
) -> Quantity<'a, A> {
    log_poisson(y, lambda) + y.support_from(y.constant(0.0)) + domain_not_negative(lambda)
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [lambda] = numbers(arguments);
    draw::poisson(FAMILY.name, rng, lambda)
}
