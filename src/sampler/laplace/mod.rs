//! DP-Laplace: Newton's method with the model's own information, then exact draws from prior times
//! released likelihood.
//!
//! # Coordinates
//!
//! Before a row is read, [`Form`] finds the numbers through which all records see the parameters,
//! directions that no record sees, units in which a record has information of about 1, and the
//! source of the information: it is public, or that of the law which the model gives a record's
//! outcomes, or the second derivatives of its log-likelihood.
//!
//! # Wide directions
//!
//! Where the prior is wider than what one record tells, in few directions, the first rounds look in these
//! alone: a step of a record's sd changes what is seen, so that more than one is needed, and a few
//! directions have little noise. What they find is where the other rounds begin.
//!
//! # A round
//!
//! At y = c + A v ([`search`]):
//!
//! 1. A noisy histogram of the lengths of the records' information gives a clip bound b, and
//!    F = sum clip_b(F_i) is released, with F_i = sum_j p_j g_j g_j', the sum over outcomes of the
//!    record that the model considers possible. The outer products of the records' own gradients
//!    say next to nothing about the curvature far from the mode; F does. It is averaged with that
//!    of earlier rounds at nearby points.
//! 2. New axes, in which F and the prior's curvature add up to the identity. Eigenvalues that the
//!    noise could have made are not claimed, and their directions are called unknown: draws are as
//!    wide as the prior there, unless an earlier round saw more, which the law carries to here.
//! 3. A noisy histogram of the lengths of gradients gives the clip bound c at which noise and the
//!    loss by clipping are least.
//! 4. G = sum clip_c(g_i - a_i) is released. Where there is a law, a_i is the vector at which the
//!    clipped gradient is balanced, sum_j p_j clip_c(g_j - a_i) = 0: clipping then costs some
//!    efficiency, but causes no bias as far as the model's conditional law is right (conditionally
//!    unbiased bounded influence: Künsch, Stefanski and Carroll 1989). Where gradients are not
//!    bounded, tails may not be the model's: the possible loss by clipping in one direction, as far
//!    as the histogram shows it, is added to the noise.
//! 5. A Kalman step with the slope H, which is F times the efficiency of clipping, or in the last
//!    round of a large budget a release of its own; a trust region of one record's sd, and of the
//!    range of the prior. A filter that is contradicted by an observation trusts its belief less.
//!
//! Each round is more exact than the one before by a factor of about two: far away there is no
//! point in being exact, and the last round decides. A certificate follows: a small part of the
//! budget looks at the centre again with a wide clip bound. Its size follows a chi-square law if
//! all claims hold.
//!
//! # Groups
//!
//! Where each record sees one of many groups of coordinates, the information is zero between groups
//! ([`axes`]), and records are looked at from the mean of the posterior so far ([`viewpoint`]).
//!
//! # Draws
//!
//! The released likelihood is that of the slope at the centre, which cancels the prior's up to noise: normal in y,
//! with covariance J^-1 + J^-1 N J^-1, where J is the claimed information and N the covariance of the noise, bent along each parameter as the model's information, or its response, changes there ([`bend`]). The
//! no-U-turn sampler ([`posterior`]) draws from its product with the prior, including constraints.
//!
//! # Cost
//!
//! The rounds' and the certificate's releases: all Gaussian, of all records, their number and
//! noise multipliers fixed beforehand. Their points and clip bounds follow from earlier releases
//! (docs/proofs.md, sections 5, 14 and 17).

#[cfg(test)]
mod arrival_tests;
mod axes;
mod bend;
mod form;
mod histogram;
mod kalman;
mod lines;
mod peak;
mod posterior;
mod reach;
mod response;
mod search;
mod shares;
mod viewpoint;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::density::Density;
use crate::model::Model;
use crate::sampler::chain::checkpoint::{read, written};
use crate::sampler::contract::beginning::{Beginning, Foresight, Learner};
use crate::sampler::contract::initial::Initial;
use crate::sampler::contract::metric::Metric;
use crate::sampler::contract::oracle::{Oracle, SampleError};
use crate::sampler::contract::plan::{Plan, PlanError};
use crate::sampler::contract::request::{Iterations, PlanRequest};
use crate::sampler::contract::schedule::Line;
use crate::sampler::contract::settings::{Setting, Unset};
use crate::sampler::contract::{Algorithm, Kind, OptionalFacts, Sampler, Step, Walker};
use crate::sampler::prior::middle_of_prior;
use bend::Bend;
pub(crate) use form::Form;
use form::Information;
use lines::{MOST_NOISE, form_of, in_budget, known_form};
use posterior::Posterior;
use response::simulated;
use search::{Conflict, RoundInputs, Search};
use shares::Shares;

