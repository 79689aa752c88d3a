//! Private rows, and integer sums over them: the whole table, or a batch gathered
//! from it.

use std::sync::Mutex;

use rayon::prelude::*;

use crate::density::{BLOCK, Density, RowProgram, Scratch};
use crate::linear::vectorised;
use crate::privacy::expected::{NodeCache, Reader};
use crate::privacy::gradient::{GradientScale, Memory};
use crate::privacy::penalty::quantise;
use crate::privacy::statistic::{Computed, Look};
use crate::privacy::store::{self, Columns, SEGMENT, Window};
use crate::privacy::tally::{Sums, Tally};

/// Blocks per unit of parallel work: those of a stored segment. Fixed, so that float sums of the
/// non-private path do not depend on the number of threads either.
pub(super) const BLOCKS_PER_TASK: usize = SEGMENT / BLOCK;
const _: () = assert!(BLOCK == store::BLOCK);

/// The columns that the row program and the law of the outcomes read, and which rows belong
/// together.
pub(in crate::privacy) struct Table {
    /// Those of the row program, then those of the law.
    pub columns: Columns,
    /// Which records have a likelihood: false for missing values and for
    /// records that are impossible under every parameter.
    pub counts: Vec<bool>,
    /// Where rows share units, the end of each unit's rows; all of them count.
    pub units: Option<Vec<usize>>,
    /// The numbers of these units among all of the table, whatever a model reads of them. None in a
    /// batch.
    pub numbers: Option<Vec<usize>>,
    pub nodes: NodeCache,
    pub idle: Idle,
}

/// Working memory that is not in use.
#[derive(Default)]
pub(in crate::privacy) struct Idle(Mutex<Vec<Scratch>>);

impl Idle {
    fn take(&self, program: &RowProgram, z: &[f64]) -> Scratch {
        let idle = self.0.lock().ok().and_then(|mut all| all.pop());
        match idle {
            Some(mut scratch) => {
                program.set_interface(&mut scratch, z);
                scratch
            }
            None => program.scratch(z),
        }
    }

    fn put(&self, scratch: Scratch) {
        if let Ok(mut all) = self.0.lock() {
            all.push(scratch);
        }
    }
}

/// A sum of clipped vectors so far, and the working memory of what adds to it.
struct Adding<'a> {
    window: Window<'a>,
    reader: Reader<'a>,
    vectors: Computed,
    memory: Memory,
    sum: Vec<i128>,
}

impl Table {
    /// The number of units that have rows: of rows, where each is a unit.
    pub fn present(&self) -> usize {
        self.units.as_ref().map_or(self.counts.len(), Vec::len)
    }

    /// The rows of the units of a batch, in ascending order; units after the last one with rows have
    /// none.
    pub fn gather(&self, batch: impl Iterator<Item = usize>) -> Table {
        let mut rows = Vec::new();
        let batch = batch.take_while(|&unit| unit < self.present());
        let units = match &self.units {
            None => {
                rows.extend(batch);
                None
            }
            Some(ends) => {
                let mut gathered = Vec::new();
                for unit in batch {
                    let start = unit.checked_sub(1).map_or(0, |before| ends[before]);
                    rows.extend(start..ends[unit]);
                    gathered.push(rows.len());
                }
                Some(gathered)
            }
        };
        Table {
            columns: self.columns.gathered(rows.iter().copied()),
            counts: rows.iter().map(|&row| self.counts[row]).collect(),
            units,
            numbers: None,
            nodes: NodeCache::default(),
            idle: Idle::default(),
        }
    }

    /// The sum of clipped gradients at `theta`, in lattice units.
    pub fn clipped_gradient_sum(
        &self,
        density: &Density,
        theta: &[f64],
        scale: &GradientScale,
    ) -> Vec<i128> {
        self.clipped_sum(density, &Look::gradient(density, theta), scale)
    }

