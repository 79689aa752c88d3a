//! Runs without privacy: the exact samplers, and the dynamics of the private ones without the
//! noise of privacy.

mod clipped;
mod exact;
mod exact_oracle;
mod open;

use crate::privacy::{NotPrivate, Vault};
use crate::sampler::chain::run::{Chain, Observer};
use crate::sampler::contract::Kind;
use crate::sampler::contract::initial::Initial;
use crate::sampler::contract::oracle::SampleError;
use crate::sampler::contract::request::PlanRequest;

pub use exact::exact_settings;
pub use exact_oracle::ExactOracle;

/// The settings of a run without privacy.
#[derive(Debug, Clone)]
pub struct NonPrivateRun {
    /// The budget and the number of iterations in it are ignored.
    pub request: PlanRequest,
    /// The first iterations of each chain, which are discarded.
    pub num_warmup: u64,
    /// The iterations of each chain after warm-up.
    pub num_samples: u64,
    pub initial: Initial,
    /// Determines all randomness.
    pub seed: u64,
}

impl NonPrivateRun {
    pub(crate) fn iterations(&self) -> u64 {
        self.num_warmup + self.num_samples
    }
}

/// Runs a sampler without privacy. Everything it returns is NOT PRIVATE.
///
/// Errors: a sampler that is private, settings out of range, no initial point with a finite
/// density, rows that can no longer be read.
pub fn sample_without_privacy(
    vault: &Vault,
    run: &NonPrivateRun,
    permission: NotPrivate,
    observer: &impl Observer,
) -> Result<Vec<Chain>, SampleError> {
    let chains = match run.request.algorithm.kind {
        Kind::Exact => exact::sample(vault, run, permission, observer),
        Kind::Open(dynamics) => open::sample(vault, dynamics, run, permission, observer),
        Kind::Clipped(reference) => clipped::sample(vault, reference, run, permission, observer),
        Kind::Private(_) => Err(SampleError::Private(run.request.algorithm.name)),
    };
    vault.intact()?;
    chains
}
