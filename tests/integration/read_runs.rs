//! Commands that read runs back: `dpm summary`, `dpm diagnose`, `dpm compare`. Whatever stands in a
//! run's files is reported, never crashed on.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::{Folder, Lcg, folder_of, json, says};

const MODEL: &str = "\
record {
  real<lower=-10, upper=10> y;
  real<lower=-10, upper=10> z;
}
parameters {
  vector[2] mu;
}
model {
  mu ~ normal(0, 2);
  y ~ normal(mu[1], 1);
  z ~ normal(mu[2], 1);
}
";

/// Chains long enough to converge, without privacy.
const NUTS: &str =
    "--algorithm nuts --not-private --chains 4 --num-warmup 300 --num-samples 500 --seed 3";
/// A budget so small that every proposal drowns in noise.
const DROWNED: &str = "--epsilon 0.01 --delta 1e-6 --chains 2 --num-warmup 0 --num-samples 20 --leapfrog-steps 3 --step-size 0.5 --seed 3 --insecure-noise-seed 5";

struct Place(Folder);

folder_of!(Place);

impl Place {
    /// With `m.dpm` and `d.csv`.
    fn new() -> Place {
        let place = Place(Folder::new());
        place.write("m.dpm", MODEL);
        let value = |i: usize| ((i * 37 % 100) as f64 - 40.0) / 25.0;
        let row = |i: usize| format!("{},{}\n", value(i), value(3 * i + 1));
        let rows: String = (0..200).map(row).collect();
        place.write("d.csv", format!("y,z\n{rows}"));
        place
    }

    /// Wrong usage or bad input, explained with these words, and nothing on standard output.
    fn fails(&self, arguments: &str, words: &[&str]) {
        let outcome = self.refuses(arguments, 2, words);
        assert_eq!(outcome.out, "", "dpm {arguments}");
    }

    fn answer(&self, arguments: &str) -> Value {
        json(&self.succeeds(arguments).out)
    }

    /// Rewrites the fields of one column in the rows of a chain's file.
    fn rewrite(&self, file: &str, column: &str, field: impl Fn(usize, &str) -> String) {
        let (text, mut place, mut rows) = (self.read(file), None, 0);
        let lines = text.lines().map(|line| {
            if line.starts_with('#') {
                return line.to_owned();
            }
            let mut fields: Vec<String> = line.split(',').map(str::to_owned).collect();
            match place {
                None => place = fields.iter().position(|f| f == column),
                Some(place) => {
                    fields[place] = field(rows, &fields[place]);
                    rows += 1;
                }
            }
            fields.join(",")
        });
        let lines: Vec<String> = lines.collect();
        assert!(rows > 0, "no column {column} in {file}");
        self.write(file, &(lines.join("\n") + "\n"));
    }
}

fn kinds(diagnosis: &Value) -> Vec<&str> {
    let verdicts = diagnosis["verdicts"].as_array().expect("a list");
    let kind = |v: &Value| v["kind"].as_str().map(str::to_owned);
    assert!(verdicts.iter().all(|v| kind(v).is_some()));
    verdicts.iter().filter_map(|v| v["kind"].as_str()).collect()
}

