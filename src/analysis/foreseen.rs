//! Choices and forecasts for a run, from the model alone and on records simulated from it.

use serde_json::{Value, json};

use super::error::Error;
use crate::model::Model;
use crate::sampler::{Foresight, Plan, PlanRequest};
use crate::tune::{for_model, foresee, tuned_plan};

/// Before a row is read.
#[derive(Debug)]
pub(crate) enum Foreseen {
    Travel(Travel),
    Likelihood(Foresight),
}

/// Of chains that travel, on simulated records.
#[derive(Debug)]
pub(crate) struct Travel {
    gradients_per_draw: u64,
    /// Whether their number was chosen on them.
    is_chosen: bool,
    travel: f64,
}

/// The plan of a run, with what the settings leave open chosen on simulated records where the
/// sampler has such a thing, the number of records is public, and records can be made up.
pub(super) fn plan(request: PlanRequest, model: &Model) -> Result<(Plan, Option<Foreseen>), Error> {
    let is_open = request.settings.gradients_per_draw.is_none();
    let plan = if is_open {
        tuned_plan(request, model)?
    } else {
        Plan::new(for_model(request, model)?)?
    };
    let travel = foresee(model, &plan).and_then(|found| {
        Some(Foreseen::Travel(Travel {
            gradients_per_draw: plan.request.gradients_per_draw(),
            is_chosen: is_open && found.gradients_per_draw.is_some(),
            travel: found.travel?,
        }))
    });
    let learner = plan.request.algorithm.learner();
    let likelihood = learner.and_then(|learner| learner.foresight(&plan));
    let foreseen = travel.or(likelihood.map(Foreseen::Likelihood));
    Ok((plan, foreseen))
}

impl Foreseen {
    pub fn line(&self) -> String {
        match self {
            Foreseen::Travel(travel) => travel.line(),
            Foreseen::Likelihood(foresight) => of_likelihood(foresight),
        }
    }

    /// For the files of a run.
    pub fn json(&self) -> Value {
        match self {
            Foreseen::Travel(travel) => travel.json(),
            Foreseen::Likelihood(foresight) => json!({
                "from": "the model and the settings: no privacy cost",
                "rounds": foresight.rounds,
                "coordinates": foresight.coordinates,
                "information": foresight.information,
                "noise": foresight.noise,
                "blind_spot": foresight.blind_spot,
                "width": foresight.noise.hypot(1.0),
                "shares": (foresight.shares.iter())
                    .map(|(what, share)| ((*what).to_owned(), json!(share)))
                    .collect::<serde_json::Map<_, _>>(),
            }),
        }
    }
}

fn of_likelihood(foresight: &Foresight) -> String {
    let shares = foresight.shares.iter();
    let shares: Vec<String> = shares
        .map(|(what, share)| format!("{what} {:.0}%", 100.0 * share))
        .collect();
    format!(
        "foreseen, at no cost in privacy: {} rounds and a certificate ({} of the budget); the records are informative in {} direction{}; intervals at least {:.2} times as wide as without privacy, and wider if a few records are very influential{}",
        foresight.rounds,
        shares.join(", "),
        foresight.coordinates,
        if foresight.coordinates == 1 { "" } else { "s" },
        foresight.noise.hypot(1.0),
        match &foresight.blind_spot {
            Some(sentence) => format!(". Beware: {sentence}"),
            None => String::new(),
        },
    )
}

impl Travel {
    fn line(&self) -> String {
        let gradients = match self.gradients_per_draw {
            1 => "1 gradient".to_owned(),
            n => format!("{n} gradients"),
        };
        format!(
            "foreseen on records simulated from the model, at no cost in privacy: with {gradients} per draw{}, each chain runs for {:.1} autocorrelation times (below 10 the run draws from a Gaussian instead)",
            if self.is_chosen {
                " (chosen on these records)"
            } else {
                ""
            },
            self.travel,
        )
    }

    fn json(&self) -> Value {
        json!({
            "from": "records simulated from the model: no privacy cost",
            "gradients_per_draw_chosen": self.is_chosen,
            "time": self.travel,
        })
    }
}
