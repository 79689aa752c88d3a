//! Private data on its way into the vault: columns in memory, or files.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, LargeStringArray,
    RecordBatch, UInt32Array,
};
use arrow_schema::{DataType, Field, Schema};

use super::load::{
    Batches, LoadError, LoadErrorKind, OnBadRows, Reading, read_batches, read_files,
};
use super::rows::Rows;
use super::share::Share;
use super::split::Portion;
use super::store::Spilling;
use super::vault::Vault;
use crate::density::Density;
use crate::model::{Model, RecordColumn};

/// Private records, before any model: columns in memory or the paths of files, and how
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
    spilling: Option<Spilling>,
    share: Option<Share>,
    portion: Option<Portion>,
}

enum Source {
    /// Columns of one length, in one or more pieces each.
    Memory(Vec<(String, Vec<ArrayRef>)>),
    Files(Vec<PathBuf>),
}

/// One column of private values, made `from` a vector: of numbers (`f64`, whose NaN are
/// missing values), whole numbers (`i64`, `i32`, `u32`), truth values, which are 0 and 1, or
/// text, for the words of a factor and for units; or of `Option`s of these.
pub struct PrivateColumn(ArrayRef);

impl From<&[f64]> for PrivateColumn {
    fn from(values: &[f64]) -> PrivateColumn {
        values.to_vec().into()
    }
}

macro_rules! columns {
    ($($of:ty => $array:ident;)*) => {$(
        impl From<Vec<$of>> for PrivateColumn {
            fn from(values: Vec<$of>) -> PrivateColumn {
                PrivateColumn(Arc::new($array::from(values)))
            }
        }

        impl From<Vec<Option<$of>>> for PrivateColumn {
            fn from(values: Vec<Option<$of>>) -> PrivateColumn {
                PrivateColumn(Arc::new($array::from(values)))
            }
        }
    )*};
}

columns! {
    f64 => Float64Array;
    i64 => Int64Array;
    i32 => Int32Array;
    u32 => UInt32Array;
    bool => BooleanArray;
    String => LargeStringArray;
    &str => LargeStringArray;
}

impl PrivateData {
    /// Columns in memory, each with its name as a file's header would have it: `dist`, and
    /// `x.1` or `x[1]` for an element of a container.
    ///
    /// The rules are those of a file: a real outside its declared bounds is clamped to them,
    /// a row with a missing value counts and adds nothing, an int that is not whole or out of
    /// its bounds makes a bad row. Columns that the model does not use are ignored. A factor may
    /// also be given by its ints.
    pub fn from_columns<N: Into<String>, C: Into<PrivateColumn>>(
        columns: impl IntoIterator<Item = (N, C)>,
    ) -> PrivateData {
        let columns = columns.into_iter();
        let columns = columns.map(|(name, column)| (name.into(), vec![column.into().0]));
        PrivateData::of(Source::Memory(columns.collect()))
    }

    /// Arrow record batches of one schema, one after the other, each column under its field's
    /// name. Otherwise as [`from_columns`](PrivateData::from_columns).
    ///
    /// Floating-point, whole and decimal numbers, truth values and text are read, and dictionaries
    /// of these; a null is a missing value. A column of another type is an error where a model
    /// uses it.
    ///
    /// # Errors
    ///
    /// Batches of different schemas.
    pub fn from_record_batches(batches: &[RecordBatch]) -> Result<PrivateData, LoadError> {
        let mut columns: Vec<(String, Vec<ArrayRef>)> = Vec::new();
        let shape = |batch: &RecordBatch| -> Vec<_> {
            let schema = batch.schema();
            let name_and_type = |f: &Arc<Field>| (f.name().clone(), f.data_type().clone());
            schema.fields().iter().map(name_and_type).collect()
        };
        for (b, batch) in batches.iter().enumerate() {
            if b == 0 {
                columns = shape(batch)
                    .into_iter()
                    .map(|(name, _)| (name, Vec::new()))
                    .collect();
            } else if shape(batch) != shape(&batches[0]) {
                return Err(LoadErrorKind::OtherSchema { batch: b + 1 }.into());
            }
            for ((_, pieces), array) in columns.iter_mut().zip(batch.columns()) {
                pieces.push(array.clone());
            }
        }
        Ok(PrivateData::of(Source::Memory(columns)))
    }

    /// A file: CSV, plain or compressed with gzip or zstd, with a line of column names; Parquet;
    /// or Arrow IPC, as its content has it. Each other line, or each row, is a record. Or a folder
    /// of such files, a pattern for their paths, or `-` for standard input. It is read when it is
    /// bound. Parquet, Arrow IPC and zstd need the cargo feature `parquet`, which is on by default.
    pub fn from_file(path: impl AsRef<Path>) -> PrivateData {
        PrivateData::from_files([path])
    }

    /// Files with the same columns, one after the other: see [`from_file`](PrivateData::from_file).
    pub fn from_files<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> PrivateData {
        let paths = paths.into_iter().map(|path| path.as_ref().to_path_buf());
        PrivateData::of(Source::Files(paths.collect()))
    }

