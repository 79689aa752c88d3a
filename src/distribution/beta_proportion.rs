//! The beta distribution, by mean and precision.

use rand::Rng;

use super::draw::{self, DrawError, numbers};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "beta_proportion",
    documentation: "Beta proportion: beta(mu kappa, (1 - mu) kappa)",
    variate: Kind::Real,
    support: Domain::Unit,
    arguments: &[
        Argument::real("mu", Domain::Unit, "mean"),
        Argument::real("kappa", Domain::Positive, "precision"),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [mu, kappa]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    super::beta::log_density_by_total(y, mu * kappa, (1.0 - mu) * kappa, kappa)
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [mu, kappa] = numbers(arguments);
    // With a mean of 0 or 1 there is nothing to draw.
    if mu == 0.0 || mu == 1.0 {
        return Ok(vec![mu]);
    }
    Ok(vec![draw::beta(rng, mu * kappa, (1.0 - mu) * kappa).0])
}
