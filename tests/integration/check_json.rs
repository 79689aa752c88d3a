//! `dpm check --format json`: what editors read.

use serde_json::Value;

use crate::harness::{Folder, Outcome, json};

#[test]
fn a_wrong_program_gives_all_its_diagnostics() {
    let (outcome, said) = check("record {\n  real é;\n  real x\n}\nmodel { y ~ normal(0, 1); }\n");
    assert_eq!(outcome.code, 2);
    assert_eq!(said["ok"], false);
    let diagnostics = said["diagnostics"].as_array().expect("a list");
    let codes: Vec<&str> = diagnostics
        .iter()
        .filter_map(|d| d["code"].as_str())
        .collect();
    assert_eq!(codes, ["S004", "S002", "E0101", "E0110"]);
    let semicolon = &diagnostics[1];
    assert_eq!(semicolon["message"], "`;` is missing");
    assert_eq!(semicolon["severity"], "error");
    for (field, value) in [
        ("line", 3),
        ("column", 9),
        ("end_line", 3),
        ("end_column", 9),
    ] {
        assert_eq!(semicolon[field], value, "{field}");
    }
    // People read them all the same.
    let shown = &outcome.err;
    assert!(
        shown.contains("error[S002]") && shown.contains("m.dpm:3:9"),
        "{shown}"
    );
}

#[test]
fn a_right_program_gives_its_warnings() {
    let (outcome, said) = check(
        "record {\n  real<lower=0, upper=1> x;\n}\nparameters {\n  real a;\n}\nmodel {\n  x ~ normal(a, 1);\n}\n",
    );
    assert_eq!(outcome.code, 0);
    assert_eq!(said["ok"], true);
    let warning = &said["diagnostics"][0];
    assert_eq!(
        (&warning["code"], &warning["severity"]),
        (&"W0111".into(), &"warning".into())
    );
    assert_eq!(
        (&warning["line"], &warning["column"]),
        (&5.into(), &8.into())
    );
    assert!(
        warning["help"]
            .as_str()
            .is_some_and(|help| help.contains("a ~ "))
    );
}

fn check(source: &str) -> (Outcome, Value) {
    let folder = Folder::new();
    folder.write("m.dpm", source);
    let outcome = folder.dpm("check m.dpm --format json");
    let said = json(&outcome.out);
    (outcome, said)
}

/// What a branch of a condition on a column adds is likelihood, whatever is in it.
#[test]
fn a_term_under_a_condition_on_a_column_is_of_each_record() {
    let (outcome, said) = check(
        "functions { void add_lp(real x) { target += x; } }
        record { int<lower=0, upper=1> died; }
        parameters { real<lower=-1, upper=1> b; }
        model {
          b ~ normal(0, 1);
          if (died) target += -square(b);
          for (k in 1:2) { if (died) break; target += b; }
          if (died) add_lp(b);
        }",
    );
    assert_eq!(outcome.code, 0, "{}", outcome.err);
    let statements = said["statements"].as_array().expect("a list");
    let kinds: Vec<_> = statements
        .iter()
        .map(|s| (&s["line"], &s["kind"]))
        .collect();
    let (prior, likelihood) = (Value::from("prior"), Value::from("likelihood"));
    let lines = [5, 6, 7, 1].map(Value::from);
    assert_eq!(
        kinds,
        [
            (&lines[0], &prior),
            (&lines[1], &likelihood),
            (&lines[2], &likelihood),
            (&lines[3], &likelihood),
        ]
    );
}
