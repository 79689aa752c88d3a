//! Stored draws and the values that arviz and numpy compute for them; see
//! `tests/fixtures/diagnostics/make_diagnostics.py`.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

/// One parameter's draws, chains × draws, and arviz's figures by name.
pub(super) struct Fixture {
    pub name: String,
    pub chains: Vec<Vec<f64>>,
    pub expected: HashMap<String, f64>,
}

/// Two samples of points and their MMD at several widths.
pub(super) struct MmdFixture {
    pub x: Vec<Vec<f64>>,
    pub y: Vec<Vec<f64>>,
    pub by_width: Vec<(f64, f64)>,
}

pub(super) fn fixtures() -> Vec<Fixture> {
    let arviz = json("arviz.json");
    let values = arviz.as_object().expect("arviz.json is an object");
    assert!(values.len() >= 9, "fixtures are missing");
    let fixture = |(name, figures): (&String, &serde_json::Value)| {
        let rows = csv_rows(&format!("{name}.csv"));
        let chains = (0..rows[0].len())
            .map(|c| rows.iter().map(|row| row[c]).collect())
            .collect();
        let figures = figures.as_object().expect("figures by name");
        let number = |v: &serde_json::Value| v.as_f64().unwrap_or(f64::NAN);
        let expected = figures
            .iter()
            .map(|(k, v)| (k.clone(), number(v)))
            .collect();
        Fixture {
            name: name.clone(),
            chains,
            expected,
        }
    };
    values.iter().map(fixture).collect()
}

pub(super) fn mmd_fixture() -> MmdFixture {
    let expected = json("mmd.json");
    let pair = |v: &serde_json::Value| Some((v["width"].as_f64()?, v["mmd"].as_f64()?));
    let by_width = expected
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(pair)
        .collect();
    MmdFixture {
        x: csv_rows("mmd_x.csv"),
        y: csv_rows("mmd_y.csv"),
        by_width,
    }
}

/// Every fixture, to 1e-8 relative: the tolerance covers only the order of summation.
pub(super) fn assert_all_equal_arviz(figure: &str, statistic: impl Fn(&[Vec<f64>]) -> f64) {
    let mut largest: f64 = 0.0;
    for Fixture {
        name,
        chains,
        expected,
    } in fixtures()
    {
        let (own, arviz) = (statistic(&chains), expected[figure]);
        if own == arviz || own.is_nan() && arviz.is_nan() {
            continue;
        }
        let error = (own - arviz).abs() / arviz.abs();
        assert!(
            error <= 1e-8,
            "{figure} of {name}: {own}, arviz has {arviz}"
        );
        largest = largest.max(error);
    }
    println!("{figure}: largest relative deviation from arviz {largest:.1e}");
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/fixtures/diagnostics"
    ))
}

fn json(file: &str) -> serde_json::Value {
    let text = fs::read_to_string(folder().join(file)).expect("a fixture file");
    serde_json::from_str(&text).expect("JSON")
}

/// Rows of a numeric CSV below its header line.
fn csv_rows(file: &str) -> Vec<Vec<f64>> {
    let text = fs::read_to_string(folder().join(file)).expect("a fixture file");
    let number = |field: &str| field.parse().expect("a number");
    text.lines()
        .skip(1)
        .map(|line| line.split(',').map(number).collect())
        .collect()
}
