//! The response of slopes to steps by the model's own law, which is not quadratic.
//!
//! A Newton step treats the slope of the log-likelihood as linear in the error of the parameters.
//! The law gives the exact relation: where records have the parameters t + s, the mean of the score at
//! t is r(s) = E_{t+s} g_t, with the derivative E_{t+s}[g_t g_{t+s}'], which at s = 0 is the
//! information J. A slope that leads to the Newton step d is that of the s with r(s) = J d. A scale
//! that is ten times too large has a score as if it were too large by half of itself; and a scale that
//! is too large looks like tails, as of few degrees of freedom, which a Newton step would follow.
//!
//! Where gradients are clipped, the slope of their sum is less than J, and not equally in all
//! directions: a class that hardly any record has pulls in few long gradients, which are clipped.
//!
//! Means are over simulated records, and public. In directions about which these say nothing, the
//! Newton step is kept.

mod spread;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::form::Form;
use crate::density::{BLOCK, Density, Frame, Law, Located, Node, Pull, Sight, Simulator};
use crate::linear::{Matrix, dot, length};

pub(super) use spread::ObservedSlope;

/// The seed and the number of simulated records.
const SEED: u64 = 2;
pub(super) const RECORDS: usize = if BLOCK < 128 { BLOCK } else { 128 };
/// A Newton step shorter than this, root mean square in sds of posterior and noise together, is
/// accepted as it is.
const SHORT: f64 = 3.0;
/// The weight of the Newton step, relative to that of the slope by the law.
const KEPT: f64 = 0.1;
/// The Levenberg-Marquardt algorithm: its first damping, as a share of the mean eigenvalue, and the
/// largest number of iterations.
const DAMPING: f64 = 1e-3;
const ITERATIONS: usize = 50;
/// It has converged if the square falls by less than this.
const ENOUGH: f64 = 0.01;
/// The largest share of the square that may remain, in addition to 1 of noise for each coordinate.
const MET: f64 = 0.2;
/// The largest factor by which an error of the centre may grow after a step.
const STRETCH: f64 = 10.0;
/// The number of steps to the point at which clipped gradients are balanced.
const BALANCING: usize = 20;
/// Simulated records are like the real ones if the information of all is at most this many times as
/// large in one direction of a frame as in another: the real ones have about as much in each.
const LIKE: f64 = 100.0;
/// No direction keeps less of its slope than this share of the mean over directions.
const LEAST_KEPT: f64 = 0.2;

/// The response of simulated records to steps from the centre of a frame.
pub(super) struct Response<'a> {
    law: &'a Law<'a>,
    form: &'a Form,
    frame: &'a Frame,
    /// The sight from the frame's centre.
    here: Sight,
    columns: &'a [Vec<f64>],
    /// The number of records for which each simulated one stands.
    times: f64,
}

/// A slope to explain by a step along the columns of a basis.
struct SlopeToExplain<'a> {
    basis: &'a Matrix,
    /// The slope along the basis, and the variance of its noise.
    slope: &'a [f64],
    variance: f64,
    /// The step that is believed, and the precision of that.
    believed: &'a [f64],
    precision: &'a Matrix,
    longest: f64,
}

/// A step, the part of the slope that it does not explain, the pull of the Newton step, and the
/// square of both in units of the noise.
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

/// The columns of simulated records that the law reads.
pub(super) fn simulated(form: &Form, density: &Density) -> Vec<Vec<f64>> {
    let rng = &mut ChaCha8Rng::seed_from_u64(SEED);
    density.columns_of_law(&Simulator::new(density).records(&form.middle, RECORDS, None, rng))
}

