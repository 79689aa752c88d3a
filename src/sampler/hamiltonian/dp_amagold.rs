//! DP-AMAGOLD: Hamiltonian dynamics with friction on gradients of batches, and one test for each
//! trajectory.
//!
//! Zhang, Cooper and De Sa 2020, "AMAGOLD: Amortized Metropolis adjustment for efficient stochastic
//! gradient MCMC", Algorithm 2, with noisy gradients and a penalty test. In the notation of
//! docs/samplers.md, per iteration:
//!
//! ```text
//! p ~ N(0, M);  t = theta + h/2 M^-1 p;  w = 0;  b = h F/2
//! repeat J:  gt = G(t), of a fresh batch;  p' = ((1 - b) p + h gt + 2 sqrt(b) N(0, M)) / (1 + b)
//!   w += h/2 gt M^-1 (p + p');  p = p';  t += h M^-1 p, after the last one h/2 M^-1 p
//! log a = T R(theta, t) + q(t) - q(theta) - w - T^2 s^2 / 2
//! accept with probability min(1, e^log a)
//! ```
//!
//! F is the friction, and w the work that the gradients did, noise and all.
//!
//! # Cost
//!
//! k iterations release k J gradients and k log-ratios of all records. With batches of rate r
//! (`--batch-rate`) a gradient's charge falls with r^2 about, and its noise is divided by r: at the
//! same cost it has the noise of a gradient of all records, and that of its batch. What is saved is
//! reading records.
//!
//! # What it leaves invariant
//!
//! Exactly the (clipped) posterior, up to floating-point reversibility. A gradient's batch and noise
//! do not depend on the momenta, and the way back visits the same points, where it sees the same ones
//! with the same probability. Of a step p -> p' and that of the way back, -p' -> -p, the densities
//! have the ratio exp(K(p') - K(p) - h/2 gt M^-1 (p + p')), so that the kinetic energies cancel and w
//! is left. What takes the place of R in the test is noisy, which the penalty repairs as in DP-HMC
//! ([`crate::privacy::penalty`]): the work is known, so no other term is noisy. Without a penalty, a
//! noisy R would heat the posterior.
//!
//! # Differences from the source
//!
//! Momenta are drawn anew for each iteration, which the source allows; so nothing is to be reversed on
//! rejection. F is twice the source's beta.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::sampler::chain::checkpoint::{read, written};
use crate::sampler::chain::exact_number;
use crate::sampler::contract::metric::{Metric, MetricForm};
use crate::sampler::contract::oracle::{Oracle, Ratio, SampleError};
use crate::sampler::contract::plan::{Plan, PlanError};
use crate::sampler::contract::request::PlanRequest;
use crate::sampler::contract::schedule::{Line, Noise, Question, over_chains};
use crate::sampler::contract::settings::{Setting, Unset};
use crate::sampler::contract::{Algorithm, Kind, Sampler, Step, Walker};
use crate::sampler::hamiltonian::dp_hmc::{self, add_scaled};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "dp-amagold",
    summary: "Hamiltonian dynamics with friction on gradients of batches, and a penalty test for each trajectory (Zhang et al. 2020)",
    kind: Kind::Private(&DpAmagold),
    columns: &[],
    settings: &[
        Setting::step_size.or(Unset::WARM_UP),
        Setting::leapfrog_steps.or(Unset::Number(5.0)),
        Setting::friction.or(Unset::Found("0.1 / step size")),
        Setting::batch_rate.or(Unset::ALL_RECORDS),
        Setting::clip_gradient.or(Unset::CLIP),
        Setting::clip_log_ratio.or(Unset::CLIP),
        Setting::noise_split.or(Unset::Number(0.5)),
        Setting::tau_gradient.or(Unset::BUDGET),
        Setting::tau_log_ratio.or(Unset::BUDGET),
        Setting::metric.or(Unset::Form(MetricForm::Unit)),
        Setting::target_acceptance.or(Unset::Number(dp_hmc::TARGET_ACCEPTANCE)),
    ],
};

/// The lines of the schedule.
const GRADIENTS: usize = 0;
const LOG_RATIOS: usize = 1;

/// Without a setting, this share of the momentum is lost in a step, as by the sghmc samplers.
const LOST: f64 = 0.1;

#[derive(Debug)]
struct DpAmagold;

