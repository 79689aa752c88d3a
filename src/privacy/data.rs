//! Private data on its way into the vault: columns in memory, or a file.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::load::{
    EXPECTED_UNIT, LoadError, LoadErrorKind, OnBadRows, Origin, Reading, dotted, header_names,
    read_csv, without_zero_fraction,
};
use super::rows::{BadCell, Cell, Domain, Rows, RowsBuilder, is_missing};
use super::store::Spilling;
use super::vault::Vault;
use crate::density::Density;
use crate::model::{Model, RecordColumn};
use crate::syntax::did_you_mean;

/// Private records, before any model: columns in memory or the path of a CSV file, and how
/// to read them.
///
/// [`bind`](PrivateData::bind) checks them against the `record` of a model and puts them into
/// a [`Vault`]; one set of data can be bound to several models. Like all types that hold private
/// values, it can be neither printed nor copied.
///
/// ```
/// use dpm::{Constants, Model, PrivateData};
///
/// let model = Model::from_source(
///     "record { real<lower=0, upper=120> age; factor(\"no\", \"yes\") pension; }
///      parameters { vector[2] mean; }
///      model { mean ~ normal(60, 10); age ~ normal(mean[pension], 5); }",
///     &Constants::none(),
/// )?;
/// let data = PrivateData::from_columns([("age", vec![61.0, 67.5, f64::NAN])])
///     .column("pension", vec!["yes", "no", "no"]);
/// let vault = data.bind(&model)?; // the NaN is a missing value: its row is masked
/// assert_eq!(vault.model().dimension, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PrivateData {
    source: Source,
    renames: Vec<(String, String)>,
    on_bad_rows: OnBadRows,
    unit: Option<String>,
    multiline: bool,
}

enum Source {
    Memory(Vec<(String, PrivateColumn)>),
    Csv(PathBuf),
}

/// One column of private values, made `from` a vector: of numbers (`f64`, whose NaN are
/// missing values), whole numbers (`i64`, `i32`, `u32`), truth values, which are 0 and 1, or
/// text, for the words of a factor and for units; or of `Option`s of these.
pub struct PrivateColumn(Values);

enum Values {
    Numbers(Vec<f64>),
    Whole(Vec<Option<i64>>),
    Text(Vec<Option<String>>),
    /// A type that is not read, by name: an error where a model uses the column.
    #[cfg(feature = "arrow")]
    Unreadable {
        kind: String,
        length: usize,
    },
}

impl PrivateColumn {
    fn len(&self) -> usize {
        match &self.0 {
            Values::Numbers(values) => values.len(),
            Values::Whole(values) => values.len(),
            Values::Text(values) => values.len(),
            #[cfg(feature = "arrow")]
            Values::Unreadable { length, .. } => *length,
        }
    }

    fn cell(&self, row: usize, domain: &Domain) -> Cell {
        match &self.0 {
            Values::Numbers(values) => domain.number(values[row]),
            Values::Whole(values) => values[row].map_or(Cell::Missing, |v| domain.whole(v)),
            Values::Text(values) => match &values[row] {
                Some(text) => domain.text(text.as_bytes()),
                None => Cell::Missing,
            },
            #[cfg(feature = "arrow")]
            Values::Unreadable { .. } => Cell::Bad,
        }
    }

    #[cfg(feature = "arrow")]
    pub(super) fn unreadable(kind: String, length: usize) -> PrivateColumn {
        PrivateColumn(Values::Unreadable { kind, length })
    }

    /// # Errors
    ///
    /// Its type is not read.
    fn check(&self, name: &str) -> Result<&PrivateColumn, LoadError> {
        match &self.0 {
            #[cfg(feature = "arrow")]
            Values::Unreadable { kind, .. } => Err(LoadErrorKind::ColumnType {
                column: name.to_owned(),
                kind: kind.clone(),
            }
            .into()),
            _ => {
                let _ = name;
                Ok(self)
            }
        }
    }

