//! `dpm account`: the cost of a list of releases.

use std::io::Read;

use serde_json::{Value, json};

use super::failure::Failure;
use super::run_settings::RelationChoice;
use super::{Common, pretty, print};
use crate::accounting::{
    Accountant, Conversion, Event, Guarantee, Query, RdpValue, Real, Relation, rdp_curve, zcdp_by,
};

const HELP: &str = "\
Accountants, and what they take:
  gaussian  releases about all rows; tight
  zcdp      the same; an upper bound (--conversion tight or simple)
  rdp       also Poisson samples under add-remove, and batches drawn without
            replacement under substitute; an upper bound by the best order
  pld       also Poisson samples under substitute; lower and upper bounds by
            Fourier transforms, at most 1e-3 of epsilon apart unless said otherwise

Without --accountant it is the tightest: gaussian if all rows are read, else pld.
Poisson sampling under substitute is verified numerically, not proved; the answer
says \"proved\": false.

Examples:
  dpm account --event gaussian:sensitivity=1,sigma=20,count=100 --relation substitute --delta 1e-6
  dpm account --event poisson:rate=0.01,clip=1,sigma=1,count=1000 --relation add-remove --delta 1e-5
  dpm account --event without-replacement:rate=0.01,clip=1,sigma=2,count=1000 --relation substitute --epsilon 1
  dpm account --events schedule.txt --relation add-remove --delta 1e-5";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Arguments {
    #[command(flatten)]
    releases: Releases,
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
    /// gaussian, zcdp, rdp or pld; the tightest unless given
    #[arg(long, value_name = "NAME")]
    accountant: Option<Accountant>,
    /// How zcdp becomes epsilon and delta
    #[arg(long, value_enum, default_value_t = ConversionChoice::Tight, value_name = "HOW")]
    conversion: ConversionChoice,
    /// Also list the Rényi divergence at these orders, e.g. 2,4,8 (rdp)
    #[arg(long, value_delimiter = ',', value_name = "ORDERS")]
    rdp_orders: Vec<u64>,
}

/// The events of a command line.
#[derive(Debug, clap::Args)]
pub(super) struct Releases {
    /// A release, e.g. gaussian:sensitivity=1,sigma=2,count=100 (or clip=... in place of sensitivity), poisson:rate=0.01,clip=1,sigma=1 or without-replacement:rate=0.01,clip=1,sigma=1
    #[arg(long = "event", value_name = "EVENT", required_unless_present = "file")]
    events: Vec<String>,
    /// A file of such releases, one a line; empty lines and what follows # are left out; - is standard input
    #[arg(long = "events", value_name = "FILE")]
    file: Option<String>,
    /// What neighbouring data sets differ in
    #[arg(long, value_enum)]
    relation: RelationChoice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ConversionChoice {
    /// By the best order (Canonne, Kamath and Steinke 2020)
    Tight,
    /// rho + 2 sqrt(rho ln(1/delta)) (Bun and Steinke 2016)
    Simple,
}

impl Releases {
    pub(super) fn relation(&self) -> Relation {
        self.relation.into()
    }

    /// Each event as `read` makes it of its text.
    pub(super) fn parse<T, E: std::fmt::Display>(
        &self,
        read: impl Fn(&str, Relation) -> Result<T, E>,
    ) -> Result<Vec<T>, Failure> {
        let file = match &self.file {
            Some(path) => text_of(path)?,
            None => String::new(),
        };
        let lines = file
            .lines()
            .map(|line| line.split_once('#').map_or(line, |(text, _)| text).trim())
            .filter(|line| !line.is_empty());
        let texts = self.events.iter().map(String::as_str).chain(lines);
        texts
            .map(|text| {
                read(text, self.relation()).map_err(|e| Failure::input(format!("`{text}`: {e}")))
            })
            .collect()
    }
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let relation = arguments.releases.relation();
    let query = match (arguments.epsilon, arguments.delta) {
        (Some(epsilon), None) => Query::Delta { epsilon },
        (None, Some(delta)) => Query::Epsilon { delta },
        _ => {
            return Err(Failure::input(
                "give one of --epsilon (to find delta) and --delta (to find epsilon)",
            ));
        }
    };
    let events = arguments.releases.parse(Event::parse)?;
    let accountant = arguments
        .accountant
        .unwrap_or_else(|| Accountant::tightest(&events));
    let guarantee = match (accountant, arguments.conversion) {
        (Accountant::Zcdp, ConversionChoice::Simple) => {
            zcdp_by(Conversion::Simple, &events, relation, query)
        }
        (accountant, _) => accountant.account(&events, relation, query),
    }
    .map_err(Failure::input)?;
    say_what_is_not_proved(&guarantee, common);
    let mut answer = json!(guarantee);
    if !arguments.rdp_orders.is_empty() {
        let curve = rdp_curve(&events, relation, &arguments.rdp_orders).map_err(Failure::input)?;
        add_rdp(&mut answer, &curve);
    }
    print(&pretty(&answer))
}

/// `rdp`: the list of `[order, value]`; and `rdp_tightened`, where that is another one.
fn add_rdp(answer: &mut Value, curve: &[RdpValue]) {
    let list = |value: fn(&RdpValue) -> Real| -> Value {
        let pairs = curve.iter().map(|at| json!([at.order, value(at)]));
        pairs.collect()
    };
    answer["rdp"] = list(|at| at.value);
    if curve.iter().any(|at| at.tightened < at.value) {
        answer["rdp_tightened"] = list(|at| at.tightened);
    }
}

/// A bound that is not proved says so to people too.
pub(super) fn say_what_is_not_proved(guarantee: &Guarantee, common: &Common) {
    if let Some(reason) = guarantee.not_proved {
        common.say(format!("warning: {reason}"));
    }
}

fn text_of(path: &str) -> Result<String, Failure> {
    let read = if path == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    read.map_err(|e| Failure::input(format!("cannot read the events in `{path}`: {e}")))
}
