//! Rows go in; charged, noisy sums come out.

mod units;

use rayon::prelude::*;

use super::gradient::GradientScale;
use super::noisy::Noisy;
use super::penalty::{PenaltyQuery, quantise};
use super::randomness::PrivateRng;
use super::rows::Rows;
use crate::accounting::{BudgetError, Event, Meter, Real};
use crate::density::{BLOCK, Density};

/// Blocks per unit of parallel work. Fixed, so that float sums of the
/// non-private path do not depend on the number of threads either.
const BLOCKS_PER_TASK: usize = 16;

/// The private data, behind one door.
///
/// No `Debug`, `Clone` or iterator: what leaves is what the methods below
/// release, each charged first.
pub struct Vault {
    density: Density,
    /// What the row program reads, `[columns][n]`.
    columns: Vec<Vec<f64>>,
    /// Which records have a likelihood: false for missing values and for
    /// records that are impossible under every parameter.
    counts: Vec<bool>,
    /// The number of privacy units: of records, unless rows share units.
    n: usize,
    /// Where rows share units, the end of each unit's rows; all of them count.
    units: Option<Vec<usize>>,
    /// Sum of what the parameters do not change; for the non-private path only.
    constant: f64,
}

/// A noisy log-likelihood ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogRatio {
    /// The ratio less half its noise variance, nats: what the penalty test
    /// compares.
    pub penalised: f64,
    /// Standard deviation of the noise, nats.
    pub sigma: f64,
}

/// Where a release is charged: a line of a meter.
#[derive(Clone, Copy)]
pub struct Charge<'a> {
    pub meter: &'a Meter,
    pub line: usize,
}

/// Why a release did not happen.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    #[error(transparent)]
    Budget(#[from] BudgetError),
    #[error(
        "the planned event `{planned}` does not cover this release: plan it with the same clip bound, relation and noise, and with the lattice of the noise"
    )]
    NotCovered { planned: String },
    #[error("line {line} of the meter does not exist; it has {lines}")]
    NoSuchLine { line: usize, lines: usize },
}

/// What a release does, in lattice units.
struct Mechanism {
    /// How often the clip bound one record's change can move the sum.
    factor: u8,
    sensitivity: u64,
    sigma: u64,
    coordinates: u64,
}

impl Charge<'_> {
    /// Charges the release, if the planned event covers it: the same relation,
    /// at least this sensitivity in units of the noise, at least this coarse a
    /// lattice and this many coordinates. Exact: no rounding decides.
    fn take(&self, mechanism: &Mechanism) -> Result<(), ReleaseError> {
        let planned = self.meter.planned();
        let Some(Event::Gaussian(event)) = planned.get(self.line) else {
            return Err(ReleaseError::NoSuchLine {
                line: self.line,
                lines: planned.len(),
            });
        };
        let sigma = Real::from(mechanism.sigma);
        let same_relation = event.clip().is_some_and(|clip| {
            event.sensitivity() == clip * Real::from(u64::from(mechanism.factor))
        });
        let enough_noise =
            Real::from(mechanism.sensitivity) * event.sigma() <= event.sensitivity() * sigma;
        let lattice = event.lattice().is_some_and(|lattice| {
            lattice.ratio() * sigma >= Real::from(1u64)
                && lattice.coordinates() >= mechanism.coordinates
        });
        if !(same_relation && enough_noise && lattice) {
            return Err(ReleaseError::NotCovered {
                planned: event.what().to_string(),
            });
        }
        #[cfg(test)]
        if crate::planted::is_uncharged(event.what()) {
            return Ok(());
        }
        Ok(self.meter.charge(self.line)?)
    }
}

/// Says that exact values may leave the vault, because the user asked for a
/// run without privacy. Whoever makes one must mark every output NOT PRIVATE.
#[derive(Debug, Clone, Copy)]
pub struct NotPrivate(());

impl NotPrivate {
    /// The user gave `--not-private` (or the embedder this very call).
    pub fn acknowledged() -> Self {
        NotPrivate(())
    }
}

impl Vault {
    /// Takes the rows in. Everything that depends on the record only is
    /// computed here, once.
    pub fn new(density: Density, rows: Rows) -> Vault {
        let missing = rows.missing();
        let (mut columns, constants) = density.load_columns(rows.columns(), missing.len());
        let mut counts = Vec::with_capacity(missing.len());
        let mut constant = CompensatedSum::default();
        for (&missing, &c) in missing.iter().zip(&constants) {
            // A record outside the support has likelihood zero everywhere: its
            // ratio and its gradient are zero.
            counts.push(!missing && c.is_finite());
            if !missing {
                constant.add(c);
            }
        }
        let units = rows.units().map(|units| {
            let ends = units::keep(units, &counts, &mut columns);
            counts = vec![true; ends.last().copied().unwrap_or(0)];
            ends
        });
        Vault {
            density,
            columns,
            counts,
            n: rows.n(),
            units,
            constant: constant.value(),
        }
    }

