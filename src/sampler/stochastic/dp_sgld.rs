//! DP-SGLD: stochastic-gradient Langevin dynamics, whose noise is the privacy.
//!
//! Welling and Teh 2011, "Bayesian learning via stochastic gradient Langevin dynamics";
//! private versions: Wang, Fienberg and Smola 2015, Li et al. 2019. In the notation of
//! docs/samplers.md, per iteration:
//!
//! ```text
//! theta += (h/2) [ grad q + (T/r) (sum over a Poisson batch of clip_C(grad l_i) + noise) ]
//! ```
//!
//! where the noise makes the injected variance h per coordinate: its standard deviation on
//! the sum is z C with z = 2 r / (T C sqrt(h)).
//!
//! # Cost
//!
//! k iterations release k gradients of Poisson batches of rate r, with noise z C, that is z
//! under add/remove and z/2 under substitute as a multiple of the sensitivity. Where the
//! budget needs more noise than z, more is drawn, and the plan says so.
//!
//! # What it leaves invariant
//!
//! Approximately the (clipped) posterior. There is no test that would correct the
//! discretisation error, and the batch's own noise adds to the heat: on a normal posterior of
//! precision P, with g the variance of a batch's estimate of the gradient, the stationary
//! variance is
//!
//! ```text
//! (1/P) (1 + (h/4) g) / (1 - h P/4)
//! ```
//!
//! so that the bias falls in proportion to h. For n records of variance 1 with an unknown mean
//! theta, g is (1 - r)/r n (1 + theta^2), with theta from the centre of the records, and the
//! denominator has the further term - h g/(4 P). Measured there (20 records, posterior variance 1/21,
//! batches of rate 1/4; `bias_tests`): at h P = 0.4, 0.1 and 0.025 the variance is 1.45, 1.10
//! and 1.03 times the exact one, as the formula says. With s times the noise the target is the
//! posterior to the power 1/s^2. With steps that decrease, averages should be weighted by
//! `stepsize__`.
//!
//! # Errata of the sources
//!
//! The code of Räisä et al. 2021 uses drift h with noise of variance h, half of what Langevin
//! dynamics needs: it samples the square of the posterior.

use rand_chacha::ChaCha8Rng;

use crate::sampler::contract::dynamics::{Block, Dynamics, Steps};
use crate::sampler::contract::oracle::{Oracle, SampleError};
use crate::sampler::contract::plan::PlanError;
use crate::sampler::contract::request::PlanRequest;
use crate::sampler::contract::settings::{Setting, Unset};
use crate::sampler::contract::{Algorithm, Kind, Walker};
use crate::sampler::stochastic::{Follower, Motion, Private, moved};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "dp-sgld",
    summary: "stochastic-gradient Langevin dynamics on Poisson batches (Welling and Teh 2011); approximate",
    kind: Kind::Private(&Private(Sgld)),
    columns: &[],
    settings: &[
        Setting::step_size.or(Unset::STEP_OF_CLIP),
        Setting::step_decay.or(Unset::Number(0.0)),
        Setting::batch_rate.or(Unset::Number(0.01)),
        Setting::clip_gradient.or(Unset::CLIP),
        Setting::tau_gradient.or(Unset::DYNAMICS),
    ],
};

pub(crate) const OPEN: Algorithm = Algorithm {
    name: "sgld",
    summary: "stochastic-gradient Langevin dynamics without privacy (NOT PRIVATE); approximate",
    kind: Kind::Open(&Sgld),
    columns: &[],
    settings: &[
        Setting::step_size.or(Unset::STEP_OF_CLIP),
        Setting::step_decay.or(Unset::Number(0.0)),
        Setting::batch_rate.or(Unset::Number(0.01)),
        Setting::clip_gradient.or(Unset::Found("none")),
    ],
};

#[derive(Debug)]
pub(crate) struct Sgld;

impl Dynamics for Sgld {
    /// A twentieth of the variance is discretisation error at this step.
    fn default_step_size(&self, curvature: f64) -> f64 {
        0.2 / curvature
    }

    /// (h/2) sd = sqrt(h)
    fn noise(&self, _: &PlanRequest, h: f64) -> Result<Option<f64>, PlanError> {
        Ok(Some(2.0 / h.sqrt()))
    }

    fn warning(&self, times: f64) -> String {
        let square = times * times;
        format!(
            "the budget needs {times:.2} times the noise of Langevin dynamics: the draws follow the posterior to the power {:.3}. A `step_size` {square:.1} times smaller, or fewer iterations or chains, would need no more than the dynamics have",
            1.0 / square
        )
    }

    fn walker(
        &self,
        _: &PlanRequest,
        steps: Steps,
        theta: Vec<f64>,
        _: &mut ChaCha8Rng,
    ) -> Box<dyn Walker> {
        Box::new(Follower {
            steps,
            theta,
            motion: Sgld,
        })
    }
}

impl Motion for Sgld {
    fn follow(
        &self,
        theta: &[f64],
        line: usize,
        block: Block,
        oracle: &mut dyn Oracle,
        _: &mut ChaCha8Rng,
    ) -> Result<Option<Vec<f64>>, SampleError> {
        let gradient = oracle.gradient(line, theta)?;
        Ok(Some(moved(theta, block.step / 2.0, &gradient)))
    }
}
