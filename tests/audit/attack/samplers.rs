//! Whole private samplers: what a run gives out on two neighbouring data sets.
//!
//! A transcript is every number that `sample` writes about a run's iterations: draws and
//! acceptance statistics of all chains, warm-up included. The public seed is the same in
//! all runs, so momenta, jitter and initial points are known to the adversary, as
//! PRIVACY.md says they are; noise and acceptance are new each time.

use dpm::accounting::{Event, Meter, Relation};
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

/// How a run of DP-HMC is to spend its mu.
#[derive(Debug, Clone, Copy)]
pub struct Spending {
    /// The mu of Gaussian differential privacy of the whole run.
    pub mu: f64,
    /// The share of mu^2 that goes to gradients.
    pub gradients: f64,
    pub relation: Relation,
    pub chains: u64,
    pub iterations: u64,
}

impl Audited {
    /// DP-HMC with one leapfrog step, so that each accepted draw gives away the gradient
    /// it was made from, and with clip bounds so small that noise hardly ever rejects.
    pub fn dp_hmc(spending: Spending) -> Audited {
        let Spending {
            mu,
            gradients,
            relation,
            chains,
            iterations,
        } = spending;
        let tau = |count: u64, share: f64| (count as f64 / share).sqrt() / mu;
        let request = PlanRequest {
            relation,
            chains,
            iterations: Iterations::Fixed(iterations),
            leapfrog_steps: 1,
            noise: NoiseChoice::Multipliers {
                gradient: tau(chains * (iterations + 1), gradients),
                log_ratio: tau(chains * iterations, 1.0 - gradients),
            },
            ..Audited::request(1)
        };
        // The noise of a log-ratio has standard deviation `RATIO_NOISE` at a step of
        // length 1, and that of a gradient is a hundredth of it.
        let NoiseChoice::Multipliers {
            gradient,
            log_ratio,
        } = request.noise
        else {
            unreachable!("made above")
        };
        let factor = relation.sensitivity(Real::ONE).to_f64();
        Audited::new(PlanRequest {
            clip_log_ratio: RATIO_NOISE / (factor * log_ratio),
            clip_gradient: RATIO_NOISE / 100.0 / (factor * gradient),
            ..request
        })
    }

    /// Settings that suit an audit of any sampler: a budget that refuses nothing.
    pub fn request(dimension: usize) -> PlanRequest {
        let delta = "1e-6".parse().expect("a number");
        PlanRequest {
            chains: 1,
            step_size: 1.0,
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
            num_warmup: 0,
            initial: Initial::Points(vec![self.initial.clone()]),
            seed: SEED,
            noise: PrivateRng::from_insecure_seed(run),
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
