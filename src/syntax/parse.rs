//! The parser: read, explain what cannot be read, repair it, read again.

use pest::Parser;

use super::brackets::brackets;
use super::builder::Builder;
use super::diagnostic::Diagnostic;
use super::draft::{Draft, Edit};
use super::explain::explain;
use super::grammar::{Grammar, Rule};
use super::tokens::{Problem, tokens};
use super::tree::{Program, Span};
use super::unread;

/// The result of parsing a source.
#[derive(Debug, Clone, PartialEq)]
pub struct Parsed {
    /// The program without the parts that could not be read; `None` when too little is left to
    /// continue.
    pub program: Option<Program>,
    /// In the order of the source.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads a `.dpm` program and reports every mistake in its form.
///
/// A source without diagnostics parses completely. With diagnostics, the program
/// lacks the statements that could not be read, and the others keep their places.
pub fn parse(source: &str) -> Parsed {
    if source.len() > LARGEST {
        return Parsed {
            program: None,
            diagnostics: vec![too_large(source)],
        };
    }
    let mut draft = Draft::new(source);
    let mut diagnostics = Vec::new();
    // Places in the source whose statements have been reported.
    let mut spoiled: Vec<usize> = Vec::new();
    let mut program = None;
    let mut rest_is_cut = false;
    let mut unread = Vec::new();
    for _ in 0..MOST_REPAIRS {
        match read(&draft) {
            Reading::Complete(mut tree, found) => {
                diagnostics.extend(found);
                tree.unread.append(&mut unread);
                tree.whole = diagnostics.is_empty();
                program = Some(tree);
                break;
            }
            Reading::Stopped(diagnostic) => {
                diagnostics.push(in_source(diagnostic, &draft));
                break;
            }
            Reading::Broken { problems, within } => {
                let mut edits = Vec::new();
                for problem in problems {
                    let extent = within.map(|span| draft.span_to_source(span));
                    let known = extent.is_some_and(|extent| {
                        spoiled
                            .iter()
                            .any(|&place| extent.start <= place && place <= extent.end)
                    });
                    let diagnostic = in_source(problem.diagnostic, &draft);
                    rest_is_cut |= problem.cuts_rest;
                    // A bracket that we inserted, or cut off, is not reported.
                    let ours = diagnostic
                        .notes
                        .iter()
                        .any(|(span, _)| span.start == span.end);
                    if problem.at_end && (rest_is_cut || ours) {
                        edits.extend(problem.edits);
                        continue;
                    }
                    if problem.spoils_statement {
                        spoiled.push(diagnostic.span.start);
                    }
                    if !known {
                        diagnostics.push(diagnostic);
                        edits.extend(problem.edits);
                    } else if let Some(span) = within {
                        edits.push(Edit::Blank(span));
                    }
                }
                for edit in &edits {
                    if let Edit::Blank(span) = edit {
                        let blanked = draft.text().get(span.range()).unwrap_or_default();
                        unread.extend(unread::declared(blanked));
                    }
                }
                draft.apply(edits);
            }
        }
    }
    diagnostics.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.span.end));
    Parsed {
        program,
        diagnostics,
    }
}

/// The most mistakes that are searched for: a file with more is hardly dpm.
const MOST_REPAIRS: usize = 50;

/// The largest program, in bytes: it is read again after each repair, and takes a hundred times its
/// size in memory.
pub(super) const LARGEST: usize = 1_000_000;

fn too_large(source: &str) -> Diagnostic {
    let first_line = source.find(['\n', '\r']).unwrap_or(0).min(80);
    Diagnostic::error(
        "S008",
        Span::new(0, source.floor_char_boundary(first_line)),
        format!(
            "this file has {} bytes, and a program may have {LARGEST}",
            source.len()
        ),
    )
    .label("too large for a program")
    .help("long lists of numbers go into the file of constants")
}

enum Reading {
    Complete(Program, Vec<Diagnostic>),
    Broken {
        problems: Vec<Problem>,
        /// The statement that cannot be read, if it is one.
        within: Option<Span>,
    },
    /// Nothing can be repaired.
    Stopped(Diagnostic),
}

