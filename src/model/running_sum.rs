//! Running sums within segments of a vector node.

use super::public::{PublicGraph, PublicId};
use crate::function::Algebra;

/// A vector cut into consecutive segments.
pub(super) struct Segments {
    /// Where the segment of each element starts.
    starts: Vec<usize>,
    /// The last position of each segment.
    lasts: Vec<usize>,
}

impl Segments {
    /// Segments of these lengths, each at least 1.
    pub fn of(lengths: impl IntoIterator<Item = usize>) -> Self {
        let (mut starts, mut lasts) = (Vec::new(), Vec::new());
        for length in lengths {
            starts.extend(std::iter::repeat_n(starts.len(), length));
            lasts.push(starts.len() - 1);
        }
        Segments { starts, lasts }
    }

    pub fn equal(count: usize, length: usize) -> Self {
        Segments::of(std::iter::repeat_n(length, count))
    }

    /// The sum from the start of its segment up to each element, in as many
    /// steps as the longest segment has binary digits (Hillis and Steele 1986).
    /// There are no products, so that an infinity stays in its segment.
    pub fn sums(&self, g: &mut PublicGraph, v: PublicId) -> PublicId {
        let mut sums = v;
        let mut step = 1;
        loop {
            let before: Vec<Option<usize>> = self
                .starts
                .iter()
                .enumerate()
                .map(|(i, &start)| i.checked_sub(step).filter(|&p| p >= start))
                .collect();
            if before.iter().all(Option::is_none) {
                return sums;
            }
            let shifted = take_or_zero(g, sums, &before);
            sums = g.add(sums, shifted);
            step *= 2;
        }
    }

    /// The sum of the elements before each one, from [`Segments::sums`].
    pub fn sums_before(&self, g: &mut PublicGraph, sums: PublicId) -> PublicId {
        let before: Vec<Option<usize>> = self
            .starts
            .iter()
            .enumerate()
            .map(|(i, &start)| (i > start).then(|| i - 1))
            .collect();
        take_or_zero(g, sums, &before)
    }

    /// The sum of each whole segment, from [`Segments::sums`].
    pub fn totals(&self, g: &mut PublicGraph, sums: PublicId) -> PublicId {
        take(g, sums, &self.lasts)
    }
}

pub(super) fn take(g: &mut PublicGraph, v: PublicId, positions: &[usize]) -> PublicId {
    let positions: Vec<u32> = positions.iter().map(|&p| p as u32).collect();
    g.take(v, &positions)
}

/// The elements at these positions, 0 where there is none.
pub(super) fn take_or_zero(
    g: &mut PublicGraph,
    v: PublicId,
    positions: &[Option<usize>],
) -> PublicId {
    let zero = g.constant(0.0);
    let with_zero = g.concatenate(&[zero, v]);
    let shifted: Vec<usize> = positions.iter().map(|p| p.map_or(0, |p| p + 1)).collect();
    take(g, with_zero, &shifted)
}

/// The weighted sum of the elements, weights being constants.
pub(super) fn weighted_sum(g: &mut PublicGraph, v: PublicId, weights: &[f64]) -> PublicId {
    let weights = g.constants(weights);
    let products = g.multiply(weights, v);
    g.sum_of(products)
}
