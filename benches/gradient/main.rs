//! Sums over records of clipped vectors, as ratios to fused loops written by hand for the same
//! model, to a bare read of the same columns, and to JAX.
//!
//! Run with `cargo bench --bench gradient`; with `DPM_PYTHON` naming a Python that has JAX, its
//! best form of each model is timed too. All are timed in turn, on one thread, and the medians are
//! compared, so the ratios mean something on a noisy machine; the times themselves do not.
//!
//! The loops by hand are compiled for the same instruction sets. They hold rows together and sum
//! floats, which is less than a release needs: it rounds each record to integers that are checked.

mod hand;
mod jax;

use std::hint::black_box;
use std::time::Instant;

use dpm::testing::check::check;
use dpm::testing::density::{Density, Frame};
use dpm::testing::privacy::{
    GradientScale, NotPrivate, PenaltyPlan, PenaltyScale, Rows, clipped_gradients,
    with_clipped_information,
};
use dpm::testing::syntax::parse;
use dpm::{Constants, Model, OnBadRows, Vault};

const N: usize = 100_000;
const REPEATS: usize = 21;

fn main() {
    // `cargo test --benches` only wants to know that it compiles and starts.
    if std::env::args().any(|a| a == "--test") {
        return;
    }
    if let Err(e) = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build_global()
    {
        eprintln!("one thread: {e}");
    }
    println!("N = {N}, one thread, medians of {REPEATS}; ms");
    // The part of a name that is wanted, with `cargo bench --bench gradient -- NAME`.
    let wanted = std::env::args().skip(1).find(|a| !a.starts_with("--"));
    let is_wanted = |case: &Case| wanted.as_ref().is_none_or(|w| case.name.contains(w));
    heading("gradients", &["by hand", "read", "JAX"]);
    for case in cases().into_iter().filter(is_wanted) {
        let vault = case.vault();
        let d = case.theta.len();
        let jax = jax::seconds(&case);
        for axes in [None, Some(axes(d))] {
            gradients(&case, &vault, axes.as_deref(), &jax);
        }
    }
    heading("information by the law", &["by hand"]);
    let informed: [(Case, ByHand); 3] = [
        (logistic(10), hand::information),
        (logistic(30), hand::information),
        (groups(163), hand::group_information),
    ];
    for (case, by_hand) in informed.iter().filter(|(case, _)| is_wanted(case)) {
        information(case, Some(&axes(case.theta.len())), *by_hand);
        if case.name.contains("groups") {
            information(case, None, *by_hand);
        }
    }
    if wanted.is_some() {
        return;
    }
    heading("log-ratios", &["by hand"]);
    log_ratios(&logistic(10));
    heading("two threads", &["one"]);
    for d in [10, 100] {
        threads(&logistic(d));
    }
    heading("prior and its gradient, no rows", &[]);
    for case in [logistic(10), groups(85)] {
        without_rows(&case);
    }
    heading("units of several rows", &["by row"]);
    for d in [10, 100] {
        for rows_of_unit in [5, 1000] {
            units(&logistic(d), rows_of_unit);
        }
    }
}

type Columns = Vec<(String, Vec<f64>)>;

/// The sum of the coordinates of a sum over records, in a frame's coordinates if it is given.
type ByHand = fn(&Case, Option<&[f64]>) -> f64;

/// A model with data, a point, and the loop by hand.
pub struct Case {
    name: &'static str,
    /// The name of its form in [`jax`].
    jax: Option<&'static str>,
    source: String,
    constants: Constants,
    /// Columns in the order of declaration.
    columns: Columns,
    theta: Vec<f64>,
    clip: f64,
    /// Rows held together, their length, and outcomes.
    rows: Vec<f64>,
    outcomes: Vec<f64>,
    by_hand: ByHand,
}

impl Case {
    fn model(&self) -> Model {
        let program = parse(&self.source).program.expect("the model parses");
        let checked = check(&program).checked.expect("the model is right");
        Model::bind(&checked, &self.constants).expect("the constants fit")
    }

