//! Diagnostics as a terminal shows them.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use super::diagnostic::{Diagnostic, Severity};
use super::tree::Span;

/// All diagnostics, by their place in the source and each once, in the manner of
/// rustc; empty when there are none.
///
/// `source` must be the text that was parsed; spans that do not fit into it are
/// moved to its end.
pub fn render(diagnostics: &[Diagnostic], source: &str, file_name: &str, color: bool) -> String {
    let mut sorted: Vec<&Diagnostic> = diagnostics.iter().collect();
    sorted.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.span.end));
    let mut shown: Vec<&Diagnostic> = Vec::with_capacity(sorted.len());
    for diagnostic in sorted {
        let again = |earlier: &&Diagnostic| {
            earlier.span == diagnostic.span && earlier.message == diagnostic.message
        };
        if !shown.iter().rev().take(8).any(again) {
            shown.push(diagnostic);
        }
    }
    let renderer = if color {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    let reports: Vec<String> = shown
        .into_iter()
        .map(|diagnostic| one(diagnostic, source, file_name, &renderer))
        .collect();
    reports.join("\n")
}

fn one(diagnostic: &Diagnostic, source: &str, file_name: &str, renderer: &Renderer) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut primary = AnnotationKind::Primary.span(visible(diagnostic.span, source));
    if !diagnostic.label.is_empty() {
        primary = primary.label(diagnostic.label.as_str());
    }
    let snippet = Snippet::source(source)
        .path(file_name)
        .annotation(primary)
        .annotations(diagnostic.notes.iter().map(|(span, text)| {
            AnnotationKind::Context
                .span(visible(*span, source))
                .label(text.as_str())
        }));
    let mut group = level
        .primary_title(diagnostic.message.as_str())
        .id(diagnostic.code)
        .element(snippet);
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    let mut text = renderer.render(&[group]);
    text.push('\n');
    text
}

/// The span cut to the source, to whole characters, and to its first line:
/// a caret under one line says where; a frame around forty does not.
fn visible(span: Span, source: &str) -> std::ops::Range<usize> {
    let start = source.floor_char_boundary(span.start);
    let end = source.ceil_char_boundary(span.end.max(start).min(source.len()));
    let lines = &source[start..end];
    let end = lines
        .find(['\r', '\n'])
        .filter(|_| !lines.trim().is_empty())
        .map_or(end, |newline| start + newline);
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(diagnostics: &[Diagnostic], source: &str) -> String {
        render(diagnostics, source, "a.dpm", false)
    }

    #[test]
    fn the_caret_stands_under_the_words() {
        let text = plain(
            &[Diagnostic::error("S001", Span::new(4, 9), "bad")
                .label("this")
                .note(Span::new(0, 3), "for that")
                .help("write `good`")],
            "abc defgh\nij",
        );
        let expected = "error[S001]: bad
 --> a.dpm:1:5
  |
1 | abc defgh
  | --- ^^^^^ this
  | |
  | for that
  |
  = help: write `good`
";
        assert_eq!(text, expected);
    }

    #[test]
    fn sorted_and_each_once() {
        let late = Diagnostic::error("S001", Span::new(3, 4), "late");
        let early = Diagnostic::error("S001", Span::new(0, 1), "early");
        let text = plain(&[late.clone(), early, late], "ab\ncd");
        assert_eq!(text.matches("late").count(), 1);
        assert!(text.find("early") < text.find("late"));
        assert_eq!(plain(&[], "ab"), "");
    }

    #[test]
    fn odd_places_and_odd_files_do_not_break_it() {
        let at = |start, end| Diagnostic::error("S001", Span::new(start, end), "bad").label("x");
        for source in [
            "",
            "\n",
            "é",
            "\tx\ty",
            "a\r\nb\r\n",
            "a // é\n\u{FEFF}",
            "\u{0}\u{7f}",
            "日本\n語",
        ] {
            for start in 0..source.len() + 3 {
                for end in start..source.len() + 3 {
                    let text = plain(&[at(start, end)], source);
                    assert!(text.contains("a.dpm:"), "{source:?} {start}..{end}: {text}");
                }
            }
        }
    }

    #[test]
    fn crlf_and_tabs_keep_the_caret_in_place() {
        let text = plain(
            &[Diagnostic::error("S001", Span::new(5, 6), "bad")],
            "a\r\n\tbc\r\n",
        );
        assert!(text.contains("a.dpm:2:3"), "{text}");
        assert!(text.contains("2 |     bc\n  |      ^\n"), "{text}");
        assert!(!text.contains('\r'));
    }

    #[test]
    fn color_is_only_there_when_wanted() {
        let diagnostics = [Diagnostic::error("S001", Span::new(0, 1), "bad")];
        assert!(render(&diagnostics, "ab", "a.dpm", true).contains('\u{1b}'));
        assert!(!plain(&diagnostics, "ab").contains('\u{1b}'));
    }
}
