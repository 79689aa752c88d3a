//! The input of the accountants: the releases, sorted by how they draw rows.

use super::accountant::{AccountError, Accountant};
use super::barker::Barker;
use super::discrete::total_variation_of_draw;
use super::event::Event;
use super::real::Real;
use super::relation::Relation;
use super::release::{Gaussian, Lattice};
use super::subsampled::Subsampled;

/// Events that were all made for one relation.
///
/// Sampling at rate 1 reads all rows, and at rate 0 none; so every rate in `sampled` lies
/// strictly between.
#[derive(Clone, Debug)]
pub(super) struct Composition<'a> {
    relation: Relation,
    full_data: Vec<&'a Gaussian>,
    sampled: Vec<&'a Subsampled>,
    barker: Vec<&'a Barker>,
}

impl<'a> Composition<'a> {
    pub(super) fn new(
        events: &'a [Event],
        relation: Relation,
    ) -> Result<Composition<'a>, AccountError> {
        let mut composition = Composition {
            relation,
            full_data: Vec::new(),
            sampled: Vec::new(),
            barker: Vec::new(),
        };
        for event in events {
            check_relation(event, relation)?;
            match event {
                Event::Gaussian(gaussian) => composition.full_data.push(gaussian),
                Event::Subsampled(subsampled) if subsampled.rate() >= Real::ONE => {
                    composition.full_data.push(subsampled.release());
                }
                Event::Subsampled(subsampled) if subsampled.rate() > Real::ZERO => {
                    composition.sampled.push(subsampled);
                }
                Event::Subsampled(_) => {}
                Event::Barker(barker) => composition.barker.push(barker),
            }
        }
        // A release that is made zero times must have no effect.
        composition
            .full_data
            .retain(|gaussian| gaussian.count() > 0);
        composition
            .sampled
            .retain(|subsampled| subsampled.release().count() > 0);
        composition.barker.retain(|barker| barker.count() > 0);
        Ok(composition)
    }

    pub(super) fn relation(&self) -> Relation {
        self.relation
    }

    /// Releases about a random part of the rows.
    pub(super) fn sampled(&self) -> &[&'a Subsampled] {
        &self.sampled
    }

    /// Acceptance tests of DP-Barker.
    pub(super) fn barker(&self) -> &[&'a Barker] {
        &self.barker
    }

    pub(super) fn reads_all_rows(&self) -> bool {
        self.not_about_all_rows().is_none()
    }

    /// That all releases are about all rows, which `accountant` needs.
    pub(super) fn check_about_all_rows(&self, accountant: Accountant) -> Result<(), AccountError> {
        let Some(kind) = self.not_about_all_rows() else {
            return Ok(());
        };
        Err(AccountError::NoBound {
            accountant,
            kind,
            relation: self.relation(),
            instead: if kind == "barker" {
                "`rdp`"
            } else {
                "`pld` or `rdp`"
            },
        })
    }

    /// The kind of a release, if there is one, that is not Gaussian noise on a sum over all rows.
    fn not_about_all_rows(&self) -> Option<&'static str> {
        let sampled = self.sampled.first().map(|event| event.scheme().kind());
        sampled.or(self.not_gaussian())
    }

    /// The kind of a release, if there is one, whose noise is not Gaussian of a known sigma.
    pub(super) fn not_gaussian(&self) -> Option<&'static str> {
        self.barker.first().map(|_| "barker")
    }

    /// Sum of count D^2 / (2 sigma^2) over the releases about all rows.
    pub(super) fn mu(&self) -> Real {
        let twice = self.full_data.iter().fold(Real::ZERO, |sum, gaussian| {
            let ratio = gaussian.sensitivity() / gaussian.sigma();
            sum + ratio.square() * Real::from(gaussian.count())
        });
        twice.times_power_of_two(-1)
    }

    /// How far the discrete noise of all releases is from continuous noise: the sum of
    /// the total variation over all coordinates of all draws, rounded up.
    ///
    /// Sampling mixes over the rows drawn, which can only bring two distributions closer.
    pub(super) fn total_variation(&self) -> Real {
        let sampled = self.sampled.iter().map(|subsampled| subsampled.release());
        let releases = self.full_data.iter().copied().chain(sampled);
        let sum = releases.fold(Real::ZERO, |sum, release| sum + total_variation_of(release));
        let tests = self.barker.iter();
        tests.fold(sum, |sum, test| {
            sum + total_variation_of_draws(test.lattice(), test.count())
        })
    }
}

/// Of all draws of one event.
pub(super) fn total_variation_of(release: &Gaussian) -> Real {
    total_variation_of_draws(release.lattice(), release.count())
}

pub(super) fn total_variation_of_draws(lattice: Option<Lattice>, count: u64) -> Real {
    match lattice {
        Some(lattice) => {
            let draws = Real::from(lattice.coordinates()) * Real::from(count);
            draws * total_variation_of_draw(lattice.ratio())
        }
        None => Real::ZERO,
    }
}

/// A sensitivity below the one that the relation gives for the clip bound would claim too much, and
/// so would accounting for a scheme under another relation.
fn check_relation(event: &Event, relation: Relation) -> Result<(), AccountError> {
    let planned = match event {
        Event::Gaussian(_) => None,
        Event::Subsampled(subsampled) => {
            let scheme = subsampled.scheme();
            Some((scheme.kind(), scheme.relation()))
        }
        Event::Barker(_) => Some(("barker", Relation::Substitute)),
    };
    if let Some((kind, planned)) = planned
        && planned != relation
    {
        return Err(AccountError::SchemeMismatch {
            what: event.what().to_owned(),
            kind,
            planned,
            relation,
        });
    }
    let Some((release, clip)) = event.release().and_then(|r| Some((r, r.clip()?))) else {
        return Ok(());
    };
    let expected = relation.sensitivity(clip);
    if release.sensitivity() == expected {
        return Ok(());
    }
    Err(AccountError::RelationMismatch {
        what: release.what().to_owned(),
        relation,
        clip: clip.to_f64(),
        sensitivity: release.sensitivity().to_f64(),
        expected: expected.to_f64(),
    })
}
