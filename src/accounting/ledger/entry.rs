//! The lines of a ledger.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::super::relation::Relation;
use super::hash::EntryHash;
use super::part::Part;
use super::stored_event::StoredEvent;

/// The format that this version writes, and the only one it reads.
pub(super) const FORMAT: u32 = 1;

/// How the line of a repair begins.
pub(super) const RECOVERED: &[u8] = b"{\"recovered\":{";

/// A line. All but the first carry their number, counted from 1 at the first, and the
/// hash of the line before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Entry {
    /// The first line.
    Ledger(Opening),
    /// A run's whole schedule is charged.
    Reserved {
        entry: u64,
        previous: EntryHash,
        date: String,
        /// Who asked, in a few words.
        run: String,
        events: Vec<StoredEvent>,
        /// The part of the data that it reads; all of it where there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        part: Option<Part>,
        /// The token that the run's watermark next to the ledger must carry, see `watermark`; none
        /// for a run that cannot be resumed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<String>,
    },
    /// A run that was cut short is resumed on the same charge.
    Resumed {
        entry: u64,
        previous: EntryHash,
        date: String,
        /// The number of the entry that reserved for it.
        of: u64,
        /// The token of the run's entry before this one.
        after: String,
        /// The token that replaces it.
        token: String,
    },
    /// A run was interrupted and can be resumed; it has a new token from now on.
    Interrupted {
        entry: u64,
        previous: EntryHash,
        /// The number of the entry that reserved for it.
        of: u64,
        after: String,
        token: String,
        /// Releases that took place so far, an event at a time.
        released: Vec<u64>,
    },
    /// A run has ended.
    Settled {
        entry: u64,
        previous: EntryHash,
        /// The number of the entry that reserved for it.
        of: u64,
        outcome: Outcome,
        /// Releases that took place, an event at a time.
        released: Vec<u64>,
    },
    /// Bytes that a write cut short left behind belong to no entry.
    Recovered {
        entry: u64,
        previous: EntryHash,
        /// Where they begin, and how many they are.
        offset: u64,
        length: u64,
        hash: EntryHash,
    },
    /// Somebody accepted the file without its head.
    Adopted {
        entry: u64,
        previous: EntryHash,
        date: String,
    },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Opening {
    pub format: u32,
    /// Chosen at random, so that two ledgers are never taken for one.
    pub id: String,
    pub date: String,
    pub epsilon: f64,
    pub delta: f64,
    pub relation: Relation,
    pub unit: String,
    pub accountant: String,
    /// The order, of `rdp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<u64>,
    pub software: String,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// All of it ran. The charge stays.
    Completed,
    /// It stopped early. The whole schedule stays charged: when it stopped may depend on what was
    /// released, so a smaller claim for a run that was cut short would be chosen by the data.
    Stopped,
    /// It ended before its first release. Its charge is lifted, unless the run was ever interrupted
    /// or resumed.
    NothingReleased,
}

impl Outcome {
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::Stopped => "stopped",
            Outcome::NothingReleased => "nothing-released",
        }
    }
}

impl Entry {
    /// The line, without a line feed.
    pub fn line(&self) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(self)
    }

    /// Number and hash of the line before; none for the first line.
    pub fn link(&self) -> Option<(u64, EntryHash)> {
        match *self {
            Entry::Ledger(_) => None,
            Entry::Reserved {
                entry, previous, ..
            }
            | Entry::Resumed {
                entry, previous, ..
            }
            | Entry::Interrupted {
                entry, previous, ..
            }
            | Entry::Settled {
                entry, previous, ..
            }
            | Entry::Recovered {
                entry, previous, ..
            }
            | Entry::Adopted {
                entry, previous, ..
            } => Some((entry, previous)),
        }
    }
}

/// The day, in UTC: finer times would tell how long a run took, and with that
/// something about the number of records.
pub(super) fn today() -> String {
    let seconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    date(seconds / 86_400)
}

/// The civil date of a day counted from 1970-01-01, in the Gregorian calendar: years
/// are taken to begin in March, so that the leap day is the last of its year.
fn date(days: u64) -> String {
    const ERA: u64 = 146_097; // days of 400 years
    let days = days + 719_468; // from 0000-03-01
    let day_of_era = days % ERA;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / (ERA - 1)) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153; // from March
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..=9 => (year_of_era, month + 3),
        _ => (year_of_era + 1, month - 9),
    };
    format!("{:04}-{month:02}-{day:02}", days / ERA * 400 + year)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_as_the_calendar_does() {
        for (days, text) in [
            (0, "1970-01-01"),
            (58, "1970-02-28"),
            (59, "1970-03-01"),
            (789, "1972-02-29"),
            (11_016, "2000-02-29"),
            (11_017, "2000-03-01"),
            (19_722, "2023-12-31"),
            (19_723, "2024-01-01"),
            (47_540, "2100-02-28"),
            (47_541, "2100-03-01"),
        ] {
            assert_eq!(date(days), text);
        }
    }

    // Wrong here: a torn repair could not be told from a line that somebody wrote.
    #[test]
    fn a_repair_begins_as_it_is_recognised() {
        let entry = Entry::Recovered {
            entry: 2,
            previous: EntryHash::of(b""),
            offset: 3,
            length: 4,
            hash: EntryHash::of(b"torn"),
        };
        assert!(entry.line().unwrap().starts_with(RECOVERED));
    }
}
