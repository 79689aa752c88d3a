//! DP-Langevin: kinetic Langevin dynamics whose heat is the noise of the privacy, in
//! coordinates learnt by a start that is paid from the budget. It tunes itself.
//!
//! With theta = c + A u of the [`start`], in which the posterior is about a
//! standard normal, per iteration:
//!
//! ```text
//! u += h p/2
//! p  = a p + (1 + a)/2 h (T sum clip(A' grad l_i) + A' grad q + noise) + xi
//! u += h p/2
//! ```
//!
//! several times for each draw (three, or as many as [`Learner::travel`] recommends), with
//! a = exp(-gamma h), gamma the friction, q the log prior with its Jacobian. It is the
//! splitting of Leimkuhler and Matthews ("Molecular Dynamics", 2015, chapter 7) of friction and
//! noise around the kick, with the drift in two halves around both. The noise of the release,
//! of standard deviation s on each coordinate, is part of the noise that the dynamics need: the
//! step h is the one at which ((1 + a)/2 h s)^2 = 1 - a^2, at most [`LARGEST_STEP`], where public
//! noise xi makes up for what is missing. So nothing is rejected and no noise is wasted.
//!
//! For a given budget s^2 is proportional to the number of gradients, and h, for small h, to
//! 1/s^2: the time that the chains travel is the same for any number of iterations. More
//! iterations make steps smaller and draws denser; the budget decides how well the posterior is
//! explored. Kicks are at most [`LARGEST_KICK`] per coordinate, so that the chain is not thrown
//! out where the posterior is much narrower than the coordinates suggest.
//!
//! # Cost
//!
//! The start's releases, then those gradients of all records for each iteration of each chain.
//! All are Gaussian with noise in a fixed proportion to a clip bound from earlier releases.
//!
//! # What it leaves invariant
//!
//! As h goes to 0, the posterior of the clipped likelihood; the clip bound balances the clipped
//! records against the noise ([`start`](crate::sampler::langevin::start)). Measured on a standard
//! normal (`tests`): at h = 0.2 the variance is within 2% of the exact one.
//!
//! # Where the budget is too small
//!
//! A chain that travels for less than the time in which it forgets where it was is worth one draw.
//! The releases planned for chains then continue the search, and draws are independent ones from
//! the Gaussian that it finds ([`gaussian`](crate::sampler::langevin::gaussian)).

mod gaussian;
mod information;
mod lengths;
mod search;
mod start;
mod walker;

use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::density::{Density, Frame};
use crate::privacy::{Statistic, Subsampling};
use crate::sampler::contract::beginning::{Beginning, Learner, Travel};
use crate::sampler::contract::initial::Initial;
use crate::sampler::contract::oracle::{Oracle, SampleError};
use crate::sampler::contract::plan::{Plan, PlanError};
use crate::sampler::contract::request::PlanRequest;
use crate::sampler::contract::schedule::{Line, Noise, Question, over_chains};
use crate::sampler::contract::settings::{Setting, Unset};
use crate::sampler::contract::{Algorithm, Kind, Sampler, Walker};
use search::Start;
use start::ENOUGH_TIME;
use walker::{LARGEST_STEP, LangevinWalker, foreseen_clip, gradients_wanted, time};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "dp-langevin",
    summary: "kinetic Langevin dynamics in coordinates learnt from a part of the budget; needs no tuning; approximate",
    kind: Kind::Private(&DpLangevin),
    columns: &[],
    settings: &[
        Setting::start_share.or(Unset::Number(0.4)),
        Setting::gradients_per_draw.or(Unset::Told(
            "chosen on records simulated from the model; {} under add-remove",
            3.0,
        )),
    ],
};

#[derive(Debug)]
struct DpLangevin;

impl Sampler for DpLangevin {
    fn lines(&self, request: &PlanRequest, iterations: u64) -> Result<Vec<Line>, PlanError> {
        search::check(request)?;
        let mut lines = search::lines(request, request.start_share());
        lines.push(Line {
            what: "gradient, in learnt coordinates",
            question: Question::Learnt(Statistic::Gradient),
            noise: Noise::Share(1.0 - request.start_share()),
            count: over_chains(
                iterations.checked_mul(request.gradients_per_draw()),
                request.chains,
            )?,
            subsampling: Subsampling::All,
        });
        Ok(lines)
    }

    /// Whether there are enough records, as far as this is foreseeable before any release.
    fn warnings(&self, plan: &Plan) -> Vec<String> {
        let Some(n) = plan.request.records else {
            return Vec::new();
        };
        let time = time(plan, search::usual_clip(&plan.request, n as f64));
        if time >= ENOUGH_TIME {
            return Vec::new();
        }
        vec![format!(
            "{n} records are likely to be too few for chains at this budget with {} parameters: with gradients of typical length, each would run for {time:.1} autocorrelation times, and should run for {:.0}. If this proves true, the draws will come from a Gaussian. More records, more epsilon or `temperature` would help",
            plan.request.dimension, ENOUGH_TIME,
        )]
    }

