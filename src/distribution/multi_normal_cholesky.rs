//! The multivariate normal distribution, by the factor of its covariance.

use rand::Rng;

use super::draw::{DrawError, standard_normal};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::HALF_LOG_TWO_PI;

pub(super) static FAMILY: Family = Family {
    name: "multi_normal_cholesky",
    documentation: "Multivariate normal with covariance L * L'",
    variate: Kind::Vector("K"),
    support: Domain::Real,
    arguments: &[
        Argument::of("mu", Kind::Vector("K"), Domain::Real, "mean"),
        Argument::of(
            "L",
            Kind::Matrix("K", "K"),
            Domain::CholeskyCovariance,
            "Cholesky factor of the covariance",
        ),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Container<'_, Quantity<'a, A>>,
    [mu, l]: [Container<'_, Quantity<'a, A>>; 2],
) -> Quantity<'a, A> {
    let Some(&first) = y.elements.first() else {
        unreachable!("a factor has an element")
    };
    let n = y.elements.len();
    let deviations: Vec<_> = y
        .elements
        .iter()
        .zip(mu.elements)
        .map(|(&y, &mu)| y - mu)
        .collect();
    let z = first.solve_lower(l, &deviations);
    let logs = first.sum((0..n).map(|i| l.at(i, i).ln()));
    -0.5 * first.sum(z.iter().map(|z| z.squared())) - logs - n as f64 * HALF_LOG_TWO_PI
}

pub(super) fn draw_by_factor(
    rng: &mut dyn Rng,
    mu: &[f64],
    factor: &Container<'_, f64>,
) -> Vec<f64> {
    let z: Vec<f64> = mu.iter().map(|_| standard_normal(rng)).collect();
    let moved = |i: usize| (0..=i).map(|j| factor.at(i, j) * z[j]).sum::<f64>();
    mu.iter().enumerate().map(|(i, mu)| mu + moved(i)).collect()
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    Ok(draw_by_factor(rng, arguments[0].elements, &arguments[1]))
}
