//! Exponential and logarithms without branches, so that loops over them become vector
//! instructions.
//!
//! Each is within 1 ulp of the C library's ([`exp_m1`]: 2), over the whole range: denormal numbers,
//! infinities and NaN included. No multiplication is fused with an addition: results are the same to the bit on
//! every processor.
//!
//! Reductions and the polynomial of the logarithm: the C sources `e_exp.c`, `e_log.c` and
//! `s_log1p.c` of fdlibm (Sun Microsystems 1993), the latter two in the form that musl gives them.

/// ln 2 in two parts; the products of the first with integers below 2^20 are exact.
const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// Added and subtracted, it rounds numbers below 2^51 to integers, which are then its lowest bits.
const ROUNDING: f64 = 1.5 * (1u64 << 52) as f64;
const BIAS: f64 = 1023.0;

/// 1/n! for n = 2, ..., 13: the first term left out is below 2^-57 of the sum where |r| <= ln(2)/2.
const INVERSE_FACTORIALS: [f64; 12] = [
    1.0 / 2.0,
    1.0 / 6.0,
    1.0 / 24.0,
    1.0 / 120.0,
    1.0 / 720.0,
    1.0 / 5040.0,
    1.0 / 40_320.0,
    1.0 / 362_880.0,
    1.0 / 3_628_800.0,
    1.0 / 39_916_800.0,
    1.0 / 479_001_600.0,
    1.0 / 6_227_020_800.0,
];

/// `exp(x) = 2^k exp(r)` with |r| <= ln(2)/2.
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    // Beyond these, the result is infinite or zero; NaN stays.
    let x = if x > 710.0 { 710.0 } else { x };
    let x = if x < -746.0 { -746.0 } else { x };
    let k = (x * std::f64::consts::LOG2_E + ROUNDING) - ROUNDING;
    let r = (x - k * LN_2_HIGH) - k * LN_2_LOW;
    let exp_r = 1.0 + (r + r * r * exponential_rest(r));
    // In two steps: 2^k may be out of range where the result is not.
    let half = (k * 0.5 + ROUNDING) - ROUNDING;
    exp_r * power_of_two(half) * power_of_two(k - half)
}

/// `exp(x) - 1`, without cancellation near zero.
#[inline(always)]
pub fn exp_m1(x: f64) -> f64 {
    let x = if x > 710.0 { 710.0 } else { x };
    let x = if x < -40.0 { -40.0 } else { x };
    let k = (x * std::f64::consts::LOG2_E + ROUNDING) - ROUNDING;
    let r = (x - k * LN_2_HIGH) - k * LN_2_LOW;
    let r_m1 = r + r * r * exponential_rest(r);
    // 2^k exp(r) - 1 = 2^k ((exp(r) - 1) + (1 - 2^-k)); the last term is exact up to k = 53, and 1
    // beyond.
    let half = (k * 0.5 + ROUNDING) - ROUNDING;
    let shrunk = power_of_two(-half) * power_of_two(half - k);
    (r_m1 + (1.0 - shrunk)) * power_of_two(half) * power_of_two(k - half)
}

/// Hyperbolic sine, within 4 ulp; infinite from 709.8 on.
#[inline(always)]
pub fn sinh(x: f64) -> f64 {
    let growth = exp_m1(x.abs());
    let size = 0.5 * (growth + growth / (growth + 1.0));
    let size = if growth < f64::INFINITY { size } else { growth };
    if x < 0.0 { -size } else { size }
}

/// Inverse hyperbolic sine, within 4 ulp.
#[inline(always)]
pub fn asinh(x: f64) -> f64 {
    let size = x.abs();
    // Beyond, the square may overflow, and x is to its root as good as 2 x.
    let is_far = size > 1e100;
    let near = if is_far { 1.0 } else { size };
    let square = near * near;
    let near = ln_1p(near + square / (1.0 + (1.0 + square).sqrt()));
    let far = ln(size) + std::f64::consts::LN_2;
    let size = if is_far { far } else { near };
    if x < 0.0 { -size } else { size }
}

/// `(exp(r) - 1 - r) / r^2` for |r| <= ln(2)/2.
#[inline(always)]
fn exponential_rest(r: f64) -> f64 {
    let mut q = INVERSE_FACTORIALS[11];
    for n in (0..11).rev() {
        q = q * r + INVERSE_FACTORIALS[n];
    }
    q
}

/// 2^k for an integer -1022 <= k <= 1023.
#[inline(always)]
fn power_of_two(k: f64) -> f64 {
    f64::from_bits((k + (ROUNDING + BIAS)).to_bits() << 52)
}

const ONE: u64 = 0x3ff0_0000_0000_0000;
const ROOT_OF_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
const MANTISSA: u64 = 0x000f_ffff_ffff_ffff;

/// k and m of x = 2^k m, sqrt(1/2) <= m < sqrt(2), for a positive normal number.
#[inline(always)]
fn split(x: f64) -> (f64, f64) {
    let bits = x.to_bits().wrapping_add(ONE - ROOT_OF_HALF);
    const EXPONENT_52: u64 = 0x4330_0000_0000_0000;
    let k = f64::from_bits((bits >> 52) | EXPONENT_52) - ((1u64 << 52) as f64 + BIAS);
    (
        k,
        f64::from_bits((bits & MANTISSA).wrapping_add(ROOT_OF_HALF)),
    )
}

