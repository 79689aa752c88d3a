//! Arrow IPC: streams of messages, and files, whose footer says where the messages are.

use std::collections::HashMap;
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::{Block, MessageHeader, root_as_footer, root_as_message};
use arrow_schema::SchemaRef;

use super::batches::{Batch, Batches, guarded};
use super::error::{Format, LoadError, LoadErrorKind, Origin, read_error};

const FORMAT: Format = Format::Arrow;

/// Stands at both ends of a file.
const MARK: &[u8] = b"ARROW1";

/// Stands before the length of a message; programs of before 2019 leave it out.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// Neither of its codecs, LZ4 and zstd, makes more of a byte.
const MOST_EXPANDED: u64 = 1 << 16;

/// A message: what describes it, and its body.
type Message = (Vec<u8>, Vec<u8>);

type Messages = Box<dyn FnMut() -> io::Result<Option<Message>>>;

/// Reads the schema of a stream.
pub(super) fn open_stream(
    mut input: impl BufRead + 'static,
    origin: &Origin,
) -> Result<Batches, LoadError> {
    let first = next_of_stream(&mut input);
    let first = first.map_err(|reason| read_error(origin, Some(FORMAT), reason))?;
    let schema = guarded(origin, FORMAT, || {
        let (header, _) = first.ok_or_else(|| damaged(origin))?;
        let schema = root_as_message(&header)
            .ok()
            .and_then(|m| m.header_as_schema());
        schema.and_then(converted).ok_or_else(|| damaged(origin))
    })?;
    Ok(batches(
        schema,
        Box::new(move || next_of_stream(&mut input)),
        origin,
    ))
}

/// Reads the footer of a file.
pub(super) fn open_file(
    mut input: impl Read + Seek + 'static,
    origin: &Origin,
) -> Result<Batches, LoadError> {
    let fail = |reason| read_error(origin, Some(FORMAT), reason);
    let footer = footer(&mut input).map_err(fail)?;
    let (schema, blocks) = guarded(origin, FORMAT, || {
        let footer = root_as_footer(&footer).map_err(|_| damaged(origin))?;
        let schema = footer.schema().and_then(converted);
        let blocks = [footer.dictionaries(), footer.recordBatches()];
        let blocks: Vec<Block> = blocks.iter().flatten().flatten().copied().collect();
        Ok((schema.ok_or_else(|| damaged(origin))?, blocks))
    })?;
    let mut blocks = blocks.into_iter();
    let next = move || {
        let block = blocks.next();
        block
            .map(|block| message_at(&mut input, &block))
            .transpose()
    };
    Ok(batches(schema, Box::new(next), origin))
}

fn batches(schema: SchemaRef, messages: Messages, origin: &Origin) -> Batches {
    let (whole, origin) = (schema.clone(), origin.clone());
    Batches::new(schema, move |columns| {
        Ok(Box::new(Decoded {
            messages,
            origin,
            schema: whole,
            columns: columns.to_vec(),
            dictionaries: HashMap::new(),
        }))
    })
}

fn converted(schema: arrow_ipc::Schema) -> Option<SchemaRef> {
    let is_ours = schema.endianness().equals_to_target_endianness();
    is_ours.then(|| Arc::new(fb_to_schema(schema)))
}

/// The next message of a stream; `None` at its end.
///
/// Errors: the stream, which must have a mark at its end and nothing after it, was cut short.
fn next_of_stream(input: &mut impl BufRead) -> io::Result<Option<Message>> {
    let mut four = [0; 4];
    input.read_exact(&mut four)?;
    if four == CONTINUATION {
        input.read_exact(&mut four)?;
    }
    let length = u32::from_le_bytes(four);
    if length == 0 {
        return if input.fill_buf()?.is_empty() {
            Ok(None)
        } else {
            Err(io::ErrorKind::InvalidData.into())
        };
    }
    with_body(input, length.into()).map(Some)
}

fn message_at(input: &mut (impl Read + Seek), block: &Block) -> io::Result<Message> {
    let number = |n: i64| u64::try_from(n).map_err(|_| io::ErrorKind::InvalidData);
    input.seek(SeekFrom::Start(number(block.offset())?))?;
    let mut header = exactly(input, number(block.metaDataLength().into())?)?;
    let prefix = if header.starts_with(&CONTINUATION) {
        8
    } else {
        4
    };
    header.drain(..prefix.min(header.len()));
    let body = exactly(input, number(block.bodyLength())?)?;
    Ok((header, body))
}

fn with_body(input: &mut impl Read, length: u64) -> io::Result<Message> {
    let header = exactly(input, length)?;
    let message = root_as_message(&header).map_err(|_| io::ErrorKind::InvalidData)?;
    let length = u64::try_from(message.bodyLength()).map_err(|_| io::ErrorKind::InvalidData)?;
    let body = exactly(input, length)?;
    Ok((header, body))
}

fn footer(input: &mut (impl Read + Seek)) -> io::Result<Vec<u8>> {
    let damaged = || io::Error::from(io::ErrorKind::InvalidData);
    let end = input.seek(SeekFrom::End(0))?;
    let tail = end.checked_sub(4 + MARK.len() as u64).ok_or_else(damaged)?;
    input.seek(SeekFrom::Start(tail))?;
    let bytes = exactly(input, end - tail)?;
    let (length, mark) = bytes.split_first_chunk().ok_or_else(damaged)?;
    let start = tail.checked_sub(u32::from_le_bytes(*length).into());
    let start = start.filter(|_| mark == MARK).ok_or_else(damaged)?;
    input.seek(SeekFrom::Start(start))?;
    exactly(input, tail - start)
}

/// No memory is set aside for a length that may be wrong.
fn exactly(input: &mut impl Read, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if input.take(length).read_to_end(&mut bytes)? as u64 == length {
        Ok(bytes)
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

struct Decoded {
    messages: Messages,
    origin: Origin,
    schema: SchemaRef,
    columns: Vec<usize>,
    dictionaries: HashMap<i64, ArrayRef>,
}

impl Decoded {
    /// Reads up to the next batch.
    fn batch(&mut self) -> Result<Option<RecordBatch>, LoadError> {
        let origin = self.origin.clone();
        let fail = |reason| read_error(&origin, Some(FORMAT), reason);
        while let Some(message) = (self.messages)().map_err(fail)? {
            let decoded = guarded(&origin, FORMAT, || {
                self.decode(message).ok_or_else(|| damaged(&origin))
            });
            if let Some(batch) = decoded? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }

    /// `Some(None)` for a dictionary; `None` for what cannot be decoded.
    fn decode(&mut self, (header, body): Message) -> Option<Option<RecordBatch>> {
        let message = root_as_message(&header).ok()?;
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

impl Iterator for Decoded {
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
