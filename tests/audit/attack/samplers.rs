//! Whole private samplers: what a run gives out on two neighbouring data sets.
//!
//! A transcript is every number that `sample` writes about a run's iterations: draws and
//! acceptance statistics of all chains, warm-up included. The public seed is the same in
//! all runs, so momenta, jitter and initial points are known to the adversary, as
//! PRIVACY.md says they are; noise and acceptance are new each time.

use dpm::accounting::{Event, Meter, Relation};
use dpm::sampler::{self, Question};
use dpm::{
    Initial, Iterations, Model, NoiseChoice, Plan, PlanRequest, PrivateRng, PrivateSettings, Real,
    Vault, sample_privately,
};

use super::claim::Claim;
use super::neighbours::{MEAN, loud_pair, model};

/// A private sampler on two neighbouring data sets.
pub struct Audited {
    pub plan: Plan,
    vaults: [Vault; 2],
    initial: Vec<f64>,
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
    /// The sampler of that name, with settings that give away as much as can be: one
    /// leapfrog step, so that each accepted draw tells the gradient that it was made
    /// from, and clip bounds so small that noise hardly ever rejects.
    pub fn of(algorithm: &str, spending: Spending) -> Audited {
        let Spending {
            mu,
            gradients,
            relation,
            chains,
            iterations,
        } = spending;
        let request = |gradient, log_ratio| PlanRequest {
            algorithm: sampler::lookup(algorithm).expect("a sampler"),
            relation,
            chains,
            iterations: Iterations::Fixed(iterations),
            leapfrog_steps: 1,
            noise: NoiseChoice::Multipliers {
                gradient: Some(gradient),
                log_ratio: Some(log_ratio),
            },
            ..Audited::request(1)
        };
        // How often it asks for what, from a plan with any noise.
        let plan = Plan::new(request(10.0, 10.0)).unwrap_or_else(|e| panic!("{e}"));
        let tau = |question| {
            let lines = plan.lines.iter();
            let counts = lines
                .filter(|line| line.line.question == question)
                .map(|line| line.line.count);
            let share = match question {
                _ if plan.lines.len() == 1 => 1.0,
                Question::Gradient => gradients,
                Question::LogRatio => 1.0 - gradients,
                Question::Barker => unreachable!("the noise of Barker's test is fixed"),
            };
            (counts.sum::<u64>().max(1) as f64 / share).sqrt() / mu
        };
        let (gradient, log_ratio) = (tau(Question::Gradient), tau(Question::LogRatio));
        // The noise of a log-ratio has standard deviation `RATIO_NOISE` at a step of
        // length 1, and that of a gradient is a hundredth of it.
        let factor = relation.sensitivity(Real::ONE).to_f64();
        Audited::new(PlanRequest {
            clip_log_ratio: RATIO_NOISE / (factor * log_ratio),
            clip_gradient: RATIO_NOISE / 100.0 / (factor * gradient),
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
        let model: Model = model(MEAN);
        let (one, other) = loud_pair(&model, request.relation, 0);
        Audited {
            plan: Plan::new(request).unwrap_or_else(|e| panic!("{e}")),
            vaults: [one, other].map(|table| table.vault(&model)),
            initial: vec![0.0],
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
        let meter = Meter::new(self.plan.events.clone());
        let settings = PrivateSettings {
            initial: Initial::Points(vec![self.initial.clone()]),
            ..PrivateSettings::new(0, SEED, PrivateRng::from_insecure_seed(run))
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
