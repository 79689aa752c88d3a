//! Rows go in; charged, noisy sums come out.

mod batch;
mod charge;
pub(crate) mod marginals;
mod score;
mod table;
mod units;

pub use charge::{Charge, ReleaseError};

use charge::Mechanism;
pub(crate) use score::{Redrawn, Scored, log_mean_exp};
pub(in crate::privacy) use table::Table;

use table::CompensatedSum;

use super::load::{LoadError, LoadErrorKind};
use super::noisy::Noisy;
use super::not_private::NotPrivate;
use super::penalty::PenaltyQuery;
use super::question::Question;
use super::randomness::PrivateRng;
use super::ranks::Leader;
use super::rows::Rows;
use super::share::Compared;
use super::split::{Portion, Split, Subset};
use super::store::{Columns, StoreBuilder};
use super::subsampling::{Batch, Subsampling};
use crate::accounting::Part;
use crate::density::{BLOCK, Density, Loading};
use crate::model::Model;

/// The private data, behind a single interface.
///
/// It has no `Debug`, `Clone` or iterator: only the methods below release anything, and each is
/// charged first.
pub struct Vault {
    density: Density,
    pub(super) table: Table,
    /// The number of privacy units: of records, unless rows share units.
    n: usize,
    /// Sum of the terms that do not depend on the parameters; for the non-private path only.
    constant: f64,
    /// The column whose values identify the units, where its name is known.
    unit: Option<String>,
    pub(super) compared: Compared,
    portion: Option<Portion>,
    by_place: bool,
    /// Where other processes hold the rest of the records.
    ranks: Option<Leader>,
}

/// A noisy log-likelihood ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogRatio {
    /// The ratio less half its noise variance, nats, which the penalty test compares.
    pub penalised: f64,
    /// Standard deviation of the noise, nats.
    pub sigma: f64,
}

impl Vault {
    /// Loads the rows. Everything that depends only on the record is computed here, once.
    ///
    /// # Errors
    ///
    /// There is no room for what is computed, or rows cannot be read back from a file beside
    /// memory.
    #[doc(hidden)]
    pub fn new(density: Density, rows: Rows) -> Result<Vault, LoadError> {
        let n = rows.n();
        let Rows {
            store,
            missing: mut counts,
            units,
            spilling,
            compared,
            portion,
            by_place,
        } = rows;
        let of_program = density.raw_columns();
        let computed = of_program.iter().filter(|column| column.is_none()).count();
        let mut derived = StoreBuilder::new(computed, spilling);
        let mut constant = CompensatedSum::default();
        let mut loading = Loading::new(&density);
        let all: Vec<(usize, usize)> = (0..store.columns()).map(|c| (0, c)).collect();
        let raw = Columns::new(vec![store], &all);
        let mut window = raw.window();
        let mut values = vec![Vec::with_capacity(BLOCK); computed];
        for start in (0..counts.len()).step_by(BLOCK) {
            let counts = &mut counts[start..];
            let rows = BLOCK.min(counts.len());
            values.iter_mut().for_each(Vec::clear);
            let mut next = values.iter_mut();
            loading.load(&window.rows(start..start + rows), rows, |k, column| {
                match of_program.get(k) {
                    Some(Some(_)) => {}
                    Some(None) => {
                        if let Some(values) = next.next() {
                            values.extend_from_slice(column);
                        }
                    }
                    None => {
                        for (counts, &c) in counts.iter_mut().zip(column) {
                            // A record outside the support has likelihood zero everywhere: its
                            // ratio and its gradient are zero.
                            let missing = std::mem::replace(counts, !*counts && c.is_finite());
                            if !missing {
                                constant.add(c);
                            }
                        }
                    }
                }
            });
            derived.push_block(rows, values.iter().map(Vec::as_slice));
        }
        drop(window);
        if let Some(reason) = raw.failure() {
            let reason = reason.to_string();
            return Err(LoadErrorKind::Lost { reason }.into());
        }
        let (derived, _) = derived.finish().map_err(LoadErrorKind::from)?;
        let mut places = 0..;
        let of_program = of_program.into_iter().map(|column| match column {
            Some(column) => (0, column),
            None => (1, places.next().unwrap_or_default()),
        });
        let of_law = density
            .places_of_law()
            .into_iter()
            .map(|column| (0, column));
        let order: Vec<(usize, usize)> = of_program.chain(of_law).collect();
        let mut columns = raw.with(derived, &order);
        let (units, numbers) = units
            .map(|units| {
                let (ends, numbers) = units::keep(&units, &counts, &mut columns);
                counts = vec![true; ends.last().copied().unwrap_or(0)];
                (ends, numbers)
            })
            .unzip();
        Ok(Vault {
            density,
            table: Table {
                columns,
                counts,
                units,
                numbers,
                nodes: Default::default(),
                idle: Default::default(),
            },
            n,
            constant: constant.value(),
            unit: None,
            compared,
            portion,
            by_place,
            ranks: None,
        })
    }

    pub(super) fn with_unit(self, unit: Option<String>) -> Vault {
        Vault { unit, ..self }
    }