    /// The sum of the clipped vectors that `look` computes from records, in lattice units.
    pub fn clipped_sum(&self, density: &Density, look: &Look, scale: &GradientScale) -> Vec<i128> {
        let coordinates = look.coordinates();
        let add = |mut total: Vec<i128>, part: Vec<i128>| {
            for (t, p) in total.iter_mut().zip(part) {
                *t += p;
            }
            total
        };
        if let Some(ends) = &self.units {
            return self.unit_sum(density, look, scale, ends, add);
        }
        let begin = || Adding {
            window: self.columns.window(),
            reader: Reader::new(density, look, false, Some(&self.nodes)),
            vectors: look.working_memory(),
            memory: Memory::default(),
            sum: vec![0; coordinates],
        };
        let part = |adding: &mut Adding, blocks: Vec<usize>| {
            let Adding {
                window,
                reader,
                vectors,
                memory,
                sum,
            } = adding;
            for start in blocks {
                let counts = self.counts_of_block(start);
                let columns = window.rows(start..start + counts.len());
                let mut gradients = reader.rows(&columns, counts.len(), start);
                if !look.is_as_it_is() {
                    gradients = look.vectors(gradients.values, counts.len(), vectors);
                }
                scale.add_clipped(gradients, counts, memory, sum);
            }
        };
        let tasks = self.tasks();
        if tasks.len() < 2 {
            let mut adding = begin();
            tasks.into_iter().for_each(|task| part(&mut adding, task));
            return adding.sum;
        }
        // Integers, whose sum is the same however tasks are joined.
        let parts = tasks.into_par_iter().fold(begin, |mut adding, task| {
            part(&mut adding, task);
            adding
        });
        let sums = parts.map(|adding| adding.sum);
        sums.reduce(|| vec![0; coordinates], add)
    }

    /// The sums of `tally` over the log-likelihoods of each record (of each unit, summed
    /// over its rows) at `to` and at `from`, times `temperature`, on the lattice of [`quantise`]:
    /// each is rounded before any difference is taken, so that results can be antisymmetric to the
    /// bit.
    pub fn tallied(
        &self,
        density: &Density,
        [from, to]: [&[f64]; 2],
        temperature: f64,
        tally: Tally,
    ) -> Sums {
        let z_from = density.interface(from).z;
        let z_to = density.interface(to).z;
        let merge = |[a, b]: Sums, [c, d]: Sums| [a + c, b + d];
        if let Some(ends) = &self.units {
            return self.tallied_by_unit(
                density,
                [&z_from, &z_to],
                temperature,
                ends,
                tally,
                merge,
            );
        }
        let program = density.row_program();
        let part = |blocks: Vec<usize>| {
            let mut window = self.columns.window();
            let mut at_from = program.scratch(&z_from);
            let mut at_to = program.scratch(&z_to);
            let mut sums = Sums::default();
            for start in blocks {
                let counts = self.counts_of_block(start);
                let columns = window.rows(start..start + counts.len());
                let rows = counts.len();
                program.forward(&columns, rows, &mut at_from);
                program.forward(&columns, rows, &mut at_to);
                let before = program.output(0, &columns, rows, &at_from);
                let after = program.output(0, &columns, rows, &at_to);
                for i in 0..rows {
                    if counts[i] {
                        tally.add(
                            &mut sums,
                            quantise(temperature * after[i]),
                            quantise(temperature * before[i]),
                        );
                    }
                }
            }
            sums
        };
        merged(self.tasks(), part, merge).unwrap_or_default()
    }

