//! A data file, one record at a time.

use super::error::{LoadError, LoadErrorKind, Origin};
use super::header::{find_columns, find_unit, header_names, present_names};
use super::records::{Fault, LONGEST, Records};
use super::{Reading, text};
use crate::model::RecordColumn;
use crate::privacy::rows::is_missing;
use std::collections::HashMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};

/// The expectation for the unit's column in the message about a bad row.
pub(in crate::privacy) const EXPECTED_UNIT: &str =
    "a value that says to which unit the row belongs";

/// An open data file. Not `Debug`: it holds the record just read.
pub(super) struct Table<'a> {
    path: PathBuf,
    records: Records<Box<dyn BufRead>>,
    multiline: bool,
    count: u64,
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
        reading: &Reading<'a>,
    ) -> Result<Table<'a>, LoadError> {
        let headers = header_names(columns, reading.renames)?;
        let mut table = Table {
            path: path.to_path_buf(),
            records: Records::new(text::open(path)?, reading.multiline),
            multiline: reading.multiline,
            count: 0,
            width: 0,
            headers,
            fields: Vec::new(),
            unit: None,
        };
        loop {
            if !table.read()? {
                return Err(LoadErrorKind::Empty(Origin::File(path.into())).into());
            }
            if !table.records.is_blank() {
                break;
            }
        }
        let present = present_names(path, table.records.fields())?;
        if table.records.has_carriage_returns() {
            return Err(LoadErrorKind::CarriageReturns { path: path.into() }.into());
        }
        if table.has_fault() {
            return Err(table.torn());
        }
        table.fields = find_columns(path, columns, &table.headers, &present)?;
        table.unit = reading
            .unit
            .map(|unit| find_unit(path, unit, &present, &table.fields))
            .transpose()?;
        table.width = present.len();
        Ok(table)
    }

    /// Reads the next record; returns false at the end.
    ///
    /// Errors: the file cannot be read; records may span lines, and the end of this one cannot be
    /// determined.
    pub fn advance(&mut self) -> Result<bool, LoadError> {
        let found = self.read()?;
        if found && self.multiline && self.has_fault() {
            return Err(self.torn());
        }
        self.count += u64::from(found);
        Ok(found)
    }

    /// Refuses a file that ends inside quotes with the record just read, as a file that was cut
    /// short does.
    pub fn check_end(&mut self) -> Result<(), LoadError> {
        if self.records.fault() != Some(Fault::Unclosed) {
            return Ok(());
        }
        let is_last = self.records.is_last();
        if is_last.map_err(|reason| text::read_error(&self.path, reason))? {
            Err(self.torn())
        } else {
            Ok(())
        }
    }

    /// How many records have been read.
    pub fn records(&self) -> u64 {
        self.count
    }

    /// Whether the record has as many fields as the header, and no fault.
    pub fn is_whole(&self) -> bool {
        !self.has_fault() && self.records.fields().len() == self.width
    }

    /// Whether the record spans several lines, or would if that were allowed.
    pub fn spans_lines(&self) -> bool {
        self.records.spans_lines()
    }

    /// Whether the fields of the record cannot be separated.
    pub fn has_fault(&self) -> bool {
        self.records.fault().is_some()
    }

    /// The expected form, for a record that is not whole.
    pub fn expected_form(&self) -> String {
        match self.records.fault() {
            None => format!(
                "{} fields separated by commas, as in the header",
                self.width
            ),
            Some(Fault::Quotation | Fault::Unclosed) => {
                "each field with quotation marks around all of it or with \
                 none, on one line (`--multiline-records` allows line feeds in quotes)"
                    .to_string()
            }
            Some(Fault::Length) => format!("at most {} MiB", LONGEST >> 20),
        }
    }

    /// The name in the file of a column of the model.
    pub fn header(&self, column: usize) -> &'a str {
        self.headers[column]
    }

    /// The cell of a column that the model uses; the record is whole.
    pub fn cell(&self, column: usize) -> &[u8] {
        self.fields[column]
            .and_then(|field| self.records.field(field))
            .unwrap_or_default()
    }

    /// The number of the unit to which the record belongs: `None` without a unit
    /// column, `Some(None)` where the column holds no value. The record may lack fields,
    /// or have too many, as long as it has this one.
    pub fn owner(&self, owners: &mut Owners) -> Option<Option<usize>> {
        let cell = self.records.field(self.unit?).unwrap_or_default();
        let key = match std::str::from_utf8(cell) {
            Ok(text) if is_missing(text.trim()) => return Some(None),
            Ok(text) => without_zero_fraction(text.trim()).as_bytes(),
            Err(_) => cell.trim_ascii(),
        };
        Some(Some(owners.number(key)))
    }

    /// The line, counted from 1, on which the record just read starts.
    pub fn line(&self) -> u64 {
        self.records.line()
    }

    fn read(&mut self) -> Result<bool, LoadError> {
        let found = self.records.read();
        found.map_err(|reason| text::read_error(&self.path, reason))
    }

    /// The error for a record whose fields or end cannot be determined.
    fn torn(&self) -> LoadError {
        LoadErrorKind::Torn {
            path: self.path.clone(),
            line: self.line(),
        }
        .into()
    }
}

/// `7` for `7.0`, as programs write a whole number once its column has a missing
/// value; anything else as it is. Splitting one person into two units would weaken the guarantee.
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
