//! Records on their way from the thread that finds them to the one that reads and stores them.
//!
//! # Privacy
//!
//! The records arrive in their order and are read one by one, so that the table is what it would be
//! with one thread, and so is the first error.

use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::error::{Form, LoadError, LoadErrorKind, Origin};
use super::source::Source;
use super::values::Value;
use crate::model::RecordColumn;
use crate::privacy::rows::{BadCell, Domain, RowsBuilder};

/// Records that are sent together, fewer where their text is longer than that; and how many times
/// as many may be on their way.
const RECORDS: usize = 1024;
const TEXT: usize = 1 << 20;
const AHEAD: usize = 4;

/// Some records of one file. Not `Debug`: it holds them.
pub(super) struct Batch {
    /// The number of the file.
    file: usize,
    origin: Origin,
    form: Form,
    /// Where each record is in the file; `None` for one that only counts in n.
    positions: Vec<Option<u64>>,
    /// The cells of these records, of the columns that the model uses.
    cells: Vec<Sent>,
    text: Vec<u8>,
}

/// A [`Value`] whose text is in the batch.
enum Sent {
    Missing,
    Whole(i64),
    Real(f64),
    Text(Range<usize>),
}

impl Batch {
    fn value(&self, cell: usize) -> Value<'_> {
        match &self.cells[cell] {
            Sent::Missing => Value::Missing,
            Sent::Whole(value) => Value::Whole(*value),
            Sent::Real(value) => Value::Real(*value),
            Sent::Text(range) => Value::Text(&self.text[range.clone()]),
        }
    }
}

pub(super) struct Sender {
    batches: SyncSender<Batch>,
    batch: Option<Batch>,
}

/// The receiver has stopped at a bad row.
pub(super) struct Stopped;

impl Sender {
    /// The record that was just read, with these columns; or one that only counts in n.
    pub fn send(&mut self, source: &Source, columns: Option<&[usize]>) -> Result<(), Stopped> {
        let file = source.number();
        let is_full = |batch: &Batch| {
            let most = batch.positions.len() == RECORDS || batch.text.len() >= TEXT;
            most || batch.file != file
        };
        if self.batch.as_ref().is_some_and(is_full) {
            self.flush()?;
        }
        let batch = self.batch.get_or_insert_with(|| Batch {
            file,
            origin: source.origin().clone(),
            form: source.form(),
            positions: Vec::with_capacity(RECORDS),
            cells: Vec::new(),
            text: Vec::new(),
        });
        batch.positions.push(columns.map(|_| source.position()));
        for &column in columns.into_iter().flatten() {
            batch.cells.push(match source.given(column) {
                Value::Missing => Sent::Missing,
                Value::Whole(value) => Sent::Whole(value),
                Value::Real(value) => Sent::Real(value),
                Value::Text(text) => {
                    let start = batch.text.len();
                    batch.text.extend_from_slice(text);
                    Sent::Text(start..batch.text.len())
                }
            });
        }
        Ok(())
    }

    /// Sends what was not sent yet.
    pub fn flush(&mut self) -> Result<(), Stopped> {
        let sent = self.batch.take().map(|batch| self.batches.send(batch));
        sent.transpose().map(|_| ()).map_err(|_| Stopped)
    }
}

/// The two ends.
pub(super) fn relay() -> (Sender, Receiver<Batch>) {
    let (batches, received) = sync_channel(AHEAD);
    let sender = Sender {
        batches,
        batch: None,
    };
    (sender, received)
}

/// Where records go.
pub(super) struct Storing<'a> {
    pub rows: RowsBuilder,
    pub columns: &'a [RecordColumn],
    /// Their names in the data.
    pub headers: Vec<&'a str>,
    /// Whether factors are given by words.
    pub by_words: bool,
}

impl Storing<'_> {
    /// Errors: a cell is bad, and bad rows are errors.
    pub fn store(mut self, batches: Receiver<Batch>) -> Result<RowsBuilder, LoadError> {
        for batch in batches {
            let mut next = 0;
            for &position in &batch.positions {
                let Some(position) = position else {
                    self.rows.push_missing();
                    continue;
                };
                let pushed = self.rows.push(|c, domain| {
                    let value = batch.value(next);
                    next += 1;
                    let by_words = self.by_words && !self.columns[c].levels.is_empty();
                    value.cell(domain, by_words)
                });
                if let Err(BadCell(c)) = pushed {
                    return Err(LoadErrorKind::BadRow {
                        origin: batch.origin,
                        form: batch.form,
                        position,
                        column: Some(self.headers[c].to_owned()),
                        expected: Domain::new(&self.columns[c]).to_string(),
                    }
                    .into());
                }
            }
        }
        Ok(self.rows)
    }
}
