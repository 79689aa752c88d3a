//! The step of the level of a log hazard.
//!
//! The information F is taken from the follow-up that there was, so that with u constant the mean slope is
//! F (e^k - 1) where the log hazard is higher by k than at the centre, and Newton's step is e^k - 1 in place of
//! k: where the hazard is far too high, it goes down by at most 1 in a round, which would be taken for all
//! of the way.

use super::{RoundInputs, Search};
use crate::density::{BLOCK, Hazard, INTERVALS, Pull};
use crate::linear::{Matrix, dot};
use crate::sampler::laplace::form::Information;

/// No step is believed that leaves less than this share of the hazard, or than this many sds of the error of that share.
const LEAST: f64 = 0.1;
const IN_SDS: f64 = 2.0;

impl Search {
    /// The step and the covariance of its error, with the log hazard's mean change by the step corrected for
    /// the curvature of the exponential; `None` where outcomes have no hazard.
    pub(super) fn of_level(
        &self,
        ground: &RoundInputs,
        (step, left): (&[f64], &Matrix),
    ) -> Option<(Vec<f64>, Matrix)> {
        stretched(step, left, &self.mean_log_hazard_slope(ground)?)
    }

    /// The mean of u over simulated records, weighted by the hazard.
    fn mean_log_hazard_slope(&self, ground: &RoundInputs) -> Option<Vec<f64>> {
        let form = ground.form;
        let Information::Hazard(of) = form.information else {
            return None;
        };
        let hazard = Hazard::new(ground.density, of);
        let frame = self.frame(form);
        let sight = hazard.sight(&form.space, frame.centre(), &frame);
        let m = form.coordinates as usize;
        let mut scratch = hazard.scratch_at(&sight.z);
        let mut weights = vec![0.0; INTERVALS * BLOCK];
        let mut vectors = vec![0.0; INTERVALS * m * BLOCK];
        let (mut sum, mut total) = (vec![0.0; m], 0.0);
        let n = ground.simulated.first().map_or(0, Vec::len);
        for start in (0..n).step_by(BLOCK) {
            let rows = BLOCK.min(n - start);
            let columns: Vec<&[f64]> = (ground.simulated.iter())
                .map(|c| &c[start..start + rows])
                .collect();
            let into = (&mut weights[..], &mut vectors[..]);
            hazard.intervals(
                &columns,
                rows,
                Pull::Whole(&sight.jacobian),
                &mut scratch,
                into,
            );
            let each = weights.chunks(BLOCK).zip(vectors.chunks(m * BLOCK));
            for (weights, vectors) in each {
                for (i, w) in weights[..rows].iter().enumerate() {
                    let w = w.max(0.0);
                    total += w;
                    for (sum, column) in sum.iter_mut().zip(vectors.chunks(BLOCK)) {
                        *sum += w * column[i];
                    }
                }
            }
        }
        let mean: Vec<f64> = sum.iter().map(|x| x / total).collect();
        mean.iter().all(|x| x.is_finite()).then_some(mean)
    }
}

/// The step and the covariance of its error where the log hazard changes by `mean` for each unit of the step.
fn stretched(step: &[f64], left: &Matrix, mean: &[f64]) -> Option<(Vec<f64>, Matrix)> {
    let change = dot(mean, step);
    let of_error = left.times(mean);
    let variance = dot(mean, &of_error).max(f64::MIN_POSITIVE);
    let believed = change.max(LEAST - 1.0);
    let share = (1.0 + believed).max(IN_SDS * variance.sqrt());
    // A step that is as long as its noise tells nothing of the curvature.
    if (share - 1.0) * change <= 0.0 {
        return None;
    }
    let stretch = share.ln() / (share - 1.0) * believed / change;
    // An error of e^k - 1 is one of k times e^k.
    let more = (share.powi(-2) - 1.0).max(0.0) / variance;
    let m = step.len();
    let error = Matrix::new(m, m, |i, j| left[(i, j)] + more * of_error[i] * of_error[j]);
    Some((step.iter().map(|x| stretch * x).collect(), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    // A level of the log hazard along (1, 0), and a coefficient beside it. If it failed: steps down would be too short
    // where events are rare, or steps up too long, and be believed.
    #[test]
    fn a_step_of_the_level_is_the_logarithm_of_newtons() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        let mean = [1.0, 0.0];
        let left = Matrix::diagonal(&[1e-4, 0.04]);
        for k in [-2.0f64, -0.5, 0.5, 3.0] {
            let newton = k.exp() - 1.0;
            let (step, error) = stretched(&[newton, 0.0], &left, &mean).unwrap();
            near(step[0], k);
            // That of a shorter step is left as it is, which claims less.
            near(error[(0, 0)], 1e-4 * (-2.0 * k).exp().max(1.0));
            near(error[(1, 1)], 0.04);
        }
        // No more is believed than a tenth of the hazard, or than the noise lets be seen.
        near(
            stretched(&[-5.0, 0.0], &left, &mean).unwrap().0[0],
            LEAST.ln(),
        );
        let noisy = Matrix::diagonal(&[0.0625, 0.04]);
        let (step, error) = stretched(&[-0.9, 0.0], &noisy, &mean).unwrap();
        near(step[0], 0.9 * 0.5f64.ln() / 0.5);
        near(error[(0, 0)], 0.0625 * 4.0);
        assert!(stretched(&[-0.9, 0.0], &Matrix::identity(2), &mean).is_none());
        // Coefficients alone do not change the mean.
        assert!(stretched(&[0.0, 3.0], &left, &mean).is_none());
    }
}
