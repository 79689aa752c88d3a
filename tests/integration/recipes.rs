//! The models of docs/recipes.md: each checks without a warning, is in form, can be planned, and
//! runs on records made up from its own prior.

use std::fs;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use dpm::testing::density::{Density, Simulator};
use dpm::testing::sampler::draw_prior;

use crate::corpus::{programs, read, root};
use crate::evaluation::shipped;
use crate::harness::{Folder, json};

const RECORDS: usize = 300;

/// The names of the recipes, each in a folder of its own as `m.dpm`.
fn recipes() -> Vec<(String, Folder)> {
    let placed = programs("models/recipes").into_iter().map(|path| {
        let name = path.file_stem().expect("a name").to_string_lossy();
        let place = Folder::new();
        place.write("m.dpm", read(&path));
        let constants = path.with_extension("constants.json");
        if constants.exists() {
            place.write("m.constants.json", read(&constants));
        }
        (name.into_owned(), place)
    });
    placed.collect()
}

#[test]
fn recipes_check_are_in_form_and_can_be_planned() {
    for (name, place) in recipes() {
        let found = json(&place.succeeds("check m.dpm --format json").out);
        assert_eq!(found["diagnostics"], serde_json::json!([]), "{name}");
        place.succeeds("fmt --check m.dpm");
        let plan = place.succeeds("plan m.dpm --rows 4000 --epsilon 1 --delta 1e-6 --format json");
        let epsilon = json(&plan.out)["epsilon"].as_f64().expect("a number");
        assert!(0.99 < epsilon && epsilon <= 1.0, "{name}: {epsilon}");
    }
}

#[test]
fn recipes_run_on_records_of_their_own() {
    for (name, place) in recipes() {
        let density = shipped(&format!("recipes/{name}"));
        // Every column is a promise about its values.
        for column in &density.model().columns {
            let bounded = column.lower.is_some() && column.upper.is_some();
            assert!(bounded && column.used, "{name}: {}", column.name);
        }
        place.write("m.csv", made_up(&density));
        place.succeeds(
            "sample m.dpm m.csv --epsilon 1 --delta 1e-6 --insecure-noise-seed 1 --seed 1 \
             --chains 1 --num-warmup 10 --num-samples 10 --out run --no-report",
        );
        let draws = place.read("run/chain-1.csv");
        let rows = draws.lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(rows, 11, "{name}: a header and ten draws");
    }
}

#[test]
fn recipes_are_all_in_the_guide() {
    let guide = read(&root().join("docs/recipes.md"));
    let files = fs::read_dir(root().join("models/recipes")).expect("the recipes");
    for file in files {
        let name = file.expect("a file").file_name();
        let name = name.to_string_lossy();
        let stem = name.split('.').next().unwrap_or_default();
        let link = format!("](../models/recipes/{stem}.dpm)");
        assert!(guide.contains(&link), "docs/recipes.md: no link to {stem}");
    }
}

/// A table of records at a draw from the model's prior.
fn made_up(density: &Density) -> String {
    let prior = draw_prior(density, 1, 1).expect("a proper prior");
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let records = Simulator::new(density).records(&prior.draws[0], RECORDS, None, &mut rng);
    let columns = &density.model().columns;
    let header: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
    let row = |i: usize| {
        let cells = columns.iter().zip(&records).map(|(column, values)| {
            // Ints of a factor count its words from 1.
            let level = column.levels.get((values[i] - 1.0) as usize);
            level.cloned().unwrap_or_else(|| values[i].to_string())
        });
        cells.collect::<Vec<_>>().join(",")
    };
    let rows: Vec<String> = (0..RECORDS).map(row).collect();
    format!("{}\n{}\n", header.join(","), rows.join("\n"))
}
