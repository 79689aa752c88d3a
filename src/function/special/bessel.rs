//! Modified Bessel functions.

use std::f64::consts::{LN_2, PI};

/// Logarithm of the modified Bessel function of the first kind, of order
/// `v >= 0` at `x >= 0`.
///
/// The power series (Abramowitz and Stegun 9.6.10), all of whose terms are
/// positive, while its largest term comes early; beyond that Hankel's expansion
/// (9.7.1).
pub fn log_modified_bessel_first_kind(v: f64, x: f64) -> f64 {
    if !(v >= 0.0 && x >= 0.0) {
        return f64::NAN;
    }
    if x == 0.0 {
        return if v == 0.0 { 0.0 } else { f64::NEG_INFINITY };
    }
    if x > 50.0 && x > 8.0 * v * v {
        let mu = 4.0 * v * v;
        let (mut sum, mut term) = (1.0, 1.0);
        for k in 1..60 {
            let odd = f64::from(2 * k - 1);
            let next = -term * (mu - odd * odd) / (f64::from(k) * 8.0 * x);
            if f64::abs(next) > f64::abs(term) || next.abs() < 1e-17 {
                break;
            }
            term = next;
            sum += term;
        }
        return x - 0.5 * (2.0 * PI * x).ln() + sum.ln();
    }
    // Terms relative to the largest, so that none overflows.
    let quarter = 0.25 * x * x;
    let peak = (0.5 * ((v * v + x * x).sqrt() - v)).floor();
    let at_peak = (v + 2.0 * peak) * (x.ln() - LN_2)
        - libm::lgamma(peak + 1.0)
        - libm::lgamma(v + peak + 1.0);
    let mut sum = 1.0;
    let (mut term, mut k) = (1.0, peak);
    loop {
        k += 1.0;
        term *= quarter / (k * (v + k));
        sum += term;
        if term < 1e-17 * sum {
            break;
        }
    }
    (term, k) = (1.0, peak);
    while k > 0.0 {
        term *= k * (v + k) / quarter;
        sum += term;
        k -= 1.0;
        if term < 1e-17 * sum {
            break;
        }
    }
    at_peak + sum.ln()
}

/// Modified Bessel function of the first kind, of integer order.
pub fn modified_bessel_first_kind(v: f64, x: f64) -> f64 {
    // I_{-n} = I_n, and I_n(-x) = (-1)^n I_n(x).
    let sign = if x < 0.0 && v.rem_euclid(2.0) == 1.0 {
        -1.0
    } else {
        1.0
    };
    sign * log_modified_bessel_first_kind(v.abs(), x.abs()).exp()
}

/// Modified Bessel function of the second kind, of integer order, at `x > 0`.
///
/// K_0 and K_1 from the integral 9.6.24 of Abramowitz and Stegun by the
/// trapezoidal rule, which converges exponentially here (the integrand and its
/// derivatives vanish at infinity, and it is even); upward recurrence 9.6.26,
/// which is stable for K.
pub fn modified_bessel_second_kind(v: f64, x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY;
    }
    if x.is_nan() || x < 0.0 {
        return f64::NAN;
    }
    let n = v.abs();
    // With exp(-x) factored out, so that a large x does not underflow early.
    let step = 0.05;
    let (mut k0, mut k1) = (0.5, 0.5);
    for i in 1..2000 {
        let t = f64::from(i) * step;
        let half = (0.5 * t).sinh();
        let term = (-2.0 * x * half * half).exp();
        let weighted = term * t.cosh();
        k0 += term;
        k1 += weighted;
        if weighted < 1e-18 {
            break;
        }
    }
    let scale = step * (-x).exp();
    (k0, k1) = (k0 * scale, k1 * scale);
    if n == 0.0 {
        return k0;
    }
    let mut order = 1.0;
    while order < n {
        (k0, k1) = (k1, k0 + 2.0 * order / x * k1);
        order += 1.0;
    }
    k1
}
