//! Public tables: `--data PUBLIC` of `dpm generate`, whose columns become constants, and
//! `--public-sample` of `dpm tune` and `dpm synth`, whose rows have covariates.
//!
//! A constant is filled where it is a container and the table has a column of
//! its name (`x`), or columns named after its elements (`x.1`, `x.2`, ... for
//! `matrix[N, K] x`). The int constant that is its first size becomes the number
//! of rows.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use serde_json::Value;

use super::failure::Failure;
use crate::check::{Base, Checked, ExprKind, Variable, VariableId};
use crate::density::PublicSample;
use crate::model::{Constants, RecordColumn, truth};

/// The columns taken from the table.
#[derive(Debug)]
pub(super) struct Taken {
    pub rows: usize,
    /// Constants that now have the table's values.
    pub constants: Vec<String>,
    /// Columns that fit none.
    pub unused: Vec<String>,
}

/// Puts the table's columns into the constants that are named after them, in
/// place of values that they may have.
pub(super) fn fill_constants(
    path: &Path,
    checked: &Checked,
    constants: &mut Constants,
) -> Result<Taken, Failure> {
    let table = Table::read(path, PUBLIC)?;
    let rows = table.rows.len();
    let mut used = vec![false; table.headers.len()];
    let mut filled = Vec::new();
    let mut sizes: Vec<VariableId> = Vec::new();
    for &id in &checked.constants {
        let variable = checked.variable(id);
        let Some(columns) = table.columns_of(variable) else {
            continue;
        };
        let mut values = Vec::with_capacity(rows);
        for row in 0..rows {
            values.push(table.row_of(row, &columns, variable)?);
        }
        for (column, _) in &columns.0 {
            used[*column] = true;
        }
        constants.insert(&variable.name, values);
        filled.push(variable.name.clone());
        if let ExprKind::Variable(size) = variable.sizes[0].kind {
            sizes.push(size);
        }
    }
    if filled.is_empty() {
        let may: Vec<String> = checked
            .constants
            .iter()
            .map(|&id| checked.variable(id))
            .filter(|v| v.ty.dimensions() > 0)
            .map(|v| format!("`{}`", v.name))
            .collect();
        return Err(Failure::input(format!(
            "no column of `{}` is named after a constant. A column fills the constant of its name, for example `vector[N_new] x_new;` in `constants`; {}",
            path.display(),
            if may.is_empty() {
                "this model declares no constant that is a container".to_string()
            } else {
                format!("this model declares {}", may.join(", "))
            }
        )));
    }
    for size in sizes {
        let size = checked.variable(size);
        constants.insert(&size.name, rows as u64);
        if !filled.contains(&size.name) {
            filled.push(size.name.clone());
        }
    }
    Ok(Taken {
        rows,
        constants: filled,
        unused: table
            .headers
            .iter()
            .zip(used)
            .filter(|(_, used)| !used)
            .map(|(header, _)| header.clone())
            .collect(),
    })
}

/// The table's columns that the model's record declares, for covariates of simulated
/// records. A column that is not there is left out.
///
/// Errors: not one column is there, no rows, a value that is not what the column declares.
pub(super) fn sample_of(path: &Path, columns: &[RecordColumn]) -> Result<PublicSample, Failure> {
    let table = Table::read(path, PUBLIC)?;
    let mut found = Vec::new();
    for column in columns {
        let position = table.column(&column.name);
        let value = |(line, fields): &(u64, Vec<String>), at: usize| {
            let text = fields.get(at).map_or("", String::as_str);
            let level = column.levels.iter().position(|l| l == text);
            let number = match level {
                Some(level) => Some(level as f64 + 1.0),
                None if column.is_truth() && truth(text).is_some() => truth(text),
                None => text.parse().ok().filter(|v: &f64| v.is_finite()),
            };
            let fits = |v: &f64| {
                (!column.is_int || v.fract() == 0.0)
                    && column.lower.is_none_or(|low| *v >= low)
                    && column.upper.is_none_or(|high| *v <= high)
            };
            number.filter(fits).ok_or_else(|| {
                Failure::input(format!(
                    "`{}`, line {line}, column `{}`: expected a value as the model declares it",
                    path.display(),
                    column.name
                ))
            })
        };
        found.push(match position {
            None => None,
            Some(at) => {
                let values = table.rows.iter().map(|row| value(row, at));
                Some(values.collect::<Result<Vec<f64>, Failure>>()?)
            }
        });
    }
    if table.rows.is_empty() || found.iter().all(Option::is_none) {
        return Err(Failure::input(format!(
            "`{}` has no rows, or no column that the model's `record` declares",
            path.display()
        )));
    }
    Ok(PublicSample {
        rows: table.rows.len(),
        columns: found,
    })
}

