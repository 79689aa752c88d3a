//! Tables made up from a model.

use std::path::Path;

use super::failure::Failure;
use super::{Common, public_data};
use crate::analysis::Tables;

/// The tables, with covariates from a public table where there is one.
pub(super) fn with_covariates(tables: Tables, public: Option<&Path>) -> Result<Tables, Failure> {
    let Some(path) = public else {
        return Ok(tables);
    };
    let sample = public_data::sample_of(path, &tables.model().columns)?;
    Ok(tables.covariates_from(sample))
}

/// Says where parameters could not come from the prior.
pub(super) fn say_stand_ins(tables: &Tables, common: &Common) {
    let names: Vec<String> = (tables.without_prior().iter())
        .map(|name| format!("`{name}`"))
        .collect();
    if !names.is_empty() {
        common.say(format!(
            "warning: {} {} no proper prior to draw from: a standard normal on the unconstrained scale is used instead. Put what is known before the data into the model",
            names.join(", "),
            if names.len() == 1 { "has" } else { "have" }
        ));
    }
}
