//! `dpm report`, and the report that `dpm sample` writes.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::harness::{Folder, finish, folder_of, says, start};

const MODEL: &str = "\
constants {
  real scale;
}
record {
  real<lower=-3, upper=3> y;
}
parameters {
  real mu;
  real<lower=0> tau;
}
model {
  mu ~ normal(0, scale);
  tau ~ exponential(1);
  y ~ normal(mu, 1 + tau);
}
";
const PRIVATE: &str = "sample m.dpm d.csv --epsilon 2 --delta 1e-6 --chains 2 --num-warmup 10 --num-samples 30 --leapfrog-steps 3 --step-size 0.001 --out run";
const NUTS: &str = "sample m.dpm d.csv --algorithm nuts --not-private --chains 2 --num-warmup 100 --num-samples 100 --out run";

struct Place(Folder);

folder_of!(Place);

impl Place {
    fn new() -> Place {
        let place = Place(Folder::new());
        place.write("m.dpm", MODEL);
        place.write("c.json", "{\"scale\": 2.5}");
        let rows: String = (0..200)
            .map(|i| format!("{}\n", (i * 37 % 50) as f64 / 25.0 - 1.0))
            .collect();
        place.write("d.csv", format!("y\n{rows}"));
        place
    }
}

#[test]
fn a_run_has_a_report_which_can_be_made_again_from_its_files() {
    let place = Place::new();
    place.succeeds(&format!("{PRIVATE} --constants c.json"));
    let first = place.read("run/report.html");
    // The program, its constants, and what its prior says of both parameters.
    for expected in [
        "<span class=\"k\">parameters</span>",
        "&quot;scale&quot;: 2.5",
        "What was learnt",
        "run/",
    ] {
        assert!(
            first.contains(expected) || expected == "run/",
            "no {expected}"
        );
    }
    assert!(!first.contains("NOT PRIVATE"));
    assert_eq!(place.read("run/model.dpm"), MODEL);
    let hash = sha256(&place.file("run/privacy.json"));
    assert!(first.contains(&hash), "no {hash}");

    fs::remove_file(place.file("run/report.html")).expect("the report");
    let outcome = place.succeeds("report run");
    says(&outcome.err, "written to run/report.html");
    assert_eq!(place.read("run/report.html"), first);
    place.succeeds("report run -o other.html --quiet");
    assert_eq!(place.read("other.html"), first);
    // The copy of the model is one that other commands read.
    place.succeeds("check run/model.dpm");
}

/// dp-langevin on records that are too few for chains: what was chosen on made-up
/// records costs nothing and is said, and draws of a Gaussian are not called converged anywhere.
#[test]
fn a_budget_too_small_for_chains_is_said_wherever_draws_are_read() {
    let place = Place::new();
    // Enough of them, and with noise, for a search that arrives.
    let rows: String = (0..2000)
        .map(|i| format!("{:.3}\n", 2.9 * ((i * 37 % 50) as f64 / 25.0 - 1.0)))
        .collect();
    place.write("d.csv", format!("y\n{rows}"));
    let alone = "sample m.dpm d.csv --algorithm dp-langevin --epsilon 2 --delta 1e-6 --constants c.json --out run --insecure-noise-seed 1";
    let outcome = place.succeeds(alone);
    for expected in [
        "on records simulated from the model, at no cost in privacy",
        "the draws are independent draws from the Gaussian",
        "There are no chains to converge",
    ] {
        says(&outcome.err, expected);
    }
    let config = place.json("run/config.json");
    assert_eq!(config["start"]["gaussian"], true);
    assert_eq!(config["foreseen"]["gradients_per_draw_chosen"], true);
    assert_eq!(config["gradients_per_draw"], 1);
    let page = place.read("run/report.html");
    assert!(page.contains("USE WITH CARE"));
    assert!(page.contains("There are no chains to converge"));
    assert!(page.contains("There are no traces to show: no chain made these draws."));
    assert!(page.contains("chosen before a row was read"));
    // Told how many, nothing is chosen.
    place.succeeds(&format!("{alone} --gradients-per-draw 2 --overwrite"));
    let config = place.json("run/config.json");
    assert_eq!(config["foreseen"]["gradients_per_draw_chosen"], false);
    assert_eq!(config["gradients_per_draw"], 2);
}

