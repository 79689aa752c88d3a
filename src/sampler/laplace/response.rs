//! Where a step leads by the model's own law, which is not quadratic.
//!
//! A Newton step takes the slope of the log-likelihood for linear in how far the parameters are
//! off. The law says what it is: where records have the parameters t + s, the mean of the score at
//! t is r(s) = E_{t+s} g_t, with the derivative E_{t+s}[g_t g_{t+s}'], which at s = 0 is the
//! information J. A slope that makes for the Newton step d is that of the s with r(s) = J d. A scale that
//! is ten times too large has a score as if it were half of it too large; one that is too large looks
//! like tails as well, as of few degrees of freedom, and a Newton step goes for these.
//!
//! Means are over records that are made up, and public. What these do not tell, a step keeps.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::density::{BLOCK, Density, Frame, Law, Located, Node, Sight, Simulator};
use crate::linear::{Matrix, dot, length};
use crate::sampler::form::Form;

/// Of records that are made up, and how many there are.
const SEED: u64 = 2;
const RECORDS: usize = if BLOCK < 128 { BLOCK } else { 128 };
/// A shorter step, root mean square in sds of posterior and noise together, is taken for right.
const SHORT: f64 = 3.0;
/// How much the Newton step counts, beside what the law says of the slope.
const KEPT: f64 = 0.1;
/// Of the Levenberg-Marquardt algorithm: of the mean eigenvalue, at first.
const DAMPING: f64 = 1e-3;
const ITERATIONS: usize = 50;
/// It has arrived where the square falls by less.
const ENOUGH: f64 = 0.01;
/// What at most may be left of the square, beside one of noise for each coordinate.
const MET: f64 = 0.2;

/// What made-up records say of steps from the centre of a frame.
pub(super) struct Response<'a> {
    law: &'a Law<'a>,
    form: &'a Form,
    frame: &'a Frame,
    /// From its centre.
    here: Sight,
    columns: Vec<Vec<f64>>,
    /// For so many made-up records stand all.
    times: f64,
}

/// A step, what it leaves of the slope, what the Newton step pulls with, and the square of both in
/// units of the noise.
struct Trial {
    step: Vec<f64>,
    score: Score,
    missed: Vec<f64>,
    pull: Vec<f64>,
    square: f64,
}

/// The sum of scores at the centre where parameters are elsewhere, and its derivative.
struct Score {
    mean: Vec<f64>,
    slope: Matrix,
}

impl<'a> Response<'a> {
    /// Of so many records.
    pub fn new(
        form: &'a Form,
        density: &Density,
        law: &'a Law<'a>,
        frame: &'a Frame,
        records: f64,
    ) -> Response<'a> {
        let rng = &mut ChaCha8Rng::seed_from_u64(SEED);
        let raw = Simulator::new(density).records(&form.middle, RECORDS, None, rng);
        Response {
            law,
            form,
            frame,
            here: law.sight(&form.space, frame.centre(), frame),
            columns: density.columns_of_law(&raw),
            times: records / RECORDS as f64,
        }
    }

    /// What takes the place of a long Newton step that is known with this covariance, from a slope
    /// whose noise has this variance: the step of which that slope would come, found by the
    /// Levenberg-Marquardt algorithm from the centre. A longer one is not taken, since it would
    /// make more of the noise; nor one that does not explain the slope.
    pub fn instead_of(
        &self,
        newton: &[f64],
        covariance: &Matrix,
        variance: f64,
    ) -> Option<Vec<f64>> {
        let m = newton.len();
        let longest = length(newton);
        let wide = covariance.with_eigenvalues(|e| 1.0 / (1.0 + e.max(0.0)));
        if wide.form(newton) < SHORT * SHORT * m as f64 {
            return None;
        }
        let centre = vec![0.0; m];
        let score = self.score(&centre)?;
        let wanted = score.slope.times(newton);
        let known = covariance.with_eigenvalues(|e| e.max(1e-12)).inverse();
        let kept = known.scaled(KEPT * variance);
        let trial = |step: Vec<f64>, score: Score| {
            let missed = difference(&wanted, &score.mean);
            let apart = difference(newton, &step);
            let pull = kept.times(&apart);
            Trial {
                square: (dot(&missed, &missed) + dot(&apart, &pull)) / variance,
                missed,
                pull,
                step,
                score,
            }
        };
        let mut best = trial(centre, score);
        let first = best.square;
        let mut damping = DAMPING;
        for _ in 0..ITERATIONS {
            let slope = &best.score.slope;
            let back = slope.transposed();
            let downhill = sum(&back.times(&best.missed), &best.pull);
            let curvature = &(&back * slope) + &kept;
            let damped = damping * curvature.trace() / m as f64;
            let damped = &curvature + &Matrix::identity(m).scaled(damped);
            let step = sum(&best.step, &damped.inverse().times(&downhill));
            let score = (length(&step) <= longest)
                .then(|| self.score(&step))
                .flatten();
            match score.map(|score| trial(step, score)) {
                Some(better) if better.square < best.square => {
                    let gain = best.square - better.square;
                    best = better;
                    damping *= 0.1;
                    if gain < ENOUGH {
                        break;
                    }
                }
                _ => damping *= 8.0,
            }
        }
        (best.square < MET * first + m as f64).then_some(best.step)
    }

    /// None where it is no number.
    fn score(&self, at: &[f64]) -> Option<Score> {
        let m = at.len();
        let moved = self.frame.moved(at);
        let there = self.law.sight(&self.form.space, moved.centre(), &moved);
        let mut scratch = self.law.scratch_at(&there.z, m);
        let located = self.law.locate(&self.columns(), RECORDS, &mut scratch);
        let mut gradients = Vec::new();
        self.visit(&located, &there, m, |_, node| {
            gradients.push((node.probabilities.to_vec(), node.gradients.to_vec()));
        });
        let mut mean = vec![0.0; m];
        let mut slope = vec![0.0; m * m];
        self.visit(&located, &self.here, m, |node, here| {
            let (there_probabilities, there) = &gradients[node];
            for i in 0..here.probabilities.len() {
                // Where one of the two is no number, it counts for neither.
                let p = here.probabilities[i].min(there_probabilities[i]) * self.times;
                if p > 0.0 {
                    for j in 0..m {
                        let g = p * here.gradients[j * BLOCK + i];
                        mean[j] += g;
                        for k in 0..m {
                            slope[j * m + k] += g * there[k * BLOCK + i];
                        }
                    }
                }
            }
        });
        let slope = Matrix::new(m, m, |j, k| slope[j * m + k]);
        (slope.is_finite() && mean.iter().all(|x| x.is_finite())).then_some(Score { mean, slope })
    }

    /// Hands over the nodes, with the gradients that records have in this sight.
    fn visit(&self, located: &Located, sight: &Sight, m: usize, visit: impl FnMut(usize, Node)) {
        let scratch = &mut self.law.scratch_at(&sight.z, m);
        let jacobian = &sight.jacobian;
        self.law
            .scores_at(located, &self.columns(), RECORDS, jacobian, scratch, visit);
    }

    fn columns(&self) -> Vec<&[f64]> {
        self.columns.iter().map(Vec::as_slice).collect()
    }
}

