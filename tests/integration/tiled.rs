//! The row program against independent paths.
//!
//! For every program here, at fixed random points: each record's value and
//! gradient must be those of the tiled path (burn's own derivatives), the pulled
//! back sum must be the sum of the records' gradients plus that of the prior,
//! and all of it must be what central differences of the log density give. A
//! wrong derivative, a wrong interface Jacobian or a value skipped that a
//! gradient needs fails here.

use dpm::Constants;
use dpm::testing::density::Density;
use dpm::testing::distribution::{Domain, FAMILIES, Kind, has_cdf, sums_masses};
use dpm::testing::function::{Type, Unary, lookup};

use crate::corpus::{programs, read};
use crate::evaluation::*;

#[test]
fn shipped_models() {
    for path in programs("models") {
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let density = shipped(&name);
        let table = match shipped_table(&name, &density) {
            Some(table) => table.first(300),
            None => random_table(&density, 300, &mut Random(7)),
        };
        agrees(&name, &density, &table, 2, 0.5);
    }
}

/// `tests/good/density`: each program is named after what it covers.
#[test]
fn small_programs() {
    for path in programs("tests/good/density") {
        let source = read(&path);
        let name = path.display().to_string();
        let density = density(&source, &constants_in(&source));
        let table = random_table(&density, 37, &mut Random(3));
        agrees(&name, &density, &table, 3, 1.0);
    }
}

/// `if` on a column against choices of values written out, statement by statement.
#[test]
fn a_condition_on_a_record_is_a_choice_of_values() {
    let columns = "
record { int<lower=0, upper=1> died; real<lower=0.1, upper=2> t; real<lower=-1, upper=1> x; }
parameters { real a; real b; }
model {
  a ~ normal(0, 1);
  b ~ normal(0, 1);
";
    for (statements, choices) in [
        (
            "if (died == 1) t ~ exponential(exp(a + b * x));
             else target += exponential_lccdf(t | exp(a + b * x));",
            "target += died == 1
               ? exponential_lpdf(t | exp(a + b * x)) : exponential_lccdf(t | exp(a + b * x));",
        ),
        // A term without a column counts once for each record that meets the condition.
        (
            "if (died) target += -square(b);",
            "target += died * -square(b);",
        ),
        (
            "real m = a; if (x > 0) { m += b * x; if (died) m *= 2; } t ~ lognormal(m, 1);",
            "real m = x > 0 ? (died ? 2 : 1) * (a + b * x) : a; t ~ lognormal(m, 1);",
        ),
        (
            "for (k in 1:3) { if (t > k * 0.5) break; target += -square(a) * k; }",
            "target += -square(a) * ((t <= 0.5) + 2 * (t <= 0.5 && t <= 1)
               + 3 * (t <= 0.5 && t <= 1 && t <= 1.5));",
        ),
        (
            "if (died && a > 0) target += a; else target += x * b;",
            "target += died && a > 0 ? a : x * b;",
        ),
    ] {
        same_density(
            &format!("{columns}{statements} }}"),
            &format!("{columns}{choices} }}"),
        );
    }
}

