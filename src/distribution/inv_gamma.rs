//! The inverse gamma distribution.

use rand::Rng;

use super::draw::{self, DrawError, numbers};
use super::quantity::{Quantity, positive_or_one};
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "inv_gamma",
    documentation: "Inverse gamma: alpha log beta - lgamma alpha - (alpha + 1) log y - beta/y",
    variate: Kind::Real,
    support: Domain::Positive,
    arguments: &[
        Argument::real("alpha", Domain::Positive, "shape"),
        Argument::real("beta", Domain::Positive, "scale"),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [alpha, beta]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    let inside = positive_or_one(y);
    let log = inside.ln();
    super::gamma::kernel(alpha, beta / inside, beta.ln() - log) - log
        + y.above(0.0).support()
        + alpha.domain_positive()
        + beta.domain_positive()
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [alpha, beta] = numbers(arguments);
    Ok(vec![beta * (-draw::log_gamma(rng, alpha)).exp()])
}