#[test]
fn a_good_run_is_called_good_and_a_cut_one_bad() {
    let place = Place::new();
    let sampled = place.succeeds(&format!("sample m.dpm d.csv {NUTS} --out run"));
    says(
        &sampled.err,
        "verdict: These draws can be used. The chains have converged: the largest R-hat is 1.0",
    );
    let diagnosis = place.answer("diagnose run --format json");
    assert_eq!(diagnosis["convergence"], "converged");
    assert_eq!(diagnosis["decision"], "use");
    assert_eq!(diagnosis["private"], false);
    assert_eq!(kinds(&diagnosis), ["convergence"], "{diagnosis}");
    let text = place.succeeds("diagnose run");
    assert!(
        text.out
            .starts_with("These draws can be used.\ngood: The chains have converged"),
        "{}",
        text.out
    );
    assert!(text.err.contains("NOT PRIVATE"));

    // The same files, with one chain moved away and divergences in another.
    place.rewrite("run/chain-2.csv", "mu.1", |_, x| {
        (x.parse::<f64>().expect("a number") + 5.0).to_string()
    });
    place.rewrite("run/chain-3.csv", "divergent__", |row, x| {
        if row == 7 { "1".into() } else { x.to_owned() }
    });
    let diagnosis = place.answer("diagnose run --format json");
    assert_eq!(diagnosis["convergence"], "not_converged");
    assert_eq!(kinds(&diagnosis), ["convergence", "divergence"]);
    assert_eq!(diagnosis["verdicts"][0]["parameters"][0], "mu[1]");
    // Programs read names of settings; people, flags.
    let advice = diagnosis["verdicts"][0]["advice"].as_str();
    assert!(advice.is_some_and(|advice| advice.contains("(`num_samples`)")));
    let text = place.succeeds("diagnose run").out;
    assert!(
        text.starts_with("Do not use these draws.\nproblem: The chains have not converged")
            && text.contains("what helps: ")
            && text.contains("(--num-samples)"),
        "{text}"
    );
    // No threshold of R-hat stops the summary from being printed.
    let summary = place.succeeds("summary run");
    assert!(
        summary
            .err
            .contains("problem: The chains have not converged")
    );
    assert!(summary.out.contains("mu[1]"));
}

#[test]
fn a_run_without_an_accepted_proposal_is_reported() {
    let place = Place::new();
    let sampled = place.succeeds(&format!("sample m.dpm d.csv {DROWNED} --out run"));
    for words in [
        "verdict: Do not use these draws. The chains have not converged: 2 of 2 never moved",
        "verdict: problem: All chains never moved",
        "verdict: problem: The noise dominates",
        "dpm diagnose run",
    ] {
        assert!(sampled.err.contains(words), "no `{words}`: {}", sampled.err);
    }
    let diagnosis = place.answer("diagnose run --format json");
    assert_eq!(
        kinds(&diagnosis)[..3],
        ["convergence", "never_moved", "test_noise"]
    );
    // The planner's figure for these settings, whose step is the run's.
    let plan = place.answer(
        "plan m.dpm --rows 200 --epsilon 0.01 --delta 1e-6 --chains 2 --num-warmup 0 --num-samples 20 --leapfrog-steps 3 --step-size 0.5 --format json",
    );
    let planned = plan["predicted"]["log_ratio_noise_sd"]
        .as_f64()
        .expect("a noise");
    let found = diagnosis["verdicts"][2]["value"].as_f64().expect("a value");
    // Of 20 jittered steps the largest is at least 15/16 of the whole.
    assert!(
        found > 0.93 * planned && found <= planned * 1.0001,
        "{found} {planned}"
    );
    let summary = place.succeeds("summary run");
    assert!(summary.err.contains("problem: All chains never moved"));
    assert!(summary.out.contains("mu[2]"), "{}", summary.out);
    for format in ["csv", "json"] {
        place.succeeds(&format!("summary run --format {format}"));
    }
    // What makes draws useless is no chatter.
    let quiet = place.succeeds("summary run --quiet").err;
    assert!(quiet.contains("problem: All chains never moved"), "{quiet}");
}

/// A regression on raw columns, with few rows.
const RAW: &str = "\
record {
  real<lower=0, upper=1000> x;
  real<lower=-2000, upper=6000> y;
}
parameters {
  real alpha;
  real beta;
  real<lower=0> sigma;
}
model {
  alpha ~ normal(0, 100);
  beta ~ normal(0, 10);
  sigma ~ exponential(0.1);
  y ~ normal(alpha + beta * x, sigma);
}
";

