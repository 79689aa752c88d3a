//! `Real`: a number of about 31 decimal digits, as a sum of two `f64`.
//!
//! Privacy bounds have to be right where `f64` is not: ln delta near -2500 is
//! asked to 1e-12, and delta is a difference of two terms that may agree in their
//! first seven digits. A `Real` also keeps a number as a person wrote it: `1e-3`
//! is one thousandth and not the `f64` next to it.
//!
//! # Reference
//!
//! Joldes, Muller, Popescu (2017), "Tight and rigorous error bounds for basic
//! building blocks of double-word arithmetic", ACM TOMS 44. With u = 2^-53, the
//! relative errors of the operations below are at most 3 u^2 (sum), 5 u^2
//! (product), 15 u^2 (quotient) and 4 u^2 (square root), u^2 = 1.2e-32, as long
//! as nothing overflows or becomes subnormal.

use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::str::FromStr;

use serde::{Serialize, Serializer};
use thiserror::Error;

/// An unevaluated sum `high + low` with |low| at most half a step of `high`.
///
/// Serialises as the nearest `f64`.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Real {
    high: f64,
    low: f64,
}

/// Why a text is not a number that the accountants can use.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum RealError {
    #[error("`{0}` is not a number; write it like 0.5, 12 or 1e-6")]
    NotANumber(String),
    #[error("`{0}` is out of range; its size must lie between 1e-300 and 1e300, or be 0")]
    OutOfRange(String),
}

impl Real {
    pub const ZERO: Real = Real::exact(0.0);
    pub const ONE: Real = Real::exact(1.0);

    /// The `f64` itself, not the decimal that it stands for.
    pub const fn exact(value: f64) -> Real {
        Real {
            high: value,
            low: 0.0,
        }
    }

    /// A constant given by its two parts; |low| is at most half a step of `high`.
    pub(super) const fn from_parts(high: f64, low: f64) -> Real {
        Real { high, low }
    }

    /// The two parts whose sum it is, to be stored without loss.
    pub(crate) fn parts(self) -> [f64; 2] {
        [self.high, self.low]
    }

    /// The number of which these are the [parts](Real::parts).
    pub(crate) fn of_parts([high, low]: [f64; 2]) -> Real {
        quick_two_sum(high, low)
    }

    /// The nearest `f64`.
    pub fn to_f64(self) -> f64 {
        self.high
    }

    /// The smallest `f64` that is not below this number.
    pub fn to_f64_up(self) -> f64 {
        if self.low > 0.0 {
            self.high.next_up()
        } else {
            self.high
        }
    }

    /// The largest `f64` that is not above this number.
    pub fn to_f64_down(self) -> f64 {
        if self.low < 0.0 {
            self.high.next_down()
        } else {
            self.high
        }
    }

    /// The bits of both parts, as a key.
    pub(super) fn bits(self) -> [u64; 2] {
        [self.high.to_bits(), self.low.to_bits()]
    }

    pub fn is_finite(self) -> bool {
        self.high.is_finite() && self.low.is_finite()
    }

    pub fn abs(self) -> Real {
        if self.high < 0.0 { -self } else { self }
    }

    pub fn max(self, other: Real) -> Real {
        if other > self { other } else { self }
    }

    pub fn min(self, other: Real) -> Real {
        if other < self { other } else { self }
    }

    pub fn square(self) -> Real {
        self * self
    }

    /// The square root; zero for zero and for anything negative.
    pub fn sqrt(self) -> Real {
        if self.high <= 0.0 {
            return Real::ZERO;
        }
        let root = self.high.sqrt();
        let rest = self - two_product(root, root);
        quick_two_sum(root, rest.high / (2.0 * root))
    }

    /// This number times 2^`exponent`, exactly, while the parts stay normal.
    pub(super) fn times_power_of_two(self, exponent: i32) -> Real {
        // Two steps, since 2^exponent itself may be out of range.
        let half = exponent / 2;
        let (first, second) = (2f64.powi(half), 2f64.powi(exponent - half));
        Real {
            high: self.high * first * second,
            low: self.low * first * second,
        }
    }
}

