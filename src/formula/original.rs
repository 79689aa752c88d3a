//! Coefficients on the scale of the data.
//!
//! A product of standardised numbers is a polynomial in the numbers themselves:
//! ((x - c)/s)^p = sum over q of (p choose q) (-c)^(p - q) x^q / s^p. So the coefficient of a product
//! M of numbers collects those of all columns with the same levels and at least these powers.

use super::design::{Column, Number, Part};
use super::program::literal;

/// Whether other columns add to a coefficient, or are taken from it, as from thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Plus,
    Minus,
}

/// The coefficient of a column on the scale of the data, as an expression of the model's
/// coefficients; `None` where it is the model's own.
pub(super) fn original(
    column: &Column,
    coefficients: &[(Column, String)],
    numbers: &[Number],
    sign: Sign,
) -> Option<String> {
    let mut text = String::new();
    let mut is_own = true;
    for (other, name) in coefficients {
        let Some((factor, divisor)) = share(column, other, numbers) else {
            continue;
        };
        let itself = other.is(column);
        is_own &= itself && factor == 1.0 && divisor == 1.0;
        let turned = sign == Sign::Minus && !itself;
        let is_negative = (factor < 0.0) != turned;
        text += match (text.is_empty(), is_negative) {
            (true, false) => "",
            (true, true) => "-",
            (false, false) => " + ",
            (false, true) => " - ",
        };
        let size = factor.abs();
        if size != 1.0 {
            text += &format!("{} * ", literal(size));
        }
        text += name;
        if divisor != 1.0 {
            text += &format!(" / {}", literal(divisor));
        }
    }
    (!is_own).then_some(text)
}

/// The factor and the divisor of the coefficient of `other` in that of `column`.
fn share(column: &Column, other: &Column, numbers: &[Number]) -> Option<(f64, f64)> {
    let levels = |c: &Column| -> Vec<Part> {
        let parts = c.0.iter().filter(|part| matches!(part, Part::Level { .. }));
        parts.cloned().collect()
    };
    if !Column(levels(column)).is(&Column(levels(other))) {
        return None;
    }
    let (mut factor, mut divisor) = (1.0, 1.0);
    for (i, number) in numbers.iter().enumerate() {
        let (q, p) = (column.power_of(i), other.power_of(i));
        let power = |x: f64, n: u32| (0..n).fold(1.0, |product, _| product * x);
        if q > p {
            return None;
        }
        factor *= choose(p, q) * power(-number.centre, p - q);
        divisor *= power(number.scale, p);
    }
    (factor != 0.0).then_some((factor, divisor))
}

fn choose(n: u32, k: u32) -> f64 {
    (0..k).fold(1.0, |product, i| {
        product * f64::from(n - i) / f64::from(i + 1)
    })
}
