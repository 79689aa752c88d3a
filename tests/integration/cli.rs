//! The program as its users meet it: bad input is explained, nothing is left half
//! done, and what a run writes is what the guides promise.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::Command;

use dpm::testing::sampler::{ALGORITHMS, Algorithm, lookup};
use serde_json::Value;

use crate::harness::{
    Folder, LOGISTIC as MODEL, Lcg, Outcome, finish, folder_of, json, says, start,
};

const WITH_CONSTANTS: &str = "\
constants {
  real scale;
  vector[2] centre;
}
record {
  real<lower=0, upper=10> y;
}
parameters {
  real alpha;
}
model {
  alpha ~ normal(centre[1], scale);
  y ~ normal(alpha, 1);
}
";

/// Enough of a run, with steps so small that no trajectory is cut short.
const SHORT: &str = "--epsilon 2 --delta 1e-6 --chains 2 --num-warmup 10 --num-samples 20 --leapfrog-steps 3 --step-size 0.001";
const SEEDS: &str = "--seed 7 --insecure-noise-seed 11";

/// A folder of its own.
struct Place(Folder);

folder_of!(Place);

impl Place {
    /// With `m.dpm` and `d.csv` of 300 rows.
    fn new() -> Place {
        let place = Place(Folder::new());
        place.write("m.dpm", MODEL);
        place.write("d.csv", csv(&rows(300)));
        place
    }

    /// Names of all files below, and of empty folders.
    fn listing(&self) -> Vec<String> {
        let (mut found, mut folders) = (Vec::new(), vec![self.path().to_path_buf()]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                found.push(path.display().to_string());
                if path.is_dir() {
                    folders.push(path);
                }
            }
        }
        found.sort();
        found
    }

    /// The command fails with this code and these words, and changes no file.
    fn fails(&self, arguments: &str, code: i32, words: &[&str]) -> String {
        let before = self.listing();
        let Outcome { out, err, .. } = self.refuses(arguments, code, words);
        assert!(
            err.contains("error"),
            "dpm {arguments}: no `error` in: {err}"
        );
        assert_eq!(out, "", "dpm {arguments}");
        assert_eq!(self.listing(), before, "dpm {arguments}");
        err
    }

    /// A short run into `out`, with noise from a seed; flags of `more` come in place of
    /// the usual ones.
    fn sample(&self, data: &str, out: &str, more: &str) -> Outcome {
        let usual = settings_but(more);
        self.succeeds(&format!("sample m.dpm {data} {usual} --out {out} {more}"))
    }

    /// The rows of a chain: all columns as text.
    fn draws(&self, chain: &str) -> Vec<String> {
        let lines = self.read(chain);
        let rows = lines.lines().filter(|line| !line.starts_with('#')).skip(1);
        rows.map(str::to_string).collect()
    }

    /// A chain's file but for the lines about time.
    fn untimed(&self, chain: &str) -> String {
        let text = self.read(chain);
        let lines = text.lines().filter(|line| !line.contains(" seconds ("));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// [`SHORT`] and [`SEEDS`] without the flags that stand in `more`.
fn settings_but(more: &str) -> String {
    let usual = format!("{SHORT} {SEEDS}");
    let words: Vec<&str> = usual.split(' ').collect();
    let kept = words
        .chunks(2)
        .filter(|pair| !more.split(' ').any(|word| word == pair[0]));
    kept.flatten().copied().collect::<Vec<_>>().join(" ")
}

fn rows(n: usize) -> Vec<(u8, f64)> {
    let mut random = Lcg(12_345);
    (0..n)
        .map(|_| {
            let x = 2.0 * random.uniform() - 1.0;
            (u8::from(random.uniform() < 0.5 + 0.3 * x), x)
        })
        .collect()
}

fn csv(rows: &[(u8, f64)]) -> String {
    rows.iter().fold("y,x\n".to_string(), |text, (y, x)| {
        text + &format!("{y},{x:.6}\n")
    })
}

/// The data with the rows `which` replaced by `text`.
fn csv_with(rows: &[(u8, f64)], which: std::ops::Range<usize>, text: &str) -> String {
    let whole = csv(rows);
    let lines = whole.lines().enumerate().map(|(i, line)| {
        // Line 0 is the header.
        if i > 0 && which.contains(&(i - 1)) {
            text
        } else {
            line
        }
    });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).expect("in memory");
    encoder.finish().expect("in memory")
}

fn has_keys(json: &Value, keys: &[&str]) {
    for key in keys {
        assert!(json.get(key).is_some(), "no key `{key}` in {json}");
    }
}

#[test]
fn bad_data_is_explained_and_never_shown() {
    let place = Place::new();
    let data = rows(300);
    place.write("misses.csv", csv(&data).replacen("y,x", "y,xx", 1));
    place.write("text.csv", csv_with(&data, 3..4, "hello424242,0.424242"));
    place.write("fields.csv", csv_with(&data, 5..6, "1,0.424242,3"));
    place.write("bounds.csv", csv_with(&data, 6..7, "7,0.424242"));
    place.write("unnamed.csv", csv(&data).replacen("y,x\n", "", 1));
    place.write("empty.csv", "");
    place.write("header.csv", "y,x\n");
    place.write("twice.csv", csv(&data).replacen("y,x", "y,x,x", 1));
    place.write("not.csv.gz", csv(&data));
    let gz = gzip(&csv(&data));
    place.write("cut.csv.gz", &gz[..gz.len() / 2]);
    for (file, words) in [
        (
            "misses.csv",
            &["no column named `x`", "`y`", "`xx`", "--columns x="][..],
        ),
        (
            "text.csv",
            &[
                "line 5",
                "column `y`",
                "0 or 1, or false or true",
                "--on-bad-rows skip",
            ],
        ),
        ("fields.csv", &["line 7", "2 fields"]),
        ("bounds.csv", &["line 8", "column `y`"]),
        ("unnamed.csv", &["no column named", "header line"]),
        ("empty.csv", &["is empty", "header line"]),
        ("header.csv", &["no records", "at least one"]),
        ("none.csv", &["cannot read none.csv", "check the path"]),
        ("twice.csv", &["more than one column named `x`"]),
        ("not.csv.gz", &["not a gzip file"]),
        ("cut.csv.gz", &["damaged or truncated"]),
    ] {
        place.fails(&format!("sample m.dpm {file} {SHORT}"), 2, words);
    }
}

#[test]
fn bad_rows_can_be_skipped_and_are_not_counted_aloud() {
    let place = Place::new();
    let data = rows(300);
    place.write("one.csv", csv_with(&data, 3..4, "hello424242,0.424242"));
    place.write("many.csv", csv_with(&data, 20..77, "1,2,3"));
    let mut public = Vec::new();
    for file in ["d.csv", "one.csv", "many.csv"] {
        // The same names in each, so that only the rows differ.
        let other = Place::new();
        other.write("d.csv", place.read(file));
        let outcome = other.sample("d.csv", "run", "--on-bad-rows skip");
        public.push(without_draws(&other, "run", &outcome));
    }
    assert_eq!(public[0], public[1]);
    assert_eq!(public[0], public[2]);
}

#[test]
fn bad_models_are_explained() {
    let place = Place::new();
    let write = |name: &str, from: &str, to: &str| {
        let text = MODEL.replacen(from, to, 1);
        assert_ne!(text, MODEL);
        place.write(name, text);
    };
    write("syntax.dpm", "real alpha;", "real alpha");
    write(
        "types.dpm",
        "normal(0, 2);\n  beta",
        "normal(0, y);\n  beta",
    );
    write(
        "two.dpm",
        "normal(0, 2);\n  beta ~ normal",
        "nromal(0, 2);\n  beta ~ cauhcy",
    );
    write("type.dpm", "alpha + beta", "alpha + \"one\" + beta");
    write("count.dpm", "logit(alpha + beta * x)", "logit(alpha, beta)");
    write("prior.dpm", "alpha ~ normal(0, 2)", "alpha ~ normal(x, 2)");
    write(
        "public.dpm",
        "model {",
        "transformed parameters {\n  real g = alpha * x;\n}\nmodel {",
    );
    write(
        "constraint.dpm",
        "real alpha;",
        "simplex<lower=0>[3] alpha;",
    );
    place.write("empty.dpm", "");
    for (file, words) in [
        ("syntax.dpm", &["`;` is missing", "syntax.dpm:6"][..]),
        ("types.dpm", &["private", "`y` is a record column"]),
        ("two.dpm", &["`nromal`", "`normal`", "`cauhcy`", "`cauchy`"]),
        ("type.dpm", &["type.dpm:12", "text"]),
        ("count.dpm", &["count.dpm:12", "bernoulli_logit"]),
        (
            "prior.dpm",
            &["a prior that reads private data", "prior.dpm:10"],
        ),
        (
            "public.dpm",
            &["`transformed parameters` is public", "public.dpm:10"],
        ),
        (
            "constraint.dpm",
            &["`simplex` has no `lower`", "constraint.dpm:6"],
        ),
        ("empty.dpm", &["empty.dpm"]),
        ("none.dpm", &["cannot read the model `none.dpm`"]),
    ] {
        place.fails(&format!("sample {file} d.csv {SHORT}"), 2, words);
        // What is wrong goes to standard output too, for editors.
        let outcome = place.dpm(&format!("check {file} --format json"));
        assert_eq!(outcome.code, 2, "{}", outcome.err);
        if file == "none.dpm" {
            assert_eq!(outcome.out, "");
        } else {
            let said = json(&outcome.out);
            assert_eq!(said["ok"], false, "{file}");
        }
        let checked = outcome.err;
        assert!(!checked.contains('\x1b'), "colours in a file: {checked}");
    }
    let coloured = place.fails("check syntax.dpm --color always", 2, &[]);
    assert!(coloured.contains('\x1b'), "{coloured}");
}

