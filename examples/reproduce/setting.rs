//! Samplers with the settings that the papers give them, and the plans that these make.

use std::error::Error;

use dpm::testing::sampler::{Algorithm, Iterations, PlanRequest, lookup};
use dpm::testing::tune::tuned_plan;
use dpm::{Plan, Real, Settings};

use crate::problem::Problem;

/// A sampler of a comparison.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// As tables and figures name it.
    pub label: &'static str,
    pub sampler: Sampler,
}

/// Settings in the papers' notation. Multipliers tau of runs on all records are the authors'
/// code's: times the root of n they are those of the papers, in units of the substitute
/// sensitivity.
#[derive(Debug, Clone, Copy)]
pub enum Sampler {
    Hmc {
        dynamics: Dynamics,
        trajectories: Trajectories,
    },
    /// As `Hmc`, with batches of this rate, if any, whose gradients have the same noise.
    Amagold {
        dynamics: Dynamics,
        friction: f64,
        rate: Option<&'static str>,
    },
    Penalty {
        tau: f64,
        sd: f64,
        b_l: f64,
        /// One-component updates and a guided walk.
        guided: bool,
    },
    BatchPenalty {
        /// Times the variance of one sensitivity, not its standard deviation.
        variance: f64,
        sd: f64,
        b_l: f64,
        batch: Batch,
        guided: bool,
    },
    Barker {
        sd: f64,
        batch: u64,
    },
    Sgld {
        clip: f64,
        /// The code's eta0: drift eta0/n, which is the Langevin step 2 eta0/n.
        eta0: f64,
    },
    Sgnht {
        clip: f64,
        eta0: f64,
        friction: f64,
    },
    /// `dpm sample` with epsilon and delta only.
    Automatic,
    /// A mark for what samplers on clipped gradients can do at best.
    Limit,
}

/// What DP-HMC and DP-AMAGOLD have in common.
#[derive(Debug, Clone, Copy)]
pub struct Dynamics {
    pub tau_l: f64,
    pub tau_g: f64,
    pub eta: f64,
    pub leapfrog: u64,
    pub b_l: f64,
    pub b_g: f64,
}

impl Dynamics {
    /// `steps` is the source's letter for the number of leapfrog steps.
    fn describe(&self, steps: char) -> String {
        let Dynamics {
            tau_l,
            tau_g,
            eta,
            leapfrog,
            b_l,
            b_g,
        } = self;
        format!("tau_l {tau_l}, tau_g {tau_g}, eta {eta}, {steps} {leapfrog}, b_l {b_l}, b_g {b_g}")
    }

    /// On `n` records, with gradients of batches of this rate.
    fn settings(&self, n: f64, rate: f64) -> Settings {
        Settings::new()
            .tau_gradient(self.tau_g * n.sqrt() * rate)
            .tau_log_ratio(self.tau_l * n.sqrt())
            .step_size(self.eta)
            .leapfrog_steps(self.leapfrog)
            .clip_log_ratio(self.b_l)
            .clip_gradient(self.b_g)
    }
}

/// The trajectories, in which the DP-HMC of the sources differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trajectories {
    /// A fresh gradient at the start of each, steps jittered.
    Paper,
    /// The last gradient again, steps of one size.
    Thesis,
    /// The last gradient again, steps jittered: dpm's default.
    Default,
}

#[derive(Debug, Clone, Copy)]
pub enum Batch {
    Fixed(u64),
    /// Each record with this probability.
    Poisson(&'static str),
}

/// Rate of the batches of 1,000 out of 100,000 records of DP-SGLD and DP-SGNHT.
const RATE: &str = "0.01";

/// Under what a sampler is planned.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    pub problem: &'a Problem,
    pub epsilon: f64,
    pub delta: f64,
    pub chains: u64,
    /// No chain is longer, whatever the budget allows.
    pub most_iterations: u64,
}

