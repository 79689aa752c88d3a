//! `T[a, b]`: a variate that is known to lie between two ends.

use std::cell::RefCell;

use super::quantity::Quantity;
use super::{Algebra, FAMILIES, Tail, log_tail};

/// What truncation adds to a log density: minus infinity outside the ends, which
/// are included, and minus the log probability of lying between them.
///
/// Only for families with [`super::has_cdf`].
pub fn log_truncation<A: Algebra>(
    family: usize,
    algebra: &mut A,
    variate: A::Scalar,
    arguments: &[A::Scalar],
    (lower, upper): (Option<A::Scalar>, Option<A::Scalar>),
) -> A::Scalar {
    // What lies below the lower end: of a count, all up to the one before it.
    let below = lower.map(|lower| {
        let step = f64::from(FAMILIES[family].variate.is_int());
        let step = algebra.constant(step);
        algebra.subtract(lower, step)
    });
    let mut tail = |tail, at| log_tail(family, tail, algebra, at, arguments);
    let up_to = upper.map(|at| tail(Tail::Lower, at));
    let after = below.map(|at| tail(Tail::Upper, at));
    let both = below
        .zip(upper)
        .map(|(below, upper)| (tail(Tail::Lower, below), tail(Tail::Upper, upper)));
    let algebra = RefCell::new(algebra);
    let quantity = |scalar| Quantity::new(&algebra, scalar);
    let y = quantity(variate);
    let inside = match (up_to.map(quantity), after.map(quantity), both) {
        (Some(up_to), Some(after), Some((before, beyond))) => {
            // Each a difference of probabilities of the same tail: that of the
            // tail in which the ends lie does not cancel.
            let lower_tail = up_to + (quantity(before) - up_to).ln_1m_exp();
            let upper_tail = after + (quantity(beyond) - after).ln_1m_exp();
            up_to.less(after).choose(lower_tail, upper_tail)
        }
        (Some(one), None, _) | (None, Some(one), _) => one,
        _ => y.constant(0.0),
    };
    let from = lower.map(|lower| y.support_from(quantity(lower)));
    let to = upper.map(|upper| y.support_to(quantity(upper)));
    (y.sum(from.into_iter().chain(to)) - inside).scalar
}
