//! The place from which records are looked at where they see one of many groups each: the mean of the
//! posterior so far.
//!
//! The centre of the likelihood has an error in each group's coordinate, and so many errors look like
//! spread of the outcomes. The prior knows that groups are alike, so that the posterior's mean is closer
//! to the truth. What groups still differ by from there makes a slope in what they share, the *even
//! part*, whose size follows from the law and the posterior's draws.

use serde::{Deserialize, Serialize};

use super::form::Form;
use super::response::{Response, difference, sum};
use crate::linear::{Matrix, dot};

/// Every so many of the draws are used for the even part.
const EVERY: usize = 10;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Viewpoint {
    /// In the form's coordinates y.
    pub at: Vec<f64>,
    /// The slope in y that records are expected to have here, since groups differ.
    even_part: Vec<f64>,
    /// Its standard deviation, as a share of its length.
    doubt: f64,
}

impl Viewpoint {
    /// A place from which groups are not expected to differ.
    pub fn at(at: Vec<f64>) -> Viewpoint {
        Viewpoint {
            even_part: vec![0.0; at.len()],
            doubt: 0.0,
            at,
        }
    }

    /// Whether it is a place in `m` coordinates, and all its numbers are finite.
    pub fn is_sound(&self, m: usize) -> bool {
        let numbers = || self.at.iter().chain(&self.even_part).chain([&self.doubt]);
        self.at.len() == m && self.even_part.len() == m && numbers().all(|x| x.is_finite())
    }

    /// Takes the even part from the response at this place, in axes of which the inverse is given, to
    /// draws of y; it stays as it was where it is not finite.
    pub fn expect(
        &mut self,
        form: &Form,
        response: &Response,
        draws: &[Vec<f64>],
        inverse: &Matrix,
    ) {
        let apart = form.apart_from_alike_groups();
        let only = |x: Vec<f64>, kept: bool| -> Vec<f64> {
            let pairs = x.into_iter().zip(&apart);
            let entry = |(x, apart): (f64, &bool)| if *apart == kept { x } else { 0.0 };
            pairs.map(entry).collect()
        };
        let found: Option<Vec<Vec<f64>>> = (draws.iter().step_by(EVERY))
            .map(|y| {
                let step = only(inverse.times(&difference(y, &self.at)), false);
                Some(only(response.even_part(&step)?, true))
            })
            .collect();
        let Some(found) = found else { return };
        let even = mean(&found);
        let squares = found.iter().map(|x| {
            let off = difference(x, &even);
            dot(&off, &off)
        });
        let variance = squares.sum::<f64>() / found.len() as f64;
        let doubt = (variance / dot(&even, &even)).sqrt();
        if doubt.is_finite() {
            self.even_part = inverse.transposed().times(&even);
            self.doubt = doubt;
        }
    }

    /// The even part in these axes, of gradients that are clipped with this efficiency, as far as it is
    /// certain, and the variances of its error.
    pub fn even_part(&self, axes: &Matrix, efficiency: f64) -> (Vec<f64>, Vec<f64>) {
        let certain = 1.0 / (1.0 + self.doubt * self.doubt);
        let even = axes.transposed().times(&self.even_part);
        (even.iter())
            .map(|x| efficiency * x)
            .map(|x| (certain * x, (self.doubt * x).powi(2)))
            .unzip()
    }
}

pub(super) fn mean(vectors: &[Vec<f64>]) -> Vec<f64> {
    let none = vec![0.0; vectors.first().map_or(0, Vec::len)];
    let total = vectors.iter().fold(none, |total, x| sum(&total, x));
    total.iter().map(|x| x / vectors.len() as f64).collect()
}
