//! Every command in the guides works, in the order in which a reader copies it: with a
//! table of fewer rows and with fewer iterations, so that it takes seconds.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::corpus::{read, root};
use crate::harness::{Folder, folder_of, start};

/// Commands that are not run here, by their beginnings, and why.
const ELSEWHERE: [(&str, &str); 14] = [
    ("cargo install", "the build itself, minutes long"),
    ("cargo test", "this"),
    (
        "cargo run --release --example reproduce",
        "hours; the example has tests of its own",
    ),
    (
        "cargo doc",
        "opens a browser; the documentation is built by its own tests",
    ),
    ("cargo bench", "measures; .ci/run and releases"),
    ("DPM_PYTHON=python3 cargo bench", "the same"),
    (
        "dpm tune",
        "half a minute, however few the tries: tests/integration/cli.rs has a smaller model",
    ),
    (
        "dpm sample --resume",
        "needs a run that was cut short: tests/integration/resume.rs",
    ),
    (
        "dpm ledger verify survey.ledger --against",
        "needs runs of these names: tests/integration/ledger.rs",
    ),
    (
        "dpm ledger adopt",
        "needs a ledger whose head was lost: tests/integration/ledger.rs",
    ),
    (
        "duckdb",
        "another program; what comes through a pipe: tests/integration/formats.rs",
    ),
    ("psql", "the same"),
    ("bcp", "the same"),
    ("(echo age", "the same"),
];
/// Rows of the large tables.
const ROWS: usize = 300;

#[test]
fn commands_of_the_readme_work() {
    let place = Place::new();
    place.follow("README.md", 3);
    place.follow("docs/data.md", 1);
    place.follow("docs/planning.md", 2);
    place.follow("docs/output.md", 2);
}

#[test]
fn commands_of_the_guide_to_simulated_tables_work() {
    let place = Place::new();
    place.write("wells.dpm", first_program("docs/workflow.md"));
    place.write("codebook.yaml", first("yaml", "docs/workflow.md"));
    place.follow("docs/workflow.md", 6);
}

#[test]
fn commands_of_the_ledger_guide_work() {
    let place = Place::new();
    place.write("model.dpm", first_program("README.md"));
    place.write("model.constants.json", "{\"mean_dist\": 50}");
    place.write("survey.csv", wells());
    place.follow("docs/ledger.md", 6);
}

#[test]
fn commands_of_the_tutorial_work_and_its_model_is_the_one_that_runs() {
    let model = read(&root().join("models/adult_income.dpm"));
    assert_eq!(first_program("docs/tutorial.md"), model);
    let place = Place::new();
    place.follow("docs/tutorial.md", 14);
    place.write("estimates.csv", "estimate,variance\n1,0.5\n3,0.4\n");
    place.follow("docs/synthetic.md", 3);
}

#[test]
fn commands_of_the_guide_from_stan_work() {
    let place = Place::new();
    place.write("wells.dpm", first_program("docs/from-stan.md"));
    place.write("wells.csv", wells());
    place.follow("docs/from-stan.md", 5);
}

#[test]
fn commands_of_the_guide_to_formulas_work() {
    Place::new().follow("docs/new.md", 3);
}

#[test]
fn commands_of_the_references_work() {
    let place = Place::new();
    place.write("wells.dpm", first_program("docs/language.md"));
    place.write("wells.constants.json", "{\"prior_scale\": 2.5}");
    place.write("wells.csv", wells());
    let with_quantities = first_program("docs/language.md")
        + "generated quantities { real at_100_metres = inv_logit(alpha + beta[1]); }\n";
    place.write("model.dpm", &with_quantities);
    place.write("model.constants.json", "{\"prior_scale\": 2.5}");
    place.succeeds(&short(
        "dpm sample model.dpm wells.csv --epsilon 1 --delta 1e-6",
    ));
    place.follow("docs/language.md", 3);
    place.follow("docs/privacy.md", 1);
    place.follow("docs/accounting.md", 3);
}

#[test]
fn commands_of_the_recipes_work() {
    let place = Place::new();
    let row = |i: usize| {
        let (age, years, answer) = (20 + i * 37 % 70, 1 + i * 13 % 9, 1 + i * 7 % 5);
        let (treated, died, urban) = (i % 2, i % 3 % 2, i / 2 % 2);
        format!("{age},{treated},{years},{died},{answer},{urban}\n")
    };
    let rows: String = (0..ROWS).map(row).collect();
    let header = "age,treated,years,died,answer,urban";
    place.write("survey.csv", format!("{header}\n{rows}"));
    place.follow("docs/recipes.md", 12);
}

