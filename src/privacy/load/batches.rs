//! Typed columns, batch by batch.

use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;

use super::error::LoadError;
#[cfg(feature = "parquet")]
use super::error::{Format, LoadErrorKind, Origin};

/// Columns of as many rows.
pub(in crate::privacy) type Batch = (Vec<ArrayRef>, usize);

/// The batches that are read.
pub(super) type Iter = Box<dyn Iterator<Item = Result<Batch, LoadError>>>;

/// Typed columns: their names and types, and the batches of those that are chosen by number, in
/// increasing order.
pub(in crate::privacy) struct Batches {
    pub(super) schema: SchemaRef,
    pub(super) read: Box<Read>,
}

pub(super) type Read = dyn FnOnce(&[usize]) -> Result<Iter, LoadError>;

impl Batches {
    pub fn new(
        schema: SchemaRef,
        read: impl FnOnce(&[usize]) -> Result<Iter, LoadError> + 'static,
    ) -> Batches {
        Batches {
            schema,
            read: Box::new(read),
        }
    }
}

/// The answer of a decoder; if it panics, the file is damaged. A hook may show the panic's
/// message, in which no decoder is known to put a value.
#[cfg(feature = "parquet")]
pub(super) fn guarded<T>(
    origin: &Origin,
    format: Format,
    decode: impl FnOnce() -> Result<T, LoadError>,
) -> Result<T, LoadError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(decode)).unwrap_or_else(|_| {
        let origin = origin.clone();
        Err(LoadErrorKind::Damaged { origin, format }.into())
    })
}
