//! The belief about the centre by what was known last, of steps that went by less.
//!
//! Where noise hides the information, a round takes as much for it as the noise could hide. A step that goes by too
//! much information is too short, and leaves a larger error than the filter believes: with the gain G it leaves
//! (1 - G H) e of the error e, where H is the slope that there is, not the one that the gain was made for (Bucy and
//! Joseph, Filtering for Stochastic Processes with Applications to Guidance, 1968). So after the last round the
//! belief is computed again from the first, with the information that is expected by then.

use super::Search;
use crate::linear::Matrix;
use serde::{Deserialize, Serialize};

/// A step, in the frame of its round.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    pub axes: Matrix,
    /// The factor by which the belief was made wider before the step.
    pub wider: f64,
    /// G H: the share of the error that the step takes away if the slope is H.
    pub taken: Matrix,
    /// The covariance of what the step adds to the error.
    pub added: Matrix,
    /// Whether noise hid the information in each direction.
    pub hidden: Vec<bool>,
    /// From the coordinates of this frame to those of the latest.
    pub since: Matrix,
}

impl Step {
    pub fn is_sound(&self, m: usize) -> bool {
        let matrices = [&self.axes, &self.taken, &self.added, &self.since];
        matrices
            .iter()
            .all(|a| a.rows() == m && a.columns() == m && a.is_finite())
            && self.hidden.len() == m
            && self.wider.is_finite()
    }

    /// The part of the frame's information that is there, where `expected` is what is expected in the latest frame:
    /// all of it in directions where it was seen.
    fn there(&self, expected: &[f64]) -> Matrix {
        let m = self.hidden.len();
        let now = Matrix::diagonal(expected).between(&self.since);
        let now = now.with_eigenvalues(|e| e.clamp(0.0, 1.0));
        Matrix::new(m, m, |i, j| {
            if self.hidden[i] && self.hidden[j] {
                now[(i, j)]
            } else {
                f64::from(u8::from(i == j))
            }
        })
    }

    /// The covariance of the error after the step, in y, where it was `before`.
    fn after(&self, before: &Matrix, expected: &[f64]) -> Matrix {
        let inverse = self.axes.general_inverse();
        let before = before.between(&inverse.transposed()).scaled(self.wider);
        let left = &Matrix::identity(self.hidden.len()) - &(&self.taken * &self.there(expected));
        let after = &before.between(&left.transposed()) + &self.added;
        after
            .with_eigenvalues(|e| e.max(1e-12))
            .between(&self.axes.transposed())
    }
}

impl Search {
    /// Notes that the coordinates of the latest frame are `turn` times those before.
    pub(super) fn turned_by(&mut self, turn: &Matrix) {
        for step in &mut self.history {
            step.since = turn * &step.since;
        }
    }

