//! Derived sensitivity against the largest gradients that can be found.
//!
//! For every program here that has a bound, records at random within the declared
//! bounds (at corners half of the time) and parameters at random on several scales,
//! then a climb from the best of them: no record's gradient may be longer than the
//! bound, and for the regressions named here the bound is at most twice the longest
//! that was found. A bound that is too small by rounding alone would not be seen
//! here; `model/sensitivity/range.rs` tests the rounding. There is no false alarm: a
//! gradient longer than the bound is a mistake.

use dpm::Constants;
use dpm::testing::density::Density;

use crate::corpus::{programs, read, root};
use crate::evaluation::*;

/// Floating-point gradients are this accurate, relatively.
const ROUNDING: f64 = 1e-9;

/// How hard to look.
struct Effort {
    /// Points of the parameters, each with a block of records.
    points: usize,
    climbs: usize,
    /// Steps of a climb.
    steps: usize,
}

const QUICK: Effort = Effort {
    points: 60,
    climbs: 2,
    steps: 60,
};

/// More than 10^6 pairs of a record and a point.
const THOROUGH: Effort = Effort {
    points: 3200,
    climbs: 8,
    steps: 120,
};

const RECORDS: usize = 256;

/// The longest gradient found.
fn longest(density: &Density, effort: &Effort, random: &mut Random) -> f64 {
    let dimension = density.dimension();
    let mut found: Vec<(f64, Vec<f64>, Vec<f64>)> = Vec::new();
    for k in 0..effort.points {
        let size = [0.3, 1.0, 3.0, 10.0, 40.0][k % 5];
        let theta = random.point(dimension, size);
        let table = records(density, random);
        found.push(best_of(density, table, theta));
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut longest = found[0].0;
    for start in found.into_iter().take(effort.climbs) {
        let mut best = start;
        for step in 0..effort.steps {
            // Wide steps first, narrow ones last, and now and then one coordinate.
            let width = 3.0 * 0.003f64.powf(step as f64 / effort.steps as f64);
            let mut theta = best.2.clone();
            let only = (random.uniform() * dimension as f64) as usize;
            let alone = random.uniform() < 0.5;
            for (j, t) in theta.iter_mut().enumerate() {
                if !alone || j == only {
                    *t += width * (2.0 * random.uniform() - 1.0);
                }
            }
            let table = near(density, &best.1, random);
            let next = best_of(density, table, theta);
            if next.0 > best.0 {
                best = next;
            }
        }
        longest = longest.max(best.0);
    }
    longest
}

/// The record with the longest gradient: its length, the record, the point.
fn best_of(density: &Density, table: Table, theta: Vec<f64>) -> (f64, Vec<f64>, Vec<f64>) {
    let gradients = record_gradients(density, &table, &theta);
    let length = |g: &[f64]| {
        let square: f64 = g.iter().map(|x| x * x).sum();
        // Where an exponential overflows there is nothing to compare.
        if square.is_finite() {
            square.sqrt()
        } else {
            0.0
        }
    };
    let lengths: Vec<f64> = gradients.chunks(theta.len()).map(length).collect();
    let best = (0..lengths.len())
        .max_by(|&a, &b| lengths[a].total_cmp(&lengths[b]))
        .expect("records");
    let record = table.columns.iter().map(|c| c[best]).collect();
    (lengths[best], record, theta)
}

/// Records within the bounds; every other cell at an end.
fn records(density: &Density, random: &mut Random) -> Table {
    let mut table = random_table(density, RECORDS, random);
    for (values, column) in table.columns.iter_mut().zip(&density.model().columns) {
        for value in values {
            let u = random.uniform();
            match (column.lower, column.upper) {
                (Some(lower), _) if u < 0.25 => *value = lower,
                (_, Some(upper)) if u > 0.75 => *value = upper,
                _ => {}
            }
        }
    }
    table
}

/// Records like this one, one or two cells of each changed.
fn near(density: &Density, record: &[f64], random: &mut Random) -> Table {
    let fresh = records(density, random);
    let columns = fresh.columns.into_iter().zip(record);
    let mut columns: Vec<Vec<f64>> = columns
        .map(|(fresh, &own)| {
            let keep = 1.0 - 1.5 / record.len() as f64;
            fresh
                .into_iter()
                .map(|value| if random.uniform() < keep { own } else { value })
                .collect()
        })
        .collect();
    for (column, &own) in columns.iter_mut().zip(record) {
        column[0] = own;
    }
    Table {
        columns,
        rows: RECORDS,
    }
}

/// The bound and the longest found; `tight`: the bound may be twice that, no more.
fn holds(name: &str, density: &Density, effort: &Effort, tight: bool) {
    let sensitivity = density.model().sensitivity();
    let bound = sensitivity
        .record
        .unwrap_or_else(|missing| panic!("{name} has no bound: {missing}"));
    let longest = longest(density, effort, &mut Random(11));
    println!(
        "{name}: bound {:.6e}, longest found {longest:.6e}, ratio {:.3}",
        bound.norm,
        bound.norm / longest
    );
    assert!(
        longest <= bound.norm * (1.0 + ROUNDING),
        "{name}: a gradient of length {longest}, bound {}",
        bound.norm
    );
    assert!(
        !tight || bound.norm <= 2.0 * longest,
        "{name}: bound {}, longest found {longest}",
        bound.norm
    );
}

/// Models with a bound, and whether it must be tight.
const SHIPPED: [(&str, bool); 6] = [
    ("adult_income", true),
    ("fertility", true),
    ("wells_data-wells_dae_inter_model", true),
    ("GLM_Binomial_data-GLM_Binomial_model", true),
    ("GLM_Poisson_Data-GLM_Poisson_model", false),
    ("lode_radon", true),
];

/// Programs, and whether their bound must be tight.
const PROGRAMS: [(&str, bool, &str); 22] = [
    (
        "a condition on a column",
        true,
        "record { int<lower=0, upper=1> died; real<lower=-1, upper=1> x; }
         parameters { real<lower=-1, upper=1> b; real<lower=-1, upper=1> c; }
         model {
           if (died) target += -square(b);
           if (x > 0) target += normal_lpdf(c | x, 1); else target += 3 * b;
           if (x > 0.5) target += normal_lpdf(c | 0, 1);
         }",
    ),
    (
        "one statement under a condition on a column",
        true,
        "record { int<lower=0, upper=1> died; }
         parameters { real<lower=-1, upper=1> b; }
         model { if (died) target += 3 * b; }",
    ),
    (
        "logistic",
        true,
        "record { int<lower=0, upper=1> y; real<lower=-1, upper=3> x; int<lower=1, upper=3> g; }
         parameters { real a; vector[3] b; }
         model { y ~ bernoulli_logit(a + b[1] * x + b[2] * (g == 2) + b[3] * (g == 3)); }",
    ),
    (
        "logistic by chances",
        true,
        "record { int<lower=0, upper=1> y; real<lower=-1, upper=3> x; }
         parameters { real<lower=-3, upper=3> a; real<lower=-2, upper=2> b; }
         model { y ~ bernoulli(inv_logit(a + b * x)); }",
    ),
    (
        "chance",
        true,
        "record { int<lower=0, upper=1> y; }
         parameters { real<lower=0, upper=1> p; }
         model { y ~ bernoulli(p); }",
    ),
    (
        "Poisson",
        true,
        "record { int<lower=0, upper=20> y; real<lower=-1, upper=1> x; }
         parameters { real<lower=-2, upper=2> a; real<lower=-1, upper=1> b; }
         model { y ~ poisson_log(a + b * x); }",
    ),
    (
        "Poisson, free coefficients of little exposure",
        true,
        "record { int<lower=0, upper=20> y; real<lower=-1, upper=1> x; }
         parameters { real a; real b; }
         model { y ~ poisson(30 * inv_logit(a + b * x)); }",
    ),
    (
        "Poisson by rate",
        true,
        "record { int<lower=0, upper=20> y; }
         parameters { real<lower=0, upper=30> rate; }
         model { y ~ poisson(rate); }",
    ),
    (
        "normal",
        true,
        "record { real<lower=-3, upper=3> y; real<lower=-1, upper=1> x; }
         parameters { real<lower=-2, upper=2> a; real<lower=-1, upper=1> b; real<lower=0.5, upper=4> sigma; }
         model { y ~ normal(a + b * x, sigma); }",
    ),
    (
        "normal, scale bounded below alone",
        true,
        "record { real<lower=-3, upper=3> y; real<lower=-1, upper=1> x; }
         parameters { real<lower=-2, upper=2> a; real<lower=-1, upper=1> b; real<lower=0.5> sigma; }
         model { y ~ normal(a + b * x, sigma); }",
    ),
    (
        "normal of known scale",
        true,
        "record { real<lower=-3, upper=3> y; real<lower=-1, upper=1> x; }
         parameters { vector<lower=-2, upper=2>[2] b; }
         model { y ~ normal(b[1] + b[2] * x, 1.5); }",
    ),
    (
        "hierarchical",
        true,
        "record { int<lower=0, upper=1> y; real<lower=-1, upper=1> x; int<lower=1, upper=6> g; }
         parameters { real m; real<lower=0, upper=2> s; vector<lower=-3, upper=3>[6] raw; real b; }
         transformed parameters { vector[6] a = m + s * raw; }
         model { raw ~ normal(0, 1); y ~ bernoulli_logit(a[g] + b * x); }",
    ),
    (
        "a line per group",
        true,
        "record { int<lower=0, upper=1> y; real<lower=-2, upper=2> x; int<lower=1, upper=6> g; }
         parameters { vector[6] a; vector[6] b; }
         model { y ~ bernoulli_logit(a[g] + b[g] * x); }",
    ),
    (
        "parts of one vector",
        true,
        "record { int<lower=0, upper=1> y; int<lower=1, upper=3> g; }
         parameters { vector[6] raw; }
         transformed parameters { vector[3] a = raw[1:3]; vector[3] b = raw[4:6]; }
         model { y ~ bernoulli_logit(a[g] - b[g]); }",
    ),
    (
        "a vector and its reverse",
        true,
        "record { int<lower=0, upper=1> y; int<lower=1, upper=3> g; int<lower=1, upper=3> h; }
         parameters { vector[3] a; real c; }
         transformed parameters { vector[3] b = reverse(a); vector[4] d = append_row(c, a); }
         model { y ~ bernoulli_logit(a[g] - b[g] + a[h] + d[g]); }",
    ),
    (
        "two groups",
        true,
        "record { int<lower=0, upper=1> y; int<lower=1, upper=4> g; int<lower=1, upper=5> h; }
         parameters { vector<lower=-1, upper=1>[4] a; vector<lower=0, upper=2>[5] b; }
         model { y ~ bernoulli_logit(a[g] * b[h]); }",
    ),
    (
        "Student t",
        true,
        "record { real<lower=-3, upper=3> y; real<lower=-1, upper=1> x; }
         parameters { real a; real b; }
         model { y ~ student_t(4, a + b * x, 2); }",
    ),
    (
        "Student t, free scale",
        false,
        "record { real<lower=-3, upper=3> y; real<lower=-1, upper=1> x; }
         parameters { real a; real b; real<lower=0.5> sigma; }
         model { y ~ student_t(4, a + b * x, sigma); }",
    ),
    (
        "Weibull",
        false,
        "record { real<lower=0.1, upper=3> t; real<lower=-1, upper=1> x; int<lower=0, upper=1> died; }
         parameters { real<lower=0.5, upper=2> k; real<lower=-1, upper=1> b; }
         model { target += died == 1 ? weibull_lpdf(t | k, exp(b * x)) : weibull_lccdf(t | k, exp(b * x)); }",
    ),
    (
        "simplex",
        false,
        "record { int<lower=1, upper=4> y; }
         parameters { simplex[4] p; }
         model { y ~ categorical(p); }",
    ),
    (
        "softmax",
        true,
        "record { int<lower=1, upper=3> y; real<lower=-1, upper=1> x; }
         parameters { matrix[2, 3] b; }
         model { y ~ categorical_logit(([1, x] * b)'); }",
    ),
    (
        "mixture",
        false,
        "record { real<lower=-3, upper=3> y; }
         parameters { real<lower=0, upper=1> p; real<lower=-2, upper=0> a; real<lower=0, upper=2> b; }
         model { target += log_mix(p, normal_lpdf(y | a, 1), normal_lpdf(y | b, 1)); }",
    ),
];

fn all_hold(effort: &Effort) {
    for (name, tight) in SHIPPED {
        holds(name, &shipped(name), effort, tight);
    }
    for (name, tight, source) in PROGRAMS {
        holds(name, &density(source, &Constants::none()), effort, tight);
    }
}

#[test]
fn no_gradient_is_longer_than_its_bound() {
    all_hold(&QUICK);
}

#[test]
#[ignore = "10^6 records and points per model"]
fn no_gradient_is_longer_than_its_bound_thorough() {
    all_hold(&THOROUGH);
}

/// Which shipped models have none, and what they say.
#[test]
fn models_without_a_bound_say_why() {
    let mut said = String::new();
    for path in programs("models") {
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        if SHIPPED.iter().any(|s| s.0 == name) {
            continue;
        }
        let sensitivity = shipped(&name).model().sensitivity();
        let missing = sensitivity
            .record
            .expect_err("a bound is news: add the model to SHIPPED");
        said.push_str(&format!("{name}: {missing}\n"));
    }
    let expected = root().join("tests/fixtures/sensitivity/models.txt");
    if std::env::var_os("DPM_BLESS").is_some() {
        std::fs::write(&expected, &said).expect("the file can be written");
    }
    assert_eq!(said, read(&expected));
}

/// The messages name each declaration that is missing, and with all of them there is a bound.
#[test]
fn messages_name_what_is_missing() {
    let source = |y: &str, a: &str, sigma: &str| {
        format!(
            "record {{ real{y} y; }} parameters {{ real{a} a; real{sigma} sigma; }} model {{ y ~ normal(a, sigma); }}"
        )
    };
    let derived = |y: &str, a: &str, sigma: &str| {
        let density = density(&source(y, a, sigma), &Constants::none());
        density.model().sensitivity().record
    };
    let closed = "<lower=-1, upper=1>";
    let message =
        |y: &str, a: &str, sigma: &str| derived(y, a, sigma).expect_err("no bound").to_string();
    assert_eq!(
        message("", "", "<lower=0>"),
        "the column `y` needs `lower` and `upper`, the parameter `a` needs `lower` and `upper`, the parameter `sigma` needs a larger `lower`"
    );
    assert_eq!(
        message("<lower=0>", closed, "<lower=0>"),
        "the column `y` needs an `upper`, the parameter `sigma` needs a larger `lower`"
    );
    assert_eq!(
        message(closed, "<upper=3>", "<lower=1>"),
        "the parameter `a` needs a `lower`"
    );
    assert_eq!(
        message(closed, closed, "<lower=0>"),
        "the parameter `sigma` needs a larger `lower`"
    );
    let bound = derived(closed, closed, "<lower=0.5>").expect("a bound");
    assert_eq!(bound.rests_on, ["y", "a", "sigma"]);
}
