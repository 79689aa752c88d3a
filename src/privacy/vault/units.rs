//! Sums over units of several rows each: a unit's rows are added up, then the sum is
//! clipped as one record's contribution would be.
//!
//! # Sensitivity
//!
//! The sum is what is clipped and put on the lattice, so whatever a unit's rows are, and however
//! many, it adds one vector (or one log-ratio) within the bound, and the proofs of
//! [`GradientScale`] and [`PenaltyQuery`] hold with `unit` for `record`. The rows of one unit enter
//! no other unit's sum. Proof: docs/proofs.md, section 2.
//!
//! # Reproducibility
//!
//! Vectors are added as floats in the order of the unit's rows, which
//! `Rows::by_unit` fixes by their values, and the rounding errors of the additions are summed
//! separately: so a sum is as exact for a million rows as for two, as sections 2 and 5 of
//! docs/proofs.md require. Log-likelihoods are added as integers on the lattice. Either way the
//! result does not depend on the order of rows in a file, the blocks or the threads.

use std::ops::Range;

use super::table::{BLOCKS_PER_TASK, Table, merged};
use crate::density::{BLOCK, Density};
use crate::privacy::expected::Reader;
use crate::privacy::gradient::{GradientScale, Memory};
use crate::privacy::penalty::{quantise, within_lattice};
use crate::privacy::rows::Units;
use crate::privacy::statistic::{Computed, Look};
use crate::privacy::store::Columns;
use crate::privacy::tally::{Sums, Tally};

const ALL: [bool; BLOCK] = [true; BLOCK];

/// Drops rows for which `counts` is false. Units that lose all their rows are still counted. The ends
/// of the others' rows, and their numbers.
pub(super) fn keep(
    units: &Units,
    counts: &[bool],
    columns: &mut Columns,
) -> (Vec<usize>, Vec<usize>) {
    let mut ends = Vec::with_capacity(units.ends.len());
    let mut numbers = Vec::with_capacity(units.ends.len());
    let (mut start, mut kept) = (0, 0);
    for (&end, &number) in units.ends.iter().zip(&units.numbers) {
        let rows = counts[start..end].iter().filter(|&&counts| counts).count();
        if rows > 0 {
            kept += rows;
            ends.push(kept);
            numbers.push(number);
        }
        start = end;
    }
    if counts.contains(&false) {
        let rows: Vec<usize> = (0..counts.len()).filter(|&row| counts[row]).collect();
        *columns = columns.gathered(rows.into_iter());
    }
    (ends, numbers)
}

impl Table {
    /// The integer sum over units; `ends` has the end of each unit's rows.
    pub(super) fn unit_sum(
        &self,
        density: &Density,
        look: &Look,
        scale: &GradientScale,
        ends: &[usize],
        add: impl Fn(Vec<i128>, Vec<i128>) -> Vec<i128>,
    ) -> Vec<i128> {
        let part = |units: Range<usize>| {
            let mut window = self.columns.window();
            let mut reader = Reader::new(density, look, true, Some(&self.nodes));
            let mut lanes = Lanes::new(look, scale);
            let rows = rows_of(&units, ends);
            let mut unit = units.start;
            for start in rows.clone().step_by(BLOCK) {
                let count = BLOCK.min(rows.end - start);
                let columns = window.rows(start..start + count);
                let of_rows = reader.rows(&columns, count, start).values;
                let mut row = 0;
                while row < count {
                    let first = row;
                    let mut lane_of = [0; BLOCK];
                    while row < count && lanes.used < BLOCK {
                        lane_of[row] = lanes.used;
                        row += 1;
                        if start + row == ends[unit] {
                            unit += 1;
                            lanes.used += 1;
                        }
                    }
                    lanes.add(of_rows, first..row, &lane_of);
                    if lanes.used == BLOCK {
                        lanes.empty();
                    }
                }
            }
            lanes.empty();
            lanes.total
        };
        merged(tasks(ends), part, add).unwrap_or_else(|| vec![0; look.coordinates()])
    }

