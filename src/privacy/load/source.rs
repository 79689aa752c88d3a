//! The records of a table, one at a time, wherever they come from: files of text, files of typed
//! columns, or memory.

use std::collections::HashMap;
use std::path::PathBuf;

use arrow_schema::SchemaRef;
use sha2::{Digest, Sha256};

use super::batches::{Batches, Iter};
use super::error::{Form, Format, LoadError, LoadErrorKind, Origin};
use super::header::{find_columns, find_unit, header_names};
use super::lines::Lines;
use super::open::{Opened, open};
use super::parts::{Part, parts, shared};
use super::reading::Reading;
use super::values::{Column, Kind, Value};
use crate::model::RecordColumn;
use crate::privacy::rows::{Cell, Domain};

/// The table. Not `Debug`: it holds the record just read.
pub(super) struct Source<'a> {
    columns: &'a [RecordColumn],
    reading: Reading<'a>,
    /// The name in the data of each column.
    headers: Vec<&'a str>,
    /// The files that come after this one.
    rest: std::vec::IntoIter<Part>,
    /// Of the list of all files.
    digest: [u8; 32],
    part: Part,
    /// The files before this one.
    done: Vec<Origin>,
    open: Open,
    /// The place in this file of each column that the model uses.
    fields: Vec<Option<Field>>,
    unit: Option<Field>,
    /// The kind of each column, and of the unit's, as the first file has it.
    kinds: Vec<Option<Kind>>,
    format: Option<Format>,
}

enum Open {
    Lines(Lines),
    Rows(RowsOf),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    /// Of the columns in the file.
    Column(usize),
    /// Of those that folders name.
    Constant(usize),
}

/// The rows of batches.
struct RowsOf {
    batches: Iter,
    columns: Vec<Column>,
    /// The next row of the batch, and how many it has.
    next: usize,
    length: usize,
    row: u64,
}

/// The units met so far, by number in order of appearance.
#[derive(Default)]
pub(super) struct Owners {
    numbers: HashMap<Vec<u8>, usize>,
}

impl Owners {
    pub fn count(&self) -> usize {
        self.numbers.len()
    }

    /// Digests of the units' keys, in no order.
    pub fn digests(&self) -> Vec<[u8; 16]> {
        let digest = |key: &Vec<u8>| {
            let mut half = [0; 16];
            half.copy_from_slice(&Sha256::digest(key)[..16]);
            half
        };
        self.numbers.keys().map(digest).collect()
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

impl<'a> Source<'a> {
    /// Opens the first file and finds its columns.
    pub fn files(
        paths: &[PathBuf],
        columns: &'a [RecordColumn],
        reading: &Reading<'a>,
    ) -> Result<Source<'a>, LoadError> {
        let headers = header_names(columns, reading.renames)?;
        let mut parts = parts(paths)?;
        if parts.is_empty() {
            parts.push(Part::new(Origin::Memory));
        }
        let share = reading
            .share
            .map(|share| shared(&parts, share))
            .transpose()?;
        let digest = share.as_ref().map_or([0; 32], |(_, digest)| *digest);
        let share = share.map_or(0..parts.len(), |(share, _)| share);
        // All ranks read the header of the first file, whose format and types those of the others
        // must have.
        let rest = parts
            .drain(share.start.max(1)..share.end.max(1))
            .collect::<Vec<_>>();
        let first = parts.swap_remove(0);
        let opened = open(&first.origin)?;
        let mut source = Source::of(first, rest.into_iter(), opened, headers, columns, reading)?;
        source.digest = digest;
        if share.start > 0 || share.is_empty() {
            source.open = Open::Rows(RowsOf::none());
        }
        Ok(source)
    }

    /// Batches in memory.
    pub fn memory(
        batches: Batches,
        columns: &'a [RecordColumn],
        reading: &Reading<'a>,
    ) -> Result<Source<'a>, LoadError> {
        let headers = header_names(columns, reading.renames)?;
        let opened = Opened::Batches(Format::Arrow, batches);
        let part = Part::new(Origin::Memory);
        Source::of(
            part,
            Vec::new().into_iter(),
            opened,
            headers,
            columns,
            reading,
        )
    }

