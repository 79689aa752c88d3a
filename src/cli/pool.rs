//! `dpm pool`: the estimates of several tables as one.

use std::path::PathBuf;

use serde_json::json;

use super::failure::Failure;
use super::format::Format;
use super::public_data::Table;
use super::{pretty, print};
use crate::diagnostics::{PoolRule, Pooled, pool};

/// With fewer degrees of freedom under the full rule, more tables are advised.
const LEAST_FREEDOM: f64 = 2.0;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The file is a CSV with the columns estimate and variance (the squared standard error), a row for
each table, and a column name where there are several quantities. Prints each quantity's pooled
estimate, standard error, degrees of freedom and 90% interval. With M tables, U the mean of their
variances and B the variance between their estimates:

  full      (1 + 1/M) B - U   tables of `dpm synth` (Raghunathan, Reiter and Rubin 2003); where
                              that is negative, U x --size-ratio (Reiter 2002)
  partial   U + B/M           the real table with some values replaced (Reiter 2003)
  missing   U + (1 + 1/M) B   the real table with missing values filled in (Rubin 1987)

Example: dpm pool estimates.csv

    name,estimate,variance
    mean_income,31.2,0.04
    mean_income,30.9,0.05
    share_over_50,0.41,0.0002
    share_over_50,0.43,0.0002")]
pub(super) struct Arguments {
    /// Estimates and variances of the tables, as CSV
    #[arg(value_name = "FILE.csv")]
    file: PathBuf,
    /// Kind of the tables: synthetic, partly synthetic, or with imputed missing values
    #[arg(long, value_enum, default_value_t = Rule::Full)]
    rule: Rule,
    /// Rows of a synthetic table over rows of the data, which the correction of --rule full needs
    #[arg(long, default_value_t = 1.0, value_name = "R", value_parser = positive)]
    size_ratio: f64,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Rule {
    Full,
    Partial,
    Missing,
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text
        .parse()
        .ok()
        .filter(|v: &f64| v.is_finite() && *v > 0.0);
    number.ok_or("expected a number above 0".to_owned())
}

/// The estimates and variances of one quantity.
#[derive(Default)]
struct Quantity {
    name: Option<String>,
    estimates: Vec<f64>,
    variances: Vec<f64>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let rule = match arguments.rule {
        Rule::Full => PoolRule::Full,
        Rule::Partial => PoolRule::Partial,
        Rule::Missing => PoolRule::Missing,
    };
    let mut pooled = Vec::new();
    for quantity in read(arguments)? {
        let Quantity {
            name,
            estimates,
            variances,
        } = quantity;
        let found = pool(rule, &estimates, &variances, arguments.size_ratio);
        let found = found.map_err(|error| {
            let of = name
                .as_ref()
                .map_or(String::new(), |name| format!(", `{name}`"));
            Failure::input(format!("`{}`{of}: {error}", arguments.file.display()))
        })?;
        pooled.push((name, found));
    }
    print(&match arguments.format {
        Format::Text => text(rule, &pooled),
        Format::Json => pretty(&json!({
            "rule": rule,
            "level": 0.9,
            "quantities": pooled.iter().map(in_json).collect::<Vec<_>>(),
        })),
    })
}

/// The quantities of the file, in the order in which they first appear.
fn read(arguments: &Arguments) -> Result<Vec<Quantity>, Failure> {
    let table = Table::read(&arguments.file, "and the columns estimate and variance")?;
    let place = arguments.file.display();
    let needed = |name: &str| {
        table.column(name).ok_or_else(|| {
            Failure::input(format!(
                "`{place}` has no column `{name}`: expected a CSV with the columns estimate and variance, and a row for each table"
            ))
        })
    };
    let (estimate, variance) = (needed("estimate")?, needed("variance")?);
    let name = table.column("name");
    let mut quantities: Vec<Quantity> = Vec::new();
    for (line, fields) in &table.rows {
        let field = |column: usize| fields.get(column).map_or("", String::as_str);
        let number = |column: usize, what: &str| {
            field(column).parse::<f64>().map_err(|_| {
                Failure::input(format!(
                    "`{place}`, line {line}, column `{what}`: expected a number"
                ))
            })
        };
        let name = name.map(|column| field(column).to_owned());
        let at = quantities.iter().position(|q| q.name == name);
        let at = at.unwrap_or_else(|| {
            quantities.push(Quantity {
                name,
                ..Quantity::default()
            });
            quantities.len() - 1
        });
        quantities[at].estimates.push(number(estimate, "estimate")?);
        quantities[at].variances.push(number(variance, "variance")?);
    }
    if quantities.is_empty() {
        return Err(Failure::input(format!(
            "`{place}` has no rows: expected one for each table"
        )));
    }
    Ok(quantities)
}

fn in_json((name, pooled): &(Option<String>, Pooled)) -> serde_json::Value {
    let mut json = json!(pooled);
    json["name"] = json!(name);
    json["standard_error"] = json!(pooled.variance.sqrt());
    json
}

fn text(rule: PoolRule, pooled: &[(Option<String>, Pooled)]) -> String {
    let name = |name: &Option<String>| name.clone().unwrap_or_default();
    let width = pooled.iter().map(|(n, _)| name(n).chars().count());
    let width = width.max().unwrap_or(0).max("name".len());
    let is_full = rule == PoolRule::Full;
    let rule = match rule {
        PoolRule::Full => "full, for synthetic tables (Raghunathan, Reiter and Rubin 2003)",
        PoolRule::Partial => "partial, for partly synthetic tables (Reiter 2003)",
        PoolRule::Missing => "missing, for imputed missing values (Rubin 1987)",
    };
    let mut text = format!("rule: {rule}; q5 to q95 is the 90% interval\n\n");
    text += &format!(
        "{:width$} {:>6} {:>12} {:>12} {:>9} {:>12} {:>12}\n",
        "name", "tables", "estimate", "std. error", "df", "q5", "q95"
    );
    let mut few = Vec::new();
    for (own, p) in pooled {
        text += &format!(
            "{:width$} {:>6} {:>12} {:>12} {:>9.1} {:>12} {:>12}\n",
            name(own),
            p.tables,
            figure(p.estimate),
            figure(p.variance.sqrt()),
            p.degrees_of_freedom,
            figure(p.interval[0]),
            figure(p.interval[1])
        );
        // Then the interval is next to useless: t is 2.9 with 2 degrees of freedom, and 1e9 with 0.1.
        if p.corrected || is_full && p.degrees_of_freedom < LEAST_FREEDOM {
            few.push(name(own));
        }
    }
    if !few.is_empty() {
        text += &format!(
            "\nThe variance of the rule was negative, and was replaced, or nearly so{}: make more tables.\n",
            if few.iter().all(String::is_empty) {
                String::new()
            } else {
                format!(" for {}", few.join(", "))
            }
        );
    }
    text
}

/// A number with six digits.
fn figure(x: f64) -> String {
    if x != 0.0 && !(1e-3..1e9).contains(&x.abs()) {
        return format!("{x:.5e}");
    }
    let before = x.abs().max(1.0).log10().floor() as usize;
    format!("{x:.*}", 5_usize.saturating_sub(before))
}
