//! The releases of a private run and their cost, before any data are read.

use serde::{Deserialize, Serialize};

use crate::accounting::{
    AccountError, Budget, Event, Guarantee, GuaranteeBounds, Query, Real, account, mu_for_budget,
    smallest_scale, total_variation_of_draw,
};
use crate::privacy::{BatchPenaltyPlan, Subsampling};
pub use crate::sampler::contract::error::PlanError;
use crate::sampler::contract::request::{Iterations, PlanRequest};
use crate::sampler::contract::schedule::{Line, Noise, PlannedLine, Question, Scale, factor};
use crate::sampler::contract::settings::{Clip, Setting, Settings};
use crate::sampler::contract::{Kind, Sampler};

/// The relative precision to which the noise of subsampled releases is found.
const TOLERANCE: f64 = 1e-4;

/// A run that fits its budget.
#[derive(Debug, Clone)]
pub struct Plan {
    #[doc(hidden)]
    pub request: PlanRequest,
    pub iterations_per_chain: u64,
    /// The releases, in the order of the meter's lines.
    #[doc(hidden)]
    pub lines: Vec<PlannedLine>,
    /// The events that are charged: those of the lines.
    pub events: Vec<Event>,
    pub guarantee: Guarantee,
    /// Reasons why the run may be less useful than its user hopes.
    pub warnings: Vec<String>,
}

/// The noise of a finished run by its settings, per unit of the step that warm-up arrived at.
/// All of it is public; `None` where there is no noise of that kind, or where it is not
/// proportional to the step (batches).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NoiseScales {
    /// The largest step of the first iteration, unconstrained scale.
    pub first_step_size: Option<f64>,
    /// Standard deviation of the noise of a typical proposal's acceptance test, nats after
    /// tempering, divided by the largest step. For proposals under the unit metric.
    pub log_ratio_per_step: Option<f64>,
    /// Standard deviation of the noise on each coordinate of a gradient over all records,
    /// after tempering.
    pub gradient: Option<f64>,
}

/// How the noise multipliers of lines follow from one another.
#[derive(Debug, Clone, Copy)]
enum Multipliers {
    Given {
        gradient: Option<f64>,
        log_ratio: Option<f64>,
    },
    /// The lines' own weights times this number.
    Scaled(f64),
}

impl Multipliers {
    fn tau(self, line: &Line) -> Result<f64, PlanError> {
        match (self, line.noise) {
            (
                Multipliers::Given {
                    gradient,
                    log_ratio,
                },
                noise,
            ) => {
                let (tau, name) = match line.question {
                    Question::Gradient => (gradient, "tau_gradient"),
                    Question::LogRatio => (log_ratio, "tau_log_ratio"),
                    Question::Barker | Question::Learnt(_) => (None, "no multiplier"),
                };
                match (tau, noise) {
                    (Some(tau), Noise::AtLeast(least)) if tau < least => {
                        Err(PlanError::Settings(format!(
                            "`{name}` is {tau}, but the dynamics need noise of at least {least:.4} times the sensitivity: give more, or a smaller `step_size`"
                        )))
                    }
                    (_, Noise::Fixed) => Ok(1.0),
                    (Some(tau), _) => Ok(tau),
                    (None, Noise::AtLeast(least)) => Ok(least),
                    (None, Noise::Share(_)) => Err(PlanError::Settings(format!(
                        "`{name}` is missing: give the noise multiplier of each kind of release, or of none"
                    ))),
                }
            }
            (Multipliers::Scaled(scale), Noise::Share(share)) => {
                Ok(scale * (line.count as f64 / share).sqrt())
            }
            (Multipliers::Scaled(scale), Noise::AtLeast(least)) => Ok(least * scale.max(1.0)),
            (Multipliers::Scaled(_), Noise::Fixed) => Ok(1.0),
        }
    }
}

