//! Arrow IPC: streams, and files, which hold a stream between a mark and an index.
//!
//! The index of a file is not used: its messages are read one after the other, as of a stream. So
//! a file may come through a pipe too.

use std::collections::HashMap;
use std::io::{self, BufRead, Read};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::{MessageHeader, root_as_message};
use arrow_schema::SchemaRef;

use super::error::{Format, LoadError, LoadErrorKind, Origin};
use super::open::read_error;
use super::source::{Batch, Batches, guarded};

const FORMAT: Format = Format::Arrow;

/// Stands at both ends of a file.
const MARK: &[u8] = b"ARROW1";

/// Neither of its codecs, LZ4 and zstd, makes more of a byte.
const MOST_EXPANDED: u64 = 1 << 16;

/// Reads the schema.
pub(super) fn open(input: impl BufRead + 'static, origin: &Origin) -> Result<Batches, LoadError> {
    let mut messages = Messages::new(input, origin)?;
    let schema = match messages.advance()? {
        Some(body) if body.is_empty() => guarded(origin, FORMAT, || {
            messages.schema().ok_or_else(|| damaged(origin))
        })?,
        _ => return Err(damaged(origin)),
    };
    let whole = schema.clone();
    let read = move |columns: &[usize]| {
        Ok(Box::new(Decoded {
            messages,
            schema: whole,
            columns: columns.to_vec(),
            dictionaries: HashMap::new(),
        }) as Box<dyn Iterator<Item = _>>)
    };
    Ok(Batches::new(schema, read))
}

/// Takes a stream apart.
struct Messages<R> {
    input: R,
    is_file: bool,
    origin: Origin,
    /// What describes the message just read.
    header: Vec<u8>,
}

impl<R: BufRead> Messages<R> {
    fn new(mut input: R, origin: &Origin) -> Result<Messages<R>, LoadError> {
        let fail = |reason| read_error(origin, Some(FORMAT), reason);
        let is_file = input.fill_buf().map_err(fail)?.starts_with(MARK);
        if is_file {
            exactly(&mut input, 8).map_err(fail)?;
        }
        Ok(Messages {
            input,
            is_file,
            origin: origin.clone(),
            header: Vec::new(),
        })
    }

    /// The body of the next message; `None` at the end of the stream.
    ///
    /// Errors: the stream, which must have a mark at its end, was cut short.
    fn advance(&mut self) -> Result<Option<Vec<u8>>, LoadError> {
        let origin = self.origin.clone();
        let fail = |reason| read_error(&origin, Some(FORMAT), reason);
        let length = self.length().map_err(fail)?;
        if length == 0 {
            self.check_end().map_err(fail)?;
            return Ok(None);
        }
        self.header = exactly(&mut self.input, length.into()).map_err(fail)?;
        let message = root_as_message(&self.header).map_err(|_| damaged(&origin))?;
        let length = u64::try_from(message.bodyLength()).map_err(|_| damaged(&origin))?;
        exactly(&mut self.input, length).map(Some).map_err(fail)
    }

    fn length(&mut self) -> io::Result<u32> {
        let mut four = || {
            let mut bytes = [0; 4];
            let read = self.input.read_exact(&mut bytes);
            read.map(|()| u32::from_le_bytes(bytes))
        };
        let mut first = four()?;
        // A file's mark is padded, to 8 bytes or to 64.
        while first == 0 && self.header.is_empty() && self.is_file {
            first = four()?;
        }
        // Programs of before 2019 leave the continuation mark out.
        match first {
            u32::MAX => four(),
            length => Ok(length),
        }
    }

    /// After the stream there is nothing, or a file's index and mark.
    fn check_end(&mut self) -> io::Result<()> {
        let mut end = Vec::new();
        loop {
            let bytes = self.input.fill_buf()?;
            if bytes.is_empty() {
                break;
            }
            let length = bytes.len();
            end.extend_from_slice(&bytes[length.saturating_sub(MARK.len())..]);
            end.drain(..end.len().saturating_sub(MARK.len()));
            self.input.consume(length);
        }
        match end == if self.is_file { MARK } else { b"" } {
            true => Ok(()),
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn schema(&self) -> Option<SchemaRef> {
        let schema = root_as_message(&self.header).ok()?.header_as_schema()?;
        let is_ours = schema.endianness().equals_to_target_endianness();
        is_ours.then(|| try_fb_to_schema(schema).ok().map(Arc::new))?
    }
}

/// No memory is set aside for a length that may be wrong.
fn exactly(input: &mut impl Read, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match input.take(length).read_to_end(&mut bytes)? as u64 == length {
        true => Ok(bytes),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

struct Decoded<R> {
    messages: Messages<R>,
    schema: SchemaRef,
    columns: Vec<usize>,
    dictionaries: HashMap<i64, ArrayRef>,
}

impl<R: BufRead> Decoded<R> {
    /// Reads up to the next batch.
    fn batch(&mut self) -> Result<Option<RecordBatch>, LoadError> {
        let origin = self.messages.origin.clone();
        while let Some(body) = self.messages.advance()? {
            let decoded = guarded(&origin, FORMAT, || {
                self.decode(body).ok_or_else(|| damaged(&origin))
            });
            if let Some(batch) = decoded? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// `Some(None)` for a dictionary; `None` for what cannot be decoded.
    fn decode(&mut self, body: Vec<u8>) -> Option<Option<RecordBatch>> {
        let message = root_as_message(&self.messages.header).ok()?;
        let version = message.version();
        let dictionary = message.header_as_dictionary_batch();
        let batch = match message.header_type() {
            MessageHeader::RecordBatch => message.header_as_record_batch()?,
            MessageHeader::DictionaryBatch => dictionary?.data()?,
            _ => return None,
        };
        let is_compressed = batch.compression().is_some();
        for buffer in batch.buffers().iter().flatten() {
            let bytes = inside(&body, buffer.offset(), buffer.length())?;
            if is_compressed && !is_plausible(bytes) {
                return None;
            }
        }
        let body = body.into();
        match dictionary {
            Some(dictionary) => {
                let (schema, known) = (&self.schema, &mut self.dictionaries);
                read_dictionary(&body, dictionary, schema, known, &version).ok()?;
                Some(None)
            }
            None => {
                let (schema, columns) = (self.schema.clone(), Some(&self.columns[..]));
                let known = &self.dictionaries;
                read_record_batch(&body, batch, schema, known, columns, &version)
                    .ok()
                    .map(Some)
            }
        }
    }
}

fn inside(body: &[u8], offset: i64, length: i64) -> Option<&[u8]> {
    let offset = usize::try_from(offset).ok()?;
    body.get(offset..)?.get(..usize::try_from(length).ok()?)
}

/// Whether a compressed buffer may be as long as it says, before memory is set aside for it.
fn is_plausible(buffer: &[u8]) -> bool {
    let Some((size, compressed)) = buffer.split_first_chunk() else {
        return buffer.is_empty();
    };
    // -1 says that it is not compressed.
    let size = i64::from_le_bytes(*size);
    size == -1 || u64::try_from(size).is_ok_and(|s| s / MOST_EXPANDED <= compressed.len() as u64)
}

impl<R: BufRead> Iterator for Decoded<R> {
    type Item = Result<Batch, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let split = |batch: RecordBatch| (batch.columns().to_vec(), batch.num_rows());
        self.batch().map(|batch| batch.map(split)).transpose()
    }
}

fn damaged(origin: &Origin) -> LoadError {
    LoadErrorKind::Damaged {
        origin: origin.clone(),
        format: FORMAT,
    }
    .into()
}