    fn of(source: Source) -> PrivateData {
        PrivateData {
            source,
            renames: Vec::new(),
            on_bad_rows: OnBadRows::Error,
            unit: None,
            multiline: false,
            spilling: None,
            share: None,
            portion: None,
        }
    }

    /// Adds a column in memory. Data from files is discarded.
    #[must_use]
    pub fn column(
        mut self,
        name: impl Into<String>,
        values: impl Into<PrivateColumn>,
    ) -> PrivateData {
        let column = (name.into(), vec![values.into().0]);
        match &mut self.source {
            Source::Memory(columns) => columns.push(column),
            Source::Files(_) => self.source = Source::Memory(vec![column]),
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

    /// Lets records of a CSV file span lines, with line feeds in quoted fields. Protection then applies
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

    /// Sets how much of the columns that a model reads is kept in memory, and where the rest goes;
    /// [`Spilling::usual`] unless this is called.
    #[must_use]
    pub fn spilling(mut self, spilling: Spilling) -> PrivateData {
        self.spilling = Some(spilling);
        self
    }

    /// Reads only this part of the records, as if there were no others: [`Split::training`] for a run,
    /// [`Split::rest`] to score it.
    ///
    /// [`Split::training`]: crate::Split::training
    /// [`Split::rest`]: crate::Split::rest
    #[must_use]
    pub fn portion(mut self, portion: Portion) -> PrivateData {
        self.portion = Some(portion);
        self
    }

    /// Reads one rank's share of the files, or holds its columns.
    #[cfg(test)]
    pub(super) fn share(mut self, share: Share) -> PrivateData {
        self.share = Some(share);
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
    /// A file cannot be read; a column is missing or duplicate, lengths differ, or a row is bad.
    /// No message contains a value.
    pub fn bind(&self, model: &Model) -> Result<Vault, LoadError> {
        let rows = self.rows(&model.columns)?;
        let vault = Vault::new(Density::new(model.clone()), rows)?;
        Ok(vault.with_unit(self.unit.clone()))
    }

    pub(crate) fn rows(&self, columns: &[RecordColumn]) -> Result<Rows, LoadError> {
        let reading = Reading {
            renames: &self.renames,
            on_bad_rows: self.on_bad_rows,
            unit: self.unit.as_deref(),
            multiline: self.multiline,
            spilling: self.spilling.as_ref(),
            share: self.share,
            portion: self.portion.as_ref(),
        };
        match &self.source {
            Source::Memory(given) => read_batches(batches(given), columns, &reading),
            Source::Files(paths) => read_files(paths, columns, &reading),
        }
    }
}

/// The columns in batches, each as long as the pieces of all are.
fn batches(given: &[(String, Vec<ArrayRef>)]) -> Batches {
    let field = |(name, pieces): &(String, Vec<ArrayRef>)| {
        let kind = pieces
            .first()
            .map_or(DataType::Null, |p| p.data_type().clone());
        Field::new(name, kind, true)
    };
    let schema = Arc::new(Schema::new(given.iter().map(field).collect::<Vec<_>>()));
    let given = given.to_vec();
    Batches::new(schema, move |chosen| {
        let mut left = common_length(&given)?;
        let pieces = |&c: &usize| VecDeque::from(given[c].1.clone());
        let mut columns: Vec<VecDeque<ArrayRef>> = chosen.iter().map(pieces).collect();
        Ok(Box::new(std::iter::from_fn(move || {
            for column in &mut columns {
                while column.front().is_some_and(|piece| piece.is_empty()) {
                    column.pop_front();
                }
            }
            let fronts = columns.iter().filter_map(VecDeque::front);
            let rows = fronts.map(|piece| piece.len()).fold(left, usize::min);
            left -= rows;
            let take = |column: &mut VecDeque<ArrayRef>| {
                let piece = column.pop_front()?;
                column.push_front(piece.slice(rows, piece.len() - rows));
                Some(piece.slice(0, rows))
            };
            (rows > 0).then(|| Ok((columns.iter_mut().filter_map(take).collect(), rows)))
        })))
    })
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

fn common_length(given: &[(String, Vec<ArrayRef>)]) -> Result<usize, LoadError> {
    let length = |pieces: &[ArrayRef]| pieces.iter().map(|piece| piece.len()).sum();
    let Some((first, values)) = given.first() else {
        return Ok(0);
    };
    let n: usize = length(values);
    match given.iter().find(|(_, other)| length(other) != n) {
        None => Ok(n),
        Some((name, other)) => Err(LoadErrorKind::UnequalLengths {
            first: first.clone(),
            first_length: n,
            other: name.clone(),
            other_length: length(other),
        }
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::{Float64Type, Int32Type};
    use arrow_array::{DictionaryArray, Float32Array, ListArray, UInt64Array};

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
        let words: DictionaryArray<Int32Type> = vec![Some("south"), None].into_iter().collect();
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
