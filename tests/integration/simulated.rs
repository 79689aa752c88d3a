//! Tables made up from a model, and runs on them: `dpm simulate` and `dpm sbc`.

use serde_json::{Value, json};

use crate::harness::{Folder, LOGISTIC, folder_of, json as read_json, says};

struct Place(Folder);
folder_of!(Place);

/// A normal mean, whose prior has this scale.
fn normal_mean(scale: f64) -> String {
    format!(
        "record {{ real<lower=-100, upper=100> y; }}
parameters {{ real mu; }}
model {{ mu ~ normal(0, {scale}); y ~ normal(mu, 1); }}
"
    )
}

/// Runs of a tenth of a second.
const QUICK: &str = "--algorithm nuts --not-private --chains 2 --num-warmup 150 --num-samples 150";

impl Place {
    fn new() -> Place {
        let place = Place(Folder::new());
        place.write("m.dpm", LOGISTIC);
        place
    }
}

#[test]
fn a_table_and_its_parameters_are_written_and_read_again() {
    let place = Place::new();
    let said = place.succeeds("simulate m.dpm --rows 400 --out t.csv");
    for words in ["y: mean", "at its upper bound", "written to t.csv"] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
    assert!(said.out.is_empty());
    let table = place.read("t.csv");
    assert!(table.starts_with("y,x\n") && table.lines().count() == 401);
    let parameters = place.json("t.csv.parameters.json");
    assert!(parameters["alpha"].is_number() && parameters["beta"].as_f64() > Some(-20.0));
    // The same seed makes the same table, also at the parameters that were written.
    let again = place.succeeds("simulate m.dpm --rows 400 --out -");
    assert_eq!(again.out, table);
    assert!(again.err.contains("parameters: {"), "{}", again.err);
    let other = place.succeeds("simulate m.dpm --rows 400 --out - --seed 2");
    assert_ne!(other.out, table);
    place.succeeds("simulate m.dpm --rows 9 --out u.csv --parameters t.csv.parameters.json");
    assert_eq!(place.json("u.csv.parameters.json"), parameters);
    // A run takes both.
    place.succeeds(
        "sample m.dpm t.csv --init t.csv.parameters.json --epsilon 2 --delta 1e-4 --num-samples 20",
    );
    let of_run = place.succeeds("simulate m.dpm --rows 50 --run m-run --out r.csv --seed 4");
    assert!(!of_run.err.contains("NOT PRIVATE"), "{}", of_run.err);
    let drawn = place.json("r.csv.parameters.json")["alpha"].as_f64();
    let chains: String = (1..=4)
        .map(|i| place.read(&format!("m-run/chain-{i}.csv")))
        .collect();
    let alpha = drawn.expect("a number").to_string();
    assert!(chains.contains(&alpha), "no draw has {alpha}");
}

#[test]
fn several_tables_have_parameters_of_their_own() {
    let place = Place::new();
    let command = "simulate m.dpm --rows 200 --tables 3 --out t.csv --format json";
    let said = read_json(&place.succeeds(command).out);
    assert_eq!(
        place.names("."),
        [
            "m.dpm",
            "t-1.csv",
            "t-2.csv",
            "t-3.csv",
            "t.csv.parameters.json"
        ]
    );
    let list = place.json("t.csv.parameters.json");
    let alpha = |i: usize| list[i]["alpha"].as_f64().expect("a number");
    assert_eq!(list.as_array().map(Vec::len), Some(3));
    assert!(alpha(0) != alpha(1) && alpha(1) != alpha(2));
    let y = &said["outcomes"][0];
    assert_eq!((&y["outcome"], &said["rows"]), (&json!("y"), &json!(200)));
    // Over all tables: the mean of y is the share of its upper bound.
    let ones: usize = (1..=3)
        .map(|i| place.read(&format!("t-{i}.csv")).matches("\n1,").count())
        .sum();
    let share = ones as f64 / 600.0;
    for figure in [&y["mean"], &y["at_upper"]] {
        assert!((figure.as_f64().expect("a number") - share).abs() < 1e-12);
    }
    place.refuses(command, 2, &["exists already", "--overwrite"]);
    place.succeeds(&format!("{command} --overwrite"));
}

#[test]
fn factors_covariates_and_missing_priors() {
    let place = Place::new();
    place.write(
        "f.dpm",
        "record { factor(\"no\", \"it, may\") f; real<lower=0, upper=9> x; real<lower=-99, upper=99> y; }
parameters { real a; real<lower=0> s; }
model { a ~ normal(0, 1); y ~ normal(a * x + f, s); }
",
    );
    place.write("public.csv", "x,other\n2,5\n7,6\n");
    let said = place.succeeds("simulate f.dpm --rows 60 --public-sample public.csv --out f.csv");
    assert!(said.err.contains("`s` has no proper prior"), "{}", said.err);
    let table = place.read("f.csv");
    assert!(
        table.contains("\nno,") && table.contains("\n\"it, may\","),
        "{table}"
    );
    let xs = table
        .lines()
        .skip(1)
        .map(|l| l.rsplit(',').nth(1).expect("x"));
    assert!(xs.into_iter().all(|x| x == "2" || x == "7"));
    #[cfg(feature = "parquet")]
    {
        place.succeeds("simulate f.dpm --rows 60 --public-sample public.csv --out f.parquet");
        for data in ["f.csv", "f.parquet"] {
            let run = format!("sample f.dpm {data} {QUICK} --out {data}-run");
            place.succeeds(&run);
        }
        let draws = |data: &str| place.read(&format!("{data}-run/summary.csv"));
        assert_eq!(draws("f.csv"), draws("f.parquet"));
    }
}

