//! `dpm account`: the cost of a list of releases.

use serde_json::{Value, json};

use super::failure::Failure;
use super::releases::{Releases, say_what_is_not_proved};
use super::{Common, pretty, print};
use crate::accounting::{
    Accountant, Conversion, Event, Guarantee, GuaranteeBounds, PldDetails, Query, RdpValue, Real,
    rdp_curve, zcdp_by,
};

const HELP: &str = "\
Accountants, and what they take:
  gaussian  releases about all rows; tight
  zcdp      the same; an upper bound (--conversion tight or simple)
  rdp       also Poisson samples, batches drawn without replacement (under
            substitute) and DP-Barker's tests; an upper bound by the best order
  pld       also Poisson samples and batches; lower and upper bounds by Fourier
            transforms, at most 1e-3 of epsilon apart unless said otherwise
            (with a warning, where so fine a grid would be too large)

Without --accountant it is the tightest: gaussian if all rows are read, rdp with
DP-Barker's tests, else pld. The pair of distributions that pld uses for Poisson
samples under substitute is verified numerically; the answer says \"proved\": false.
Batches and DP-Barker's tests are accounted under substitute alone.

Examples:
  dpm account --event gaussian:sensitivity=1,sigma=20,count=100 --relation substitute --delta 1e-6
  dpm account --event poisson:rate=0.01,clip=1,sigma=1,count=1000 --relation add-remove --delta 1e-5
  dpm account --event without-replacement:rate=0.01,clip=1,sigma=2,count=1000 --relation substitute --epsilon 1
  dpm account --events schedule.txt --relation add-remove --delta 1e-5
  dpm account --event poisson:rate=0.01,clip=1,sigma=2 --relation add-remove --delta 1e-5 --accountant rdp --rdp-orders 2,8,32
  dpm account --event poisson:rate=0.01,clip=1,sigma=1,count=1000 --relation add-remove --epsilon 0.5,1,2,4 --format table

Noise that changes from step to step, here that of Table 6.3 of Lode (2019), with TJ = 2000:
  awk 'BEGIN { for (t = 1; t <= 200; t++)
    printf \"poisson:rate=0.01,clip=1,sigma=%.17g,count=10\\n\", sqrt(2 / (3 * t^(-1/3) * 0.49)) }' |
    dpm account --events - --relation add-remove --delta 1e-3,1e-4,1e-5,1e-6 --format table";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub(super) struct Arguments {
    #[command(flatten)]
    releases: Releases,
    /// Find the delta at this epsilon, or at each of several, e.g. 0.5,1,2
    #[arg(
        long,
        value_name = "E",
        value_delimiter = ',',
        allow_negative_numbers = true,
        conflicts_with = "delta"
    )]
    epsilon: Vec<Real>,
    /// Find the epsilon at this delta, or at each of several, e.g. 1e-5,1e-6
    #[arg(
        long,
        value_name = "D",
        value_delimiter = ',',
        allow_negative_numbers = true
    )]
    delta: Vec<Real>,
    /// gaussian, zcdp, rdp or pld [default: the tightest]
    #[arg(long, value_name = "NAME")]
    accountant: Option<Accountant>,
    /// How zcdp is converted to epsilon and delta
    #[arg(long, value_enum, default_value_t = ConversionChoice::Tight, value_name = "HOW")]
    conversion: ConversionChoice,
    /// Also list the Rényi divergence at these orders, e.g. 2,4,8 (rdp)
    #[arg(long, value_delimiter = ',', value_name = "ORDERS")]
    rdp_orders: Vec<u64>,
    /// How to print; JSON is a list if several numbers are requested
    #[arg(long, value_enum, default_value_t = Format::Json)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Json,
    Table,
    Csv,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ConversionChoice {
    /// By the best order (Canonne, Kamath and Steinke 2020)
    Tight,
    /// rho + 2 sqrt(rho ln(1/delta)) (Bun and Steinke 2016)
    Simple,
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let relation = arguments.releases.relation();
    let queries: Vec<Query> = match (&arguments.epsilon[..], &arguments.delta[..]) {
        ([], []) => {
            return Err(Failure::input(
                "give one of --epsilon (to find delta) and --delta (to find epsilon)",
            ));
        }
        (epsilons, deltas) => {
            let delta = |&epsilon: &Real| Query::Delta { epsilon };
            let epsilon = |&delta: &Real| Query::Epsilon { delta };
            epsilons
                .iter()
                .map(delta)
                .chain(deltas.iter().map(epsilon))
                .collect()
        }
    };
    if arguments.format != Format::Json && !arguments.rdp_orders.is_empty() {
        return Err(Failure::input("--rdp-orders goes with --format json"));
    }
    let events = arguments.releases.parse(Event::parse)?;
    let accountant = arguments
        .accountant
        .unwrap_or_else(|| Accountant::tightest(&events));
    let guarantees = queries
        .into_iter()
        .map(|query| match (accountant, arguments.conversion) {
            (Accountant::Zcdp, ConversionChoice::Simple) => {
                zcdp_by(Conversion::Simple, &events, relation, query)
            }
            (accountant, _) => accountant.account(&events, relation, query),
        })
        .collect::<Result<Vec<Guarantee>, _>>()
        .map_err(Failure::accounting)?;
    if let Some(guarantee) = guarantees.first() {
        say_what_is_not_proved(guarantee, common);
    }
    for guarantee in &guarantees {
        say_how_wide(guarantee, common);
    }
    match arguments.format {
        Format::Csv => return print(&csv(&guarantees)),
        Format::Table => return print(&table(&guarantees)),
        Format::Json => {}
    }
    let mut answers: Vec<Value> = guarantees.iter().map(|found| json!(found)).collect();
    if !arguments.rdp_orders.is_empty() {
        let curve =
            rdp_curve(&events, relation, &arguments.rdp_orders).map_err(Failure::accounting)?;
        for answer in &mut answers {
            add_rdp(answer, &curve);
        }
    }
    let only = (answers.len() == 1).then(|| answers.remove(0));
    print(&pretty(&only.unwrap_or(Value::Array(answers))))
}