/// If it failed: answers that the program knows to be off would be used, here of dp-langevin. The truth, 50, is 20 of
/// the run's own standard deviations from its alpha; noise and all have fixed seeds.
#[test]
fn a_search_that_failed_is_said_wherever_draws_are_read() {
    let place = Place::new();
    place.write("raw.dpm", RAW);
    let row = |i: usize| {
        let (x, residual) = (i * 389 % 1000, (i * 617 % 401) as f64 / 10.0 - 20.0);
        format!("{x},{:.1}\n", 50.0 + 3.0 * x as f64 + residual)
    };
    let rows: String = (0..400).map(row).collect();
    place.write("raw.csv", format!("x,y\n{rows}"));
    const NOT_USED: &str = "Do not use these draws.";
    const NOT_ARRIVED: &str = "The search had not reached the posterior";
    let sample = "sample raw.dpm raw.csv --algorithm dp-langevin --epsilon 1 --delta 1e-6 --insecure-noise-seed 1";
    let loud = place.succeeds(&format!("{sample} --out run"));
    assert!(loud.err.contains(&format!("verdict: {NOT_USED}")));
    assert!(loud.err.contains(NOT_ARRIVED), "{}", loud.err);
    let quiet = place.succeeds(&format!("{sample} --out quiet --quiet"));
    let of_use = |line: &&str| !line.starts_with("NOT PRIVATE");
    let said: Vec<&str> = quiet.err.lines().filter(of_use).collect();
    let problem = format!("verdict: {NOT_USED}");
    assert!(
        said.len() == 1 && said[0].starts_with(&problem),
        "{}",
        quiet.err
    );

    for run in ["run", "quiet"] {
        for flag in ["", "--quiet"] {
            let summary = place.succeeds(&format!("summary {run} {flag}")).err;
            assert!(summary.contains(&format!("verdict: {NOT_USED}")));
            assert!(summary.contains(NOT_ARRIVED), "{summary}");
        }
        let text = place.succeeds(&format!("diagnose {run} --quiet")).out;
        assert!(
            text.starts_with(&format!("{NOT_USED}\nproblem: ")),
            "{text}"
        );
        let diagnosis = place.answer(&format!("diagnose {run} --format json"));
        assert_eq!(diagnosis["convergence"], "search_failed");
        assert_eq!(diagnosis["decision"], "do_not_use");
        assert!(kinds(&diagnosis).contains(&"search_not_arrived"));
        assert!(!kinds(&diagnosis).contains(&"convergence"));
        let report = place.json(&format!("{run}/privacy.json"));
        assert_eq!(report["decision"], diagnosis["decision"]);
        let lists = [&report, &diagnosis].map(|from| from["verdicts"].as_array().expect("a list"));
        assert_eq!(lists[0].len(), lists[1].len());
        for (in_report, found) in lists[0].iter().zip(lists[1]) {
            for key in ["kind", "severity", "sentence"] {
                assert_eq!(in_report[key], found[key]);
            }
        }
        let page = place.read(&format!("{run}/report.html"));
        assert!(page.contains("NOT TO BE USED") && page.contains(NOT_ARRIVED));
        // Draws that no chain has made.
        assert!(page.contains("There are no traces to show: no chain made these draws."));
        for praise in ["ranks among all", "largest R-hat"] {
            assert!(!page.contains(praise), "{praise}");
        }
        for text in [&loud.err, &text, &page] {
            assert!(!text.contains("intervals can be used as they are"));
        }
    }
}

/// The like of it on a table that is good for the budget: a Gaussian, and nothing to complain of.
#[test]
fn a_search_that_arrived_is_not_complained_of() {
    let place = Place::new();
    place.write(
        "one.dpm",
        "record { real<lower=-4, upper=4> y; }
         parameters { real mu; }
         model { mu ~ normal(0, 5); y ~ normal(mu, 1); }",
    );
    let row = |i: usize| format!("{:.2}\n", (i * 617 % 401) as f64 / 100.0 - 1.5);
    let rows: String = (0..4000).map(row).collect();
    place.write("one.csv", format!("y\n{rows}"));
    let sample = "sample one.dpm one.csv --algorithm dp-langevin --epsilon 1 --delta 1e-6 --insecure-noise-seed 1";
    let quiet = place.succeeds(&format!("{sample} --out run --quiet"));
    assert!(!quiet.err.contains("verdict"), "{}", quiet.err);
    let diagnosis = place.answer("diagnose run --format json");
    assert_eq!(diagnosis["convergence"], "fitted");
    let report = place.json("run/privacy.json");
    for verdict in report["verdicts"].as_array().expect("a list") {
        assert_ne!(verdict["severity"], "problem", "{verdict}");
    }
    assert!(!place.succeeds("summary run").err.contains("problem"));
    assert!(!place.read("run/report.html").contains("NOT TO BE USED"));
    // A prior that the records contradict.
    place.write(
        "far.dpm",
        place
            .read("one.dpm")
            .replace("normal(0, 5)", "normal(3, 0.5)"),
    );
    let far = sample.replace("one.dpm", "far.dpm");
    place.succeeds(&format!("{far} --out far --quiet"));
    let diagnosis = place.answer("diagnose far --format json");
    assert!(kinds(&diagnosis).contains(&"beyond_prior"), "{diagnosis}");
}

