//! The programs in the documentation are programs: whatever stands there between
//! ```` ```stan ```` and ```` ``` ```` passes the checker without a complaint.

use std::path::{Path, PathBuf};

use dpm::testing::check::check;
use dpm::testing::sampler::ALGORITHMS;
use dpm::testing::syntax::{parse, render};

use crate::corpus::{read, root};

#[test]
fn programs_in_the_documentation_check() {
    let mut checked = 0;
    let files = [
        "README.md",
        "docs/language.md",
        "docs/tutorial.md",
        "docs/from-stan.md",
        "docs/recipes.md",
    ];
    for file in files {
        let text = read(&root().join(file));
        for (line, program) in programs(&text) {
            let parsed = parse(&program);
            let mut diagnostics = parsed.diagnostics;
            if let Some(program) = &parsed.program {
                diagnostics.extend(check(program).diagnostics);
            }
            let rendered = render(&diagnostics, &program, file, false);
            assert!(diagnostics.is_empty(), "{file}, line {line}:\n{rendered}");
            checked += 1;
        }
    }
    assert!(checked >= 10, "only {checked} programs found");
}

/// The fenced programs of a Markdown text, each with the line it starts at.
fn programs(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (number, line) in text.lines().enumerate() {
        match &mut open {
            None if line == "```stan" => open = Some((number + 2, String::new())),
            Some(_) if line == "```" => found.extend(open.take()),
            Some((_, program)) => {
                program.push_str(line);
                program.push('\n');
            }
            None => {}
        }
    }
    assert!(open.is_none(), "a program that does not end");
    found
}

/// Links inside the repository lead somewhere: to a file, and to a heading of it.
#[test]
fn links_lead_somewhere() {
    let mut files = vec![
        "README.md".to_owned(),
        "SECURITY.md".to_owned(),
        "CONTRIBUTING.md".to_owned(),
        "ARCHITECTURE.md".to_owned(),
        "CHANGELOG.md".to_owned(),
    ];
    let docs = std::fs::read_dir(root().join("docs")).expect("docs/");
    let names = docs.map(|entry| entry.expect("an entry").file_name());
    let pages = names.filter_map(|name| name.into_string().ok());
    files.extend(
        pages
            .filter(|n| n.ends_with(".md"))
            .map(|n| format!("docs/{n}")),
    );
    let (mut followed, mut broken) = (0, Vec::new());
    for file in &files {
        let text = read(&root().join(file));
        for link in text.split("](").skip(1) {
            let link = link.split([')', ' ']).next().unwrap_or_default();
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let from = root().join(file);
            let to = match path {
                "" => from.clone(),
                path => from.with_file_name(path),
            };
            let found = to.exists()
                && (heading.is_empty() || headings(&read(&to)).iter().any(|h| h == heading));
            followed += 1;
            if !found {
                broken.push(format!("{file}: {link}"));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(followed > 40, "only {followed} links");
}

/// The headings of a Markdown text as links name them.
fn headings(text: &str) -> Vec<String> {
    let titles = text.lines().filter(|line| line.starts_with('#'));
    let slug = |title: &str| {
        let title = title.trim_start_matches('#').trim().to_lowercase();
        let kept = title
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    titles.map(slug).collect()
}

#[test]
fn every_sampler_has_a_section_and_every_section_a_sampler() {
    let text = read(&root().join("docs/samplers.md"));
    let sections: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .filter(|title| !title.contains(' '))
        .collect();
    let registered: Vec<&str> = ALGORITHMS.iter().map(|a| a.name).collect();
    for name in &registered {
        assert!(sections.contains(name), "docs/samplers.md: no `{name}`");
    }
    assert_eq!(sections.len(), registered.len(), "{sections:?}");
}

/// Places where sources and guides may name a Markdown file.
const FOLDERS: [&str; 7] = [
    "src", "tests", "docs", "examples", "benches", "grammar", "models",
];

#[test]
fn every_markdown_file_that_is_named_is_there() {
    let mut texts: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "Cargo.toml"]
        .map(|name| root().join(name))
        .into();
    for folder in FOLDERS {
        files(&root().join(folder), &mut texts);
    }
    let (mut named, mut missing) = (0, Vec::new());
    for path in texts {
        // Data and pictures name nothing.
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        for name in markdown_names(&text) {
            named += 1;
            let folder = path.parent().expect("a folder");
            if !root().join(name).is_file() && !folder.join(name).is_file() {
                missing.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(named > 100, "only {named} names found");
    assert!(missing.is_empty(), "not in this repository: {missing:#?}");
}

fn files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, into);
        } else {
            into.push(path);
        }
    }
}

/// The names of Markdown files in any text, with their folders.
fn markdown_names(text: &str) -> Vec<&str> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let ends = text.match_indices(concat!(".", "md"));
    let ends = ends.map(|(at, end)| at + end.len());
    let whole = ends.filter(|&end| !text[end..].starts_with(|c: char| c.is_ascii_alphanumeric()));
    whole
        .filter_map(|end| {
            let start = text[..end].rfind(|c| !is_name(c)).map_or(0, |at| {
                let skipped = text[at..].chars().next().map_or(1, char::len_utf8);
                // An escape in a string.
                at + skipped + usize::from(text[at..].starts_with(r"\n"))
            });
            let name = &text[start..end];
            name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.')
                .then_some(name)
                // What `dpm synth` writes.
                .filter(|name| name.len() > 3 && !name.ends_with(".about.md"))
        })
        .collect()
}

#[test]
fn names_of_markdown_files_are_found_in_any_text() {
    let text = concat!(
        "see docs/a.m",
        "d, (b-c.m",
        "d) \"\\nd.m",
        "d\" and .m",
        "d or e.m",
        "dx [f](../g/f.m",
        "d#h)"
    );
    let expected = ["docs/a", "b-c", "d", "../g/f"].map(|name| format!("{name}.{}", "md"));
    assert_eq!(markdown_names(text), expected);
}

/// The names in docs/proofs.md: each function is in the source that it is said to be in, and each
/// theorem about code has at least one test.
#[test]
fn the_proofs_name_functions_and_tests_that_are_there() {
    let text = read(&root().join("docs/proofs.md"));
    let (mut found, mut missing) = (0, Vec::new());
    for paragraph in text.split("\n\n") {
        let Some(start) = paragraph.find("*Code.*") else {
            continue;
        };
        let (_, tests) = paragraph
            .split_once("*Tests.*")
            .expect("code and its tests");
        assert!(tests.contains('`'), "no test: {paragraph}");
        let mut source: Option<(&str, String)> = None;
        for span in paragraph[start..].split('`').skip(1).step_by(2) {
            if span.ends_with(".rs") || span.ends_with(".py") {
                source = Some((span, read(&root().join(span))));
                continue;
            }
            let (file, source) = source.as_ref().expect("a file before its functions");
            found += 1;
            if !source.contains(&format!("fn {span}(")) && !source.contains(&format!("fn {span}<"))
            {
                missing.push(format!("{file}: {span}"));
            }
        }
    }
    assert!(found > 100, "only {found} names");
    assert!(missing.is_empty(), "{missing:#?}");
}
