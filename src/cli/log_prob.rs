//! `dpm log-prob`: exact log densities at given points, for comparison.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::Common;
use super::data_file::{DATA, DataSettings, Loaded, unreadable};
use super::failure::Failure;
use super::model_file::{CONSTANTS, ModelFile};
use super::{pretty, print, say_always};
use crate::analysis::unconstrained_point;
use crate::density::Density;
use crate::privacy::{NotPrivate, Vault};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: dpm log-prob model.dpm data.csv --points points.json --not-private\n\nThe points file is a JSON list of {\"params\": {\"alpha\": 1.0, \"beta\": [0.5, 2]}}."
)]
pub(super) struct Arguments {
    /// The model
    model: PathBuf,
    #[arg(required = true, help = DATA)]
    data: Vec<PathBuf>,
    /// Points at which to evaluate
    #[arg(long, value_name = "FILE.json")]
    points: PathBuf,
    #[arg(long, value_name = "FILE.json", help = CONSTANTS)]
    constants: Option<PathBuf>,
    #[command(flatten)]
    reading: DataSettings,
    /// Confirm that the answer may be exact, and therefore NOT PRIVATE
    #[arg(long)]
    not_private: bool,
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    if !arguments.not_private {
        return Err(Failure::input(
            "log densities of private data are not private: add --not-private if that is meant",
        ));
    }
    let file = ModelFile::read(&arguments.model, common)?;
    file.show_warnings(common);
    let model = file.bind(arguments.constants.as_deref(), common)?;
    let points = read_points(&arguments.points)?;
    let rows = arguments
        .reading
        .load(&arguments.data, &model.columns, Loaded::default())?;
    let vault = Vault::new(Density::new(model), rows).map_err(unreadable)?;
    say_always("NOT PRIVATE: these values depend exactly on the data");
    let mut answers = Vec::new();
    for (i, point) in points.iter().enumerate() {
        answers.push(
            evaluate(&vault, point).map_err(|e| Failure::input(format!("point {}: {e}", i + 1)))?,
        );
    }
    print(&pretty(&Value::Array(answers)))
}

fn read_points(path: &PathBuf) -> Result<Vec<Value>, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| Failure::input(format!("cannot read the points `{}`: {e}", path.display())))?;
    let json: Value = serde_json::from_str(&text)
        .map_err(|e| Failure::input(format!("`{}` is not valid JSON: {e}", path.display())))?;
    match json {
        Value::Array(points) => Ok(points),
        // A file may have other keys next to its list.
        Value::Object(mut map) => match map.remove("points") {
            Some(Value::Array(points)) => Ok(points),
            _ => Err(Failure::input(format!(
                "`{}` must be a JSON list of points, {{\"params\": {{...}}}} each",
                path.display()
            ))),
        },
        _ => Err(Failure::input(format!(
            "`{}` must be a JSON list of points",
            path.display()
        ))),
    }
}

fn evaluate(vault: &Vault, point: &Value) -> Result<Value, String> {
    if !point["params"].is_object() {
        return Err("expected an object with `params`".to_owned());
    }
    let theta = unconstrained_point(vault.density(), point)?;
    let (log_likelihood, adjoint) = vault.exact(&theta, NotPrivate::acknowledged());
    vault.intact().map_err(|lost| lost.to_string())?;
    let [prior, jacobian] = vault.density().prior_and_jacobian(&theta);
    let (_, gradient) = vault.density().pull_back(&theta, &adjoint);
    Ok(json!({
        "log_prob": number(prior + log_likelihood),
        "log_prob_unconstrained": number(prior + jacobian + log_likelihood),
        "unconstrained": theta,
        "gradient": gradient.iter().map(|&g| number(g)).collect::<Vec<_>>(),
    }))
}

/// JSON knows no infinities: they are written as text.
fn number(x: f64) -> Value {
    if x.is_finite() {
        json!(x)
    } else {
        json!(x.to_string())
    }
}
