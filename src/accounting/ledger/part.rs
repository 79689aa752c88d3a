//! Parts of a table that have no record in common.

use serde::{Deserialize, Serialize};

/// A part of the data of a budget: of those whose units a public rule divides into two
/// by their keys. Runs on one
/// part and runs on the other reveal of any one unit what the runs on its own part do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// What the division is called. Divisions of different names or shares have nothing to do with
    /// each other: a unit may be in any part of either.
    pub split: String,
    /// About how large a share is held out.
    pub held_out: f64,
    /// Whether it is the part that is held out.
    pub is_held_out: bool,
}

impl Part {
    /// Whether it is a part of the same division, or the same part.
    pub(super) fn divides_like(&self, other: &Part) -> bool {
        self.split == other.split && self.held_out.to_bits() == other.held_out.to_bits()
    }
}
