//! From events to a guarantee: `account`.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use thiserror::Error;

use super::composition::Composition;
use super::event::{Event, Relation};
use super::gaussian::{GaussianCurve, exp_up, ln_bounds};
use super::pld::PldDetails;
use super::real::Real;
use super::{gaussian_accountant, pld, rdp, zcdp};

/// A question to the accountant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Query {
    /// The epsilon at this delta, 0 < delta < 1.
    Epsilon { delta: Real },
    /// The delta at this epsilon, epsilon >= 0.
    Delta { epsilon: Real },
}

/// The privacy of some events, as `dpm account` shows it.
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
    /// Sum of sensitivity^2 / (2 sigma^2), rounded up; where all releases read all rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mu: Option<f64>,
    pub accountant: Accountant,
    pub relation: Relation,
    /// Whether every step of the bound is proved.
    pub proved: bool,
    /// The step that is not proved, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_proved: Option<&'static str>,
    /// How the `pld` accountant found its bounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pld: Option<PldDetails>,
    /// The order that the `rdp` accountant found best.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<u64>,
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
    /// Zero-concentrated DP of full-data releases, with the tight conversion.
    Zcdp,
    /// Rényi DP of full-data and subsampled releases.
    Rdp,
    /// Privacy loss distributions of full-data and subsampled releases: bounds on both
    /// sides.
    Pld,
}

impl Accountant {
    pub const ALL: [Accountant; 4] = [
        Accountant::Gaussian,
        Accountant::Zcdp,
        Accountant::Rdp,
        Accountant::Pld,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Accountant::Gaussian => "gaussian",
            Accountant::Zcdp => "zcdp",
            Accountant::Rdp => "rdp",
            Accountant::Pld => "pld",
        }
    }

    /// The accountant with the tightest bounds for such events.
    pub fn tightest(events: &[Event]) -> Accountant {
        let takes = |event: &Event| match event {
            Event::Gaussian(_) => Accountant::Gaussian,
            Event::Subsampled(_) => Accountant::Pld,
            Event::Barker(_) => Accountant::Rdp,
        };
        let one_takes = |accountant| events.iter().any(|event| takes(event) == accountant);
        [Accountant::Rdp, Accountant::Pld]
            .into_iter()
            .find(|&accountant| one_takes(accountant))
            .unwrap_or(Accountant::Gaussian)
    }

    /// The privacy of all `events` together.
    ///
    /// # Errors
    ///
    /// A delta outside (0, 1), an epsilon that is negative or above 1e60, an event made
    /// for another relation or of a kind that this accountant has no bound for, or a delta
    /// that discrete noise cannot reach.
    pub fn account(
        self,
        events: &[Event],
        relation: Relation,
        query: Query,
    ) -> Result<Guarantee, AccountError> {
        check_query(query)?;
        let composition = Composition::new(events, relation)?;
        match self {
            Accountant::Gaussian => gaussian_accountant::account(&composition, query),
            Accountant::Zcdp => zcdp::account(&composition, query),
            Accountant::Rdp => rdp::account(&composition, query),
            Accountant::Pld => pld::account(&composition, query),
        }
    }
}

/// Why no guarantee can be given.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum AccountError {
    #[error("unknown accountant `{0}`; expected `gaussian`, `zcdp`, `rdp` or `pld`")]
    UnknownAccountant(String),
    #[error(
        "the `{accountant}` accountant has no bound for `{kind}` releases under {relation}; use {instead}"
    )]
    NoBound {
        accountant: Accountant,
        kind: &'static str,
        relation: Relation,
        instead: &'static str,
    },
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
    #[error("order {order}; expected whole orders from 2 to {largest}, such as `2,4,8,16,32`")]
    OrderOutOfRange { order: u64, largest: u64 },
    #[error(
        "the Rényi divergence of order {order} of these releases is infinite; use a smaller order, \
         or larger batches"
    )]
    NoDivergence { order: u64 },
    #[error(
        "the releases `{what}`, by {kind} sampling, were planned for {planned}; under {relation} \
         the same sampling has another cost"
    )]
    SchemeMismatch {
        what: String,
        kind: &'static str,
        planned: Relation,
        relation: Relation,
    },
    #[error(
        "{releases} releases by {events} distinct events; the `pld` accountant takes at most \
         {most_releases:e} by {most_events}; combine equal events with `count`, or use `rdp`"
    )]
    TooMany {
        releases: f64,
        most_releases: f64,
        events: usize,
        most_events: usize,
    },
    #[error(
        "privacy losses are spread over {width:e}, which is more than the `pld` accountant can put \
         on a grid; there is hardly any privacy in these releases: use more noise, or `rdp` for \
         an upper bound"
    )]
    LossesTooLarge { width: f64 },
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

