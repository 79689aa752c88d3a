//! The division of the records into those that a run learns from and those that are held out.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::accounting::Part;

/// A division of a table: which records are held out follows from a hash of their places, or of the
/// keys of their units, under a public name.
///
/// # Privacy
///
/// Neighbouring tables are divided alike, and differ in one of the two parts: docs/proofs.md,
/// section 18.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Split {
    name: String,
    held_out: f64,
}

/// Why a table cannot be divided like this.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("the share that is held out is {0}, but must lie above 0 and below 1")]
pub struct SplitError(pub f64);

/// One of the two parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subset {
    /// The records that runs learn from.
    Training,
    /// The others, by which they are scored.
    HeldOut,
}

/// A part of a table.
#[derive(Debug, Clone)]
pub struct Portion {
    /// The division.
    pub split: Split,
    /// The part.
    pub subset: Subset,
}

impl Split {
    /// Holds out about this share of the records. Another name holds out others.
    ///
    /// # Errors
    ///
    /// A share that is not above 0 and below 1.
    pub fn new(name: impl Into<String>, held_out: f64) -> Result<Split, SplitError> {
        if !(held_out > 0.0 && held_out < 1.0) {
            return Err(SplitError(held_out));
        }
        Ok(Split {
            name: name.into(),
            held_out,
        })
    }

    /// The name of the division.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// About how large a share is held out.
    pub fn held_out(&self) -> f64 {
        self.held_out
    }

    /// The records that runs learn from.
    pub fn training(&self) -> Portion {
        self.of(Subset::Training)
    }

    /// The records that are held out.
    pub fn rest(&self) -> Portion {
        self.of(Subset::HeldOut)
    }

    fn of(&self, subset: Subset) -> Portion {
        Portion {
            split: self.clone(),
            subset,
        }
    }

    fn holds_out(&self, identity: &[u8]) -> bool {
        let mut hash = Sha256::new();
        hash.update((self.name.len() as u64).to_le_bytes());
        hash.update(&self.name);
        hash.update(identity);
        let mut first = [0; 8];
        first.copy_from_slice(&hash.finalize()[..8]);
        (u64::from_le_bytes(first) as f64) < self.held_out * 2f64.powi(64)
    }
}

impl Portion {
    pub(crate) fn part(&self) -> Part {
        Part {
            split: self.split.name.clone(),
            held_out: self.split.held_out,
            is_held_out: self.subset == Subset::HeldOut,
        }
    }

    /// Whether the record at this place of the table, counted from 0, is in the part; or, where units
    /// have keys, whether the rows of this key are.
    pub(super) fn has(&self, place: u64, key: Option<&[u8]>) -> bool {
        let held_out = match key {
            Some(key) => self.split.holds_out(key),
            None => self.split.holds_out(&place.to_le_bytes()),
        };
        held_out == (self.subset == Subset::HeldOut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Wrong here: a record in both parts, or in none; a share that is not what was asked for; names
    // that make no difference. False alarms: 5 standard errors, 1e-6.
    #[test]
    fn each_record_is_in_one_part_and_the_share_is_as_asked() {
        for share in [0.1, 0.2, 0.5] {
            let [a, b] = ["a", "b"].map(|name| Split::new(name, share).unwrap());
            let n = 20_000;
            let (mut out, mut both) = (0, 0);
            for place in 0..n {
                assert_ne!(a.training().has(place, None), a.rest().has(place, None));
                let held_out = a.rest().has(place, None);
                out += u64::from(held_out);
                both += u64::from(held_out && b.rest().has(place, None));
                // A unit's rows go together.
                let key = place.to_string();
                let has = |at| a.rest().has(at, Some(key.as_bytes()));
                assert_eq!(has(0), has(place));
            }
            for (count, p) in [(out, share), (both, share * share)] {
                let sd = (n as f64 * p * (1.0 - p)).sqrt();
                assert!((count as f64 - n as f64 * p).abs() < 5.0 * sd, "{count}");
            }
        }
        for share in [0.0, 1.0, -0.1, f64::NAN] {
            assert!(Split::new("a", share).is_err());
        }
    }
}