impl Plan {
    /// Makes the plan of a private run: its sampler lists its questions for a number
    /// of iterations, and the noise, or the number of iterations, follows from the
    /// budget.
    ///
    /// Errors: settings out of range; a budget that the run would exceed.
    #[doc(hidden)]
    pub fn new(request: PlanRequest) -> Result<Plan, PlanError> {
        let Kind::Private(sampler) = request.algorithm.kind else {
            return Err(PlanError::Settings(format!(
                "`{}` is not private; there is no budget to plan for",
                request.algorithm.name
            )));
        };
        check_settings(&request)?;
        Budget::new(request.epsilon, request.delta)?;
        let draft = Draft {
            request: &request,
            sampler,
        };
        let given = Multipliers::Given {
            gradient: request.settings.tau_gradient,
            log_ratio: request.settings.tau_log_ratio,
        };
        match (request.noise_from_budget(), request.iterations) {
            (true, Iterations::Fixed(k)) => draft.within_budget(k),
            (true, Iterations::Max) => {
                let lines = sampler.lines(&request, 1)?;
                if lines.iter().any(|l| matches!(l.noise, Noise::Share(_))) {
                    return Err(PlanError::Settings(
                        "`iterations` max needs the noise multipliers of what the sampler releases: give `tau_gradient`, `tau_log_ratio`, or both".into(),
                    ));
                }
                draft.most_iterations(Multipliers::Scaled(1.0))
            }
            (false, Iterations::Max) => draft.most_iterations(given),
            (false, Iterations::Fixed(k)) => match draft.assemble(given, k)? {
                Some(plan) => Ok(plan),
                None => Err(draft.refusal(given, k)?),
            },
        }
    }

    /// Upper bound on epsilon at the plan's delta.
    pub fn epsilon(&self) -> f64 {
        upper_epsilon(&self.guarantee)
    }

    /// The (first) step size, unconstrained scale, unless warm-up is to find one.
    pub fn step_size(&self) -> Option<f64> {
        let Kind::Private(sampler) = self.request.algorithm.kind else {
            return None;
        };
        if self.request.algorithm.has(Setting::target_acceptance) {
            self.request.settings.step_size
        } else {
            Some(sampler.step_size(&self.request))
        }
    }

    /// The sampler's settings, including the values found for those that were not given.
    #[doc(hidden)]
    pub fn settings(&self) -> Settings {
        let request = &self.request;
        let subsampling = || self.lines.iter().map(|line| line.line.subsampling);
        let settled = request.settled();
        let found = Settings {
            batch_rate: subsampling().find_map(|batch| match batch {
                Subsampling::Poisson(rate) => Some(rate.rate()),
                Subsampling::All | Subsampling::FixedSize(_) => None,
            }),
            batch_size: subsampling().find_map(|batch| match batch {
                Subsampling::FixedSize(size) => Some(size),
                Subsampling::All | Subsampling::Poisson(_) => None,
            }),
            noise_split: (settled.noise_split).filter(|_| request.noise_from_budget()),
            ..settled
        };
        Settings {
            step_size: self.step_size().filter(|step| step.is_finite()),
            tau_gradient: self.tau(Question::Gradient),
            tau_log_ratio: self.tau(Question::LogRatio),
            ..found.of(request.algorithm)
        }
    }

    /// The noise multiplier of the first line that asks `question`.
    #[doc(hidden)]
    pub fn tau(&self, question: Question) -> Option<f64> {
        let asks = |line: &&PlannedLine| line.line.question == question;
        self.lines.iter().find(asks).map(|line| line.tau)
    }

    /// The length of a typical proposal, and the standard deviation of the noise of its
    /// acceptance test, in nats; `None` where no noisy log-ratio decides on acceptance.
    #[doc(hidden)]
    pub fn typical_proposal(&self) -> Option<(f64, f64)> {
        self.tau(Question::LogRatio)?;
        let Kind::Private(sampler) = self.request.algorithm.kind else {
            return None;
        };
        let distance = sampler.typical_distance(&self.request)?;
        Some((distance, self.log_ratio_noise(distance)))
    }