/// Times that may be censored, of people who entered after time 0: their likelihood is neither a law nor a hazard.
const LIFE: &str = "\
record {
  real<lower=0, upper=100> t;
  int<lower=0, upper=1> died;
  int<lower=0, upper=1> treated;
}
parameters {
  real a;
  real b;
}
model {
  a ~ normal(-3, 1);
  b ~ normal(0, 0.5);
  real eta = a + b * treated;
  target += died * eta - exp(eta) * (t - 0.5);
}
";

/// The decision about a run, which must be the same in every place.
fn decision_everywhere(place: &Place, run: &str) -> (String, Value) {
    let diagnosis = place.answer(&format!("diagnose {run} --format json"));
    let decision = diagnosis["decision"].as_str().expect("a decision");
    let (words, band) = match decision {
        "use" => ("These draws can be used.", None),
        "use_with_care" => ("Use these draws with care.", Some("USE WITH CARE")),
        _ => ("Do not use these draws.", Some("NOT TO BE USED")),
    };
    let report = place.json(&format!("{run}/privacy.json"));
    assert_eq!(report["decision"], decision);
    let text = place.succeeds(&format!("diagnose {run}")).out;
    assert!(text.starts_with(words), "{text}");
    let page = place.read(&format!("{run}/report.html"));
    assert!(page.contains(words));
    for other in ["USE WITH CARE", "NOT TO BE USED"] {
        assert_eq!(page.contains(other), band == Some(other), "{other}");
    }
    let summary = place.succeeds(&format!("summary {run}")).err;
    assert_eq!(summary.contains(words), decision != "use", "{summary}");
    let quiet = place.succeeds(&format!("summary {run} --quiet")).err;
    assert_eq!(quiet.contains(words), decision == "do_not_use", "{quiet}");
    (decision.to_owned(), diagnosis)
}

