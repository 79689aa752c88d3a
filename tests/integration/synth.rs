//! Synthetic tables of a run, and what is computed from several of them.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::harness::{Folder, LOGISTIC, folder_of, json};

/// A covariate of each kind, and outcomes of each.
const MODEL: &str = "\
constants { real<lower=0> width; }
record {
  real<lower=-2, upper=4> x;
  factor(\"north, far\", \"south\") region;
  real<lower=0> age;
  int<lower=0, upper=1> sick;
  factor(\"low\", \"high\") risk;
  real<lower=-50, upper=50> y;
}
parameters {
  real<lower=0> sigma;
  vector[2] b;
  simplex[2] p;
}
model {
  sigma ~ normal(0, width);
  b ~ normal(0, width);
  y ~ normal(b[1] + b[2] * x, sigma);
  sick ~ bernoulli_logit(b[2] * (region - 1) + 0.001 * age);
  risk ~ categorical(p);
}
";

struct Place(Folder);

folder_of!(Place);

impl Place {
    /// With a run without privacy, of which nothing is left but its directory.
    fn new() -> Place {
        let place = Place(Folder::new());
        place.write("m.dpm", MODEL);
        place.write("m.constants.json", "{\"width\": 5}");
        let mut rows = String::from("x,region,age,sick,risk,y\n");
        for i in 0..300 {
            let (x, noise) = (f64::from(i % 60) / 10.0 - 2.0, f64::from(i % 7) / 3.0 - 1.0);
            let (region, risk) = (["\"north, far\"", "south"][i as usize % 2], i % 4 / 3);
            rows += &format!(
                "{x},{region},40,{},{},{}\n",
                i % 3 / 2,
                ["low", "high"][risk as usize],
                3.0 + 2.0 * x + noise
            );
        }
        place.write("d.csv", rows);
        place.succeeds(
            "sample m.dpm d.csv --algorithm nuts --not-private --chains 2 --num-warmup 300 --num-samples 300 --seed 3 --out run",
        );
        for file in ["m.dpm", "m.constants.json", "d.csv"] {
            fs::remove_file(place.file(file)).expect("it was there");
        }
        place
    }
}

/// The records of a CSV file by column.
fn records(path: &Path) -> (Vec<String>, Vec<Vec<String>>) {
    let mut reader = csv::Reader::from_path(path).expect("a CSV file");
    let header = reader.headers().expect("a header");
    let header: Vec<String> = header.iter().map(str::to_owned).collect();
    let mut columns = vec![Vec::new(); header.len()];
    for record in reader.records() {
        for (column, field) in columns.iter_mut().zip(&record.expect("a record")) {
            column.push(field.to_owned());
        }
    }
    (header, columns)
}

fn numbers(column: &[String]) -> Vec<f64> {
    let number = |field: &String| field.parse().expect("a number");
    column.iter().map(number).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

// If it failed: a table would not be of the declared form, or say that it is something else. The
// data, the model and its constants are gone before: nothing but the run is read. Statistical: the
// slope of y on x, 2, has a standard error of about 0.02 from 1500 rows, and is held to 0.15; the
// share of high risk, about 1/4, one of 0.03 with that of the draw, held to 0.15.
#[test]
fn tables_are_made_from_the_run_alone_and_say_what_they_are() {
    let place = Place::new();
    let said = place
        .succeeds("synth run --rows 500 --tables 3 --out out/t.csv --seed 4")
        .err;
    assert!(
        said.contains("x, region, age") && said.contains("not like the real ones"),
        "{said}"
    );
    assert!(said.contains("NOT PRIVATE"), "{said}");
    assert_eq!(
        place.names("out"),
        [
            "t-1.csv",
            "t-2.csv",
            "t-3.csv",
            "t.about.json",
            "t.about.md"
        ]
    );
    let mut all: Vec<Vec<f64>> = vec![Vec::new(); 3];
    for m in 1..=3 {
        let (header, columns) = records(&place.file(&format!("out/t-{m}.csv")));
        assert_eq!(
            header,
            ["x", "region", "age", "sick", "risk", "y", "privacy"]
        );
        assert!(columns.iter().all(|column| column.len() == 500));
        assert!(columns[1].iter().any(|word| word == "north, far"));
        let holds_only = |column: usize, words: &[&str]| {
            columns[column]
                .iter()
                .all(|word| words.contains(&word.as_str()))
        };
        assert!(
            holds_only(1, &["north, far", "south"])
                && holds_only(3, &["0", "1"])
                && holds_only(4, &["low", "high"])
        );
        assert!(holds_only(6, &["NOT_PRIVATE"]));
        let (x, y) = (numbers(&columns[0]), numbers(&columns[5]));
        assert!(x.iter().all(|x| (-2.0..=4.0).contains(x)));
        assert!(numbers(&columns[2]).iter().all(|age| *age >= 0.0));
        all[0].extend(x);
        all[1].extend(y);
        let high = columns[4]
            .iter()
            .map(|risk| f64::from(u8::from(risk == "high")));
        all[2].extend(high);
    }
    let (mx, my) = (mean(&all[0]), mean(&all[1]));
    let products = all[0].iter().zip(&all[1]).map(|(x, y)| (x - mx) * (y - my));
    let squares = all[0].iter().map(|x| (x - mx).powi(2));
    let slope = products.sum::<f64>() / squares.sum::<f64>();
    assert!((slope - 2.0).abs() < 0.15, "{slope}");
    assert!((mean(&all[2]) - 0.25).abs() < 0.15);

    let about = place.json("out/t.about.json");
    assert_eq!(about["private"], false);
    assert_eq!(
        (&about["epsilon"], &about["further_epsilon"]),
        (&Value::Null, &json("0.0"))
    );
    assert_eq!((&about["rows"], &about["seed"]), (&json("500"), &json("4")));
    assert_eq!(about["model_sha256"].as_str().map(str::len), Some(64));
    let origins = about["columns"].as_array().expect("columns").iter();
    let origins: Vec<&str> = origins
        .map(|c| c["origin"].as_str().expect("an origin"))
        .collect();
    let [drawn, uniform] = ["posterior_predictive", "uniform"];
    assert_eq!(origins, [uniform, uniform, "stand_in", drawn, drawn, drawn]);
    let draw = |m: usize| (&about["tables"][m]["chain"], &about["tables"][m]["draw"]);
    assert!(draw(0) != draw(1) && draw(1) != draw(2));
    let text = place.read("out/t.about.md");
    for words in [
        "**NOT PRIVATE**",
        "dpm pool",
        "relations that the model does not have",
        "t-3.csv",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }

    // They are data of the model's form.
    place.succeeds("check run/model.dpm --constants run/model.constants.json --data out/t-1.csv");

    // The same seed gives the same tables, another seed others; nothing is replaced unasked.
    place.refuses(
        "synth run --rows 9 --out out/t.csv",
        1,
        &["t.about.json` exists", "--out"],
    );
    place.succeeds("synth run --rows 500 --tables 3 --out again/t.csv --seed 4");
    place.succeeds("synth run --rows 500 --tables 3 --out other/t.csv --seed 5");
    assert_eq!(place.read("again/t-2.csv"), place.read("out/t-2.csv"));
    assert_ne!(place.read("other/t-2.csv"), place.read("out/t-2.csv"));
    place.succeeds("synth run --rows 9 --out out/t.csv --overwrite");
    assert_eq!(records(&place.file("out/t.csv")).1[0].len(), 9);

    place.write("p.csv", "region,x\nsouth,1\nsouth,2\n");
    place.succeeds("synth run --rows 40 --out public.csv --public-sample p.csv");
    let (_, columns) = records(&place.file("public.csv"));
    assert!(columns[0].iter().all(|x| x == "1" || x == "2"));
    assert!(columns[1].iter().all(|region| region == "south"));
    let about = place.json("public.about.json");
    assert_eq!(about["columns"][0]["origin"], "public_sample");

    #[cfg(feature = "parquet")]
    {
        place.succeeds("synth run --rows 500 --tables 3 --seed 4 --out out/t.parquet --overwrite");
        let check = "check run/model.dpm --constants run/model.constants.json --data";
        place.succeeds(&format!("{check} out/t-1.parquet"));
        assert!(
            fs::read(place.file("out/t-1.parquet"))
                .expect("a file")
                .starts_with(b"PAR1")
        );
    }
}

// If it failed: a release of covariates that nobody is charged for, or that is charged and lost.
#[test]
fn covariates_are_released_once_and_used_again() {
    let place = Folder::new();
    place.write("m.dpm", LOGISTIC);
    let row = |i: usize| {
        format!(
            "{},{}\n",
            i % 3 / 2,
            [-1.0, 0.5][usize::from(i.is_multiple_of(4))]
        )
    };
    let rows = (0..4000).map(row);
    place.write(
        "d.csv",
        rows.fold("y,x\n".to_owned(), |text, row| text + &row),
    );
    place.succeeds("ledger create l --epsilon 3 --delta 1e-6");
    place.succeeds("sample m.dpm d.csv --epsilon 1 --delta 1e-6 --ledger l --out run");
    let spent = || json(&place.succeeds("ledger show l --format json").out)["spent"].clone();
    let synth = "synth run --rows 1000 --covariates d.csv --delta 1e-6";
    let before = spent();
    for (command, code, words) in [
        (format!("{synth} --out t.csv"), 2, "--epsilon"),
        (
            "synth run --rows 9 --epsilon 1 --out t.csv".to_owned(),
            2,
            "--covariates",
        ),
        (
            "synth run --rows 9 --unit y --out t.csv".to_owned(),
            2,
            "without --covariates",
        ),
        (
            format!("{synth} --epsilon 1 --unit y --out t.csv"),
            2,
            "leave it out here",
        ),
        (
            format!("{synth} --epsilon 1 --relation zero-out --out t.csv"),
            2,
            "--relation substitute",
        ),
        (
            format!("{synth} --epsilon 0.01 --out t.csv"),
            2,
            "would drown",
        ),
        (
            format!("{synth} --epsilon 2.95 --ledger l --out t.csv"),
            3,
            "short by",
        ),
        (
            format!("{synth} --epsilon 1 --metadata g.yaml --out t.csv"),
            2,
            "--metadata",
        ),
    ] {
        place.refuses(&command, code, &[words]);
    }
    assert_eq!(spent(), before);
    assert!(!place.file("t.csv").exists() && !place.file("t.codebook.json").exists());

    place.succeeds(&format!("{synth} --epsilon 1.5 --ledger l --out t.csv"));
    assert_ne!(spent(), before);
    let at_bound = |name: &str| {
        let (_, columns) = records(&place.file(name));
        columns[1].iter().filter(|x| *x == "-1").count() as f64 / 1000.0
    };
    // Of 0.75: five standard errors of the table, and the noise.
    assert!(
        (at_bound("t.csv") - 0.75).abs() < 0.1,
        "{}",
        at_bound("t.csv")
    );
    let about = place.json("t.about.json");
    assert_eq!(about["columns"][1]["origin"], "private_marginal");
    assert_eq!(about["private"], true);
    let epsilon = about["further_epsilon"].as_f64().expect("a number");
    assert!(epsilon > 1.49 && epsilon <= 1.5, "{epsilon}");
    assert!(about["covariates"]["ledger"].is_object(), "{about}");
    assert!(place.read("t.about.md").contains("t.codebook.json"));
    place.refuses(
        &format!("{synth} --epsilon 0.1 --out t.csv"),
        1,
        &["exists"],
    );

    let charged = spent();
    place.succeeds("synth run --rows 1000 --metadata t.codebook.json --seed 8 --out u.csv");
    assert!(
        (at_bound("u.csv") - 0.75).abs() < 0.1,
        "{}",
        at_bound("u.csv")
    );
    assert_eq!(place.json("u.about.json")["columns"][1]["origin"], "guess");
    assert_eq!(spent(), charged);
    let seeded = format!("{synth} --epsilon 1 --insecure-noise-seed 3 --out s.csv");
    assert!(place.succeeds(&seeded).err.contains("NOT PRIVATE"));
    assert!(place.read("s.csv").contains("NOT_PRIVATE"));
    assert_eq!(place.json("s.about.json")["private"], false);
}

#[test]
fn what_cannot_be_made_is_said() {
    let place = Place::new();
    place.refuses("synth run --rows 0 --out t.csv", 2, &["--rows"]);
    place.refuses("synth run --rows 5 --out t.txt", 2, &[".csv", "t.txt"]);
    place.refuses(
        "synth nowhere --rows 5 --out t.csv",
        2,
        &["nowhere", "dpm sample"],
    );
    let words = ["600 of the 601 draws", "--tables"];
    place.refuses("synth run --rows 5 --tables 601 --out t.csv", 2, &words);
    place.write("p.csv", "x\n424242\n");
    let public = "synth run --rows 5 --out t.csv --public-sample p.csv";
    place.refuses(public, 2, &["line 2, column `x`"]);
    fs::remove_file(place.file("run/model.dpm")).expect("the model");
    place.refuses("synth run --rows 5 --out t.csv", 2, &["model.dpm"]);
    assert_eq!(place.names("."), ["p.csv", "run"]);
}

// If it failed: a private run's tables would be marked wrongly, or tables from draws that are not
// to be used would look like any others.
#[test]
fn the_promise_and_the_problems_of_a_run_go_with_its_tables() {
    let place = Folder::new();
    place.write("m.dpm", LOGISTIC);
    let row = |i: usize| format!("{},{}\n", i % 3 / 2, (i % 20) as f64 / 10.0 - 1.0);
    place.write(
        "d.csv",
        (0..400)
            .map(row)
            .fold("y,x\n".to_owned(), |text, row| text + &row),
    );
    place.succeeds("sample m.dpm d.csv --epsilon 2 --delta 1e-6 --out private");
    let said = place.succeeds("synth private --rows 50 --out p.csv").err;
    assert!(!said.contains("NOT PRIVATE"), "{said}");
    let about = place.json("p.about.json");
    let promise = place.json("private/privacy.json");
    assert_eq!(about["private"], true);
    for key in ["epsilon", "delta", "relation", "unit", "statement"] {
        assert!(
            !about[key].is_null() && about[key] == promise[key],
            "{key}: {about}"
        );
    }
    assert_eq!(records(&place.file("p.csv")).0, ["y", "x"]);
    assert!(!place.read("p.about.md").contains("NOT PRIVATE"));

    // Ten draws without a warm-up.
    place.succeeds(
        "sample m.dpm d.csv --algorithm rwmh --not-private --num-warmup 0 --num-samples 10 --step-size 0.01 --out short",
    );
    let said = place
        .succeeds("--quiet synth short --rows 50 --out s.csv")
        .err;
    assert!(
        said.contains("Do not use these draws") && said.contains("problem: "),
        "{said}"
    );
    assert!(
        place
            .read("s.about.md")
            .contains("**Do not use these draws.**")
    );
    let about = place.json("s.about.json");
    assert_eq!(about["decision"], "do_not_use");
    assert!(about["problems"].as_array().is_some_and(|p| !p.is_empty()));
}

// If it failed: estimates from synthetic tables would be off, or their intervals too narrow or too
// wide. The posterior of mu has the mean of the data and the variance 1/200; the pooled estimate of
// 20 tables of 200 rows has about 2/(20*200) more. Held to 5 standard errors (false alarm 1e-6, with
// a fixed seed). Its variance by the full rule, 1/200 and a tenth more, has a relative standard
// error of about 0.65: held to a factor of 4. The partial rule's variance is near it by chance of
// sizes; that for missing values is 3 times as large, and is seen to be larger.
#[test]
fn estimates_of_tables_are_pooled() {
    let place = Folder::new();
    place.write(
        "m.dpm",
        "record { real<lower=-20, upper=20> y; } parameters { real mu; }
         model { mu ~ normal(0, 100); y ~ normal(mu, 1); }",
    );
    let data: Vec<f64> = (0..200).map(|i| 7.0 + f64::from(i % 9 - 4) / 2.5).collect();
    let rows: String = data.iter().map(|y| format!("{y}\n")).collect();
    place.write("d.csv", format!("y\n{rows}"));
    place.succeeds(
        "sample m.dpm d.csv --algorithm nuts --not-private --num-warmup 300 --num-samples 500 --seed 2 --out run",
    );
    place.succeeds("synth run --rows 200 --tables 20 --out t.csv --seed 6");
    let mut estimates = String::from("name,estimate,variance\n");
    for m in 1..=20 {
        let y = numbers(&records(&place.file(&format!("t-{m}.csv"))).1[0]);
        let (centre, n) = (mean(&y), y.len() as f64);
        let variance = y.iter().map(|y| (y - centre).powi(2)).sum::<f64>() / (n - 1.0);
        estimates += &format!(
            "mean,{centre},{}\ntwice,{},{}\n",
            variance / n,
            2.0 * centre,
            4.0 * variance / n
        );
    }
    place.write("e.csv", estimates);
    let pooled = |flags: &str| {
        let out = place
            .succeeds(&format!("pool e.csv --format json{flags}"))
            .out;
        json(&out)["quantities"].clone()
    };
    let full = pooled("");
    let number = |pooled: &Value, key: &str| pooled[0][key].as_f64().expect("a number");
    let error = (1.1_f64 / 200.0).sqrt();
    assert!(
        (number(&full, "estimate") - mean(&data)).abs() < 5.0 * error,
        "{full}"
    );
    let variance = number(&full, "variance");
    assert!((0.25..4.0).contains(&(variance / error.powi(2))), "{full}");
    assert!(number(&pooled(" --rule missing"), "variance") > variance);
    assert_eq!(
        (&full[1]["name"], &full[1]["tables"]),
        (&json("\"twice\""), &json("20"))
    );
    assert!(
        (full[1]["estimate"].as_f64().expect("a number") - 2.0 * number(&full, "estimate")).abs()
            < 1e-9
    );
    let text = place.succeeds("pool e.csv").out;
    assert!(
        text.starts_with("rule: full") && text.contains("\ntwice "),
        "{text}"
    );
}

#[test]
fn estimates_that_cannot_be_pooled_are_refused() {
    let place = Folder::new();
    for (text, words) in [
        ("", &["e.csv"][..]),
        ("estimate\n1\n", &["no column `variance`"]),
        ("estimate,variance\n", &["no rows"]),
        ("estimate,variance\n1,2\n", &["two tables"]),
        (
            "estimate,variance\n1,2\n424242x,1\n",
            &["line 3", "column `estimate`"],
        ),
        ("estimate,variance\n1,2\n1,-2\n", &["variance 2"]),
        ("estimate,variance\n1,2\ninf,2\n", &["estimate 2"]),
        (
            "estimate,variance,name\n1,2,a\n1,2,a\n1,2,b\n",
            &["`b`", "two tables"],
        ),
    ] {
        place.write("e.csv", text);
        place.refuses("pool e.csv", 2, words);
    }
    place.write("e.csv", "estimate,variance\n1,2\n1,2\n");
    place.refuses("pool e.csv --size-ratio 0", 2, &["above 0"]);
    let out = place
        .succeeds("pool e.csv --size-ratio 0.5 --format json")
        .out;
    let pooled = &json(&out)["quantities"][0];
    assert_eq!(
        (&pooled["corrected"], &pooled["variance"]),
        (&json("true"), &json("1.0"))
    );
    assert!(
        place
            .succeeds("pool e.csv")
            .out
            .contains("make more tables")
    );
}
