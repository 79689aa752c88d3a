//! Transforms of constrained parameters, against Stan's (`tests/fixtures/transforms`)
//! and against their own definitions; and what declared types promise of
//! variables that are computed.

use dpm::Constants;
use dpm::testing::check::Joint;
use dpm::testing::density::Density;
use dpm::testing::model::Transform;
use serde_json::Value;

use crate::corpus::{read, root};
use crate::evaluation::{Random, Table, bind, density, log_likelihoods};

/// Values, log Jacobian and its gradient agree with Stan's at every point of
/// the fixture: a wrong formula, order of coordinates or constant fails here.
#[test]
fn agrees_with_stan() {
    let cases: Value =
        serde_json::from_str(&read(&root().join("tests/fixtures/transforms/stan.json")))
            .expect("JSON");
    for (case, fixture) in cases.as_object().expect("cases") {
        let text = |key: &str| fixture[key].as_str().expect("text");
        let source = format!(
            "constants {{{}}}\nparameters {{{}}}\nmodel {{ }}",
            text("declarations"),
            text("parameters")
        );
        let constants = Constants::from_json(&fixture["constants"].to_string()).expect("JSON");
        let density = density(&source, &constants);
        let names: Vec<&str> = fixture["names"]
            .as_array()
            .expect("names")
            .iter()
            .map(|v| v.as_str().expect("a name"))
            .collect();
        assert_eq!(density.output_names().collect::<Vec<_>>(), names);
        for (k, point) in fixture["points"]
            .as_array()
            .expect("points")
            .iter()
            .enumerate()
        {
            let u = numbers(&point["u"]);
            assert_eq!(density.dimension(), u.len(), "{case}");
            let [_, jacobian] = density.prior_and_jacobian(&u);
            let expected = point["log_jacobian"].as_f64().expect("a number");
            assert!(
                (jacobian - expected).abs() <= 1e-12 * (1.0 + expected.abs()),
                "{case} point {k}: log Jacobian {jacobian}, Stan has {expected}"
            );
            let constrained = density.outputs(&u);
            let stans = numbers(&point["constrained"]);
            for ((name, a), b) in names.iter().zip(&constrained).zip(&stans) {
                assert!(
                    (a - b).abs() <= 1e-13 * (1.0 + b.abs()),
                    "{case} point {k}: {name} is {a}, Stan has {b}"
                );
            }
            let (_, gradient) = density.pull_back(&u, &[]);
            for (j, (a, b)) in gradient.iter().zip(numbers(&point["gradient"])).enumerate() {
                assert!(
                    (a - b).abs() <= 1e-11 * (1.0 + b.abs()),
                    "{case} point {k}: gradient[{j}] is {a}, Stan has {b}"
                );
            }
            round_trip(&density, &u, 1e-8);
        }
    }
}

/// Unconstraining the constrained values gives the point back.
fn round_trip(density: &Density, u: &[f64], tolerance: f64) {
    let back = unconstrain(density, u).expect("values of a point are inside");
    for parameter in &density.model().parameters {
        let own = parameter.offset..parameter.offset + parameter.free_length;
        let (mut u, back) = (u[own.clone()].to_vec(), &back[own]);
        if matches!(parameter.transform, Transform::Joint(Joint::UnitVector, _)) {
            // Its length is not known to the constrained value.
            for block in u.chunks_mut(parameter.shape.sizes.last().copied().unwrap_or(1)) {
                let norm = block.iter().map(|v| v * v).sum::<f64>().sqrt();
                block.iter_mut().for_each(|v| *v /= norm);
            }
        }
        for (a, b) in u.iter().zip(back) {
            assert!(
                (a - b).abs() <= tolerance * (1.0 + a.abs()),
                "{}: {a} came back as {b}",
                parameter.name
            );
        }
    }
}

fn unconstrain(density: &Density, u: &[f64]) -> Result<Vec<f64>, String> {
    let values = values_by_storage(density, u);
    density.unconstrain(|name, i| {
        let (_, v) = values
            .iter()
            .find(|(n, _)| n == name)
            .ok_or("no such parameter")?;
        Ok(v[i])
    })
}

/// Constrained values of each parameter, in storage order.
fn values_by_storage(density: &Density, u: &[f64]) -> Vec<(String, Vec<f64>)> {
    let mut flat = density.outputs(u).into_iter();
    density
        .model()
        .outputs
        .iter()
        .map(|output| {
            let mut values = vec![f64::NAN; output.shape.length()];
            for position in output.shape.column_major_order() {
                values[position] = flat.next().expect("as many values as names");
            }
            (output.name.clone(), values)
        })
        .collect()
}