    /// The key that identifies the unit of a row, by the rules of a file's column.
    fn key(&self, row: usize) -> Option<String> {
        match &self.0 {
            // -0 is 0, and 7.0 is the 7 of a column of whole numbers.
            Values::Numbers(values) => {
                let value = values[row] + 0.0;
                (!value.is_nan()).then(|| value.to_string())
            }
            Values::Whole(values) => values[row].map(|v| v.to_string()),
            Values::Text(values) => {
                let text = values[row].as_ref()?.trim();
                (!is_missing(text)).then(|| without_zero_fraction(text).to_owned())
            }
            #[cfg(feature = "arrow")]
            Values::Unreadable { .. } => None,
        }
    }
}

impl From<Vec<f64>> for PrivateColumn {
    fn from(values: Vec<f64>) -> PrivateColumn {
        PrivateColumn(Values::Numbers(values))
    }
}

impl From<Vec<Option<f64>>> for PrivateColumn {
    fn from(values: Vec<Option<f64>>) -> PrivateColumn {
        let number = |value: Option<f64>| value.unwrap_or(f64::NAN);
        PrivateColumn(Values::Numbers(values.into_iter().map(number).collect()))
    }
}

impl From<&[f64]> for PrivateColumn {
    fn from(values: &[f64]) -> PrivateColumn {
        values.to_vec().into()
    }
}

/// Conversions of all types that `$convert` turns into `$stored`, with or without missing values.
macro_rules! columns {
    ($($of:ty, $kind:ident, $convert:expr;)*) => {$(
        impl From<Vec<$of>> for PrivateColumn {
            fn from(values: Vec<$of>) -> PrivateColumn {
                PrivateColumn(Values::$kind(values.into_iter().map(|v| Some($convert(v))).collect()))
            }
        }

        impl From<Vec<Option<$of>>> for PrivateColumn {
            fn from(values: Vec<Option<$of>>) -> PrivateColumn {
                PrivateColumn(Values::$kind(values.into_iter().map(|v| v.map($convert)).collect()))
            }
        }
    )*};
}

columns! {
    i64, Whole, i64::from;
    i32, Whole, i64::from;
    u32, Whole, i64::from;
    bool, Whole, i64::from;
    String, Text, String::from;
    &str, Text, str::to_owned;
}

impl PrivateData {
    /// Columns in memory, each with its name as a file's header would have it: `dist`, and
    /// `x.1` or `x[1]` for an element of a container.
    ///
    /// The rules are those of a file: a real outside its declared bounds is clamped to them,
    /// a row with a missing value counts and adds nothing, an int that is not whole or out of
    /// its bounds makes a bad row. Columns that the model does not use are ignored.
    pub fn from_columns<N: Into<String>, C: Into<PrivateColumn>>(
        columns: impl IntoIterator<Item = (N, C)>,
    ) -> PrivateData {
        let columns = columns.into_iter().map(|(n, c)| (n.into(), c.into()));
        PrivateData::of(Source::Memory(columns.collect()))
    }

    /// A CSV file, gzipped or not, with a line of column names. Each other line is a record.
    /// It is read when it is bound.
    pub fn from_csv(path: impl AsRef<Path>) -> PrivateData {
        PrivateData::of(Source::Csv(path.as_ref().to_path_buf()))
    }

    fn of(source: Source) -> PrivateData {
        PrivateData {
            source,
            renames: Vec::new(),
            on_bad_rows: OnBadRows::Error,
            unit: None,
            multiline: false,
        }
    }

    /// Adds a column in memory. Data from a file is discarded.
    #[must_use]
    pub fn column(
        mut self,
        name: impl Into<String>,
        values: impl Into<PrivateColumn>,
    ) -> PrivateData {
        let column = (name.into(), values.into());
        match &mut self.source {
            Source::Memory(columns) => columns.push(column),
            Source::Csv(_) => self.source = Source::Memory(vec![column]),
        }
        self
    }

