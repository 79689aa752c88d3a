//! The short form of tuning by simulation, with which every run of a sampler that learns begins: on
//! records simulated from the model. It uses nothing of the data except their number, where that is
//! public, and so costs no privacy.

use super::simulation::{Prediction, Recipe, Simulation};
use crate::model::Model;
use crate::sampler::{Plan, PlanError, PlanRequest, SampleError};

/// The seed of the simulated records: the plan is the same each time.
const SEED: u64 = 1;
/// Draws of the prior at which records are simulated.
const POINTS: usize = 5;
/// Records simulated at each.
const RECORDS: usize = 200;

/// A few records at a few draws of the prior, with covariates uniform between their bounds.
///
/// # Errors
///
/// No point has a finite prior density.
pub fn short_simulation(model: &Model) -> Result<Simulation, SampleError> {
    let recipe = Recipe {
        records: RECORDS,
        public: None,
        seed: SEED,
    };
    Simulation::from_prior(model, POINTS, &recipe)
}

/// The prediction for the plan of a sampler whose chains travel, on simulated records; none for
/// other samplers, where the number of records is private, or where no records can be simulated.
pub fn foresee(model: &Model, plan: &Plan) -> Option<Prediction> {
    let n = plan.request.records?;
    let travels = plan.request.algorithm.travels();
    let simulation = travels.then(|| short_simulation(model).ok())??;
    Some(simulation.predict(plan, n))
}

/// The request with the facts about the model, for samplers whose plan depends on them.
///
/// # Errors
///
/// No point has a finite prior density.
pub fn for_model(request: PlanRequest, model: &Model) -> Result<PlanRequest, PlanError> {
    if request.facts.is_some() {
        return Ok(request);
    }
    let facts = request.algorithm.look(model, request.shared_units);
    Ok(PlanRequest {
        facts: facts.map_err(|error| PlanError::Settings(error.to_string()))?,
        ..request
    })
}

/// The plan of a request, with the number of gradients from one draw to the next chosen by the
/// prediction; as requested where there is none.
///
/// # Errors
///
/// As of [`Plan::new`].
pub fn tuned_plan(request: PlanRequest, model: &Model) -> Result<Plan, PlanError> {
    let plan = Plan::new(for_model(request, model)?)?;
    let wanted = foresee(model, &plan).and_then(|found| found.gradients_per_draw);
    match wanted.filter(|wanted| *wanted != plan.request.gradients_per_draw()) {
        None => Ok(plan),
        Some(wanted) => {
            let mut request = plan.request;
            request.settings.gradients_per_draw = Some(wanted);
            Plan::new(request)
        }
    }
}