fn read(draft: &Draft) -> Reading {
    let text = draft.text();
    let (tokens, problems) = tokens(text);
    if !problems.is_empty() {
        return Reading::Broken {
            problems,
            within: None,
        };
    }
    let brackets = match brackets(&tokens) {
        Ok(brackets) => brackets,
        Err(problem) if problem.edits.is_empty() => return Reading::Stopped(problem.diagnostic),
        Err(problem) => {
            return Reading::Broken {
                problems: vec![*problem],
                within: None,
            };
        }
    };
    match Grammar::parse(Rule::program, text) {
        Ok(pairs) => {
            let mut builder = Builder::new(draft, &tokens);
            let program = builder.program(pairs);
            Reading::Complete(program, builder.diagnostics)
        }
        Err(error) => match explain(&error, text, &tokens, &brackets) {
            Ok((problem, within)) => Reading::Broken {
                problems: vec![problem],
                within: Some(within),
            },
            Err(diagnostic) => Reading::Stopped(*diagnostic),
        },
    }
}

fn in_source(mut diagnostic: Diagnostic, draft: &Draft) -> Diagnostic {
    diagnostic.span = draft.span_to_source(diagnostic.span);
    for (span, _) in &mut diagnostic.notes {
        *span = draft.span_to_source(*span);
    }
    diagnostic
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(source: &str) -> Vec<(&'static str, usize, usize)> {
        let parsed = parse(source);
        let place = |d: &Diagnostic| (d.code, d.span.start, d.span.end);
        parsed.diagnostics.iter().map(place).collect()
    }

    #[test]
    fn nothing_is_an_empty_program() {
        for source in ["", "\n", "// nothing", "\u{FEFF}"] {
            let parsed = parse(source);
            assert_eq!(parsed.diagnostics, []);
            assert!(
                parsed
                    .program
                    .is_some_and(|program| program.blocks.is_empty())
            );
        }
    }

    #[test]
    fn all_mistakes_are_found_in_the_places_of_the_source() {
        let source = "model {\n  a = 1\n  b = ;\n  c = (2;\n  d = 4\n}";
        assert_eq!(
            said(source),
            [
                ("S002", 15, 15),
                ("S001", 21, 21),
                ("S003", 32, 32),
                ("S002", 41, 41)
            ]
        );
    }

    #[test]
    fn what_can_be_read_is_in_the_tree_with_its_own_span() {
        let source = "model { a = 1 \n b = ; c = 3; }";
        let program = parse(source).program.expect("it parses");
        let written: Vec<&str> = program.blocks[0]
            .statements
            .iter()
            .map(|statement| &source[statement.span.range()])
            .collect();
        // The inserted semicolon takes no space.
        assert_eq!(written, ["a = 1", "c = 3;"]);
        assert_eq!(program.span.range(), 0..source.len());
    }

    #[test]
    fn what_could_not_be_declared_is_remembered() {
        let parsed = parse("parameters { real a<lower=0>; real b; } nonsense { real c; }");
        let program = parsed.program.expect("it parses");
        assert!(
            ["a", "c"]
                .iter()
                .all(|name| program.unread.iter().any(|u| u == name))
        );
        assert!(!program.unread.iter().any(|name| name == "b"));
    }

    #[test]
    fn one_mistake_is_one_message() {
        for source in [
            "model { x = 2y + ; }",
            "model { x = (a $ b); }",
            "model { if (x { y = 1; } }",
            "model { x = f(1, 2; }",
            "model { /* x",
            "model",
        ] {
            assert_eq!(said(source).len(), 1, "{source}: {:?}", said(source));
        }
    }

    #[test]
    fn a_file_that_is_too_large_is_refused() {
        for unit in ["(", "model { }\n", "x = ;\n", "\u{0}", "// comment\n"] {
            let source = unit.repeat(LARGEST / unit.len() + 1);
            assert_eq!(said(&source)[0].0, "S008", "{unit:?}");
        }
    }

    #[test]
    fn a_file_that_is_not_dpm_comes_to_an_end() {
        let parsed = parse(&"x = ;\n".repeat(1_000));
        assert!(parsed.diagnostics.len() <= MOST_REPAIRS);
        assert!(parsed.program.is_none());
    }
}
