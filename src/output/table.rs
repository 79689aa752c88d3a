//! Tables of records, made up from a model, in the formats that data are read from.

use super::stan_csv::push_number;
use crate::model::RecordColumn;

/// A line of names, then a row for each record; a factor has its words, an int no point.
pub fn table_csv<'a>(columns: impl Iterator<Item = (&'a RecordColumn, &'a [f64])>) -> String {
    let columns: Vec<_> = columns.collect();
    let mut text = String::new();
    for (i, (column, _)) in columns.iter().enumerate() {
        push_comma(&mut text, i);
        push_field(&mut text, &column.name);
    }
    text.push('\n');
    for row in 0..columns.first().map_or(0, |(_, values)| values.len()) {
        for (i, (column, values)) in columns.iter().enumerate() {
            push_comma(&mut text, i);
            match word(column, values[row]) {
                Some(word) => push_field(&mut text, word),
                None => push_number(&mut text, values[row]),
            }
        }
        text.push('\n');
    }
    text
}

fn push_comma(text: &mut String, before: usize) {
    if before > 0 {
        text.push(',');
    }
}

/// Quoted where it must be (RFC 4180), and where a reader would trim it.
fn push_field(text: &mut String, field: &str) {
    if field.contains([',', '"', '\n', '\r']) || field.trim() != field {
        text.push('"');
        text.push_str(&field.replace('"', "\"\""));
        text.push('"');
    } else {
        text.push_str(field);
    }
}

/// The word of a factor's int.
fn word(column: &RecordColumn, value: f64) -> Option<&str> {
    let place = (value as usize).checked_sub(1)?;
    column.levels.get(place).map(String::as_str)
}

/// The bytes of a Parquet file: one row group, whole numbers and words as such.
///
/// # Errors
///
/// None that a user can cause.
#[cfg(feature = "parquet")]
pub fn table_parquet<'a>(
    columns: impl Iterator<Item = (&'a RecordColumn, &'a [f64])>,
) -> std::io::Result<Vec<u8>> {
    use super::parquet::{Column, Values, file};
    let column = |(column, values): (&RecordColumn, &[f64])| Column {
        name: column.name.clone(),
        values: if !column.levels.is_empty() {
            let words = values.iter().map(|&v| word(column, v).unwrap_or_default());
            Values::Words(words.map(str::to_owned).collect())
        } else if column.is_int {
            Values::Longs(values.iter().map(|&v| v as i64).collect())
        } else {
            Values::Reals(values.to_vec())
        },
    };
    let columns: Vec<Column> = columns.map(column).collect();
    file("records", &columns, &[]).map_err(std::io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, is_int: bool, levels: &[&str]) -> RecordColumn {
        RecordColumn {
            levels: levels.iter().map(|&l| l.to_owned()).collect(),
            ..RecordColumn::named(name, is_int)
        }
    }

    #[test]
    fn a_table_has_words_and_whole_numbers() {
        let columns = [
            column("x.1", false, &[]),
            column("k", true, &[]),
            column("f", true, &["a, \"b\"", "c"]),
        ];
        let values = [vec![0.1, 2.0], vec![3.0, -4.0], vec![1.0, 2.0]];
        let table = || columns.iter().zip(values.iter().map(Vec::as_slice));
        assert_eq!(
            table_csv(table()),
            "x.1,k,f\n0.1,3,\"a, \"\"b\"\"\"\n2,-4,c\n"
        );
        #[cfg(feature = "parquet")]
        assert!(table_parquet(table()).unwrap().starts_with(b"PAR1"));
    }
}
