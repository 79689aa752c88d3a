//! `unit_vector[K]`: K unconstrained numbers with a standard normal weight,
//! divided by their norm.
//!
//! x = u / |u|; the "log Jacobian" is -u'u / 2, since the length of u is a
//! coordinate too many and must have some proper distribution.

use super::super::blocks::Blocks;
use super::super::public::{PublicGraph, PublicId};
use super::super::running_sum::{Segments, take};
use super::Constrained;
use crate::function::{Algebra, Unary};

pub(super) fn constrain(g: &mut PublicGraph, u: PublicId, blocks: Blocks) -> Constrained {
    let squares = g.square(u);
    let segments = Segments::equal(blocks.count, blocks.rows);
    let sums = segments.sums(g, squares);
    let norms = segments.totals(g, sums);
    // Zero has no direction.
    let (zero, one) = (g.constant(0.0), g.constant(1.0));
    let never = g.constant(f64::NEG_INFINITY);
    let none = g.equal(norms, zero);
    let defined = g.select(none, one, norms);
    let support = g.select(none, never, zero);
    let support = g.sum_of(support);
    let norm = g.unary(Unary::Sqrt, defined);
    let of_block: Vec<usize> = (0..blocks.count * blocks.rows)
        .map(|i| i / blocks.rows)
        .collect();
    let norm = take(g, norm, &of_block);
    let total = g.sum_of(squares);
    let half = g.constant(-0.5);
    let weight = g.multiply(half, total);
    Constrained {
        value: g.divide(u, norm),
        log_jacobian: vec![weight, support],
    }
}