/// Wherever the budget is stated, so is what it rests on beside proofs: here that a pair of
/// distributions is the worst one for Poisson batches under substitution.
#[test]
fn what_is_not_proved_is_said_wherever_epsilon_is() {
    let place = Place::new();
    let batches = "--constants c.json --epsilon 2 --delta 1e-6 --algorithm dp-sgld --batch-rate 0.1 --step-size 0.001 --chains 2 --num-warmup 10 --num-samples 30";
    const REASON: &str = "has been checked numerically and is not proved";
    let outcome = place.succeeds(&format!("sample m.dpm d.csv {batches} --out run"));
    let lines: Vec<&str> = outcome
        .err
        .lines()
        .filter(|l| l.starts_with("epsilon "))
        .collect();
    assert_eq!(lines.len(), 2, "{}", outcome.err);
    for line in lines {
        assert!(line.contains(REASON), "{line}");
    }
    let report = place.json("run/privacy.json");
    assert_eq!(report["proved"], false);
    for key in ["statement", "not_proved"] {
        let said = report[key].as_str().unwrap_or_default();
        assert!(said.contains(REASON), "{key}: {said}");
    }
    // In the promise, and in the words of privacy.json.
    assert_eq!(place.read("run/report.html").matches(REASON).count(), 2);
    let plan = place.succeeds(&format!("plan m.dpm --rows 200 {batches}"));
    assert!(plan.out.contains(REASON), "{}", plan.out);
    let plan = place.succeeds(&format!("plan m.dpm --rows 200 {batches} --format json"));
    assert!(plan.out.contains("\"proved\": false") && plan.out.contains(REASON));

    // And nothing of the kind where all is proved.
    let proved = place.succeeds(&format!("{PRIVATE} --constants c.json --overwrite"));
    let report = place.json("run/privacy.json");
    assert_eq!(
        (&report["proved"], &report["not_proved"]),
        (&true.into(), &().into())
    );
    let all = format!("{}{}{}", proved.err, report, place.read("run/report.html"));
    assert!(!all.contains("not proved"));
}

/// As `sha256sum` says.
fn sha256(path: &Path) -> String {
    let output = finish(start(Command::new("sha256sum").arg(path)));
    output.out.split(' ').next().unwrap_or_default().to_owned()
}

#[test]
fn no_report_is_written_where_none_is_wanted() {
    let place = Place::new();
    place.succeeds(&format!("{PRIVATE} --constants c.json --no-report"));
    assert!(!place.file("run/report.html").exists());
    place.succeeds("report run");
}

#[test]
fn runs_without_privacy_are_marked() {
    let place = Place::new();
    place.succeeds(&format!("{NUTS} --constants c.json"));
    let html = place.read("run/report.html");
    assert!(html.contains("<strong>NOT PRIVATE</strong>"));
    let outcome = place.succeeds("report run --quiet");
    assert!(outcome.err.contains("NOT PRIVATE"), "{}", outcome.err);
    place.succeeds(&format!(
        "{PRIVATE} --constants c.json --insecure-noise-seed 3 --overwrite"
    ));
    let html = place.read("run/report.html");
    assert!(html.contains("<strong>NOT PRIVATE</strong>") && !html.contains("Signature"));
}

#[test]
fn runs_of_other_versions_and_damaged_ones_are_reported() {
    let place = Place::new();
    place.succeeds(&format!("{PRIVATE} --constants c.json"));
    // A run without a copy of its model, one with a model that does not fit, one with no
    // settings: reports all the same, that say what is missing.
    fs::remove_file(place.file("run/model.constants.json")).expect("constants");
    place.succeeds("report run");
    assert!(
        place
            .read("run/report.html")
            .contains("The prior is not shown")
    );
    place.write("run/model.dpm", "parameters { real other; model {");
    place.succeeds("report run");
    assert!(
        place
            .read("run/report.html")
            .contains("model.dpm is not a program")
    );
    fs::remove_file(place.file("run/model.dpm")).expect("the model");
    fs::remove_file(place.file("run/config.json")).expect("settings");
    place.succeeds("report run");
    assert!(
        place
            .read("run/report.html")
            .contains("no copy of the model")
    );

    place.write("run/privacy.json", "{");
    place.refuses("report run", 2, &["not valid JSON"]);
    place.refuses("report .", 2, &["no privacy.json"]);
}