/// If it failed: one reader of a run would use draws that another is told not to use. Of the
/// default sampler: a table that is good for the budget, one whose prior the records contradict,
/// and one of which nothing can be told.
#[test]
fn a_decision_about_released_likelihoods_is_the_same_wherever_it_is_read() {
    let place = Place::new();
    const ONE: &str = "record { real<lower=-4, upper=4> y; }
         parameters { real mu; }
         model { mu ~ normal(0, 5); y ~ normal(mu, 1); }";
    place.write("one.dpm", ONE);
    place.write("far.dpm", ONE.replace("normal(0, 5)", "normal(3, 0.5)"));
    place.write("life.dpm", LIFE);
    let rows: String = (0..4000)
        .map(|i| format!("{:.2}\n", (i * 617 % 401) as f64 / 100.0 - 1.5))
        .collect();
    place.write("one.csv", format!("y\n{rows}"));
    let rows: String = (0..150)
        .map(|i| format!("{},{},{}\n", 1 + i * 37 % 60, u8::from(i % 3 == 0), i % 2))
        .collect();
    place.write("life.csv", format!("t,died,treated\n{rows}"));
    for (model, data, epsilon, decision, kind) in [
        ("one", "one", "1", "use", "certificate"),
        ("far", "one", "1", "use_with_care", "beyond_prior"),
        ("life", "life", "0.3", "do_not_use", "width_unknown"),
    ] {
        let sample = format!(
            "sample {model}.dpm {data}.csv --epsilon {epsilon} --delta 1e-6 --insecure-noise-seed 1"
        );
        let loud = place.succeeds(&format!("{sample} --out {model}")).err;
        let quiet = place.succeeds(&format!("{sample} --out {model}-quiet --quiet"));
        for run in [model.to_owned(), format!("{model}-quiet")] {
            let (found, diagnosis) = decision_everywhere(&place, &run);
            assert_eq!(found, decision, "{diagnosis}");
            assert!(kinds(&diagnosis).contains(&kind), "{diagnosis}");
        }
        let heard = |err: &str| err.contains("verdict: Do not use these draws. ");
        assert_eq!(heard(&loud), decision == "do_not_use", "{loud}");
        assert_eq!(heard(&quiet.err), decision == "do_not_use");
        // MCMC draws, with traces, and no word of other samplers'.
        let page = place.read(&format!("{model}/report.html"));
        assert!(page.contains("ranks among all") && page.contains("How the draws were made"));
        let text = place.succeeds(&format!("diagnose {model}")).out;
        for word in [
            "travel",
            "clipped posterior",
            "Gaussian",
            "accepts every step",
        ] {
            assert!(!text.contains(word) && !loud.contains(word), "{word}");
        }
        assert!(loud.contains("learnt in ") && loud.contains("at no cost in privacy"));
    }
    // The clipped gradients of a law are centred; those of none can move the answer.
    let clipping = |run: &str| {
        let report = place.json(&format!("{run}/privacy.json"));
        report["clipping"]["statement"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert!(clipping("life").contains("The model gives no law of the outcomes"));
    assert!(clipping("one").contains("shifts them only where outcomes spread"));

    // What the rounds said is read back from config.json, and decides.
    let config = place.json("one/config.json");
    for (pointer, value, kind) in [
        (
            "/start/certificate/p",
            serde_json::json!(1e-5),
            "certificate",
        ),
        ("/start/certificate/p", Value::Null, "certificate"),
        (
            "/start/last_step",
            serde_json::json!(3.5),
            "search_not_arrived",
        ),
        ("/start/last_step", Value::Null, "search_not_arrived"),
        ("/start/surprise/1", serde_json::json!(3.5), "contradiction"),
        ("/start/surprise/0", Value::Null, "contradiction"),
        ("/start/untold", serde_json::json!(0.5), "hidden_tails"),
        (
            "/start/clipped",
            serde_json::json!({"sds": 9.0, "noise": 1.0}),
            "hidden_tails",
        ),
    ] {
        let mut changed = config.clone();
        *changed.pointer_mut(pointer).expect("a place") = value;
        place.write("one/config.json", changed.to_string());
        let diagnosis = place.answer("diagnose one --format json");
        assert_eq!(
            diagnosis["decision"], "do_not_use",
            "{pointer}: {diagnosis}"
        );
        assert_eq!(kinds(&diagnosis)[0], kind, "{pointer}");
    }
}

/// Four chains of 500 independent draws, uniform.
fn write_chains(place: &Place) {
    fs::create_dir(place.file("run")).expect("a folder");
    let mut random = Lcg(1);
    let mut uniform = || random.uniform();
    for chain in 1..=4 {
        let row = |_| format!("nan,0.8,{},{}\n", uniform(), uniform());
        let rows: String = (0..500).map(row).collect();
        let text = format!("lp__,accept_stat__,mu.1,mu.2\n{rows}");
        place.write(&format!("run/chain-{chain}.csv"), &text);
    }
}

#[test]
fn columns_of_nan_are_reported() {
    let place = Place::new();
    write_chains(&place);
    for chain in 1..=4 {
        let nan = |row: usize, x: &str| {
            if row % 50 == 3 {
                "nan".into()
            } else {
                x.to_owned()
            }
        };
        place.rewrite(&format!("run/chain-{chain}.csv"), "mu.2", nan);
    }
    let diagnosis = place.answer("diagnose run --format json");
    assert_eq!(kinds(&diagnosis), ["not_finite", "convergence"]);
    assert_eq!(diagnosis["convergence"], "converged");
    let summary = place.succeeds("summary run");
    assert!(
        summary
            .err
            .contains("problem: mu[2] is infinite or not a number in 40 of 2000 draws")
    );
    let json = place.answer("summary run --format json");
    assert!(json[1]["mean"].is_null() && json[0]["mean"].is_number());
    for chain in 1..=4 {
        for column in ["mu.1", "mu.2"] {
            place.rewrite(&format!("run/chain-{chain}.csv"), column, |_, _| {
                "nan".into()
            });
        }
    }
    let diagnosis = place.answer("diagnose run --format json");
    assert_eq!(diagnosis["convergence"], "not_converged");
    assert!(place.succeeds("summary run").out.contains("NaN"));
}

#[test]
fn what_a_private_run_cannot_show_is_noted() {
    let place = Place::new();
    place.succeeds(
        "sample m.dpm d.csv --epsilon 2 --delta 1e-6 --chains 2 --num-warmup 10 --num-samples 20 --leapfrog-steps 3 --clip-gradient 1 --clip-log-ratio 1 --temperature 50 --insecure-noise-seed 5 --out run",
    );
    let diagnosis = place.answer("diagnose run --format json");
    for kind in ["few_draws", "clipping", "tempered"] {
        assert!(kinds(&diagnosis).contains(&kind), "{kind}: {diagnosis}");
    }
    let config = place.json("run/config.json");
    for key in ["first_step_size", "log_ratio_per_step", "gradient"] {
        assert!(
            config["noise"][key].as_f64().is_some_and(|x| x > 0.0),
            "{config}"
        );
    }
    // Draws alone say less, and that they do.
    fs::remove_file(place.file("run/config.json")).expect("config.json");
    let outcome = place.succeeds("diagnose run");
    assert!(outcome.err.contains("no config.json"), "{}", outcome.err);
    place.write("run/config.json", "{");
    place.fails("diagnose run", &["config.json", "not valid JSON"]);
}

#[test]
fn directories_that_are_no_runs_are_refused() {
    let place = Place::new();
    place.fails("diagnose nowhere", &["nowhere", "chain-1.csv"]);
    fs::create_dir(place.file("mixed")).expect("a folder");
    place.write("mixed/chain-1.csv", "lp__,a\nnan,1\nnan,2\n");
    place.write("mixed/chain-2.csv", "lp__,b\nnan,1\nnan,2\n");
    place.fails("diagnose mixed", &["chain-2.csv", "other parameters"]);
    place.write("mixed/chain-2.csv", "lp__,a\n");
    let outcome = place.succeeds("diagnose mixed");
    says(&outcome.out, "cannot be determined");
}

/// See `tests/fixtures/compare/make.py`.
fn fixture(place: &Place) -> Value {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/compare");
    fs::create_dir(place.file("run")).expect("a folder");
    for file in [
        "run/chain-1.csv",
        "run/chain-2.csv",
        "reference.csv",
        "reference_stan.csv",
        "expected.json",
    ] {
        fs::copy(from.join(file), place.file(file)).expect("a fixture");
    }
    place.json("expected.json")
}

fn close(found: &Value, expected: &Value) -> bool {
    let pair = found.as_f64().zip(expected.as_f64());
    pair.is_some_and(|(a, b)| (a - b).abs() <= 1e-12 * b.abs())
}

/// 1e-12 relative covers the order of summation alone.
fn assert_as_expected(comparison: &Value, expected: &Value) {
    for key in ["mmd", "mmd_standardised", "width"] {
        let (found, expected) = (&comparison[key], &expected[key]);
        assert!(close(found, expected), "{key}: {found} {expected}");
    }
    let found = comparison["parameters"].as_array().expect("a list");
    let expected = expected["parameters"].as_array().expect("a list");
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found["parameter"], expected["parameter"]);
        for key in ["mean_error", "sd_ratio"] {
            assert!(close(&found[key], &expected[key]), "{found} {expected}");
        }
    }
}

