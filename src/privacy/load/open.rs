//! Opens data files, and tells their formats by their content.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, IsTerminal, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::batches::Batches;
use super::error::{Format, LoadError, LoadErrorKind, Origin, read_error};

const UTF8_MARK: [u8; 3] = [0xef, 0xbb, 0xbf];
const UTF16_MARKS: [[u8; 2]; 2] = [[0xff, 0xfe], [0xfe, 0xff]];

/// The number of bytes at the beginning of a file that tell its format.
const START: usize = 8;

/// An open data file.
pub(super) enum Opened {
    Text {
        text: Box<dyn BufRead>,
        /// The format of which a fault is, where reading fails.
        packed: Option<Format>,
    },
    Batches(Format, Batches),
}

/// Opens a file, compressed (in one or more members) or not.
///
/// Errors: it cannot be read, is empty, is UTF-16, or is not what its name says.
pub(super) fn open(origin: &Origin) -> Result<Opened, LoadError> {
    let fail = |reason| read_error(origin, None, reason);
    let (mut bytes, file): (Box<dyn Read>, _) = match origin {
        Origin::File(path) => {
            let file = File::open(path).map_err(fail)?;
            let is_regular = file.metadata().map_err(fail)?.is_file();
            let again = is_regular.then(|| file.try_clone()).transpose();
            (Box::new(file), again.map_err(fail)?)
        }
        Origin::Input | Origin::Memory => {
            if io::stdin().is_terminal() {
                return Err(LoadErrorKind::Terminal.into());
            }
            (Box::new(io::stdin().lock()), None)
        }
    };
    let mut start = take(&mut bytes, START).map_err(fail)?;
    if start.is_empty() {
        return Err(LoadErrorKind::Empty(origin.clone()).into());
    }
    let packed = recognised(&start).filter(|f| matches!(f, Format::Gzip | Format::Zstd));
    if let Some(format) = packed {
        let fail = |reason| read_error(origin, packed, reason);
        let whole = BufReader::new(Cursor::new(start).chain(bytes));
        bytes = match format {
            #[cfg(feature = "parquet")]
            Format::Zstd => Box::new(zstd::Decoder::with_buffer(whole).map_err(fail)?),
            #[cfg(not(feature = "parquet"))]
            Format::Zstd => return Err(not_built(origin, format)),
            _ => Box::new(MultiGzDecoder::new(whole)),
        };
        start = take(&mut bytes, START).map_err(fail)?;
    }
    // What is not read from its beginning to its end is held in memory, where it comes through a pipe.
    #[cfg(feature = "parquet")]
    let held = |mut start: Vec<u8>, mut rest: Box<dyn Read>| {
        let read = rest.read_to_end(&mut start);
        read.map(|_| start)
            .map_err(|reason| read_error(origin, packed, reason))
    };
    match recognised(&start) {
        #[cfg(feature = "parquet")]
        Some(format @ Format::Parquet) => {
            let batches = match file {
                Some(file) if packed.is_none() => super::parquet::open(file, origin)?,
                _ => super::parquet::open(bytes::Bytes::from(held(start, bytes)?), origin)?,
            };
            Ok(Opened::Batches(format, batches))
        }
        #[cfg(feature = "parquet")]
        Some(format @ Format::Arrow) => {
            let batches = match file {
                _ if !start.starts_with(b"ARROW1") => {
                    let whole = BufReader::new(Cursor::new(start).chain(bytes));
                    super::ipc::open_stream(whole, origin)?
                }
                Some(file) if packed.is_none() => {
                    super::ipc::open_file(BufReader::new(file), origin)?
                }
                _ => super::ipc::open_file(Cursor::new(held(start, bytes)?), origin)?,
            };
            Ok(Opened::Batches(format, batches))
        }
        #[cfg(not(feature = "parquet"))]
        Some(format @ (Format::Parquet | Format::Arrow)) => {
            drop(file);
            Err(not_built(origin, format))
        }
        _ => text(origin, packed, start, bytes),
    }
}

fn text(
    origin: &Origin,
    packed: Option<Format>,
    mut start: Vec<u8>,
    bytes: Box<dyn Read>,
) -> Result<Opened, LoadError> {
    if let (None, Origin::File(path)) = (packed, origin)
        && let Some(format) = named(path)
    {
        let origin = origin.clone();
        return Err(LoadErrorKind::Misnamed { origin, format }.into());
    }
    if start.starts_with(&UTF8_MARK) {
        start.drain(..UTF8_MARK.len());
    } else if UTF16_MARKS.iter().any(|mark| start.starts_with(mark)) {
        return Err(LoadErrorKind::NotUtf8(origin.clone()).into());
    }
    Ok(Opened::Text {
        text: Box::new(BufReader::new(Cursor::new(start).chain(bytes))),
        packed,
    })
}

/// The format, other than text, of a file that begins so.
fn recognised(start: &[u8]) -> Option<Format> {
    // A frame of zstd that is to be skipped may come first.
    let is_skipped = || start.len() > 3 && start[0] >> 4 == 5 && start[1..4] == [0x2a, 0x4d, 0x18];
    let begins_with = |mark: &[u8]| start.starts_with(mark);
    if begins_with(&[0x1f, 0x8b]) {
        Some(Format::Gzip)
    } else if begins_with(&[0x28, 0xb5, 0x2f, 0xfd]) || is_skipped() {
        Some(Format::Zstd)
    } else if begins_with(b"PAR1") || begins_with(b"PARE") {
        Some(Format::Parquet)
    } else if begins_with(b"ARROW1") || begins_with(&[0xff; 4]) {
        Some(Format::Arrow)
    } else {
        None
    }
}

#[cfg(not(feature = "parquet"))]
fn not_built(origin: &Origin, format: Format) -> LoadError {
    let origin = origin.clone();
    LoadErrorKind::NotBuilt { origin, format }.into()
}

/// The format, other than text, that a name's ending stands for.
fn named(path: &Path) -> Option<Format> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(match ending.as_str() {
        "gz" => Format::Gzip,
        "zst" | "zstd" => Format::Zstd,
        "parquet" | "parq" | "pq" => Format::Parquet,
        "arrow" | "arrows" | "feather" | "ipc" => Format::Arrow,
        _ => return None,
    })
}

/// The first `most` bytes, or all where there are fewer.
fn take(reader: &mut impl Read, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(most);
    reader.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}
