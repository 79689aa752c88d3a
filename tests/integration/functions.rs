//! Every built-in function at every stage at which it may be used.
//!
//! `tests/fixtures/functions/functions.json` holds calls and what numpy, scipy and
//! mpmath give for them (`make.py` beside it). Here each call becomes four
//! programs: its arguments are constants, parameters, record columns, or numbers
//! that both have a part in. The values must be the fixture's, the gradients those
//! of mpmath or of difference quotients. A signature without a case fails.

use std::collections::BTreeSet;
use std::fmt::Write;

use dpm::Constants;
use dpm::testing::check::Type;
use dpm::testing::density::Density;
use dpm::testing::function::{Base, Builtin, Function, Stages, functions, overloads, synonyms};
use serde_json::Value as Json;

use crate::corpus::{read, root};
use crate::evaluation::*;

struct Entry {
    ty: Type,
    sizes: Vec<usize>,
    values: Vec<f64>,
}

struct Case {
    function: String,
    arguments: Vec<Entry>,
    result: Entry,
    kink: bool,
    derivatives: Option<Vec<f64>>,
}

#[test]
fn every_signature_has_a_case() {
    let mut covered = BTreeSet::new();
    for case in cases() {
        if let Some((name, signature)) = resolve(&case) {
            covered.insert((name, signature));
        }
    }
    let mut missing = Vec::new();
    for f in functions() {
        if synonyms().iter().any(|(synonym, _)| *synonym == f.name) {
            continue;
        }
        for s in f.signatures {
            let described = s.describe(f.name, f.parameters);
            if !covered.contains(&(f.name, described.clone())) {
                missing.push(described);
            }
        }
    }
    assert!(
        missing.is_empty(),
        "add cases to tests/fixtures/functions/make.py for\n{}",
        missing.join("\n")
    );
}

/// The signature that a case calls; none for an operator.
fn resolve(case: &Case) -> Option<(&'static str, String)> {
    let types: Vec<Type> = case.arguments.iter().map(|a| a.ty).collect();
    let found = overloads(&case.function)
        .flat_map(|f| f.signatures.iter().map(move |s| (f, s)))
        .filter(|(_, s)| s.arguments.len() == types.len())
        .find(|(_, s)| s.result(&types).is_ok());
    if found.is_none() {
        assert!(
            overloads(&case.function).next().is_none() && case.function.contains(' '),
            "the checker would refuse {}",
            case.describe()
        );
    }
    found.map(|(f, s)| (f.name, s.describe(f.name, f.parameters)))
}

fn function(case: &Case) -> Option<&'static Function> {
    let types: Vec<Type> = case.arguments.iter().map(|a| a.ty).collect();
    overloads(&case.function).find(|f| {
        f.signatures
            .iter()
            .any(|s| s.arguments.len() == types.len() && s.result(&types).is_ok())
    })
}

#[test]
fn of_constants() {
    each_case(|case| {
        let source = format!(
            "transformed constants {{ {} }} parameters {{ }}
             transformed parameters {{ {} }} model {{ }}",
            case.declare("r", &case.call(|_, x| literal(x))),
            case.declare("out", "r"),
        );
        let density = density(&source, &Constants::none());
        case.compare("constants", &outputs(case, &density, &[]));
    });
}

#[test]
fn of_parameters() {
    each_case(|case| {
        let n = case.unknowns().len();
        if n == 0
            || case.stages() == Stages::Constants
            || case.stages() == Stages::WithoutParameters
        {
            return;
        }
        let source = format!(
            "parameters {{ vector[{n}] p; }}
             transformed parameters {{ {} }} model {{ target += {}; }}",
            case.declare("out", &case.call(|k, _| format!("p[{}]", k + 1))),
            case.weighted("out"),
        );
        let density = density(&source, &Constants::none());
        let theta = case.unknowns();
        case.compare("parameters", &outputs(case, &density, &theta));
        let gradient = density.pull_back(&theta, &[]).1;
        let value = |theta: &[f64]| density.log_prior(theta);
        case.compare_gradient("parameters", &gradient, &theta, value);
    });
}

/// Parameters that are whole vectors, rather than put together from elements.
#[test]
fn of_a_whole_vector_of_parameters() {
    each_case(|case| {
        let [argument] = &case.arguments[..] else {
            return;
        };
        if argument.ty.base == Base::Int || case.stages() != Stages::All {
            return;
        }
        let source = format!(
            "parameters {{ {} p; }}
             transformed parameters {{ {} }} model {{ target += {}; }}",
            declaration(argument),
            case.declare("out", &format!("{}(p)", case.function)),
            case.weighted("out"),
        );
        let density = density(&source, &Constants::none());
        case.compare("a parameter", &outputs(case, &density, &argument.values));
        let gradient = density.pull_back(&argument.values, &[]).1;
        let value = |theta: &[f64]| density.log_prior(theta);
        case.compare_gradient("a parameter", &gradient, &argument.values, value);
    });
}