// If it failed: what a user knows of a column would be ignored, or a run would hide that it used it.
#[test]
fn guesses_of_covariates_are_used_kept_and_told() {
    let place = Place::new();
    let gains = LOGISTIC.replace("real<lower=-1, upper=1> x", "real<lower=0, upper=100> x");
    let gains = gains.replace("beta * x", "beta * x / 20");
    place.write("m.dpm", &gains);
    place.write(
        "g.yaml",
        "columns: {x: {zeros: 0.8, mean: 20, sd: 10}, y: {type: boolean}}",
    );
    let zeros = |table: &str| {
        let table = place.read(table);
        table
            .lines()
            .filter(|line| line.split(',').nth(1) == Some("0"))
            .count()
    };
    place.succeeds("simulate m.dpm --rows 1000 --metadata g.yaml --out t.csv");
    // Eight standard errors.
    assert!((700..=900).contains(&zeros("t.csv")), "{}", zeros("t.csv"));
    for command in [
        "plan m.dpm --rows 1000 --epsilon 1 --delta 1e-6",
        "sample m.dpm t.csv --epsilon 1 --delta 1e-6 --insecure-noise-seed 1 --chains 1 --num-samples 20",
    ] {
        let with = place.succeeds(&format!("{command} --metadata g.yaml"));
        if command.starts_with("sample") {
            assert_eq!(
                place.json("m-run/config.json")["covariates"]["x"]["zeros"],
                json!(0.8)
            );
            assert_eq!(place.json("m-run/config.json")["metadata"], json!("g.yaml"));
            let public = place.json("m-run/privacy.json")["assumed_public"].to_string();
            assert!(public.contains("guesses"), "{public}");
            place.succeeds("synth m-run --rows 1000 --out s.csv");
            assert!((700..=900).contains(&zeros("s.csv")), "{}", zeros("s.csv"));
            let origin = &place.json("s.about.json")["columns"][1]["origin"];
            assert_eq!(origin, &json!("guess"));
            assert!(place.read("s.about.md").contains("from the public guess"));
            let first = place.read("m-run/chain-1.csv");
            place.succeeds(&format!("{command} --overwrite"));
            assert_ne!(
                place.read("m-run/chain-1.csv"),
                first,
                "the guess changes what is asked"
            );
            assert_eq!(place.json("m-run/config.json")["covariates"], Value::Null);
        } else {
            assert!(with.out.contains("foreseen"), "{}", with.out);
        }
    }
    let standing = place.names(".");
    let [wrong, none] = ["wrong.yaml", "none.yaml"];
    place.write(wrong, "columns: {x: {mean: 200, sd: 10}}");
    place.write(none, "columns: {y: {mean: 0.5}, z: {mean: 1, sd: 1}}");
    for (metadata, words) in [
        (wrong, "from 0 to 100"),
        (none, "no guess"),
        ("m.dpm", "YAML"),
        ("nowhere.yaml", "cannot read the codebook"),
    ] {
        for command in [
            "simulate m.dpm --rows 9 --out u.csv",
            "sbc m.dpm --rows 9 --epsilon 1",
            "sample m.dpm t.csv --epsilon 1 --out u",
            "plan m.dpm --rows 9 --epsilon 1",
            "tune m.dpm --simulate --rows 9 --epsilon 1 --delta 0.01",
        ] {
            place.refuses(&format!("{command} --metadata {metadata}"), 2, &[words]);
        }
    }
    for made in [wrong, none] {
        std::fs::remove_file(place.file(made)).expect("a file");
    }
    assert_eq!(place.names("."), standing);
}

