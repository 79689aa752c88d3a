//! Poisson regression of a log-linear predictor.

use rand::Rng;

use super::draw::{self, DrawError};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "poisson_log_glm",
    documentation: "Poisson regression: poisson_log(alpha + x * beta)",
    variate: Kind::Int,
    support: Domain::Counts,
    arguments: &[
        Argument::of("x", Kind::Row("P"), Domain::Real, "predictors"),
        Argument::real("alpha", Domain::Real, "intercept"),
        Argument::of("beta", Kind::Vector("P"), Domain::Real, "coefficients"),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Container<'_, Quantity<'a, A>>,
    [x, alpha, beta]: [Container<'_, Quantity<'a, A>>; 3],
) -> Quantity<'a, A> {
    let y = y.number();
    let eta = alpha.number() + y.dot(x.elements, beta.elements);
    super::poisson_log::log_density(y, [eta])
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let eta = draw::linear_predictor(arguments);
    draw::poisson(FAMILY.name, rng, eta.exp())
}
