//! The expectations of the model for one record, by which its gradient is centred.
//!
//! All of it is a function of the record's own columns and of public things: the model, the
//! point, the coordinates. The result is weighted vectors, sum_j w_j v_j v_j' being the information
//! in the record:
//!
//! - where the model gives the record's outcomes a law, the gradients g_j that it would have at
//!   its nodes, less their mean, with their probabilities;
//! - where a time may be censored, the derivatives of its log hazard in intervals of the time of
//!   follow-up, with the integrals of the hazard over these;
//! - elsewhere the eigenvectors of minus the second derivatives of the log-likelihood, with
//!   their eigenvalues where these are positive.

mod basis;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use basis::Basis;

use super::expectation::Expected;
use super::gradient::Gradients;
use super::statistic::{Look, Statistic, triangle, triangle_place, triangle_weight};
use crate::density::{
    BLOCK, Density, Hazard, HazardScratch, INTERVALS, Jacobian, Law, LawScratch, Located, Picked,
    Pull, RowProgram, Scratch, Sight, Sparse, merge_picks,
};
use crate::linear::{eigen, vectorised};

/// The most bytes of nodes that are kept.
const MOST_KEPT: usize = 128 << 20;
/// Lengths that a record's law has with this probability or more are no sign of others.
const IMPROBABLE: f64 = 1e-3;
/// A gradient is as long as that at a node up to this factor.
const AS_LONG: f64 = 0.99;
/// Steps of the iteration that balances clipped gradients.
const BALANCING: usize = 5;

/// The sum of the vectors that a look computes from public records, not clipped. `columns`: those
/// of the row program, then those of the law; records that are not numbers add nothing.
pub(crate) fn public_sum(
    density: &Density,
    look: &Look,
    columns: &[Vec<f64>],
    n: usize,
) -> Vec<f64> {
    let mut sum = vec![0.0; look.summed_coordinates()];
    visit_public(density, look, columns, n, |entries| {
        for (j, x) in entries {
            sum[*j] += x;
        }
    });
    sum
}

/// Visits the entries of the look's vector for each of `n` public records, with their coordinates,
/// where all are finite.
pub(crate) fn visit_public(
    density: &Density,
    look: &Look,
    columns: &[Vec<f64>],
    n: usize,
    mut visit: impl FnMut(&[(usize, f64)]),
) {
    let mut reader = Reader::new(density, look, false, None);
    for start in (0..n).step_by(BLOCK) {
        let rows = BLOCK.min(n - start);
        let block: Vec<&[f64]> = columns.iter().map(|c| &c[start..start + rows]).collect();
        let of_rows = reader.rows(&block, rows, start);
        for i in 0..rows {
            let entries: Vec<(usize, f64)> = of_rows.of(i).collect();
            if entries.iter().all(|(_, x)| x.is_finite()) {
                visit(&entries);
            }
        }
    }
}

/// The nodes of a table's blocks of records where the law saw `z` last: several questions are asked
/// at one point.
#[derive(Default)]
pub(crate) struct NodeCache(Mutex<CachedNodes>);

#[derive(Default)]
struct CachedNodes {
    z: Vec<f64>,
    /// By the first row of a block.
    blocks: HashMap<usize, Arc<Located>>,
    bytes: usize,
}

impl NodeCache {
    fn at(&self, z: &[f64], start: usize) -> Option<Arc<Located>> {
        let kept = self.0.lock().ok()?;
        if kept.z == z {
            kept.blocks.get(&start).cloned()
        } else {
            None
        }
    }

    fn keep(&self, z: &[f64], start: usize, located: Arc<Located>) {
        let Ok(mut kept) = self.0.lock() else {
            return;
        };
        if kept.z != z {
            *kept = CachedNodes {
                z: z.to_vec(),
                ..CachedNodes::default()
            };
        }
        if kept.bytes + located.bytes() <= MOST_KEPT {
            kept.bytes += located.bytes();
            kept.blocks.insert(start, located);
        }
    }
}