pub(super) const ALGORITHM: Algorithm = Algorithm {
    name: "dp-laplace",
    summary: "Newton's method with the model's own information, then exact draws from prior times released likelihood; needs no tuning",
    kind: Kind::Private(&DpLaplace),
    columns: &["treedepth__", "n_leapfrog__", "energy__"],
    settings: &[Setting::target_acceptance.or(Unset::Number(TARGET_ACCEPTANCE))],
};

/// The largest step of the draws, before it is adapted, in posterior sds.
const FIRST_STEP: f64 = 0.8;
const TARGET_ACCEPTANCE: f64 = 0.9;
/// With more coordinates than this that one record may see, matrices are too noisy for this method;
/// with more than the second number in all, they take too long.
const MOST_SEEN: usize = 100;
const MOST_COORDINATES: u64 = 500;

#[derive(Debug)]
struct DpLaplace;

impl Sampler for DpLaplace {
    fn lines(&self, request: &PlanRequest, _: u64) -> Result<Vec<Line>, PlanError> {
        let form = form_of(request);
        check(request, &form)?;
        Ok(lines::lines(&form, &Shares::of(request, &form)?))
    }

    fn warnings(&self, plan: &Plan) -> Vec<String> {
        let form = form_of(&plan.request);
        let Ok(shares) = Shares::of(&plan.request, &form) else {
            return Vec::new();
        };
        if shares.foreseen < 1.0 {
            return Vec::new();
        }
        vec![format!(
            "the noise is expected to be at least {:.1} times as wide as the posterior without privacy: intervals will be at least {:.1} times as wide. More records or more epsilon would help",
            shares.foreseen,
            shares.foreseen.hypot(1.0),
        )]
    }

    fn default_step_size(&self, _: &PlanRequest) -> f64 {
        FIRST_STEP
    }

    fn look(&self, model: &Model, shared_units: bool) -> Result<OptionalFacts, SampleError> {
        let form = Form::of_units(&Density::new(model.clone()), shared_units)?;
        Ok(Some(Arc::new(form)))
    }

    fn learner(&self) -> Option<&dyn Learner> {
        Some(self)
    }

    /// A chain that has learnt nothing; in a run, chains come from what was learnt.
    fn chain(
        &self,
        _: &Plan,
        theta: Vec<f64>,
        _: &mut dyn Oracle,
        _: &mut ChaCha8Rng,
    ) -> Box<dyn Walker> {
        Box::new(Nowhere { theta })
    }
}

fn check(request: &PlanRequest, form: &Form) -> Result<(), PlanError> {
    let name = ALGORITHM.name;
    let wrong = if request.iterations == Iterations::Max {
        format!(
            "`iterations` max does not apply to {name}, whose draws cost nothing: give `num_samples`"
        )
    } else if form.coordinates == 0 {
        "the records carry no information about any parameter: there is nothing to learn from the data"
            .to_owned()
    } else if !is_small(form) {
        let help = if (form.by_groups()).is_some_and(|form| is_small(&form)) {
            let foreseen = Shares::of(request, form)?.foreseen;
            format!(
                "; a record sees few of them, and {name} would learn them by groups with more records or more epsilon (its noise is expected to be {foreseen:.1} posterior standard deviations, and may be {MOST_NOISE})"
            )
        } else {
            String::new()
        };
        format!(
            "the records see {} numbers, and {name} learns at most {MOST_SEEN}, since the information about more would be lost in its noise{help}: use the algorithm dp-langevin, or a model with fewer group parameters",
            form.coordinates
        )
    } else {
        return Ok(());
    };
    Err(PlanError::Settings(wrong))
}