#[test]
fn wrong_questions_are_refused_and_write_nothing() {
    let place = Place::new();
    place.write("p.json", "{\"alpha\": 1}");
    place.write("n.dpm", normal_mean(1.0));
    let sbc = "sbc m.dpm --rows 100 --tables 2";
    for (command, code, words) in [
        ("simulate m.dpm --rows 0 --out t.csv", 2, "--rows"),
        ("simulate m.dpm --rows 5 --out t.xlsx", 2, "ends in .csv"),
        ("simulate m.dpm --rows 5 --out - --tables 2", 2, "one table"),
        (
            "simulate m.dpm --rows 5 --out t.csv --parameters p.json",
            2,
            "`beta` has no value",
        ),
        ("simulate m.dpm --rows 5 --out t.csv --run none", 2, "none"),
        (
            "simulate m.dpm --rows 5 --out t.csv --public-sample m.dpm",
            2,
            "m.dpm",
        ),
        (sbc, 2, "--epsilon"),
        (
            &format!(
                "{sbc} --epsilon 0.01 --delta 1e-9 --algorithm dp-hmc --step-size 0.1 --tau-gradient 1 --tau-log-ratio 1"
            ),
            3,
            "short by",
        ),
        (&format!("{sbc} --algorithm nuts"), 2, "--not-private"),
        (
            &format!("{sbc} --algorithm nuts --not-private --epsilon 1"),
            2,
            "leave them out",
        ),
        (
            &format!("{sbc} --epsilon 1 --simulate-from n.dpm"),
            2,
            "parameters",
        ),
        (&format!("{sbc} --epsilon 1 --threads 0"), 2, "--threads"),
    ] {
        place.refuses(command, code, &[words]);
    }
    assert_eq!(place.names("."), ["m.dpm", "n.dpm", "p.json"]);
}

// If it failed: a user would believe in runs that are wrong, or doubt those that are right. The exact
// sampler on tables of the model passes, with a false-alarm rate of 5% over seeds; on tables from a
// prior five times as wide it cannot: of 5 records, intervals that hold the truth in 90% of the
// cases do so in about a third of them.
#[test]
fn calibration_passes_a_right_model_and_finds_a_planted_prior() {
    let place = Place::new();
    place.write("narrow.dpm", normal_mean(0.2));
    place.write("wide.dpm", normal_mean(1.0));
    let command = format!("sbc narrow.dpm --rows 5 --tables 60 {QUICK}");
    let right = place.succeeds(&command);
    says(&right.out, "as those of a calibrated run");
    assert!(right.err.contains("no data were read"), "{}", right.err);
    let found = place.json("narrow-sbc/sbc.json");
    assert_eq!(found["calibrated"], json!(true));
    let coverage = |found: &Value| found["coverage"]["90"]["share"].as_f64().expect("a share");
    // Five standard errors of 60 tables.
    assert!((coverage(&found) - 0.9).abs() < 0.2, "{found}");
    let wrong = place.succeeds(&format!("{command} --simulate-from wide.dpm --out wrong"));
    says(&wrong.out, "NOT CALIBRATED: the ranks of mu");
    let found = place.json("wrong/sbc.json");
    assert_eq!(found["calibrated"], json!(false));
    assert!(coverage(&found) < 0.6, "{found}");
    let ranks = place.read("wrong/ranks.csv");
    assert!(
        ranks.starts_with("table,mu\n1,") && ranks.lines().count() == 61,
        "{ranks}"
    );
    assert!(place.read("wrong/sbc.html").contains("leaves the band"));
    place.refuses(&command, 2, &["exists already", "--overwrite"]);
    place.succeeds(&format!("{command} --overwrite --tables 2").replacen("--tables 60 ", "", 1));
}

// If it failed: what is found would depend on the machine, or not be about the private run.
#[test]
fn private_runs_are_calibrated_the_same_on_any_number_of_threads() {
    let place = Place::new();
    let run = "sbc m.dpm --rows 300 --tables 3 --epsilon 4 --delta 1e-4 --num-samples 100";
    let one = place.succeeds(&format!("{run} --threads 1 --out one"));
    let two = place.succeeds(&format!("{run} --threads 2 --out two"));
    assert_eq!(one.out, two.out);
    for words in [
        "epsilon 4 at delta",
        "300 rows",
        "times as wide as without privacy",
        "beta",
    ] {
        assert!(one.out.contains(words), "{words}: {}", one.out);
    }
    for file in ["sbc.json", "ranks.csv", "sbc.html"] {
        assert_eq!(
            place.read(&format!("one/{file}")),
            place.read(&format!("two/{file}"))
        );
    }
    let found = place.json("one/sbc.json");
    assert_eq!(found["algorithm"], json!("dp-laplace"));
    for parameter in found["parameters"].as_array().expect("a list") {
        let ratio = parameter["width_to_reference"].as_f64().expect("a ratio");
        // Noise makes intervals wider, but for Monte Carlo error.
        assert!((0.7..50.0).contains(&ratio), "{parameter}");
    }
    let alone = place.succeeds(&format!("{run} --no-reference --out three"));
    assert!(!alone.out.contains("without privacy"), "{}", alone.out);
}

// The default on tables of its own, as `dpm sbc` shows it. With a false-alarm rate of 5% over seeds;
// intervals half as wide as they should be leave the band.
#[test]
#[ignore = "100 runs, half a minute"]
fn the_default_is_calibrated_on_a_logistic_regression() {
    let place = Place::new();
    place.succeeds("sbc m.dpm --rows 500 --epsilon 1 --delta 1e-6 --no-reference");
    let found = place.json("m-sbc/sbc.json");
    assert_eq!(found["calibrated"], json!(true), "{found}");
}