#[test]
fn comparisons_are_numpy_s() {
    let place = Place::new();
    let expected = fixture(&place);
    let outcome = place.succeeds("compare run reference.csv");
    let comparison = json(&outcome.out);
    assert_as_expected(&comparison, &expected);
    assert_eq!(
        (&comparison["draws"], &comparison["reference_draws"]),
        (&120.into(), &100.into())
    );
    assert_eq!(comparison["only_in_run"], serde_json::json!(["extra"]));
    assert_eq!(
        comparison["only_in_reference"],
        serde_json::json!(["chain"])
    );
    assert!(
        comparison["private"].is_null(),
        "nothing is known of the reference"
    );
    for note in [
        "only in the run, and not compared: `extra`",
        "only in the reference",
        "does not say whether its draws are private",
    ] {
        assert!(outcome.err.contains(note), "{}", outcome.err);
        assert!(
            comparison["notes"].to_string().contains(note),
            "{comparison}"
        );
    }
    assert_eq!(place.succeeds("compare run reference.csv").out, outcome.out);
    assert_eq!(place.succeeds("compare run reference.csv --quiet").err, "");
    // The same reference in other clothes.
    let stan = place.answer("compare run reference_stan.csv");
    assert_as_expected(&stan, &expected);
    fs::create_dir(place.file("other")).expect("a folder");
    let text = place.read("reference_stan.csv");
    place.write("other/chain-1.csv", &text);
    assert_as_expected(&place.answer("compare run other"), &expected);
    let says = |value: &str| {
        let told = text.replace("# a = b", &format!("# privacy_private = {value}"));
        place.write("other/chain-1.csv", &told);
    };
    says("true");
    assert_eq!(place.answer("compare run other")["private"], true);
    says("false");
    let outcome = place.succeeds("compare run other --quiet");
    assert!(outcome.err.contains("NOT PRIVATE"), "{}", outcome.err);
    assert!(outcome.out.contains("\"private\": false"));
}