    /// The model's density: public.
    pub fn density(&self) -> &Density {
        &self.density
    }

    /// The number of privacy units, which are records unless rows share units;
    /// public under substitution, private under add/remove. How many rows the units
    /// have is private under both.
    pub(crate) fn n(&self) -> usize {
        self.n
    }

    /// The sum of the records' clipped gradients at `theta` (unconstrained
    /// scale), plus noise. Where rows share units, a record here is a unit: its rows'
    /// gradients are summed, then clipped.
    ///
    /// # Privacy
    ///
    /// A Gaussian mechanism with discrete noise: see [`GradientScale`] for the
    /// sensitivity and `accounting::discrete` for the noise. The release is
    /// charged, and the noise drawn, before a row is read; a charge that was
    /// planned for less than `scale` does is refused.
    pub fn noisy_gradient(
        &self,
        theta: &[f64],
        scale: &GradientScale,
        charge: Charge,
        rng: &mut PrivateRng,
    ) -> Result<Noisy<Vec<f64>>, ReleaseError> {
        charge.take(&Mechanism {
            factor: scale.sensitivity_factor(),
            sensitivity: scale.sensitivity(),
            sigma: scale.sigma_units(),
            coordinates: theta.len() as u64,
        })?;
        let noise: Vec<i64> = theta.iter().map(|_| scale.noise().sample(rng)).collect();
        #[cfg(test)]
        let noise = crate::planted::noise(noise, scale.noise(), rng);
        let sum = self.clipped_gradient_sum(theta, scale);
        let released = sum
            .iter()
            .zip(noise)
            .map(|(&s, k)| scale.real(s + i128::from(k)))
            .collect();
        #[cfg(test)]
        let released = crate::planted::released(released, self.counts.len());
        Ok(Noisy::new(released))
    }

    /// The sum of the records' clipped log-likelihood ratios between two
    /// points, plus noise. Where rows share units, a record here is a unit, whose
    /// log-likelihood is the sum over its rows.
    ///
    /// # Privacy
    ///
    /// A Gaussian mechanism with discrete noise; sensitivity and sigma are those
    /// of `query`, in the fixed proportion 1 : tau. Charged, and the noise
    /// drawn, before a row is read.
    pub fn noisy_log_ratio(
        &self,
        from: &[f64],
        to: &[f64],
        temperature: f64,
        query: &PenaltyQuery,
        charge: Charge,
        rng: &mut PrivateRng,
    ) -> Result<Noisy<LogRatio>, ReleaseError> {
        charge.take(&Mechanism {
            factor: query.sensitivity_factor(),
            sensitivity: query.sensitivity().unsigned_abs(),
            sigma: query.sigma_units(),
            coordinates: 1,
        })?;
        let noise = query.noise().sample(rng);
        #[cfg(test)]
        let noise = crate::planted::noise(vec![noise], query.noise(), rng)[0];
        let sum = self.clipped_log_ratio_sum(from, to, temperature, query);
        Ok(Noisy::new(LogRatio {
            penalised: query.penalised_ratio(sum, noise),
            sigma: query.sigma(),
        }))
    }

    /// Log-likelihood (nats, with all constants) and its gradient with respect
    /// to the interface, both exact.
    pub fn exact(&self, theta: &[f64], _: NotPrivate) -> (f64, Vec<f64>) {
        let program = self.density.row_program();
        let z = self.density.interface(theta).z;
        let parts: Vec<(CompensatedSum, Vec<f64>)> = self
            .tasks()
            .into_par_iter()
            .map(|blocks| {
                let mut scratch = program.scratch(&z, 0);
                let mut gradient = vec![0.0; z.len()];
                let mut total = CompensatedSum::default();
                for start in blocks {
                    let (columns, counts) = self.block(start);
                    program.forward(&columns, counts.len(), &mut scratch);
                    let terms = program.output(0, &columns, counts.len(), &scratch);
                    for (&term, &keep) in terms.iter().zip(counts) {
                        if keep {
                            total.add(term);
                        }
                    }
                    program.add_interface_gradient(&columns, counts, &mut scratch, &mut gradient);
                }
                (total, gradient)
            })
            .collect();
        let mut total = CompensatedSum::default();
        total.add(self.constant);
        let mut gradient = vec![0.0; z.len()];
        for (term, part) in parts {
            total.add(term.value());
            for (g, p) in gradient.iter_mut().zip(part) {
                *g += p;
            }
        }
        (total.value(), gradient)
    }

