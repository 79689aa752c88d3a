//! `dpm info`: a model as JSON.

use std::collections::HashSet;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::Common;
use super::failure::Failure;
use super::model_file::{CONSTANTS, ModelFile};
use super::{pretty, print};
use crate::check::{Checked, FunctionSignature, Structure, VariableId};
use crate::model::{Model, RecordColumn};

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: dpm info models/adult_income.dpm")]
pub(super) struct Arguments {
    /// The model
    model: PathBuf,
    #[arg(long, value_name = "FILE.json", help = CONSTANTS)]
    constants: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let file = ModelFile::read(&arguments.model, common)?;
    let model = file.bind_if_given(arguments.constants.as_deref(), common)?;
    print(&pretty(&describe(&file, model.as_ref())))
}

fn describe(file: &ModelFile, model: Option<&Model>) -> Value {
    let checked = &file.checked;
    let text = |span: crate::syntax::Span| file.source.get(span.range()).unwrap_or_default();
    let declared = |ids: &[VariableId]| -> Vec<Value> {
        ids.iter()
            .map(|&id| {
                let v = checked.variable(id);
                let mut entry = json!({
                    "name": v.name,
                    "type": v.ty.to_string(),
                    "sizes": v.sizes.iter().map(|s| text(s.span)).collect::<Vec<_>>(),
                    "lower": v.lower.as_ref().map(|e| text(e.span)),
                    "upper": v.upper.as_ref().map(|e| text(e.span)),
                    "constraint": constraint(&v.structure),
                    "stage": v.stage.name(),
                });
                // The bounds of a factor are not written in the program.
                if let Some(levels) = checked.levels.get(&id) {
                    entry["type"] = json!(v.ty.to_string().replace("int", "factor"));
                    entry["levels"] = json!(levels);
                    entry["lower"] = json!("1");
                    entry["upper"] = json!(levels.len().to_string());
                }
                entry
            })
            .collect()
    };
    json!({
        "model": file.path.display().to_string(),
        "constants": declared(&checked.constants),
        "record": declared(&checked.record),
        "record_columns": model.map(|m| m.columns.iter().map(column).collect::<Vec<_>>()),
        "parameters": parameters(checked, model, &declared),
        "transformed_parameters": outputs(checked, model, &declared),
        "generated_quantities": declared(&checked.generated_quantities),
        "functions": checked.signatures.iter().map(signature).collect::<Vec<_>>(),
        "unconstrained_dimension": model.map(|m| m.dimension),
        "stages": stages(checked),
        "distributions": checked.distributions,
    })
}

fn column(column: &RecordColumn) -> Value {
    let mut entry = json!({
        "name": column.name,
        "type": match (column.is_int, column.levels.is_empty()) {
            (_, false) => "factor",
            (true, true) => "int",
            (false, true) => "real",
        },
        "lower": column.lower,
        "upper": column.upper,
        "used": column.used,
    });
    if !column.levels.is_empty() {
        entry["levels"] = json!(column.levels);
    }
    entry
}

/// The keyword of a type whose elements depend on each other.
fn constraint(structure: &Structure) -> Option<&'static str> {
    match structure {
        Structure::Joint(joint) => Some(joint.keyword()),
        Structure::Free | Structure::Affine { .. } => None,
    }
}

fn signature(function: &FunctionSignature) -> Value {
    let arguments: Vec<Value> = function
        .arguments
        .iter()
        .map(|(name, ty)| json!({ "name": name, "type": ty.to_string() }))
        .collect();
    json!({
        "name": function.name,
        "returns": function.returns.map_or("void".to_string(), |ty| ty.to_string()),
        "arguments": arguments,
    })
}

fn parameters(
    checked: &Checked,
    model: Option<&Model>,
    declared: &dyn Fn(&[VariableId]) -> Vec<Value>,
) -> Vec<Value> {
    let mut list = declared(&checked.parameters);
    if let Some(model) = model {
        for (entry, parameter) in list.iter_mut().zip(&model.parameters) {
            entry["dimensions"] = json!(parameter.shape.sizes);
            entry["unconstrained_size"] = json!(parameter.free_length);
        }
    }
    list
}

fn outputs(
    checked: &Checked,
    model: Option<&Model>,
    declared: &dyn Fn(&[VariableId]) -> Vec<Value>,
) -> Vec<Value> {
    let mut list = declared(&checked.transformed_parameters);
    if let Some(model) = model {
        for (entry, output) in list
            .iter_mut()
            .zip(&model.outputs[checked.parameters.len()..])
        {
            entry["dimensions"] = json!(output.shape.sizes);
        }
    }
    list
}

fn stages(checked: &Checked) -> Value {
    // Those of functions belong to a call, and may share a name with others.
    let of_functions: HashSet<VariableId> = checked
        .functions
        .iter()
        .flat_map(|f| f.variables.iter().copied())
        .collect();
    let mut map = serde_json::Map::new();
    for (i, v) in checked.variables.iter().enumerate() {
        if of_functions.contains(&VariableId(i)) {
            continue;
        }
        map.insert(v.name.clone(), json!(v.stage.name()));
    }
    Value::Object(map)
}
