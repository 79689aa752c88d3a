//! Linear regression: a normal distribution of a linear predictor.

use rand::Rng;

use super::draw::{self, DrawError, standard_normal};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "normal_id_glm",
    documentation: "Normal regression: normal(alpha + x * beta, sigma)",
    variate: Kind::Real,
    support: Domain::Real,
    arguments: &[
        Argument::of("x", Kind::Row("P"), Domain::Real, "predictors"),
        Argument::real("alpha", Domain::Real, "intercept"),
        Argument::of("beta", Kind::Vector("P"), Domain::Real, "coefficients"),
        Argument::real("sigma", Domain::Positive, "standard deviation"),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Container<'_, Quantity<'a, A>>,
    [x, alpha, beta, sigma]: [Container<'_, Quantity<'a, A>>; 4],
) -> Quantity<'a, A> {
    let y = y.number();
    let eta = alpha.number() + y.dot(x.elements, beta.elements);
    super::normal::log_density(y, [eta, sigma.number()])
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let eta = draw::linear_predictor(arguments);
    Ok(vec![eta + arguments[3].number() * standard_normal(rng)])
}
