//! The first programs of a Stan user, and the answers: `tests/bad/stan/*.dpm` are
//! whole programs, each with one habit of Stan, R or Python, and beside each
//! stands everything that `dpm check` says of it. `DPM_BLESS=1` writes these
//! files, to be read before they are committed.

use std::fs;
use std::path::{Path, PathBuf};

use dpm::testing::check::check;
use dpm::testing::syntax::{Diagnostic, parse, render};

#[test]
fn every_mistake_is_explained() {
    let bless = std::env::var_os("DPM_BLESS").is_some();
    let mut differing = Vec::new();
    for path in programs() {
        let source = fs::read_to_string(&path).expect("a program");
        let name = path.file_name().expect("a name").to_string_lossy();
        let said = render(&diagnostics(&source), &source, &name, false);
        assert!(!said.is_empty(), "nothing is said of {name}");
        let beside = path.with_extension("expected");
        if bless {
            fs::write(&beside, &said).expect("the expected text can be written");
        } else if fs::read_to_string(&beside).unwrap_or_default() != said {
            differing.push(format!("{}:\n{said}", path.display()));
        }
    }
    assert!(
        differing.is_empty(),
        "these messages changed; if they are better, run with DPM_BLESS=1\n\n{}",
        differing.join("\n")
    );
}

/// Every message to a Stan user says what to write instead, in its help or its
/// label, or shows where the two places are.
#[test]
fn every_message_says_what_to_do() {
    for path in programs() {
        let source = fs::read_to_string(&path).expect("a program");
        for diagnostic in diagnostics(&source) {
            let label = &diagnostic.label;
            let advises = diagnostic.help.is_some()
                || label.starts_with("expected")
                || label.starts_with("did you mean")
                || label.starts_with("divide");
            assert!(advises, "{}: {diagnostic:?}", path.display());
        }
    }
}

/// All of the corpus together: a hundred and twenty programs at least.
#[test]
fn the_corpus_is_large() {
    let folders = ["stan", "syntax", "check", "bind"];
    let count: usize = folders.map(|folder| listed(folder).len()).iter().sum();
    assert!(count >= 120, "{count} wrong programs");
    for folder in folders {
        for path in listed(folder) {
            assert!(
                path.with_extension("expected").exists(),
                "{}",
                path.display()
            );
        }
    }
}

fn diagnostics(source: &str) -> Vec<Diagnostic> {
    let parsed = parse(source);
    let mut found = parsed.diagnostics;
    if let Some(program) = &parsed.program {
        found.extend(check(program).diagnostics);
    }
    found
}

fn programs() -> Vec<PathBuf> {
    listed("stan")
}

fn listed(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/bad")
        .join(folder);
    let mut found: Vec<PathBuf> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "dpm"))
        .collect();
    found.sort();
    assert!(!found.is_empty(), "{}", folder.display());
    found
}
