//! `cholesky_factor_cov[M, N]`: lower triangular with a positive diagonal.
//!
//! The unconstrained numbers are the rows of the lower triangle, one after the
//! other; those on the diagonal go through exp. The log Jacobian is their sum.

use super::super::blocks::Blocks;
use super::super::public::{PublicGraph, PublicId};
use super::super::running_sum::take;
use super::{Constrained, free_size};
use crate::check::Joint;
use crate::function::{Algebra, Unary};

pub(super) fn constrain(g: &mut PublicGraph, u: PublicId, blocks: Blocks) -> Constrained {
    let value = factor(g, u, blocks);
    let diagonal = take(g, u, &diagonal(blocks));
    Constrained {
        value,
        log_jacobian: vec![g.sum_of(diagonal)],
    }
}

/// The matrices, column by column.
pub(super) fn factor(g: &mut PublicGraph, u: PublicId, blocks: Blocks) -> PublicId {
    let length = g.length(u);
    let zero = g.constant(0.0);
    let exp = g.unary(Unary::PositiveExp, u);
    let all = g.concatenate(&[zero, u, exp]);
    let size = free_size(Joint::CholeskyFactorCov, blocks);
    let mut positions = Vec::with_capacity(blocks.count * blocks.length());
    for block in 0..blocks.count {
        for column in 0..blocks.columns {
            for row in 0..blocks.rows {
                let place = 1 + block * size + place(blocks.columns, row, column);
                positions.push(match row.cmp(&column) {
                    std::cmp::Ordering::Less => 0,
                    std::cmp::Ordering::Equal => length + place,
                    std::cmp::Ordering::Greater => place,
                });
            }
        }
    }
    take(g, all, &positions)
}

/// Where the unconstrained numbers of the diagonals are.
pub(super) fn diagonal(blocks: Blocks) -> Vec<usize> {
    let size = free_size(Joint::CholeskyFactorCov, blocks);
    (0..blocks.count)
        .flat_map(|block| {
            (0..blocks.columns).map(move |k| block * size + place(blocks.columns, k, k))
        })
        .collect()
}

/// Where the number of an element of the lower triangle is, within its block.
fn place(columns: usize, row: usize, column: usize) -> usize {
    if row < columns {
        row * (row + 1) / 2 + column
    } else {
        columns * (columns + 1) / 2 + (row - columns) * columns + column
    }
}

pub(super) fn unconstrain(x: &[f64], blocks: Blocks, free: &mut Vec<f64>) {
    for row in 0..blocks.rows {
        for column in 0..blocks.columns.min(row + 1) {
            let value = x[row + column * blocks.rows];
            free.push(if row == column { value.ln() } else { value });
        }
    }
}
