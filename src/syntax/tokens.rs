//! Words and marks of a source, and everything else in it.
//!
//! The grammar reads the program. This list exists for messages: it shows the tokens before and
//! after the place where the grammar gave up, which brackets belong together, and where a statement
//! begins and ends.

use super::diagnostic::Diagnostic;
use super::draft::Edit;
use super::tree::Span;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    Word,
    Number,
    Text,
    Mark,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
    pub(super) span: Span,
}

impl Token<'_> {
    pub(super) fn is(&self, text: &str) -> bool {
        self.kind != TokenKind::Text && self.text == text
    }
}

/// Text that is not a token, and how to continue.
pub(super) struct Problem {
    pub(super) diagnostic: Diagnostic,
    pub(super) edits: Vec<Edit>,
    /// Whether the statement around it cannot be repaired, so that nothing more is reported about
    /// it.
    pub(super) spoils_statement: bool,
    /// Whether something that was opened is not closed before the end of the file.
    pub(super) at_end: bool,
    /// Whether the rest of the file was removed, so that a missing closing mark is not reported.
    pub(super) cuts_rest: bool,
}

impl Problem {
    pub(super) fn new(diagnostic: Diagnostic, edits: Vec<Edit>) -> Self {
        Problem {
            diagnostic,
            edits,
            spoils_statement: true,
            at_end: false,
            cuts_rest: false,
        }
    }

    pub(super) fn mended(diagnostic: Diagnostic, edit: Edit) -> Self {
        Problem {
            spoils_statement: false,
            ..Problem::new(diagnostic, vec![edit])
        }
    }
}

/// All tokens without comments, and all problems.
pub(super) fn tokens(text: &str) -> (Vec<Token<'_>>, Vec<Problem>) {
    first_tokens(text, usize::MAX)
}

/// The first `most` tokens, and the problems before them.
pub(super) fn first_tokens(text: &str, most: usize) -> (Vec<Token<'_>>, Vec<Problem>) {
    let mut scan = Scan {
        text,
        at: 0,
        tokens: Vec::new(),
        problems: Vec::new(),
    };
    while scan.at < text.len() && scan.tokens.len() < most {
        scan.step();
    }
    (scan.tokens, scan.problems)
}

/// The length of the longest mark with which the text begins.
fn mark_length(rest: &[u8]) -> Option<usize> {
    let second = rest.get(1).copied().unwrap_or(0);
    let third = rest.get(2).copied().unwrap_or(0);
    let length = match (*rest.first()?, second, third) {
        (b'%', b'/', b'%') | (b'.', b'*' | b'/', b'=') => 3,
        (b'|', b'|', _) | (b'&', b'&', _) | (b'.', b'*' | b'/' | b'^', _) => 2,
        (b'=' | b'!' | b'<' | b'>' | b'+' | b'-' | b'*' | b'/', b'=', _) => 2,
        (first, _, _) if b"{}()[]<>,;|?:!+-*/%\\^'=~".contains(&first) => 1,
        _ => return None,
    };
    Some(length)
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
    tokens: Vec<Token<'a>>,
    problems: Vec<Problem>,
}

impl<'a> Scan<'a> {
    fn step(&mut self) {
        let rest = &self.text[self.at..];
        let bytes = rest.as_bytes();
        let Some(first) = rest.chars().next() else {
            return;
        };
        let digit_at = |place: usize| bytes.get(place).is_some_and(u8::is_ascii_digit);
        if matches!(first, ' ' | '\t' | '\r' | '\n' | '\u{0C}' | '\u{FEFF}') {
            self.at += first.len_utf8();
        } else if rest.starts_with("//") {
            self.at += line_length(rest);
        } else if rest.starts_with("/*") {
            self.block_comment(rest);
        } else if first == '"' {
            self.string(rest);
        } else if is_word_byte(bytes[0]) && !digit_at(0) {
            self.push(TokenKind::Word, word_length(bytes));
        } else if digit_at(0) || (first == '.' && digit_at(1)) {
            self.number(bytes);
        } else if let Some(length) = mark_length(bytes) {
            self.push(TokenKind::Mark, length);
        } else if first == '#' {
            self.hash(rest);
        } else {
            self.unknown(first, rest);
        }
    }

