//! The Mills ratio of the normal tail, M(t) = Q(t)/phi(t), where Q(t) = P(N(0,1) > t).
//!
//! M is the tail with its exponential part taken out: it never underflows, falls
//! smoothly (about 1/t for large t), and solves M' = t M - 1.

use super::elementary::exp;
use super::real::Real;

/// A bound on the relative error of [`mills_ratio`].
///
/// Series: the subtraction at t = 2 loses a factor of 22 on sums good to 3e-30.
/// Fraction: at most 320 steps of 30 u^2 (u = 2^-53). Both are below 2e-28; the test
/// against mpmath sees less than 1e-29.
pub(super) const MILLS_ERROR: f64 = 3e-28;

const SQRT_HALF_PI: Real = Real::from_parts(1.2533141373155003, -9.164289990229583e-17);

/// M(t) for t >= -1, to a relative [`MILLS_ERROR`].
pub(super) fn mills_ratio(t: Real) -> Real {
    if t.to_f64() < 2.0 {
        by_series(t)
    } else {
        by_continued_fraction(t)
    }
}

/// M(t) = e^(t^2/2) sqrt(pi/2) - sum over k of t^(2k+1) / (1 3 5 ... (2k+1)),
/// the sum being e^(t^2/2) times the integral of e^(-u^2/2) from 0 to t
/// (Abramowitz and Stegun 26.2.11).
fn by_series(t: Real) -> Real {
    let square = t.square();
    let mut term = t;
    let mut sum = t;
    let mut odd = 3.0;
    while term.to_f64().abs() > 1e-35 * sum.to_f64().abs() {
        term = term * square / Real::exact(odd);
        sum = sum + term;
        odd += 2.0;
    }
    SQRT_HALF_PI * exp(square.times_power_of_two(-1)) - sum
}

/// M(t) = 1/(t + 1/(t + 2/(t + 3/(t + ...)))) (Laplace; Abramowitz and Stegun 26.2.14),
/// from the tail up, the tail cut being replaced by its fixed point.
fn by_continued_fraction(t: Real) -> Real {
    // Cutting at n leaves an error of about exp(-2 t sqrt(2 n)), less for the fixed point.
    let near = t.to_f64();
    let depth = (24.0 + 1180.0 / (near * near)) as u32;
    let n = f64::from(depth);
    let mut value = Real::exact(0.5 * (near + (near * near + 4.0 * n).sqrt()));
    for k in (1..=depth).rev() {
        value = t + Real::exact(f64::from(k)) / value;
    }
    Real::ONE / value
}

#[cfg(test)]
mod tests {
    use super::*;

    // Oracle: mpmath at 80 digits (tests/fixtures/accounting/make_gauss_mpmath.py).
    // Wrong here: every bound of the Gaussian accountant.
    #[test]
    fn matches_mpmath_to_a_tenth_of_the_stated_error() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/fixtures/accounting/mills_mpmath.csv"
        );
        let mut worst: f64 = 0.0;
        for line in std::fs::read_to_string(path).unwrap().lines().skip(1) {
            let (t, value) = line.split_once(',').unwrap();
            let value: Real = value.parse().unwrap();
            let error = ((mills_ratio(t.parse().unwrap()) - value) / value).abs();
            assert!(error.to_f64() < MILLS_ERROR / 10.0, "{t} {error:?}");
            worst = worst.max(error.to_f64());
        }
        println!("largest relative error of the Mills ratio: {worst:e}");
    }

    // The two formulas must agree where one takes over from the other.
    #[test]
    fn series_and_fraction_agree_where_they_meet() {
        for step in 0..=40 {
            let t = Real::exact(1.9 + 0.005 * f64::from(step));
            let (series, fraction) = (by_series(t), by_continued_fraction(t));
            let error = ((series - fraction) / series).abs().to_f64();
            assert!(error < MILLS_ERROR, "{t} {error:e}");
        }
    }
}
