//! The categorical distribution, by log-odds.

use rand::Rng;

use super::draw::{DrawError, open_unit};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "categorical_logit",
    documentation: "Categorical: beta[y] - log_sum_exp(beta)",
    variate: Kind::Int,
    support: Domain::Categories("K", 0),
    arguments: &[Argument::of(
        "beta",
        Kind::Vector("K"),
        Domain::Real,
        "log-odds of the categories",
    )],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Container<'_, Quantity<'a, A>>,
    [beta]: [Container<'_, Quantity<'a, A>>; 1],
) -> Quantity<'a, A> {
    let y = y.number();
    let total = y.log_sum_exp(beta.elements);
    let logs: Vec<_> = beta.elements.iter().map(|&b| b - total).collect();
    y.pick(&logs, 0..logs.len())
        + y.support_from(y.constant(1.0))
        + y.support_to(y.constant(logs.len() as f64))
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    // The largest of the log-odds, each moved by a Gumbel variate.
    let moved = arguments[0]
        .elements
        .iter()
        .map(|b| b - (-open_unit(rng).ln()).ln());
    let largest = moved.enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
    Ok(vec![largest.map_or(1, |(at, _)| at + 1) as f64])
}
