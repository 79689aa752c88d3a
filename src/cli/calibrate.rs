//! `dpm calibrate`: the noise that a budget asks for, or the repetitions it allows.

use serde_json::{Value, json};

use super::failure::Failure;
use super::releases::{Releases, say_what_is_not_proved};
use super::{Common, pretty, print};
use crate::accounting::{
    Accountant, Budget, CalibrateError, Event, Query, Real, Unscaled, most_repetitions,
    sigma_for_budget,
};

const HELP: &str = "\
Leave out sigma in the events whose noise is to be found. Several of them share it;
scale=2 doubles it for an event. Events with a sigma keep it.
--find count is the largest number of iterations of a schedule (Algorithm 2 of
Räisä 2021): give the releases of one iteration, each with its sigma.

Examples:
  dpm calibrate --event gaussian:sensitivity=1,count=100 --relation substitute --epsilon 1 --delta 1e-6
  dpm calibrate --event poisson:rate=0.01,clip=1,count=1000 --relation add-remove --epsilon 1 --delta 1e-5
  dpm calibrate --find count --event poisson:rate=0.01,clip=1,sigma=2 --relation add-remove --epsilon 1 --delta 1e-5
  dpm calibrate --find count --event gaussian:clip=3,sigma=700,count=20 --event gaussian:clip=3,sigma=300,count=4 --relation substitute --epsilon 1 --delta 1e-6";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Arguments {
    #[command(flatten)]
    releases: Releases,
    /// Privacy budget of all events together
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon: Real,
    /// Privacy budget of all events together
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: Real,
    /// gaussian, zcdp, rdp or pld [default: the tightest]
    #[arg(long, value_name = "NAME")]
    accountant: Option<Accountant>,
    /// The quantity to find
    #[arg(long, value_enum, default_value_t = Find::Sigma, value_name = "WHAT")]
    find: Find,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Find {
    /// The smallest standard deviation of the noise
    Sigma,
    /// How many times all events together can be repeated
    Count,
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let budget = Budget::new(arguments.epsilon, arguments.delta).map_err(Failure::input)?;
    let (relation, accountant) = (arguments.releases.relation(), arguments.accountant);
    let (found, events) = match arguments.find {
        Find::Sigma => {
            let events = arguments.releases.parse(Unscaled::parse)?;
            let sigma = sigma_for_budget(&events, relation, budget, accountant).map_err(refused)?;
            let with_noise = events
                .iter()
                .map(|event| event.with_sigma(Real::exact(sigma)))
                .collect::<Result<Vec<Event>, _>>()
                .map_err(Failure::accounting)?;
            (json!({ "sigma": sigma }), with_noise)
        }
        Find::Count => {
            let events = arguments.releases.parse(Event::parse)?;
            let count = most_repetitions(&events, relation, budget, accountant).map_err(refused)?;
            let repeat = |event: &Event| event.clone().times(event.count().saturating_mul(count));
            (
                json!({ "count": count }),
                events.iter().map(repeat).collect(),
            )
        }
    };
    let accountant = accountant.unwrap_or_else(|| Accountant::tightest(&events));
    let query = Query::Epsilon {
        delta: budget.delta(),
    };
    let guarantee = accountant
        .account(&events, relation, query)
        .map_err(Failure::accounting)?;
    say_what_is_not_proved(&guarantee, common);
    let mut answer = found;
    // What the events then cost, as `dpm account` says it.
    if let (Value::Object(answer), Value::Object(cost)) = (&mut answer, json!(guarantee)) {
        answer.extend(cost);
    }
    print(&pretty(&answer))
}

fn refused(error: CalibrateError) -> Failure {
    match error {
        CalibrateError::NoSigma { .. } => Failure::budget(error),
        _ => Failure::input(error),
    }
}
