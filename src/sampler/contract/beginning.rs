//! Learning from releases before the chains of a run begin; the chains share the result.

use std::fmt::Debug;
use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::density::Density;
use crate::sampler::contract::Walker;
use crate::sampler::contract::initial::Initial;
use crate::sampler::contract::oracle::{Oracle, SampleError};
use crate::sampler::contract::plan::Plan;

/// The part of a sampler that learns before its chains.
pub trait Learner: Sync {
    /// The number of lines at the start of the plan that belong to learning and to no chain.
    fn lines(&self, plan: &Plan) -> usize;

    /// Whether records are clipped, and what that does, for reports.
    fn clipping(&self, plan: &Plan) -> &'static str;

    /// The forecast for a plan, where one is possible before a row is read.
    fn foresight(&self, _: &Plan) -> Option<Foresight> {
        None
    }

    /// Whether the remaining budget limits how far chains go, so that they can be too short
    /// ([`travel`](Learner::travel)).
    fn travels(&self) -> bool {
        false
    }

    /// How far chains of a plan would go for `n` records whose gradients have these lengths, in
    /// coordinates in which the information of one record is the identity; `None` where there are
    /// no lengths, or chains do not travel.
    fn travel(&self, _: &Plan, _: Vec<f64>, _n: f64) -> Option<Travel> {
        None
    }

    /// The state before the first round.
    ///
    /// Errors: no point to begin at; a plan that was made for another model.
    fn begin(
        &self,
        density: &Density,
        plan: &Plan,
        initial: &Initial,
        seed: u64,
    ) -> Result<Box<dyn Beginning>, SampleError>;

    /// Restores what [`Beginning::save`] wrote.
    ///
    /// Errors: it was saved for another sampler, model or plan.
    fn restore(
        &self,
        saved: &Value,
        density: &Density,
        plan: &Plan,
    ) -> Result<Box<dyn Beginning>, SampleError>;
}

/// The forecast for chains that travel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Travel {
    /// In units of the time in which a chain forgets where it was.
    pub time: f64,
    /// The number of gradients that there should be from one draw to the next.
    pub gradients_per_draw: u64,
}

/// The forecast for rounds that release a likelihood.
#[derive(Debug, Clone, PartialEq)]
pub struct Foresight {
    pub rounds: u64,
    /// The number of directions in which the records are informative.
    pub coordinates: u64,
    /// Where the information in a record comes from.
    pub information: &'static str,
    /// Standard deviation of the noise in the centre, in posterior standard deviations, if the
    /// records are similar to each other.
    pub noise: f64,
    /// A possible fault of the records that no release would show.
    pub blind_spot: Option<String>,
    /// The share of the budget for each kind of release.
    pub shares: Vec<(&'static str, f64)>,
}

/// The rounds before the chains, with their results so far, which depend on the data only through released values.
pub trait Beginning: Debug + Send + Sync {
    /// The number of rounds as far as it is known; certain once they are over.
    fn rounds(&self, plan: &Plan) -> u64;

    /// The largest possible number of rounds.
    fn most_rounds(&self, plan: &Plan) -> u64;

    /// The number of releases in these rounds, by line of the plan.
    fn releases(&self, plan: &Plan, rounds: Range<u64>) -> Vec<u64>;

    /// Runs one round.
    fn round(
        &mut self,
        round: u64,
        density: &Density,
        plan: &Plan,
        oracle: &mut dyn Oracle,
        rng: &mut ChaCha8Rng,
    ) -> Result<(), SampleError>;

    /// Whether the chains make further releases.
    fn chains_ask(&self, plan: &Plan) -> bool;

    /// Whether draws are independent of earlier ones.
    fn draws_are_independent(&self, plan: &Plan) -> bool;

    /// A chain before its first step.
    fn chain<'a>(
        &'a self,
        density: &'a Density,
        plan: &Plan,
        rng: &mut ChaCha8Rng,
    ) -> Box<dyn Walker + 'a>;

    /// Everything on which the next rounds depend.
    fn save(&self) -> Value;

    /// For reports.
    fn report(&self, plan: &Plan) -> Value;

    /// The report in words.
    fn describe(&self, plan: &Plan) -> Vec<String>;

    /// The learnt values as numbers that an audit can attack: positions, and logarithms of scales.
    fn numbers(&self) -> Vec<f64>;
}
