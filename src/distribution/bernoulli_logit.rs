//! The Bernoulli distribution, by the log-odds of success.

use rand::Rng;

use super::draw::{DrawError, numbers, open_unit};
use super::quantity::{Quantity, is_binary};
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::Unary;

pub(super) static FAMILY: Family = Family {
    name: "bernoulli_logit",
    documentation: "Bernoulli with success probability inv_logit(alpha)",
    variate: Kind::Int,
    support: Domain::Binary,
    arguments: &[Argument::real("alpha", Domain::Real, "log-odds of success")],
    draw_arguments: None,
    draw,
};

/// `log inv_logit((2y - 1) alpha)`: one term for both outcomes, without
/// cancellation in either tail.
pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [alpha]: [Quantity<'a, A>; 1],
) -> Quantity<'a, A> {
    ((2.0 * y - 1.0) * alpha).apply(Unary::LogInvLogit) + is_binary(y).support()
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [alpha] = numbers(arguments);
    let u = open_unit(rng);
    Ok(vec![f64::from(u.ln() - (-u).ln_1p() < alpha)])
}
