//! The cost of discrete Gaussian noise over that of continuous noise.
//!
//! The noise actually drawn is a discrete Gaussian on a lattice. For r = spacing/sigma <= 1 it is,
//! per coordinate drawn, within total variation
//!
//! ```text
//! TV(r) = 0.0605 r^2 + 1.1 exp(-2 pi^2 / r^2)
//! ```
//!
//! of the rounded continuous Gaussian, which is post-processing of the ideal mechanism
//! (docs/proofs.md, section 8). With T the sum over all draws, on either neighbour,
//!
//! ```text
//! delta(eps) <= delta_Gauss(eps) + (1 + e^eps) T
//! ```
//!
//! This falls in eps while Q(y) > T and rises after that, so that a delta below its
//! lowest point is reached by no eps at all.

use super::elementary::{exp, ln, ln_1p};
use super::gaussian::{GaussianCurve, ln_bounds, smallest_accepted};
use super::mills::mills_ratio;
use super::real::Real;

/// 0.0605
const NEAR: Real = Real::from_parts(0.0605, 1.7763568394002505e-18);

/// 1.1
const FAR: Real = Real::from_parts(1.1, -8.881784197001253e-17);

/// 2 pi^2
const TWO_PI_SQUARED: Real = Real::from_parts(19.739208802178716, 1.2530591017479423e-15);

/// ln sqrt(2 pi)
const LN_SQRT_TWO_PI: f64 = 0.9189385332046728;

/// Covers the rounding of every sum and product here, and of up to 10^7 terms.
const ROUNDING_UP: Real = Real::from_parts(1.0, 1e-24);

/// The total variation of one coordinate's draw at r = spacing/sigma, 0 < r <= 1,
/// rounded up.
pub fn total_variation_of_draw(ratio: Real) -> Real {
    let square = ratio.square();
    (NEAR * square + FAR * exp(-(TWO_PI_SQUARED / square))) * ROUNDING_UP
}

/// The privacy curve of Gaussian releases whose noise is drawn on a lattice: an upper
/// bound. With no total variation it is the Gaussian curve.
#[derive(Clone, Copy, Debug)]
pub struct LatticeCurve {
    gaussian: GaussianCurve,
    total_variation: Real,
}

impl LatticeCurve {
    /// `total_variation` is the sum over all coordinates of all draws.
    pub(super) fn new(gaussian: GaussianCurve, total_variation: Real) -> LatticeCurve {
        LatticeCurve {
            gaussian,
            total_variation,
        }
    }

    /// An upper bound on ln delta(eps), at most 0.
    pub fn ln_delta_upper(&self, epsilon: Real) -> Real {
        let gaussian = self.gaussian.ln_delta_upper(epsilon);
        if self.total_variation <= Real::ZERO || !gaussian.is_finite() {
            return gaussian;
        }
        // ln((1 + e^eps) T)
        let extra = ln_bounds(self.total_variation).upper + epsilon + ln_1p(exp(-epsilon));
        let (large, small) = (gaussian.max(extra), gaussian.min(extra));
        let sum = large + ln_1p(exp(small - large));
        let rounding = (Real::ONE + sum.abs() + epsilon) * Real::exact(1e-28);
        (sum + rounding).min(Real::ZERO)
    }

    /// The smallest eps whose bound on delta is at most the one given, rounded up;
    /// none where no eps has one.
    pub fn epsilon_upper(&self, delta: Real) -> Option<f64> {
        if self.total_variation <= Real::ZERO {
            return Some(self.gaussian.epsilon(delta).upper);
        }
        let target = ln_bounds(delta).lower;
        let accepts = |epsilon| self.ln_delta_upper(Real::exact(epsilon)) <= target;
        let best = self.epsilon_of_smallest_delta();
        // To the left of `best` the bound only falls, so bisection finds its first
        // crossing; `best` is itself approximate, which costs tightness, not truth.
        if !accepts(best) {
            return None;
        }
        Some(smallest_accepted(best, accepts))
    }

