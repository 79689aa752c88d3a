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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounting::{Event, Gaussian, Lattice, Meter, Relation};
    use crate::model::{Constants, Model};
    use crate::privacy::{OnBadRows, Rows, penalty};

    /// With next to no noise, the private answers are the exact tempered ones: a
    /// wrong sign, a temperature forgotten or squared, a prior counted n times or
    /// a Jacobian left out would each be many noise standard deviations off. Six
    /// of them are allowed, on eight coordinates, with seeded noise.
    #[test]
    fn answers_are_the_exact_tempered_ones_but_for_the_noise() {
        let model = Model::from_source(
            "record { real y; }
             parameters { real mu; real<lower=0> sigma; }
             model { mu ~ normal(1, 2); sigma ~ exponential(0.5); y ~ normal(mu, sigma); }",
            &Constants::none(),
        )
        .unwrap();
        let y = (0..200).map(|i| f64::from(i % 11) / 5.0 - 1.0).collect();
        let rows = Rows::from_columns(&model.columns, vec![("y".into(), y)], OnBadRows::Error);
        let vault = Vault::new(Density::new(model), rows.unwrap_or_else(|e| panic!("{e}")));
        let (clip, tau, temperature) = (40.0, 0.001, 0.25);
        let gradient_scale = GradientScale::new(clip, 2, tau).unwrap();
        let event = |what: &str, sigma: f64, ratio: f64, coordinates: u64| {
            let lattice = Lattice::new(ratio, coordinates).unwrap();
            let event = Gaussian::of_clip(what, clip, Relation::Substitute, sigma).unwrap();
            Event::Gaussian(event.on_lattice(lattice).times(10))
        };
        let meter = Meter::new(vec![
            event(
                "gradient",
                gradient_scale.sigma(),
                gradient_scale.lattice_ratio(),
                2,
            ),
            event(
                "ratio",
                (2.0 * clip * tau).next_down(),
                penalty::LATTICE_RATIO,
                1,
            ),
        ]);
        let charge = |line| Charge {
            meter: &meter,
            line,
        };
        let mut private = PrivateOracle {
            vault: &vault,
            gradients: charge(0),
            log_ratios: charge(1),
            gradient_scale,
            penalty_scale: PenaltyScale::new(2, tau).unwrap(),
            clip_log_ratio: clip,
            temperature,
            rng: PrivateRng::from_insecure_seed(5),
        };
        let exact = ExactOracle {
            vault: &vault,
            permission: NotPrivate::acknowledged(),
            temperature,
        };
        for (from, to) in [([0.1, 0.3], [0.4, -0.2]), ([-0.5, 0.0], [0.2, 0.5])] {
            let (at_from, gradient) = exact.log_density(&from);
            let (at_to, _) = exact.log_density(&to);
            let noise = 6.0 * temperature * gradient_scale.sigma();
            for (ours, exact) in private.gradient(&from).unwrap().iter().zip(&gradient) {
                assert!((ours - exact).abs() < noise, "{ours} {exact} {noise}");
            }
            let prior = private.log_prior(&to) - private.log_prior(&from);
            let Ratio::Penalised(ratio) = private.log_ratio(&from, &to).unwrap() else {
                panic!("a short step")
            };
            // The noise of the ratio is at least 1/16 nat, see the lattice.
            let sigma = (2.0 * temperature * clip * tau * distance(&from, &to)).max(1.0 / 16.0);
            let error = prior + ratio + sigma * sigma / 2.0 - (at_to - at_from);
            assert!(error.abs() < 6.0 * sigma, "{error} {sigma}");
            // Large enough to see every term that could go wrong.
            assert!((at_to - at_from).abs() > 20.0 * sigma);
        }
    }
}
