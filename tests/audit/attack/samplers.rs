//! Whole private samplers: what a run gives out on two neighbouring data sets.
//!
//! A transcript is every number that `sample` writes about a run's iterations: draws and
//! acceptance statistics of all chains, warm-up included, and what was learnt before them. The
//! public seed is the same in
//! all runs, so momenta, jitter and initial points are known to the adversary, as
//! docs/privacy.md says they are; noise and acceptance are new each time.

use std::sync::{Arc, Mutex};

use dpm::accounting::{Event, Gaussian, Query, Relation, account};
use dpm::testing::privacy::{NotPrivate, PrivateRng, Subsampling};
use dpm::testing::sampler::{
    self, ALGORITHMS, Algorithm, Beginning, Initial, Iterations, Noise, Observer, PlanRequest,
    PrivateSettings, Question, sample_privately,
};
use dpm::{Draw, Plan, PlanError, Real, Settings, Vault};

use super::claim::Claim;
use super::neighbours::{
    LAWLESS, LAWLESS_MODELS, LINE, LOGIT, MEAN, MODELS, PUBLIC_MODELS, Table, lone_pair, loud_pair,
    model, opposed_pair,
};

/// A private sampler on two neighbouring data sets.
pub struct Audited {
    pub plan: Plan,
    vaults: [Vault; 2],
    initial: Vec<f64>,
}

