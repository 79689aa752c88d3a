//! Sums of positive terms of any size, given by their logarithms.

use super::super::elementary::{exp, ln, ln_1p};
use super::super::real::Real;

/// Terms this much smaller than the largest one, in logarithm, are below its rounding;
/// they are counted as this large.
const NEGLIGIBLE: f64 = -600.0;

/// ln(1 + sum of e^x), rounded up by no more than 1e-250.
pub(super) fn ln_one_plus_sum(ln_terms: &[Real]) -> Real {
    let Some(top) = ln_terms.iter().copied().reduce(Real::max) else {
        return Real::ZERO;
    };
    let sum = ln_terms.iter().fold(Real::ZERO, |sum, &term| {
        let relative = (term - top).max(Real::exact(NEGLIGIBLE));
        sum + exp(relative)
    });
    let ln_sum = top + ln(sum);
    if ln_sum.to_f64() > 1.0 {
        ln_sum + ln_1p(exp(-ln_sum))
    } else {
        ln_1p(exp(ln_sum.max(Real::exact(NEGLIGIBLE))))
    }
}

/// ln(e^x - 1) for x > 0.
pub(super) fn ln_exp_m1(x: Real) -> Real {
    if x.to_f64() > 1.0 {
        x + ln_1p(-exp(-x))
    } else {
        ln(exp_m1(x))
    }
}

/// e^x - 1 for 0 <= x <= 1.
fn exp_m1(x: Real) -> Real {
    if x.to_f64() > 1e-3 {
        return exp(x) - Real::ONE;
    }
    // x (1 + x/2 (1 + x/3 (...))): ten terms leave a relative 1e-37.
    let mut nested = Real::ONE;
    for n in (2..=10).rev() {
        nested = Real::ONE + x * nested / Real::exact(f64::from(n));
    }
    x * nested
}

/// ln of the binomial coefficients C(n, j) for j = 0, 1, ..., n.
pub(super) fn ln_binomials(n: u64) -> impl Iterator<Item = Real> {
    let mut ln_value = Real::ZERO;
    (0..=n).map(move |j| {
        if j > 0 {
            ln_value = ln_value + ln(Real::from(n - j + 1) / Real::from(j));
        }
        ln_value
    })
}
