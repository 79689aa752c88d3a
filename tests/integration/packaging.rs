//! Everything that is published under one version says so everywhere, and is built by one Rust.

use std::fs;

use crate::corpus::{read, root};

/// The first line of a file that starts so, without that and without quotes.
fn value(file: &str, start: &str) -> String {
    let text = read(&root().join(file));
    let found = text.lines().find_map(|line| line.strip_prefix(start));
    let found = found.unwrap_or_else(|| panic!("{file}: no line starts with `{start}`"));
    found.replace('"', "")
}

#[test]
fn one_version_is_published() {
    let places = [
        ("CITATION.cff", "version: "),
        ("python/dpm_bayes/_program.py", "VERSION = "),
        ("r/DESCRIPTION", "Version: "),
    ];
    for (file, start) in places {
        assert_eq!(value(file, start), env!("CARGO_PKG_VERSION"), "{file}");
    }
    let program = value("r/DESCRIPTION", "SystemRequirements: dpm ");
    assert!(program.starts_with(concat!(env!("CARGO_PKG_VERSION"), " ")));
    let changes = read(&root().join("CHANGELOG.md"));
    assert!(changes.contains(concat!("\n## [", env!("CARGO_PKG_VERSION"), "]")));
}

#[test]
fn one_name_and_one_address_are_published() {
    for (start, file, same) in [
        ("name = ", "python/pyproject.toml", "name = "),
        ("homepage = ", "python/pyproject.toml", "Homepage = "),
        ("repository = ", "python/pyproject.toml", "Repository = "),
        ("homepage = ", "CITATION.cff", "url: "),
        ("repository = ", "CITATION.cff", "repository-code: "),
    ] {
        assert_eq!(value("Cargo.toml", start), value(file, same), "{file}");
    }
}

#[test]
fn the_wheel_has_the_licences_of_the_program() {
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        let copy = root().join("python/licences").join(name);
        assert_eq!(read(&copy), read(&root().join(name)), "{name}");
    }
}

#[test]
fn one_rust_builds_what_is_published() {
    let rust = env!("CARGO_PKG_RUST_VERSION");
    assert_eq!(
        value("Dockerfile", "FROM rust:"),
        format!("{rust}-slim AS build")
    );
    // The crate comes without them.
    let Ok(workflows) = fs::read_dir(root().join(".github/workflows")) else {
        return;
    };
    for workflow in workflows {
        let path = workflow.expect("an entry").path();
        for rest in read(&path).split("rustup toolchain install ").skip(1) {
            assert!(rest.starts_with(&format!("{rust} ")), "{}", path.display());
        }
    }
}
