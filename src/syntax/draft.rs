//! The working copy of a source while it is being repaired.
//!
//! A parser that stops at the first mistake reports only one. This parser repairs the mistake in a
//! draft (inserts the missing `;`, or blanks the statement that cannot be read) and parses again.
//! The draft records its insertions, so that every place in it can be translated to a place in the
//! source.

use super::tree::Span;

/// A change to the draft; offsets are the draft's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Edit {
    /// Insert this mark at the offset.
    Insert(usize, &'static str),
    /// Write spaces over the span; line breaks stay.
    Blank(Span),
    /// Write this over the span, which is at least as long.
    Overwrite(Span, &'static str),
}

impl Edit {
    fn start(&self) -> usize {
        match self {
            Edit::Insert(offset, _) => *offset,
            Edit::Blank(span) | Edit::Overwrite(span, _) => span.start,
        }
    }
}

#[derive(Debug)]
pub(super) struct Draft {
    source: String,
    text: String,
    /// Offsets in `text` of the bytes that are not in the source, ascending.
    inserted: Vec<usize>,
}

impl Draft {
    pub(super) fn new(source: &str) -> Self {
        Draft {
            source: source.to_owned(),
            text: source.to_owned(),
            inserted: Vec::new(),
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The place in the source of an offset of the draft; of one inside what was written over a
    /// character, the place before that character.
    pub(super) fn to_source(&self, offset: usize) -> usize {
        self.source.floor_char_boundary(self.byte(offset))
    }

    /// The same of a span, which holds the characters that it begins or ends in.
    pub(super) fn span_to_source(&self, span: Span) -> Span {
        let start = self.to_source(span.start);
        if span.start == span.end {
            return Span::new(start, start);
        }
        let end = self.source.ceil_char_boundary(self.byte(span.end));
        Span::new(start, end)
    }

    fn byte(&self, offset: usize) -> usize {
        offset - self.inserted.partition_point(|&place| place < offset)
    }

    /// Applies edits that do not overlap. An edit that does not fit the text is
    /// left out.
    pub(super) fn apply(&mut self, mut edits: Vec<Edit>) {
        edits.sort_by_key(Edit::start);
        for edit in edits.into_iter().rev() {
            match edit {
                Edit::Insert(offset, mark) => self.insert(offset, mark),
                Edit::Blank(span) => self.overwrite(span, ""),
                Edit::Overwrite(span, mark) => self.overwrite(span, mark),
            }
        }
    }

    fn insert(&mut self, offset: usize, mark: &str) {
        if !self.text.is_char_boundary(offset) {
            return;
        }
        self.text.insert_str(offset, mark);
        let at = self.inserted.partition_point(|&place| place < offset);
        for place in &mut self.inserted[at..] {
            *place += mark.len();
        }
        self.inserted
            .splice(at..at, offset..offset + mark.len())
            .for_each(drop);
    }

    fn overwrite(&mut self, span: Span, mark: &str) {
        let Some(old) = self.text.get(span.range()) else {
            return;
        };
        if mark.len() > old.len() {
            return;
        }
        // One space for each byte: places after it must not move.
        let mut new = mark.to_owned();
        new.extend(old.bytes().skip(mark.len()).map(|byte| match byte {
            b'\n' | b'\r' => char::from(byte),
            _ => ' ',
        }));
        self.text.replace_range(span.range(), &new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_the_source_after_any_edits() {
        let mut draft = Draft::new("a = 1\nb = é 2");
        draft.apply(vec![
            Edit::Insert(5, ";"),
            Edit::Overwrite(Span::new(10, 12), "-"),
        ]);
        assert_eq!(draft.text(), "a = 1;\nb = -  2");
        assert_eq!(draft.to_source(5), 5);
        assert_eq!(draft.to_source(6), 5);
        assert_eq!(draft.to_source(7), 6);
        // A character is in a span or outside of it.
        assert_eq!(draft.span_to_source(Span::new(11, 12)), Span::new(10, 12));
        assert_eq!(draft.to_source(12), 10);
        draft.apply(vec![Edit::Insert(0, "{")]);
        assert_eq!(draft.text(), "{a = 1;\nb = -  2");
        assert_eq!(draft.to_source(1), 0);
        assert_eq!(draft.to_source(8), 6);
        assert_eq!(draft.to_source(16), 14);
    }

    #[test]
    fn blanking_keeps_lines_and_misfits_are_ignored() {
        let mut draft = Draft::new("ab\r\ncé");
        draft.apply(vec![Edit::Blank(Span::new(1, 5))]);
        assert_eq!(draft.text(), "a \r\n é");
        draft.apply(vec![
            Edit::Blank(Span::new(6, 7)),
            Edit::Blank(Span::new(5, 99)),
            Edit::Overwrite(Span::new(0, 1), "long"),
        ]);
        assert_eq!(draft.text(), "a \r\n é");
    }
}