    /// The same records and those of other ranks, of `n` units in all.
    pub(super) fn led(self, ranks: Leader, n: usize) -> Vault {
        let ranks = Some(ranks);
        Vault { n, ranks, ..self }
    }

    /// The column whose values identify the units of privacy; `None` where each record is one, or
    /// no name was given.
    pub fn unit(&self) -> Option<&str> {
        self.unit.as_deref()
    }

    /// Whether several rows may share a unit.
    pub fn has_units(&self) -> bool {
        self.table.units.is_some()
    }

    /// Whether the records are a part of a table that was divided by their places, which adding or
    /// removing one would change.
    pub(crate) fn is_divided_by_place(&self) -> bool {
        self.by_place
    }

    /// The part of a table that the records are, for a budget of all of it. Records that were found
    /// by their places count as all of it: in another order they are in other parts.
    pub(crate) fn part(&self) -> Option<Part> {
        let by_key = self.portion.as_ref().filter(|_| !self.by_place);
        by_key.map(Portion::part)
    }

    /// The division of the table of which the records are the part to learn from.
    pub(crate) fn held_out(&self) -> Option<&Split> {
        let training = |portion: &&Portion| portion.subset == Subset::Training;
        let portion = self.portion.as_ref().filter(training);
        portion.map(|portion| &portion.split)
    }

    /// The model.
    pub fn model(&self) -> &Model {
        self.density.model()
    }

    /// The model's density: public.
    #[doc(hidden)]
    pub fn density(&self) -> &Density {
        &self.density
    }

    /// The number of privacy units, which are records unless rows share units;
    /// public under substitution, private under add/remove. The number of rows of a unit is private
    /// under both.
    pub(crate) fn n(&self) -> usize {
        self.n
    }

    /// The answer of all records, or of a batch, to a question.
    pub(super) fn ask(
        &self,
        question: &Question,
        batch: Option<Batch>,
    ) -> Result<Vec<i128>, ReleaseError> {
        let own_sum = || match &batch {
            None => question.answer(&self.density, &self.table),
            Some(batch) => {
                let batch = self.table.gather(batch.members());
                question.answer(&self.density, &batch)
            }
        };
        let sum = match &self.ranks {
            None => own_sum(),
            Some(ranks) => ranks.ask(question, batch.as_ref(), own_sum)?,
        };
        self.intact()?;
        Ok(sum)
    }

    /// # Errors
    ///
    /// Rows could not be read back from the file that they were put into: what was computed since
    /// is not to be used.
    pub(crate) fn intact(&self) -> Result<(), ReleaseError> {
        match self.table.columns.failure() {
            None => Ok(()),
            Some(reason) => Err(ReleaseError::Rows(reason.to_string())),
        }
    }

    /// The sum of the records' clipped log-likelihood ratios between two
    /// points, plus noise. Where rows share units, a record here is a unit, whose
    /// log-likelihood is the sum over its rows.
    ///
    /// # Privacy
    ///
    /// A Gaussian mechanism with discrete noise; sensitivity and sigma are those
    /// of `query`, in the fixed proportion 1 : tau. It is charged, and the noise drawn, before a
    /// row is read.
    #[doc(hidden)]
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
            subsampling: Subsampling::All,
            records: self.n as u64,
        })?;
        let noise = query.noise().sample(rng);
        #[cfg(test)]
        let noise = crate::planted::noise(vec![noise], query.noise(), rng)[0];
        let question = Question::Ratios {
            points: [from, to],
            temperature,
            tally: query.tally(),
        };
        let sum = self.ask(&question, None)?[0];
        Ok(Noisy::new(LogRatio {
            penalised: query.penalised_ratio(sum, noise),
            sigma: query.sigma(),
        }))
    }

    /// Log-likelihood (nats, with all constants) and its gradient with respect
    /// to the interface, both exact.
    #[doc(hidden)]
    pub fn exact(&self, theta: &[f64], permission: NotPrivate) -> (f64, Vec<f64>) {
        self.exact_at(&self.density.interface(theta).z, permission)
    }

    /// The same where the interface is `z`.
    pub(crate) fn exact_at(&self, z: &[f64], _: NotPrivate) -> (f64, Vec<f64>) {
        let (log_likelihood, gradient) = self.table.exact(&self.density, z);
        let mut total = CompensatedSum::default();
        total.add(self.constant);
        total.add(log_likelihood);
        (total.value(), gradient)
    }

    /// The sum to which [`Vault::noisy_log_ratio`] adds noise, nats.
    #[doc(hidden)]
    pub fn clipped_log_ratio(
        &self,
        from: &[f64],
        to: &[f64],
        temperature: f64,
        query: &PenaltyQuery,
        _: NotPrivate,
    ) -> f64 {
        query.ratio(self.clipped_log_ratio_sum(from, to, temperature, query), 0)
    }

    /// The integer sum to which [`Vault::noisy_log_ratio`] adds noise.
    fn clipped_log_ratio_sum(
        &self,
        from: &[f64],
        to: &[f64],
        temperature: f64,
        query: &PenaltyQuery,
    ) -> i128 {
        let sums = (self.table).tallied(&self.density, [from, to], temperature, query.tally());
        sums[0]
    }
}

#[cfg(test)]
#[path = "vault_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "unit_tests.rs"]
mod unit_tests;