/// Each family with its arguments as parameters and its variate a column, a
/// parameter or a constant; then with its arguments as columns; then truncated.
#[test]
fn every_distribution_as_likelihood_and_as_prior() {
    for (index, family) in FAMILIES.iter().enumerate() {
        let name = family.name();
        let mut parameters = String::new();
        let mut names = Vec::new();
        for argument in family.arguments() {
            if argument.kind == Kind::Int {
                names.push("trials".to_string());
                continue;
            }
            let declared = parameter(name, argument.kind, argument.domain);
            parameters.push_str(&format!("  {declared} p_{};\n", argument.name));
            names.push(format!("p_{}", argument.name));
        }
        let list = names.join(", ");
        let trials = "int<lower=5, upper=9> trials;";
        if let Some((columns, y)) = column(family.variate(), family.support()) {
            let source = format!(
                "record {{ {columns} {trials} }}\nparameters {{\n{parameters}}}\nmodel {{ {y} y ~ {name}({list}); }}"
            );
            works(&format!("{name} as likelihood"), &source);
        }
        let (constants, unknown) = match family.variate() {
            Kind::Int => ("int y = 1;", String::new()),
            Kind::Ints(_) => ("array[3] int y = {2, 0, 5};", String::new()),
            kind => (
                "",
                format!("{} y;", parameter(name, kind, family.support())),
            ),
        };
        let source = format!(
            "transformed constants {{ {constants} int trials = 4; }}\nparameters {{ {unknown}\n{parameters}}}\nmodel {{ y ~ {name}({list}); }}"
        );
        works(&format!("{name} as prior"), &source);
        if sums_masses(index) {
            for ends in ["T[1, ]", "T[, 6]", "T[2, 6]"] {
                let source = format!(
                    "record {{ int<lower=2, upper=5> y; {trials} }}\nparameters {{\n{parameters}}}\nmodel {{ y ~ {name}({list}) {ends};
                     target += {name}_lcdf(2 | {list}) - {name}_lccdf(0 | {list}); }}"
                );
                works(&format!("{name} in {ends}"), &source);
            }
        }
        if !family.is_scalar() || family.variate() != Kind::Real {
            continue;
        }
        let ends = matches!(family.support(), Domain::Between(..) | Domain::From(_));
        if !ends && !names.is_empty() {
            let (low, high) = match family.arguments()[0].domain {
                Domain::Unit => (0.2, 0.8),
                _ => (0.3, 3.0),
            };
            let columns: String = names
                .iter()
                .map(|n| format!("real<lower={low}, upper={high}> {n};"))
                .collect();
            let source = format!(
                "record {{ {columns} }}\nparameters {{ {unknown} }}\nmodel {{ target += {name}_lpdf(y | {list}); }}"
            );
            works(&format!("{name} with private arguments"), &source);
        }
        if has_cdf(index) && !ends {
            let (columns, _) = column(family.variate(), family.support()).expect("a number");
            let lower = match family.support() {
                Domain::Positive | Domain::NonNegative => "0.005",
                _ => "-3.5 - x",
            };
            for (below, above) in [(lower, ""), ("", "6 + x"), ("p_shift - 4.1", "6")] {
                let source = format!(
                    "record {{ {columns} real<lower=0, upper=1> x; }}\nparameters {{\n{parameters} real<lower=0, upper=1> p_shift; }}\nmodel {{ y ~ {name}({list}) T[{below}, {above}];
                     target += {name}_lcdf(p_shift + 0.1 | {list}) + {name}_lccdf(y + p_shift | {list}) * {name}_cdf(1 | {list}); }}"
                );
                works(&format!("{name} in T[{below}, {above}]"), &source);
            }
        }
    }
}

/// A parameter that may stand for the argument or the variate.
fn parameter(family: &str, kind: Kind, domain: Domain) -> String {
    let bounds = match domain {
        Domain::Positive | Domain::NonNegative => "<lower=0.3, upper=4>",
        Domain::Unit => "<lower=0, upper=1>",
        Domain::Above(_) => "<lower=2.5, upper=9>",
        Domain::From(_) => "<lower=4.5, upper=9>",
        Domain::Between(..) => "<lower=-2, upper=2>",
        _ if family == "uniform" => "<lower=-9, upper=-2.5>",
        _ => "",
    };
    match (kind, domain) {
        (_, Domain::Simplex) => "simplex[3]".to_string(),
        (_, Domain::Ordered) => "ordered[3]".to_string(),
        (_, Domain::Covariance) => "cov_matrix[3]".to_string(),
        (_, Domain::CholeskyCovariance) => "cholesky_factor_cov[3]".to_string(),
        (_, Domain::Correlation) => "corr_matrix[3]".to_string(),
        (_, Domain::CholeskyCorrelation) => "cholesky_factor_corr[3]".to_string(),
        (Kind::Vector(_), _) => format!("vector{bounds}[3]"),
        (Kind::Row(_), _) => format!("row_vector{bounds}[3]"),
        _ => format!("real{bounds}"),
    }
}

