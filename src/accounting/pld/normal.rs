//! Masses of the standard normal distribution on intervals, in `f64` and in logarithms.

use super::super::mills::mills_ratio;
use super::super::real::Real;

const LN_SQRT_TWO_PI: f64 = 0.918_938_533_204_672_7;

/// ln of the density at z.
pub(super) fn ln_density(z: f64) -> f64 {
    -0.5 * z * z - LN_SQRT_TWO_PI
}

/// P(N <= z), to a few roundings; for uses on which no bound depends.
pub(super) fn cdf(z: f64) -> f64 {
    0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
}

/// ln P(low < N <= high); the ends may be infinite.
pub(super) fn ln_interval(low: f64, high: f64) -> f64 {
    if low >= 0.0 {
        // phi(low) (M(low) - e^(-(high^2 - low^2)/2) M(high))
        let beyond = if high == f64::INFINITY {
            f64::NEG_INFINITY
        } else {
            -0.5 * (high - low) * (high + low) + ln_mills(high)
        };
        let near = ln_mills(low);
        ln_density(low) + near + (-(beyond - near).exp()).ln_1p()
    } else if high <= 0.0 {
        ln_interval(-high, -low)
    } else {
        let half = |z: f64| 0.5 * libm::erf(z * std::f64::consts::FRAC_1_SQRT_2);
        (half(high) + half(-low)).ln()
    }
}

fn ln_mills(z: f64) -> f64 {
    if z > 1e8 {
        return -z.ln();
    }
    mills_ratio(Real::exact(z)).to_f64().ln()
}

/// The mass of [m - w/2, m + w/2] over the density at m, to a few roundings; none where
/// the interval is too wide for that.
pub(super) fn narrow_interval(m: f64, w: f64) -> Option<f64> {
    let steepness = m.abs() * w;
    if steepness <= 0.3 && w <= 0.1 {
        Some(w * by_hermite(m * m, w * w))
    } else if steepness <= 2.0 && w <= 1.0 {
        Some(by_quadrature(m, w))
    } else {
        None
    }
}

/// Sum over n of He_2n(m) w^2n / (4^n (2n + 1)!), He_n the Hermite polynomials; the
/// first term left out is below 2e-16 for |m| w <= 0.3 and w <= 0.1.
fn by_hermite(m2: f64, w2: f64) -> f64 {
    let he2 = m2 - 1.0;
    let he4 = (m2 - 6.0) * m2 + 3.0;
    let he6 = ((m2 - 15.0) * m2 + 45.0) * m2 - 15.0;
    let he8 = (((m2 - 28.0) * m2 + 210.0) * m2 - 420.0) * m2 + 105.0;
    let series = he6 / 322_560.0 + he8 * w2 / 92_897_280.0;
    1.0 + w2 * (he2 / 24.0 + w2 * (he4 / 1920.0 + w2 * series))
}

/// Gauss and Legendre with 8 points on e^(-m u - u^2/2); for |m| w <= 2 and w <= 1 the
/// remainder is below 1e-16.
fn by_quadrature(m: f64, w: f64) -> f64 {
    const POINTS: [(f64, f64); 4] = [
        (0.183_434_642_495_649_8, 0.362_683_783_378_362),
        (0.525_532_409_916_329, 0.313_706_645_877_887_3),
        (0.796_666_477_413_626_7, 0.222_381_034_453_374_48),
        (0.960_289_856_497_536_2, 0.101_228_536_290_376_26),
    ];
    let mut sum = 0.0;
    for (point, weight) in POINTS {
        let u = 0.5 * w * point;
        let even = (-0.5 * u * u).exp();
        sum += weight * even * 2.0 * (m * u).cosh();
    }
    0.5 * w * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    // The three ways of getting a mass must agree where they meet, and tails with
    // mpmath. Wrong here: the loss distribution of every event.
    #[test]
    fn all_ways_agree() {
        for m in [0.0, 0.4, -1.0, 2.5, -7.0, 20.0, 36.0] {
            for w in [1e-4, 1e-3, 0.01, 0.1, 0.29, 0.31, 0.7, 1.0] {
                let Some(narrow) = narrow_interval(m, w) else {
                    continue;
                };
                let direct = ln_interval(m - 0.5 * w, m + 0.5 * w) - ln_density(m);
                // The direct way loses 1/(m w) or 1/w digits and m w more in its ends.
                let loss = 1.0 + m.abs() + 1.0 / w + 1.0 / (m.abs() * w).max(w);
                let error = (narrow.ln() - direct).abs();
                assert!(error < 3e-15 * loss * (1.0 + m.abs()), "{m} {w} {error:e}");
            }
        }
        for (m, w) in [(3.0, 0.0999), (30.0, 0.00999), (0.5, 0.0999)] {
            let series = w * by_hermite(m * m, w * w);
            let error = series / by_quadrature(m, w) - 1.0;
            assert!(error.abs() < 1e-15, "{m} {w} {error:e}");
        }
    }

    #[test]
    fn tails_match_mpmath() {
        for (z, ln) in [
            (-3.0, -0.001350809964748202),
            (0.0, -std::f64::consts::LN_2),
            (1.0, -1.841021645009264),
            (10.0, -53.23128515051247),
            (37.0, -689.0305855768905),
        ] {
            let tail = ln_interval(z, f64::INFINITY);
            assert!((tail / ln - 1.0).abs() < 1e-12, "{z} {tail}");
            assert!((cdf(-z).ln() / ln - 1.0).abs() < 1e-10);
        }
        let mirrored = ln_interval(2.0, f64::INFINITY);
        assert_eq!(ln_interval(f64::NEG_INFINITY, -2.0), mirrored);
        assert!(ln_interval(f64::NEG_INFINITY, f64::INFINITY).abs() < 1e-15);
    }
}
