//! The parts of the saddle-point form of a density.
//!
//! Loader (2000), *Fast and accurate computation of binomial probabilities*:
//! the logarithms of gamma functions and powers in a density of a count (or of a
//! gamma, beta, ...) are each many times larger than their sum. With Stirling's formula for the
//! former, what remains is a sum of deviances, none of which is negative, and of Stirling's errors,
//! which are small.

use std::sync::LazyLock;

use super::HALF_LOG_TWO_PI;
use super::elementary::{exp_m1, ln_1p};
use super::special::digamma;

/// `log(1 + x) - x`, without cancellation near zero.
///
/// With w = x/(2 + x), log(1 + x) = 2 atanh w and 2 w - x = -x w, so the
/// difference is w (2 w^2 (1/3 + w^2/5 + ...) - x).
#[inline(always)]
pub fn log1p_minus(x: f64) -> f64 {
    let far = ln_1p(x) - x;
    let far = if x == f64::INFINITY { -x } else { far };
    let w = x / (2.0 + x);
    let near = w * (2.0 * w * w * atanh_series(w * w, 14) - x);
    if x.abs() > 0.35 { far } else { near }
}

/// `1/3 + w2/5 + w2^2/7 + ...` with this many terms: `(atanh(w)/w - 1)/w2`.
#[inline(always)]
fn atanh_series(w2: f64, terms: u32) -> f64 {
    (0..terms)
        .rev()
        .fold(0.0, |sum, k| sum * w2 + 1.0 / f64::from(2 * k + 3))
}

/// `exp(x) - 1 - x`, without cancellation near zero: the Taylor series there.
#[inline(always)]
pub fn expm1_minus(x: f64) -> f64 {
    let far = exp_m1(x) - x;
    let far = if x == f64::INFINITY { x } else { far };
    let series = (3..18)
        .rev()
        .fold(1.0, |sum, k| 1.0 + sum * x * (1.0 / f64::from(k)));
    let near = 0.5 * x * x * series;
    if x.abs() > 0.5 { far } else { near }
}

/// From here on the asymptotic series are exact to rounding.
const SERIES_FROM: f64 = 10.0;

/// Error of Stirling's formula: `lgamma(x + 1) - (x + 1/2) log x + x - log(2 pi)/2`
/// (Abramowitz and Stegun 6.1.41).
///
/// From one x to the next it falls by (x + 1/2) log(1 + 1/x) - 1, which with
/// w = 1/(2x + 1) is w^2 (1/3 + w^2/5 + ...).
pub fn stirling_error(x: f64) -> f64 {
    if x < SERIES_FROM && x.fract() == 0.0 && x >= 0.0 {
        return OF_INTEGERS[x as usize];
    }
    stirling_error_of_any(x)
}

/// The errors of small integers: most counts are small.
static OF_INTEGERS: LazyLock<[f64; SERIES_FROM as usize]> =
    LazyLock::new(|| std::array::from_fn(|k| stirling_error_of_any(k as f64)));

fn stirling_error_of_any(x: f64) -> f64 {
    if x < 2.0 {
        return libm::lgamma(x + 1.0) - (x + 0.5) * x.ln() + x - HALF_LOG_TWO_PI;
    }
    let mut x = x;
    let mut fallen = 0.0;
    while x < SERIES_FROM {
        let w = 1.0 / (2.0 * x + 1.0);
        fallen += w * w * atanh_series(w * w, 11);
        x += 1.0;
    }
    let w = 1.0 / (x * x);
    let series = 1.0 / 12.0
        - w * (1.0 / 360.0
            - w * (1.0 / 1260.0
                - w * (1.0 / 1680.0
                    - w * (1.0 / 1188.0
                        - w * (691.0 / 360_360.0
                            - w * (1.0 / 156.0 - w * (3617.0 / 122_400.0)))))));
    series / x + fallen
}

/// Derivative of [`stirling_error`]: `digamma(x) - log x + 1/(2x)`.
pub fn stirling_error_derivative(x: f64) -> f64 {
    if x < SERIES_FROM {
        return digamma(x) - x.ln() + 0.5 / x;
    }
    let w = 1.0 / (x * x);
    -w * (1.0 / 12.0
        - w * (1.0 / 120.0
            - w * (1.0 / 252.0
                - w * (1.0 / 240.0
                    - w * (1.0 / 132.0
                        - w * (691.0 / 32_760.0 - w * (1.0 / 12.0 - w * (3617.0 / 8160.0))))))))
}
