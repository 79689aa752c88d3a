//! Programs that parse but are wrong, with what is said about them.
//!
//! `tests/bad/check/*.dpm` fail in the checker, `tests/bad/bind/*.dpm` with the
//! constants in their first line. Each gives exactly the text of the
//! `.expected` file beside it; `DPM_BLESS=1` writes these files, to be read
//! before they are committed.

use std::fs;
use std::path::Path;

use dpm::Constants;
use dpm::testing::check::check;
use dpm::testing::syntax::{parse, render};

use crate::corpus::{matches_expected, programs, read, root};
use crate::evaluation;
use crate::evaluation::{Random, bind, constants_in, density, random_table};

#[test]
fn bad_programs_are_explained() {
    matches_expected("tests/bad/check", |source, name| {
        let parsed = parse(source);
        let said = render(&parsed.diagnostics, source, name, false);
        assert!(said.is_empty(), "{name} does not parse:\n{said}");
        let result = check(&parsed.program.expect("a program"));
        let failed = result.diagnostics.iter().any(|d| d.is_error());
        assert_eq!(result.checked.is_none(), failed, "{name}");
        render(&result.diagnostics, source, name, false)
    });
}

#[test]
fn constants_that_do_not_fit_are_explained() {
    matches_expected("tests/bad/bind", |source, name| {
        match bind(source, &constants_in(source)) {
            Ok(_) => String::new(),
            Err(said) => {
                assert!(said.starts_with("error[E0300]"), "{name}:\n{said}");
                said.replace("test.dpm", name)
            }
        }
    });
}

/// Every error code of the checker is shown by some program.
#[test]
fn every_code_has_an_example() {
    let mut said = String::new();
    for path in programs("tests/bad/check") {
        said += &fs::read_to_string(path.with_extension("expected")).unwrap_or_default();
    }
    let sources = sources_under(&root().join("src/check"));
    let mut missing = Vec::new();
    for (at, _) in sources
        .match_indices("\"E0")
        .chain(sources.match_indices("\"W0"))
    {
        let code = &sources[at + 1..at + 6];
        // The parser says these before (S001, S011).
        if !["E0104", "E0109", "E0124"].contains(&code) && !said.contains(&format!("[{code}]")) {
            missing.push(code);
        }
    }
    assert!(missing.is_empty(), "no example of {missing:?}");
}

fn sources_under(folder: &Path) -> String {
    let entries = fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<_> = entries.map(|e| e.expect("an entry").path()).collect();
    paths.sort();
    paths
        .iter()
        .map(|path| {
            if path.is_dir() {
                sources_under(path)
            } else {
                read(path)
            }
        })
        .collect()
}

/// A sum of ten thousand terms, written out or by a loop, is a large model but
/// no trouble: no stack overflow, and memory in proportion.
#[test]
fn long_sums_are_no_trouble() {
    let terms: Vec<String> = (1..=10_000)
        .map(|k| format!("b[{}] * x * {k}", k % 50 + 1))
        .collect();
    let added: Vec<String> = terms.iter().map(|t| format!("s += {t};")).collect();
    for body in [
        format!("y ~ normal(sum({{ {} }}), 1);", terms.join(", ")),
        format!("real s = 0; {} y ~ normal(s, 1);", added.join("\n")),
        "real s = 0; for (k in 1:10000) s += b[k % 50 + 1] * x * k; y ~ normal(s, 1);".into(),
        "real s = 0; for (k in 1:10000) s += exp(b[k % 50 + 1] * x); target += s;".into(),
        "vector[10000] w; for (k in 1:10000) { w[k] = b[k % 50 + 1]; if (k > 1) w[k] += w[k - 1] * 0.1; } target += x * w;".into(),
        "target += -sum(big) + dot_product(big, rep_vector(x, 10000)); for (k in 1:10000) big[k] ~ normal(0, 1);".into(),
    ] {
        let source = format!(
            "record {{ real<lower=-1, upper=1> x; real y; }}\nparameters {{ vector[50] b; vector[10000] big; }}\nmodel {{ {body} }}"
        );
        let density = density(&source, &Constants::none());
        let table = random_table(&density, 3, &mut Random(1));
        let theta = Random(2).point(density.dimension(), 0.1);
        let total: f64 = evaluation::log_density(&density, &table, &theta).iter().sum();
        assert!(total.is_finite());
        let gradient = evaluation::gradient(&density, &table, &theta);
        assert!(gradient.iter().all(|g| g.is_finite()));
    }
}

/// Nested as deeply as the parser allows.
#[test]
fn deep_programs_are_no_trouble() {
    for depth in [10, 40, 80, 200, 5000] {
        for (open, inner, close) in [
            ("(", "a", ")"),
            ("exp(-", "a", ")"),
            ("-", "a", ""),
            ("1 ? ", "a", " : a"),
            ("a ^ ", "1", ""),
            ("1 ? a : ", "a", ""),
        ] {
            let nested = format!("{}{inner}{}", open.repeat(depth), close.repeat(depth));
            let source = format!("parameters {{ real a; }}\nmodel {{ target += {nested}; }}");
            // Too deep is said so; anything else binds.
            if let Err(said) = bind(&source, &Constants::none()) {
                assert!(said.contains("S008"), "{said}");
            }
        }
        for (open, close) in [
            ("{", "}"),
            ("if (1) ", ";"),
            ("for (i in 1:1) {", "}"),
            ("if (0) {} else ", ";"),
        ] {
            let nested = format!("{}{}", open.repeat(depth), close.repeat(depth));
            let source = format!("parameters {{ real a; }}\nmodel {{ {nested} }}");
            if let Err(said) = bind(&source, &Constants::none()) {
                assert!(
                    said.contains("S008") || said.contains("`i` is declared twice"),
                    "{said}"
                );
            }
        }
    }
}