    /// Where the bound on delta is lowest: Q(y) = T, or 0 where it rises from the start.
    /// To about 1e-12.
    pub fn epsilon_of_smallest_delta(&self) -> f64 {
        let mu = self.gaussian.mu();
        let ln_total = ln(self.total_variation).to_f64();
        let ln_tail =
            |y: f64| -0.5 * y * y - LN_SQRT_TWO_PI + ln(mills_ratio(Real::exact(y))).to_f64();
        let y = smallest_accepted(1.0, |y| ln_tail(y) <= ln_total);
        let s = (2.0 * mu).sqrt();
        (s * (y - 0.5 * s)).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn real(text: &str) -> Real {
        text.parse().unwrap()
    }

    // docs/proofs.md, section 8, and docs/privacy.md say 5e-19.
    #[test]
    fn ten_million_fine_draws_cost_half_an_attosecond_of_probability() {
        let draw = total_variation_of_draw(Real::exact(2f64.powi(-40)));
        let total = (draw * real("1e7")).to_f64();
        assert!((5.0e-19..5.1e-19).contains(&total), "{total:e}");
    }

    #[test]
    fn total_variation_is_the_formula() {
        for (ratio, value) in [
            ("1", "0.06050000294281679"),
            ("0.5", "0.015125"),
            ("1e-6", "6.05e-14"),
        ] {
            let ratio = total_variation_of_draw(real(ratio)).to_f64() / real(value).to_f64();
            assert!((ratio - 1.0).abs() < 1e-12, "{ratio}");
        }
    }

    // Oracle: the total variation itself, from both probability functions.
    // Wrong here: the term that makes discrete noise accountable would be too small.
    #[test]
    fn total_variation_bounds_the_distance_it_stands_for() {
        for ratio in [1.0f64, 0.8, 0.5, 0.25, 0.1] {
            let sigma = 1.0 / ratio;
            let reach = (12.0 * sigma) as i32;
            let weight = |k: i32| (-0.5 * (f64::from(k) / sigma).powi(2)).exp();
            let total: f64 = (-reach..=reach).map(weight).sum();
            let upper_tail = |t: f64| {
                exp(Real::exact(-0.5 * t * t - LN_SQRT_TWO_PI)) * mills_ratio(Real::exact(t))
            };
            let cell = |k: i32| {
                let k = f64::from(k.abs());
                let (low, high) = ((k - 0.5) / sigma, (k + 0.5) / sigma);
                (upper_tail(low) - upper_tail(high)).to_f64()
            };
            let distance: f64 = (-reach..=reach)
                .map(|k| 0.5 * (weight(k) / total - cell(k)).abs())
                .sum();
            let bound = total_variation_of_draw(Real::exact(ratio)).to_f64();
            assert!(distance <= bound, "r {ratio}: {distance:e} > {bound:e}");
            // The proved bound is three to four times what is measured.
            assert!(distance >= 0.25 * bound, "r {ratio}: bound is far too wide");
        }
    }

    #[test]
    fn no_lattice_is_the_gaussian_itself() {
        let gaussian = GaussianCurve::new(real("0.7"));
        let curve = LatticeCurve::new(gaussian, Real::ZERO);
        let delta = real("1e-6");
        assert_eq!(
            curve.epsilon_upper(delta),
            Some(gaussian.epsilon(delta).upper)
        );
        assert_eq!(
            curve.ln_delta_upper(Real::ONE),
            gaussian.ln_delta(Real::ONE).upper
        );
    }

    // Wrong here: the claimed epsilon leaves out the lattice's share.
    #[test]
    fn delta_is_the_gaussian_one_and_the_term() {
        let gaussian = GaussianCurve::new(real("0.7"));
        for (total, epsilon) in [("1e-9", "1"), ("1e-3", "3"), ("1e-30", "0")] {
            let curve = LatticeCurve::new(gaussian, real(total));
            let epsilon = real(epsilon);
            let sum =
                exp(gaussian.ln_delta_upper(epsilon)) + (Real::ONE + exp(epsilon)) * real(total);
            let bound = exp(curve.ln_delta_upper(epsilon));
            let excess = ((bound - sum) / sum).to_f64();
            assert!((0.0..1e-26).contains(&excess), "{excess:e}");
        }
    }

    #[test]
    fn epsilon_rises_with_the_term_until_there_is_none() {
        let gaussian = GaussianCurve::new(real("0.7"));
        let delta = real("1e-6");
        let mut last = gaussian.epsilon(delta).upper;
        for total in ["1e-20", "1e-12", "1e-10", "1e-9"] {
            let curve = LatticeCurve::new(gaussian, real(total));
            let epsilon = curve.epsilon_upper(delta).unwrap();
            assert!(epsilon >= last, "{total} {epsilon} {last}");
            assert!(curve.ln_delta_upper(Real::exact(epsilon)) <= ln(delta));
            assert!(curve.ln_delta_upper(Real::exact(epsilon.next_down())) > ln(delta));
            last = epsilon;
        }
        for total in ["1e-7", "1e-6", "0.4", "0.9", "5"] {
            let curve = LatticeCurve::new(gaussian, real(total));
            assert_eq!(curve.epsilon_upper(delta), None, "{total}");
        }
    }

    // The lowest point is where the formula says: the bound is higher on both sides.
    #[test]
    fn the_bound_is_lowest_where_it_is_said_to_be() {
        for (mu, total) in [("0.7", "1e-12"), ("3", "1e-6"), ("0.01", "1e-4")] {
            let curve = LatticeCurve::new(GaussianCurve::new(real(mu)), real(total));
            let best = curve.epsilon_of_smallest_delta();
            let at = |epsilon: f64| curve.ln_delta_upper(Real::exact(epsilon));
            assert!(best > 0.0);
            assert!(at(best) < at(best * 1.01) && at(best) < at(best * 0.99));
        }
    }
}
