//! Reading the private table from a CSV file.
//!
//! # Privacy
//!
//! Loading is the curator's own business: it ends before anything is charged or
//! released. Even so, no message contains a value.
//!
//! The guarantee is about tables that differ in a record, and files that differ in a
//! line must load to such tables. So every line after the header is a record, whatever it contains,
//! and its contents change no other record: see [`read_csv`]. Under [`OnBadRows::Skip`] whether a
//! file loads depends on its header, on whether it could be read to its end, and on whether it ends
//! inside quotes. Proof: docs/proofs.md, section 1.

mod error;
mod header;
mod records;
mod survey;
mod table;
mod text;

#[cfg(test)]
mod tests;

pub use error::{LoadError, LoadErrorKind, Origin};
pub(super) use header::{dotted, header_names};
pub use survey::{ColumnSurvey, Places, Survey, survey_csv};

use super::rows::{BadCell, Domain, Rows, RowsBuilder};
use super::store::Spilling;
use crate::model::RecordColumn;
use std::path::Path;
pub(super) use table::{EXPECTED_UNIT, without_zero_fraction};
use table::{Owners, Table};

/// The treatment of a row that cannot be read: text where a number belongs, the wrong number of
/// fields, an int out of bounds or not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnBadRows {
    /// Stop at the first one.
    #[default]
    Error,
    /// Treat each as missing, without a message.
    Skip,
}

/// How to read a CSV file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reading<'a> {
    /// Pairs of a column's name in the model (`dist`, `x.1`) and its name in the file.
    pub renames: &'a [(String, String)],
    pub on_bad_rows: OnBadRows,
    /// The column of the file whose values identify the units of privacy; without it each row is a
    /// unit.
    pub unit: Option<&'a str>,
    /// Whether a record may span lines, with line feeds in quoted fields.
    ///
    /// Protection then applies to a record as delimited by its quotation marks, and no longer to a
    /// line: a record with a stray mark may include the lines up to the next mark. Most such files
    /// stop the loading, under [`OnBadRows::Skip`] too: a mark in a place where none is allowed, or
    /// one that is never closed, is an error.
    pub multiline: bool,
}

/// Loads the record columns of a model from a CSV file.
///
/// The first line with anything on it names the columns; other columns than the model's
/// are ignored. An element of a container is found as `x.1` or `x[1]`, `m.2.1` or
/// `m[2,1]`. Columns that the model declares and does not use may be absent and are not
/// read.
///
/// A file may be gzipped and start with a byte order mark. A line ends with a line feed,
/// or a carriage return and a line feed. Each line after the header is a record, even an empty one,
/// and is read by itself: its contents change no other record. A field that begins with a quotation
/// mark ends with one and has two for each one inside, and a line is at most 16 MiB long;
/// otherwise, or with another number of fields than the header, the row is bad.
/// [`Reading::multiline`] allows line feeds in quotes.
///
/// A row with a missing value (nothing, or `NA`, `N/A`, `NaN`, `null` in any case)
/// counts in n and is masked. A real outside its bounds is clamped to them; an
/// infinite one without a bound on its side makes a bad row.
///
/// Where a unit is given, all rows that share a value of that column are one unit of
/// privacy: see [`Rows::by_unit`]. Values are compared as text, without white space around
/// them, except that a whole number may have a fraction of zeros (`7` and `7.0` are the same
/// unit). A row without a value there (nothing, `NA`, ...) is a bad row; where bad rows are
/// skipped it belongs to no unit and adds nothing. The unit of any other bad row is counted, as is
/// that of a row with a missing value.
///
/// Errors: the file cannot be read, has no header or ends inside quotes, a column is absent
/// or there twice, a rename fits no column, or, under [`OnBadRows::Error`], a row is bad.
pub fn read_csv(
    path: &Path,
    columns: &[RecordColumn],
    reading: &Reading,
) -> Result<Rows, LoadError> {
    let mut table = Table::open(path, columns, reading)?;
    let mut rows = RowsBuilder::new(columns, reading.on_bad_rows, Spilling::never());
    let mut owners = Owners::default();
    let mut keys = Vec::new();
    while table.advance()? {
        table.check_end()?;
        let owner = table.owner(&mut owners);
        let bad = if !table.is_whole() {
            Some((None, table.expected_form()))
        } else if owner == Some(None) {
            Some((reading.unit, EXPECTED_UNIT.to_string()))
        } else {
            let read = |c: usize, domain: &Domain| domain.text(table.cell(c));
            let pushed = rows.push(read).err();
            pushed.map(|BadCell(c)| (Some(table.header(c)), Domain::new(&columns[c]).to_string()))
        };
        match bad {
            Some((column, expected)) if reading.on_bad_rows == OnBadRows::Error => {
                return Err(LoadErrorKind::BadRow {
                    origin: Origin::File(path.to_path_buf()),
                    position: table.line(),
                    column: column.map(str::to_string),
                    expected,
                }
                .into());
            }
            Some(_) if owner != Some(None) => rows.push_missing(),
            _ => {}
        }
        keys.extend(owner.flatten());
    }
    let rows = rows.finish().map_err(LoadErrorKind::NoRoom)?;
    match reading.unit {
        None => Ok(rows),
        Some(_) => rows.by_unit(&keys),
    }
}
