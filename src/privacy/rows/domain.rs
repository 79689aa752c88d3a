//! The values that a cell of a record column may hold.

use crate::model::{RecordColumn, truth};
use std::collections::HashMap;
use std::fmt;

/// Whole numbers up to 2^53 in size are exact in an f64; an int beyond is bad.
const LARGEST_INT: f64 = 9_007_199_254_740_992.0;

/// A cell, once read. Not `Debug`: it may hold a private value.
pub(in crate::privacy) enum Cell {
    /// Finite and inside the bounds.
    Value(f64),
    /// A real that was outside its bounds, moved to the nearer one.
    Clamped {
        to: f64,
        above: bool,
    },
    Missing,
    Bad,
}

/// The type and the finite bounds of a column.
pub(in crate::privacy) struct Domain {
    is_int: bool,
    lower: Option<f64>,
    upper: Option<f64>,
    /// Whether the words for true and false are 1 and 0.
    is_truth: bool,
    /// The words of a factor, with the int of each.
    levels: Vec<String>,
    codes: HashMap<String, f64>,
}

impl Domain {
    pub(in crate::privacy) fn new(column: &RecordColumn) -> Domain {
        Domain {
            is_int: column.is_int,
            lower: column.lower.filter(|bound| bound.is_finite()),
            upper: column.upper.filter(|bound| bound.is_finite()),
            is_truth: column.is_truth(),
            levels: column.levels.clone(),
            codes: (1..)
                .zip(&column.levels)
                .map(|(code, level)| (level.clone(), f64::from(code)))
                .collect(),
        }
    }

    /// Reads a cell of a text file, white space around it ignored.
    ///
    /// Missing: nothing, or `NA`, `N/A`, `NaN`, `null` in any case. An int may be
    /// written in a real's form (`3.0`, `1e3`), as many programs do once a column
    /// has a missing value. In a column of ints from 0 to 1, `true` and `false` are 1 and 0. A factor
    /// holds one of its levels, letter by letter, even one that is named like a missing value. Bytes
    /// that are not UTF-8 are bad.
    pub(in crate::privacy) fn text(&self, bytes: &[u8]) -> Cell {
        // Most cells are numbers. This finds the same bits as `str::parse`, and sooner.
        if self.levels.is_empty()
            && let Ok(value) = fast_float2::parse::<f64, _>(bytes.trim_ascii())
            && value.abs() < LARGEST_INT
        {
            return self.number(value);
        }
        self.any_text(bytes)
    }

    /// Reads a cell, whatever it contains.
    #[inline(never)]
    fn any_text(&self, bytes: &[u8]) -> Cell {
        let Ok(text) = std::str::from_utf8(bytes) else {
            return Cell::Bad;
        };
        let text = text.trim();
        if let Some(&code) = self.codes.get(text) {
            return Cell::Value(code);
        }
        if is_missing(text) {
            return Cell::Missing;
        }
        if !self.levels.is_empty() {
            return Cell::Bad;
        }
        if self.is_truth
            && let Some(value) = truth(text)
        {
            return Cell::Value(value);
        }
        // 2^53 + 1 is not an f64, and rounds to one that would be accepted.
        if let Ok(whole) = text.parse::<i64>() {
            return self.whole(whole);
        }
        match text.parse::<f64>() {
            Ok(value) => self.number(value),
            Err(_) => Cell::Bad,
        }
    }

    /// A NaN is missing. A real outside a bound, infinite or not, is moved to it;
    /// an int never is.
    pub(in crate::privacy) fn number(&self, value: f64) -> Cell {
        if value.is_nan() {
            return Cell::Missing;
        }
        let clamped = self.clamp(value);
        let allowed = if self.is_int {
            clamped == value && value.fract() == 0.0 && value.abs() <= LARGEST_INT
        } else {
            clamped.is_finite()
        };
        // -0.0 is the number 0.
        let to = if clamped == 0.0 { 0.0 } else { clamped };
        if !allowed {
            Cell::Bad
        } else if clamped == value {
            Cell::Value(to)
        } else {
            let above = value > clamped;
            Cell::Clamped { to, above }
        }
    }

    /// Reads a whole number, which may be beyond those that an f64 holds exactly.
    pub(in crate::privacy) fn whole(&self, value: i64) -> Cell {
        if self.is_int && value.unsigned_abs() > LARGEST_INT as u64 {
            return Cell::Bad;
        }
        self.number(value as f64)
    }

