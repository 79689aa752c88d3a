//! The codebook's YAML, with the place of each word for messages.

#![expect(
    clippy::result_large_err,
    reason = "there is one error, and it ends the command"
)]

use saphyr::{LoadableYamlNode, MarkedYaml, Scalar, YamlData};

use crate::syntax::{Diagnostic, Span, did_you_mean};

/// The form of a file, by an example.
const FORM: &str = "a codebook is a YAML file such as\n\ncolumns:\n  age: {type: float, lower: 0, upper: 110, unit: years}\n  educ: {type: string, levels: [low, high]}";

/// The largest bound.
const LARGEST: f64 = 1e30;

/// A value in the file.
pub(super) struct Node<'a> {
    source: &'a str,
    yaml: &'a MarkedYaml<'a>,
}

/// A key with its value.
pub(super) struct Field<'a> {
    pub key: String,
    pub place: Span,
    pub value: Node<'a>,
}

/// Reads one document and does something with it.
pub(super) fn with_document<T>(
    source: &str,
    then: impl FnOnce(&Node<'_>) -> Result<T, Diagnostic>,
) -> Result<T, Diagnostic> {
    let documents = MarkedYaml::load_from_str(source).map_err(|e| {
        let at = byte_of(source, e.marker().index());
        let message = format!("this is not YAML: {}", e.info());
        wrong(Span::new(at, at), message).help(FORM)
    })?;
    match &documents[..] {
        [yaml] => then(&Node { source, yaml }),
        _ => Err(wrong(Span::new(0, 0), "expected one document with `columns:`").help(FORM)),
    }
}

pub(super) fn wrong(place: Span, message: impl Into<String>) -> Diagnostic {
    Diagnostic::error("F004", place, message)
}

fn byte_of(source: &str, character: usize) -> usize {
    let mut places = source.char_indices().map(|(at, _)| at);
    places.nth(character).unwrap_or(source.len())
}

impl<'a> Node<'a> {
    pub fn place(&self) -> Span {
        let [start, end] = [self.yaml.span.start, self.yaml.span.end];
        Span::new(
            byte_of(self.source, start.index()),
            byte_of(self.source, end.index()),
        )
    }

    /// The fields of a mapping, whose keys must be among `known` if there are any.
    pub fn fields(&self, known: &[&str]) -> Result<Vec<Field<'a>>, Diagnostic> {
        let YamlData::Mapping(mapping) = &self.yaml.data else {
            return Err(wrong(self.place(), "expected names with values").help(FORM));
        };
        let mut fields = Vec::new();
        for (key, value) in mapping {
            let node = |yaml: &'a MarkedYaml<'a>| Node {
                source: self.source,
                yaml,
            };
            let (key, value) = (node(key), node(value));
            let (name, place) = (key.text()?, key.place());
            if !known.is_empty() && !known.contains(&name.as_str()) {
                let help = match did_you_mean(&name, known.iter().copied()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("known are `{}`", known.join("`, `")),
                };
                return Err(wrong(place, format!("`{name}` is not known here")).help(help));
            }
            fields.push(Field {
                key: name,
                place,
                value,
            });
        }
        Ok(fields)
    }

    /// A word, a text or a number, as it is written.
    pub fn text(&self) -> Result<String, Diagnostic> {
        match &self.yaml.data {
            YamlData::Value(Scalar::String(text)) => Ok(text.to_string()),
            YamlData::Value(Scalar::Null) => Err(wrong(self.place(), "a value is missing here")),
            YamlData::Value(_) => {
                let written = self.source.get(self.place().range()).unwrap_or_default();
                Ok(written.trim().to_owned())
            }
            _ => Err(wrong(self.place(), "expected a text or a number")),
        }
    }

    pub fn number(&self) -> Result<f64, Diagnostic> {
        let number = match &self.yaml.data {
            YamlData::Value(Scalar::Integer(whole)) => Some(*whole as f64),
            YamlData::Value(Scalar::FloatingPoint(number)) => Some(number.into_inner()),
            _ => None,
        };
        // Larger ones would overflow in powers and products.
        let usual = number.filter(|number| number.abs() <= LARGEST);
        usual.ok_or_else(|| wrong(self.place(), "expected a number of at most 1e30 in size"))
    }

    pub fn list(&self) -> Result<Vec<Node<'a>>, Diagnostic> {
        let YamlData::Sequence(items) = &self.yaml.data else {
            return Err(wrong(self.place(), "expected a list, as in `[low, high]`"));
        };
        let node = |yaml| Node {
            source: self.source,
            yaml,
        };
        Ok(items.iter().map(node).collect())
    }

    pub fn is_list(&self) -> bool {
        matches!(self.yaml.data, YamlData::Sequence(_))
    }
}
