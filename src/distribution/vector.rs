//! Checks of the vectors and matrices that are arguments of a density.

use super::family::Container;
use super::quantity::Quantity;
use crate::function::Algebra;

/// The tolerance for sums and matrices in arguments, as in Stan.
const TOLERANCE: f64 = 1e-8;

/// 1 where the sum is 1.
pub(super) fn adds_up_to_one<A: Algebra>(sum: Quantity<'_, A>) -> Quantity<'_, A> {
    (sum - 1.0).abs().below(TOLERANCE)
}

/// Zero for a simplex, else NaN.
pub(super) fn domain_simplex<'a, A: Algebra>(theta: &[Quantity<'a, A>]) -> Quantity<'a, A> {
    let Some(&first) = theta.first() else {
        unreachable!("the checker wants at least one category")
    };
    let sum = first.sum(theta.iter().copied());
    let sizes = first.sum(theta.iter().map(|t| t.abs()));
    // Negative parts make the sizes larger than the sum.
    (adds_up_to_one(sum) * adds_up_to_one(sizes)).domain()
}

/// Zero for increasing numbers, else NaN.
pub(super) fn domain_ordered<'a, A: Algebra>(
    anchor: Quantity<'a, A>,
    x: &[Quantity<'a, A>],
) -> Quantity<'a, A> {
    anchor.sum(x.windows(2).map(|pair| pair[0].less(pair[1]).domain()))
}

/// Zero for a symmetric matrix, else NaN.
pub(super) fn domain_symmetric<'a, A: Algebra>(
    matrix: Container<'_, Quantity<'a, A>>,
) -> Quantity<'a, A> {
    let n = matrix.rows;
    let anchor = matrix.elements[0];
    let apart = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
    let apart = anchor.sum(apart.map(|(i, j)| (matrix.at(i, j) - matrix.at(j, i)).abs()));
    let size = anchor.sum((0..n).map(|i| matrix.at(i, i).abs()));
    apart.less(TOLERANCE * size).domain()
}
