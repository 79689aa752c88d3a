//! The Euclidean metric of Hamiltonian dynamics: its inverse is an estimate of
//! the posterior covariance.

use rand::Rng;
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};

/// The form of the metric that warm-up estimates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricForm {
    Unit,
    Diagonal,
    Dense,
}

impl MetricForm {
    /// The name in CmdStan.
    pub fn name(self) -> &'static str {
        match self {
            MetricForm::Unit => "unit",
            MetricForm::Diagonal => "diag",
            MetricForm::Dense => "dense",
        }
    }
}

/// M^-1, in Stan's forms.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    Unit,
    Diagonal(Vec<f64>),
    /// Covariance by rows, and its lower Cholesky factor by rows.
    Dense {
        covariance: Vec<f64>,
        factor: Vec<f64>,
    },
}

impl Metric {
    /// A dense metric, or `None` when the matrix is not positive definite.
    pub fn dense(covariance: Vec<f64>, dimension: usize) -> Option<Metric> {
        let factor = cholesky(&covariance, dimension)?;
        Some(Metric::Dense { covariance, factor })
    }

    /// Standard deviation of coordinate `j`: the root of M^-1's entry.
    pub fn deviation(&self, j: usize) -> f64 {
        match self {
            Metric::Unit => 1.0,
            Metric::Diagonal(variances) => variances[j].sqrt(),
            Metric::Dense { covariance, factor } => {
                let d = (factor.len() as f64).sqrt() as usize;
                covariance[j * d + j].sqrt()
            }
        }
    }

    /// p ~ N(0, M).
    pub fn momentum(&self, dimension: usize, rng: &mut impl Rng) -> Vec<f64> {
        let mut z: Vec<f64> = (0..dimension).map(|_| StandardNormal.sample(rng)).collect();
        match self {
            Metric::Unit => {}
            Metric::Diagonal(variances) => {
                for (p, v) in z.iter_mut().zip(variances) {
                    *p /= v.sqrt();
                }
            }
            // M = (L L')^-1, so p = L'^-1 z: back substitution.
            Metric::Dense { factor, .. } => {
                for i in (0..dimension).rev() {
                    for k in i + 1..dimension {
                        z[i] -= factor[k * dimension + i] * z[k];
                    }
                    z[i] /= factor[i * dimension + i];
                }
            }
        }
        z
    }

    /// M^-1 p.
    pub fn velocity(&self, p: &[f64]) -> Vec<f64> {
        match self {
            Metric::Unit => p.to_vec(),
            Metric::Diagonal(variances) => p.iter().zip(variances).map(|(p, v)| p * v).collect(),
            Metric::Dense { covariance, .. } => covariance
                .chunks_exact(p.len())
                .map(|row| row.iter().zip(p).map(|(c, p)| c * p).sum())
                .collect(),
        }
    }

    /// p' M^-1 p / 2.
    pub fn kinetic_energy(&self, p: &[f64]) -> f64 {
        0.5 * self
            .velocity(p)
            .iter()
            .zip(p)
            .map(|(v, p)| v * p)
            .sum::<f64>()
    }
}

fn cholesky(matrix: &[f64], n: usize) -> Option<Vec<f64>> {
    let mut l = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let dot: f64 = (0..j).map(|k| l[i * n + k] * l[j * n + k]).sum();
            let rest = matrix[i * n + j] - dot;
            if i == j {
                if !(rest > 0.0 && rest.is_finite()) {
                    return None;
                }
                l[i * n + i] = rest.sqrt();
            } else {
                l[i * n + j] = rest / l[j * n + j];
            }
        }
    }
    Some(l)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    /// Var(p) must be M, the inverse of the covariance: if the factor were used
    /// the wrong way round, the products below would differ by far more than
    /// their Monte Carlo error (1e5 draws: 5 sd is about 0.02 relative).
    #[test]
    fn momenta_have_the_metric_as_covariance() {
        let covariance = vec![2.0, 0.6, 0.6, 0.5];
        let determinant = 2.0 * 0.5 - 0.36;
        let expected = [0.5 / determinant, -0.6 / determinant, 2.0 / determinant];
        let metric = Metric::dense(covariance, 2).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let mut sums = [0.0; 3];
        let n = 100_000;
        for _ in 0..n {
            let p = metric.momentum(2, &mut rng);
            sums[0] += p[0] * p[0];
            sums[1] += p[0] * p[1];
            sums[2] += p[1] * p[1];
        }
        for (s, e) in sums.iter().zip(expected) {
            assert!(
                (s / f64::from(n) - e).abs() < 0.03 * expected[2],
                "{sums:?} {expected:?}"
            );
        }
        assert!(Metric::dense(vec![1.0, 2.0, 2.0, 1.0], 2).is_none());
    }
}
