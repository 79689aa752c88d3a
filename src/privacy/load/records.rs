//! A text as records: each line is one, read by itself.
//!
//! # Privacy
//!
//! A line ends with its line feed, whatever it contains, and is split into fields with no memory of
//! the lines before it. So the contents of one line cannot change how another is read. Where
//! records may span lines this is not so: see [`Records::new`].

use std::io::{self, BufRead, Read};
use std::ops::Range;

/// The length of the longest record, in bytes. A longer one is not held in memory.
pub(super) const LONGEST: usize = 1 << 24;

/// Reads one record at a time. Not `Debug`: it holds the record just read.
pub(super) struct Records<R> {
    text: R,
    multiline: bool,
    /// The record without its line ending. Fields in quotes have been unquoted in place.
    bytes: Vec<u8>,
    fields: Vec<Range<usize>>,
    fault: Option<Fault>,
    /// The line on which the record starts, counted from 1.
    line: u64,
    next_line: u64,
    spans_lines: bool,
    /// Whether, by the quotation marks so far, the next line is inside a field.
    inside_quotes: bool,
}

/// The reason why a record's fields cannot be separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// There is text between a closing quotation mark and the next comma; or, where records may
    /// span lines, a mark is inside a field without quotes.
    Quotation,
    /// A quotation mark opens a field that is not closed.
    Unclosed,
    /// More than [`LONGEST`] bytes.
    Length,
}

impl<R: BufRead> Records<R> {
    /// With `multiline`, a field in quotes may hold line feeds: a record continues for as long as
    /// its quotation marks do not pair up. A stray one then joins lines up to the next, or to the
    /// end of the text, so a record with a fault must stop the reading.
    pub fn new(text: R, multiline: bool) -> Records<R> {
        Records {
            text,
            multiline,
            bytes: Vec::new(),
            fields: Vec::new(),
            fault: None,
            line: 0,
            next_line: 1,
            spans_lines: false,
            inside_quotes: false,
        }
    }

    /// Reads the next record; returns false at the end of the text. What follows the last line feed
    /// is a line unless it is empty.
    pub fn read(&mut self) -> io::Result<bool> {
        self.bytes.clear();
        self.line = self.next_line;
        let mut is_open = false;
        loop {
            let start = self.bytes.len();
            let room = LONGEST + 1 - start;
            let mut text = (&mut self.text).take(room as u64);
            if text.read_until(b'\n', &mut self.bytes)? == 0 {
                break;
            }
            self.next_line += 1;
            is_open ^= has_odd_quotes(&self.bytes[start..]);
            if !(self.multiline && is_open) || self.bytes.len() > LONGEST {
                break;
            }
        }
        if self.next_line == self.line {
            return Ok(false);
        }
        let is_ended = self.bytes.last() == Some(&b'\n');
        let is_cut = self.bytes.len() > LONGEST && !is_ended;
        if is_cut {
            self.text.skip_until(b'\n')?;
        }
        if is_ended {
            self.bytes.pop();
        }
        if self.bytes.last() == Some(&b'\r') {
            self.bytes.pop();
        }
        self.split();
        if is_cut {
            self.fault = Some(Fault::Length);
            // The field continues beyond the cut.
            self.fields.pop();
        }
        self.spans_lines = if self.multiline {
            self.next_line - self.line > 1
        } else {
            is_open && !self.inside_quotes
        };
        self.inside_quotes ^= is_open;
        Ok(true)
    }

    /// Whether the record just read is the last of the text.
    pub fn is_last(&mut self) -> io::Result<bool> {
        Ok(self.text.fill_buf()?.is_empty())
    }

    /// The fields; those before the fault if the record has one.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.fields.iter().map(|field| &self.bytes[field.clone()])
    }

    pub fn field(&self, number: usize) -> Option<&[u8]> {
        self.fields.get(number).map(|f| &self.bytes[f.clone()])
    }

    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    pub fn is_blank(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Whether the record has carriage returns other than before a line feed. A file whose lines
    /// end with them is a single line.
    pub fn has_carriage_returns(&self) -> bool {
        let ends = |pair: &[u8]| pair[0] == b'\r' && pair[1] != b'\n';
        self.bytes.windows(2).any(ends) || self.bytes.last() == Some(&b'\r')
    }

    /// The line on which the record just read starts, counted from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Whether the record spans several lines; where each line is a record, whether one that spans
    /// lines would start here, by the quotation marks so far.
    pub fn spans_lines(&self) -> bool {
        self.spans_lines
    }

    /// A field that begins with a quotation mark has one at its end too, and `""` inside for
    /// each of its own. In other fields a mark is an ordinary character, unless records may span
    /// lines: then such a mark makes it uncertain where the record ends.
    fn split(&mut self) {
        let multiline = self.multiline;
        let bytes = &mut self.bytes;
        self.fields.clear();
        self.fault = Some(Fault::Quotation);
        let mut at = 0;
        loop {
            let (field, end) = if bytes.get(at) == Some(&b'"') {
                match unquote(bytes, at + 1) {
                    Some(found) => found,
                    None => {
                        self.fault = Some(Fault::Unclosed);
                        return;
                    }
                }
            } else {
                let rest = &bytes[at..];
                let ends = |&b: &u8| b == b',' || multiline && b == b'"';
                let length = rest.iter().position(ends);
                let end = at + length.unwrap_or(rest.len());
                (at..end, end)
            };
            match bytes.get(end) {
                None | Some(b',') => self.fields.push(field),
                Some(_) => return,
            }
            if end == bytes.len() {
                self.fault = None;
                return;
            }
            at = end + 1;
        }
    }
}

