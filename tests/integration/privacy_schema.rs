//! `docs/privacy.schema.json` describes what runs really write: every kind of report is
//! valid, and a report that says something else is not.
//!
//! The checker below knows the keywords that the schema uses and stops at any other, so
//! that the schema cannot say what is not checked.

use std::fs;

use serde_json::{Map, Value, json};

use crate::harness::Folder;

fn schema() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/privacy.schema.json");
    serde_json::from_str(&fs::read_to_string(path).expect("the schema")).expect("JSON")
}

/// The faults of `value` against `schema`; `root` holds the definitions.
fn faults(value: &Value, schema: &Value, root: &Value, at: &str) -> Vec<String> {
    let keywords = match schema {
        Value::Bool(true) => return vec![],
        Value::Bool(false) => return vec![format!("{at}: nothing may stand here")],
        Value::Object(keywords) => keywords,
        other => panic!("{at}: {other} is no schema"),
    };
    let mut found = Vec::new();
    for (keyword, wanted) in keywords {
        let fault =
            |holds: bool| (!holds).then(|| format!("{at}: {value} against {keyword} {wanted}"));
        let number = |compare: fn(f64, f64) -> bool| {
            let wanted = wanted.as_f64().expect("a number");
            fault(value.as_f64().is_none_or(|value| compare(value, wanted)))
        };
        let length = |of: Option<usize>, compare: fn(usize, usize) -> bool| {
            let wanted = wanted.as_u64().expect("a length") as usize;
            fault(of.is_none_or(|length| compare(length, wanted)))
        };
        let characters = value.as_str().map(|text| text.chars().count());
        let items = value.as_array().map(Vec::len);
        match keyword.as_str() {
            "$schema" | "title" | "description" | "$defs" => {}
            "type" => {
                let types = match wanted {
                    Value::Array(types) => types.clone(),
                    one => vec![one.clone()],
                };
                found.extend(fault(types.iter().any(|name| is_of_type(value, name))));
            }
            "const" => found.extend(fault(value == wanted)),
            "enum" => found.extend(fault(wanted.as_array().expect("a list").contains(value))),
            "minimum" => found.extend(number(|v, w| v >= w)),
            "maximum" => found.extend(number(|v, w| v <= w)),
            "exclusiveMinimum" => found.extend(number(|v, w| v > w)),
            "exclusiveMaximum" => found.extend(number(|v, w| v < w)),
            "minLength" => found.extend(length(characters, |v, w| v >= w)),
            "maxLength" => found.extend(length(characters, |v, w| v <= w)),
            "minItems" => found.extend(length(items, |v, w| v >= w)),
            "maxItems" => found.extend(length(items, |v, w| v <= w)),
            "items" => {
                for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                    found.extend(faults(item, wanted, root, &format!("{at}[{i}]")));
                }
            }
            "required" => {
                if let Value::Object(fields) = value {
                    for name in wanted.as_array().expect("a list") {
                        let name = name.as_str().expect("a name");
                        if !fields.contains_key(name) {
                            found.push(format!("{at}: no `{name}`"));
                        }
                    }
                }
            }
            "properties" | "additionalProperties" => {}
            "oneOf" => {
                let tried: Vec<Vec<String>> = wanted
                    .as_array()
                    .expect("a list")
                    .iter()
                    .map(|one| faults(value, one, root, at))
                    .collect();
                if tried.iter().filter(|faults| faults.is_empty()).count() != 1 {
                    found.push(format!("{at}: not exactly one of: {tried:?}"));
                }
            }
            "$ref" => {
                let name = wanted
                    .as_str()
                    .and_then(|to| to.strip_prefix("#/$defs/"))
                    .expect("a definition of this schema");
                found.extend(faults(value, &root["$defs"][name], root, at));
            }
            other => panic!("the schema uses `{other}`, which is not checked here"),
        }
    }
    if let Value::Object(fields) = value {
        let none = Map::new();
        let properties = keywords
            .get("properties")
            .map_or(&none, |p| p.as_object().expect("properties"));
        let others = keywords.get("additionalProperties");
        for (name, field) in fields {
            if let Some(wanted) = properties.get(name).or(others) {
                found.extend(faults(field, wanted, root, &format!("{at}.{name}")));
            }
        }
    }
    found
}

fn is_of_type(value: &Value, name: &Value) -> bool {
    match name.as_str().expect("the name of a type") {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no type is called `{other}`"),
    }
}

fn is_valid(report: &Value) -> Result<(), String> {
    let schema = schema();
    match faults(report, &schema, &schema, "report").as_slice() {
        [] => Ok(()),
        found => Err(found.join("\n")),
    }
}