/// Columns for a variate, and what declares it from them in the model.
fn column(kind: Kind, support: Domain) -> Option<(&'static str, &'static str)> {
    Some(match (kind, support) {
        (Kind::Ints(_), _) => (
            "int<lower=0, upper=5> a; int<lower=0, upper=3> b; int<lower=0, upper=9> c;",
            "array[3] int y = {a, b, c};",
        ),
        (Kind::Vector(_), Domain::Simplex) => (
            "real<lower=0.1, upper=0.4> a; real<lower=0.1, upper=0.4> b;",
            "vector[3] y = [a, b, 1 - a - b]';",
        ),
        (Kind::Vector(_), _) => ("vector<lower=-3, upper=3>[3] y;", ""),
        (Kind::Matrix(..), _) => return None,
        (Kind::Int, Domain::Binary) => ("int<lower=0, upper=1> y;", ""),
        (Kind::Int, Domain::Categories(_, 0)) => ("int<lower=1, upper=3> y;", ""),
        (Kind::Int, Domain::Categories(..)) => ("int<lower=1, upper=4> y;", ""),
        (Kind::Int, _) => ("int<lower=0, upper=5> y;", ""),
        (_, Domain::Positive | Domain::NonNegative) => ("real<lower=0.01, upper=5> y;", ""),
        (_, Domain::Unit) => ("real<lower=0.01, upper=0.99> y;", ""),
        (_, Domain::From(_)) => ("real<lower=4.5, upper=9> y;", ""),
        (_, Domain::Between(..)) => ("real<lower=-2, upper=2> y;", ""),
        _ => ("real<lower=-3, upper=3> y;", ""),
    })
}

/// A statement over containers is the sum of the statements over their elements,
/// also where all of it is public and computed at once.
#[test]
fn vectorised_statements_are_sums() {
    let several = |kind: Kind, declared: &str| match kind {
        Kind::Real if declared.starts_with("real") => declared.replacen("real", "array[2] real", 1),
        Kind::Vector(_) => format!("array[2] {declared}"),
        _ => String::new(),
    };
    for family in FAMILIES {
        let name = family.name();
        let suffix = family.density_suffix();
        let variate = match family.variate() {
            Kind::Int => "array[2] int y = {1, 1};".to_string(),
            Kind::Ints(_) => "array[2, 3] int y = {{2, 0, 5}, {1, 1, 4}};".to_string(),
            _ => String::new(),
        };
        let mut parameters = String::new();
        if variate.is_empty() {
            let one = parameter(name, family.variate(), family.support());
            let two = several(family.variate(), &one);
            let declared = if two.is_empty() { one } else { two };
            parameters.push_str(&format!("{declared} y;"));
        }
        let indexed = |stands: bool, name: &str, i: usize| {
            if stands {
                format!("{name}[{i}]")
            } else {
                name.to_string()
            }
        };
        // Which of the variate and the arguments are containers.
        let mut all = vec![(
            "y".to_string(),
            !matches!(family.variate(), Kind::Matrix(..)),
        )];
        for argument in family.arguments() {
            let p = format!("p_{}", argument.name);
            if argument.kind == Kind::Int {
                all.push(("trials".into(), false));
                continue;
            }
            let one = parameter(name, argument.kind, argument.domain);
            let two = several(argument.kind, &one);
            if let Kind::Row(_) = argument.kind {
                parameters.push_str(&format!("matrix[2, 3] {p};"));
                all.push((p, true));
                continue;
            }
            let many = !two.is_empty() && argument.kind != Kind::Vector("P");
            parameters.push_str(&format!("{} {p};", if many { two } else { one }));
            all.push((p, many));
        }
        let call = |at: Option<usize>| {
            let parts: Vec<String> = all
                .iter()
                .map(|(n, many)| indexed(*many && at.is_some(), n, at.unwrap_or(1)))
                .collect();
            format!("{name}_{suffix}({} | {})", parts[0], parts[1..].join(", "))
        };
        if matches!(family.variate(), Kind::Matrix(..)) {
            continue;
        }
        let source = format!(
            "transformed constants {{ {variate} int trials = 4; }}\nparameters {{ {parameters} }}
             model {{ target += {}; target += -({} + {}); }}",
            call(None),
            call(Some(1)),
            call(Some(2))
        );
        let density = density(&source, &Constants::none());
        let mut random = Random(9);
        for _ in 0..3 {
            let theta = random.point(density.dimension(), 0.7);
            let (value, gradient) = density.pull_back(&theta, &[]);
            let (jacobian, of_jacobian) = without_model(&source, &theta);
            near(name, "the difference", value, jacobian, 1e-10);
            for (g, j) in gradient.iter().zip(of_jacobian) {
                near(name, "its gradient", *g, j, 1e-9);
            }
        }
    }
}

