//! How well runs predict the records of a vault.

use std::ops::Range;

use super::table::{Table, merged};
use super::{Charge, ReleaseError, Vault};
use crate::density::{BLOCK, Density};
use crate::privacy::gradient::{GradientScale, Gradients, Memory};
use crate::privacy::noisy::Noisy;
use crate::privacy::randomness::PrivateRng;
use crate::privacy::score::ScoreBounds;
use crate::privacy::subsampling::Subsampling;

/// Rows of a task, unless one unit has more.
const ROWS: usize = 1024;

/// The held-out records, as one run's model reads them, and its draws.
#[derive(Clone, Copy)]
pub(crate) struct Scored<'a> {
    /// Of a model whose likelihood is whole.
    pub vault: &'a Vault,
    /// The interface at each draw.
    pub draws: &'a [Vec<f64>],
}

impl Vault {
    /// The sums over records of the vectors of `bounds`, plus noise. All vaults hold the same
    /// records, or units of the same table.
    ///
    /// # Privacy
    ///
    /// A Gaussian mechanism with discrete noise, as for gradients: vectors are put on the lattice by
    /// `scale`, which clips them (they are not longer than its bound). Charged, and the noise drawn,
    /// before a row is read. Proof: docs/proofs.md, section 18.
    pub(crate) fn noisy_scores(
        runs: &[Scored],
        bounds: &ScoreBounds,
        scale: &GradientScale,
        charge: Charge,
        rng: &mut PrivateRng,
    ) -> Result<Noisy<Vec<f64>>, ReleaseError> {
        let vault = runs[0].vault;
        let noise =
            vault.charged_noise(bounds.coordinates(), scale, Subsampling::All, charge, rng)?;
        let sum = score_sum(runs, bounds, scale);
        for run in runs {
            run.vault.intact()?;
        }
        Ok(vault.released(&sum, 1, &noise, scale))
    }
}

/// The sum in lattice units.
fn score_sum(runs: &[Scored], bounds: &ScoreBounds, scale: &GradientScale) -> Vec<i128> {
    let n = runs[0].vault.n;
    let densities: Vec<Vec<f64>> = (runs.iter())
        .map(|run| {
            let table = &run.vault.table;
            let found = table.log_predictive(&run.vault.density, run.draws);
            let Some(numbers) = &table.numbers else {
                return found;
            };
            // Units without a row that counts lack a value.
            let mut of_all = vec![f64::NAN; n];
            for (&number, density) in numbers.iter().zip(found) {
                of_all[number] = density;
            }
            of_all
        })
        .collect();
    let density = |run: &Vec<f64>, i: usize| run.get(i).copied().unwrap_or(f64::NAN);
    let mut sum = vec![0; bounds.coordinates()];
    let mut memory = Memory::default();
    let mut vectors = vec![0.0; bounds.coordinates() * BLOCK];
    let mut record = Vec::with_capacity(runs.len());
    for start in (0..n).step_by(BLOCK) {
        let rows = BLOCK.min(n - start);
        for i in 0..rows {
            record.clear();
            record.extend(densities.iter().map(|run| density(run, start + i)));
            let lacks = record.iter().any(|density| density.is_nan());
            let record = (!lacks).then_some(&record[..]);
            bounds.vector(record, |k, value| vectors[k * BLOCK + i] = value);
        }
        let vectors = Gradients::whole(&vectors);
        scale.add_clipped(vectors, &[true; BLOCK][..rows], &mut memory, &mut sum);
    }
    sum
}

impl Table {
    /// For each record (each unit that has rows), the logarithm of the mean over draws of its
    /// likelihood, nats; NaN where it does not count, minus infinity where it has none at any draw.
    fn log_predictive(&self, density: &Density, draws: &[Vec<f64>]) -> Vec<f64> {
        let end = |unit: usize| self.units.as_ref().map_or(unit + 1, |ends| ends[unit]);
        let mut tasks = Vec::new();
        let (mut first, mut start) = (0, 0);
        for unit in 0..self.present() {
            if end(unit) - start >= ROWS || unit + 1 == self.present() {
                tasks.push((first..unit + 1, start..end(unit)));
                (first, start) = (unit + 1, end(unit));
            }
        }
        let part = |(units, rows): (Range<usize>, Range<usize>)| {
            let program = density.row_program();
            let mut window = self.columns.window();
            let mut scratch = draws.first().map(|z| program.scratch(z, 0));
            let count = units.len();
            let mut sums = vec![0.0; count * draws.len()];
            let mut unit = units.start;
            for start in rows.clone().step_by(BLOCK) {
                let length = BLOCK.min(rows.end - start);
                let columns = window.rows(start..start + length);
                let mut places = [0; BLOCK];
                for (i, place) in places[..length].iter_mut().enumerate() {
                    while start + i >= end(unit) {
                        unit += 1;
                    }
                    *place = unit - units.start;
                }
                let (Some(scratch), true) = (&mut scratch, length > 0) else {
                    continue;
                };
                for (z, sums) in draws.iter().zip(sums.chunks_exact_mut(count)) {
                    program.set_interface(scratch, z);
                    program.forward(&columns, length, scratch);
                    let terms = program.output(0, &columns, length, scratch);
                    for (term, &place) in terms.iter().zip(&places[..length]) {
                        sums[place] += term;
                    }
                }
            }
            (units.enumerate())
                .map(|(k, unit)| {
                    let counts = self.units.is_some() || self.counts[unit];
                    let of_draws = (0..draws.len()).map(|s| sums[s * count + k]);
                    if counts {
                        log_mean_exp(of_draws)
                    } else {
                        f64::NAN
                    }
                })
                .collect::<Vec<f64>>()
        };
        let merge = |mut all: Vec<f64>, next: Vec<f64>| {
            all.extend(next);
            all
        };
        merged(tasks, part, merge).unwrap_or_default()
    }
}

/// ln of the mean of e^x; what is NaN counts as minus infinity.
pub(crate) fn log_mean_exp(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let most = values.clone().fold(f64::NEG_INFINITY, f64::max);
    if most.is_infinite() {
        return most;
    }
    let (mut sum, mut count) = (0.0, 0.0);
    for x in values {
        count += 1.0;
        if !x.is_nan() {
            sum += (x - most).exp();
        }
    }
    most + (sum / count).ln()
}

#[cfg(test)]
#[path = "score_tests.rs"]
mod tests;
