//! Words and marks, and the comments and line breaks between them.

use super::super::tokens::{Token, tokens};

/// A source in pieces: only blanks are left out.
pub(super) struct Source<'a> {
    pub(super) tokens: Vec<Token<'a>>,
    /// The place before each token, and last the one before the end of the file.
    pub(super) places: Vec<Place<'a>>,
}

#[derive(Debug, Default)]
pub(super) struct Place<'a> {
    pub(super) comments: Vec<Comment<'a>>,
    /// Line breaks between the last comment, or the token before, and the token.
    pub(super) newlines: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Comment<'a> {
    pub(super) text: &'a str,
    /// The column in the source where it begins, in characters from zero.
    pub(super) column: usize,
    /// Line breaks between the previous token or comment and this comment.
    pub(super) newlines: usize,
    /// Its position relative to the tokens around it.
    pub(super) position: Position,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// At the end of the line of the token before.
    Trailing,
    /// On the line below a trailing comment, and in its column: its second line.
    Continuation,
    /// On a line of its own.
    OwnLine,
    /// In front of the token, on its line.
    Inline,
}

impl Comment<'_> {
    /// `//`, to the end of the line.
    pub(super) fn is_line(&self) -> bool {
        self.text.starts_with("//")
    }

    /// The text without the blanks at both ends of each line.
    pub(super) fn words(&self) -> String {
        let lines: Vec<&str> = lines(self.text).map(str::trim).collect();
        lines.join("\n")
    }
}

/// The lines of a text, with any line endings.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split('\n')
        .map(|line| line.strip_suffix('\r').unwrap_or(line))
        .flat_map(|line| line.split('\r'))
}

impl<'a> Source<'a> {
    /// Reads a source in which all words and marks belong to the language.
    pub(super) fn read(text: &'a str) -> Source<'a> {
        let (tokens, _) = tokens(text);
        let mut places = Vec::with_capacity(tokens.len() + 1);
        let mut columns = Columns::of(text);
        let mut at = 0;
        let ends = tokens.iter().map(|token| token.span.start);
        for (index, end) in ends.chain([text.len()]).enumerate() {
            let (first, last) = (index == 0, index == tokens.len());
            let mut place = place(text, at, end, &mut columns);
            position(&mut place, first, last);
            places.push(place);
            at = tokens.get(index).map_or(end, |token| token.span.end);
        }
        Source { tokens, places }
    }
}

/// The place `text[start..end]` between two tokens.
fn place<'a>(text: &'a str, start: usize, end: usize, columns: &mut Columns<'a>) -> Place<'a> {
    let mut found = Place::default();
    let mut at = start;
    while at < end {
        let rest = &text[at..end];
        if rest.starts_with("//") || rest.starts_with("/*") {
            let length = if rest.starts_with("//") {
                rest.find(['\n', '\r'])
            } else {
                rest[2..].find("*/").map(|end| end + 4)
            };
            let comment = &rest[..length.unwrap_or(rest.len())];
            found.comments.push(Comment {
                text: comment,
                column: columns.at(at),
                newlines: std::mem::take(&mut found.newlines),
                position: Position::Inline,
            });
            at += comment.len();
        } else if rest.starts_with("\r\n") {
            found.newlines += 1;
            at += 2;
        } else {
            found.newlines += usize::from(rest.starts_with(['\n', '\r']));
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    found
}

fn position(place: &mut Place<'_>, first: bool, last: bool) {
    let breaks: Vec<usize> = place.comments.iter().map(|c| c.newlines).collect();
    let after = |index: usize| match breaks.get(index + 1) {
        Some(&newlines) => newlines,
        None => place.newlines + usize::from(last),
    };
    // The comments on the line of the token before, if that line ends with them.
    let mut trailing = breaks.iter().take_while(|&&newlines| newlines == 0).count();
    if first || trailing > 0 && after(trailing - 1) == 0 {
        trailing = 0;
    }
    let mut positions = vec![Position::Trailing; trailing];
    for index in trailing..breaks.len() {
        let comment = &place.comments[index];
        let continues = index > 0 && breaks[index] == 1 && {
            let before = &place.comments[index - 1];
            let aligned = before.column == comment.column;
            let trails = matches!(
                positions[index - 1],
                Position::Trailing | Position::Continuation
            );
            aligned && trails && before.is_line() && comment.is_line()
        };
        positions.push(if continues {
            Position::Continuation
        } else if after(index) > 0 {
            Position::OwnLine
        } else {
            Position::Inline
        });
    }
    for (comment, position) in place.comments.iter_mut().zip(positions) {
        comment.position = position;
    }
}

/// The columns of places, which must be queried in ascending order.
struct Columns<'a> {
    text: &'a str,
    at: usize,
    column: usize,
}

impl<'a> Columns<'a> {
    fn of(text: &'a str) -> Self {
        Columns {
            text,
            at: 0,
            column: 0,
        }
    }

    fn at(&mut self, place: usize) -> usize {
        let between = &self.text[self.at..place];
        let line = match between.rfind(['\n', '\r']) {
            Some(end) => {
                self.column = 0;
                &between[end + 1..]
            }
            None => between,
        };
        self.column += line.chars().filter(|&c| c != '\u{FEFF}').count();
        self.at = place;
        self.column
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(text: &str) -> Vec<Vec<Position>> {
        let source = Source::read(text);
        let positions = |place: &Place<'_>| place.comments.iter().map(|c| c.position).collect();
        source.places.iter().map(positions).collect()
    }

    #[test]
    fn comments_have_positions() {
        use Position::*;
        assert_eq!(
            positions("// 0\na /* 1 */ b // 2\n/* 3 */ c /* 4 */ // 5\n// 6\n\n// 7"),
            [
                vec![OwnLine],
                vec![Inline],
                vec![Trailing, Inline],
                vec![Trailing, Trailing, OwnLine, OwnLine]
            ]
        );
        assert_eq!(
            positions("a; // b\n   // c\n   // d\n// e\nf"),
            [
                vec![],
                vec![],
                vec![Trailing, Continuation, Continuation, OwnLine],
                vec![]
            ]
        );
    }

    #[test]
    fn any_line_end_is_one_line_end() {
        for end in ["\n", "\r\n", "\r"] {
            let text = format!("a{end}{end}// b{end}c");
            let source = Source::read(&text);
            assert_eq!(source.places[1].comments[0].newlines, 2);
            assert_eq!(source.places[1].newlines, 1);
            assert_eq!(source.places[1].comments[0].text, "// b");
        }
    }
}
