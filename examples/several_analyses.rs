//! One budget for several analyses of the same people, each with a model of its own, and a
//! ledger that remembers what they cost when the program has ended.
//!
//! Run with `cargo run --release --example several_analyses`.

use dpm::{Analysis, Constants, Error, Model, PrivateData, Session, Terms};

const MEAN: &str = "
record { real<lower=0, upper=24> hours; }
parameters { real mean; }
model { mean ~ normal(8, 4); hours ~ normal(mean, 8); }
";

const BY_SHIFT: &str = r#"
record {
  real<lower=0, upper=24> hours;
  factor("day", "night") shift;
}
parameters { vector[2] mean; }
model { mean ~ normal(8, 4); hours ~ normal(mean[shift], 8); }
"#;

fn main() -> Result<(), Error> {
    let hours: Vec<f64> = (0..40_000).map(|i| 6.0 + f64::from(i % 5) / 2.0).collect();
    let shifts: Vec<&str> = (0..40_000).map(|i| ["day", "night"][i / 3 % 2]).collect();
    // One set of data, for any model that declares columns of these names.
    let data = PrivateData::from_columns([("hours", hours)]).column("shift", shifts);

    let place = std::env::temp_dir().join(format!("dpm-example-{}.ledger", std::process::id()));
    let session = Session::create(&place, &Terms::of_records(3.0, 1e-6)?)?;

    for (name, source, epsilon) in [("mean", MEAN, 1.0), ("by shift", BY_SHIFT, 1.5)] {
        let vault = data.bind(&Model::from_source(source, &Constants::none())?)?;
        let fit = Analysis::new(name, epsilon)
            .chains(2)
            .iterations(100, 200)
            .sample(&vault, &session)?;
        print!("{}", fit.summary().to_table());
    }
    // Together they cost less than the sum of their shares.
    let statement = session.statement()?;
    println!("spent {:.3} of {}", statement.spent, statement.epsilon);

    // What is left decides, in this program or in one that opens the ledger next year.
    drop(session);
    let session = Session::open(&place)?;
    let vault = data.bind(&Model::from_source(MEAN, &Constants::none())?)?;
    match Analysis::new("once more", 2.5).sample(&vault, &session) {
        Err(error) if error.is_refusal() => println!("refused: {error}"),
        Err(error) => return Err(error),
        Ok(_) => println!("there was enough left"),
    }
    for file in [place.clone(), place.with_extension("ledger.head")] {
        let _ = std::fs::remove_file(file);
    }
    Ok(())
}