    fn vault(&self) -> Vault {
        let model = self.model();
        let rows = Rows::from_columns(&model.columns, self.columns.clone(), OnBadRows::Error);
        let rows = rows.unwrap_or_else(|e| panic!("the data fit: {e}"));
        Vault::new(Density::new(model), rows).unwrap()
    }

    fn frame(&self, axes: Option<&[f64]>) -> Frame {
        let same = Frame::about(self.theta.clone());
        match axes {
            Some(axes) => same.refined(&vec![0.0; self.theta.len()], axes),
            None => same,
        }
    }
}

/// Axes that mix all coordinates, by rows.
fn axes(d: usize) -> Vec<f64> {
    let mut uniform = Uniform(7);
    let entry = |k: usize| f64::from(k.is_multiple_of(d + 1)) + 0.2 * (uniform.next() - 0.5);
    (0..d * d).map(entry).collect()
}

fn cases() -> Vec<Case> {
    vec![
        logistic(10),
        logistic(100),
        student(),
        poisson(),
        ordered(),
        softmax(),
        groups(85),
        banana(),
    ]
}

/// d columns within -1..1, the same as rows held together, and d small coefficients.
fn covariates(d: usize) -> (Columns, Vec<f64>, Vec<f64>) {
    let mut uniform = Uniform(1);
    let mut column = |j: usize| {
        let values = (0..N).map(|_| 2.0 * uniform.next() - 1.0).collect();
        (format!("x.{}", j + 1), values)
    };
    let columns: Columns = (0..d).map(&mut column).collect();
    let rows = (0..N).flat_map(|i| columns.iter().map(move |(_, c)| c[i]));
    let rows = rows.collect();
    let theta = (0..d).map(|_| 0.2 * (uniform.next() - 0.5)).collect();
    (columns, rows, theta)
}

fn regression(d: usize, outcome: &str, parameters: &str, model: &str) -> String {
    format!(
        "record {{ {outcome} vector[{d}] x; }} parameters {{ {parameters} }} model {{ {model} }}"
    )
}

fn logistic(d: usize) -> Case {
    let (mut columns, rows, theta) = covariates(d);
    let mut uniform = Uniform(3);
    let outcomes: Vec<f64> = (0..N).map(|_| f64::from(uniform.next() < 0.4)).collect();
    columns.push(("y".to_owned(), outcomes.clone()));
    Case {
        name: if d == 10 {
            "logistic, d = 10"
        } else {
            "logistic, more"
        },
        jax: Some("logistic"),
        source: regression(
            d,
            "int<lower=0, upper=1> y;",
            &format!("vector[{d}] beta;"),
            "y ~ bernoulli_logit(dot_product(x, beta));",
        ),
        constants: Constants::none(),
        columns,
        theta,
        clip: 0.5 * (d as f64 / 3.0).sqrt(),
        rows,
        outcomes,
        by_hand: hand::logistic,
    }
}

fn student() -> Case {
    let (mut columns, rows, mut theta) = covariates(10);
    let mut uniform = Uniform(4);
    let outcomes: Vec<f64> = (0..N).map(|_| 6.0 * uniform.next() - 3.0).collect();
    columns.push(("y".to_owned(), outcomes.clone()));
    theta.extend([0.3, 1.2]);
    Case {
        name: "Student t, d = 12",
        jax: Some("student"),
        source: regression(
            10,
            "real<lower=-9, upper=9> y;",
            "vector[10] beta; real<lower=0> sigma; real<lower=0> nu;",
            "y ~ student_t(nu, dot_product(x, beta), sigma);",
        ),
        constants: Constants::none(),
        columns,
        theta,
        clip: 1.5,
        rows,
        outcomes,
        by_hand: hand::student,
    }
}

