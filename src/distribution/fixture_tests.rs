//! Every family compared with mpmath: values and derivatives at ordinary points and in the extreme
//! tails (tests/fixtures/distributions/make.py).

use serde_json::Value;

use super::dual::{Dual, Duals};
use super::*;

/// A relative error of this size, or ...
const RELATIVE: f64 = 1e-12;
/// ... the effect of this many units in the last places of the arguments. A density whose logarithm
/// is the difference of 1e8 and 1e8 cannot be more accurate: its arguments carry no more
/// information. A derivative may also be off by the error of the value over a relative change of
/// its argument.
const UNITS: f64 = 8.0;

/// One line of densities.json or tails.json.
pub(super) struct Row {
    pub family: usize,
    tail: Option<Tail>,
    /// Variate and arguments: elements, rows, columns.
    pub given: Vec<(Vec<f64>, usize, usize)>,
    value: f64,
    gradient: Vec<Option<f64>>,
    conditioning: Vec<Option<f64>>,
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => text.parse().ok(),
        other => other.as_f64(),
    }
}

pub(super) fn density_rows() -> Vec<Row> {
    rows(include_str!(
        "../../tests/fixtures/distributions/densities.json"
    ))
}

fn rows(text: &str) -> Vec<Row> {
    let all: Value = serde_json::from_str(text).expect("JSON");
    let list = |v: &Value| v.as_array().expect("a list").clone();
    list(&all)
        .iter()
        .map(|row| Row {
            family: lookup(row["family"].as_str().expect("a name")).expect("a known family"),
            tail: row["tail"].as_str().map(|side| match side {
                "lower" => Tail::Lower,
                _ => Tail::Upper,
            }),
            given: list(&row["given"])
                .iter()
                .map(|g| {
                    let elements = list(&g[0]).iter().filter_map(number).collect();
                    let size = |i: usize| g[i].as_u64().expect("a size") as usize;
                    (elements, size(1), size(2))
                })
                .collect(),
            value: number(&row["value"]).expect("a value"),
            gradient: list(&row["gradient"]).iter().map(number).collect(),
            conditioning: list(&row["conditioning"]).iter().map(number).collect(),
        })
        .collect()
}

fn evaluate<A: Algebra>(
    algebra: &mut A,
    row: &Row,
    given: &[(Vec<A::Scalar>, usize, usize)],
) -> A::Scalar {
    if let Some(tail) = row.tail {
        let numbers: Vec<_> = given.iter().map(|g| g.0[0]).collect();
        return log_tail(row.family, tail, algebra, numbers[0], &numbers[1..]);
    }
    let containers: Vec<_> = given
        .iter()
        .map(|(elements, rows, columns)| Container {
            elements,
            rows: *rows,
            columns: *columns,
        })
        .collect();
    log_density(row.family, algebra, &containers[0], &containers[1..])
}

#[test]
fn densities_and_gradients_match_mpmath() {
    all_match(density_rows(), RELATIVE);
}

#[test]
fn distribution_functions_and_gradients_match_mpmath() {
    let text = include_str!("../../tests/fixtures/distributions/tails.json");
    let rows = rows(text);
    for (index, family) in FAMILIES.iter().enumerate().filter(|f| has_cdf(f.0)) {
        for tail in [Tail::Lower, Tail::Upper] {
            let of_it = |r: &&Row| r.family == index && r.tail == Some(tail);
            assert!(rows.iter().filter(of_it).count() >= 5, "{}", family.name);
        }
    }
    all_match(rows, RELATIVE);
}

