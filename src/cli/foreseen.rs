//! What `dpm sample` and `dpm plan` say of what was chosen and foreseen on records that are made up
//! from the model.

use serde_json::{Value, json};

use super::clip_bounds::ClipBounds;
use super::failure::Failure;
use super::run_settings::{Lengths, RunSettings};
use crate::model::Model;
use crate::sampler::{Algorithm, Plan};
use crate::tune::{for_model, foresee, tuned_plan};

/// Of a sampler that learns its coordinates, on simulated records.
pub(super) struct Foreseen {
    gradients_per_draw: u64,
    /// Whether their number was chosen on them.
    is_chosen: bool,
    travel: f64,
}

/// The plan of a run, with what the settings leave open chosen on simulated records where the
/// sampler has such a thing, the number of records `n` is public, and records can be made up.
pub(super) fn plan(
    settings: &RunSettings,
    algorithm: &'static Algorithm,
    n: Option<u64>,
    model: &Model,
    clips: &ClipBounds,
) -> Result<(Plan, Lengths, Option<Foreseen>), Failure> {
    let is_open = settings.gradients_per_draw.is_none();
    let (plan, lengths) =
        settings.plan_with(
            algorithm,
            n,
            model.dimension,
            clips,
            |request| match is_open {
                true => tuned_plan(request, model),
                false => Plan::new(for_model(request, model)?),
            },
        )?;
    let foreseen = foresee(model, &plan).and_then(|found| {
        Some(Foreseen {
            gradients_per_draw: plan.request.gradients_per_draw,
            is_chosen: is_open && found.gradients_per_draw.is_some(),
            travel: found.travel?,
        })
    });
    Ok((plan, lengths, foreseen))
}

impl Foreseen {
    pub fn line(&self) -> String {
        let gradients = match self.gradients_per_draw {
            1 => "1 gradient".to_owned(),
            n => format!("{n} gradients"),
        };
        format!(
            "foreseen on records made up from the model, which costs no privacy: with {gradients} for each draw{} each chain travels for {:.1} times what it takes to forget where it was (below 10 the run draws from a Gaussian instead)",
            match self.is_chosen {
                true => ", chosen so,",
                false => "",
            },
            self.travel,
        )
    }

    /// For the files of a run.
    pub fn json(&self) -> Value {
        json!({
            "from": "records made up from the model: no privacy cost",
            "gradients_per_draw_chosen": self.is_chosen,
            "time": self.travel,
        })
    }
}
