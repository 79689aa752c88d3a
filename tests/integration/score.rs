//! `dpm sample --hold-out` and `dpm score`.

use std::fmt::Write as _;

use crate::harness::{Folder, LOGISTIC, Lcg, folder_of, json, says};

struct Place(Folder);

folder_of!(Place);

/// The slope of the made-up tables.
const BETA: f64 = 2.0;

/// The probability of a record's outcome.
fn probability(x: f64) -> f64 {
    1.0 / (1.0 + (-(0.3 + BETA * x)).exp())
}

/// A table of the logistic model, with a column of units of two rows each.
fn table(rng: &mut Lcg, rows: usize) -> String {
    let mut text = String::from("id,x,y\n");
    for i in 0..rows {
        let x = 2.0 * rng.uniform() - 1.0;
        let y = u8::from(rng.uniform() < probability(x));
        let _ = writeln!(text, "p{},{x},{y}", i / 2);
    }
    text
}

/// The mean of a function of x, by the midpoint rule.
fn mean(of: &dyn Fn(f64) -> f64) -> f64 {
    let places = (0..2000).map(|k| (f64::from(k) + 0.5) / 1000.0 - 1.0);
    places.map(of).sum::<f64>() / 2000.0
}

/// The best log predictive density there is, and how much less that without a slope is.
fn expected_densities() -> [f64; 2] {
    let entropy = |p: f64| p * p.ln() + (1.0 - p) * (1.0 - p).ln();
    let best = mean(&|x| entropy(probability(x)));
    [best, entropy(mean(&probability)) - best]
}

impl Place {
    /// A table, and runs without privacy of the model and of one without a slope.
    fn new(rows: usize) -> Place {
        let place = Place(Folder::new());
        place.write("model.dpm", LOGISTIC);
        let flat = LOGISTIC.replace("alpha + beta * x", "alpha + 0 * beta * x");
        place.write("flat.dpm", flat);
        place.write("data.csv", table(&mut Lcg(3), rows));
        place
    }

    fn nuts(&self, model: &str, flags: &str) {
        self.succeeds(&format!(
            "sample {model}.dpm data.csv --algorithm nuts --not-private --chains 2 --num-samples 200 {flags}"
        ));
    }
}

// Wrong here: a score that is not the expected log predictive density, an interval that is too
// narrow, or a comparison of the wrong sign. Oracle: the entropy of the made-up outcomes, which is
// the best score there is. False alarms: each of 4 figures is 5 of its own sds wide, 1e-5.
#[test]
fn scores_are_near_the_truth_and_tell_models_apart() {
    let place = Place::new(6000);
    for model in ["model", "flat"] {
        place.nuts(model, "--hold-out 0.5");
    }
    let score = "score model-run data.csv --against flat-run --epsilon 1 --insecure-noise-seed 7";
    place.succeeds(&format!("{score} --out score.json"));
    let json = place.json("score.json");
    assert_eq!(json["private"], false);

    let [best, difference] = expected_densities();
    let expected = [
        ("/log_predictive_density", best),
        ("/differences/0/log_predictive_density", difference),
        (
            "/right_guesses",
            mean(&|x| probability(x).max(1.0 - probability(x))),
        ),
        (
            "/brier_score",
            mean(&|x| probability(x) * (1.0 - probability(x))),
        ),
    ];
    for (path, expected) in expected {
        let figure = json
            .pointer(path)
            .unwrap_or_else(|| panic!("{path}: {json}"));
        let number = |name: &str| figure[name].as_f64().unwrap();
        let sd = number("sampling_sd").hypot(number("noise_sd"));
        let off = number("mean") - expected;
        assert!(off.abs() < 5.0 * sd, "{path}: {off} with sd {sd}");
        assert!(sd < 0.06, "{path}: {sd}");
    }
    let better = json["differences"][0]["log_predictive_density"]["interval_90"][1].as_f64();
    assert!(better.unwrap() < 0.0, "{json}");
    assert!((json["records"].as_f64().unwrap() - 3000.0).abs() < 200.0);
}

