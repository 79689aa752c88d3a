//! DP-HMC: Hamiltonian Monte Carlo with noisy gradients and a penalty test.
//!
//! Räisä, Koskela and Honkela 2021, "Differentially private Hamiltonian Monte
//! Carlo". In the notation of docs/samplers.md, per iteration:
//!
//! ```text
//! h = jitter_i * eta;  p0 ~ N(0, M);  p = p0;  t = theta;  gt = g
//! repeat L:  p += h/2 gt;  t += h M^-1 p;  gt = G(t);  p += h/2 gt
//! log a = K(p0) - K(p) + T R(theta, t) + q(t) - q(theta) - T^2 s^2 / 2
//! accept with probability min(1, e^log a):  theta = t, g = gt
//! else keep theta and g, noise and all
//! ```
//!
//! # Cost
//!
//! k iterations release k L + 1 gradients and k log-ratios. The paper draws the
//! first gradient of each trajectory anew: k (L + 1) gradients
//! (`fresh_gradients`).
//!
//! # What it leaves invariant
//!
//! Exactly the (clipped) posterior, for both variants, up to the floating-point
//! reversibility of the leapfrog, with jitter or without it (`fixed_steps`). The
//! noise of the test is compensated by the penalty (the discrete noise keeps the
//! identity exact, see [`crate::privacy::penalty`]). With a reused gradient the
//! chain is one on (theta, G), with target pi(theta) N(G; g(theta), sigma^2): the
//! noise terms along a trajectory enter the forward and the reversed path as the
//! same product, so the acceptance ratio is unchanged.
//!
//! # Errata of the source
//!
//! The authors' code writes tau * sqrt(n) for the paper's tau; here tau is the
//! paper's.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::privacy::Subsampling;
use crate::sampler::chain::checkpoint::{read, written};
use crate::sampler::chain::exact_number;
use crate::sampler::contract::Reference;
use crate::sampler::contract::metric::{Metric, MetricForm};
use crate::sampler::contract::oracle::{Oracle, Ratio, SampleError};
use crate::sampler::contract::plan::{Plan, PlanError};
use crate::sampler::contract::request::PlanRequest;
use crate::sampler::contract::schedule::{Line, Noise, Question, over_chains};
use crate::sampler::contract::settings::{Setting, Unset};
use crate::sampler::contract::{Algorithm, Kind, Sampler, Step, Walker};
use crate::sampler::hamiltonian::hmc;
use crate::sampler::hamiltonian::jitter::Jitter;

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "dp-hmc",
    summary: "Hamiltonian Monte Carlo with noisy gradients and a penalty test (Räisä et al. 2021)",
    kind: Kind::Private(&DpHmc),
    columns: &[],
    settings: &[
        Setting::step_size.or(Unset::WARM_UP),
        Setting::leapfrog_steps.or(Unset::Number(5.0)),
        Setting::fresh_gradients.or(Unset::Off),
        Setting::fixed_steps.or(Unset::Off),
        Setting::clip_gradient.or(Unset::CLIP),
        Setting::clip_log_ratio.or(Unset::CLIP),
        Setting::noise_split.or(Unset::Number(0.5)),
        Setting::tau_gradient.or(Unset::BUDGET),
        Setting::tau_log_ratio.or(Unset::BUDGET),
        Setting::metric.or(Unset::Form(MetricForm::Unit)),
        Setting::target_acceptance.or(Unset::Number(TARGET_ACCEPTANCE)),
    ],
};

pub(crate) const CLIPPED: Algorithm = Algorithm {
    name: "clipped-hmc",
    summary: "dp-hmc's dynamics on clipped values without noise (NOT PRIVATE), to show the effect of clipping alone",
    kind: Kind::Clipped(&DpHmc),
    columns: &[],
    settings: &[
        Setting::step_size.or(Unset::WARM_UP),
        Setting::leapfrog_steps.or(Unset::Number(5.0)),
        Setting::fixed_steps.or(Unset::Off),
        Setting::clip_gradient.or(Unset::CLIP),
        Setting::clip_log_ratio.or(Unset::CLIP),
        Setting::metric.or(Unset::Form(MetricForm::Unit)),
        // Without noise there is no penalty.
        Setting::target_acceptance.or(Unset::Number(hmc::TARGET_ACCEPTANCE)),
    ],
};

