//! Which of the records one of several ranks has.

use serde::{Deserialize, Serialize};

/// The share of the files that a rank reads: whole files, one after the other, those of earlier ranks
/// before those of later ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// The number of this rank, from 0.
    pub rank: usize,
    /// How many ranks there are.
    pub ranks: usize,
}

/// Digests that must be compared between ranks.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Compared {
    /// Digest of the list of all files.
    pub files: [u8; 32],
    /// Digests of the units' keys.
    pub units: Vec<[u8; 16]>,
}
