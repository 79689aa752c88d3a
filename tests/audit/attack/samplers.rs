//! Whole private samplers: what a run gives out on two neighbouring data sets.
//!
//! A transcript is every number that `sample` writes about a run's iterations: draws and
//! acceptance statistics of all chains, warm-up included. The public seed is the same in
//! all runs, so momenta, jitter and initial points are known to the adversary, as
//! PRIVACY.md says they are; noise and acceptance are new each time.

use dpm::accounting::{Event, Relation};
use dpm::sampler::{self, Noise, Question};
use dpm::{
    Initial, Iterations, NoiseChoice, NotPrivate, Plan, PlanRequest, PrivateRng, PrivateSettings,
    Real, Vault, privacy::Subsampling, sample_privately,
};

use super::claim::Claim;
use super::neighbours::{LINE, MEAN, lone_pair, loud_pair, model, opposed_pair};

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
    pub adjust: fn(&mut PlanRequest),
}

/// Every way in which every private sampler asks; a new one is a line here.
pub const VARIANTS: [Variant; 15] = [
    variant("dp-hmc", "gradients reused", |_| {}),
    variant("dp-hmc", "fresh gradients", |r| r.fresh_gradients = true),
    variant("dp-penalty", "whole", |_| {}),
    variant("dp-penalty", "one component", |r| {
        r.dimension = 3;
        r.one_component = true;
    }),
    variant("dp-penalty", "guided walk", |r| {
        r.dimension = 3;
        r.guided_walk = true;
    }),
    variant("dp-penalty", "Poisson batches", |r| r.batch_rate = HALF),
    variant("dp-penalty", "batches of fixed size", |r| {
        r.records = Some(3);
        r.batch_size = Some(2);
    }),
    variant("dp-barker", "all records", |r| barker(r, 12, 12)),
    variant("dp-barker", "batches", |r| barker(r, 12, 16)),
    variant("dp-sgld", "all records", |r| stochastic(r, 1.0, None)),
    variant("dp-sgld", "Poisson batches", |r| stochastic(r, 1.0, HALF)),
    variant("dp-sgnht", "all records", |r| stochastic(r, 0.01, None)),
    variant("dp-sgnht", "Poisson batches", |r| stochastic(r, 0.01, HALF)),
    variant("dp-sghmc", "all records", |r| stochastic(r, 1.0, None)),
    variant("dp-sghmc", "Poisson batches", |r| stochastic(r, 1.0, HALF)),
];

const HALF: Option<Real> = Some(Real::exact(0.5));

const fn variant(
    algorithm: &'static str,
    what: &'static str,
    adjust: fn(&mut PlanRequest),
) -> Variant {
    Variant {
        algorithm,
        what,
        adjust,
    }
}

/// Of each test only the outcome is seen, so there are more of them.
fn barker(request: &mut PlanRequest, size: u64, records: u64) {
    request.iterations = Iterations::Fixed(20);
    request.batch_size = Some(size);
    request.records = Some(records);
}

fn stochastic(request: &mut PlanRequest, step_size: f64, rate: Option<Real>) {
    request.step_size = Some(step_size);
    request.batch_rate = rate.or(Some(Real::ONE));
}

/// How a run is to spend its mu.
#[derive(Debug, Clone, Copy)]
pub struct Spending {
    /// The mu of Gaussian differential privacy of the whole run.
    pub mu: f64,
    /// The share of mu^2 that goes to gradients, where a sampler asks for ratios as well.
    pub gradients: f64,
    pub relation: Relation,
    pub chains: u64,
    pub iterations: u64,
}

