//! The losses of one event, sorted onto a grid.
//!
//! Node k of the grid stands for the loss offset + k h. Each loss belongs to the nearest node: its
//! left half if it is smaller, its right half if it is larger, the midpoints between nodes being
//! the borders; the outermost halves hold all losses of up to one step. A [`Half`] keeps two
//! numbers, from which both the pessimistic and the optimistic distribution follow (`pmf.rs`).

use super::normal::cdf;
use super::pair::{Half, Pair, Reach, Side};

/// The halves of all nodes from `first` on, and what lies beyond them.
#[derive(Clone, Debug)]
pub(super) struct Cells {
    pub(super) step: f64,
    pub(super) offset: f64,
    pub(super) first: i64,
    pub(super) left: Vec<Half>,
    pub(super) right: Vec<Half>,
    /// The loss 0, where it has a mass of its own; then the offset is 0.
    pub(super) atom: f64,
    /// ln P and ln Q of the losses below and above all halves.
    pub(super) below: (f64, f64),
    pub(super) above: (f64, f64),
    /// A bound on how far rounding has moved any loss.
    pub(super) slip: f64,
}

impl Cells {
    /// Sorts the losses of points within `reach`.
    ///
    /// None if that takes more than `most` nodes.
    pub(super) fn new(pair: &Pair, step: f64, reach: Reach, most: usize) -> Option<Cells> {
        if pair.is_symmetric() {
            Cells::symmetric(pair, step, reach, most)
        } else {
            Cells::one_sided(pair, step, reach, most)
        }
    }

    fn one_sided(pair: &Pair, step: f64, reach: Reach, most: usize) -> Option<Cells> {
        let (low, high) = (-reach.below, reach.above + pair.shift);
        let offset = spike_offset(pair, step, low, high);
        let first = index_above(pair.loss(low) - offset, step)?;
        let last = index_above(pair.loss(high) - offset, step)?
            .saturating_sub(1)
            .max(first);
        let count = usize::try_from(last - first).ok()?.checked_add(1)?;
        if count > most {
            return None;
        }
        let node = |k: i64| offset + k as f64 * step;
        let midpoint = |k: i64| pair.point(offset + (k as f64 + 0.5) * step);
        let (mut left, mut right) = (Vec::with_capacity(count), Vec::with_capacity(count));
        // All losses below the first node are within one step of it: none is beyond.
        let closed = node(first - 1) <= pair.least_loss();
        let mut border = if closed { f64::NEG_INFINITY } else { low };
        let below = if closed {
            (f64::NEG_INFINITY, f64::NEG_INFINITY)
        } else {
            pair.ln_tails(f64::NEG_INFINITY, border)
        };
        for k in first..=last {
            let loss = node(k);
            let at = pair.point(loss);
            let next = if k < last { midpoint(k) } else { high.max(at) };
            left.push(pair.half(border, at, Side::Left, loss));
            right.push(pair.half(at, next, Side::Right, loss));
            border = next;
        }
        Some(Cells {
            step,
            offset,
            first,
            left,
            right,
            atom: pair.atom(),
            below,
            above: pair.ln_tails(border, f64::INFINITY),
            slip: pair.slip(reach),
        })
    }

    /// The positive losses and their mirror images.
    fn symmetric(pair: &Pair, step: f64, reach: Reach, most: usize) -> Option<Cells> {
        let high = reach.above + pair.shift;
        let last = index_above(pair.loss(high), step)?.saturating_sub(1).max(0);
        let count = usize::try_from(last).ok()?.checked_mul(2)?.checked_add(1)?;
        if count > most {
            return None;
        }
        let node = |k: i64| k as f64 * step;
        let mut border = pair.point(0.0);
        // The halves above 0, from its own right half outwards: right, left, right, ...
        let (mut left, mut right) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for k in 0..=last {
            let loss = node(k);
            let at = pair.point(loss);
            let next = if k < last {
                pair.point((k as f64 + 0.5) * step)
            } else {
                high.max(at)
            };
            if k > 0 {
                left.push(pair.half(border, at, Side::Left, loss));
            }
            right.push(pair.half(at, next, Side::Right, loss));
            border = next;
        }
        let above = pair.ln_tails(border, f64::INFINITY);
        let mirrored = |halves: &[Half], side: Side, from: i64| -> Vec<Half> {
            let numbered = halves.iter().rev().zip((from..=last).rev());
            numbered
                .map(|(half, k)| half.mirrored(side, node(k)))
                .collect()
        };
        let mut all_left = mirrored(&right, Side::Right, 0);
        let mut all_right = mirrored(&left, Side::Left, 1);
        all_left.append(&mut left);
        all_right.append(&mut right);
        Some(Cells {
            step,
            offset: 0.0,
            first: -last,
            left: all_left,
            right: all_right,
            atom: pair.atom(),
            below: (above.1, above.0),
            above,
            slip: pair.slip(reach),
        })
    }

    pub(super) fn last(&self) -> i64 {
        self.first + self.left.len() as i64 - 1
    }

    pub(super) fn node(&self, k: i64) -> f64 {
        self.offset + k as f64 * self.step
    }