    fn of(
        part: Part,
        rest: std::vec::IntoIter<Part>,
        opened: Opened,
        headers: Vec<&'a str>,
        columns: &'a [RecordColumn],
        reading: &Reading<'a>,
    ) -> Result<Source<'a>, LoadError> {
        let mut source = Source {
            columns,
            reading: *reading,
            headers,
            rest,
            digest: [0; 32],
            part,
            done: Vec::new(),
            open: Open::Rows(RowsOf::none()),
            fields: Vec::new(),
            unit: None,
            kinds: vec![None; columns.len() + 1],
            format: None,
        };
        source.begin(opened)?;
        Ok(source)
    }

    /// Finds the columns of a file.
    fn begin(&mut self, opened: Opened) -> Result<(), LoadError> {
        let origin = &self.part.origin;
        let format = match &opened {
            Opened::Text { .. } => Format::Text,
            Opened::Batches(format, _) => *format,
        };
        let first = *self.format.get_or_insert(format);
        if first != format {
            return Err(LoadErrorKind::OtherFormat {
                origin: origin.clone(),
                format,
                first,
            }
            .into());
        }
        match opened {
            Opened::Text { text, packed } => {
                let multiline = self.reading.multiline;
                let (lines, present) = Lines::open(origin, text, packed, multiline)?;
                self.find(&present, present.len())?;
                self.open = Open::Lines(lines);
            }
            Opened::Batches(_, batches) => {
                let schema = batches.schema;
                let names = schema.fields().iter().map(|f| f.name().trim().to_owned());
                self.find(&names.collect::<Vec<_>>(), 0)?;
                self.check_kinds(&schema)?;
                let places = self.fields.iter().chain([&self.unit]).flatten();
                let mut chosen: Vec<usize> = places
                    .filter_map(|field| match field {
                        Field::Column(c) => Some(*c),
                        Field::Constant(_) => None,
                    })
                    .collect();
                chosen.sort_unstable();
                chosen.dedup();
                for field in self.fields.iter_mut().chain([&mut self.unit]).flatten() {
                    if let Field::Column(c) = field {
                        *c = chosen.partition_point(|other| other < c);
                    }
                }
                self.open = Open::Rows(RowsOf {
                    batches: (batches.read)(&chosen)?,
                    ..RowsOf::none()
                });
            }
        }
        Ok(())
    }

    /// Finds the columns by the names that the file and its folders have.
    fn find(&mut self, names: &[String], doubtful: usize) -> Result<(), LoadError> {
        let origin = &self.part.origin;
        let of_folders = self.part.constants.iter().map(|(name, _)| name);
        // A writer may leave the folder's column in the file.
        let of_folders = of_folders.enumerate().filter(|(_, n)| !names.contains(n));
        let (constants, added): (Vec<usize>, Vec<&String>) = of_folders.unzip();
        let present: Vec<&str> = names.iter().chain(added).map(String::as_str).collect();
        let fields = find_columns(origin, self.columns, &self.headers, &present, doubtful)?;
        let unit = self.reading.unit;
        let unit = unit.map(|unit| find_unit(origin, unit, &present, &fields, doubtful));
        let field = |at: usize| match at.checked_sub(names.len()) {
            None => Field::Column(at),
            Some(at) => Field::Constant(constants[at]),
        };
        self.unit = unit.transpose()?.map(field);
        self.fields = fields.into_iter().map(|at| at.map(field)).collect();
        Ok(())
    }

    /// Errors: the type of a column is not read, or is not that of the first file.
    fn check_kinds(&mut self, schema: &SchemaRef) -> Result<(), LoadError> {
        let unit = self.reading.unit.unwrap_or_default();
        let names = self.headers.iter().chain([&unit]);
        let fields = self.fields.iter().chain([&self.unit]);
        for ((name, field), known) in names.zip(fields).zip(&mut self.kinds) {
            let Some(Field::Column(c)) = field else {
                continue;
            };
            let (origin, column) = (self.part.origin.clone(), name.to_string());
            let kind = schema.field(*c).data_type();
            let Some(found) = Kind::of(kind) else {
                let kind = kind.to_string();
                return Err(LoadErrorKind::ColumnType {
                    origin,
                    column,
                    kind,
                }
                .into());
            };
            match known {
                Some(known) if !known.fits(found) => {
                    return Err(LoadErrorKind::OtherType { origin, column }.into());
                }
                Some(Kind::Nothing) | None => *known = Some(found),
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Reads the next record; returns false at the end.
    pub fn advance(&mut self) -> Result<bool, LoadError> {
        loop {
            let found = match &mut self.open {
                Open::Lines(lines) => lines.advance()?,
                Open::Rows(rows) => rows.advance(&self.part.origin)?,
            };
            if found {
                return Ok(true);
            }
            let Some(next) = self.rest.next() else {
                return Ok(false);
            };
            let done = std::mem::replace(&mut self.part, next);
            self.done.push(done.origin);
            let opened = open(&self.part.origin)?;
            self.begin(opened)?;
        }
    }

    /// Refuses a file of text that ends inside quotes with the record just read.
    pub fn check_end(&mut self) -> Result<(), LoadError> {
        match &mut self.open {
            Open::Lines(lines) => lines.check_end(),
            Open::Rows(_) => Ok(()),
        }
    }

    /// The expected form, for a record whose fields are not those of the header.
    pub fn expected_form(&self) -> Option<String> {
        match &self.open {
            Open::Lines(lines) => lines.expected_form(),
            Open::Rows(_) => None,
        }
    }

    /// Whether the fields of the record cannot be separated.
    pub fn has_fault(&self) -> bool {
        matches!(&self.open, Open::Lines(lines) if lines.has_fault())
    }

    /// Whether the record spans several lines, or would if that were allowed.
    pub fn spans_lines(&self) -> bool {
        matches!(&self.open, Open::Lines(lines) if lines.spans_lines())
    }

    /// The name in the data of a column of the model.
    pub fn header(&self, column: usize) -> &'a str {
        self.headers[column]
    }

    /// The cell of a column that the model uses; the record has the header's fields.
    pub fn cell(&self, column: usize, domain: &Domain) -> Cell {
        // In memory a factor may be given by its ints.
        let is_factor = !self.columns[column].levels.is_empty();
        let by_words = is_factor && self.part.origin != Origin::Memory;
        self.given(column).cell(domain, by_words)
    }

    /// The same before it is read.
    pub fn given(&self, column: usize) -> Value<'_> {
        self.fields[column].map_or(Value::Missing, |field| self.value(field))
    }

    /// The number of the unit to which the record belongs: `None` without a unit
    /// column, `Some(None)` where the column holds no value. The record may lack fields,
    /// or have too many, as long as it has this one.
    pub fn owner(&self, owners: &mut Owners) -> Option<Option<usize>> {
        let key = self.value(self.unit?).key();
        Some(key.map(|key| owners.number(&key)))
    }

    /// The key of that unit.
    pub fn key(&self) -> Option<Vec<u8>> {
        Some(self.value(self.unit?).key()?.into())
    }

    pub fn origin(&self) -> &Origin {
        &self.part.origin
    }

    /// The number of the file, counted from 0.
    pub fn number(&self) -> usize {
        self.done.len()
    }

    /// A digest of the list of all files, those of other ranks included.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Where all files come from that were read.
    pub fn into_origins(mut self) -> Vec<Origin> {
        self.done.push(self.part.origin);
        self.done
    }

    pub fn form(&self) -> Form {
        match &self.open {
            Open::Lines(_) => Form::Lines,
            Open::Rows(_) => Form::Rows,
        }
    }

    /// The line of the file, or the row, where the record just read is; counted from 1.
    pub fn position(&self) -> u64 {
        match &self.open {
            Open::Lines(lines) => lines.line(),
            Open::Rows(rows) => rows.row,
        }
    }

    fn value(&self, field: Field) -> Value<'_> {
        match (field, &self.open) {
            (Field::Constant(c), _) => Value::Text(self.part.constants[c].1.as_bytes()),
            (Field::Column(c), Open::Lines(lines)) => lines.value(c),
            (Field::Column(c), Open::Rows(rows)) => rows.columns[c].value(rows.next - 1),
        }
    }
}

impl RowsOf {
    fn none() -> RowsOf {
        RowsOf {
            batches: Box::new(std::iter::empty()),
            columns: Vec::new(),
            next: 0,
            length: 0,
            row: 0,
        }
    }

    fn advance(&mut self, origin: &Origin) -> Result<bool, LoadError> {
        while self.next == self.length {
            let Some((arrays, rows)) = self.batches.next().transpose()? else {
                return Ok(false);
            };
            // Their types are those of the schema, which can be read.
            let columns = arrays.iter().map(Column::new).collect::<Option<_>>();
            self.columns = columns.ok_or_else(|| LoadErrorKind::Damaged {
                origin: origin.clone(),
                format: Format::Arrow,
            })?;
            (self.next, self.length) = (0, rows);
        }
        self.next += 1;
        self.row += 1;
        Ok(true)
    }
}
