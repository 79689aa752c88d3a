//! The step of the centre that follows a look at the gradients, and its limits.

use super::gradient::Observed;
use super::revision::Step;
use super::{Movement, RoundAxes, RoundInputs, Search, difference, mean_variance, products, sum};
use crate::linear::{Matrix, dot, length};
use crate::sampler::laplace::form::{Form, Information};
use crate::sampler::laplace::kalman;
use crate::sampler::laplace::response::{ObservedSlope, Response};

/// The variance of the centre's error after a step, in posterior variances: always, and for each
/// unit of the step's mean square, from the first value for short steps to the second for those that
/// are a good part of one record's sd, over which the slope changes; more where the step was cut.
const DRIFT: f64 = 0.02;
const DRIFT_OF_STEP: [f64; 2] = [0.02, 0.15];
const DRIFT_OF_CUT: f64 = 4.0;
/// The same in each direction, as a share of the square of the step beyond `BY_NOISE` times the noise:
/// the second value where most of the squares of lengths are not seen.
const DRIFT_ALONG: f64 = 0.5;
const BY_NOISE: [f64; 2] = [4.0, 1.0];
/// The longest step where the response by the law is known, in sds of one record; else it is one.
const REACH: f64 = 4.0;
/// Dispersions of counts are learnt in this many last rounds only: the second number under a tight budget,
/// where means are found later.
const ROUNDS_OF_SPREAD: [usize; 2] = [4, 2];
/// No step is longer than this many times the range of the prior.
const OF_PRIOR: f64 = 2.0;

