//! Owen's T function.

use std::f64::consts::PI;

use super::normal_cdf;

/// `T(h, a) = 1/(2 pi) * integral over t in 0..a of
/// exp(-h^2 (1 + t^2) / 2) / (1 + t^2)`.
///
/// D. B. Owen (1956), *Tables for computing bivariate normal probabilities*:
/// his relation (2.3) brings `a` into 0..1, where Gauss-Legendre quadrature on
/// short pieces is exact to rounding.
pub fn owens_t(h: f64, a: f64) -> f64 {
    if h.is_nan() || a.is_nan() {
        return f64::NAN;
    }
    let h = h.abs();
    let size = a.abs();
    let value = if size <= 1.0 {
        integral(h, size)
    } else if size == f64::INFINITY {
        0.5 * normal_cdf(-h)
    } else {
        let (p, q) = (normal_cdf(-h), normal_cdf(-size * h));
        0.5 * (p + q) - p * q - integral(size * h, 1.0 / size)
    };
    value.copysign(a)
}

/// Nodes and weights of the 10-point rule, one half.
const NODES: [(f64, f64); 5] = [
    (0.148_874_338_981_631_22, 0.295_524_224_714_752_87),
    (0.433_395_394_129_247_2, 0.269_266_719_309_996_35),
    (0.679_409_568_299_024_4, 0.219_086_362_515_982_04),
    (0.865_063_366_688_984_5, 0.149_451_349_150_580_6),
    (0.973_906_528_517_171_7, 0.066_671_344_308_688_14),
];

fn integral(h: f64, a: f64) -> f64 {
    // The integrand is negligible beyond a few times 1/h.
    let upper = if h > 0.0 { a.min(9.0 / h) } else { a };
    let pieces = 8;
    let half = 0.5 * upper / f64::from(pieces);
    let f = |t: f64| (-0.5 * h * h * (1.0 + t * t)).exp() / (1.0 + t * t);
    let mut sum = 0.0;
    for piece in 0..pieces {
        let middle = f64::from(2 * piece + 1) * half;
        for (node, weight) in NODES {
            sum += weight * (f(middle - node * half) + f(middle + node * half));
        }
    }
    sum * half / (2.0 * PI)
}
