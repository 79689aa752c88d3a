//! A file of text, one record at a time.

use std::io::BufRead;

use super::error::{Format, LoadError, LoadErrorKind, Origin, read_error};
use super::header::present_names;
use super::records::{Fault, LONGEST, Records};
use super::values::Value;

/// An open file of text. Not `Debug`: it holds the record just read.
pub(super) struct Lines {
    origin: Origin,
    packed: Option<Format>,
    records: Records<Box<dyn BufRead>>,
    multiline: bool,
    width: usize,
}

impl Lines {
    /// Reads the header, and returns its names.
    pub fn open(
        origin: &Origin,
        text: Box<dyn BufRead>,
        packed: Option<Format>,
        multiline: bool,
    ) -> Result<(Lines, Vec<String>), LoadError> {
        let mut lines = Lines {
            origin: origin.clone(),
            packed,
            records: Records::new(text, multiline),
            multiline,
            width: 0,
        };
        loop {
            if !lines.read()? {
                return Err(LoadErrorKind::Empty(origin.clone()).into());
            }
            if !lines.records.is_blank() {
                break;
            }
        }
        let present = present_names(origin, lines.records.fields())?;
        if lines.records.has_carriage_returns() {
            return Err(LoadErrorKind::CarriageReturns(origin.clone()).into());
        }
        if lines.has_fault() {
            return Err(lines.torn());
        }
        lines.width = present.len();
        Ok((lines, present))
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
        Ok(found)
    }

    /// Refuses a file that ends inside quotes with the record just read, as a file that was cut
    /// short does.
    pub fn check_end(&mut self) -> Result<(), LoadError> {
        if self.records.fault() != Some(Fault::Unclosed) {
            return Ok(());
        }
        let is_last = self.records.is_last();
        if is_last.map_err(|reason| read_error(&self.origin, self.packed, reason))? {
            Err(self.torn())
        } else {
            Ok(())
        }
    }

    /// Whether the record spans several lines, or would if that were allowed.
    pub fn spans_lines(&self) -> bool {
        self.records.spans_lines()
    }

    /// Whether the fields of the record cannot be separated.
    pub fn has_fault(&self) -> bool {
        self.records.fault().is_some()
    }

    /// The expected form, for a record that has a fault or more or fewer fields than the header.
    pub fn expected_form(&self) -> Option<String> {
        match self.records.fault() {
            None if self.records.fields().len() == self.width => None,
            None => Some(format!(
                "{} fields separated by commas, as in the header",
                self.width
            )),
            Some(Fault::Quotation | Fault::Unclosed) => Some(
                "each field with quotation marks around all of it or with \
                 none, on one line (`multiline_records` allows line feeds in quotes)"
                    .to_string(),
            ),
            Some(Fault::Length) => Some(format!("at most {} MiB", LONGEST >> 20)),
        }
    }

    /// A field of the record, which may lack fields.
    pub fn value(&self, field: usize) -> Value<'_> {
        Value::Text(self.records.field(field).unwrap_or_default())
    }

    /// The line, counted from 1, on which the record just read starts.
    pub fn line(&self) -> u64 {
        self.records.line()
    }

    fn read(&mut self) -> Result<bool, LoadError> {
        let found = self.records.read();
        found.map_err(|reason| read_error(&self.origin, self.packed, reason))
    }

    /// The error for a record whose fields or end cannot be determined.
    fn torn(&self) -> LoadError {
        LoadErrorKind::Torn {
            origin: self.origin.clone(),
            line: self.line(),
        }
        .into()
    }
}
