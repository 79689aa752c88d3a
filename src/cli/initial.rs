//! Parameter values from a JSON file: where chains start, or a public guess.

use serde_json::Value;

use super::failure::Failure;
use super::log_prob::unconstrained_point;
use crate::density::Density;
use crate::sampler::Initial;

/// What `--init` names: `random`, or a file with one point, or with one for each chain.
pub(super) fn initial_values(
    init: &str,
    chains: u64,
    density: &Density,
) -> Result<Initial, Failure> {
    if init == "random" {
        return Ok(Initial::Random);
    }
    let points = points_of(init, density)?;
    if points.len() > 1 && points.len() as u64 != chains {
        return Err(Failure::input(format!(
            "`{init}` holds {} points for {chains} chains: give one point for all chains, or one per chain",
            points.len()
        )));
    }
    Ok(Initial::Points(points))
}

/// The points of a JSON file of parameter values, on the unconstrained scale.
pub(super) fn points_of(file: &str, density: &Density) -> Result<Vec<Vec<f64>>, Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|e| Failure::input(format!("cannot read the parameter values `{file}`: {e}")))?;
    let json: Value = serde_json::from_str(&text)
        .map_err(|e| Failure::input(format!("`{file}` is not valid JSON: {e}")))?;
    let list = match json {
        Value::Array(list) if !list.is_empty() => list,
        object @ Value::Object(_) => vec![object],
        _ => {
            return Err(Failure::input(format!(
                "`{file}` must hold an object of parameter values, or a list of them"
            )));
        }
    };
    let mut points = Vec::new();
    for (i, point) in list.iter().enumerate() {
        let params = point.get("params").unwrap_or(point);
        let params = params.as_object().ok_or_else(|| {
            Failure::input(format!("`{file}`, point {}: expected an object", i + 1))
        })?;
        points.push(
            unconstrained_point(density, params)
                .map_err(|e| Failure::input(format!("`{file}`, point {}: {e}", i + 1)))?,
        );
    }
    Ok(points)
}
