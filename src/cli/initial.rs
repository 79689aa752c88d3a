//! Parameter values from a JSON file: where chains start, or a public guess.

use serde_json::Value;

use super::failure::Failure;
use crate::analysis::unconstrained_point;
use crate::density::Density;

/// The starting values that `--init` names: none for `random`, else one point of a file, or one
/// for each chain.
pub(super) fn start_of(init: &str) -> Result<Option<Value>, Failure> {
    match init {
        "random" => Ok(None),
        file => Ok(Some(Value::Array(values_of(file)?))),
    }
}

/// The points of a JSON file of parameter values, on the unconstrained scale.
pub(super) fn points_of(file: &str, density: &Density) -> Result<Vec<Vec<f64>>, Failure> {
    let values = values_of(file)?;
    let point = |(i, value): (usize, &Value)| {
        unconstrained_point(density, value)
            .map_err(|e| Failure::input(format!("`{file}`, point {}: {e}", i + 1)))
    };
    values.iter().enumerate().map(point).collect()
}

/// The objects of a JSON file of parameter values.
fn values_of(file: &str) -> Result<Vec<Value>, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|e| Failure::input(format!("cannot read the parameter values `{file}`: {e}")))?;
    let json: Value = serde_json::from_str(&text)
        .map_err(|e| Failure::input(format!("`{file}` is not valid JSON: {e}")))?;
    match json {
        Value::Array(list) if !list.is_empty() => Ok(list),
        object @ Value::Object(_) => Ok(vec![object]),
        _ => Err(Failure::input(format!(
            "`{file}` must hold an object of parameter values, or a list of them"
        ))),
    }
}
