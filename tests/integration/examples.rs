//! The examples do what they say. `cargo test` has built them beside this test.

use std::path::Path;
use std::process::Command;

use crate::harness::start;

/// The output of an example.
fn output_of(example: &str) -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_dpm"))
        .with_file_name("examples")
        .join(example);
    assert!(
        program.exists(),
        "{} is not there: `cargo build --release --examples`",
        program.display()
    );
    let started = start(&mut Command::new(program));
    let output = started.wait_with_output().expect("it runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn has_all(example: &str, parts: &[&str]) {
    let printed = output_of(example);
    for part in parts {
        assert!(printed.contains(part), "no {part:?} in\n{printed}");
    }
}

#[test]
fn embed() {
    let parts = [
        "of 4\n",
        "level",
        "effect",
        "(4, 1e-6)-differentially private",
    ];
    has_all("embed", &parts);
}

#[test]
fn custom_sampler() {
    let parts = ["slope", "accepted: 0.", "(3, 1e-6)-differentially private"];
    has_all("custom_sampler", &parts);
}

#[test]
fn several_analyses() {
    has_all(
        "several_analyses",
        &["mean[2]", "spent ", "refused: the budget refuses"],
    );
}

#[test]
fn predictions() {
    has_all(
        "predictions",
        &["dose 0: cured with a chance of 0.", "dose 2: "],
    );
}

#[test]
fn read_run() {
    let parts = [
        "(2, 1e-6)-differentially private",
        "highest draw of mu",
        "bytes of Parquet",
    ];
    has_all("read_run", &parts);
}
