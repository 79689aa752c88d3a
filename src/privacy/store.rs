//! Columns of numbers by segments of rows, each in the narrowest type that holds its values
//! exactly, in memory or in a file.
//!
//! # Privacy
//!
//! The types, and so the sizes, depend on the values. They are used to read the values and for
//! nothing else.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::OnceLock;

use crate::linear::vectorised;

/// Rows that sums read together.
pub(super) const BLOCK: usize = 256;

/// Rows that are stored, and read from a file, together.
pub(super) const SEGMENT: usize = 16 * BLOCK;

/// How much of a table is kept in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spilling {
    /// The bytes of columns beyond which the rest goes into a file. It has no name, can be read by
    /// its owner alone, and is gone when the program is.
    pub memory: u64,
    /// The folder of that file; `None` where none may be made: then more rows are refused.
    pub folder: Option<PathBuf>,
}

impl Spilling {
    /// The most memory that [`Spilling::usual`] takes.
    const USUAL: u64 = 2 << 30;

    /// All in memory.
    pub fn never() -> Spilling {
        Spilling {
            memory: u64::MAX,
            folder: None,
        }
    }

    /// 2 GiB in memory, or half of what is free where that is less; the rest in a file in
    /// [`Spilling::usual_folder`].
    pub fn usual() -> Spilling {
        Spilling {
            memory: Spilling::USUAL.min(free_memory().unwrap_or(u64::MAX) / 2),
            folder: Some(Spilling::usual_folder()),
        }
    }

    /// The folder in `TMPDIR`, or else `/var/tmp`, which is on a disk where `/tmp` may be in memory.
    pub fn usual_folder() -> PathBuf {
        let named = std::env::var_os("TMPDIR").map(PathBuf::from);
        let lasting = || Some(PathBuf::from("/var/tmp")).filter(|folder| folder.is_dir());
        named.or_else(lasting).unwrap_or_else(std::env::temp_dir)
    }
}

/// Bytes that programs may still take, where the system says so.
fn free_memory() -> Option<u64> {
    let said = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = said
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Rows that do not fit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoRoom {
    #[error(
        "the columns that the model reads need more than the {:.3} GiB of memory allowed, and no \
         temporary file is allowed for the rest: allow more (`max_memory`), or allow a file",
        *memory as f64 / f64::from(1 << 30)
    )]
    Memory {
        /// Bytes.
        memory: u64,
    },
    #[error(
        "the columns that the model reads do not fit into memory, and a temporary file for the rest \
         cannot be written in {}: {reason}; choose a folder with space (`spill_dir`), or allow more \
         memory (`max_memory`)",
        folder.display()
    )]
    File { folder: PathBuf, reason: io::Error },
}

/// The columns of a table. Not `Debug`: it holds private values.
pub(super) struct Store {
    columns: usize,
    rows: usize,
    segments: Vec<Segment>,
    spill: Option<Spill>,
}

/// A file for the segments that are not kept in memory: it has no name, so that it is gone when
/// the program is.
struct Spill {
    file: File,
    end: u64,
    /// Why values read from here are not to be used.
    failed: OnceLock<io::Error>,
}

/// Rows by blocks, each with the values of one column after those of another. The blocks of many
/// columns that are stored one by one would push each other out of the caches.
struct Segment {
    pieces: Vec<Piece>,
    /// The rows of a block, [`BLOCK`] where there are as many, and its words.
    rows_of_block: usize,
    words_of_block: usize,
    words: Words,
}

enum Words {
    Memory(Box<[u64]>),
    /// Their place in the file, in bytes, and their number.
    File {
        at: u64,
        length: usize,
    },
}

/// The values of a column in a block.
#[derive(Clone, Copy)]
struct Piece {
    stored: Stored,
    /// The first of its words in a block.
    start: usize,
}

