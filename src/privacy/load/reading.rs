//! How a table is read.

use crate::privacy::share::Share;
use crate::privacy::split::Portion;
use crate::privacy::store::Spilling;

/// The treatment of a row that cannot be read: text where a number belongs, the wrong number of
/// fields, an int out of bounds or not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnBadRows {
    /// Stop at the first one.
    #[default]
    Error,
    /// Treat each as missing, without a message.
    Skip,
}

/// How to read the data.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reading<'a> {
    /// Pairs of a column's name in the model (`dist`, `x.1`) and its name in the data.
    pub renames: &'a [(String, String)],
    pub on_bad_rows: OnBadRows,
    /// The column of the data whose values identify the units of privacy; without it each row is a
    /// unit.
    pub unit: Option<&'a str>,
    /// Whether a record of a text may span lines, with line feeds in quoted fields.
    ///
    /// Protection then applies to a record as delimited by its quotation marks, and no longer to a
    /// line: a record with a stray mark may include the lines up to the next mark. Most such files
    /// stop the loading, under [`OnBadRows::Skip`] too: a mark in a place where none is allowed, or
    /// one that is never closed, is an error.
    pub multiline: bool,
    /// How much is kept in memory; [`Spilling::usual`], unless it is given.
    pub spilling: Option<&'a Spilling>,
    /// Which of the files are read, where several ranks share them; all, unless it is given.
    pub share: Option<Share>,
    /// The part of the records that is read, as if there were no others; all, unless it is given. Not
    /// for one of several ranks, which do not know the places of their records in the whole table.
    pub portion: Option<&'a Portion>,
}
