//! `dpm new`: programs for formulas of every kind check without warnings, have the densities of
//! models written by hand, and can be sampled; what cannot be written is refused with what to add.

use dpm::Constants;
use dpm::testing::check::check;
use dpm::testing::density::Density;
use dpm::testing::syntax::{format, parse};

use crate::evaluation::*;
use crate::harness::{Folder, Lcg, folder_of};

const CODEBOOK: &str = r#"
title: A survey
columns:
  score: {type: float, lower: -10, upper: 50, description: "of a test"}
  cost: {type: float, lower: 0.1, upper: 5000, unit: dollars}
  spent: {type: float, lower: 0, upper: 5000}
  yes: {type: boolean, missing: true}
  answer: {type: string, levels: [no, "yes, often"]}
  visits: {type: int, lower: 0, upper: 40, missing: [-9, NA]}
  asked: {type: int, lower: 1, upper: 40}
  grade: {type: string, levels: [low, mid, high]}
  rank: {type: int, lower: 0, upper: 4}
  days: {type: float, lower: 1, upper: 3000}
  lost: {type: boolean}
  x: {type: float, lower: 0, upper: 400, unit: metres, description: to the road}
  age: {type: int, lower: 18, upper: 98}
  male: {type: boolean}
  educ: {type: string, levels: [none, "high school", college]}
  region: {type: factor, levels: [N, S]}
  site: {type: int, lower: 3, upper: 8}
  e: {type: float, lower: 0.1, upper: 10}
  negative: {type: int, lower: -1, upper: 9}
  open: {type: float, lower: 0}
  words: {type: string}
  sigma: {type: float, lower: -1, upper: 1}
  eta: {type: boolean}
  my.col: {type: boolean}
  model: {type: boolean}
"#;

struct Place(Folder);
folder_of!(Place);

impl Place {
    fn new() -> Place {
        let place = Place(Folder::new());
        place.write("book.yaml", CODEBOOK);
        place
    }

    fn program(&self, formula: &str, family: &str) -> String {
        let outcome = self.answer(formula, family);
        assert_eq!(outcome.code, 0, "{formula}, {family}: {}", outcome.err);
        outcome.out
    }

    fn answer(&self, formula: &str, family: &str) -> crate::harness::Outcome {
        let arguments = ["--formula", formula, "--family", family];
        self.dpm_with(&[&["new"], &arguments[..], &["--metadata", "book.yaml"]].concat())
    }

    /// The formula is refused with exit code 2, nothing on standard output, and these words.
    fn refused(&self, formula: &str, family: &str, words: &[&str]) {
        let outcome = self.answer(formula, family);
        assert_eq!(outcome.code, 2, "{formula}, {family}: {}", outcome.err);
        assert_eq!(outcome.out, "");
        for word in words {
            let said = &outcome.err;
            assert!(
                said.contains(word),
                "{formula}, {family}: no `{word}` in: {said}"
            );
        }
    }
}

/// Outcomes of each family.
const OUTCOMES: [(&str, &str); 23] = [
    ("gaussian", "score"),
    ("gaussian", "visits"),
    ("student", "score"),
    ("lognormal", "cost"),
    ("bernoulli", "yes"),
    ("bernoulli", "answer"),
    ("binomial", "visits | trials(asked)"),
    ("binomial", "visits | trials(40)"),
    ("poisson", "visits"),
    ("poisson", "visits | rate(e)"),
    ("negbinomial", "visits"),
    ("cumulative", "grade"),
    ("cumulative", "rank"),
    ("categorical", "grade"),
    ("categorical", "rank"),
    ("weibull", "days"),
    ("weibull", "days | cens(lost)"),
    ("weibull", "days | cens(1 - lost)"),
    ("exponential", "days"),
    ("exponential", "days | cens(lost)"),
    ("hurdle_poisson", "visits"),
    ("hurdle_lognormal", "spent"),
    ("student", "spent"),
];

