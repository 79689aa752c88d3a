//! What a run learns from releases before its chains begin, and shares among them.

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
    /// How many of the plan's first lines are of what is learnt, and of no chain.
    fn lines(&self, plan: &Plan) -> usize;

    /// Whether records are clipped, and what that does, for reports.
    fn clipping(&self, plan: &Plan) -> &'static str;

    /// What a plan amounts to, where that can be told before a row is read.
    fn foresight(&self, _: &Plan) -> Option<Foresight> {
        None
    }

    /// Whether chains go as far as what is left of the budget lets them, so that it can be too
    /// short ([`travel`](Learner::travel)).
    fn travels(&self) -> bool {
        false
    }

    /// How far chains of a plan would go for `n` records whose gradients have such lengths, in
    /// coordinates in which the information of one record is the identity; none where there are
    /// no lengths, or chains do not travel.
    fn travel(&self, _: &Plan, _: Vec<f64>, _n: f64) -> Option<Travel> {
        None
    }

    /// Before the first round.
    ///
    /// Errors: no point to begin at; a plan that was made for another model.
    fn begin(
        &self,
        density: &Density,
        plan: &Plan,
        initial: &Initial,
        seed: u64,
    ) -> Result<Box<dyn Beginning>, SampleError>;

    /// What [`Beginning::save`] wrote.
    ///
    /// Errors: it is not of this sampler, model and plan.
    fn restore(
        &self,
        saved: &Value,
        density: &Density,
        plan: &Plan,
    ) -> Result<Box<dyn Beginning>, SampleError>;
}

/// What is foreseen of chains that travel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Travel {
    /// In units of what a chain takes to forget where it was.
    pub time: f64,
    /// How many gradients there should be from one draw to the next.
    pub gradients_per_draw: u64,
}

/// What is foreseen of rounds that release a likelihood.
#[derive(Debug, Clone, PartialEq)]
pub struct Foresight {
    pub rounds: u64,
    /// How many directions the records tell of.
    pub coordinates: u64,
    /// Where the information in a record comes from.
    pub information: &'static str,
    /// Standard deviation of the noise in the centre, in posterior standard deviations, where
    /// records are much alike.
    pub noise: f64,
    /// What can be wrong with the records that nothing released would show.
    pub blind_spot: Option<&'static str>,
    /// What of the budget each kind of release gets.
    pub shares: Vec<(&'static str, f64)>,
}

/// What was learnt so far: all of it follows from released values.
pub trait Beginning: Debug + Send + Sync {
    /// How many rounds there are, as far as is known: certain once they are over.
    fn rounds(&self, plan: &Plan) -> u64;

    /// How many there can be.
    fn most_rounds(&self, plan: &Plan) -> u64;

    /// What these rounds release, by line of the plan.
    fn releases(&self, plan: &Plan, rounds: Range<u64>) -> Vec<u64>;

    /// One round.
    fn round(
        &mut self,
        round: u64,
        density: &Density,
        plan: &Plan,
        oracle: &mut dyn Oracle,
        rng: &mut ChaCha8Rng,
    ) -> Result<(), SampleError>;

    /// Whether chains release more.
    fn chains_ask(&self, plan: &Plan) -> bool;

    /// Whether draws do not depend on those before.
    fn draws_are_independent(&self, plan: &Plan) -> bool;

    /// A chain before its first step.
    fn chain<'a>(
        &'a self,
        density: &'a Density,
        plan: &Plan,
        rng: &mut ChaCha8Rng,
    ) -> Box<dyn Walker + 'a>;

    /// All that the next rounds depend on.
    fn save(&self) -> Value;

    /// For reports.
    fn report(&self, plan: &Plan) -> Value;

    /// The same in words.
    fn describe(&self, plan: &Plan) -> Vec<String>;

    /// What was learnt, as numbers, for those who attack it: positions, and logarithms of scales.
    fn numbers(&self) -> Vec<f64>;
}
