//! Sums of columns with weights, for a block of records: linear predictors, and gradients in
//! coordinates in which each place of the interface counts.

use multiversion::target::selected_target;

use super::BLOCK;
use crate::linear::vectorised;

/// Records that are computed together.
const ROWS: usize = 16;
/// 2^52, which moves a smaller integer to the lowest bits.
const ROUNDING: f64 = (1u64 << 52) as f64;
/// Coordinates that are computed together: the sums for them and half of the records, or all of
/// these with AVX-512, stay in the registers.
const COORDINATES: usize = 5;
/// Coordinates that are looked up together.
pub(super) const QUAD: usize = 4;

vectorised! {
    /// `out[i] = constant + sum_k weights[k] columns[k][i]`, summed in this order.
    pub(super) fn sum(columns: &[&[f64]], weights: &[f64], constant: f64, out: &mut [f64]) {
        out.fill(constant);
        // Four streams of memory at a time.
        let (columns, last) = columns.as_chunks::<4>();
        let (weights, last_weights) = weights.as_chunks::<4>();
        for (columns, w) in columns.iter().zip(weights) {
            let [a, b, c, d] = columns.map(|column| &column[..out.len()]);
            for i in 0..out.len() {
                out[i] = out[i] + w[0] * a[i] + w[1] * b[i] + w[2] * c[i] + w[3] * d[i];
            }
        }
        for (column, w) in last.iter().zip(last_weights) {
            for (out, x) in out.iter_mut().zip(*column) {
                *out += w * x;
            }
        }
    }
}

/// Columns with weights for each of some coordinates.
pub(super) struct Terms<'a> {
    columns: Vec<&'a [f64]>,
    dimension: usize,
    /// `[coordinates][column]`
    weights: Vec<[f64; COORDINATES]>,
    /// Those of a term that is 1 for all records.
    constant: Vec<[f64; COORDINATES]>,
}

impl<'a> Terms<'a> {
    pub fn new(columns: Vec<&'a [f64]>, dimension: usize) -> Terms<'a> {
        let panels = dimension.div_ceil(COORDINATES);
        Terms {
            weights: vec![[0.0; COORDINATES]; panels * columns.len()],
            constant: vec![[0.0; COORDINATES]; panels],
            columns,
            dimension,
        }
    }

    /// Adds to the weight of a column, or of the constant, for coordinate `j`.
    #[inline(always)]
    pub fn add_weight(&mut self, column: Option<usize>, j: usize, weight: f64) {
        let (panel, c) = (j / COORDINATES, j % COORDINATES);
        let weights = match column {
            Some(k) => &mut self.weights[panel * self.columns.len() + k],
            None => &mut self.constant[panel],
        };
        weights[c] += weight;
    }

    /// `gradients[j][i] += adjoint[i] * sum_k weights[k][j] columns[k][i]`, and the constant, for
    /// each coordinate j; coordinate `j` of record `i` is at `j * BLOCK + i`. Where the adjoint is
    /// 0, nothing is added, whatever the columns.
    pub fn add_times(&self, adjoint: &[f64], gradients: &mut [f64]) {
        add_times(self, adjoint, gradients);
    }

    #[inline(always)]
    fn add_tiles<const R: usize>(&self, adjoint: &[f64], gradients: &mut [f64]) {
        // The records' numbers side by side, so that they stay in the first-level cache.
        let mut packed = vec![[0.0; ROWS]; self.columns.len()];
        for start in (0..adjoint.len()).step_by(ROWS) {
            let rows = ROWS.min(adjoint.len() - start);
            for (packed, column) in packed.iter_mut().zip(&self.columns) {
                packed[..rows].copy_from_slice(&column[start..start + rows]);
            }
            let mut own = [0.0; ROWS];
            own[..rows].copy_from_slice(&adjoint[start..start + rows]);
            let of_panels = gradients[..self.dimension * BLOCK].chunks_mut(COORDINATES * BLOCK);
            for (panel, into) in of_panels.enumerate() {
                let weights = &self.weights[panel * packed.len()..][..packed.len()];
                for first in (0..ROWS).step_by(R) {
                    let sums = tile::<R>(&packed, weights, &self.constant[panel], first);
                    for (sums, into) in sums.iter().zip(into.chunks_exact_mut(BLOCK)) {
                        let into = &mut into[start + first..][..R];
                        for r in 0..R {
                            let a = own[first + r];
                            into[r] += if a == 0.0 { 0.0 } else { a * sums[r] };
                        }
                    }
                }
            }
        }
    }
}

/// The sums for some coordinates, and R records from `first` on.
#[inline(always)]
fn tile<const R: usize>(
    packed: &[[f64; ROWS]],
    weights: &[[f64; COORDINATES]],
    constant: &[f64; COORDINATES],
    first: usize,
) -> [[f64; R]; COORDINATES] {
    let mut sums = constant.map(|w| [w; R]);
    for (column, weights) in packed.iter().zip(weights) {
        let column = &column[first..first + R];
        for c in 0..COORDINATES {
            for r in 0..R {
                sums[c][r] += weights[c] * column[r];
            }
        }
    }
    sums
}

vectorised! {
    fn add_times(terms: &Terms, adjoint: &[f64], gradients: &mut [f64]) {
        if selected_target!().supports_feature_str("avx512f") {
            terms.add_tiles::<ROWS>(adjoint, gradients);
        } else {
            terms.add_tiles::<{ ROWS / 2 }>(adjoint, gradients);
        }
    }
}

vectorised! {
    /// `gradients[j][i] += adjoint[i] * table[places[i]][j]`; the table is `[coordinates][place]`.
    pub(super) fn add_picked(
        table: &[[f64; QUAD]],
        places_of_table: usize,
        places: &[usize],
        adjoint: &[f64],
        gradients: &mut [f64],
    ) {
        let tables = table.chunks_exact(places_of_table);
        for (table, into) in tables.zip(gradients.chunks_mut(QUAD * BLOCK)) {
            match into.len() / BLOCK {
                1 => add_quad::<1>(table, places, adjoint, into),
                2 => add_quad::<2>(table, places, adjoint, into),
                3 => add_quad::<3>(table, places, adjoint, into),
                _ => add_quad::<QUAD>(table, places, adjoint, into),
            }
        }
    }
}

/// The same for C coordinates.
#[inline(always)]
fn add_quad<const C: usize>(
    table: &[[f64; QUAD]],
    places: &[usize],
    adjoint: &[f64],
    into: &mut [f64],
) {
    let (fours, last) = places.as_chunks::<4>();
    for (four, places) in fours.iter().enumerate() {
        let start = 4 * four;
        let picked = places.map(|place| table[place]);
        let adjoint = &adjoint[start..start + 4];
        for c in 0..C {
            let into = &mut into[c * BLOCK + start..][..4];
            for r in 0..4 {
                into[r] += adjoint[r] * picked[r][c];
            }
        }
    }
    for (i, &place) in (places.len() - last.len()..).zip(last) {
        for c in 0..C {
            into[c * BLOCK + i] += adjoint[i] * table[place][c];
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