/// The log Jacobian and its gradient: the program with an empty model.
fn without_model(source: &str, theta: &[f64]) -> (f64, Vec<f64>) {
    let head = source.split("model {").next().expect("a head");
    let density = density(&format!("{head} model {{ }}"), &Constants::none());
    density.pull_back(theta, &[])
}

#[test]
fn every_scalar_function_at_every_stage() {
    for function in Unary::ALL {
        let name = function.definition().name;
        // `is_nan` and its like take one number.
        let takes_vectors = lookup(name).is_some_and(|f| {
            f.signatures
                .iter()
                .any(|s| s.result(&[Type::VECTOR]).is_ok())
        });
        if !takes_vectors {
            continue;
        }
        // `y` and what is near it by the factor 0.8.
        let (low, high) = match name {
            "log1m_exp" => (-2.0, -0.3),
            "acosh" => (1.5, 2.5),
            _ => (0.15, 0.85),
        };
        let source = format!(
            "record {{ real<lower=0.8, upper=0.99> x; real<lower={low}, upper={high}> y; }}
             transformed record {{ real r = {name}(y); }}
             parameters {{ real<lower={low}, upper={high}> a; vector<lower={low}, upper={high}>[3] v; }}
             transformed parameters {{ vector[3] fv = {name}(v); }}
             model {{ target += {name}(a) + sum(fv); target += {name}(x * a) + r * {name}(v[2]); target += fv[3] * {name}(v[1] * x); }}"
        );
        works(name, &source);
    }
    for call in [
        "pow(A, B)",
        "A ^ B",
        "A .^ B",
        "A ^ 2",
        "A ^ 3",
        "A ^ 0.5",
        "A ^ -1",
        "2 ^ A",
        "fmin(A, B)",
        "fmax(A, B)",
        "log_sum_exp(A, B)",
        "log_diff_exp(A + 2, B)",
        "multiply_log(A, B)",
        "lmultiply(A, B)",
        "lbeta(A, B)",
        "lchoose(A + 5, B)",
        "hypot(A, B)",
        "fdim(A, B)",
        "A * B",
        "A / B",
        "A - B",
        "A + B",
        "-A * !(B > 0.5)",
        "A < B ? A : B * A",
        "(A <= 0.5 && B > 0.3) || A >= B ? exp(A) : A",
        "A == B ? A : B",
        "A != B ? A : B",
        "min([A, B, 0.4])",
        "max({A, B, 0.4})",
        "prod([A, B, 2])",
        "mean([A, B]')",
        "dot_self([A, B]')",
        "log_sum_exp([A, B, A * B])",
        "dot_product([A, B], [B, 2])",
        "[A, B] * [B, 1]'",
        "sum([A, B]' * [B, A])",
    ] {
        // Each operand constant, per record, unknown, or both.
        let operands = [
            "0.7",
            "x",
            "a",
            "(a * x)",
            "(x * a + y * b)",
            "exp(b * x - 1)",
        ];
        let mut terms = String::new();
        for left in operands {
            for right in operands {
                let term = call
                    .replace('A', left)
                    .replace('B', &other_variables(right));
                terms.push_str(&format!("target += {term};\n"));
            }
        }
        let source = format!(
            "record {{ real<lower=0.8, upper=0.99> x; real<lower=0.2, upper=0.7> y; }}
             parameters {{ real<lower=0.15, upper=0.85> a; real<lower=0.1, upper=0.5> b; real<lower=0.3, upper=0.9> c; }}
             model {{ {terms} }}"
        );
        works(call, &source);
    }
}

/// The same operand made of other variables.
fn other_variables(operand: &str) -> String {
    operand
        .replace("exp(b * x", "exp(c * y")
        .replace("x * a", "y * c")
        .replace("a * x", "c * y")
        .replace("y * b", "x * b")
}

