//! The modified Bessel function I0 in the form needed by the von Mises density.

use std::f64::consts::PI;

/// From here on the asymptotic series are exact to rounding.
const ASYMPTOTIC_FROM: f64 = 25.0;

/// `log(I0(x)) - x` for `x >= 0`.
pub fn log_scaled_bessel_i0(x: f64) -> f64 {
    if x < ASYMPTOTIC_FROM {
        power_series(x, 0).ln_1p() - x
    } else {
        asymptotic_difference(x).0.ln() - 0.5 * (2.0 * PI * x).ln()
    }
}

/// Its derivative `I1(x)/I0(x) - 1`.
pub fn log_scaled_bessel_i0_derivative(x: f64) -> f64 {
    if x < ASYMPTOTIC_FROM {
        0.5 * x * (1.0 + power_series(x, 1)) / (1.0 + power_series(x, 0)) - 1.0
    } else {
        let (i0, less_i1) = asymptotic_difference(x);
        -less_i1 / i0
    }
}

/// `I_n(x) / (x/2)^n - 1` for n = 0, 1: the sum from k = 1 of `(x/2)^(2k) / (k! (k + n)!)`, all
/// terms positive (Abramowitz and Stegun 9.6.10).
fn power_series(x: f64, n: u32) -> f64 {
    let quarter = 0.25 * x * x;
    let (mut sum, mut term) = (0.0, 1.0);
    for k in 1..80 {
        term *= quarter / (f64::from(k) * f64::from(k + n));
        sum += term;
        if term < 1e-17 * sum {
            break;
        }
    }
    sum
}

/// `sqrt(2 pi x) exp(-x)` times I0(x), and times I0(x) - I1(x), where the difference is computed
/// term by term (Abramowitz and Stegun 9.7.1).
fn asymptotic_difference(x: f64) -> (f64, f64) {
    let (mut i0, mut less_i1) = (1.0, 0.0);
    let (mut of_i0, mut of_i1) = (1.0, 1.0);
    for k in 1..40 {
        let odd = f64::from(2 * k - 1).powi(2);
        let scale = 1.0 / (8.0 * x * f64::from(k));
        of_i0 *= odd * scale;
        of_i1 *= (odd - 4.0) * scale;
        i0 += of_i0;
        less_i1 += of_i0 - of_i1;
        if of_i0 < 1e-18 {
            break;
        }
    }
    (i0, less_i1)
}