    /// The losses of the pair (Q, P): "add" from "remove".
    pub(super) fn mirrored(&self) -> Cells {
        let turn = |halves: &[Half], side: Side| {
            let numbered = halves.iter().rev().zip((self.first..=self.last()).rev());
            numbered
                .map(|(half, k)| half.mirrored(side, self.node(k)))
                .collect()
        };
        Cells {
            step: self.step,
            offset: -self.offset,
            first: -self.last(),
            left: turn(&self.right, Side::Right),
            right: turn(&self.left, Side::Left),
            atom: self.atom,
            below: (self.above.1, self.above.0),
            above: (self.below.1, self.below.0),
            slip: self.slip,
        }
    }

    /// ln of the mass of all losses, for tests.
    #[cfg(test)]
    fn ln_mass(&self) -> f64 {
        let halves = self.left.iter().chain(&self.right);
        let ln_masses = halves.map(|half| half.ln_scale + half.mass.ln());
        ln_masses
            .chain([self.atom.ln(), self.below.0, self.above.0])
            .fold(f64::NEG_INFINITY, super::pair::ln_sum)
    }
}

/// The first k with k `step` > x.
fn index_above(x: f64, step: f64) -> Option<i64> {
    let k = (x / step).floor() + 1.0;
    (k.abs() < 1e15).then_some(k as i64)
}

/// Where to put the grid so that a spike of losses that it cannot resolve is merged
/// into one node without error.
///
/// With sampling most losses lie just above ln(1 - q), often closer together than one
/// step. The node wanted is at ln(P/Q) of all points up to the midpoint above it: then
/// the moments of its two halves agree. With tau the midpoint,
///
/// ```text
/// ln P/Q (loss <= tau) = ln(1 - q + q Phi(z - a) / Phi(z)),   tau = loss(z)
/// ```
///
/// and tau minus this grows with z from 0, so that bisection finds where it is h/2.
fn spike_offset(pair: &Pair, step: f64, low: f64, high: f64) -> f64 {
    if pair.rest <= 0.0 {
        return 0.0;
    }
    let merged = |z: f64| pair.ln_rest_and_rate_times(cdf(z - pair.shift) / cdf(z));
    let excess = |z: f64| pair.loss(z) - merged(z) - 0.5 * step;
    // Below -36 the ratio of the two tails is no longer a number.
    let (mut below, mut above) = (low.max(-36.0), high);
    if excess(below) >= 0.0 || excess(above) <= 0.0 {
        return 0.0;
    }
    for _ in 0..200 {
        let middle = 0.5 * (below + above);
        if middle <= below || middle >= above {
            break;
        }
        if excess(middle) > 0.0 {
            above = middle;
        } else {
            below = middle;
        }
    }
    // A little above, so that the moment on the left is the larger one in spite of rounding.
    let node = merged(above) * (1.0 - 1e-12) + 1e-9 * step;
    node - (node / step).round() * step
}

#[cfg(test)]
mod tests {
    use super::super::pair::Kind;
    use super::*;

    const REACH: Reach = Reach {
        below: 9.0,
        above: 9.0,
    };

    fn pairs() -> Vec<Pair> {
        let mut pairs = Vec::new();
        for kind in [
            Kind::PoissonAddRemove,
            Kind::PoissonSubstitute,
            Kind::WithoutReplacementSubstitute,
        ] {
            for rate in [1e-6, 0.01, 0.4, 1.0 - 1e-9] {
                for shift in [0.01, 0.7, 6.0] {
                    pairs.push(Pair::of(kind, rate, shift));
                }
            }
        }
        pairs
    }

    // Wrong here: mass is lost or counted twice, in either direction.
    #[test]
    fn all_mass_is_somewhere() {
        for pair in pairs() {
            for step in [0.3, 0.01, 1e-4] {
                let step = step * pair.shift.min(1.0);
                let cells = Cells::new(&pair, step, REACH, 1 << 22).unwrap();
                let both = [cells.ln_mass(), cells.mirrored().ln_mass()];
                assert!(
                    both.iter().all(|ln| ln.abs() < 1e-11),
                    "{pair:?} {step} {both:?}"
                );
            }
        }
    }

    // Wrong here: a loss is rounded to the wrong side, or a moment has the wrong sign.
    #[test]
    fn moments_say_that_losses_lie_between_node_and_neighbour() {
        for pair in pairs() {
            let step = 0.01 * pair.shift.min(1.0);
            let cells = Cells::new(&pair, step, REACH, 1 << 22).unwrap();
            for (left, right) in cells.left.iter().zip(&cells.right) {
                for (half, most) in [(left, step.exp_m1()), (right, -(-step).exp_m1())] {
                    let rounding = 1e-12 * half.mass;
                    let bounded = half.moment <= half.mass * most + rounding;
                    assert!(half.moment >= 0.0 && bounded, "{pair:?} {half:?}");
                }
            }
        }
    }

    // Wrong here: small rates, where a grid cannot tell losses apart, get no lower bound.
    #[test]
    fn a_spike_that_is_not_resolved_is_merged_without_error() {
        let pair = Pair::of(Kind::PoissonAddRemove, 1e-6, 1.0);
        let cells = Cells::new(&pair, 1e-3, REACH, 1 << 20).unwrap();
        let (left, right) = (cells.left[0], cells.right[0]);
        assert_eq!(cells.first, 0);
        let (before, after) = (
            left.moment * left.ln_scale.exp(),
            right.moment * right.ln_scale.exp(),
        );
        assert!(
            before >= after && before < after * (1.0 + 1e-2) + 1e-15,
            "{before:e} {after:e}"
        );
    }
}
