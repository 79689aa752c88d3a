//! Interval arithmetic with outward rounding.
//!
//! A range holds every real number that a quantity may be. An end is moved outward
//! wherever rounding may have moved it inward: by one unit in the last place after
//! an operation that IEEE 754 rounds correctly and that was not exact, by a share
//! of 2^-46 after a function of the mathematics library.
//!
//! # Reference
//!
//! Moore, Kearfott and Cloud 2009, *Introduction to Interval Analysis*, chapters 2
//! and 5; Ogita, Rump and Oishi 2005, "Accurate sum and dot product" (`TwoSum`).

/// All numbers from `low` to `high`, ends included. An infinite end means that there is no bound:
/// the numbers themselves are finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range {
    pub low: f64,
    pub high: f64,
}

/// A bound on the relative error of a function of the mathematics library: the best are within
/// 2^-52, and the hand-written ones are tested to 1e-14.
const LIBRARY_ERROR: f64 = 1.0 / (1u64 << 46) as f64;

impl Range {
    pub const ALL: Range = Range {
        low: f64::NEG_INFINITY,
        high: f64::INFINITY,
    };
    pub const ZERO: Range = Range::point(0.0);
    pub const ONE: Range = Range::point(1.0);
    /// A truth value, or a share.
    pub const UNIT: Range = Range {
        low: 0.0,
        high: 1.0,
    };

    pub const fn point(value: f64) -> Range {
        Range {
            low: value,
            high: value,
        }
    }

    /// From `low` to `high`; all numbers where either is not a number.
    pub fn new(low: f64, high: f64) -> Range {
        if low.is_nan() || high.is_nan() {
            return Range::ALL;
        }
        Range { low, high }
    }

    /// A constant of the model; one that is not a number may be anything.
    pub fn constant(value: f64) -> Range {
        Range::new(value, value)
    }

    pub fn is_point(self) -> bool {
        self.low == self.high
    }

    pub fn is_zero(self) -> bool {
        self.low == 0.0 && self.high == 0.0
    }

    pub fn is_empty(self) -> bool {
        self.low > self.high
    }

    pub fn is_finite(self) -> bool {
        self.low > f64::NEG_INFINITY && self.high < f64::INFINITY
    }

    pub fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The largest absolute value.
    pub fn magnitude(self) -> f64 {
        self.high.abs().max(self.low.abs())
    }

    pub fn hull(self, other: Range) -> Range {
        Range {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
        }
    }

    pub fn intersection(self, other: Range) -> Range {
        Range {
            low: self.low.max(other.low),
            high: self.high.min(other.high),
        }
    }

    /// Two bounds on one number. Where they exclude each other, which is possible in undefined
    /// branches only, the first is kept.
    pub fn both(self, other: Range) -> Range {
        let both = self.intersection(other);
        if both.is_empty() { self } else { both }
    }

    pub fn negate(self) -> Range {
        Range {
            low: -self.high,
            high: -self.low,
        }
    }

    pub fn add(self, other: Range) -> Range {
        Range {
            low: sum(self.low, other.low, f64::next_down, f64::NEG_INFINITY),
            high: sum(self.high, other.high, f64::next_up, f64::INFINITY),
        }
    }

    pub fn subtract(self, other: Range) -> Range {
        self.add(other.negate())
    }

    pub fn multiply(self, other: Range) -> Range {
        let mut low = f64::INFINITY;
        let mut high = f64::NEG_INFINITY;
        for x in [self.low, self.high] {
            for y in [other.low, other.high] {
                // Zero times an end is zero: the numbers are finite.
                let product = if x == 0.0 || y == 0.0 { 0.0 } else { x * y };
                let exact = x == 0.0
                    || y == 0.0
                    || product.is_infinite() && (x.is_infinite() || y.is_infinite())
                    || product.abs() > 1e-280 && x.mul_add(y, -product) == 0.0;
                let (down, up) = if exact {
                    (product, product)
                } else {
                    (product.next_down(), product.next_up())
                };
                low = low.min(down);
                high = high.max(up);
            }
        }
        Range::new(low, high)
    }

    /// `1 / self`; all numbers where zero lies inside.
    pub fn inverse(self) -> Range {
        if self.low < 0.0 && self.high > 0.0 || self.is_zero() {
            return Range::ALL;
        }
        let inverse_of = |end: f64, one_sided: f64| match end {
            0.0 => one_sided,
            end if end.is_infinite() => 0.0,
            end => 1.0 / end,
        };
        let (low, high) = (
            inverse_of(self.high, f64::NEG_INFINITY),
            inverse_of(self.low, f64::INFINITY),
        );
        let exact =
            |x: f64, inverse: f64| x == 0.0 || x.is_infinite() || inverse.mul_add(x, -1.0) == 0.0;
        Range {
            low: if exact(self.high, low) {
                low
            } else {
                low.next_down()
            },
            high: if exact(self.low, high) {
                high
            } else {
                high.next_up()
            },
        }
    }

    pub fn divide(self, other: Range) -> Range {
        if self.is_zero() {
            return Range::ZERO;
        }
        self.multiply(other.inverse())
    }

    pub fn square(self) -> Range {
        let product = self.multiply(self);
        if self.low < 0.0 && self.high > 0.0 {
            return Range {
                low: 0.0,
                high: product.high,
            };
        }
        Range {
            low: product.low.max(0.0),
            high: product.high,
        }
    }

