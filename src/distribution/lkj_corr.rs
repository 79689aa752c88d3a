//! The LKJ distribution of correlation matrices.

use rand::Rng;

use super::draw::{DrawError, numbers};
use super::lkj_corr_cholesky::log_constant;
use super::quantity::Quantity;
use super::vector::{adds_up_to_one, domain_symmetric};
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "lkj_corr",
    documentation: "LKJ: (eta - 1) log det(y) + a constant of eta",
    variate: Kind::Matrix("K", "K"),
    support: Domain::Correlation,
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
    let factor = eta.cholesky(y);
    let logs = eta.sum((0..n).map(|i| factor[i + i * n].ln()));
    let diagonal = (0..n).map(|i| adds_up_to_one(y.at(i, i)).support());
    2.0 * (eta - 1.0) * logs
        + log_constant(eta, n)
        + eta.sum(diagonal)
        + domain_symmetric(y)
        + eta.domain_positive()
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [size, eta] = numbers(arguments);
    let factor = super::lkj_corr_cholesky::draw_factor(FAMILY.name, rng, size, eta)?;
    let n = size as usize;
    let product = |i: usize, j: usize| {
        let terms = (0..=i.min(j)).map(|k| factor[i + k * n] * factor[j + k * n]);
        terms.sum::<f64>()
    };
    Ok((0..n * n).map(|at| product(at % n, at / n)).collect())
}
