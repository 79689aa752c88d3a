//! Samplers that propose at random and accept or reject.

pub mod dp_barker;
pub mod dp_penalty;
pub mod rwmh;

use rand::Rng;

use crate::sampler::contract::metric::Metric;

/// A draw from N(theta, h^2 M^-1).
fn proposal(theta: &[f64], h: f64, metric: &Metric, rng: &mut impl Rng) -> Vec<f64> {
    // M^-1 p for p ~ N(0, M) is N(0, M^-1).
    let direction = metric.velocity(&metric.momentum(theta.len(), rng));
    theta
        .iter()
        .zip(direction)
        .map(|(x, v)| x + h * v)
        .collect()
}
