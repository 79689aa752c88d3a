//! A data file as plain text: decompressed, and without a byte order mark.

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
pub(super) fn open(path: &Path) -> Result<Box<dyn BufRead>, LoadError> {
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
    Ok(Box::new(BufReader::new(Cursor::new(start).chain(text))))
}

/// An error while reading. The errors of a decoder about its input have kinds that a file system
/// does not use.
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
