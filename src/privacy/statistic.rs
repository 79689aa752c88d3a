//! The vector that is summed for each record: its gradient, or a statistic of it.

use serde::{Deserialize, Serialize};

use super::expectation::Expected;
use super::gradient::{GradientScale, Gradients, ScaleError, half_distance};
use crate::density::{BLOCK, Density, Sight};
use crate::linear::vectorised;

/// A vector computed from one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Statistic {
    /// The gradient.
    Gradient,
    /// Its products with itself: the upper triangle by rows, with the entries off the
    /// diagonal times sqrt(2), so that the length of the vector is the square of the
    /// gradient's. Clipping it to b^2 is clipping the gradient to b.
    Products,
    /// The squares of its coordinates, a vector that is at most as long.
    Squares,
    /// A one in the bin of its length, and zeros: sums are histograms, and the clip bound
    /// is 1.
    Lengths,
    /// The same with few bins, around the expected length.
    GradientLengths,
    /// How much of the gradient's length is beyond the inner clip, as a share of what is up to the
    /// reference and at most 1, and what is missing to 1: the first is 0 for lengths that the
    /// model's law of the record has with a probability of a thousandth or more.
    Beyond,
    /// The gradient less the vector about which the model expects gradients, once clipped, to
    /// be balanced.
    Centred,
    /// The model's expectation of the products of such a centred gradient and the clipped one: the
    /// slope of the sum of clipped gradients. A triangle, as [`Statistic::Products`].
    Slope,
    /// The model's expectation of the gradient's products: the information in the record.
    Information,
    /// A one in the bin of the length of the information.
    InformationLengths,
    /// Minus the second derivatives of the log-likelihood, of either sign.
    Curvature,
    /// A one in the bin of the length of these.
    CurvatureLengths,
}

/// Bins of half octaves; the outermost ones also hold all lengths beyond them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bins {
    /// Bin k ends at a reference times 2^((lowest + k) / 2).
    lowest: i32,
    count: usize,
}

impl Bins {
    /// Bins for any length, in units of 1.
    pub const ALL: Bins = Bins {
        lowest: -119,
        count: 241,
    };
    /// Bins around the length of a gradient whose record contributes an average share of the
    /// information.
    pub const GRADIENT: Bins = Bins {
        lowest: -8,
        count: 29,
    };
    /// Bins around the information in such a record.
    pub const INFORMATION: Bins = Bins {
        lowest: -16,
        count: 49,
    };

    pub fn count(self) -> usize {
        self.count
    }

    /// The upper end of a bin, in units of the reference.
    pub fn upper_end(self, bin: usize) -> f64 {
        (0.5 * (f64::from(self.lowest) + bin as f64)).exp2()
    }

    /// The bin of a length in units of the reference; none for NaN.
    fn of(self, length: f64) -> Option<usize> {
        if length.is_nan() {
            return None;
        }
        let bin = (2.0 * length.log2()).floor() + 1.0 - f64::from(self.lowest);
        Some(bin.clamp(0.0, (self.count - 1) as f64) as usize)
    }
}

/// The point at which records are evaluated, and the statistic of each.
#[derive(Debug, Serialize)]
pub(crate) struct Look<'a> {
    pub sight: Sight,
    pub statistic: Statistic,
    /// Subtracted from each gradient. Far from the mode, records differ from the mean gradient by
    /// much less than their gradients are long; then an estimate of their spread is less noisy for
    /// the same cost.
    pub centre: Option<&'a [f64]>,
    /// The expectations of the model for a record, for the statistics that use them.
    pub expected: Option<&'a Expected<'a>>,
    /// The bound within which gradients are balanced, for those that are centred.
    pub inner_clip: f64,
    /// The reference of bins, and of what is beyond the inner clip.
    pub unit: f64,
}

