//! The codebook: what is publicly known of the columns of a table, from a YAML file.

#![expect(
    clippy::result_large_err,
    reason = "there is one error, and it ends the command"
)]

use std::collections::BTreeMap;

use std::path::Path;

use super::guess::{Guess, KEYS};
use super::yaml::{Node, with_document, wrong};
use crate::syntax::{Diagnostic, did_you_mean, render};

/// A codebook: what is publicly known of the columns of a table, from YAML or JSON.
#[derive(Debug, Clone)]
pub struct Codebook {
    columns: BTreeMap<String, Entry>,
}

/// A file that is no codebook, or one that does not fit a model.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CodebookError(pub(crate) String);

/// One column.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    kind: Option<Kind>,
    lower: Option<f64>,
    upper: Option<f64>,
    levels: Option<Vec<String>>,
    description: Option<String>,
    unit: Option<String>,
    /// Codes in the data that stand for missing values.
    missing: Vec<String>,
    guess: Guess,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Float,
    Int,
    Boolean,
    String,
}

/// The types with their names; the first is what messages say.
const TYPES: [(Kind, &[&str]); 4] = [
    (
        Kind::Float,
        &["float", "real", "double", "number", "numeric"],
    ),
    (Kind::Int, &["int", "integer"]),
    (Kind::Boolean, &["boolean", "bool", "logical"]),
    (
        Kind::String,
        &["string", "str", "text", "factor", "categorical"],
    ),
];

/// The content of a column, as far as a model must know.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    Real {
        lower: f64,
        upper: f64,
    },
    Int {
        lower: i64,
        upper: i64,
    },
    /// 0 or 1.
    Binary,
    Levels(Vec<String>),
}

/// An entry that the codebook lacks, and how to add it.
#[derive(Debug)]
pub(super) struct Lack {
    pub message: String,
    pub help: String,
}

/// The words that stand for missing values when records are loaded (docs/data.md).
const MISSING: [&str; 5] = ["", "NA", "N/A", "NaN", "null"];

impl Codebook {
    /// Reads a file of YAML or JSON.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is no codebook.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Codebook, CodebookError> {
        let place = path.as_ref().display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|e| CodebookError(format!("cannot read the codebook `{place}`: {e}")))?;
        Codebook::read(&text).map_err(|wrong| CodebookError(render(&[wrong], &text, &place, false)))
    }

    /// Reads the YAML, of which JSON is a part.
    ///
    /// # Errors
    ///
    /// A key that is unknown or missing, or a contradiction, at its place in the text.
    pub(crate) fn read(text: &str) -> Result<Codebook, Diagnostic> {
        with_document(text, |document| {
            let mut columns = BTreeMap::new();
            let mut has_columns = false;
            for field in document.fields(&["title", "description", "columns"])? {
                if field.key != "columns" {
                    field.value.text()?;
                    continue;
                }
                has_columns = true;
                for column in field.value.fields(&[])? {
                    let entry = Entry::read(&column.value)?;
                    if let Some(what) = entry.contradiction() {
                        let message = format!("the column `{}`: {what}", column.key);
                        return Err(wrong(column.place, message));
                    }
                    columns.insert(column.key, entry);
                }
            }
            if has_columns {
                Ok(Codebook { columns })
            } else {
                Err(wrong(document.place(), "the codebook has no `columns:`"))
            }
        })
    }

    pub(super) fn entry(&self, column: &str) -> Option<&Entry> {
        self.columns.get(column)
    }

    /// The guess of a column's distribution, if the codebook has one.
    pub(crate) fn guess(&self, column: &str) -> Option<&Guess> {
        let guess = &self.columns.get(column)?.guess;
        (!guess.is_empty()).then_some(guess)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.columns.keys()
    }
}

