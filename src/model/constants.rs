//! Public constants: from JSON to values, checked against their declarations.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::BindError;
use super::private::Scalar;
use super::value::{Shape, Value};
use crate::check::{Base, Variable};

/// The constants file as a JSON object.
#[derive(Debug, Clone, Default)]
pub struct Constants {
    values: serde_json::Map<String, Json>,
    /// The text as written; `None` for constants assembled by a program.
    text: Option<String>,
}

/// Constants that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConstantsError {
    #[error("cannot read the constants `{}`: {source}", path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("not valid JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("expected a JSON object, for example {{\"prior_scale\": 2.5}}")]
    NotAnObject,
}

impl Constants {
    /// No constants at all.
    pub fn none() -> Self {
        Constants::default()
    }

    /// Parses a JSON object such as `{"J": 85, "scale": [1.0, 2.5]}`.
    ///
    /// Errors: the text is not JSON, or not an object.
    pub fn from_json(text: &str) -> Result<Self, ConstantsError> {
        match serde_json::from_str(text)? {
            Json::Object(values) => Ok(Constants {
                values,
                text: Some(text.to_owned()),
            }),
            _ => Err(ConstantsError::NotAnObject),
        }
    }

    /// The file that is read where no other is named: `MODEL.constants.json` for `MODEL.dpm`.
    pub(crate) fn beside(model: &Path) -> PathBuf {
        model.with_extension("constants.json")
    }

    /// Reads a file of JSON.
    ///
    /// Errors: it cannot be read, is not JSON, or not an object.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ConstantsError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|source| ConstantsError::Read {
            path: path.to_path_buf(),
            source,
        })?;
        Constants::from_json(&text)
    }

    pub fn insert(&mut self, name: &str, value: impl Into<Json>) {
        self.values.insert(name.to_string(), value.into());
        self.text = None;
    }

    /// Takes the values of `other` in place of its own, and those that only `other` has.
    pub(crate) fn take(&mut self, other: Constants) {
        for (name, value) in other.values {
            self.insert(&name, value);
        }
    }

    /// The JSON object, as written if it was read; `None` where there are no constants.
    pub(super) fn text(&self) -> Option<String> {
        match &self.text {
            Some(text) => Some(text.clone()),
            None if self.values.is_empty() => None,
            None => serde_json::to_string_pretty(&self.values).ok(),
        }
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// The value of a declared constant.
    pub(super) fn value(&self, variable: &Variable, shape: Shape) -> Result<Value, BindError> {
        let fail = |message: String| BindError::new(variable.span, message);
        let name = &variable.name;
        let Some(json) = self.values.get(name) else {
            return Err(fail(format!(
                "the constant `{name}` has no value: put \"{name}\" in the constants file"
            )));
        };
        let elements = numbers(json, &shape)
            .map_err(|problem| fail(format!("the constant `{name}`: {problem}")))?;
        if variable.ty.base == Base::Int
            && let Some(bad) = elements.iter().find(|v| v.fract() != 0.0)
        {
            return Err(fail(format!(
                "the constant `{name}` is declared `int`, but holds {bad}"
            )));
        }
        Ok(Value::of(
            shape,
            elements.into_iter().map(Scalar::number).collect(),
        ))
    }
}

/// Nested JSON arrays as elements in storage order. Matrices are lists of rows.
///
/// Errors: what was expected and what was found, in words.
pub fn numbers(json: &Json, shape: &Shape) -> Result<Vec<f64>, String> {
    let strides = shape.strides();
    let mut out = vec![f64::NAN; shape.length()];
    fill(json, &shape.sizes, &strides, 0, &mut out)
        .map_err(|found| format!("expected {}, found {found}", shape.describe()))?;
    Ok(out)
}

/// The JSON of elements in storage order: what [`numbers`] reads.
pub fn nested(elements: &[f64], shape: &Shape) -> Json {
    fn part(elements: &[f64], sizes: &[usize], strides: &[usize], position: usize) -> Json {
        match sizes.split_first() {
            None => elements[position].into(),
            Some((&size, rest)) => (0..size)
                .map(|i| part(elements, rest, &strides[1..], position + i * strides[0]))
                .collect(),
        }
    }
    part(elements, &shape.sizes, &shape.strides(), 0)
}

fn fill(
    json: &Json,
    sizes: &[usize],
    strides: &[usize],
    position: usize,
    out: &mut [f64],
) -> Result<(), String> {
    match (sizes.split_first(), json) {
        (None, Json::Number(n)) => {
            out[position] = n.as_f64().ok_or("a number out of range")?;
            Ok(())
        }
        // JSON has no infinity; Stan's files write it as text.
        (None, Json::String(s)) if matches!(s.as_str(), "inf" | "+inf" | "Infinity" | "Inf") => {
            out[position] = f64::INFINITY;
            Ok(())
        }
        (None, Json::String(s)) if matches!(s.as_str(), "-inf" | "-Infinity" | "-Inf") => {
            out[position] = f64::NEG_INFINITY;
            Ok(())
        }
        (None, other) => Err(kind_of(other).to_string()),
        (Some((&size, rest)), Json::Array(items)) => {
            if items.len() != size {
                return Err(format!(
                    "a list of {} where {size} were expected",
                    items.len()
                ));
            }
            for (i, item) in items.iter().enumerate() {
                fill(item, rest, &strides[1..], position + i * strides[0], out)?;
            }
            Ok(())
        }
        (Some(_), other) => Err(kind_of(other).to_string()),
    }
}

fn kind_of(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "true or false",
        Json::Number(_) => "a number",
        Json::String(_) => "text",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Type;

    #[test]
    fn matrices_are_lists_of_rows() {
        let json: Json = serde_json::from_str("[[1, 2, 3], [4, 5, 6]]").unwrap();
        let shape = Shape {
            ty: Type::MATRIX,
            sizes: vec![2, 3],
        };
        assert_eq!(
            numbers(&json, &shape).unwrap(),
            [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]
        );
        let wrong = Shape {
            ty: Type::MATRIX,
            sizes: vec![3, 2],
        };
        let message = numbers(&json, &wrong).unwrap_err();
        assert!(
            message.contains("sizes [3, 2]") && message.contains("a list of 2"),
            "{message}"
        );
    }
}