/// The field that starts after an opening quotation mark, unquoted in place, and the end of its
/// source text. `None` if it is not closed.
fn unquote(bytes: &mut [u8], start: usize) -> Option<(Range<usize>, usize)> {
    let (mut read, mut written) = (start, start);
    loop {
        let byte = *bytes.get(read)?;
        read += 1;
        if byte == b'"' {
            if bytes.get(read) != Some(&b'"') {
                return Some((start..written, read));
            }
            read += 1;
        }
        bytes[written] = byte;
        written += 1;
    }
}

fn has_odd_quotes(bytes: &[u8]) -> bool {
    // Most lines have none, which is quick to find out.
    bytes.contains(&b'"') && bytes.iter().filter(|&&b| b == b'"').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    type Found = (u64, Vec<String>, Option<Fault>, bool);

    fn all(text: &[u8], multiline: bool, buffer: usize) -> Vec<Found> {
        let mut records = Records::new(BufReader::with_capacity(buffer, text), multiline);
        let mut found = Vec::new();
        while records.read().unwrap() {
            let fields = records.fields().map(|f| String::from_utf8_lossy(f).into());
            let fields = fields.collect();
            found.push((
                records.line(),
                fields,
                records.fault(),
                records.spans_lines(),
            ));
        }
        assert!(!records.read().unwrap());
        found
    }

    fn one(text: &str) -> (Vec<String>, Option<Fault>) {
        let mut found = all(text.as_bytes(), false, 64);
        assert_eq!(found.len(), 1, "{text:?}");
        let (_, fields, fault, _) = found.remove(0);
        (fields, fault)
    }

    #[test]
    fn a_line_ends_at_a_line_feed_whatever_the_buffer() {
        for buffer in 1..6 {
            let lines = |text: &str| -> Vec<(u64, String)> {
                let found = all(text.as_bytes(), false, buffer).into_iter();
                found.map(|(line, f, ..)| (line, f.join("|"))).collect()
            };
            for (text, expected) in [
                ("", &[][..]),
                ("\n", &[(1, "")]),
                ("a,b\nc", &[(1, "a|b"), (2, "c")]),
                ("a\r\nb\r\n", &[(1, "a"), (2, "b")]),
                ("a\n\n\r\n", &[(1, "a"), (2, ""), (3, "")]),
                ("a\rb\n\rc\r\r\nd", &[(1, "a\rb"), (2, "\rc\r"), (3, "d")]),
                ("a\r", &[(1, "a")]),
                ("\"a\nb\"", &[(1, ""), (2, "b\"")]),
            ] {
                let expected: Vec<_> = expected.iter().map(|(l, s)| (*l, s.to_string())).collect();
                assert_eq!(lines(text), expected, "{text:?}");
            }
        }
    }

    #[test]
    fn quotes_are_around_whole_fields_or_a_fault() {
        for (text, fields, is_whole) in [
            (",", &["", ""][..], true),
            ("\"\",\"a, b\",c", &["", "a, b", "c"], true),
            ("\"a \"\"b\"\"\",\"\"\"\"", &["a \"b\"", "\""], true),
            (" a\0,\u{feff}b", &[" a\0", "\u{feff}b"], true),
            ("1,2\",3", &["1", "2\"", "3"], true),
            ("1, \"2\",3", &["1", " \"2\"", "3"], true),
            ("1,\"2", &["1"], false),
            ("1,\"2\"\"", &["1"], false),
            ("1,\"", &["1"], false),
            ("1,\"2\"3,4", &["1"], false),
            ("1,\"2\" ,4", &["1"], false),
        ] {
            let fault = if is_whole {
                None
            } else if text.ends_with('4') {
                Some(Fault::Quotation)
            } else {
                Some(Fault::Unclosed)
            };
            let fields = fields.iter().map(|f| f.to_string()).collect();
            assert_eq!(one(text), (fields, fault), "{text:?}");
        }
    }

    #[test]
    fn records_span_lines_where_they_may() {
        let text = b"a,\"b\r\nc\"\r\nd,\"\n\n\"\"\n\",e\nf\ng,\"h\n";
        let found = all(text, true, 3);
        let fields = |fields: &[&str]| fields.iter().map(|f| f.to_string()).collect::<Vec<_>>();
        assert_eq!(
            found,
            [
                (1, fields(&["a", "b\r\nc"]), None, true),
                (3, fields(&["d", "\n\n\"\n", "e"]), None, true),
                (7, fields(&["f"]), None, false),
                (8, fields(&["g"]), Some(Fault::Unclosed), false),
            ]
        );
        // Without it, the same records are found to begin at these lines.
        let found = all(text, false, 3).into_iter();
        let starts: Vec<u64> = found.filter(|f| f.3).map(|f| f.0).collect();
        assert_eq!(starts, [1, 3, 8]);
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_one_is_not() {
        for (length, fault) in [(LONGEST, None), (LONGEST + 1, Some(Fault::Length))] {
            let mut text = b"1,2,".to_vec();
            text.resize(length, b'x');
            text.extend(b"\n3,4\n");
            let found = all(&text, false, 1 << 16);
            assert_eq!(found.len(), 2);
            assert_eq!(found[0].1[..2], ["1", "2"]);
            assert_eq!(found[0].1.len(), if fault.is_none() { 3 } else { 2 });
            assert_eq!(found[0].2, fault);
            assert_eq!(found[1].1, ["3", "4"]);
        }
        let mut open = b"1,\"".to_vec();
        let line = [&[b'x'; 9999][..], b"\n"].concat();
        open.extend(line.iter().cycle().take(LONGEST + LONGEST / 2));
        let found = all(&open, true, 1 << 16);
        assert!(found[0].2.is_some());
    }
}