    /// The log-likelihood (nats) and its gradient with respect to the interface `z`, exact.
    pub fn exact(&self, density: &Density, z: &[f64]) -> (f64, Vec<f64>) {
        let program = density.row_program();
        let part = |blocks: Vec<usize>| {
            let mut window = self.columns.window();
            let mut scratch = self.idle.take(program, z);
            let mut gradient = vec![0.0; z.len()];
            let mut total = CompensatedSum::default();
            for start in blocks {
                let counts = self.counts_of_block(start);
                let columns = window.rows(start..start + counts.len());
                program.forward(&columns, counts.len(), &mut scratch);
                let terms = program.output(0, &columns, counts.len(), &scratch);
                total.add_all(terms, counts);
                program.add_interface_gradient(&columns, counts, &mut scratch, &mut gradient);
            }
            self.idle.put(scratch);
            (total, gradient)
        };
        let merge = |(mut total, mut gradient): (CompensatedSum, Vec<f64>),
                     next: (CompensatedSum, Vec<f64>)| {
            total.add(next.0.value());
            for (g, p) in gradient.iter_mut().zip(next.1) {
                *g += p;
            }
            (total, gradient)
        };
        let sum = merged(self.tasks(), part, merge);
        sum.map_or((0.0, vec![0.0; z.len()]), |(total, gradient)| {
            (total.value(), gradient)
        })
    }

    /// First records of the blocks, in tasks.
    fn tasks(&self) -> Vec<Vec<usize>> {
        let starts: Vec<usize> = (0..self.counts.len()).step_by(BLOCK).collect();
        starts
            .chunks(BLOCKS_PER_TASK)
            .map(<[usize]>::to_vec)
            .collect()
    }

    fn counts_of_block(&self, start: usize) -> &[bool] {
        &self.counts[start..(start + BLOCK).min(self.counts.len())]
    }
}

/// The tasks' parts, merged in the order of the tasks; `None` without tasks. A single task, such as
/// a small batch, runs on the calling thread.
pub(super) fn merged<T: Send, S: Send>(
    mut tasks: Vec<T>,
    part: impl Fn(T) -> S + Sync,
    merge: impl Fn(S, S) -> S,
) -> Option<S> {
    if tasks.len() < 2 {
        return tasks.pop().map(part);
    }
    let parts: Vec<S> = tasks.into_par_iter().map(&part).collect();
    parts.into_iter().reduce(merge)
}

/// A float sum whose rounding does not grow with the number of terms (Neumaier
/// 1974): differences of log densities are small compared with the densities.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CompensatedSum {
    sum: f64,
    lost: f64,
}

impl CompensatedSum {
    pub fn add(&mut self, term: f64) {
        let next = self.sum + term;
        self.lost += if self.sum.abs() >= term.abs() {
            (self.sum - next) + term
        } else {
            (term - next) + self.sum
        };
        self.sum = next;
    }

    /// Adds the terms that count.
    fn add_all(&mut self, terms: &[f64], counts: &[bool]) {
        let (sums, lost) = sums_by_lanes(terms, counts);
        for (sum, lost) in sums.into_iter().zip(lost) {
            self.add(sum);
            // An infinite sum has no rounding to compensate.
            if sum.is_finite() {
                self.lost += lost;
            }
        }
    }

    pub fn value(self) -> f64 {
        // An infinite sum has no rounding to compensate.
        if self.sum.is_finite() {
            self.sum + self.lost
        } else {
            self.sum
        }
    }
}

/// Terms that are added together.
const LANES: usize = 16;

vectorised! {
    /// The sums of the terms that count, in parts, and what rounding has taken from each (Knuth
    /// 1969).
    fn sums_by_lanes(terms: &[f64], counts: &[bool]) -> ([f64; LANES], [f64; LANES]) {
        let (mut sums, mut lost) = ([0.0; LANES], [0.0; LANES]);
        for start in (0..terms.len()).step_by(LANES) {
            let mut tile = [0.0; LANES];
            let lanes = terms[start..].iter().zip(&counts[start..]);
            for (term, (&own, &counts)) in tile.iter_mut().zip(lanes) {
                *term = if counts { own } else { 0.0 };
            }
            for lane in 0..LANES {
                let (before, term) = (sums[lane], tile[lane]);
                let sum: f64 = before + term;
                let kept = sum - before;
                lost[lane] += (before - (sum - kept)) + (term - kept);
                sums[lane] = sum;
            }
        }
        (sums, lost)
    }
}