    /// Declares that the model's column `name` (`dist`, `x.1`) is called `header` here.
    #[must_use]
    pub fn rename(mut self, name: impl Into<String>, header: impl Into<String>) -> PrivateData {
        self.renames.push((name.into(), header.into()));
        self
    }

    /// Sets the treatment of rows that cannot be read; [`OnBadRows::Error`] unless this is called.
    #[must_use]
    pub fn on_bad_rows(mut self, choice: OnBadRows) -> PrivateData {
        self.on_bad_rows = choice;
        self
    }

    /// Lets records of a file span lines, with line feeds in quoted fields. Protection then applies
    /// to a record as delimited by its quotation marks, no longer to a line: a stray mark stops the
    /// reading, or joins lines up to the next one.
    #[must_use]
    pub fn multiline_records(mut self) -> PrivateData {
        self.multiline = true;
        self
    }

    /// Protects together all rows that share a value of this column, instead of each row by itself.
    /// The number of units replaces the number of rows, which is private.
    ///
    /// Values are compared as text, `7.0` as `7`; a row without one is a bad row, or, where bad
    /// rows are skipped, belongs to no unit and adds nothing.
    #[must_use]
    pub fn by_unit(mut self, column: impl Into<String>) -> PrivateData {
        self.unit = Some(column.into().trim().to_owned());
        self
    }

    /// The column of [`by_unit`](PrivateData::by_unit).
    pub fn unit(&self) -> Option<&str> {
        self.unit.as_deref()
    }

    /// Puts the records into a vault, for this model.
    ///
    /// # Errors
    ///
    /// The file cannot be read; a column is missing or duplicate, lengths differ, or a row is bad.
    /// No message contains a value.
    pub fn bind(&self, model: &Model) -> Result<Vault, LoadError> {
        let rows = self.rows(&model.columns)?;
        let vault = Vault::new(Density::new(model.clone()), rows)?;
        Ok(vault.with_unit(self.unit.clone()))
    }

    fn rows(&self, columns: &[RecordColumn]) -> Result<Rows, LoadError> {
        match &self.source {
            Source::Memory(given) => self.of_memory(columns, given),
            Source::Csv(path) => {
                let reading = Reading {
                    renames: &self.renames,
                    on_bad_rows: self.on_bad_rows,
                    unit: self.unit.as_deref(),
                    multiline: self.multiline,
                };
                read_csv(path, columns, &reading)
            }
        }
    }

    fn of_memory(
        &self,
        columns: &[RecordColumn],
        given: &[(String, PrivateColumn)],
    ) -> Result<Rows, LoadError> {
        let headers = header_names(columns, &self.renames)?;
        let found = columns
            .iter()
            .zip(&headers)
            .map(|(column, header)| find(column, header, given))
            .collect::<Result<Vec<_>, _>>()?;
        let owners = match &self.unit {
            Some(unit) => Some(find_unit(unit, given)?),
            None => None,
        };
        let n = common_length(given)?;
        let mut rows = RowsBuilder::new(columns, self.on_bad_rows, Spilling::never());
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let mut keys = Vec::new();
        for i in 0..n {
            let bad = |column: &str, expected: String| LoadErrorKind::BadRow {
                origin: Origin::Memory,
                position: i as u64 + 1,
                column: Some(column.to_owned()),
                expected,
            };
            let key = owners.map(|owners| owners.key(i));
            if let Some(None) = key {
                if self.on_bad_rows == OnBadRows::Error {
                    let unit = self.unit.as_deref().unwrap_or_default();
                    return Err(bad(unit, EXPECTED_UNIT.to_owned()).into());
                }
                continue;
            }
            let pushed = rows.push(|c, domain| match found[c] {
                Some(column) => column.cell(i, domain),
                None => Cell::Missing,
            });
            if let Err(BadCell(c)) = pushed {
                let expected = Domain::new(&columns[c]).to_string();
                return Err(bad(&columns[c].name, expected).into());
            }
            if let Some(key) = key.flatten() {
                let next = numbers.len();
                keys.push(*numbers.entry(key).or_insert(next));
            }
        }
        let rows = rows.finish().map_err(LoadErrorKind::NoRoom)?;
        match &self.unit {
            None => Ok(rows),
            Some(_) => rows.by_unit(&keys),
        }
    }
}

