//! The exponentially modified normal distribution.

use rand::Rng;

use super::draw::{DrawError, numbers, open_unit, standard_normal};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::{HALF_LOG_TWO_PI, Unary};

pub(super) static FAMILY: Family = Family {
    name: "exp_mod_normal",
    documentation: "Normal plus exponential: log lambda + lambda (mu - y) + (lambda sigma)^2/2 + log Phi((y - mu)/sigma - lambda sigma)",
    variate: Kind::Real,
    support: Domain::Real,
    arguments: &[
        Argument::real("mu", Domain::Real, "mean of the normal"),
        Argument::real("sigma", Domain::Positive, "its standard deviation"),
        Argument::real(
            "lambda",
            Domain::Positive,
            "inverse scale of the exponential",
        ),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [mu, sigma, lambda]: [Quantity<'a, A>; 3],
) -> Quantity<'a, A> {
    lambda.ln() + log_kernel(y - mu, sigma, lambda) + sigma.domain_positive()
}

pub(super) fn log_cdf<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [mu, sigma, lambda]: [Quantity<'a, A>; 3],
) -> Quantity<'a, A> {
    let z = (y - mu) / sigma;
    let normal = z.apply(Unary::LogPhi);
    normal + (log_kernel(y - mu, sigma, lambda) - normal).ln_1m_exp()
}

pub(super) fn log_ccdf<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [mu, sigma, lambda]: [Quantity<'a, A>; 3],
) -> Quantity<'a, A> {
    let z = (y - mu) / sigma;
    let (normal, kernel) = ((-z).apply(Unary::LogPhi), log_kernel(y - mu, sigma, lambda));
    let larger = normal.less(kernel).choose(kernel, normal);
    larger + (-(normal - kernel).abs()).ln_1p_exp()
}

/// `-z b + b^2/2 + log Phi(z - b)`, z = d/sigma and b = lambda sigma. Below b it is the normal log
/// density of z plus the difference between `log Phi(z - b)` and the log density of z - b: the
/// squares are cancelled by hand.
fn log_kernel<'a, A: Algebra>(
    d: Quantity<'a, A>,
    sigma: Quantity<'a, A>,
    lambda: Quantity<'a, A>,
) -> Quantity<'a, A> {
    let (z, b) = (d / sigma, lambda * sigma);
    let x = z - b;
    let lower = -0.5 * z.squared() - HALF_LOG_TWO_PI + x.apply(Unary::LogPhiOverDensity);
    let upper = x.apply(Unary::LogPhi) - lambda * d + 0.5 * b.squared();
    x.below(0.0).choose(lower, upper)
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [mu, sigma, lambda] = numbers(arguments);
    Ok(vec![
        mu + sigma * standard_normal(rng) - open_unit(rng).ln() / lambda,
    ])
}