/// Below the 0.65 to 0.8 of exact HMC, since the penalty rejects as well: with a noise of 1 nat, at
/// best 0.62 of the proposals are accepted.
pub(super) const TARGET_ACCEPTANCE: f64 = 0.5;

/// The lines of the schedule.
const GRADIENTS: usize = 0;
const LOG_RATIOS: usize = 1;

#[derive(Debug)]
struct DpHmc;

impl Sampler for DpHmc {
    fn lines(&self, request: &PlanRequest, iterations: u64) -> Result<Vec<Line>, PlanError> {
        let steps = request.leapfrog_steps();
        let gradients = if request.settings.fresh_gradients == Some(true) {
            steps.checked_add(1).and_then(|l| l.checked_mul(iterations))
        } else {
            steps.checked_mul(iterations).and_then(|n| n.checked_add(1))
        };
        let split = request.noise_split();
        Ok(vec![
            Line {
                what: "gradient",
                question: Question::Gradient,
                noise: Noise::Share(split),
                count: over_chains(gradients, request.chains)?,
                subsampling: Subsampling::All,
            },
            Line::log_ratios(Noise::Share(1.0 - split), 1, iterations, request)?,
        ])
    }

    fn warnings(&self, plan: &Plan) -> Vec<String> {
        let mut warnings = plan.test_warnings("`step_size`");
        let gradient_noise = plan.gradient_noise();
        let kick = 0.5 * self.step_size(&plan.request) * gradient_noise;
        if kick > 2.0 {
            warnings.push(format!(
                "gradient noise (standard deviation {gradient_noise:.1}) changes the momentum by about {kick:.1} per step, more than the momentum itself: the dynamics will be mostly noise"
            ));
        }
        warnings
    }

    fn default_step_size(&self, _: &PlanRequest) -> f64 {
        0.05
    }

    /// Momenta of size 1 over L steps, jittered to half the step on average.
    fn typical_distance(&self, r: &PlanRequest) -> Option<f64> {
        Some(0.5 * self.step_size(r) * r.leapfrog_steps() as f64 * (r.dimension as f64).sqrt())
    }

    fn chain(
        &self,
        plan: &Plan,
        theta: Vec<f64>,
        oracle: &mut dyn Oracle,
        rng: &mut ChaCha8Rng,
    ) -> Box<dyn Walker> {
        self.walker(&plan.request, theta, oracle, rng)
    }
}

impl Reference for DpHmc {
    fn walker(
        &self,
        r: &PlanRequest,
        theta: Vec<f64>,
        oracle: &mut dyn Oracle,
        rng: &mut ChaCha8Rng,
    ) -> Box<dyn Walker> {
        Box::new(HmcWalker {
            settings: Settings {
                step_size: self.step_size(r),
                leapfrog_steps: r.leapfrog_steps() as usize,
                fresh_gradients: r.settings.fresh_gradients == Some(true),
                fixed_steps: r.settings.fixed_steps == Some(true),
                metric: Metric::Unit,
            },
            jitter: Jitter::new(rng),
            state: init(theta, oracle),
        })
    }
}

struct HmcWalker {
    settings: Settings,
    jitter: Jitter,
    state: State,
}

impl Walker for HmcWalker {
    fn step(&mut self, oracle: &mut dyn Oracle, rng: &mut ChaCha8Rng) -> Result<Step, SampleError> {
        let (next, info) = step(&self.state, oracle, &self.settings, &mut self.jitter, rng)?;
        self.state = next;
        Ok(info)
    }

    fn theta(&self) -> &[f64] {
        &self.state.theta
    }

    fn tune(&mut self, step_size: f64, metric: &Metric) {
        self.settings.step_size = step_size;
        self.settings.metric = metric.clone();
    }

    fn save(&self) -> Value {
        written(&Saved {
            step_size: self.settings.step_size,
            metric: self.settings.metric.clone(),
            jitter: self.jitter.clone(),
            state: self.state.clone(),
        })
    }

