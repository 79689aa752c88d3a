//! `ordered[K]` and `positive_ordered[K]`.
//!
//! x_1 = u_1 (ordered) or exp(u_1) (positive), x_k = x_{k-1} + exp(u_k); the log
//! Jacobian is the sum of the u that go through exp.

use super::super::blocks::Blocks;
use super::super::public::{Binary, PublicGraph, PublicId};
use super::super::running_sum::{Segments, take};
use super::Constrained;
use crate::function::{Algebra, Unary};

pub(super) fn constrain(
    g: &mut PublicGraph,
    u: PublicId,
    blocks: Blocks,
    positive: bool,
) -> Constrained {
    let length = g.length(u);
    let is_first = |i: usize| i.is_multiple_of(blocks.rows);
    let exp = g.unary(Unary::PositiveExp, u);
    let (increments, log_jacobian) = if positive {
        (exp, g.sum_of(u))
    } else {
        let both = g.concatenate(&[u, exp]);
        let positions: Vec<usize> = (0..length)
            .map(|i| if is_first(i) { i } else { length + i })
            .collect();
        let later: Vec<usize> = (0..length).filter(|&i| !is_first(i)).collect();
        let log_jacobian = if later.is_empty() {
            g.constant(0.0)
        } else {
            let later = take(g, u, &later);
            g.sum_of(later)
        };
        (take(g, both, &positions), log_jacobian)
    };
    let sums = Segments::equal(blocks.count, blocks.rows).sums(g, increments);
    // Finite, as each step is.
    let largest = g.constant(f64::MAX);
    Constrained {
        value: g.binary(Binary::Minimum, sums, largest),
        log_jacobian: vec![log_jacobian],
    }
}

pub(super) fn unconstrain(x: &[f64], positive: bool, free: &mut Vec<f64>) {
    for (k, &value) in x.iter().enumerate() {
        free.push(match k {
            0 if positive => value.ln(),
            0 => value,
            _ => (value - x[k - 1]).ln(),
        });
    }
}