    /// The value in a masked row: the lower bound, or the allowed number nearest to zero.
    pub(in crate::privacy) fn placeholder(&self) -> f64 {
        let lowest = match self.lower {
            Some(lower) if self.is_int => lower.ceil(),
            Some(lower) => lower,
            None => 0.0,
        };
        match self.upper {
            Some(upper) if self.is_int => lowest.min(upper.floor()),
            Some(upper) => lowest.min(upper),
            None => lowest,
        }
    }

    // Not f64::clamp, which panics if the bounds are in the wrong order.
    fn clamp(&self, value: f64) -> f64 {
        let raised = self.lower.map_or(value, |lower| value.max(lower));
        self.upper.map_or(raised, |upper| raised.min(upper))
    }
}

/// Whether a cell of a text file, without white space around it, says that there is
/// no value.
pub(in crate::privacy) fn is_missing(text: &str) -> bool {
    ["", "NA", "N/A", "NaN", "null"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word))
}

/// The expected contents of a cell; they depend on the declaration alone.
impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if !self.levels.is_empty() {
            const MOST: usize = 12;
            let shown: Vec<String> = self
                .levels
                .iter()
                .take(MOST)
                .map(|level| format!("{level:?}"))
                .collect();
            let rest = self.levels.len().saturating_sub(MOST);
            write!(f, "a level of the factor: {}", shown.join(", "))?;
            return match rest {
                0 => Ok(()),
                more => write!(f, " and {more} more"),
            };
        }
        if !self.is_int {
            let bounded = self.lower.is_some() && self.upper.is_some();
            return f.write_str(if bounded {
                "a number"
            } else {
                "a finite number"
            });
        }
        match (self.lower, self.upper) {
            _ if self.is_truth => f.write_str("0 or 1, or false or true"),
            (Some(lower), Some(upper)) => write!(f, "a whole number from {lower} to {upper}"),
            (Some(lower), None) => write!(f, "a whole number that is at least {lower}"),
            (None, Some(upper)) => write!(f, "a whole number that is at most {upper}"),
            (None, None) => f.write_str("a whole number"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    fn domain(is_int: bool, lower: Option<f64>, upper: Option<f64>) -> Domain {
        Domain {
            is_int,
            lower,
            upper,
            is_truth: false,
            levels: Vec::new(),
            codes: HashMap::new(),
        }
    }

    fn factor(levels: &[&str]) -> Domain {
        Domain::new(&RecordColumn {
            lower: Some(1.0),
            upper: Some(levels.len() as f64),
            levels: levels.iter().map(|level| level.to_string()).collect(),
            ..RecordColumn::named("g", true)
        })
    }

    fn shown(cell: Cell) -> String {
        match cell {
            Cell::Value(value) => format!("{value:?}"),
            Cell::Clamped { to, above: false } => format!("{to:?} from below"),
            Cell::Clamped { to, above: true } => format!("{to:?} from above"),
            Cell::Missing => "missing".to_string(),
            Cell::Bad => "bad".to_string(),
        }
    }

    fn check(domain: &Domain, cases: &[(&str, &str)]) {
        for (text, expected) in cases {
            assert_eq!(&shown(domain.text(text.as_bytes())), expected, "{text:?}");
        }
    }

    #[test]
    fn missing_words_in_any_case() {
        for domain in [domain(true, Some(0.0), None), domain(false, None, None)] {
            for word in [
                "", "  ", "NA", "na", "N/A", "nan", "NaN", "-nan", "NULL", " null\t",
            ] {
                assert_eq!(shown(domain.text(word.as_bytes())), "missing", "{word:?}");
            }
            for word in [".", "-", "none", "NA NA", "n.a.", "?"] {
                assert_eq!(shown(domain.text(word.as_bytes())), "bad", "{word:?}");
            }
            assert_eq!(shown(domain.text(b"\xff1")), "bad");
        }
    }

    #[test]
    fn reals_are_clamped_on_the_sides_that_are_bounded() {
        let bounded = domain(false, Some(-1.0), Some(2.5));
        check(
            &bounded,
            &[
                (" 1.5 ", "1.5"),
                ("-1", "-1.0"),
                ("2.5", "2.5"),
                ("-3", "-1.0 from below"),
                ("-1.0000000000000002", "-1.0 from below"),
                ("9", "2.5 from above"),
                ("1e999", "2.5 from above"),
                ("1e308", "2.5 from above"),
                ("5e-324", "5e-324"),
                ("-inf", "-1.0 from below"),
            ],
        );
        let below = domain(false, Some(0.0), None);
        check(
            &below,
            &[
                ("-Infinity", "0.0 from below"),
                ("-5e-324", "0.0 from below"),
                ("1.7e308", "1.7e308"),
                ("inf", "bad"),
                ("1e999", "bad"),
                ("+3", "3.0"),
                ("-0.0", "0.0"),
            ],
        );
        check(
            &domain(false, None, None),
            &[
                ("inf", "bad"),
                ("-inf", "bad"),
                ("1_0", "bad"),
                ("0x1", "bad"),
                ("-1e308", "-1e308"),
                ("4.9e-324", "5e-324"),
                ("1e-400", "0.0"),
            ],
        );
    }

    #[test]
    fn factors_hold_their_levels_and_nothing_else() {
        let region = factor(&["north", "South East", "1"]);
        check(
            &region,
            &[
                ("north", "1.0"),
                (" north\t", "1.0"),
                ("South East", "2.0"),
                ("1", "3.0"),
                ("", "missing"),
                ("NA", "missing"),
                ("nan", "missing"),
                ("North", "bad"),
                ("north.", "bad"),
                ("2", "bad"),
                ("1.0", "bad"),
            ],
        );
        let said = region.to_string();
        assert_eq!(said, r#"a level of the factor: "north", "South East", "1""#);
        let named_like_missing = factor(&["NA", "none"]);
        check(
            &named_like_missing,
            &[("NA", "1.0"), ("na", "missing"), ("none", "2.0")],
        );
        let many: Vec<String> = (0..100).map(|k| k.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(factor(&many).to_string().ends_with("\"11\" and 88 more"));
        assert_eq!(region.placeholder(), 1.0);
    }

    #[test]
    fn words_of_truth_stand_for_ints_from_0_to_1_and_nothing_else() {
        let column = |is_int, lower, upper| RecordColumn {
            lower: Some(lower),
            upper: Some(upper),
            ..RecordColumn::named("k", is_int)
        };
        let truth = Domain::new(&column(true, 0.0, 1.0));
        check(
            &truth,
            &[
                ("True", "1.0"),
                (" TRUE ", "1.0"),
                ("true", "1.0"),
                ("False", "0.0"),
                ("FALSE", "0.0"),
                ("false\t", "0.0"),
                ("1", "1.0"),
                ("0.0", "0.0"),
                ("", "missing"),
                ("tRUE", "bad"),
                ("T", "bad"),
                ("yes", "bad"),
                ("true false", "bad"),
                ("2", "bad"),
            ],
        );
        assert_eq!(truth.to_string(), "0 or 1, or false or true");
        for other in [
            column(true, 0.0, 2.0),
            column(true, -1.0, 1.0),
            column(true, 0.0, f64::INFINITY),
            column(false, 0.0, 1.0),
        ] {
            check(&Domain::new(&other), &[("true", "bad"), ("False", "bad")]);
        }
        check(&factor(&["a", "b"]), &[("true", "bad")]);
        check(
            &factor(&["false", "true"]),
            &[("true", "2.0"), ("True", "bad")],
        );
    }

    #[test]
    fn an_infinite_bound_is_no_bound() {
        let column = RecordColumn {
            lower: Some(f64::NEG_INFINITY),
            upper: Some(f64::INFINITY),
            ..RecordColumn::named("x", false)
        };
        let domain = Domain::new(&column);
        check(&domain, &[("inf", "bad"), ("-inf", "bad"), ("1", "1.0")]);
        assert_eq!(domain.placeholder(), 0.0);
    }

    #[test]
    fn ints_are_whole_in_bounds_and_exact() {
        let bounded = domain(true, Some(0.0), Some(3.0));
        check(
            &bounded,
            &[
                ("3", "3.0"),
                ("3.0", "3.0"),
                ("3e0", "3.0"),
                ("-0", "0.0"),
                ("4", "bad"),
                ("-1", "bad"),
                ("2.5", "bad"),
                ("inf", "bad"),
                ("TRUE", "bad"),
            ],
        );
        check(
            &domain(true, None, None),
            &[
                ("9007199254740992", "9007199254740992.0"),
                ("9007199254740993", "bad"),
                ("-9007199254740993", "bad"),
                ("99999999999999999999999", "bad"),
                ("1e300", "bad"),
            ],
        );
    }

    #[test]
    fn placeholders_are_in_bounds() {
        for (is_int, lower, upper, expected) in [
            (false, None, None, 0.0),
            (false, Some(2.5), None, 2.5),
            (false, None, Some(-4.0), -4.0),
            (false, None, Some(4.0), 0.0),
            (true, Some(0.5), Some(3.0), 1.0),
            (true, None, Some(-0.5), -1.0),
        ] {
            assert_eq!(domain(is_int, lower, upper).placeholder(), expected);
        }
    }

    fn bits(cell: Cell) -> (u64, &'static str) {
        match cell {
            Cell::Value(value) => (value.to_bits(), "value"),
            Cell::Clamped { to, above: false } => (to.to_bits(), "from below"),
            Cell::Clamped { to, above: true } => (to.to_bits(), "from above"),
            Cell::Missing => (0, "missing"),
            Cell::Bad => (0, "bad"),
        }
    }

    /// Numbers of every size and form, numbers halfway between two neighbours, and what looks like
    /// a number.
    #[test]
    fn numbers_have_the_bits_that_the_standard_library_gives() {
        const TEXTS: &str = "9007199254740991|9007199254740992.5|-9007199254740993|\
            18446744073709551616|0.99999999999999999999|1e22|1e23|9007199254740993e-22|1.e5|.5|5.|\
            .|+|-|+-1|--1|e5|.e5|1e|1e+|1e5.|1.2.3|1,5|1_000|0x10|1d5|1f|inf|-Infinity|infinit|\
            +nan|nan(1)|\u{a0}1\u{a0}|\u{b}1.5\u{b}|\u{85}1|1\u{2028}|1 2|\u{ff11}|1\0|\0|2.5| 1 |\
            2.2250738585072011e-308|2.2250738585072012e-308|4.9406564584124654e-324|\
            2.4703282292062327e-324|2.4703282292062328e-324|1.7976931348623158e308|\
            1.7976931348623159e308|1e99999999999999999999|1e-99999999999999999999|\
            0e99999999999999999999|0.ZEROS1e70001|1ZEROSe-70000|ZEROS1.5|0.5ZEROS|0.5ZEROS1|1eZEROS3";
        let domains = [
            domain(false, None, None),
            domain(false, Some(-1.5), Some(1e9)),
            domain(false, Some(0.0), Some(-0.0)),
            domain(true, None, None),
            domain(true, Some(0.0), Some(1.0)),
            factor(&["1", "2.5", "nan"]),
        ];
        let same = |text: &[u8]| {
            for domain in &domains {
                let (quick, any) = (bits(domain.text(text)), bits(domain.any_text(text)));
                assert_eq!(quick, any, "{}", String::from_utf8_lossy(text));
            }
        };
        for text in TEXTS.replace("ZEROS", &"0".repeat(70_000)).split('|') {
            same(text.as_bytes());
            same(format!("-{text}").as_bytes());
        }
        let mut random = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..100_000 {
            same(format!("{:e}", f64::from_bits(random.random())).as_bytes());
            let size = 10_f64.powi(random.random_range(-6..18));
            let value = size * random.random_range(-1.0..1.0);
            same(format!("{value}").as_bytes());
            same(format!(" {value:.*}\t", random.random_range(0..25)).as_bytes());
            // Halfway between two neighbours, and next to it.
            let places = random.random_range(1..25);
            let odd = random.random_range(1_u128 << 52..1 << 53) * 2 + 1;
            let halfway = 10 * odd * 5_u128.pow(places);
            for digits in [halfway - 1, halfway, halfway + 1] {
                let mut number = format!("{digits:030}");
                number.insert(number.len() - 1 - places as usize, '.');
                same(number.as_bytes());
            }
            let digits = random.random_range(1..40);
            let number: String = (0..digits)
                .map(|_| random.random_range('0'..='9'))
                .collect();
            let point = random.random_range(0..=digits);
            same(format!("{}.{}", &number[..point], &number[point..]).as_bytes());
            same(format!("{number}e-{point}").as_bytes());
            let pieces = b"0123456789..+--eEnaif \t_x\xc2\xa0\xff";
            let length = random.random_range(0..12);
            let piece = |_| pieces[random.random_range(0..pieces.len())];
            let text: Vec<u8> = (0..length).map(piece).collect();
            same(&text);
        }
    }
}