fn poisson() -> Case {
    let (mut columns, mut rows, theta) = covariates(10);
    let mut uniform = Uniform(5);
    let outcomes: Vec<f64> = (0..N).map(|_| (5.0 * uniform.next()).floor()).collect();
    let exposure: Vec<f64> = (0..N).map(|_| 0.5 + 2.0 * uniform.next()).collect();
    // The logarithm of the exposure is the eleventh number of a row.
    rows = (0..N)
        .flat_map(|i| {
            let row = rows[10 * i..10 * i + 10].iter().copied();
            row.chain([exposure[i].ln()])
        })
        .collect();
    columns.push(("y".to_owned(), outcomes.clone()));
    columns.push(("exposure".to_owned(), exposure));
    Case {
        name: "Poisson, d = 10",
        jax: Some("poisson"),
        source: regression(
            10,
            "int<lower=0, upper=100> y; real<lower=0.1, upper=10> exposure;",
            "vector[10] beta;",
            "y ~ poisson_log(log(exposure) + dot_product(x, beta));",
        ),
        constants: Constants::none(),
        columns,
        theta,
        clip: 2.5,
        rows,
        outcomes,
        by_hand: hand::poisson,
    }
}

fn ordered() -> Case {
    let (mut columns, rows, mut theta) = covariates(10);
    let mut uniform = Uniform(6);
    let outcomes: Vec<f64> = (0..N)
        .map(|_| (5.0 * uniform.next()).floor() + 1.0)
        .collect();
    columns.push(("y".to_owned(), outcomes.clone()));
    theta.extend([-1.0, -0.2, 0.1, 0.2]);
    Case {
        name: "ordered logit, d = 14",
        jax: None,
        source: regression(
            10,
            "int<lower=1, upper=5> y;",
            "vector[10] beta; ordered[4] c;",
            "y ~ ordered_logistic(dot_product(x, beta), c);",
        ),
        constants: Constants::none(),
        columns,
        theta,
        clip: 1.2,
        rows,
        outcomes,
        by_hand: hand::ordered,
    }
}

fn softmax() -> Case {
    let (mut columns, rows, _) = covariates(10);
    let mut uniform = Uniform(8);
    let outcomes: Vec<f64> = (0..N)
        .map(|_| (5.0 * uniform.next()).floor() + 1.0)
        .collect();
    columns.push(("y".to_owned(), outcomes.clone()));
    Case {
        name: "softmax, d = 50",
        jax: Some("softmax"),
        source: regression(
            10,
            "int<lower=1, upper=5> y;",
            "matrix[5, 10] beta;",
            "y ~ categorical_logit(beta * x);",
        ),
        constants: Constants::none(),
        columns,
        theta: (0..50).map(|_| 0.3 * (uniform.next() - 0.5)).collect(),
        clip: 1.5,
        rows,
        outcomes,
        by_hand: hand::softmax,
    }
}

/// Rows are the group and its place.
fn groups(count: usize) -> Case {
    let mut uniform = Uniform(9);
    let group: Vec<f64> = (0..N)
        .map(|_| (count as f64 * uniform.next()).floor() + 1.0)
        .collect();
    let outcomes: Vec<f64> = (0..N).map(|_| 4.0 * uniform.next() - 2.0).collect();
    let mut theta = vec![0.1, -0.4];
    theta.extend((0..count).map(|_| uniform.next() - 0.5));
    theta.push(0.2);
    Case {
        name: if count == 85 {
            "85 groups, d = 88"
        } else {
            "more groups"
        },
        jax: None,
        source: format!(
            "record {{ int<lower=1, upper={count}> g; real<lower=-9, upper=9> y; }}
            parameters {{ real mu; real<lower=0> tau; vector[{count}] z; real<lower=0> sigma; }}
            model {{ z ~ normal(0, 1); y ~ normal((mu + tau * z)[g], sigma); }}"
        ),
        constants: Constants::none(),
        columns: vec![
            ("g".to_owned(), group.clone()),
            ("y".to_owned(), outcomes.clone()),
        ],
        theta,
        clip: 0.8,
        rows: group,
        outcomes,
        by_hand: hand::groups,
    }
}