fn blind_spot(form: &Form) -> Option<String> {
    let single = "single outcomes may have unbounded influence in this model, and the releases may not show a few records far outside its tails: the answer is then that of the others (a likelihood with heavier tails, such as student_t, is not affected by them)";
    match (form.information, &form.no_law) {
        (Information::Public | Information::Law { bounded: true }, _) => None,
        (_, None) => Some(single.to_owned()),
        (_, Some(reason)) => Some(format!(
            "the model gives no law of the outcomes that would balance clipping, so clipping can shift the answer ({reason}). And {single}"
        )),
    }
}

fn is_small(form: &Form) -> bool {
    form.seen_by_one() <= MOST_SEEN && form.coordinates <= MOST_COORDINATES
}

impl Learner for DpLaplace {
    fn lines(&self, plan: &Plan) -> usize {
        plan.lines.len()
    }

    fn clipping(&self, plan: &Plan) -> &'static str {
        match form_of(&plan.request).information {
            Information::Public => {
                "Records are clipped at bounds, and in coordinates, that follow from earlier releases of the run; the number of clipped records is private. Clipping makes intervals wider, and shifts them only where outcomes spread more widely to one side of what the model expects than to the other."
            }
            Information::Law { bounded: true } => {
                "Records are clipped at bounds, and in coordinates, that follow from earlier releases of the run; the number of clipped records is private. Each record's gradient is measured from the point at which it is balanced under the law that the model gives the record's outcomes: clipping makes intervals wider, and shifts them only as far as the records do not follow that law."
            }
            Information::Law { bounded: false } => {
                "Records are clipped at bounds, and in coordinates, that follow from earlier releases of the run; the number of clipped records is private. Each record's gradient is measured from the point at which it is balanced under the law that the model gives the record's outcomes: clipping makes intervals wider, and shifts them only as far as the records do not follow that law. Single outcomes may have unbounded influence. What clipping removes from the records that the histograms of lengths show is counted as noise and included in the intervals; a few records far outside the model's tails can stay below the noise of these histograms, and the answer is then that of the others."
            }
            Information::Hazard(_) => {
                "Records are clipped at bounds, and in coordinates, that follow from earlier releases of the run; the number of clipped records is private. Each record's contribution is clipped so that it is balanced under the hazard that the model gives its time, whenever records are censored: clipping makes intervals wider, and shifts them only as far as the records do not follow that hazard. Single records may have unbounded influence. What clipping removes from the records that the histograms of lengths show is counted as noise and included in the intervals; a few records far more influential than the others can stay below the noise of these histograms, and the answer is then that of the others."
            }
            Information::Curvature => {
                "Records are clipped at bounds, and in coordinates, that follow from earlier releases of the run; the number of clipped records is private. The model gives no law of the outcomes that could balance clipping, so clipping can shift the answer. What clipping removes from the records that the histograms of lengths show is counted as noise and included in the intervals; a few records far more influential than the others can stay below the noise of these histograms, and the answer is then that of the others."
            }
        }
    }

    fn foresight(&self, plan: &Plan) -> Option<Foresight> {
        let form = form_of(&plan.request);
        let shares = Shares::of(&plan.request, &form).ok()?;
        Some(Foresight {
            rounds: shares.rounds() as u64,
            coordinates: form.coordinates,
            information: form.information.name(),
            noise: shares.foreseen,
            blind_spot: blind_spot(&form),
            shares: [
                ("gradients", shares.gradient),
                ("information", shares.information),
                ("slope", shares.slope),
                (
                    "histograms",
                    shares.gradient_lengths + shares.information_lengths,
                ),
                (
                    "certificate",
                    shares.certificate + shares.certificate_lengths + shares.beyond,
                ),
            ]
            .into_iter()
            .filter(|(_, share)| *share > 0.0)
            .collect(),
        })
    }

    fn begin(
        &self,
        density: &Density,
        plan: &Plan,
        initial: &Initial,
        seed: u64,
    ) -> Result<Box<dyn Beginning>, SampleError> {
        let form = formed(density, plan)?;
        let theta = match initial {
            Initial::Random if known_form(&plan.request).is_some() => form.middle.clone(),
            Initial::Random => middle_of_prior(density, seed)?,
            Initial::Points(points) => {
                let count = points.len().max(1) as f64;
                let mean = |j: usize| points.iter().map(|p| p[j]).sum::<f64>() / count;
                (0..density.dimension()).map(mean).collect()
            }
        };
        if !density.log_prior(&theta).is_finite() {
            return Err(match initial {
                Initial::Random => SampleError::NoInitialPoint,
                Initial::Points(_) => SampleError::BadInitialPoint,
            });
        }
        let search = Search::new(&form, density, &theta, plan.request.records);
        let shares = shares_of(plan)?;
        Ok(Box::new(Learning {
            form,
            shares,
            search,
            bend: OnceLock::new(),
            conflicts: OnceLock::new(),
        }))
    }

    fn restore(
        &self,
        saved: &Value,
        density: &Density,
        plan: &Plan,
    ) -> Result<Box<dyn Beginning>, SampleError> {
        let form = formed(density, plan)?;
        let search: Search = read(saved)?;
        let shares = shares_of(plan)?;
        if search.is_sound(&form) {
            Ok(Box::new(Learning {
                form,
                shares,
                search,
                bend: OnceLock::new(),
                conflicts: OnceLock::new(),
            }))
        } else {
            Err(SampleError::Unreadable)
        }
    }
}