impl Entry {
    fn read(node: &Node<'_>) -> Result<Entry, Diagnostic> {
        let mut entry = Entry {
            kind: None,
            lower: None,
            upper: None,
            levels: None,
            description: None,
            unit: None,
            missing: Vec::new(),
            guess: Guess::default(),
        };
        let known = [
            "type",
            "lower",
            "upper",
            "levels",
            "description",
            "unit",
            "missing",
        ];
        let known = [&known[..], &KEYS].concat();
        let texts = |node: &Node<'_>| -> Result<Vec<String>, Diagnostic> {
            node.list()?.iter().map(Node::text).collect()
        };
        for field in node.fields(&known)? {
            let value = &field.value;
            match field.key.as_str() {
                "type" => entry.kind = Some(kind_of(value)?),
                "lower" => entry.lower = Some(value.number()?),
                "upper" => entry.upper = Some(value.number()?),
                "levels" => entry.levels = Some(texts(value)?),
                "description" => entry.description = Some(value.text()?),
                "unit" => entry.unit = Some(value.text()?),
                key if KEYS.contains(&key) => entry.guess.read(key, value)?,
                _ if value.is_list() => entry.missing = texts(value)?,
                // `true` or `false`, for people.
                _ => drop(value.text()?),
            }
        }
        Ok(entry)
    }

    fn contradiction(&self) -> Option<String> {
        let bounds = [self.lower, self.upper];
        if let [Some(lower), Some(upper)] = bounds
            && lower >= upper
        {
            return Some(format!("`lower: {lower}` is not below `upper: {upper}`"));
        }
        let is_whole = |b: &f64| b.fract() == 0.0 && b.abs() <= LARGEST_INT;
        if self.kind == Some(Kind::Int) && !bounds.iter().flatten().all(is_whole) {
            return Some(format!(
                "the bounds of an int are whole numbers, up to {LARGEST_INT}"
            ));
        }
        if let Some(wrong) = self.guess.contradiction() {
            return Some(wrong);
        }
        let levels = self.levels.as_ref()?;
        if bounds.iter().flatten().next().is_some() {
            return Some("it has `levels` and bounds; a column has one or the other".to_owned());
        }
        if levels.len() < 2 {
            return Some("`levels` must have at least two".to_owned());
        }
        for (i, level) in levels.iter().enumerate() {
            if levels[..i].contains(level) {
                return Some(format!("the level `{level}` is there twice"));
            }
            if level.trim().is_empty() || level.contains(['"', '\n', '\r']) {
                return Some(format!(
                    "the level `{}` cannot be written into a program: a level may neither be empty nor have quotation marks or line breaks",
                    level.escape_debug()
                ));
            }
        }
        None
    }

    /// The content of the column.
    pub fn content(&self, name: &str) -> Result<Content, Lack> {
        let Some(kind) = self.kind else {
            return Err(Lack {
                message: format!("the codebook has no `type` for `{name}`"),
                help: format!(
                    "add `type:` to `{name}` in the codebook, which is float, int, boolean or string"
                ),
            });
        };
        if let Some(levels) = &self.levels {
            return Ok(Content::Levels(levels.clone()));
        }
        let bound = |which: &str, word: &str, value: Option<f64>| {
            value.ok_or_else(|| Lack {
                message: format!("the codebook has no `{which}` for `{name}`"),
                help: format!(
                    "add `{which}:` to `{name}` in the codebook: the {word} value that is possible, which is not read off the data"
                ),
            })
        };
        match kind {
            Kind::Boolean => Ok(Content::Binary),
            Kind::String => Err(Lack {
                message: format!("the codebook has no `levels` for `{name}`"),
                help: format!(
                    "add `levels: [first, second]` to `{name}` in the codebook: all values that are possible, the reference first"
                ),
            }),
            Kind::Float => Ok(Content::Real {
                lower: bound("lower", "smallest", self.lower)?,
                upper: bound("upper", "largest", self.upper)?,
            }),
            Kind::Int => {
                // Checked to be whole and small when the file was read.
                let lower = bound("lower", "smallest", self.lower)? as i64;
                let upper = bound("upper", "largest", self.upper)? as i64;
                Ok(match (lower, upper) {
                    (0, 1) => Content::Binary,
                    _ => Content::Int { lower, upper },
                })
            }
        }
    }

    /// The comment next to the declaration.
    pub fn comment(&self) -> Option<String> {
        let one_line = |text: &String| {
            let words: Vec<&str> = text.split_whitespace().collect();
            words.join(" ").replace(char::is_control, "")
        };
        let parts = [&self.description, &self.unit];
        let [about, unit] = parts.map(|part| part.as_ref().map(one_line));
        match (about, unit) {
            (Some(about), Some(unit)) => Some(format!("{about}, in {unit}")),
            (about, unit) => about.or(unit),
        }
    }

    pub fn unit(&self) -> Option<&str> {
        self.unit.as_deref().map(str::trim)
    }

    /// Codes for missing values that must be recoded first.
    pub fn unknown_codes(&self) -> Vec<&str> {
        let codes = self.missing.iter().map(String::as_str);
        codes.filter(|code| !MISSING.contains(code)).collect()
    }
}

fn kind_of(value: &Node<'_>) -> Result<Kind, Diagnostic> {
    let word = value.text()?;
    let found = TYPES
        .iter()
        .find(|(_, names)| names.contains(&word.as_str()));
    found.map(|(kind, _)| *kind).ok_or_else(|| {
        let names = TYPES.iter().flat_map(|(_, names)| names.iter().copied());
        let help = match did_you_mean(&word, names) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "the types are float, int, boolean and string".to_owned(),
        };
        wrong(value.place(), format!("`{word}` is not a type")).help(help)
    })
}

/// Ints up to here are exact as f64, and fit into an int of the language.
const LARGEST_INT: f64 = 2_147_483_647.0;

