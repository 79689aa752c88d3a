//! From events to a guarantee: `account`.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use thiserror::Error;

use super::discrete::{LatticeCurve, total_variation_of_draw};
use super::event::{Event, Gaussian, Relation};
use super::gaussian::{GaussianCurve, exp_up, ln_bounds};
use super::real::Real;

/// What is asked of the accountant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Query {
    /// The epsilon at this delta, 0 < delta < 1.
    Epsilon { delta: Real },
    /// The delta at this epsilon, epsilon >= 0.
    Delta { epsilon: Real },
}

/// The privacy of some events, as `account` in CLI.md shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Guarantee {
    /// The epsilon given, or the upper bound on the one asked for.
    pub epsilon: f64,
    /// The delta given, or the upper bound on the one asked for. Never zero once
    /// something is released.
    pub delta: f64,
    #[serde(flatten)]
    pub bounds: GuaranteeBounds,
    /// Natural logarithm of delta, rounded up: exact where `delta` underflows.
    pub ln_delta: f64,
    /// Sum of sensitivity^2 / (2 sigma^2), rounded up.
    pub mu: f64,
    pub accountant: Accountant,
    pub relation: Relation,
    /// Whether every step of the bound is proved.
    pub proved: bool,
}

/// Bounds on the number asked for. Upper is what a report may claim. Lower is missing
/// where the accountant only has an upper bound, as for discrete noise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum GuaranteeBounds {
    Epsilon {
        epsilon_lower: Option<f64>,
        epsilon_upper: f64,
    },
    Delta {
        delta_lower: Option<f64>,
        delta_upper: f64,
    },
}

/// A way to add up the privacy of events. The names are the command line's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Accountant {
    /// Full-data Gaussian releases, tight.
    #[default]
    Gaussian,
}

impl Accountant {
    pub const ALL: [Accountant; 1] = [Accountant::Gaussian];

    /// Names that are known and not built.
    const LATER: [&str; 3] = ["zcdp", "rdp", "pld"];

    pub fn name(self) -> &'static str {
        match self {
            Accountant::Gaussian => "gaussian",
        }
    }

    /// The privacy of all `events` together.
    ///
    /// # Errors
    ///
    /// A delta outside (0, 1), an epsilon that is negative or above 1e60, an event made
    /// for another relation, or a delta that discrete noise cannot reach.
    pub fn account(
        self,
        events: &[Event],
        relation: Relation,
        query: Query,
    ) -> Result<Guarantee, AccountError> {
        match self {
            Accountant::Gaussian => account_gaussian(events, relation, query),
        }
    }
}

/// Why no guarantee can be given.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum AccountError {
    #[error("unknown accountant `{0}`; expected `gaussian`")]
    UnknownAccountant(String),
    #[error("the accountant `{0}` is not supported yet; use `gaussian`")]
    NotSupportedYet(String),
    #[error("delta is {0}; expected a number above 0 and below 1, such as 1e-6")]
    DeltaOutOfRange(f64),
    #[error("epsilon is {0}; expected a number from 0 to 1e60, such as 1")]
    EpsilonOutOfRange(f64),
    #[error(
        "the releases `{what}` were planned for another relation: a clip bound of {clip} makes a \
         sensitivity of {expected} under {relation}, and theirs is {sensitivity}"
    )]
    RelationMismatch {
        what: String,
        relation: Relation,
        clip: f64,
        sensitivity: f64,
        expected: f64,
    },
    #[error(
        "no epsilon reaches delta = {delta}: the discrete noise alone is within total variation \
         {total_variation:e} of a Gaussian, so that delta is at least {smallest_delta:e}; use a \
         finer lattice or a larger delta"
    )]
    DeltaUnreachable {
        delta: f64,
        total_variation: f64,
        smallest_delta: f64,
    },
}

/// The privacy of all `events` together, by the Gaussian accountant.
///
/// # Errors
///
/// As [`Accountant::account`].
pub fn account(
    events: &[Event],
    relation: Relation,
    query: Query,
) -> Result<Guarantee, AccountError> {
    Accountant::Gaussian.account(events, relation, query)
}

fn account_gaussian(
    events: &[Event],
    relation: Relation,
    query: Query,
) -> Result<Guarantee, AccountError> {
    for event in events {
        match event {
            Event::Gaussian(gaussian) => check_relation(gaussian, relation)?,
        }
    }
    let gaussian = GaussianCurve::new(mu_of(events));
    let total_variation = total_variation_of(events);
    let curve = LatticeCurve::new(gaussian, total_variation);
    let continuous = total_variation <= Real::ZERO;
    let guarantee = |epsilon, delta, ln_delta: Real, bounds| Guarantee {
        epsilon,
        delta,
        bounds,
        ln_delta: ln_delta.to_f64_up(),
        mu: gaussian.mu(),
        accountant: Accountant::Gaussian,
        relation,
        proved: true,
    };
    match query {
        Query::Epsilon { delta } => {
            check_delta(delta)?;
            let upper = epsilon_at(&curve, total_variation, delta)?;
            let bounds = GuaranteeBounds::Epsilon {
                epsilon_lower: continuous.then(|| gaussian.epsilon(delta).lower),
                epsilon_upper: upper,
            };
            Ok(guarantee(
                upper,
                delta.to_f64(),
                ln_bounds(delta).upper,
                bounds,
            ))
        }
        Query::Delta { epsilon } => {
            check_epsilon(epsilon)?;
            let ln_delta = curve.ln_delta_upper(epsilon);
            let upper = exp_up(ln_delta);
            let bounds = GuaranteeBounds::Delta {
                delta_lower: continuous.then(|| gaussian.delta(epsilon).lower),
                delta_upper: upper,
            };
            Ok(guarantee(epsilon.to_f64(), upper, ln_delta, bounds))
        }
    }
}

