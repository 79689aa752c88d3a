//! Sums of columns with weights, for a block of records: linear predictors, and gradients in
//! coordinates in which each place of the interface counts.

// The compiler makes vector instructions of loops over indices, and not of their iterators.
#![expect(clippy::needless_range_loop)]

use super::BLOCK;
use crate::linear::vectorised;

/// Records that are computed together: two vectors of the widest kind.
const ROWS: usize = 16;
/// 2^52, which moves a smaller integer to the lowest bits.
const ROUNDING: f64 = (1u64 << 52) as f64;
/// Coordinates that are computed together.
const COORDINATES: usize = 4;

/// Weighted columns.
pub(super) struct Terms<'a> {
    pub columns: Vec<&'a [f64]>,
    /// Weights of a term that is 1 for all records, one for each coordinate.
    pub constant: &'a [f64],
    /// `[column][coordinate]`
    pub weights: &'a [f64],
}

impl Terms<'_> {
    /// `out[i] = sum_k weights[k] columns[k][i]`, and the constant; for one coordinate.
    pub fn sum(&self, out: &mut [f64]) {
        sum(self, out);
    }

    /// `gradients[j][i] += adjoint[i] * sum_k weights[k][j] columns[k][i]`, and the constant, for
    /// each coordinate j, of which there are `dimension`; coordinate `j` of record `i` is at `j *
    /// BLOCK + i`. Where the adjoint is 0, nothing is added, whatever the columns.
    pub fn add_times(&self, adjoint: &[f64], dimension: usize, gradients: &mut [f64]) {
        add_times(self, adjoint, dimension, gradients);
    }

    /// The sums for C coordinates from `first` on, and R records from `start` on.
    #[inline(always)]
    fn tile<const C: usize, const R: usize>(
        &self,
        first: usize,
        dimension: usize,
        start: usize,
    ) -> [[f64; R]; C] {
        let mut sums = [[0.0; R]; C];
        for c in 0..C {
            sums[c] = [self.constant[first + c]; R];
        }
        for (column, weights) in self
            .columns
            .iter()
            .zip(self.weights.chunks_exact(dimension))
        {
            let (column, weights) = (&column[start..start + R], &weights[first..first + C]);
            for c in 0..C {
                for r in 0..R {
                    sums[c][r] += weights[c] * column[r];
                }
            }
        }
        sums
    }
}

vectorised! {
    fn sum(terms: &Terms, out: &mut [f64]) {
        let rows = out.len();
        let whole = rows - rows % ROWS;
        for start in (0..whole).step_by(ROWS) {
            let [sums] = terms.tile::<1, ROWS>(0, 1, start);
            out[start..start + ROWS].copy_from_slice(&sums);
        }
        for (i, out) in out.iter_mut().enumerate().skip(whole) {
            [[*out]] = terms.tile::<1, 1>(0, 1, i);
        }
    }
}

vectorised! {
    fn add_times(terms: &Terms, adjoint: &[f64], dimension: usize, gradients: &mut [f64]) {
        let rows = adjoint.len();
        let whole = rows - rows % ROWS;
        let even = dimension - dimension % COORDINATES;
        for start in (0..whole).step_by(ROWS) {
            for j in (0..even).step_by(COORDINATES) {
                let sums = terms.tile::<COORDINATES, ROWS>(j, dimension, start);
                add_tile(&sums, adjoint, j, start, gradients);
            }
            for j in even..dimension {
                let sums = terms.tile::<1, ROWS>(j, dimension, start);
                add_tile(&sums, adjoint, j, start, gradients);
            }
        }
        for i in whole..rows {
            for j in 0..dimension {
                let sums = terms.tile::<1, 1>(j, dimension, i);
                add_tile(&sums, adjoint, j, i, gradients);
            }
        }
    }
}

#[inline(always)]
fn add_tile<const C: usize, const R: usize>(
    sums: &[[f64; R]; C],
    adjoint: &[f64],
    first: usize,
    start: usize,
    gradients: &mut [f64],
) {
    let adjoint = &adjoint[start..start + R];
    for c in 0..C {
        let into = &mut gradients[(first + c) * BLOCK + start..][..R];
        for r in 0..R {
            let a = adjoint[r];
            into[r] += if a == 0.0 { 0.0 } else { a * sums[c][r] };
        }
    }
}

vectorised! {
    /// `into += factor * adjoint * column`, likewise; without a column, `factor * adjoint`.
    pub(super) fn add_scaled(
        factor: f64,
        adjoint: &[f64],
        column: Option<&[f64]>,
        into: &mut [f64],
    ) {
        match column {
            Some(column) => {
                for ((g, &a), &x) in into.iter_mut().zip(adjoint).zip(column) {
                    *g += if a == 0.0 { 0.0 } else { factor * a * x };
                }
            }
            None => {
                for (g, &a) in into.iter_mut().zip(adjoint) {
                    *g += factor * a;
                }
            }
        }
    }
}

vectorised! {
    /// `sum_i adjoint[i] column[i]`, or of the adjoint alone. Where the adjoint is 0, the column may
    /// have any value.
    pub(super) fn dot(adjoint: &[f64], column: Option<&[f64]>) -> f64 {
        let mut sums = [0.0; ROWS];
        let (tiles, rest) = adjoint.as_chunks::<ROWS>();
        match column {
            Some(column) => {
                for (tile, column) in tiles.iter().zip(column.as_chunks::<ROWS>().0) {
                    for r in 0..ROWS {
                        let a = tile[r];
                        sums[r] += if a == 0.0 { 0.0 } else { a * column[r] };
                    }
                }
                let column = &column[adjoint.len() - rest.len()..];
                for r in 0..rest.len() {
                    sums[r] += if rest[r] == 0.0 { 0.0 } else { rest[r] * column[r] };
                }
            }
            None => {
                for tile in tiles {
                    for r in 0..ROWS {
                        sums[r] += tile[r];
                    }
                }
                for r in 0..rest.len() {
                    sums[r] += rest[r];
                }
            }
        }
        sums.iter().sum()
    }
}

vectorised! {
    /// Adds to positions in a table those that indices from 1 on stand for; what is not a number
    /// stands for 1.
    pub(super) fn add_index(stride: f64, indices: &[f64], positions: &mut [f64]) {
        for (position, &index) in positions.iter_mut().zip(indices) {
            *position += stride * (if index > 1.0 { index } else { 1.0 } - 1.0);
        }
    }
}

vectorised! {
    /// The places at positions of a table, which begins at `table`; the last for those beyond it.
    pub(super) fn pick(positions: &[f64], table: usize, length: usize, places: &mut [usize]) {
        let last = (length - 1) as f64;
        for (place, &position) in places.iter_mut().zip(positions) {
            let position = if position < last { position } else { last };
            // Below 2^52, the lowest bits of this sum are the integer.
            let bits = (position + ROUNDING).to_bits();
            *place = table + bits.wrapping_sub(ROUNDING.to_bits()) as usize;
        }
    }
}
