//! The Bernoulli distribution, by the chance of success.

use rand::Rng;

use super::draw::{DrawError, numbers, open_unit};
use super::quantity::{Quantity, domain_unit, is_binary};
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "bernoulli",
    documentation: "Bernoulli: log theta if y = 1, log(1 - theta) if y = 0",
    variate: Kind::Int,
    support: Domain::Binary,
    arguments: &[Argument::real("theta", Domain::Unit, "chance of success")],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [theta]: [Quantity<'a, A>; 1],
) -> Quantity<'a, A> {
    y.choose(theta.ln(), theta.ln_1m()) + is_binary(y).support() + domain_unit(theta)
}

pub(super) fn log_cdf<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [theta]: [Quantity<'a, A>; 1],
) -> Quantity<'a, A> {
    let below = theta.ln_1m().unless(y.above(0.5), 0.0);
    below.unless(y.below(0.0), f64::NEG_INFINITY)
}

pub(super) fn log_ccdf<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [theta]: [Quantity<'a, A>; 1],
) -> Quantity<'a, A> {
    let above = theta.ln().unless(y.above(0.5), f64::NEG_INFINITY);
    above.unless(y.below(0.0), 0.0)
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [theta] = numbers(arguments);
    Ok(vec![f64::from(open_unit(rng) < theta)])
}
