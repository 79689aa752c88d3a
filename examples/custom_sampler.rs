//! A sampler of one's own: the Metropolis-adjusted Langevin algorithm on noisy gradients and
//! noisy log-ratios, in four chains.
//!
//! Run with `cargo run --release --example custom_sampler`.

use dpm::{Constants, Error, Model, Oracle, PrivateData, Questions, Session};

const MODEL: &str = "
record {
  real<lower=-3, upper=3> x;
  real<lower=-6, upper=6> y;
}
parameters {
  real slope;
}
model {
  slope ~ normal(0, 2);
  y ~ normal(slope * x, 4);
}
";

const ITERATIONS: u64 = 300;

/// A proposal drifts along a gradient and is accepted by a log-ratio. The gradient of a point
/// is drawn once and kept while the chain stays there: drift there and drift back must see the
/// same one.
fn langevin(oracle: &mut Oracle<'_>) -> Result<(), Error> {
    let step: f64 = 0.1;
    let drift = |theta: &[f64], g: &[f64]| -> Vec<f64> {
        let moved = theta.iter().zip(g).map(|(x, g)| x + 0.5 * step * step * g);
        moved.collect()
    };
    // Log density of a move, but for a constant.
    let log_q = |to: &[f64], mean: &[f64]| -> f64 {
        let squares = to.iter().zip(mean).map(|(t, m)| (t - m) * (t - m));
        -squares.sum::<f64>() / (2.0 * step * step)
    };
    let mut theta = oracle.start()?;
    let mut gradient = oracle.gradient(&theta)?;
    for _ in 0..ITERATIONS {
        let mean = drift(&theta, &gradient);
        let to: Vec<f64> = mean.iter().map(|m| m + step * oracle.normal()).collect();
        let there = oracle.gradient(&to)?;
        let log_a = oracle.log_ratio(&theta, &to)? + oracle.log_prior(&to)?
            - oracle.log_prior(&theta)?
            + log_q(&theta, &drift(&to, &there))
            - log_q(&to, &mean);
        if oracle.accept(log_a) {
            (theta, gradient) = (to, there);
        }
        oracle.keep(&theta)?;
    }
    Ok(())
}

fn main() -> Result<(), Error> {
    let model = Model::from_source(MODEL, &Constants::none())?;
    let x: Vec<f64> = (0..10_000).map(|i| f64::from(i % 13) / 2.0 - 3.0).collect();
    let y = x
        .iter()
        .zip(0..)
        .map(|(x, i)| 0.8 * x + f64::from(i % 7) / 2.0 - 1.5);
    let data = PrivateData::from_columns([("y", y.collect::<Vec<f64>>())]).column("x", x);

    let session = Session::new(3.0, 1e-6)?;
    let fit = Questions::new("Langevin", 3.0)
        .gradients(ITERATIONS + 1)
        .log_ratios(ITERATIONS)
        .chains(4)
        .temper_to(300.0)
        .ask(&data.bind(&model)?, &session, langevin)?;
    print!("{}", fit.summary().to_table());
    for chain in fit.chains() {
        println!("accepted: {:.2}", chain.acceptance);
    }
    println!("{}", fit.statement());
    Ok(())
}
