//! The expectations of the model for one record, by which its gradient is centred.
//!
//! All of it is a function of the record's own columns and of public things: the model, the
//! point, the coordinates. The result is weighted vectors, sum_j w_j v_j v_j' being the information
//! in the record:
//!
//! - where the model gives the record's outcomes a law, the gradients g_j that it would have at
//!   its nodes, less their mean, with their probabilities;
//! - elsewhere the eigenvectors of minus the second derivatives of the log-likelihood, with
//!   their eigenvalues where these are positive.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use super::statistic::{Look, Statistic, triangle};
use crate::density::{
    BLOCK, Density, Frame, Jacobian, Law, LawScratch, Located, RowProgram, Scratch, Sight, Space,
};
use crate::linear::eigen;

/// Blocks whose nodes are kept: at most 128 MiB, of an outcome.
const MOST_BLOCKS: usize = 2048;
/// Steps of the iteration that balances clipped gradients.
const BALANCING: usize = 5;

/// The expectations of the model for records at a point.
pub enum Expected<'a> {
    /// By the law of their outcomes.
    Law {
        law: &'a Law<'a>,
        /// The point from which the law sees records.
        sight: Sight,
    },
    /// By central differences of gradients: the sights one step ahead of the point and one step
    /// behind it, along each coordinate.
    Differences { sights: Vec<[Sight; 2]>, step: f64 },
}

impl<'a> Expected<'a> {
    /// By a law, at a point of the space, in the frame's coordinates.
    pub fn by_law(law: &'a Law<'a>, space: &Space, point: &[f64], frame: &Frame) -> Expected<'a> {
        Expected::Law {
            law,
            sight: law.sight(space, point, frame),
        }
    }

    /// By differences about the frame's centre, `step` to either side along its coordinates.
    pub fn by_differences(
        density: &Density,
        space: &Space,
        frame: &Frame,
        step: f64,
    ) -> Expected<'a> {
        let aside = |k: usize, by: f64| {
            let mut u = vec![0.0; frame.coordinates()];
            u[k] = by;
            density.sight(space, &frame.point(&u), frame)
        };
        let both = |k: usize| [aside(k, -step), aside(k, step)];
        Expected::Differences {
            sights: (0..frame.coordinates()).map(both).collect(),
            step,
        }
    }
}

impl std::fmt::Debug for Expected<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Expected::Law { .. } => "Law",
            Expected::Differences { .. } => "Differences",
        })
    }
}

/// The sum of the vectors that a look computes from public records, not clipped. `columns`: those
/// of the row program, then those of the law; records that are not numbers add nothing.
pub(crate) fn public_sum(
    density: &Density,
    look: &Look,
    columns: &[Vec<f64>],
    n: usize,
) -> Vec<f64> {
    let mut reader = Reader::new(density, look, false, None);
    let mut sum = vec![0.0; look.summed_coordinates()];
    for start in (0..n).step_by(BLOCK) {
        let rows = BLOCK.min(n - start);
        let block: Vec<&[f64]> = columns.iter().map(|c| &c[start..start + rows]).collect();
        let of_rows = reader.rows(&block, rows, start);
        for i in 0..rows {
            let of_row = || of_rows.chunks(BLOCK).map(|c| c[i]);
            if of_row().all(f64::is_finite) {
                for (sum, x) in sum.iter_mut().zip(of_row()) {
                    *sum += x;
                }
            }
        }
    }
    sum
}

/// The nodes of a table's blocks of records where the law saw `z` last: several questions are asked
/// at one point.
#[derive(Default)]
pub(crate) struct Found(Mutex<Kept>);

/// z, and nodes by the first row of a block.
type Kept = (Vec<f64>, HashMap<usize, Arc<Located>>);

impl Found {
    fn at(&self, z: &[f64], start: usize) -> Option<Arc<Located>> {
        let kept = self.0.lock().ok()?;
        if kept.0 == z {
            kept.1.get(&start).cloned()
        } else {
            None
        }
    }

    fn keep(&self, z: &[f64], start: usize, located: Arc<Located>) {
        let Ok(mut kept) = self.0.lock() else {
            return;
        };
        if kept.0 != z {
            *kept = (z.to_vec(), HashMap::new());
        }
        if kept.1.len() < MOST_BLOCKS {
            kept.1.insert(start, located);
        }
    }
}

/// Computes the vectors of a look from rows, with the working memory of one thread.
pub(crate) struct Reader<'a> {
    look: &'a Look<'a>,
    program: &'a RowProgram,
    scratch: Scratch,
    source: Source<'a>,
    found: Option<&'a Found>,
    d: usize,
    /// `[node][BLOCK]`
    weights: Vec<f64>,
    /// `[node][coordinate][BLOCK]`
    vectors: Vec<f64>,
    out: Vec<f64>,
}