impl From<f64> for Real {
    fn from(value: f64) -> Real {
        Real::exact(value)
    }
}

impl From<u64> for Real {
    fn from(value: u64) -> Real {
        let low_bits = value & 0xffff_ffff;
        quick_two_sum((value - low_bits) as f64, low_bits as f64)
    }
}

impl Add for Real {
    type Output = Real;
    fn add(self, other: Real) -> Real {
        let sum = two_sum(self.high, other.high);
        let rest = two_sum(self.low, other.low);
        let sum = quick_two_sum(sum.high, sum.low + rest.high);
        quick_two_sum(sum.high, sum.low + rest.low)
    }
}

impl Neg for Real {
    type Output = Real;
    fn neg(self) -> Real {
        Real {
            high: -self.high,
            low: -self.low,
        }
    }
}

impl Sub for Real {
    type Output = Real;
    fn sub(self, other: Real) -> Real {
        self + -other
    }
}

impl Mul for Real {
    type Output = Real;
    fn mul(self, other: Real) -> Real {
        let product = two_product(self.high, other.high);
        let cross = self.high.mul_add(other.low, self.low * other.high);
        quick_two_sum(product.high, product.low + cross)
    }
}

impl Div for Real {
    type Output = Real;
    fn div(self, other: Real) -> Real {
        let first = self.high / other.high;
        let rest = self - other * Real::exact(first);
        let second = rest.high / other.high;
        let rest = rest - other * Real::exact(second);
        let third = rest.high / other.high;
        quick_two_sum(first, second) + Real::exact(third)
    }
}

impl FromStr for Real {
    type Err = RealError;

    /// Reads a decimal number to a relative 1e-30.
    fn from_str(text: &str) -> Result<Real, RealError> {
        // The `f64` parser decides what a number is; the digits are then read again.
        let rough: f64 = text
            .trim()
            .parse()
            .map_err(|_| RealError::NotANumber(text.to_owned()))?;
        if rough.is_nan() {
            return Err(RealError::NotANumber(text.to_owned()));
        }
        if rough == 0.0 && !text.contains(|c: char| ('1'..='9').contains(&c)) {
            return Ok(Real::ZERO);
        }
        if !(1e-300..=1e300).contains(&rough.abs()) {
            return Err(RealError::OutOfRange(text.to_owned()));
        }
        let (mantissa, exponent) = match text.trim().split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().unwrap_or(0)),
            None => (text.trim(), 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = whole.chars().chain(fraction.chars());
        let mut value = Real::ZERO;
        let mut kept = 0;
        let mut dropped = 0;
        for digit in digits.filter_map(|c| c.to_digit(10)) {
            // Past 40 digits the value no longer changes to 1e-30.
            if kept < 40 {
                value = value * Real::exact(10.0) + Real::exact(f64::from(digit));
                kept += i32::from(kept > 0 || digit > 0);
            } else {
                dropped += 1;
            }
        }
        let places = exponent + dropped - fraction.len() as i32;
        let magnitude = scale_by_power_of_ten(value, places);
        Ok(if rough < 0.0 { -magnitude } else { magnitude })
    }
}

impl fmt::Display for Real {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.high, formatter)
    }
}

impl Serialize for Real {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.high)
    }
}

/// Serialisation of both parts of a number, so that it is read back without loss.
pub(crate) mod exact_real {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Real;