/// The reports of runs of all kinds, by name.
fn reports() -> Vec<(&'static str, Value)> {
    let place = Folder::new();
    let model = "record { real<lower=-5, upper=5> y; }
        parameters { real mu; }
        model { mu ~ normal(0, 10); y ~ normal(mu, 1); }";
    place.write("m.dpm", model);
    let rows: String = (0..200)
        .map(|i| format!("{},p{}\n", i % 7 - 3, i % 50))
        .collect();
    place.write("d.csv", format!("y,person\n{rows}"));
    let dpm = |arguments: &str| place.succeeds(arguments);
    dpm("ledger create l --epsilon 2 --delta 1e-6");
    let run = "sample m.dpm d.csv --chains 1 --num-warmup 4 --num-samples 8 --overwrite --quiet";
    let private = format!("{run} --epsilon 1 --delta 1e-6");
    [
        ("private", private.clone()),
        ("charged", format!("{private} --ledger l")),
        ("add-remove", format!("{private} --relation add-remove")),
        ("zero-out", format!("{private} --relation zero-out")),
        ("by person", format!("{private} --unit person")),
        ("tempered", format!("{private} --temperature 10")),
        (
            "Poisson samples",
            format!(
                "{private} --relation add-remove --algorithm dp-sgld --batch-rate 0.1 --step-size 0.01"
            ),
        ),
        (
            "not proved",
            format!("{private} --algorithm dp-sgld --batch-rate 0.1 --step-size 0.01"),
        ),
        (
            "batches",
            format!("{run} --epsilon 5 --delta 1e-6 --algorithm dp-penalty --batch-size 20"),
        ),
        (
            "Barker's test",
            format!("{run} --epsilon 30 --delta 1e-2 --algorithm dp-barker --batch-size 150"),
        ),
        ("from a seed", format!("{private} --insecure-noise-seed 1")),
        (
            "without noise",
            format!("{run} --algorithm hmc --not-private"),
        ),
    ]
    .into_iter()
    .map(|(name, arguments)| {
        dpm(&arguments);
        let text = place.read("m-run/privacy.json");
        (name, serde_json::from_str(&text).expect("JSON"))
    })
    .collect()
}

#[test]
fn what_runs_write_is_what_the_schema_says() {
    let reports = reports();
    for (name, report) in &reports {
        assert_eq!(is_valid(report), Ok(()), "{name}");
    }
    for (name, report) in &reports {
        assert!(report["verdicts"].is_array(), "{name}");
        assert!(report["decision"].is_string(), "{name}");
    }
    let report_of = |name: &str| {
        let found = reports.iter().find(|(other, _)| *other == name);
        &found.expect("a report").1
    };
    assert_eq!(report_of("private")["private"], true);
    assert_eq!(report_of("private")["ledger"], Value::Null);
    assert_eq!(report_of("charged")["ledger"]["name"], "l");
    assert_eq!(report_of("by person")["unit"], "person");
    for name in ["from a seed", "without noise"] {
        assert_eq!(report_of(name)["private"], false, "{name}");
        let statement = report_of(name)["statement"].as_str().expect("a sentence");
        assert!(statement.starts_with("NOT PRIVATE"), "{statement}");
    }

    for (name, kind) in [
        ("Poisson samples", "poisson"),
        ("batches", "without-replacement"),
        ("Barker's test", "barker"),
    ] {
        assert_eq!(report_of(name)["events"][0]["kind"], kind, "{name}");
    }
    assert_eq!(report_of("private")["not_proved"], Value::Null);
    assert_eq!(report_of("not proved")["proved"], false);
    for (name, wrong) in [
        ("not proved", json!(null)),
        ("not proved", json!("")),
        ("private", json!("a step")),
    ] {
        let mut report = report_of(name).clone();
        report["not_proved"] = wrong;
        assert!(is_valid(&report).is_err(), "{name}");
    }

    let mut mixed = report_of("Barker's test").clone();
    mixed["events"][0]["sigma"] = json!(1);
    assert!(is_valid(&mixed).is_err());

    // Wrong below: the schema would take anything.
    for path in [
        "/private",
        "/epsilon",
        "/events",
        "/released",
        "/unfinished",
        "/lost_iterations",
        "/noise/generator",
        "/ledger/hash",
        "/events/0/sigma",
        "/software/version",
        "/assumed_public",
        "/proved",
        "/not_proved",
    ] {
        let mut report = report_of("charged").clone();
        let (parent, name) = path.rsplit_once('/').expect("a path");
        let parent = report
            .pointer_mut(parent)
            .expect("a place")
            .as_object_mut()
            .expect("an object");
        assert!(parent.remove(name).is_some());
        assert!(is_valid(&report).is_err(), "without {path}");
    }
    for (path, wrong) in [
        ("/epsilon", json!(0.0)),
        ("/epsilon", json!("1")),
        ("/delta", json!(1.0)),
        ("/relation", json!("add")),
        ("/unit", json!("")),
        ("/events", json!([])),
        ("/unfinished", json!("no")),
        ("/lost_iterations", json!(-1)),
        ("/events/0/kind", json!("laplace")),
        ("/events/0/count", json!(1.5)),
        ("/events/0/rate", json!(2)),
        ("/events/0/lattice/ratio", json!(0)),
        ("/ledger/entry", json!(1)),
        ("/ledger/hash", json!("abc")),
        ("/accountant", json!("trust")),
        ("/not_protected", json!([])),
        ("/noise", json!(null)),
        ("/verdicts", json!([])),
        ("/decision", json!("yes")),
        ("/verdicts/0/severity", json!("bad")),
        ("/verdicts/0/sentence", json!(null)),
    ] {
        let mut report = report_of("charged").clone();
        *report.pointer_mut(path).expect("a place") = wrong.clone();
        assert!(is_valid(&report).is_err(), "{path} as {wrong}");
    }
    let mut more = report_of("private").clone();
    more["secret"] = json!(1);
    assert!(is_valid(&more).is_err(), "a key that nobody knows");
    let mut claims = report_of("without noise").clone();
    claims["private"] = json!(true);
    assert!(is_valid(&claims).is_err(), "a promise without noise");
}
