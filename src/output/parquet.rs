//! Parquet files of numbers: only as much of the format as a table of draws needs.
//!
//! One row group, every column required and without nesting, values PLAIN and not compressed,
//! in data pages of the first version; the metadata in Thrift's compact protocol. Every reader
//! reads this (`tests/readers` tries pyarrow, pandas and polars), and a crate that writes all
//! of Parquet would cost 70 seconds of every clean build.
//!
//! Reference: the Apache Parquet format, its `parquet.thrift` and encodings; the specification of
//! Thrift's compact protocol.

/// A column of a table; all have one length.
pub(super) struct Column {
    pub name: String,
    pub values: Values,
}

pub(super) enum Values {
    Ints(Vec<i32>),
    Reals(Vec<f64>),
}

/// Values of a page: at most a megabyte.
const PAGE: usize = 1 << 17;

const MAGIC: &[u8] = b"PAR1";

// The numbers of parquet.thrift.
const INT32: i32 = 1;
const DOUBLE: i32 = 5;
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const REQUIRED: i32 = 0;
const UNCOMPRESSED: i32 = 0;
const DATA_PAGE: i32 = 0;

impl Values {
    fn len(&self) -> usize {
        match self {
            Values::Ints(values) => values.len(),
            Values::Reals(values) => values.len(),
        }
    }

    fn kind(&self) -> i32 {
        match self {
            Values::Ints(_) => INT32,
            Values::Reals(_) => DOUBLE,
        }
    }

    fn bytes(&self, range: std::ops::Range<usize>) -> Vec<u8> {
        match self {
            Values::Ints(v) => v[range].iter().flat_map(|x| x.to_le_bytes()).collect(),
            Values::Reals(v) => v[range].iter().flat_map(|x| x.to_le_bytes()).collect(),
        }
    }
}

/// The place of a column in the file.
struct Chunk {
    start: usize,
    length: usize,
}

/// The bytes of a file. `rows`: the length of each column; `metadata`: keys and values.
pub(super) fn file(columns: &[Column], rows: usize, metadata: &[(&str, String)]) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    let chunks: Vec<Chunk> = columns
        .iter()
        .map(|column| {
            let start = out.len();
            pages(&column.values, &mut out);
            Chunk {
                start,
                length: out.len() - start,
            }
        })
        .collect();
    let footer = footer(columns, &chunks, rows, metadata);
    out.extend_from_slice(&footer);
    out.extend_from_slice(&(footer.len() as u32).to_le_bytes());
    out.extend_from_slice(MAGIC);
    out
}

fn pages(values: &Values, out: &mut Vec<u8>) {
    // A column without values has one page without values.
    for start in (0..values.len().max(1)).step_by(PAGE) {
        let end = values.len().min(start + PAGE);
        let bytes = values.bytes(start..end);
        let mut header = Struct::new();
        header.int(1, DATA_PAGE);
        header.int(2, bytes.len() as i32);
        header.int(3, bytes.len() as i32);
        let mut page = Struct::new();
        page.int(1, (end - start) as i32);
        page.int(2, PLAIN);
        page.int(3, RLE);
        page.int(4, RLE);
        header.structure(5, page);
        out.extend(header.finish());
        out.extend(bytes);
    }
}

fn footer(
    columns: &[Column],
    chunks: &[Chunk],
    rows: usize,
    metadata: &[(&str, String)],
) -> Vec<u8> {
    let mut root = Struct::new();
    root.text(4, "draws");
    root.int(5, columns.len() as i32);
    let mut schema = vec![root];
    for column in columns {
        let mut element = Struct::new();
        element.int(1, column.values.kind());
        element.int(3, REQUIRED);
        element.text(4, &column.name);
        schema.push(element);
    }
    let mut group = Struct::new();
    let described = columns.iter().zip(chunks);
    group.structures(1, described.map(|(column, at)| chunk(column, at)).collect());
    group.long(2, chunks.iter().map(|c| c.length as i64).sum());
    group.long(3, rows as i64);
    let pairs = metadata.iter().map(|(key, value)| {
        let mut pair = Struct::new();
        pair.text(1, key);
        pair.text(2, value);
        pair
    });
    let mut file = Struct::new();
    file.int(1, 1);
    file.structures(2, schema);
    file.long(3, rows as i64);
    file.structures(4, vec![group]);
    file.structures(5, pairs.collect());
    file.text(6, concat!("dpm version ", env!("CARGO_PKG_VERSION")));
    file.finish()
}