    /// The integer sum that [`Vault::noisy_gradient`] adds noise to.
    fn clipped_gradient_sum(&self, theta: &[f64], scale: &GradientScale) -> Vec<i128> {
        if let Some(ends) = &self.units {
            return self.unit_gradient_sum(theta, scale, ends);
        }
        let program = self.density.row_program();
        let z = self.density.interface(theta).z;
        let jacobian = self.density.interface_jacobian(theta);
        let dimension = theta.len();
        let parts: Vec<Vec<i128>> = self
            .tasks()
            .into_par_iter()
            .map(|blocks| {
                let mut scratch = program.scratch(&z, dimension);
                let mut integers = vec![0; dimension * BLOCK];
                let mut sum = vec![0; dimension];
                for start in blocks {
                    let (columns, counts) = self.block(start);
                    let gradients =
                        program.gradients(&columns, counts.len(), &jacobian, &mut scratch);
                    scale.add_clipped(gradients, counts, &mut integers, &mut sum);
                }
                sum
            })
            .collect();
        let mut total = vec![0i128; dimension];
        for part in parts {
            for (t, p) in total.iter_mut().zip(part) {
                *t += p;
            }
        }
        total
    }

    /// The integer sum that [`Vault::noisy_log_ratio`] adds noise to. Each
    /// record's log-likelihood is put on the lattice first, so that the ratio
    /// is antisymmetric to the bit.
    fn clipped_log_ratio_sum(
        &self,
        from: &[f64],
        to: &[f64],
        temperature: f64,
        query: &PenaltyQuery,
    ) -> i128 {
        if let Some(ends) = &self.units {
            return self.unit_log_ratio_sum(from, to, temperature, query, ends);
        }
        let program = self.density.row_program();
        let z_from = self.density.interface(from).z;
        let z_to = self.density.interface(to).z;
        self.tasks()
            .into_par_iter()
            .map(|blocks| {
                let mut at_from = program.scratch(&z_from, 0);
                let mut at_to = program.scratch(&z_to, 0);
                let mut sum = 0i128;
                for start in blocks {
                    let (columns, counts) = self.block(start);
                    let rows = counts.len();
                    program.forward(&columns, rows, &mut at_from);
                    program.forward(&columns, rows, &mut at_to);
                    let before = program.output(0, &columns, rows, &at_from);
                    let after = program.output(0, &columns, rows, &at_to);
                    for i in 0..rows {
                        if counts[i] {
                            sum += i128::from(query.clip(
                                quantise(temperature * after[i]),
                                quantise(temperature * before[i]),
                            ));
                        }
                    }
                }
                sum
            })
            .sum()
    }

    /// First records of the blocks, in tasks.
    fn tasks(&self) -> Vec<Vec<usize>> {
        let starts: Vec<usize> = (0..self.counts.len()).step_by(BLOCK).collect();
        starts
            .chunks(BLOCKS_PER_TASK)
            .map(<[usize]>::to_vec)
            .collect()
    }

    fn block(&self, start: usize) -> (Vec<&[f64]>, &[bool]) {
        let end = (start + BLOCK).min(self.counts.len());
        let columns = self.columns.iter().map(|c| &c[start..end]).collect();
        (columns, &self.counts[start..end])
    }
}

/// A float sum whose rounding does not grow with the number of terms (Neumaier
/// 1974): differences of log densities are small beside the densities.
#[derive(Debug, Clone, Copy, Default)]
struct CompensatedSum {
    sum: f64,
    lost: f64,
}

impl CompensatedSum {
    fn add(&mut self, term: f64) {
        let next = self.sum + term;
        self.lost += if self.sum.abs() >= term.abs() {
            (self.sum - next) + term
        } else {
            (term - next) + self.sum
        };
        self.sum = next;
    }

    fn value(self) -> f64 {
        // An infinite sum has no rounding to compensate.
        if self.sum.is_finite() {
            self.sum + self.lost
        } else {
            self.sum
        }
    }
}

#[cfg(test)]
#[path = "vault_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "unit_tests.rs"]
mod unit_tests;