/// The content of a table that is expected here, besides a header.
const PUBLIC: &str = "and public rows";

/// A CSV file, fields without white space around them.
pub(super) struct Table<'a> {
    path: &'a Path,
    headers: Vec<String>,
    /// Each with its line.
    pub rows: Vec<(u64, Vec<String>)>,
}

/// The columns of one constant with their headers; whether it holds one number
/// for each row, or as many as there are columns.
struct Columns(Vec<(usize, String)>, bool);

impl<'a> Table<'a> {
    /// `expected`: words for a message.
    pub fn read(path: &'a Path, expected: &str) -> Result<Table<'a>, Failure> {
        let fail = |what: String| {
            Failure::input(format!(
                "cannot read `{}`: {what}. Expected a CSV file with a header, {expected}",
                path.display()
            ))
        };
        let text = open(path).map_err(|e| fail(e.to_string()))?;
        let mut reader = csv::Reader::from_reader(text);
        let headers: Vec<String> = reader
            .headers()
            .map_err(|e| fail(e.to_string()))?
            .iter()
            .map(|h| h.trim().trim_start_matches('\u{feff}').to_string())
            .collect();
        for (i, header) in headers.iter().enumerate() {
            // Not by its name: without a header the first line is a record.
            if let Some(first) = headers[..i].iter().position(|h| h == header) {
                let (first, second) = (first + 1, i + 1);
                return Err(fail(format!(
                    "columns {first} and {second} have the same name"
                )));
            }
        }
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|e| fail(e.to_string()))?;
            let line = record.position().map_or(0, csv::Position::line);
            rows.push((line, record.iter().map(|f| f.trim().to_string()).collect()));
        }
        Ok(Table {
            path,
            headers,
            rows,
        })
    }

    /// The column of that name.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.headers.iter().position(|h| h == name)
    }

    /// The columns that fill a constant, where there are any.
    fn columns_of(&self, variable: &Variable) -> Option<Columns> {
        let find = |name: &str| self.column(name);
        match variable.ty.dimensions() {
            1 => {
                let column = find(&variable.name)?;
                Some(Columns(vec![(column, variable.name.clone())], true))
            }
            2 => {
                let columns: Vec<(usize, String)> = (1..)
                    .map(|k| format!("{}.{k}", variable.name))
                    .map_while(|name| Some((find(&name)?, name)))
                    .collect();
                (!columns.is_empty()).then_some(Columns(columns, false))
            }
            _ => None,
        }
    }

    fn row_of(&self, row: usize, columns: &Columns, variable: &Variable) -> Result<Value, Failure> {
        let (line, fields) = &self.rows[row];
        let mut values = Vec::with_capacity(columns.0.len());
        for (column, header) in &columns.0 {
            let value: Option<f64> = fields
                .get(*column)
                .and_then(|text| text.parse().ok())
                .filter(|v: &f64| v.is_finite());
            let is_int = variable.ty.base == Base::Int;
            match value.filter(|v| !is_int || v.fract() == 0.0) {
                Some(v) => values.push(Value::from(v)),
                None => {
                    return Err(Failure::input(format!(
                        "`{}`, line {line}, column `{header}`: expected {}",
                        self.path.display(),
                        if is_int { "a whole number" } else { "a number" }
                    )));
                }
            }
        }
        Ok(if columns.1 {
            values.pop().unwrap_or(Value::Null)
        } else {
            Value::Array(values)
        })
    }
}

/// The text of a file, unpacked where it is gzip.
fn open(path: &Path) -> std::io::Result<Box<dyn Read>> {
    let mut file = BufReader::new(File::open(path)?);
    let is_gzip = std::io::BufRead::fill_buf(&mut file)?.starts_with(&[0x1f, 0x8b]);
    Ok(if is_gzip {
        Box::new(flate2::read::MultiGzDecoder::new(file))
    } else {
        Box::new(file)
    })
}