    fn default_step_size(&self, _: &PlanRequest) -> f64 {
        LARGEST_STEP
    }

    fn learner(&self) -> Option<&dyn Learner> {
        Some(self)
    }

    /// A chain that has learnt nothing; in a run, chains come from the start.
    fn chain(
        &self,
        plan: &Plan,
        theta: Vec<f64>,
        _: &mut dyn Oracle,
        rng: &mut ChaCha8Rng,
    ) -> Box<dyn Walker> {
        let d = theta.len();
        Box::new(LangevinWalker::new(
            plan,
            Frame::about(theta),
            1.0,
            vec![0.0; d],
            rng,
        ))
    }
}

impl Learner for DpLangevin {
    fn lines(&self, _: &Plan) -> usize {
        search::LINES
    }

    fn clipping(&self, _: &Plan) -> &'static str {
        "Records are clipped at bounds that follow from earlier releases of the run, in coordinates that follow from them as well; the number of clipped records is private, and is meant to be about two in a thousand. The target is the clipped posterior."
    }

    fn travels(&self) -> bool {
        true
    }

    fn travel(&self, plan: &Plan, lengths: Vec<f64>, n: f64) -> Option<Travel> {
        let clip = foreseen_clip(plan, lengths, n)?;
        Some(Travel {
            time: time(plan, clip),
            gradients_per_draw: gradients_wanted(plan, clip),
        })
    }

    fn begin(
        &self,
        density: &Density,
        plan: &Plan,
        initial: &Initial,
        seed: u64,
    ) -> Result<Box<dyn Beginning>, SampleError> {
        Ok(Box::new(Start::new(density, plan, initial, seed)?))
    }

    fn restore(
        &self,
        saved: &Value,
        density: &Density,
        _: &Plan,
    ) -> Result<Box<dyn Beginning>, SampleError> {
        Ok(Box::new(Start::restore(saved, density.dimension())?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounting::Real;
    use crate::sampler::contract::settings::Settings;

    /// A plan says beforehand that records are too few, and nothing where they are private.
    #[test]
    fn too_few_records_are_warned_of() {
        let warnings = |records, epsilon: f64| {
            let request = PlanRequest {
                records,
                algorithm: &ALGORITHM,
                ..PlanRequest::automatic(Real::from(epsilon), Real::from(1e-6), 7)
            };
            Plan::new(request).unwrap().warnings
        };
        let few = warnings(Some(3000), 1.0).concat();
        assert!(
            few.contains("3000 records are likely to be too few"),
            "{few}"
        );
        assert_eq!(warnings(Some(300_000), 1.0), [""; 0]);
        assert_eq!(warnings(Some(3000), 30.0), [""; 0]);
        assert_eq!(warnings(None, 1.0), [""; 0]);
    }

    /// As many gradients for each draw as let steps of 0.1 fill the time that the budget allows,
    /// whatever their number was in the plan that is asked. Oracle: that time in a plan whose steps
    /// are all below the largest.
    #[test]
    fn gradients_are_as_many_as_use_the_budget() {
        let n = 100_000.0;
        let plan = |epsilon: f64, gradients_per_draw| {
            let request = PlanRequest {
                records: Some(n as u64),
                algorithm: &ALGORITHM,
                settings: Settings::new().gradients_per_draw(gradients_per_draw),
                ..PlanRequest::automatic(Real::from(epsilon), Real::from(1e-6), 3)
            };
            Plan::new(request).unwrap()
        };
        let lengths = || vec![3.0; 100];
        let mut seen = Vec::new();
        for epsilon in [0.1, 0.5, 1.0, 1.5, 2.0, 30.0] {
            let small_steps = plan(epsilon, 100);
            let time = DpLangevin.travel(&small_steps, lengths(), n).unwrap().time;
            let filled = time / (small_steps.iterations_per_chain as f64 * 0.1);
            for asked in [1, 3, 6] {
                let travel = DpLangevin.travel(&plan(epsilon, asked), lengths(), n);
                let wanted = travel.unwrap().gradients_per_draw;
                // For small steps the time is a few hundredths longer than the formula's.
                let (least, most) = ((0.9 * filled).ceil(), (1.1 * filled).ceil());
                let expected = least.clamp(1.0, 6.0)..=most.clamp(1.0, 6.0);
                assert!(
                    expected.contains(&(wanted as f64)),
                    "{epsilon} {asked} {filled} {wanted}"
                );
                seen.push(wanted);
            }
        }
        assert!(seen.contains(&1) && seen.contains(&6) && seen.iter().any(|k| (2..6).contains(k)));
        assert_eq!(DpLangevin.travel(&plan(1.0, 3), Vec::new(), n), None);
    }
}
