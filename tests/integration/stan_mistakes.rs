//! The first programs of a Stan user, and the answers: `tests/bad/stan/*.dpm` are
//! whole programs, each with one habit of Stan, R or Python, and beside each
//! stands everything that `dpm check` says of it. `DPM_BLESS=1` writes these
//! files, to be read before they are committed.

use dpm::testing::check::check;
use dpm::testing::syntax::{Diagnostic, parse, render};

use crate::corpus::{matches_expected, programs, read};

#[test]
fn every_mistake_is_explained() {
    matches_expected("tests/bad/stan", |source, name| {
        render(&diagnostics(source), source, name, false)
    });
}

/// Every message to a Stan user says what to write instead, in its help or its
/// label, or shows where the two places are.
#[test]
fn every_message_says_what_to_do() {
    for path in programs("tests/bad/stan") {
        let source = read(&path);
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
    let folders = ["stan", "syntax", "check", "bind"].map(|folder| format!("tests/bad/{folder}"));
    let paths: Vec<_> = folders.iter().flat_map(|folder| programs(folder)).collect();
    assert!(paths.len() >= 120, "{} wrong programs", paths.len());
    for path in paths {
        let expected = path.with_extension("expected");
        assert!(expected.exists(), "{}", path.display());
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
