//! The releases of a run: the neighbouring relation and the events, run-length encoded.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};
use thiserror::Error;

use super::barker::Barker;
use super::real::Real;
use super::subsampled::Subsampled;

/// Which data sets are neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// One record is replaced by another; the number of records is public.
    Substitute,
    /// One record is added or removed; the number of records is private.
    AddRemove,
    /// The values of one record are left blank, so that it adds nothing to any sum; the
    /// number of records is public.
    ZeroOut,
}

impl Relation {
    pub const ALL: [Relation; 3] = [Relation::Substitute, Relation::AddRemove, Relation::ZeroOut];

    pub fn name(self) -> &'static str {
        match self {
            Relation::Substitute => "substitute",
            Relation::AddRemove => "add-remove",
            Relation::ZeroOut => "zero-out",
        }
    }

    /// Whether neighbours have the same number of records, which may then be told.
    pub fn n_is_public(self) -> bool {
        match self {
            Relation::Substitute | Relation::ZeroOut => true,
            Relation::AddRemove => false,
        }
    }

    /// How often the bound on one record's contribution a sum moves between neighbours
    /// (docs/proofs.md, section 3).
    pub fn factor(self) -> u8 {
        match self {
            Relation::Substitute => 2,
            Relation::AddRemove | Relation::ZeroOut => 1,
        }
    }

    /// How far a sum moves between neighbours, for records of norm at most `clip`:
    /// 2 clip under substitute, clip under add/remove and zero-out.
    pub fn sensitivity(self, clip: Real) -> Real {
        #[cfg(test)]
        if crate::planted::is(crate::planted::Planted::HalfSensitivity) {
            return clip;
        }
        clip * Real::from(u64::from(self.factor()))
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Relation {
    type Err = EventError;

    fn from_str(text: &str) -> Result<Relation, EventError> {
        Relation::ALL
            .into_iter()
            .find(|relation| relation.name() == text)
            .ok_or_else(|| EventError::UnknownRelation(text.to_owned()))
    }
}

/// Why an event, or the text of one, makes no sense.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum EventError {
    #[error("unknown relation `{0}`; expected `substitute`, `add-remove` or `zero-out`")]
    UnknownRelation(String),
    #[error("{name} is {value}; expected a finite number above 0")]
    NotPositive { name: &'static str, value: f64 },
    #[error(
        "sensitivity {sensitivity} over sigma {sigma} is out of range; expected a ratio between \
         1e-50 and 1e15 (both are absolute, in the same units)"
    )]
    RatioOutOfRange { sensitivity: f64, sigma: f64 },
    #[error(
        "the lattice's spacing is {0} sigma; expected a ratio above 0 and at most 1, so that the \
         discrete Gaussian is close to the continuous one"
    )]
    LatticeTooCoarse(f64),
    #[error("a release on a lattice draws 0 coordinates; expected at least 1")]
    NoCoordinates,
    #[error("rate is {0}; expected a number from 0 to 1")]
    RateOutOfRange(f64),
    #[error(
        "a batch of {size} out of {rows} rows; expected no more than there are, and at least 1 row"
    )]
    BatchOutOfRange { size: u64, rows: u64 },
    #[error(
        "a Barker test on a batch of {size} out of {rows} rows; expected a batch of at least 3 rows, and of no more than there are"
    )]
    BarkerBatch { size: u64, rows: u64 },
    #[error("a Barker test under {0}: {why}; use `--relation substitute`", why = no_batches(*.0))]
    BarkerRelation(Relation),
    #[error(
        "sampling without replacement under {0}: {why}; use `--relation substitute`, or `poisson:`",
        why = no_batches(*.0)
    )]
    WithoutReplacementRelation(Relation),
    #[error(
        "unknown kind of event `{0}`; write it like `gaussian:sensitivity=1,sigma=2,count=100`, \
         `poisson:rate=0.01,clip=1,sigma=1,count=1000`, \
         `without-replacement:rate=0.01,clip=1,sigma=1,count=1000` or \
         `barker:batch=1000,rows=100000,count=500`"
    )]
    UnknownKind(String),
    #[error("unknown key `{key}` in `{text}`; expected {expected}")]
    UnknownKey {
        key: String,
        text: String,
        expected: &'static str,
    },
    #[error("`{key}` is given twice in `{text}`; give it once")]
    RepeatedKey { key: String, text: String },
    #[error("`{part}` in `{text}` is not a setting; expected key=value, such as `sigma=2`")]
    NotASetting { part: String, text: String },
    #[error("`{key}` is missing in `{text}`; add `{key}=...` ({expected})")]
    MissingKey {
        key: &'static str,
        text: String,
        expected: &'static str,
    },
    #[error("`{key}={value}` in `{text}`: expected {expected}")]
    BadValue {
        key: String,
        value: String,
        text: String,
        expected: &'static str,
    },
    #[error(
        "both `sensitivity` and `clip` are given in `{0}`; give one: `clip` bounds one record's \
         contribution and the relation determines the sensitivity"
    )]
    SensitivityTwice(String),
    #[error(
        "both `sigma` and `scale` are given in `{0}`; give one: `scale` is this \
         event's sigma as a multiple of the one to be found"
    )]
    SigmaTwice(String),
}