/// The columns of each line of a table.
const COLUMNS: [&str; 14] = [
    "epsilon",
    "delta",
    "epsilon_lower",
    "epsilon_upper",
    "delta_lower",
    "delta_upper",
    "ln_delta",
    "accountant",
    "relation",
    "proved",
    "grid",
    "gap",
    "truncation",
    "round_off",
];

/// The fields of a guarantee in the order of [`COLUMNS`]; empty where it has none.
fn fields(guarantee: &Guarantee) -> Vec<String> {
    let json = json!(guarantee);
    let field = |name: &&str| match json.get(name).or_else(|| json.get("pld")?.get(name)) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(Value::Bool(true)) if *name == "proved" => "proved".to_owned(),
        Some(Value::Bool(false)) if *name == "proved" => "numerically verified".to_owned(),
        Some(value) => value.to_string(),
    };
    COLUMNS.iter().map(field).collect()
}

fn csv(guarantees: &[Guarantee]) -> String {
    let header = COLUMNS.map(str::to_owned).to_vec();
    let lines = std::iter::once(header).chain(guarantees.iter().map(fields));
    lines.map(|fields| fields.join(",") + "\n").collect()
}

/// As many digits as a person reads, and only the columns that say something.
fn table(guarantees: &[Guarantee]) -> String {
    let short = |text: String| match text.parse::<f64>() {
        Ok(number) if number != 0.0 && !(1e-3..1e6).contains(&number.abs()) => {
            format!("{number:.5e}")
        }
        Ok(number) => format!("{number:.6}"),
        Err(_) => text,
    };
    let header = COLUMNS.map(str::to_owned).to_vec();
    let found = guarantees
        .iter()
        .map(|guarantee| fields(guarantee).into_iter().map(short).collect());
    let rows: Vec<Vec<String>> = std::iter::once(header).chain(found).collect();
    let width = |column: usize| -> usize {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let shown: Vec<usize> = (0..COLUMNS.len())
        .filter(|&column| rows.iter().skip(1).any(|row| !row[column].is_empty()))
        .collect();
    rows.iter()
        .map(|row| {
            let cells = shown.iter().map(|&column| {
                let (cell, width) = (&row[column], width(column));
                format!("{cell:>width$}")
            });
            cells.collect::<Vec<_>>().join("  ") + "\n"
        })
        .collect()
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

/// Bounds that are wider than the accountant aims at say so to people too.
fn say_how_wide(guarantee: &Guarantee, common: &Common) {
    let Some(pld) = guarantee.pld.filter(|pld| pld.gap > PldDetails::AIM) else {
        return;
    };
    let (what, at, number) = match guarantee.bounds {
        GuaranteeBounds::Epsilon { .. } => ("epsilon", "delta", guarantee.delta),
        GuaranteeBounds::Delta { .. } => ("delta", "epsilon", guarantee.epsilon),
    };
    common.say(format!(
        "warning: the bounds on {what} at {at} {number:e} hold, and are {:.2e} of epsilon \
         apart, not {}: closer ones would need a larger grid",
        pld.gap,
        PldDetails::AIM
    ));
}