const TERMS: [&str; 16] = [
    "1",
    "x",
    "x * educ + age",
    "0 + x",
    "0 + educ + male",
    "x * age + I(x^2) + log(e)",
    "x:age",
    "x:I(x^2)",
    "educ * male",
    "educ:region + sqrt(x)",
    "x + offset(log(e)) + offset(age)",
    "male + (1 | site)",
    "x + (1 + x | site) + (educ || region)",
    "0 + (1 | region) + (0 + x | male)",
    // Columns that are called as parts of programs are.
    "sigma + eta",
    "eta:sigma + (sigma | site)",
];

// If it failed: somebody's first model would not be one, or be reformatted at once.
#[test]
fn every_family_with_every_kind_of_term_is_a_program_in_form() {
    let place = Place::new();
    let mut written = 0;
    for (family, outcome) in OUTCOMES {
        for terms in TERMS {
            if family == "cumulative" && terms.starts_with('0') {
                continue;
            }
            let program = place.program(&format!("{outcome} ~ {terms}"), family);
            let parsed = parse(&program);
            assert_eq!(parsed.diagnostics, [], "{program}");
            let checked = check(&parsed.program.expect("a program"));
            assert_eq!(checked.diagnostics, [], "{program}");
            assert_eq!(format(&program).as_deref(), Ok(&program[..]));
            let density = density(&program, &Constants::none());
            is_finite_somewhere(&density, &program);
            written += 1;
        }
    }
    assert!(written > 350);
}

/// At parameters near 0, the density of records within their bounds is a number.
fn is_finite_somewhere(density: &Density, program: &str) {
    let mut random = Random(3);
    let mut table = random_table(density, 20, &mut random);
    // No more successes than trials.
    let place = |name: &str| density.model().columns.iter().position(|c| c.name == name);
    if let (Some(visits), Some(asked)) = (place("visits"), place("asked")) {
        for row in 0..table.rows {
            let trials = table.columns[asked][row];
            table.columns[visits][row] = table.columns[visits][row].min(trials);
        }
    }
    let theta = random.point(density.dimension(), 0.01);
    let parts = log_density(density, &table, &theta);
    assert!(
        parts.iter().all(|part| part.is_finite()),
        "{parts:?}\n{program}"
    );
}