    fn push(&mut self, kind: TokenKind, length: usize) {
        let span = Span::new(self.at, self.at + length);
        self.at = span.end;
        self.tokens.push(Token {
            kind,
            text: &self.text[span.range()],
            span,
        });
    }

    fn block_comment(&mut self, rest: &str) {
        if let Some(end) = rest[2..].find("*/") {
            self.at += end + 4;
            return;
        }
        let span = Span::new(self.at, self.at + 2);
        let whole = Span::new(self.at, self.text.len());
        self.at = self.text.len();
        let diagnostic = Diagnostic::error("S004", span, "this comment never ends")
            .label("opened here, and everything after it is comment")
            .help("close it with `*/`, or write `//` for a comment of one line");
        self.problems.push(Problem {
            cuts_rest: true,
            ..Problem::mended(diagnostic, Edit::Blank(whole))
        });
    }

    fn string(&mut self, rest: &str) {
        let end = rest[1..].find(['"', '\n', '\r']).map(|end| end + 1);
        if let Some(end) = end.filter(|&end| rest[end..].starts_with('"')) {
            self.push(TokenKind::Text, end + 1);
            return;
        }
        let line = end.unwrap_or(rest.len());
        // `print("text);`: the end of the statement was hardly meant as text.
        let meant = rest[..line].trim_end_matches([' ', '\t', ';', ')']).len();
        let span = Span::new(self.at, self.at + meant.max(1));
        self.at += line;
        self.problems.push(Problem::mended(
            Diagnostic::error("S004", span, "this text never ends")
                .label("opened here, and no `\"` follows on the line")
                .help("close it with `\"` on the same line"),
            Edit::Insert(span.end, "\""),
        ));
    }

    fn number(&mut self, bytes: &[u8]) {
        let length = number_length(bytes);
        let letters = word_length(&bytes[length..]);
        if letters == 0 {
            self.push(TokenKind::Number, length);
            return;
        }
        let span = Span::new(self.at, self.at + length + letters);
        let written = &self.text[span.range()];
        let (number, word) = written.split_at(length);
        let (label, help) = if word.starts_with('_') {
            (
                "this underscore is not between digits",
                "write it as in `1_000`".to_owned(),
            )
        } else if number == "0" && word.starts_with(['x', 'b', 'o']) {
            ("not a decimal number", "numbers are decimal".to_owned())
        } else {
            (
                "a digit and a letter run together",
                format!("for a product write `{number} * {word}`; names begin with a letter"),
            )
        };
        self.problems.push(Problem::new(
            Diagnostic::error(
                "S004",
                span,
                format!("`{written}` is neither a number nor a name"),
            )
            .label(label)
            .help(help),
            vec![Edit::Blank(span)],
        ));
        self.at = span.end;
    }

    fn hash(&mut self, rest: &str) {
        let line = rest[..line_length(rest)].trim_end();
        let span = Span::new(self.at, self.at + line.len());
        self.at = span.end;
        let diagnostic = if line.starts_with("#include") {
            Diagnostic::error("S007", span, "there is no `#include` in dpm")
                .label("a dpm program is one file")
                .help("copy the text of the included file to this place")
        } else {
            Diagnostic::error(
                "S007",
                Span::new(span.start, span.start + 1),
                "comments begin with `//`, not with `#`",
            )
            .label("not a mark of the language")
            .help("write `//`")
        };
        self.problems
            .push(Problem::mended(diagnostic, Edit::Blank(span)));
    }

    fn unknown(&mut self, first: char, rest: &str) {
        let length = if first == '&' {
            1
        } else {
            // A run of the same unknown character is one mistake.
            rest.chars()
                .take_while(|&c| c == first)
                .map(char::len_utf8)
                .sum()
        };
        let span = Span::new(self.at, self.at + length);
        self.at = span.end;
        let written = &self.text[span.range()];
        let shown = if first.is_control() || first.is_whitespace() {
            format!("U+{:04X}", u32::from(first))
        } else {
            format!("`{written}`")
        };
        let diagnostic = Diagnostic::error(
            "S004",
            span,
            format!("{shown} is not a mark of the language"),
        )
        .label("not allowed here");
        let advice = match meant(first) {
            Some(_) if written.len() > 1 && first == '.' => Some((
                "a range is written `a:b`, and there are no other dots",
                false,
            )),
            advice => advice,
        };
        let problem = match advice {
            Some((mark, true)) => Problem::mended(
                diagnostic.help(format!("write `{mark}`")),
                Edit::Overwrite(span, mark),
            ),
            Some((hint, false)) => Problem::new(diagnostic.help(hint), vec![Edit::Blank(span)]),
            None if first.is_whitespace() => Problem::mended(
                diagnostic.help("write an ordinary space"),
                Edit::Blank(span),
            ),
            None => Problem::new(diagnostic, vec![Edit::Blank(span)]),
        };
        self.problems.push(problem);
    }
}

