//! Messages about errors in a program, with their places and what to write instead.

use super::tree::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Error,
    Warning,
}

/// One message about one place in the source, with further places as notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable name of the kind of mistake, e.g. `S002`.
    pub code: &'static str,
    pub severity: Severity,
    pub message: String,
    /// The words at fault; empty for "something is missing here".
    pub span: Span,
    /// The text next to the caret; may be empty.
    pub label: String,
    /// Further places in the source that the message mentions.
    pub notes: Vec<(Span, String)>,
    /// Advice on what to write instead.
    pub help: Option<String>,
}

impl Diagnostic {
    pub fn error(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Diagnostic {
            code,
            severity: Severity::Error,
            message: message.into(),
            span,
            label: String::new(),
            notes: Vec::new(),
            help: None,
        }
    }

    pub fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(code, span, message)
        }
    }

    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    pub fn note(mut self, span: Span, text: impl Into<String>) -> Self {
        self.notes.push((span, text.into()));
        self
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The word to write in place of those at fault, where the question is "did you mean `word`?".
    pub fn suggestion(&self) -> Option<&str> {
        let said = [Some(self.label.as_str()), self.help.as_deref()];
        said.into_iter().flatten().find_map(|text| {
            let word = text.strip_prefix("did you mean `")?;
            word.strip_suffix("`?")
        })
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Line and column of a byte offset, both counted from one, columns in
/// characters. An offset past the end counts as the end.
pub fn line_column(source: &str, offset: usize) -> (usize, usize) {
    let before = &source[..source.floor_char_boundary(offset)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
    (line, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_in_characters() {
        assert_eq!(line_column("", 0), (1, 1));
        assert_eq!(line_column("ab\ncd", 3), (2, 1));
        assert_eq!(line_column("ab\r\ncd", 5), (2, 2));
        assert_eq!(line_column("é = 1", 3), (1, 3));
        assert_eq!(line_column("ab", 99), (1, 3));
        assert_eq!(line_column("é", 1), (1, 1));
    }

    #[test]
    fn the_parts_are_built_one_by_one() {
        let diagnostic = Diagnostic::error("S001", Span::new(1, 2), "wrong")
            .label("here")
            .note(Span::new(0, 1), "because of this")
            .help("do it right");
        assert!(diagnostic.is_error());
        assert_eq!(diagnostic.label, "here");
        assert_eq!(diagnostic.notes.len(), 1);
        assert_eq!(diagnostic.help.as_deref(), Some("do it right"));
        assert_eq!(diagnostic.suggestion(), None);
        let suggesting = diagnostic.help("did you mean `real`?");
        assert_eq!(suggesting.suggestion(), Some("real"));
        assert!(!Diagnostic::warning("W1", Span::new(0, 0), "odd").is_error());
    }
}
