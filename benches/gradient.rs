//! One clipped per-record gradient sum, as a ratio to a fused loop written by
//! hand for the same model and to a bare read of the same columns.
//!
//! Run with `cargo bench --bench gradient`. All three are timed in turn in one
//! process and on one thread, and the medians are compared, so the ratios mean
//! something on a noisy machine; the times themselves do not.

use std::hint::black_box;
use std::time::Instant;

use dpm::accounting::{Event, Gaussian, Lattice, Relation};
use dpm::testing::check::check;
use dpm::testing::density::Density;
use dpm::testing::privacy::{Charge, GradientScale, NotPrivate, PrivateRng, Rows, Subsampling};
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
    println!("N = {N}, one thread, medians of {REPEATS}");
    println!(
        "{:<24} {:>10} {:>12} {:>12} {:>10} {:>10}",
        "model", "dpm ms", "by hand ms", "read ms", "dpm/hand", "dpm/read"
    );
    for d in [10, 100] {
        logistic(d);
    }
    banana();
    println!(
        "\n{:<24} {:>10} {:>12} {:>10}",
        "model", "by row ms", "by unit ms", "unit/row"
    );
    for d in [10, 100] {
        for rows_of_unit in [5, 1000] {
            units(d, rows_of_unit);
        }
    }
}

/// The same records, clipped one by one and as units of several rows.
fn units(d: usize, rows_of_unit: usize) {
    let (source, data, theta) = logistic_data(d);
    let by_row = vault(&source, &Constants::none(), data.clone());
    let rows = |model: &Model| {
        let keys: Vec<usize> = (0..N).map(|i| i % (N / rows_of_unit)).collect();
        let rows = Rows::from_columns(&model.columns, data, OnBadRows::Error)
            .unwrap_or_else(|e| panic!("the data fit: {e}"));
        rows.by_unit(&keys).unwrap_or_else(|e| panic!("{e}"))
    };
    let model = model(&source, &Constants::none());
    let rows = rows(&model);
    let by_unit = Vault::new(Density::new(model), rows);
    let (mut row, mut unit) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        row.push(release(&by_row, &theta, 3.0));
        unit.push(release(&by_unit, &theta, 3.0));
    }
    let [row, unit] = [row, unit].map(median);
    println!(
        "{:<24} {:>10.3} {:>12.3} {:>10.2}",
        format!("logistic, d = {d}, {rows_of_unit}"),
        1e3 * row,
        1e3 * unit,
        unit / row
    );
}

type Columns = Vec<(String, Vec<f64>)>;

fn logistic_data(d: usize) -> (String, Columns, Vec<f64>) {
    let source = format!(
        "record {{ int<lower=0, upper=1> y; vector[{d}] x; }}
         parameters {{ vector[{d}] beta; }}
         model {{ beta ~ normal(0, 2.5); y ~ bernoulli_logit(dot_product(x, beta)); }}"
    );
    let mut uniform = Uniform(1);
    let mut data: Columns = (0..d)
        .map(|j| {
            let column = (0..N).map(|_| 2.0 * uniform.next() - 1.0).collect();
            (format!("x.{}", j + 1), column)
        })
        .collect();
    let y = (0..N).map(|_| f64::from(uniform.next() < 0.4)).collect();
    let theta: Vec<f64> = (0..d).map(|_| 0.2 * (uniform.next() - 0.5)).collect();
    data.push(("y".to_string(), y));
    (source, data, theta)
}

fn logistic(d: usize) {
    let (source, data, theta) = logistic_data(d);
    let x: Vec<Vec<f64>> = data[..d].iter().map(|(_, c)| c.clone()).collect();
    let y = data[d].1.clone();
    let vault = vault(&source, &Constants::none(), data);
    let clip = 0.5 * (d as f64 / 3.0).sqrt();
    let rows: Vec<f64> = (0..N).flat_map(|i| x.iter().map(move |c| c[i])).collect();
    let by_hand = || {
        // Rows lie together, as one would store them for this loop.
        let mut sum = vec![0.0; d];
        for (row, &y) in rows.chunks_exact(d).zip(&y) {
            let (mut eta, mut square) = (0.0, 0.0);
            for (x, b) in row.iter().zip(&theta) {
                eta += x * b;
                square += x * x;
            }
            let residual = y - 1.0 / (1.0 + (-eta).exp());
            let norm = residual.abs() * f64::sqrt(square);
            let factor = if norm > clip {
                residual * clip / norm
            } else {
                residual
            };
            for (s, x) in sum.iter_mut().zip(row) {
                *s += factor * x;
            }
        }
        sum[0]
    };
    let read = || rows.iter().sum::<f64>() + y.iter().sum::<f64>();
    report(
        &format!("logistic, d = {d}"),
        &vault,
        &theta,
        clip,
        by_hand,
        read,
    );
}