#[test]
fn of_records() {
    each_case(|case| {
        let n = case.unknowns().len();
        if n == 0 || case.stages() == Stages::Constants {
            return;
        }
        // Three records; the second is the case.
        let source = format!(
            "record {{ vector[{n}] x; }} transformed record {{ {} }}
             parameters {{ }} model {{ target += {}; }}",
            case.declare("r", &case.call(|k, _| format!("x[{}]", k + 1))),
            case.weighted("r"),
        );
        let density = density(&source, &Constants::none());
        let table = three_records(&case.unknowns(), None);
        let (values, constant) = log_likelihoods(&density, &table, &[]);
        let expected = case.weighted_value();
        near(case, "records", values[1] + constant[1], expected);
    });
}

#[test]
fn of_records_and_parameters() {
    each_case(|case| {
        let n = case.unknowns().len();
        // What reads sizes only is no likelihood.
        if n == 0 || case.stages() != Stages::All {
            return;
        }
        // Of every three numbers, one a product, one a parameter, one a column.
        let argument = |k: usize, _: f64| match k % 3 {
            0 => format!("(p[{}] * one)", k + 1),
            1 => format!("p[{}]", k + 1),
            _ => format!("x[{}]", k + 1),
        };
        let source = format!(
            "record {{ vector[{n}] x; real one; }} parameters {{ vector[{n}] p; }}
             model {{ {} target += {}; target += 0 * one * p[1]; }}",
            case.declare("r", &case.call(argument)),
            case.weighted("r"),
        );
        let density = density(&source, &Constants::none());
        let theta = case.unknowns();
        let table = three_records(&theta, Some(1.0));
        let value = |theta: &[f64]| {
            let (values, constant) = log_likelihoods(&density, &table, theta);
            values[1] + constant[1]
        };
        near(case, "likelihood", value(&theta), case.weighted_value());
        let gradients = record_gradients(&density, &table, &theta);
        let own = &gradients[n..2 * n];
        if case.kink || case.function == "softmax" || case.function == "log_sum_exp" {
            // Differences see nothing in the tails, but nothing may break.
            assert!(own.iter().all(|g| g.is_finite()), "{}", case.describe());
        }
        if case.kink {
            return;
        }
        if let Some(derivatives) = &case.derivatives {
            // Columns have no derivative.
            for (k, d) in derivatives.iter().enumerate().filter(|(k, _)| k % 3 != 2) {
                let expected = weight(k) * d;
                assert!(
                    (own[k] - expected).abs() <= 1e-12 * expected.abs(),
                    "{} by argument {k}: {}, expected {expected}",
                    case.describe(),
                    own[k]
                );
            }
            return;
        }
        differences(case, "likelihood", own, &theta, value);
        let (_, tiled) = density.tiled_gradients(&theta, &table.columns, table.rows);
        let scale = own.iter().fold(1.0, |m: f64, g| m.max(g.abs()));
        for (k, (a, b)) in own.iter().zip(&tiled[n..2 * n]).enumerate() {
            assert!(
                (a - b).abs() <= 1e-11 * scale,
                "{} by argument {k}: {a}, tiled {b}",
                case.describe()
            );
        }
    });
}

/// Where a stage is not allowed, the checker says so.
#[test]
fn what_has_no_derivative_is_refused() {
    let mut refused = 0;
    for case in cases() {
        let stages = case.stages();
        if stages != Stages::Constants && stages != Stages::WithoutParameters {
            continue;
        }
        let n = case.unknowns().len();
        if n == 0 {
            continue;
        }
        let source = format!(
            "parameters {{ vector[{n}] p; }} model {{ {} target += p[1]; }}",
            case.declare("r", &case.call(|k, _| format!("p[{}]", k + 1))),
        );
        let Err(said) = bind(&source, &Constants::none()) else {
            panic!("{} of parameters is accepted", case.describe());
        };
        assert!(said.contains("E0205"), "{said}");
        refused += 1;
    }
    assert!(refused > 20);
}

