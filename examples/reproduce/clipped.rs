//! How many records a bound clips. Of data that are made up or public, for which anybody may
//! know that.

use crate::problem::Shape;

/// Every so many-th record is looked at: records are alike, and this is to cost little.
const RATIO_STRIDE: usize = 5;
const GRADIENT_STRIDE: usize = 50;

/// Records of which anybody may see how many a bound clips.
pub trait Clipping: Sync {
    /// Share of the records whose log-ratio from `from` to `to` is larger than `bound` nats.
    fn ratios_beyond(&self, from: &[f64], to: &[f64], bound: f64) -> f64;

    /// Share of the records whose gradient at `theta` is longer than `bound`.
    fn gradients_beyond(&self, theta: &[f64], bound: f64) -> f64;
}

/// Records z = W x, whitened, around m(theta) = W mu(theta): log-likelihoods are
/// -|z - m|^2/2 up to constants.
pub struct Whitened {
    shape: Shape,
    /// The banana's a.
    bend: f64,
    /// W, lower triangular.
    whitening: Vec<Vec<f64>>,
    /// z, by columns.
    columns: Vec<Vec<f64>>,
}

impl Whitened {
    /// `factor`: lower Cholesky factor of a record's covariance.
    pub fn new(shape: Shape, bend: f64, factor: &[Vec<f64>], columns: &[Vec<f64>]) -> Whitened {
        let whitening = inverse(factor);
        let n = columns[0].len();
        let subset: Vec<usize> = (0..n).step_by(RATIO_STRIDE).collect();
        let whitened = |row: &Vec<f64>| -> Vec<f64> {
            let entry = |&i: &usize| row.iter().zip(columns).map(|(w, c)| w * c[i]).sum();
            subset.iter().map(entry).collect()
        };
        Whitened {
            shape,
            bend,
            columns: whitening.iter().map(whitened).collect(),
            whitening,
        }
    }

    /// mu(theta): what records are around.
    fn unwhitened(&self, theta: &[f64]) -> Vec<f64> {
        match self.shape {
            Shape::Circle { .. } => vec![theta.iter().map(|t| t * t).sum()],
            Shape::Gauss | Shape::Correlated => theta.to_vec(),
            Shape::Banana { .. } | Shape::PaperBanana => {
                let mut centre = theta.to_vec();
                centre[1] += self.bend * theta[0] * theta[0];
                centre
            }
        }
    }

    fn centre(&self, theta: &[f64]) -> Vec<f64> {
        self.whiten(&self.unwhitened(theta))
    }

    fn whiten(&self, x: &[f64]) -> Vec<f64> {
        let dot = |row: &Vec<f64>| row.iter().zip(x).map(|(w, x)| w * x).sum();
        self.whitening.iter().map(dot).collect()
    }

    /// Of m(theta), by rows.
    fn jacobian(&self, theta: &[f64]) -> Vec<Vec<f64>> {
        let column = |j: usize| -> Vec<f64> {
            let mut slope = vec![0.0; self.whitening.len()];
            match self.shape {
                Shape::Circle { .. } => slope[0] = 2.0 * theta[j],
                Shape::Gauss | Shape::Correlated => slope[j] = 1.0,
                Shape::Banana { .. } | Shape::PaperBanana => {
                    slope[j] = 1.0;
                    if j == 0 {
                        slope[1] = 2.0 * self.bend * theta[0];
                    }
                }
            }
            self.whiten(&slope)
        };
        let columns: Vec<Vec<f64>> = (0..theta.len()).map(column).collect();
        let row = |k: usize| columns.iter().map(|c| c[k]).collect();
        (0..self.whitening.len()).map(row).collect()
    }
}

impl Clipping for Whitened {
    fn ratios_beyond(&self, from: &[f64], to: &[f64], bound: f64) -> f64 {
        // l(to) - l(from) = (m' - m)' (z - (m + m')/2)
        let (m, m_to) = (self.centre(from), self.centre(to));
        let step: Vec<f64> = m_to.iter().zip(&m).map(|(b, a)| b - a).collect();
        let constant: f64 = (0..m.len())
            .map(|j| step[j] * f64::midpoint(m[j], m_to[j]))
            .sum();
        let ratio = |i: usize| {
            let terms = self.columns.iter().zip(&step);
            terms.map(|(column, s)| s * column[i]).sum::<f64>() - constant
        };
        let n = self.columns[0].len();
        (0..n).filter(|&i| ratio(i).abs() > bound).count() as f64 / n as f64
    }

    fn gradients_beyond(&self, theta: &[f64], bound: f64) -> f64 {
        let (m, jacobian) = (self.centre(theta), self.jacobian(theta));
        let length = |i: usize| {
            let mut gradient = vec![0.0; theta.len()];
            for ((column, m), row) in self.columns.iter().zip(&m).zip(&jacobian) {
                let rest = column[i] - m;
                for (g, slope) in gradient.iter_mut().zip(row) {
                    *g += slope * rest;
                }
            }
            gradient.iter().map(|g| g * g).sum::<f64>().sqrt()
        };
        let n = self.columns[0].len();
        let looked_at = (0..n).step_by(GRADIENT_STRIDE / RATIO_STRIDE);
        let total = looked_at.clone().count();
        looked_at.filter(|&i| length(i) > bound).count() as f64 / total as f64
    }
}

/// The inverse of a lower triangular matrix, by forward substitution.
fn inverse(factor: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let d = factor.len();
    // Column k of the inverse.
    let column = |k: usize| -> Vec<f64> {
        let mut x = vec![0.0; d];
        for i in k..d {
            let known: f64 = (k..i).map(|j| factor[i][j] * x[j]).sum();
            let unit = if i == k { 1.0 } else { 0.0 };
            x[i] = (unit - known) / factor[i][i];
        }
        x
    };
    let columns: Vec<Vec<f64>> = (0..d).map(column).collect();
    let row = |i: usize| columns.iter().map(|c| c[i]).collect();
    (0..d).map(row).collect()
}
