//! How well runs predict the records of a vault.

use std::ops::Range;

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::table::{Table, merged};
use super::{Charge, ReleaseError, Vault};
use crate::density::{BLOCK, Density, Simulator};
use crate::privacy::gradient::{GradientScale, Gradients, Memory};
use crate::privacy::noisy::Noisy;
use crate::privacy::randomness::PrivateRng;
use crate::privacy::rows::Rows;
use crate::privacy::score::{Bounds, REPLICAS, ScoreBounds};
use crate::privacy::store::Columns;
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

/// The same records as they are in the table, and what draws their outcomes anew.
pub(crate) struct Redrawn<'a> {
    pub rows: Rows,
    /// Its other numbers are the statistics.
    pub simulator: &'a Simulator<'a>,
    /// Its interface at so many draws of the parameters.
    pub draws: &'a [Vec<f64>; REPLICAS],
}

/// A statistic's place between its bounds, and those of its replicas.
type Shares = [f64; 1 + REPLICAS];

impl Vault {
    /// The sums over records of the vectors of `bounds`, plus noise. All vaults hold the same
    /// records, or units of the same table, and so has `redrawn`, without which there are no
    /// statistics.
    ///
    /// # Privacy
    ///
    /// A Gaussian mechanism with discrete noise, as for gradients: vectors are put on the lattice by
    /// `scale`, which clips them (they are not longer than its bound). Charged, and the noise drawn,
    /// before a row is read. Proof: docs/proofs.md, section 18.
    pub(crate) fn noisy_scores(
        (runs, redrawn): (&[Scored], Option<Redrawn>),
        bounds: &ScoreBounds,
        scale: &GradientScale,
        charge: Charge,
        rng: &mut PrivateRng,
    ) -> Result<Noisy<Vec<f64>>, ReleaseError> {
        let vault = runs[0].vault;
        let noise =
            vault.charged_noise(bounds.coordinates(), scale, Subsampling::All, charge, rng)?;
        let shares = match redrawn {
            Some(redrawn) => redrawn.shares(&bounds.statistics, rng)?,
            None => Vec::new(),
        };
        let sum = score_sum(runs, &shares, bounds, scale);
        for run in runs {
            run.vault.intact()?;
        }
        Ok(vault.released(&sum, 1, &noise, scale))
    }
}

/// The sum in lattice units.
fn score_sum(
    runs: &[Scored],
    shares: &[Shares],
    bounds: &ScoreBounds,
    scale: &GradientScale,
) -> Vec<i128> {
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
    let statistics = bounds.statistics.len();
    for start in (0..n).step_by(BLOCK) {
        let rows = BLOCK.min(n - start);
        for i in 0..rows {
            record.clear();
            record.extend(densities.iter().map(|run| density(run, start + i)));
            let shares = shares.get((start + i) * statistics..(start + i + 1) * statistics);
            let lacks = record.iter().any(|density| density.is_nan()) || shares.is_none();
            let record = (!lacks).then_some(&record[..]);
            bounds.vector(record, shares.unwrap_or_default(), |k, value| {
                vectors[k * BLOCK + i] = value;
            });
        }
        let vectors = Gradients::whole(&vectors);
        scale.add_clipped(vectors, &[true; BLOCK][..rows], &mut memory, &mut sum);
    }
    sum
}

impl Redrawn<'_> {
    /// For each unit, of each statistic, the means over its rows; zeros where it has none.
    ///
    /// # Privacy
    ///
    /// A row's replicas follow from its own numbers and a stream of random bits of its own, which
    /// nobody learns: its number among the units and its place in its unit say which.
    fn shares(self, bounds: &[Bounds], rng: &mut PrivateRng) -> Result<Vec<Shares>, ReleaseError> {
        let mut seed = [0; 32];
        for bytes in seed.chunks_exact_mut(8) {
            bytes.copy_from_slice(&rng.next_u64().to_le_bytes());
        }
        let n = self.rows.n();
        let Rows {
            store,
            missing,
            units,
            ..
        } = self.rows;
        let all: Vec<(usize, usize)> = (0..store.columns()).map(|c| (0, c)).collect();
        let columns = Columns::new(vec![store], &all);
        // Of each row, the number of its unit and its place in there.
        let owners: Vec<(usize, usize)> = match &units {
            None => (0..missing.len()).map(|row| (row, 0)).collect(),
            Some(units) => {
                let starts = std::iter::once(0).chain(units.ends.iter().copied());
                let of_unit = |((start, &end), &number): ((usize, &usize), &usize)| {
                    (start..end).map(move |row| (number, row - start))
                };
                let all = starts.zip(&units.ends).zip(&units.numbers);
                all.flat_map(of_unit).collect()
            }
        };
        let (simulator, draws) = (self.simulator, self.draws);
        let part = |rows: Range<usize>| {
            let mut window = columns.window();
            let own = window.rows(rows.clone()).into_iter().map(<[f64]>::to_vec);
            let own: Vec<Vec<f64>> = own.collect();
            let mut found = vec![[0.0; 1 + REPLICAS]; rows.len() * bounds.len()];
            let mut keep = |replica: usize, raw: &[Vec<f64>]| {
                for (k, &bounds_of) in bounds.iter().enumerate() {
                    for (i, x) in simulator.numbers(k, raw).into_iter().enumerate() {
                        let share = ScoreBounds::share(bounds_of, x);
                        found[i * bounds.len() + k][replica] = share;
                    }
                }
            };
            keep(0, &own);
            let generator = |&(number, place): &(usize, usize)| {
                let mut rng = ChaCha20Rng::from_seed(seed);
                rng.set_stream((number as u64) << 32 | place as u64);
                rng
            };
            let mut rngs: Vec<ChaCha20Rng> = owners[rows].iter().map(generator).collect();
            for (s, z) in draws.iter().enumerate() {
                let mut raw = own.clone();
                simulator.redraw(z, &mut raw, &mut rngs);
                keep(1 + s, &raw);
            }
            found
        };
        let tasks = (0..missing.len()).step_by(BLOCK);
        let tasks = tasks.map(|start| start..missing.len().min(start + BLOCK));
        let merge = |mut all: Vec<Shares>, next: Vec<Shares>| {
            all.extend(next);
            all
        };
        let of_rows = merged(tasks.collect(), part, merge).unwrap_or_default();
        if let Some(reason) = columns.failure() {
            return Err(ReleaseError::Rows(reason.to_string()));
        }
        let mut rows_of = vec![0.0; n];
        owners
            .iter()
            .for_each(|&(number, _)| rows_of[number] += 1.0);
        let mut of_units = vec![[0.0; 1 + REPLICAS]; n * bounds.len()];
        for (found, &(number, _)) in of_rows.chunks(bounds.len().max(1)).zip(&owners) {
            for (sum, share) in of_units[number * bounds.len()..].iter_mut().zip(found) {
                for (sum, share) in sum.iter_mut().zip(share) {
                    *sum += share / rows_of[number];
                }
            }
        }
        Ok(of_units)
    }
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
            let mut scratch = draws.first().map(|z| program.scratch(z));
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
