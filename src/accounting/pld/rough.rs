//! Bounds that hold without a grid, for cases where those of the grid are of no use.
//!
//! *Upper.* By joint convexity the pair of a sample is dominated by that of the release
//! about rows that are known: H of ((1-q) R + q P, (1-q) R + q P') is at most q times that of
//! (P, P'). So delta is at most that of one Gaussian of mu = sum of count (distance/sigma)^2/2.
//! And at any epsilon >= 0 it is at most the total variation of all releases together, which
//! is no more than the sum of those of each.
//!
//! *Lower.* What a composition releases contains each of its releases.

use super::super::gaussian::GaussianCurve;
use super::super::real::Real;
use super::Part;
use super::curve::Curve;
use super::pair::{Kind, Pair};
use super::single::Single;

/// More than the rounding of a product of a few factors, or of `erf`.
const ROUNDING_UP: f64 = 1.0 + 1e-14;

pub(super) struct Rough {
    gaussian: GaussianCurve,
    /// ln of the sum of total variations.
    ln_variation: f64,
    singles: Vec<Single>,
}

impl Rough {
    pub(super) fn new(parts: &[Part]) -> Rough {
        let mut mu = Real::ZERO;
        let mut variation = 0.0;
        for part in parts {
            let count = part.count as f64;
            let distance = distance(&part.pair);
            let square = Real::exact(distance).square() * Real::from(part.count);
            mu = mu + square.times_power_of_two(-1);
            let one = libm::erf(0.5 * distance * std::f64::consts::FRAC_1_SQRT_2);
            variation += count * part.pair.rate * one * ROUNDING_UP;
        }
        // Rates and shifts are the nearest numbers to the true ones.
        mu = mu + mu * Real::exact(1e-15);
        Rough {
            gaussian: GaussianCurve::new(mu),
            ln_variation: (variation * ROUNDING_UP).ln() + 1e-14,
            singles: parts
                .iter()
                .flat_map(|part| Single::both(&part.pair))
                .collect(),
        }
    }

    pub(super) fn ln_delta_upper(&self, epsilon: f64) -> f64 {
        let gaussian = self.gaussian.ln_delta_upper(Real::exact(epsilon));
        gaussian.to_f64_up().min(self.ln_variation).min(0.0)
    }

    pub(super) fn ln_delta_lower(&self, epsilon: f64) -> f64 {
        let lowers = self
            .singles
            .iter()
            .map(|single| single.ln_delta_lower(epsilon))
            .filter(|ln_delta| !ln_delta.is_nan());
        lowers.fold(f64::NEG_INFINITY, f64::max)
    }
}

/// The distance of the means of two releases about known rows, in units of the noise.
fn distance(pair: &Pair) -> f64 {
    match pair.kind {
        Kind::PoissonAddRemove | Kind::WithoutReplacementSubstitute => pair.shift,
        Kind::PoissonSubstitute => 2.0 * pair.shift,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Wrong here: a bound for everything that is none.
    #[test]
    fn they_enclose_a_single_release() {
        for kind in [
            Kind::PoissonAddRemove,
            Kind::PoissonSubstitute,
            Kind::WithoutReplacementSubstitute,
        ] {
            for (rate, shift) in [(1e-12, 1.0), (0.01, 0.5), (0.7, 3.0), (0.3, 1e-6)] {
                let pair = Pair::of(kind, rate, shift);
                let rough = Rough::new(&[Part { pair, count: 1 }]);
                for epsilon in [0.0, 1e-9, 0.1, 2.0, 30.0] {
                    let truths = Single::both(&pair);
                    let lowers = truths.iter().map(|truth| truth.ln_delta_lower(epsilon));
                    let lower = lowers.fold(f64::NEG_INFINITY, f64::max);
                    assert!(rough.ln_delta_upper(epsilon) >= lower, "{pair:?} {epsilon}");
                    assert!(rough.ln_delta_lower(epsilon) <= rough.ln_delta_upper(epsilon));
                }
            }
        }
    }
}
