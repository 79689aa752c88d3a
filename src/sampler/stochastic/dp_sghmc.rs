//! DP-SGHMC: stochastic-gradient Hamiltonian Monte Carlo with friction, whose noise is the
//! privacy.
//!
//! Chen, Fox and Guestrin 2014, "Stochastic gradient Hamiltonian Monte Carlo"; Lode 2019,
//! Algorithm 2, corrected. In the notation of docs/samplers.md, per iteration t:
//!
//! ```text
//! eta_t = beta t^(-1/3);  p ~ N(0, I)
//! theta += eta_t p/2
//! repeat J:  a fresh Poisson batch
//!   p += eta_t ( (T/r) sum clip_C(grad l_i) + grad q ) - eta_t F p + N(0, 2 eta_t (F - B))
//!   theta += eta_t p, after the last one eta_t p/2
//! ```
//!
//! F is the friction, B a public estimate of the batches' own noise per unit of time (0 by
//! default). The normal noise is that of the release: z C on the sum, z = r sqrt(2 (F -
//! B)/eta_t) / (T C). There is no acceptance test.
//!
//! `naive-sghmc` has neither friction nor noise: the batches' noise heats it without end,
//! and the momenta that are drawn anew cool it to some temperature of their own.
//!
//! # Cost
//!
//! k iterations release k J gradients of Poisson batches of rate r, with noise that grows as
//! the steps shrink: one event for each step size, which the iterations of a block share
//! (`stochastic`). Where the budget needs s times the noise, F becomes B + (F - B) s^2, which
//! keeps the target.
//!
//! # What it leaves invariant
//!
//! Approximately the (clipped) posterior, as eta goes to 0 and with B the batches' noise.
//! Measured on a standard normal in 2 dimensions, F = 1 (`bias_tests`): at eta = 0.1
//! the variance is 0.99 of the exact one for J = 20 and 0.96 for J = 5. Noise of variance V
//! in the gradients, in addition to the release's, heats the posterior by up to
//! 1 + eta V/(2 F) unless B = eta V/2.
//!
//! # Errata of the source
//!
//! Algorithm 2 of the thesis gives the friction the sign that adds energy, clips the
//! batch's gradient including the prior but accounts per record, uses a mean in place of a
//! sum, accounts for disjoint batches of a shuffled table as if they were Poisson batches, and
//! has noise of variance 2 eta^2 (F - B), against 2 eta (F - B) in its section 5.4, which
//! reproduces its Table 6.3. And both sources move theta by whole steps, first theta and then p:
//! the last gradient of each iteration then moves nothing. As eta goes to 0 with J fixed the
//! variance goes to J/(J - 1) times the exact one (each iteration adds eta^2 J^2 to it and
//! takes the share eta^2 J (J - 1) away); at J = 5 and eta = 0.1 it is 1.18. The half steps
//! at both ends repair that at no cost.

use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::sampler::contract::dynamics::{Block, Dynamics, Steps};
use crate::sampler::contract::oracle::{Oracle, SampleError};
use crate::sampler::contract::plan::PlanError;
use crate::sampler::contract::request::PlanRequest;
use crate::sampler::contract::settings::{Setting, Unset};
use crate::sampler::contract::{Algorithm, Kind, Walker};
use crate::sampler::stochastic::{Follower, Motion, Private, all_finite, moved};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "dp-sghmc",
    summary: "stochastic-gradient HMC with friction on Poisson batches (Chen et al. 2014, Lode 2019); approximate",
    kind: Kind::Private(&Private(Sghmc::Damped)),
    columns: &[],
    settings: &[
        Setting::step_size.or(Unset::STEP_OF_CLIP),
        Setting::step_decay.or(Unset::DECREASING),
        Setting::leapfrog_steps.or(Unset::Number(5.0)),
        Setting::friction.or(Unset::FRICTION),
        Setting::noise_estimate.or(Unset::Number(0.0)),
        Setting::batch_rate.or(Unset::Number(0.01)),
        Setting::clip_gradient.or(Unset::CLIP),
        Setting::tau_gradient.or(Unset::DYNAMICS),
    ],
};

pub(crate) const OPEN: Algorithm = Algorithm {
    name: "sghmc",
    summary: "stochastic-gradient HMC with friction without privacy (NOT PRIVATE); approximate",
    kind: Kind::Open(&Sghmc::Damped),
    columns: &[],
    settings: &[
        Setting::step_size.or(Unset::STEP_OF_CLIP),
        Setting::step_decay.or(Unset::DECREASING),
        Setting::leapfrog_steps.or(Unset::Number(5.0)),
        Setting::friction.or(Unset::FRICTION),
        Setting::noise_estimate.or(Unset::Number(0.0)),
        Setting::batch_rate.or(Unset::Number(0.01)),
        Setting::clip_gradient.or(Unset::Found("none")),
    ],
};

