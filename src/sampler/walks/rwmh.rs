//! Random-walk Metropolis without privacy, the simplest reference.
//!
//! Metropolis and others 1953: propose theta' ~ N(theta, h^2 M^-1), accept with
//! probability min(1, p(theta')/p(theta)). It leaves the posterior invariant
//! exactly. Cost: one density per iteration. During warm-up the step is adapted to
//! an acceptance of 0.234 (Roberts, Gelman and Gilks 1997) and M^-1 to the
//! covariance of the draws.

use rand::{Rng, RngExt};

use crate::sampler::contract::metric::Metric;
use crate::sampler::contract::settings::{Setting, Unset};
use crate::sampler::contract::{Algorithm, Kind};
use crate::sampler::hamiltonian::{Info, State, Target};
use crate::sampler::walks::proposal;

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "rwmh",
    summary: "random-walk Metropolis without noise (NOT PRIVATE)",
    kind: Kind::Exact,
    columns: &[],
    settings: &[
        Setting::step_size.or(Unset::WARM_UP),
        Setting::metric.or(Unset::DENSE),
        Setting::target_acceptance.or(Unset::Number(TARGET_ACCEPTANCE)),
    ],
};

/// The acceptance that warm-up aims at.
pub(crate) const TARGET_ACCEPTANCE: f64 = 0.234;

/// One iteration with step `h`.
pub(crate) fn step(
    state: State,
    target: &dyn Target,
    h: f64,
    metric: &Metric,
    rng: &mut impl Rng,
) -> (State, Info) {
    let proposal = State::new(proposal(&state.theta, h, metric, rng), target);
    let log_ratio = proposal.log_density - state.log_density;
    let accept_stat = if log_ratio.is_nan() {
        0.0
    } else {
        log_ratio.exp().min(1.0)
    };
    let accepted = rng.random::<f64>() < accept_stat;
    let state = if accepted { proposal } else { state };
    let info = Info {
        accept_stat,
        accepted,
        divergent: false,
        leapfrogs: 0,
        depth: 0,
        energy: -state.log_density,
    };
    (state, info)
}
