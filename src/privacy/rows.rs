//! The private table, once it is loaded.
//!
//! # Privacy
//!
//! `Rows` can be counted (n is public under substitution) and otherwise read only
//! inside `crate::privacy`: it has no `Debug`, `Clone`, `Serialize`, `Index` or
//! iterator, so that a value cannot reach a message or a file by accident.
//!
//! A row with a missing value is masked: it counts in n, its cells hold a public
//! placeholder, and the reader of the mask gives it a likelihood of one. All cells
//! are finite and inside their declared bounds, so nothing downstream meets a NaN
//! or branches on one.
//!
//! Where rows share a unit of privacy (`Rows::by_unit`), n is the number of units.

mod domain;
mod unit;

pub(super) use domain::{Cell, Domain, is_missing};
pub(super) use unit::Units;

use super::load::{LoadError, LoadErrorKind, OnBadRows};
use super::share::Compared;
use super::split::Portion;
use super::store::{NoRoom, Spilling, Store, StoreBuilder};
use crate::model::RecordColumn;

/// The rows of one private table. See the module's notes on who may read them.
pub struct Rows {
    /// The declared columns, in declaration order.
    pub(super) store: Store,
    /// Per row: whether a value that the model uses is missing.
    pub(super) missing: Vec<bool>,
    /// How rows share units; `None` where each row is a unit.
    pub(super) units: Option<Units>,
    /// Where more columns may go.
    pub(super) spilling: Spilling,
    /// For the ranks of a run on several.
    pub(super) compared: Compared,
    /// The part of a table that they are.
    pub(super) portion: Option<Portion>,
    /// Whether the table was divided by the places of its records.
    pub(super) by_place: bool,
}

impl Rows {
    /// The number of units: of records, including those with missing values, unless rows share
    /// units.
    pub(crate) fn n(&self) -> usize {
        let units = self.units.as_ref();
        units.map_or(self.missing.len(), |units| units.count)
    }

    /// The same rows once more, for what reads them as they are, beside a vault.
    ///
    /// # Errors
    ///
    /// There is no room for them, or they cannot be read back from a file beside memory.
    pub(crate) fn copied(&self) -> Result<Rows, LoadError> {
        let columns = self.columns();
        if let Some(reason) = self.store.failure() {
            let reason = reason.to_string();
            return Err(LoadErrorKind::Lost { reason }.into());
        }
        let all = 0..self.missing.len();
        let (store, spilling) = stored(&columns, all, self.spilling.clone())?;
        Ok(Rows {
            store,
            missing: self.missing.clone(),
            units: self.units.clone(),
            spilling,
            compared: self.compared.clone(),
            portion: self.portion.clone(),
            by_place: self.by_place,
        })
    }

    /// Per declared column, in declaration order, its value in each row.
    pub(super) fn columns(&self) -> Vec<Vec<f64>> {
        (0..self.store.columns())
            .map(|c| self.store.column(c))
            .collect()
    }

    /// How rows share units; `None` where each row is a unit.
    #[cfg(test)]
    pub(super) fn units(&self) -> Option<&Units> {
        self.units.as_ref()
    }

    /// Per row, whether it is masked: it adds nothing to any sum.
    #[cfg(test)]
    pub(super) fn missing(&self) -> &[bool] {
        &self.missing
    }
}

/// The column, by its place in the declaration, whose cell made a row bad.
pub(super) struct BadCell(pub(super) usize);

/// Takes rows one at a time and masks those with a value missing.
pub(super) struct RowsBuilder {
    on_bad_rows: OnBadRows,
    /// The domains of the columns that the model uses.
    domains: Vec<(usize, Domain)>,
    placeholders: Vec<f64>,
    row: Vec<f64>,
    store: StoreBuilder,
    missing: Vec<bool>,
}

impl RowsBuilder {
    pub(super) fn new(
        columns: &[RecordColumn],
        on_bad_rows: OnBadRows,
        spilling: Spilling,
    ) -> RowsBuilder {
        let placeholders: Vec<f64> = columns
            .iter()
            .map(|column| Domain::new(column).placeholder())
            .collect();
        RowsBuilder {
            on_bad_rows,
            domains: columns
                .iter()
                .enumerate()
                .filter(|(_, column)| column.used)
                .map(|(c, column)| (c, Domain::new(column)))
                .collect(),
            row: placeholders.clone(),
            placeholders,
            store: StoreBuilder::new(columns.len(), spilling),
            missing: Vec::new(),
        }
    }