impl<'a> Response<'a> {
    /// The response of this number of records, given the columns of [`simulated`] ones.
    pub fn new(
        form: &'a Form,
        columns: &'a [Vec<f64>],
        law: &'a Law<'a>,
        frame: &'a Frame,
        records: f64,
    ) -> Response<'a> {
        Response {
            law,
            form,
            frame,
            here: law.sight(&form.space, frame.centre(), frame),
            columns,
            times: records / RECORDS as f64,
        }
    }

    /// Whether the law can tell directions apart: all values of the outcomes are nodes, and the
    /// simulated records are like the real ones. Where a column is declared much wider than its values
    /// are, a few simulated records have all the information, and lose it with any step.
    pub fn tells_directions(&self, m: usize) -> bool {
        if self.law.is_costly() {
            return false;
        }
        let Some(score) = self.score(&vec![0.0; m]) else {
            return false;
        };
        is_like_real(&score.slope)
    }

    /// The step that replaces a long Newton step with this covariance, from a slope whose noise has
    /// this variance: the step from which that slope would result, found by the Levenberg-Marquardt
    /// algorithm from the centre. `None` if there is none that explains the slope and is not longer
    /// than the Newton step, since a longer one would amplify the noise, or if simulated records are no
    /// guide: of counts and classes the response depends on covariates, and with unlike ones searches were
    /// led away from where Newton steps arrive.
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
        let slope = self.information()?;
        if !self.law.has_real_outcomes_only() && !is_like_real(&slope) {
            return None;
        }
        let known = covariance.with_eigenvalues(|e| e.max(1e-12)).inverse();
        let (best, first) = self.fit(&SlopeToExplain {
            basis: &Matrix::identity(m),
            slope: &slope.times(newton),
            variance,
            believed: newton,
            precision: &known.scaled(KEPT),
            longest,
        })?;
        (best.square < MET * first + m as f64).then_some(best.step)
    }

    /// The step along a basis that explains a slope best, by the Levenberg-Marquardt algorithm from no step at all,
    /// and the square that this leaves.
    fn fit(&self, wanted: &SlopeToExplain) -> Option<(Trial, f64)> {
        let SlopeToExplain {
            basis, variance, ..
        } = *wanted;
        let back = basis.transposed();
        let kept = wanted.precision.scaled(variance);
        let score = |step: &[f64]| {
            let Score { mean, slope } = self.score(&basis.times(step))?;
            Some(Score {
                mean: back.times(&mean),
                slope: slope.between(basis),
            })
        };
        let trial = |step: Vec<f64>, score: Score| {
            let missed = difference(wanted.slope, &score.mean);
            let apart = difference(wanted.believed, &step);
            let pull = kept.times(&apart);
            Trial {
                square: (dot(&missed, &missed) + dot(&apart, &pull)) / variance,
                missed,
                pull,
                step,
                score,
            }
        };
        let none = vec![0.0; basis.columns()];
        let start = score(&none)?;
        let mut best = trial(none, start);
        let first = best.square;
        let mut damping = DAMPING;
        for _ in 0..ITERATIONS {
            let slope = &best.score.slope;
            let back = slope.transposed();
            let downhill = sum(&back.times(&best.missed), &best.pull);
            let curvature = &(&back * slope) + &kept;
            let m = curvature.rows();
            let damped = damping * curvature.trace() / m as f64;
            let damped = &curvature + &Matrix::identity(m).scaled(damped);
            let step = sum(&best.step, &damped.inverse().times(&downhill));
            let score = (length(&step) <= wanted.longest)
                .then(|| score(&step))
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
        Some((best, first))
    }

    /// The factor by which a step changes an error of the centre. An error of r(s) becomes one of s
    /// by (dr/ds)^-1 at s, and not by J^-1: a larger one, where there is less information than
    /// before, for example about a class that turns out to be rare. `None` where the factor is not
    /// known; no error becomes smaller.
    pub fn stretch(&self, step: &[f64]) -> Option<Matrix> {
        let here = self.score(&vec![0.0; step.len()])?.slope;
        let there = self.score(step)?.slope;
        let stretch = Some(&there.general_inverse() * &here).filter(Matrix::is_finite)?;
        let squares = &stretch.transposed() * &stretch;
        let widened = squares.with_eigenvalues(|e| {
            let e = e.max(f64::MIN_POSITIVE).sqrt();
            e.clamp(1.0, STRETCH) / e
        });
        Some(&stretch * &widened).filter(Matrix::is_finite)
    }

    /// The slope of gradients clipped at `clip`, as a share of that of unclipped ones, whose mean
    /// over directions is known to be `mean`. That also gives a lower bound for each direction, in
    /// case simulated records are unlike the real ones: 1 - m (1 - mean). `None` where `mean` is not
    /// a share, or the law gives values that are not finite.
    pub fn efficiency(&self, clip: f64, mean: f64, m: usize) -> Option<Matrix> {
        let columns = self.columns();
        let mut scratch = self.law.scratch_at(&self.here.z);
        let located = self.law.locate(&columns, RECORDS, &mut scratch);
        let mut records: Vec<Vec<(f64, Vec<f64>)>> = vec![Vec::new(); RECORDS];
        self.visit(&located, &self.here, |_, node| {
            for (i, &p) in node.probabilities.iter().enumerate() {
                let gradient = (0..m).map(|j| node.gradients[j * BLOCK + i]).collect();
                records[i].push((p, gradient));
            }
        });
        let mut whole = Matrix::new(m, m, |_, _| 0.0);
        let mut clipped = whole.clone();
        for nodes in &records {
            let mut centre = vec![0.0; m];
            let share = |off: &[f64]| (clip / length(off).max(f64::MIN_POSITIVE)).min(1.0);
            for _ in 0..BALANCING {
                let mut pull = vec![0.0; m];
                for (p, gradient) in nodes {
                    let off = difference(gradient, &centre);
                    let kept = p * share(&off);
                    pull.iter_mut().zip(&off).for_each(|(x, o)| *x += kept * o);
                }
                centre = sum(&centre, &pull);
            }
            for (p, gradient) in nodes {
                let off = difference(gradient, &centre);
                whole = &whole + &Matrix::square_of(gradient).scaled(*p);
                clipped = &clipped + &Matrix::square_of(&off).scaled(p * share(&off));
            }
        }
        if !(whole.is_finite() && clipped.is_finite() && (0.0..=1.0).contains(&mean)) {
            return None;
        }
        let (kept, axes) = clipped.between(&root_of(&whole).inverse()).eigen();
        let least = (LEAST_KEPT * mean).max(1.0 - m as f64 * (1.0 - mean));
        let bounded = |scale: f64| -> Vec<f64> {
            let each = kept.iter().map(|e| (scale * e).clamp(least, 1.0));
            each.collect()
        };
        let (mut low, mut high) = (-30.0f64, 30.0f64);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if bounded(middle.exp()).iter().sum::<f64>() < mean * m as f64 {
                low = middle;
            } else {
                high = middle;
            }
        }
        let matrix = Matrix::diagonal(&bounded(high.exp())).between(&axes.transposed());
        Some(matrix).filter(Matrix::is_finite)
    }

    /// The mean of the scores at the centre where the parameters are off by the step, and by its opposite:
    /// what is left of the score's change where its linear part cancels.
    pub fn even_part(&self, step: &[f64]) -> Option<Vec<f64>> {
        let opposite: Vec<f64> = step.iter().map(|x| -x).collect();
        let both = sum(&self.score(step)?.mean, &self.score(&opposite)?.mean);
        Some(both.iter().map(|x| 0.5 * x).collect())
    }

    /// The information at the centre; `None` where it is not finite.
    pub fn information(&self) -> Option<Matrix> {
        self.slope(&vec![0.0; self.frame.coordinates()])
    }

    /// The derivative of the mean scores at the centre, by the step that the parameters are off by; `None` where it is
    /// not finite.
    pub fn slope(&self, step: &[f64]) -> Option<Matrix> {
        Some(self.score(step)?.slope)
    }

    /// The score at the step `at`; `None` where it is not finite.
    fn score(&self, at: &[f64]) -> Option<Score> {
        let m = at.len();
        let moved = self.frame.moved(at);
        let there = self.law.sight(&self.form.space, moved.centre(), &moved);
        let mut scratch = self.law.scratch_at(&there.z);
        let located = self.law.locate(&self.columns(), RECORDS, &mut scratch);
        let mut gradients = Vec::new();
        self.visit(&located, &there, |_, node| {
            gradients.push((node.probabilities.to_vec(), node.gradients.to_vec()));
        });
        let mut mean = vec![0.0; m];
        let mut slope = vec![0.0; m * m];
        self.visit(&located, &self.here, |node, here| {
            let (there_probabilities, there) = &gradients[node];
            for i in 0..here.probabilities.len() {
                // Where the gradient is not finite in one of the two, it counts in neither.
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

    /// Visits the nodes, with the gradients that records have in this sight.
    fn visit(&self, located: &Located, sight: &Sight, visit: impl FnMut(usize, Node)) {
        let scratch = &mut self.law.scratch_at(&sight.z);
        let pull = Pull::Whole(&sight.jacobian);
        self.law
            .scores_at(located, &self.columns(), RECORDS, pull, scratch, visit);
    }

    fn columns(&self) -> Vec<&[f64]> {
        self.columns.iter().map(Vec::as_slice).collect()
    }
}

/// Whether simulated records with this information in a frame are like the real ones.
pub(super) fn is_like_real(information: &Matrix) -> bool {
    let (values, _) = information.eigen();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    most <= LIKE * least
}

/// The root of an information, in which no direction has next to none.
pub(super) fn root_of(information: &Matrix) -> Matrix {
    let largest = (information.eigen().0.into_iter()).fold(f64::MIN_POSITIVE, f64::max);
    information.with_eigenvalues(|e| e.max(1e-9 * largest).sqrt())
}

pub(super) fn sum(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

pub(super) fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Constants, Model};

    /// The root of the number of records: in these units, all of them have the information 1.
    pub(super) const UNITS: f64 = 20.0;
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
        let columns = simulated(&form, &density);
        let response = Response::new(&form, &columns, &law, &frame, UNITS * UNITS);
        let covariance = Matrix::diagonal(&[variance, 0.25 * variance, 1.0]);
        let newton = newton.map(|x| UNITS * x);
        let step = response.instead_of(&newton, &covariance, variance)?;
        Some(step.iter().map(|x| x / UNITS).collect())
    }

    // Where the mean is m and the scale s, scores at 0 and 1 have the means m and s^2 + m^2 - 1;
    // the information is 1 and 2. Oracle: this closed form, which a step is short of by what the
    // Newton step counts. If it failed: a distant mean would be mistaken for a wide scale, and steps
    // would be ten times as long as they should be.
    #[test]
    fn a_step_is_that_of_which_the_slope_would_come() {
        for (m, s, share) in [(0.0, 2.0_f64, 0.05), (0.0, 4.0, 0.01), (3.0, 0.5, 0.35)] {
            let newton = [m, 0.5 * (s * s + m * m - 1.0), 0.7];
            let step = instead_of(newton, 1.0).unwrap_or_else(|| panic!("{m} {s}: none"));
            let off = |at: &[f64]| (at[0] - m).hypot(at[1] - s.ln());
            assert!(off(&step) < share * off(&newton), "{m} {s}: {step:?}");
            // The coordinate that no record informs keeps its Newton step.
            assert!((step[2] - 0.7).abs() < 1e-3, "{step:?}");
        }
    }

    // Oracle: with the mean off by d to either side, the mean score of log s at s = 1 is d^2, and that of
    // the mean is zero. If it failed: what groups differ by would be taken for spread of the outcomes.
    #[test]
    fn the_even_part_is_the_spread_that_errors_of_means_look_like() {
        let normal = "record { real y; } parameters { real m; real<lower=0> s; }
            model { m ~ normal(0, 3); s ~ lognormal(0, 1); y ~ normal(m, s); }";
        for d in [0.2, 0.7] {
            let even = with(normal, &[0.0; 2], |r| r.even_part(&[UNITS * d, 0.0])).unwrap();
            let oracle = UNITS * d * d;
            assert!(
                (even[1] / oracle - 1.0).abs() < 0.05,
                "{d}: {even:?} {oracle}"
            );
            assert!(even[0].abs() < 0.01 * oracle, "{d}: {even:?}");
        }
    }

    // If it failed: noise would be mistaken for a long way to go.
    #[test]
    fn what_noise_can_make_is_a_newton_step() {
        let newton = [0.0, 1.5, 0.0];
        assert!(instead_of(newton, 1.0).is_some());
        assert_eq!(instead_of(newton, 1e4), None);
        assert_eq!(instead_of([0.04, -0.02, 0.03], 1.0), None);
    }

    /// The response at `theta` of a model without constants, as of 20 x 20 records.
    pub(super) fn with<T>(source: &str, theta: &[f64], ask: impl Fn(&Response) -> T) -> T {
        in_axes(&Matrix::identity(theta.len()), source, theta, ask)
    }

    /// The same in a frame with these axes, in units of 1 / 20.
    pub(super) fn in_axes<T>(
        axes: &Matrix,
        source: &str,
        theta: &[f64],
        ask: impl Fn(&Response) -> T,
    ) -> T {
        let density = Density::new(Model::from_source(source, &Constants::none()).unwrap());
        let form = Form::of(&density).unwrap();
        let law = Law::of(&density, theta, 1).unwrap();
        let axes = axes.scaled(1.0 / UNITS);
        let frame = Frame::new(theta.to_vec(), axes.entries().to_vec());
        ask(&Response::new(
            &form,
            &simulated(&form, &density),
            &law,
            &frame,
            UNITS * UNITS,
        ))
    }

    // Oracle: r = (m, s^2 + m^2 - 1) has the slope (1, 2 s^2) in (m, log s) at m = 0, and J is
    // (1, 2). If it failed: the precision of a place with much information would be assumed in one
    // with little.
    #[test]
    fn less_is_known_where_there_is_less_information() {
        let normal = "record { real y; } parameters { real m; real<lower=0> s; }
            model { m ~ normal(0, 3); s ~ lognormal(0, 1); y ~ normal(m, s); }";
        for (s, times) in [(0.5f64, 4.0), (2.0, 1.0), (1.0, 1.0)] {
            let step = [0.0, UNITS * s.ln()];
            let stretch = with(normal, &[0.0; 2], |r| r.stretch(&step)).unwrap();
            let found = [stretch[(0, 0)], stretch[(1, 1)]];
            assert!((found[0] - 1.0).abs() < 0.05, "{s}: {found:?}");
            assert!((found[1] / times - 1.0).abs() < 0.1, "{s}: {found:?}");
        }
    }

    // Oracle: where m and s both change, r = (m, s^2 + m^2 - 1) has the derivative (1, 0; 2 m, 2 s^2), which is not
    // symmetric; its inverse times J is (1, 0; -m / s^2, 1 / s^2). If it failed: errors of one parameter would be left
    // out of another's.
    #[test]
    fn errors_of_one_parameter_become_those_of_another() {
        let normal = "record { real y; } parameters { real m; real<lower=0> s; }
            model { m ~ normal(0, 3); s ~ lognormal(0, 1); y ~ normal(m, s); }";
        let (m, s) = (0.3, 0.5f64);
        let step = [UNITS * m, UNITS * s.ln()];
        let stretch = with(normal, &[0.0; 2], |r| r.stretch(&step)).unwrap();
        let oracle = [[1.0, 0.0], [-m / (s * s), 1.0 / (s * s)]];
        for i in 0..2 {
            for j in 0..2 {
                let off = stretch[(i, j)] - oracle[i][j];
                assert!(off.abs() < 0.1 * (1.0 + oracle[i][j].abs()), "{stretch:?}");
            }
        }
    }

    // The frame is that of a column whose values are about 1. If it failed: a column with wide bounds
    // would double the noise, since the law would find that any step loses most information.
    #[test]
    fn bounds_much_wider_than_the_values_tell_no_directions() {
        let binary = "int<lower=0, upper=1> y";
        let tells = |bound: usize, outcome: &str, law: &str| {
            let source = format!(
                "record {{ real<lower=-{bound}, upper={bound}> x; {outcome}; }}
                 parameters {{ real a; real b; }}
                 model {{ a ~ normal(0, 2); b ~ normal(0, 2); y ~ {law}; }}"
            );
            with(&source, &[0.0; 2], |r| r.tells_directions(2))
        };
        assert!(tells(3, binary, "bernoulli_logit(a + b * x)"));
        assert!(!tells(50, binary, "bernoulli_logit(a + b * x)"));
        // Values of a continuous outcome are not nodes.
        assert!(!tells(
            3,
            "real<lower=-9, upper=9> y",
            "normal(a + b * x, 1)"
        ));
    }

    // Oracle: the means of these counts do not depend on phi, whose score is orthogonal to theirs, so that in the
    // coordinates v = A^-1 theta the projection is A^-1 e e' A. If it failed: a dispersion would be learnt from the
    // errors of means, or means would be held still.
    #[test]
    fn a_dispersion_is_beside_the_means_of_counts() {
        let source = |[declared, prior, law]: [&str; 3]| {
            format!(
                "record {{ int<lower=0> y; real<lower=-2, upper=2> x; }}
                 parameters {{ real a; real b; {declared} }}
                 model {{ a ~ normal(0, 2); b ~ normal(0, 1); {prior} y ~ {law}; }}"
            )
        };
        let overdispersed = source([
            "real<lower=0> phi;",
            "phi ~ exponential(1);",
            "neg_binomial_2_log(a + b * x, phi)",
        ]);
        let identity = Matrix::identity(3);
        let oblique = Matrix::new(3, 3, |i, j| {
            [1.0, 0.3, -0.5, 0.0, 2.0, 0.4, 0.8, 0.0, 1.5][3 * i + j]
        });
        for axes in [identity, oblique] {
            let theta = [-1.0, 0.3, 0.5];
            let found = in_axes(&axes, &overdispersed, &theta, |r| r.beside_means()).unwrap();
            let phi = Matrix::diagonal(&[0.0, 0.0, 1.0]);
            let expected = &(&axes.general_inverse() * &phi) * &axes;
            assert!((&found - &expected).norm() < 0.05, "{found:?} {expected:?}");
        }
        let poisson = source(["", "", "poisson_log(a + b * x)"]);
        assert_eq!(with(&poisson, &[-1.0, 0.3], |r| r.beside_means()), None);
    }

    // From log odds of -3 a slope as of 0 leads to a Newton step of 10, and not of 3. Where the column is declared much
    // wider than its values, simulated records have outcomes that real ones have not. If it failed: searches would be led
    // away from where Newton steps arrive (two of 36 on adult incomes).
    #[test]
    fn records_unlike_the_real_ones_replace_no_step() {
        let step = |bound: usize| {
            let source = format!(
                "record {{ real<lower=-{bound}, upper={bound}> x; int<lower=0, upper=1> y; }}
                 parameters {{ real a; real b; }}
                 model {{ a ~ normal(0, 2); b ~ normal(0, 2); y ~ bernoulli_logit(a + b * x); }}"
            );
            let newton = [10.0 * UNITS, 0.0];
            // Of noise with the variance 1, where the information about a is p (1 - p) = 0.045.
            let covariance = Matrix::identity(2).scaled(0.045_f64.powi(-2));
            with(&source, &[-3.0, 0.0], |r| {
                r.instead_of(&newton, &covariance, 1.0)
            })
        };
        let found = step(3).unwrap();
        assert!((found[0] / UNITS - 3.0).abs() < 0.5, "{found:?}");
        assert_eq!(step(50), None);
    }

    // Half of all records have the one outcome, one in fifty the other, whose gradients are long
    // where it occurs. If it failed: steps towards a rare class would be too short, and their
    // ends be believed.
    #[test]
    fn clipping_takes_most_from_the_direction_of_long_gradients() {
        let two = "record { int<lower=0, upper=1> y; int<lower=0, upper=1> z; }
            parameters { real a; real b; }
            model { a ~ normal(0, 2); b ~ normal(0, 2);
              y ~ bernoulli_logit(a); z ~ bernoulli_logit(b); }";
        let kept =
            |mean: f64| with(two, &[0.0, -3.9], |r| r.efficiency(0.5 / UNITS, mean, 2)).unwrap();
        let half = kept(0.6);
        assert!((half.trace() - 1.2).abs() < 1e-9);
        assert!(half[(1, 1)] < 0.6 * half[(0, 0)], "{half:?}");
        // One of two directions cannot keep less than 0.96 where the mean is 0.98.
        let nearly = kept(0.98);
        assert!(nearly[(1, 1)] > 0.96 - 1e-9 && nearly[(0, 0)] <= 1.0 + 1e-9);
        for mean in [f64::NAN, -0.1, 1.1] {
            let kept = with(two, &[0.0, -3.9], |r| r.efficiency(0.5 / UNITS, mean, 2));
            assert_eq!(kept, None, "{mean}");
        }
    }
}