impl Segment {
    /// The first word of a column, and the rows of the segment there, in the block of a row.
    fn piece(&self, column: usize, row: usize) -> (usize, Range<usize>) {
        let block = row / self.rows_of_block;
        let start = block * self.rows_of_block;
        let word = block * self.words_of_block + self.pieces[column].start;
        (word, start..start + self.rows_of_block)
    }
}

#[derive(Clone, Copy)]
enum Stored {
    Constant(f64),
    I8,
    I16,
    I32,
    F32,
    F64,
}

/// The words of a segment that were read last from a file.
#[derive(Default)]
pub(super) struct Buffer {
    segment: Option<usize>,
    words: Vec<u64>,
}

/// Whether all values are the same number, to the bit, in another type.
macro_rules! fits {
    ($values:expr, $kind:ty) => {
        $values
            .iter()
            .all(|&x| f64::from(x as $kind).to_bits() == x.to_bits())
    };
}

impl Stored {
    fn narrowest(values: &[f64]) -> Stored {
        let first = values.first().copied().unwrap_or_default();
        if values.iter().all(|x| x.to_bits() == first.to_bits()) {
            Stored::Constant(first)
        } else if fits!(values, i8) {
            Stored::I8
        } else if fits!(values, i16) {
            Stored::I16
        } else if fits!(values, i32) {
            Stored::I32
        } else if fits!(values, f32) {
            Stored::F32
        } else {
            Stored::F64
        }
    }

    /// Bytes of a value.
    fn size(self) -> usize {
        match self {
            Stored::Constant(_) => 0,
            Stored::I8 => 1,
            Stored::I16 => 2,
            Stored::I32 | Stored::F32 => 4,
            Stored::F64 => 8,
        }
    }

    /// The words of so many values.
    fn words(self, values: usize) -> usize {
        (values * self.size()).div_ceil(8)
    }

    fn write(self, values: &[f64], words: &mut [u64]) {
        macro_rules! write_as {
            ($kind:ty) => {
                for (to, &x) in bytemuck::cast_slice_mut::<u64, $kind>(words)
                    .iter_mut()
                    .zip(values)
                {
                    *to = x as $kind;
                }
            };
        }
        match self {
            Stored::Constant(_) => {}
            Stored::I8 => write_as!(i8),
            Stored::I16 => write_as!(i16),
            Stored::I32 => write_as!(i32),
            Stored::F32 => write_as!(f32),
            Stored::F64 => write_as!(f64),
        }
    }

    /// Some of the values at these words.
    fn read(self, words: &[u64], rows: Range<usize>, out: &mut [f64]) {
        match self {
            Stored::Constant(x) => out.fill(x),
            Stored::I8 => widen_i8(&bytemuck::cast_slice(words)[rows], out),
            Stored::I16 => widen_i16(&bytemuck::cast_slice(words)[rows], out),
            Stored::I32 => widen_i32(&bytemuck::cast_slice(words)[rows], out),
            Stored::F32 => widen_f32(&bytemuck::cast_slice(words)[rows], out),
            Stored::F64 => out.copy_from_slice(&bytemuck::cast_slice(words)[rows]),
        }
    }
}

macro_rules! widen {
    ($name:ident, $kind:ty) => {
        vectorised! {
            fn $name(values: &[$kind], out: &mut [f64]) {
                for (to, &x) in out.iter_mut().zip(values) {
                    *to = f64::from(x);
                }
            }
        }
    };
}

widen!(widen_i8, i8);
widen!(widen_i16, i16);
widen!(widen_i32, i32);
widen!(widen_f32, f32);

impl Store {
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Values of a column as they are stored, where that is as `f64` in memory and in one block.
    fn plain(&self, column: usize, rows: &Range<usize>) -> Option<&[f64]> {
        let segment = self.segments.get(rows.start / SEGMENT)?;
        let (row, end) = (rows.start % SEGMENT, rows.start % SEGMENT + rows.len());
        let (word, of_block) = segment.piece(column, row);
        match (&segment.words, segment.pieces[column].stored) {
            (Words::Memory(words), Stored::F64) if end <= of_block.end => {
                let values: &[f64] = bytemuck::cast_slice(&words[word..]);
                values.get(row - of_block.start..end - of_block.start)
            }
            _ => None,
        }
    }

