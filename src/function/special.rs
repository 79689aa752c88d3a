//! Special functions that the standard library and `libm` lack, in f64.

mod bessel;
mod incomplete;
mod normal_quantile;
mod owens_t;
mod student_t_quantile;

pub use bessel::{
    log_modified_bessel_first_kind, modified_bessel_first_kind, modified_bessel_second_kind,
};
pub use incomplete::{beta_fraction, gamma_fractions};
pub use normal_quantile::normal_quantile;
pub use owens_t::owens_t;
pub use student_t_quantile::{student_t_beyond, student_t_quantile};

use std::f64::consts::{FRAC_1_SQRT_2, PI};

use super::elementary::{exp, ln_1p};

/// `log(1 + exp(x))` without overflow.
///
/// Mächler (2012), *Accurately computing log(1 - exp(-|a|))*: `exp(x)` alone is
/// exact to rounding below -37, and `x` alone above 34.
#[inline(always)]
pub fn log1p_exp(x: f64) -> f64 {
    if x > 34.0 { x } else { ln_1p(exp(x)) }
}

/// `log(1 - exp(x))` for `x < 0`; NaN for `x > 0` (Mächler 2012, as above).
pub fn log1m_exp(x: f64) -> f64 {
    if x > -std::f64::consts::LN_2 {
        (-x.exp_m1()).ln()
    } else {
        (-x.exp()).ln_1p()
    }
}

/// `1 / (1 + exp(-x))`; relative error of a few ulp in both tails.
#[inline(always)]
pub fn inv_logit(x: f64) -> f64 {
    1.0 / (1.0 + exp(-x))
}

/// `exp(x)`, kept positive and finite, as a lower bound of zero promises, even where `exp` itself
/// under- or overflows. Densities at 0 and at infinity need not be numbers.
#[inline(always)]
pub fn positive_exp(x: f64) -> f64 {
    exp(x).clamp(f64::MIN_POSITIVE, f64::MAX)
}

/// [`inv_logit`], kept above 0 and below 1, likewise.
#[inline(always)]
pub fn open_inv_logit(x: f64) -> f64 {
    inv_logit(x).clamp(f64::MIN_POSITIVE, BELOW_ONE)
}

/// The largest number below 1.
pub const BELOW_ONE: f64 = 1.0 - f64::EPSILON / 2.0;

/// `derivative`, or 0 where the value `y` has been moved to the end of its range.
#[inline(always)]
pub fn inside(y: f64, low: f64, high: f64, derivative: f64) -> f64 {
    if low < y && y < high { derivative } else { 0.0 }
}

/// Derivative of [`inv_logit`], even where the function itself rounds to 1.
#[inline(always)]
pub fn inv_logit_derivative(x: f64) -> f64 {
    let e = exp(-x.abs());
    e / ((1.0 + e) * (1.0 + e))
}

/// The low part of `1 / sqrt(2)`, for twice the digits of an f64.
const FRAC_1_SQRT_2_REST: f64 = -4.833_646_656_726_456e-17;

/// Standard normal distribution function, through `erfc` so that the lower
/// tail keeps its relative accuracy. There the rounding of `x / sqrt(2)` alone
/// would cost as many ulps as `x` squared; its first-order effect is removed.
pub fn normal_cdf(x: f64) -> f64 {
    let z = -x * FRAC_1_SQRT_2;
    let value = 0.5 * libm::erfc(z);
    if z.abs() > 30.0 {
        return value;
    }
    let missed = (-x).mul_add(FRAC_1_SQRT_2, -z) - x * FRAC_1_SQRT_2_REST;
    value - missed * (-z * z).exp() / PI.sqrt()
}

/// Standard normal density; the effect of rounding `x * x` is removed as above.
pub fn normal_density(x: f64) -> f64 {
    let square = x * x;
    let value = (-0.5 * square).exp() / (2.0 * PI).sqrt();
    if value == 0.0 {
        return value;
    }
    value * (1.0 - 0.5 * x.mul_add(x, -square))
}

/// `exp(-x * x)`, without the effect of rounding `x * x`.
pub fn exp_minus_square(x: f64) -> f64 {
    let square = x * x;
    let value = (-square).exp();
    if value == 0.0 {
        return value;
    }
    value * (1.0 - x.mul_add(x, -square))
}

/// `1 - exp(-exp(x))`.
pub fn inv_cloglog(x: f64) -> f64 {
    -(-x.exp()).exp_m1()
}

/// Gamma function; infinity at 0, NaN at the negative integers.
pub fn gamma(x: f64) -> f64 {
    libm::tgamma(x)
}

