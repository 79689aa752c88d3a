//! Hamiltonian Monte Carlo without privacy: the zero-noise reference.
//!
//! Neal 2011, "MCMC using Hamiltonian dynamics", with a random number of
//! leapfrog steps (uniform on 1..L, so that no trajectory length is resonant)
//! and Stan's warm-up. It leaves the posterior invariant exactly, up to
//! rounding.

use rand::{Rng, RngExt};

use super::Algorithm;
use super::metric::Metric;
use super::oracle::ExactOracle;

pub(super) const ALGORITHM: Algorithm = Algorithm {
    name: "hmc",
    summary: "Hamiltonian Monte Carlo without noise, the reference (NOT PRIVATE)",
    is_private: false,
};

#[derive(Debug, Clone)]
pub(super) struct State {
    pub theta: Vec<f64>,
    pub log_density: f64,
    gradient: Vec<f64>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Info {
    pub accept_stat: f64,
    pub accepted: bool,
    pub divergent: bool,
}

pub(super) fn init(theta: Vec<f64>, oracle: &ExactOracle) -> State {
    let (log_density, gradient) = oracle.log_density(&theta);
    State {
        theta,
        log_density,
        gradient,
    }
}

/// One iteration with step `h` and at most `leapfrog_steps` steps.
pub(super) fn step(
    state: State,
    oracle: &ExactOracle,
    h: f64,
    leapfrog_steps: usize,
    metric: &Metric,
    rng: &mut impl Rng,
) -> (State, Info) {
    let steps = rng.random_range(1..=leapfrog_steps);
    let p0 = metric.momentum(state.theta.len(), rng);
    let mut proposal = state.clone();
    let mut p = p0.clone();
    for _ in 0..steps {
        leapfrog(&mut proposal, &mut p, oracle, h, metric);
        if !proposal.log_density.is_finite() {
            break;
        }
    }
    let log_a = proposal.log_density - metric.kinetic_energy(&p) - state.log_density
        + metric.kinetic_energy(&p0);
    let accept_stat = if log_a.is_nan() {
        0.0
    } else {
        log_a.exp().min(1.0)
    };
    let accepted = rng.random::<f64>() < accept_stat;
    let info = Info {
        accept_stat,
        accepted,
        // Stan's threshold on the energy error.
        divergent: log_a.is_nan() || log_a < -1000.0,
    };
    (if accepted { proposal } else { state }, info)
}

fn leapfrog(state: &mut State, p: &mut [f64], oracle: &ExactOracle, h: f64, metric: &Metric) {
    for (p, g) in p.iter_mut().zip(&state.gradient) {
        *p += h / 2.0 * g;
    }
    for (x, v) in state.theta.iter_mut().zip(metric.velocity(p)) {
        *x += h * v;
    }
    let (log_density, gradient) = oracle.log_density(&state.theta);
    state.log_density = log_density;
    state.gradient = gradient;
    for (p, g) in p.iter_mut().zip(&state.gradient) {
        *p += h / 2.0 * g;
    }
}

/// A step size with an acceptance of about one half (Hoffman and Gelman 2014,
/// Algorithm 4).
pub(super) fn reasonable_step(
    state: &State,
    oracle: &ExactOracle,
    metric: &Metric,
    rng: &mut impl Rng,
) -> f64 {
    let p0 = metric.momentum(state.theta.len(), rng);
    let log_ratio = |h: f64| {
        let mut proposal = state.clone();
        let mut p = p0.clone();
        leapfrog(&mut proposal, &mut p, oracle, h, metric);
        let ratio = proposal.log_density - metric.kinetic_energy(&p) - state.log_density
            + metric.kinetic_energy(&p0);
        if ratio.is_nan() {
            f64::NEG_INFINITY
        } else {
            ratio
        }
    };
    let mut h = 0.1;
    let up = log_ratio(h) > (0.5f64).ln();
    for _ in 0..60 {
        let next = if up { 2.0 * h } else { 0.5 * h };
        let accepts = log_ratio(next) > (0.5f64).ln();
        h = next;
        if accepts != up {
            break;
        }
    }
    h
}