    /// Copies values of a column.
    fn read(&self, column: usize, rows: Range<usize>, buffer: &mut Buffer, mut out: &mut [f64]) {
        let mut row = rows.start;
        while row < rows.end {
            let (number, start) = (row / SEGMENT, row % SEGMENT);
            let segment = &self.segments[number];
            let words = match &segment.words {
                Words::Memory(words) => words,
                Words::File { at, length } => self.load(number, *at, *length, buffer),
            };
            let (word, of_block) = segment.piece(column, start);
            let end = of_block.end.min(start + out.len());
            let (now, rest) = out.split_at_mut(end - start);
            let of_piece = start - of_block.start..end - of_block.start;
            (segment.pieces[column].stored).read(&words[word..], of_piece, now);
            row += end - start;
            out = rest;
        }
    }

    fn load<'b>(&self, number: usize, at: u64, length: usize, buffer: &'b mut Buffer) -> &'b [u64] {
        if buffer.segment != Some(number) {
            buffer.segment = Some(number);
            buffer.words.resize(length, 0);
            let bytes = bytemuck::cast_slice_mut(&mut buffer.words);
            if let Some(spill) = &self.spill
                && let Err(error) = read_at(&spill.file, bytes, at)
            {
                // The first is kept.
                let _ = spill.failed.set(error);
            }
        }
        &buffer.words
    }

    /// Why what was read from the file so far is not to be used.
    pub fn failure(&self) -> Option<&io::Error> {
        self.spill.as_ref()?.failed.get()
    }

    /// Cuts the file short, as a failing disk might.
    #[cfg(test)]
    pub fn lose(&self) {
        let spill = self.spill.as_ref().expect("rows beside memory");
        spill.file.set_len(100).expect("a file that can be cut");
    }

    /// All values of a column.
    pub fn column(&self, column: usize) -> Vec<f64> {
        let mut values = vec![0.0; self.rows];
        self.read(column, 0..self.rows, &mut Buffer::default(), &mut values);
        values
    }
}

/// Fills `bytes` from a place in the file.
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_exact_at(file, bytes, at);
    #[cfg(windows)]
    {
        let mut done = 0;
        while done < bytes.len() {
            let place = at + done as u64;
            match std::os::windows::fs::FileExt::seek_read(file, &mut bytes[done..], place)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => done += read,
            }
        }
        Ok(())
    }
}

/// Writes all of `bytes` at a place in the file.
fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::write_all_at(file, bytes, at);
    #[cfg(windows)]
    {
        let mut done = 0;
        while done < bytes.len() {
            let place = at + done as u64;
            done += std::os::windows::fs::FileExt::seek_write(file, &bytes[done..], place)?;
        }
        Ok(())
    }
}

/// Stores rows, one after the other.
pub(super) struct StoreBuilder {
    store: Store,
    spilling: Spilling,
    /// Bytes that are in memory.
    used: u64,
    /// Whether types are chosen by the values.
    narrow: bool,
    /// The rows of the next segment, by columns.
    pending: Vec<Vec<f64>>,
    failed: Option<NoRoom>,
}

impl StoreBuilder {
    pub fn new(columns: usize, spilling: Spilling) -> StoreBuilder {
        StoreBuilder {
            store: Store {
                columns,
                rows: 0,
                segments: Vec::new(),
                spill: None,
            },
            spilling,
            used: 0,
            narrow: true,
            pending: vec![Vec::new(); columns],
            failed: None,
        }
    }

    /// For a few rows that are read once: all values as `f64`.
    pub fn plain(columns: usize) -> StoreBuilder {
        StoreBuilder {
            narrow: false,
            ..StoreBuilder::new(columns, Spilling::never())
        }
    }