fn numbers(json: &Value) -> Vec<f64> {
    let list = json.as_array().expect("a list");
    list.iter().map(|v| v.as_f64().expect("a number")).collect()
}

/// One parameter of every kind; the coordinates of the constrained set that
/// determine the rest.
const KINDS: &[(&str, &str)] = &[
    ("lower", "vector<lower=-1>[2] x;"),
    ("upper", "vector<upper=3>[2] x;"),
    ("interval", "vector<lower=-1, upper=3>[2] x;"),
    ("affine", "vector<offset=2, multiplier=0.3>[2] x;"),
    ("ordered", "ordered[4] x;"),
    ("positive_ordered", "positive_ordered[4] x;"),
    ("simplex", "simplex[5] x;"),
    ("unit_vector", "unit_vector[4] x;"),
    ("sum_to_zero_vector", "sum_to_zero_vector[4] x;"),
    ("cholesky_factor_corr", "cholesky_factor_corr[4] x;"),
    ("cholesky_factor_cov", "cholesky_factor_cov[4, 3] x;"),
    ("corr_matrix", "corr_matrix[4] x;"),
    ("cov_matrix", "cov_matrix[3] x;"),
    ("array of simplex", "array[2] simplex[3] x;"),
    ("array of cov_matrix", "array[2] cov_matrix[2] x;"),
];

fn of_kind(declaration: &str) -> Density {
    density(
        &format!("parameters {{ {declaration} }}\nmodel {{ }}"),
        &Constants::none(),
    )
}

/// The elements, by name, that a constrained value is determined by: those that
/// the volume element of its set is measured in.
fn is_free(kind: &str, index: &[usize], last: usize) -> bool {
    match kind {
        "simplex" | "array of simplex" => *index.last().expect("an index") < last,
        "cholesky_factor_corr" | "corr_matrix" => index[0] > index[1],
        "cholesky_factor_cov" => index[0] >= index[1],
        "cov_matrix" => index[0] >= index[1],
        "array of cov_matrix" => index[1] >= index[2],
        _ => true,
    }
}

/// The log Jacobian is the logarithm of the determinant of the map from the
/// unconstrained to the free coordinates, differentiated numerically. (The unit
/// vector's is not a determinant, and the vector that sums to zero has an
/// isometry: their own tests follow.)
#[test]
fn the_log_jacobian_is_that_of_the_map() {
    for &(kind, declaration) in KINDS {
        if matches!(kind, "unit_vector" | "sum_to_zero_vector") {
            continue;
        }
        let density = of_kind(declaration);
        let shape = density.model().outputs[0].shape.clone();
        let last = *shape.sizes.last().expect("a size");
        let free: Vec<usize> = shape
            .indices()
            .iter()
            .enumerate()
            .filter(|(_, index)| is_free(kind, index, last))
            .map(|(k, _)| k)
            .collect();
        assert_eq!(free.len(), density.dimension(), "{kind}");
        let mut random = Random(7);
        for _ in 0..3 {
            let u = random.point(density.dimension(), 1.5);
            let matrix = differences(&density, &u, &free);
            let (_, log_determinant) = eliminate(matrix);
            let [_, jacobian] = density.prior_and_jacobian(&u);
            assert!(
                (jacobian - log_determinant).abs() <= 1e-7 * (1.0 + jacobian.abs()),
                "{kind}: {jacobian}, numerically {log_determinant}"
            );
        }
    }
}

/// d x_free / d u by central differences of fourth order.
fn differences(density: &Density, u: &[f64], free: &[usize]) -> Vec<Vec<f64>> {
    let h = 1e-3;
    let at = |j: usize, step: f64| {
        let mut moved = u.to_vec();
        moved[j] += step;
        values_by_storage(density, &moved).remove(0).1
    };
    (0..u.len())
        .map(|j| {
            let (a, b) = (at(j, h), at(j, -h));
            let (c, d) = (at(j, 2.0 * h), at(j, -2.0 * h));
            free.iter()
                .map(|&k| (8.0 * (a[k] - b[k]) - (c[k] - d[k])) / (12.0 * h))
                .collect()
        })
        .collect()
}

