//! The values of cells, as text or of a type.

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, DecimalType,
    Float16Type, Float32Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, LargeStringArray, PrimitiveArray,
    StringArray, StringViewArray,
};
use arrow_schema::DataType;

use super::records::LONGEST;
use crate::privacy::rows::{Cell, Domain, is_missing};

/// A cell before it is read. Not `Debug`: it may hold a private value.
pub(super) enum Value<'a> {
    Missing,
    Whole(i64),
    Real(f64),
    Text(&'a [u8]),
}

impl<'a> Value<'a> {
    /// `by_words`: a factor's levels are looked up by their words, which a number is written as.
    pub fn cell(&self, domain: &Domain, by_words: bool) -> Cell {
        match *self {
            Value::Missing => Cell::Missing,
            // As of a line of text.
            Value::Text(text) if text.len() > LONGEST => Cell::Bad,
            Value::Text(text) => domain.text(text),
            Value::Whole(value) if by_words => domain.text(value.to_string().as_bytes()),
            Value::Real(value) if by_words => domain.text(value.to_string().as_bytes()),
            Value::Whole(value) => domain.whole(value),
            Value::Real(value) => domain.number(value),
        }
    }

    /// The key of the unit that the cell names; `None` where it holds no value.
    pub fn key(&self) -> Option<Cow<'a, [u8]>> {
        match *self {
            Value::Missing => None,
            Value::Text(bytes) => match std::str::from_utf8(bytes).map(str::trim) {
                Ok(text) if is_missing(text) => None,
                Ok(text) => Some(without_zero_fraction(text).as_bytes().into()),
                Err(_) => Some(bytes.trim_ascii().into()),
            },
            Value::Whole(value) => Some(value.to_string().into_bytes().into()),
            Value::Real(value) if value.is_nan() => None,
            // -0 is 0, and 7.0 is the 7 of a column of whole numbers.
            Value::Real(value) => Some((value + 0.0).to_string().into_bytes().into()),
        }
    }
}

/// `7` for `7.0`, as programs write a whole number once its column has a missing
/// value; anything else as it is. Splitting one person into two units would weaken the guarantee.
fn without_zero_fraction(text: &str) -> &str {
    let Some((whole, fraction)) = text.split_once('.') else {
        return text;
    };
    let digits = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    let is_whole = !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit())
        && fraction.bytes().all(|b| b == b'0');
    if is_whole { whole } else { text }
}

/// The kind of the values in a typed column. The files of one table agree on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Numbers,
    Text,
    /// Every value is missing.
    Nothing,
}

impl Kind {
    /// `None` for a type that is not read.
    pub fn of(kind: &DataType) -> Option<Kind> {
        use DataType::*;
        match kind {
            Null => Some(Kind::Nothing),
            Boolean | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 | Float16
            | Float32 | Float64 | Decimal32(..) | Decimal64(..) | Decimal128(..)
            | Decimal256(..) => Some(Kind::Numbers),
            Utf8 | LargeUtf8 | Utf8View => Some(Kind::Text),
            Dictionary(_, values) => Kind::of(values),
            _ => None,
        }
    }

    pub fn fits(self, other: Kind) -> bool {
        self == other || self == Kind::Nothing || other == Kind::Nothing
    }
}

/// A column of a batch. Not `Debug`: it holds private values.
pub(super) enum Column {
    Nothing,
    Truth(BooleanArray),
    Whole(Int64Array),
    Real(Float64Array),
    Text(StringArray),
    LongText(LargeStringArray),
    TextView(StringViewArray),
    Dictionary {
        array: ArrayRef,
        keys: Vec<usize>,
        values: Box<Column>,
    },
}

