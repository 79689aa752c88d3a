//! Rows that share a unit of privacy.

use super::Rows;
use crate::privacy::load::{LoadError, LoadErrorKind};
use crate::privacy::store::Spilling;
use std::cmp::Ordering;

/// How rows are grouped into units: a unit's rows are contiguous.
#[derive(Clone)]
pub(in crate::privacy) struct Units {
    /// The number of units, including those without a row that counts.
    pub count: usize,
    /// The end of the rows of each unit that has any.
    pub ends: Vec<usize>,
    /// The numbers of these units among all, in the order of their keys.
    pub numbers: Vec<usize>,
}

impl Rows {
    /// The same rows, with all those that have equal keys as one unit of privacy: a neighbouring
    /// table has other rows, and possibly more or fewer, for one key. `keys` holds one key for each
    /// row, and is not kept.
    ///
    /// The number of units replaces the number of rows, which is private from here on. Rows with a
    /// missing value keep their unit counted and are dropped.
    ///
    /// # Privacy
    ///
    /// A unit's floating-point sums must not depend on the position of its rows in the table, so
    /// the rows are sorted by their values. Rows that compare equal are equal to the bit.
    ///
    /// All rows are held in memory.
    ///
    /// Errors: there are more or fewer keys than rows, or rows cannot be read back from a file
    /// beside memory.
    pub fn by_unit<K: Ord>(self, keys: &[K]) -> Result<Rows, LoadError> {
        if keys.len() != self.missing.len() {
            return Err(LoadErrorKind::UnequalUnits {
                rows: self.missing.len(),
                keys: keys.len(),
            }
            .into());
        }
        let columns = self.columns();
        // Other values in their place would be released as if they were theirs.
        if let Some(reason) = self.store.failure() {
            let reason = reason.to_string();
            return Err(LoadErrorKind::Lost { reason }.into());
        }
        let compare = |a: usize, b: usize| {
            (columns.iter())
                .map(|column| column[a].total_cmp(&column[b]))
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal)
        };
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_unstable_by(|&a, &b| {
            keys[a]
                .cmp(&keys[b])
                .then_with(|| self.missing[a].cmp(&self.missing[b]))
                .then_with(|| compare(a, b))
        });
        let mut units = Units {
            count: 0,
            ends: Vec::new(),
            numbers: Vec::new(),
        };
        let mut kept = 0;
        for unit in order.chunk_by(|&a, &b| keys[a] == keys[b]) {
            units.count += 1;
            let rows = unit.iter().filter(|&&row| !self.missing[row]).count();
            if rows > 0 {
                kept += rows;
                units.ends.push(kept);
                units.numbers.push(units.count - 1);
            }
        }
        order.retain(|&row| !self.missing[row]);
        let (store, spilling) = super::stored(&columns, order, Spilling::never())?;
        Ok(Rows {
            store,
            missing: vec![false; kept],
            units: Some(units),
            spilling,
            compared: self.compared,
            portion: self.portion,
            by_place: self.by_place,
        })
    }
}
