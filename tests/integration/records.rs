//! Record columns as a curator meets them: words, vectors, missing values, units of
//! several rows, and what `dpm check --data` says of a file.

use serde_json::Value;

use crate::harness::{Folder, Lcg, finish, folder_of, json, says, start};

const FACTORS: &str = r#"
constants { real<lower=0> most; }
record {
  factor("north", "south", "east") region;
  array[2] factor("no", "yes") smoker;
  vector[2] x;
  matrix[2, 2] m;
  real<lower=0> above;
  real<upper=most> below;
  int<lower=0, upper=3> k;
}
parameters {
  vector[3] a;
  vector[2] s;
  real b;
}
model {
  a ~ normal(0, 1);
  s ~ normal(0, 1);
  b ~ normal(0, 1);
  target += a[region] + (smoker[1] == 2 ? s[2] : s[1]) + 10 * (smoker[2] == 2 ? s[2] : s[1])
    + b * (x[1] + 10 * x[2] + 100 * m[1, 1] + 1000 * m[1, 2] + 1e4 * m[2, 1] + 1e5 * m[2, 2]
           + 1e6 * above + 1e7 * below + 1e8 * k);
}
"#;

const HEADER: &str = "region,smoker.1,smoker.2,x.1,x.2,m.1.1,m.1.2,m.2.1,m.2.2,above,below,k";

const LOGISTIC: &str = "\
record {
  int<lower=0, upper=1> y;
  real<lower=-1, upper=1> x;
}
parameters {
  real alpha;
  real beta;
}
model {
  alpha ~ normal(0, 2);
  beta ~ normal(0, 2);
  y ~ bernoulli_logit(alpha + beta * x);
}
";

const RUN: &str = "--chains 2 --num-warmup 5 --num-samples 15 --leapfrog-steps 3 --step-size 0.01 --seed 7 --insecure-noise-seed 11";

struct Place(Folder);

folder_of!(Place);

impl Place {
    fn new() -> Place {
        Place(Folder::new())
    }

    /// With a model, its data and points for `dpm log-prob`.
    fn with(model: &str, data: &str) -> Place {
        let place = Place::new();
        place.write("m.dpm", model);
        place.write("d.csv", data);
        place
    }

    fn fails(&self, arguments: &str, words: &[&str]) {
        self.refuses(arguments, 2, words);
    }

    fn answer(&self, arguments: &str) -> Value {
        json(&self.succeeds(arguments).out)
    }

    /// The gradient and log density of the likelihood alone at the origin; `more` are
    /// arguments of their own.
    fn log_prob(&self, model: &str, data: &str, more: &[&str]) -> Value {
        let mut arguments = vec!["log-prob", model, data, "--points", "p.json"];
        arguments.push("--not-private");
        arguments.extend(more);
        let outcome = self.dpm_with(&arguments);
        assert_eq!(outcome.code, 0, "{arguments:?}: {}", outcome.err);
        json(&outcome.out)
    }

    /// The rows of a chain, as text.
    fn draws(&self, chain: &str) -> Vec<String> {
        let lines = self.read(chain);
        let rows = lines.lines().filter(|line| !line.starts_with('#')).skip(1);
        rows.map(str::to_string).collect()
    }
}