fn chunk(column: &Column, at: &Chunk) -> Struct {
    let mut meta = Struct::new();
    meta.int(1, column.values.kind());
    meta.ints(2, &[PLAIN]);
    meta.texts(3, &[&column.name]);
    meta.int(4, UNCOMPRESSED);
    meta.long(5, column.values.len() as i64);
    meta.long(6, at.length as i64);
    meta.long(7, at.length as i64);
    meta.long(9, at.start as i64);
    let mut chunk = Struct::new();
    chunk.long(2, at.start as i64);
    chunk.structure(3, meta);
    chunk
}

/// A struct in Thrift's compact protocol: fields in the order of their numbers, each with the
/// step from the number before and its type in one byte.
struct Struct {
    bytes: Vec<u8>,
    last: u8,
}

// Types of the compact protocol.
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

impl Struct {
    fn new() -> Struct {
        Struct {
            bytes: Vec::new(),
            last: 0,
        }
    }

    /// Field numbers increase by less than 16 from one field to the next.
    fn field(&mut self, number: u8, kind: u8) {
        self.bytes.push((number - self.last) << 4 | kind);
        self.last = number;
    }

    fn int(&mut self, number: u8, value: i32) {
        self.field(number, I32);
        zigzag(i64::from(value), &mut self.bytes);
    }

    fn long(&mut self, number: u8, value: i64) {
        self.field(number, I64);
        zigzag(value, &mut self.bytes);
    }

    fn text(&mut self, number: u8, value: &str) {
        self.field(number, BINARY);
        binary(value, &mut self.bytes);
    }

    fn structure(&mut self, number: u8, value: Struct) {
        self.field(number, STRUCT);
        self.bytes.extend(value.finish());
    }

    fn structures(&mut self, number: u8, values: Vec<Struct>) {
        self.list(number, STRUCT, values.len());
        for value in values {
            self.bytes.extend(value.finish());
        }
    }

    fn ints(&mut self, number: u8, values: &[i32]) {
        self.list(number, I32, values.len());
        for &value in values {
            zigzag(i64::from(value), &mut self.bytes);
        }
    }

    fn texts(&mut self, number: u8, values: &[&str]) {
        self.list(number, BINARY, values.len());
        for value in values {
            binary(value, &mut self.bytes);
        }
    }

    /// Lengths below 15 share a byte with the elements' type.
    fn list(&mut self, number: u8, kind: u8, length: usize) {
        self.field(number, LIST);
        if length < 15 {
            self.bytes.push((length as u8) << 4 | kind);
        } else {
            self.bytes.push(0xf0 | kind);
            varint(length as u64, &mut self.bytes);
        }
    }

    /// Ends with the stop field.
    fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

fn binary(text: &str, out: &mut Vec<u8>) {
    varint(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
}

/// 0, -1, 1, -2, ... as 0, 1, 2, 3, ...
fn zigzag(value: i64, out: &mut Vec<u8>) {
    varint(((value << 1) ^ (value >> 63)) as u64, out);
}

/// Seven bits to a byte, the low ones first; the top bit says that more follow.
fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The protocol's own examples.
    #[test]
    fn numbers_are_written_as_thrift_does() {
        let bytes = |write: fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            write(&mut out);
            out
        };
        assert_eq!(bytes(|out| varint(50399, out)), [0xdf, 0x89, 0x03]);
        assert_eq!(bytes(|out| zigzag(-1, out)), [1]);
        assert_eq!(bytes(|out| zigzag(1, out)), [2]);
        assert_eq!(bytes(|out| zigzag(i64::MIN, out)).len(), 10);
        let mut fields = Struct::new();
        fields.int(1, 3);
        fields.text(4, "ab");
        fields.ints(5, &[0; 16]);
        let expected = [
            &[0x15, 6, 0x38, 2, b'a', b'b', 0x19, 0xf5, 16][..],
            &[0; 17],
        ]
        .concat();
        assert_eq!(fields.finish(), expected);
    }

    #[test]
    fn a_file_begins_and_ends_as_it_must() {
        let columns = [Column {
            name: "x".into(),
            values: Values::Reals(vec![1.5; PAGE + 1]),
        }];
        let bytes = file(&columns, PAGE + 1, &[("key", "value".into())]);
        assert!(bytes.starts_with(MAGIC) && bytes.ends_with(MAGIC));
        let end = bytes.len() - 8;
        let length = u32::from_le_bytes(bytes[end..end + 4].try_into().unwrap()) as usize;
        // Between the two: all values, and less than 100 bytes about them for two pages.
        let values = 8 * (PAGE + 1);
        let pages = end - length - MAGIC.len();
        assert!(pages > values && pages < values + 100, "{pages}");
        let empty = file(&[], 0, &[]);
        assert!(empty.starts_with(MAGIC) && empty.ends_with(MAGIC));
    }
}