/// Values at the edges of a domain that finite differences cannot see: nothing
/// there may be undefined.
#[test]
fn minus_infinity_is_no_trouble() {
    let source = "record { real one; }
        parameters { vector[2] p; }
        transformed parameters {
          real empty = log_sum_exp([negative_infinity(), negative_infinity(), negative_infinity()]);
          real some = log_sum_exp([negative_infinity(), p[1], p[2]]);
          real mixed = log_mix([0, 0.5, 0.5]', [p[1], p[1], p[2]]');
          vector[3] shares = softmax([negative_infinity(), p[1], p[2]]');
        }
        model {
          target += some + mixed + shares[2];
          target += log_sum_exp({negative_infinity() * one, p[1] * one, p[2] * one});
          target += log_mix(0.3, p[1] * one, negative_infinity());
        }";
    let density = density(source, &Constants::none());
    let theta = [0.3, -0.2];
    let names: Vec<&str> = density.output_names().collect();
    let values = density.outputs(&theta);
    let at = |name: &str| values[names.iter().position(|n| *n == name).expect(name)];
    let total = (theta[0].exp() + theta[1].exp()).ln();
    assert_eq!(at("empty"), f64::NEG_INFINITY);
    assert!((at("some") - total).abs() < 1e-15);
    assert!((at("mixed") - (total - 2f64.ln())).abs() < 1e-15);
    assert_eq!(at("shares.1"), 0.0);
    let table = Table {
        columns: vec![vec![1.0]],
        rows: 1,
    };
    let own = gradient(&density, &table, &theta);
    for (j, g) in own.iter().enumerate() {
        let at = |h: f64| {
            let mut moved = theta;
            moved[j] += h;
            log_density(&density, &table, &moved).iter().sum::<f64>()
        };
        let numeric = (at(1e-5) - at(-1e-5)) / 2e-5;
        assert!((g - numeric).abs() < 1e-8, "{j}: {g}, difference {numeric}");
    }
}

/// A matrix that is not positive definite, or is singular, for some parameters:
/// the density is not a number there, and nothing panics.
#[test]
fn failing_decompositions_give_no_density() {
    for call in [
        "sum(cholesky_decompose([[1, p], [p, 1]]))",
        "sum(inverse_spd([[1, p], [p, 1]]))",
        "log_determinant_spd([[1, p], [p, 1]])",
        "sum(cholesky_decompose([[one, p], [p, one]]))",
    ] {
        let source = format!(
            "record {{ real one; }} parameters {{ real p; }} model {{ target += {call} + 0 * one * p; }}"
        );
        let density = density(&source, &Constants::none());
        let table = Table {
            columns: vec![vec![1.0]],
            rows: 1,
        };
        let total = |p: f64| log_density(&density, &table, &[p]).iter().sum::<f64>();
        assert!(total(0.5).is_finite(), "{call}");
        assert!(total(2.0).is_nan(), "{call}");
        gradient(&density, &table, &[2.0]);
    }
}

/// Runs a test on every case and shows every failure.
fn each_case(test: impl Fn(&Case)) {
    let mut failed = 0;
    let cases = cases();
    for case in &cases {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(case)));
        failed += usize::from(result.is_err());
    }
    assert_eq!(failed, 0, "of {} cases", cases.len());
}

// --- cases as programs -------------------------------------------------------

impl Case {
    fn stages(&self) -> Stages {
        match function(self) {
            Some(f) if matches!(f.builtin, Builtin::Constant(_)) => Stages::Constants,
            Some(f) => f.stages,
            None => Stages::All,
        }
    }

    /// The numbers of the arguments that are not ints, in order.
    fn unknowns(&self) -> Vec<f64> {
        self.arguments
            .iter()
            .filter(|a| a.ty.base != Base::Int)
            .flat_map(|a| a.values.clone())
            .collect()
    }

    /// The call, its real numbers written by `number(position, value)`.
    fn call(&self, number: impl Fn(usize, f64) -> String) -> String {
        let mut next = 0;
        let arguments: Vec<String> = self
            .arguments
            .iter()
            .map(|a| {
                if a.ty.base == Base::Int {
                    return container(a, &|k| format!("{}", a.values[k] as i64));
                }
                let start = next;
                next += a.values.len();
                container(a, &|k| number(start + k, a.values[k]))
            })
            .collect();
        match (self.function.split_once(' '), &arguments[..]) {
            (Some((_, operator)), [a, b]) => {
                let operator = operator.trim_end_matches('B').trim();
                format!("({a}) {operator} ({b})")
            }
            _ => format!("{}({})", self.function, arguments.join(", ")),
        }
    }

    /// `TYPE name = value;` with the type of the result, ints made real.
    fn declare(&self, name: &str, value: &str) -> String {
        format!("{} {name} = {value};", declaration(&self.result))
    }

