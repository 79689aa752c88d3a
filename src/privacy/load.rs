//! Reading the private table from files.
//!
//! # Privacy
//!
//! Loading is the curator's own business: it ends before anything is charged or
//! released. Even so, no message contains a value (a message may name a file, and columns).
//!
//! The guarantee is about tables that differ in a record, and files that differ in a
//! line, or typed files that hold tables which differ in a row, must load to such tables. So every
//! line after the header is a record, whatever it contains,
//! and its contents change no other record: see [`read_files`]. Under [`OnBadRows::Skip`] whether a
//! file loads depends on its header, on whether it could be read to its end, and on whether it ends
//! inside quotes. Proof: docs/proofs.md, section 1.

mod batches;
mod error;
mod header;
#[cfg(feature = "parquet")]
mod ipc;
mod lines;
mod open;
#[cfg(feature = "parquet")]
mod parquet;
mod parts;
mod reading;
mod records;
mod relay;
mod source;
mod survey;
mod values;

#[cfg(all(test, feature = "parquet"))]
mod format_tests;
#[cfg(test)]
mod tests;

pub(super) use batches::Batches;
pub use error::{Form, LoadError, LoadErrorKind};
pub use reading::{OnBadRows, Reading};
pub use survey::{ColumnSurvey, Places, Survey, survey_files};

use super::rows::{Rows, RowsBuilder};
use super::share::Compared;
use super::store::Spilling;
use crate::model::RecordColumn;
use error::Origin;
use relay::{Sender, Storing, relay};
use source::{Owners, Source};
use std::path::PathBuf;

/// The expectation for the unit's column in the message about a bad row.
const EXPECTED_UNIT: &str = "a value that says to which unit the row belongs";

/// Loads the record columns of a model from files: CSV, plain or compressed with gzip or zstd;
/// Parquet; Arrow IPC files and streams. What a file is, its content tells, not its name.
///
/// The path `-` is standard input. A folder stands for all files below it, in the order of their
/// paths, but for names that begin with `.` or `_`; inside it, folders that are named `key=value`
/// give a column `key`. A path with `*`, `?` or `[` that does not exist is a pattern. Several files
/// are one table, one after the other; they have one format, and each has the columns.
///
/// Columns are found by name; others than the model's are ignored and not decoded. An element of a
/// container is found as `x.1` or `x[1]`, `m.2.1` or `m[2,1]`. Columns that the model declares and
/// does not use may be absent.
///
/// A row with a missing value counts in n and is masked: in text nothing, or `NA`, `N/A`, `NaN`,
/// `null` in any case; in typed columns a null or NaN. A real outside its bounds is clamped to them;
/// an infinite one without a bound on its side makes a bad row. In typed columns, numbers (truth
/// values are 0 and 1) and text are read, text as that of a CSV file; a column of another type is
/// an error.
///
/// In a CSV file, the first line with anything on it names the columns. It may start with a byte
/// order mark. A line ends with a line feed,
/// or a carriage return and a line feed. Each line after the header is a record, even an empty one,
/// and is read by itself: its contents change no other record. A field that begins with a quotation
/// mark ends with one and has two for each one inside, and a line is at most 16 MiB long;
/// otherwise, or with another number of fields than the header, the row is bad.
/// [`Reading::multiline`] allows line feeds in quotes.
///
/// Where a unit is given, all rows that share a value of that column are one unit of
/// privacy: see [`Rows::by_unit`]. Values are compared as text, without white space around
/// them, except that a whole number may have a fraction of zeros (`7` and `7.0` are the same
/// unit). A row without a value there (nothing, `NA`, ...) is a bad row; where bad rows are
/// skipped it belongs to no unit and adds nothing. The unit of any other bad row is counted, as is
/// that of a row with a missing value.
///
/// Errors: there is no file, or one cannot be read, is damaged, has no header or ends inside
/// quotes; a column is absent or there twice, or not of a type that is read; a rename fits no
/// column, or, under [`OnBadRows::Error`], a row is bad.
pub fn read_files(
    paths: &[PathBuf],
    columns: &[RecordColumn],
    reading: &Reading,
) -> Result<Rows, LoadError> {
    read(Source::files(paths, columns, reading)?, columns, reading)
}

/// The same of batches in memory, where a factor may be given by its ints.
pub(super) fn read_batches(
    batches: Batches,
    columns: &[RecordColumn],
    reading: &Reading,
) -> Result<Rows, LoadError> {
    read(Source::memory(batches, columns, reading)?, columns, reading)
}

fn read(
    mut source: Source,
    columns: &[RecordColumn],
    reading: &Reading,
) -> Result<Rows, LoadError> {
    let spilling = reading.spilling.cloned().unwrap_or_else(Spilling::usual);
    let storing = Storing {
        rows: RowsBuilder::new(columns, reading.on_bad_rows, spilling),
        columns,
        headers: (0..columns.len()).map(|c| source.header(c)).collect(),
        // In memory a factor may be given by its ints.
        by_words: *source.origin() != Origin::Memory,
    };
    let (mut sender, received) = relay();
    let mut owners = Owners::default();
    let mut keys = Vec::new();
    let (stored, sent) = std::thread::scope(|scope| {
        let storing = scope.spawn(|| storing.store(received));
        let units = (&mut owners, &mut keys);
        let sent = send(&mut source, columns, reading, units, &mut sender);
        // Where nobody receives any more, an error tells why.
        let _ = sender.flush();
        drop(sender);
        (storing.join(), sent)
    });
    // Its error is about an earlier record.
    let rows = stored.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    sent?;
    let mut rows = rows.finish().map_err(LoadErrorKind::from)?;
    rows.portion = reading.portion.cloned();
    rows.by_place = reading.portion.is_some() && reading.unit.is_none();
    if reading.share.is_some() {
        rows.compared = Compared {
            files: source.digest(),
            units: owners.digests(),
        };
    }
    match reading.unit {
        None => Ok(rows),
        Some(_) => rows.by_unit(&keys),
    }
}

/// Sends all records, until one is bad; the units to which they belong.
fn send(
    source: &mut Source,
    columns: &[RecordColumn],
    reading: &Reading,
    (owners, keys): (&mut Owners, &mut Vec<usize>),
    sender: &mut Sender,
) -> Result<(), LoadError> {
    let used: Vec<usize> = (0..columns.len()).filter(|&c| columns[c].used).collect();
    for place in 0.. {
        if !source.advance()? {
            break;
        }
        source.check_end()?;
        if let Some(portion) = reading.portion
            && !portion.has(place, source.key().as_deref())
        {
            continue;
        }
        let owner = source.owner(owners);
        let bad = if let Some(expected) = source.expected_form() {
            Some((None, expected))
        } else if owner == Some(None) {
            Some((reading.unit.map(str::to_string), EXPECTED_UNIT.to_string()))
        } else {
            None
        };
        let columns = bad.is_none().then_some(&used[..]);
        if let Some((column, expected)) = bad.filter(|_| reading.on_bad_rows == OnBadRows::Error) {
            return Err(LoadErrorKind::BadRow {
                origin: source.origin().clone(),
                form: source.form(),
                position: source.position(),
                column,
                expected,
            }
            .into());
        }
        if owner != Some(None) && sender.send(source, columns).is_err() {
            break;
        }
        keys.extend(owner.flatten());
    }
    Ok(())
}