    /// [`Table::tallied`] over units, from the interfaces at the two points;
    /// `ends` has the end of each unit's rows.
    pub(super) fn tallied_by_unit(
        &self,
        density: &Density,
        [z_from, z_to]: [&[f64]; 2],
        temperature: f64,
        ends: &[usize],
        tally: Tally,
        merge: impl Fn(Sums, Sums) -> Sums,
    ) -> Sums {
        let program = density.row_program();
        let part = |units: Range<usize>| {
            let mut window = self.columns.window();
            let mut at_from = program.scratch(z_from);
            let mut at_to = program.scratch(z_to);
            let rows = rows_of(&units, ends);
            let mut unit = units.start;
            let (mut before, mut after) = (0i128, 0i128);
            let mut sums = Sums::default();
            for start in rows.clone().step_by(BLOCK) {
                let count = BLOCK.min(rows.end - start);
                let columns = window.rows(start..start + count);
                program.forward(&columns, count, &mut at_from);
                program.forward(&columns, count, &mut at_to);
                let current = program.output(0, &columns, count, &at_from);
                let proposed = program.output(0, &columns, count, &at_to);
                for row in 0..count {
                    before += i128::from(quantise(temperature * current[row]));
                    after += i128::from(quantise(temperature * proposed[row]));
                    if start + row + 1 == ends[unit] {
                        tally.add(&mut sums, within_lattice(after), within_lattice(before));
                        (before, after) = (0, 0);
                        unit += 1;
                    }
                }
            }
            sums
        };
        merged(tasks(ends), part, merge).unwrap_or_default()
    }
}

/// Sums of units that are waiting to be clipped, a block of them at a time.
struct Lanes<'a> {
    look: &'a Look<'a>,
    scale: &'a GradientScale,
    /// Units that are complete; the next lane may hold a part of one.
    used: usize,
    /// Coordinate `j` of lane `i` at `j * BLOCK + i`.
    sums: Vec<f64>,
    /// The rounding errors of the additions.
    lost: Vec<f64>,
    vectors: Computed,
    memory: Memory,
    total: Vec<i128>,
}

impl<'a> Lanes<'a> {
    fn new(look: &'a Look<'a>, scale: &'a GradientScale) -> Lanes<'a> {
        Lanes {
            look,
            scale,
            used: 0,
            sums: vec![0.0; look.summed_coordinates() * BLOCK],
            lost: vec![0.0; look.summed_coordinates() * BLOCK],
            vectors: look.working_memory(),
            memory: Memory::default(),
            total: vec![0; look.coordinates()],
        }
    }

    /// Adds the vectors of some rows of a block, each to its lane.
    fn add(&mut self, of_rows: &[f64], rows: Range<usize>, lane_of: &[usize; BLOCK]) {
        let sums = self.sums.chunks_exact_mut(BLOCK);
        let sums = sums.zip(self.lost.chunks_exact_mut(BLOCK));
        for (from, (sums, lost)) in of_rows.chunks_exact(BLOCK).zip(sums) {
            for row in rows.clone() {
                let lane = lane_of[row];
                let (before, term) = (sums[lane], from[row]);
                let sum = before + term;
                // The error of the addition, exactly (Knuth 1969).
                let kept = sum - before;
                lost[lane] += (before - (sum - kept)) + (term - kept);
                sums[lane] = sum;
            }
        }
    }

    /// Clips the complete units and adds them to the total.
    fn empty(&mut self) {
        for (sum, lost) in self.sums.iter_mut().zip(&mut self.lost) {
            *sum += std::mem::take(lost);
        }
        let vectors = self.look.vectors(&self.sums, self.used, &mut self.vectors);
        self.scale.add_clipped(
            vectors,
            &ALL[..self.used],
            &mut self.memory,
            &mut self.total,
        );
        self.sums.fill(0.0);
        self.used = 0;
    }
}

/// Units in tasks of about as many rows as the tasks of single records; a unit is
/// never divided.
fn tasks(ends: &[usize]) -> Vec<Range<usize>> {
    let mut tasks = Vec::new();
    let (mut first, mut start) = (0, 0);
    for (unit, &end) in ends.iter().enumerate() {
        if end - start >= BLOCK * BLOCKS_PER_TASK || unit + 1 == ends.len() {
            tasks.push(first..unit + 1);
            (first, start) = (unit + 1, end);
        }
    }
    tasks
}

fn rows_of(units: &Range<usize>, ends: &[usize]) -> Range<usize> {
    let end_of = |unit: usize| ends.get(unit).copied().unwrap_or_default();
    let start = units.start.checked_sub(1).map_or(0, end_of);
    let end = units.end.checked_sub(1).map_or(0, end_of);
    start..end
}