fn all_match(rows: Vec<Row>, relative: f64) {
    let mut wrong = Vec::new();
    for row in rows {
        let mut slot = 0;
        let duals: Vec<_> = row
            .given
            .iter()
            .map(|(elements, r, c)| {
                let elements = elements.iter().map(|&x| {
                    slot += 1;
                    Dual::variable(x, slot - 1)
                });
                (elements.collect::<Vec<_>>(), *r, *c)
            })
            .collect();
        let ours = evaluate(&mut Duals, &row, &duals);
        let plain = evaluate(&mut Numbers, &row, &row.given);
        let mut check = |what: String, ours: f64, theirs: f64, conditioning: f64| {
            let allowed = relative * theirs.abs() + UNITS * f64::EPSILON * conditioning;
            // This also covers NaN.
            let agrees = ours == theirs || (ours - theirs).abs() <= allowed;
            if !agrees {
                wrong.push(format!(
                    "{} {:?} {:?}: {what} is {ours:e}, expected {theirs:e}, off by {:.1} of what is allowed",
                    FAMILIES[row.family].name,
                    row.tail,
                    row.given.iter().map(|g| &g.0).collect::<Vec<_>>(),
                    (ours - theirs).abs() / allowed
                ));
            }
        };
        let of_value = row.conditioning[0].expect("a number");
        check("the value".into(), ours.value, row.value, of_value);
        check("the plain value".into(), plain, row.value, of_value);
        for (k, slope) in row.gradient.iter().enumerate() {
            if let (Some(slope), Some(conditioning)) = (slope, row.conditioning[k + 1]) {
                let x = row.given.iter().flat_map(|g| &g.0).nth(k);
                let of_value = match x {
                    Some(x) if *x != 0.0 => row.value.abs() / x.abs(),
                    _ => 0.0,
                };
                check(
                    format!("derivative {k}"),
                    ours.partials[k],
                    *slope,
                    conditioning + of_value,
                );
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// A family without fixtures fails here.
#[test]
fn every_family_has_fixtures() {
    let rows = density_rows();
    for (index, family) in FAMILIES.iter().enumerate() {
        let count = rows.iter().filter(|r| r.family == index).count();
        assert!(count >= 10, "{}: {count} rows", family.name);
    }
}

/// Values outside a domain, in place of an element of it.
fn outside(domain: Domain, row: &Row) -> Vec<f64> {
    let argument = |at: usize| row.given[at + 1].0[0];
    let size = |letter: &str| {
        let sized = FAMILIES[row.family].arguments.iter().zip(&row.given[1..]);
        let sizes = sized.flat_map(|(a, g)| named_sizes(a.kind, &Container::vector(&g.0)));
        sizes.into_iter().find(|s| s.0 == letter).expect("a size").1
    };
    match domain {
        Domain::Positive => vec![-1.0, -1e300],
        Domain::NonNegative | Domain::Counts => vec![-1.0],
        Domain::Unit => vec![-0.5, 1.5, -1e300, 1e300],
        Domain::Above(at) => vec![argument(at) - 1.0],
        Domain::From(at) => vec![argument(at) - 1.0 - argument(at).abs(), -1.0, 0.0],
        Domain::Between(low, high) => {
            let (low, high) = (argument(low), argument(high));
            vec![low - 1.0 - 1e-3 * low.abs(), high + 1.0 + 1e-3 * high.abs()]
        }
        Domain::Binary => vec![-1.0, 2.0],
        Domain::CountsTo(at) => vec![-1.0, argument(at) + 1.0, argument(at) + 1e6],
        Domain::Categories(letter, more) => vec![0.0, -3.0, (size(letter) + more + 1) as f64],
        Domain::Simplex => vec![-0.5, 7.0],
        // For all real numbers, and for matrices, one element cannot be outside.
        _ => Vec::new(),
    }
}

#[test]
fn outside_the_support_the_density_is_zero() {
    for row in density_rows() {
        let family = FAMILIES[row.family];
        for y in outside(family.support, &row) {
            let mut given = row.given.clone();
            given[0].0[0] = y;
            let value = evaluate(&mut Numbers, &row, &given);
            assert_eq!(
                value,
                f64::NEG_INFINITY,
                "{}{:?}",
                family.name,
                given.iter().map(|g| &g.0).collect::<Vec<_>>()
            );
        }
    }
}

#[test]
fn outside_their_domain_arguments_have_no_density() {
    for row in density_rows() {
        let family = FAMILIES[row.family];
        for (k, argument) in family.arguments.iter().enumerate() {
            // The number of trials is checked with the counts.
            if argument.kind == Kind::Int {
                continue;
            }
            for x in outside(argument.domain, &row) {
                let mut given = row.given.clone();
                given[k + 1].0[0] = x;
                let value = evaluate(&mut Numbers, &row, &given);
                assert!(
                    value.is_nan(),
                    "{}{:?} is {value}",
                    family.name,
                    given.iter().map(|g| &g.0).collect::<Vec<_>>()
                );
            }
        }
    }
}