pub(crate) const NAIVE: Algorithm = Algorithm {
    name: "naive-sghmc",
    summary: "HMC on gradients of batches, without friction or noise (NOT PRIVATE); biased, for comparison",
    kind: Kind::Open(&Sghmc::Naive),
    columns: &[],
    settings: &[
        Setting::step_size.or(Unset::STEP_OF_CLIP),
        Setting::step_decay.or(Unset::DECREASING),
        Setting::leapfrog_steps.or(Unset::Number(5.0)),
        Setting::batch_rate.or(Unset::Number(0.01)),
        Setting::clip_gradient.or(Unset::Found("none")),
    ],
};

#[derive(Debug)]
pub(crate) enum Sghmc {
    /// With friction, and noise that makes up for it.
    Damped,
    /// With neither.
    Naive,
}

impl Sghmc {
    /// F: one value for the run, so that it does not follow steps that decrease. By default, a
    /// tenth of the momentum is lost in the first step.
    fn friction(&self, request: &PlanRequest) -> f64 {
        let first = Steps::new(self, request, 1).first().step;
        request.settings.friction.unwrap_or(0.1 / first)
    }
}

/// B: the variance of batch gradients apart from the noise, per unit of time.
fn noise_estimate(request: &PlanRequest) -> f64 {
    request.settled().noise_estimate.unwrap_or(0.0)
}

impl Dynamics for Sghmc {
    fn default_step_size(&self, curvature: f64) -> f64 {
        0.2 / curvature.sqrt()
    }

    fn gradients(&self, request: &PlanRequest) -> u64 {
        request.leapfrog_steps()
    }

    /// eta sd = sqrt(2 eta (F - B))
    fn noise(&self, request: &PlanRequest, h: f64) -> Result<Option<f64>, PlanError> {
        if let Sghmc::Naive = self {
            return Ok(None);
        }
        let (f, b) = (self.friction(request), noise_estimate(request));
        if !(0.0..f).contains(&b) {
            return Err(PlanError::Settings(format!(
                "`noise_estimate` is {b}, but must be 0 or more and below the friction, {f}"
            )));
        }
        Ok(Some((2.0 * (f - b) / h).sqrt()))
    }

    fn warning(&self, times: f64) -> String {
        format!(
            "the budget needs {times:.2} times the noise asked for: the friction is {:.1} times larger to match it. A larger `friction`, fewer iterations or chains would need no more",
            times * times
        )
    }

    fn walker(
        &self,
        request: &PlanRequest,
        steps: Steps,
        theta: Vec<f64>,
        _: &mut ChaCha8Rng,
    ) -> Box<dyn Walker> {
        let (friction, noise_estimate) = match self {
            Sghmc::Damped => (self.friction(request), noise_estimate(request)),
            Sghmc::Naive => (0.0, 0.0),
        };
        Box::new(Follower {
            steps,
            theta,
            motion: Trajectory {
                gradients: request.leapfrog_steps(),
                friction,
                noise_estimate,
            },
        })
    }
}

struct Trajectory {
    /// J
    gradients: u64,
    /// F
    friction: f64,
    /// B
    noise_estimate: f64,
}

impl Motion for Trajectory {
    fn follow(
        &self,
        theta: &[f64],
        line: usize,
        block: Block,
        oracle: &mut dyn Oracle,
        rng: &mut ChaCha8Rng,
    ) -> Result<Option<Vec<f64>>, SampleError> {
        let eta = block.step;
        let of_release = self.friction - self.noise_estimate;
        let friction = self.noise_estimate + of_release * block.noise * block.noise;
        let mut theta = theta.to_vec();
        let mut p: Vec<f64> = theta.iter().map(|_| StandardNormal.sample(rng)).collect();
        for j in 0..self.gradients {
            theta = moved(&theta, if j == 0 { eta / 2.0 } else { eta }, &p);
            // A trajectory that is no longer finite ends, whatever the data are.
            if !all_finite(&theta) {
                return Ok(None);
            }
            let gradient = oracle.gradient(line, &theta)?;
            p = moved(&moved(&p, -eta * friction, &p), eta, &gradient);
        }
        Ok(Some(moved(&theta, eta / 2.0, &p)))
    }
}
