//! The exponential distribution.

use rand::Rng;

use super::draw::{DrawError, numbers, open_unit};
use super::quantity::{Quantity, is_not_positive};
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "exponential",
    documentation: "Exponential: log beta - beta y",
    variate: Kind::Real,
    support: Domain::NonNegative,
    arguments: &[Argument::real("beta", Domain::Positive, "inverse scale")],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [beta]: [Quantity<'a, A>; 1],
) -> Quantity<'a, A> {
    beta.ln() - beta * y + y.support_from(y.constant(0.0))
}

pub(super) fn log_cdf<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [beta]: [Quantity<'a, A>; 1],
) -> Quantity<'a, A> {
    let log = (-(beta * y)).ln_1m_exp();
    log.unless(is_not_positive(y), f64::NEG_INFINITY)
}

pub(super) fn log_ccdf<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [beta]: [Quantity<'a, A>; 1],
) -> Quantity<'a, A> {
    (-(beta * y)).unless(is_not_positive(y), 0.0)
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [beta] = numbers(arguments);
    Ok(vec![-open_unit(rng).ln() / beta])
}
