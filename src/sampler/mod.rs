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
pub use contract::initial::Initial;
pub(crate) use contract::initial::start;
pub use contract::metric::{Metric, MetricForm};
pub use contract::oracle::{Oracle, Ratio, SampleError, View};
pub use contract::plan::{NoiseScales, Plan};
pub use contract::request::{Allowance, DEFAULT_CHAINS, DEFAULT_SAMPLES, Iterations, PlanRequest};
pub use contract::schedule::{Line, Noise, PlannedLine, Question, Scale};
pub use contract::settings::{Clip, DEFAULT_CLIP, Setting, Settings};
pub use contract::{Algorithm, Kind, ModelFacts};
pub use hamiltonian::nuts::DEFAULT_MAX_DEPTH;
use hamiltonian::{dp_amagold, dp_hmc, hmc, nuts};
pub(crate) use laplace::Form;
pub use own::OWN;
pub use prior::draw_prior;
pub use prior::margins::{draw_independent_margins, draw_prior_margins};
pub use prior::points::PriorPoints;
pub(crate) use prior::prior_curvature;
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

/// The sampler of a run that does not name one: the first that tunes itself and has all settings
/// that are given, or else DP-HMC. `most`: as many iterations as the budget allows, which samplers
/// that tune themselves cannot have.
pub fn default_algorithm(settings: &Settings, most: bool) -> &'static Algorithm {
    let tunes_itself = [&laplace::ALGORITHM, &langevin::ALGORITHM].into_iter();
    let has_all = |algorithm: &&Algorithm| settings.given().all(|setting| algorithm.has(setting));
    let mut suited = tunes_itself.filter(|_| !most).filter(has_all);
    suited.next().unwrap_or(&dp_hmc::ALGORITHM)
}

impl Setting {
    /// The description in help texts, with its defaults, by sampler where they differ.
    pub fn help(self) -> String {
        let mut defaults: Vec<(String, Vec<&str>)> = Vec::new();
        for algorithm in ALGORITHMS {
            let mut own = algorithm.settings.iter().filter(|own| own.setting == self);
            let Some(words) = own.next().and_then(|own| own.default.words()) else {
                continue;
            };
            match defaults.iter_mut().find(|(known, _)| *known == words) {
                Some((_, names)) => names.push(algorithm.name),
                None => defaults.push((words, vec![algorithm.name])),
            }
        }
        if defaults.is_empty() {
            return self.sentence().to_owned();
        }
        defaults.sort_by_key(|(_, names)| names.len());
        let last = defaults.len() - 1;
        let by_sampler = defaults.iter().enumerate().map(|(i, (words, names))| {
            let names = match names.as_slice() {
                _ if last == 0 => return words.clone(),
                names if i == last && names.len() > 3 => return format!("otherwise {words}"),
                [first @ .., name] if !first.is_empty() => {
                    format!("{} and {name}", first.join(", "))
                }
                names => names.concat(),
            };
            format!("{words} for {names}")
        });
        let by_sampler: Vec<String> = by_sampler.collect();
        format!("{} [default: {}]", self.sentence(), by_sampler.join("; "))
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
            facts: None,
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

#[cfg(test)]
mod tests {
    use super::*;

    // If it failed: a setting of dp-laplace would start another sampler, which spends the budget
    // in another way.
    #[test]
    fn the_default_has_all_settings_that_are_given() {
        for (settings, most, name) in [
            (Settings::new(), false, "dp-laplace"),
            (Settings::new().target_acceptance(0.95), false, "dp-laplace"),
            (Settings::new().start_share(0.3), false, "dp-langevin"),
            (Settings::new().step_size(0.1), false, "dp-hmc"),
            (
                Settings::new().target_acceptance(0.95).clip_gradient(1.0),
                false,
                "dp-hmc",
            ),
            (Settings::new(), true, "dp-hmc"),
        ] {
            assert_eq!(default_algorithm(&settings, most).name, name);
        }
    }

    #[test]
    fn help_names_the_samplers_whose_defaults_differ() {
        for (setting, defaults) in [
            (Setting::max_depth, " [default: 10]"),
            (Setting::fixed_steps, ""),
            (
                Setting::metric,
                " [default: diag for nuts; dense, or diag beyond 50 parameters, for hmc and rwmh; otherwise unit]",
            ),
            (
                Setting::target_acceptance,
                " [default: 0.9 for dp-laplace; 0.3 for dp-penalty; 0.25 for dp-barker; 0.5 for dp-hmc and dp-amagold; 0.234 for rwmh and clipped-rwmh; 0.8 for nuts, hmc and clipped-hmc]",
            ),
            (
                Setting::clip_log_ratio,
                " [default: derived where that is at most 3, else 3]",
            ),
        ] {
            assert_eq!(setting.help(), format!("{}{defaults}", setting.sentence()));
        }
    }
}