    /// A warning if the noise of the acceptance test rejects nearly all proposals; smaller values of
    /// `settings` make them shorter.
    pub(crate) fn test_warnings(&self, settings: &str) -> Vec<String> {
        let proposal = self.typical_proposal().filter(|&(_, noise)| noise > 2.0);
        let warn = |(distance, noise)| {
            format!(
                "for a proposal at distance {distance:.2e} the noise of the acceptance test has standard deviation {noise:.1} nats; above 2 almost everything is rejected. Use a smaller {settings}, fewer iterations or chains, a larger epsilon, or `temperature`"
            )
        };
        proposal.map(warn).into_iter().collect()
    }

    /// Standard deviation of the noise on each coordinate of a gradient over all records,
    /// and the largest length of the sum of their clipped gradients, where the number of
    /// records is public; both after tempering.
    #[doc(hidden)]
    pub fn gradient_and_noise(&self) -> Option<(f64, Option<f64>)> {
        let asks = |line: &&PlannedLine| line.line.question == Question::Gradient;
        let line = self.lines.iter().find(asks)?;
        if !matches!(line.line.subsampling, Subsampling::All) {
            return None;
        }
        let r = &self.request;
        let longest = |n: u64| r.temperature * r.clip_gradient() * n as f64;
        Some((self.gradient_noise(), r.records.map(longest)))
    }

    /// The noise, for the interpretation of the draws.
    #[doc(hidden)]
    pub fn noise_scales(&self) -> NoiseScales {
        let Kind::Private(sampler) = self.request.algorithm.kind else {
            return NoiseScales::default();
        };
        let first = sampler.step_size(&self.request);
        let all_rows = |question: Question| {
            let line = self.lines.iter().find(|l| l.line.question == question);
            line.is_some_and(|l| matches!(l.line.subsampling, Subsampling::All))
        };
        NoiseScales {
            first_step_size: Some(first),
            log_ratio_per_step: self
                .typical_proposal()
                .filter(|_| all_rows(Question::LogRatio))
                .map(|(_, noise)| noise / first),
            gradient: self.gradient_and_noise().map(|(noise, _)| noise),
        }
    }

    /// Standard deviation of the gradient noise, after tempering; 0 where no gradient
    /// is asked for.
    pub(crate) fn gradient_noise(&self) -> f64 {
        let r = &self.request;
        let tau = self.tau(Question::Gradient).unwrap_or(0.0);
        f64::from(factor(r.relation)) * r.temperature * r.clip_gradient() * tau
    }

    /// Standard deviation of the noise of one log-ratio over a `distance`, nats, after
    /// tempering; 0 where none is asked for, and infinite where it would be refused.
    pub(crate) fn log_ratio_noise(&self, distance: f64) -> f64 {
        let r = &self.request;
        let noise = |line: &PlannedLine| match line.scale {
            Scale::LogRatio(_) => {
                let sensitivity = f64::from(factor(r.relation)) * r.clip_log_ratio() * distance;
                Some(r.temperature * sensitivity * line.tau)
            }
            Scale::BatchLogRatio(scale) => match scale.plan(r.clip_log_ratio() * distance) {
                Ok(BatchPenaltyPlan::Query(query)) => Some(query.sigma()),
                Ok(BatchPenaltyPlan::Skip) => Some(0.0),
                Ok(BatchPenaltyPlan::Refuse) | Err(_) => Some(f64::INFINITY),
            },
            Scale::Gradient(_) | Scale::Barker(_) | Scale::Learnt(_) => None,
        };
        self.lines.iter().find_map(noise).unwrap_or(0.0)
    }
}

/// Upper bound on epsilon of a guarantee that was asked for one.
pub(crate) fn upper_epsilon(guarantee: &Guarantee) -> f64 {
    match guarantee.bounds {
        GuaranteeBounds::Epsilon { epsilon_upper, .. } => epsilon_upper,
        GuaranteeBounds::Delta { .. } => guarantee.epsilon,
    }
}

pub(crate) fn check_settings(r: &PlanRequest) -> Result<(), PlanError> {
    let fail = |message: &str| Err(PlanError::Settings(message.to_string()));
    r.settings.check_values()?;
    let clips = [r.settings.clip_gradient, r.settings.clip_log_ratio];
    if clips.contains(&Some(Clip::Derived)) {
        return fail("a derived clip bound follows from a model, and was not settled");
    }
    if r.chains == 0 {
        return fail("`chains` must be at least 1");
    }
    if r.iterations == Iterations::Fixed(0) {
        return fail("there must be at least one iteration");
    }
    if r.dimension == 0 {
        return fail("the model has no parameters to sample");
    }
    if !(r.temperature > 0.0 && r.temperature <= 1.0) {
        return fail("the temperature is a number of records between 0 and the number in the data");
    }
    Ok(())
}

