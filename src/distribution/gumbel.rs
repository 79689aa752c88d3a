//! The Gumbel distribution (of largest values).

use rand::Rng;

use super::draw::{DrawError, numbers, open_unit};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "gumbel",
    documentation: "Gumbel: -log beta - z - exp(-z), z = (y - mu)/beta",
    variate: Kind::Real,
    support: Domain::Real,
    arguments: &[
        Argument::real("mu", Domain::Real, "location"),
        Argument::real("beta", Domain::Positive, "scale"),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [mu, beta]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    let z = (y - mu) / beta;
    -1.0 - (-z).exp_m1_minus() - beta.ln()
}

pub(super) fn log_cdf<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [mu, beta]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    -((mu - y) / beta).exp()
}

pub(super) fn log_ccdf<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [mu, beta]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    (-((mu - y) / beta).exp()).ln_1m_exp()
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [mu, beta] = numbers(arguments);
    Ok(vec![mu - beta * (-open_unit(rng).ln()).ln()])
}
