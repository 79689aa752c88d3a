//! dpm as a library: parse a model, bind data from memory, plan, sample, read
//! the draws.
//!
//! Run with `cargo run --release --example embed`.

use std::error::Error;

use dpm::{
    Constants, Density, Draw, Iterations, Meter, Model, Observer, OnBadRows, Phase, Plan,
    PlanRequest, PrivateRng, PrivateSettings, Rows, Summary, Vault, sample_privately,
};

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

/// Told about every iteration: a progress bar would go here.
struct Accepted(std::sync::Mutex<f64>);

impl Observer for Accepted {
    fn iteration(&self, _chain: usize, _iteration: u64, draw: &Draw) {
        if let Ok(mut sum) = self.0.lock() {
            *sum += draw.accept_stat;
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut constants = Constants::none();
    constants.insert("centre", 65.0);
    let model = Model::from_source(MODEL, &constants)?;

    let people = 20_000;
    let plan = |i: usize| f64::from(u8::from(i.is_multiple_of(3)));
    let age = |i: usize| 64.0 - 2.0 * plan(i) + ((i * 7919) % 100) as f64 / 10.0 - 5.0;
    let data = vec![
        ("age".to_string(), (0..people).map(age).collect()),
        ("plan".to_string(), (0..people).map(plan).collect()),
    ];
    let rows = Rows::from_columns(&model.columns, data, OnBadRows::Error)?;
    let vault = Vault::new(Density::new(model), rows);

    // Neither the plan nor its price has seen a row.
    let plan = Plan::new(PlanRequest {
        chains: 2,
        iterations: Iterations::Fixed(1000),
        // One person's gradient is at most (15 + |mean|) / 16 * sqrt(2).
        clip_gradient: 1.5,
        clip_log_ratio: 1.5,
        // The posterior that 500 typical people would give: wider, and far cheaper.
        temperature: 500.0 / people as f64,
        ..PlanRequest::new("4".parse()?, "1e-6".parse()?, vault.density().dimension())
    })?;
    println!("will spend epsilon {:.4} of 4", plan.epsilon());
    for event in &plan.events {
        println!("  {} x {}", event.count(), event.what());
    }

    let meter = Meter::new(plan.events.clone());
    let observer = Accepted(std::sync::Mutex::new(0.0));
    let settings = PrivateSettings::new(500, 1, PrivateRng::from_os()?);
    let chains = sample_privately(&vault, &plan, &meter, &settings, &observer)?;

    let draws: Vec<Vec<Vec<f64>>> = chains
        .iter()
        .map(|chain| {
            let sampled = chain.draws.iter().filter(|d| d.phase == Phase::Sampling);
            sampled.map(|d| d.values.clone()).collect()
        })
        .collect();
    let names: Vec<String> = vault.density().output_names().map(str::to_string).collect();
    print!("{}", Summary::of_draws(&names, &draws)?.to_table());
    let total = observer.0.into_inner()?;
    println!("mean acceptance {:.2}", total / 2000.0);
    Ok(())
}