// Wrong here: units that are compared with other ones. Oracle: a unit has two rows, and twice the
// difference of one. False alarms: 5 of its own sds, 1e-6. Power: compared with others, units would
// have a far larger spread.
#[test]
fn runs_are_compared_by_unit() {
    let place = Place::new(6000);
    for model in ["model", "flat"] {
        place.nuts(model, "--hold-out 0.5 --unit id");
    }
    let score = "score model-run data.csv --against flat-run --unit id --epsilon 1 --insecure-noise-seed 7 --format json";
    let said = json(&place.succeeds(score).out);
    let figure = &said["differences"][0]["log_predictive_density"];
    let number = |name: &str| figure[name].as_f64().unwrap();
    let sd = number("sampling_sd").hypot(number("noise_sd"));
    let off = number("mean") - 2.0 * expected_densities()[1];
    assert!(off.abs() < 5.0 * sd && sd < 0.06, "{off} {sd}");
    assert!((said["records"].as_f64().unwrap() - 1500.0).abs() < 200.0);
}

// Wrong here: a record that a run learns from and is judged by, or that neither reads. A row that
// cannot be read stops whoever reads it.
#[test]
fn a_run_and_its_score_are_of_disjoint_records() {
    let place = Place::new(300);
    let good = place.read("data.csv");
    for unit in ["", "--unit id"] {
        place.write("data.csv", &good);
        let sample = format!(
            "sample model.dpm data.csv --algorithm nuts --not-private --chains 1 --num-samples 5 --num-warmup 5 --hold-out 0.4 --overwrite --no-report --out run {unit}"
        );
        place.succeeds(&sample);
        let mut held_out = 0;
        for spoilt in (1..=300).step_by(13) {
            let lines = good.lines().enumerate();
            let spoil = |(i, line): (usize, &str)| {
                if i == spoilt {
                    format!("{},?,0\n", line.split(',').next().unwrap())
                } else {
                    format!("{line}\n")
                }
            };
            place.write("data.csv", lines.map(spoil).collect::<String>());
            let score = place.dpm(&format!(
                "score run data.csv --epsilon 10 --delta 1e-6 --insecure-noise-seed 1 {unit}"
            ));
            let codes = [score.code, place.dpm(&sample).code];
            assert!(
                codes == [0, 2] || codes == [2, 0],
                "row {spoilt}: {codes:?} {}",
                score.err
            );
            held_out += usize::from(score.code == 2);
        }
        // Of 23 or 24 rows: false alarms 1e-4.
        assert!((2..20).contains(&held_out), "{held_out}");
    }
}

