//! The record of one iteration.

use serde::{Deserialize, Serialize};

use crate::sampler::chain::exact_number;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    Warmup,
    Sampling,
}

/// The record of one iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Draw {
    pub phase: Phase,
    #[serde(with = "exact_number")]
    pub accept_stat: f64,
    /// The step size of this iteration.
    #[serde(with = "exact_number")]
    pub step_size: f64,
    pub divergent: bool,
    /// The sampler's own columns ([`Algorithm::columns`](crate::sampler::Algorithm)).
    #[serde(with = "exact_number::list")]
    pub sampler: Vec<f64>,
    /// Output columns, in the order of
    /// [`Density::output_names`](crate::density::Density::output_names).
    #[serde(with = "exact_number::list")]
    pub values: Vec<f64>,
}