/// The shares as planned, even if the model has fewer coordinates than were assumed.
fn shares_of(plan: &Plan) -> Result<Shares, SampleError> {
    let shares = Shares::of(&plan.request, &form_of(&plan.request));
    Ok(shares.map_err(Box::new)?)
}

/// The form of the model, which must be the one for which the plan was made.
fn formed(density: &Density, plan: &Plan) -> Result<Form, SampleError> {
    let form = match known_form(&plan.request) {
        Some(form) => form.clone(),
        None => Form::of_units(density, plan.request.shared_units)?,
    };
    let form = in_budget(form, &plan.request);
    let assumed = form_of(&plan.request);
    let fits = form.information.is_planned_as(assumed.information)
        && form.coordinates <= plan.request.dimension
        && form.base.rows() == density.length_of(&form.space);
    if fits {
        Ok(form)
    } else {
        Err(SampleError::NotThisModel)
    }
}

/// A search, during its rounds or after them.
#[derive(Debug)]
struct Learning {
    form: Form,
    shares: Shares,
    search: Search,
    /// The bend of the final released likelihood, computed on first use.
    bend: OnceLock<Bend>,
    /// The parameters whose prior the records contradict.
    conflicts: OnceLock<Vec<Conflict>>,
}

impl Beginning for Learning {
    fn rounds(&self, _: &Plan) -> u64 {
        self.shares.rounds() as u64 + 1
    }

    fn most_rounds(&self, plan: &Plan) -> u64 {
        self.rounds(plan)
    }

    fn releases(&self, plan: &Plan, rounds: Range<u64>) -> Vec<u64> {
        lines::releases(&self.form, &self.shares, plan.lines.len(), rounds)
    }

    fn round(
        &mut self,
        round: u64,
        density: &Density,
        plan: &Plan,
        oracle: &mut dyn Oracle,
        _: &mut ChaCha8Rng,
    ) -> Result<(), SampleError> {
        let Learning {
            form,
            shares,
            search,
            ..
        } = self;
        let simulated = match form.information {
            Information::Law { .. } | Information::Hazard(_) => simulated(form, density),
            Information::Public | Information::Curvature => Vec::new(),
        };
        let ground = RoundInputs {
            form,
            density,
            plan,
            shares,
            simulated: &simulated,
        };
        if (round as usize) < shares.rounds() {
            search.round(&ground, round as usize, oracle)?;
            if form.has_alike_groups() {
                // The prior knows that groups are alike: the errors in their coordinates, of which
                // there are many, would otherwise look like spread of the outcomes.
                let likelihood = search.likelihood(form, density);
                let rng = &mut ChaCha8Rng::seed_from_u64(round);
                let posterior = Posterior {
                    density,
                    form,
                    likelihood,
                    bend: &Bend::default(),
                };
                let draws = posterior.draws(form.middle.clone(), rng);
                search.look_from(&ground, &draws);
            }
            Ok(())
        } else {
            search.certify(&ground, oracle)
        }
    }