    /// Adds a row with these values, one for each column.
    pub fn push(&mut self, row: &[f64]) {
        for (column, &value) in self.pending.iter_mut().zip(row) {
            column.push(value);
        }
        self.added(1);
    }

    /// Adds rows of which each column is given; all blocks but the last are of the same length, by
    /// which a segment can be divided.
    pub fn push_block<'a>(&mut self, rows: usize, columns: impl IntoIterator<Item = &'a [f64]>) {
        for (column, values) in self.pending.iter_mut().zip(columns) {
            column.extend_from_slice(values);
        }
        self.added(rows);
    }

    fn added(&mut self, rows: usize) {
        self.store.rows += rows;
        if self.store.rows.is_multiple_of(SEGMENT) {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let rows = self.pending.first().map_or(0, Vec::len);
        let rows_of_block = rows.clamp(1, BLOCK);
        let mut words_of_block = 0;
        let narrow = self.narrow;
        let piece = |values: &Vec<f64>| {
            let stored = if narrow {
                Stored::narrowest(values)
            } else {
                Stored::F64
            };
            let start = words_of_block;
            words_of_block += stored.words(rows_of_block);
            Piece { stored, start }
        };
        let pieces: Vec<Piece> = self.pending.iter().map(piece).collect();
        let mut words = vec![0; rows.div_ceil(rows_of_block) * words_of_block];
        for (piece, values) in pieces.iter().zip(&mut self.pending) {
            let blocks = words.chunks_exact_mut(words_of_block.max(1));
            for (block, values) in blocks.zip(values.chunks(rows_of_block)) {
                piece.stored.write(values, &mut block[piece.start..]);
            }
            values.clear();
        }
        let words = match self.place(words) {
            Ok(words) => words,
            Err(error) => {
                self.failed.get_or_insert(error);
                Words::Memory(Box::default())
            }
        };
        self.store.segments.push(Segment {
            pieces,
            rows_of_block,
            words_of_block,
            words,
        });
    }

    fn place(&mut self, words: Vec<u64>) -> Result<Words, NoRoom> {
        let bytes = 8 * words.len() as u64;
        if self.used + bytes <= self.spilling.memory {
            self.used += bytes;
            return Ok(Words::Memory(words.into_boxed_slice()));
        }
        let Some(folder) = &self.spilling.folder else {
            let memory = self.spilling.memory;
            return Err(NoRoom::Memory { memory });
        };
        let failed = |reason| NoRoom::File {
            folder: folder.clone(),
            reason,
        };
        let spill = match &mut self.store.spill {
            Some(spill) => spill,
            none => none.insert(Spill {
                file: tempfile::tempfile_in(folder).map_err(failed)?,
                end: 0,
                failed: OnceLock::new(),
            }),
        };
        let at = spill.end;
        let written = write_at(&spill.file, bytemuck::cast_slice(&words), at);
        written.map_err(failed)?;
        spill.end += bytes;
        Ok(Words::File {
            at,
            length: words.len(),
        })
    }

    /// The store, and what remains of the memory.
    pub fn finish(mut self) -> Result<(Store, Spilling), NoRoom> {
        if !self.store.rows.is_multiple_of(SEGMENT) {
            self.flush();
        }
        match self.failed {
            Some(error) => Err(error),
            None => {
                let memory = self.spilling.memory.saturating_sub(self.used);
                Ok((
                    self.store,
                    Spilling {
                        memory,
                        ..self.spilling
                    },
                ))
            }
        }
    }
}

/// Columns of several stores with as many rows each, in an order in which they are asked for.
pub(super) struct Columns {
    stores: Vec<Store>,
    /// Stores and their columns, each once.
    places: Vec<(usize, usize)>,
    /// For each column of the view, the index of its place.
    order: Vec<usize>,
}