fn sum(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Constants, Model};

    /// So many records have so many times the information of one.
    const UNITS: f64 = 20.0;
    const NORMAL: &str = "record { real y; } parameters { real m; real<lower=0> s; real idle; }
        model { m ~ normal(0, 3); s ~ lognormal(0, 1); idle ~ normal(0, 1); y ~ normal(m, s); }";

    /// The step that takes the place of a Newton step from m = 0, s = 1, with noise of this
    /// variance in the slope.
    fn instead_of(newton: [f64; 3], variance: f64) -> Option<Vec<f64>> {
        let density = Density::new(Model::from_source(NORMAL, &Constants::none()).unwrap());
        let form = Form::of(&density).unwrap();
        let law = Law::of(&density, &[0.0; 3], 1).unwrap();
        let axes = Matrix::identity(3).scaled(1.0 / UNITS);
        let frame = Frame::new(vec![0.0; 3], axes.entries().to_vec());
        let response = Response::new(&form, &density, &law, &frame, UNITS * UNITS);
        let covariance = Matrix::diagonal(&[variance, 0.25 * variance, 1.0]);
        let newton = newton.map(|x| UNITS * x);
        let step = response.instead_of(&newton, &covariance, variance)?;
        Some(step.iter().map(|x| x / UNITS).collect())
    }

    // Where the mean is m and the scale s, scores at 0 and 1 have the means m and s^2 + m^2 - 1;
    // the information is 1 and 2. Oracle: this closed form, which a step is short of by what the
    // Newton step counts. If it failed: what is far off would be taken for a wide scale, and steps
    // would be ten times as long as they should be.
    #[test]
    fn a_step_is_that_of_which_the_slope_would_come() {
        for (m, s, share) in [(0.0, 2.0_f64, 0.05), (0.0, 4.0, 0.01), (3.0, 0.5, 0.35)] {
            let newton = [m, 0.5 * (s * s + m * m - 1.0), 0.7];
            let step = instead_of(newton, 1.0).unwrap_or_else(|| panic!("{m} {s}: none"));
            let off = |at: &[f64]| (at[0] - m).hypot(at[1] - s.ln());
            assert!(off(&step) < share * off(&newton), "{m} {s}: {step:?}");
            // What no record tells of is as it was.
            assert!((step[2] - 0.7).abs() < 1e-3, "{step:?}");
        }
    }

    // If it failed: noise would be taken for far-off places.
    #[test]
    fn what_noise_can_make_is_a_newton_step() {
        let newton = [0.0, 1.5, 0.0];
        assert!(instead_of(newton, 1.0).is_some());
        assert_eq!(instead_of(newton, 1e4), None);
        assert_eq!(instead_of([0.04, -0.02, 0.03], 1.0), None);
    }
}
