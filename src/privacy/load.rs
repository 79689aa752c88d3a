//! Reading the private table from a CSV file.
//!
//! # Privacy
//!
//! Loading is the curator's own business: it ends before anything is charged or
//! released. Even so no message holds a value. Under [`OnBadRows::Skip`] whether
//! a file loads depends on its header and its number of records, on no record's
//! values. What a record becomes depends on that record alone: docs/proofs.md, section 1.

mod error;
mod header;
mod survey;
mod table;
mod text;

#[cfg(test)]
mod tests;

pub use error::{LoadError, LoadErrorKind, Origin};
pub(super) use header::{dotted, header_names};
pub use survey::{ColumnSurvey, Places, Survey, UnitSurvey, survey_csv};

use super::rows::{BadCell, Domain, Rows, RowsBuilder};
use crate::model::RecordColumn;
use std::path::Path;
pub(super) use table::{EXPECTED_UNIT, without_zero_fraction};
use table::{Owners, Table};

/// What to do with a row that cannot be read: text where a number belongs, the
/// wrong number of fields, an int out of bounds or not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnBadRows {
    /// Stop at the first one.
    #[default]
    Error,
    /// Treat each as missing, and say nothing.
    Skip,
}

/// Loads the record columns of a model from a CSV file.
///
/// The first line names the columns; other columns than the model's are ignored.
/// An element of a container is found as `x.1` or `x[1]`, `m.2.1` or `m[2,1]`.
/// `renames` pairs a column's name in the model (`dist`, `x.1`) with its name in
/// the file. Columns that the model declares and does not use may be absent and are
/// not read.
///
/// A file may be gzipped, start with a byte order mark and have any line endings.
/// Lines with nothing on them are not records, so a missing value in a file of one
/// column is written `NA` or `""`.
///
/// A row with a missing value (nothing, or `NA`, `N/A`, `NaN`, `null` in any case)
/// counts in n and is masked. A real outside its bounds is clamped to them; an
/// infinite one without a bound on its side makes a bad row.
///
/// Errors: the file cannot be read or has no records, a column is absent or there
/// twice, a rename fits no column, or, under [`OnBadRows::Error`], a row is bad.
pub fn load_csv(
    path: &Path,
    columns: &[RecordColumn],
    renames: &[(String, String)],
    on_bad_rows: OnBadRows,
) -> Result<Rows, LoadError> {
    load(path, columns, renames, on_bad_rows, None)
}

/// Like [`load_csv`], with all rows that share a value of the file's column `unit`
/// as one unit of privacy: see [`Rows::by_unit`].
///
/// Values are compared as text, without white space around them, except that a
/// whole number may have a fraction of zeros (`7` and `7.0` are the same unit). A
/// row without a value there (nothing, `NA`, ...) is a bad row; where bad rows are
/// skipped it belongs to no unit and adds nothing.
pub fn load_csv_by_unit(
    path: &Path,
    columns: &[RecordColumn],
    renames: &[(String, String)],
    on_bad_rows: OnBadRows,
    unit: &str,
) -> Result<Rows, LoadError> {
    load(path, columns, renames, on_bad_rows, Some(unit))
}

fn load(
    path: &Path,
    columns: &[RecordColumn],
    renames: &[(String, String)],
    on_bad_rows: OnBadRows,
    unit: Option<&str>,
) -> Result<Rows, LoadError> {
    let mut table = Table::open(path, columns, renames, unit)?;
    let mut rows = RowsBuilder::new(columns, on_bad_rows);
    let mut owners = Owners::default();
    let mut keys = Vec::new();
    while table.advance()? {
        let bad = if !table.is_whole() {
            if unit.is_none() && on_bad_rows == OnBadRows::Skip {
                rows.push_missing();
            }
            Some((None, table.expected_fields()))
        } else {
            match table.owner(&mut owners) {
                Some(None) => Some((unit, EXPECTED_UNIT.to_string())),
                owner => {
                    let read = |c: usize, domain: &Domain| domain.text(table.cell(c));
                    match rows.push(read) {
                        Ok(()) => {
                            keys.extend(owner.flatten());
                            None
                        }
                        Err(BadCell(c)) => {
                            Some((Some(table.header(c)), Domain::new(&columns[c]).to_string()))
                        }
                    }
                }
            }
        };
        if let Some((column, expected)) = bad
            && on_bad_rows == OnBadRows::Error
        {
            return Err(LoadErrorKind::BadRow {
                origin: Origin::File(path.to_path_buf()),
                position: table.line(),
                column: column.map(str::to_string),
                expected,
            }
            .into());
        }
    }
    if table.records() == 0 {
        return Err(LoadErrorKind::NoRows(Origin::File(path.to_path_buf())).into());
    }
    let rows = rows.finish();
    match unit {
        None => Ok(rows),
        Some(_) => rows.by_unit(&keys),
    }
}
