//! An event as a ledger keeps it, with numbers that are read back unchanged and never cost less
//! than the event they stand for.

use serde::{Deserialize, Serialize};

use super::super::barker::Barker;
use super::super::event::Event;
use super::super::event_error::EventError;
use super::super::real::Real;
use super::super::relation::Relation;
use super::super::release::{Gaussian, Lattice};
use super::super::subsampled::{Scheme, Subsampled};

/// An [`Event`] as a line of a ledger stores it. Numbers are the `f64` that their decimals name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum StoredEvent {
    /// About all rows.
    Gaussian(StoredRelease),
    /// About rows that are each in with this probability.
    Poisson(StoredSample),
    /// About a batch of this share of all rows.
    WithoutReplacement(StoredSample),
    /// An acceptance test of DP-Barker.
    Barker(StoredBarker),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredBarker {
    what: String,
    batch: u64,
    rows: u64,
    lattice: Option<StoredLattice>,
    count: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredSample {
    rate: f64,
    release: StoredRelease,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredRelease {
    what: String,
    clip: Option<f64>,
    sensitivity: f64,
    sigma: f64,
    lattice: Option<StoredLattice>,
    count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredLattice {
    ratio: f64,
    coordinates: u64,
}

/// The reason why a stored event is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StoredEventError {
    #[error(transparent)]
    Event(#[from] EventError),
    #[error("a clip bound of {clip} does not make a sensitivity of {sensitivity} under {relation}")]
    Relation {
        clip: f64,
        sensitivity: f64,
        relation: Relation,
    },
}

impl StoredEvent {
    /// Sensitivity, clip, rate and lattice are rounded up and sigma down, where they are no `f64`;
    /// those of a run are.
    pub fn of(event: &Event, relation: Relation) -> StoredEvent {
        match event {
            Event::Gaussian(gaussian) => {
                StoredEvent::Gaussian(StoredRelease::of(gaussian, relation))
            }
            Event::Subsampled(subsampled) => {
                let release = StoredRelease::of(subsampled.release(), relation);
                let rate = subsampled.rate().to_f64_up().min(1.0);
                let sample = StoredSample { rate, release };
                match subsampled.scheme() {
                    Scheme::PoissonAddRemove
                    | Scheme::PoissonZeroOut
                    | Scheme::PoissonSubstitute => StoredEvent::Poisson(sample),
                    Scheme::WithoutReplacementSubstitute => StoredEvent::WithoutReplacement(sample),
                }
            }
            Event::Barker(barker) => StoredEvent::Barker(StoredBarker {
                what: barker.what().to_owned(),
                batch: barker.batch(),
                rows: barker.rows(),
                lattice: barker.lattice().map(StoredLattice::of),
                count: barker.count(),
            }),
        }
    }

    pub fn event(&self, relation: Relation) -> Result<Event, StoredEventError> {
        match self {
            StoredEvent::Gaussian(release) => Ok(Event::Gaussian(release.gaussian(relation)?)),
            StoredEvent::Poisson(sample) => sample.event(relation, Subsampled::poisson),
            StoredEvent::WithoutReplacement(sample) => {
                sample.event(relation, Subsampled::without_replacement)
            }
            StoredEvent::Barker(test) => {
                let barker = Barker::new(&test.what, test.batch, test.rows)?;
                let barker = match test.lattice {
                    Some(l) => barker.on_lattice(Lattice::new(l.ratio, l.coordinates)?),
                    None => barker,
                };
                Ok(Event::Barker(barker.times(test.count)))
            }
        }
    }
}

impl StoredLattice {
    fn of(lattice: Lattice) -> StoredLattice {
        StoredLattice {
            ratio: lattice.ratio().to_f64_up(),
            coordinates: lattice.coordinates(),
        }
    }
}

impl StoredSample {
    fn event(
        &self,
        relation: Relation,
        make: impl Fn(String, f64, Relation, f64, f64) -> Result<Subsampled, EventError>,
    ) -> Result<Event, StoredEventError> {
        let release = self.release.gaussian(relation)?;
        // Without a clip bound the cost of a sample is unknown.
        let clip = self.release.clip.unwrap_or(f64::NAN);
        let sample = make(
            self.release.what.clone(),
            clip,
            relation,
            self.rate,
            self.release.sigma,
        )?;
        let sample = match release.lattice() {
            Some(lattice) => sample.on_lattice(lattice),
            None => sample,
        };
        Ok(Event::Subsampled(sample.times(release.count())))
    }
}

impl StoredRelease {
    fn of(gaussian: &Gaussian, relation: Relation) -> StoredRelease {
        let clip = gaussian.clip().map(Real::to_f64_up);
        let sensitivity = match clip {
            Some(clip) => relation.sensitivity(Real::exact(clip)),
            None => gaussian.sensitivity(),
        };
        StoredRelease {
            what: gaussian.what().to_owned(),
            clip,
            sensitivity: sensitivity.to_f64_up(),
            sigma: gaussian.sigma().to_f64_down(),
            lattice: gaussian.lattice().map(StoredLattice::of),
            count: gaussian.count(),
        }
    }

    fn gaussian(&self, relation: Relation) -> Result<Gaussian, StoredEventError> {
        let gaussian = match self.clip {
            Some(clip) => Gaussian::of_clip(&self.what, clip, relation, self.sigma)?,
            None => Gaussian::of_sensitivity(&self.what, self.sensitivity, self.sigma)?,
        };
        if gaussian.sensitivity() != Real::exact(self.sensitivity) {
            return Err(StoredEventError::Relation {
                clip: self.clip.unwrap_or(f64::NAN),
                sensitivity: self.sensitivity,
                relation,
            });
        }
        let gaussian = match self.lattice {
            Some(l) => gaussian.on_lattice(Lattice::new(l.ratio, l.coordinates)?),
            None => gaussian,
        };
        Ok(gaussian.times(self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::measure::Measure;

    use super::*;

    fn back(event: &Event, relation: Relation) -> Event {
        let text = serde_json::to_string(&StoredEvent::of(event, relation)).unwrap();
        let stored: StoredEvent = serde_json::from_str(&text).unwrap();
        stored.event(relation).unwrap()
    }

    // Wrong here: a run that just fits its budget would not fit a ledger of the same.
    #[test]
    fn what_a_run_plans_comes_back_to_the_bit() {
        for relation in Relation::ALL {
            let lattice = Lattice::new(2f64.powi(-40), 7).unwrap();
            let gaussian = Gaussian::of_clip("gradient", 0.1f64, relation, 12.345678901234567f64)
                .unwrap()
                .on_lattice(lattice);
            let event = Event::Gaussian(gaussian.times(u64::MAX));
            assert_eq!(back(&event, relation), event);
        }
    }

    #[test]
    fn samples_come_back_too() {
        let samples = [
            Subsampled::poisson("a", 0.1, Relation::AddRemove, 0.01, 3.5),
            Subsampled::poisson("a", 0.1, Relation::ZeroOut, 0.01, 3.5),
            Subsampled::poisson("b", 2.0, Relation::Substitute, 1.0, 0.7),
            Subsampled::without_replacement("c", 3.0, Relation::Substitute, 0.5, 9.0),
        ];
        for sample in samples {
            let sample = sample.unwrap().times(17);
            let relation = sample.scheme().relation();
            let event = Event::Subsampled(sample);
            assert_eq!(back(&event, relation), event);
        }
        let sample = Subsampled::without_replacement("c", 3.0, Relation::Substitute, 0.5, 9.0);
        let stored = StoredEvent::of(&Event::Subsampled(sample.unwrap()), Relation::Substitute);
        for relation in [Relation::AddRemove, Relation::ZeroOut] {
            assert!(stored.event(relation).is_err(), "{relation}");
        }
    }

    // Wrong here: what is charged would be less than what is released.
    #[test]
    fn other_numbers_cost_a_little_more_and_never_less() {
        let real = |text: &str| text.parse::<Real>().unwrap();
        for (clip, sigma, ratio) in [("0.1", "0.7", "0.3"), ("0.3", "12.1", "0.9")] {
            for relation in Relation::ALL {
                let lattice = Lattice::new(real(ratio), 3).unwrap();
                let gaussian = Gaussian::of_clip("x", real(clip), relation, real(sigma)).unwrap();
                let event = Event::Gaussian(gaussian.on_lattice(lattice).times(10));
                let stored = back(&event, relation);
                let cost =
                    |event: &Event| Measure::Gaussian.cost(std::slice::from_ref(event), relation);
                let (stored, event) = (cost(&stored).unwrap(), cost(&event).unwrap());
                let mu = stored.amounts.at(0) / event.amounts.at(0);
                assert!(mu >= Real::ONE && mu < Real::exact(1.0 + 1e-14), "{mu:?}");
                assert!(stored.total_variation >= event.total_variation);
            }
        }
    }

    #[test]
    fn a_barker_test_comes_back() {
        let lattice = Lattice::new(0.001, 1).unwrap();
        let test = Barker::new("accept", 1000, 100_000).unwrap();
        let event = Event::Barker(test.on_lattice(lattice).times(70));
        assert_eq!(back(&event, Relation::Substitute), event);
    }

    #[test]
    fn an_event_of_the_other_relation_is_none() {
        let gaussian = Gaussian::of_clip("x", 1.0, Relation::Substitute, 3.0).unwrap();
        let stored = StoredEvent::of(&Event::Gaussian(gaussian), Relation::Substitute);
        assert!(stored.event(Relation::Substitute).is_ok());
        for relation in [Relation::AddRemove, Relation::ZeroOut] {
            let error = stored.event(relation).unwrap_err().to_string();
            let said = format!("does not make a sensitivity of 2 under {relation}");
            assert!(error.contains(&said), "{error}");
        }
    }
}
