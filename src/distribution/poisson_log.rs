//! The Poisson distribution, by the logarithm of its rate.

use rand::Rng;

use super::deviance::log_poisson_at_mean;
use super::draw::{self, DrawError, numbers};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::Form;

pub(super) static FAMILY: Family = Family {
    name: "poisson_log",
    documentation: "Poisson with rate exp(alpha): y alpha - exp(alpha) - lgamma(y + 1)",
    variate: Kind::Int,
    support: Domain::Counts,
    arguments: &[Argument::real("alpha", Domain::Real, "log rate")],
    draw_arguments: None,
    draw,
};

/// With s = alpha - log y the deviance is `y (exp(s) - 1 - s)`.
pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [alpha]: [Quantity<'a, A>; 1],
) -> Quantity<'a, A> {
    let none = y.below(1.0);
    let count = y.at_least(1.0);
    let deviance = count * (alpha - count.ln()).exp_m1_minus();
    let deviance = none
        .choose(alpha.exp(), deviance)
        .noted(Form::PoissonDevianceByLog, [y, alpha]);
    log_poisson_at_mean(count).unless(none, 0.0) - deviance + y.support_from(y.constant(0.0))
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [alpha] = numbers(arguments);
    draw::poisson(FAMILY.name, rng, alpha.exp())
}
