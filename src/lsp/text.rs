//! Positions in a text: bytes here, lines and code units in the protocol.

/// The units in which an editor counts within a line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    /// The encoding of an editor that names none.
    #[default]
    Utf16,
    Utf32,
}

impl Encoding {
    fn length(self, c: char) -> usize {
        match self {
            Encoding::Utf8 => c.len_utf8(),
            Encoding::Utf16 => c.len_utf16(),
            Encoding::Utf32 => 1,
        }
    }
}

/// A text whose lines are known.
pub(super) struct Text {
    pub source: String,
    /// The first byte of each line.
    lines: Vec<usize>,
}

impl Text {
    pub fn new(source: String) -> Text {
        let mut lines = vec![0];
        let bytes = source.as_bytes();
        for (at, &byte) in bytes.iter().enumerate() {
            // As the protocol says: `\n`, `\r\n`, or `\r` alone.
            if byte == b'\n' || byte == b'\r' && bytes.get(at + 1) != Some(&b'\n') {
                lines.push(at + 1);
            }
        }
        Text { source, lines }
    }

    /// Line and column of a byte, both counted from 0.
    pub fn position(&self, offset: usize, encoding: Encoding) -> (u32, u32) {
        let offset = self.source.floor_char_boundary(offset);
        let line = self.lines.partition_point(|&start| start <= offset) - 1;
        let before = &self.source[self.lines[line]..offset];
        let column: usize = before.chars().map(|c| encoding.length(c)).sum();
        (number(line), number(column))
    }

    /// The byte at a line and column; past the end of a line is its end.
    pub fn offset(&self, line: u32, column: u32, encoding: Encoding) -> usize {
        let Some(&start) = self.lines.get(line as usize) else {
            return self.source.len();
        };
        let end = self.lines.get(line as usize + 1);
        let line = &self.source[start..end.copied().unwrap_or(self.source.len())];
        let mut left = column as usize;
        let mut offset = start;
        for c in line.trim_end_matches(['\r', '\n']).chars() {
            let length = encoding.length(c);
            if length > left {
                break;
            }
            left -= length;
            offset += c.len_utf8();
        }
        offset
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted_in_the_units_of_the_editor() {
        let text = Text::new("a\r\n\u{1F600}b\rc\n".to_owned());
        let b = text.source.find('b').expect("it is there");
        for (encoding, column) in [
            (Encoding::Utf8, 4),
            (Encoding::Utf16, 2),
            (Encoding::Utf32, 1),
        ] {
            assert_eq!(text.position(b, encoding), (1, column));
            assert_eq!(text.offset(1, column, encoding), b);
        }
        // Inside of the character, which is one.
        assert_eq!(text.offset(1, 1, Encoding::Utf16), 3);
        assert_eq!(text.position(4, Encoding::Utf16), (1, 0));
        assert_eq!(text.position(b + 2, Encoding::Utf16), (2, 0));
    }

    #[test]
    fn places_outside_of_the_text_are_its_ends() {
        let text = Text::new("ab\r\nc".to_owned());
        assert_eq!(text.offset(0, 99, Encoding::Utf16), 2);
        assert_eq!(text.offset(99, 0, Encoding::Utf16), 5);
        assert_eq!(text.position(99, Encoding::Utf16), (1, 1));
        assert_eq!(Text::new(String::new()).position(0, Encoding::Utf8), (0, 0));
    }
}