/// A block is 256 records: values and gradients of a record do not depend on
/// where its block begins or ends.
#[test]
fn blocks_leave_no_trace() {
    let density = shipped("radon_mn-radon_hierarchical_intercept_noncentered");
    let mut random = Random(11);
    let all = random_table(&density, 1000, &mut random);
    let theta = random.point(density.dimension(), 0.5);
    let (values, _) = log_likelihoods(&density, &all, &theta);
    let gradients = record_gradients(&density, &all, &theta);
    for rows in [0, 1, 255, 256, 257] {
        let part = all.first(rows);
        assert_eq!(log_likelihoods(&density, &part, &theta).0, values[..rows]);
        assert_eq!(
            record_gradients(&density, &part, &theta),
            gradients[..rows * theta.len()]
        );
    }
    // The last record alone, which stood at position 231 of its block.
    let last = Table {
        columns: all.columns.iter().map(|c| c[999..].to_vec()).collect(),
        rows: 1,
    };
    assert_eq!(log_likelihoods(&density, &last, &theta).0, values[999..]);
}

fn works(name: &str, source: &str) {
    let density = density(source, &Constants::none());
    let table = random_table(&density, 23, &mut Random(5));
    agrees(name, &density, &table, 2, 1.0);
}

fn agrees(name: &str, density: &Density, table: &Table, points: usize, size: f64) {
    let mut random = Random(20_240_229);
    let d = density.dimension();
    for _ in 0..points {
        let theta = random.point(d, size);
        let (values, _) = log_likelihoods(density, table, &theta);
        let gradients = record_gradients(density, table, &theta);
        let (tiled_values, tiled) = density.tiled_gradients(&theta, &table.columns, table.rows);
        assert_eq!(
            (values.len(), gradients.len()),
            (table.rows, table.rows * d)
        );
        assert_eq!(
            (tiled_values.len(), tiled.len()),
            (table.rows, table.rows * d),
            "{name}"
        );
        for i in 0..table.rows {
            near(
                name,
                "value",
                values[i],
                tiled_values[i],
                1e-12 * tiled_values[i].abs().max(1.0),
            );
            let (own, other) = (&gradients[i * d..(i + 1) * d], &tiled[i * d..(i + 1) * d]);
            let scale = other.iter().fold(1.0, |m: f64, g| m.max(g.abs()));
            for j in 0..d {
                // burn multiplies the zero from a branch not taken by what
                // stands in it; differences judge those alone.
                let judged_alone = name.contains("branches_not_taken")
                    || FAMILIES
                        .iter()
                        .any(|f| name.starts_with(&format!("{} ", f.name())));
                if other[j].is_nan() && judged_alone {
                    continue;
                }
                near(
                    name,
                    &format!("record {i}, coordinate {j}"),
                    own[j],
                    other[j],
                    1e-12 * scale,
                );
            }
        }

        let total = gradient(density, table, &theta);
        let (log_prior, prior) = density.pull_back(&theta, &[]);
        near(
            name,
            "log prior",
            log_prior,
            density.log_prior(&theta),
            1e-13 * log_prior.abs().max(1.0),
        );
        let scale = total.iter().fold(1.0, |m: f64, g| m.max(g.abs()));
        for j in 0..d {
            let sum: f64 = (0..table.rows).map(|i| gradients[i * d + j]).sum();
            let magnitude: f64 = (0..table.rows).map(|i| gradients[i * d + j].abs()).sum();
            near(
                name,
                &format!("sum, coordinate {j}"),
                total[j],
                prior[j] + sum,
                1e-12 * scale.max(magnitude),
            );
        }

        for j in 0..d {
            let at = |step: f64| {
                let mut moved = theta.clone();
                moved[j] += step;
                log_density(density, table, &moved).iter().sum::<f64>()
            };
            // Fourth-order central differences; the short step for functions
            // with a kink, which a long one may cross at some record.
            let difference =
                |h: f64| (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
            let mut numeric = difference(1e-3);
            if (numeric - total[j]).abs() > 1e-6 * scale {
                numeric = difference(1e-5);
            }
            near(
                name,
                &format!("difference along {j}"),
                total[j],
                numeric,
                1e-6 * scale,
            );
        }
    }
}

fn near(name: &str, what: &str, ours: f64, theirs: f64, tolerance: f64) {
    assert!(
        ours == theirs || (ours - theirs).abs() <= tolerance,
        "{name}: {what} is {ours}, expected {theirs}"
    );
}
