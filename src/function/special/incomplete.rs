//! Incomplete gamma and beta functions.

/// The regularised incomplete gamma functions, lower `P(a, x)` and upper
/// `Q(a, x)`, each with its own relative accuracy.
///
/// The series (Abramowitz and Stegun 6.5.29) below `a + 1`, the continued
/// fraction (6.5.31) above, by Lentz's method: W. H. Press et al., *Numerical
/// Recipes*, section 6.2.
pub fn gamma_fractions(a: f64, x: f64) -> (f64, f64) {
    if !(a > 0.0 && x >= 0.0) {
        return (f64::NAN, f64::NAN);
    }
    if x == 0.0 {
        return (0.0, 1.0);
    }
    if x == f64::INFINITY {
        return (1.0, 0.0);
    }
    let factor = (a * x.ln() - x - libm::lgamma(a)).exp();
    if x < a + 1.0 {
        let mut term = 1.0 / a;
        let mut sum = term;
        let mut k = a;
        while term > 1e-17 * sum {
            k += 1.0;
            term *= x / k;
            sum += term;
        }
        let lower = factor * sum;
        return (lower, 1.0 - lower);
    }
    let tiny = 1e-300;
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / tiny;
    let mut d = 1.0 / b;
    let mut fraction = d;
    let mut i = 0.0;
    loop {
        i += 1.0;
        let an = -i * (i - a);
        b += 2.0;
        d = 1.0 / nonzero(an * d + b, tiny);
        c = nonzero(b + an / c, tiny);
        let change = d * c;
        fraction *= change;
        if (change - 1.0).abs() < 1e-16 || i > 1e5 {
            break;
        }
    }
    let upper = factor * fraction;
    (1.0 - upper, upper)
}

/// The regularised incomplete beta function `I_x(a, b)`.
///
/// Abramowitz and Stegun 26.5.8 by Lentz's method, on the side of the mean
/// where it converges fast (26.5.2).
pub fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    if !(a > 0.0 && b > 0.0 && (0.0..=1.0).contains(&x)) {
        return f64::NAN;
    }
    if x == 0.0 || x == 1.0 {
        return x;
    }
    let factor = (a * x.ln() + b * (-x).ln_1p() - log_beta(a, b)).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        factor * beta_continued(a, b, x) / a
    } else {
        1.0 - factor * beta_continued(b, a, 1.0 - x) / b
    }
}

/// Logarithm of the beta function without the cancellation of large `lgamma`s:
/// from Stirling's formula for those of 10 and more, term by term.
fn log_beta(a: f64, b: f64) -> f64 {
    let (p, q) = (a.min(b), a.max(b));
    let sum = p + q;
    if q < 10.0 {
        return libm::lgamma(p) + libm::lgamma(q) - libm::lgamma(sum);
    }
    let rest = stirling_rest(q) - stirling_rest(sum) - (q - 0.5) * (p / q).ln_1p();
    if p < 10.0 {
        return libm::lgamma(p) + rest + p - p * sum.ln();
    }
    0.5 * (2.0 * std::f64::consts::PI).ln() - 0.5 * p.ln() + stirling_rest(p) + rest
        - p * (q / p).ln_1p()
}

/// `lgamma(x)` less `(x - 1/2) log(x) - x + log(2 pi) / 2`, for `x >= 10`
/// (Abramowitz and Stegun 6.1.41).
fn stirling_rest(x: f64) -> f64 {
    let w = 1.0 / (x * x);
    (1.0 / 12.0
        - w * (1.0 / 360.0
            - w * (1.0 / 1260.0
                - w * (1.0 / 1680.0 - w * (1.0 / 1188.0 - w * (691.0 / 360_360.0))))))
        / x
}

fn beta_continued(a: f64, b: f64, x: f64) -> f64 {
    let tiny = 1e-300;
    let mut c = 1.0;
    let mut d = 1.0 / nonzero(1.0 - (a + b) * x / (a + 1.0), tiny);
    let mut fraction = d;
    let mut m = 0.0;
    loop {
        m += 1.0;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / nonzero(1.0 + even * d, tiny);
        c = nonzero(1.0 + even / c, tiny);
        fraction *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / nonzero(1.0 + odd * d, tiny);
        c = nonzero(1.0 + odd / c, tiny);
        let change = d * c;
        fraction *= change;
        if (change - 1.0).abs() < 1e-16 || m > 1e5 {
            return fraction;
        }
    }
}

fn nonzero(x: f64, tiny: f64) -> f64 {
    if x.abs() < tiny { tiny } else { x }
}