struct Place(Folder);

folder_of!(Place);

impl Place {
    /// With the models, the largest table cut short.
    fn new() -> Place {
        let place = Place(Folder::new());
        for folder in ["models", "models/recipes"] {
            let to = place.file(folder);
            fs::create_dir(&to).expect("a folder");
            for entry in fs::read_dir(root().join(folder)).expect("the models") {
                let path = entry.expect("a file").path();
                if path.is_file() {
                    let name = path.file_name().expect("a name");
                    fs::copy(&path, to.join(name)).expect("a copy");
                }
            }
        }
        cut(&place.file("models/adult_income.csv.gz"));
        let completions = place
            .path()
            .join(".local/share/bash-completion/completions");
        fs::create_dir_all(completions).expect("a folder");
        place
    }

    /// Runs all commands of a document, of which there are so many at least.
    fn follow(&self, document: &str, least: usize) {
        let mut run = 0;
        for command in commands(&read(&root().join(document))) {
            if ELSEWHERE
                .iter()
                .any(|(start, _)| command.starts_with(start))
            {
                continue;
            }
            self.succeeds(&short(&command));
            run += 1;
        }
        assert!(run >= least, "{document}: only {run} commands found");
    }

    fn succeeds(&self, command: &str) {
        let program = Path::new(env!("CARGO_BIN_EXE_dpm"));
        let folder = program.parent().expect("a folder").display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut shell = Command::new("sh");
        shell
            .args(["-euc", command])
            .current_dir(self.path())
            .env("PATH", format!("{folder}:{path}"))
            .env("HOME", self.path());
        let output = start(&mut shell).wait_with_output().expect("a shell");
        assert!(
            output.status.success(),
            "{command}\n{}\n{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

/// The commands of a text's blocks of shell, lines that go on put together.
fn commands(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut inside = false;
    let mut goes_on = false;
    for line in text.lines() {
        if line.starts_with("```") {
            inside = line == "```sh";
            goes_on = false;
        } else if inside && !line.trim().is_empty() {
            match found.last_mut().filter(|_| goes_on) {
                Some(last) => {
                    last.push('\n');
                    last.push_str(line);
                }
                None => found.push(line.to_owned()),
            }
            let whole = found.last().map_or("", String::as_str);
            let is_quoted = whole.matches('\'').count() % 2 == 1;
            goes_on = is_quoted || line.ends_with('\\') || line.ends_with('|');
        }
    }
    found
}

/// The same command with less to do.
fn short(command: &str) -> String {
    let command = command.replace("cargo run --release -- ", "dpm ");
    if command.starts_with("dpm sbc ") {
        return command + " --tables 2";
    }
    if command.starts_with("dpm synth ") {
        // Of so few rows, more may be told.
        let command = command.replace("--epsilon 0.5", "--epsilon 5");
        return command.replace("--rows 48842", "--rows 100");
    }
    if !command.starts_with("dpm sample ") {
        return command;
    }
    let mut words: Vec<&str> = command.split(' ').collect();
    for flag in ["--num-warmup", "--num-samples"] {
        if let Some(place) = words.iter().position(|word| *word == flag) {
            words.drain(place..place + 2);
        }
    }
    words.join(" ") + " --num-warmup 10 --num-samples 20"
}

fn first_program(document: &str) -> String {
    first("stan", document)
}

/// The first block of this kind.
fn first(kind: &str, document: &str) -> String {
    let text = read(&root().join(document));
    let (_, rest) = (text.split_once(&format!("```{kind}\n"))).expect("a block");
    let (block, _) = rest.split_once("```").expect("its end");
    block.to_owned()
}

/// Leaves the first rows of a table.
fn cut(path: &Path) {
    let mut text = String::new();
    let file = fs::File::open(path).expect("a table");
    GzDecoder::new(file)
        .read_to_string(&mut text)
        .expect("a table");
    let rows: String = text
        .lines()
        .take(ROWS + 1)
        .map(|line| format!("{line}\n"))
        .collect();
    let file = fs::File::create(path).expect("a table");
    let mut packed = GzEncoder::new(file, Compression::fast());
    packed.write_all(rows.as_bytes()).expect("a table");
    packed.finish().expect("a table");
}

fn wells() -> String {
    let row = |i: usize| {
        format!(
            "{},{},{}\n",
            i % 2,
            (i * 37) % 200,
            (i * 13 % 50) as f64 / 10.0
        )
    };
    let rows: String = (0..200).map(row).collect();
    format!("switched,dist,arsenic\n{rows}")
}
