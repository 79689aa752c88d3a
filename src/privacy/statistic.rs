//! What is summed of each record's gradient, beside the gradient itself.

use crate::density::BLOCK;

/// Bins of the lengths of gradients: half octaves.
const BINS_PER_OCTAVE: f64 = 2.0;
/// The bins go from 2^-60 to 2^60; what is beyond is in the outermost.
const HALF: i32 = 120;
pub const NORM_BINS: usize = 2 * HALF as usize + 1;

/// A vector that is made of one record's gradient, shifted by a public `centre`, and
/// clipped to a length.
///
/// Around the mean gradient, far from the mode, records differ by much less than their
/// gradients are long; what is learnt of their spread is then less noisy for the same cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Statistic<'a> {
    /// The gradient less the centre, clipped to the bound.
    Gradient { centre: &'a [f64] },
    /// Its products with itself, the clip bound being that of the gradient squared: the
    /// upper triangle by rows, with the entries off the diagonal times sqrt(2), so that the
    /// length of the vector is the square of the gradient's.
    OuterProduct { centre: &'a [f64] },
    /// A one in the bin of its length, and zeros: sums are histograms. The clip bound is 1.
    NormBin { centre: &'a [f64] },
}

impl Statistic<'_> {
    fn centre(&self) -> &[f64] {
        match self {
            Statistic::Gradient { centre }
            | Statistic::OuterProduct { centre }
            | Statistic::NormBin { centre } => centre,
        }
    }

    /// The length of the vector.
    pub fn coordinates(&self) -> usize {
        let d = self.centre().len();
        match self {
            Statistic::Gradient { .. } => d,
            Statistic::OuterProduct { .. } => d * (d + 1) / 2,
            Statistic::NormBin { .. } => NORM_BINS,
        }
    }

    /// The vectors of a block of records, with the layout of the gradients that they are
    /// made of: coordinate `j` of record `i` at `j * BLOCK + i`. `clip` is the bound of the
    /// vector; records are clipped here, where clipping the gradient is meant and not
    /// the vector, and in the end by whoever sums.
    pub(super) fn of(&self, gradients: &[f64], rows: usize, clip: f64, into: &mut [f64]) {
        let d = self.centre().len();
        let centre = self.centre();
        let shifted = |j: usize, i: usize| gradients[j * BLOCK + i] - centre[j];
        match self {
            Statistic::Gradient { .. } => {
                for j in 0..d {
                    for i in 0..rows {
                        into[j * BLOCK + i] = shifted(j, i);
                    }
                }
            }
            Statistic::OuterProduct { .. } => {
                for i in 0..rows {
                    let square: f64 = (0..d).map(|j| shifted(j, i).powi(2)).sum();
                    let factor = if square > clip { clip / square } else { 1.0 };
                    let mut at = 0;
                    for j in 0..d {
                        for k in j..d {
                            let weight = if j == k { 1.0 } else { std::f64::consts::SQRT_2 };
                            // A gradient that is not finite has no factor, and becomes 0.
                            into[at * BLOCK + i] = weight * factor * shifted(j, i) * shifted(k, i);
                            at += 1;
                        }
                    }
                }
            }
            Statistic::NormBin { .. } => {
                into.fill(0.0);
                for i in 0..rows {
                    let square: f64 = (0..d).map(|j| shifted(j, i).powi(2)).sum();
                    if let Some(bin) = bin(square.sqrt()) {
                        into[bin * BLOCK + i] = clip;
                    }
                }
            }
        }
    }
}

/// The bin of a length; none of what is not a number.
fn bin(length: f64) -> Option<usize> {
    if length.is_nan() {
        return None;
    }
    let octave = (BINS_PER_OCTAVE * length.log2()).floor();
    let clamped = octave.clamp(-f64::from(HALF), f64::from(HALF));
    Some((clamped + f64::from(HALF)) as usize)
}

/// The upper end of a bin of lengths.
pub fn upper_end(bin: usize) -> f64 {
    let octave = bin as f64 - f64::from(HALF) + 1.0;
    (octave / BINS_PER_OCTAVE).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector of one gradient.
    fn of(statistic: Statistic, gradient: &[f64], clip: f64) -> Vec<f64> {
        let mut block = vec![0.0; gradient.len() * BLOCK];
        for (j, g) in gradient.iter().enumerate() {
            block[j * BLOCK] = *g;
        }
        let mut into = vec![0.0; statistic.coordinates() * BLOCK];
        statistic.of(&block, 1, clip, &mut into);
        into.chunks(BLOCK).map(|c| c[0]).collect()
    }

    #[test]
    fn the_length_of_products_is_the_square_of_the_gradients() {
        let centre = [0.5, -1.0, 0.0];
        let products = of(
            Statistic::OuterProduct { centre: &centre },
            &[1.5, 1.0, -2.0],
            100.0,
        );
        let length = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
        assert!((length(&products) - 9.0).abs() < 1e-12);
        assert_eq!(products[0], 1.0);
        assert!((products[1] - 2.0 * std::f64::consts::SQRT_2).abs() < 1e-15);
        let clipped = of(
            Statistic::OuterProduct { centre: &centre },
            &[1.5, 1.0, -2.0],
            4.0,
        );
        assert!((length(&clipped) - 4.0).abs() < 1e-12);
    }

    #[test]
    fn a_length_is_below_the_end_of_its_bin_and_above_the_one_before() {
        for length in [1e-30, 0.3, 1.0, 1.5, 7e9] {
            let bins = of(
                Statistic::NormBin { centre: &[0.0] },
                &[length],
                1.0,
            );
            let k = bins.iter().position(|b| *b == 1.0);
            let k = k.unwrap_or_else(|| panic!("{length}"));
            if length > 1e-18 {
                assert!(length < upper_end(k) && (k == 0 || length >= upper_end(k - 1)));
            }
            assert_eq!(bins.iter().sum::<f64>(), 1.0);
        }
        assert_eq!(bin(f64::NAN), None);
        assert_eq!(bin(0.0), Some(0));
        assert_eq!(bin(f64::INFINITY), Some(NORM_BINS - 1));
    }
}
