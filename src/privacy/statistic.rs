//! What is summed of each record: its gradient, or what is made of it.

use super::gradient::{GradientScale, ScaleError, half_distance};
use crate::density::{BLOCK, Density, Frame, Jacobian};

/// Bins of the lengths of gradients: half octaves.
const BINS_PER_OCTAVE: f64 = 2.0;
/// The bins go from 2^-60 to 2^60; what is beyond is in the outermost.
const HALF: i32 = 120;
const NORM_BINS: usize = 2 * HALF as usize + 1;

/// A vector that is made of one record's gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Statistic {
    /// The gradient.
    Gradient,
    /// Its products with itself: the upper triangle by rows, with the entries off the
    /// diagonal times sqrt(2), so that the length of the vector is the square of the
    /// gradient's. To clip it to b^2 is to clip the gradient to b.
    Products,
    /// The squares of its coordinates, which are at most as long.
    Squares,
    /// A one in the bin of its length, and zeros: sums are histograms, and the clip bound
    /// is 1.
    Lengths,
}

/// Where records are looked at, and what is taken of each.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look<'a> {
    /// Unconstrained scale.
    pub theta: &'a [f64],
    /// The coordinates of gradients; those of theta where there is none.
    pub frame: Option<&'a Frame>,
    /// Taken from each gradient, in the frame's coordinates. Far from the mode, records
    /// differ from the mean gradient by much less than their gradients are long; what is
    /// learnt of their spread is then less noisy for the same cost.
    pub centre: Option<&'a [f64]>,
    pub statistic: Statistic,
}

impl<'a> Look<'a> {
    /// Gradients as they are.
    pub fn gradient(theta: &'a [f64]) -> Look<'a> {
        Look {
            theta,
            frame: None,
            centre: None,
            statistic: Statistic::Gradient,
        }
    }

    /// The length of the vector.
    pub fn coordinates(&self) -> usize {
        self.statistic.coordinates(self.theta.len())
    }

    /// Derivatives of the interface with respect to the frame's coordinates.
    pub(super) fn jacobian(&self, density: &Density) -> Jacobian {
        let jacobian = density.interface_jacobian(self.theta);
        match self.frame {
            None => jacobian,
            Some(frame) => jacobian.in_frame(frame),
        }
    }

    /// For [`Look::vectors`].
    pub(super) fn working_memory(&self) -> Vec<f64> {
        match self.is_as_it_is() {
            true => Vec::new(),
            false => vec![0.0; self.coordinates() * BLOCK],
        }
    }

    fn is_as_it_is(&self) -> bool {
        self.statistic == Statistic::Gradient && self.centre.is_none()
    }

    /// The vectors of a block of records, with the layout of the gradients that they are
    /// made of: coordinate `j` of record `i` at `j * BLOCK + i`. They are not clipped.
    pub(super) fn vectors<'v>(
        &self,
        gradients: &'v [f64],
        rows: usize,
        memory: &'v mut [f64],
    ) -> &'v [f64] {
        if self.is_as_it_is() {
            return gradients;
        }
        let d = self.theta.len();
        let centre = |j: usize| self.centre.map_or(0.0, |c| c[j]);
        let shifted = |j: usize, i: usize| gradients[j * BLOCK + i] - centre(j);
        let square = |i: usize| (0..d).map(|j| shifted(j, i).powi(2)).sum::<f64>();
        match self.statistic {
            Statistic::Gradient => {
                for j in 0..d {
                    for i in 0..rows {
                        memory[j * BLOCK + i] = shifted(j, i);
                    }
                }
            }
            Statistic::Squares => {
                for j in 0..d {
                    for i in 0..rows {
                        memory[j * BLOCK + i] = shifted(j, i).powi(2);
                    }
                }
            }
            Statistic::Products => {
                let mut at = 0;
                for j in 0..d {
                    for k in j..d {
                        let weight = if j == k {
                            1.0
                        } else {
                            std::f64::consts::SQRT_2
                        };
                        for i in 0..rows {
                            memory[at * BLOCK + i] = weight * shifted(j, i) * shifted(k, i);
                        }
                        at += 1;
                    }
                }
            }
            Statistic::Lengths => {
                memory.fill(0.0);
                for i in 0..rows {
                    if let Some(bin) = bin(square(i).sqrt()) {
                        memory[bin * BLOCK + i] = 1.0;
                    }
                }
            }
        }
        memory
    }
}

