//! The lengths of gradients under the model's law, which are public because records are simulated.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::density::{BLOCK, Density, Frame, Law, Simulator};
use crate::sampler::contract::form::Form;

/// The seed and the number of simulated records: one block of them.
const SEED: u64 = 1;
const RECORDS: usize = if BLOCK < 256 { BLOCK } else { 256 };

/// Lengths of gradients over their root mean square, and the share of each in the sum of squares.
///
/// Empty where outcomes have few values: a rare value may have most of the information, and its
/// frequency depends on covariates, about which simulated ones say nothing.
#[derive(Debug, Default)]
pub(super) struct Reach {
    shares: Vec<[f64; 2]>,
}

impl Reach {
    /// The lengths for simulated records at the frame's centre.
    pub fn of(form: &Form, density: &Density, law: &Law, frame: &Frame) -> Reach {
        if !law.is_costly() {
            return Reach::default();
        }
        let point = frame.centre();
        let theta = if form.space.is_parameters() {
            point.to_vec()
        } else {
            // Covariates do not depend on the parameters.
            form.middle.clone()
        };
        let rng = &mut ChaCha8Rng::seed_from_u64(SEED);
        let raw = Simulator::new(density).records(&theta, RECORDS, None, rng);
        let columns: Vec<&[f64]> = law.columns().iter().map(|&c| &raw[c][..]).collect();
        let sight = law.sight(&form.space, point, frame);
        let mut scratch = law.scratch_at(&sight.z, frame.coordinates());
        let mut found = Vec::new();
        law.scores(
            &columns,
            RECORDS,
            &sight.jacobian,
            &mut scratch,
            |_, node| {
                for (i, p) in node.probabilities.iter().enumerate() {
                    let of_record = node.gradients.iter().skip(i).step_by(BLOCK);
                    found.push([*p, of_record.map(|g| g * g).sum::<f64>()]);
                }
            },
        );
        Reach::from_squares(&found)
    }

    /// From probabilities and squares of lengths.
    fn from_squares(found: &[[f64; 2]]) -> Reach {
        let mass: f64 = found.iter().map(|[p, _]| p).sum();
        let squares: f64 = found.iter().map(|[p, square]| p * square).sum();
        if !(mass > 0.0 && squares > 0.0 && squares.is_finite()) {
            return Reach::default();
        }
        let share =
            |[p, square]: &[f64; 2]| [(square * mass / squares).sqrt(), p * square / squares];
        Reach {
            shares: found.iter().map(share).collect(),
        }
    }

    /// The mean length, weighted by squares: 1 where all have the same length.
    pub fn mean(&self) -> f64 {
        if self.shares.is_empty() {
            f64::INFINITY
        } else {
            self.shares
                .iter()
                .map(|[length, share]| length * share)
                .sum()
        }
    }

    /// The share of the squares in lengths above this one; `None` where that is not known.
    pub fn beyond(&self, length: f64) -> Option<f64> {
        let longer = self.shares.iter().filter(|[x, _]| *x > length);
        (!self.shares.is_empty()).then(|| longer.map(|[_, share]| share).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_are_those_of_the_lengths_in_units_of_their_root_mean_square() {
        // Nine of ten have length 1, one has 9: the mean square is 9.
        let reach = Reach::from_squares(&[[0.9, 1.0], [0.1, 81.0]]);
        assert!((reach.mean() - (0.1 / 3.0 + 0.9 * 3.0)).abs() < 1e-12);
        assert_eq!(reach.beyond(4.0), Some(0.0));
        assert!((reach.beyond(1.0).unwrap() - 0.9).abs() < 1e-12);
        let unknown = Reach::from_squares(&[[0.5, f64::INFINITY]]);
        assert_eq!((unknown.mean(), unknown.beyond(1.0)), (f64::INFINITY, None));
    }
}
