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
