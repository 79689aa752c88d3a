//! The kinds of the pieces of a program's text, for display in colours.

use super::tokens::{TokenKind, tokens};
use super::tree::Span;
use super::words::{is_reserved, is_type};

/// The kind of a piece of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    Comment,
    Keyword,
    Type,
    /// A function where it is called, or a distribution after `~`.
    Function,
    Number,
    Text,
    /// Marks, other names, space, and anything unknown to the language.
    Plain,
}

/// The whole text in pieces, in order. Any text is allowed: text that is not a program is plain.
pub fn pieces(source: &str) -> Vec<(Piece, Span)> {
    let (tokens, _) = tokens(source);
    let mut found = Vec::new();
    let mut end = 0;
    for (i, token) in tokens.iter().enumerate() {
        gap(source, Span::new(end, token.span.start), &mut found);
        end = token.span.end;
        let next = |text: &str| tokens.get(i + 1).is_some_and(|t| t.is(text));
        let after = |text: &str| i > 0 && tokens[i - 1].is(text);
        let piece = match token.kind {
            TokenKind::Number => Piece::Number,
            TokenKind::Text => Piece::Text,
            TokenKind::Mark => Piece::Plain,
            TokenKind::Word if is_type(token.text) => Piece::Type,
            TokenKind::Word if is_reserved(token.text) => Piece::Keyword,
            // They are words of the language only before or after these.
            TokenKind::Word if token.text == "transformed" && !next("=") => Piece::Keyword,
            TokenKind::Word if token.text == "generated" && next("quantities") => Piece::Keyword,
            TokenKind::Word if token.text == "quantities" && after("generated") => Piece::Keyword,
            TokenKind::Word if next("(") || after("~") => Piece::Function,
            TokenKind::Word => Piece::Plain,
        };
        found.push((piece, token.span));
    }
    gap(source, Span::new(end, source.len()), &mut found);
    found
}

/// The text between tokens: space, comments, and anything else.
fn gap(source: &str, span: Span, found: &mut Vec<(Piece, Span)>) {
    let mut at = span.start;
    while at < span.end {
        let rest = &source[at..span.end];
        let (piece, length) = if rest.starts_with("//") {
            (Piece::Comment, rest.find('\n').unwrap_or(rest.len()))
        } else if rest.starts_with("/*") {
            (
                Piece::Comment,
                rest.find("*/").map_or(rest.len(), |end| end + 2),
            )
        } else {
            // At least one character, so that the walk ends.
            let first = rest.chars().next().map_or(1, char::len_utf8);
            let comment = ["//", "/*"]
                .iter()
                .filter_map(|mark| rest[first..].find(mark))
                .min();
            (Piece::Plain, comment.map_or(rest.len(), |at| first + at))
        };
        found.push((piece, Span::new(at, at + length)));
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(source: &str) -> Vec<(Piece, &str)> {
        pieces(source)
            .into_iter()
            .filter(|(piece, _)| *piece != Piece::Plain)
            .map(|(piece, span)| (piece, &source[span.range()]))
            .collect()
    }

    #[test]
    fn a_program_in_pieces() {
        use Piece::*;
        assert_eq!(
            shown(
                "transformed record { // two /* of them\n real x = log1p(2.5e1); /* c */ y ~ normal(x, 1); }"
            ),
            [
                (Keyword, "transformed"),
                (Keyword, "record"),
                (Comment, "// two /* of them"),
                (Type, "real"),
                (Function, "log1p"),
                (Number, "2.5e1"),
                (Comment, "/* c */"),
                (Function, "normal"),
                (Number, "1"),
            ]
        );
    }

    // Wrong here: a report would show another program than the one that ran.
    #[test]
    fn the_pieces_are_the_whole_text_whatever_it_is() {
        for source in [
            "",
            "é/*never ended",
            "x = \"text // no comment\"; // \u{202e}é",
            "\"open\n#include <x>\n\u{0}§§ 12ab 1__2 /",
            "a/b//c\n*/ /**/ /* é */é",
        ] {
            let whole: String = pieces(source)
                .into_iter()
                .map(|(_, span)| &source[span.range()])
                .collect();
            assert_eq!(whole, source);
        }
    }
}