    /// A sum over the elements of the result, each with a weight of its own.
    fn weighted(&self, name: &str) -> String {
        let mut sum = String::from("0");
        for (k, index) in indices(&self.result).iter().enumerate() {
            let index: Vec<String> = index.iter().map(ToString::to_string).collect();
            let element = if index.is_empty() {
                name.to_string()
            } else {
                format!("{name}[{}]", index.join(", "))
            };
            let _ = write!(sum, " + {} * {element}", literal(weight(k)));
        }
        sum
    }

    fn weighted_value(&self) -> f64 {
        let terms = self.result.values.iter().enumerate();
        terms.map(|(k, v)| weight(k) * v).sum()
    }

    fn describe(&self) -> String {
        self.call(|_, x| literal(x))
    }

    /// Element by element: to its own size where each stands alone, to that of
    /// the largest where they are computed from each other.
    fn compare(&self, stage: &str, values: &[f64]) {
        let largest = self.largest();
        for (ours, theirs) in values.iter().zip(&self.result.values) {
            let scale = if self.derivatives.is_some() {
                theirs.abs()
            } else {
                largest
            };
            assert!(
                ours == theirs
                    || (ours.is_nan() && theirs.is_nan())
                    || (ours - theirs).abs() <= 1e-13 * scale,
                "{} of {stage}: {values:?}, expected {:?}",
                self.describe(),
                self.result.values
            );
        }
    }

    fn largest(&self) -> f64 {
        let finite = self.result.values.iter().filter(|v| v.is_finite());
        finite.fold(0.0, |m: f64, v| m.max(v.abs()))
    }

    fn compare_gradient(
        &self,
        stage: &str,
        gradient: &[f64],
        theta: &[f64],
        value: impl Fn(&[f64]) -> f64,
    ) {
        if self.kink {
            assert!(
                gradient.iter().all(|g| g.is_finite()),
                "{}",
                self.describe()
            );
            return;
        }
        if let Some(derivatives) = &self.derivatives {
            for (k, (own, d)) in gradient.iter().zip(derivatives).enumerate() {
                let expected = weight(k) * d;
                assert!(
                    (own - expected).abs() <= 1e-12 * expected.abs(),
                    "{} of {stage}, by argument {k}: {own}, expected {expected}",
                    self.describe()
                );
            }
            return;
        }
        differences(self, stage, gradient, theta, value);
    }
}

