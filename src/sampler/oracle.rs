//! What a sampler may ask.

use crate::density::Density;
use crate::privacy::{
    Charge, GradientScale, NotPrivate, PenaltyError, PenaltyPlan, PenaltyScale, PrivateRng,
    ReleaseError, Vault, noise,
};

/// A run that cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    #[error(transparent)]
    Release(#[from] ReleaseError),
    #[error(transparent)]
    Penalty(#[from] PenaltyError),
    #[error(transparent)]
    Randomness(#[from] crate::privacy::RandomnessError),
    #[error(
        "no initial point with a finite log density was found in 100 tries; give one with --init"
    )]
    NoInitialPoint,
    #[error("the initial point has a log density that is not finite; choose another with --init")]
    BadInitialPoint,
    #[error("interrupted")]
    Interrupted,
}

/// The answer to a question about a proposal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ratio {
    /// T R - T^2 s^2 / 2, nats.
    Penalised(f64),
    /// The step is so long that its noise would drown everything: reject. This
    /// depends on the distance alone.
    Refused,
}

/// The questions of the private samplers. Prior and Jacobian are public and
/// exact; the likelihood is noisy and charged.
pub trait Oracle {
    fn dimension(&self) -> usize;

    /// Log prior plus log Jacobian at `theta` (unconstrained scale, nats).
    fn log_prior(&mut self, theta: &[f64]) -> f64;

    /// T (sum of clipped gradients + noise) + gradient of the log prior.
    fn gradient(&mut self, theta: &[f64]) -> Result<Vec<f64>, SampleError>;

    /// The noisy log-likelihood ratio from `from` to `to`, less half its noise
    /// variance.
    fn log_ratio(&mut self, from: &[f64], to: &[f64]) -> Result<Ratio, SampleError>;

    /// True with probability min(1, exp(`log_probability`)).
    fn accept(&mut self, log_probability: f64) -> bool;
}

/// The vault, asked under a fixed plan.
pub struct PrivateOracle<'a> {
    pub vault: &'a Vault,
    /// Where gradients are charged.
    pub gradients: Charge<'a>,
    /// Where log-ratios are charged.
    pub log_ratios: Charge<'a>,
    pub gradient_scale: GradientScale,
    pub penalty_scale: PenaltyScale,
    /// b_l: bound on one record's log-ratio per unit of distance.
    pub clip_log_ratio: f64,
    /// T: the power to which the likelihood is raised.
    pub temperature: f64,
    pub rng: PrivateRng,
}

impl Oracle for PrivateOracle<'_> {
    fn dimension(&self) -> usize {
        self.vault.density().dimension()
    }

    fn log_prior(&mut self, theta: &[f64]) -> f64 {
        self.vault.density().log_prior(theta)
    }

    fn gradient(&mut self, theta: &[f64]) -> Result<Vec<f64>, SampleError> {
        let likelihood = self
            .vault
            .noisy_gradient(theta, &self.gradient_scale, self.gradients, &mut self.rng)?
            .into_inner();
        let (_, prior) = self.vault.density().pull_back(theta, &[]);
        Ok(prior
            .iter()
            .zip(likelihood)
            .map(|(p, l)| p + self.temperature * l)
            .collect())
    }

    fn log_ratio(&mut self, from: &[f64], to: &[f64]) -> Result<Ratio, SampleError> {
        // The bound is on T times the log-ratio: the tempered likelihood is what
        // is put on the lattice. The distance is symmetric to the bit.
        let bound = self.temperature * self.clip_log_ratio * distance(from, to);
        let query = match self.penalty_scale.plan(bound)? {
            PenaltyPlan::Query(query) => query,
            PenaltyPlan::Skip => return Ok(Ratio::Penalised(0.0)),
            PenaltyPlan::Refuse => return Ok(Ratio::Refused),
        };
        let released = self.vault.noisy_log_ratio(
            from,
            to,
            self.temperature,
            &query,
            self.log_ratios,
            &mut self.rng,
        )?;
        Ok(Ratio::Penalised(released.get().penalised))
    }

    fn accept(&mut self, log_probability: f64) -> bool {
        noise::accept(log_probability, &mut self.rng)
    }
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(x, y)| (x - y) * (x - y))
        .sum::<f64>()
        .sqrt()
}

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

    /// Log posterior density (unconstrained scale, nats, normalised but for the
    /// evidence) and its gradient.
    pub fn log_density(&self, theta: &[f64]) -> (f64, Vec<f64>) {
        let (log_likelihood, mut adjoint) = self.vault.exact(theta, self.permission);
        for a in &mut adjoint {
            *a *= self.temperature;
        }
        let (log_prior, gradient) = self.density().pull_back(theta, &adjoint);
        (log_prior + self.temperature * log_likelihood, gradient)
    }
}