fn banana() -> Case {
    let mut uniform = Uniform(2);
    let mut column =
        |scale: f64| -> Vec<f64> { (0..N).map(|_| scale * (uniform.next() - 0.5)).collect() };
    let (x1, x2) = (column(150.0), column(170.0));
    let mut constants = Constants::none();
    constants.insert("a", 20.0);
    Case {
        name: "banana, d = 2",
        jax: None,
        source: "constants { real a; }
            record { real x1; real x2; }
            parameters { vector[2] theta; }
            model {
              x1 ~ normal(theta[1], 44.7);
              x2 ~ normal(theta[2] + a * square(theta[1]), 50);
            }"
        .to_owned(),
        constants,
        columns: vec![("x1".to_owned(), x1.clone()), ("x2".to_owned(), x2.clone())],
        theta: vec![0.1, 2.5],
        clip: 0.05,
        rows: x1,
        outcomes: x2,
        by_hand: hand::banana,
    }
}

fn gradients(case: &Case, vault: &Vault, axes: Option<&[f64]>, jax: &[Option<f64>; 2]) {
    let frame = case.frame(axes);
    let scale = GradientScale::new(case.clip, 2, 10.0).expect("a usable clip bound");
    let permission = NotPrivate::acknowledged();
    let read = || case.rows.iter().sum::<f64>() + case.outcomes.iter().sum::<f64>();
    let ours = clipped_gradients(vault, &frame, &scale, permission);
    let theirs = (case.by_hand)(case, axes);
    let total = ours.iter().sum::<f64>();
    assert!(
        (total - theirs).abs() <= 1e-6 * N as f64 * case.clip,
        "{}: {total} and {theirs}",
        case.name
    );
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..REPEATS {
        times[0].push(seconds(|| {
            clipped_gradients(vault, &frame, &scale, permission)
        }));
        times[1].push(seconds(|| (case.by_hand)(case, axes)));
        times[2].push(seconds(read));
    }
    let [ours, hand, bare] = times.map(median);
    let (where_, jax) = match axes {
        None => ("", jax[0]),
        Some(_) => (", frame", jax[1]),
    };
    let d = case.theta.len();
    let name = match case.name {
        "logistic, more" => format!("logistic, d = {d}{where_}"),
        name => format!("{name}{where_}"),
    };
    report(&name, ours, &[Some(hand), Some(bare), jax]);
}

fn information(case: &Case, axes: Option<&[f64]>, by_hand: ByHand) {
    let vault = case.vault();
    let permission = NotPrivate::acknowledged();
    let d = case.theta.len();
    // Seconds for each.
    let repeats = if d > 100 { 3 } else { REPEATS };
    let frame = case.frame(axes);
    with_clipped_information(&vault, &frame, case.clip, permission, |sum| {
        let theirs = by_hand(case, axes);
        let ours = sum().iter().sum::<f64>();
        assert!((ours / theirs - 1.0).abs() < 1e-3, "{ours} and {theirs}");
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..repeats {
            times[0].push(seconds(sum));
            times[1].push(seconds(|| by_hand(case, axes)));
        }
        let [ours, hand] = times.map(median);
        let model = case.name.split(',').next().unwrap_or_default();
        let frame = axes.map_or("", |_| ", frame");
        report(&format!("{model}, d = {d}{frame}"), ours, &[Some(hand)]);
    });
}