impl Search {
    /// Moves the centre as the slope tells: a Kalman step, where the law does not know a better one.
    pub(super) fn advance(
        &mut self,
        ground: &RoundInputs,
        turned: &RoundAxes,
        observed: Observed,
        rounds_left: usize,
    ) {
        let form = ground.form;
        let m = form.coordinates as usize;
        let effective = ground.plan.request.temperature * self.records;
        let weights = form.weights();
        let axes = &turned.axes;
        let Observed {
            off,
            mut slope,
            variance,
            mut variances,
            clip,
            efficiency,
            missing,
            response,
            tells_directions,
        } = observed;
        let mut belief = self.belief.between(&self.inverse.transposed());
        // Of what groups share little is seen at first: steps so far were off by that share of the way.
        let way = self.inverse.times(&self.centre);
        self.slope_errors = (0..m)
            .map(|j| axes.errors[j] * efficiency * weights[j].powi(2))
            .collect();
        for j in 0..m {
            if form.blocks.is_some() {
                belief[(j, j)] += (axes.errors[j] * way[j]).powi(2);
            }
        }
        if form.blocks.is_none() && form.information != Information::Public {
            self.note_gradient((&off, &variances), &slope, efficiency);
            slope = self.with_secants(slope, efficiency);
        }
        variances = sum(&variances, &self.doubts_of_slope(&belief));
        let ahead = self.inverse.times(&self.ahead);
        let unexpected = kalman::unexplained(&ahead, &slope, &off);
        let (surprise, wider) = kalman::contradiction(&mut belief, &slope, &variances, &unexpected);
        let (beyond, mut left) = kalman::step(&belief, &slope, &variances, &unexpected);
        let mut step = sum(&ahead, &beyond);
        let answered = response.as_ref().and_then(|response| {
            response.instead_of(&step, &left, variance / (efficiency * efficiency))
        });
        // A quadratic is the same everywhere.
        let is_quadratic = form.information == Information::Public;
        let mut reach = if is_quadratic {
            f64::INFINITY
        } else if answered.is_some() {
            REACH * effective.sqrt()
        } else {
            effective.sqrt()
        };
        step = answered.unwrap_or(step);
        if let Some(found) = self.of_level(ground, (&step, &left)) {
            reach = REACH * effective.sqrt();
            (step, left) = found;
        }
        let mut short = vec![0.0; m];
        if let Some(response) = &response {
            let seen = ObservedSlope {
                slope: off.iter().map(|x| x / efficiency).collect(),
                noise: variance / (efficiency * efficiency),
                ahead: &ahead,
                belief: &belief,
                claims: &axes.claims,
                by_units: ground.plan.request.shared_units,
                is_last: rounds_left == 0,
            };
            if let Some(found) = response.along_spread((&step, &left), &seen, REACH) {
                reach = REACH * found.rows.sqrt();
                (step, left) = (found.step, found.left);
                short = found.short;
            }
        }
        let late = ROUNDS_OF_SPREAD[usize::from(ground.shares.are_tight())];
        if rounds_left >= late
            && let Some(spread) = response.as_ref().and_then(Response::beside_means)
        {
            (step, left) = self.hold(&spread, &step, &left);
        }
        let limited = form.apart_from_alike_groups();
        let beyond = self.beyond_reach(form, &step, reach);
        let cut = beyond.is_some();
        let mean_square = |step: &[f64]| {
            let in_sds = products(step, &weights);
            dot(&in_sds, &in_sds) / m.max(1) as f64
        };
        // What was believed before is no news.
        let wanted = mean_square(&difference(&step, &ahead));
        if let Some(beyond) = beyond {
            step = difference(&step, &beyond);
        }
        let in_sds = products(&step, &weights);
        let square = mean_square(&step);
        let by_direction = response.as_ref().filter(|_| tells_directions);
        if let Some(stretch) = by_direction.and_then(|response| response.stretch(&step)) {
            (left, self.claimed) = stretched((&left, &self.claimed), &stretch);
        }
        let width = (1.0 + mean_variance(&left, &weights).max(0.0)).sqrt();
        // Where a step was longer than the noise explains, the next may be as long, above all where
        // few records have most of the information.
        let by_noise = BY_NOISE[usize::from(missing > 0.5)];
        let squares: Vec<f64> = (0..m)
            .map(|j| step[j] * step[j] - by_noise * left[(j, j)])
            .collect();
        let more: Vec<f64> = (pooled(form, squares).iter())
            .map(|square| DRIFT_ALONG * square.max(0.0))
            .collect();
        let free = in_sds.iter().zip(&limited).filter(|(_, limited)| **limited);
        let squares = free.map(|(x, _)| x * x).sum::<f64>();
        let count = limited.iter().filter(|limited| **limited).count();
        let [least, most] = DRIFT_OF_STEP;
        let drifts: Vec<f64> = (0..m)
            .map(|j| {
                let mut of_step = if is_quadratic {
                    most
                } else {
                    most.min(least + squares / effective) + axes.doubtful[j]
                };
                if cut {
                    of_step += DRIFT_OF_CUT;
                }
                let of_step = if limited[j] {
                    of_step * squares / count as f64
                } else {
                    0.0
                };
                let always = if rounds_left == 0 || is_quadratic {
                    0.0
                } else {
                    DRIFT
                };
                (of_step + always) / weights[j].powi(2)
            })
            .collect();
        left = &left.with_eigenvalues(|e| e.max(1e-12)) + &Matrix::diagonal(&drifts);
        if !is_quadratic {
            left = &left + &Matrix::diagonal(&more);
        }
        // With groups, what was seen late is allowed for above; the information of a quadratic is public.
        if form.blocks.is_none() && !is_quadratic {
            let taken = kalman::taken(&belief, &slope, &variances);
            let kept = &Matrix::identity(m) - &taken;
            self.history.push(Step {
                axes: self.axes.clone(),
                wider,
                added: &left - &belief.between(&kept.transposed()),
                taken,
                hidden: axes.hidden.clone(),
                since: Matrix::identity(m),
            });
        }
        self.belief = left.between(&self.axes.transposed());
        if rounds_left == 0 {
            self.revise(&axes.expected);
        }
        for (c, s) in self.centre.iter_mut().zip(self.axes.times(&step)) {
            *c += s;
        }
        self.carry_seen((form, ground.simulated), form.law(ground.density).as_ref());
        self.ahead = self.axes.times(&short);
        if let Some(look) = self.looks.last_mut() {
            look.moved = square.sqrt();
        }
        self.clip = clip;
        self.efficiency = efficiency;
        self.steps.push(Movement {
            length: square.sqrt(),
            widths: wanted.sqrt() / width,
            cut,
            surprise,
        });
    }
}

