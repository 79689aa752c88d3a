//! The samplers, one file each, and the list of them.
//!
//! A sampler sees an [`Oracle`] and says beforehand what it will ask. To add
//! one: one file, one line in [`ALGORITHMS`].

mod adaptation;
mod dp_hmc;
mod exact;
mod hamiltonian;
mod hmc;
mod jitter;
mod metric;
mod nuts;
mod oracle;
mod plan;
mod run;
mod rwmh;

pub use exact::{MetricForm, NonPrivateSettings, sample_exactly};
pub use nuts::DEFAULT_MAX_DEPTH;
pub use oracle::{ExactOracle, Oracle, PrivateOracle, SampleError};
pub use plan::{
    DEFAULT_CHAINS, DEFAULT_CLIP, DEFAULT_LEAPFROG_STEPS, DEFAULT_SAMPLES, DEFAULT_SPLIT,
    DEFAULT_STEP_SIZE, Iterations, NoiseChoice, Plan, PlanError, PlanRequest,
};
pub use run::{Chain, Draw, Initial, Observer, Phase, PrivateSettings, sample_privately};

/// What the plan needs to know about a sampler, without any data.
#[derive(Debug)]
pub struct Algorithm {
    /// The name after `--algorithm`.
    pub name: &'static str,
    /// One line for `--help`.
    pub summary: &'static str,
    /// Whether its draws are differentially private.
    pub is_private: bool,
    /// What it writes beside the draws, after acceptance, step size and
    /// divergence; names end in `__`, as in Stan.
    pub columns: &'static [&'static str],
}

/// Every sampler, the default first.
pub static ALGORITHMS: &[Algorithm] = &[
    dp_hmc::ALGORITHM,
    nuts::ALGORITHM,
    hmc::ALGORITHM,
    rwmh::ALGORITHM,
];

/// Samplers that are part of the design but not of this version.
pub const NOT_SUPPORTED_YET: &[&str] = &[
    "dp-penalty",
    "dp-barker",
    "dp-sghmc",
    "dp-sgld",
    "dp-sgnht",
    "sghmc",
    "sgld",
    "sgnht",
];

/// The sampler of that name.
pub fn lookup(name: &str) -> Option<&'static Algorithm> {
    ALGORITHMS.iter().find(|a| a.name == name)
}
