//! Events as `privacy.json` has them, read back.

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::barker::Barker;
use super::event::Event;
use super::event_error::EventError;
use super::relation::Relation;
use super::release::{Gaussian, Lattice};
use super::subsampled::Subsampled;

/// Why a list of events cannot be read back.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum EventJsonError {
    #[error("not an event as `privacy.json` has them: {0}")]
    Form(#[from] serde_json::Error),
    #[error(transparent)]
    Event(#[from] EventError),
}

#[derive(Deserialize)]
struct ShownLattice {
    ratio: f64,
    coordinates: u64,
}

impl ShownLattice {
    fn lattice(&self) -> Result<Lattice, EventError> {
        Lattice::new(self.ratio, self.coordinates)
    }
}

#[derive(Deserialize)]
struct ShownRelease {
    what: String,
    sensitivity: f64,
    sigma: f64,
    clip: Option<f64>,
    rate: f64,
    count: u64,
    lattice: Option<ShownLattice>,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
enum Shown {
    Gaussian(ShownRelease),
    Poisson(ShownRelease),
    WithoutReplacement(ShownRelease),
    Barker {
        what: String,
        batch: u64,
        rows: u64,
        count: u64,
        lattice: Option<ShownLattice>,
    },
}

impl Event {
    /// An event from its serialisation. Its numbers are those that a report shows, the nearest
    /// `f64` to the planned ones: good enough to show a run's cost again, while the numbers that a
    /// ledger charges are kept separately and rounded upwards.
    ///
    /// # Errors
    ///
    /// JSON of another form, or numbers that make no event under `relation`.
    pub fn from_json(json: &Value, relation: Relation) -> Result<Event, EventJsonError> {
        let event = match Shown::deserialize(json)? {
            Shown::Gaussian(shown) => {
                let release = match shown.clip {
                    Some(clip) => Gaussian::of_clip(shown.what, clip, relation, shown.sigma)?,
                    None => Gaussian::of_sensitivity(shown.what, shown.sensitivity, shown.sigma)?,
                };
                let release = match shown.lattice {
                    Some(lattice) => release.on_lattice(lattice.lattice()?),
                    None => release,
                };
                Event::Gaussian(release.times(shown.count))
            }
            Shown::Poisson(shown) => sample(shown, relation, Subsampled::poisson)?,
            Shown::WithoutReplacement(shown) => {
                sample(shown, relation, Subsampled::without_replacement)?
            }
            Shown::Barker {
                what,
                batch,
                rows,
                count,
                lattice,
            } => {
                let test = Barker::new(what, batch, rows)?;
                let test = match lattice {
                    Some(lattice) => test.on_lattice(lattice.lattice()?),
                    None => test,
                };
                Event::Barker(test.times(count))
            }
        };
        Ok(event)
    }
}

fn sample(
    shown: ShownRelease,
    relation: Relation,
    make: impl Fn(String, f64, Relation, f64, f64) -> Result<Subsampled, EventError>,
) -> Result<Event, EventError> {
    // Without a clip bound the cost of a sample is unknown.
    let clip = shown.clip.unwrap_or(f64::NAN);
    let sample = make(shown.what, clip, relation, shown.rate, shown.sigma)?;
    let sample = match shown.lattice {
        Some(lattice) => sample.on_lattice(lattice.lattice()?),
        None => sample,
    };
    Ok(Event::Subsampled(sample.times(shown.count)))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Wrong here: a report would plot the guarantee of another run.
    #[test]
    fn every_kind_comes_back() {
        let lattice = Lattice::new(2f64.powi(-40), 7).unwrap();
        for relation in Relation::ALL {
            let gaussian = Gaussian::of_clip("gradient", 0.1f64, relation, 12.25f64).unwrap();
            let poisson = Subsampled::poisson("a", 0.5, relation, 0.25, 3.5).unwrap();
            let mut events = vec![
                Event::Gaussian(gaussian.on_lattice(lattice).times(70)),
                Event::Gaussian(Gaussian::of_sensitivity("x", 0.5, 2.0).unwrap()),
                Event::Subsampled(poisson.on_lattice(lattice).times(3)),
            ];
            if relation == Relation::Substitute {
                let batch = Subsampled::without_replacement("c", 3.0, relation, 0.5, 9.0);
                let barker = Barker::new("accept", 1000, 100_000).unwrap();
                events.push(Event::Subsampled(batch.unwrap()));
                events.push(Event::Barker(barker.on_lattice(lattice).times(5)));
            }
            for event in events {
                let text = serde_json::to_string(&event).unwrap();
                let json: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(Event::from_json(&json, relation).unwrap(), event, "{text}");
            }
        }
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in [
            "null",
            "{}",
            r#"{"kind":"gaussian"}"#,
            r#"{"kind":"poisson","what":"a","sensitivity":1,"sigma":1,"rate":0.5,"count":1}"#,
        ] {
            let json: Value = serde_json::from_str(text).unwrap();
            assert!(
                Event::from_json(&json, Relation::Substitute).is_err(),
                "{text}"
            );
        }
    }
}
