//! The start, which is paid from the budget and shared by the chains: the search, and the rounds of the
//! Gaussian that follow it where chains would be too short.

use std::ops::Range;

use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::density::Density;
use crate::sampler::chain::checkpoint::written;
use crate::sampler::contract::Walker;
use crate::sampler::contract::beginning::Beginning;
use crate::sampler::contract::oracle::{Oracle, SampleError};
use crate::sampler::contract::plan::Plan;
use crate::sampler::langevin::gaussian;
use crate::sampler::langevin::search::{self, LINES, STEPS, Start, StartSearch};
use crate::sampler::langevin::walker::{LangevinWalker, time};
use crate::sampler::random::normals;

/// The steps of the search, and the rounds of the Gaussian that may follow.
const MOST_STEPS: u64 = STEPS + gaussian::ROUNDS;

/// A chain that travels for less time than this has not forgotten where it began.
pub(super) const ENOUGH_TIME: f64 = 10.0;

/// The number of releases in these rounds, by line of the plan.
fn releases(plan: &Plan, rounds: Range<u64>) -> Vec<u64> {
    let later = rounds.start.max(STEPS) - STEPS..rounds.end.max(STEPS) - STEPS;
    let mut released = search::releases(plan, rounds);
    released[LINES] += gaussian::releases(plan, later);
    released
}

impl Start {
    /// Whether chains would travel for too short a time with this start, so that draws come
    /// from a Gaussian. Does not change after the last histogram.
    pub fn is_gaussian(&self, plan: &Plan) -> bool {
        time(plan, self.clip) < ENOUGH_TIME
    }
}

impl Beginning for Start {
    fn rounds(&self, plan: &Plan) -> u64 {
        if self.is_gaussian(plan) {
            MOST_STEPS
        } else {
            STEPS
        }
    }

    fn most_rounds(&self, _: &Plan) -> u64 {
        MOST_STEPS
    }

    fn releases(&self, plan: &Plan, rounds: Range<u64>) -> Vec<u64> {
        releases(plan, rounds)
    }

    /// Runs one round, or the final histogram, or one of the rounds of a Gaussian.
    fn round(
        &mut self,
        round: u64,
        _: &Density,
        plan: &Plan,
        oracle: &mut dyn Oracle,
        rng: &mut ChaCha8Rng,
    ) -> Result<(), SampleError> {
        let mut search = StartSearch {
            start: self,
            plan,
            oracle,
        };
        match round.checked_sub(STEPS) {
            Some(later) => gaussian::round(&mut search, later, rng),
            None => search.step(round, rng),
        }
    }

    fn chains_ask(&self, plan: &Plan) -> bool {
        !self.is_gaussian(plan)
    }

    fn draws_are_independent(&self, plan: &Plan) -> bool {
        self.is_gaussian(plan)
    }

    fn chain<'a>(
        &'a self,
        _: &'a Density,
        plan: &Plan,
        rng: &mut ChaCha8Rng,
    ) -> Box<dyn Walker + 'a> {
        if self.is_gaussian(plan) {
            return Box::new(gaussian::Draws::new(self));
        }
        let u = normals(self.frame.dimension(), rng);
        let frame = self.frame.clone();
        Box::new(LangevinWalker::new(plan, frame, self.clip, u, rng))
    }

    fn save(&self) -> Value {
        written(self)
    }

    fn report(&self, plan: &Plan) -> Value {
        json!({
            "clip": self.clip,
            "last_step": self.last_step,
            "cut": self.cut,
            "unknown": self.unknown,
            "seen": self.seen,
            "time": time(plan, self.clip),
            "gaussian": self.is_gaussian(plan),
            "centre_sd": self.is_gaussian(plan).then(|| self.variance.sqrt()),
        })
    }

    /// The report in words; the verdicts say whether the search has arrived.
    fn describe(&self, plan: &Plan) -> Vec<String> {
        let time = time(plan, self.clip);
        let mut lines = vec![format!(
            "learnt before the draws, for {:.0}% of the budget: axes, and a clip bound of {:.3e} in them; with the rest, each chain {} for {time:.1} autocorrelation times",
            100.0 * plan.request.start_share(),
            self.clip,
            if self.is_gaussian(plan) {
                "would run"
            } else {
                "runs"
            },
        )];
        if self.is_gaussian(plan) {
            lines.push(format!(
                "warning: this is too short: there are too few records or iterations, or too many parameters, for chains at this budget. The rest of the budget was used to continue the search instead, and the draws are independent draws from the Gaussian that was found, whose centre is known to within {:.2} posterior standard deviations of noise, which the draws include. R-hat and ESS say nothing about how well it fits. More records, more epsilon or `temperature` would help",
                self.variance.sqrt(),
            ));
        }
        lines
    }

    fn numbers(&self) -> Vec<f64> {
        let mut numbers = self.frame.centre().to_vec();
        let scales = [self.clip, self.records, self.last_step, self.variance];
        numbers.extend(scales.map(|x| x.max(1e-50).ln()));
        numbers
    }
}

#[cfg(test)]
#[path = "start_tests.rs"]
mod tests;
