//! Hamiltonian dynamics with exact gradients: the common part of the samplers
//! without noise.

pub mod dp_amagold;
pub mod dp_hmc;
pub mod hmc;
mod jitter;
pub mod nuts;

use rand::Rng;

use crate::sampler::contract::metric::Metric;

/// A density that these samplers draw from.
pub(crate) trait Target {
    /// Log density (nats, unconstrained scale) and its gradient.
    fn log_density(&self, theta: &[f64]) -> (f64, Vec<f64>);
}

/// A point with its log density (nats, unconstrained scale) and gradient.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub theta: Vec<f64>,
    pub log_density: f64,
    pub gradient: Vec<f64>,
}

impl State {
    pub fn new(theta: Vec<f64>, target: &dyn Target) -> State {
        let (log_density, gradient) = target.log_density(&theta);
        State {
            theta,
            log_density,
            gradient,
        }
    }
}

/// Statistics of one iteration of a sampler without noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Info {
    /// The acceptance statistic to which the step size is adapted, 0 to 1.
    pub accept_stat: f64,
    /// Whether the chain moved.
    pub accepted: bool,
    pub divergent: bool,
    /// The number of gradients computed.
    pub leapfrogs: u32,
    /// The number of doublings of the trajectory; 0 for samplers without them.
    pub depth: u32,
    /// Negative log density plus kinetic energy at the new point.
    pub energy: f64,
}

/// An energy error above this is a divergence, as in Stan.
pub(crate) const LARGEST_ENERGY_ERROR: f64 = 1000.0;

/// Negative log joint density of position and momentum; never NaN.
pub(crate) fn energy(state: &State, p: &[f64], metric: &Metric) -> f64 {
    let h = metric.kinetic_energy(p) - state.log_density;
    if h.is_nan() { f64::INFINITY } else { h }
}

/// One leapfrog step of size `h`, backwards when it is negative.
pub(crate) fn leapfrog(
    state: &mut State,
    p: &mut [f64],
    target: &dyn Target,
    h: f64,
    metric: &Metric,
) {
    for (p, g) in p.iter_mut().zip(&state.gradient) {
        *p += h / 2.0 * g;
    }
    for (x, v) in state.theta.iter_mut().zip(metric.velocity(p)) {
        *x += h * v;
    }
    let (log_density, gradient) = target.log_density(&state.theta);
    state.log_density = log_density;
    state.gradient = gradient;
    for (p, g) in p.iter_mut().zip(&state.gradient) {
        *p += h / 2.0 * g;
    }
}

/// A step size at which one step's acceptance crosses 0.8, found by doubling or
/// halving (Hoffman and Gelman 2014, Algorithm 4, with Stan's threshold).
pub(crate) fn reasonable_step(
    state: &State,
    target: &dyn Target,
    metric: &Metric,
    first: f64,
    rng: &mut impl Rng,
) -> f64 {
    let mut accepts = |h: f64| {
        let mut p = metric.momentum(state.theta.len(), rng);
        let before = energy(state, &p, metric);
        let mut proposal = state.clone();
        leapfrog(&mut proposal, &mut p, target, h, metric);
        before - energy(&proposal, &p, metric) > 0.8f64.ln()
    };
    let mut h = first;
    let up = accepts(h);
    for _ in 0..60 {
        h *= if up { 2.0 } else { 0.5 };
        if accepts(h) != up {
            break;
        }
    }
    h
}