/// Sum of count D^2 / (2 sigma^2) over all events.
pub(super) fn mu_of(events: &[Event]) -> Real {
    let twice = events.iter().fold(Real::ZERO, |sum, event| match event {
        Event::Gaussian(gaussian) => {
            let ratio = gaussian.sensitivity() / gaussian.sigma();
            sum + ratio.square() * Real::from(gaussian.count())
        }
    });
    twice.times_power_of_two(-1)
}

/// Sum of the total variation over all coordinates of all draws, rounded up.
pub(super) fn total_variation_of(events: &[Event]) -> Real {
    events.iter().fold(Real::ZERO, |sum, event| match event {
        Event::Gaussian(gaussian) => match gaussian.lattice() {
            Some(lattice) => {
                let draws = Real::from(lattice.coordinates()) * Real::from(gaussian.count());
                sum + draws * total_variation_of_draw(lattice.ratio())
            }
            None => sum,
        },
    })
}

pub(super) fn check_delta(delta: Real) -> Result<(), AccountError> {
    if delta > Real::ZERO && delta < Real::ONE {
        Ok(())
    } else {
        Err(AccountError::DeltaOutOfRange(delta.to_f64()))
    }
}

pub(super) fn check_epsilon(epsilon: Real) -> Result<(), AccountError> {
    if (0.0..=1e60).contains(&epsilon.to_f64()) && epsilon >= Real::ZERO {
        Ok(())
    } else {
        Err(AccountError::EpsilonOutOfRange(epsilon.to_f64()))
    }
}

/// The error for a delta that total variation alone takes up.
pub(super) fn delta_unreachable(
    delta: Real,
    total_variation: Real,
    smallest_delta: f64,
) -> AccountError {
    AccountError::DeltaUnreachable {
        delta: delta.to_f64(),
        total_variation: total_variation.to_f64_up(),
        smallest_delta,
    }
}

fn epsilon_at(
    curve: &LatticeCurve,
    total_variation: Real,
    delta: Real,
) -> Result<f64, AccountError> {
    curve.epsilon_upper(delta).ok_or_else(|| {
        let best = Real::exact(curve.epsilon_of_smallest_delta());
        delta_unreachable(delta, total_variation, exp_up(curve.ln_delta_upper(best)))
    })
}

/// A sensitivity below what the relation makes of the clip bound would claim too much.
fn check_relation(gaussian: &Gaussian, relation: Relation) -> Result<(), AccountError> {
    let Some(clip) = gaussian.clip() else {
        return Ok(());
    };
    let expected = relation.sensitivity(clip);
    if gaussian.sensitivity() == expected {
        return Ok(());
    }
    Err(AccountError::RelationMismatch {
        what: gaussian.what().to_owned(),
        relation,
        clip: clip.to_f64(),
        sensitivity: gaussian.sensitivity().to_f64(),
        expected: expected.to_f64(),
    })
}

impl fmt::Display for Accountant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Accountant {
    type Err = AccountError;

    fn from_str(text: &str) -> Result<Accountant, AccountError> {
        if let Some(accountant) = Accountant::ALL.into_iter().find(|a| a.name() == text) {
            return Ok(accountant);
        }
        Err(if Accountant::LATER.contains(&text) {
            AccountError::NotSupportedYet(text.to_owned())
        } else {
            AccountError::UnknownAccountant(text.to_owned())
        })
    }
}

