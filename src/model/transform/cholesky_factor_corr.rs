//! `cholesky_factor_corr[K]`: the Cholesky factor of a correlation matrix, by
//! canonical partial correlations (Lewandowski, Kurowicka and Joe 2009).
//!
//! The unconstrained numbers fill the rows below the diagonal. With
//! z = tanh(u), row i is
//!
//! ```text
//! L_ij = z_ij sqrt((1 - z_i1^2) ... (1 - z_i,j-1^2)),   L_ii = sqrt((1 - z_i1^2) ... (1 - z_i,i-1^2))
//! ```
//!
//! and the log Jacobian is the sum of log(1 - z_ij^2), of tanh, and of half the logarithm of the
//! argument of the root in L_ij. log(1 - tanh(u)^2) is written log 4 + log inv_logit(2u) + log
//! inv_logit(-2u): no cancellation.

use super::super::blocks::Blocks;
use super::super::public::{PublicGraph, PublicId};
use super::super::running_sum::{Segments, take};
use super::Constrained;
use crate::function::{Algebra, Unary};

pub(super) fn constrain(g: &mut PublicGraph, u: PublicId, blocks: Blocks) -> Constrained {
    let Factor {
        value,
        log_rest,
        log_left,
    } = factor(g, u, blocks);
    let tanh = g.sum_of(log_rest);
    let left = g.sum_of(log_left);
    let half = g.constant(0.5);
    let left = g.multiply(half, left);
    Constrained {
        value,
        log_jacobian: vec![tanh, left],
    }
}

pub(super) struct Factor {
    /// The matrices, column by column.
    pub value: PublicId,
    /// log(1 - z^2), row by row.
    pub log_rest: PublicId,
    /// The logarithm of the argument of the root in each L_ij.
    pub log_left: PublicId,
}

/// The factor from unconstrained numbers row by row.
pub(super) fn factor(g: &mut PublicGraph, u: PublicId, blocks: Blocks) -> Factor {
    let size = blocks.rows;
    let length = g.length(u);
    let z = g.unary(Unary::Tanh, u);
    let (two, log_four, half) = (g.constant(2.0), g.constant(4f64.ln()), g.constant(0.5));
    let twice = g.multiply(two, u);
    let left = g.unary(Unary::LogInvLogit, twice);
    let right = g.unary(Unary::Log1mInvLogit, twice);
    let log_rest = g.sum(&[left, right, log_four]);
    let rows = Segments::of((0..blocks.count).flat_map(|_| 1..size));
    let sums = rows.sums(g, log_rest);
    let log_left = rows.sums_before(g, sums);
    let totals = rows.totals(g, sums);
    let root = |g: &mut PublicGraph, log: PublicId| {
        let halved = g.multiply(half, log);
        g.unary(Unary::PositiveExp, halved)
    };
    let scale = root(g, log_left);
    let below = g.multiply(z, scale);
    let diagonal = root(g, totals);
    let ends = g.constants(&[0.0, 1.0]);
    let all = g.concatenate(&[ends, below, diagonal]);
    let triangle = size * (size - 1) / 2;
    let mut positions = Vec::with_capacity(blocks.count * size * size);
    for block in 0..blocks.count {
        for column in 0..size {
            for row in 0..size {
                positions.push(match row.cmp(&column) {
                    std::cmp::Ordering::Less => 0,
                    std::cmp::Ordering::Equal if row == 0 => 1,
                    std::cmp::Ordering::Equal => 2 + length + block * (size - 1) + row - 1,
                    std::cmp::Ordering::Greater => {
                        2 + block * triangle + row * (row - 1) / 2 + column
                    }
                });
            }
        }
    }
    Factor {
        value: take(g, all, &positions),
        log_rest,
        log_left,
    }
}

/// The unconstrained numbers of a factor, by rows: u_ij = asinh(L_ij / what is left after it).
pub(super) fn unconstrain(l: &[f64], size: usize, free: &mut Vec<f64>) {
    for row in 1..size {
        let start = free.len();
        let mut left = l[row + row * size].powi(2);
        for column in (0..row).rev() {
            let value = l[row + column * size];
            free.push((value / left.sqrt()).asinh());
            left += value * value;
        }
        free[start..].reverse();
    }
}
