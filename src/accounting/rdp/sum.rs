//! Sums of positive terms of any size, given by their logarithms.

use std::sync::LazyLock;

use super::super::elementary::{exp, ln, ln_1p};
use super::super::real::Real;
use super::LARGEST_ORDER;

/// Terms this much smaller than the largest one, in logarithm, are counted as this large:
/// all of them together are below its rounding.
const NEGLIGIBLE: f64 = -90.0;

/// Sums below e^this are counted as this large.
const LN_LEAST_SUM: f64 = -600.0;

/// From here on Stirling's series has all its digits.
const FIRST_BY_SERIES: u64 = 64;

/// B_2k / (2k (2k - 1)) for k = 1, 2, ...: the first one left out is below 1e-33 of ln 64!.
const STIRLING: [(f64, f64); 9] = [
    (1.0, 12.0),
    (-1.0, 360.0),
    (1.0, 1260.0),
    (-1.0, 1680.0),
    (1.0, 1188.0),
    (-691.0, 360_360.0),
    (1.0, 156.0),
    (-3617.0, 122_400.0),
    (43_867.0, 244_188.0),
];

/// ln(2 pi)/2
const HALF_LN_TAU: Real = Real::from_parts(0.9189385332046728, -3.8782941580672414e-17);

/// ln(1 + sum of e^x), rounded up by less than 1e-34 of it or 1e-250.
pub(super) fn ln_one_plus_sum(ln_terms: &[Real]) -> Real {
    let Some(top) = ln_terms.iter().copied().reduce(Real::max) else {
        return Real::ZERO;
    };
    let (mut sum, mut left_out) = (Real::ZERO, 0u64);
    for &term in ln_terms {
        let relative = term - top;
        if relative.to_f64() < NEGLIGIBLE {
            left_out += 1;
        } else {
            sum = sum + exp(relative);
        }
    }
    sum = sum + Real::from(left_out) * exp(Real::exact(NEGLIGIBLE));
    let ln_sum = top + ln(sum);
    if ln_sum.to_f64() > 1.0 {
        ln_sum + ln_1p(exp(-ln_sum))
    } else {
        ln_1p(exp(ln_sum.max(Real::exact(LN_LEAST_SUM))))
    }
}

/// ln(1 + q (e^x - 1)) for x > 0, q given by its logarithm.
pub(super) fn ln_mixed(ln_rate: Real, x: Real) -> Real {
    ln_one_plus_sum(&[ln_rate + ln_exp_m1(x)])
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

/// ln of the binomial coefficients C(n, j) for j = 0, 1, ..., n, for n up to
/// [`LARGEST_ORDER`].
pub(super) fn ln_binomials(n: u64) -> impl Iterator<Item = Real> {
    static LN_FACTORIALS: LazyLock<Vec<Real>> =
        LazyLock::new(|| (0..=LARGEST_ORDER).map(ln_factorial).collect());
    let table = LN_FACTORIALS.get(..=n as usize).unwrap_or(&[]);
    let all = table.last().copied().unwrap_or(Real::ZERO);
    let pairs = table.iter().zip(table.iter().rev());
    pairs.map(move |(&chosen, &rest)| all - chosen - rest)
}

/// ln n!, to a relative 1e-31.
fn ln_factorial(n: u64) -> Real {
    if n < FIRST_BY_SERIES {
        let product = (2..=n).fold(Real::ONE, |product, i| product * Real::from(i));
        return ln(product);
    }
    let x = Real::from(n);
    let square = x.square();
    let series = STIRLING
        .iter()
        .rev()
        .fold(Real::ZERO, |sum, (above, below)| {
            sum / square + Real::exact(*above) / Real::exact(*below)
        });
    (x + Real::exact(0.5)) * ln(x) - x + HALF_LN_TAU + series / x
}

#[cfg(test)]
mod tests {
    use super::*;

    // The recurrence C(n, j) = C(n, j-1) (n-j+1)/j, which needs no factorials; and
    // ln 100! and ln 16384!/(8192!)^2 from mpmath, 40 digits.
    #[test]
    fn binomials_have_their_digits() {
        for n in [2u64, 30, 63, 64, 65, 127, 128, 700, 5000, LARGEST_ORDER] {
            let mut expected = Real::ZERO;
            for (j, found) in (0..=n).zip(ln_binomials(n)) {
                if j > 0 {
                    expected = expected + ln(Real::from(n - j + 1) / Real::from(j));
                }
                let error = (found - expected).abs().to_f64();
                assert!(error < 1e-24, "{n} {j} {error:e}");
            }
            assert_eq!(ln_binomials(n).count() as u64, n + 1);
        }
        let real = |text: &str| -> Real { text.parse().unwrap() };
        let of_100 = real("363.7393755555634901440799933696556380278");
        assert!((ln_factorial(100) - of_100).abs().to_f64() < 1e-28);
        let middle = ln_binomials(LARGEST_ORDER).nth(8192).unwrap();
        let expected = real("11351.44556941879055186755045662196580882");
        assert!((middle - expected).abs().to_f64() < 1e-25);
    }

    #[test]
    fn terms_that_do_not_count_still_count_upwards() {
        let many = vec![Real::exact(-200.0); 10_000];
        let with = [vec![Real::ZERO], many].concat();
        let (sum, one) = (ln_one_plus_sum(&with), ln(Real::exact(2.0)));
        assert!(sum >= one && (sum - one).to_f64() < 1e-30);
    }
}