    /// Computes the belief again, where `expected` is the information that is expected in each direction of the
    /// latest frame.
    pub(super) fn revise(&mut self, expected: &[f64]) {
        let is_hidden = |step: &Step| step.hidden.contains(&true);
        if self.history.iter().any(is_hidden) {
            let revised = (self.history.iter()).fold(self.first_belief.clone(), |belief, step| {
                step.after(&belief, expected)
            });
            if revised.is_finite() {
                self.belief = revised;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::laplace::kalman;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    /// The assumed slope is 1 in these axes.
    fn step(belief: &Matrix, axes: &Matrix, noise: &[f64], hidden: &[bool]) -> (Step, Matrix) {
        let m = noise.len();
        let one = Matrix::identity(m);
        let in_frame = belief.between(&axes.general_inverse().transposed());
        let (_, left) = kalman::step(&in_frame, &one, noise, &vec![0.0; m]);
        let taken = kalman::taken(&in_frame, &one, noise);
        let kept = &one - &taken;
        let step = Step {
            axes: axes.clone(),
            wider: 1.0,
            added: &left - &in_frame.between(&kept.transposed()),
            taken,
            hidden: hidden.to_vec(),
            since: one,
        };
        (step, left.between(&axes.transposed()))
    }

    fn search(belief: Matrix) -> Search {
        Search::at(vec![0.0; belief.rows()], belief, 100.0)
    }

    // If it failed: intervals would be wider where all that was assumed proved true.
    #[test]
    fn a_filter_that_was_right_is_not_revised() {
        let first = Matrix::new(2, 2, |i, j| [[9.0, 2.0], [2.0, 4.0]][i][j]);
        let axes = Matrix::new(2, 2, |i, j| [[0.5, 0.1], [-0.2, 0.7]][i][j]);
        let mut search = search(first.clone());
        let (one, belief) = step(&first, &axes, &[1.0, 2.0], &[true, true]);
        let (two, belief) = step(&belief, &axes.scaled(0.5), &[0.4, 0.3], &[false, true]);
        search.history = vec![one, two];
        // The first frame has twice the length of the second.
        search.history[0].since = Matrix::identity(2).scaled(2.0);
        search.revise(&[1.0, 1.0]);
        let off = (&search.belief - &belief).norm();
        assert!(off < 1e-9, "{:?} {belief:?}", search.belief);
    }

    // Oracle: the mean square of 100,000 simulated errors, of steps whose gains are for a slope of 1 where it is .1 and
    // .6 in turned axes. The bound is five standard errors, a root of 2 / 100,000 of a variance. If it failed: where
    // covariates are declared far wider than they are, the answer would be the middle of the prior, and certain.
    #[test]
    fn the_error_of_steps_that_were_too_short_is_known() {
        let axes = Matrix::new(2, 2, |i, j| [[0.8, 0.6], [-0.6, 0.8]][i][j]);
        let slopes = [0.1, 0.6];
        let noise = [0.5f64, 0.2];
        let first = Matrix::identity(2).scaled(25.0);
        let mut search = search(first.clone());
        let mut belief = first;
        for _ in 0..3 {
            let (step, left) = step(&belief, &axes, &noise, &[true, true]);
            belief = left;
            search.history.push(step);
        }
        search.revise(&slopes);
        let believed = search.belief.between(&axes);

        let rng = &mut ChaCha8Rng::seed_from_u64(5);
        let mut squares = [0.0; 2];
        let runs = 100_000;
        for _ in 0..runs {
            for j in 0..2 {
                let mut normal = || -> f64 { StandardNormal.sample(rng) };
                let mut error = 5.0 * normal();
                for step in &search.history {
                    let gain = step.taken[(j, j)];
                    error -= gain * (slopes[j] * error + noise[j].sqrt() * normal());
                }
                squares[j] += error * error / f64::from(runs);
            }
        }
        let filtered = belief.between(&axes);
        for j in 0..2 {
            let ratio = believed[(j, j)] / squares[j];
            let bound = 5.0 * (2.0 / f64::from(runs)).sqrt();
            assert!((ratio - 1.0).abs() < bound, "{j}: {ratio}");
        }
        assert!(filtered[(0, 0)] < 0.02 * squares[0]);
    }

    // Directions in which the information was seen are those of the filter. If it failed: information that is less at
    // the last place than at the first would make the belief wider, though the steps were right.
    #[test]
    fn what_was_seen_is_not_revised() {
        let first = Matrix::identity(2).scaled(9.0);
        let mut search = search(first.clone());
        let (one, belief) = step(&first, &Matrix::identity(2), &[1.0; 2], &[false, true]);
        search.history = vec![one];
        search.revise(&[0.2, 0.2]);
        assert!((search.belief[(0, 0)] - belief[(0, 0)]).abs() < 1e-9);
        // By hand: the gain is .9, so that (1 - .9 x .2)^2 9 + .81 is left.
        assert!((search.belief[(1, 1)] - (0.82f64.powi(2) * 9.0 + 0.81)).abs() < 1e-9);
    }
}