// Wrong here: a statistic that is not that of the held-out records, a prediction for other records than
// these, or one that says nothing of a model that is wrong. Oracle: means of the made-up outcomes. The
// flat model predicts too few of the records with x > 0. False alarms: 5 standard errors, and p beyond
// 1e-4 of a right model, 1e-3.
#[test]
fn statistics_are_checked_against_what_a_run_predicts() {
    let place = Place::new(6000);
    for model in ["model", "flat"] {
        place.nuts(model, "--hold-out 0.5");
    }
    let flags = "--epsilon 2 --insecure-noise-seed 7 --statistic y==1 --statistic x>0?y:0";
    let checks = |run: &str| {
        let text = place.succeeds(&format!("score {run} data.csv {flags}")).out;
        assert!(
            text.contains("y==1 ") && text.contains("predicted"),
            "{text}"
        );
        let said = place.succeeds(&format!("score {run} data.csv {flags} --format json"));
        json(&said.out)["statistics"].as_array().unwrap().clone()
    };
    let share = |x: f64| if x > 0.0 { probability(x) } else { 0.0 };
    let truths = [mean(&probability), mean(&share)];
    let number = |check: &serde_json::Value, name: &str| check[name].as_f64().unwrap();
    for (check, truth) in checks("model-run").iter().zip(truths) {
        let noise = number(check, "noise_sd");
        let sd = (0.25f64 / 3000.0).sqrt().hypot(noise);
        let off = number(check, "observed") - truth;
        assert!(off.abs() < 5.0 * sd && noise < 0.01, "{check}");
        let off = number(check, "predicted") - truth;
        assert!(
            off.abs() < 5.0 * sd.hypot(number(check, "predictive_sd")),
            "{check}"
        );
        let p = number(check, "p_value");
        assert!(p > 1e-4 && p < 1.0 - 1e-4, "{check}");
        assert_eq!(check["bounds"], serde_json::json!([0.0, 1.0]));
    }
    let of_flat = checks("flat-run");
    assert!(number(&of_flat[0], "p_value") > 1e-4, "{of_flat:?}");
    assert!(number(&of_flat[1], "p_value") < 1e-4, "{of_flat:?}");

    for (statistic, expected) in [
        ("x", "reads no column that the model explains"),
        ("y/x", "bound it"),
        ("y==z", "`z`"),
        ("y;x", "is not an expression"),
        ("alpha*y", "alpha"),
    ] {
        let score = format!("score model-run data.csv --epsilon 1 --statistic {statistic}");
        place.refuses(&score, 2, &[expected]);
    }
}

// Wrong here: a ledger that charges for parts of a table as for all of it, where units have keys; or
// that takes scores of the same records, or runs on other divisions, for ones on records of their own.
// Where records are found by their places: one that takes them to be in the same place next time.
#[test]
fn a_ledger_charges_the_larger_of_a_run_and_its_scores() {
    let place = Place::new(4000);
    place.succeeds("ledger create units.ledger --epsilon 3 --delta 1e-6 --unit id");
    place.succeeds("ledger create records.ledger --epsilon 3 --delta 1e-6");
    let spent_in = |ledger: &str, command: &str| {
        place.succeeds(&format!(
            "{command} --delta 1e-6 --ledger {ledger}.ledger --quiet"
        ));
        place.succeeds(&format!("ledger verify {ledger}.ledger"));
        let shown = place.succeeds(&format!("ledger show {ledger}.ledger --format json"));
        json(&shown.out)["spent"].as_f64().unwrap()
    };
    let spent_after = |command: &str| spent_in("units", &format!("{command} --unit id"));
    let sample = "sample model.dpm data.csv --num-samples 20 --chains 1 --no-report --overwrite";
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-4, "{a} {b}");
    let run = spent_after(&format!("{sample} --epsilon 1 --hold-out 0.4"));
    near(run, 1.0);
    let score = "score model-run data.csv --epsilon 0.8";
    near(spent_after(score), run);
    // Two scores on the same records cost more than the run.
    let twice = spent_after(score);
    assert!(twice > 1.1 && twice < 1.5, "{twice}");
    // As much again on the other part is free, as far as the scores reach, and `dpm plan` knows.
    let planned = |flags: &str| {
        let plan = format!(
            "plan model.dpm --rows 2400 --epsilon 0.3 --delta 1e-6 --ledger units.ledger --format json {flags}"
        );
        let quote = &json(&place.succeeds(&plan).out)["ledger"];
        quote["requested"].as_f64().unwrap()
    };
    near(planned("--unit id --hold-out 0.4"), 0.0);
    assert!(planned("--unit id --hold-out 0.3") > 0.01);
    assert!(planned("--unit id") > 0.01);
    let again = spent_after(&format!("{sample} --epsilon 0.3 --hold-out 0.4"));
    near(again, twice);
    // Another division has nothing to do with this one, and neither has the whole table.
    let other = spent_after(&format!(
        "{sample} --epsilon 0.8 --hold-out 0.4 --split other"
    ));
    assert!(other > twice + 0.1, "{other}");
    let others = spent_after("score model-run data.csv --epsilon 0.8");
    near(others, other);
    let all = spent_after(&format!("{sample} --epsilon 0.8"));
    assert!(all > other + 0.1, "{all}");
    let shown = place.succeeds("ledger show units.ledger").out;
    says(&shown, "all but what `other` holds out, about 0.4");

    let run = spent_in("records", &format!("{sample} --epsilon 1 --hold-out 0.4"));
    near(run, 1.0);
    let both = spent_in("records", score);
    assert!(both > 1.2 && both < 1.8, "{both}");
    let shown = place.succeeds("ledger show records.ledger").out;
    assert!(!shown.contains("holds out"), "{shown}");
}

