//! The curvature between two places, where a step went beyond the maximum.
//!
//! The information may seem less than it is: clipping takes more of it from the few records that tell of a direction,
//! and far from the maximum the model's law may expect outcomes that tell less than those there are. Steps are then too
//! long, and if there is more than twice as much, each goes farther beyond the maximum than the one before. Gradients at
//! both ends show that: between places from which they lead towards each other there is a maximum, and their
//! difference over the step is the mean curvature between.

use serde::{Deserialize, Serialize};

use super::{Search, difference};
use crate::linear::{Matrix, dot};

/// A gradient leads back if it does so by more than this many sds of its noise.
const CERTAIN: f64 = 2.0;
/// A step went too far if the next, with the curvature that is believed, would lead back this share of it.
const TOO_FAR: f64 = 0.5;
/// The number of secants that are kept.
const KEPT: usize = 4;

/// The gradient of the log density at a place, and the covariance of its noise, in y.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Gradient {
    place: Vec<f64>,
    slope: Vec<f64>,
    noise: Matrix,
}

/// A step in y, and s'Hs, where s is the step and H the mean curvature along it: one sd of its noise less than was seen.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Secant {
    step: Vec<f64>,
    curvature: f64,
}

impl Gradient {
    pub fn is_sound(&self, m: usize) -> bool {
        let numbers = self.place.iter().chain(&self.slope);
        [&self.place, &self.slope].iter().all(|x| x.len() == m)
            && numbers.into_iter().all(|x| x.is_finite())
            && self.noise.rows() == m
            && self.noise.columns() == m
            && self.noise.is_finite()
    }
}

impl Secant {
    pub fn is_sound(&self, m: usize) -> bool {
        self.step.len() == m
            && self.step.iter().all(|x| x.is_finite())
            && self.curvature.is_finite()
    }

    /// From gradients before and after a step that went too far beyond the maximum, where the curvature is believed to
    /// be this.
    fn between(before: &Gradient, after: &Gradient, believed: &Matrix) -> Option<Secant> {
        let step = difference(&after.place, &before.place);
        let [ahead, back] = [before, after].map(|g| dot(&step, &g.slope));
        let [noise_before, noise_after] = [before, after].map(|g| g.noise.form(&step));
        let least = (CERTAIN * noise_after.sqrt()).max(TOO_FAR * believed.form(&step));
        let is_beyond = ahead > 0.0 && -back > least;
        let curvature = ahead - back - (noise_before + noise_after).sqrt();
        (is_beyond && curvature > 0.0).then_some(Secant { step, curvature })
    }
}

impl Search {
    /// Notes the slope `off` at the centre, in the frame, with these variances of its noise, where the curvature is
    /// believed to be `slope`: all of them after clipping.
    pub(super) fn note_gradient(
        &mut self,
        (off, variances): (&[f64], &[f64]),
        slope: &Matrix,
        efficiency: f64,
    ) {
        let back = self.inverse.transposed();
        let whole = efficiency.recip();
        let seen = Gradient {
            place: self.centre.clone(),
            slope: back.scaled(whole).times(off),
            noise: Matrix::diagonal(variances)
                .scaled(whole * whole)
                .between(&self.inverse),
        };
        let before = self.gradient.replace(seen);
        let secant = before.as_ref().zip(self.gradient.as_ref());
        let believed = slope.scaled(whole).between(&self.inverse);
        let secant = secant.and_then(|(before, after)| Secant::between(before, after, &believed));
        if let Some(secant) = secant {
            self.secants.push(secant);
            let old = self.secants.len().saturating_sub(KEPT);
            self.secants.drain(..old);
        }
    }

    /// The curvature of the log density in the frame, and at least as much along each secant.
    pub(super) fn with_secants(&self, curvature: Matrix, efficiency: f64) -> Matrix {
        self.secants.iter().fold(curvature, |curvature, secant| {
            let step = self.inverse.times(&secant.step);
            let missing = efficiency * secant.curvature - curvature.form(&step);
            let square = dot(&step, &step);
            if missing > 0.0 {
                &curvature + &Matrix::square_of(&step).scaled(missing / (square * square))
            } else {
                curvature
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The gradient of -k x^2 / 2, with noise of this variance.
    fn gradient(x: f64, k: f64, noise: f64) -> Gradient {
        Gradient {
            place: vec![x],
            slope: vec![-k * x],
            noise: Matrix::diagonal(&[noise]),
        }
    }

    // Oracle: a curvature of 9 over a step of 4 is 9 x 16, less the sd of the noise in it, 4 (4 + 4)^(1/2). If it failed:
    // where there is nine times as much information as is seen, each step would be eight times as long as the last.
    #[test]
    fn a_step_far_beyond_the_maximum_shows_the_curvature() {
        let [before, after] = [-1.0, 3.0].map(|x| gradient(x, 9.0, 4.0));
        let seen = |believed: f64, after: &Gradient| {
            let believed = Matrix::diagonal(&[believed]);
            Secant::between(&before, after, &believed).map(|secant| secant.curvature)
        };
        let curvature = seen(1.0, &after).unwrap();
        assert!((curvature - (144.0 - 4.0 * 8.0_f64.sqrt())).abs() < 1e-9);
        // The next step would end nearer to the maximum: there is nothing to mend.
        assert_eq!(seen(20.0, &after), None);
        assert_eq!(seen(1.0, &gradient(0.01, 9.0, 4.0)), None);
        // Noise that might have turned the gradient.
        assert_eq!(seen(1.0, &gradient(3.0, 9.0, 200.0)), None);
        // Before the maximum.
        assert_eq!(seen(1.0, &gradient(-0.5, 9.0, 0.0)), None);
    }

    // If it failed: the information in other directions would change, or that which is enough already.
    #[test]
    fn the_curvature_along_a_secant_is_at_least_that_which_was_seen() {
        let mut search = Search::at(vec![0.0; 2], Matrix::identity(2), 100.0);
        search.inverse = Matrix::diagonal(&[2.0, 1.0]);
        search.secants = vec![Secant {
            step: vec![1.5, 4.0],
            curvature: 250.0,
        }];
        // The step is (3, 4) in the frame.
        let found = search.with_secants(Matrix::identity(2), 1.0);
        assert!((found.form(&[3.0, 4.0]) - 250.0).abs() < 1e-9);
        assert!((found.form(&[4.0, -3.0]) - 25.0).abs() < 1e-9);
        let found = search.with_secants(Matrix::identity(2), 0.5);
        assert!((found.form(&[3.0, 4.0]) - 125.0).abs() < 1e-9);
        let enough = Matrix::identity(2).scaled(11.0);
        let kept = search.with_secants(enough.clone(), 1.0);
        assert!((&kept - &enough).norm() < 1e-12);
    }
}
