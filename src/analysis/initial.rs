//! Parameter values by name, as a point of the unconstrained scale.

use std::collections::HashMap;

use serde_json::Value;

use crate::density::Density;
use crate::model::{Parameter, nested, numbers};

/// The unconstrained coordinates of a JSON object of parameter values, either
/// nested (`"beta": [1, 2]`) or by element (`"beta[1]": 1`). Other names are
/// ignored: a draw lists derived quantities too. An object `params` in it holds them, where there
/// is one.
pub(crate) fn unconstrained_point(density: &Density, point: &Value) -> Result<Vec<f64>, String> {
    let params = point.get("params").unwrap_or(point).as_object();
    let params = params.ok_or("expected an object of parameter values")?;
    let mut values = HashMap::new();
    for parameter in &density.model().parameters {
        let shape = &parameter.shape;
        let elements = match params.get(&parameter.name) {
            Some(json) => numbers(json, shape).map_err(|e| format!("`{}`: {e}", parameter.name))?,
            None => element_names(parameter)
                .iter()
                .map(|name| {
                    let value = params.get(name).and_then(Value::as_f64);
                    value.ok_or(format!("the parameter `{}` has no value", parameter.name))
                })
                .collect::<Result<Vec<_>, _>>()?,
        };
        values.insert(parameter.name.clone(), elements);
    }
    density.unconstrain(|name, i| {
        values
            .get(name)
            .and_then(|v| v.get(i).copied())
            .ok_or_else(|| format!("the parameter `{name}` has no value"))
    })
}

/// The unconstrained coordinates of a draw, whose values have these names.
pub(crate) fn point_of_draw(
    density: &Density,
    names: &[String],
    draw: &[f64],
) -> Result<Vec<f64>, String> {
    let named = names.iter().cloned().zip(draw.iter().map(|&x| x.into()));
    unconstrained_point(density, &Value::Object(named.collect()))
}

/// The values of the parameters at a point, as [`unconstrained_point`] reads them.
pub(super) fn values_of(density: &Density, theta: &[f64]) -> Value {
    let model = density.model();
    let values = density.outputs(theta);
    let columns = model.output_columns();
    let mut found = serde_json::Map::new();
    for parameter in &model.parameters {
        let mut elements = vec![f64::NAN; parameter.shape.length()];
        for ((_, output, position), value) in columns.iter().zip(&values) {
            if model.outputs[*output].name == parameter.name {
                elements[*position] = *value;
            }
        }
        found.insert(parameter.name.clone(), nested(&elements, &parameter.shape));
    }
    Value::Object(found)
}

/// `beta[1]`, `beta[2]`, ...: the names of a parameter's elements.
pub(super) fn element_names(parameter: &Parameter) -> Vec<String> {
    let indices = parameter.shape.indices();
    let name = |index: &Vec<usize>| {
        let list: Vec<String> = index.iter().map(ToString::to_string).collect();
        format!("{}[{}]", parameter.name, list.join(","))
    };
    indices.iter().map(name).collect()
}
