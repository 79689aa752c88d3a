//! The categorical distribution, by chances.

use rand::Rng;

use super::draw::{DrawError, open_unit};
use super::quantity::Quantity;
use super::vector::domain_simplex;
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "categorical",
    documentation: "Categorical: log theta[y]",
    variate: Kind::Int,
    support: Domain::Categories("K", 0),
    arguments: &[Argument::of(
        "theta",
        Kind::Vector("K"),
        Domain::Simplex,
        "chances of the categories",
    )],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Container<'_, Quantity<'a, A>>,
    [theta]: [Container<'_, Quantity<'a, A>>; 1],
) -> Quantity<'a, A> {
    let y = y.number();
    let logs: Vec<_> = theta.elements.iter().map(|t| t.ln()).collect();
    y.pick(&logs, 0..logs.len())
        + y.support_from(y.constant(1.0))
        + y.support_to(y.constant(logs.len() as f64))
        + domain_simplex(theta.elements)
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let theta = arguments[0].elements;
    let mut rest = open_unit(rng) * theta.iter().sum::<f64>();
    let passed = theta.iter().take_while(|&&t| {
        rest -= t;
        rest >= 0.0
    });
    Ok(vec![(passed.count() + 1).min(theta.len()) as f64])
}
