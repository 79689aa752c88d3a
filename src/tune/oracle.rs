//! The answers that a vault with the simulated records would give.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::simulation::{Scene, norm};
use crate::density::Density;
use crate::privacy::{PenaltyPlan, Subsampling};
use crate::sampler::{Oracle, Plan, PlannedLine, Ratio, SampleError, Scale};

/// Answers of a plan on simulated records, each of which stands for many.
///
/// Noise is Gaussian and sums are floats: nobody needs protection here. The part that batches leave
/// out is a Gaussian of the same variance in each coordinate.
pub(super) struct SimulatedOracle<'a> {
    pub density: &'a Density,
    pub scene: &'a Scene,
    pub plan: &'a Plan,
    /// The number of records that one record of the scene stands for.
    pub weight: f64,
    pub rng: ChaCha8Rng,
}

impl SimulatedOracle<'_> {
    fn line(&self, line: usize) -> Result<&PlannedLine, SampleError> {
        let planned = self.plan.lines.get(line);
        planned.ok_or(SampleError::NotPlanned { line })
    }

    fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.rng)
    }
}

impl Oracle for SimulatedOracle<'_> {
    fn dimension(&self) -> usize {
        self.density.dimension()
    }

    fn log_prior(&mut self, theta: &[f64]) -> f64 {
        self.density.log_prior(theta)
    }

    fn gradient(&mut self, line: usize, theta: &[f64]) -> Result<Vec<f64>, SampleError> {
        let request = &self.plan.request;
        let planned = self.line(line)?;
        let Scale::Gradient(scale) = planned.scale else {
            return Err(SampleError::NotPlanned { line });
        };
        let d = self.dimension();
        let (mut sum, mut squares) = (vec![0.0; d], vec![0.0; d]);
        let gradients = self.scene.gradients_at(self.density, theta);
        for gradient in gradients.chunks(d) {
            let length = norm(gradient);
            if !length.is_finite() {
                continue;
            }
            let factor = if length > scale.clip() {
                scale.clip() / length
            } else {
                1.0
            };
            for (j, g) in gradient.iter().enumerate() {
                sum[j] += factor * g;
                squares[j] += (factor * g).powi(2);
            }
        }
        let left_out = match planned.line.subsampling {
            Subsampling::All => 0.0,
            Subsampling::Poisson(rate) => 1.0 / rate.rate().to_f64() - 1.0,
            Subsampling::FixedSize(_) => planned.line.weight(request) - 1.0,
        };
        let scaled_up = planned.line.weight(request) * scale.sigma();
        let temperature = request.temperature;
        let weight = self.weight;
        let (_, prior) = self.density.pull_back(theta, &[]);
        Ok((0..d)
            .map(|j| {
                let variance = scaled_up.powi(2) + left_out * weight * squares[j];
                let likelihood = weight * sum[j] + variance.sqrt() * self.normal();
                prior[j] + temperature * likelihood
            })
            .collect())
    }

    fn log_ratio(&mut self, line: usize, from: &[f64], to: &[f64]) -> Result<Ratio, SampleError> {
        let request = &self.plan.request;
        let Scale::LogRatio(scale) = self.line(line)?.scale else {
            return Err(SampleError::NotPlanned { line });
        };
        let squares = from.iter().zip(to).map(|(a, b)| (a - b) * (a - b));
        let distance = squares.sum::<f64>().sqrt();
        let bound = request.temperature * request.clip_log_ratio() * distance;
        let sigma = match scale.plan(bound)? {
            PenaltyPlan::Query(query) => query.sigma(),
            PenaltyPlan::Skip => return Ok(Ratio::Penalised(0.0)),
            PenaltyPlan::Refuse => return Ok(Ratio::Refused),
        };
        let [before, after] = [from, to].map(|t| self.scene.log_likelihoods_at(self.density, t));
        let sum: f64 = after
            .iter()
            .zip(&before)
            .map(|(a, b)| request.temperature * (a - b))
            .filter(|ratio| !ratio.is_nan())
            .map(|ratio| ratio.clamp(-bound, bound))
            .sum();
        let ratio = self.weight * sum + sigma * self.normal();
        Ok(Ratio::Penalised(ratio - 0.5 * sigma * sigma))
    }

    fn accept(&mut self, log_probability: f64) -> bool {
        self.rng.random::<f64>().ln() < log_probability
    }
}
