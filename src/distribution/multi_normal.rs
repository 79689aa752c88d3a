//! The multivariate normal distribution, by its covariance.

use rand::Rng;

use super::draw::{self, DrawError};
use super::quantity::Quantity;
use super::vector::domain_symmetric;
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "multi_normal",
    documentation: "Multivariate normal: -(y - mu) Sigma^-1 (y - mu)/2 - log det(Sigma)/2 - K log(2 pi)/2",
    variate: Kind::Vector("K"),
    support: Domain::Real,
    arguments: &[
        Argument::of("mu", Kind::Vector("K"), Domain::Real, "mean"),
        Argument::of(
            "Sigma",
            Kind::Matrix("K", "K"),
            Domain::Covariance,
            "covariance matrix",
        ),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Container<'_, Quantity<'a, A>>,
    [mu, sigma]: [Container<'_, Quantity<'a, A>>; 2],
) -> Quantity<'a, A> {
    let factor = sigma.elements[0].cholesky(sigma);
    let factor = Container {
        elements: &factor,
        ..sigma
    };
    super::multi_normal_cholesky::log_density(y, [mu, factor]) + domain_symmetric(sigma)
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let factor = draw::cholesky(&arguments[1]).unwrap_or_default();
    let factor = Container {
        elements: &factor,
        ..arguments[1]
    };
    Ok(super::multi_normal_cholesky::draw_by_factor(
        rng,
        arguments[0].elements,
        &factor,
    ))
}
