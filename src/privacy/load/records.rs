//! A text as records: each line is one, read by itself.
//!
//! # Privacy
//!
//! A line ends with its line feed, whatever it contains, and is split into fields with no memory of
//! the lines before it. So the contents of one line cannot change how another is read. Where
//! records may span lines this is not so: see [`Records::new`].

use memchr::{memchr, memchr_iter, memchr2, memchr2_iter};
use std::io::{self, ErrorKind, Read};
use std::ops::Range;

/// The length of the longest record, in bytes. A longer one is not held in memory.
pub(super) const LONGEST: usize = 1 << 24;

/// The room for text that is read ahead, in bytes; more where a record needs it.
const AHEAD: usize = 1 << 17;

/// Reads one record at a time. Not `Debug`: it holds the record just read.
pub(super) struct Records<R> {
    text: R,
    multiline: bool,
    /// The record just read, and text that has been read ahead.
    buffer: Vec<u8>,
    /// The record's place in the buffer, without its line ending. Fields in quotes have been
    /// unquoted in place.
    record: Range<usize>,
    /// The place in the buffer of the text that follows the record.
    ahead: Range<usize>,
    /// Counted from the record's start.
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

impl<R: Read> Records<R> {
    /// With `multiline`, a field in quotes may hold line feeds: a record continues for as long as
    /// its quotation marks do not pair up. A stray one then joins lines up to the next, or to the
    /// end of the text, so a record with a fault must stop the reading.
    pub fn new(text: R, multiline: bool) -> Records<R> {
        Records {
            text,
            multiline,
            buffer: vec![0; AHEAD],
            record: 0..0,
            ahead: 0..0,
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
        self.record = self.ahead.start..self.ahead.start;
        self.line = self.next_line;
        let mut is_open = false;
        loop {
            let read = self.read_line()?;
            if read == 0 {
                break;
            }
            self.next_line += 1;
            if !self.multiline {
                break;
            }
            is_open ^= has_odd_quotes(&self.buffer[self.record.end - read..self.record.end]);
            if !is_open || self.record.len() > LONGEST {
                break;
            }
        }
        if self.next_line == self.line {
            return Ok(false);
        }
        let is_ended = self.bytes().last() == Some(&b'\n');
        let is_cut = self.record.len() > LONGEST && !is_ended;
        if is_cut {
            self.skip_line()?;
        }
        if is_ended {
            self.record.end -= 1;
        }
        if self.bytes().last() == Some(&b'\r') {
            self.record.end -= 1;
        }
        if !self.split_at_commas() {
            is_open = has_odd_quotes(self.bytes());
            self.split();
        }
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

    /// Extends the record by the next line, with its line feed, or by as much of it as a record may
    /// hold. Returns how many bytes that is: none at the end of the text.
    fn read_line(&mut self) -> io::Result<usize> {
        let room = LONGEST + 1 - self.record.len();
        let mut length = 0;
        loop {
            let known = self.ahead.len().min(room);
            let unseen = &self.buffer[self.ahead.start + length..self.ahead.start + known];
            let found = memchr(b'\n', unseen);
            length = found.map_or(known, |at| length + at + 1);
            if found.is_some() || length == room || !self.read_ahead()? {
                self.ahead.start += length;
                self.record.end += length;
                return Ok(length);
            }
        }
    }

    /// Drops the text up to the next line feed, and that.
    fn skip_line(&mut self) -> io::Result<()> {
        loop {
            if let Some(at) = memchr(b'\n', &self.buffer[self.ahead.clone()]) {
                self.ahead.start += at + 1;
                return Ok(());
            }
            self.ahead = self.record.end..self.record.end;
            if !self.read_ahead()? {
                return Ok(());
            }
        }
    }

    /// Reads more of the text; returns false at its end.
    fn read_ahead(&mut self) -> io::Result<bool> {
        let moved = self.record.start;
        if moved > 0 {
            self.buffer.copy_within(moved..self.ahead.end, 0);
            self.record = 0..self.record.end - moved;
            self.ahead = self.ahead.start - moved..self.ahead.end - moved;
        }
        if self.ahead.end == self.buffer.len() {
            self.buffer.resize(2 * self.buffer.len(), 0);
        }
        loop {
            match self.text.read(&mut self.buffer[self.ahead.end..]) {
                Err(reason) if reason.kind() == ErrorKind::Interrupted => {}
                read => {
                    let read = read?;
                    self.ahead.end += read;
                    return Ok(read > 0);
                }
            }
        }
    }

    /// Whether the record just read is the last of the text.
    pub fn is_last(&mut self) -> io::Result<bool> {
        Ok(self.ahead.is_empty() && !self.read_ahead()?)
    }

    /// The fields; those before the fault if the record has one.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        let bytes = self.bytes();
        self.fields.iter().map(|field| &bytes[field.clone()])
    }

    pub fn field(&self, number: usize) -> Option<&[u8]> {
        self.fields.get(number).map(|f| &self.bytes()[f.clone()])
    }

    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    pub fn is_blank(&self) -> bool {
        self.record.is_empty()
    }

    /// Whether the record has carriage returns other than before a line feed. A file whose lines
    /// end with them is a single line.
    pub fn has_carriage_returns(&self) -> bool {
        let ends = |pair: &[u8]| pair[0] == b'\r' && pair[1] != b'\n';
        self.bytes().windows(2).any(ends) || self.bytes().last() == Some(&b'\r')
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

    fn bytes(&self) -> &[u8] {
        &self.buffer[self.record.clone()]
    }

    /// Splits a record without quotation marks, as most are; false if there is one.
    fn split_at_commas(&mut self) -> bool {
        let bytes = &self.buffer[self.record.clone()];
        self.fault = None;
        self.fields.clear();
        let mut at = 0;
        for found in memchr2_iter(b',', b'"', bytes) {
            if bytes[found] == b'"' {
                return false;
            }
            self.fields.push(at..found);
            at = found + 1;
        }
        self.fields.push(at..bytes.len());
        true
    }

    /// A field that begins with a quotation mark has one at its end too, and `""` inside for
    /// each of its own. In other fields a mark is an ordinary character, unless records may span
    /// lines: then such a mark makes it uncertain where the record ends.
    fn split(&mut self) {
        let multiline = self.multiline;
        let bytes = &mut self.buffer[self.record.clone()];
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
                let length = if multiline {
                    memchr2(b',', b'"', rest)
                } else {
                    memchr(b',', rest)
                };
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
        let mark = read + memchr(b'"', &bytes[read..])?;
        bytes.copy_within(read..mark, written);
        written += mark - read;
        if bytes.get(mark + 1) != Some(&b'"') {
            return Some((start..written, mark + 1));
        }
        bytes[written] = b'"';
        written += 1;
        read = mark + 2;
    }
}

fn has_odd_quotes(bytes: &[u8]) -> bool {
    memchr_iter(b'"', bytes).count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    /// Gives a text so many bytes at a time, and is interrupted before each.
    struct Pieces<'a> {
        text: &'a [u8],
        most: usize,
        interrupted: bool,
    }

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.interrupted ^= true;
            if self.interrupted {
                return Err(ErrorKind::Interrupted.into());
            }
            let most = self.most.min(buffer.len());
            self.text.read(&mut buffer[..most])
        }
    }