    fn restore(&mut self, saved: &Value) -> Result<(), SampleError> {
        let saved: Saved = read(saved)?;
        self.settings.step_size = saved.step_size;
        self.settings.metric = saved.metric;
        self.jitter = saved.jitter;
        self.state = saved.state;
        Ok(())
    }

    fn first_release(&self) -> Option<usize> {
        (self.state.gradient.is_none() && !self.settings.fresh_gradients).then_some(GRADIENTS)
    }
}

/// The state of a chain.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    #[serde(with = "exact_number")]
    step_size: f64,
    metric: Metric,
    jitter: Jitter,
    state: State,
}

/// The settings of an iteration.
#[derive(Debug, Clone)]
struct Settings {
    /// eta: the largest step.
    step_size: f64,
    /// L
    leapfrog_steps: usize,
    fresh_gradients: bool,
    /// Without jitter.
    fixed_steps: bool,
    metric: Metric,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    /// Unconstrained parameters.
    #[serde(with = "exact_number::list")]
    theta: Vec<f64>,
    /// log prior + log Jacobian at theta.
    #[serde(with = "exact_number")]
    log_prior: f64,
    /// The noisy gradient that belongs to theta, noise and all.
    #[serde(with = "exact_number::option_list")]
    gradient: Option<Vec<f64>>,
}

fn init(theta: Vec<f64>, oracle: &mut dyn Oracle) -> State {
    State {
        log_prior: oracle.log_prior(&theta),
        theta,
        gradient: None,
    }
}

/// One iteration.
fn step(
    state: &State,
    oracle: &mut dyn Oracle,
    settings: &Settings,
    jitter: &mut Jitter,
    rng: &mut ChaCha8Rng,
) -> Result<(State, Step), SampleError> {
    let share = if settings.fixed_steps {
        1.0
    } else {
        jitter.next()
    };
    let h = share * settings.step_size;
    let metric = &settings.metric;
    let p0 = metric.momentum(oracle.dimension(), rng);
    let (mut p, mut t) = (p0.clone(), state.theta.clone());
    let start = match &state.gradient {
        Some(gradient) if !settings.fresh_gradients => gradient.clone(),
        _ => oracle.gradient(GRADIENTS, &t)?,
    };
    let kept = State {
        gradient: Some(start.clone()),
        ..state.clone()
    };
    let rejected = Step::rejected(h);
    let mut gradient = start;
    for _ in 0..settings.leapfrog_steps {
        add_scaled(&mut p, h / 2.0, &gradient);
        add_scaled(&mut t, h, &metric.velocity(&p));
        // A trajectory that is no longer finite ends, whatever the data are.
        if !t.iter().all(|x| x.is_finite()) {
            return Ok((kept, rejected));
        }
        gradient = oracle.gradient(GRADIENTS, &t)?;
        add_scaled(&mut p, h / 2.0, &gradient);
    }
    let log_prior = oracle.log_prior(&t);
    let energy = metric.kinetic_energy(&p0) - metric.kinetic_energy(&p);
    if !log_prior.is_finite() || !energy.is_finite() {
        return Ok((kept, rejected));
    }
    let ratio = match oracle.log_ratio(LOG_RATIOS, &kept.theta, &t)? {
        Ratio::Penalised(ratio) => ratio,
        Ratio::Refused => return Ok((kept, rejected)),
    };
    let log_a = energy + ratio + log_prior - kept.log_prior;
    let accepted = oracle.accept(log_a);
    let info = Step::tested(log_a, accepted, h);
    if accepted {
        let state = State {
            theta: t,
            log_prior,
            gradient: Some(gradient),
        };
        Ok((state, info))
    } else {
        Ok((kept, info))
    }
}

pub(super) fn add_scaled(into: &mut [f64], factor: f64, what: &[f64]) {
    for (x, w) in into.iter_mut().zip(what) {
        *x += factor * w;
    }
}

#[cfg(test)]
#[path = "dp_hmc_tests.rs"]
mod tests;
