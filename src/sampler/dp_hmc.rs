//! DP-HMC: Hamiltonian Monte Carlo with noisy gradients and a penalty test.
//!
//! Räisä, Koskela and Honkela 2021, "Differentially private Hamiltonian Monte
//! Carlo". In the notation of ALGORITHMS.md, per iteration:
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
//! reversibility of the leapfrog. The noise of the test is compensated by the
//! penalty (the discrete noise keeps the identity exact, see
//! [`crate::privacy::penalty`]). With a reused gradient the chain is one on
//! (theta, G), with target pi(theta) N(G; g(theta), sigma^2): the noise terms
//! along a trajectory enter the forward and the reversed path as the same
//! product, so the acceptance ratio is unchanged.
//!
//! # Errata of the source
//!
//! The authors' code writes tau * sqrt(n) for the paper's tau; here tau is the
//! paper's.

use rand::Rng;

use super::Algorithm;
use super::jitter::Jitter;
use super::metric::Metric;
use super::oracle::{Oracle, Ratio, SampleError};

pub(super) const ALGORITHM: Algorithm = Algorithm {
    name: "dp-hmc",
    summary: "Hamiltonian Monte Carlo with noisy gradients and a penalty test (Räisä et al. 2021)",
    is_private: true,
    columns: &[],
};

/// What does not change during a run.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    /// eta: the largest step.
    pub step_size: f64,
    /// L
    pub leapfrog_steps: usize,
    pub fresh_gradients: bool,
    pub metric: Metric,
}

#[derive(Debug, Clone)]
pub(super) struct State {
    /// Unconstrained parameters.
    pub theta: Vec<f64>,
    /// log prior + log Jacobian at theta.
    log_prior: f64,
    /// The noisy gradient that belongs to theta, noise and all.
    gradient: Option<Vec<f64>>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Info {
    /// min(1, e^log a), a function of released values.
    pub accept_stat: f64,
    pub accepted: bool,
    pub step_size: f64,
}

pub(super) fn init(theta: Vec<f64>, oracle: &mut impl Oracle) -> State {
    State {
        log_prior: oracle.log_prior(&theta),
        theta,
        gradient: None,
    }
}

/// One iteration.
pub(super) fn step(
    state: State,
    oracle: &mut impl Oracle,
    settings: &Settings,
    jitter: &mut Jitter,
    rng: &mut impl Rng,
) -> Result<(State, Info), SampleError> {
    let h = jitter.next() * settings.step_size;
    let metric = &settings.metric;
    let p0 = metric.momentum(oracle.dimension(), rng);
    let (mut p, mut t) = (p0.clone(), state.theta.clone());
    let start = match &state.gradient {
        Some(gradient) if !settings.fresh_gradients => gradient.clone(),
        _ => oracle.gradient(&t)?,
    };
    let kept = State {
        gradient: Some(start.clone()),
        ..state
    };
    let rejected = Info {
        accept_stat: 0.0,
        accepted: false,
        step_size: h,
    };
    let mut gradient = start;
    for _ in 0..settings.leapfrog_steps {
        add_scaled(&mut p, h / 2.0, &gradient);
        add_scaled(&mut t, h, &metric.velocity(&p));
        // A trajectory that leaves the numbers is over, whatever the data say.
        if !t.iter().all(|x| x.is_finite()) {
            return Ok((kept, rejected));
        }
        gradient = oracle.gradient(&t)?;
        add_scaled(&mut p, h / 2.0, &gradient);
    }
    let log_prior = oracle.log_prior(&t);
    let energy = metric.kinetic_energy(&p0) - metric.kinetic_energy(&p);
    if !log_prior.is_finite() || !energy.is_finite() {
        return Ok((kept, rejected));
    }
    let ratio = match oracle.log_ratio(&kept.theta, &t)? {
        Ratio::Penalised(ratio) => ratio,
        Ratio::Refused => return Ok((kept, rejected)),
    };
    let log_a = energy + ratio + log_prior - kept.log_prior;
    let accepted = oracle.accept(log_a);
    let info = Info {
        accept_stat: log_a.exp().min(1.0),
        accepted,
        step_size: h,
    };
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

fn add_scaled(into: &mut [f64], factor: f64, what: &[f64]) {
    for (x, w) in into.iter_mut().zip(what) {
        *x += factor * w;
    }
}

#[cfg(test)]
#[path = "dp_hmc_tests.rs"]
mod tests;