/// Why batches of a fixed size are accounted under substitute alone (docs/proofs.md,
/// section 9).
fn no_batches(relation: Relation) -> &'static str {
    if relation.n_is_public() {
        "the bound for a batch of fixed size is that of substitute, whose promise includes this one"
    } else {
        "a batch of fixed size tells how many records there are, and no accountant has a bound for it"
    }
}

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

/// Sums over all rows of vectors of l2 norm at most `clip`, each with Gaussian noise.
///
/// Sensitivity, clip and sigma are absolute and in the same units. The numbers are checked at
/// construction.
#[derive(Clone, Debug, PartialEq)]
pub struct Gaussian {
    what: String,
    clip: Option<Real>,
    sensitivity: Real,
    sigma: Real,
    lattice: Option<Lattice>,
    count: u64,
}

/// The lattice of a discrete Gaussian, and how fine it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lattice {
    ratio: Real,
    coordinates: u64,
}

impl Gaussian {
    /// One release of a sum of vectors of norm at most `clip`; the relation determines its
    /// sensitivity.
    pub fn of_clip(
        what: impl Into<String>,
        clip: impl Into<Real>,
        relation: Relation,
        sigma: impl Into<Real>,
    ) -> Result<Gaussian, EventError> {
        let clip = positive("clip", clip.into())?;
        let sensitivity = relation.sensitivity(clip);
        let release = Gaussian::of_sensitivity(what, sensitivity, sigma)?;
        Ok(Gaussian {
            clip: Some(clip),
            ..release
        })
    }

    /// One release that moves by at most `sensitivity` between neighbours, whatever the
    /// relation.
    pub fn of_sensitivity(
        what: impl Into<String>,
        sensitivity: impl Into<Real>,
        sigma: impl Into<Real>,
    ) -> Result<Gaussian, EventError> {
        let sensitivity = positive("sensitivity", sensitivity.into())?;
        let sigma = positive("sigma", sigma.into())?;
        // Within this range no square below under- or overflows.
        if !(1e-50..=1e15).contains(&(sensitivity / sigma).to_f64()) {
            return Err(EventError::RatioOutOfRange {
                sensitivity: sensitivity.to_f64(),
                sigma: sigma.to_f64(),
            });
        }
        Ok(Gaussian {
            what: what.into(),
            clip: None,
            sensitivity,
            sigma,
            lattice: None,
            count: 1,
        })
    }

    /// The same, with noise drawn on a lattice.
    pub fn on_lattice(self, lattice: Lattice) -> Gaussian {
        Gaussian {
            lattice: Some(lattice),
            ..self
        }
    }