impl Statistic {
    /// Whether no two of its vectors point away from each other: none has a negative entry, or
    /// their scalar product is a square. What follows: docs/proofs.md, section 5.
    pub fn is_alike(self) -> bool {
        #[cfg(test)]
        if crate::planted::is(crate::planted::Planted::GradientsAlike) {
            return true;
        }
        match self {
            Statistic::Gradient => false,
            Statistic::Products | Statistic::Squares | Statistic::Lengths => true,
        }
    }

    /// The integers that sums of it are made in, `d` coordinates of a gradient being given.
    pub fn scale(
        self,
        clip: f64,
        sensitivity_factor: u8,
        tau: f64,
        d: usize,
    ) -> Result<GradientScale, ScaleError> {
        match self.is_alike() {
            true => GradientScale::alike(clip, sensitivity_factor, tau, self.coordinates(d)),
            false => GradientScale::new(clip, sensitivity_factor, tau),
        }
    }

    /// The clip bound that its sums cost: that of vectors which may point anywhere and are as far
    /// apart.
    pub fn counted(self, clip: f64, sensitivity_factor: u8) -> f64 {
        match self.is_alike() {
            true => clip * half_distance(sensitivity_factor),
            false => clip,
        }
    }

    /// The length of the vector that is made of `d` coordinates.
    pub fn coordinates(self, d: usize) -> usize {
        match self {
            Statistic::Gradient | Statistic::Squares => d,
            Statistic::Products => d * (d + 1) / 2,
            Statistic::Lengths => NORM_BINS,
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
pub(crate) fn upper_end(bin: usize) -> f64 {
    let octave = bin as f64 - f64::from(HALF) + 1.0;
    (octave / BINS_PER_OCTAVE).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vector of one gradient.
    fn of(statistic: Statistic, centre: &[f64], gradient: &[f64]) -> Vec<f64> {
        let mut block = vec![0.0; gradient.len() * BLOCK];
        for (j, g) in gradient.iter().enumerate() {
            block[j * BLOCK] = *g;
        }
        let look = Look {
            theta: gradient,
            frame: None,
            centre: Some(centre),
            statistic,
        };
        let mut memory = look.working_memory();
        let vectors = look.vectors(&block, 1, &mut memory);
        vectors.chunks(BLOCK).map(|c| c[0]).collect()
    }

    // Wrong here: clipping the products to b^2 would not be clipping the gradient to b.
    #[test]
    fn the_length_of_products_is_the_square_of_the_gradients() {
        let (centre, gradient) = ([0.5, -1.0, 0.0], [1.5, 1.0, -2.0]);
        let products = of(Statistic::Products, &centre, &gradient);
        let length = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>().sqrt();
        assert!((length(&products) - 9.0).abs() < 1e-12);
        assert_eq!(products[0], 1.0);
        assert!((products[1] - 2.0 * std::f64::consts::SQRT_2).abs() < 1e-15);
        let squares = of(Statistic::Squares, &centre, &gradient);
        assert_eq!(squares, [1.0, 4.0, 4.0]);
        assert_eq!(
            of(Statistic::Gradient, &centre, &gradient),
            [1.0, 2.0, -2.0]
        );
    }

    #[test]
    fn a_length_is_below_the_end_of_its_bin_and_not_below_that_of_the_one_before() {
        for length in [1e-30, 0.3, 1.0, 1.5, 7e9] {
            let bins = of(Statistic::Lengths, &[0.0], &[length]);
            let k = bins.iter().position(|b| *b == 1.0).unwrap();
            if length > 1e-18 {
                assert!(length < upper_end(k) && length >= upper_end(k - 1));
            }
            assert_eq!(bins.iter().sum::<f64>(), 1.0);
        }
        assert_eq!(bin(f64::NAN), None);
        assert_eq!(bin(0.0), Some(0));
        assert_eq!(bin(f64::INFINITY), Some(NORM_BINS - 1));
    }
}
