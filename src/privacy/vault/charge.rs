//! The mechanism of a release, and whether the planned event covers it: docs/proofs.md, section 13.

use crate::accounting::{BudgetError, Event, Gaussian, Meter, Real, Scheme, batch_rate};
use crate::privacy::barker::BarkerScale;
use crate::privacy::noise::NoiseError;
use crate::privacy::not_private::NotPrivate;
use crate::privacy::ranks::LinkError;
use crate::privacy::subsampling::Subsampling;

/// The line of a meter on which a release is charged.
#[derive(Clone, Copy)]
pub struct Charge<'a> {
    pub meter: &'a Meter,
    pub line: usize,
}

impl Charge<'_> {
    /// The first line of a meter.
    pub fn first(meter: &Meter) -> Charge<'_> {
        Charge { meter, line: 0 }
    }
}

impl NotPrivate {
    /// A meter of releases that are charged to no budget and may have almost no noise.
    ///
    /// With a budget a meter comes from a [`Reservation`](crate::accounting::Reservation):
    ///
    /// ```compile_fail
    /// let meter = dpm::accounting::Meter::new(Vec::new());
    /// ```
    /// ```compile_fail
    /// let meter = dpm::accounting::Meter::resumed(Vec::new(), &[]);
    /// ```
    /// ```
    /// let meter = dpm::testing::privacy::NotPrivate::acknowledged().meter(Vec::new());
    /// assert!(meter.planned().is_empty());
    /// ```
    pub fn meter(self, planned: Vec<Event>) -> Meter {
        Meter::new(planned)
    }
}

/// The reason why a release did not happen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    #[error(transparent)]
    Budget(#[from] BudgetError),
    #[error(
        "the planned event `{planned}` does not cover this release: plan it with the same clip bound, relation, batches and noise, and with the lattice of the noise"
    )]
    NotCovered { planned: String },
    #[error("line {line} of the meter does not exist; it has {lines}")]
    NoSuchLine { line: usize, lines: usize },
    #[error(transparent)]
    Noise(#[from] NoiseError),
    #[error(
        "the rows can no longer be read from their temporary file: {0}; check the disk, then resume the run"
    )]
    Rows(String),
    #[error("{0}; then resume the run")]
    Link(#[from] LinkError),
}

/// A sum and its noise, in lattice units.
pub(super) struct Mechanism {
    /// How often the clip bound one record's change can move the sum.
    pub factor: u8,
    pub sensitivity: u64,
    pub sigma: u64,
    pub coordinates: u64,
    /// Which records are in the sum.
    pub subsampling: Subsampling,
    /// The number of records to draw from; read for batches of a fixed size only, under
    /// substitute, where it is public.
    pub records: u64,
}

impl Charge<'_> {
    /// Charges the release, if the planned event covers it: a relation of the same factor,
    /// the same way of drawing batches, at least this rate, at least this sensitivity in units of
    /// the noise, at least this coarse a lattice and this many coordinates. The comparison is
    /// exact, without rounding.
    pub(super) fn take(&self, mechanism: &Mechanism) -> Result<(), ReleaseError> {
        let event = self.planned()?;
        let noise_covered = |release| mechanism.noise_covered(release);
        if !(mechanism.rows_covered(event) && event.release().is_some_and(noise_covered)) {
            return Err(self.not_covered(event));
        }
        #[cfg(test)]
        if crate::planted::is_uncharged(event.what()) {
            return Ok(());
        }
        Ok(self.meter.charge(self.line)?)
    }

    /// Charges a test of DP-Barker on all `records` records: the planned event must have the same
    /// batch, as many records and at least as coarse a lattice.
    pub(super) fn take_barker(
        &self,
        scale: &BarkerScale,
        records: u64,
    ) -> Result<(), ReleaseError> {
        let event = self.planned()?;
        let lattice = Real::exact(scale.lattice_ratio());
        let covered = match event {
            Event::Barker(test) => {
                scale.records() == records
                    && test.rows() == records
                    && test.batch() == scale.size()
                    && test.lattice().is_some_and(|l| l.ratio() >= lattice)
            }
            Event::Gaussian(_) | Event::Subsampled(_) => false,
        };
        if !covered {
            return Err(self.not_covered(event));
        }
        Ok(self.meter.charge(self.line)?)
    }

    fn planned(&self) -> Result<&Event, ReleaseError> {
        let planned = self.meter.planned();
        planned.get(self.line).ok_or(ReleaseError::NoSuchLine {
            line: self.line,
            lines: planned.len(),
        })
    }

    fn not_covered(&self, event: &Event) -> ReleaseError {
        ReleaseError::NotCovered {
            planned: event.what().to_string(),
        }
    }
}

impl Mechanism {
    /// Whether the event assumes as many records, drawn in the same way. A planned batch of rate 1
    /// also covers a release about all records.
    fn rows_covered(&self, event: &Event) -> bool {
        match event {
            Event::Gaussian(_) => self.subsampling.is_all(),
            Event::Barker(_) => false,
            Event::Subsampled(event) => {
                let rate = match (self.subsampling, event.scheme()) {
                    (
                        Subsampling::Poisson(rate),
                        Scheme::PoissonAddRemove
                        | Scheme::PoissonZeroOut
                        | Scheme::PoissonSubstitute,
                    ) => rate.rate(),
                    (Subsampling::FixedSize(size), Scheme::WithoutReplacementSubstitute) => {
                        match batch_rate(size, self.records) {
                            Ok(rate) => rate,
                            Err(_) => return false,
                        }
                    }
                    (Subsampling::All, _) => Real::ONE,
                    _ => return false,
                };
                event.scheme().relation().factor() == self.factor && event.rate() >= rate
            }
        }
    }

    fn noise_covered(&self, event: &Gaussian) -> bool {
        let sigma = Real::from(self.sigma);
        let same_relation = event
            .clip()
            .is_some_and(|clip| event.sensitivity() == clip * Real::from(u64::from(self.factor)));
        let enough_noise =
            Real::from(self.sensitivity) * event.sigma() <= event.sensitivity() * sigma;
        let lattice = event.lattice().is_some_and(|lattice| {
            lattice.ratio() * sigma >= Real::ONE && lattice.coordinates() >= self.coordinates
        });
        same_relation && enough_noise && lattice
    }
}
