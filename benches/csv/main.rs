//! Loads the file named last on the command line and ends: `compare.py` measures the process.

use dpm::{Constants, Model, PrivateData};

const MODEL: &str = "
record { vector[10] x; int<lower=0, upper=1> y; }
parameters { vector[10] beta; }
model { y ~ bernoulli_logit(dot_product(x, beta)); }
";

fn main() -> Result<(), dpm::Error> {
    let file = std::env::args().next_back();
    // `cargo test --benches` only wants to know that it compiles and starts.
    if let Some(file) = file.filter(|name| name.ends_with(".csv")) {
        let model = Model::from_source(MODEL, &Constants::default())?;
        PrivateData::from_file(file).bind(&model)?;
    }
    Ok(())
}
