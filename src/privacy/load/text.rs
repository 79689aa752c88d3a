//! A data file as plain text: decompressed, without a byte order mark, and with
//! every line ending a line feed, so that lines can be counted.

use super::error::{LoadError, LoadErrorKind, Origin};
use flate2::read::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};
use std::path::Path;

const GZIP: [u8; 2] = [0x1f, 0x8b];
const UTF8_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];
const UTF16_MARKS: [[u8; 2]; 2] = [[0xff, 0xfe], [0xfe, 0xff]];

/// The text of a data file, gzipped (by its content, in one or more members) or not.
///
/// Errors: it cannot be read, is a directory, is empty, is UTF-16, or is named
/// `.gz` and is not gzip.
pub(super) fn open(path: &Path) -> Result<Lines<Box<dyn BufRead>>, LoadError> {
    let failed = |reason| read_error(path, reason);
    let mut file = File::open(path).map_err(|reason| LoadErrorKind::Unreadable {
        path: path.into(),
        reason,
    })?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Err(LoadErrorKind::Directory { path: path.into() }.into());
    }
    let start = take(&mut file, GZIP.len()).map_err(failed)?;
    if start.is_empty() {
        return Err(LoadErrorKind::Empty(Origin::File(path.into())).into());
    }
    let is_gzip = start == GZIP;
    if !is_gzip
        && path
            .extension()
            .is_some_and(|e| e.eq_ignore_ascii_case("gz"))
    {
        return Err(LoadErrorKind::NotGzip { path: path.into() }.into());
    }
    let whole = Cursor::new(start).chain(BufReader::new(file));
    let mut text: Box<dyn Read> = if is_gzip {
        Box::new(MultiGzDecoder::new(whole))
    } else {
        Box::new(whole)
    };
    let mut start = take(&mut text, UTF8_MARK.len()).map_err(failed)?;
    if start == UTF8_MARK {
        start.clear();
    } else if UTF16_MARKS.iter().any(|mark| start.starts_with(mark)) {
        return Err(LoadErrorKind::NotUtf8 { path: path.into() }.into());
    }
    let text: Box<dyn BufRead> = Box::new(BufReader::new(Cursor::new(start).chain(text)));
    Ok(Lines::new(text))
}

/// A failure to read on. A decoder's complaints about its input have kinds that a
/// file system does not use.
pub(super) fn read_error(path: &Path, reason: io::Error) -> LoadError {
    let path = path.to_path_buf();
    match reason.kind() {
        ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::UnexpectedEof => {
            LoadErrorKind::DamagedGzip { path }.into()
        }
        _ => LoadErrorKind::Unreadable { path, reason }.into(),
    }
}

/// The first `most` bytes, or all where there are fewer.
fn take(reader: &mut impl Read, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(most);
    reader.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Turns CR and CR LF into LF and drops line endings at the end of the text.
///
/// With that, a CSV record that ends before the text does is followed by exactly
/// one LF, whatever the file's line endings, which is what [`Lines::is_at_end`] is
/// for: the line on which a record starts follows from the line it ends on.
pub(super) struct Lines<R> {
    text: R,
    /// Line endings read and not yet passed on.
    held: u64,
    /// The last byte read was a CR.
    after_cr: bool,
    at_end: bool,
}

impl<R: BufRead> Lines<R> {
    fn new(text: R) -> Lines<R> {
        Lines {
            text,
            held: 0,
            after_cr: false,
            at_end: false,
        }
    }

    /// Whether the reader has been told that there is no more.
    pub(super) fn is_at_end(&self) -> bool {
        self.at_end
    }
}

impl<R: BufRead> Read for Lines<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        loop {
            let input = match self.text.fill_buf() {
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                input => input?,
            };
            if input.is_empty() {
                self.at_end = true;
                return Ok(0);
            }
            let (mut read, mut written) = (0, 0);
            while read < input.len() && written < out.len() {
                let byte = input[read];
                match byte {
                    b'\n' if self.after_cr => self.after_cr = false,
                    b'\n' => self.held += 1,
                    b'\r' => {
                        self.held += 1;
                        self.after_cr = true;
                    }
                    _ if self.held > 0 => {
                        self.held -= 1;
                        out[written] = b'\n';
                        written += 1;
                        continue;
                    }
                    _ => {
                        self.after_cr = false;
                        out[written] = byte;
                        written += 1;
                    }
                }
                read += 1;
            }
            self.text.consume(read);
            if written > 0 {
                return Ok(written);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_line_endings_become_line_feeds_whatever_the_buffers() {
        for (text, expected) in [
            ("a\r\nb\r\n", "a\nb"),
            ("a\rb\r\r", "a\nb"),
            ("\n\r\n\ra\n\n\r\r\nb", "\n\n\na\n\n\n\nb"),
            ("a\n\rb", "a\n\nb"),
            ("\r\n\n", ""),
            ("ab", "ab"),
        ] {
            for input in 1..5 {
                for output in 1..5 {
                    let mut lines = Lines::new(BufReader::with_capacity(input, text.as_bytes()));
                    let mut all = Vec::new();
                    let mut buffer = vec![0; output];
                    loop {
                        match lines.read(&mut buffer).unwrap() {
                            0 => break,
                            k => all.extend_from_slice(&buffer[..k]),
                        }
                    }
                    assert_eq!(String::from_utf8(all).unwrap(), expected, "{text:?}");
                    assert!(lines.is_at_end());
                }
            }
        }
    }
}