#[test]
fn bad_settings_are_explained() {
    let place = Place::new();
    place.write("text.json", "hello");
    place.write("number.json", "3");
    place.write("half.json", r#"{"alpha": 1}"#);
    place.write("words.json", r#"{"alpha": "a", "beta": 1}"#);
    place.write("outside.json", r#"{"alpha": 1, "beta": -30}"#);
    place.write(
        "three.json",
        r#"[{"alpha": 1, "beta": 1}, {"alpha": 1, "beta": 1}, {"alpha": 1, "beta": 1}]"#,
    );
    place.write("file", "");
    let run = "--epsilon 1 --delta 1e-6 ";
    for (settings, words) in [
        (
            "--epsilon -1 --delta 1e-6",
            &["epsilon is -1", "above 0"][..],
        ),
        ("--epsilon 0 --delta 1e-6", &["epsilon is 0", "above 0"]),
        (
            "--epsilon abc --delta 1e-6",
            &["'abc'", "--epsilon", "not a number"],
        ),
        ("--epsilon inf", &["'inf'", "out of range"]),
        ("--epsilon nan", &["'nan'", "not a number"]),
        ("--epsilon 1 --delta 1", &["delta is 1", "below 1"]),
        ("--epsilon 1 --delta 0", &["delta is 0", "above 0"]),
        ("--epsilon 1 --delta -1", &["delta is -1", "above 0"]),
        ("--epsilon 1 --delta 1.5", &["delta is 1.5"]),
        ("", &["--epsilon", "--not-private"]),
        ("--delta 1e-6", &["--epsilon"]),
        (
            "--epsilon 1 --relation add-remove",
            &["private", "give --delta"],
        ),
        (
            "--epsilon 1 --relation swap",
            &["substitute", "add-remove", "zero-out"],
        ),
        (
            "--epsilon 1 --algorithm dp-hcm",
            &["`dp-hcm`", "did you mean `dp-hmc`"],
        ),
        (
            "--epsilon 1 --algorithm zzz",
            &["no sampler `zzz`; there are `dp-laplace`, `dp-langevin`"],
        ),
        (
            "--epsilon 1 --algorithm dp-barker --batch-size 301",
            &["301", "out of 300 records"],
        ),
        (
            "--epsilon 1 --delta 1e-6 --algorithm dp-barker --relation add-remove",
            &["fixed size", "private", "--relation substitute"],
        ),
        (
            "--epsilon 1 --algorithm dp-barker --relation zero-out",
            &["fixed size", "includes", "--relation substitute"],
        ),
        (
            "--epsilon 1 --algorithm dp-penalty --batch-size 20 --relation zero-out",
            &["fixed size", "--relation substitute, or --batch-rate"],
        ),
        (
            "--epsilon 1 --algorithm dp-barker --batch-rate 0.1",
            &["--batch-rate means nothing to `dp-barker`", "--batch-size"],
        ),
        (
            "--epsilon 1 --delta 1e-6 --algorithm dp-sgld --relation add-remove",
            &["--step-size", "give one"],
        ),
        (
            "--epsilon 1 --algorithm dp-penalty --batch-rate 1.5",
            &["1.5"],
        ),
        (
            "--epsilon 1 --algorithm dp-sghmc --friction 0",
            &["--friction", "positive"],
        ),
        (
            "--epsilon 1 --algorithm dp-sghmc --friction 1 --noise-estimate 2",
            &["--noise-estimate is 2", "below the friction, 1"],
        ),
        (
            "--epsilon 1 --algorithm dp-sgnht --step-decay 2",
            &["--step-decay", "from 0"],
        ),
        ("--algorithm clipped-hmc", &["no privacy", "--not-private"]),
        (
            "--epsilon 1 --algorithm dp-penalty --leapfrog-steps 3",
            &["--leapfrog-steps means nothing", "--one-component"],
        ),
        (
            "--epsilon 1 --guided-walk",
            &["--guided-walk means nothing to `dp-hmc`"],
        ),
        (
            "--algorithm rwmh --not-private --clip-gradient 2",
            &["--clip-gradient means nothing to `rwmh`"],
        ),
        (
            "--epsilon 1 --step-size 0.1 --target-acceptance 0.5",
            &["--step-size fixes"],
        ),
        ("--algorithm dp-barker", &["--epsilon", "how private"]),
        ("--algorithm hmc", &["no privacy", "--not-private"]),
        (
            "--epsilon 1 --algorithm hmc --not-private",
            &["--epsilon", "leave them out"],
        ),
        (
            "--algorithm hmc --not-private --iterations max",
            &["budget", "a number"],
        ),
        (
            "--epsilon 1 --not-private",
            &["`dp-laplace` is private", "--algorithm hmc"],
        ),
        (
            "--epsilon 1000 --delta 1e-6",
            &["epsilon 1000", "at most about"],
        ),
        (
            "--epsilon 1 --temperature 301",
            &["--temperature is 301", "300"],
        ),
        (
            "--epsilon 1 --temperature 0",
            &["--temperature is 0", "above 0"],
        ),
        (
            "--epsilon 1 --temperature -3",
            &["--temperature is -3", "above 0"],
        ),
        (
            "--epsilon 1 --delta 1e-6 --relation add-remove --temperature 10",
            &["--temperature", "add-remove"],
        ),
        ("--epsilon 1 --tau-gradient 40", &["--tau-log-ratio"]),
        (
            "--epsilon 1 --tau-gradient 0 --tau-log-ratio 1",
            &["--tau-gradient is 0, but must be a positive number"],
        ),
        (
            "--epsilon 1 --tau-gradient 9 --tau-log-ratio 9 --noise-split 0.3",
            &["--noise-split divides", "--tau-gradient", "leave one"],
        ),
        (
            "--epsilon 1 --iterations max",
            &["--tau-gradient", "--tau-log-ratio"],
        ),
        ("--epsilon 1 --iterations 0", &["0 iterations"]),
        (
            "--epsilon 1 --iterations some",
            &["number of iterations", "`max`"],
        ),
    ] {
        place.fails(&format!("sample m.dpm d.csv {settings}"), 2, words);
    }
    for (settings, words) in [
        ("--thin 0", &["--thin must be at least 1"][..]),
        ("--chains 0", &["--chains must be at least 1"]),
        ("--chains -1", &["--chains", "'-1'"]),
        ("--num-samples 0", &["--num-samples must be at least 1"]),
        ("--num-samples 18446744073709551615", &["too large"]),
        (
            "--leapfrog-steps 0",
            &["--leapfrog-steps is 0, but must be at least 1"],
        ),
        ("--threads 0", &["--threads must be at least 1"]),
        ("--step-size -1", &["--step-size is -1", "positive"]),
        ("--clip-gradient 0", &["--clip-gradient is 0", "positive"]),
        ("--clip-log-ratio nan", &["--clip-log-ratio", "positive"]),
        ("--noise-split 1", &["--noise-split", "below 1"]),
        ("--seed -3", &["--seed", "'-3'"]),
        (
            "--init none.json",
            &["cannot read the parameter values `none.json`"],
        ),
        ("--init text.json", &["`text.json` is not valid JSON"]),
        ("--init number.json", &["an object of parameter values"]),
        ("--init half.json", &["`beta` has no value"]),
        (
            "--init words.json",
            &["`alpha`", "expected real, found text"],
        ),
        ("--init outside.json", &["beta"]),
        ("--init three.json", &["3 initial points for 4 chains"]),
        ("--columns x", &["`name=header`", "`x`"]),
        (
            "--columns xs=x",
            &["`xs`", "`record` declares no such column"],
        ),
        ("--columns x=z", &["no column named `z`", "`y`, `x`"]),
        (
            "--columns x=y,y",
            &["2 columns for `x`, which has 1 element"],
        ),
        ("--columns x=x --columns x=x", &["more than one new name"]),
        ("--on-bad-rows ignore", &["error", "skip"]),
        ("--no-such-flag", &["--no-such-flag", "--help"]),
        (
            "--constants none.json",
            &["cannot read the constants `none.json`"],
        ),
        ("--out file/run", &["cannot write `file/run`", "--out"]),
    ] {
        place.fails(&format!("sample m.dpm d.csv {run}{settings}"), 2, words);
    }
    for (command, words) in [
        ("sample m.dpm", &["<DATA>"][..]),
        ("smaple m.dpm d.csv", &["smaple", "sample"]),
        (
            "log-prob m.dpm d.csv --points half.json",
            &["--not-private"],
        ),
        (
            "log-prob m.dpm d.csv --points half.json --not-private",
            &["list of points"],
        ),
        (
            "log-prob m.dpm d.csv --points none.json --not-private",
            &["cannot read the points"],
        ),
        (
            "plan m.dpm --rows 0 --epsilon 1",
            &["--rows must be at least 1"],
        ),
        (
            "plan m.dpm --rows 9 --epsilon 1 --chains 0",
            &["--chains must be at least 1"],
        ),
        (
            "plan m.dpm --rows 9 --epsilon 1 --algorithm hmc",
            &["`hmc`", "nothing to plan"],
        ),
        ("summary none", &["`none` holds no chain-1.csv"]),
        ("account --relation substitute --delta 1e-6", &["--event"]),
        (
            "account --relation substitute --event gaussian:clip=1,sigma=2",
            &["--epsilon", "--delta"],
        ),
        (
            "account --relation substitute --event gaussian:clip=1 --delta 1e-6",
            &["`sigma` is missing"],
        ),
        (
            "account --relation substitute --event laplace:b=1 --delta 1e-6",
            &["`laplace`"],
        ),
        (
            "account --relation substitute --event gaussian:clip=1,sigma=2 --delta 0",
            &["delta is 0"],
        ),
        (
            "account --relation substitute --event gaussian:clip=1,sigma=2 --epsilon -1",
            &["epsilon is -1"],
        ),
    ] {
        place.fails(command, 2, words);
    }
}

/// Whoever exchanges two files shows nobody a row: not in a message, not among the diagnostics.
#[test]
fn data_in_the_place_of_another_file_are_never_shown() {
    let place = Place::new();
    place.write("c.dpm", WITH_CONSTANTS);
    place.write("p.json", r#"[{"params": {"alpha": 1, "beta": 0.5}}]"#);
    place.sample("d.csv", "run", "--quiet");
    place.write(
        "public.dpm",
        format!(
            "constants {{ int N; vector[N] z; }}\n{MODEL}generated quantities {{ real g = alpha; }}"
        ),
    );
    let packed = gzip("model {,y\nhello424242,1\n");
    let tables: [(&str, &[u8]); 12] = [
        ("t.csv", b"name,y,x\nhello424242,1,0.424242\n"),
        ("t.dpm", b"name,y,x\nhello424242,1,0.424242\n"),
        ("t", b"model,a,b\nhello424242,1,0.424242\n"),
        ("parameters", b"parameters\thello424242\n0.424242\t1\n"),
        ("bare", b"hello424242,1,0.424242\nhello424242,1,0.424242\n"),
        ("twice", b"hello424242,hello424242,1\n"),
        ("quoted", b"name,y\n\"model { hello424242 }\",1\n"),
        (
            "lines",
            b"name,y\n\"first\nmodel { hello424242 }\nparameters {\n\",0.424242\n",
        ),
        ("head.CSV", b"model { hello424242 },0.424242\n"),
        ("latin1", b"name,y\nhello424242 \xe9,1\n"),
        ("binary", b"model {\0\x01 hello424242\xff\xfe"),
        ("packed", &packed),
    ];
    for (name, text) in tables {
        place.write(name, text);
        let budget = "--epsilon 1 --delta 1e-6";
        for command in [
            format!("sample {name} m.dpm {SHORT}"),
            format!("check {name}"),
            format!("check {name} --data d.csv"),
            format!("info {name}"),
            format!("fmt {name}"),
            format!("fmt --check m.dpm {name}"),
            format!("plan {name} --rows 300 {budget}"),
            format!("tune {name} --simulate --rows 300 {budget}"),
            format!("generate {name} run"),
            format!("log-prob {name} m.dpm --points p.json --not-private"),
        ] {
            let said = place.fails(&command, 2, &[name]);
            assert!(!said.contains("name,y"), "{said}");
        }
        // Editors get a diagnostic, without a word of the file.
        let checked = place.dpm(&format!("check {name} --format json"));
        assert_eq!(checked.code, 2);
        if !checked.out.is_empty() {
            let said = json(&checked.out);
            assert_eq!(said["diagnostics"][0]["code"], "S010", "{said}");
            assert_eq!(said["diagnostics"].as_array().map(Vec::len), Some(1));
        }
    }
    let json: [(&str, &str); 4] = [
        (
            "columns.json",
            r#"{"hello424242": [0.424242, 1], "scale": "hello424242"}"#,
        ),
        (
            "rows.json",
            r#"[{"hello424242": 0.424242, "params": "hello424242"}]"#,
        ),
        ("cut.json", r#"{"y": ["hello424242", 0.424242"#),
        ("d.csv", ""),
    ];
    for (name, text) in json {
        if !text.is_empty() {
            place.write(name, text);
        }
        for command in [
            format!("check {name}"),
            format!("fmt {name}"),
            format!("check c.dpm --constants {name}"),
            format!("sample c.dpm d.csv {SHORT} --constants {name}"),
            format!("sample m.dpm d.csv {SHORT} --init {name}"),
            format!("log-prob m.dpm d.csv --points {name} --not-private"),
        ] {
            place.fails(&command, 2, &[]);
        }
    }
    let ignored = place.succeeds("info m.dpm --constants columns.json");
    says(&ignored.err, "declares no constants");
    for table in ["t", "bare", "twice", "lines"] {
        for command in [
            format!("account --events {table} --relation substitute --delta 1e-6"),
            format!("compare run {table}"),
            format!("generate public.dpm run --data {table}"),
            format!(
                "tune m.dpm --simulate --rows 300 --epsilon 1 --delta 1e-6 --public-sample {table}"
            ),
            format!("sample m.dpm {table} {SHORT}"),
        ] {
            place.fails(&command, 2, &[]);
        }
        assert_ne!(place.dpm(&format!("ledger show {table}")).code, 0);
    }
    // A program in the place of a table is no secret, and its first line may be one.
    let swapped = place.fails(&format!("sample m.dpm c.dpm {SHORT}"), 2, &["c.dpm"]);
    assert!(!swapped.contains("constants"), "{swapped}");
}

#[test]
fn bad_constants_are_explained() {
    let place = Place::new();
    place.write("c.dpm", WITH_CONSTANTS);
    let data = rows(50).iter().fold("y\n".to_string(), |text, (_, x)| {
        text + &format!("{:.3}\n", 5.0 + x)
    });
    place.write("c.csv", data);
    let run = format!("sample c.dpm c.csv {SHORT}");
    place.fails(&run, 2, &["`scale` has no value", "constants file"]);
    for (text, words) in [
        ("", &["not valid JSON"][..]),
        ("{\"scale\": 1, ", &["not valid JSON"]),
        ("[1, 2]", &["expected a JSON object"]),
        ("{\"scale\": 1}", &["`centre` has no value"]),
        (
            "{\"scale\": 1, \"centre\": [1]}",
            &["`centre`", "list of 1"],
        ),
        (
            "{\"scale\": 1, \"centre\": 1}",
            &["`centre`", "found a number"],
        ),
        (
            "{\"scale\": \"a\", \"centre\": [1, 2]}",
            &["`scale`", "found text"],
        ),
    ] {
        place.write("bad.json", text);
        place.fails(&format!("{run} --constants bad.json"), 2, words);
        place.fails("check c.dpm --constants bad.json", 2, words);
    }
    // Beside the model, with a key too many.
    place.write(
        "c.constants.json",
        r#"{"scale": 1, "centre": [5, 2], "more": 1}"#,
    );
    let outcome = place.succeeds(&run);
    assert!(
        outcome.err.contains("note:") && outcome.err.contains("more"),
        "{}",
        outcome.err
    );
    assert_eq!(
        place.json("c-run/config.json")["constants"],
        "c.constants.json"
    );
}

#[test]
fn a_budget_refuses_with_exit_code_3() {
    let place = Place::new();
    let words = [
        "epsilon",
        "budget is 1",
        "short by",
        "Spent so far: 0",
        "remaining: 1",
    ];
    for noise in [
        "--tau-gradient 40 --tau-log-ratio 40",
        // So little noise that a lattice reaches no delta.
        "--tau-gradient 1 --tau-log-ratio 1",
        "--tau-gradient 1 --tau-log-ratio 1 --iterations max",
    ] {
        let settings = format!("--epsilon 1 --delta 1e-6 {noise}");
        place.fails(&format!("sample m.dpm d.csv {settings}"), 3, &words);
        place.fails(&format!("plan m.dpm --rows 300 {settings}"), 3, &words);
    }
}

#[test]
fn a_run_directory_is_replaced_only_on_request() {
    let place = Place::new();
    place.sample("d.csv", "run", "--chains 3");
    let sample = format!("sample m.dpm d.csv {SHORT}");
    let first = place.read("run/privacy.json");
    place.fails(
        &format!("{sample} --out run"),
        2,
        &["exists already", "--overwrite"],
    );
    assert_eq!(place.read("run/privacy.json"), first);
    place.succeeds(&format!("{sample} --out run --overwrite"));
    assert_ne!(place.read("run/privacy.json"), first);
    assert!(!place.file("run/chain-3.csv").exists());
    // Bad input leaves the old run where it is.
    place.fails(
        &format!("{sample} --out run --overwrite --columns x=z"),
        2,
        &[],
    );
    fs::create_dir(place.file("thesis")).expect("a folder");
    place.write("thesis/chapter1.txt", "years of work");
    for (out, words) in [
        ("thesis", &["not the directory of a run", "left alone"]),
        ("d.csv", &["not the directory of a run", "left alone"]),
    ] {
        place.fails(&format!("{sample} --out {out} --overwrite"), 2, words);
    }
    // Default place, missing parents, and nothing temporary in the end.
    place.succeeds(&sample);
    place.succeeds(&format!("{sample} --out a/b/run"));
    assert!(place.file("m-run/summary.csv").exists());
    let left: Vec<String> = place.listing();
    assert!(
        left.iter().all(|name| !name.contains(".dpm-run-")),
        "{left:?}"
    );
}

#[test]
fn seeds_fix_the_draws_whatever_the_threads() {
    let place = Place::new();
    // Several blocks of rows, so that threads have something to share.
    place.write("d.csv", csv(&rows(9_000)));
    let chains = ["chain-1.csv", "chain-2.csv"];
    let files = |run: &str| chains.map(|chain| place.untimed(&format!("{run}/{chain}")));
    place.sample("d.csv", "one", "--threads 1");
    place.sample("d.csv", "two", "--threads 2");
    place.sample("d.csv", "free", "");
    assert_eq!(files("one"), files("two"));
    assert_eq!(files("one"), files("free"));
    assert_eq!(place.read("one/summary.csv"), place.read("two/summary.csv"));
    assert_ne!(
        files("one")[0].replace("id = 1", ""),
        files("one")[1].replace("id = 2", "")
    );
    // Another seed of either kind gives other draws; so does noise without a seed.
    place.sample("d.csv", "noise", "--insecure-noise-seed 12");
    for out in ["secure", "again"] {
        place.succeeds(&format!("sample m.dpm d.csv {SHORT} --seed 7 --out {out}"));
    }
    let draws = |run: &str| place.draws(&format!("{run}/chain-1.csv"));
    assert_ne!(draws("one"), draws("noise"));
    assert_ne!(draws("one"), draws("secure"));
    assert_ne!(draws("secure"), draws("again"));
}

/// Every sampler, and the ones with flags of their own again.
fn samplers() -> Vec<(&'static Algorithm, &'static str)> {
    let all = ALGORITHMS.iter().map(|a| {
        let batches = a.has(dpm::Setting::batch_rate) && a.name != "dp-penalty";
        (a, if batches { "--batch-rate 0.1" } else { "" })
    });
    let more = [
        ("dp-hmc", "--fresh-gradients"),
        ("dp-hmc", "--fixed-steps"),
        ("dp-penalty", "--one-component"),
        ("dp-penalty", "--guided-walk"),
        ("dp-penalty", "--batch-rate 0.2"),
        ("dp-amagold", "--friction 3"),
        ("dp-penalty", "--batch-size 50 --one-component"),
        ("dp-sgld", "--batch-rate 0.1 --step-decay 0.33"),
        (
            "dp-sgnht",
            "--batch-rate 0.1 --step-decay 0.33 --friction 20",
        ),
        (
            "dp-sghmc",
            "--batch-rate 0.1 --step-decay 0 --leapfrog-steps 3",
        ),
        ("sgld", "--clip-gradient 1 --batch-rate 0.1"),
        ("clipped-rwmh", "--guided-walk --clip-log-ratio 1"),
    ];
    let named = |(name, flags)| (lookup(name).expect("a sampler"), flags);
    all.chain(more.map(named)).collect()
}

// If it failed: a sampler would not run as planned, would be charged or reported as something
// else, would write draws that depend on threads, or would take no notice of --init.
#[test]
fn every_sampler_runs_as_planned_and_reports_it() {
    let place = Place::new();
    place.write("init.json", r#"{"alpha": 1, "beta": 0.5}"#);
    for (i, (algorithm, flags)) in samplers().into_iter().enumerate() {
        let lengths = "--chains 2 --num-warmup 6 --num-samples 12 --temperature 30";
        let budget = "--epsilon 3 --delta 1e-4";
        let (noise, permission) = if algorithm.is_private() {
            ("--insecure-noise-seed 11", budget)
        } else {
            ("", "--not-private")
        };
        let settings = format!("--algorithm {} {flags} {lengths}", algorithm.name);
        let run = |out: &str, more: &str| {
            place.succeeds(&format!(
                "sample m.dpm d.csv {settings} {permission} --seed 7 --out {out} --overwrite {more}"
            ))
        };
        let outcome = run("one", &format!("{noise} --threads 1 --init init.json"));
        assert!(outcome.err.contains("NOT PRIVATE"), "{settings}");
        run("two", &format!("{noise} --threads 2 --init init.json"));
        // All private samplers start at the same place.
        let starts = !algorithm.is_private() || algorithm.name == "dp-hmc";
        if starts {
            run("free", noise);
        }
        for chain in ["chain-1.csv", "chain-2.csv"] {
            let one = place.untimed(&format!("one/{chain}"));
            assert_eq!(one, place.untimed(&format!("two/{chain}")), "{settings}");
            if starts {
                assert_ne!(one, place.untimed(&format!("free/{chain}")), "{settings}");
            }
            assert!(one.contains("NOT_PRIVATE"), "{settings}");
            assert!(one.contains(&format!("# dpm_algorithm = {}\n", algorithm.name)));
            assert_eq!(place.draws(&format!("one/{chain}")).len(), 12, "{settings}");
            for column in algorithm.columns {
                assert!(one.contains(column), "{settings}: no {column}");
            }
        }
        assert!(
            place.read("one/summary.csv").contains("NOT_PRIVATE"),
            "{settings}"
        );
        let config = place.json("one/config.json");
        assert_eq!(config["algorithm"], algorithm.name);
        assert_eq!(config["private"], false, "{settings}");
        assert_eq!(
            place.json("one/privacy.json")["private"],
            false,
            "{settings}"
        );
        if !algorithm.is_private() {
            continue;
        }
        // With noise from the system, on a ledger.
        let ledger = format!("l{i}.json");
        place.succeeds(&format!(
            "ledger create {ledger} --epsilon 30 --delta 1e-3 --accountant rdp"
        ));
        let charged = place.succeeds(&format!(
            "sample m.dpm d.csv {settings} {budget} --ledger {ledger} --out charged --overwrite"
        ));
        assert!(charged.err.contains("this run adds"), "{}", charged.err);
        let report = place.json("charged/privacy.json");
        assert_eq!(report["private"], true, "{settings}");
        assert!(
            report["epsilon_spent"]
                .as_f64()
                .is_some_and(|e| e > 0.0 && e <= 3.0)
        );
        assert_eq!(report["ledger"]["name"], ledger.as_str(), "{settings}");
        let plan = place.succeeds(&format!(
            "plan m.dpm --rows 300 {settings} {budget} --format json"
        ));
        let plan = json(&plan.out);
        assert_eq!(plan["epsilon"], report["epsilon_spent"], "{settings}");
        let counts = |json: &Value| -> Vec<u64> {
            let events = json["events"].as_array().expect("a list");
            events.iter().filter_map(|e| e["count"].as_u64()).collect()
        };
        assert_eq!(counts(&plan), counts(&report), "{settings}");
        assert!(!counts(&plan).is_empty(), "{settings}");
        place.succeeds(&format!("ledger verify {ledger}"));
    }
    // A ledger whose accountant has no bound for batches says what would.
    place.succeeds("ledger create g.json --epsilon 10 --delta 1e-3");
    place.fails(
        "sample m.dpm d.csv --algorithm dp-sgld --epsilon 1 --delta 1e-4 --ledger g.json --out no",
        2,
        &["`gaussian`", "--accountant rdp"],
    );
    // What does not fit a sampler's fixed noise is not to be had by multipliers.
    let refused = place.fails(
        "sample m.dpm d.csv --algorithm dp-barker --epsilon 0.1 --delta 1e-6 --out no",
        3,
        &["--batch-size", "--iterations max"],
    );
    assert!(!refused.contains("multipliers"), "{refused}");
}

// If it failed: a log of a run's progress would tell how long an iteration takes, and so how many
// records there are.
#[test]
fn progress_for_programs_is_told_at_fixed_counts() {
    let place = Place::new();
    place.write("more.csv", csv(&rows(3000)));
    let progress = |data: &str, out: &str| -> Vec<Value> {
        let outcome = place.sample(data, out, "--num-samples 190 --quiet --progress json");
        let lines = outcome.err.lines().filter(|line| line.starts_with('{'));
        lines.map(json).collect()
    };
    let steps = progress("d.csv", "few");
    assert_eq!(steps, progress("more.csv", "many"));
    // 2 chains of 200 iterations.
    let counts = std::iter::once(1).chain((4..=400).step_by(4));
    let expected = counts.map(|done| {
        serde_json::json!({"stage": "sampling", "done": done, "total": 400, "unit": "iterations"})
    });
    assert_eq!(steps, expected.collect::<Vec<_>>());
    place.fails("sample m.dpm d.csv --progress xml", 2, &["xml", "json"]);
    place.fails("summary few --progress json", 2, &["--progress"]);
}

#[test]
fn what_is_not_private_says_so_everywhere() {
    let place = Place::new();
    let seeded = place.sample("d.csv", "seeded", "--quiet");
    let exact = place.succeeds(
        "sample m.dpm d.csv --algorithm hmc --not-private --chains 2 --num-samples 50 --out exact --quiet",
    );
    for (run, outcome) in [("seeded", seeded), ("exact", exact)] {
        assert!(
            outcome.err.contains("NOT PRIVATE"),
            "{run}: {}",
            outcome.err
        );
        let report = place.json(&format!("{run}/privacy.json"));
        assert_eq!(report["private"], false);
        assert!(
            report["statement"]
                .as_str()
                .is_some_and(|s| s.starts_with("NOT PRIVATE"))
        );
        for chain in 1..=2 {
            let text = place.read(&format!("{run}/chain-{chain}.csv"));
            assert!(text.contains("# privacy_private = false\n"), "{text}");
            assert!(text.contains("# privacy_note = NOT_PRIVATE\n"), "{text}");
        }
        let summary = place.succeeds(&format!("summary {run}"));
        assert!(
            summary.err.contains("NOT PRIVATE"),
            "{run}: {}",
            summary.err
        );
    }
    // And a private run says nothing of the kind, and nothing at all with --quiet but that its
    // draws are of no use.
    let private = place.succeeds(&format!("sample m.dpm d.csv {SHORT} --out private --quiet"));
    assert_eq!(private.out, "");
    assert!(private.err.lines().count() <= 1, "{}", private.err);
    let useless = |line: &str| line.starts_with("verdict: Do not use these draws. ");
    assert!(private.err.lines().all(useless), "{}", private.err);
    assert_eq!(place.json("private/privacy.json")["private"], true);
    assert!(
        place
            .read("private/chain-1.csv")
            .contains("# privacy_private = true\n")
    );
    for name in ["privacy.json", "config.json", "chain-1.csv"] {
        let text = place.read(&format!("private/{name}"));
        assert!(
            !text.contains("NOT PRIVATE") && !text.contains("NOT_PRIVATE"),
            "{text}"
        );
    }
    place.write("p.json", r#"[{"params": {"alpha": 1, "beta": 0.5}}]"#);
    let answer = place.succeeds("log-prob m.dpm d.csv --points p.json --not-private --quiet");
    assert!(answer.err.contains("NOT PRIVATE"), "{}", answer.err);
    let answer = json(&answer.out);
    has_keys(
        &answer[0],
        &[
            "log_prob",
            "log_prob_unconstrained",
            "unconstrained",
            "gradient",
        ],
    );
}

#[test]
fn warm_up_is_dropped_and_thinning_keeps_every_nth() {
    let place = Place::new();
    place.sample("d.csv", "all", "--num-warmup 0 --num-samples 30");
    place.sample("d.csv", "late", "");
    place.sample("d.csv", "thin", "--thin 3");
    let draws = |run: &str| place.draws(&format!("{run}/chain-2.csv"));
    let (all, late, thin) = (draws("all"), draws("late"), draws("thin"));
    assert_eq!((all.len(), late.len(), thin.len()), (30, 20, 7));
    // The same 30 iterations are planned, so the same noise falls on them.
    assert_eq!(all[10..], late);
    assert_eq!(late.iter().step_by(3).cloned().collect::<Vec<_>>(), thin);
    let text = place.read("thin/chain-2.csv");
    for line in [
        "num_samples = 20",
        "thin = 3",
        "save_warmup = 0",
        "dpm_num_warmup = 10",
    ] {
        assert!(text.contains(&format!("# {line}\n")), "{text}");
    }
    assert!(
        thin.iter().all(|row| row.starts_with("nan,")),
        "lp__ is never released"
    );
}

#[test]
fn the_reports_hold_what_they_promise() {
    let place = Place::new();
    place.sample("d.csv", "run", "");
    let report = place.json("run/privacy.json");
    has_keys(
        &report,
        &[
            "private",
            "epsilon",
            "delta",
            "epsilon_spent",
            "relation",
            "unit",
            "events",
            "accountant",
            "noise",
            "assumed_public",
            "not_protected",
            "software",
        ],
    );
    has_keys(&report["noise"], &["generator", "lattice"]);
    for event in report["events"].as_array().expect("a list") {
        has_keys(
            event,
            &["kind", "sensitivity", "sigma", "clip", "rate", "count"],
        );
    }
    // Every flag of the command is a key of config.json, but for those that say
    // where to write and what to print.
    let help = place.succeeds("sample --help").out;
    let config = place.json("run/config.json");
    let elsewhere = [
        "resume",
        "out",
        "overwrite",
        "no-report",
        "progress",
        "color",
        "quiet",
        "help",
        "iterations",
    ];
    let mut flags = 0;
    for line in help.lines() {
        let words = line
            .trim_start()
            .trim_start_matches("-q, ")
            .trim_start_matches("-h, ");
        let Some(flag) = words.strip_prefix("--") else {
            continue;
        };
        let name = flag.split([' ', '\n']).next().unwrap_or_default();
        if !elsewhere.contains(&name) {
            flags += 1;
            has_keys(&config, &[name.replace('-', "_").as_str()]);
        }
    }
    assert!(flags >= 24, "{flags} flags in {help}");
    has_keys(
        &config,
        &[
            "model",
            "data",
            "num_warmup",
            "num_samples",
            "unit",
            "version",
        ],
    );
    for format in ["csv", "json", "table"] {
        let summary = place
            .succeeds(&format!("summary run --format {format}"))
            .out;
        match format {
            "csv" => {
                assert_eq!(summary, place.read("run/summary.csv"));
                // The noise came from a seed, so every row is marked.
                assert!(summary.starts_with(
                    "parameter,mean,mcse,sd,mad,q5,q50,q95,ess_bulk,ess_tail,r_hat,privacy\n"
                ));
                assert_eq!(
                    summary.matches("NOT_PRIVATE").count(),
                    summary.lines().count() - 1
                );
            }
            "json" => {
                let list = json(&summary);
                assert_eq!(list[1]["parameter"], "beta");
            }
            _ => assert!(summary.contains("ess_bulk"), "{summary}"),
        }
    }
}

/// The default sampler's plan says what it would ask for, and how wide intervals will be at least;
/// a model that it cannot learn is refused.
#[test]
fn a_plan_of_a_likelihood_foresees_rounds_shares_and_width() {
    let place = Place::new();
    place.write(
        "one.dpm",
        "record { real<lower=-4, upper=4> y; }
         parameters { real mu; real<lower=0> sigma; }
         model { mu ~ normal(0, 5); sigma ~ exponential(1); y ~ normal(mu, sigma); }",
    );
    let plan = "plan one.dpm --rows 4000 --delta 1e-6";
    let json = |epsilon: &str| -> Value {
        let out = place
            .succeeds(&format!("{plan} --epsilon {epsilon} --format json"))
            .out;
        json(&out)
    };
    let (tight, ample) = (json("0.3"), json("3"));
    for plan in [&tight, &ample] {
        let foreseen = &plan["foreseen"];
        assert_eq!(foreseen["coordinates"], 2);
        assert_eq!(foreseen["information"], "law");
        let noise = foreseen["noise"].as_f64().expect("a noise");
        let width = foreseen["width"].as_f64().expect("a width");
        assert!(noise > 0.0 && (width - noise.hypot(1.0)).abs() < 1e-12);
        let shares = foreseen["shares"].as_object().expect("shares");
        let sum: f64 = shares.values().filter_map(Value::as_f64).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{foreseen}");
        // A share is of the sum of sensitivity^2 / (2 sigma^2).
        let cost = |event: &Value| {
            let number = |key: &str| event[key].as_f64().expect("a number");
            number("count") * number("sensitivity").powi(2) / (2.0 * number("sigma").powi(2))
        };
        let events = plan["events"].as_array().expect("events");
        let of_certificate = events.iter().filter(|e| {
            e["what"]
                .as_str()
                .is_some_and(|w| w.contains("certificate"))
        });
        let share = of_certificate.map(cost).sum::<f64>() / events.iter().map(cost).sum::<f64>();
        let said = shares["certificate"].as_f64().expect("a share");
        assert!((share - said).abs() < 1e-4, "{share} {said}");
    }
    let noise = |plan: &Value| plan["foreseen"]["noise"].as_f64();
    assert!(noise(&tight) > noise(&ample));
    let rounds = |plan: &Value| plan["foreseen"]["rounds"].as_u64();
    assert!(rounds(&tight) < rounds(&ample));
    let text = place.succeeds(&format!("{plan} --epsilon 0.3")).out;
    for words in [
        "rounds and a certificate (",
        "the records are informative in 2 directions",
        "intervals at least",
    ] {
        assert!(text.contains(words), "{text}");
    }
    assert!(!text.contains("no law of the outcomes"), "{text}");
    // A time without the event counts twice: no hazard, and no density of `t`.
    place.write(
        "weighted.dpm",
        "record { real<lower=0, upper=9> t; int<lower=0, upper=1> died; }
         parameters { real<lower=0> rate; }
         model {
           rate ~ exponential(1);
           target += died == 1 ? exponential_lpdf(t | rate) : 2 * exponential_lccdf(t | rate);
         }",
    );
    let text = place
        .succeeds("plan weighted.dpm --rows 4000 --epsilon 1 --delta 1e-6")
        .out;
    for words in [
        "no law of the outcomes",
        "for `t` are not a density",
        "may have unbounded influence",
    ] {
        assert!(text.contains(words), "{text}");
    }
    place.write(
        "groups.dpm",
        "record { real<lower=-4, upper=4> y; int<lower=1, upper=120> g; }
         parameters { vector[120] mu; }
         model { mu ~ normal(0, 5); y ~ normal(mu[g], 1); }",
    );
    let words = [
        "the records see 120 numbers",
        "at most 100",
        "use the algorithm dp-langevin",
    ];
    place.fails(
        "plan groups.dpm --rows 4000 --epsilon 1 --delta 1e-6",
        2,
        &words,
    );
}

#[test]
fn a_run_costs_what_was_planned_and_what_the_accountant_says() {
    let place = Place::new();
    for relation in ["substitute", "add-remove", "zero-out"] {
        place.sample("d.csv", relation, &format!("--relation {relation}"));
        let plan = place.succeeds(&format!(
            "plan m.dpm --rows 300 {SHORT} --relation {relation} --format json"
        ));
        let plan = json(&plan.out);
        has_keys(
            &plan,
            &[
                "iterations_per_chain",
                "chains",
                "events",
                "mu",
                "epsilon",
                "delta",
                "warnings",
            ],
        );
        let report = place.json(&format!("{relation}/privacy.json"));
        assert_eq!(plan["events"], report["events"]);
        assert_eq!(plan["epsilon"], report["epsilon_spent"]);
        assert_eq!(plan["delta"], report["delta"]);
        assert_eq!(plan["iterations_per_chain"], 30);
        let spent = report["epsilon_spent"].as_f64().expect("a number");
        assert!(spent <= 2.0 && spent > 2.0 - 1e-9, "{spent}");
        // k L + 1 gradients and k log-ratios in each of two chains.
        assert_eq!(report["events"][0]["count"], 2 * (30 * 3 + 1));
        assert_eq!(report["events"][1]["count"], 2 * 30);
        let factor = if relation == "substitute" { 2.0 } else { 1.0 };
        let mut by_clip = format!("account --relation {relation} --delta 1e-6");
        let mut by_sensitivity = by_clip.clone();
        for event in report["events"].as_array().expect("a list") {
            let bound = event["clip"].as_f64().expect("a number");
            assert_eq!(event["sensitivity"], factor * bound);
            let (clip, sigma, count) = (&event["clip"], &event["sigma"], &event["count"]);
            by_clip += &format!(" --event gaussian:clip={clip},sigma={sigma},count={count}");
            let sensitivity = &event["sensitivity"];
            by_sensitivity +=
                &format!(" --event gaussian:sensitivity={sensitivity},sigma={sigma},count={count}");
        }
        for command in [by_clip, by_sensitivity] {
            let guarantee = json(&place.succeeds(&command).out);
            has_keys(
                &guarantee,
                &[
                    "epsilon",
                    "delta",
                    "epsilon_lower",
                    "epsilon_upper",
                    "accountant",
                    "relation",
                    "proved",
                ],
            );
            let epsilon = guarantee["epsilon_lower"].as_f64().expect("a number");
            // The lattice adds a little, and never takes away.
            assert!(
                epsilon <= spent && spent - epsilon < 1e-9,
                "{epsilon} accounted, {spent} in the report"
            );
        }
    }
}

#[test]
fn add_remove_keeps_the_number_of_records_to_itself() {
    const N: usize = 3917;
    let settings = "--relation add-remove";
    let mut public = Vec::new();
    for n in [N, N - 1, 300] {
        let place = Place::new();
        place.write("d.csv", csv(&rows(n)));
        let outcome = place.sample("d.csv", "run", settings);
        let mut said = vec![outcome.out.clone(), outcome.err.clone()];
        for name in place.names("run") {
            said.push(place.read(&format!("run/{name}")));
        }
        for text in said {
            assert!(!has_number(&text, N as f64), "n stands in: {text}");
        }
        public.push(without_draws(&place, "run", &outcome));
    }
    assert_eq!(public[0], public[1]);
    assert_eq!(public[0], public[2]);
    // Nor in what goes wrong on the way.
    let place = Place::new();
    place.write("d.csv", csv(&rows(N)));
    for more in [
        "",
        "--delta 1e-6 --temperature 10",
        "--delta 1e-6 --tau-gradient 9 --tau-log-ratio 9",
    ] {
        let outcome = place.dpm(&format!("sample m.dpm d.csv --epsilon 1 {settings} {more}"));
        assert_ne!(outcome.code, 0);
        assert!(!has_number(&outcome.err, N as f64), "{}", outcome.err);
    }
    // The same search does find n where it is public.
    let outcome = place.succeeds("sample m.dpm d.csv --epsilon 1 --chains 1 --num-samples 2");
    let delta = 0.1 / N as f64;
    assert!(has_number(&outcome.err, delta), "{}", outcome.err);
}

/// Under zero-out the number of records is public, noise is half of what substitution takes,
/// and all that names the relation says what it hides and what not.
#[test]
fn zero_out_hides_values_and_not_rows() {
    const N: usize = 3917;
    let run =
        "--chains 1 --num-warmup 4 --num-samples 8 --leapfrog-steps 3 --step-size 0.001 --quiet";
    let place = Place::new();
    place.write("d.csv", csv(&rows(N)));
    for (relation, more) in [("substitute", ""), ("zero-out", " --temperature 100")] {
        place.succeeds(&format!(
            "sample m.dpm d.csv --epsilon 1 {run} --relation {relation} --out {relation}{more}"
        ));
    }
    let report = place.json("zero-out/privacy.json");
    assert_eq!(report["relation"], "zero-out");
    assert_eq!(report["delta"], 0.1 / N as f64);
    assert_eq!(report["tempered"], true);
    let says = |key: &str, words: &str| {
        let text = report[key].to_string();
        assert!(text.contains(words), "{key}: {text}");
    };
    says(
        "statement",
        "for one record under the relation `zero-out` (whether its values were in the table or left blank; that there was a row is not hidden)",
    );
    says("assumed_public", "the number of records");
    says("not_protected", "that a record has a row in the table");
    let html = place.read("zero-out/report.html");
    assert!(html.contains("in one version its values are there, in the other they are left blank; that there was a row is not hidden"));
    assert!(html.contains("with its values left blank"));
    let other = place.json("substitute/privacy.json");
    for (event, twice) in [0, 1].map(|i| (&report["events"][i], &other["events"][i])) {
        let [half, whole] = [event, twice].map(|e| e["sensitivity"].as_f64().expect("a number"));
        assert_eq!(half, 1.0 * event["clip"].as_f64().expect("a number"));
        assert_eq!(whole, 2.0 * twice["clip"].as_f64().expect("a number"));
    }
    // Of units, their number.
    let lines = csv(&rows(300));
    let by_unit = lines.lines().enumerate().map(|(i, line)| match i {
        0 => format!("who,{line}\n"),
        _ => format!("u{},{line}\n", i % 70),
    });
    place.write("d.csv", by_unit.collect::<String>());
    place.succeeds(&format!(
        "sample m.dpm d.csv --epsilon 1 {run} --relation zero-out --unit who --out units"
    ));
    let report = place.json("units/privacy.json");
    assert_eq!(report["delta"], 0.1 / 70.0);
    let statement = report["statement"].as_str().expect("a sentence");
    assert!(statement.contains("whether their values were in the table or left blank; that there was such a unit is not hidden"), "{statement}");
    // Search and accountants, too.
    let account = |relation: &str, kind: &str| -> Value {
        let event = format!("{kind}clip=1,sigma=4,count=30");
        let said = place.succeeds(&format!(
            "account --event {event} --relation {relation} --delta 1e-5"
        ));
        json(&said.out)
    };
    for kind in ["gaussian:", "poisson:rate=0.1,"] {
        let [blank, gone, replaced] =
            ["zero-out", "add-remove", "substitute"].map(|relation| account(relation, kind));
        assert_eq!(blank["relation"], "zero-out");
        assert_eq!(blank["epsilon"], gone["epsilon"]);
        assert_eq!(blank["proved"], true);
        assert!(blank["epsilon"].as_f64() < replaced["epsilon"].as_f64());
    }
    for (event, advice) in [
        (
            "without-replacement:rate=0.1,clip=1,sigma=4",
            "or `poisson:`",
        ),
        ("barker:batch=100,rows=1000", "use `--relation substitute`"),
    ] {
        let command = format!("account --event {event} --relation zero-out --delta 1e-5");
        place.fails(&command, 2, &["zero-out", "whose promise includes", advice]);
    }
}

#[test]
fn which_rows_are_missing_shows_in_the_draws_only() {
    for relation in ["substitute", "add-remove", "zero-out"] {
        let mut public = Vec::new();
        for missing in [0..0, 0..40, 200..290, 0..300] {
            let place = Place::new();
            place.write("d.csv", csv_with(&rows(300), missing, "NA,0.5"));
            let outcome = place.sample("d.csv", "run", &format!("--relation {relation}"));
            public.push(without_draws(&place, "run", &outcome));
        }
        for other in &public[1..] {
            assert_eq!(&public[0], other, "{relation}");
        }
    }
}

#[test]
fn the_same_table_in_another_dress_gives_the_same_draws() {
    let place = Place::new();
    let data = rows(300);
    let text = csv(&data);
    place.sample("d.csv", "plain", "");
    place.write("d.csv.gz", gzip(&text));
    place.sample("d.csv.gz", "gzipped", "");
    place.write(
        "named.csv",
        text.replacen("y,x", "switched,dist to well", 1),
    );
    let outcome = place.dpm_with(
        &format!(
            "sample m.dpm named.csv {SHORT} {SEEDS} --out named --columns y=switched --columns"
        )
        .split_whitespace()
        .chain(["x=dist to well"])
        .collect::<Vec<_>>(),
    );
    assert_eq!(outcome.code, 0, "{}", outcome.err);
    place.write(
        "windows.csv",
        format!("\u{feff}{}", text.replace('\n', "\r\n")),
    );
    place.sample("windows.csv", "windows", "");
    // A missing row counts for nothing, however it is written.
    place.write("na.csv", csv_with(&data, 3..5, "NA,0.5"));
    place.write("blank.csv", csv_with(&data, 3..5, "1,"));
    place.sample("na.csv", "na", "");
    place.sample("blank.csv", "blank", "");
    let chain = |run: &str| place.untimed(&format!("{run}/chain-1.csv"));
    for run in ["gzipped", "named", "windows"] {
        assert_eq!(chain("plain"), chain(run), "{run}");
    }
    assert_eq!(chain("na"), chain("blank"));
    assert_ne!(chain("na"), chain("plain"));
}

#[test]
fn models_are_described_as_json() {
    let place = Place::new();
    place.write("c.dpm", WITH_CONSTANTS);
    for model in ["m.dpm", "c.dpm"] {
        let info = json(&place.succeeds(&format!("info {model}")).out);
        has_keys(
            &info,
            &[
                "constants",
                "record_columns",
                "parameters",
                "stages",
                "distributions",
            ],
        );
        let check = place.succeeds(&format!("check {model} --format json")).out;
        let check = json(&check);
        has_keys(&check, &["ok", "statements", "unconstrained_dimension"]);
        assert_eq!(check["ok"], true);
        let kinds: Vec<_> = check["statements"]
            .as_array()
            .into_iter()
            .flatten()
            .collect();
        for statement in &kinds {
            has_keys(
                statement,
                &["line", "statement", "kind", "stage", "sensitivity"],
            );
        }
        assert!(kinds.iter().any(|s| s["kind"] == "likelihood"));
        assert!(kinds.iter().any(|s| s["kind"] == "prior"));
    }
    let info = json(&place.succeeds("info m.dpm").out);
    let beta = &info["parameters"][1];
    has_keys(beta, &["name", "type", "dimensions", "unconstrained_size"]);
    assert_eq!(beta["unconstrained_size"], 1);
    assert_eq!(info["record_columns"][0]["type"], "int");
}

/// Every command that `dpm --help` lists.
fn commands(place: &Place) -> Vec<String> {
    let help = place.succeeds("--help").out;
    let commands: Vec<String> = help
        .lines()
        .skip_while(|line| !line.starts_with("Commands:"))
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|&name| name != "help")
        .map(str::to_string)
        .collect();
    let has = |name: &str| commands.iter().any(|c| c == name);
    assert!(
        has("sample") && has("diagnose") && commands.len() >= 14,
        "{help}"
    );
    commands
}

#[test]
fn every_command_has_help_with_an_example() {
    let place = Place::new();
    for command in commands(&place) {
        let help = place.succeeds(&format!("{command} --help")).out;
        let example = help.contains(&format!("Example: dpm {command} "))
            || help.contains(&format!("Examples:\n  dpm {command} "));
        assert!(example, "{help}");
        for flag in ["--color", "--quiet"] {
            assert!(help.contains(flag), "{help}");
        }
    }
}

#[test]
fn shells_complete_every_command() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = place.succeeds(&format!("completions {shell}")).out;
        for command in commands(&place) {
            assert!(script.contains(&command), "{shell}: no {command}");
        }
        assert!(script.contains("clip-gradient"), "{shell}");
    }
    place.fails("completions tcsh", 2, &["tcsh", "possible values", "bash"]);
    // What bash makes of it, after `dpm sam` and `dpm sample --eps`.
    let script = place.succeeds("completions bash").out;
    place.write("dpm.bash", script);
    for (words, last, completed) in [
        ("dpm sam", "sam", "sample"),
        ("dpm sample --eps", "--eps", "--epsilon"),
        ("dpm diagnose --format j", "j", "json"),
        (
            "dpm sample --algorithm dp-la",
            "dp-la",
            "dp-laplace dp-langevin",
        ),
        ("dpm plan --algorithm nu", "nu", ""),
    ] {
        let ask = format!(
            "source dpm.bash; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _dpm dpm {last} \"${{COMP_WORDS[COMP_CWORD-1]}}\"; echo \"${{COMPREPLY[@]}}\""
        );
        let mut bash = Command::new("bash");
        let answer = finish(start(bash.args(["-c", &ask]).current_dir(place.path())));
        assert_eq!(answer.out.trim(), completed, "{words}");
    }
}

// If it failed: the first help would be a wall again, or the second would lack a flag.
#[test]
fn short_help_has_what_most_need_and_long_help_has_all() {
    let place = Place::new();
    let [short, long] = ["-h", "--help"].map(|flag| place.succeeds(&format!("sample {flag}")).out);
    assert!(short.lines().count() <= 50, "{short}");
    for flag in ["--epsilon", "--ledger", "--unit", "--seed", "--resume"] {
        assert!(short.contains(flag) && long.contains(flag), "{flag}");
    }
    for setting in dpm::Setting::ALL {
        let flag = format!("--{}", setting.name().replace('_', "-"));
        assert!(!short.contains(&flag) && long.contains(&flag), "{flag}");
        assert!(long.contains(setting.group()), "{}", setting.group());
    }
}

// If it failed: a plan for units would be that for records, of which more can be asked.
#[test]
fn a_plan_for_units_is_for_units() {
    let place = Place::new();
    let released = |more: &str| {
        let plan = "plan m.dpm --rows 5000 --epsilon 10 --delta 1e-6 --format json";
        let events = json(&place.succeeds(&format!("{plan} {more}")).out)["events"].take();
        events.to_string()
    };
    assert!(released("").contains("slope"));
    assert!(!released("--unit person").contains("slope"));
}

#[test]
fn every_command_has_a_manual_page() {
    let place = Place::new();
    let outcome = place.succeeds("man pages/man1");
    assert!(outcome.err.contains("pages/man1"), "{}", outcome.err);
    for command in commands(&place) {
        let page = place.read(&format!("pages/man1/dpm-{command}.1"));
        assert!(page.contains(&format!(".TH dpm-{command} 1")), "{page}");
        assert!(page.contains("\\-\\-quiet"), "{page}");
    }
    let page = place.read("pages/man1/dpm-sample.1");
    assert!(page.contains("\\-\\-epsilon"), "{page}");
    let whole = place.read("pages/man1/dpm.1");
    assert!(
        whole.contains("dpm\\-diagnose(1)") || whole.contains("dpm-diagnose(1)"),
        "{whole}"
    );
    // Twice is as good as once; a file is no place for pages.
    place.succeeds("man pages/man1 --quiet");
    place.fails("man m.dpm/man1", 1, &["m.dpm/man1", "choose another place"]);
}

/// `dpm info model | head -0`
#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    let place = Place::new();
    let mut child = start(&mut place.command("info m.dpm"));
    drop(child.stdout.take());
    let outcome = finish(child);
    assert_eq!((outcome.code, outcome.err.as_str()), (0, ""));
}

/// All that a run says and writes, but for draws, their summaries and times.
fn without_draws(place: &Place, run: &str, outcome: &Outcome) -> BTreeMap<String, String> {
    let mut public = BTreeMap::new();
    public.insert("stdout".to_string(), outcome.out.clone());
    let said = outcome.err.lines().filter(|line| {
        ["parameter", "alpha", "beta", "accepted", "verdict"]
            .iter()
            .all(|start| !line.starts_with(start))
    });
    public.insert("stderr".to_string(), said.collect::<Vec<_>>().join("\n"));
    for name in place.names(run) {
        // Drawn from the draws; it is made of the other files alone (tests/integration/report.rs).
        if name == "report.html" {
            continue;
        }
        let path = format!("{run}/{name}");
        let text = match name.strip_suffix(".csv") {
            // Verdicts follow from the draws.
            None if name == "privacy.json" => {
                let mut report = place.json(&path);
                report["verdicts"] = Value::Null;
                report["decision"] = Value::Null;
                report.to_string()
            }
            None => place.read(&path),
            // Of each row its width.
            Some("summary") => widths(&place.read(&path), 0),
            Some(_) => widths(&place.untimed(&path), 1),
        };
        public.insert(name, text);
    }
    public
}

/// A CSV file with its comments and header, and of every other line its number of
/// fields.
fn widths(text: &str, headers: usize) -> String {
    let mut seen = 0;
    let lines = text.lines().map(|line| {
        seen += usize::from(!line.starts_with('#'));
        if line.starts_with('#') || seen <= headers {
            line.to_string()
        } else {
            format!("{} fields", line.split(',').count())
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Whether one of the numbers in the text is `x`, in any notation.
fn has_number(text: &str, x: f64) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || ".+-_".contains(c);
    text.split(|c| !is_part(c))
        .filter_map(|word| word.trim_end_matches('.').parse::<f64>().ok())
        .any(|number| ((number - x) / x).abs() < 1e-12)
}

/// Clip bounds that are derived: the default where they are small, on request where
/// they are not, and none for units.
#[test]
fn clip_bounds_are_derived_where_they_can_be() {
    let place = Place::new();
    let logistic = |upper: u32| {
        format!(
            "record {{ int<lower=0, upper=1> y; real<lower=0, upper={upper}> x; }}\nparameters {{ real a; real b; }}\nmodel {{ a ~ normal(0, 1); b ~ normal(0, 1); y ~ bernoulli_logit(a + b * x); }}\n"
        )
    };
    place.write("small.dpm", logistic(2));
    place.write("large.dpm", logistic(20));
    place.write(
        "none.dpm",
        "record { real y; real x; }\nparameters { real a; }\nmodel { a ~ normal(0, 1); y ~ normal(a + x, 1); }\n",
    );
    let rows: String = (0..40)
        .map(|k| format!("{},{},{}\n", k % 2, k % 3, k / 4))
        .collect();
    place.write("xy.csv", format!("y,x,who\n{rows}"));
    let settings = "--epsilon 1 --delta 1e-6 --chains 1 --iterations 4 --leapfrog-steps 1";
    let sampled = |model: &str, more: &str| {
        let outcome = place.succeeds(&format!(
            "sample {model} xy.csv {settings} --overwrite --out run {more}"
        ));
        (outcome.err, place.json("run/privacy.json"))
    };
    let bound = |report: &Value, kind: &str| report["clipping"][kind]["bound"].as_f64();
    // sqrt(1 + 2^2), and a little for rounding.
    let small = 5f64.sqrt();
    let (said, report) = sampled("small.dpm", "");
    assert!(said.contains("No record is ever clipped"), "{said}");
    for (k, kind) in ["gradient", "log_ratio"].iter().enumerate() {
        let found = bound(&report, kind).expect("a number");
        assert!(found > small && found < small * (1.0 + 2e-6), "{found}");
        assert_eq!(report["clipping"][kind]["never_activates"], true);
        assert_eq!(report["events"][k]["clip"].as_f64(), Some(found));
    }
    // A larger number does as well, a smaller one does not.
    let (_, report) = sampled("small.dpm", "--clip-gradient 2.5 --clip-log-ratio 2");
    assert_eq!(report["clipping"]["gradient"]["never_activates"], true);
    assert_eq!(report["clipping"]["log_ratio"]["never_activates"], false);
    let (said, report) = sampled("large.dpm", "");
    assert!(said.contains("clipping may activate"), "{said}");
    assert!(said.contains("20.02"), "{said}");
    assert_eq!(bound(&report, "gradient"), Some(3.0));
    let plan = place.succeeds(&format!(
        "plan large.dpm --rows 40 {settings} --clip-gradient derived --clip-log-ratio derived --format json"
    ));
    let plan = json(&plan.out);
    assert_eq!(plan["clipping"]["gradient"]["never_activates"], true);
    assert_eq!(plan["simulated"]["clipped_gradients"], 0.0);
    // Forty records say nothing through this noise.
    let ratio = plan["simulated"]["noise_to_gradient"].as_f64();
    assert!(ratio.is_some_and(|r| r > 2.0), "{ratio:?}");
    let warnings = plan["warnings"].as_array().expect("a list");
    let warned = |w: &Value| {
        w.as_str()
            .is_some_and(|w| w.contains("on simulated records"))
    };
    assert!(warnings.iter().any(warned), "{warnings:?}");
    let large = 401f64.sqrt();
    let found = plan["events"][0]["clip"].as_f64().expect("a number");
    assert!(found > large && found < large * (1.0 + 2e-6), "{found}");
    place.fails(
        &format!("plan none.dpm --rows 40 {settings} --clip-gradient derived"),
        2,
        &[
            "--clip-gradient derived",
            "the column `y` needs `lower` and `upper`",
        ],
    );
    place.fails(
        &format!("sample small.dpm xy.csv {settings} --unit who --clip-log-ratio derived"),
        2,
        &["--clip-log-ratio derived", "with --unit"],
    );
    let (said, report) = sampled("small.dpm", "--unit who");
    assert!(said.contains("no bound is derived for units"), "{said}");
    assert_eq!(bound(&report, "gradient"), Some(3.0));
    assert_eq!(report["clipping"]["gradient"]["derived"], Value::Null);
}

// If it failed: settings would be printed that are none of the run's, or settings that were
// given would be lost, or data would be asked for.
#[test]
fn tuned_settings_are_those_of_a_run() {
    use std::fmt::Write as _;
    let place = Place::new();
    place.write(
        "m.dpm",
        "record { real<lower=-9, upper=9> y; real<lower=0, upper=1> x; }
         parameters { real a; real b; }
         model { a ~ normal(0, 1); b ~ normal(0, 1); y ~ normal(a + b * x, 1); }",
    );
    let mut data = String::from("y,x\n");
    for i in 0..400 {
        let _ = writeln!(
            data,
            "{},{}",
            f64::from(i % 11) / 5.0 - 1.0,
            f64::from(i % 4) / 4.0
        );
    }
    place.write("d.csv", &data);
    place.write("pilot.json", r#"{"a": 0.1, "b": 0.2}"#);
    place.write("public.csv", "x\n0.1\n0.9\n");
    let budget = "--epsilon 8 --delta 1e-4 --chains 2 --num-warmup 20 --num-samples 30";
    let tune = format!(
        "tune m.dpm --rows 400 --simulate --tries 6 --points 1 --records 50 --public-sample public.csv {budget}"
    );
    let answer = place.succeeds(&format!("{tune} --format json --quiet --progress json"));
    let told = answer.err.lines().map(|line| json(line)["done"].as_u64());
    assert!(told.eq((1..=6).map(Some)), "{}", answer.err);
    let json = json(&answer.out);
    let flags: Vec<&str> = json["flags"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(
        flags.contains(&"--chains 2") && flags.contains(&"--num-samples 30"),
        "{flags:?}"
    );
    for flag in [
        "--step-size",
        "--leapfrog-steps",
        "--clip-gradient",
        "--noise-split",
    ] {
        assert!(
            flags.iter().any(|f| f.starts_with(flag)),
            "{flag}: {flags:?}"
        );
    }
    assert!(
        json["predicted"]["mmd"]
            .as_f64()
            .is_some_and(|m| (0.0..2.0).contains(&m))
    );
    let said = place.succeeds(
        &format!("{tune} --pilot pilot.json --init pilot.json").replace("--points 1 ", ""),
    );
    assert!(said.out.contains("--init pilot.json") && said.out.contains("dpm sample m.dpm"));
    // The flags make the plan that was rehearsed.
    let run = format!(
        "sample m.dpm d.csv --epsilon 8 --delta 1e-4 {} --out run --quiet",
        flags.join(" ")
    );
    place.succeeds(&run);
    let report = place.json("run/privacy.json");
    let counts = |events: &Value| -> Vec<u64> {
        let events = events.as_array().expect("a list");
        events.iter().filter_map(|e| e["count"].as_u64()).collect()
    };
    assert_eq!(counts(&report["events"]), counts(&json["plan"]["events"]));

    place.fails(
        &format!("tune m.dpm --rows 400 {budget}"),
        2,
        &["--simulate"],
    );
    place.fails(
        "tune m.dpm --rows 400 --simulate --algorithm nuts",
        2,
        &["`nuts`"],
    );
    place.fails(
        "tune m.dpm --rows 400 --simulate --algorithm dp-barker --epsilon 1 --delta 1e-4 --tries 2 --points 1",
        2,
        &["dp-barker", "cannot be rehearsed"],
    );
    place.fails(
        &format!("{tune} --iterations max --tau-gradient 1 --tau-log-ratio 1"),
        2,
        &["--iterations"],
    );
    place.write("odd.csv", "x\n7\n");
    place.fails(
        &tune.replace("public.csv", "odd.csv"),
        2,
        &["odd.csv", "line 2", "`x`"],
    );
}