impl Columns {
    /// `order`: the store and the column of each.
    pub fn new(stores: Vec<Store>, order: &[(usize, usize)]) -> Columns {
        let mut places: Vec<(usize, usize)> = Vec::new();
        let order = order.iter().map(|place| {
            let known = places.iter().position(|other| other == place);
            known.unwrap_or_else(|| {
                places.push(*place);
                places.len() - 1
            })
        });
        let order = order.collect();
        Columns {
            stores,
            places,
            order,
        }
    }

    /// The same and another store, in another order.
    pub fn with(mut self, store: Store, order: &[(usize, usize)]) -> Columns {
        self.stores.push(store);
        Columns::new(self.stores, order)
    }

    /// A window through which a thread reads rows.
    pub fn window(&self) -> Window<'_> {
        Window {
            columns: self,
            buffers: self.stores.iter().map(|_| Buffer::default()).collect(),
            values: Vec::new(),
        }
    }

    /// A view of the rows that `kept` names, in its order.
    pub fn gathered(&self, kept: impl ExactSizeIterator<Item = usize> + Clone) -> Columns {
        let mut window = self.window();
        let mut builder = StoreBuilder::plain(self.places.len());
        let mut row = vec![0.0; self.places.len()];
        for number in kept {
            for (value, &(store, column)) in row.iter_mut().zip(&self.places) {
                let buffer = &mut window.buffers[store];
                let value = std::slice::from_mut(value);
                self.stores[store].read(column, number..number + 1, buffer, value);
            }
            builder.push(&row);
        }
        let stores = builder.finish().map(|(store, _)| store);
        Columns {
            // All in memory, it does not fail.
            stores: stores.into_iter().collect(),
            places: (0..self.places.len()).map(|column| (0, column)).collect(),
            order: self.order.clone(),
        }
    }

    /// Cuts the files short.
    #[cfg(test)]
    pub fn lose(&self) {
        let beside = self.stores.iter().filter(|store| store.spill.is_some());
        beside.for_each(Store::lose);
    }

    /// Why what was read is not to be used.
    pub fn failure(&self) -> Option<&io::Error> {
        self.stores.iter().find_map(Store::failure)
    }
}

/// Rows of columns, a few at a time.
pub(super) struct Window<'a> {
    columns: &'a Columns,
    buffers: Vec<Buffer>,
    /// `[place][row]`
    values: Vec<f64>,
}

