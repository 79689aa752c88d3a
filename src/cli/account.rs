//! `dpm account`: the cost of a list of releases.

use serde_json::json;

use super::failure::Failure;
use super::run_settings::RelationChoice;
use super::{pretty, print};
use crate::accounting::{Accountant, Event, Query, Real, Relation};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: dpm account --event gaussian:sensitivity=1,sigma=20,count=100 --relation substitute --delta 1e-6"
)]
pub(super) struct Arguments {
    /// A release, e.g. gaussian:sensitivity=1,sigma=2,count=100 (or clip=... in place of sensitivity)
    #[arg(long = "event", required = true, value_name = "EVENT")]
    events: Vec<String>,
    /// What neighbouring data sets differ in
    #[arg(long, value_enum)]
    relation: RelationChoice,
    /// Find the delta at this epsilon
    #[arg(
        long,
        value_name = "E",
        allow_negative_numbers = true,
        conflicts_with = "delta"
    )]
    epsilon: Option<Real>,
    /// Find the epsilon at this delta
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: Option<Real>,
    /// Accountant
    #[arg(long, default_value = "gaussian", value_name = "NAME")]
    accountant: Accountant,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let relation: Relation = arguments.relation.into();
    let query = match (arguments.epsilon, arguments.delta) {
        (Some(epsilon), None) => Query::Delta { epsilon },
        (None, Some(delta)) => Query::Epsilon { delta },
        _ => {
            return Err(Failure::input(
                "give one of --epsilon (to find delta) and --delta (to find epsilon)",
            ));
        }
    };
    let events = arguments
        .events
        .iter()
        .map(|text| {
            Event::parse(text, relation).map_err(|e| Failure::input(format!("`{text}`: {e}")))
        })
        .collect::<Result<Vec<_>, _>>()?;
    let guarantee = arguments
        .accountant
        .account(&events, relation, query)
        .map_err(Failure::input)?;
    print(&pretty(&json!(guarantee)))
}
