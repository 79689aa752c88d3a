//! Reading the private table from a CSV file.
//!
//! # Privacy
//!
//! Loading is the curator's own business: it ends before anything is charged or
//! released. Even so no message holds a value. Under [`OnBadRows::Skip`] whether
//! a file loads depends on its header and its number of records, on no record's
//! values.

mod error;
mod text;

#[cfg(test)]
mod tests;

pub use error::{LoadError, LoadErrorKind, Origin};

use super::rows::{BadCell, Domain, Rows, RowsBuilder};
use crate::model::RecordColumn;
use crate::syntax::did_you_mean;
use csv::ByteRecord;
use std::path::Path;

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
/// `renames` pairs a column's name in the model (`dist`, `x.1`) with its name in
/// the file. Columns that the model declares and does not use may be absent and are
/// not read.
///
/// A file may be gzipped, start with a byte order mark and have any line endings.
/// Lines with nothing on them are not records, so a missing value in a file of one
/// column is written `NA` or `""`.
///
/// A row with a missing value (nothing, or `NA`, `N/A`, `NaN`, `null` in any case)
/// counts in n and is masked. A real outside its bounds is clamped to them.
///
/// Errors: the file cannot be read or has no records, a column is absent or there
/// twice, a rename fits no column, or, under [`OnBadRows::Error`], a row is bad.
pub fn load_csv(
    path: &Path,
    columns: &[RecordColumn],
    renames: &[(String, String)],
    on_bad_rows: OnBadRows,
) -> Result<Rows, LoadError> {
    let headers = header_names(columns, renames)?;
    let origin = || Origin::File(path.to_path_buf());
    // Records of another length than the header are bad rows, not errors of the parser.
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(text::open(path)?);
    let mut record = ByteRecord::new();
    if !read_record(path, &mut reader, &mut record)? {
        return Err(LoadErrorKind::Empty(origin()).into());
    }
    let fields = find_columns(path, columns, &headers, &record)?;
    let width = record.len();

    let mut rows = RowsBuilder::new(columns, on_bad_rows);
    while read_record(path, &mut reader, &mut record)? {
        let (column, expected) = if record.len() != width {
            if on_bad_rows == OnBadRows::Skip {
                rows.push_missing();
                continue;
            }
            (
                None,
                format!("{width} fields separated by commas, as in the header"),
            )
        } else {
            // A used column has a field, and the record has all fields.
            let read = |c: usize, domain: &Domain| {
                domain.text(fields[c].and_then(|f| record.get(f)).unwrap_or_default())
            };
            match rows.push(read) {
                Ok(()) => continue,
                Err(BadCell(c)) => (
                    Some(headers[c].to_string()),
                    Domain::new(&columns[c]).to_string(),
                ),
            }
        };
        return Err(LoadErrorKind::BadRow {
            origin: origin(),
            position: first_line(&reader, &record),
            column,
            expected,
        }
        .into());
    }
    let rows = rows.finish();
    if rows.n() == 0 {
        return Err(LoadErrorKind::NoRows(origin()).into());
    }
    Ok(rows)
}

type CsvReader = csv::Reader<text::Lines<Box<dyn std::io::BufRead>>>;

fn read_record(
    path: &Path,
    reader: &mut CsvReader,
    record: &mut ByteRecord,
) -> Result<bool, LoadError> {
    reader.read_byte_record(record).map_err(|e| {
        let reason = match e.into_kind() {
            csv::ErrorKind::Io(reason) => reason,
            // The parser has no other errors for flexible records of bytes.
            _ => std::io::Error::other("it is not a CSV file"),
        };
        text::read_error(path, reason)
    })
}

/// The line, counted from 1, on which the record just read starts.
///
/// The parser's own position of a record is that of the blank lines before it. So
/// count back from where it stands now: the line feeds in quoted fields, and the
/// one that ended the record unless the text ended first.
fn first_line(reader: &CsvReader, record: &ByteRecord) -> u64 {
    let inside = record
        .as_slice()
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count() as u64;
    let after = u64::from(!reader.get_ref().is_at_end());
    reader
        .position()
        .line()
        .saturating_sub(inside + after)
        .max(1)
}

/// The name in the file of each column.
fn header_names<'a>(
    columns: &'a [RecordColumn],
    renames: &'a [(String, String)],
) -> Result<Vec<&'a str>, LoadError> {
    let mut headers: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let mut renamed = vec![false; columns.len()];
    for (name, header) in renames {
        let Some(c) = columns.iter().position(|column| column.name == *name) else {
            let names = columns.iter().map(|column| &column.name);
            return Err(LoadErrorKind::UnknownRename {
                name: name.clone(),
                suggestion: did_you_mean(name, names).map(str::to_string),
            }
            .into());
        };
        if std::mem::replace(&mut renamed[c], true) {
            return Err(LoadErrorKind::RepeatedRename { name: name.clone() }.into());
        }
        headers[c] = header.trim();
    }
    Ok(headers)
}

/// The field of each column that the model uses.
fn find_columns(
    path: &Path,
    columns: &[RecordColumn],
    headers: &[&str],
    record: &ByteRecord,
) -> Result<Vec<Option<usize>>, LoadError> {
    let origin = || Origin::File(path.to_path_buf());
    let mut present = Vec::with_capacity(record.len());
    for field in record {
        match std::str::from_utf8(field) {
            // A NUL is what UTF-16 without a mark and binary files have.
            Ok(name) if !name.contains('\0') => present.push(name.trim()),
            _ => return Err(LoadErrorKind::NotUtf8 { path: path.into() }.into()),
        }
    }
    let mut fields = vec![None; columns.len()];
    for (c, column) in columns.iter().enumerate().filter(|(_, column)| column.used) {
        let header = headers[c];
        let mut named = (0..present.len()).filter(|&f| present[f] == header);
        fields[c] = named.next();
        if named.next().is_some() {
            return Err(LoadErrorKind::DuplicateColumn {
                origin: origin(),
                header: header.to_string(),
            }
            .into());
        }
        if fields[c].is_some() {
            continue;
        }
        // Names that are numbers may be a record's values, where the header was forgotten.
        return Err(if present.iter().any(|name| name.parse::<f64>().is_ok()) {
            LoadErrorKind::NoHeader {
                origin: origin(),
                column: header.to_string(),
            }
        } else {
            LoadErrorKind::MissingColumn {
                origin: origin(),
                column: column.name.clone(),
                variable: column.variable.clone(),
                header: header.to_string(),
                suggestion: did_you_mean(header, present.iter().copied()).map(str::to_string),
                present: present.iter().map(|name| name.to_string()).collect(),
            }
        }
        .into());
    }
    Ok(fields)
}
