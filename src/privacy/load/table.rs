//! A data file, one record at a time.

use super::error::{LoadError, LoadErrorKind, Origin};
use super::header::{find_columns, find_unit, header_names, present_names};
use super::text;
use crate::model::RecordColumn;
use crate::privacy::rows::is_missing;
use csv::ByteRecord;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// What a bad row's message asks for in the unit's column.
pub(in crate::privacy) const EXPECTED_UNIT: &str =
    "a value that says to which unit the row belongs";

/// An open data file. Not `Debug`: it holds the record just read.
pub(super) struct Table<'a> {
    path: PathBuf,
    reader: csv::Reader<text::Lines<Box<dyn std::io::BufRead>>>,
    record: ByteRecord,
    records: u64,
    width: usize,
    headers: Vec<&'a str>,
    /// The field of each column that the model uses.
    fields: Vec<Option<usize>>,
    unit: Option<usize>,
}

/// The units met so far, by number in order of appearance.
#[derive(Default)]
pub(super) struct Owners {
    numbers: HashMap<Vec<u8>, usize>,
}

impl Owners {
    /// How many units there are.
    pub fn count(&self) -> usize {
        self.numbers.len()
    }

    fn number(&mut self, key: &[u8]) -> usize {
        // Most rows belong to a unit met before.
        if let Some(&number) = self.numbers.get(key) {
            return number;
        }
        let number = self.numbers.len();
        self.numbers.insert(key.to_vec(), number);
        number
    }
}

impl<'a> Table<'a> {
    /// Opens the file and finds its columns.
    pub fn open(
        path: &Path,
        columns: &'a [RecordColumn],
        renames: &'a [(String, String)],
        unit: Option<&str>,
    ) -> Result<Table<'a>, LoadError> {
        let headers = header_names(columns, renames)?;
        // Records of another length than the header are bad rows, not errors of the parser.
        let reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(text::open(path)?);
        let mut table = Table {
            path: path.to_path_buf(),
            reader,
            record: ByteRecord::new(),
            records: 0,
            width: 0,
            headers,
            fields: Vec::new(),
            unit: None,
        };
        if !table.read()? {
            return Err(LoadErrorKind::Empty(Origin::File(path.into())).into());
        }
        let present = present_names(path, &table.record)?;
        table.fields = find_columns(path, columns, &table.headers, &present)?;
        table.unit = unit
            .map(|unit| find_unit(path, unit, &present, &table.fields))
            .transpose()?;
        table.width = table.record.len();
        Ok(table)
    }

    /// Reads the next record; false at the end.
    pub fn advance(&mut self) -> Result<bool, LoadError> {
        let found = self.read()?;
        self.records += u64::from(found);
        Ok(found)
    }

    /// How many records have been read.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Whether the record has as many fields as the header.
    pub fn is_whole(&self) -> bool {
        self.record.len() == self.width
    }

    /// What is expected of a record that is not whole.
    pub fn expected_fields(&self) -> String {
        format!(
            "{} fields separated by commas, as in the header",
            self.width
        )
    }

    /// The name in the file of a column of the model.
    pub fn header(&self, column: usize) -> &'a str {
        self.headers[column]
    }

    /// The cell of a column that the model uses; the record is whole.
    pub fn cell(&self, column: usize) -> &[u8] {
        self.fields[column]
            .and_then(|field| self.record.get(field))
            .unwrap_or_default()
    }

    /// The number of the unit to which the record belongs: `None` without a unit
    /// column, `Some(None)` where the column holds no value.
    pub fn owner(&self, owners: &mut Owners) -> Option<Option<usize>> {
        let cell = self.record.get(self.unit?).unwrap_or_default();
        let key = match std::str::from_utf8(cell) {
            Ok(text) if is_missing(text.trim()) => return Some(None),
            Ok(text) => without_zero_fraction(text.trim()).as_bytes(),
            Err(_) => cell.trim_ascii(),
        };
        Some(Some(owners.number(key)))
    }

    /// The line, counted from 1, on which the record just read starts.
    ///
    /// The parser's own position of a record is that of the blank lines before it. So
    /// count back from where it stands now: the line feeds in quoted fields, and the
    /// one that ended the record unless the text ended first.
    pub fn line(&self) -> u64 {
        let inside = self
            .record
            .as_slice()
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count() as u64;
        let after = u64::from(!self.reader.get_ref().is_at_end());
        self.reader
            .position()
            .line()
            .saturating_sub(inside + after)
            .max(1)
    }

    fn read(&mut self) -> Result<bool, LoadError> {
        self.reader.read_byte_record(&mut self.record).map_err(|e| {
            let reason = match e.into_kind() {
                csv::ErrorKind::Io(reason) => reason,
                // The parser has no other errors for flexible records of bytes.
                _ => std::io::Error::other("it is not a CSV file"),
            };
            text::read_error(&self.path, reason)
        })
    }
}

/// `7` for `7.0`, as programs write a whole number once its column has a missing
/// value; anything else as it is. To split one person in two would weaken the
/// guarantee.
pub(in crate::privacy) fn without_zero_fraction(text: &str) -> &str {
    let Some((whole, fraction)) = text.split_once('.') else {
        return text;
    };
    let digits = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    let is_whole = !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
        && fraction.bytes().all(|b| b == b'0');
    if is_whole { whole } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_lose_a_fraction_of_zeros_and_nothing_else_changes() {
        for (text, key) in [
            ("7", "7"),
            ("7.0", "7"),
            ("7.", "7"),
            ("-12.000", "-12"),
            ("007.0", "007"),
            ("7.01", "7.01"),
            ("1.0.0", "1.0.0"),
            (".0", ".0"),
            ("a.0", "a.0"),
            ("1e3.0", "1e3.0"),
            ("Anne", "Anne"),
        ] {
            assert_eq!(without_zero_fraction(text), key, "{text}");
        }
    }
}
