//! `sum_to_zero_vector[K]`: an isometric basis of the vectors that sum to zero
//! (Stan 2.36, after Egozcue et al. 2003, isometric log-ratio).
//!
//! With w_i = u_i / sqrt(i (i + 1)), i = 1 .. K-1,
//!
//! ```text
//! x_k = w_k + w_{k+1} + ... + w_{K-1} - (k - 1) w_{k-1}
//! ```
//!
//! The columns of this map are orthonormal: the log Jacobian is zero.

use super::super::blocks::Blocks;
use super::super::public::{PublicGraph, PublicId};
use super::super::running_sum::{Segments, take, take_or_zero};
use super::Constrained;
use crate::function::Algebra;

pub(super) fn constrain(g: &mut PublicGraph, u: PublicId, blocks: Blocks) -> Constrained {
    let free = blocks.rows - 1;
    let length = blocks.count * free;
    let number = |i: usize| (i % free + 1) as f64;
    let scales: Vec<f64> = (0..length)
        .map(|i| 1.0 / (number(i) * (number(i) + 1.0)).sqrt())
        .collect();
    let scales = g.constants(&scales);
    let w = g.multiply(scales, u);
    // Sums from the end: running sums of each block backwards.
    let backwards: Vec<usize> = (0..length)
        .map(|i| (i / free) * free + free - 1 - i % free)
        .collect();
    let reversed = take(g, w, &backwards);
    let sums = Segments::equal(blocks.count, free).sums(g, reversed);
    let weights: Vec<f64> = (0..length).map(number).collect();
    let weights = g.constants(&weights);
    let weighted = g.multiply(weights, w);
    let (mut later, mut own) = (Vec::new(), Vec::new());
    for block in 0..blocks.count {
        let start = block * free;
        for k in 0..blocks.rows {
            later.push((k < free).then(|| backwards[start + k]));
            own.push((k > 0).then(|| start + k - 1));
        }
    }
    let later = take_or_zero(g, sums, &later);
    let own = take_or_zero(g, weighted, &own);
    Constrained {
        value: g.subtract(later, own),
        log_jacobian: Vec::new(),
    }
}

pub(super) fn unconstrain(x: &[f64], free: &mut Vec<f64>) {
    let start = free.len();
    let mut sum = 0.0;
    for (i, &value) in x.iter().enumerate().skip(1).rev() {
        let n = i as f64;
        let w = (sum - value) / n;
        free.push(w * (n * (n + 1.0)).sqrt());
        sum += w;
    }
    free[start..].reverse();
}