impl Rows {
    /// Rows from columns in memory, as [`PrivateData::from_columns`] reads them. A factor is
    /// given by its ints.
    ///
    /// Errors: a column is absent or there twice, lengths differ, or, under
    /// [`OnBadRows::Error`], a row is bad.
    pub fn from_columns(
        columns: &[RecordColumn],
        data: Vec<(String, Vec<f64>)>,
        on_bad_rows: OnBadRows,
    ) -> Result<Rows, LoadError> {
        PrivateData::from_columns(data)
            .on_bad_rows(on_bad_rows)
            .rows(columns)
    }
}

/// The values of a column that the model uses; `None` for one that it does not.
fn find<'a>(
    column: &RecordColumn,
    header: &str,
    given: &'a [(String, PrivateColumn)],
) -> Result<Option<&'a PrivateColumn>, LoadError> {
    if !column.used {
        return Ok(None);
    }
    // A name that was given for it is taken literally.
    let plain = header == column.name;
    let is_named = |name: &str| name == header || plain && dotted(name) == header;
    let mut named = given.iter().filter(|(name, _)| is_named(name));
    let Some((_, values)) = named.next() else {
        let names = given.iter().map(|(name, _)| name.as_str());
        return Err(LoadErrorKind::MissingColumn {
            origin: Origin::Memory,
            column: column.name.clone(),
            variable: column.variable.clone(),
            header: header.to_owned(),
            suggestion: did_you_mean(header, names.clone()).map(str::to_string),
            present: names.map(str::to_string).collect(),
        }
        .into());
    };
    if named.next().is_some() {
        return Err(LoadErrorKind::DuplicateColumn {
            origin: Origin::Memory,
            header: header.to_owned(),
        }
        .into());
    }
    values.check(&column.name).map(Some)
}

fn find_unit<'a>(
    unit: &str,
    given: &'a [(String, PrivateColumn)],
) -> Result<&'a PrivateColumn, LoadError> {
    let mut named = given.iter().filter(|(name, _)| name.trim() == unit);
    match (named.next(), named.next()) {
        (Some((_, column)), None) => column.check(unit),
        (Some(_), Some(_)) => Err(LoadErrorKind::DuplicateColumn {
            origin: Origin::Memory,
            header: unit.to_owned(),
        }
        .into()),
        (None, _) => {
            let names = given.iter().map(|(name, _)| name.as_str());
            Err(LoadErrorKind::MissingUnit {
                origin: Origin::Memory,
                header: unit.to_owned(),
                suggestion: did_you_mean(unit, names.clone()).map(str::to_string),
                present: names.map(str::to_string).collect(),
            }
            .into())
        }
    }
}

