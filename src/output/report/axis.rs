//! Scales, ticks and their labels.

/// A linear map from values to places on a drawing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    pub low: f64,
    pub high: f64,
    /// The places of `low` and `high`.
    pub from: f64,
    pub to: f64,
}

impl Scale {
    /// Ends that are not numbers, or in the wrong order, are replaced.
    pub fn new([low, high]: [f64; 2], [from, to]: [f64; 2]) -> Scale {
        let (low, high) = if low.is_finite() && high.is_finite() && low < high {
            (low, high)
        } else if low.is_finite() {
            let half = (low.abs() * 0.05).max(0.5);
            (low - half, low + half)
        } else {
            (0.0, 1.0)
        };
        Scale {
            low,
            high,
            from,
            to,
        }
    }

    /// The place of a value; NaN for NaN.
    pub fn at(&self, value: f64) -> f64 {
        // Halves, so that ends far apart do not overflow.
        let share = (value * 0.5 - self.low * 0.5) / (self.high * 0.5 - self.low * 0.5);
        self.from + share * (self.to - self.from)
    }

    /// The place of a value, held to the drawing.
    pub fn held(&self, value: f64) -> f64 {
        let (low, high) = (self.from.min(self.to), self.from.max(self.to));
        self.at(value).clamp(low, high)
    }

    pub fn ticks(&self, most: usize) -> Vec<Tick> {
        ticks(self.low, self.high, most)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Tick {
    pub value: f64,
    pub label: String,
}

/// Round numbers between two ends, at most one more than `most`, that are 1, 2 or 5 times a power
/// of ten apart.
fn ticks(low: f64, high: f64, most: usize) -> Vec<Tick> {
    let width = high - low;
    if !(width > 0.0 && width.is_finite()) || most == 0 {
        return Vec::new();
    }
    let power = (width / most as f64).log10().floor();
    let step = (0..6)
        .map(|i| [1.0, 2.0, 5.0][i % 3] * 10f64.powf(power + (i / 3) as f64))
        .find(|step| (high / step).floor() - (low / step).ceil() <= most as f64)
        .unwrap_or(width);
    let too_small = low + step == low;
    if too_small || !step.is_finite() {
        return Vec::new();
    }
    let first = (low / step).ceil();
    let count = ((high / step).floor() - first).max(0.0) as usize;
    (0..=count.min(most))
        .map(|i| {
            let value = (first + i as f64) * step;
            Tick {
                value,
                label: label(value, step),
            }
        })
        .collect()
}

/// A number with the decimals that its distance `step` from its neighbours requires.
fn label(value: f64, step: f64) -> String {
    let value = if value.abs() < step * 1e-6 {
        0.0
    } else {
        value
    };
    let decimals = (-step.log10() + 1e-9).ceil().max(0.0) as usize;
    if value != 0.0 && (decimals > 4 || value.abs() >= 1e6) {
        return power(value);
    }
    minus(format!("{value:.decimals$}"))
}

/// A number's text with a minus sign in place of a hyphen.
pub(super) fn minus(number: String) -> String {
    number.replace('-', "\u{2212}")
}

/// About three digits of a number, for sentences and tables.
pub(super) fn short(x: f64) -> String {
    let size = x.abs();
    match x {
        _ if x.is_nan() => "NaN".to_owned(),
        _ if x.is_infinite() => minus(x.to_string().replace("inf", "\u{221e}")),
        0.0 => "0".to_owned(),
        _ if !(1e-3..1e6).contains(&size) => power(x),
        _ if size >= 100.0 => minus(format!("{x:.0}")),
        _ => {
            let decimals = (2.0 - size.log10().floor()).max(0.0) as usize;
            minus(without_zeros(&format!("{x:.decimals$}")).to_owned())
        }
    }
}

fn without_zeros(number: &str) -> &str {
    if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        number
    }
}

/// A number as a power of ten, `1.5 x 10^-6` as it is printed.
fn power(x: f64) -> String {
    let text = format!("{x:.2e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let ten = format!("10{}", superscript(exponent.parse().unwrap_or(0)));
    match without_zeros(digits) {
        "1" => ten,
        digits => format!("{}\u{d7}{ten}", minus(digits.to_owned())),
    }
}

pub(super) fn superscript(number: i32) -> String {
    const DIGITS: [char; 10] = [
        '\u{2070}', '\u{b9}', '\u{b2}', '\u{b3}', '\u{2074}', '\u{2075}', '\u{2076}', '\u{2077}',
        '\u{2078}', '\u{2079}',
    ];
    number
        .to_string()
        .chars()
        .map(|c| c.to_digit(10).map_or('\u{207b}', |d| DIGITS[d as usize]))
        .collect()
}

/// A probability as per cent, with enough digits near 0 and 100.
pub(super) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let far = percent.min(100.0 - percent).abs();
    match far {
        _ if !percent.is_finite() => "\u{2013}".to_owned(),
        _ if far < 0.05 && far > 0.0 => format!("{percent:.3}\u{202f}%"),
        _ if far < 10.0 || percent.fract().abs() > 0.05 => format!("{percent:.1}\u{202f}%"),
        _ => format!("{percent:.0}\u{202f}%"),
    }
}

/// A count, with thin spaces between thousands.
pub(super) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64, most: usize) -> Vec<String> {
        ticks(low, high, most)
            .into_iter()
            .map(|t| t.label)
            .collect()
    }

    #[test]
    fn ticks_are_round_and_not_too_many() {
        assert_eq!(labels(-0.3, 1.1, 3), ["0.0", "0.5", "1.0"]);
        assert_eq!(labels(-1.0, 110.0, 3), ["0", "50", "100"]);
        assert_eq!(
            labels(-3.45, -2.45, 5),
            ["−3.4", "−3.2", "−3.0", "−2.8", "−2.6"].map(str::to_owned)[..].to_vec()
        );
        for most in 1..9 {
            for exponent in -12..12 {
                let scale = 10f64.powi(exponent);
                let found = ticks(-1.37 * scale, 4.2 * scale, most).len();
                assert!(found <= most + 1, "{found} of {most}");
            }
        }
    }

    #[test]
    fn ends_that_are_none_do_no_harm() {
        assert_eq!(Scale::new([2.0, 2.0], [0.0, 10.0]).at(2.0), 5.0);
        assert!(Scale::new([f64::NAN, 1.0], [0.0, 10.0]).ticks(3).len() <= 4);
        let wide = Scale::new([f64::MIN, f64::MAX], [0.0, 10.0]);
        assert!((wide.at(0.0) - 5.0).abs() < 1e-9);
        assert!(wide.ticks(3).is_empty());
        assert!(ticks(1e17, 1e17 + 16.0, 100).len() <= 101);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(short(0.5), "0.5");
        assert_eq!(short(-2.8779), "−2.88");
        assert_eq!(short(48842.0), "48842");
        assert_eq!(short(1e-6), "10⁻⁶");
        assert_eq!(short(-2.5e12), "−2.5×10¹²");
        assert_eq!(percent(0.547), "54.7\u{202f}%");
        assert_eq!(percent(0.5), "50\u{202f}%");
        assert_eq!(count(48842), "48\u{202f}842");
    }
}
