//! The releases of a run: the events, run-length encoded.

use serde::{Serialize, Serializer};

use super::barker::Barker;
use super::real::Real;
use super::release::{Gaussian, Lattice};
use super::subsampled::Subsampled;

/// A number of equal releases. Each accountant matches this exhaustively, so that a new kind of
/// event does not compile until every accountant handles it.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A sum over all rows, plus Gaussian noise.
    Gaussian(Gaussian),
    /// A sum over rows drawn anew for each release, plus Gaussian noise.
    Subsampled(Subsampled),
    /// The acceptance test of DP-Barker, on batches drawn anew for each.
    Barker(Barker),
}

impl Event {
    /// The name of what is released, such as `gradient`.
    pub fn what(&self) -> &str {
        match self {
            Event::Gaussian(gaussian) => gaussian.what(),
            Event::Subsampled(subsampled) => subsampled.release().what(),
            Event::Barker(barker) => barker.what(),
        }
    }

    pub fn count(&self) -> u64 {
        match self {
            Event::Gaussian(gaussian) => gaussian.count(),
            Event::Subsampled(subsampled) => subsampled.release().count(),
            Event::Barker(barker) => barker.count(),
        }
    }

    /// The same releases, `count` times in all.
    pub fn times(self, count: u64) -> Event {
        match self {
            Event::Gaussian(gaussian) => Event::Gaussian(gaussian.times(count)),
            Event::Subsampled(subsampled) => Event::Subsampled(subsampled.times(count)),
            Event::Barker(barker) => Event::Barker(barker.times(count)),
        }
    }

    /// The same releases with continuous noise.
    pub fn off_lattice(self) -> Event {
        match self {
            Event::Gaussian(gaussian) => Event::Gaussian(gaussian.off_lattice()),
            Event::Subsampled(subsampled) => Event::Subsampled(subsampled.off_lattice()),
            Event::Barker(barker) => Event::Barker(barker.off_lattice()),
        }
    }

    /// The lattice on which its noise is drawn, if any.
    pub fn lattice(&self) -> Option<Lattice> {
        match self {
            Event::Gaussian(gaussian) => gaussian.lattice(),
            Event::Subsampled(subsampled) => subsampled.release().lattice(),
            Event::Barker(barker) => barker.lattice(),
        }
    }

    /// The sum and its noise, whichever rows it covers; none where the variance of the noise itself
    /// depends on rows.
    pub fn release(&self) -> Option<&Gaussian> {
        match self {
            Event::Gaussian(gaussian) => Some(gaussian),
            Event::Subsampled(subsampled) => Some(subsampled.release()),
            Event::Barker(_) => None,
        }
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// An event as `privacy.json` and `dpm plan` show it.
        #[derive(Serialize)]
        struct Shown<'a> {
            kind: &'static str,
            what: &'a str,
            sensitivity: Real,
            sigma: Real,
            clip: Option<Real>,
            rate: Real,
            count: u64,
            lattice: Option<Lattice>,
        }
        /// Its noise has no single sigma.
        #[derive(Serialize)]
        struct ShownBarker<'a> {
            kind: &'static str,
            what: &'a str,
            batch: u64,
            rows: u64,
            rate: Real,
            count: u64,
            lattice: Option<Lattice>,
        }
        fn shown<'a>(kind: &'static str, release: &'a Gaussian, rate: Real) -> Shown<'a> {
            Shown {
                kind,
                what: release.what(),
                sensitivity: release.sensitivity(),
                sigma: release.sigma(),
                clip: release.clip(),
                rate,
                count: release.count(),
                lattice: release.lattice(),
            }
        }
        match self {
            Event::Gaussian(gaussian) => {
                shown("gaussian", gaussian, Real::ONE).serialize(serializer)
            }
            Event::Subsampled(subsampled) => {
                let kind = subsampled.scheme().kind();
                shown(kind, subsampled.release(), subsampled.rate()).serialize(serializer)
            }
            Event::Barker(barker) => ShownBarker {
                kind: "barker",
                what: barker.what(),
                batch: barker.batch(),
                rows: barker.rows(),
                rate: barker.rate(),
                count: barker.count(),
                lattice: barker.lattice(),
            }
            .serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::relation::Relation;
    use super::*;

    #[test]
    fn an_event_is_shown_with_its_numbers() {
        let release = Gaussian::of_clip("gradient", 0.5, Relation::Substitute, 8.0).unwrap();
        let lattice = Lattice::new(0.25, 4).unwrap();
        let event = Event::Gaussian(release.on_lattice(lattice)).times(7);
        assert_eq!(
            serde_json::to_string(&event).unwrap(),
            r#"{"kind":"gaussian","what":"gradient","sensitivity":1.0,"sigma":8.0,"clip":0.5,"rate":1.0,"count":7,"lattice":{"ratio":0.25,"coordinates":4}}"#
        );
    }
}
