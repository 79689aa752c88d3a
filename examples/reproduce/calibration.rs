//! Whether the default's answers are honest: intervals that hold the truth as often as they say,
//! and verdicts that warn where they do not.

use std::error::Error;
use std::fs;
use std::path::Path;

use dpm::Relation;

use crate::experiment::{Course, Experiment, Form};
use crate::subjects::{SUBJECTS, Subject};
use crate::table::Table;
use crate::traps::TRAPS;
use crate::trial::{DELTA, Outcome, Trial};

pub const CALIBRATION: Experiment = Experiment {
    name: "calibration",
    of: "epsilon and delta alone on made-up tables with known truth, and on traps",
    time: ["4 hours", "8 minutes"],
    settings: || {
        let names = |all: &[&Subject]| -> Vec<&str> { all.iter().map(|s| s.name).collect() };
        vec![
            format!("delta {DELTA}, epsilon {EPSILONS:?}, records {RECORDS:?}, repeats {REPEATS}"),
            format!("true models: {}", names(&SUBJECTS).join(", ")),
            format!("{}", names(&TRAPS).join(", ")),
        ]
    },
    run: make,
};

const EPSILONS: [f64; 4] = [0.3, 1.0, 3.0, 10.0];
const RECORDS: [usize; 4] = [500, 2000, 5000, 20_000];
const REPEATS: u64 = 10;
/// Records of a quick run.
const QUICK: [usize; 2] = [500, 5000];
/// The subjects of a smoke test.
const SMOKE: [&str; 3] = ["logistic", "normal", "trap: flat direction"];
/// Draws without privacy.
const REFERENCE: u64 = 400;
/// From so many of its own standard deviations on, a run is off, and far off.
const OFF: [f64; 2] = [4.0, 5.0];

const COLUMNS: [&str; 18] = [
    "model",
    "n",
    "epsilon",
    "repeat",
    "parameters",
    "covered_90",
    "covered_50",
    "mean_covered_90",
    "error_sds",
    "worst",
    "error_of_mean_sds",
    "sd_ratio",
    "widest",
    "flagged",
    "problems",
    "seconds",
    "failed",
    "search",
];
/// Places of columns.
const KEY: [usize; 3] = [0, 1, 2];
const PARAMETERS: usize = 4;
const COVERED_90: usize = 5;
const COVERED_50: usize = 6;
const MEAN_COVERED: usize = 7;
const ERROR: usize = 8;
const SD_RATIO: usize = 11;
const FLAGGED: usize = 13;

fn make(course: &Course) -> Result<(), Box<dyn Error>> {
    let table = Table::open(course, CALIBRATION.name, &COLUMNS)?;
    let epsilons = match course.epsilons.as_slice() {
        [] => course
            .form
            .of(&EPSILONS[..], &EPSILONS[1..], &EPSILONS[3..]),
        given => given,
    };
    let records = course.form.of(&RECORDS[..], &QUICK[..], &RECORDS[..1]);
    let kept = course.out.join(CALIBRATION.name);
    for repeat in 1..=course.repeats(REPEATS, 1) {
        for &n in records {
            for subject in wanted(course) {
                let mut missing = Vec::new();
                for epsilon in epsilons {
                    let numbers = [n as f64, *epsilon, repeat as f64];
                    let numbers = numbers.map(|x| x.to_string()).to_vec();
                    let key = [vec![subject.name.to_owned()], numbers].concat();
                    if !table.has(&key)? {
                        missing.push((*epsilon, key));
                    }
                }
                if missing.is_empty() {
                    continue;
                }
                let draws = course.form.of(REFERENCE, REFERENCE, 20);
                let trial = Trial::new(subject, n, repeat, draws)?;
                for (epsilon, key) in missing {
                    let run = trial.run(epsilon, Relation::Substitute, repeat, course.form);
                    let place = kept.join(key.join("-").replace([':', ' '], "-"));
                    let row = match run {
                        Ok(outcome) => row(&trial, &outcome, &place)?,
                        Err(error) => failed(error.as_ref()),
                    };
                    table.add([key, row].concat())?;
                }
            }
        }
    }
    if table.rows()?.is_empty() {
        let names = SUBJECTS.iter().chain(&TRAPS).map(|s| s.name);
        let names: Vec<&str> = names.collect();
        return Err(format!("nothing is asked for: there are {}", names.join(", ")).into());
    }
    report(&table.rows()?, &kept)
}

fn wanted(course: &Course) -> impl Iterator<Item = &'static Subject> {
    let smoke = course.posteriors.is_empty() && course.form == Form::Smoke;
    let all = SUBJECTS.into_iter().chain(TRAPS);
    all.filter(move |s| course.is_on(s.name) && (!smoke || SMOKE.contains(&s.name)))
}

