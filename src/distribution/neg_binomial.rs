//! The negative binomial distribution, by shape and inverse scale.

use rand::Rng;

use super::draw::{DrawError, numbers};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "neg_binomial",
    documentation: "Negative binomial: neg_binomial_2(alpha/beta, alpha)",
    variate: Kind::Int,
    support: Domain::Counts,
    arguments: &[
        Argument::real("alpha", Domain::Positive, "shape"),
        Argument::real("beta", Domain::Positive, "inverse scale"),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [alpha, beta]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    let log_mu = alpha.ln() - beta.ln();
    let log_spread = (1.0 / beta).ln_1p();
    super::neg_binomial_2::log_density_by_logs(y, alpha / beta, log_mu, log_spread, alpha)
        + beta.domain_positive()
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [alpha, beta] = numbers(arguments);
    super::neg_binomial_2::draw_by_log(FAMILY.name, rng, alpha.ln() - beta.ln(), alpha)
}