impl Search {
    /// The part of a step that leads beyond this many sds or the prior's reach, if it does. What groups are thought to be
    /// is limited by the prior, from whose view records are seen.
    pub(super) fn beyond_reach(&self, form: &Form, step: &[f64], reach: f64) -> Option<Vec<f64>> {
        let limited = form.apart_from_alike_groups();
        let free: Vec<f64> = (step.iter().zip(&limited))
            .map(|(x, limited)| if *limited { *x } else { 0.0 })
            .collect();
        let moved = form.base.times(&self.axes.times(&free));
        let of_prior = (moved.iter().zip(&form.spread))
            .map(|(moved, spread)| OF_PRIOR * spread / moved.abs().max(f64::MIN_POSITIVE))
            .fold(f64::INFINITY, f64::min);
        let share = (reach / length(&products(&free, &form.weights()))).min(of_prior);
        (share < 1.0).then(|| free.iter().map(|x| (1.0 - share) * x).collect())
    }

    /// The step and the covariance of its error without the part on which `held` projects: it stays where it is,
    /// and as uncertain.
    ///
    /// While means are far off, their errors look like dispersion, and the filter would be sure of a wrong one.
    /// Scores that tell of means have expectation zero at the right ones, whatever the dispersion is; clipping
    /// unbalances them a little, until the last rounds.
    fn hold(&self, held: &Matrix, step: &[f64], left: &Matrix) -> (Vec<f64>, Matrix) {
        let rest = &Matrix::identity(step.len()) - held;
        let before = self.belief.between(&self.inverse.transposed());
        let error = &left.between(&rest.transposed()) + &before.between(&held.transposed());
        (rest.times(step), error)
    }
}

/// The covariance of the centre's error, and the claimed information, where a step changes errors by this factor.
fn stretched((error, information): (&Matrix, &Matrix), stretch: &Matrix) -> (Matrix, Matrix) {
    (
        error.between(&stretch.transposed()),
        information.between(&stretch.general_inverse()),
    )
}

/// The values with those of groups replaced by their mean.
fn pooled(form: &Form, mut values: Vec<f64>) -> Vec<f64> {
    if let Some(blocks) = &form.blocks {
        let grouped: Vec<usize> = blocks.groups.iter().flatten().copied().collect();
        let sum: f64 = grouped.iter().map(|&j| values[j]).sum();
        for &j in &grouped {
            values[j] = sum / grouped.len() as f64;
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    // Oracle: an error v with the covariance C becomes S v with S C S', and the inverse of that is S'^-1 C^-1 S^-1. If
    // it failed: after a step to a place with less information, more than there is would be claimed.
    #[test]
    fn the_information_is_still_the_inverse_of_the_error_that_it_leaves() {
        let error = Matrix::new(2, 2, |i, j| [[2.0, 0.5], [0.5, 1.0]][i][j]);
        let stretch = Matrix::new(2, 2, |i, j| [[1.0, 0.0], [-1.2, 4.0]][i][j]);
        let (error, information) = stretched((&error, &error.inverse()), &stretch);
        // (1, 0) S C: 2, and -1.2 x 2 + 4 x .5; and so on.
        let oracle = Matrix::new(2, 2, |i, j| [[2.0, -0.4], [-0.4, 14.08]][i][j]);
        assert!((&error - &oracle).norm() < 1e-9, "{error:?}");
        let off = (&(&error * &information) - &Matrix::identity(2)).norm();
        assert!(off < 1e-9, "{information:?}");
    }
}
