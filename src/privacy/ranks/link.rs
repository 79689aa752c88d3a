//! The link between ranks, and how it fails.

use serde::{Deserialize, Serialize};

/// Messages between ranks. All ranks make the same calls in the same order.
pub trait Link: Send {
    /// The number of this rank, from 0.
    fn rank(&self) -> usize;

    /// How many ranks there are.
    fn ranks(&self) -> usize;

    /// Rank 0's message, at all ranks; what the others pass is not read.
    ///
    /// # Errors
    ///
    /// The message was lost.
    fn broadcast(&mut self, message: Vec<u8>) -> Result<Vec<u8>, LinkError>;

    /// The messages of all, in their order, at rank 0; nothing at the others.
    ///
    /// # Errors
    ///
    /// A message was lost.
    fn gather(&mut self, message: Vec<u8>) -> Result<Vec<Vec<u8>>, LinkError>;

    /// The sums, modulo 2^64, of the numbers of all, at rank 0; nothing at the others. All pass as
    /// many.
    ///
    /// # Errors
    ///
    /// A message was lost.
    fn sum(&mut self, numbers: Vec<u64>) -> Result<Vec<u64>, LinkError>;

    /// Ends the program on all ranks, as where this one cannot go on and others wait for it.
    fn abort(&mut self);
}

/// A lost message, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the ranks of this run have lost their connection: {0}")]
pub struct LinkError(pub String);

/// Why ranks cannot work together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[non_exhaustive]
pub enum RanksError {
    /// A rank cannot load its share.
    #[error("rank {rank}: {message}")]
    Load {
        /// The rank.
        rank: usize,
        /// Why not.
        message: String,
    },
    /// Models differ.
    #[error(
        "rank {rank} has another model, or other constants, than rank 0: all must read the same files"
    )]
    Model {
        /// The rank that differs from rank 0.
        rank: usize,
    },
    /// Lists of files differ, so that a file might be read twice, or not at all.
    #[error(
        "rank {rank} sees other files than rank 0 under the same paths, or of another size: keep the data where all ranks see the same"
    )]
    Files {
        /// The rank that differs from rank 0.
        rank: usize,
    },
    /// The rows of a unit are at several ranks.
    #[error(
        "rows of one unit lie in the files of several ranks: write all rows with the same value of `{column}` into one file, or take one rank"
    )]
    Unit {
        /// The column that tells units apart.
        column: String,
    },
    /// The ranks have lost each other.
    #[error("the ranks of this run have lost their connection: {0}")]
    Link(String),
}

impl From<LinkError> for RanksError {
    fn from(LinkError(why): LinkError) -> RanksError {
        RanksError::Link(why)
    }
}