/// A plan in the making.
struct Draft<'a> {
    request: &'a PlanRequest,
    sampler: &'static dyn Sampler,
}

impl Draft<'_> {
    fn query(&self) -> Query {
        Query::Epsilon {
            delta: self.request.delta,
        }
    }

    fn lines(&self, multipliers: Multipliers, k: u64) -> Result<Vec<PlannedLine>, PlanError> {
        self.sampler
            .lines(self.request, k)?
            .iter()
            .map(|line| PlannedLine::new(line, multipliers.tau(line)?, self.request))
            .collect()
    }

    /// The plan, or `None` when it does not fit the budget.
    fn assemble(&self, multipliers: Multipliers, k: u64) -> Result<Option<Plan>, PlanError> {
        let lines = self.lines(multipliers, k)?;
        let events: Vec<Event> = lines.iter().map(|line| line.event.clone()).collect();
        let guarantee = match account(&events, self.request.relation, self.query()) {
            Ok(guarantee) => guarantee,
            Err(error) if error.is_lack_of_noise() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        if Real::from(upper_epsilon(&guarantee)) > self.request.epsilon {
            return Ok(None);
        }
        let mut plan = Plan {
            request: self.request.clone(),
            iterations_per_chain: k,
            lines,
            events,
            guarantee,
            warnings: Vec::new(),
        };
        plan.warnings = self.sampler.warnings(&plan);
        Ok(Some(plan))
    }

    /// The plan with as much noise as `k` iterations per chain need.
    fn within_budget(&self, k: u64) -> Result<Plan, PlanError> {
        let lines = self.lines(Multipliers::Scaled(1.0), k)?;
        let any = |kind: fn(&Noise) -> bool| lines.iter().any(|line| kind(&line.line.noise));
        if !any(|noise| matches!(noise, Noise::Share(_))) {
            if let Some(plan) = self.assemble(Multipliers::Scaled(1.0), k)? {
                return Ok(plan);
            }
            if !any(|noise| matches!(noise, Noise::AtLeast(_))) {
                return Err(self.refusal(Multipliers::Scaled(1.0), k)?);
            }
        }
        let scale = if any(|noise| matches!(noise, Noise::Share(_))) {
            self.closed_form(&lines)?
        } else {
            2.0
        };
        let exact = lines.iter().all(|line| {
            matches!(line.line.noise, Noise::Share(_)) && matches!(line.event, Event::Gaussian(_))
        });
        let scale = if exact { scale } else { self.search(scale, k)? };
        // Rounding may leave the plan slightly above its budget: widen the noise
        // until the accountant, whose bound decides, agrees.
        for doubling in 0..20 {
            let widen = 1.0 + 1e-14 * f64::from(1 << doubling);
            if let Some(plan) = self.assemble(Multipliers::Scaled(scale * widen), k)? {
                return Ok(plan);
            }
        }
        Err(PlanError::NoIteration)
    }

    /// The scale at which releases of all rows, each with its share, use up the
    /// budget: with tau^2 = s^2 count / share, mu = sum of count / (2 tau^2) is
    /// 1 / (2 s^2), since the shares add up to one.
    fn closed_form(&self, lines: &[PlannedLine]) -> Result<f64, PlanError> {
        let total_variation = lines
            .iter()
            .filter_map(|line| {
                let lattice = line.event.lattice()?;
                let draws = line.line.count as f64 * lattice.coordinates() as f64;
                Some(Real::from(draws) * total_variation_of_draw(lattice.ratio()))
            })
            .fold(Real::ZERO, |sum, term| sum + term);
        let mu = mu_for_budget(self.request.epsilon, self.request.delta, total_variation)
            .map_err(|e| self.lattice_limit(e.into()))?;
        Ok(1.0 / (2.0 * mu).sqrt())
    }

    /// The smallest scale that keeps the budget, near `first`.
    fn search(&self, first: f64, k: u64) -> Result<f64, PlanError> {
        let lines = self.sampler.lines(self.request, k)?;
        let epsilon = |scale: f64| -> Result<f64, PlanError> {
            let events = lines
                .iter()
                .map(|line| {
                    let tau = Multipliers::Scaled(scale).tau(line)?;
                    Ok(PlannedLine::new(line, tau, self.request)?.event)
                })
                .collect::<Result<Vec<Event>, PlanError>>()?;
            match account(&events, self.request.relation, self.query()) {
                Ok(guarantee) => Ok(upper_epsilon(&guarantee)),
                Err(error) if error.is_lack_of_noise() => Ok(f64::INFINITY),
                Err(error) => Err(error.into()),
            }
        };
        smallest_scale(first, self.request.epsilon.to_f64(), TOLERANCE, epsilon)
    }

    /// The longest run that the budget allows.
    fn most_iterations(&self, multipliers: Multipliers) -> Result<Plan, PlanError> {
        let plan_for = |k| self.assemble(multipliers, k);
        let Some(mut best) = plan_for(1)? else {
            return Err(self.refusal(multipliers, 1)?);
        };
        let mut too_many = 2u64;
        while too_many < 1 << 40 {
            match plan_for(too_many)? {
                Some(plan) => best = plan,
                None => break,
            }
            too_many *= 2;
        }
        while too_many - best.iterations_per_chain > 1 {
            let middle = best.iterations_per_chain.midpoint(too_many);
            match plan_for(middle)? {
                Some(plan) => best = plan,
                None => too_many = middle,
            }
        }
        Ok(best)
    }

    /// Why the budget refuses these iterations.
    fn refusal(&self, multipliers: Multipliers, k: u64) -> Result<PlanError, PlanError> {
        let r = self.request;
        let lines = self.lines(multipliers, k)?;
        let noise_is_fixed = lines.iter().any(|line| line.line.noise == Noise::Fixed);
        let advice = if noise_is_fixed {
            "a smaller `batch_size`, "
        } else {
            "larger noise multipliers, "
        };
        // With continuous noise: the term for the lattice alone may make every epsilon
        // too small, and this is a lower bound on how much the budget lacks.
        let continuous: Vec<Event> = lines
            .iter()
            .map(|line| line.event.clone().off_lattice())
            .collect();
        let guarantee = account(&continuous, r.relation, self.query())?;
        let (requested, budget) = (upper_epsilon(&guarantee), r.epsilon.to_f64());
        if requested <= budget {
            let events: Vec<Event> = lines.into_iter().map(|line| line.event).collect();
            return Ok(match account(&events, r.relation, self.query()) {
                Err(error) => self.lattice_limit(error.into()),
                Ok(_) => PlanError::NoIteration,
            });
        }
        Ok(PlanError::Budget {
            requested,
            budget,
            delta: r.delta.to_f64(),
            short: requested - budget,
            advice,
        })
    }

    /// The error with the largest epsilon that can be accounted for with noise on a lattice.
    fn lattice_limit(&self, error: PlanError) -> PlanError {
        let PlanError::Account(AccountError::DeltaUnreachable {
            total_variation, ..
        }) = error
        else {
            return error;
        };
        let delta = self.request.delta.to_f64();
        PlanError::Lattice {
            epsilon: self.request.epsilon.to_f64(),
            delta,
            total_variation,
            most: (delta / total_variation).ln().floor(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounting::Relation;

    fn paper_banana() -> PlanRequest {
        let root = 100_000f64.sqrt();
        PlanRequest {
            iterations: Iterations::Max,
            settings: Settings::new()
                .leapfrog_steps(25)
                .fresh_gradients(true)
                .clip_gradient(0.05)
                .clip_log_ratio(0.1)
                .tau_gradient(0.55 * root)
                .tau_log_ratio(0.10 * root)
                .step_size(0.006),
            ..PlanRequest::new(Real::from(15.0), "1e-6".parse().unwrap(), 2)
        }
    }

    fn without_multipliers(settings: Settings) -> Settings {
        Settings {
            tau_gradient: None,
            tau_log_ratio: None,
            ..settings
        }
    }

    /// Räisä, Koskela and Honkela 2021: 892 iterations per chain at epsilon 15. A factor of two
    /// in the sensitivity, a forgotten chain or gradient would all change it.
    #[test]
    fn the_papers_banana_runs_892_iterations() {
        let plan = Plan::new(paper_banana()).unwrap();
        assert_eq!(plan.iterations_per_chain, 892);
        assert!(plan.epsilon() <= 15.0 && plan.epsilon() > 14.9);
        let gaussian = Plan::new(PlanRequest {
            dimension: 10,
            settings: paper_banana()
                .settings
                .leapfrog_steps(12)
                .tau_gradient(0.25 * 100_000f64.sqrt())
                .tau_log_ratio(0.1 * 100_000f64.sqrt())
                .clip_gradient(10.0)
                .clip_log_ratio(6.0),
            ..paper_banana()
        })
        .unwrap();
        assert_eq!(gaussian.iterations_per_chain, 538);
    }

    /// A plan so costly that noise on a lattice reaches no delta at all is refused
    /// like any other, and does not stop the search for the longest run.
    #[test]
    fn a_delta_out_of_reach_is_a_refusal() {
        let costly = PlanRequest {
            iterations: Iterations::Fixed(1000),
            settings: paper_banana().settings.tau_gradient(1.0).tau_log_ratio(1.0),
            ..paper_banana()
        };
        for iterations in [Iterations::Fixed(1000), Iterations::Max] {
            let error = Plan::new(PlanRequest {
                iterations,
                ..costly.clone()
            })
            .unwrap_err();
            assert!(error.is_refusal(), "{error}");
            assert!(error.to_string().contains("short by"), "{error}");
        }
        let generous = PlanRequest {
            epsilon: Real::from(30.0),
            ..paper_banana()
        };
        assert!(Plan::new(generous).unwrap().iterations_per_chain > 892);
        let absurd = PlanRequest {
            epsilon: Real::from(1000.0),
            iterations: Iterations::Fixed(10),
            settings: without_multipliers(paper_banana().settings),
            ..paper_banana()
        };
        let error = Plan::new(absurd).unwrap_err();
        assert!(!error.is_refusal(), "{error}");
        assert!(error.to_string().contains("at most about"), "{error}");
    }

    #[test]
    fn a_budget_is_used_but_not_exceeded() {
        for (epsilon, split) in [("0.1", 0.5), ("1", 0.3), ("8", 0.9)] {
            for relation in Relation::ALL {
                let request = PlanRequest {
                    epsilon: epsilon.parse().unwrap(),
                    relation,
                    iterations: Iterations::Fixed(200),
                    settings: without_multipliers(paper_banana().settings)
                        .fresh_gradients(false)
                        .noise_split(split),
                    ..paper_banana()
                };
                let wanted = request.epsilon.to_f64();
                let plan = Plan::new(request).unwrap();
                assert!(Real::from(plan.epsilon()) <= plan.request.epsilon);
                assert!(plan.epsilon() > wanted * (1.0 - 1e-6), "{}", plan.epsilon());
                assert_eq!(plan.events[0].count(), 4 * (200 * 25 + 1));
                assert_eq!(plan.events[1].count(), 4 * 200);
            }
        }
    }

    #[test]
    fn too_much_for_the_budget_is_refused_with_numbers() {
        let request = PlanRequest {
            iterations: Iterations::Fixed(2000),
            ..paper_banana()
        };
        let error = Plan::new(request).unwrap_err();
        assert!(error.is_refusal());
        let text = error.to_string();
        for word in [
            "needs epsilon",
            "budget is 15",
            "short by",
            "remaining",
            "Spent",
        ] {
            assert!(text.contains(word), "{text}");
        }
        let one = PlanRequest {
            epsilon: "1e-6".parse().unwrap(),
            ..paper_banana()
        };
        assert!(Plan::new(one).unwrap_err().is_refusal());
    }
}