impl<'a> Look<'a> {
    pub fn new(sight: Sight, statistic: Statistic) -> Look<'a> {
        Look {
            sight,
            statistic,
            centre: None,
            expected: None,
            inner_clip: f64::INFINITY,
            unit: 1.0,
        }
    }

    /// Unmodified gradients.
    pub fn gradient(density: &Density, theta: &[f64]) -> Look<'a> {
        let sight = Sight {
            z: density.interface(theta).z,
            jacobian: density.interface_jacobian(theta),
        };
        Look::new(sight, Statistic::Gradient)
    }

    /// The length of the vector.
    pub fn coordinates(&self) -> usize {
        self.statistic.coordinates(self.dimension())
    }

    /// The length of a gradient.
    pub fn dimension(&self) -> usize {
        self.sight.jacobian.dimension
    }

    /// The length of the vectors that are summed over the rows of a unit.
    pub(super) fn summed_coordinates(&self) -> usize {
        self.statistic.summed(self.dimension())
    }

    /// For [`Look::vectors`].
    pub(super) fn working_memory(&self) -> Computed {
        let is_binned = self.statistic.is_binned();
        let values = if self.is_as_it_is() {
            0
        } else if is_binned {
            1
        } else {
            self.coordinates()
        };
        Computed {
            values: vec![0.0; values * BLOCK],
            bins: vec![[0; BLOCK]; usize::from(is_binned)],
        }
    }

    /// Whether the vectors are those that are summed over rows.
    pub(super) fn is_as_it_is(&self) -> bool {
        match self.statistic {
            Statistic::Gradient => self.centre.is_none(),
            Statistic::Beyond
            | Statistic::Centred
            | Statistic::Slope
            | Statistic::Information
            | Statistic::Curvature => true,
            _ => false,
        }
    }

    fn bins(&self) -> Bins {
        match self.statistic {
            Statistic::GradientLengths => Bins::GRADIENT,
            Statistic::InformationLengths | Statistic::CurvatureLengths => Bins::INFORMATION,
            _ => Bins::ALL,
        }
    }

    /// The vectors of a block of records or units, computed from the sums over their rows, of which
    /// coordinate `j` of record `i` is at `j * BLOCK + i`. They are not clipped. Lengths without a
    /// centre may be those of any derivatives that are not zero.
    pub(super) fn vectors<'v>(
        &self,
        summed: &'v [f64],
        rows: usize,
        memory: &'v mut Computed,
    ) -> Gradients<'v> {
        if self.is_as_it_is() {
            return Gradients::whole(summed);
        }
        let Computed {
            values: memory,
            bins: picked,
        } = memory;
        let d = summed.len() / BLOCK;
        let none = vec![0.0; d];
        let centre = self.centre.unwrap_or(&none);
        match self.statistic {
            Statistic::Squares => {
                shift(summed, centre, memory);
                for x in &mut memory[..d * BLOCK] {
                    *x *= *x;
                }
            }
            Statistic::Products => {
                let mut shifted = vec![0.0; d * BLOCK];
                shift(summed, centre, &mut shifted);
                for ((j, k, weight), out) in triangle(d).zip(memory.chunks_exact_mut(BLOCK)) {
                    let (a, b) = (&shifted[j * BLOCK..], &shifted[k * BLOCK..]);
                    for i in 0..rows {
                        out[i] = weight * a[i] * b[i];
                    }
                }
            }
            _ if self.statistic.is_binned() => {
                let bins = self.bins();
                for (i, square) in squares(summed, centre)[..rows].iter().enumerate() {
                    let bin = bins.of(square.sqrt() / self.unit);
                    memory[i] = f64::from(u8::from(bin.is_some()));
                    picked[0][i] = bin.unwrap_or_default();
                }
                return Gradients {
                    values: memory,
                    picked,
                    coordinates: Some(&[]),
                };
            }
            _ => shift(summed, centre, memory),
        }
        Gradients::whole(memory)
    }
}

/// Vectors that were computed: whole, or the bin that each record picks.
pub(super) struct Computed {
    values: Vec<f64>,
    bins: Vec<[usize; BLOCK]>,
}

vectorised! {
    /// Vectors less a centre.
    fn shift(vectors: &[f64], centre: &[f64], out: &mut [f64]) {
        let columns = vectors.chunks_exact(BLOCK).zip(centre);
        for ((column, c), out) in columns.zip(out.chunks_exact_mut(BLOCK)) {
            for (out, x) in out.iter_mut().zip(column) {
                *out = x - c;
            }
        }
    }
}

vectorised! {
    /// The squared distance of each record's vector from a centre.
    fn squares(vectors: &[f64], centre: &[f64]) -> [f64; BLOCK] {
        let mut squares = [0.0; BLOCK];
        for (column, c) in vectors.chunks_exact(BLOCK).zip(centre) {
            for (s, x) in squares.iter_mut().zip(column) {
                *s += (x - c) * (x - c);
            }
        }
        squares
    }
}

/// The place of an entry in the triangle of `d` rows, on either side of the diagonal.
pub(super) fn triangle_place(d: usize, j: usize, k: usize) -> usize {
    let (j, k) = (j.min(k), j.max(k));
    j * (2 * d - j + 1) / 2 + k - j
}