fn banana() {
    let source = "constants { real a; }
        record { real x1; real x2; }
        parameters { vector[2] theta; }
        model {
          theta ~ normal(0, 1000);
          x1 ~ normal(theta[1], 44.7);
          x2 ~ normal(theta[2] + a * square(theta[1]), 50);
        }";
    let mut uniform = Uniform(2);
    let mut column =
        |scale: f64| -> Vec<f64> { (0..N).map(|_| scale * (uniform.next() - 0.5)).collect() };
    let (x1, x2) = (column(150.0), column(170.0));
    let data = vec![
        ("x1".to_string(), x1.clone()),
        ("x2".to_string(), x2.clone()),
    ];
    let mut constants = Constants::none();
    constants.insert("a", 20.0);
    let vault = vault(source, &constants, data);
    let theta = [0.1, 2.5];
    let clip = 0.05;
    let by_hand = || {
        let mut sum = [0.0; 2];
        let (v1, v2) = (44.7 * 44.7, 2500.0);
        let bend = theta[1] + 20.0 * theta[0] * theta[0];
        for (x1, x2) in x1.iter().zip(&x2) {
            let second = (x2 - bend) / v2;
            let first = (x1 - theta[0]) / v1 + second * 40.0 * theta[0];
            let norm = (first * first + second * second).sqrt();
            let factor = if norm > clip { clip / norm } else { 1.0 };
            sum[0] += factor * first;
            sum[1] += factor * second;
        }
        sum[0] + sum[1]
    };
    let read = || x1.iter().zip(&x2).map(|(a, b)| a + b).sum::<f64>();
    report("banana, d = 2", &vault, &theta, clip, by_hand, read);
}

fn vault(source: &str, constants: &Constants, data: Vec<(String, Vec<f64>)>) -> Vault {
    let model = model(source, constants);
    let rows = Rows::from_columns(&model.columns, data, OnBadRows::Error);
    let rows = rows.unwrap_or_else(|e| panic!("the data fit: {e}"));
    Vault::new(Density::new(model), rows)
}

fn model(source: &str, constants: &Constants) -> Model {
    let program = parse(source).program.expect("the model parses");
    let checked = check(&program).checked.expect("the model is right");
    Model::bind(&checked, constants).expect("the constants fit")
}

fn report(
    name: &str,
    vault: &Vault,
    theta: &[f64],
    clip: f64,
    by_hand: impl Fn() -> f64,
    read: impl Fn() -> f64,
) {
    let mut ours = Vec::new();
    let (mut hand, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        ours.push(release(vault, theta, clip));
        hand.push(seconds(&by_hand));
        bare.push(seconds(&read));
    }
    let [ours, hand, bare] = [ours, hand, bare].map(median);
    println!(
        "{name:<24} {:>10.3} {:>12.3} {:>12.3} {:>10.2} {:>10.2}",
        1e3 * ours,
        1e3 * hand,
        1e3 * bare,
        ours / hand,
        ours / bare
    );
}

/// Seconds of one release.
fn release(vault: &Vault, theta: &[f64], clip: f64) -> f64 {
    let scale = GradientScale::new(clip, 2, 10.0).expect("a usable clip bound");
    let lattice = Lattice::new(scale.lattice_ratio(), theta.len() as u64).expect("a lattice");
    let event = Gaussian::of_clip("gradient", clip, Relation::Substitute, scale.sigma())
        .expect("a valid event")
        .on_lattice(lattice)
        .times(1 << 30);
    let meter = NotPrivate::acknowledged().meter(vec![Event::Gaussian(event)]);
    let charge = Charge {
        meter: &meter,
        line: 0,
    };
    let mut rng = PrivateRng::insecure(1, NotPrivate::acknowledged());
    seconds(|| {
        let all = Subsampling::All;
        let released = vault.noisy_batch_gradient(theta, &scale, all, charge, &mut rng);
        released.map(|g| g.get()[0]).unwrap_or(f64::NAN)
    })
}

fn seconds(work: impl FnOnce() -> f64) -> f64 {
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