impl Audited {
    /// With settings that give away as much as can be: one leapfrog step, so that each
    /// accepted draw tells the gradient that it was made from; clip bounds so small that
    /// noise hardly ever rejects, or, where the noise drives the dynamics, that it is no
    /// more than they need.
    pub fn variant(variant: &Variant, spending: Spending) -> Audited {
        let Spending {
            mu,
            gradients,
            relation,
            chains,
            iterations,
        } = spending;
        let request = |gradient, log_ratio| {
            let mut request = PlanRequest {
                algorithm: sampler::lookup(variant.algorithm).expect("a sampler"),
                relation,
                chains,
                iterations: Iterations::Fixed(iterations),
                leapfrog_steps: 1,
                clip_gradient: 1e3,
                noise: NoiseChoice::Multipliers {
                    gradient: Some(gradient),
                    log_ratio: Some(log_ratio),
                },
                ..Audited::request(1)
            };
            (variant.adjust)(&mut request);
            request
        };
        // How often it asks for what, from a plan with any noise.
        let drafted = request(10.0, 10.0);
        let plan = Plan::new(drafted.clone()).unwrap_or_else(|e| panic!("{e}"));
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
            Noise::AtLeast(least) => Some(1.01 * least / gradient * drafted.clip_gradient),
            Noise::Share(_) | Noise::Fixed => None,
        };
        let needed = lines().filter_map(|line| needed(line.noise));
        let needed = needed.reduce(f64::max);
        Audited::new(PlanRequest {
            clip_log_ratio: RATIO_NOISE / (factor * log_ratio * weight),
            clip_gradient: needed.unwrap_or(RATIO_NOISE / 100.0 / (factor * gradient)),
            ..request(gradient, log_ratio)
        })
    }

    /// Settings that suit an audit of any sampler: a budget that refuses nothing.
    pub fn request(dimension: usize) -> PlanRequest {
        let delta = "1e-6".parse().expect("a number");
        PlanRequest {
            chains: 1,
            step_size: Some(1.0),
            ..PlanRequest::new(Real::from(1e4), delta, dimension)
        }
    }

    /// Any planned run, about the neighbours that are farthest apart.
    pub fn new(request: PlanRequest) -> Audited {
        let model = model(if request.dimension == 1 { MEAN } else { LINE });
        let initial = vec![0.0; request.dimension as usize];
        let plan = Plan::new(request).unwrap_or_else(|e| panic!("{e}"));
        let request = &plan.request;
        let others = request.records.map_or(0, |n| n as usize - 1);
        let line = plan.lines.first().map(|planned| &planned.line);
        let (question, subsampling) = line.map(|l| (l.question, l.subsampling)).expect("a line");
        let (one, other) = match (question, subsampling) {
            (Question::Barker, _) => lone_pair(&model, others),
            (_, Subsampling::FixedSize(_)) => opposed_pair(&model, others),
            _ => loud_pair(&model, request.relation, 0),
        };
        Audited {
            vaults: [one, other].map(|table| table.vault(&model)),
            initial,
            plan,
        }
    }

    /// What is claimed for what a run charges.
    pub fn claim(&self) -> Claim {
        Claim::of(&self.charged(), self.plan.request.relation).unwrap_or_else(|e| panic!("{e}"))
    }

    /// What a run has on its meter in the end.
    pub fn charged(&self) -> Vec<Event> {
        self.run(false, 0).1
    }

    /// Draws as steps from one to the next, and ln of acceptance statistics.
    pub fn transcript(&self, other: bool, run: u64) -> Vec<f64> {
        self.run(other, run).0
    }

    fn run(&self, other: bool, run: u64) -> (Vec<f64>, Vec<Event>) {
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
        let chains = sample_privately(vault, &self.plan, &meter, &settings, &())
            .unwrap_or_else(|e| panic!("{e}"));
        let mut numbers = Vec::new();
        for chain in chains {
            let mut before = self.initial.clone();
            for draw in chain.draws {
                numbers.extend(draw.values.iter().zip(&before).map(|(x, b)| x - b));
                numbers.push(draw.accept_stat.ln().max(-50.0));
                before = draw.values;
            }
        }
        (numbers, meter.spent())
    }
}

/// Of the public randomness.
const SEED: u64 = 3;

/// In nats. Small, so that most proposals are accepted, but above the least noise of the
/// lattice, 1/16, for most lengths of a step.
const RATIO_NOISE: f64 = 0.2;