/// The meaning of a character that is not in the language: a mark to replace it (`true`), or
/// advice.
fn meant(character: char) -> Option<(&'static str, bool)> {
    Some(match character {
        '\u{2212}' | '\u{2013}' | '\u{2014}' => ("-", true),
        '\u{00D7}' | '\u{00B7}' | '\u{22C5}' => ("*", true),
        '\u{2264}' => ("<=", true),
        '\u{2265}' => (">=", true),
        '\u{2260}' => ("!=", true),
        '\u{2019}' => ("'", true),
        '\u{201C}' | '\u{201D}' | '\u{201E}' => ("text goes between straight quotes, `\"`", false),
        '&' => ("`&&` is the logical and", false),
        '.' => ("names have no dots: write `_`", false),
        '$' | '@' => ("names are letters, digits and `_`", false),
        letter if letter.is_alphabetic() => (
            "names are the letters a to z and A to Z, digits and `_`",
            false,
        ),
        _ => return None,
    })
}

fn line_length(rest: &str) -> usize {
    rest.find(['\n', '\r']).unwrap_or(rest.len())
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn word_length(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| is_word_byte(**byte)).count()
}

/// The longest prefix that the grammar's `real` or `integer` takes.
fn number_length(bytes: &[u8]) -> usize {
    let digits = |from: usize| {
        let mut end = from;
        while bytes.get(end).is_some_and(u8::is_ascii_digit)
            || (end > from
                && bytes.get(end) == Some(&b'_')
                && bytes.get(end + 1).is_some_and(u8::is_ascii_digit))
        {
            end += 1;
        }
        end
    };
    let mut end = digits(0);
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let after = digits(end + 1 + sign);
        if after > end + 1 + sign {
            end = after;
        }
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str) -> Vec<&str> {
        let (tokens, problems) = tokens(source);
        assert!(problems.is_empty(), "{source}");
        tokens.iter().map(|token| token.text).collect()
    }

    fn only_problem(source: &str) -> (String, Option<String>) {
        let (_, mut problems) = tokens(source);
        assert_eq!(problems.len(), 1, "{source}");
        let problem = problems.remove(0);
        (problem.diagnostic.message, problem.diagnostic.help)
    }

    #[test]
    fn words_numbers_and_marks() {
        assert_eq!(texts("y ~ normal(x[1:2]', 0);").len(), 15);
        assert_eq!(
            texts("1_000 1. .5 1e-3 1.5E+10 2.*x"),
            ["1_000", "1.", ".5", "1e-3", "1.5E+10", "2.", "*", "x"]
        );
        assert_eq!(texts("a .*= b%/%c"), ["a", ".*=", "b", "%/%", "c"]);
        assert_eq!(texts("a // b \"\n/* c \" */ \"// d\""), ["a", "\"// d\""]);
    }

    #[test]
    fn strangers_are_named() {
        assert_eq!(only_problem("a /* b").0, "this comment never ends");
        assert_eq!(only_problem("print(\"a);\nb").0, "this text never ends");
        assert_eq!(only_problem("# note").1.as_deref(), Some("write `//`"));
        assert!(only_problem("#include <a>").0.contains("#include"));
        assert_eq!(only_problem("a \u{2212} b").1.as_deref(), Some("write `-`"));
        assert_eq!(
            only_problem("a @@ b").0,
            "`@@` is not a mark of the language"
        );
        assert_eq!(
            only_problem("a\u{A0}b").0,
            "U+00A0 is not a mark of the language"
        );
        assert!(
            only_problem("2x")
                .1
                .is_some_and(|help| help.contains("`2 * x`"))
        );
        assert!(only_problem("1_").0.contains("neither"));
    }
}