impl Column {
    /// `None` for an array of a type that is not read: see [`Kind::of`].
    pub fn new(array: &ArrayRef) -> Option<Column> {
        Some(match array.data_type() {
            DataType::Null => Column::Nothing,
            DataType::Boolean => Column::Truth(array.as_boolean().clone()),
            DataType::Int8 => whole::<Int8Type>(array),
            DataType::Int16 => whole::<Int16Type>(array),
            DataType::Int32 => whole::<Int32Type>(array),
            DataType::Int64 => Column::Whole(array.as_primitive().clone()),
            DataType::UInt8 => whole::<UInt8Type>(array),
            DataType::UInt16 => whole::<UInt16Type>(array),
            DataType::UInt32 => whole::<UInt32Type>(array),
            DataType::UInt64 => unsigned(array.as_primitive()),
            DataType::Float16 => real::<Float16Type>(array),
            DataType::Float32 => real::<Float32Type>(array),
            DataType::Float64 => Column::Real(array.as_primitive().clone()),
            DataType::Decimal32(..) => decimal::<Decimal32Type>(array.as_primitive()),
            DataType::Decimal64(..) => decimal::<Decimal64Type>(array.as_primitive()),
            DataType::Decimal128(..) => decimal::<Decimal128Type>(array.as_primitive()),
            DataType::Decimal256(..) => decimal::<Decimal256Type>(array.as_primitive()),
            DataType::Utf8 => Column::Text(array.as_string().clone()),
            DataType::LargeUtf8 => Column::LongText(array.as_string().clone()),
            DataType::Utf8View => Column::TextView(array.as_string_view().clone()),
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary_opt()?;
                if dictionary.values().is_empty() {
                    return Some(Column::Nothing);
                }
                Column::Dictionary {
                    array: array.clone(),
                    keys: dictionary.normalized_keys(),
                    values: Box::new(Column::new(dictionary.values())?),
                }
            }
            _ => return None,
        })
    }

    pub fn value(&self, row: usize) -> Value<'_> {
        match self {
            Column::Nothing => Value::Missing,
            Column::Truth(a) if a.is_valid(row) => Value::Whole(a.value(row).into()),
            Column::Whole(a) if a.is_valid(row) => Value::Whole(a.value(row)),
            Column::Real(a) if a.is_valid(row) => Value::Real(a.value(row)),
            Column::Text(a) if a.is_valid(row) => Value::Text(a.value(row).as_bytes()),
            Column::LongText(a) if a.is_valid(row) => Value::Text(a.value(row).as_bytes()),
            Column::TextView(a) if a.is_valid(row) => Value::Text(a.value(row).as_bytes()),
            Column::Dictionary {
                array,
                keys,
                values,
            } if array.is_valid(row) => values.value(keys[row]),
            _ => Value::Missing,
        }
    }
}

fn whole<T: ArrowPrimitiveType>(array: &ArrayRef) -> Column
where
    i64: From<T::Native>,
{
    Column::Whole(array.as_primitive::<T>().unary(i64::from))
}

fn real<T: ArrowPrimitiveType>(array: &ArrayRef) -> Column
where
    f64: From<T::Native>,
{
    Column::Real(array.as_primitive::<T>().unary(f64::from))
}

/// Numbers beyond an i64 are read as a text file's are.
fn unsigned(array: &PrimitiveArray<UInt64Type>) -> Column {
    match array.try_unary::<_, Int64Type, _>(i64::try_from) {
        Ok(values) => Column::Whole(values),
        Err(_) => Column::Text(array.iter().map(|v| v.map(|v| v.to_string())).collect()),
    }
}

/// The digits are read as a text file's are, which gives the nearest number.
fn decimal<T: DecimalType>(array: &PrimitiveArray<T>) -> Column {
    let text = |row| array.is_valid(row).then(|| array.value_as_string(row));
    Column::Text((0..array.len()).map(text).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_lose_a_fraction_of_zeros_and_nothing_else_changes() {
        for (text, key) in [
            ("7", "7"),
            ("7.0", "7"),
            ("7.", "7"),
            ("-12.000", "-12"),
            ("007.0", "007"),
            ("7.01", "7.01"),
            ("1.0.0", "1.0.0"),
            (".0", ".0"),
            ("a.0", "a.0"),
            ("1e3.0", "1e3.0"),
            ("Anne", "Anne"),
        ] {
            assert_eq!(without_zero_fraction(text), key, "{text}");
        }
    }
}