    type Found = (u64, Vec<String>, Option<Fault>, bool);

    fn all(text: &[u8], multiline: bool, most: usize) -> Vec<Found> {
        let text = Pieces {
            text,
            most,
            interrupted: false,
        };
        let mut records = Records::new(text, multiline);
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
    fn a_line_ends_at_a_line_feed_however_it_is_read() {
        for most in 1..6 {
            let lines = |text: &str| -> Vec<(u64, String)> {
                let found = all(text.as_bytes(), false, most).into_iter();
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
        // A cut line leaves no trace, wherever it begins.
        let long = vec![b'x'; 2 * LONGEST + 100];
        for before in ["", "1,2\n"] {
            let text = [before.as_bytes(), &long, b"\n3,4"].concat();
            let found = all(&text, false, 1 << 20);
            assert_eq!(found.len(), 2 + before.len() / 4);
            assert_eq!(found.iter().filter(|f| f.2.is_some()).count(), 1);
            assert_eq!(found.last().unwrap().1, ["3", "4"]);
        }
        let mut open = b"1,\"".to_vec();
        let line = [&[b'x'; 9999][..], b"\n"].concat();
        open.extend(line.iter().cycle().take(LONGEST + LONGEST / 2));
        let found = all(&open, true, 1 << 16);
        assert!(found[0].2.is_some());
    }

    /// More text than is read ahead, in lines of any bytes.
    #[test]
    fn a_line_is_read_as_if_it_were_alone() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut lines: Vec<Vec<u8>> = Vec::new();
        for _ in 0..20_000 {
            let length = if random.random_range(0..2000) == 0 {
                random.random_range(0..2 * AHEAD)
            } else {
                random.random_range(0..60)
            };
            let byte = |_| b"01.-,,,\"\"\r x\0\xff"[random.random_range(0..14)];
            let mut line: Vec<u8> = (0..length).map(byte).collect();
            if random.random_range(0..2) == 0 {
                line.retain(|&byte| byte != b'"');
            }
            lines.push(line);
        }
        let text = lines.join(&b'\n');
        assert!(text.len() > 5 * AHEAD);
        for most in [1000, AHEAD, usize::MAX] {
            let found = all(&text, false, most);
            assert_eq!(
                found.len(),
                lines.len() - usize::from(lines.last() == Some(&vec![]))
            );
            for (number, (line, fields, fault, _)) in (1..).zip(found) {
                let text = &lines[number - 1];
                assert_eq!(line, number as u64);
                let Some((_, alone, fault_alone, _)) = all(text, false, usize::MAX).pop() else {
                    assert_eq!(fields, [""]);
                    continue;
                };
                assert_eq!((fields, fault), (alone, fault_alone), "{text:?}");
            }
        }
    }

    #[test]
    fn the_last_record_is_known_and_stays() {
        let long = "x".repeat(AHEAD);
        for (text, most) in [("a,\"b", 1), ("\"c\"\"\"\na,\"b\n", 2), (&long, AHEAD)] {
            let text = Pieces {
                text: text.as_bytes(),
                most,
                interrupted: false,
            };
            let mut records = Records::new(text, false);
            let mut last = Vec::new();
            while records.read().unwrap() {
                let before: Vec<Vec<u8>> = records.fields().map(<[u8]>::to_vec).collect();
                last.push(records.is_last().unwrap());
                assert!(records.fields().eq(&before));
            }
            assert_eq!(last.pop(), Some(true));
            assert!(last.iter().all(|is_last| !is_last));
        }
    }
}