/// All but the key. A run that is off is kept at `place`.
fn row(trial: &Trial, run: &Outcome, place: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let errors = run.errors.iter().copied().enumerate();
    let worst = errors.max_by(|a, b| a.1.total_cmp(&b.1));
    let (worst, error) = worst.ok_or("no parameters")?;
    let problems = run.problems();
    let search = if is_off(error, OFF[0]) {
        run.save(place)?
    } else {
        run.save(&tempfile::tempdir()?.path().join("run"))?
    };
    let count = |covered: &[bool]| covered.iter().filter(|c| **c).count().to_string();
    let largest = |of: &[f64]| of.iter().copied().fold(0.0, f64::max);
    Ok(vec![
        run.errors.len().to_string(),
        count(&run.covers[0]),
        count(&run.covers[1]),
        count(&run.covers[2]),
        format!("{error:.2}"),
        trial.names[worst].clone(),
        format!("{:.2}", largest(&run.errors_of_mean)),
        format!("{:.3}", median(&run.sd_ratios)),
        format!("{:.3}", largest(&run.sd_ratios)),
        u8::from(!problems.is_empty()).to_string(),
        problems.join("+"),
        format!("{:.2}", run.seconds),
        String::new(),
        in_a_cell(&search.to_string()),
    ])
}

/// A run that ended with an error tells its user so, and gives no draws.
fn failed(error: &dyn Error) -> Vec<String> {
    let mut row = vec![String::new(); COLUMNS.len() - 4];
    row[12] = in_a_cell(&error.to_string());
    row
}

/// Without what divides a line into cells.
fn in_a_cell(text: &str) -> String {
    text.replace([',', '\n'], ";").replace('"', "'")
}

fn median(values: &[f64]) -> f64 {
    dpm::diagnostics::quantile(&[values], 0.5)
}

/// Draws that do not move have an error that is no number.
fn is_off(error: f64, limit: f64) -> bool {
    error > limit || error.is_nan()
}

/// Runs that belong together, in numbers.
#[derive(Default)]
struct Tally {
    runs: usize,
    failed: usize,
    parameters: f64,
    covered: [f64; 3],
    worst: f64,
    off: [usize; 2],
    off_flagged: [usize; 2],
    good_flagged: usize,
    sd_ratios: Vec<f64>,
}

impl Tally {
    fn add(&mut self, row: &[String]) -> Result<(), Box<dyn Error>> {
        self.runs += 1;
        if row[PARAMETERS].is_empty() {
            self.failed += 1;
            return Ok(());
        }
        self.parameters += row[PARAMETERS].parse::<f64>()?;
        for (sum, column) in self
            .covered
            .iter_mut()
            .zip([COVERED_90, COVERED_50, MEAN_COVERED])
        {
            *sum += row[column].parse::<f64>()?;
        }
        let error: f64 = row[ERROR].parse()?;
        let flagged = row[FLAGGED] == "1";
        self.worst = self.worst.max(error);
        for (k, limit) in OFF.iter().enumerate() {
            self.off[k] += usize::from(is_off(error, *limit));
            self.off_flagged[k] += usize::from(is_off(error, *limit) && flagged);
        }
        self.good_flagged += usize::from(!is_off(error, OFF[0]) && flagged);
        self.sd_ratios.push(row[SD_RATIO].parse()?);
        Ok(())
    }

    fn cells(&self) -> Vec<String> {
        let share = |count: f64| format!("{:.3}", count / self.parameters);
        let off = |k: usize| format!("{} ({})", self.off[k], self.off_flagged[k]);
        let mut cells = vec![self.runs.to_string(), self.failed.to_string()];
        cells.extend(self.covered.map(share));
        cells.push(format!("{:.1}", self.worst));
        cells.extend([off(0), off(1), self.good_flagged.to_string()]);
        cells.push(format!("{:.2}", median(&self.sd_ratios)));
        cells
    }
}

fn report(rows: &[Vec<String>], kept: &Path) -> Result<(), Box<dyn Error>> {
    println!(
        "Coverage is a share of all parameters of all runs. A run is off by so many of its own \
         standard deviations in its worst parameter; in brackets, those of them that are flagged."
    );
    tallied(rows, &KEY)?;
    println!();
    tallied(rows, &KEY[..1])?;
    println!();
    tallied(rows, &KEY[2..])?;
    println!("\nOff by more than {} and not flagged:\n", OFF[0]);
    for row in rows {
        let error: f64 = row[ERROR].parse().unwrap_or(0.0);
        if is_off(error, OFF[0]) && row[FLAGGED] == "0" {
            println!("{}", row.join(","));
        }
    }
    if fs::exists(kept)? {
        println!("\nRuns that are off are kept in {}.", kept.display());
    }
    Ok(())
}

/// A table with a line for each combination of the values in the columns `by`.
fn tallied(rows: &[Vec<String>], by: &[usize]) -> Result<(), Box<dyn Error>> {
    let mut tallies: Vec<(Vec<&str>, Tally)> = Vec::new();
    for row in rows {
        let key: Vec<&str> = by.iter().map(|&column| row[column].as_str()).collect();
        let at = match tallies.iter().position(|(k, _)| *k == key) {
            Some(at) => at,
            None => {
                tallies.push((key, Tally::default()));
                tallies.len() - 1
            }
        };
        tallies[at].1.add(row)?;
    }
    let names: Vec<&str> = by.iter().map(|&column| COLUMNS[column]).collect();
    let measures = [
        "runs",
        "failed",
        "90% hold the truth",
        "50% hold it",
        "90% hold the posterior's mean",
        "worst error",
        "off by 4 (flagged)",
        "by 5 (flagged)",
        "good, flagged",
        "median sd ratio",
    ];
    println!("| {} | {} |", names.join(" | "), measures.join(" | "));
    println!("|{}", "---|".repeat(names.len() + measures.len()));
    for (key, tally) in &tallies {
        println!("| {} | {} |", key.join(" | "), tally.cells().join(" | "));
    }
    Ok(())
}