    /// The same, with continuous noise.
    pub fn off_lattice(self) -> Gaussian {
        Gaussian {
            lattice: None,
            ..self
        }
    }

    /// The same release, `count` times in all.
    pub fn times(self, count: u64) -> Gaussian {
        Gaussian { count, ..self }
    }

    pub fn what(&self) -> &str {
        &self.what
    }

    /// The bound on one record's contribution, where it was what the user gave.
    pub fn clip(&self) -> Option<Real> {
        self.clip
    }

    pub fn sensitivity(&self) -> Real {
        self.sensitivity
    }

    /// The standard deviation of the noise.
    pub fn sigma(&self) -> Real {
        self.sigma
    }

    pub fn lattice(&self) -> Option<Lattice> {
        self.lattice
    }

    pub fn count(&self) -> u64 {
        self.count
    }
}

impl Lattice {
    /// `ratio` = spacing/sigma, at most 1; `coordinates` drawn at each release.
    pub fn new(ratio: impl Into<Real>, coordinates: u64) -> Result<Lattice, EventError> {
        let ratio = positive("the lattice's spacing over sigma", ratio.into())?;
        if ratio > Real::ONE {
            return Err(EventError::LatticeTooCoarse(ratio.to_f64()));
        }
        if coordinates == 0 {
            return Err(EventError::NoCoordinates);
        }
        Ok(Lattice { ratio, coordinates })
    }

    pub fn ratio(&self) -> Real {
        self.ratio
    }

    pub fn coordinates(&self) -> u64 {
        self.coordinates
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
                what: &release.what,
                sensitivity: release.sensitivity,
                sigma: release.sigma,
                clip: release.clip,
                rate,
                count: release.count,
                lattice: release.lattice,
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

/// The value if it is finite, above zero, and far from the limits of `f64`.
fn positive(name: &'static str, value: Real) -> Result<Real, EventError> {
    if value.is_finite() && (1e-290..=1e290).contains(&value.to_f64()) {
        Ok(value)
    } else {
        Err(EventError::NotPositive {
            name,
            value: value.to_f64(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Wrong here: half the noise that substitute needs.
    #[test]
    fn the_relation_makes_the_sensitivity() {
        let gaussian = |relation| Gaussian::of_clip("gradient", 1.5, relation, 2.0).unwrap();
        assert_eq!(gaussian(Relation::Substitute).sensitivity().to_f64(), 3.0);
        assert_eq!(gaussian(Relation::AddRemove).sensitivity().to_f64(), 1.5);
        assert_eq!(gaussian(Relation::ZeroOut).sensitivity().to_f64(), 1.5);
        assert_eq!(gaussian(Relation::AddRemove).clip().unwrap().to_f64(), 1.5);
    }

    #[test]
    fn numbers_that_cannot_be_accounted_are_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300] {
            assert!(Gaussian::of_sensitivity("x", bad, 1.0).is_err());
            assert!(Gaussian::of_sensitivity("x", 1.0, bad).is_err());
            assert!(Gaussian::of_clip("x", bad, Relation::Substitute, 1.0).is_err());
            assert!(Lattice::new(bad, 3).is_err());
        }
        assert!(Gaussian::of_sensitivity("x", 1e-30, 1e30).is_err());
        assert!(Lattice::new(1.01, 3).is_err());
        assert!(Lattice::new(0.5, 0).is_err());
        assert_eq!(
            Gaussian::of_sensitivity("x", 1.0, -2.0)
                .unwrap_err()
                .to_string(),
            "sigma is -2; expected a finite number above 0"
        );
    }

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

    #[test]
    fn relations_are_read_back_from_their_names() {
        for relation in Relation::ALL {
            assert_eq!(relation.to_string().parse(), Ok(relation));
            let json = serde_json::to_string(&relation).unwrap();
            assert_eq!(json, format!("\"{relation}\""));
        }
        assert!("replace".parse::<Relation>().is_err());
    }
}