fn log_ratios(case: &Case) {
    let vault = case.vault();
    let to: Vec<f64> = case.theta.iter().map(|t| t + 0.05).collect();
    let scale = PenaltyScale::new(2, 1.0).expect("valid settings");
    let Ok(PenaltyPlan::Query(query)) = scale.plan(case.clip) else {
        panic!("a clip bound that needs a query");
    };
    let permission = NotPrivate::acknowledged();
    let ours = || vault.clipped_log_ratio(&case.theta, &to, 1.0, &query, permission);
    let theirs = || hand::log_ratios(case, &to);
    assert!((ours() - theirs()).abs() < 1e-3, "{} {}", ours(), theirs());
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..REPEATS {
        times[0].push(seconds(ours));
        times[1].push(seconds(theirs));
    }
    let [ours, hand] = times.map(median);
    report("logistic, d = 10", ours, &[Some(hand)]);
}

/// The sum of clipped gradients on two threads and on one.
fn threads(case: &Case) {
    let vault = case.vault();
    let frame = case.frame(None);
    let scale = GradientScale::new(3.0, 2, 10.0).expect("a usable clip bound");
    let pool = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().expect("threads can be started")
    };
    let pools = [pool(2), pool(1)];
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..REPEATS {
        for (times, pool) in times.iter_mut().zip(&pools) {
            let permission = NotPrivate::acknowledged();
            times.push(seconds(|| {
                pool.install(|| clipped_gradients(&vault, &frame, &scale, permission))
            }));
        }
    }
    let [two, one] = times.map(median);
    report(case.name, two, &[Some(one)]);
}

/// The cost of a gradient besides its rows.
fn without_rows(case: &Case) {
    const CALLS: u32 = 1000;
    let density = Density::new(case.model());
    let mut times = Vec::new();
    for _ in 0..REPEATS {
        let all = seconds(|| {
            for _ in 0..CALLS {
                black_box(density.pull_back(black_box(&case.theta), &[]));
            }
        });
        times.push(all / f64::from(CALLS));
    }
    report(case.name, median(times), &[]);
}

/// The same records, clipped one by one and as units of several rows.
fn units(case: &Case, rows_of_unit: usize) {
    let by_row = case.vault();
    let model = case.model();
    let keys: Vec<usize> = (0..N).map(|i| i % (N / rows_of_unit)).collect();
    let rows = Rows::from_columns(&model.columns, case.columns.clone(), OnBadRows::Error)
        .and_then(|rows| rows.by_unit(&keys))
        .unwrap_or_else(|e| panic!("the data fit: {e}"));
    let by_unit = Vault::new(Density::new(model), rows).unwrap();
    let frame = case.frame(None);
    let scale = GradientScale::new(3.0, 2, 10.0).expect("a usable clip bound");
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..REPEATS {
        for (times, vault) in times.iter_mut().zip([&by_unit, &by_row]) {
            let permission = NotPrivate::acknowledged();
            times.push(seconds(|| {
                clipped_gradients(vault, &frame, &scale, permission)
            }));
        }
    }
    let [unit, row] = times.map(median);
    let d = case.theta.len();
    report(
        &format!("logistic, d = {d}, {rows_of_unit} rows"),
        unit,
        &[Some(row)],
    );
}

fn heading(title: &str, others: &[&str]) {
    print!("\n{title:<32} {:>9}", "dpm");
    for other in others {
        print!(" {other:>9}");
    }
    for other in others {
        print!(" {:>12}", format!("dpm/{other}"));
    }
    println!();
}

fn report(name: &str, ours: f64, others: &[Option<f64>]) {
    print!("{name:<32} {:>9.3}", 1e3 * ours);
    let shown = |x: Option<f64>, digits: usize| match x {
        Some(x) => format!("{x:.digits$}"),
        None => "-".to_owned(),
    };
    for other in others {
        print!(" {:>9}", shown(other.map(|s| 1e3 * s), 3));
    }
    for other in others {
        print!(" {:>12}", shown(other.map(|s| ours / s), 2));
    }
    println!();
}

fn seconds<R>(work: impl FnOnce() -> R) -> f64 {
    let start = Instant::now();
    black_box(work());
    start.elapsed().as_secs_f64()
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// A small generator, so that the data are the same everywhere.
struct Uniform(u64);

impl Uniform {
    fn next(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}