/// The middle of a column's values and a typical distance from it, as far as bounds tell: as if they
/// were two standard deviations away on either side.
pub(super) fn typical(lower: f64, upper: f64) -> (f64, f64) {
    (f64::midpoint(lower, upper), (upper - lower) / 4.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(entry: &str) -> Result<Content, String> {
        let book = Codebook::read(&format!("columns:\n  x: {entry}\n"))
            .map_err(|d| format!("{}: {} / {:?}", d.span.start, d.message, d.help))?;
        let entry = book.entry("x").ok_or("no column")?;
        entry
            .content("x")
            .map_err(|lack| format!("{} / {}", lack.message, lack.help))
    }

    #[test]
    fn columns_are_what_their_entries_say() {
        let real = |lower, upper| Ok(Content::Real { lower, upper });
        assert_eq!(
            content("{type: float, lower: -1, upper: 2.5}"),
            real(-1.0, 2.5)
        );
        assert_eq!(content("{type: real, lower: 0, upper: 1}"), real(0.0, 1.0));
        let int = Content::Int { lower: 0, upper: 9 };
        assert_eq!(content("{type: int, lower: 0, upper: 9}"), Ok(int));
        assert_eq!(
            content("{type: integer, lower: 0, upper: 1}"),
            Ok(Content::Binary)
        );
        assert_eq!(content("{type: boolean}"), Ok(Content::Binary));
        // YAML 1.1 would make truth values of the second.
        for levels in ["[low, high]", "[no, yes]", "[1, 2.50]"] {
            let words = levels
                .trim_matches(['[', ']'])
                .split(", ")
                .map(str::to_owned);
            let expected = Content::Levels(words.collect());
            assert_eq!(
                content(&format!("{{type: string, levels: {levels}}}")),
                Ok(expected)
            );
        }
        let json = Codebook::read(r#"{"columns": {"x": {"type": "boolean", "missing": true}}}"#);
        assert!(json.is_ok_and(|book| book.entry("x").is_some()));
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        for (entry, said) in [
            ("{type: float, lower: 0}", "add `upper:` to `x`"),
            ("{type: int, upper: 3}", "add `lower:` to `x`"),
            ("{type: string}", "add `levels: [first, second]` to `x`"),
            ("{type: float, lower: 3, upper: 3}", "not below"),
            ("{type: float, lower: .inf, upper: 3}", "1e30"),
            ("{type: int, lower: 0.5, upper: 3}", "whole"),
            ("{type: int, lower: 0, upper: 3e12}", "whole"),
            ("{type: string, levels: [a]}", "two"),
            ("{type: string, levels: [a, a]}", "twice"),
            ("{type: string, levels: [a, 'b\"']}", "quotation"),
            ("{type: int, lower: 0, levels: [a, b]}", "one or the other"),
            (
                "{type: flaot}",
                "21: `flaot` is not a type / Some(\"did you mean `float`?\")",
            ),
            (
                "{type: float, uper: 3}",
                "28: `uper` is not known here / Some(\"did you mean `upper`?\")",
            ),
            ("{lower: 3}", "no `type` for `x`"),
            ("{mean: 3, sd: 0}", "above 0"),
            ("{sd: 1}", "without `mean`"),
            ("{zeros: 1.5}", "between 0 and 1"),
            ("{zeros: 1}", "the same"),
            ("{shares: {1: 0.7, 2: 0.4}}", "more than 1"),
            ("{shares: {1: 0.7}, mean: 3, sd: 1}", "given twice"),
            ("{zeros: 0.5, shares: {1: 0.7}}", "the share of 0"),
            ("{quantiles: {0.5: 3}}", "two quantiles"),
            ("{quantiles: {0.5: 3, 0.4: 4}}", "ascending"),
            ("{quantiles: {5: 3, 95: 4}}", "`5` is not a probability"),
            ("{quantiles: {0.5: 3, 0.9: 3}}", "the same"),
            ("3", "14: expected names"),
        ] {
            let answer = content(entry);
            assert!(
                answer.as_ref().is_err_and(|e| e.contains(said)),
                "{entry}: {answer:?}"
            );
        }
        assert!(Codebook::read("").is_err());
        assert!(Codebook::read("columns: {x: {type: boolean}, x: {type: boolean}}").is_err());
    }

    // If it failed: a run that is resumed would go on with another guess than it began with.
    #[test]
    fn guesses_are_read_again_as_they_were_written() {
        for entry in [
            "{mean: 1234.5, sd: 1.0e-7}",
            "{zeros: 0.125, quantiles: {0: -3, 0.05: 0.1, 1: 2.0e+9}}",
            "{shares: {no: 0.1, 'yes and more': 0.25, 3: 0}}",
        ] {
            let read = |text: &str| {
                let book = Codebook::read(text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
                book.guess("x").cloned().expect("a guess")
            };
            let first = read(&format!("columns: {{x: {entry}}}"));
            let written = serde_json::json!({ "columns": { "x": first.json() } });
            assert_eq!(read(&written.to_string()), first);
        }
    }

    #[test]
    fn comments_are_one_line() {
        let book = "columns:\n  x:\n    type: boolean\n    description: |\n      a\n      b\n    unit: km\n    missing: [-9, NA]\n";
        let book = Codebook::read(book).unwrap_or_else(|e| panic!("{e:?}"));
        let entry = book.entry("x").expect("the column");
        assert_eq!(entry.comment().as_deref(), Some("a b, in km"));
        assert_eq!(entry.unknown_codes(), ["-9"]);
    }
}
