//! Predictions for public cases, from released draws: the `generated quantities` of the model
//! are computed for each draw. Nothing private is read, so that they cost nothing.
//!
//! Run with `cargo run --release --example predictions`.

use dpm::diagnostics::{mean, quantile};
use dpm::{Analysis, Constants, Error, GeneratedQuantities, Model, PrivateData, Session};

const MODEL: &str = "
constants {
  int N;                                  // cases to predict
  vector[N] dose_new;
}
record {
  real<lower=0, upper=2> dose;
  int<lower=0, upper=1> cured;
}
parameters {
  real alpha;
  real beta;
}
model {
  alpha ~ normal(0, 2);
  beta ~ normal(0, 2);
  cured ~ bernoulli_logit(alpha + beta * dose);
}
generated quantities {
  vector[N] chance = inv_logit(alpha + beta * dose_new);
  array[N] int cured_new = bernoulli_logit_rng(alpha + beta * dose_new);
}
";

fn main() -> Result<(), Error> {
    let constants = Constants::from_json(r#"{"N": 3, "dose_new": [0, 1, 2]}"#)?;
    let model = Model::from_source(MODEL, &constants)?;
    let doses: Vec<f64> = (0..12_000).map(|i| f64::from(i % 9) / 4.0).collect();
    let cured: Vec<bool> = (0..12_000).map(|i| i * 31 % 10 < 3 + i % 9 / 2).collect();
    let vault = PrivateData::from_columns([("dose", doses)])
        .column("cured", cured)
        .bind(&model)?;
    let fit = Analysis::new("dose and cure", 3.0)
        .chains(2)
        .iterations(100, 200)
        .temper_to(400.0)
        .sample(&vault, &Session::new(3.0, 1e-6)?)?;

    let predictions = GeneratedQuantities::from_source(MODEL, &constants)?.of(fit.draws(), 1)?;
    for (case, dose) in ["0", "1", "2"].into_iter().enumerate() {
        let pooled = |name: &str| predictions.pooled(&format!("{name}[{}]", case + 1));
        let (chance, cured) = (pooled("chance").unwrap_or_default(), pooled("cured_new"));
        println!(
            "dose {dose}: cured with a chance of {:.2} ({:.2} to {:.2}); {:.2} of the predictions",
            mean(&[&chance[..]]),
            quantile(&[&chance[..]], 0.05),
            quantile(&[&chance[..]], 0.95),
            mean(&[cured.unwrap_or_default()]),
        );
    }
    Ok(())
}
