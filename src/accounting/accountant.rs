//! The accountants, the questions to them, and why they may have no answer.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use thiserror::Error;

use super::event::Event;
use super::real::Real;
use super::relation::Relation;

/// A question to the accountant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Query {
    /// The epsilon at this delta, 0 < delta < 1.
    Epsilon { delta: Real },
    /// The delta at this epsilon, epsilon >= 0.
    Delta { epsilon: Real },
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
