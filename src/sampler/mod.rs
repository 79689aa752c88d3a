//! The samplers: the contract, the chains, a folder for each family, and the list of all samplers.
//!
//! ARCHITECTURE.md says in which order they use each other ("Rooms"), and all that a new sampler
//! needs ("Where to add").

#[cfg(test)]
mod bias_tests;
mod chain;
mod contract;
mod hamiltonian;
#[cfg(test)]
mod invariance_tests;
mod langevin;
mod laplace;
mod own;
mod peak;
mod prior;
mod random;
mod reference;
mod stochastic;
mod walks;

use crate::accounting::{Real, Relation};

pub use chain::checkpoint::{Checkpoint, Keeper, Keeping, SavedChain, released_before};
pub use chain::draw::{Draw, Phase};
pub use chain::private_oracle::PrivateOracle;
pub use chain::run::{
    Chain, Observer, Oracles, PrivateSettings, sample_from, sample_privately,
    sample_with_checkpoints,
};
pub use contract::beginning::{Beginning, Foresight};
pub use contract::error::PlanError;
pub use contract::form::Form;
pub(crate) use contract::form::prior_curvature;
pub use contract::initial::Initial;
pub(crate) use contract::initial::start;
pub use contract::metric::{Metric, MetricForm};
pub use contract::oracle::{Oracle, Ratio, SampleError, View};
pub use contract::plan::{NoiseScales, Plan};
pub use contract::request::{
    Allowance, DEFAULT_CHAINS, DEFAULT_CLIP, DEFAULT_SAMPLES, Iterations, PlanRequest,
};
pub use contract::schedule::{Line, Noise, PlannedLine, Question, Scale};
pub use contract::settings::{Clip, Setting, Settings};
pub use contract::{Algorithm, Kind};
pub use hamiltonian::nuts::DEFAULT_MAX_DEPTH;
use hamiltonian::{dp_amagold, dp_hmc, hmc, nuts};
pub use own::OWN;
pub use prior::draw_prior;
pub use prior::margins::{draw_independent_margins, draw_prior_margins};
pub use prior::points::PriorPoints;
pub(crate) use random::public_rng;
pub use reference::{ExactOracle, NonPrivateRun, exact_settings, sample_without_privacy};
use stochastic::{dp_sghmc, dp_sgld, dp_sgnht};
use walks::{dp_barker, dp_penalty, rwmh};

/// Every sampler, the default first.
pub static ALGORITHMS: &[Algorithm] = &[
    laplace::ALGORITHM,
    langevin::ALGORITHM,
    dp_hmc::ALGORITHM,
    dp_penalty::ALGORITHM,
    dp_barker::ALGORITHM,
    dp_sgld::ALGORITHM,
    dp_sgnht::ALGORITHM,
    dp_sghmc::ALGORITHM,
    dp_amagold::ALGORITHM,
    nuts::ALGORITHM,
    hmc::ALGORITHM,
    rwmh::ALGORITHM,
    dp_sgld::OPEN,
    dp_sgnht::OPEN,
    dp_sghmc::OPEN,
    dp_sghmc::NAIVE,
    dp_hmc::CLIPPED,
    dp_penalty::CLIPPED,
];

/// The sampler of that name.
pub fn lookup(name: &str) -> Option<&'static Algorithm> {
    ALGORITHMS.iter().find(|a| a.name == name)
}

/// The sampler of a run that does not name one: the one that tunes itself, unless a setting of
/// dp-langevin or of DP-HMC is given. `most`: as many iterations as the budget allows.
pub fn default_algorithm(settings: &Settings, most: bool) -> &'static Algorithm {
    let langevin = |setting| langevin::ALGORITHM.settings.contains(&setting);
    match (
        most || !settings.given().all(langevin),
        settings.given().next(),
    ) {
        (true, _) => &dp_hmc::ALGORITHM,
        (false, Some(_)) => &langevin::ALGORITHM,
        (false, None) => &laplace::ALGORITHM,
    }
}

impl PlanRequest {
    /// The defaults of `dpm sample --algorithm dp-hmc` for a model with `dimension`
    /// unconstrained coordinates.
    pub fn new(epsilon: Real, delta: Real, dimension: usize) -> Self {
        PlanRequest {
            algorithm: &dp_hmc::ALGORITHM,
            epsilon,
            delta,
            relation: Relation::Substitute,
            chains: DEFAULT_CHAINS,
            iterations: Iterations::Fixed(2 * DEFAULT_SAMPLES),
            settings: Settings::new(),
            dimension: dimension as u64,
            temperature: 1.0,
            records: None,
            shared_units: false,
            form: None,
            allowance: Allowance::default(),
        }
    }

    /// The request of `dpm sample` with epsilon and delta alone: the sampler that tunes itself.
    pub fn automatic(epsilon: Real, delta: Real, dimension: usize) -> Self {
        PlanRequest {
            algorithm: &laplace::ALGORITHM,
            iterations: Iterations::Fixed(DEFAULT_SAMPLES + DEFAULT_SAMPLES / 2),
            ..PlanRequest::new(epsilon, delta, dimension)
        }
    }
}
