//! The uniform distribution.

use rand::Rng;

use super::draw::{DrawError, numbers, open_unit};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "uniform",
    documentation: "Uniform: -log(beta - alpha)",
    variate: Kind::Real,
    support: Domain::Between(0, 1),
    arguments: &[
        Argument::real("alpha", Domain::Real, "lower end"),
        Argument::real("beta", Domain::Above(0), "upper end"),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [alpha, beta]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    -(beta - alpha).ln() + y.support_from(alpha) + y.support_to(beta)
}

pub(super) fn log_cdf<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [alpha, beta]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    log_share(y - alpha, beta - y)
        .unless(beta.less(y), 0.0)
        .unless(y.less(alpha), f64::NEG_INFINITY)
}

pub(super) fn log_ccdf<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [alpha, beta]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    log_share(beta - y, y - alpha)
        .unless(beta.less(y), f64::NEG_INFINITY)
        .unless(y.less(alpha), 0.0)
}

/// The log of a part's share in itself and the rest, exact at both ends.
fn log_share<'a, A: Algebra>(part: Quantity<'a, A>, rest: Quantity<'a, A>) -> Quantity<'a, A> {
    let width = part + rest;
    let (most, little) = ((rest / width).ln_1m(), (part / width).ln());
    rest.less(part).choose(most, little)
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [alpha, beta] = numbers(arguments);
    let u = open_unit(rng);
    Ok(vec![alpha * (1.0 - u) + beta * u])
}