    /// Rounded outward by the error of a library function.
    pub fn outward(self) -> Range {
        let step = |x: f64| x.abs() * LIBRARY_ERROR + f64::MIN_POSITIVE;
        let ends = Range {
            low: self.low - step(self.low),
            high: self.high + step(self.high),
        };
        // Infinity minus infinity is not a number: the infinite end stays.
        Range {
            low: if ends.low.is_nan() {
                self.low
            } else {
                ends.low
            },
            high: if ends.high.is_nan() {
                self.high
            } else {
                ends.high
            },
        }
    }

    /// The values of a non-decreasing library function.
    pub fn increasing(self, f: impl Fn(f64) -> f64) -> Range {
        Range::new(f(self.low), f(self.high)).outward()
    }

    /// The values of a non-increasing library function.
    pub fn decreasing(self, f: impl Fn(f64) -> f64) -> Range {
        Range::new(f(self.high), f(self.low)).outward()
    }

    /// The values of a function that increases up to zero and then decreases.
    pub fn bell(self, f: impl Fn(f64) -> f64) -> Range {
        let (low, high) = (f(self.low), f(self.high));
        if low.is_nan() || high.is_nan() {
            return Range::ALL;
        }
        let top = if self.contains(0.0) {
            f(0.0)
        } else {
            low.max(high)
        };
        Range::new(low.min(high), top).outward()
    }

    /// The non-negative part.
    pub fn at_least(self, low: f64) -> Range {
        Range {
            low: self.low.max(low),
            high: self.high.max(low),
        }
    }

    pub fn at_most(self, high: f64) -> Range {
        Range {
            low: self.low.min(high),
            high: self.high.min(high),
        }
    }

    pub fn abs(self) -> Range {
        if self.low >= 0.0 {
            self
        } else if self.high <= 0.0 {
            self.negate()
        } else {
            Range {
                low: 0.0,
                high: self.magnitude(),
            }
        }
    }

    /// All numbers between minus and plus this.
    pub fn symmetric(magnitude: f64) -> Range {
        Range::new(-magnitude, magnitude)
    }
}

/// `a + b`, moved by `outward` unless it is exact. Ends that are infinite on
/// different sides leave no bound.
fn sum(a: f64, b: f64, outward: impl Fn(f64) -> f64, none: f64) -> f64 {
    let sum = a + b;
    if sum.is_nan() {
        return none;
    }
    if a.is_infinite() || b.is_infinite() {
        return sum;
    }
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    if error == 0.0 { sum } else { outward(sum) }
}

/// A sum of numbers that are not negative, rounded up.
pub fn sum_up(terms: impl IntoIterator<Item = f64>) -> f64 {
    terms
        .into_iter()
        .fold(0.0, |total, x| sum(total, x, f64::next_up, f64::INFINITY))
}

/// The square of a number that is not negative, rounded up.
pub fn square_up(x: f64) -> f64 {
    Range::point(x).square().high
}

/// The root of a number that is not negative, rounded up.
pub fn root_up(x: f64) -> f64 {
    x.sqrt().next_up()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends hold the exact result, also where it rounds away from it: checked in
    /// twice the precision by the error of the rounded operation.
    #[test]
    fn ends_are_moved_outward() {
        let tenth = Range::point(0.1);
        let fifth = Range::point(0.2);
        let sum = tenth.add(fifth);
        assert!(sum.low < sum.high && sum.contains(0.1 + 0.2));
        let product = tenth.multiply(fifth);
        let error = 0.1f64.mul_add(0.2, -(0.1 * 0.2));
        assert!(error != 0.0);
        assert!(product.low < 0.1 * 0.2 && product.high > 0.1 * 0.2);
        let third = Range::point(3.0).inverse();
        assert!(third.low < 1.0 / 3.0 && third.high > 1.0 / 3.0);
        // Exact ones stay.
        assert_eq!(Range::point(2.0).add(Range::ONE), Range::point(3.0));
        assert_eq!(Range::point(2.0).inverse(), Range::point(0.5));
        assert_eq!(
            Range::point(3.0).multiply(Range::point(-2.0)),
            Range::point(-6.0)
        );
        // Products that underflow.
        let tiny = Range::point(1e-200);
        let square = tiny.multiply(tiny.negate());
        assert!(square.low < 0.0);
    }

    #[test]
    fn infinite_ends_are_no_bounds() {
        assert_eq!(Range::ALL.add(Range::ALL), Range::ALL);
        assert_eq!(Range::ALL.multiply(Range::ZERO), Range::ZERO);
        let positive = Range::new(0.0, f64::INFINITY);
        assert_eq!(positive.inverse(), positive);
        assert_eq!(Range::new(-1.0, 2.0).inverse(), Range::ALL);
        assert_eq!(Range::new(f64::NAN, 2.0), Range::ALL);
        assert_eq!(Range::new(-3.0, 2.0).square(), Range::new(0.0, 9.0));
        let overflown = Range::point(1e200).multiply(Range::point(1e200));
        assert!(overflown.low.is_finite() && overflown.high == f64::INFINITY);
        assert_eq!(
            Range::new(-2.0, 1.0).bell(|x| -x * x).high,
            0.0 + f64::MIN_POSITIVE
        );
    }
}