enum Source<'a> {
    Nothing,
    Law {
        law: &'a Law<'a>,
        sight: &'a Sight,
        scratch: Box<LawScratch>,
    },
    Differences {
        sights: Vec<[(&'a Jacobian, Scratch); 2]>,
        step: f64,
    },
}

impl<'a> Reader<'a> {
    /// `shared`: whether rows are added up to units.
    pub fn new(
        density: &'a Density,
        look: &'a Look<'a>,
        shared: bool,
        found: Option<&'a Found>,
    ) -> Reader<'a> {
        let program = density.row_program();
        let d = look.dimension();
        let asks = !matches!(
            look.statistic,
            Statistic::Gradient
                | Statistic::Products
                | Statistic::Squares
                | Statistic::Lengths
                | Statistic::GradientLengths
        );
        // The sum of a unit's gradients is approximately balanced by itself.
        let asks = asks && !(shared && look.statistic == Statistic::Centred);
        let (source, nodes) = match look.expected {
            Some(Expected::Law { law, sight }) if asks => {
                let scratch = Box::new(law.scratch_at(&sight.z, d));
                let nodes = law.nodes();
                let law = Source::Law {
                    law,
                    sight,
                    scratch,
                };
                (law, nodes)
            }
            Some(Expected::Differences { sights, step }) if asks => {
                let side = |sight: &'a Sight| (&sight.jacobian, program.scratch(&sight.z, d));
                let sights = sights.iter().map(|both| both.each_ref().map(side));
                let step = *step;
                (
                    Source::Differences {
                        sights: sights.collect(),
                        step,
                    },
                    d,
                )
            }
            _ => (Source::Nothing, 0),
        };
        Reader {
            look,
            program,
            scratch: program.scratch(&look.sight.z, d),
            source,
            found,
            d,
            weights: vec![0.0; nodes * BLOCK],
            vectors: vec![0.0; nodes * d * BLOCK],
            out: vec![0.0; look.summed_coordinates() * BLOCK],
        }
    }

    /// The vectors of rows that are added up: coordinate `j` of row `i` at `j * BLOCK + i`.
    /// `columns`: those of the row program, then those of the law; `start`: the number of the first
    /// row, which identifies its block.
    pub fn rows(&mut self, columns: &[&[f64]], rows: usize, start: usize) -> &[f64] {
        let jacobian = &self.look.sight.jacobian;
        match self.look.statistic {
            Statistic::Curvature | Statistic::CurvatureLengths => {
                self.differences(columns, rows, false);
                &self.out
            }
            Statistic::Information | Statistic::InformationLengths => {
                self.expect(columns, rows, start);
                self.products(rows);
                &self.out
            }
            Statistic::Slope => {
                self.expect(columns, rows, start);
                let balance = self.balance(rows);
                self.centre_vectors(&balance, rows);
                self.weigh_by_clipping(rows);
                self.products(rows);
                &self.out
            }
            Statistic::Centred if matches!(self.source, Source::Law { .. }) => {
                self.expect(columns, rows, start);
                let balance = self.balance(rows);
                #[cfg(test)]
                let balance = crate::planted::centres(balance);
                let gradients = self
                    .program
                    .gradients(columns, rows, jacobian, &mut self.scratch);
                for ((out, g), a) in self.out.iter_mut().zip(gradients).zip(balance) {
                    *out = g - a;
                }
                &self.out
            }
            _ => self
                .program
                .gradients(columns, rows, jacobian, &mut self.scratch),
        }
    }

    /// Weights and vectors of a block.
    fn expect(&mut self, columns: &[&[f64]], rows: usize, start: usize) {
        let d = self.d;
        let Source::Law {
            law,
            sight,
            scratch,
        } = &mut self.source
        else {
            self.differences(columns, rows, true);
            return;
        };
        let raw = &columns[columns.len() - law.columns().len()..];
        let (weights, vectors) = (&mut self.weights, &mut self.vectors);
        let located = match self.found.and_then(|found| found.at(&sight.z, start)) {
            Some(located) => located,
            None => {
                let located = Arc::new(law.locate(raw, rows, scratch));
                if let Some(found) = self.found.filter(|_| law.is_costly()) {
                    found.keep(&sight.z, start, located.clone());
                }
                located
            }
        };
        law.scores_at(&located, raw, rows, &sight.jacobian, scratch, |j, node| {
            weights[j * BLOCK..][..rows].copy_from_slice(node.probabilities);
            vectors[j * d * BLOCK..][..d * BLOCK].copy_from_slice(node.gradients);
        });
        // The mean, which quadrature leaves slightly off zero.
        let mut mean = vec![0.0; d * BLOCK];
        for (weights, vectors) in weights.chunks(BLOCK).zip(vectors.chunks(d * BLOCK)) {
            for (mean, vector) in mean.chunks_mut(BLOCK).zip(vectors.chunks(BLOCK)) {
                for i in 0..rows {
                    mean[i] += weights[i] * vector[i];
                }
            }
        }
        for vectors in vectors.chunks_mut(d * BLOCK) {
            for (v, m) in vectors.iter_mut().zip(&mean) {
                *v -= m;
            }
        }
    }

    /// The vector a of each record for which sum_j w_j clip(v_j - a) is approximately zero: where
    /// clipped gradients are balanced by the model's own law. None without a law.
    fn balance(&self, rows: usize) -> Vec<f64> {
        let d = self.d;
        let mut balance = vec![0.0; d * BLOCK];
        if !matches!(self.source, Source::Law { .. }) {
            return balance;
        }
        for _ in 0..BALANCING {
            let mut next = balance.clone();
            let mut squares = [0.0; BLOCK];
            for (weights, vectors) in self
                .weights
                .chunks(BLOCK)
                .zip(self.vectors.chunks(d * BLOCK))
            {
                squares.fill(0.0);
                for (vector, balance) in vectors.chunks(BLOCK).zip(balance.chunks(BLOCK)) {
                    for i in 0..rows {
                        squares[i] += (vector[i] - balance[i]).powi(2);
                    }
                }
                for i in 0..rows {
                    squares[i] = weights[i] * self.kept(squares[i].sqrt());
                }
                let each = vectors.chunks(BLOCK).zip(balance.chunks(BLOCK));
                for ((vector, balance), next) in each.zip(next.chunks_mut(BLOCK)) {
                    for i in 0..rows {
                        next[i] += squares[i] * (vector[i] - balance[i]);
                    }
                }
            }
            balance = next;
        }
        balance
    }

    /// The share of a vector of this length that clipping leaves.
    fn kept(&self, length: f64) -> f64 {
        if length > self.look.inner_clip {
            self.look.inner_clip / length
        } else {
            1.0
        }
    }

    fn centre_vectors(&mut self, balance: &[f64], rows: usize) {
        for vectors in self.vectors.chunks_mut(self.d * BLOCK) {
            for (vector, balance) in vectors.chunks_mut(BLOCK).zip(balance.chunks(BLOCK)) {
                for i in 0..rows {
                    vector[i] -= balance[i];
                }
            }
        }
    }

    fn weigh_by_clipping(&mut self, rows: usize) {
        for j in 0..self.weights.len() / BLOCK {
            let vectors = &self.vectors[j * self.d * BLOCK..][..self.d * BLOCK];
            for i in 0..rows {
                let square: f64 = vectors.chunks(BLOCK).map(|v| v[i] * v[i]).sum();
                let kept = self.kept(square.sqrt());
                self.weights[j * BLOCK + i] *= kept;
            }
        }
    }

    /// sum_j w_j v_j v_j', as a triangle.
    ///
    /// Whatever the floats are, it is positive semidefinite except for the rounding of the sum:
    /// weights that are negative or NaN count as zero.
    fn products(&mut self, rows: usize) {
        let d = self.d;
        self.out.fill(0.0);
        for (weights, vectors) in self
            .weights
            .chunks(BLOCK)
            .zip(self.vectors.chunks(d * BLOCK))
        {
            for ((j, k, factor), out) in triangle(d).zip(self.out.chunks_mut(BLOCK)) {
                let (a, b) = (&vectors[j * BLOCK..][..rows], &vectors[k * BLOCK..][..rows]);
                for i in 0..rows {
                    out[i] += factor * (weights[i].max(0.0) * (a[i] * b[i]));
                }
            }
        }
    }

    /// Minus the second derivatives of each record: as a triangle in `out`, or as weights and
    /// vectors where only the positive part is used.
    fn differences(&mut self, columns: &[&[f64]], rows: usize, positive: bool) {
        let d = self.d;
        let Source::Differences { sights, step } = &mut self.source else {
            self.weights.fill(0.0);
            self.out.fill(0.0);
            return;
        };
        // Row k of each record's matrix, stored in place of its k-th vector.
        for ([before, behind], row) in sights.iter_mut().zip(self.vectors.chunks_mut(d * BLOCK)) {
            let (jacobian, scratch) = before;
            let gradients = self.program.gradients(columns, rows, jacobian, scratch);
            for (r, g) in row.iter_mut().zip(gradients) {
                *r = g / (2.0 * *step);
            }
            let (jacobian, scratch) = behind;
            let gradients = self.program.gradients(columns, rows, jacobian, scratch);
            for (r, g) in row.iter_mut().zip(gradients) {
                *r -= g / (2.0 * *step);
            }
        }
        let symmetrised = |vectors: &[f64], j: usize, k: usize, i: usize| {
            0.5 * (vectors[(j * d + k) * BLOCK + i] + vectors[(k * d + j) * BLOCK + i])
        };
        if !positive {
            for ((j, k, factor), out) in triangle(d).zip(self.out.chunks_mut(BLOCK)) {
                for (i, out) in out[..rows].iter_mut().enumerate() {
                    *out = factor * symmetrised(&self.vectors, j, k, i);
                }
            }
            return;
        }
        let mut matrix = vec![0.0; d * d];
        for i in 0..rows {
            for j in 0..d {
                for k in 0..d {
                    matrix[j * d + k] = symmetrised(&self.vectors, j, k, i);
                }
            }
            let (values, axes) = eigen(&matrix, d);
            for (k, value) in values.into_iter().enumerate() {
                self.weights[k * BLOCK + i] = value.max(0.0);
                for j in 0..d {
                    self.vectors[(k * d + j) * BLOCK + i] = axes[j * d + k];
                }
            }
        }
    }
}