/// The gradient against central differences of fourth order.
fn differences(
    case: &Case,
    stage: &str,
    gradient: &[f64],
    theta: &[f64],
    value: impl Fn(&[f64]) -> f64,
) {
    let scale = gradient.iter().fold(1e-3, |m: f64, g| m.max(g.abs()));
    for (j, own) in gradient.iter().enumerate() {
        let at = |step: f64| {
            let mut moved = theta.to_vec();
            moved[j] += step;
            value(&moved)
        };
        let difference =
            |h: f64| (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
        let mut numeric = difference(1e-3);
        if (numeric - own).abs() > 1e-6 * scale {
            numeric = difference(1e-5);
        }
        assert!(
            (numeric - own).abs() <= 1e-6 * scale,
            "{} of {stage}, by argument {j}: {own}, difference {numeric}",
            case.describe()
        );
    }
}

fn near(case: &Case, stage: &str, ours: f64, theirs: f64) {
    let sizes = case.result.values.iter().enumerate();
    let scale: f64 = sizes.map(|(k, v)| (weight(k) * v).abs()).sum();
    assert!(
        ours == theirs || (ours - theirs).abs() <= 1e-13 * scale,
        "{} of {stage}: {ours}, expected {theirs}",
        case.describe()
    );
}

fn weight(k: usize) -> f64 {
    [1.0, -0.75, 0.5, 1.25, -1.5][k % 5]
}

/// The case's numbers between two other records.
fn three_records(values: &[f64], one: Option<f64>) -> Table {
    let columns = values
        .iter()
        .copied()
        .chain(one)
        .map(|v| vec![v, v, v])
        .collect();
    Table { columns, rows: 3 }
}

/// The elements of `out`, in storage order.
fn outputs(case: &Case, density: &Density, theta: &[f64]) -> Vec<f64> {
    let names: Vec<&str> = density.output_names().collect();
    let values = density.outputs(theta);
    indices(&case.result)
        .iter()
        .map(|index| {
            let mut name = "out".to_string();
            for i in index {
                let _ = write!(name, ".{i}");
            }
            values[names.iter().position(|n| **n == name).expect("an output")]
        })
        .collect()
}

fn declaration(entry: &Entry) -> String {
    let size = |k: usize| entry.sizes[k].to_string();
    let array = entry.ty.array;
    let mut text = String::new();
    if array > 0 {
        let sizes: Vec<String> = (0..array).map(size).collect();
        let _ = write!(text, "array[{}] ", sizes.join(", "));
    }
    text + &match entry.ty.base {
        Base::Int | Base::Real => "real".to_string(),
        Base::Vector => format!("vector[{}]", size(array)),
        Base::RowVector => format!("row_vector[{}]", size(array)),
        Base::Matrix => format!("matrix[{}, {}]", size(array), size(array + 1)),
    }
}

/// The 1-based indices of every element, in storage order.
fn indices(entry: &Entry) -> Vec<Vec<usize>> {
    let array = entry.ty.array;
    let matrix = entry.ty.base == Base::Matrix;
    (0..entry.values.len())
        .map(|position| {
            let mut rest = position;
            let mut index = vec![0; entry.sizes.len()];
            if matrix {
                for k in [array, array + 1] {
                    index[k] = rest % entry.sizes[k] + 1;
                    rest /= entry.sizes[k];
                }
            }
            let others = if matrix { array } else { entry.sizes.len() };
            for k in (0..others).rev() {
                index[k] = rest % entry.sizes[k] + 1;
                rest /= entry.sizes[k];
            }
            index
        })
        .collect()
}

/// A container as it is written, each number by `element(storage position)`.
fn container(entry: &Entry, element: &dyn Fn(usize) -> String) -> String {
    nested(entry.ty, &entry.sizes, 0, element)
}

fn nested(ty: Type, sizes: &[usize], start: usize, element: &dyn Fn(usize) -> String) -> String {
    if ty.array > 0 {
        let inner: usize = sizes[1..].iter().product();
        let ty = Type {
            array: ty.array - 1,
            ..ty
        };
        let parts: Vec<String> = (0..sizes[0])
            .map(|k| nested(ty, &sizes[1..], start + k * inner, element))
            .collect();
        return format!("{{{}}}", parts.join(", "));
    }
    let list = |positions: &mut dyn Iterator<Item = usize>| {
        let parts: Vec<String> = positions.map(|k| element(start + k)).collect();
        format!("[{}]", parts.join(", "))
    };
    match ty.base {
        Base::Int | Base::Real => element(start),
        Base::Vector => list(&mut (0..sizes[0])) + "'",
        Base::RowVector => list(&mut (0..sizes[0])),
        Base::Matrix => {
            let rows: Vec<String> = (0..sizes[0])
                .map(|i| list(&mut (0..sizes[1]).map(|j| i + j * sizes[0])))
                .collect();
            format!("[{}]", rows.join(", "))
        }
    }
}

fn literal(x: f64) -> String {
    match x {
        x if x.is_nan() => "not_a_number()".to_string(),
        f64::INFINITY => "positive_infinity()".to_string(),
        f64::NEG_INFINITY => "negative_infinity()".to_string(),
        x if x < 0.0 => format!("({x:?})"),
        x => format!("{x:?}"),
    }
}

fn cases() -> Vec<Case> {
    let text = read(&root().join("tests/fixtures/functions/functions.json"));
    let json: Json = serde_json::from_str(&text).expect("JSON");
    let list = |json: &Json| json.as_array().expect("a list").clone();
    let number = |json: &Json| match json.as_str() {
        Some("nan") => f64::NAN,
        Some("inf") => f64::INFINITY,
        Some("-inf") => f64::NEG_INFINITY,
        _ => json.as_f64().expect("a number"),
    };
    let entry = |json: &Json| Entry {
        ty: type_named(json["type"].as_str().expect("a type")),
        sizes: list(&json["sizes"])
            .iter()
            .map(|n| n.as_u64().expect("a size") as usize)
            .collect(),
        values: list(&json["values"]).iter().map(number).collect(),
    };
    list(&json)
        .iter()
        .map(|case| Case {
            function: case["function"].as_str().expect("a name").to_string(),
            arguments: list(&case["arguments"]).iter().map(entry).collect(),
            result: entry(&case["result"]),
            kink: case["kink"].as_bool().unwrap_or(false),
            derivatives: case["derivatives"]
                .as_array()
                .map(|d| d.iter().map(number).collect()),
        })
        .collect()
}

fn type_named(name: &str) -> Type {
    let (array, base) = match name.strip_prefix("array[") {
        Some(rest) => {
            let (commas, base) = rest.split_once("] ").expect("a base type");
            (commas.len() + 1, base)
        }
        None => (0, name),
    };
    let base = match base {
        "int" => Base::Int,
        "real" => Base::Real,
        "vector" => Base::Vector,
        "row_vector" => Base::RowVector,
        "matrix" => Base::Matrix,
        other => panic!("no type {other}"),
    };
    Type { base, array }
}
