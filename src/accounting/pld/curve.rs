//! delta(eps) of a composition, between an upper and a lower bound.
//!
//! The composed masses are p_j at losses l_j, to be multiplied by e^(K - theta l_j). With
//!
//! ```text
//! D_j = sum over i >= j of p_i e^(-theta (l_i - l_j)) (1 - e^(l_j - l_i))
//! E_j = sum over i >= j of p_i e^(-theta (l_i - l_j)) e^(l_j - l_i)
//! ```
//!
//! delta(l_j - x) = e^(K - theta l_j) (D_j + (1 - e^-x) E_j) for 0 <= x <= h. Both sums
//! follow from those one node higher without a subtraction.
//!
//! A transform of n points counts losses modulo n h. Losses beyond the window, tilted
//! mass r by a Chernoff bound, appear inside it, and those above it are missing there:
//! the upper bound adds r as if all were worst, and the lower bound takes it away.

use super::compose::{Composed, Composer};
use super::fft::UNIT_ROUNDOFF;
use super::pair::ln_sum;
use super::pmf::TiltedPmf;
use super::sketch::Decay;

/// Covers the rounding of moments, and of their logarithms times their counts.
const MOMENT_ROUNDING: f64 = 1.0 + 1e-3;

/// Where the losses of a composition are to be looked at.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) theta: f64,
    pub(super) step: f64,
    /// The window has 2^`log_size` nodes, from about `low` on.
    pub(super) low: f64,
    pub(super) log_size: u32,
    pub(super) decay: Decay,
}

/// Composes events, all on one grid and with one tilt, to a [`PldCurve`].
pub(super) struct CurveBuilder {
    window: Window,
    composer: Composer,
    offset: f64,
    /// The largest loss of the upper distribution.
    largest: f64,
    slip: f64,
    /// Sum of count ln M, and of their sizes.
    ln_scale: f64,
    ln_scale_size: f64,
    ln_infinite: f64,
    ln_moments: LnMoments,
}

/// ln of E e^(d loss) of the tilted composition, for the rates d of [`Decay`].
#[derive(Clone, Copy, Debug, Default)]
struct LnMoments {
    below: f64,
    missing: f64,
    round: f64,
}

/// The privacy curve of one direction.
pub(super) struct PldCurve {
    window: Window,
    ln_scale: f64,
    /// The losses of the first node and of the one after the last.
    start: f64,
    end: f64,
    /// The largest loss of the upper distribution, but for those at infinity.
    largest: f64,
    upper: Sums,
    lower: Sums,
    ln_moments: LnMoments,
    /// ln of the mass at infinity, not tilted.
    ln_infinite: f64,
    /// How far rounding may have moved the sum of the losses.
    slip: f64,
    /// Relative error of sums and factors.
    rounding: f64,
    /// Bounds the error of each tilted mass.
    mass_error: f64,
}

/// D and E at each node.
struct Sums {
    above: Vec<f64>,
    at_and_above: Vec<f64>,
}

/// The shares of the upper bound on delta that stand for something left out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shares {
    pub(super) truncation: f64,
    pub(super) round_off: f64,
}

impl CurveBuilder {
    pub(super) fn new(window: Window) -> CurveBuilder {
        CurveBuilder {
            window,
            composer: Composer::new(1 << window.log_size),
            offset: 0.0,
            largest: 0.0,
            slip: 0.0,
            ln_scale: 0.0,
            ln_scale_size: 0.0,
            ln_infinite: f64::NEG_INFINITY,
            ln_moments: LnMoments::default(),
        }
    }

    pub(super) fn add(&mut self, pmf: &TiltedPmf, count: u64) {
        self.composer.add(pmf, count);
        let times = count as f64;
        self.offset += times * pmf.offset;
        let last = pmf.first + pmf.upper.len() as i64 - 1;
        self.largest += times * (pmf.offset + last as f64 * self.window.step);
        self.slip += times * (pmf.slip + 2.0 * UNIT_ROUNDOFF * pmf.offset.abs());
        self.ln_scale += times * pmf.ln_scale;
        self.ln_scale_size += times * pmf.ln_scale.abs();
        self.ln_infinite = ln_sum(self.ln_infinite, times.ln() + pmf.ln_infinite);
        let Decay {
            below,
            missing,
            round,
        } = self.window.decay;
        let ln_moment = |rate: f64| times * ln_moment(pmf, self.window.step, rate);
        self.ln_moments.below += ln_moment(-below);
        self.ln_moments.missing += ln_moment(missing);
        self.ln_moments.round += ln_moment(round);
    }