/// Computes the vectors of a look from rows, with the working memory of one thread.
pub(crate) struct Reader<'a> {
    look: &'a Look<'a>,
    program: &'a RowProgram,
    scratch: Scratch,
    source: Source<'a>,
    cache: Option<&'a NodeCache>,
    d: usize,
    /// The number of derivatives of the vectors.
    width: usize,
    /// The basis by which vectors have coordinates, where these are fewer than the derivatives.
    basis: Option<Basis>,
    /// The parts of gradients, where these are quicker, and of the law's.
    sparse: Option<Sparse>,
    of_law: Option<Sparse>,
    picked: Picked,
    /// Of the law's vectors.
    of_vectors: Picked,
    /// The places in a triangle of the products of the law's coordinates that are not picked.
    triangle: Vec<usize>,
    /// `[node][BLOCK]`
    weights: Vec<f64>,
    /// `[node][coordinate][BLOCK]`
    vectors: Vec<f64>,
    balancing: Balancing,
    out: Vec<f64>,
}

/// The balance of the gradients of records, `[coordinate][BLOCK]`, and memory to find it.
struct Balancing {
    balance: Vec<f64>,
    step: Vec<f64>,
    kept: Vec<f64>,
}

enum Source<'a> {
    Nothing,
    Law {
        law: &'a Law<'a>,
        sight: &'a Sight,
        scratch: Box<LawScratch>,
    },
    Hazard {
        hazard: &'a Hazard<'a>,
        sight: &'a Sight,
        scratch: Box<HazardScratch>,
    },
    Differences {
        sights: Vec<[(&'a Jacobian, Scratch); 2]>,
        step: f64,
    },
}

impl Source<'_> {
    /// Whether it balances clipped gradients.
    fn balances(&self) -> bool {
        matches!(self, Source::Law { .. } | Source::Hazard { .. })
    }
}

impl<'a> Reader<'a> {
    /// `shared`: whether rows are added up to units.
    pub fn new(
        density: &'a Density,
        look: &'a Look<'a>,
        shared: bool,
        cache: Option<&'a NodeCache>,
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
                let scratch = Box::new(law.scratch_at(&sight.z));
                let nodes = law.nodes();
                let law = Source::Law {
                    law,
                    sight,
                    scratch,
                };
                (law, nodes)
            }
            Some(Expected::Hazard { hazard, sight }) if asks => {
                let scratch = Box::new(hazard.scratch_at(&sight.z));
                let hazard = Source::Hazard {
                    hazard,
                    sight,
                    scratch,
                };
                (hazard, INTERVALS + 1)
            }
            Some(Expected::Differences { sights, step }) if asks => {
                let side = |sight: &'a Sight| (&sight.jacobian, program.scratch(&sight.z));
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
        let in_parts = !shared
            && look.centre.is_none()
            && !matches!(look.statistic, Statistic::Products | Statistic::Squares);
        let mut sparse = in_parts
            .then(|| program.sparse(&look.sight.jacobian))
            .flatten();
        let mut of_law = match &source {
            Source::Law { law, sight, .. } if in_parts => law.sparse(&sight.jacobian),
            _ => None,
        };
        if look.statistic == Statistic::Centred && source.balances() {
            let [own, of_law_own] = [&sparse, &of_law].map(|s| s.as_ref().map(Sparse::coordinates));
            if own != of_law_own {
                (sparse, of_law) = (None, None);
            }
        }
        let width = of_law.as_ref().map_or(d, |s| Pull::Parts(s).width());
        let predictors = match &source {
            Source::Law { law, sight, .. } => {
                let whole = Pull::Whole(&sight.jacobian);
                law.predictors(of_law.as_ref().map_or(whole, Pull::Parts))
            }
            Source::Hazard { hazard, sight, .. } => hazard.predictors(Pull::Whole(&sight.jacobian)),
            Source::Nothing | Source::Differences { .. } => None,
        };
        // Along a direction in which records see nothing, there are none.
        let basis = (predictors)
            .filter(|p| (1..width).contains(&p.count()) && p.count() <= nodes)
            .map(|predictors| Basis::new(predictors, width, nodes));
        let coordinates = basis.as_ref().map_or(width, |basis| basis.rank);
        let own = of_law.as_ref().map_or(&[][..], Sparse::coordinates);
        let of_own = |at: usize| {
            own[at..]
                .iter()
                .map(move |&k| triangle_place(d, own[at], k))
        };
        let triangle = (0..own.len()).flat_map(of_own).collect();
        let out = match look.statistic {
            Statistic::Centred => width,
            Statistic::Beyond => 2,
            _ if asks => width * (width + 1) / 2,
            _ => 0,
        };
        Reader {
            look,
            program,
            scratch: program.scratch(&look.sight.z),
            source,
            cache,
            d,
            width,
            basis,
            sparse,
            of_law,
            picked: Picked::new(),
            of_vectors: Picked::new(),
            triangle,
            weights: vec![0.0; nodes * BLOCK],
            vectors: vec![0.0; nodes * coordinates * BLOCK],
            balancing: Balancing {
                balance: vec![0.0; coordinates * BLOCK],
                step: vec![0.0; coordinates * BLOCK],
                kept: vec![0.0; nodes * BLOCK],
            },
            out: vec![0.0; out * BLOCK],
        }
    }