    /// Adds the row whose cells `cell` returns for each used column, and for no other.
    ///
    /// Errors: a cell is bad and bad rows are errors; then no row is added.
    pub(super) fn push(
        &mut self,
        mut cell: impl FnMut(usize, &Domain) -> Cell,
    ) -> Result<(), BadCell> {
        let mut missing = false;
        for (c, domain) in &self.domains {
            match cell(*c, domain) {
                Cell::Value(value) | Cell::Clamped { to: value, .. } => self.row[*c] = value,
                Cell::Missing => missing = true,
                Cell::Bad if self.on_bad_rows == OnBadRows::Skip => missing = true,
                Cell::Bad => return Err(BadCell(*c)),
            }
        }
        self.add(missing);
        Ok(())
    }

    /// Adds a row that only counts in n.
    pub(super) fn push_missing(&mut self) {
        self.add(true);
    }

    pub(super) fn finish(self) -> Result<Rows, NoRoom> {
        let (store, spilling) = self.store.finish()?;
        Ok(Rows {
            store,
            missing: self.missing,
            units: None,
            spilling,
            compared: Compared::default(),
            portion: None,
            by_place: false,
        })
    }

    fn add(&mut self, missing: bool) {
        let row = if missing {
            &self.placeholders
        } else {
            &self.row
        };
        self.store.push(row);
        self.missing.push(missing);
    }
}

