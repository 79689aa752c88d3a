//! Hamiltonian Monte Carlo without privacy: the zero-noise reference.
//!
//! Neal 2011, "MCMC using Hamiltonian dynamics", with a random number of
//! leapfrog steps (uniform on 1..L, so that no trajectory length is resonant)
//! and Stan's warm-up. It leaves the posterior invariant exactly, up to
//! rounding. Cost: (L + 1)/2 gradients per iteration on average.

use rand::{Rng, RngExt};

use crate::sampler::contract::metric::Metric;
use crate::sampler::contract::settings::{Setting, Unset};
use crate::sampler::contract::{Algorithm, Kind};
use crate::sampler::hamiltonian::Target;
use crate::sampler::hamiltonian::{Info, LARGEST_ENERGY_ERROR, State, energy, leapfrog};

pub(crate) const ALGORITHM: Algorithm = Algorithm {
    name: "hmc",
    summary: "Hamiltonian Monte Carlo without noise (NOT PRIVATE)",
    kind: Kind::Exact,
    columns: &["n_leapfrog__", "energy__"],
    settings: &[
        Setting::step_size.or(Unset::WARM_UP),
        Setting::leapfrog_steps.or(Unset::Told("at most {}", 10.0)),
        Setting::metric.or(Unset::DENSE),
        Setting::target_acceptance.or(Unset::Number(TARGET_ACCEPTANCE)),
    ],
};

pub(super) const TARGET_ACCEPTANCE: f64 = 0.8;

/// One iteration with step `h` and at most `leapfrog_steps` steps.
pub(crate) fn step(
    state: State,
    target: &dyn Target,
    h: f64,
    leapfrog_steps: usize,
    metric: &Metric,
    rng: &mut impl Rng,
) -> (State, Info) {
    let steps = rng.random_range(1..=leapfrog_steps);
    let mut p = metric.momentum(state.theta.len(), rng);
    let before = energy(&state, &p, metric);
    let mut proposal = state.clone();
    let mut leapfrogs = 0;
    for _ in 0..steps {
        leapfrog(&mut proposal, &mut p, target, h, metric);
        leapfrogs += 1;
        if !proposal.log_density.is_finite() {
            break;
        }
    }
    let after = energy(&proposal, &p, metric);
    let accept_stat = (before - after).exp().min(1.0);
    let accepted = rng.random::<f64>() < accept_stat;
    let info = Info {
        accept_stat,
        accepted,
        divergent: after - before > LARGEST_ENERGY_ERROR,
        leapfrogs,
        depth: 0,
        energy: if accepted { after } else { before },
    };
    (if accepted { proposal } else { state }, info)
}
