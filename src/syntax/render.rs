//! Diagnostics as a terminal shows them.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::diagnostic::{Diagnostic, Severity, line_column};
use super::tree::Span;

/// The diagnostics, by their place in the source and each once, in the manner of
/// rustc; empty when there are none. After the first two hundred, only the number of the rest.
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
    let left_out = shown.len().saturating_sub(MOST);
    let mut reports: Vec<String> = shown
        .into_iter()
        .take(MOST)
        .map(|diagnostic| one(diagnostic, source, file_name, &renderer))
        .collect();
    if left_out > 0 {
        reports.push(format!("and {left_out} more after these\n"));
    }
    reports.join("\n")
}

/// The most diagnostics shown for one source: nobody reads more.
const MOST: usize = 200;

/// The most bytes between the first and the last line of a source that is shown unchanged.
const WHOLE: usize = 100_000;

/// The most bytes of a line that is shown unchanged, and of one that is cut, on both sides of the
/// words at fault.
const LONG_LINE: usize = 5_000;
const AROUND: usize = 100;

fn one(diagnostic: &Diagnostic, source: &str, file_name: &str, renderer: &Renderer) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let span = visible(diagnostic.span, source);
    let notes: Vec<(Range<usize>, &str)> = diagnostic
        .notes
        .iter()
        .map(|(span, text)| (visible(*span, source), text.as_str()))
        .collect();
    let own_lines = lines_of(&span, source);
    let lines = notes.iter().fold(own_lines.clone(), |lines, (span, _)| {
        let more = lines_of(span, source);
        lines.start.min(more.start)..lines.end.max(more.end)
    });
    let title = level.primary_title(diagnostic.message.as_str());
    let mut group = Group::with_title(title.id(diagnostic.code));
    let is_whole = own_lines.len() <= LONG_LINE && lines.len() <= WHOLE;
    let shown = if is_whole {
        lines
    } else {
        let (line, column) = line_column(source, span.start);
        let origin = Origin::path(file_name).line(line).char_column(column);
        group = group.element(origin);
        let start = span.start.saturating_sub(AROUND).max(own_lines.start);
        let end = span.end.min(span.start + AROUND) + AROUND;
        source.ceil_char_boundary(start)..source.floor_char_boundary(end.min(own_lines.end))
    };
    let within = |span: &Range<usize>| shown.start <= span.start && span.start <= shown.end;
    let moved = |span: &Range<usize>| {
        let place = |at: usize| at.min(shown.end) - shown.start;
        place(span.start)..place(span.end)
    };
    let mut primary = AnnotationKind::Primary.span(moved(&span));
    if !diagnostic.label.is_empty() {
        primary = primary.label(diagnostic.label.as_str());
    }
    let notes = notes.iter().filter(|(span, _)| within(span));
    let snippet = Snippet::source(&source[shown.clone()])
        .line_start(line_column(source, shown.start).0)
        .annotation(primary)
        .annotations(
            notes.map(|(span, text)| AnnotationKind::Context.span(moved(span)).label(*text)),
        );
    group = group.element(if is_whole {
        snippet.path(file_name)
    } else {
        snippet
    });
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help.as_str()));
    }
    let mut text = renderer.render(&[group]);
    text.push('\n');
    text
}

/// The lines that the span touches. The end of a file that ends with a line break belongs to its
/// last line.
fn lines_of(span: &Range<usize>, source: &str) -> Range<usize> {
    let first = if span.start == source.len() {
        source.strip_suffix('\n').unwrap_or(source).len()
    } else {
        span.start
    };
    let start = source[..first].rfind('\n').map_or(0, |end| end + 1);
    let end = source[span.end..].find('\n');
    start..end.map_or(source.len(), |end| span.end + end + 1)
}

/// The span cut to the source, to whole characters, and to its first line:
/// a caret under one line says where; a frame around forty does not.
fn visible(span: Span, source: &str) -> Range<usize> {
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
    fn long_lines_are_cut_and_many_diagnostics_counted() {
        let source = format!("a\n{}wrong{}\n", "é".repeat(9_000), "b".repeat(9_000));
        let place = Span::new(2 + 18_000, 2 + 18_005);
        let text = plain(&[Diagnostic::error("S001", place, "bad")], &source);
        assert!(text.contains("a.dpm:2:9001"), "{text}");
        assert!(text.contains("wrong") && text.len() < 2_000, "{text}");
        let at = |place| Diagnostic::error("S001", Span::new(place, place + 1), "bad");
        let many: Vec<Diagnostic> = (0..1_000).map(at).collect();
        let text = plain(&many, &"a\n".repeat(1_000));
        assert_eq!(text.matches("error[S001]").count(), MOST);
        assert!(text.ends_with("and 800 more after these\n"));
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