    pub fn serialize<S: Serializer>(real: &Real, serializer: S) -> Result<S::Ok, S::Error> {
        real.parts().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Real, D::Error> {
        Ok(Real::of_parts(<[f64; 2]>::deserialize(deserializer)?))
    }
}

/// `value` 10^`places`; a product or a quotient by an exact-as-possible power, so
/// that no factor is subnormal.
fn scale_by_power_of_ten(value: Real, places: i32) -> Real {
    let mut result = value;
    let mut left = places.unsigned_abs();
    while left > 0 {
        let step = left.min(150);
        let power = power_of_ten(step);
        result = if places < 0 {
            result / power
        } else {
            result * power
        };
        left -= step;
    }
    result
}

fn power_of_ten(exponent: u32) -> Real {
    let mut result = Real::ONE;
    let mut base = Real::exact(10.0);
    let mut left = exponent;
    while left > 0 {
        if left & 1 == 1 {
            result = result * base;
        }
        left >>= 1;
        if left > 0 {
            base = base.square();
        }
    }
    result
}

/// a + b without error (Knuth).
fn two_sum(a: f64, b: f64) -> Real {
    let high = a + b;
    let b_part = high - a;
    Real {
        high,
        low: (a - (high - b_part)) + (b - b_part),
    }
}

/// a + b without error where |a| is at least |b| (Dekker).
fn quick_two_sum(a: f64, b: f64) -> Real {
    let high = a + b;
    Real {
        high,
        low: b - (high - a),
    }
}

/// a b without error.
fn two_product(a: f64, b: f64) -> Real {
    let high = a * b;
    Real {
        high,
        low: a.mul_add(b, -high),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn real(text: &str) -> Real {
        text.parse().unwrap()
    }

    fn assert_close(left: Real, right: Real) {
        let error = ((left - right) / right).abs().to_f64();
        assert!(error < 1e-30, "{left:?} {right:?} {error:e}");
    }

    // Wrong here: every bound loses its digits, since all arithmetic goes through these.
    #[test]
    fn arithmetic_keeps_thirty_digits() {
        let third = real("0.3333333333333333333333333333333333333333");
        assert_close(Real::ONE / Real::exact(3.0), third);
        assert_close(
            real("2").sqrt(),
            real("1.414213562373095048801688724209698078569672"),
        );
        assert_close(
            real("1e-3") * real("1e-3") + real("2.5"),
            real("2.500001000000000000000"),
        );
        assert_close(
            real("1") - real("1e-20"),
            real("0.99999999999999999999000000000000"),
        );
        assert_close(Real::from(u64::MAX), real("18446744073709551615"));
    }

    // Wrong here: the user's 1e-3 would be another number than one thousandth.
    #[test]
    fn a_decimal_is_read_as_written() {
        assert_close(real("1e-3") * real("1000"), Real::ONE);
        assert_close(real("0.1") * real("10"), Real::ONE);
        assert_close(real("1E+2"), real("100.000"));
        assert_close(real("1e-290") * real("1e290"), Real::ONE);
        assert_close(
            real("123456789012345678901234567890123456789012345678901234567890"),
            real("1.234567890123456789012345678901234567890123e59"),
        );
        assert_eq!(real("0.000"), Real::ZERO);
        assert_eq!(real("-2.5"), Real::exact(-2.5));
        assert_ne!(real("0.1"), Real::exact(0.1));
    }

    #[test]
    fn text_that_is_no_number_is_refused() {
        for text in ["", "x", "nan", "1e", "--1"] {
            assert!(matches!(
                text.parse::<Real>(),
                Err(RealError::NotANumber(_))
            ));
        }
        for text in ["inf", "1e301", "1e-301", "1e-999"] {
            assert!(matches!(
                text.parse::<Real>(),
                Err(RealError::OutOfRange(_))
            ));
        }
    }

    // Wrong here: a bound could be rounded to the wrong side of the truth.
    #[test]
    fn directed_rounding_encloses() {
        let tenth = real("0.1");
        assert!(Real::exact(tenth.to_f64_up()) >= tenth);
        assert!(Real::exact(tenth.to_f64_down()) <= tenth);
        assert_eq!(tenth.to_f64_up(), tenth.to_f64_down().next_up());
        assert_eq!(Real::exact(0.5).to_f64_up(), 0.5);
    }
}
