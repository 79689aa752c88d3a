//! DP-Langevin: kinetic Langevin dynamics whose heat is the noise of the privacy, in
//! coordinates that a paid start has learnt. It tunes itself.
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
//! with a = exp(-gamma h), gamma the friction, q the log prior with its Jacobian. It is the
//! splitting of Leimkuhler and Matthews ("Molecular Dynamics", 2015, chapter 7) of friction and
//! noise around the kick, with the drift in two halves around both. The noise of the release,
//! of standard deviation s on each coordinate, is part of what the dynamics want: the step h is
//! the one at which ((1 + a)/2 h s)^2 = 1 - a^2, at most [`LARGEST_STEP`], where public noise xi
//! makes up for what is missing. So nothing is rejected and no noise is wasted.
//!
//! For a given budget s^2 is proportional to the number of gradients, and h, for small h, to
//! 1/s^2: the time that the chains travel is the same however many iterations it is divided
//! into. More iterations make steps smaller and draws denser; what decides how well the
//! posterior is explored is the budget.
//!
//! # Cost
//!
//! The start's releases, then one gradient of all records for each iteration of each chain. All
//! are Gaussian with noise in a fixed proportion to a clip bound that earlier releases gave.
//!
//! # What it leaves invariant
//!
//! As h goes to 0, the posterior of the clipped likelihood; the clip bound is at the 99.8%
//! quantile of the lengths at the centre. Measured on a standard normal (`langevin_tests`): at
//! h = 0.3 the variance is within 1% of the exact one.

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::checkpoint::{read, written};
use super::exact_number;
use super::oracle::{Oracle, SampleError, View};
use super::plan::{Plan, PlanError};
use super::request::PlanRequest;
use super::schedule::{Line, Noise, Quantity, Question, factor, over_chains};
use super::start::{self, Start};
use super::stochastic::{all_finite, followed, moved};
use super::{Algorithm, Kind, Learner, Metric, Sampler, Step, Walker};
use crate::density::Frame;
use crate::privacy::Subsampling;

pub(super) const ALGORITHM: Algorithm = Algorithm {
    name: "dp-langevin",
    summary: "kinetic Langevin dynamics in coordinates learnt from a part of the budget; needs no tuning; approximate",
    kind: Kind::Private(&DpLangevin),
    columns: &[],
    settings: &["--start-share"],
};

/// gamma, per unit of time in which the posterior is about a standard normal.
const FRICTION: f64 = 2.0;
/// The largest h.
const LARGEST_STEP: f64 = 0.3;
/// The line of the chains' gradients.
const GRADIENTS: usize = start::LINES;

#[derive(Debug)]
struct DpLangevin;

impl Sampler for DpLangevin {
    fn lines(&self, request: &PlanRequest, iterations: u64) -> Result<Vec<Line>, PlanError> {
        start::check(request)?;
        let mut lines = start::lines(request, request.start_share);
        lines.push(Line {
            what: "gradient, in learnt coordinates",
            question: Question::Learnt(Quantity::Gradient),
            noise: Noise::Share(1.0 - request.start_share),
            count: over_chains(Some(iterations), request.chains)?,
            subsampling: Subsampling::All,
        });
        Ok(lines)
    }

    fn warnings(&self, _: &Plan) -> Vec<String> {
        Vec::new()
    }

    fn default_step_size(&self, _: &PlanRequest) -> f64 {
        LARGEST_STEP
    }

    fn target_acceptance(&self) -> Option<f64> {
        None
    }

    fn learner(&self) -> Option<&dyn Learner> {
        Some(self)
    }

    /// A chain that has learnt nothing; a run gives it a start.
    fn chain(
        &self,
        plan: &Plan,
        theta: Vec<f64>,
        _: &mut dyn Oracle,
        rng: &mut ChaCha8Rng,
    ) -> Box<dyn Walker> {
        let d = theta.len();
        Box::new(Chain::new(plan, Frame::about(theta), 1.0, vec![0.0; d], rng))
    }
}

impl Learner for DpLangevin {
    fn chain(&self, plan: &Plan, learnt: &Start, rng: &mut ChaCha8Rng) -> Box<dyn Walker> {
        let frame = learnt.frame().clone();
        let u = normals(frame.dimension(), rng);
        Box::new(Chain::new(plan, frame, learnt.clip(), u, rng))
    }
}

/// Time that a chain travels, in units in which the posterior is about a standard normal and
/// forgets where it was in about one.
pub(super) fn time(plan: &Plan, learnt: &Start) -> f64 {
    Dynamics::new(noise(plan, learnt.clip())).h * plan.iterations_per_chain as f64
}

