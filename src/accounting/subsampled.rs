//! Releases about a random part of the rows.
//!
//! How much sampling helps depends on how rows are drawn *and* on what neighbours differ
//! in: at rate 0.01, sigma = clip, 1000 releases and delta = 1e-5, epsilon is 1.83 for
//! Poisson sampling with add/remove, 2.84 with substitute, and 14.8 without replacement.
//! So the two are one choice, a [`Scheme`], and an accountant that has no bound for a
//! scheme has to say so.

use super::event_error::EventError;
use super::real::Real;
use super::relation::Relation;
use super::release::{Gaussian, Lattice};

/// How rows are drawn, and the relation that this is accounted under.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// Each record is in with the same probability, independently; one is added or removed.
    PoissonAddRemove,
    /// Each record is in with the same probability, independently; one is left blank.
    PoissonZeroOut,
    /// Each record is in with the same probability, independently; one is replaced.
    PoissonSubstitute,
    /// A batch of fixed size out of a public number of records; one is replaced.
    WithoutReplacementSubstitute,
}

impl Scheme {
    /// The kind of event, as the command line writes it.
    pub fn kind(self) -> &'static str {
        match self {
            Scheme::PoissonAddRemove | Scheme::PoissonZeroOut | Scheme::PoissonSubstitute => {
                "poisson"
            }
            Scheme::WithoutReplacementSubstitute => "without-replacement",
        }
    }

    pub fn relation(self) -> Relation {
        match self {
            Scheme::PoissonAddRemove => Relation::AddRemove,
            Scheme::PoissonZeroOut => Relation::ZeroOut,
            Scheme::PoissonSubstitute | Scheme::WithoutReplacementSubstitute => {
                Relation::Substitute
            }
        }
    }
}

/// Sums over a random part of the rows, of vectors of l2 norm at most the clip bound,
/// each with Gaussian noise; the rows are drawn anew for each release.
#[derive(Clone, Debug, PartialEq)]
pub struct Subsampled {
    scheme: Scheme,
    rate: Real,
    release: Gaussian,
}

impl Subsampled {
    /// One release about rows that are each in with probability `rate`.
    pub fn poisson(
        what: impl Into<String>,
        clip: impl Into<Real>,
        relation: Relation,
        rate: impl Into<Real>,
        sigma: impl Into<Real>,
    ) -> Result<Subsampled, EventError> {
        let scheme = match relation {
            Relation::AddRemove => Scheme::PoissonAddRemove,
            Relation::ZeroOut => Scheme::PoissonZeroOut,
            Relation::Substitute => Scheme::PoissonSubstitute,
        };
        Subsampled::new(
            scheme,
            rate.into(),
            Gaussian::of_clip(what, clip, relation, sigma)?,
        )
    }

    /// One release about a batch that is the share `rate` of all rows
    /// ([`batch_rate`]).
    ///
    /// # Errors
    ///
    /// Also under add/remove, where the size of the batch itself is private, and under
    /// zero-out, where substitute costs the same and promises more.
    pub fn without_replacement(
        what: impl Into<String>,
        clip: impl Into<Real>,
        relation: Relation,
        rate: impl Into<Real>,
        sigma: impl Into<Real>,
    ) -> Result<Subsampled, EventError> {
        if relation != Relation::Substitute {
            return Err(EventError::WithoutReplacementRelation(relation));
        }
        Subsampled::new(
            Scheme::WithoutReplacementSubstitute,
            rate.into(),
            Gaussian::of_clip(what, clip, relation, sigma)?,
        )
    }

    fn new(scheme: Scheme, rate: Real, release: Gaussian) -> Result<Subsampled, EventError> {
        if !(rate >= Real::ZERO && rate <= Real::ONE) {
            return Err(EventError::RateOutOfRange(rate.to_f64()));
        }
        Ok(Subsampled {
            scheme,
            rate,
            release,
        })
    }

    /// The same, with noise drawn on a lattice.
    pub fn on_lattice(self, lattice: Lattice) -> Subsampled {
        Subsampled {
            release: self.release.on_lattice(lattice),
            ..self
        }
    }

    /// The same, with continuous noise.
    pub fn off_lattice(self) -> Subsampled {
        Subsampled {
            release: self.release.off_lattice(),
            ..self
        }
    }

    /// The same release, `count` times in all.
    pub fn times(self, count: u64) -> Subsampled {
        Subsampled {
            release: self.release.times(count),
            ..self
        }
    }

    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// From 0 to 1. With 0 nothing is released about any record, with 1 all rows are in.
    pub fn rate(&self) -> Real {
        self.rate
    }

    /// The sum and its noise; its sensitivity is that of a record known to be in.
    pub fn release(&self) -> &Gaussian {
        &self.release
    }
}

/// The rate of batches of `size` out of `rows`.
pub fn batch_rate(size: u64, rows: u64) -> Result<Real, EventError> {
    if rows == 0 || size > rows {
        return Err(EventError::BatchOutOfRange { size, rows });
    }
    Ok(Real::from(size) / Real::from(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheme_and_relation_are_one_choice() {
        let poisson = |relation| Subsampled::poisson("x", 0.5, relation, 0.1, 2.0);
        let event = poisson(Relation::AddRemove).unwrap();
        assert_eq!(event.scheme(), Scheme::PoissonAddRemove);
        assert_eq!(event.release().sensitivity().to_f64(), 0.5);
        let event = poisson(Relation::ZeroOut).unwrap();
        assert_eq!(event.scheme(), Scheme::PoissonZeroOut);
        assert_eq!(event.release().sensitivity().to_f64(), 0.5);
        let event = poisson(Relation::Substitute).unwrap();
        assert_eq!(event.scheme(), Scheme::PoissonSubstitute);
        assert_eq!(event.release().sensitivity().to_f64(), 1.0);
        let batch = |relation| Subsampled::without_replacement("x", 0.5, relation, 0.1, 2.0);
        let event = batch(Relation::Substitute).unwrap();
        assert_eq!(event.scheme().relation(), Relation::Substitute);
        for relation in [Relation::AddRemove, Relation::ZeroOut] {
            let refused = EventError::WithoutReplacementRelation(relation);
            assert_eq!(batch(relation), Err(refused));
        }
    }

    #[test]
    fn rates_outside_zero_to_one_are_refused() {
        for rate in [-1e-9, 1.0 + 1e-9, f64::NAN] {
            let event = Subsampled::poisson("x", 1.0, Relation::AddRemove, rate, 1.0);
            assert!(
                matches!(event, Err(EventError::RateOutOfRange(_))),
                "{rate}"
            );
        }
        assert_eq!(batch_rate(1, 4).unwrap().to_f64(), 0.25);
        assert!(batch_rate(5, 4).is_err() && batch_rate(0, 0).is_err());
    }
}