#[test]
fn a_logistic_regression_is_that_written_by_hand() {
    let place = Place::new();
    let by_hand = "
record {
  int<lower=0, upper=1> yes;
  real<lower=0, upper=400> x;
  int<lower=18, upper=98> age;
  factor(\"none\", \"high school\", \"college\") educ;
}
parameters { real alpha; vector[6] beta; }
model {
  alpha ~ normal(0, 5);
  beta ~ normal(0, 2.5);
  yes ~ bernoulli_logit(alpha + beta[1] * (x / 100 - 2) + beta[2] * (age / 20.0 - 2.9)
    + beta[3] * (educ == 2) + beta[4] * (educ == 3)
    + beta[5] * (x / 100 - 2) * (age / 20.0 - 2.9) + beta[6] * (x / 100 - 2) ^ 2);
}";
    // R puts products after what they are made of.
    let formula = "yes ~ x * age + educ + I(x^2)";
    let written = place.program(formula, "bernoulli");
    let by_hand = by_hand
        .replace("beta[5]", "swap")
        .replace("beta[6]", "beta[5]");
    same_density(&written, &by_hand.replace("swap", "beta[6]"));
}

#[test]
fn a_poisson_regression_with_exposure_and_random_intercepts_is_that_written_by_hand() {
    let place = Place::new();
    let by_hand = "
record {
  int<lower=0, upper=40> visits;
  real<lower=0.1, upper=10> e;
  int<lower=0, upper=1> male;
  int<lower=3, upper=8> site;
}
parameters { real alpha; real beta; real<lower=0> tau; vector[6] z; }
model {
  // log(40)/2 less the middle of log(0.1) and log(10), which is 0.
  alpha ~ normal(1.844, 2.5);
  beta ~ normal(0, 1);
  tau ~ normal(0, 1);
  z ~ normal(0, 1);
  visits ~ poisson(e * exp(alpha + beta * male + tau * z[site - 2]));
}";
    let written = place.program("visits | rate(e) ~ male + (1 | site)", "poisson");
    same_density(&written, by_hand);
    let by_offset = place.program("visits ~ male + offset(log(e)) + (1 | site)", "poisson");
    let columns = "  real<lower=0.1, upper=10> e;\n  int<lower=0, upper=1> male;\n";
    let moved = "  int<lower=0, upper=1> male;\n  real<lower=0.1, upper=10> e;\n";
    same_density(&by_offset, &by_hand.replace(columns, moved));
}

#[test]
fn an_ordered_logit_is_that_written_by_hand() {
    let place = Place::new();
    let by_hand = "
record {
  int<lower=0, upper=4> rank;
  real<lower=0.1, upper=10> e;
}
parameters { real beta; ordered[4] c; }
model {
  beta ~ normal(0, 2.5);
  c ~ normal(0, 5);
  rank + 1 ~ ordered_logistic(beta * (log(e) / 1.151), c);
}";
    same_density(&place.program("rank ~ log(e)", "cumulative"), by_hand);
}

#[test]
fn other_families_are_those_written_by_hand() {
    let place = Place::new();
    let gaussian = "
record { real<lower=-10, upper=50> score; factor(\"none\", \"high school\", \"college\") educ; }
parameters { vector[3] mu; real<lower=0> sigma; }
model {
  // Without an intercept, the scale is that of values from 0.
  mu ~ normal(20, 62.5);
  sigma ~ normal(0, 25);
  score ~ normal(mu[educ], sigma);
}";
    same_density(&place.program("score ~ 0 + educ", "gaussian"), gaussian);
    let hurdle = "
record { int<lower=0, upper=40> visits; int<lower=0, upper=1> male; }
parameters { real alpha; real beta; real<lower=0, upper=1> hu; }
model {
  alpha ~ normal(1.844, 2.5);
  beta ~ normal(0, 1);
  real lambda = exp(alpha + beta * male);
  target += visits == 0 ? log(hu)
    : log1m(hu) + poisson_lpmf(visits | lambda) - log(1 - exp(-lambda));
}";
    same_density(&place.program("visits ~ male", "hurdle_poisson"), hurdle);
    let weibull = "
record { real<lower=1, upper=3000> days; int<lower=0, upper=1> lost; int<lower=0, upper=1> male; }
parameters { real alpha; real beta; real<lower=0> shape; }
model {
  alpha ~ normal(6.506, 2.5);
  beta ~ normal(0, 1);
  shape ~ lognormal(0, 0.5);
  real scale = exp(alpha + beta * male);
  target += lost ? -(days / scale) ^ shape : weibull_lpdf(days | shape, scale);
}";
    same_density(
        &place.program("days | cens(lost) ~ male", "weibull"),
        weibull,
    );
    let turned = weibull.replace("lost ?", "!lost ?");
    same_density(
        &place.program("days | cens(1 - lost) ~ male", "weibull"),
        &turned,
    );
    let categorical = "
record { factor(\"low\", \"mid\", \"high\") grade; int<lower=0, upper=1> male; }
parameters { real a2; real b2; real a3; real b3; }
model {
  a2 ~ normal(0, 5); a3 ~ normal(0, 5); b2 ~ normal(0, 2.5); b3 ~ normal(0, 2.5);
  grade ~ categorical(softmax([0, a2 + b2 * male, a3 + b3 * male]'));
}";
    same_density(&place.program("grade ~ male", "categorical"), categorical);
}

// A parametrisation is no other model: what is written for the scale of the data must be the
// coefficients of the columns as they are.
#[test]
fn coefficients_on_the_scale_of_the_data_are_those_of_raw_columns() {
    let place = Place::new();
    let raw = |prior: &str, likelihood: &str| {
        format!(
            "record {{
  {likelihood};
  real<lower=0, upper=400> x;
  int<lower=18, upper=98> age;
  int<lower=0, upper=1> male;
}}
{prior}"
        )
    };
    let right = "x * age + I(x^2) + x:male + male";
    let eta =
        "b[1] * x + b[2] * age + b[3] * x ^ 2 + b[4] * male + b[5] * x * age + b[6] * x * male";
    let names = ["b_x", "b_age", "b_x2", "b_male_at_0", "b_x_age", "b_x_male"];
    let logistic = raw(
        &format!(
            "parameters {{ vector[6] b; real a; }}\nmodel {{ yes ~ bernoulli_logit(a + {eta}); }}"
        ),
        "int<lower=0, upper=1> yes",
    );
    let ordered = raw(
        &format!(
            "parameters {{ vector[6] b; ordered[2] a; }}\nmodel {{ grade ~ ordered_logistic({eta}, a); }}"
        ),
        "factor(\"low\", \"mid\", \"high\") grade",
    );
    for (outcome, family, raw, constants) in [
        ("yes", "bernoulli", logistic, vec!["b_Intercept"]),
        ("grade", "cumulative", ordered, vec!["b_cut.1", "b_cut.2"]),
    ] {
        let written = place.program(&format!("{outcome} ~ {right}"), family);
        let ours = density(&written, &Constants::none());
        let theirs = density(&raw, &Constants::none());
        let mut random = Random(5);
        let table = random_table(&theirs, 100, &mut random);
        let place_of = |name: &str| {
            let found = theirs.model().columns.iter().position(|c| c.name == name);
            table.columns[found.expect("the column")].clone()
        };
        let columns = ours.model().columns.iter().map(|c| place_of(&c.name));
        let ours_table = Table {
            columns: columns.collect(),
            rows: table.rows,
        };
        let theta = random.point(ours.dimension(), 1.0);
        let outputs = ours.outputs(&theta);
        let output = |name: &str| {
            let at = ours.output_names().position(|n| n == name);
            outputs[at.unwrap_or_else(|| panic!("no {name} in\n{written}"))]
        };
        let point = theirs.unconstrain(|name, i| {
            Ok(match name {
                "b" => output(names[i]),
                _ => output(constants[i]),
            })
        });
        let point = point.expect("a point");
        let a = log_density(&ours, &ours_table, &theta)[2];
        let b = log_density(&theirs, &table, &point)[2];
        assert!(
            (a - b).abs() < 1e-6 * (1.0 + b.abs()),
            "{a} and {b}\n{written}"
        );
    }
}

// The seeds are fixed, so there is no false alarm; with others, about one in a thousand runs would
// fail. A coefficient that is coded for another level, or on another scale, would be found: it would
// be off by tens of its standard deviations.
#[test]
fn a_program_samples_and_its_intervals_hold_the_truth() {
    let place = Place::new();
    let out = place.dpm_with(&[
        "new",
        "--formula",
        "answer ~ x * male + educ",
        "--family",
        "bernoulli",
        "--metadata",
        "book.yaml",
        "--out",
        "m.dpm",
    ]);
    assert_eq!(out.code, 0, "{}", out.err);
    let truth = [
        ("b_Intercept", -1.0),
        ("b_x", 0.008),
        ("b_male_at_0", 0.5),
        ("b_educ_high_school", 0.8),
        ("b_educ_college", -1.2),
        ("b_x_male", -0.004),
    ];
    let mut random = Lcg(21);
    let mut rows = "answer,x,male,educ\n".to_owned();
    for _ in 0..6_000 {
        let x = 400.0 * random.uniform();
        let male = f64::from(random.uniform() < 0.5);
        let educ = (3.0 * random.uniform()) as usize;
        let level = [0.0, truth[3].1, truth[4].1][educ];
        let eta = truth[0].1 + truth[1].1 * x + truth[2].1 * male + level + truth[5].1 * x * male;
        let answer = if random.uniform() < 1.0 / (1.0 + (-eta).exp()) {
            "\"yes, often\""
        } else {
            "no"
        };
        let educ = ["none", "high school", "college"][educ];
        rows += &format!("{answer},{x},{male},{educ}\n");
    }
    place.write("d.csv", rows);
    place.succeeds("sample m.dpm d.csv --epsilon 4 --delta 1e-6 --num-warmup 300 --num-samples 500 --seed 3 --insecure-noise-seed 5 --out run --quiet --no-report");
    let mut reader = csv::Reader::from_path(place.file("run/summary.csv")).expect("the summary");
    let header = reader.headers().expect("a header").clone();
    let at = |name: &str| header.iter().position(|h| h == name).expect("a column");
    let (name, mean, sd) = (0, at("mean"), at("sd"));
    let rows: Vec<csv::StringRecord> = reader.records().map(|r| r.expect("a row")).collect();
    for (parameter, truth) in truth {
        let row = rows.iter().find(|row| &row[name] == parameter);
        let row = row.unwrap_or_else(|| panic!("no {parameter}"));
        let number = |i: usize| row[i].parse::<f64>().expect("a number");
        let off = (number(mean) - truth) / number(sd);
        assert!(off.abs() < 4.0, "{parameter}: {row:?}");
        // Far less than the prior leaves open: 2.5 per 100 metres, or per level.
        let wide = if parameter.starts_with("b_x") {
            0.025
        } else {
            2.5
        };
        assert!(number(sd) < 0.2 * wide, "{parameter}: {row:?}");
    }
}

#[test]
fn what_a_formula_cannot_have_is_shown_in_it() {
    let place = Place::new();
    for (formula, words) in [
        (
            "yes ~ x +",
            &["ends too early", "formula:1:10", "expected a term"][..],
        ),
        (
            "yes ~ x $ male",
            &["cannot be read at `$`", "yes ~ x $ male\n  |         ^"],
        ),
        ("yes x", &["cannot be read at `x`", "`~`"]),
        ("yes ~ s(x)", &["`s` is not a function", "log1p"]),
        (
            "yes ~ xx + male",
            &["no column `xx`", "add it to the codebook"],
        ),
        (
            "yes ~ mael",
            &[
                "no column `mael`",
                "did you mean `male`?",
                "yes ~ mael\n  |       ^^^^",
            ],
        ),
        ("ja ~ x", &["no column `ja`"]),
        (
            "yes ~ open",
            &["no `upper` for `open`", "add `upper:` to `open`"],
        ),
        (
            "yes ~ open + words",
            &["`upper`", "no `levels` for `words`"],
        ),
        (
            "yes ~ `my.col`",
            &["cannot be the name", "my_col", "--columns my_col=my.col"],
        ),
        ("yes ~ model", &["cannot be the name", "x_model"]),
        (
            "yes ~ log(x)",
            &["`log(x)` does not exist at `lower: 0`", "log1p"],
        ),
        ("yes ~ log(educ)", &["has levels"]),
        ("yes ~ I(educ^2)", &["has levels"]),
        ("yes ~ factor(age)", &["add `levels:` to `age`"]),
        ("yes ~ (1 | x)", &["`x` is not a group"]),
        ("yes ~ (1 | site) + (x | site)", &["varies by `site` twice"]),
        ("yes ~ x + yes", &["the outcome `yes` is also on the right"]),
        ("yes ~ 0", &["no terms"]),
        ("log(cost) ~ x", &["`lognormal`"]),
    ] {
        place.refused(formula, "bernoulli", words);
    }
}

#[test]
fn families_refuse_outcomes_that_they_cannot_have() {
    let place = Place::new();
    for (formula, family, words) in [
        (
            "negative ~ x",
            "poisson",
            &["`poisson` cannot have", "`lower: -1`", "below 0"][..],
        ),
        ("score ~ x", "poisson", &["type `float`", "type: int"]),
        ("grade ~ x", "bernoulli", &["3 levels", "`categorical`"]),
        ("rank ~ x", "bernoulli", &["bounds 0 and 4"]),
        ("score ~ x", "bernoulli", &["type `float`"]),
        (
            "spent ~ x",
            "lognormal",
            &["`lower: 0`", "hurdle_lognormal"],
        ),
        ("spent ~ x", "weibull", &["`lower: 0`", "lower: 0.01"]),
        ("score ~ x", "exponential", &["`lower: -10`"]),
        ("grade ~ x", "gaussian", &["3 levels"]),
        ("score ~ x", "cumulative", &["type `float`"]),
        ("asked ~ 0 + x", "cumulative", &["in place of an intercept"]),
        ("yes ~ x", "cumulative", &["two categories", "`bernoulli`"]),
        ("age ~ x", "categorical", &["81 values", "`poisson`"]),
        (
            "visits ~ x",
            "binomial",
            &["number of trials", "visits | trials(n) ~"],
        ),
        (
            "visits | trials(30) ~ x",
            "binomial",
            &["may be 40", "30 trials"],
        ),
        (
            "visits | trials(x) ~ x",
            "binomial",
            &["`x` does not fit into `trials(x)`"],
        ),
        (
            "visits | trials(asked) ~ x",
            "poisson",
            &["does not take `trials()`", "`rate()`"],
        ),
        (
            "visits | rate(x) ~ x",
            "poisson",
            &["`log(x)` does not exist"],
        ),
        (
            "days | cens(age) ~ x",
            "weibull",
            &["`age` does not fit", "1 where the time is censored"],
        ),
        ("days | cens(1) ~ x", "weibull", &["cannot have this"]),
        (
            "yes | cens(lost) ~ x",
            "bernoulli",
            &["does not take `cens()`"],
        ),
        ("yes ~ x", "bernouli", &["bernouli", "bernoulli"]),
    ] {
        place.refused(formula, family, words);
    }
}

#[test]
fn codebooks_that_cannot_be_read_say_where() {
    let place = Place::new();
    for (book, words) in [
        (
            "columns:\n  yes: {type: bolean}\n",
            &["book.yaml:2:15", "did you mean `boolean`?"][..],
        ),
        (
            "columns:\n  yes: {typ: boolean}\n",
            &["book.yaml:2:9", "did you mean `type`?"],
        ),
        (
            "colums:\n  yes: {type: boolean}\n",
            &["did you mean `columns`?"],
        ),
        (
            "columns:\n  x: {type: float, lower: 3, upper: 1}\n",
            &["`x`", "not below"],
        ),
        ("columns:\n  x: {type: float\n", &["not YAML"]),
        (
            "columns:\n  yes: {type: boolean}\n  yes: {type: boolean}\n",
            &["duplicated key"],
        ),
        ("yes\n", &["a codebook is a YAML file"]),
        ("", &["a codebook is a YAML file"]),
    ] {
        place.write("book.yaml", book);
        place.refused("yes ~ 1", "bernoulli", words);
    }
    std::fs::remove_file(place.file("book.yaml")).expect("removed");
    place.refused(
        "yes ~ 1",
        "bernoulli",
        &["cannot read the codebook `book.yaml`"],
    );
}

#[test]
fn notes_say_what_is_left_out_and_files_are_not_replaced() {
    let place = Place::new();
    let says = |formula: &str, family: &str, word: &str| {
        let outcome = place.answer(formula, family);
        assert!(outcome.err.contains(word), "{formula}: {}", outcome.err);
    };
    says("yes ~ (1 + x | site)", "bernoulli", "correlations");
    says("yes ~ visits", "bernoulli", "write -9 of `visits` as NA");
    says("days | cens(lost) ~ 1", "weibull", "`cens(1 - lost)`");
    says("yes ~ (1 + x || age)", "bernoulli", "dp-langevin");
    let quiet = place.answer("yes ~ (x || site)", "bernoulli");
    assert_eq!(quiet.err, "");

    // Names of brms and of others.
    let usual = place.program("visits ~ x", "negbinomial");
    for alias in ["negative_binomial", "neg_binomial_2", "NegBinomial"] {
        assert_eq!(place.program("visits ~ x", alias), usual);
    }
    let new = |more: &[&str]| {
        let start = ["new", "--formula", "yes ~ x", "--family", "bernoulli"];
        place.dpm_with(
            &[
                &start[..],
                &["--metadata", "book.yaml", "-o", "m.dpm"],
                more,
            ]
            .concat(),
        )
    };
    assert_eq!(new(&[]).code, 0);
    assert_eq!(place.read("m.dpm"), place.program("yes ~ x", "bernoulli"));
    place.write("m.dpm", "mine");
    let refused = new(&[]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("--overwrite"), "{}", refused.err);
    assert_eq!(place.read("m.dpm"), "mine");
    assert_eq!(new(&["--overwrite"]).code, 0);
    assert!(place.read("m.dpm").contains("yes ~ bernoulli_logit"));
}