/// Sign and log absolute determinant, by elimination with pivots.
fn eliminate(mut m: Vec<Vec<f64>>) -> (f64, f64) {
    let n = m.len();
    let (mut sign, mut log) = (1.0, 0.0);
    for k in 0..n {
        let pivot = (k..n)
            .max_by(|&i, &j| m[i][k].abs().total_cmp(&m[j][k].abs()))
            .expect("a row");
        if pivot != k {
            m.swap(pivot, k);
            sign = -sign;
        }
        sign *= m[k][k].signum();
        log += m[k][k].abs().ln();
        let (above, below) = m.split_at_mut(k + 1);
        let pivot = &above[k];
        for row in below {
            let factor = row[k] / pivot[k];
            for (x, p) in row.iter_mut().zip(pivot).skip(k) {
                *x -= factor * p;
            }
        }
    }
    (sign, log)
}

/// A unit vector's weight makes the coordinates independent standard normals,
/// whose direction is uniform.
#[test]
fn a_unit_vector_has_length_one_and_a_normal_weight() {
    let density = of_kind("unit_vector[4] x;");
    let u = Random(3).point(4, 2.0);
    let x = density.outputs(&u);
    let length: f64 = x.iter().map(|v| v * v).sum();
    assert!((length - 1.0).abs() < 1e-15);
    assert!((x[0] / x[1] - u[0] / u[1]).abs() < 1e-14);
    let [_, jacobian] = density.prior_and_jacobian(&u);
    let weight = -0.5 * u.iter().map(|v| v * v).sum::<f64>();
    assert!((jacobian - weight).abs() < 1e-14);
    // Zero has no direction, and no density.
    let [_, nowhere] = density.prior_and_jacobian(&[0.0; 4]);
    assert_eq!(nowhere, f64::NEG_INFINITY);
    assert!(density.outputs(&[0.0; 4]).iter().all(|v| v.is_finite()));
}

/// The vector that sums to zero keeps lengths: no Jacobian is due.
#[test]
fn a_vector_that_sums_to_zero_is_an_isometry() {
    let density = of_kind("sum_to_zero_vector[6] x;");
    let mut random = Random(5);
    let (u, v) = (random.point(5, 3.0), random.point(5, 3.0));
    let (x, y) = (density.outputs(&u), density.outputs(&v));
    assert!(x.iter().sum::<f64>().abs() < 1e-14);
    let distance =
        |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    assert!((distance(&x, &y) - distance(&u, &v)).abs() < 1e-12);
    assert_eq!(density.prior_and_jacobian(&u)[1], 0.0);
}

/// Far out, where exp over- and underflows: a number or minus infinity, never
/// "not a number", and gradients that are numbers wherever the density is one.
#[test]
fn extremes_are_numbers() {
    for &(kind, declaration) in KINDS {
        let flat = of_kind(declaration);
        let weighted = density(
            &format!(
                "parameters {{ {declaration} }}\nmodel {{ {} }}",
                if declaration.contains("array") {
                    "for (k in 1:2) to_vector(x[k]) ~ normal(0, 1);"
                } else {
                    "to_vector(x) ~ normal(0, 1);"
                }
            ),
            &Constants::none(),
        );
        let d = flat.dimension();
        let mut points = vec![vec![800.0; d], vec![-800.0; d], vec![0.0; d], vec![40.0; d]];
        for size in [800.0, 1e4, 50.0] {
            points.extend((0..10).map(|k| Random(k).point(d, size)));
        }
        for j in 0..d {
            for far in [800.0, -800.0] {
                let mut point = vec![0.1; d];
                point[j] = far;
                points.push(point);
            }
        }
        for density in [&flat, &weighted] {
            for point in &points {
                let (value, gradient) = density.pull_back(point, &[]);
                assert!(!value.is_nan() && value < f64::INFINITY, "{kind} {point:?}");
                if value.is_finite() {
                    assert!(gradient.iter().all(|g| g.is_finite()), "{kind} {point:?}");
                }
                let outputs = density.outputs(point);
                assert!(outputs.iter().all(|x| !x.is_nan()), "{kind} {point:?}");
            }
        }
    }
}

