//! `corr_matrix[K]`: C = L L' with L as in `cholesky_factor_corr[K]`, but the
//! unconstrained numbers fill the columns below the diagonal, as in Stan.
//!
//! Log Jacobian: the sum over i > j of (1 + (K - j - 1)/2) log(1 - z_ij^2),
//! j counted from 1; the 1 is that of tanh.

use super::super::blocks::Blocks;
use super::super::constraint::cholesky;
use super::super::public::{PublicGraph, PublicId};
use super::super::running_sum::{take, weighted_sum};
use super::{Constrained, cholesky_factor_corr, cov_matrix};

pub(super) fn constrain(g: &mut PublicGraph, u: PublicId, blocks: Blocks) -> Constrained {
    let size = blocks.rows;
    let triangle = size * (size - 1) / 2;
    let mut by_rows = Vec::with_capacity(blocks.count * triangle);
    let mut weights = Vec::with_capacity(blocks.count * triangle);
    for block in 0..blocks.count {
        for row in 1..size {
            for column in 0..row {
                by_rows.push(block * triangle + place(size, row, column));
                weights.push(1.0 + 0.5 * (size as f64 - column as f64 - 2.0));
            }
        }
    }
    let u = take(g, u, &by_rows);
    let factor = cholesky_factor_corr::factor(g, u, blocks);
    Constrained {
        value: cov_matrix::times_own_transpose(g, factor.value, blocks),
        log_jacobian: vec![weighted_sum(g, factor.log_rest, &weights)],
    }
}

/// Where the number of an element below the diagonal is, columns one after the
/// other.
fn place(size: usize, row: usize, column: usize) -> usize {
    column * (2 * size - column - 1) / 2 + row - column - 1
}

pub(super) fn unconstrain(x: &[f64], size: usize, free: &mut Vec<f64>) {
    // A matrix that passed the check has a factor.
    let Some(l) = cholesky(x, size) else { return };
    let mut by_rows = Vec::new();
    cholesky_factor_corr::unconstrain(&l, size, &mut by_rows);
    let start = free.len();
    free.resize(start + by_rows.len(), 0.0);
    let mut next = by_rows.into_iter();
    for row in 1..size {
        for (column, u) in (0..row).zip(&mut next) {
            free[start + place(size, row, column)] = u;
        }
    }
}