// Wrong here: a comparison that clipping has made of most records is shown as if it were not.
#[test]
fn differences_that_fill_their_bounds_are_told() {
    let place = Place::new(2000);
    for model in ["model", "flat"] {
        place.nuts(model, "--hold-out 0.5");
    }
    let score = "score model-run data.csv --against flat-run --epsilon 5 --delta 1e-6 --insecure-noise-seed 1";
    let warns = |flags: &str| {
        let said = place.succeeds(&format!("{score} {flags} --quiet")).err;
        said.contains("many of them are clipped")
    };
    assert!(!warns("") && warns("--clip-difference 0.05"));
}

#[test]
fn what_cannot_be_scored_is_refused_and_nothing_is_charged() {
    let place = Place::new(2000);
    place.nuts("model", "--hold-out 0.3");
    place.nuts("flat", "");
    place.succeeds("ledger create l.ledger --epsilon 1 --delta 1e-6");
    let refused = |arguments: &str, expected: &str| {
        let outcome = place.dpm(arguments);
        assert_ne!(outcome.code, 0, "{arguments}");
        assert!(
            outcome.err.contains(expected),
            "{arguments}: {}",
            outcome.err
        );
        assert!(outcome.out.is_empty(), "{arguments}");
    };
    refused(
        "score flat-run data.csv --epsilon 1",
        "held out none of its table's records",
    );
    refused(
        "score model-run data.csv --epsilon 1 --against flat-run",
        "held out none of its table's records",
    );
    place.nuts("flat", "--hold-out 0.3 --split other --overwrite");
    refused(
        "score model-run data.csv --epsilon 1 --against flat-run",
        "the same --hold-out and --split",
    );
    // Its places are no longer those of the run where a record is added.
    refused(
        "score model-run data.csv --epsilon 1 --delta 1e-6 --relation add-remove",
        "under add-remove the place of a record depends on others",
    );
    refused(
        "score model-run data.csv --epsilon 1 --unit id",
        "made without --unit",
    );
    refused(
        "score model-run data.csv --epsilon 0.001 --delta 1e-6 --ledger l.ledger",
        "would drown the score",
    );
    refused(
        "score model-run data.csv --epsilon 5 --delta 1e-6 --ledger l.ledger",
        "the budget refuses",
    );
    refused(
        "score model-run data.csv --epsilon 1 --clip 3,1",
        "the lower one first",
    );
    refused(
        "score model-run data.csv --epsilon 1 --ledger l.ledger --insecure-noise-seed 1",
        "not private",
    );
    refused(
        "sample model.dpm data.csv --epsilon 1 --delta 1e-6 --relation add-remove --hold-out 0.2 --out r",
        "give --unit",
    );
    refused(
        "sample model.dpm data.csv --epsilon 1 --hold-out 1.5",
        "above 0 and below 1",
    );
    assert!(!place.file("r").exists());
    let spent = place.succeeds("ledger show l.ledger --format json").out;
    assert_eq!(json(&spent)["spent"].as_f64(), Some(0.0), "{spent}");

    // What can be scored is charged once.
    place.succeeds("score model-run data.csv --epsilon 0.7 --delta 1e-6 --ledger l.ledger");
    let spent = place.succeeds("ledger show l.ledger --format json").out;
    let spent = json(&spent)["spent"].as_f64().unwrap();
    assert!(spent > 0.69 && spent < 0.7001, "{spent}");
}
