//! dpm as a library, from a model to a report: columns in memory, a budget, draws, and what
//! may be said of them.
//!
//! Run with `cargo run --release --example embed`.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};

use dpm::{Analysis, Constants, Model, PrivateData, Session};

/// Ages at which people retired, and whether they had a pension plan.
const MODEL: &str = "
constants {
  real centre;                            // public
}
record {
  real<lower=50, upper=80> age;           // private, clamped to its bounds
  int<lower=0, upper=1> plan;
}
parameters {
  real level;
  real effect;
}
model {
  level ~ normal(0, 5);
  effect ~ normal(0, 5);
  age - centre ~ normal(level + effect * plan, 4);
}
";

fn main() -> Result<(), dpm::Error> {
    let model = Model::from_source(MODEL, &Constants::from_json(r#"{"centre": 65}"#)?)?;

    let people = 40_000;
    let plan: Vec<bool> = (0..people).map(|i| i % 3 == 0).collect();
    let age = |i: usize| if plan[i] { 62.0 } else { 64.0 } + (i * 7919 % 100) as f64 / 10.0 - 5.0;
    let ages: Vec<f64> = (0..people).map(age).collect();
    let vault = PrivateData::from_columns([("age", ages)])
        .column("plan", plan)
        .bind(&model)?;

    let session = Session::new(4.0, 1e-6)?;
    let analysis = Analysis::new("retirement age", 4.0)
        .chains(2)
        .iterations(200, 300);

    // Neither the plan nor its price has seen a row.
    let plan = analysis.plan(&model, &session.terms()?, Some(people as u64))?;
    println!("will spend epsilon {:.4} of 4", plan.epsilon());
    for event in &plan.events {
        println!("  {} x {}", event.count(), event.what());
    }

    // A progress bar would go here, and a button that stops the run.
    let iterations = AtomicU64::new(0);
    let fit = analysis.sample_with(&vault, &session, |_| {
        iterations.fetch_add(1, Ordering::Relaxed);
        ControlFlow::Continue(())
    })?;
    println!("{} iterations", iterations.into_inner());
    print!("{}", fit.summary().to_table());
    println!("{}", fit.diagnosis().headline());
    println!("{}", fit.statement());
    Ok(())
}