/// Derivative of `lgamma`.
///
/// Upward recurrence to x >= 12, then the asymptotic series (Abramowitz and
/// Stegun 6.3.18); reflection (6.3.7) below zero. NaN at the poles.
pub fn digamma(x: f64) -> f64 {
    if x.is_nan() || x == f64::NEG_INFINITY || (x <= 0.0 && x == x.floor()) {
        return f64::NAN;
    }
    if x < 0.0 {
        // The tangent has period pi: the distance to the nearest pole is exact.
        return digamma(1.0 - x) - PI / (PI * (x - x.round())).tan();
    }
    let mut x = x;
    let mut shift = 0.0;
    while x < 12.0 {
        shift -= 1.0 / x;
        x += 1.0;
    }
    let w = 1.0 / (x * x);
    // Bernoulli numbers B_2k / 2k, k = 1..8.
    let series = w
        * (1.0 / 12.0
            - w * (1.0 / 120.0
                - w * (1.0 / 252.0
                    - w * (1.0 / 240.0
                        - w * (1.0 / 132.0
                            - w * (691.0 / 32760.0 - w * (1.0 / 12.0 - w * (3617.0 / 8160.0))))))));
    shift + x.ln() - 0.5 / x - series
}

/// Derivative of `digamma` (Abramowitz and Stegun 6.4.12; reflection 6.4.7).
pub fn trigamma(x: f64) -> f64 {
    if x.is_nan() || x == f64::NEG_INFINITY || (x <= 0.0 && x == x.floor()) {
        return f64::NAN;
    }
    if x < 0.0 {
        let s = (PI * (x - x.round())).sin();
        return PI * PI / (s * s) - trigamma(1.0 - x);
    }
    let mut x = x;
    let mut shift = 0.0;
    while x < 12.0 {
        shift += 1.0 / (x * x);
        x += 1.0;
    }
    let w = 1.0 / (x * x);
    let series = 1.0 / 6.0
        - w * (1.0 / 30.0
            - w * (1.0 / 42.0
                - w * (1.0 / 30.0 - w * (5.0 / 66.0 - w * (691.0 / 2730.0 - w * (7.0 / 6.0))))));
    shift + 1.0 / x + 0.5 * w + w / x * series
}

/// Derivative of `trigamma` (Abramowitz and Stegun 6.4.14; the derivative of
/// the reflection 6.4.7).
pub fn tetragamma(x: f64) -> f64 {
    if x.is_nan() || x == f64::NEG_INFINITY || (x <= 0.0 && x == x.floor()) {
        return f64::NAN;
    }
    if x < 0.0 {
        let r = PI * (x - x.round());
        let s = r.sin();
        return -2.0 * PI * PI * PI * r.cos() / (s * s * s) + tetragamma(1.0 - x);
    }
    let mut x = x;
    let mut shift = 0.0;
    while x < 14.0 {
        shift -= 2.0 / (x * x * x);
        x += 1.0;
    }
    let w = 1.0 / (x * x);
    // (2k + 1) B_2k, k = 1..7.
    let series = 0.5
        - w * (1.0 / 6.0
            - w * (1.0 / 6.0
                - w * (3.0 / 10.0 - w * (5.0 / 6.0 - w * (691.0 / 210.0 - w * 17.5)))));
    shift - w - w / x - w * w * series
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values from mpmath 1.4 (`digamma`, `psi(1, x)`) at 30 digits.
    #[test]
    fn digamma_and_trigamma_against_mpmath() {
        let table = [
            (0.001, -1_000.575_571_931_810_3, 1_000_001.642_533_195_8),
            (0.5, -1.963_510_026_021_423_5, 4.934_802_200_544_679),
            (1.0, -0.577_215_664_901_532_9, 1.644_934_066_848_226_4),
            (2.5, 0.703_156_640_645_243_2, 0.490_357_756_100_234_9),
            (11.9, 2.433_933_536_882_537_5, 0.087_663_201_190_004_18),
            (1e6, 13.815_510_057_964_191, 1.000_000_500_000_166_7e-6),
            (-0.7, -2.073_952_793_628_704, 14.286_180_872_638_34),
        ];
        for (x, psi, psi1) in table {
            assert!(
                (digamma(x) - psi).abs() <= 4e-15 * (1.0 + psi.abs()),
                "digamma({x}) = {}",
                digamma(x)
            );
            assert!(
                (trigamma(x) - psi1).abs() <= 1e-14 * (1.0 + psi1.abs()),
                "trigamma({x}) = {}",
                trigamma(x)
            );
        }
    }

    #[test]
    fn logistic_functions_keep_their_tails() {
        assert_eq!(log1p_exp(1000.0), 1000.0);
        assert!((log1p_exp(-745.0) - (-745.0f64).exp()).abs() == 0.0);
        assert_eq!(inv_logit(-800.0), 0.0);
        assert!((inv_logit(-40.0) / (-40.0f64).exp() - 1.0).abs() < 1e-15);
        assert_eq!(log1m_exp(f64::NEG_INFINITY), 0.0);
        assert!((log1m_exp(-1e-20) - (1e-20f64).ln()).abs() < 1e-13);
    }
}
