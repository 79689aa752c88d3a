//! Arrow record batches as private data: the cargo feature `arrow`.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrowPrimitiveType, RecordBatch};
use arrow_schema::DataType;

use super::data::{PrivateColumn, PrivateData};
use super::load::{LoadError, LoadErrorKind};

impl PrivateData {
    /// Arrow record batches of one schema, one after the other, each column under its field's
    /// name; needs the cargo feature `arrow`. Otherwise as
    /// [`from_columns`](PrivateData::from_columns).
    ///
    /// Floating-point and whole numbers, truth values and text are read, and dictionaries of
    /// text; a null is a missing value. A column of another type is an error where a model
    /// uses it.
    ///
    /// # Errors
    ///
    /// Batches of different schemas.
    pub fn from_record_batches(batches: &[RecordBatch]) -> Result<PrivateData, LoadError> {
        let Some(first) = batches.first() else {
            return Ok(PrivateData::from_columns::<String, PrivateColumn>([]));
        };
        let schema = first.schema();
        let mut columns = Vec::new();
        for (i, field) in schema.fields().iter().enumerate() {
            let mut arrays = Vec::with_capacity(batches.len());
            for (b, batch) in batches.iter().enumerate() {
                let other = batch.schema();
                let same = other.fields().len() == schema.fields().len()
                    && other.field(i).name() == field.name()
                    && other.field(i).data_type() == field.data_type();
                if !same {
                    return Err(LoadErrorKind::OtherSchema { batch: b + 1 }.into());
                }
                arrays.push(batch.column(i).as_ref());
            }
            columns.push((field.name().clone(), column(&arrays, field.data_type())));
        }
        Ok(PrivateData::from_columns(columns))
    }
}

fn column(arrays: &[&dyn Array], kind: &DataType) -> PrivateColumn {
    match kind {
        DataType::Float64 => numbers::<Float64Type>(arrays).into(),
        DataType::Float32 => numbers::<Float32Type>(arrays).into(),
        DataType::Int8 => whole::<Int8Type>(arrays).into(),
        DataType::Int16 => whole::<Int16Type>(arrays).into(),
        DataType::Int32 => whole::<Int32Type>(arrays).into(),
        DataType::Int64 => whole::<Int64Type>(arrays).into(),
        DataType::UInt8 => whole::<UInt8Type>(arrays).into(),
        DataType::UInt16 => whole::<UInt16Type>(arrays).into(),
        DataType::UInt32 => whole::<UInt32Type>(arrays).into(),
        // May be beyond an i64; as text it is read as a file would be.
        DataType::UInt64 => {
            let each = |array: &&dyn Array| -> Vec<Option<String>> {
                let values = array.as_primitive::<UInt64Type>().iter();
                values.map(|v| v.map(|v| v.to_string())).collect()
            };
            concat(arrays, each).into()
        }
        DataType::Boolean => {
            let each = |array: &&dyn Array| array.as_boolean().iter().collect();
            concat::<Option<bool>>(arrays, each).into()
        }
        _ => {
            let texts: Option<Vec<_>> = arrays.iter().map(|&array| text(array)).collect();
            match texts {
                Some(texts) => texts.concat().into(),
                None => {
                    let length = arrays.iter().map(|array| array.len()).sum();
                    PrivateColumn::unreadable(kind.to_string(), length)
                }
            }
        }
    }
}

fn concat<T>(arrays: &[&dyn Array], each: impl Fn(&&dyn Array) -> Vec<T>) -> Vec<T> {
    arrays.iter().flat_map(each).collect()
}

fn numbers<T: ArrowPrimitiveType>(arrays: &[&dyn Array]) -> Vec<Option<f64>>
where
    f64: From<T::Native>,
{
    concat(arrays, |array| {
        let values = array.as_primitive::<T>().iter();
        values.map(|v| v.map(f64::from)).collect()
    })
}