/// `log(1 + f) + k log(2) + c` for sqrt(1/2) <= 1 + f < sqrt(2) and a small c.
#[inline(always)]
fn log_of_parts(f: f64, k: f64, c: f64) -> f64 {
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let even = w
        * (0.399_999_999_994_094_2 + w * (0.222_221_984_321_497_84 + w * 0.153_138_376_992_093_73));
    let odd = z
        * (0.666_666_666_666_673_5
            + w * (0.285_714_287_436_623_9
                + w * (0.181_835_721_616_180_5 + w * 0.147_981_986_051_165_86)));
    let half_square = 0.5 * f * f;
    (s * (half_square + (odd + even)) + (k * LN_2_LOW + c)) - half_square + f + k * LN_2_HIGH
}

/// The value where the argument is positive and finite, and the limits elsewhere.
#[inline(always)]
fn with_limits(u: f64, value: f64) -> f64 {
    let value = if u < f64::INFINITY { value } else { u };
    let value = if u == 0.0 { f64::NEG_INFINITY } else { value };
    if u < 0.0 { f64::NAN } else { value }
}

/// Natural logarithm.
#[inline(always)]
pub fn ln(x: f64) -> f64 {
    const UP: f64 = (1u64 << 54) as f64;
    let is_denormal = x < f64::MIN_POSITIVE;
    let (k, m) = split(if is_denormal { x * UP } else { x });
    let k = if is_denormal { k - 54.0 } else { k };
    with_limits(x, log_of_parts(m - 1.0, k, 0.0))
}

/// `log(1 + x)`.
#[inline(always)]
pub fn ln_1p(x: f64) -> f64 {
    let u = 1.0 + x;
    let (k, m) = split(u);
    // What u = 1 + x has lost by rounding.
    let lost = if k >= 2.0 {
        1.0 - (u - x)
    } else {
        x - (u - 1.0)
    };
    let value = log_of_parts(m - 1.0, k, lost / u);
    // Near 0, x itself is more exact than u.
    let near = log_of_parts(x, 0.0, 0.0);
    with_limits(u, if k == 0.0 { near } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The distance of two numbers in units of the last place of the second.
    fn ulps(found: f64, expected: f64) -> f64 {
        if found.to_bits() == expected.to_bits()
            || found == expected
            || found.is_nan() && expected.is_nan()
        {
            return 0.0;
        }
        let next = f64::from_bits(expected.abs().to_bits() + 1) - expected.abs();
        (found - expected).abs() / next
    }

    fn worst(found: fn(f64) -> f64, expected: fn(f64) -> f64, points: impl Iterator<Item = f64>) {
        within(1.0, found, expected, points);
    }

    fn within(
        most: f64,
        found: fn(f64) -> f64,
        expected: fn(f64) -> f64,
        points: impl Iterator<Item = f64>,
    ) {
        let off = |x: f64| (ulps(found(x), expected(x)), x);
        let (worst, x) = points
            .map(off)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .expect("points");
        assert!(worst <= most, "{worst} ulp at {x:e}: {:e}", found(x));
    }

    /// Numbers of every exponent, both signs.
    fn everywhere() -> impl Iterator<Item = f64> {
        let mut state = 1u64;
        (0..400_000).map(move |_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            f64::from_bits(state ^ (state >> 29))
        })
    }

    fn grid(from: f64, to: f64) -> impl Iterator<Item = f64> {
        const POINTS: usize = 200_001;
        (0..POINTS).map(move |i| from + (to - from) * i as f64 / (POINTS - 1) as f64)
    }

    const EXTREMES: [f64; 14] = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f64::MIN_POSITIVE,
        5e-324,
        -5e-324,
        f64::MAX,
        f64::MIN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        f64::EPSILON,
        -f64::EPSILON,
    ];

    /// A wrong coefficient, or a wrong case at the ends of the range, is far more than one ulp off.
    #[test]
    fn values_are_those_of_the_c_library() {
        let points = || everywhere().chain(EXTREMES);
        worst(exp, f64::exp, points().chain(grid(-1.0, 1.0)));
        worst(
            exp,
            f64::exp,
            grid(-750.0, -700.0).chain(grid(700.0, 711.0)),
        );
        worst(exp, f64::exp, grid(-700.0, 700.0));
        within(2.0, exp_m1, f64::exp_m1, points().chain(grid(-1.0, 1.0)));
        within(2.0, exp_m1, f64::exp_m1, grid(-50.0, 50.0));
        within(4.0, sinh, f64::sinh, grid(-1.0, 1.0));
        within(4.0, sinh, f64::sinh, grid(-709.0, 709.0));
        // The library's overflows from 2^1023 on.
        let all = points()
            .filter(|x| x.abs() < 1e307)
            .chain(grid(-10.0, 10.0));
        within(4.0, asinh, f64::asinh, all.chain(grid(-1e-3, 1e-3)));
        assert!(asinh(f64::NAN).is_nan() && asinh(f64::INFINITY) == f64::INFINITY);
        worst(ln, f64::ln, points().chain(grid(0.0, 3.0)));
        worst(ln, f64::ln, grid(0.99, 1.01).chain(grid(0.0, 1e-307)));
        worst(ln_1p, f64::ln_1p, points().chain(grid(-1.0, 3.0)));
        worst(ln_1p, f64::ln_1p, grid(-1e-3, 1e-3).chain(grid(0.0, 1e20)));
    }
}
