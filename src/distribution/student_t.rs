//! Student's t distribution with location and scale.

use rand::Rng;

use super::draw::{self, DrawError, numbers, standard_normal};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::{Form, HALF_LOG_TWO_PI};

pub(super) static FAMILY: Family = Family {
    name: "student_t",
    documentation: "Student t with nu degrees of freedom: -(nu + 1)/2 log1p(((y - mu)/sigma)^2/nu) + a constant of nu",
    variate: Kind::Real,
    support: Domain::Real,
    arguments: &[
        Argument::real("nu", Domain::Positive, "degrees of freedom"),
        Argument::real("mu", Domain::Real, "location"),
        Argument::real("sigma", Domain::Positive, "scale"),
    ],
    draw_arguments: None,
    draw,
};

/// With x = nu/2, `lgamma(x + 1/2) - lgamma(x) - log(2 pi x)/2` is
/// `x (log1p(1/(2x)) - 1/(2x)) - log(2 pi)/2` and the difference of two Stirling
/// errors. Where z^2 < nu the kernel is written as z^2/2 and the rest of the logarithm, so that its
/// derivative in nu survives as nu grows.
pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [nu, mu, sigma]: [Quantity<'a, A>; 3],
) -> Quantity<'a, A> {
    let z2 = ((y - mu) / sigma).squared();
    let x = 0.5 * nu;
    let ratio = z2 / nu;
    let plain = (x + 0.5) * ratio.ln_1p();
    // A constant nu needs no derivative.
    let kernel = if nu.known().is_some() {
        plain
    } else {
        let near = 0.5 * (nu * ratio.ln_1p_minus() + z2 + ratio.ln_1p());
        ratio.below(1.0).choose(near, plain)
    };
    let gammas = x * (0.5 / x).ln_1p_minus() + ((x + 0.5).stirling_error() - x.stirling_error());
    let kernel = kernel.noted(Form::StudentKernel, [nu, z2]);
    gammas - HALF_LOG_TWO_PI - sigma.ln() - kernel + nu.domain_positive()
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [nu, mu, sigma] = numbers(arguments);
    // Normal / sqrt(chi-square / nu), with the root computed from the logarithm.
    let log_scale = 0.5 * ((0.5 * nu).ln() - draw::log_gamma(rng, 0.5 * nu));
    Ok(vec![mu + sigma * standard_normal(rng) * log_scale.exp()])
}
