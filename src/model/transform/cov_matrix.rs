//! `cov_matrix[K]`: S = L L' with L as in `cholesky_factor_cov[K, K]`.
//!
//! Log Jacobian: K log 2 + sum over k of (K - k + 2) log L_kk, of which one
//! log L_kk each is that of exp.

use std::f64::consts::LN_2;

use super::super::blocks::Blocks;
use super::super::constraint::cholesky;
use super::super::public::{Binary, PublicGraph, PublicId};
use super::super::running_sum::{take, weighted_sum};
use super::{Constrained, cholesky_factor_cov};
use crate::function::{Algebra, Kernel};

pub(super) fn constrain(g: &mut PublicGraph, u: PublicId, blocks: Blocks) -> Constrained {
    let size = blocks.rows;
    let l = cholesky_factor_cov::factor(g, u, blocks);
    // Squares of the results of exp must be finite, too.
    let largest = g.constant(f64::MAX.sqrt() / (size as f64));
    let l = g.binary(Binary::Minimum, l, largest);
    let diagonal = take(g, u, &cholesky_factor_cov::diagonal(blocks));
    let weights: Vec<f64> = (0..blocks.count * size)
        .map(|i| (size - i % size + 1) as f64)
        .collect();
    let weighted = weighted_sum(g, diagonal, &weights);
    let constant = g.constant((blocks.count * size) as f64 * LN_2);
    Constrained {
        value: times_own_transpose(g, l, blocks),
        log_jacobian: vec![weighted, constant],
    }
}

/// L L' of every square block.
pub(super) fn times_own_transpose(g: &mut PublicGraph, l: PublicId, blocks: Blocks) -> PublicId {
    let size = blocks.rows;
    let mut products = Vec::with_capacity(blocks.count);
    for block in 0..blocks.count {
        let start = block * size * size;
        let own: Vec<usize> = (start..start + size * size).collect();
        let transposed: Vec<usize> = (0..size * size)
            .map(|i| start + i / size + i % size * size)
            .collect();
        let left = take(g, l, &own);
        let right = take(g, l, &transposed);
        let side = size as u32;
        let product = Kernel::MatrixProduct {
            rows: side,
            inner: side,
            columns: side,
        };
        products.push(g.kernel(product, left, Some(right)));
    }
    g.concatenate(&products)
}

pub(super) fn unconstrain(x: &[f64], blocks: Blocks, free: &mut Vec<f64>) {
    // A matrix that passed the check has a factor.
    if let Some(l) = cholesky(x, blocks.rows) {
        cholesky_factor_cov::unconstrain(&l, blocks, free);
    }
}
