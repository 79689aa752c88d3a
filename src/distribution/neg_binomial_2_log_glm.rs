//! Negative binomial regression of a log-linear predictor.

use rand::Rng;

use super::draw::{self, DrawError};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "neg_binomial_2_log_glm",
    documentation: "Negative binomial regression: neg_binomial_2_log(alpha + x * beta, phi)",
    variate: Kind::Int,
    support: Domain::Counts,
    arguments: &[
        Argument::of("x", Kind::Row("P"), Domain::Real, "predictors"),
        Argument::real("alpha", Domain::Real, "intercept"),
        Argument::of("beta", Kind::Vector("P"), Domain::Real, "coefficients"),
        Argument::real("phi", Domain::Positive, "precision"),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Container<'_, Quantity<'a, A>>,
    [x, alpha, beta, phi]: [Container<'_, Quantity<'a, A>>; 4],
) -> Quantity<'a, A> {
    let y = y.number();
    let eta = alpha.number() + y.dot(x.elements, beta.elements);
    super::neg_binomial_2_log::log_density(y, [eta, phi.number()])
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let eta = draw::linear_predictor(arguments);
    super::neg_binomial_2::draw_by_log(FAMILY.name, rng, eta, arguments[3].number())
}