    pub(super) fn finish(self) -> PldCurve {
        let Window {
            theta,
            step,
            low,
            log_size,
            decay: _,
        } = self.window;
        let size = 1usize << log_size;
        let first = ((low - self.offset) / step).floor();
        let start = self.offset + first * step;
        let end = start + size as f64 * step;
        let composed = self.composer.finish();
        let turned = (first as i64 - composed.turn).rem_euclid(size as i64) as usize;
        let reach = start.abs() + end.abs();
        let (upper, lower) = Sums::both(&composed, turned, step, theta);
        PldCurve {
            window: self.window,
            ln_scale: self.ln_scale,
            start,
            end,
            largest: self.largest * (1.0 + 1e-9),
            upper,
            lower,
            ln_moments: self.ln_moments,
            ln_infinite: self.ln_infinite,
            slip: self.slip + 4.0 * UNIT_ROUNDOFF * (self.offset.abs() + reach),
            rounding: 8.0 * UNIT_ROUNDOFF * (size as f64 + self.ln_scale_size + theta * reach),
            mass_error: composed.error,
        }
    }
}

/// Bounds on delta(eps), for eps >= 0.
pub(super) trait Curve {
    /// An upper bound on ln delta(eps).
    fn ln_delta_upper(&self, epsilon: f64) -> f64;

    /// A lower bound on ln delta(eps).
    fn ln_delta_lower(&self, epsilon: f64) -> f64;

    /// The largest loss that is looked at.
    fn end(&self) -> f64;

    /// The shares by which the upper bound at `epsilon` has been raised.
    fn shares(&self, epsilon: f64) -> Shares;
}

impl Curve for PldCurve {
    fn ln_delta_upper(&self, epsilon: f64) -> f64 {
        let epsilon = epsilon - self.slip;
        if epsilon >= self.largest {
            return (self.ln_infinite + self.rounding).min(0.0);
        }
        if epsilon < self.start {
            return 0.0;
        }
        let (value, at) = match self.node_above(epsilon) {
            Some((node, x)) => {
                let at = epsilon + x;
                (self.upper.at(node, x) + self.missing(at), at)
            }
            None => (self.missing(epsilon), epsilon),
        };
        let finite = self.ln_scale - self.window.theta * at + value.ln() + self.rounding;
        ln_sum(finite, self.ln_infinite + self.rounding).min(0.0)
    }

    fn ln_delta_lower(&self, epsilon: f64) -> f64 {
        let epsilon = (epsilon + self.slip).max(self.start);
        let Some((node, x)) = self.node_above(epsilon) else {
            return f64::NEG_INFINITY;
        };
        let value = self.lower.at(node, x) - self.come_round(epsilon);
        if value > 0.0 {
            self.ln_scale - self.window.theta * (epsilon + x) + value.ln() - self.rounding
        } else {
            f64::NEG_INFINITY
        }
    }

    fn end(&self) -> f64 {
        self.end
    }

    fn shares(&self, epsilon: f64) -> Shares {
        let ln_delta = self.ln_delta_upper(epsilon);
        if ln_delta == f64::NEG_INFINITY {
            return Shares {
                truncation: 0.0,
                round_off: 0.0,
            };
        }
        let ln_unit = self.ln_scale - self.window.theta * epsilon - ln_delta;
        // The sum of the weights that D gives to masses of size one.
        let geometric = |rate: f64| -1.0 / (-rate * self.window.step).exp_m1();
        let (theta, size) = (self.window.theta, (1u64 << self.window.log_size) as f64);
        let weights = (geometric(theta) - geometric(1.0 + theta)).min(size);
        Shares {
            truncation: (self.missing(epsilon) * ln_unit.exp()
                + (self.ln_infinite - ln_delta).exp())
            .min(1.0),
            round_off: (self.mass_error * weights * ln_unit.exp() + self.rounding).min(1.0),
        }
    }
}