impl Sampler {
    fn algorithm(&self) -> Result<&'static Algorithm, String> {
        let name = match self {
            Sampler::Hmc { .. } => "dp-hmc",
            Sampler::Amagold { .. } => "dp-amagold",
            Sampler::Automatic => "dp-laplace",
            Sampler::Limit => "dp-langevin",
            Sampler::Penalty { .. } | Sampler::BatchPenalty { .. } => "dp-penalty",
            Sampler::Barker { .. } => "dp-barker",
            Sampler::Sgld { .. } => "dp-sgld",
            Sampler::Sgnht { .. } => "dp-sgnht",
        };
        lookup(name).ok_or_else(|| format!("there is no sampler {name}"))
    }

    /// The settings, for `list`.
    pub fn describe(&self) -> String {
        match *self {
            Sampler::Hmc { dynamics, .. } => dynamics.describe('L'),
            Sampler::Amagold {
                dynamics,
                friction,
                rate,
            } => {
                let rate = rate.map(|rate| format!(", rate {rate}"));
                format!(
                    "{}, F {friction}{}",
                    dynamics.describe('J'),
                    rate.unwrap_or_default()
                )
            }
            Sampler::Penalty { tau, sd, b_l, .. } => format!("tau {tau}, sd {sd}, b_l {b_l}"),
            Sampler::BatchPenalty {
                variance,
                sd,
                b_l,
                batch,
                ..
            } => format!("tau {variance} on the variance, sd {sd}, b_l {b_l}, batches {batch:?}"),
            Sampler::Barker { sd, batch } => format!("sd {sd}, batches of {batch}"),
            Sampler::Sgld { clip, eta0 } => format!("C {clip}, eta0 {eta0}, rate {RATE}"),
            Sampler::Sgnht {
                clip,
                eta0,
                friction,
            } => format!("C {clip}, eta0 {eta0}, A {friction}, rate {RATE}"),
            Sampler::Automatic => "epsilon and delta only".into(),
            Sampler::Limit => "one release at the truth, in the posterior's coordinates".into(),
        }
    }

    /// As many iterations as the budget allows and `terms` want.
    pub fn plan(&self, terms: Terms) -> Result<Plan, Box<dyn Error>> {
        let request = self.request(terms)?;
        if let Sampler::Limit = self {
            return Ok(Plan::new(request)?);
        }
        if let Sampler::Automatic = self {
            return Ok(tuned_plan(request, terms.problem.vault.density().model())?);
        }
        let planned = |iterations| {
            Plan::new(PlanRequest {
                iterations,
                ..request.clone()
            })
        };
        // Noise is settled: what is cut short costs less.
        let longest = planned(Iterations::Max)?;
        if longest.iterations_per_chain <= terms.most_iterations {
            Ok(longest)
        } else {
            Ok(planned(Iterations::Fixed(terms.most_iterations))?)
        }
    }

    fn request(&self, terms: Terms) -> Result<PlanRequest, Box<dyn Error>> {
        let Terms {
            problem,
            epsilon,
            delta,
            chains,
            most_iterations,
        } = terms;
        let records = problem.n;
        let n = records as f64;
        let dimension = problem.vault.density().dimension();
        let plain = PlanRequest {
            algorithm: self.algorithm()?,
            chains,
            records: Some(records as u64),
            temperature: problem.temperature,
            ..PlanRequest::new(Real::from(epsilon), Real::from(delta), dimension)
        };
        let request_with = |settings| PlanRequest {
            settings,
            ..plain.clone()
        };
        Ok(match *self {
            Sampler::Hmc {
                dynamics,
                trajectories,
            } => request_with(
                (dynamics.settings(n, 1.0))
                    .fresh_gradients(trajectories == Trajectories::Paper)
                    .fixed_steps(trajectories == Trajectories::Thesis),
            ),
            Sampler::Amagold {
                dynamics,
                friction,
                rate,
            } => {
                let rate = rate.map(str::parse::<Real>).transpose()?;
                let settings = dynamics
                    .settings(n, rate.map_or(1.0, |rate| rate.to_f64()))
                    .friction(friction);
                request_with(match rate {
                    Some(rate) => settings.batch_rate(rate),
                    None => settings,
                })
            }
            Sampler::Penalty {
                tau,
                sd,
                b_l,
                guided,
            } => request_with(walk(tau * n.sqrt(), sd, b_l, guided)),
            Sampler::BatchPenalty {
                variance,
                sd,
                b_l,
                batch,
                guided,
            } => {
                let settings = walk(variance.sqrt(), sd, b_l, guided);
                request_with(match batch {
                    Batch::Poisson(rate) => settings.batch_rate(rate.parse::<Real>()?),
                    Batch::Fixed(size) => settings.batch_size(size),
                })
            }
            Sampler::Barker { sd, batch } => {
                request_with(Settings::new().step_size(sd).batch_size(batch))
            }
            Sampler::Sgld { clip, eta0 } => request_with(
                Settings::new()
                    .step_size(2.0 * eta0 / n)
                    .clip_gradient(clip)
                    .batch_rate(RATE.parse::<Real>()?),
            ),
            Sampler::Sgnht {
                clip,
                eta0,
                friction,
            } => request_with(
                Settings::new()
                    .step_size(eta0 / n)
                    .friction(friction)
                    .clip_gradient(clip)
                    .batch_rate(RATE.parse::<Real>()?),
            ),
            // One release for nearly all of the budget.
            Sampler::Limit => PlanRequest {
                algorithm: plain.algorithm,
                records: plain.records,
                temperature: plain.temperature,
                chains: 1,
                iterations: Iterations::Fixed(1),
                settings: Settings::new().gradients_per_draw(1).start_share(1e-4),
                ..PlanRequest::automatic(plain.epsilon, plain.delta, dimension)
            },
            Sampler::Automatic => {
                let automatic = PlanRequest::automatic(plain.epsilon, plain.delta, dimension);
                let Iterations::Fixed(usual) = automatic.iterations else {
                    return Err("the default is a fixed number of iterations".into());
                };
                PlanRequest {
                    chains,
                    records: plain.records,
                    temperature: plain.temperature,
                    iterations: Iterations::Fixed(usual.min(most_iterations)),
                    ..automatic
                }
            }
        })
    }
}

/// A random walk with a penalty test.
fn walk(tau: f64, sd: f64, b_l: f64, guided: bool) -> Settings {
    Settings::new()
        .tau_log_ratio(tau)
        .step_size(sd)
        .clip_log_ratio(b_l)
        .one_component(guided)
        .guided_walk(guided)
}