/// Messages tell the violated constraints apart.
#[test]
fn violations_are_explained() {
    let cases: &[(&str, &[f64], &str)] = &[
        (
            "real<lower=0> x;",
            &[-1.0],
            "`x` is -1, but must be above 0",
        ),
        (
            "vector<lower=0, upper=1>[2] x;",
            &[0.5, 1.0],
            "`x[2]` is 1, but must be strictly between 0 and 1",
        ),
        ("real<upper=2> x;", &[2.0], "`x` is 2, but must be below 2"),
        (
            "ordered[3] x;",
            &[1.0, 3.0, 2.0],
            "`x` is not an `ordered`: element 3 is 2, not above element 2, which is 3",
        ),
        (
            "positive_ordered[2] x;",
            &[-1.0, 3.0],
            "its first element is -1, below 0",
        ),
        (
            "array[2] simplex[2] x;",
            &[0.5, 0.5, 0.5, 0.6],
            "`x[2]` is not a `simplex`: its elements sum to 1.1, not 1",
        ),
        (
            "simplex[2] x;",
            &[0.0, 1.0],
            "`x` lies on the boundary of what a `simplex` may be",
        ),
        ("simplex[2] x;", &[-0.5, 1.5], "element 1 is -0.5, below 0"),
        (
            "unit_vector[2] x;",
            &[1.0, 1.0],
            "its squares sum to 2, not 1",
        ),
        (
            "sum_to_zero_vector[2] x;",
            &[1.0, 1.0],
            "its elements sum to 2, not 0",
        ),
        (
            "cholesky_factor_cov[2] x;",
            &[1.0, 0.0, 0.5, 1.0],
            "element [1, 2], above the diagonal, is 0.5, not 0",
        ),
        (
            "cholesky_factor_cov[2] x;",
            &[1.0, 0.0, 0.0, -1.0],
            "element 2 of its diagonal is -1, not positive",
        ),
        (
            "cholesky_factor_corr[2] x;",
            &[1.0, 0.5, 0.0, 0.5],
            "the squares of its row 2 sum to 0.5, not 1",
        ),
        (
            "corr_matrix[2] x;",
            &[1.0, 0.5, 0.5, 2.0],
            "element 2 of its diagonal is 2, not 1",
        ),
        (
            "corr_matrix[2] x;",
            &[1.0, 2.0, 2.0, 1.0],
            "it is not positive definite",
        ),
        (
            "cov_matrix[2] x;",
            &[1.0, 0.5, 0.4, 2.0],
            "it is not symmetric: element [2, 1] is 0.5, and [1, 2] is 0.4",
        ),
        ("cov_matrix[1] x;", &[f64::NAN], "it holds NaN"),
    ];
    for (declaration, values, said) in cases {
        let density = of_kind(declaration);
        let message = density
            .unconstrain(|_, i| Ok(values[i]))
            .expect_err("a violation");
        assert!(message.contains(said), "{declaration}: {message}");
    }
    // Within Stan's tolerance of 1e-8.
    let density = of_kind("simplex[2] x;");
    let nearly = [0.4, 0.6 + 5e-9];
    assert!(density.unconstrain(|_, i| Ok(nearly[i])).is_ok());
}

