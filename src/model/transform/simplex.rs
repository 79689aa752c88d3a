//! `simplex[K]`: stick breaking.
//!
//! Element k takes, of the rest of a stick of length 1, the share z_k = inv_logit(u_k - log(K -
//! k)), so that u = 0 breaks it evenly:
//!
//! ```text
//! x_k = z_k (1 - z_1) ... (1 - z_{k-1}),   x_K = (1 - z_1) ... (1 - z_{K-1})
//! log Jacobian = sum over k of log z_k + log(1 - z_k) + log of what was left
//! ```
//!
//! Products are sums of logarithms here, so that small elements keep their
//! relative accuracy.

use super::super::blocks::Blocks;
use super::super::public::{PublicGraph, PublicId};
use super::super::running_sum::{Segments, take};
use super::Constrained;
use crate::function::{Algebra, Unary};

pub(super) fn constrain(g: &mut PublicGraph, u: PublicId, blocks: Blocks) -> Constrained {
    let free = blocks.rows - 1;
    let length = blocks.count * free;
    let shifts: Vec<f64> = (0..length)
        .map(|i| ((free - i % free) as f64).ln())
        .collect();
    let shifts = g.constants(&shifts);
    let shifted = g.subtract(u, shifts);
    let log_share = g.unary(Unary::LogInvLogit, shifted);
    let log_rest = g.unary(Unary::Log1mInvLogit, shifted);
    let segments = Segments::equal(blocks.count, free);
    let left_after = segments.sums(g, log_rest);
    let left_before = segments.sums_before(g, left_after);
    let log_x = g.add(left_before, log_share);
    let both = g.concatenate(&[log_x, left_after]);
    let mut positions = Vec::with_capacity(blocks.count * blocks.rows);
    for block in 0..blocks.count {
        positions.extend(block * free..(block + 1) * free);
        positions.push(length + (block + 1) * free - 1);
    }
    let log_x_all = take(g, both, &positions);
    let terms = g.add(log_x, log_rest);
    Constrained {
        value: g.unary(Unary::PositiveExp, log_x_all),
        log_jacobian: vec![g.sum_of(terms)],
    }
}

pub(super) fn unconstrain(x: &[f64], free: &mut Vec<f64>) {
    let start = free.len();
    // From the end, so that what is left is a sum, not a difference.
    let mut left = x.last().copied().unwrap_or(1.0);
    for (from_end, &value) in x.iter().rev().skip(1).enumerate() {
        free.push(value.ln() - left.ln() + ((from_end + 1) as f64).ln());
        left += value;
    }
    free[start..].reverse();
}