impl PldCurve {
    /// The mass missing above the window, in units of a mass at `epsilon`.
    fn missing(&self, epsilon: f64) -> f64 {
        let from = self.end.max(epsilon);
        let ln_mass = self.ln_moments.missing - self.window.decay.missing * from;
        (ln_mass - self.window.theta * (from - epsilon)).exp() * MOMENT_ROUNDING
    }

    /// The mass that may have come round to `epsilon` and above.
    fn come_round(&self, epsilon: f64) -> f64 {
        let Decay { below, round, .. } = self.window.decay;
        let from = epsilon + (self.end - self.start);
        let ln_above = self.ln_moments.round - round * from;
        let ln_below = self.ln_moments.below + below * self.start;
        (ln_above.exp() + ln_below.exp()) * MOMENT_ROUNDING
    }

    /// The first node at or above this loss, and how far it is above it.
    fn node_above(&self, loss: f64) -> Option<(usize, f64)> {
        let step = self.window.step;
        let node = ((loss - self.start) / step).ceil().max(0.0);
        let x = (self.start + node * step - loss).clamp(0.0, step);
        (node < self.upper.above.len() as f64).then_some((node as usize, x))
    }
}

impl Sums {
    /// The sums of the upper and the lower masses, whose window starts at `turned`.
    fn both(composed: &Composed, turned: usize, step: f64, theta: f64) -> (Sums, Sums) {
        let error = composed.error;
        let up = Sums::of(&composed.upper, turned, step, theta, |mass| {
            (mass + error).max(0.0)
        });
        let down = Sums::of(&composed.lower, turned, step, theta, |mass| {
            (mass - error).max(0.0)
        });
        (up, down)
    }

    fn of(
        circle: &[f64],
        turned: usize,
        step: f64,
        theta: f64,
        bound: impl Fn(f64) -> f64,
    ) -> Sums {
        let (wrapped, straight) = circle.split_at(turned);
        let (mut d, mut e) = (0.0, 0.0);
        let fall = (-theta * step).exp();
        let steeper = (-(1.0 + theta) * step).exp();
        let gap = -(-step).exp_m1();
        let mut above = vec![0.0; circle.len()];
        let mut at_and_above = vec![0.0; circle.len()];
        let masses = straight.iter().chain(wrapped).rev();
        let places = above.iter_mut().zip(&mut at_and_above).rev();
        for (mass, (above, at_and_above)) in masses.zip(places) {
            d = fall * (d + gap * e);
            e = bound(*mass) + steeper * e;
            *above = d;
            *at_and_above = e;
        }
        Sums {
            above,
            at_and_above,
        }
    }

    /// D + (1 - e^-x) E at this node.
    fn at(&self, node: usize, x: f64) -> f64 {
        let (above, at_and_above) = (self.above.get(node), self.at_and_above.get(node));
        match (above, at_and_above) {
            (Some(d), Some(e)) => d - (-x).exp_m1() * e,
            _ => 0.0,
        }
    }
}

/// ln of the larger sum of mass e^(rate loss), over the upper and the lower masses.
fn ln_moment(pmf: &TiltedPmf, step: f64, rate: f64) -> f64 {
    const BLOCK: usize = 64;
    let growth = (rate * step).exp();
    let sum = |masses: &[f64]| -> f64 {
        let blocks = masses.chunks(BLOCK).enumerate();
        blocks
            .map(|(block, masses)| {
                let k = pmf.first + (block * BLOCK) as i64;
                let mut factor = (rate * (pmf.offset + k as f64 * step)).exp();
                let mut sum = 0.0;
                for mass in masses {
                    if *mass > 0.0 {
                        sum += mass * factor;
                    }
                    factor *= growth;
                }
                sum
            })
            .sum()
    };
    sum(&pmf.upper).max(sum(&pmf.lower)).ln()
}