/// A private sampler with settings of its own.
#[derive(Clone, Copy)]
pub struct Variant {
    pub algorithm: &'static str,
    pub what: &'static str,
    /// The share of a claimed delta that an audit in short and one in long see at least.
    pub seen: [f64; 2],
    pub adjust: fn(&mut PlanRequest),
    /// Of models that are looked at before a run is planned: the one of black boxes, and those
    /// that are played.
    looked_at: Option<(&'static str, &'static [&'static str])>,
}

/// Ways in which private samplers ask. Of DP-Barker's tests only the outcomes are to be seen, and
/// a Rényi divergence is claimed for them.
pub const VARIANTS: [Variant; 22] = [
    variant("dp-hmc", "gradients reused", [0.6, 0.6], |_| {}),
    variant("dp-hmc", "fresh gradients", [0.5, 0.5], |r| {
        r.settings.fresh_gradients = Some(true);
    }),
    variant("dp-penalty", "whole", [0.58, 0.62], |_| {}),
    variant("dp-penalty", "one component", [0.5, 0.57], |r| {
        r.dimension = 3;
        r.settings.one_component = Some(true);
    }),
    variant("dp-penalty", "guided walk", [0.54, 0.56], |r| {
        r.dimension = 3;
        r.settings.guided_walk = Some(true);
    }),
    variant("dp-penalty", "Poisson batches", [0.2, 0.46], |r| {
        r.settings.batch_rate = HALF;
    }),
    variant("dp-penalty", "batches of fixed size", [0.17, 0.49], |r| {
        r.records = Some(3);
        r.settings.batch_size = Some(2);
    }),
    variant("dp-barker", "all records", [0.14, 0.36], |r| {
        barker(r, 12, 12)
    }),
    variant("dp-barker", "batches", [0.03, 0.26], |r| barker(r, 12, 16)),
    variant("dp-sgld", "all records", [0.7, 0.78], |r| {
        stochastic(r, 1.0, None)
    }),
    variant("dp-sgld", "Poisson batches", [0.36, 0.57], |r| {
        stochastic(r, 1.0, HALF)
    }),
    variant("dp-sgnht", "all records", [0.7, 0.78], |r| {
        stochastic(r, 0.01, None)
    }),
    variant("dp-sgnht", "Poisson batches", [0.36, 0.57], |r| {
        stochastic(r, 0.01, HALF)
    }),
    variant("dp-sghmc", "all records", [0.7, 0.78], |r| {
        stochastic(r, 1.0, None)
    }),
    variant("dp-sghmc", "Poisson batches", [0.36, 0.57], |r| {
        stochastic(r, 1.0, HALF)
    }),
    variant("dp-amagold", "all records", [0.6, 0.5], |_| {}),
    variant("dp-amagold", "Poisson batches", [0.3, 0.3], |r| {
        r.settings.batch_rate = HALF;
    }),
    // So little counts that noise is small and chains go far.
    variant("dp-langevin", "chains", [0.5, 0.55], |r| {
        learning(r, 10, 6);
        r.temperature = 0.01;
    }),
    variant("dp-langevin", "the Gaussian", [0.42, 0.45], |r| {
        learning(r, 2, 16)
    }),
    laplace("public information", [0.45, 0.42], (MEAN, &PUBLIC_MODELS)),
    laplace("a law", [0.3, 0.3], (LOGIT, &MODELS)),
    laplace("no law", [0.35, 0.38], (LAWLESS, &LAWLESS_MODELS)),
];

impl Variant {
    /// The models that whole runs are played of.
    pub fn models(&self) -> &'static [&'static str] {
        self.looked_at.map_or(&MODELS, |(_, played)| played)
    }

    /// Whether a run learns before its draws. Such runs take longer.
    pub fn learns(&self) -> bool {
        sampler::lookup(self.algorithm).is_some_and(Algorithm::learns)
    }
}

/// All of `VARIANTS`, and each other private sampler as it comes: none is left out.
pub fn ways() -> Vec<Variant> {
    let named = |a: &&Algorithm| VARIANTS.iter().any(|v| v.algorithm == a.name);
    let others = ALGORITHMS.iter().filter(|a| a.is_private() && !named(a));
    let others = others.map(|a| variant(a.name, "as it comes", [0.05, 0.05], |_| {}));
    VARIANTS.into_iter().chain(others).collect()
}

const HALF: Option<Real> = Some(Real::exact(0.5));

const fn variant(
    algorithm: &'static str,
    what: &'static str,
    seen: [f64; 2],
    adjust: fn(&mut PlanRequest),
) -> Variant {
    Variant {
        algorithm,
        what,
        seen,
        adjust,
        looked_at: None,
    }
}

/// Draws say little beside what was learnt, and of that the audit sees the end alone: what the
/// rounds before released is in it as far as the filter weighs it.
const fn laplace(
    what: &'static str,
    seen: [f64; 2],
    looked_at: (&'static str, &'static [&'static str]),
) -> Variant {
    Variant {
        looked_at: Some(looked_at),
        ..variant("dp-laplace", what, seen, |r| {
            r.iterations = Iterations::Fixed(1);
            // Under add-remove a guess.
            r.records = Some(CALM as u64 + 2);
        })
    }
}

/// Ordinary records about the one that is attacked, where a run learns in steps as long as the
/// number of records allows: enough to be seen above the noise of histograms, so that clip bounds
/// and coordinates are about the same in all runs.
const CALM: usize = 250;

/// Of each test only the outcome is seen, so there are more of them.
fn barker(request: &mut PlanRequest, size: u64, records: u64) {
    request.iterations = Iterations::Fixed(20);
    request.settings.batch_size = Some(size);
    request.records = Some(records);
}

/// Most is spent on what comes after the start.
fn learning(request: &mut PlanRequest, iterations: u64, gradients_per_draw: u64) {
    request.settings.start_share = Some(0.1);
    request.iterations = Iterations::Fixed(iterations);
    request.settings.gradients_per_draw = Some(gradients_per_draw);
}

fn stochastic(request: &mut PlanRequest, step_size: f64, rate: Option<Real>) {
    request.settings.step_size = Some(step_size);
    request.settings.batch_rate = rate.or(Some(Real::ONE));
}

/// How a run is to spend its mu.
#[derive(Debug, Clone, Copy)]
pub struct Spending {
    /// The mu of Gaussian differential privacy of the whole run.
    pub mu: f64,
    /// The share of mu^2 that goes to gradients, where a sampler asks for ratios as well.
    pub gradients: f64,
    pub relation: Relation,
    /// Units of three rows each.
    pub shared_units: bool,
    pub chains: u64,
    pub iterations: u64,
}

impl Audited {
    /// With settings that give away as much as can be: one leapfrog step, so that each
    /// accepted draw tells the gradient that it was made from; clip bounds so small that
    /// noise hardly ever rejects, or, where the noise drives the dynamics, that it is no
    /// more than they need.
    ///
    /// # Errors
    ///
    /// The sampler cannot be planned so.
    pub fn variant(variant: &Variant, spending: Spending) -> Result<Audited, PlanError> {
        let Spending {
            mu,
            gradients,
            relation,
            shared_units,
            chains,
            iterations,
        } = spending;
        let source = variant.looked_at.map(|(source, _)| source);
        let algorithm = sampler::lookup(variant.algorithm).expect("a sampler");
        let look = |source| algorithm.look(&model(source), shared_units);
        let facts = source.and_then(|source| look(source).unwrap_or_else(|e| panic!("{e}")));
        let request = |gradient, log_ratio| {
            let mut request = PlanRequest {
                algorithm,
                relation,
                chains,
                iterations: Iterations::Fixed(iterations),
                settings: Audited::request(1)
                    .settings
                    .leapfrog_steps(1)
                    .clip_gradient(1e3)
                    .tau_gradient(gradient)
                    .tau_log_ratio(log_ratio),
                ..Audited::request(1)
            };
            (variant.adjust)(&mut request);
            request.facts = facts.clone();
            request.shared_units = shared_units;
            request
        };
        // How often it asks for what, from a plan with any noise.
        let drafted = request(10.0, 10.0);
        let plan = match Plan::new(drafted.clone()) {
            Ok(plan) => plan,
            // Its noise is what the budget comes to, and its step what it finds.
            Err(PlanError::Settings(_)) => {
                let delta = Real::from(0.01);
                let all = Gaussian::of_sensitivity("all", mu, 1.0).expect("an event");
                let budget = account(&[Event::Gaussian(all)], relation, Query::Epsilon { delta });
                let epsilon = budget.unwrap_or_else(|e| panic!("{e}")).epsilon;
                let plan = Plan::new(PlanRequest {
                    epsilon: Real::from(epsilon),
                    delta,
                    settings: Settings {
                        tau_gradient: None,
                        tau_log_ratio: None,
                        step_size: None,
                        noise_split: Some(gradients),
                        ..drafted.settings
                    },
                    ..drafted
                })?;
                return Ok(Audited::planned(plan, source, shared_units));
            }
            Err(error) => return Err(error),
        };
        let lines = || plan.lines.iter().map(|line| &line.line);
        let kinds = [Question::Gradient, Question::LogRatio]
            .map(|question| lines().any(|line| line.question == question));
        let tau = |question, share: f64| {
            let share = if kinds == [true, true] { share } else { 1.0 };
            let of_kind = lines().filter(|line| line.question == question);
            let count: u64 = of_kind.map(|line| line.count).sum();
            (count.max(1) as f64 / share).sqrt() / mu
        };
        let gradient = tau(Question::Gradient, gradients);
        let log_ratio = tau(Question::LogRatio, 1.0 - gradients);
        // The noise of a log-ratio has standard deviation `RATIO_NOISE` at a step of
        // length 1, and that of a gradient is a hundredth of it.
        let factor = relation.sensitivity(Real::ONE).to_f64();
        let weight = lines()
            .map(|line| line.weight(&drafted))
            .fold(1.0, f64::max);
        // What the dynamics need falls with the clip bound.
        let needed = |noise| match noise {
            Noise::AtLeast(least) => Some(1.01 * least / gradient * drafted.clip_gradient()),
            Noise::Share(_) | Noise::Fixed => None,
        };
        let needed = lines().filter_map(|line| needed(line.noise));
        let needed = needed.reduce(f64::max);
        let plan = Plan::new(PlanRequest {
            settings: request(gradient, log_ratio)
                .settings
                .clip_log_ratio(RATIO_NOISE / (factor * log_ratio * weight))
                .clip_gradient(needed.unwrap_or(RATIO_NOISE / 100.0 / (factor * gradient))),
            ..request(gradient, log_ratio)
        })?;
        Ok(Audited::planned(plan, source, shared_units))
    }

    /// Settings that suit an audit of any sampler: a budget that refuses nothing.
    pub fn request(dimension: usize) -> PlanRequest {
        let delta = "1e-6".parse().expect("a number");
        PlanRequest {
            chains: 1,
            settings: Settings::new().step_size(1.0),
            ..PlanRequest::new(Real::from(1e4), delta, dimension)
        }
    }

    /// Any planned run, about the neighbours that are farthest apart.
    fn planned(plan: Plan, source: Option<&str>, shared_units: bool) -> Audited {
        let request = &plan.request;
        let usual = if request.dimension == 1 { MEAN } else { LINE };
        let model = model(source.unwrap_or(usual));
        let calm = if source.is_some() { CALM } else { 0 };
        let initial = vec![0.0; request.dimension as usize];
        let others = request.records.map_or(0, |n| n as usize - 1);
        let line = plan.lines.first().map(|planned| &planned.line);
        let (question, subsampling) = line.map(|l| (l.question, l.subsampling)).expect("a line");
        let (one, other) = match (question, subsampling) {
            (Question::Barker, _) => lone_pair(&model, others),
            (_, Subsampling::FixedSize(_)) => opposed_pair(&model, others),
            _ => loud_pair(&model, request.relation, calm),
        };
        let vault = |table: Table| {
            if shared_units {
                table.in_units(3).vault(&model)
            } else {
                table.vault(&model)
            }
        };
        Audited {
            vaults: [one, other].map(vault),
            initial,
            plan,
        }
    }

    /// The claim for the events that a run has charged.
    pub fn claim(&self) -> Claim {
        let (_, charged, learnt) = self.run(false, 0);
        // A start that sees nothing above its noise asks for less, and all of it stays charged.
        let events = match learnt {
            None => &charged,
            Some(_) => &self.plan.events,
        };
        Claim::of(events, self.plan.request.relation).unwrap_or_else(|e| panic!("{e}"))
    }

    /// The events on a run's meter in the end.
    pub fn charged(&self) -> Vec<Event> {
        self.run(false, 0).1
    }

    /// Whether the draws are independent, of a run that learnt before them.
    pub fn is_independent(&self, run: u64) -> Option<bool> {
        self.run(false, run)
            .2
            .map(|learnt| learnt.draws_are_independent(&self.plan))
    }

    /// The results of learning before the draws; these as steps from one to the next, and ln of acceptance
    /// statistics.
    pub fn transcript(&self, other: bool, run: u64) -> Vec<f64> {
        self.run(other, run).0
    }

    fn run(&self, other: bool, run: u64) -> (Vec<f64>, Vec<Event>, Option<Arc<dyn Beginning>>) {
        let vault = &self.vaults[usize::from(other)];
        let meter = NotPrivate::acknowledged().meter(self.plan.events.clone());
        let settings = PrivateSettings {
            initial: Initial::Points(vec![self.initial.clone()]),
            ..PrivateSettings::new(
                0,
                SEED,
                PrivateRng::insecure(run, NotPrivate::acknowledged()),
            )
        };
        let learnt = Learnt(Mutex::new(None));
        let chains = sample_privately(vault, &self.plan, &meter, &settings, &learnt)
            .unwrap_or_else(|e| panic!("{e}"));
        let start = learnt.0.into_inner().expect("no chain has panicked");
        let mut numbers = Vec::new();
        if let Some(start) = &start {
            numbers.extend(start.numbers());
        }
        for chain in chains {
            let mut before = self.initial.clone();
            for draw in chain.draws {
                numbers.extend(draw.values.iter().zip(&before).map(|(x, b)| x - b));
                numbers.push(draw.accept_stat.ln().max(-50.0));
                before = draw.values;
            }
        }
        (numbers, meter.spent(), start)
    }
}

struct Learnt(Mutex<Option<Arc<dyn Beginning>>>);

impl Observer for Learnt {
    fn iteration(&self, _: usize, _: u64, _: &Draw) {}

    fn learnt(&self, start: &Arc<dyn Beginning>) {
        *self.0.lock().expect("no chain has panicked") = Some(start.clone());
    }
}

/// Of the public randomness.
const SEED: u64 = 3;

/// In nats. Small, so that most proposals are accepted, but above the least noise of the
/// lattice, 1/16, for most lengths of a step.
const RATIO_NOISE: f64 = 0.2;