/// A run against itself: no error, and the MMD of two samples that share their points.
#[test]
fn a_run_is_like_itself_and_unlike_another() {
    let place = Place::new();
    fixture(&place);
    let same = place.answer("compare run run");
    for parameter in same["parameters"].as_array().expect("a list") {
        assert_eq!(parameter["mean_error"], 0.0);
        assert_eq!(parameter["sd_ratio"], 1.0);
    }
    let other = place.answer("compare run reference.csv");
    let mmd = |v: &Value| v["mmd"].as_f64().expect("a number");
    assert!(mmd(&other) > 3.0 * mmd(&same), "{same} {other}");
}

#[test]
fn columns_that_cannot_be_compared_are_named() {
    let place = Place::new();
    let expected = fixture(&place);
    place.rewrite("run/chain-2.csv", "m.2.2", |row, x| {
        if row == 5 { "nan".into() } else { x.to_owned() }
    });
    let comparison = place.answer("compare run reference.csv");
    assert_eq!(comparison["not_finite"], serde_json::json!(["m[2,2]"]));
    let parameters = comparison["parameters"].as_array().expect("a list");
    assert_eq!(parameters.len(), 2);
    assert!(close(
        &parameters[0]["mean_error"],
        &expected["parameters"][0]["mean_error"]
    ));
    assert!(comparison["mmd"].as_f64().is_some());
    // Of a reference without any spread there is nothing to scale by.
    place.write("flat.csv", "alpha\n1\n1\n");
    let flat = place.answer("compare run flat.csv");
    assert!(
        flat["mmd_standardised"].is_null() && flat["mmd"].is_number(),
        "{flat}"
    );
    assert!(flat["parameters"][0]["mean_error"].is_null());
}

#[test]
fn references_that_cannot_be_used_are_explained() {
    let place = Place::new();
    fixture(&place);
    place.write("empty.csv", "");
    place.write("header.csv", "alpha\n");
    place.write("one.csv", "alpha\n1\n");
    place.write("text.csv", "alpha\n1\ntwo\n");
    place.write("ragged.csv", "alpha,extra\n1,2\n1\n");
    place.write("foreign.csv", "a,b\n1,2\n3,4\n");
    place.write("nan.csv", "alpha\nnan\n2\n");
    for (arguments, words) in [
        ("run nowhere.csv", &["nowhere.csv", "cannot read it"][..]),
        (
            "run empty.csv",
            &["empty.csv", "it is empty", "parameter names"],
        ),
        ("run header.csv", &["header.csv", "at least 2"]),
        (
            "run one.csv",
            &["one.csv", "has 1 of the draws", "at least 2"],
        ),
        ("run text.csv", &["line 3", "column 1 is not a number"]),
        ("run ragged.csv", &["line 3", "1 values, expected 2"]),
        (
            "run foreign.csv",
            &["no parameter in common", "`m[1,2]`", "not shown"],
        ),
        ("run nan.csv", &["finite in all draws", "`alpha`"]),
        ("nowhere reference.csv", &["nowhere", "chain-1.csv"]),
        ("run .", &["chain-1.csv"]),
    ] {
        place.fails(&format!("compare {arguments}"), words);
    }
    place.fails("compare run", &["REFERENCE.csv"]);
}
