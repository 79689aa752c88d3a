//! The programs in the documentation are programs: whatever stands there between
//! ```` ```stan ```` and ```` ``` ```` passes the checker without a complaint.

mod evaluation;

use evaluation::{read, root};

#[test]
fn programs_in_the_documentation_check() {
    let mut checked = 0;
    let files = [
        "README.md",
        "docs/language.md",
        "docs/tutorial.md",
        "docs/from-stan.md",
    ];
    for file in files {
        let text = read(&root().join(file));
        for (line, program) in programs(&text) {
            let parsed = dpm::syntax::parse(&program);
            let mut diagnostics = parsed.diagnostics;
            if let Some(program) = &parsed.program {
                diagnostics.extend(dpm::check::check(program).diagnostics);
            }
            let rendered = dpm::syntax::render(&diagnostics, &program, file, false);
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
    let registered: Vec<&str> = dpm::sampler::ALGORITHMS.iter().map(|a| a.name).collect();
    for name in &registered {
        assert!(sections.contains(name), "docs/samplers.md: no `{name}`");
    }
    assert_eq!(sections.len(), registered.len(), "{sections:?}");
}
