//! The Rayleigh distribution.

use rand::Rng;

use super::draw::{DrawError, numbers, open_unit};
use super::quantity::{Quantity, is_not_positive, positive_or_one};
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "rayleigh",
    documentation: "Rayleigh: log y - 2 log sigma - (y/sigma)^2/2",
    variate: Kind::Real,
    support: Domain::NonNegative,
    arguments: &[Argument::real("sigma", Domain::Positive, "scale")],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [sigma]: [Quantity<'a, A>; 1],
) -> Quantity<'a, A> {
    positive_or_one(y).ln() - 2.0 * sigma.ln() - 0.5 * (y / sigma).squared()
        + y.above(0.0).support()
}

pub(super) fn log_cdf<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [sigma]: [Quantity<'a, A>; 1],
) -> Quantity<'a, A> {
    let log = (-0.5 * (y / sigma).squared()).ln_1m_exp();
    log.unless(is_not_positive(y), f64::NEG_INFINITY)
}

pub(super) fn log_ccdf<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [sigma]: [Quantity<'a, A>; 1],
) -> Quantity<'a, A> {
    (-0.5 * (y / sigma).squared()).unless(is_not_positive(y), 0.0)
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [sigma] = numbers(arguments);
    Ok(vec![sigma * (-2.0 * open_unit(rng).ln()).sqrt()])
}
