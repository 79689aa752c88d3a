//! The LKJ distribution of Cholesky factors of correlation matrices.

use rand::Rng;

use super::deviance::log_gamma_ratio;
use super::draw::{self, DrawError, numbers};
use super::quantity::Quantity;
use super::vector::adds_up_to_one;
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use std::f64::consts::PI;

pub(super) static FAMILY: Family = Family {
    name: "lkj_corr_cholesky",
    documentation: "LKJ: sum over k = 2..K of (K - k + 2 eta - 2) log y[k, k] + a constant of eta",
    variate: Kind::Matrix("K", "K"),
    support: Domain::CholeskyCorrelation,
    arguments: &[Argument::real("eta", Domain::Positive, "shape")],
    draw_arguments: Some(&[
        Argument::of("K", Kind::Int, Domain::Counts, "rows"),
        Argument::real("eta", Domain::Positive, "shape"),
    ]),
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Container<'_, Quantity<'a, A>>,
    [eta]: [Container<'_, Quantity<'a, A>>; 1],
) -> Quantity<'a, A> {
    let (n, eta) = (y.rows, eta.number());
    let rows = (1..n).map(|k| (2.0 * eta + (n as f64 - k as f64 - 3.0)) * y.at(k, k).ln());
    let lengths = (0..n).map(|i| {
        let length = eta.sum((0..=i).map(|j| y.at(i, j).squared()));
        adds_up_to_one(length).support()
    });
    eta.sum(rows) + eta.sum(lengths) + log_constant(eta, n) + eta.domain_positive()
}

/// Minus the log of the integral of det^(eta - 1) over correlation matrices: of
/// each of the K - i partial correlations with i - 1 others, it is that of
/// (1 - r^2)^(b - 1), b = eta + (K - 1 - i)/2, which is
/// sqrt(pi) Gamma(b)/Gamma(b + 1/2) (Lewandowski, Kurowicka and Joe 2009,
/// theorem 5, with Legendre's duplication formula).
pub(super) fn log_constant<A: Algebra>(eta: Quantity<'_, A>, n: usize) -> Quantity<'_, A> {
    eta.sum((1..n).map(|i| {
        let b = eta + 0.5 * (n - 1 - i) as f64;
        (n - i) as f64 * (log_gamma_ratio(b, eta.constant(0.5)) - 0.5 * PI.ln())
    }))
}

/// Partial correlations, each a beta variate on -1..1, row by row.
pub(super) fn draw_factor(
    family: &'static str,
    rng: &mut dyn Rng,
    size: f64,
    eta: f64,
) -> Result<Vec<f64>, DrawError> {
    if size > draw::LARGEST_MATRIX {
        return Err(DrawError::TooLarge(family));
    }
    let n = size as usize;
    let mut factor = vec![0.0; n * n];
    for i in 0..n {
        let mut rest: f64 = 1.0;
        for j in 0..i {
            let b = eta + 0.5 * (n - 2 - j) as f64;
            let (high, low) = draw::beta(rng, b, b);
            factor[i + j * n] = (high - low) * rest.sqrt();
            // 1 - r^2 without cancellation.
            rest *= 4.0 * high * low;
        }
        factor[i + i * n] = rest.sqrt();
    }
    Ok(factor)
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [size, eta] = numbers(arguments);
    draw_factor(FAMILY.name, rng, size, eta)
}