/// Row, column and weight of each entry of an upper triangle, by rows.
pub(super) fn triangle(d: usize) -> impl Iterator<Item = (usize, usize, f64)> {
    (0..d).flat_map(move |j| (j..d).map(move |k| (j, k, triangle_weight(j, k))))
}

/// The weight of an entry of a triangle.
#[inline(always)]
pub(super) fn triangle_weight(j: usize, k: usize) -> f64 {
    if j == k {
        1.0
    } else {
        std::f64::consts::SQRT_2
    }
}

impl Statistic {
    /// Whether no two of its vectors point away from each other: none has a negative entry, or
    /// they are triangles of positive semidefinite matrices. Consequences: docs/proofs.md, section
    /// 5.
    pub fn is_alike(self) -> bool {
        #[cfg(test)]
        if crate::planted::is_alike(self) {
            return true;
        }
        match self {
            Statistic::Gradient | Statistic::Centred | Statistic::Curvature => false,
            Statistic::Products
            | Statistic::Squares
            | Statistic::Lengths
            | Statistic::GradientLengths
            | Statistic::Beyond
            | Statistic::Slope
            | Statistic::Information
            | Statistic::InformationLengths
            | Statistic::CurvatureLengths => true,
        }
    }

    /// Whether each vector is a one in the bin of a length.
    fn is_binned(self) -> bool {
        matches!(
            self,
            Statistic::Lengths
                | Statistic::GradientLengths
                | Statistic::InformationLengths
                | Statistic::CurvatureLengths
        )
    }

    /// The scale of the integers in which its sums are computed, for gradients of `d` coordinates.
    pub fn scale(
        self,
        clip: f64,
        sensitivity_factor: u8,
        tau: f64,
        d: usize,
    ) -> Result<GradientScale, ScaleError> {
        if self.is_alike() {
            GradientScale::alike(clip, sensitivity_factor, tau, self.coordinates(d))
        } else {
            GradientScale::new(clip, sensitivity_factor, tau)
        }
    }

    /// The clip bound for which its sums are charged: that of vectors of any direction that are as
    /// far apart.
    pub fn counted(self, clip: f64, sensitivity_factor: u8) -> f64 {
        if self.is_alike() {
            clip * half_distance(sensitivity_factor)
        } else {
            clip
        }
    }

    /// The length of the vector for gradients of `d` coordinates.
    pub fn coordinates(self, d: usize) -> usize {
        match self {
            Statistic::Lengths => Bins::ALL.count(),
            Statistic::GradientLengths => Bins::GRADIENT.count(),
            Statistic::InformationLengths | Statistic::CurvatureLengths => {
                Bins::INFORMATION.count()
            }
            Statistic::Products => d * (d + 1) / 2,
            _ => self.summed(d),
        }
    }

    fn summed(self, d: usize) -> usize {
        match self {
            Statistic::Slope
            | Statistic::Information
            | Statistic::InformationLengths
            | Statistic::Curvature
            | Statistic::CurvatureLengths => d * (d + 1) / 2,
            Statistic::Beyond => 2,
            _ => d,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density::Jacobian;

    /// The vector of one gradient.
    fn of(statistic: Statistic, centre: &[f64], gradient: &[f64]) -> Vec<f64> {
        let mut block = vec![0.0; gradient.len() * BLOCK];
        for (j, g) in gradient.iter().enumerate() {
            block[j * BLOCK] = *g;
        }
        let sight = Sight {
            z: Vec::new(),
            jacobian: Jacobian::identity(gradient.len()),
        };
        let look = Look {
            centre: Some(centre),
            ..Look::new(sight, statistic)
        };
        let mut memory = look.working_memory();
        let mut vector = vec![0.0; look.coordinates()];
        for (j, x) in look.vectors(&block, 1, &mut memory).of(0) {
            vector[j] = x;
        }
        vector
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
        for (statistic, bins) in [
            (Statistic::Lengths, Bins::ALL),
            (Statistic::GradientLengths, Bins::GRADIENT),
        ] {
            for length in [1e-30, 0.3, 1.0, 1.5, 7e9] {
                let filled = of(statistic, &[0.0], &[length]);
                assert_eq!(filled.len(), bins.count());
                let k = filled.iter().position(|b| *b == 1.0).unwrap();
                assert!(k == bins.count() - 1 || length < bins.upper_end(k));
                assert!(k == 0 || length >= bins.upper_end(k - 1));
                assert_eq!(filled.iter().sum::<f64>(), 1.0);
            }
            assert_eq!(bins.of(f64::NAN), None);
            assert_eq!(bins.of(0.0), Some(0));
            assert_eq!(bins.of(f64::INFINITY), Some(bins.count() - 1));
        }
    }
}