impl Sampler for DpAmagold {
    fn lines(&self, request: &PlanRequest, iterations: u64) -> Result<Vec<Line>, PlanError> {
        let rate = request.settings.batch_rate;
        let what = match rate {
            None => "gradient",
            Some(_) => "minibatch gradient",
        };
        let split = request.noise_split();
        // Of a batch, so much noise costs less by about the square of the rate.
        let rate = rate.map_or(1.0, |rate| rate.to_f64());
        Ok(vec![
            Line {
                what,
                question: Question::Gradient,
                noise: Noise::Share(split / (rate * rate)),
                count: over_chains(
                    request.leapfrog_steps().checked_mul(iterations),
                    request.chains,
                )?,
                subsampling: request.batches()?,
            },
            Line::log_ratios(Noise::Share(1.0 - split), 1, iterations, request)?,
        ])
    }

    fn warnings(&self, plan: &Plan) -> Vec<String> {
        plan.test_warnings("`step_size`")
    }

    fn default_step_size(&self, _: &PlanRequest) -> f64 {
        0.05
    }

    fn typical_distance(&self, r: &PlanRequest) -> Option<f64> {
        let steps = r.leapfrog_steps() as f64;
        Some(self.step_size(r) * steps * (r.dimension as f64).sqrt())
    }

    fn chain(
        &self,
        plan: &Plan,
        theta: Vec<f64>,
        _: &mut dyn Oracle,
        _: &mut ChaCha8Rng,
    ) -> Box<dyn Walker> {
        let request = &plan.request;
        Box::new(AmagoldWalker {
            steps: request.leapfrog_steps(),
            friction: request.settings.friction,
            state: State {
                step_size: self.step_size(request),
                metric: Metric::Unit,
                theta,
            },
        })
    }
}

struct AmagoldWalker {
    /// J
    steps: u64,
    /// F
    friction: Option<f64>,
    state: State,
}

/// The state of a chain.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    #[serde(with = "exact_number")]
    step_size: f64,
    metric: Metric,
    /// Unconstrained parameters.
    #[serde(with = "exact_number::list")]
    theta: Vec<f64>,
}

impl Walker for AmagoldWalker {
    fn step(&mut self, oracle: &mut dyn Oracle, rng: &mut ChaCha8Rng) -> Result<Step, SampleError> {
        let State {
            step_size: h,
            ref metric,
            ..
        } = self.state;
        let rejected = Step::rejected(h);
        let b = 0.5 * self.friction.map_or(LOST, |friction| h * friction);
        let dimension = oracle.dimension();
        let mut p = metric.momentum(dimension, rng);
        let mut t = self.state.theta.clone();
        let mut work = 0.0;
        for j in 0..self.steps {
            let part = if j == 0 { h / 2.0 } else { h };
            add_scaled(&mut t, part, &metric.velocity(&p));
            // A trajectory that is no longer finite ends, whatever the data are.
            if !t.iter().all(|x| x.is_finite()) {
                return Ok(rejected);
            }
            let gradient = oracle.gradient(GRADIENTS, &t)?;
            let mut both = p.clone();
            let heat = metric.momentum(dimension, rng);
            for ((p, g), heat) in p.iter_mut().zip(&gradient).zip(heat) {
                *p = ((1.0 - b) * *p + h * g + 2.0 * b.sqrt() * heat) / (1.0 + b);
            }
            add_scaled(&mut both, 1.0, &p);
            let along = metric.velocity(&both);
            work += 0.5 * h * along.iter().zip(&gradient).map(|(v, g)| v * g).sum::<f64>();
        }
        add_scaled(&mut t, h / 2.0, &metric.velocity(&p));
        let prior_ratio = oracle.log_prior(&t) - oracle.log_prior(&self.state.theta);
        if !prior_ratio.is_finite() || !work.is_finite() || !t.iter().all(|x| x.is_finite()) {
            return Ok(rejected);
        }
        let ratio = match oracle.log_ratio(LOG_RATIOS, &self.state.theta, &t)? {
            Ratio::Penalised(ratio) => ratio,
            Ratio::Refused => return Ok(rejected),
        };
        let log_a = ratio + prior_ratio - work;
        let accepted = oracle.accept(log_a);
        if accepted {
            self.state.theta = t;
        }
        Ok(Step::tested(log_a, accepted, h))
    }

    fn theta(&self) -> &[f64] {
        &self.state.theta
    }

    fn tune(&mut self, step_size: f64, metric: &Metric) {
        self.state.step_size = step_size;
        self.state.metric = metric.clone();
    }

    fn save(&self) -> Value {
        written(&self.state)
    }

    fn restore(&mut self, saved: &Value) -> Result<(), SampleError> {
        self.state = read(saved)?;
        Ok(())
    }
}
