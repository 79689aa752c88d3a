//! The step of the level of a log hazard.
//!
//! The information F is taken from the follow-up that there was, so that with u constant the mean slope is
//! F (e^k - 1) where the log hazard is higher by k than at the centre, and Newton's step is e^k - 1 in place of
//! k: where the hazard is far too high, it goes down by at most 1 in a round, which would be taken for all
//! of the way.

use super::{Ground, Search};
use crate::density::{BLOCK, Hazard, INTERVALS};
use crate::linear::{Matrix, dot};
use crate::sampler::contract::form::Information;

/// The least 1 + step of the log hazard that is believed, and in sds of its error.
const LEAST: f64 = 0.1;
const IN_SDS: f64 = 2.0;

impl Search {
    /// The step and the covariance of its error, with the log hazard's mean change by the step corrected for
    /// the curvature of the exponential; `None` where outcomes have no hazard.
    pub(super) fn of_level(
        &self,
        ground: &Ground,
        (step, left): (&[f64], &Matrix),
    ) -> Option<(Vec<f64>, Matrix)> {
        let mean = self.mean_log_hazard_slope(ground)?;
        let change = dot(&mean, step);
        let of_error = left.times(&mean);
        let variance = dot(&mean, &of_error).max(f64::MIN_POSITIVE);
        let share = (1.0 + change).max(LEAST).max(IN_SDS * variance.sqrt());
        // A step that is as long as its noise tells nothing of the curvature.
        if (share - 1.0) * change <= 0.0 {
            return None;
        }
        let stretch = share.ln() / (share - 1.0);
        // The error of the step, e^k - 1, is one of k that is longer by e^-k.
        let more = (share.powi(-2) - 1.0).max(0.0) / variance;
        let m = step.len();
        let error = Matrix::new(m, m, |i, j| left[(i, j)] + more * of_error[i] * of_error[j]);
        Some((step.iter().map(|x| stretch * x).collect(), error))
    }

    /// The mean of u over simulated records, weighted by the hazard.
    fn mean_log_hazard_slope(&self, ground: &Ground) -> Option<Vec<f64>> {
        let form = ground.form;
        let Information::Hazard(of) = form.information else {
            return None;
        };
        let hazard = Hazard::new(ground.density, of);
        let frame = self.frame(form);
        let sight = hazard.sight(&form.space, frame.centre(), &frame);
        let m = form.coordinates as usize;
        let mut scratch = hazard.scratch_at(&sight.z, m);
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
            hazard.intervals(&columns, rows, &sight, &mut scratch, into);
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