    fn chains_ask(&self, _: &Plan) -> bool {
        false
    }

    fn draws_are_independent(&self, _: &Plan) -> bool {
        false
    }

    fn chain<'a>(
        &'a self,
        density: &'a Density,
        _: &Plan,
        rng: &mut ChaCha8Rng,
    ) -> Box<dyn Walker + 'a> {
        let likelihood = self.search.likelihood(&self.form, density);
        let noise = self.search.noise(&self.form);
        let bend = (self.bend).get_or_init(|| Bend::of(&self.form, density, &likelihood, noise));
        self.conflicts
            .get_or_init(|| self.search.conflicts(&self.form, density));
        let mut start = self.form.middle.clone();
        if self.form.space.is_parameters() {
            start = self.form.base.times(&likelihood.centre);
            for (s, o) in start.iter_mut().zip(&likelihood.origin) {
                *s += o;
            }
        }
        let posterior = Posterior {
            density,
            form: &self.form,
            likelihood,
            bend,
        };
        Box::new(posterior.chain(start, rng))
    }

    fn save(&self) -> Value {
        written(&self.search)
    }

    fn report(&self, _: &Plan) -> Value {
        let search = &self.search;
        let last = search.steps.last();
        let surprises: Vec<f64> = search
            .steps
            .iter()
            .rev()
            .take(2)
            .map(|s| s.surprise)
            .collect();
        json!({
            "information": self.form.information.name(),
            "coordinates": self.form.coordinates,
            "rounds": self.shares.rounds(),
            "foreseen_noise": self.shares.foreseen,
            "clip": search.clip,
            "efficiency": search.efficiency,
            "last_step": last.map(|s| s.widths),
            "cut": last.map(|s| s.cut),
            "surprise": surprises,
            "unknown": search.unknown,
            "untold": search.untold,
            "clipped": search.clipped.map(|c| json!({"sds": c.sds, "noise": c.noise})),
            "seen": !search.blind,
            "centre_sd": search.noise(&self.form).sqrt(),
            "certificate": search.certificate.map(|c| json!({"p": c.p, "noise": c.noise})),
            "open_below": self.bend.get().map(|bend| &bend.open.below),
            "open_above": self.bend.get().map(|bend| &bend.open.above),
            "conflicts": self.conflicts.get(),
        })
    }

    fn describe(&self, plan: &Plan) -> Vec<String> {
        let noise = self.search.noise(&self.form).sqrt();
        vec![
            format!(
                "learnt in {} rounds and released: the likelihood in {} direction{}, with noise of {noise:.2} posterior standard deviations in its centre",
                self.shares.rounds(),
                self.form.coordinates,
                if self.form.coordinates == 1 { "" } else { "s" },
            ),
            format!(
                "{} chains drew from prior times this likelihood, at no cost in privacy; intervals include the noise, which makes them up to {:.1} times as wide",
                plan.request.chains,
                noise.hypot(1.0),
            ),
        ]
    }

    fn numbers(&self) -> Vec<f64> {
        self.search.numbers(&self.form)
    }
}

/// A chain that does not belong to a run.
struct Nowhere {
    theta: Vec<f64>,
}

impl Walker for Nowhere {
    fn step(&mut self, _: &mut dyn Oracle, _: &mut ChaCha8Rng) -> Result<Step, SampleError> {
        Err(SampleError::NotLearning)
    }

    fn theta(&self) -> &[f64] {
        &self.theta
    }

    fn tune(&mut self, _: f64, _: &Metric) {}

    fn save(&self) -> Value {
        Value::Null
    }

    fn restore(&mut self, _: &Value) -> Result<(), SampleError> {
        Err(SampleError::NotLearning)
    }
}
