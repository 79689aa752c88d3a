//! Why an event, or the text of one, makes no sense.

use std::str::FromStr;

use thiserror::Error;

use super::relation::Relation;

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
    #[error("a Barker test under {0}: {why}; use `relation substitute`", why = no_batches(*.0))]
    BarkerRelation(Relation),
    #[error(
        "sampling without replacement under {0}: {why}; use `relation substitute`, or `poisson:`",
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

impl FromStr for Relation {
    type Err = EventError;

    fn from_str(text: &str) -> Result<Relation, EventError> {
        Relation::ALL
            .into_iter()
            .find(|relation| relation.name() == text)
            .ok_or_else(|| EventError::UnknownRelation(text.to_owned()))
    }
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
