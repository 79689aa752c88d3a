//! Parts of a table that have no record in common.

use serde::{Deserialize, Serialize};

/// One of two parts into which a public rule divides the units of a table, by their keys. A unit is
/// in one of them, and only runs on that part reveal anything about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The name of the division. Divisions of different names or shares have nothing to do with each
    /// other: a unit may be in any part of either.
    pub split: String,
    /// About how large a share is held out.
    pub held_out: f64,
    /// Whether it is the part that is held out.
    pub is_held_out: bool,
}

impl Part {
    /// Whether both are parts of the same division.
    pub(super) fn divides_like(&self, other: &Part) -> bool {
        self.split == other.split && self.held_out.to_bits() == other.held_out.to_bits()
    }
}