fn whole<T: ArrowPrimitiveType>(arrays: &[&dyn Array]) -> Vec<Option<i64>>
where
    i64: From<T::Native>,
{
    concat(arrays, |array| {
        let values = array.as_primitive::<T>().iter();
        values.map(|v| v.map(i64::from)).collect()
    })
}

/// `None` for an array that is not of text.
fn text(array: &dyn Array) -> Option<Vec<Option<String>>> {
    let owned = |v: Option<&str>| v.map(str::to_owned);
    match array.data_type() {
        DataType::Utf8 => Some(array.as_string::<i32>().iter().map(owned).collect()),
        DataType::LargeUtf8 => Some(array.as_string::<i64>().iter().map(owned).collect()),
        DataType::Utf8View => Some(array.as_string_view().iter().map(owned).collect()),
        DataType::Dictionary(_, _) => {
            let dictionary = array.as_any_dictionary_opt()?;
            let words = text(dictionary.values().as_ref())?;
            if words.is_empty() {
                return Some(vec![None; array.len()]);
            }
            let keys = dictionary.normalized_keys().into_iter().enumerate();
            let word = |(row, key): (usize, usize)| {
                if array.is_null(row) {
                    None
                } else {
                    words.get(key).cloned().flatten()
                }
            };
            Some(keys.map(word).collect())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{
        ArrayRef, BooleanArray, DictionaryArray, Float32Array, Int64Array, ListArray, UInt64Array,
    };

    use super::*;
    use crate::model::{Constants, Model};

    fn bound(batches: &[RecordBatch]) -> Result<usize, String> {
        let source = "record { real<lower=0, upper=10> x; int<lower=0> k; int<lower=0, upper=1> b;
                      int<lower=0> u; factor(\"north\", \"south\") g; }
             parameters { vector[2] m; }
             model { m ~ normal(0, 1); x ~ normal(m[g] + k + b + u, 1); }";
        let model = Model::from_source(source, &Constants::none()).unwrap();
        let data = PrivateData::from_record_batches(batches).map_err(|e| e.to_string())?;
        let vault = data.bind(&model).map_err(|e| e.to_string())?;
        Ok(vault.n())
    }

    fn batch(x: ArrayRef, g: ArrayRef, k: i64) -> RecordBatch {
        let columns: [(&str, ArrayRef); 5] = [
            ("x", x),
            ("k", Arc::new(Int64Array::from(vec![Some(k), None]))),
            ("b", Arc::new(BooleanArray::from(vec![true, false]))),
            ("u", Arc::new(UInt64Array::from(vec![3, 4]))),
            ("g", g),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(n, c)| (n, c, true))).unwrap()
    }

    fn reals() -> ArrayRef {
        Arc::new(Float32Array::from(vec![1.5, 2.5]))
    }

    fn words() -> ArrayRef {
        let words: DictionaryArray<arrow_array::types::Int32Type> =
            vec![Some("south"), None].into_iter().collect();
        Arc::new(words)
    }

    #[test]
    fn batches_are_read_one_after_the_other() {
        let good = || batch(reals(), words(), 1);
        assert_eq!(bound(&[good(), good(), good()]), Ok(6));
        assert!(bound(&[]).unwrap_err().contains("no column named `x`"));
        let whole = batch(Arc::new(Int64Array::from(vec![1, 2])), words(), 1);
        assert!(bound(&[good(), whole]).unwrap_err().contains("batch 2"));
        let bad = bound(&[good(), batch(reals(), words(), -77)]).unwrap_err();
        assert!(
            bad.contains("row 3, column `k`") && !bad.contains("77"),
            "{bad}"
        );
        let lists =
            ListArray::from_iter_primitive::<Float64Type, _, _>(vec![Some(vec![Some(1.0)]), None]);
        let nested = bound(&[batch(Arc::new(lists), words(), 1)]).unwrap_err();
        assert!(
            nested.contains("column `x`") && nested.contains("List"),
            "{nested}"
        );
    }
}
