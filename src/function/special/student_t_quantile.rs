//! Student's t distribution function and its inverse.

use super::{beta_fraction, normal_cdf, normal_quantile};

/// P(T > t) for T of `freedom` degrees of freedom; of the normal distribution for infinitely many.
pub fn student_t_beyond(t: f64, freedom: f64) -> f64 {
    if freedom == f64::INFINITY {
        return normal_cdf(-t);
    }
    let beyond = beyond(t.abs().ln(), freedom);
    if t < 0.0 { 1.0 - beyond } else { beyond }
}

/// The same for t = e^`log_t`: I_x(freedom / 2, 1/2) / 2 at x = freedom / (freedom + t^2)
/// (Abramowitz and Stegun 26.7.1).
fn beyond(log_t: f64, freedom: f64) -> f64 {
    let ratio = (2.0 * log_t).exp() / freedom;
    // The smaller of x and 1 - x is known to more digits.
    0.5 * if ratio < 1.0 {
        1.0 - beta_fraction(0.5, 0.5 * freedom, ratio / (1.0 + ratio))
    } else {
        beta_fraction(0.5 * freedom, 0.5, 1.0 / (1.0 + ratio))
    }
}

/// t with P(T <= t) = `p` for T of `freedom` degrees of freedom, to about 1e-10 relative; the normal
/// quantile for infinitely many; ±∞ where it is beyond e^350, as of few degrees; NaN for none.
///
/// By bisection of log t.
pub fn student_t_quantile(p: f64, freedom: f64) -> f64 {
    const FURTHEST: f64 = 350.0;
    let tail = p.min(1.0 - p);
    if !(tail >= 0.0 && freedom > 0.0) {
        return f64::NAN;
    }
    if freedom == f64::INFINITY {
        return normal_quantile(p);
    }
    if tail == 0.5 {
        return 0.0;
    }
    let sign = if p < 0.5 { -1.0 } else { 1.0 };
    if beyond(FURTHEST, freedom) > tail || tail == 0.0 {
        return sign * f64::INFINITY;
    }
    let (mut low, mut high) = (-FURTHEST, FURTHEST);
    // 700 / 2^60 is below the spacing of numbers near 1.
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if beyond(middle, freedom) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    sign * (0.5 * (low + high)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Oracles: the quantiles, which are tested below, and the normal distribution.
    #[test]
    fn probabilities_are_those_of_quantiles() {
        for p in [0.02, 0.4, 0.5, 0.9, 0.9999] {
            for freedom in [0.5, 3.0, 9.0, 1e6, f64::INFINITY] {
                let found = student_t_beyond(student_t_quantile(p, freedom), freedom);
                assert!((found - (1.0 - p)).abs() < 1e-9, "{p} {freedom}: {found}");
            }
        }
        assert!((student_t_beyond(1.3, 1e9) - normal_cdf(-1.3)).abs() < 1e-8);
    }

    // Oracles: the closed forms for 1, 2 and 4 degrees (Shaw 2006), and R's qt.
    #[test]
    fn quantiles_are_the_known_ones() {
        let close = |found: f64, expected: f64| {
            assert!((found / expected - 1.0).abs() < 1e-10, "{found} {expected}");
        };
        for p in [0.95_f64, 0.999, 0.6, 1e-6] {
            let half = p - 0.5;
            close(
                student_t_quantile(p, 1.0),
                (std::f64::consts::PI * half).tan(),
            );
            let a = 4.0 * p * (1.0 - p);
            close(student_t_quantile(p, 2.0), 2.0 * half * (2.0 / a).sqrt());
            let q = (a.sqrt().acos() / 3.0).cos() / a.sqrt();
            close(
                student_t_quantile(p, 4.0),
                half.signum() * 2.0 * (q - 1.0).sqrt(),
            );
        }
        close(student_t_quantile(0.95, 10.0), 1.812_461_122_811_68);
        close(
            student_t_quantile(0.95, f64::INFINITY),
            normal_quantile(0.95),
        );
        close(student_t_quantile(0.95, 1e8), 1.644_853_642_189_39);
        assert_eq!(student_t_quantile(0.5, 3.0), 0.0);
        assert_eq!(student_t_quantile(0.95, 1e-4), f64::INFINITY);
        assert_eq!(student_t_quantile(0.0, 3.0), f64::NEG_INFINITY);
        assert!(student_t_quantile(0.95, 0.0).is_nan() && student_t_quantile(1.1, 3.0).is_nan());
    }
}
