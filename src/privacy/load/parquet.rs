//! Parquet files.
//!
//! # Privacy
//!
//! A record is a row. A file's statistics, indexes, row groups and dictionaries serve to decode
//! its values and for nothing else.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Compression;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetStatisticsPolicy};
use parquet::file::reader::ChunkReader;

use super::batches::{Batch, Batches, guarded};
use super::error::{Format, LoadError, LoadErrorKind, Origin};

/// Rows that are decoded at a time.
const ROWS: usize = 8192;

const FORMAT: Format = Format::Parquet;

/// Reads what a file says of itself.
pub(super) fn open<R: ChunkReader + 'static>(
    input: R,
    origin: &Origin,
) -> Result<Batches, LoadError> {
    if is_encrypted(&input) {
        return Err(LoadErrorKind::Encrypted(origin.clone()).into());
    }
    let metadata = guarded(origin, FORMAT, || {
        let metadata = ArrowReaderMetadata::load(&input, options());
        described(metadata.map_err(|_| damaged(origin))?, origin)
    })?;
    let schema = metadata.schema().clone();
    let origin = origin.clone();
    let read = move |columns: &[usize]| {
        let metadata = metadata.clone();
        check_compression(metadata.metadata(), columns, &origin)?;
        let rows = metadata.metadata().file_metadata().num_rows();
        let mask = ProjectionMask::roots(metadata.parquet_schema(), columns.iter().copied());
        let builder = ParquetRecordBatchReaderBuilder::new_with_metadata(input, metadata)
            .with_batch_size(ROWS)
            .with_projection(mask);
        let batches = guarded(&origin, FORMAT, || {
            builder.build().map_err(|_| damaged(&origin))
        })?;
        Ok(Box::new(Decoded {
            batches,
            left: u64::try_from(rows).map_err(|_| damaged(&origin))?,
            origin,
        }) as Box<dyn Iterator<Item = _>>)
    };
    Ok(Batches::new(schema, read))
}

/// Statistics are not even decoded.
fn options() -> ArrowReaderOptions {
    ArrowReaderOptions::new()
        .with_page_index_policy(PageIndexPolicy::Skip)
        .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
}

/// Has text decoded as views of the file's pages: a word is held once, however many rows name it.
fn described(
    metadata: ArrowReaderMetadata,
    origin: &Origin,
) -> Result<ArrowReaderMetadata, LoadError> {
    let schema = metadata.schema();
    let fields = schema.fields().iter().map(|field| {
        let kind = match field.data_type() {
            DataType::Dictionary(_, values) => values,
            kind => kind,
        };
        match kind {
            DataType::Utf8 | DataType::LargeUtf8 => {
                Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View))
            }
            _ => field.clone(),
        }
    });
    let schema: SchemaRef = Arc::new(Schema::new_with_metadata(
        fields.collect::<Vec<_>>(),
        schema.metadata().clone(),
    ));
    ArrowReaderMetadata::try_new(metadata.metadata().clone(), options().with_schema(schema))
        .map_err(|_| damaged(origin))
}

fn is_encrypted<R: ChunkReader>(input: &R) -> bool {
    let end = input.len().saturating_sub(4);
    input
        .get_bytes(end, 4)
        .is_ok_and(|mark| mark.as_ref() == b"PARE")
}

fn check_compression(
    metadata: &ParquetMetaData,
    columns: &[usize],
    origin: &Origin,
) -> Result<(), LoadError> {
    let schema = metadata.file_metadata().schema_descr();
    for group in metadata.row_groups() {
        for (leaf, chunk) in group.columns().iter().enumerate() {
            let is_read = columns.contains(&schema.get_column_root_idx(leaf));
            let name = match chunk.compression() {
                Compression::BROTLI(_) => "Brotli",
                Compression::LZO => "LZO",
                _ => continue,
            };
            if is_read {
                let origin = origin.clone();
                return Err(LoadErrorKind::Compression { origin, name }.into());
            }
        }
    }
    Ok(())
}

/// The batches, and whether there are as many rows as the file says.
struct Decoded {
    batches: ParquetRecordBatchReader,
    left: u64,
    origin: Origin,
}

impl Iterator for Decoded {
    type Item = Result<Batch, LoadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let origin = &self.origin;
        let next = guarded(origin, FORMAT, || {
            self.batches.next().transpose().map_err(|_| damaged(origin))
        });
        let rows = match &next {
            Ok(Some(batch)) => batch.num_rows() as u64,
            Ok(None) if self.left == 0 => return None,
            Ok(None) => return Some(Err(damaged(origin))),
            Err(_) => 0,
        };
        match self.left.checked_sub(rows) {
            Some(left) => self.left = left,
            None => return Some(Err(damaged(origin))),
        }
        let split = |batch: RecordBatch| (batch.columns().to_vec(), batch.num_rows());
        next.map(|batch| batch.map(split)).transpose()
    }
}

fn damaged(origin: &Origin) -> LoadError {
    LoadErrorKind::Damaged {
        origin: origin.clone(),
        format: FORMAT,
    }
    .into()
}
