//! An event as a ledger keeps it: numbers that read back as the very same, and that
//! never cost less than the event they stand for.

use serde::{Deserialize, Serialize};

use super::super::event::{Event, EventError, Gaussian, Lattice, Relation};
use super::super::real::Real;

/// What a line of a ledger holds of an [`Event`]. Numbers are the `f64` that their
/// decimals name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum StoredEvent {
    Gaussian {
        what: String,
        clip: Option<f64>,
        sensitivity: f64,
        sigma: f64,
        lattice: Option<StoredLattice>,
        count: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredLattice {
    ratio: f64,
    coordinates: u64,
}

/// Why a stored event is none.
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
    /// Sensitivity, clip and lattice are rounded up and sigma down, where they are no
    /// `f64`; a run's are.
    pub fn of(event: &Event, relation: Relation) -> StoredEvent {
        match event {
            Event::Gaussian(gaussian) => {
                let clip = gaussian.clip().map(Real::to_f64_up);
                let sensitivity = match clip {
                    Some(clip) => relation.sensitivity(Real::exact(clip)),
                    None => gaussian.sensitivity(),
                };
                StoredEvent::Gaussian {
                    what: gaussian.what().to_owned(),
                    clip,
                    sensitivity: sensitivity.to_f64_up(),
                    sigma: gaussian.sigma().to_f64_down(),
                    lattice: gaussian.lattice().map(|lattice| StoredLattice {
                        ratio: lattice.ratio().to_f64_up(),
                        coordinates: lattice.coordinates(),
                    }),
                    count: gaussian.count(),
                }
            }
        }
    }

    pub fn event(&self, relation: Relation) -> Result<Event, StoredEventError> {
        match self {
            StoredEvent::Gaussian {
                what,
                clip,
                sensitivity,
                sigma,
                lattice,
                count,
            } => {
                let gaussian = match *clip {
                    Some(clip) => Gaussian::of_clip(what, clip, relation, *sigma)?,
                    None => Gaussian::of_sensitivity(what, *sensitivity, *sigma)?,
                };
                if gaussian.sensitivity() != Real::exact(*sensitivity) {
                    return Err(StoredEventError::Relation {
                        clip: clip.unwrap_or(f64::NAN),
                        sensitivity: *sensitivity,
                        relation,
                    });
                }
                let gaussian = match lattice {
                    Some(l) => gaussian.on_lattice(Lattice::new(l.ratio, l.coordinates)?),
                    None => gaussian,
                };
                Ok(Event::Gaussian(gaussian.times(*count)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::accountant::{mu_of, total_variation_of};
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
                let mu = mu_of(std::slice::from_ref(&stored)) / mu_of(std::slice::from_ref(&event));
                assert!(mu >= Real::ONE && mu < Real::exact(1.0 + 1e-14), "{mu:?}");
                assert!(total_variation_of(&[stored]) >= total_variation_of(&[event]));
            }
        }
    }

    #[test]
    fn an_event_of_the_other_relation_is_none() {
        let gaussian = Gaussian::of_clip("x", 1.0, Relation::Substitute, 3.0).unwrap();
        let stored = StoredEvent::of(&Event::Gaussian(gaussian), Relation::Substitute);
        assert!(stored.event(Relation::Substitute).is_ok());
        let error = stored.event(Relation::AddRemove).unwrap_err().to_string();
        assert!(
            error.contains("does not make a sensitivity of 2 under add-remove"),
            "{error}"
        );
    }
}
