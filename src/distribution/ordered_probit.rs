//! Ordered probit regression.

use rand::Rng;

use super::draw::{DrawError, standard_normal};
use super::ordered_logistic::padded;
use super::quantity::Quantity;
use super::vector::domain_ordered;
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::Unary;

pub(super) static FAMILY: Family = Family {
    name: "ordered_probit",
    documentation: "Ordered probit: log(Phi(c[y] - eta) - Phi(c[y - 1] - eta))",
    variate: Kind::Int,
    support: Domain::Categories("C", 1),
    arguments: &[
        Argument::real("eta", Domain::Real, "linear predictor"),
        Argument::of("c", Kind::Vector("C"), Domain::Ordered, "cutpoints"),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Container<'_, Quantity<'a, A>>,
    [eta, c]: [Container<'_, Quantity<'a, A>>; 2],
) -> Quantity<'a, A> {
    let (y, eta) = (y.number(), eta.number());
    let cutpoints = padded(eta, c.elements);
    let last = c.elements.len() + 1;
    let (low, high) = (
        y.pick(&cutpoints, 0..last) - eta,
        y.pick(&cutpoints, 1..last + 1) - eta,
    );
    // Both in the lower tail, where Phi keeps its relative accuracy.
    let flip = low.above(0.0);
    let (low, high) = (flip.choose(-high, low), flip.choose(-low, high));
    let (low, high) = (low.apply(Unary::LogPhi), high.apply(Unary::LogPhi));
    high + (low - high).ln_1m_exp()
        + y.support_from(y.constant(1.0))
        + y.support_to(y.constant(last as f64))
        + domain_ordered(eta, c.elements)
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let noise = standard_normal(rng);
    super::ordered_logistic::draw_by_latent(arguments, noise)
}