fn common_length(given: &[(String, PrivateColumn)]) -> Result<usize, LoadError> {
    let Some((first, values)) = given.first() else {
        return Ok(0);
    };
    let n = values.len();
    match given.iter().find(|(_, other)| other.len() != n) {
        None => Ok(n),
        Some((name, other)) => Err(LoadErrorKind::UnequalLengths {
            first: first.clone(),
            first_length: n,
            other: name.clone(),
            other_length: other.len(),
        }
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Constants;

    fn model() -> Model {
        let source = "record { real<lower=0, upper=10> x; int<lower=0, upper=3> k;
                      factor(\"north\", \"south\") g; }
             parameters { vector[2] m; }
             model { m ~ normal(0, 1); x ~ normal(m[g] + k, 1); }";
        Model::from_source(source, &Constants::none()).unwrap()
    }

    fn columns(data: &PrivateData) -> Vec<Vec<f64>> {
        data.rows(&model().columns)
            .unwrap_or_else(|e| panic!("{e}"))
            .columns()
            .to_vec()
    }

    fn message(data: &PrivateData) -> String {
        match data.rows(&model().columns) {
            Ok(_) => panic!("it was read"),
            Err(error) => error.to_string(),
        }
    }

    fn good() -> PrivateData {
        PrivateData::from_columns([("x", vec![1.0, 2.0, 3.0])])
            .column("k", vec![0i64, 3, 1])
            .column("g", vec!["south", " north ", "south"])
    }

    #[test]
    fn each_kind_of_column_is_read_as_a_file_s_would_be() {
        assert_eq!(
            columns(&good()),
            [[1.0, 2.0, 3.0], [0.0, 3.0, 1.0], [2.0, 1.0, 2.0]]
        );
        let other = PrivateData::from_columns([("x", vec![Some(-4.0), None, Some(30.0)])])
            .column("k", vec![true, false, true])
            .column("g", vec![1i32, 2, 2]);
        // Clamped, masked by what is missing, clamped.
        assert_eq!(columns(&other)[0], [0.0, 0.0, 10.0]);
        assert_eq!(
            other
                .rows(&model().columns)
                .unwrap_or_else(|e| panic!("{e}"))
                .missing(),
            [false, true, false]
        );
        let renamed = PrivateData::from_columns([("size", vec![1.0])])
            .column("k", vec![1u32])
            .column("g", vec![Some("north".to_owned())])
            .rename("x", "size");
        assert_eq!(columns(&renamed), [[1.0], [1.0], [1.0]]);
    }

    #[test]
    fn whole_numbers_beyond_those_of_a_real_are_bad_and_not_rounded() {
        let source = "record { int k; real y; } parameters { real m; }
             model { m ~ normal(0, 1); y ~ normal(m * k, 1); }";
        let model = Model::from_source(source, &Constants::none()).unwrap();
        let data = |k: i64| PrivateData::from_columns([("k", vec![k])]).column("y", vec![0.0]);
        assert!(data(1 << 53).rows(&model.columns).is_ok());
        assert!(data((1 << 53) + 1).rows(&model.columns).is_err());
        assert!(data(i64::MIN).rows(&model.columns).is_err());
    }

    #[test]
    fn errors_hold_no_value() {
        let bad = good().column("x", vec![1.0]);
        assert!(
            message(&bad).contains("more than one column named `x`"),
            "{}",
            message(&bad)
        );
        let bad = PrivateData::from_columns([("x", vec![1.0])])
            .column("k", vec![77i64])
            .column("g", vec!["north"]);
        let said = message(&bad);
        assert!(
            said.contains("row 1, column `k`") && !said.contains("77"),
            "{said}"
        );
        let bad = PrivateData::from_columns([("x", vec![1.0])])
            .column("k", vec![1i64])
            .column("g", vec!["Gotham"]);
        let said = message(&bad);
        assert!(
            said.contains("a level of the factor") && !said.contains("Gotham"),
            "{said}"
        );
        assert!(message(&good().by_unit("person")).contains("no column named `person`"));
        assert!(message(&good().column("z", vec![1.0])).contains("3 and 1 values"));
        assert!(message(&PrivateData::from_columns::<String, Vec<f64>>([])).contains("no column"));
    }

    // Wrong here: one person in two units, which weakens the guarantee.
    #[test]
    fn keys_of_units_are_compared_as_in_a_file() {
        let n = |data: PrivateData| {
            let data = data.by_unit("id");
            data.rows(&model().columns)
                .unwrap_or_else(|e| panic!("{e}"))
                .n()
        };
        assert_eq!(n(good().column("id", vec!["7", "7.0", " 7 "])), 1);
        assert_eq!(n(good().column("id", vec![0.0, -0.0, 1.0])), 2);
        assert_eq!(n(good().column("id", vec![3i64, 4, 3])), 2);
        let holes = || good().column("id", vec![Some("a"), None, Some("NA")]);
        assert!(message(&holes().by_unit("id")).contains("row 2, column `id`"));
        assert_eq!(n(holes().on_bad_rows(OnBadRows::Skip)), 1);
    }
}