fn factors(rows: &str) -> Place {
    let place = Place::with(FACTORS, &format!("{HEADER}\n{rows}"));
    place.write("m.constants.json", r#"{"most": 2}"#);
    place.write(
        "p.json",
        r#"[{"params": {"a": [0, 0, 0], "s": [0, 0], "b": 0}}]"#,
    );
    place
}

/// d/da, d/ds, d/db of the likelihood at the origin: what the columns held.
fn gradient(answer: &Value) -> Vec<f64> {
    let gradient = answer[0]["gradient"].as_array().expect("a gradient");
    gradient
        .iter()
        .map(|g| g.as_f64().expect("a number"))
        .collect()
}

/// Words, elements of containers, clamping on one side, a bound that is a constant:
/// every column is read into its own place.
#[test]
fn every_column_is_read_into_its_place() {
    let row = "south,yes,no,1,2,3,4,5,6,-7,8,3\n";
    let place = factors(row);
    // x.1 + 10 x.2 + 100 m.1.1 + 1000 m.1.2 + 1e4 m.2.1 + 1e5 m.2.2 + 0 + 2e7 + 3e8
    let b = 1.0 + 20.0 + 300.0 + 4e3 + 5e4 + 6e5 + 2e7 + 3e8;
    let expected = [0.0, 1.0, 0.0, 10.0, 1.0, b];
    let read = |data: &str, more: &[&str]| gradient(&place.log_prob("m.dpm", data, more));
    assert_eq!(read("d.csv", &[]), expected);

    let brackets = "region,smoker[1],smoker[2],x[1],x[2],\"m[1,1]\",\"m[1, 2]\",\"m[2,1]\",\"m[2,2]\",above,below,k";
    place.write("brackets.csv", format!("{brackets}\n{row}"));
    assert_eq!(read("brackets.csv", &[]), expected);

    // A matrix column by column; a name with a comma in quotes.
    place.write(
        "named.csv",
        format!("place,s1,s2,\"u, v\",w,c11,c12,c21,c22,above,below,k\n{row}"),
    );
    let named = [
        "--columns",
        "region=place",
        "--columns",
        "smoker=s1,s2",
        "--columns",
        "x=\"u, v\",w",
        "--columns",
        "m=c11,c21,c12,c22",
    ];
    assert_eq!(read("named.csv", &named), expected);
    place.fails(
        "check m.dpm --data named.csv --columns m=c11",
        &["gives 1 column for `m`, which has 4 elements, m.1.1, m.2.1, ..., m.2.2"],
    );
}

/// A missing value in any column drops its row from the likelihood.
#[test]
fn a_row_with_a_missing_value_adds_nothing() {
    let row = "south,yes,no,1,2,3,4,5,6,7,-8,3";
    let place = factors(&format!("{row}\n"));
    let expected = place.log_prob("m.dpm", "d.csv", &[]);
    let cells: Vec<&str> = row.split(',').collect();
    for column in 0..cells.len() {
        for missing in ["", "NA", "nan", " null "] {
            let mut other = cells.clone();
            other[column] = missing;
            let text = format!("{HEADER}\n{}\n{row}\n", other.join(","));
            place.write("missing.csv", text);
            let answer = place.log_prob("m.dpm", "missing.csv", &[]);
            assert_eq!(answer, expected, "{column} {missing}");
        }
    }
}

#[test]
fn bad_cells_are_named_by_line_and_column() {
    let row = "south,yes,no,1,2,3,4,5,6,7,-8,3";
    let place = factors("");
    for (column, cell, words) in [
        (
            0,
            "west424242",
            "column `region`: expected a level of the factor: \"north\", \"south\", \"east\";",
        ),
        (0, "2", "column `region`"),
        (0, "South", "column `region`"),
        (
            2,
            "maybe424242",
            "column `smoker.2`: expected a level of the factor: \"no\", \"yes\";",
        ),
        (3, "x424242", "column `x.1`: expected a finite number"),
        (6, "inf", "column `m.1.2`: expected a finite number"),
        (9, "inf", "column `above`: expected a finite number"),
        (10, "-1e999", "column `below`: expected a finite number"),
        (
            11,
            "424242",
            "column `k`: expected a whole number from 0 to 3",
        ),
        (11, "-1", "column `k`"),
        (11, "1.5", "column `k`"),
    ] {
        let mut cells: Vec<&str> = row.split(',').collect();
        cells[column] = cell;
        place.write("bad.csv", format!("{HEADER}\n{row}\n{}\n", cells.join(",")));
        let said = format!("bad.csv, line 3, {words}");
        place.fails(
            "log-prob m.dpm bad.csv --points p.json --not-private",
            &[&said],
        );
        place.write("good.csv", format!("{HEADER}\n{row}\n"));
        assert_eq!(
            place.log_prob("m.dpm", "bad.csv", &["--on-bad-rows", "skip"]),
            place.log_prob("m.dpm", "good.csv", &[]),
            "{cell}"
        );
    }
    // Infinities are moved to a bound where there is one.
    for (column, infinite, finite) in [(9, "-inf", "0"), (10, "1e999", "2"), (10, "inf", "2")] {
        let answers = [infinite, finite].map(|cell| {
            let mut cells: Vec<&str> = row.split(',').collect();
            cells[column] = cell;
            place.write("d.csv", format!("{HEADER}\n{}\n", cells.join(",")));
            place.log_prob("m.dpm", "d.csv", &[])
        });
        assert_eq!(answers[0], answers[1]);
    }
}

#[test]
fn info_shows_the_levels() {
    let place = factors("");
    let info = place.answer("info m.dpm");
    let region = &info["record"][0];
    let levels = serde_json::json!(["north", "south", "east"]);
    assert_eq!(region["type"], "factor");
    assert_eq!(region["levels"], levels);
    assert_eq!(
        (&region["lower"], &region["upper"]),
        (&"1".into(), &"3".into())
    );
    assert_eq!(info["record"][1]["type"], "array[] factor");
    let column = &info["record_columns"][0];
    assert_eq!(
        (&column["type"], &column["levels"]),
        (&"factor".into(), &levels)
    );
    assert_eq!(info["record_columns"][2]["name"], "smoker.2");
    assert_eq!(info["record_columns"][3].get("levels"), None);
}

/// Rows of a small logistic regression, with the unit of each.
fn logistic_rows(units: u64) -> Vec<(u64, String)> {
    let mut random = Lcg(3);
    (0..400)
        .map(|_| {
            let unit = random.below(units);
            let x = random.below(2001) as f64 / 1000.0 - 1.0;
            (unit, format!("{},{x}", random.below(2)))
        })
        .collect()
}

fn csv(rows: &[(u64, String)]) -> String {
    rows.iter()
        .fold("who,y,x\n".to_string(), |text, (who, row)| {
            text + &format!("u{who},{row}\n")
        })
}

/// The draws do not tell in which order the rows stood; they do tell the unit.
#[test]
fn draws_depend_on_units_and_on_no_order() {
    let mut rows = logistic_rows(60);
    let place = Place::with(LOGISTIC, &csv(&rows));
    rows.sort_by(|a, b| a.1.cmp(&b.1));
    place.write("permuted.csv", csv(&rows));
    let sample = |data: &str, out: &str, more: &str| {
        // A wide budget and a tight clip bound, so that clipping shows; both bounds given, as
        // defaults derived for a row do not hold for a unit.
        place.succeeds(&format!(
            "sample m.dpm {data} {RUN} --epsilon 40 --delta 1e-3 --clip-gradient 0.3 --clip-log-ratio 3 --out {out} {more}"
        ));
        [1, 2].map(|chain| place.draws(&format!("{out}/chain-{chain}.csv")))
    };
    let grouped = sample("d.csv", "a", "--unit who");
    assert_eq!(grouped, sample("permuted.csv", "b", "--unit who"));
    assert_eq!(
        grouped,
        sample("permuted.csv", "c", "--unit who --threads 1")
    );
    let by_row = sample("d.csv", "d", "");
    assert_ne!(grouped, by_row);
    // Where every row has a unit of its own, a unit is a row.
    for (i, row) in rows.iter_mut().enumerate() {
        row.0 = i as u64;
    }
    place.write("own.csv", csv(&rows));
    assert_eq!(by_row, sample("own.csv", "e", "--unit who"));

    let report = place.json("a/privacy.json");
    assert_eq!(report["unit"], "who");
    assert_eq!(report["unit_column"], "who");
    let config = place.json("a/config.json");
    assert_eq!(config["unit"], "who");
    let plain = place.json("d/privacy.json");
    assert_eq!(plain["unit"], "record");
    assert_eq!(plain["unit_column"], Value::Null);
}

/// Everything that a run says and writes beside its draws and their diagnostics.
fn public_part(place: &Place, data: &str, more: &str) -> Vec<String> {
    let other = Place::with(LOGISTIC, &place.read(data));
    let outcome = other.succeeds(&format!(
        "sample m.dpm d.csv {RUN} --epsilon 2 --out run {more}"
    ));
    let said: Vec<&str> = outcome
        .err
        .lines()
        .take_while(|line| !line.starts_with("parameter"))
        .collect();
    let chain = other.read("run/chain-1.csv");
    let comments: Vec<&str> = chain.lines().filter(|line| line.starts_with('#')).collect();
    let mut report = json(&other.read("run/privacy.json"));
    // How many releases took place follows from the draws, as do verdicts.
    report["released"] = Value::Null;
    report["verdicts"] = Value::Null;
    report["decision"] = Value::Null;
    vec![
        said.join("\n"),
        comments.join("\n"),
        report.to_string(),
        other.read("run/config.json"),
    ]
}

/// Under substitute the number of units is public and the number of rows is not:
/// whatever a unit's rows are, the run says the same. Under add-remove neither is.
#[test]
fn the_number_of_rows_of_a_unit_shows_nowhere() {
    let rows = logistic_rows(60);
    let place = Place::with(LOGISTIC, &csv(&rows));
    let units = {
        let mut seen: Vec<u64> = rows.iter().map(|r| r.0).collect();
        seen.sort_unstable();
        seen.dedup();
        seen.len()
    };
    // One unit has three rows where it had some, another only a missing one.
    let mut other: Vec<(u64, String)> = rows.iter().filter(|r| r.0 > 1).cloned().collect();
    other.extend([(0, "1,0.5".into()), (0, "0,9".into()), (0, "1,-1".into())]);
    other.push((1, "NA,0.25".into()));
    place.write("other.csv", csv(&other));
    let first = public_part(&place, "d.csv", "--unit who");
    assert_eq!(first, public_part(&place, "other.csv", "--unit who"));
    let delta = format!("taking 0.1 / number of units = {:.3e}", 0.1 / units as f64);
    assert!(first[0].contains(&delta), "{}", first[0]);

    let fewer: Vec<(u64, String)> = rows.iter().filter(|r| r.0 != 5).cloned().collect();
    place.write("fewer.csv", csv(&fewer));
    let settings = "--unit who --relation add-remove --delta 1e-6";
    assert_eq!(
        public_part(&place, "d.csv", settings),
        public_part(&place, "fewer.csv", settings)
    );
}

#[test]
fn units_are_checked_in_every_command() {
    let rows = logistic_rows(60);
    let place = Place::with(LOGISTIC, &csv(&rows));
    place.write("p.json", r#"[{"params": {"alpha": 0.1, "beta": 0.2}}]"#);
    place.write("nobody.csv", csv(&rows).replacen("u5,", ",", 1));
    let commands = [
        format!("sample m.dpm DATA {RUN} --epsilon 2"),
        "log-prob m.dpm DATA --points p.json --not-private".to_string(),
        "check m.dpm --data DATA".to_string(),
    ];
    for command in &commands {
        let absent = command.replace("DATA", "d.csv") + " --unit whom";
        place.fails(
            &absent,
            &[
                "no column named `whom`",
                "did you mean `who`?",
                "`who`, `y`, `x`",
            ],
        );
        let nobody = command.replace("DATA", "nobody.csv") + " --unit who";
        let words: &[&str] = if command.starts_with("check") {
            &["one row cannot be read"]
        } else {
            &["column `who`: expected a value that says to which unit"]
        };
        place.fails(&nobody, words);
    }
    place.fails("check m.dpm --unit who", &["give it with --data"]);
    // Units change what is clipped, not the likelihood.
    let plain = place.log_prob("m.dpm", "d.csv", &[]);
    let grouped = place.log_prob("m.dpm", "d.csv", &["--unit", "who"]);
    for (a, b) in gradient(&plain).iter().zip(gradient(&grouped)) {
        assert!((a - b).abs() < 1e-12 * a.abs(), "{a} {b}");
    }
    place.succeeds(
        "log-prob m.dpm nobody.csv --points p.json --not-private --unit who --on-bad-rows skip",
    );
}

const SURVEYED: &str = "\
who,y,x
anne,1,0.5
anne,0,-3
otto,NA,424242
,1,0.1
otto,2,
otto,1
anne,1,hello424242
";

#[test]
fn check_tells_the_curator_which_rows_are_wrong() {
    let place = Place::with(LOGISTIC, SURVEYED);
    let words = ["4 rows cannot be read"];
    let outcome = place.refuses("check m.dpm --data d.csv --unit who", 2, &words);
    for words in [
        "NOT PRIVATE",
        "no guarantee covers it",
        "d.csv: 7 records",
        "2 units by `who`, of at most 3 records",
        "1 without a unit (bad): line 5",
        "1 with the wrong number of fields (bad): line 7",
        "4 that cannot be read, for any reason (bad): lines 5, 6, 7, 8",
        "1 with a value missing, which add nothing: line 4",
        "column `y`, expected 0 or 1, or false or true",
        "1   missing: line 4",
        "1   bad: line 6",
        "1   below the lower bound, clamped: line 3",
        "1   above the upper bound, clamped: line 4",
    ] {
        says(&outcome.out, words);
    }
    let json = place.answer("check m.dpm --data d.csv --on-bad-rows skip --format json");
    let data = &json["data"];
    assert!(
        data["warning"]
            .as_str()
            .is_some_and(|w| w.contains("NOT PRIVATE"))
    );
    assert_eq!(data["records"], 7);
    assert_eq!(data["unit"], Value::Null);
    assert_eq!(data["bad_rows"]["lines"], serde_json::json!([6, 7, 8]));
    let x = &data["columns"][1];
    assert_eq!(x["name"], "x");
    assert_eq!(
        x["clamped_below"],
        serde_json::json!({"count": 1, "lines": [3]})
    );
    assert_eq!(
        x["clamped_above"],
        serde_json::json!({"count": 1, "lines": [4]})
    );
    assert_eq!(x["missing"], serde_json::json!({"count": 1, "lines": [6]}));
    assert_eq!(x["bad"], serde_json::json!({"count": 1, "lines": [8]}));
    // A model alone is checked as before.
    assert_eq!(place.answer("check m.dpm --format json").get("data"), None);
}

#[test]
fn long_lists_of_lines_are_cut_unless_all_are_wanted() {
    let mut data = "y,x\n".to_string();
    for _ in 0..25 {
        data += "1,7\n";
    }
    let place = Place::with(LOGISTIC, &data);
    let short = place.succeeds("check m.dpm --data d.csv").out;
    assert!(short.contains("25   above the upper bound, clamped: lines 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 15 more (--all lists them)"), "{short}");
    let long = place.succeeds("check m.dpm --data d.csv --all").out;
    assert!(long.contains("25, 26\n"), "{long}");
    place.write("good.csv", "y,x\n1,0.5\n");
    let good = place.succeeds("check m.dpm --data good.csv").out;
    says(&good, "all values are there and within their bounds");
    place.write(
        "other.dpm",
        LOGISTIC.replace("record {", "constants { real c; }\nrecord {"),
    );
    place.fails("check other.dpm --data d.csv", &["--constants"]);
    place.fails("check m.dpm --data none.csv", &["cannot read none.csv"]);
}

/// The first line of a file without a header is a record.
#[test]
fn a_forgotten_header_is_not_shown() {
    let place = Place::with(LOGISTIC, "secret,word\n1,0.5\n");
    for command in [
        "check m.dpm --data d.csv",
        "sample m.dpm d.csv --epsilon 1",
        "check m.dpm --data d.csv --unit who",
    ] {
        let outcome = place.refuses(command, 2, &["2 fields"]);
        assert!(!outcome.err.contains("secret"), "{}", outcome.err);
    }
}

const NORMAL: &str = "\
record { real<lower=-10, upper=10> y; }
parameters { real mu; real<lower=0> sigma; }
model { mu ~ normal(0, 1); sigma ~ exponential(1); y ~ normal(mu, sigma); }
";

fn gzipped(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, text).expect("in memory");
    encoder.finish().expect("in memory")
}

/// A masked row moves others to other places in blocks, whose sums round otherwise.
fn close(a: &Value, b: &Value) -> bool {
    let mut pairs = gradient(a).into_iter().zip(gradient(b));
    pairs.all(|(a, b)| (a - b).abs() < 1e-12 * (1.0 + b.abs()))
}

/// A quotation mark that is never closed once took in every line after it.
#[test]
fn a_stray_quotation_mark_takes_in_no_other_record() {
    let rows: String = (0..20_000)
        .map(|i| format!("{}.{:03},n{i}\n", i % 3, i % 1000))
        .collect();
    let place = Place::with(NORMAL, &format!("y,note\n{rows}"));
    place.write("p.json", r#"[{"params": {"mu": 0.3, "sigma": 1}}]"#);
    place.write("stray.csv", format!("y,note\n2.0,\"note\n{rows}"));
    place.fails(
        "log-prob m.dpm stray.csv --points p.json --not-private",
        &["stray.csv, line 2: expected each field with quotation marks around all of it"],
    );
    let skip = ["--on-bad-rows", "skip"];
    assert!(close(
        &place.log_prob("m.dpm", "stray.csv", &skip),
        &place.log_prob("m.dpm", "d.csv", &skip)
    ));
    // Where records may span lines, one whose end is not found stops the run.
    for more in ["", "--on-bad-rows skip"] {
        place.fails(
            &format!(
                "log-prob m.dpm stray.csv --points p.json --not-private --multiline-records {more}"
            ),
            &["stray.csv, line 2", "nothing after it can be told apart"],
        );
    }
}

/// A line that says anything at all costs its own record: n, and what a run says of it,
/// stays, and the likelihood is that of the others.
#[test]
fn a_hostile_line_costs_its_own_record() {
    let place = Place::with(NORMAL, "");
    place.write("p.json", r#"[{"params": {"mu": 0.3, "sigma": 1}}]"#);
    let table = |line: Option<&[u8]>| {
        let mut text = b"who,note,y\n".to_vec();
        for i in 0..20 {
            match (i, line) {
                (7, None) => continue,
                (7, Some(line)) => text.extend(line),
                _ => text.extend(format!("u{i},\"a, {i}\",{}.5", i % 4).as_bytes()),
            }
            text.push(b'\n');
        }
        text
    };
    let long = [b"u7,", &[b'x'; 3_000_000][..], b",?"].concat();
    let cut = [b"u7,", &[b'x'; 20_000_000][..], b",2"].concat();
    let lines: [&[u8]; 22] = [
        b"u7,\"note,2",
        b"u7,note,\"5",
        b"u7,note,2\"",
        b"u7,\"no\"te,2",
        b"u7,\"\"\",2",
        b"u7,note,2\ru8,note,2",
        b"u7\r,note,2\r\r3",
        b"u7,note,\xef\xbb\xbf2",
        b"u7,note,2\0",
        b"u7,\0\0,\0",
        b"u7,note,\xff\xfe2\0",
        b"u7,note,\xb2",
        b"u7,note,\xe2\x80\xa82,2",
        b"u7,note",
        b"u7",
        b"u7,note,2,2",
        b"u7,,,,,,,,,,",
        b"u7,note,",
        b"u7;note;2",
        b"u7,note,1e999999x",
        &long,
        &cut,
    ];
    place.write("d.csv", table(None));
    let expected = place.log_prob("m.dpm", "d.csv", &[]);
    let survey = "--unit who --on-bad-rows skip --format json";
    for line in lines {
        let text = table(Some(line));
        place.write("hostile.csv", &text);
        place.write("hostile.csv.gz", gzipped(&text));
        let shown = String::from_utf8_lossy(&line[..line.len().min(40)]);
        for data in ["hostile.csv", "hostile.csv.gz"] {
            for unit in [&[][..], &["--unit", "who"]] {
                let flags = [&["--on-bad-rows", "skip"], unit].concat();
                let found = place.log_prob("m.dpm", data, &flags);
                assert!(close(&found, &expected), "{shown}: {found} {expected}");
            }
            let said = place.answer(&format!("check m.dpm --data {data} {survey}"));
            assert_eq!(said["data"]["records"], 20, "{shown}");
            assert_eq!(said["data"]["unit"]["units"], 20, "{shown}");
        }
        if !line.ends_with(b",") {
            let command = "log-prob m.dpm hostile.csv --points p.json --not-private";
            place.fails(
                command,
                &["hostile.csv, line 9", "is private and not shown"],
            );
        }
    }
    // A file that was damaged stops every run.
    let whole = gzipped(&table(None));
    place.write("damaged.csv.gz", &whole[..whole.len() - 3]);
    for more in ["", "--on-bad-rows skip", "--multiline-records"] {
        let command = format!("log-prob m.dpm damaged.csv.gz --points p.json --not-private {more}");
        place.fails(&command, &["damaged or truncated"]);
    }
}

/// Under add-remove the number of records is private, also where it is none; under
/// substitute it is public, and may not be.
#[test]
fn a_table_may_be_empty_where_its_size_is_private() {
    for more in ["", "--unit who --on-bad-rows skip"] {
        let place = Place::with(LOGISTIC, "who,y,x\na,1,0.5\n");
        let relation = format!("--relation add-remove --delta 1e-6 {more}");
        let one = public_part(&place, "d.csv", &relation);
        place.write("empty.csv", "who,y,x\n");
        assert_eq!(one, public_part(&place, "empty.csv", &relation));
        for command in [
            format!("sample m.dpm empty.csv {RUN} --epsilon 2 --delta 1e-6 {more}"),
            format!("sample m.dpm empty.csv --algorithm nuts --not-private {more}"),
        ] {
            place.fails(&command, &["there are no records"]);
        }
        let checked = place.succeeds(&format!("check m.dpm --data empty.csv {more}"));
        says(&checked.out, "empty.csv: 0 records");
    }
}

#[test]
fn records_that_span_lines_are_counted_and_read_where_that_is_asked_for() {
    let text = "y,x,note\n1,0.5,\"two\nlines\"\n0,-0.5,one\n1,1,\"\r\n\r\n\"\n";
    let place = Place::with(LOGISTIC, text);
    let outcome = place.dpm("check m.dpm --data d.csv");
    assert_eq!(outcome.code, 2);
    for words in [
        "2 that span lines by their quotation marks, which takes --multiline-records: lines 2, 5",
        "d.csv: 6 records",
        "5 that cannot be read",
    ] {
        says(&outcome.out, words);
    }
    let data = &place.answer("check m.dpm --data d.csv --multiline-records --format json")["data"];
    assert_eq!(data["records"], 3);
    assert_eq!(
        data["multiline_records"],
        serde_json::json!({"count": 2, "lines": [2, 5]})
    );
    assert_eq!(data["bad_rows"]["count"], 0);
    place.write("p.json", r#"[{"params": {"alpha": 0.1, "beta": 0.2}}]"#);
    place.write("plain.csv", "y,x\n1,0.5\n0,-0.5\n1,1\n");
    assert_eq!(
        place.log_prob("m.dpm", "d.csv", &["--multiline-records"]),
        place.log_prob("m.dpm", "plain.csv", &[])
    );
    place.fails("check m.dpm --multiline-records", &["give it with --data"]);
}

/// Rows that do not fit into memory are read from a file, of which nothing is left, and give the
/// same draws to the bit.
#[test]
fn rows_beside_memory_give_the_same_draws() {
    let rows: Vec<_> = (0..40).flat_map(|_| logistic_rows(60)).collect();
    let place = Place::with(LOGISTIC, &csv(&rows));
    std::fs::create_dir(place.file("beside")).expect("a folder");
    for algorithm in [
        "--epsilon 1 --delta 1e-6 --algorithm dp-hmc",
        "--not-private --algorithm hmc",
    ] {
        let draws = |more: &str| {
            let private = if algorithm.contains("not-private") {
                RUN.replace("--insecure-noise-seed 11", "")
            } else {
                RUN.to_owned()
            };
            place.succeeds(&format!(
                "sample m.dpm d.csv {algorithm} {private} --out run --overwrite {more}"
            ));
            place.draws("run/chain-1.csv")
        };
        let all = draws("");
        assert!(all.len() > 5);
        assert_eq!(all, draws("--max-memory 0 --spill-dir beside"));
        assert_eq!(all, draws("--max-memory 40KiB"));
        assert_eq!(all, draws("--no-spill --max-memory 1MiB"));
    }
    let left = std::fs::read_dir(place.file("beside"))
        .expect("a folder")
        .count();
    assert_eq!(left, 0);
    for (more, words) in [
        (
            "--max-memory 40KiB --no-spill",
            &["memory", "--max-memory"][..],
        ),
        ("--max-memory 0 --spill-dir none", &["none", "--spill-dir"]),
        ("--max-memory lots", &["500MiB"]),
        ("--no-spill --spill-dir beside", &["cannot be used with"]),
    ] {
        let run = format!("sample m.dpm d.csv --epsilon 1 --delta 1e-6 --out other {more}");
        place.refuses(&run, 2, words);
    }
    assert!(!place.file("other").exists());
}

/// A disk without room for them: nothing is charged, and nothing is left.
#[cfg(unix)]
#[test]
fn rows_beside_memory_need_room_on_the_disk() {
    let rows: Vec<_> = (0..200).flat_map(|_| logistic_rows(60)).collect();
    let place = Place::with(LOGISTIC, &csv(&rows));
    place.succeeds("ledger create l --epsilon 2 --delta 1e-5");
    let before = place.read("l");
    std::fs::create_dir(place.file("beside")).expect("a folder");
    let run = "sample m.dpm d.csv --epsilon 1 --delta 1e-6 --ledger l --max-memory 0 --spill-dir beside --out run";
    let outcome = finish(start(&mut place.limited("-f 64", run)));
    assert_eq!(outcome.code, 2, "{}", outcome.err);
    for words in ["cannot be written in beside", "--spill-dir", "--max-memory"] {
        assert!(outcome.err.contains(words), "{}", outcome.err);
    }
    assert!(!place.file("run").exists());
    assert_eq!(place.read("l"), before);
    let left = std::fs::read_dir(place.file("beside")).expect("a folder");
    assert_eq!(left.count(), 0);
}
