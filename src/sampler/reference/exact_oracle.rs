//! Exact answers: NOT PRIVATE.

use crate::density::Density;
use crate::privacy::{NotPrivate, Vault};
use crate::sampler::hamiltonian::Target;

/// Exact values, for the samplers without privacy.
pub struct ExactOracle<'a> {
    pub vault: &'a Vault,
    pub permission: NotPrivate,
    pub temperature: f64,
}

impl ExactOracle<'_> {
    pub fn density(&self) -> &Density {
        self.vault.density()
    }

    /// Log posterior density (unconstrained scale, nats, normalised except for the
    /// evidence) and its gradient.
    pub fn log_density(&self, theta: &[f64]) -> (f64, Vec<f64>) {
        let evaluated = self.density().evaluated(theta);
        let (log_likelihood, mut adjoint) = self.vault.exact_at(&evaluated.z(), self.permission);
        for a in &mut adjoint {
            *a *= self.temperature;
        }
        let (log_prior, gradient) = evaluated.pull_back(&adjoint);
        (log_prior + self.temperature * log_likelihood, gradient)
    }
}

impl Target for ExactOracle<'_> {
    fn log_density(&self, theta: &[f64]) -> (f64, Vec<f64>) {
        ExactOracle::log_density(self, theta)
    }
}