impl Serialize for Accountant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::Lattice;
    use super::*;

    fn real(text: &str) -> Real {
        text.parse().unwrap()
    }

    fn events(texts: &[&str], relation: Relation) -> Vec<Event> {
        let parse = |text: &&str| Event::parse(text, relation).unwrap();
        texts.iter().map(parse).collect()
    }

    // The oracle's group 20, its terms written as a user would write them.
    #[test]
    fn several_events_are_one_gaussian() {
        let events = events(
            &[
                "gaussian:sensitivity=1,sigma=10,count=100",
                "gaussian:sensitivity=0.25,sigma=2,count=30",
                "gaussian:sensitivity=3,sigma=100,count=1000",
            ],
            Relation::Substitute,
        );
        let query = Query::Epsilon {
            delta: real("1e-6"),
        };
        let guarantee = account(&events, Relation::Substitute, query).unwrap();
        assert!((guarantee.epsilon - 8.046320508527716).abs() < 1e-14);
        assert!((guarantee.mu - 1.184375).abs() < 1e-15 && guarantee.mu >= 1.184375);
        let query = Query::Delta {
            epsilon: real("50"),
        };
        let guarantee = account(&events, Relation::Substitute, query).unwrap();
        assert!((guarantee.ln_delta + 510.452_295_764_376_46).abs() < 1e-12);
    }

    #[test]
    fn the_json_has_the_names_of_the_command_line_page() {
        let events = events(&["gaussian:clip=1,sigma=2,count=1"], Relation::AddRemove);
        let keys = |query| {
            let guarantee = account(&events, Relation::AddRemove, query).unwrap();
            let json = serde_json::to_value(guarantee).unwrap();
            assert_eq!(json["accountant"], "gaussian");
            assert_eq!(json["relation"], "add-remove");
            assert_eq!(json["proved"], true);
            let keys: Vec<String> = json.as_object().unwrap().keys().cloned().collect();
            keys.join(" ")
        };
        let tail = "ln_delta mu accountant relation proved";
        assert_eq!(
            keys(Query::Epsilon {
                delta: real("1e-6")
            }),
            format!("epsilon delta epsilon_lower epsilon_upper {tail}")
        );
        assert_eq!(
            keys(Query::Delta { epsilon: Real::ONE }),
            format!("epsilon delta delta_lower delta_upper {tail}")
        );
    }

    // Wrong here: substitute data accounted with half its sensitivity.
    #[test]
    fn an_event_of_the_other_relation_is_refused() {
        let query = Query::Delta { epsilon: Real::ONE };
        let events = events(&["gaussian:clip=1,sigma=2"], Relation::AddRemove);
        let error = account(&events, Relation::Substitute, query).unwrap_err();
        assert!(matches!(error, AccountError::RelationMismatch { .. }));
        assert!(
            error
                .to_string()
                .contains("sensitivity of 2 under substitute")
        );
    }

    #[test]
    fn delta_of_one_and_negative_epsilon_are_errors() {
        for delta in ["0", "1", "2", "-1e-6"] {
            let query = Query::Epsilon { delta: real(delta) };
            let error = account(&[], Relation::Substitute, query).unwrap_err();
            assert!(matches!(error, AccountError::DeltaOutOfRange(_)));
        }
        for epsilon in [-1.0, f64::NAN, f64::INFINITY] {
            let query = Query::Delta {
                epsilon: epsilon.into(),
            };
            let error = account(&[], Relation::Substitute, query).unwrap_err();
            assert!(matches!(error, AccountError::EpsilonOutOfRange(_)));
        }
        let query = Query::Epsilon {
            delta: f64::NAN.into(),
        };
        assert!(account(&[], Relation::Substitute, query).is_err());
    }

    #[test]
    fn nothing_released_is_free() {
        let query = Query::Epsilon {
            delta: real("1e-9"),
        };
        let guarantee = account(&[], Relation::Substitute, query).unwrap();
        assert_eq!((guarantee.epsilon, guarantee.mu), (0.0, 0.0));
        let query = Query::Delta { epsilon: Real::ONE };
        let guarantee = account(&[], Relation::Substitute, query).unwrap();
        assert_eq!(guarantee.delta, 0.0);
    }

    // Wrong here: a run on a lattice would be accounted as if its noise were continuous.
    #[test]
    fn a_lattice_adds_its_term_and_a_coarse_one_is_refused() {
        let release = |ratio: f64, count| {
            let lattice = Lattice::new(ratio, 10).unwrap();
            let gaussian = Gaussian::of_sensitivity("gradient", 1.0, 20.0).unwrap();
            vec![Event::Gaussian(gaussian.on_lattice(lattice).times(count))]
        };
        let query = Query::Epsilon {
            delta: real("1e-6"),
        };
        let epsilon = |events: &[Event]| account(events, Relation::Substitute, query);
        let plain = events(
            &["gaussian:sensitivity=1,sigma=20,count=100"],
            Relation::Substitute,
        );
        let plain = epsilon(&plain).unwrap();
        let fine = epsilon(&release(2f64.powi(-40), 100)).unwrap();
        assert!(fine.epsilon >= plain.epsilon);
        assert!(fine.epsilon - plain.epsilon < 1e-12);
        assert!(matches!(
            fine.bounds,
            GuaranteeBounds::Epsilon {
                epsilon_lower: None,
                ..
            }
        ));
        let error = epsilon(&release(0.01, 100)).unwrap_err();
        assert!(matches!(error, AccountError::DeltaUnreachable { .. }));
    }

    #[test]
    fn accountants_are_read_from_their_names() {
        for accountant in Accountant::ALL {
            assert_eq!(accountant.to_string().parse(), Ok(accountant));
        }
        for later in ["zcdp", "rdp", "pld"] {
            let error = later.parse::<Accountant>().unwrap_err();
            assert!(error.to_string().contains("not supported yet"));
        }
        assert!(matches!(
            "x".parse::<Accountant>(),
            Err(AccountError::UnknownAccountant(_))
        ));
    }
}