impl AccountError {
    /// Whether more noise, or fewer releases, would have given an answer.
    pub fn is_lack_of_noise(&self) -> bool {
        matches!(
            self,
            AccountError::LossesTooLarge { .. } | AccountError::DeltaUnreachable { .. }
        )
    }
}

/// The privacy of all `events` together, by the accountant with the tightest bounds.
///
/// # Errors
///
/// As [`Accountant::account`].
pub fn account(
    events: &[Event],
    relation: Relation,
    query: Query,
) -> Result<Guarantee, AccountError> {
    Accountant::tightest(events).account(events, relation, query)
}

/// The answer of an accountant to a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Found {
    Epsilon {
        delta: Real,
        lower: Option<f64>,
        upper: f64,
    },
    Delta {
        epsilon: Real,
        lower: Option<f64>,
        /// ln delta, rounded up.
        ln_upper: Real,
    },
}

impl Guarantee {
    /// The assumption that the bound depends on, as a clause to follow "provided": to be shown
    /// wherever the bound is. `None` where every step of the bound is proved.
    pub fn proviso(&self) -> Option<String> {
        let reason = self.not_proved?;
        Some(format!(
            "that a step of the bound holds which is not proved ({reason})"
        ))
    }

    pub(super) fn new(
        accountant: Accountant,
        composition: &Composition<'_>,
        found: Found,
    ) -> Guarantee {
        let (epsilon, delta, ln_delta, bounds) = match found {
            Found::Epsilon {
                delta,
                lower,
                upper,
            } => {
                let bounds = GuaranteeBounds::Epsilon {
                    epsilon_lower: lower,
                    epsilon_upper: upper,
                };
                (upper, delta.to_f64(), ln_bounds(delta).upper, bounds)
            }
            Found::Delta {
                epsilon,
                lower,
                ln_upper,
            } => {
                let upper = exp_up(ln_upper);
                let bounds = GuaranteeBounds::Delta {
                    delta_lower: lower,
                    delta_upper: upper,
                };
                (epsilon.to_f64(), upper, ln_upper, bounds)
            }
        };
        Guarantee {
            epsilon,
            delta,
            bounds,
            ln_delta: ln_delta.to_f64_up(),
            mu: composition
                .reads_all_rows()
                .then(|| GaussianCurve::new(composition.mu()).mu()),
            accountant,
            relation: composition.relation(),
            proved: true,
            not_proved: None,
            pld: None,
            order: None,
        }
    }
}

pub(super) fn check_query(query: Query) -> Result<(), AccountError> {
    match query {
        Query::Epsilon { delta } => check_delta(delta),
        Query::Delta { epsilon } => check_epsilon(epsilon),
    }
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

impl fmt::Display for Accountant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Accountant {
    type Err = AccountError;

    fn from_str(text: &str) -> Result<Accountant, AccountError> {
        Accountant::ALL
            .into_iter()
            .find(|accountant| accountant.name() == text)
            .ok_or_else(|| AccountError::UnknownAccountant(text.to_owned()))
    }
}

impl Serialize for Accountant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::{Gaussian, Lattice};
    use super::*;

    fn real(text: &str) -> Real {
        text.parse().unwrap()
    }

    fn events(texts: &[&str], relation: Relation) -> Vec<Event> {
        let parse = |text: &&str| Event::parse(text, relation).unwrap();
        texts.iter().map(parse).collect()
    }

    // The oracle's group 20, with its terms as a user would write them.
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
        let mu = guarantee.mu.unwrap();
        assert!((mu - 1.184375).abs() < 1e-15 && mu >= 1.184375);
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
        assert_eq!((guarantee.epsilon, guarantee.mu), (0.0, Some(0.0)));
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
        assert!(matches!(
            "x".parse::<Accountant>(),
            Err(AccountError::UnknownAccountant(_))
        ));
    }
}
