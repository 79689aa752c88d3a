//! Reads the directory of a run back: draws, summary, what it promises, whether it has
//! converged; and writes it for pandas or polars.
//!
//! Run with `cargo run --release --example read_run -- RUN`, or without a run, for one that it
//! makes first.

use std::path::PathBuf;

use dpm::{Analysis, Constants, Error, Model, PrivateData, Run, Session};

fn main() -> Result<(), Error> {
    let temporary = std::env::temp_dir().join(format!("dpm-example-{}", std::process::id()));
    let run = match std::env::args_os().nth(1) {
        Some(run) => PathBuf::from(run),
        None => make(temporary.join("run"))?,
    };
    let run = Run::open(run)?;
    println!("{}", run.statement());
    println!("settings: {}", run.config());
    print!("{}", run.summary().to_table());
    for name in run.draws().names() {
        let highest = run.draws().pooled(name).unwrap_or_default();
        let highest = highest.into_iter().fold(f64::NEG_INFINITY, f64::max);
        println!("highest draw of {name}: {highest:.3}");
    }
    print!("{}", run.diagnosis().to_text());
    let table = temporary.join("draws.parquet");
    run.write_parquet(&table, true)?;
    println!(
        "{} bytes of Parquet",
        table.metadata().map_or(0, |m| m.len())
    );
    let _ = std::fs::remove_dir_all(temporary);
    Ok(())
}

fn make(place: PathBuf) -> Result<PathBuf, Error> {
    let model = Model::from_source(
        "record { real<lower=0, upper=10> y; }
         parameters { real<lower=0, upper=10> mu; }
         model { y ~ normal(mu, 4); }",
        &Constants::none(),
    )?;
    let y: Vec<f64> = (0..5000).map(|i| f64::from(i % 11)).collect();
    let vault = PrivateData::from_columns([("y", y)]).bind(&model)?;
    let fit = Analysis::new("example", 2.0)
        .chains(2)
        .iterations(100, 200)
        .temper_to(300.0)
        .sample(&vault, &Session::new(2.0, 1e-6)?)?;
    Ok(fit.save(place)?)
}