    /// The vectors of rows that are added up. `columns`: those of the row program, then those of the
    /// law; `start`: the number of the first row, which identifies its block.
    ///
    /// They are in parts where each record sees few of many coordinates: the rest of its vector is
    /// exactly zero, and left out.
    pub fn rows(&mut self, columns: &[&[f64]], rows: usize, start: usize) -> Gradients<'_> {
        match self.look.statistic {
            Statistic::Curvature | Statistic::CurvatureLengths => {
                self.differences(columns, rows, false);
                Gradients::whole(&self.out)
            }
            Statistic::Information | Statistic::InformationLengths => {
                self.expect(columns, rows, start);
                self.products()
            }
            Statistic::Slope => {
                self.expect(columns, rows, start);
                if matches!(self.source, Source::Law { .. }) {
                    self.balance();
                    subtract(&self.balancing.balance, &mut self.vectors);
                }
                clip_weights(&self.vectors, None, self.look.inner_clip, &mut self.weights);
                self.products()
            }
            Statistic::Beyond => {
                self.expect(columns, rows, start);
                self.beyond(columns, rows);
                Gradients::whole(&self.out)
            }
            Statistic::Centred if self.source.balances() => {
                self.expect(columns, rows, start);
                self.balance();
                #[cfg(test)]
                crate::planted::move_centres(&mut self.balancing.balance);
                self.centred(columns, rows)
            }
            _ => self.gradients(columns, rows),
        }
    }

    fn gradients(&mut self, columns: &[&[f64]], rows: usize) -> Gradients<'_> {
        let jacobian = &self.look.sight.jacobian;
        let pull = (self.sparse.as_ref()).map_or(Pull::Whole(jacobian), Pull::Parts);
        let (scratch, picked) = (&mut self.scratch, &mut self.picked);
        let values = self
            .program
            .pulled(columns, rows, (pull, None), scratch, picked);
        Gradients {
            values,
            picked,
            coordinates: self.sparse.as_ref().map(Sparse::coordinates),
        }
    }

    /// Gradients less what balances them.
    fn centred(&mut self, columns: &[&[f64]], rows: usize) -> Gradients<'_> {
        let mut out = std::mem::take(&mut self.out);
        let mut picked = std::mem::take(&mut self.of_vectors);
        let gradients = self.gradients(columns, rows);
        // What the gradients pick, what the balance picks, and the rest.
        let own = gradients.picked.len() * BLOCK;
        let all = own + picked.len() * BLOCK;
        picked.splice(..0, gradients.picked.iter().copied());
        let (of_picked, common) = gradients.values.split_at(own);
        out.resize(all + common.len(), 0.0);
        out[..own].copy_from_slice(of_picked);
        out[own..all].fill(0.0);
        out[all..].copy_from_slice(common);
        let balance = &self.balancing.balance;
        let balance = (self.basis.as_mut()).map_or(&balance[..], |basis| basis.lift(balance));
        subtract(balance, &mut out[own..]);
        merge_picks(&picked, &mut out[..all]);
        (self.out, self.of_vectors) = (out, picked);
        Gradients {
            values: &self.out,
            picked: &self.of_vectors,
            coordinates: self.sparse.as_ref().map(Sparse::coordinates),
        }
    }

    /// [`Statistic::Beyond`], in `out`.
    fn beyond(&mut self, columns: &[&[f64]], rows: usize) {
        let square = |values: &[f64], i: usize| -> f64 {
            values[i..].iter().step_by(BLOCK).map(|x| x * x).sum()
        };
        let own: Vec<f64> = {
            let values = self.gradients(columns, rows).values;
            (0..rows).map(|i| square(values, i).sqrt()).collect()
        };
        let (clip, end) = (self.look.inner_clip, self.look.unit);
        let length = self.vectors.len() / self.weights.len().max(1) * BLOCK;
        for (i, own) in own.into_iter().enumerate() {
            let share = ((own - clip) / (end - clip)).clamp(0.0, 1.0);
            let nodes = self.weights.iter().skip(i).step_by(BLOCK);
            let (mut mass, mut as_long) = (0.0, 0.0);
            if share > 0.0 {
                for (weight, vector) in nodes.zip(self.vectors.chunks_exact(length.max(1))) {
                    mass += weight;
                    if square(vector, i).sqrt() >= AS_LONG * own {
                        as_long += weight;
                    }
                }
            }
            let is_improbable = mass > 0.0 && as_long < IMPROBABLE * mass;
            let share = if is_improbable { share } else { 0.0 };
            (self.out[i], self.out[BLOCK + i]) = (share, 1.0 - share);
        }
    }

    /// Weights and vectors of a block.
    fn expect(&mut self, columns: &[&[f64]], rows: usize, start: usize) {
        let (weights, vectors) = (&mut self.weights, &mut self.vectors);
        let by_predictors = self
            .basis
            .as_ref()
            .map(|basis| Pull::Predictors(&basis.predictors));
        let (law, sight, scratch) = match &mut self.source {
            Source::Law {
                law,
                sight,
                scratch,
            } => (law, sight, scratch),
            Source::Hazard {
                hazard,
                sight,
                scratch,
            } => {
                let raw = &columns[columns.len() - hazard.columns()..];
                let whole = Pull::Whole(&sight.jacobian);
                let pull = by_predictors.unwrap_or(whole);
                let length = vectors.len() / weights.len() * BLOCK;
                let (of_intervals, event) = weights.split_at_mut(INTERVALS * BLOCK);
                let (slopes, at_event) = vectors.split_at_mut(INTERVALS * length);
                hazard.intervals(raw, rows, pull, scratch, (of_intervals, slopes));
                if self.look.statistic == Statistic::Centred {
                    hazard.events(raw, rows, pull, scratch, (event, at_event));
                }
                if let Some(basis) = &mut self.basis {
                    let into = (&mut self.of_vectors, &mut basis.vectors[..]);
                    let (predictors, records) = (&basis.predictors, (raw, rows));
                    hazard.predictor_gradients(predictors, records, whole, scratch, into);
                    basis.settle(rows, weights, vectors);
                }
                return;
            }
            Source::Nothing | Source::Differences { .. } => {
                self.differences(columns, rows, true);
                return;
            }
        };
        let raw = &columns[columns.len() - law.columns().len()..];
        let located = match self.cache.and_then(|cache| cache.at(&sight.z, start)) {
            Some(located) => located,
            None => {
                let located = Arc::new(law.locate(raw, rows, scratch));
                if let Some(cache) = self.cache.filter(|_| law.is_costly()) {
                    cache.keep(&sight.z, start, located.clone());
                }
                located
            }
        };
        let whole = Pull::Whole(&sight.jacobian);
        let own = self.of_law.as_ref().map_or(whole, Pull::Parts);
        let length = vectors.len() / weights.len() * BLOCK;
        let picked = &mut self.of_vectors;
        let pull = by_predictors.unwrap_or(own);
        law.scores_at(&located, raw, rows, pull, scratch, |j, node| {
            weights[j * BLOCK..][..rows].copy_from_slice(node.probabilities);
            vectors[j * length..][..length].copy_from_slice(node.gradients);
            if j == 0 {
                picked.clear();
                picked.extend_from_slice(node.picked);
            }
        });
        if let Some(basis) = &mut self.basis {
            let into = (picked, &mut basis.vectors[..]);
            let (predictors, records) = (&basis.predictors, (raw, rows));
            law.predictor_gradients(predictors, records, own, scratch, into);
            basis.settle(rows, weights, vectors);
        }
        // The mean, which quadrature leaves slightly off zero.
        let mean = &mut self.balancing.step;
        mean.fill(0.0);
        add_mean(weights, vectors, mean);
        subtract(mean, vectors);
    }

    /// Finds the vector a of each record for which sum_j w_j clip(v_j - a) is approximately zero:
    /// where clipped gradients are balanced by the model's own law. Zero without a law.
    ///
    /// With a hazard h, a is such that score - a = status clip(u(t)) - int clip(u(s)) h(s) ds: like the score,
    /// the integral of a predictable function by a martingale, whose expectation is zero.
    fn balance(&mut self) {
        let Balancing {
            balance,
            step,
            kept,
        } = &mut self.balancing;
        balance.fill(0.0);
        match self.source {
            Source::Law { .. } => {}
            Source::Hazard { .. } => {
                kept.copy_from_slice(&self.weights);
                clip_weights(&self.vectors, None, self.look.inner_clip, kept);
                for (kept, weight) in kept.iter_mut().zip(&self.weights) {
                    *kept -= weight;
                }
                add_mean(kept, &self.vectors, balance);
                return;
            }
            Source::Nothing | Source::Differences { .. } => return,
        }
        for _ in 0..BALANCING {
            kept.copy_from_slice(&self.weights);
            clip_weights(&self.vectors, Some(balance), self.look.inner_clip, kept);
            step.fill(0.0);
            add_mean(kept, &self.vectors, step);
            // The mean of v - a is that of v less the weights times a.
            advance(kept, step, balance);
        }
    }

    /// sum_j w_j v_j v_j', as a triangle.
    ///
    /// Whatever the floats are, it is positive semidefinite except for the rounding of the sum:
    /// weights that are negative or NaN count as zero.
    fn products(&mut self) -> Gradients<'_> {
        match &mut self.basis {
            Some(basis) => {
                let (weights, vectors) = basis.roots(&self.weights, &self.vectors);
                weighted_products(weights, vectors, self.width, &mut self.out);
            }
            None => {
                if matches!(self.source, Source::Hazard { .. }) {
                    move_into_vectors(&mut self.weights, &mut self.vectors);
                }
                weighted_products(&self.weights, &self.vectors, self.width, &mut self.out);
            }
        }
        let Some(of_law) = &self.of_law else {
            return Gradients::whole(&self.out);
        };
        // The rows of what is picked are the first of the triangle.
        let (d, common) = (self.d, of_law.coordinates());
        self.picked.clear();
        for (at, own) in self.of_vectors.iter().enumerate() {
            for other in &self.of_vectors[at..] {
                let place = |i: usize| triangle_place(d, own[i], other[i]);
                self.picked.push(std::array::from_fn(place));
            }
            for &k in common {
                self.picked.push(own.map(|j| triangle_place(d, j, k)));
            }
        }
        Gradients {
            values: &self.out,
            picked: &self.picked,
            coordinates: Some(&self.triangle),
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

// Blocks of vectors are `[node][coordinate][BLOCK]`, weights `[node][BLOCK]`.

vectorised! {
    /// Adds the weighted sum of each record's vectors.
    fn add_mean(weights: &[f64], vectors: &[f64], mean: &mut [f64]) {
        let nodes = weights.chunks_exact(BLOCK).zip(vectors.chunks_exact(mean.len()));
        for (weights, vectors) in nodes {
            let each = mean.chunks_exact_mut(BLOCK).zip(vectors.chunks_exact(BLOCK));
            for (mean, vector) in each {
                for ((mean, w), v) in mean.iter_mut().zip(weights).zip(vector) {
                    *mean += w * v;
                }
            }
        }
    }
}

vectorised! {
    /// Subtracts a vector of each record from all of its vectors.
    fn subtract(centre: &[f64], vectors: &mut [f64]) {
        for vectors in vectors.chunks_exact_mut(centre.len()) {
            for (v, c) in vectors.iter_mut().zip(centre) {
                *v -= c;
            }
        }
    }
}

vectorised! {
    /// Multiplies weights by the share of a vector, less the centre, that clipping leaves.
    fn clip_weights(vectors: &[f64], centre: Option<&[f64]>, clip: f64, weights: &mut [f64]) {
        let length = vectors.len() / weights.len() * BLOCK;
        for (weights, vectors) in
            weights.chunks_exact_mut(BLOCK).zip(vectors.chunks_exact(length))
        {
            let mut squares = [0.0; BLOCK];
            match centre {
                Some(centre) => {
                    let each = vectors.chunks_exact(BLOCK).zip(centre.chunks_exact(BLOCK));
                    for (vector, centre) in each {
                        for ((s, v), c) in squares.iter_mut().zip(vector).zip(centre) {
                            *s += (v - c) * (v - c);
                        }
                    }
                }
                None => {
                    for vector in vectors.chunks_exact(BLOCK) {
                        for (s, v) in squares.iter_mut().zip(vector) {
                            *s += v * v;
                        }
                    }
                }
            }
            for (w, square) in weights.iter_mut().zip(&squares) {
                let length = square.sqrt();
                *w *= if length > clip { clip / length } else { 1.0 };
            }
        }
    }
}

vectorised! {
    /// `balance += step - balance * sum_j weights[j]`
    fn advance(weights: &[f64], step: &[f64], balance: &mut [f64]) {
        let mut totals = [0.0; BLOCK];
        for weights in weights.chunks_exact(BLOCK) {
            for (total, w) in totals.iter_mut().zip(weights) {
                *total += w;
            }
        }
        for (balance, step) in balance.chunks_exact_mut(BLOCK).zip(step.chunks_exact(BLOCK)) {
            for ((b, s), total) in balance.iter_mut().zip(step).zip(&totals) {
                *b += s - *b * total;
            }
        }
    }
}

/// Multiplies vectors by the roots of weights above 1, which become 1 as those of a law are: what the proof for
/// products that underflow counts on.
fn move_into_vectors(weights: &mut [f64], vectors: &mut [f64]) {
    let length = vectors.len() / weights.len() * BLOCK;
    let nodes = weights
        .chunks_exact_mut(BLOCK)
        .zip(vectors.chunks_exact_mut(length));
    for (weights, vectors) in nodes {
        for (i, w) in weights.iter_mut().enumerate().filter(|(_, w)| **w > 1.0) {
            let root = w.sqrt();
            (i..length)
                .step_by(BLOCK)
                .for_each(|at| vectors[at] *= root);
            *w = 1.0;
        }
    }
}

/// Records that are computed together.
const ROWS: usize = 16;

vectorised! {
    /// sum_j w_j v_j v_j', as a triangle of `d` rows; weights that are negative or NaN count as
    /// zero.
    fn weighted_products(weights: &[f64], vectors: &[f64], d: usize, out: &mut [f64]) {
        let nodes = weights.len() / BLOCK;
        let mut weighted = vec![[0.0; ROWS]; nodes];
        for start in (0..BLOCK).step_by(ROWS) {
            let mut at = start;
            for j in 0..d {
                for (node, weighted) in weighted.iter_mut().enumerate() {
                    let weights = &weights[node * BLOCK + start..][..ROWS];
                    let vector = &vectors[(node * d + j) * BLOCK + start..][..ROWS];
                    for r in 0..ROWS {
                        let weight = if weights[r] > 0.0 { weights[r] } else { 0.0 };
                        weighted[r] = weight * vector[r];
                    }
                }
                for k in j..d {
                    let mut sums = [0.0; ROWS];
                    for (node, weighted) in weighted.iter().enumerate() {
                        let vector = &vectors[(node * d + k) * BLOCK + start..][..ROWS];
                        for r in 0..ROWS {
                            sums[r] += weighted[r] * vector[r];
                        }
                    }
                    let factor = triangle_weight(j, k);
                    let out = &mut out[at..at + ROWS];
                    for r in 0..ROWS {
                        out[r] = factor * sums[r];
                    }
                    at += BLOCK;
                }
            }
        }
    }
}
