//! Parquet files: tables of draws, and of records that are made up.

use std::sync::Arc;

use ::parquet::basic::{LogicalType, Repetition, Type as Kind};
use ::parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use ::parquet::errors::Result;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::Type;

/// A column of a table; all have one length.
pub(super) struct Column {
    pub name: String,
    pub values: Values,
}

pub(super) enum Values {
    Ints(Vec<i32>),
    Longs(Vec<i64>),
    Reals(Vec<f64>),
    Words(Vec<String>),
}

/// The bytes of a file: one row group, every column required. `name`: of the schema. `metadata`: keys
/// and values.
pub(super) fn file(name: &str, columns: &[Column], metadata: &[(&str, String)]) -> Result<Vec<u8>> {
    let field = |column: &Column| {
        let (kind, logical) = match column.values {
            Values::Ints(_) => (Kind::INT32, None),
            Values::Longs(_) => (Kind::INT64, None),
            Values::Reals(_) => (Kind::DOUBLE, None),
            Values::Words(_) => (Kind::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let field = Type::primitive_type_builder(&column.name, kind).with_logical_type(logical);
        let field = field.with_repetition(Repetition::REQUIRED).build();
        field.map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<Vec<_>>>()?;
    let schema = Type::group_type_builder(name).with_fields(fields).build()?;
    let pair = |(key, value): &(&str, String)| KeyValue::new(key.to_string(), value.clone());
    let properties = WriterProperties::builder()
        .set_created_by(concat!("dpm version ", env!("CARGO_PKG_VERSION")).to_owned())
        // Draws hardly repeat.
        .set_dictionary_enabled(false)
        .set_key_value_metadata(Some(metadata.iter().map(pair).collect()))
        .build();
    let mut file = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut group = file.next_row_group()?;
    for column in columns {
        let mut writer = group.next_column()?.ok_or_else(|| {
            ::parquet::errors::ParquetError::General("a column more than the schema".to_owned())
        })?;
        match &column.values {
            Values::Ints(v) => writer.typed::<Int32Type>().write_batch(v, None, None)?,
            Values::Longs(v) => writer.typed::<Int64Type>().write_batch(v, None, None)?,
            Values::Reals(v) => writer.typed::<DoubleType>().write_batch(v, None, None)?,
            Values::Words(v) => {
                let bytes: Vec<ByteArray> = v.iter().map(|word| word.as_str().into()).collect();
                writer
                    .typed::<ByteArrayType>()
                    .write_batch(&bytes, None, None)?
            }
        };
        writer.close()?;
    }
    group.close()?;
    file.into_inner()
}

#[cfg(test)]
mod tests {
    use ::parquet::file::reader::{FileReader, SerializedFileReader};

    use super::*;

    #[test]
    fn a_file_has_the_columns_and_what_is_said_of_them() {
        let columns = [
            Column {
                name: "chain".into(),
                values: Values::Ints(vec![0, 1]),
            },
            Column {
                name: "beta[1]".into(),
                values: Values::Reals(vec![1.5, f64::NAN]),
            },
        ];
        let bytes = file("draws", &columns, &[("key", "value".into())]).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let metadata = reader.metadata().file_metadata();
        assert_eq!(
            (metadata.num_rows(), metadata.schema().name()),
            (2, "draws")
        );
        let pairs = metadata.key_value_metadata().unwrap();
        assert_eq!(
            (&pairs[0].key[..], pairs[0].value.as_deref()),
            ("key", Some("value"))
        );
        for column in metadata.schema_descr().columns() {
            assert_eq!(column.max_def_level(), 0, "{column:?}");
        }
        assert!(file("draws", &[], &[]).unwrap().starts_with(b"PAR1"));
    }
}
