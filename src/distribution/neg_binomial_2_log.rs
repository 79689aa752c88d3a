//! The negative binomial distribution, by log mean and precision.

use rand::Rng;

use super::draw::{DrawError, numbers};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "neg_binomial_2_log",
    documentation: "Negative binomial with mean exp(eta) and precision phi",
    variate: Kind::Int,
    support: Domain::Counts,
    arguments: &[
        Argument::real("eta", Domain::Real, "log mean"),
        Argument::real("phi", Domain::Positive, "precision"),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [eta, phi]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    // Beyond e^300 only the logarithms still matter.
    let mu = eta.unless(eta.above(300.0), 300.0).exp();
    let log_spread = (eta - phi.ln()).ln_1p_exp();
    super::neg_binomial_2::log_density_by_logs(y, mu, eta, log_spread, phi)
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [eta, phi] = numbers(arguments);
    super::neg_binomial_2::draw_by_log(FAMILY.name, rng, eta, phi)
}
