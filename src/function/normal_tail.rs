//! The normal distribution function and its logarithm, to the ends of the tails.

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use super::HALF_LOG_TWO_PI;

/// From here on the continued fraction of Mills' ratio converges at once.
const FRACTION_FROM: f64 = 4.0;

/// `exp(x^2) erfc(x)`. The rounding of the square, which its exponential would
/// magnify, is added back.
pub fn erfcx(x: f64) -> f64 {
    if x > FRACTION_FROM {
        return mills_ratio(x / FRAC_1_SQRT_2) / (0.5 * PI).sqrt();
    }
    let square = x * x;
    let rest = x.mul_add(x, -square);
    libm::erfc(x) * square.exp() * (1.0 + rest)
}

/// Mills' ratio `(1 - Phi(x)) / phi(x)`.
fn mills_ratio(x: f64) -> f64 {
    if x < FRACTION_FROM {
        (0.5 * PI).sqrt() * erfcx(x * FRAC_1_SQRT_2)
    } else {
        1.0 / (x + mills_fraction(x))
    }
}

/// `1/(x + 2/(x + 3/(x + ...)))`: the difference between one over Mills' ratio and x, by Laplace's
/// continued fraction (Abramowitz and Stegun 26.2.14).
fn mills_fraction(x: f64) -> f64 {
    (1..40).rev().fold(0.0, |rest, k| f64::from(k) / (x + rest))
}

/// Logarithm of the standard normal distribution function.
pub fn log_phi(x: f64) -> f64 {
    if x > -1.0 {
        // The smaller of the two probabilities is the one that is computed.
        if x > 0.0 {
            (-0.5 * libm::erfc(x * FRAC_1_SQRT_2)).ln_1p()
        } else {
            (0.5 * libm::erfc(-x * FRAC_1_SQRT_2)).ln()
        }
    } else {
        mills_ratio(-x).ln() - 0.5 * x * x - HALF_LOG_TWO_PI
    }
}

/// Derivative of [`log_phi`]: `phi(x)/Phi(x)`.
pub fn log_phi_derivative(x: f64) -> f64 {
    if x < 0.0 {
        1.0 / mills_ratio(-x)
    } else {
        (-0.5 * x * x - HALF_LOG_TWO_PI - log_phi(x)).exp()
    }
}

/// `log(Phi(x)/phi(x))`: the difference between [`log_phi`] and the log density, without a
/// subtraction of two large squares.
pub fn log_phi_over_density(x: f64) -> f64 {
    if x < 0.0 {
        mills_ratio(-x).ln()
    } else {
        log_phi(x) + 0.5 * x * x + HALF_LOG_TWO_PI
    }
}

/// Derivative of [`log_phi_over_density`]: `phi(x)/Phi(x) + x`.
pub fn log_phi_over_density_derivative(x: f64) -> f64 {
    if x < -FRACTION_FROM {
        mills_fraction(-x)
    } else {
        log_phi_derivative(x) + x
    }
}