/// A transformed parameter that breaks its declaration has no density, and a
/// gradient that is a number; a constant that does so is refused. The two are
/// written apart: they must agree on every value here.
#[test]
fn computed_variables_keep_their_promises() {
    let good_and_bad: &[(&str, &[f64], bool)] = &[
        ("vector<lower=0, upper=2>[2]", &[0.0, 2.0], true),
        ("vector<lower=0, upper=2>[2]", &[-1e-3, 2.0], false),
        ("vector<lower=0, upper=2>[2]", &[0.0, 2.001], false),
        ("ordered[3]", &[1.0, 2.0, 3.0], true),
        ("ordered[3]", &[1.0, 1.0, 3.0], false),
        ("array[2] ordered[2]", &[5.0, 6.0, 1.0, 2.0], true),
        ("array[2] ordered[2]", &[5.0, 6.0, 2.0, 1.0], false),
        ("positive_ordered[2]", &[0.0, 1.0], true),
        ("positive_ordered[2]", &[-0.1, 1.0], false),
        ("simplex[3]", &[0.0, 0.25, 0.75], true),
        ("simplex[3]", &[-0.25, 0.5, 0.75], false),
        ("simplex[3]", &[0.25, 0.25, 0.5001], false),
        ("array[2] simplex[2]", &[0.5, 0.5, 0.4, 0.6], true),
        ("array[2] simplex[2]", &[0.5, 0.4, 0.5, 0.6], false),
        ("unit_vector[2]", &[0.6, 0.8], true),
        ("unit_vector[2]", &[0.6, 0.81], false),
        ("sum_to_zero_vector[3]", &[1.0, 2.0, -3.0], true),
        ("sum_to_zero_vector[3]", &[1.0, 2.0, -3.1], false),
        ("cholesky_factor_cov[2]", &[1.0, 3.0, 0.0, 2.0], true),
        ("cholesky_factor_cov[2]", &[1.0, 3.0, 0.1, 2.0], false),
        ("cholesky_factor_cov[2]", &[1.0, 3.0, 0.0, -2.0], false),
        ("cholesky_factor_corr[2]", &[1.0, 0.6, 0.0, 0.8], true),
        ("cholesky_factor_corr[2]", &[1.0, 0.6, 0.0, 0.9], false),
        ("corr_matrix[2]", &[1.0, -0.5, -0.5, 1.0], true),
        ("corr_matrix[2]", &[1.0, -0.5, -0.5, 1.1], false),
        ("corr_matrix[2]", &[1.0, 1.5, 1.5, 1.0], false),
        ("cov_matrix[2]", &[4.0, 1.0, 1.0, 2.0], true),
        ("cov_matrix[2]", &[4.0, 1.0, 1.1, 2.0], false),
        (
            "cov_matrix[3]",
            &[4.0, 2.0, 0.6, 2.0, 2.0, 0.5, 0.6, 0.5, 3.0],
            true,
        ),
        (
            // Each pair is a covariance matrix, the three together are not.
            "cov_matrix[3]",
            &[1.0, 0.9, 0.9, 0.9, 1.0, -0.9, 0.9, -0.9, 1.0],
            false,
        ),
        ("cov_matrix[1]", &[0.0], false),
    ];
    for &(ty, values, fits) in good_and_bad {
        let size = ty.trim_end_matches(']').rsplit('[').next().expect("a size");
        let plain = match (
            ty.contains("matrix[") || ty.contains("cholesky"),
            ty.contains("array"),
        ) {
            (true, _) => format!("matrix[{size}, {size}]"),
            (false, true) => format!("array[2] vector[{size}]"),
            (false, false) => format!("vector[{size}]"),
        };
        let density = density(
            &format!(
                "parameters {{ {plain} x; }}\ntransformed parameters {{ {ty} t = x; }}\nmodel {{ }}"
            ),
            &Constants::none(),
        );
        let (value, gradient) = density.pull_back(values, &[]);
        let expected = if fits { 0.0 } else { f64::NEG_INFINITY };
        assert_eq!(value, expected, "{ty} {values:?}");
        assert!(gradient.iter().all(|g| g.is_finite()), "{ty} {values:?}");

        let number: usize = size.parse().expect("a number");
        let rows: Vec<Vec<f64>> = if plain.starts_with("matrix") {
            // Columns of the storage are columns of the matrix.
            (0..number)
                .map(|i| (0..number).map(|j| values[i + j * number]).collect())
                .collect()
        } else {
            values.chunks(number).map(<[f64]>::to_vec).collect()
        };
        let mut constants = Constants::none();
        if plain.starts_with("vector") {
            constants.insert("t", values.to_vec());
        } else {
            constants.insert("t", serde_json::json!(rows));
        }
        let bound = bind(
            &format!("constants {{ {ty} t; }}\nparameters {{ real x; }}\nmodel {{ }}"),
            &constants,
        );
        assert_eq!(bound.is_ok(), fits, "{ty} {values:?}");
    }
}

/// A record whose transformed column breaks its bounds has likelihood zero, and
/// what it would pick stays inside the container.
#[test]
fn a_record_that_breaks_a_promise_counts_for_nothing() {
    let density = density(
        "record { int<lower=0, upper=5> y; }
         transformed record { int<lower=1, upper=3> g = y; real<upper=2.5> z = y; }
         parameters { vector[3] a; }
         model { target += a[g] + z; }",
        &Constants::none(),
    );
    let table = Table {
        columns: vec![(0..=5).map(f64::from).collect()],
        rows: 6,
    };
    let (values, constants) = log_likelihoods(&density, &table, &[10.0, 20.0, 30.0]);
    assert_eq!(values, [10.0, 10.0, 20.0, 30.0, 30.0, 30.0]);
    let never = f64::NEG_INFINITY;
    assert_eq!(constants, [never, 1.0, 2.0, never, never, never]);
}