/// Standard deviation of the noise of the tempered gradient.
fn noise(plan: &Plan, clip: f64) -> f64 {
    let tau = plan.lines.get(GRADIENTS).map_or(0.0, |line| line.tau);
    plan.request.temperature * f64::from(factor(plan.request.relation)) * clip * tau
}

/// The step for a given noise.
#[derive(Debug, Clone, Copy)]
struct Dynamics {
    h: f64,
    /// The share of the momentum that is kept.
    a: f64,
    /// Standard deviation of xi.
    extra: f64,
}

impl Dynamics {
    fn new(noise: f64) -> Dynamics {
        let kept = |h: f64| (-FRICTION * h).exp();
        // What the dynamics want less what the noise of the release gives.
        let missing = |h: f64| {
            let a = kept(h);
            1.0 - a * a - (0.5 * (1.0 + a) * h * noise).powi(2)
        };
        let mut h = LARGEST_STEP;
        if missing(h) < 0.0 {
            let (mut low, mut high) = (0.0, LARGEST_STEP);
            for _ in 0..200 {
                h = 0.5 * (low + high);
                match missing(h) >= 0.0 {
                    true => low = h,
                    false => high = h,
                }
            }
            h = low;
        }
        Dynamics {
            h,
            a: kept(h),
            extra: missing(h).max(0.0).sqrt(),
        }
    }
}

struct Chain {
    frame: Frame,
    clip: f64,
    temperature: f64,
    dynamics: Dynamics,
    state: State,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct State {
    #[serde(with = "exact_number::list")]
    u: Vec<f64>,
    #[serde(with = "exact_number::list")]
    p: Vec<f64>,
    #[serde(with = "exact_number::list")]
    theta: Vec<f64>,
}

impl Chain {
    fn new(plan: &Plan, frame: Frame, clip: f64, u: Vec<f64>, rng: &mut ChaCha8Rng) -> Chain {
        Chain {
            dynamics: Dynamics::new(noise(plan, clip)),
            temperature: plan.request.temperature,
            state: State {
                theta: frame.point(&u),
                p: normals(u.len(), rng),
                u,
            },
            frame,
            clip,
        }
    }

    /// The noisy gradient of the log posterior at u, in the frame's coordinates.
    fn gradient(&self, u: &[f64], oracle: &mut dyn Oracle) -> Result<Vec<f64>, SampleError> {
        let theta = self.frame.point(u);
        let likelihood = oracle.learnt(
            GRADIENTS,
            &View {
                theta: &theta,
                frame: &self.frame,
                centre: None,
                clip: self.clip,
            },
        )?;
        let prior = self.frame.pull_back(&oracle.prior_gradient(&theta)?);
        Ok(moved(&prior, self.temperature, &likelihood))
    }
}

impl Walker for Chain {
    fn step(&mut self, oracle: &mut dyn Oracle, rng: &mut ChaCha8Rng) -> Result<Step, SampleError> {
        let Dynamics { h, a, extra } = self.dynamics;
        let middle = moved(&self.state.u, 0.5 * h, &self.state.p);
        let gradient = self.gradient(&middle, oracle)?;
        let xi = normals(middle.len(), rng);
        let p: Vec<f64> = (0..middle.len())
            .map(|j| a * self.state.p[j] + 0.5 * (1.0 + a) * h * gradient[j] + extra * xi[j])
            .collect();
        let u = moved(&middle, 0.5 * h, &p);
        let theta = self.frame.point(&u);
        // Where the prior leaves the numbers the chain turns back.
        let finite = all_finite(&theta) && oracle.log_prior(&theta).is_finite();
        match finite {
            true => self.state = State { u, p, theta },
            false => self.state.p = normals(self.state.p.len(), rng),
        }
        Ok(followed(finite, h, Vec::new()))
    }

    fn theta(&self) -> &[f64] {
        &self.state.theta
    }

    /// Everything was learnt before.
    fn tune(&mut self, _: f64, _: &Metric) {}

    fn save(&self) -> Value {
        written(&self.state)
    }

    fn restore(&mut self, saved: &Value) -> Result<(), SampleError> {
        let state: State = read(saved)?;
        let d = self.frame.dimension();
        if [&state.u, &state.p, &state.theta].iter().any(|x| x.len() != d) {
            return Err(SampleError::Unreadable);
        }
        self.state = state;
        Ok(())
    }
}

fn normals(d: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
    (0..d).map(|_| StandardNormal.sample(rng)).collect()
}
