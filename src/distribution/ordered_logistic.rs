//! Ordered logistic regression.

use rand::Rng;

use super::draw::{DrawError, open_unit};
use super::quantity::Quantity;
use super::vector::domain_ordered;
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::Unary;

pub(super) static FAMILY: Family = Family {
    name: "ordered_logistic",
    documentation: "Ordered logistic: log(inv_logit(eta - c[y - 1]) - inv_logit(eta - c[y]))",
    variate: Kind::Int,
    support: Domain::Categories("C", 1),
    arguments: &[
        Argument::real("eta", Domain::Real, "linear predictor"),
        Argument::of("c", Kind::Vector("C"), Domain::Ordered, "cutpoints"),
    ],
    draw_arguments: None,
    draw,
};

/// With a = eta - c[y - 1] and b = eta - c[y], `inv_logit(a) - inv_logit(b)` is
/// `inv_logit(a) inv_logit(-b) (1 - exp(b - a))`: no difference of close numbers, and a factor of
/// one where a cutpoint is missing at either end.
pub(super) fn log_density<'a, A: Algebra>(
    y: Container<'_, Quantity<'a, A>>,
    [eta, c]: [Container<'_, Quantity<'a, A>>; 2],
) -> Quantity<'a, A> {
    let (y, eta) = (y.number(), eta.number());
    let cutpoints = padded(eta, c.elements);
    let last = c.elements.len() + 1;
    let (low, high) = (y.pick(&cutpoints, 0..last), y.pick(&cutpoints, 1..last + 1));
    // The last factor depends only on the two cutpoints.
    let gaps: Vec<_> = cutpoints
        .windows(2)
        .map(|c| (c[0] - c[1]).ln_1m_exp())
        .collect();
    (eta - low).apply(Unary::LogInvLogit)
        + (high - eta).apply(Unary::LogInvLogit)
        + y.pick(&gaps, 0..last)
        + y.support_from(y.constant(1.0))
        + y.support_to(y.constant(last as f64))
        + domain_ordered(eta, c.elements)
}

/// The cutpoints between minus and plus infinity.
pub(super) fn padded<'a, A: Algebra>(
    eta: Quantity<'a, A>,
    cutpoints: &[Quantity<'a, A>],
) -> Vec<Quantity<'a, A>> {
    let mut padded = vec![eta.constant(f64::NEG_INFINITY)];
    padded.extend(cutpoints);
    padded.push(eta.constant(f64::INFINITY));
    padded
}

/// The category into which the sum of `eta` and a noise falls.
pub(super) fn draw_by_latent(
    arguments: &[Container<'_, f64>],
    noise: f64,
) -> Result<Vec<f64>, DrawError> {
    let latent = arguments[0].number() + noise;
    let passed = arguments[1].elements.iter().filter(|&&c| c < latent);
    Ok(vec![(passed.count() + 1) as f64])
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let u = open_unit(rng);
    draw_by_latent(arguments, u.ln() - (-u).ln_1p())
}