/// Stores these rows of the columns, in this order.
fn stored(
    columns: &[Vec<f64>],
    order: impl IntoIterator<Item = usize>,
    spilling: Spilling,
) -> Result<(Store, Spilling), LoadError> {
    let mut store = StoreBuilder::new(columns.len(), spilling);
    let mut row = Vec::with_capacity(columns.len());
    for i in order {
        row.clear();
        row.extend(columns.iter().map(|column| column[i]));
        store.push(&row);
    }
    Ok(store.finish().map_err(LoadErrorKind::from)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::privacy::load::{LoadError, LoadErrorKind};

    fn column(name: &str, is_int: bool, lower: Option<f64>, upper: Option<f64>) -> RecordColumn {
        RecordColumn {
            lower,
            upper,
            ..RecordColumn::named(name, is_int)
        }
    }

    fn columns() -> Vec<RecordColumn> {
        vec![
            column("switched", true, Some(0.0), Some(1.0)),
            column("dist", false, Some(-2.0), None),
        ]
    }

    fn data(switched: &[f64], dist: &[f64]) -> Vec<(String, Vec<f64>)> {
        vec![
            ("dist".to_string(), dist.to_vec()),
            ("switched".to_string(), switched.to_vec()),
        ]
    }

    fn error(
        columns: &[RecordColumn],
        data: Vec<(String, Vec<f64>)>,
        on_bad_rows: OnBadRows,
    ) -> LoadError {
        Rows::from_columns(columns, data, on_bad_rows)
            .err()
            .expect("these rows must not load")
    }

    #[test]
    fn columns_come_in_declaration_order_and_are_clamped() {
        let given = data(&[0.0, 1.0, 1.0], &[3.5, -7.0, f64::NEG_INFINITY]);
        let rows = Rows::from_columns(&columns(), given, OnBadRows::Error).unwrap();
        assert_eq!(rows.n(), 3);
        assert_eq!(rows.columns(), [[0.0, 1.0, 1.0], [3.5, -2.0, -2.0]]);
        assert_eq!(rows.missing(), [false; 3]);
    }

    #[test]
    fn a_nan_masks_its_row_and_leaves_no_nan_behind() {
        let given = data(&[1.0, f64::NAN, 1.0], &[1.0, 1.0, f64::NAN]);
        let rows = Rows::from_columns(&columns(), given, OnBadRows::Error).unwrap();
        assert_eq!(rows.missing(), [false, true, true]);
        assert_eq!(rows.columns(), [[1.0, 0.0, 0.0], [1.0, -2.0, -2.0]]);
    }

    #[test]
    fn bad_rows_stop_the_loading_or_are_masked() {
        for (switched, dist, name) in [
            (2.0, 0.0, "switched"),
            (0.5, 0.0, "switched"),
            (f64::INFINITY, 0.0, "switched"),
            (1.0, f64::INFINITY, "dist"),
            (f64::NAN, f64::INFINITY, "dist"),
        ] {
            let given = data(&[1.0, switched, 7.0], &[0.0, dist, 0.0]);
            let message = error(&columns(), given.clone(), OnBadRows::Error).to_string();
            assert!(message.contains("row 2"), "{message}");
            assert!(message.contains(&format!("`{name}`")), "{message}");
            assert!(message.contains("OnBadRows::Skip"), "{message}");
            let rows = Rows::from_columns(&columns(), given, OnBadRows::Skip).unwrap();
            assert_eq!(rows.missing(), [false, true, true]);
        }
    }

    #[test]
    fn unused_columns_are_optional_and_never_read() {
        let mut columns = columns();
        columns[0].used = false;
        let bad = data(&[f64::NAN, 77.0], &[1.0, 2.0]);
        let absent = vec![bad[0].clone()];
        for given in [bad, absent] {
            let rows = Rows::from_columns(&columns, given, OnBadRows::Error).unwrap();
            assert_eq!(rows.missing(), [false, false]);
            assert_eq!(rows.columns(), [[0.0, 0.0], [1.0, 2.0]]);
        }
    }

    #[test]
    fn names_and_lengths_must_fit() {
        let mut given = data(&[1.0], &[1.0]);
        given[0].0 = "dists".to_string();
        let message = error(&columns(), given, OnBadRows::Error).to_string();
        assert!(message.contains("did you mean `dists`"), "{message}");
        assert!(!message.contains("`columns`"), "{message}");

        let mut given = data(&[1.0], &[1.0]);
        given.push(("dist".to_string(), vec![2.0]));
        let duplicate = error(&columns(), given, OnBadRows::Error);
        assert!(matches!(
            duplicate.kind(),
            LoadErrorKind::DuplicateColumn { .. }
        ));

        let unequal = error(&columns(), data(&[1.0, 0.0], &[1.0]), OnBadRows::Skip);
        assert!(matches!(
            unequal.kind(),
            LoadErrorKind::UnequalLengths { .. }
        ));

        let empty = Rows::from_columns(&columns(), data(&[], &[]), OnBadRows::Error);
        assert_eq!(empty.map_or(1, |rows| rows.n()), 0);
    }

    // Wrong here: a posterior of zeros in the place of rows that a disk has lost.
    #[test]
    fn rows_that_are_lost_beside_memory_are_an_error() {
        use crate::density::Density;
        use crate::model::{Constants, Model};
        use crate::privacy::Vault;

        let source = "record { real<lower=-9, upper=9> y; } parameters { real m; }
             model { m ~ normal(0, 1); y ~ normal(m, 1); }";
        let model = Model::from_source(source, &Constants::none()).unwrap();
        let rows = || {
            let beside = Spilling {
                memory: 0,
                folder: Some(std::env::temp_dir()),
            };
            let mut rows = RowsBuilder::new(&model.columns, OnBadRows::Error, beside);
            for i in 0..9000 {
                let pushed = rows.push(|_, domain| domain.number(f64::from(i % 10)));
                assert!(pushed.is_ok());
            }
            rows.finish().unwrap()
        };
        let vault = |rows| Vault::new(Density::new(model.clone()), rows);
        let keys: Vec<usize> = (0..9000).map(|i| i / 3).collect();
        assert!(vault(rows()).is_ok() && rows().by_unit(&keys).is_ok());
        let lost = || {
            let rows = rows();
            rows.store.lose();
            rows
        };
        for error in [vault(lost()).err(), lost().by_unit(&keys).err()] {
            let said = error.expect("an error").to_string();
            assert!(said.contains("cannot be read back"), "{said}");
        }
    }

    #[test]
    fn no_message_holds_a_value() {
        let sentinel = 424_242.5_f64;
        for (switched, dist) in [
            (sentinel, 0.0),
            (sentinel.floor(), 0.0),
            (sentinel, f64::INFINITY),
        ] {
            let failed = error(&columns(), data(&[switched], &[dist]), OnBadRows::Error);
            assert!(!format!("{failed} {failed:?}").contains("424242"));
        }
    }
}