impl Window<'_> {
    /// The columns of some rows.
    pub fn rows(&mut self, rows: Range<usize>) -> Vec<&[f64]> {
        let Columns {
            stores,
            places,
            order,
        } = self.columns;
        let count = rows.len();
        self.values.resize(places.len() * count, 0.0);
        let all = places
            .iter()
            .zip(self.values.chunks_exact_mut(count.max(1)));
        for (&(store, column), values) in all {
            if stores[store].plain(column, &rows).is_none() {
                stores[store].read(column, rows.clone(), &mut self.buffers[store], values);
            }
        }
        let values = &self.values;
        let place = |&k: &usize| {
            let (store, column) = places[k];
            let plain = stores[store].plain(column, &rows);
            plain.unwrap_or(&values[k * count..][..count])
        };
        order.iter().map(place).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(columns: &[Vec<f64>], spilling: Spilling) -> Store {
        let mut builder = StoreBuilder::new(columns.len(), spilling);
        for i in 0..columns[0].len() {
            let row: Vec<f64> = columns.iter().map(|c| c[i]).collect();
            builder.push(&row);
        }
        builder.finish().unwrap().0
    }

    fn bits(values: &[f64]) -> Vec<u64> {
        values.iter().map(|x| x.to_bits()).collect()
    }

    /// Columns of each type, with what no narrower one holds.
    fn columns(rows: usize) -> Vec<Vec<f64>> {
        let column = |f: &dyn Fn(usize) -> f64| (0..rows).map(f).collect::<Vec<f64>>();
        vec![
            column(&|_| 3.25),
            column(&|i| (i % 2) as f64),
            column(&|i| i as f64 - 2000.0),
            column(&|i| i as f64 * 1e4),
            column(&|i| i as f64 * 0.25),
            column(&|i| i as f64 * 0.1),
            column(&|i| [-0.0, 0.0][i % 2]),
            column(&|i| [f64::NAN, f64::INFINITY, 5e-324, -129.0, 1e300][i % 5]),
            column(&|i| if i == rows - 1 { 1e-3 } else { 1.0 }),
        ]
    }

    fn in_file(memory: u64) -> Spilling {
        Spilling {
            memory,
            folder: Some(std::env::temp_dir()),
        }
    }

    // Wrong here: a likelihood of other values than those of the file.
    #[test]
    fn every_value_comes_back_to_the_bit_from_memory_and_file() {
        for rows in [1, 255, SEGMENT - 1, SEGMENT, SEGMENT + 1, 2 * SEGMENT + 300] {
            let given = columns(rows);
            for spilling in [Spilling::never(), in_file(0), in_file(100_000)] {
                let store = built(&given, spilling);
                for (c, values) in given.iter().enumerate() {
                    assert_eq!(bits(&store.column(c)), bits(values), "{rows}, {c}");
                }
                let order = [(0, 5), (0, 1), (0, 5), (0, 7)];
                let columns = Columns::new(vec![store], &order);
                let mut window = columns.window();
                let ends = [0, 1, rows / 2, rows.saturating_sub(200), rows];
                for range in ends.windows(2).map(|ends| ends[0]..ends[1].max(ends[0])) {
                    let found = window.rows(range.clone());
                    for (found, (_, c)) in found.iter().zip(order) {
                        assert_eq!(bits(found), bits(&given[c][range.clone()]));
                    }
                }
                let kept: Vec<usize> = (0..rows).filter(|row| row % 7 == 3).collect();
                let gathered = columns.gathered(kept.iter().copied());
                let found = gathered.window().rows(0..kept.len().min(SEGMENT)).concat();
                let of_column = |c: usize| kept.iter().map(move |&row| (c, row));
                let wanted = order.iter().flat_map(|&(_, c)| of_column(c).take(SEGMENT));
                let wanted: Vec<f64> = wanted.map(|(c, row)| given[c][row]).collect();
                assert_eq!(bits(&found), bits(&wanted));
            }
        }
    }

    #[test]
    fn types_are_the_narrowest() {
        let given = columns(SEGMENT);
        let sizes = given.iter().map(|values| Stored::narrowest(values).size());
        assert_eq!(sizes.collect::<Vec<_>>(), [0, 1, 2, 4, 4, 8, 4, 8, 8]);
        let store = built(&given, Spilling::never());
        let words = |segment: &Segment| match &segment.words {
            Words::Memory(words) => words.len(),
            Words::File { length, .. } => *length,
        };
        let bytes: usize = store
            .segments
            .iter()
            .map(|segment| 8 * words(segment))
            .sum();
        assert_eq!(bytes, (1 + 2 + 3 * 4 + 3 * 8) * SEGMENT);
    }

    #[test]
    fn what_has_no_room_is_refused() {
        let refused = |folder: Option<PathBuf>| {
            let mut builder = StoreBuilder::new(
                1,
                Spilling {
                    memory: 100,
                    folder,
                },
            );
            for i in 0..2 * SEGMENT {
                builder.push(&[i as f64]);
            }
            builder.finish().is_err()
        };
        assert!(refused(None));
        assert!(refused(Some(PathBuf::from("/no/such/folder"))));
        assert!(!refused(Some(std::env::temp_dir())));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_a_failure_and_no_panic() {
        let store = built(&columns(SEGMENT), in_file(0));
        store.lose();
        assert!(store.failure().is_none());
        store.column(2);
        assert!(store.failure().is_some());
    }
}
