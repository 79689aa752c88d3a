//! Comparison of a run's report of its charge with the ledger.

use super::books::{Books, EntryRef};
use super::entry::Outcome;

/// The statements of a run's report about its charge.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// The ledger's id.
    pub ledger: String,
    /// The entry that charged it.
    pub charge: EntryRef,
    /// The last entry about it when the report was written, where it names one.
    pub last: Option<EntryRef>,
    /// How many of each event's releases took place.
    pub released: Vec<u64>,
    /// Whether it ran to its end.
    pub finished: bool,
}

impl Evidence {
    /// A note about a run that agrees with the ledger, or an explanation of the difference. `books`
    /// must have their history.
    pub(super) fn check(&self, books: &Books) -> Result<Option<&'static str>, String> {
        if self.ledger != books.opening.id {
            let id = self.ledger.escape_debug();
            return Err(format!("the run was charged to another ledger, of id {id}"));
        }
        let missing = |entry: u64, what: &str| {
            format!("entry {entry}, {what}, is missing or was changed, or an entry before it was")
        };
        let charge = self.charge.entry;
        let mut runs = books.history().iter();
        let known = runs.find(|known| known.entries.first() == Some(&self.charge));
        let known = known.ok_or_else(|| missing(charge, "to which the run was charged"))?;
        if let Some(last) = self.last
            && !known.entries.contains(&last)
        {
            return Err(missing(last.entry, "which says how the run ended"));
        }
        let contradicts = |what: &str| Err(format!("of the run of entry {charge} {what}"));
        let any = self.released.iter().any(|&count| count > 0);
        if known.outcome == Some(Outcome::NothingReleased) && any {
            return contradicts(
                "it says that nothing was released, and the run says that something was",
            );
        }
        if let Some(counted) = &known.released {
            let mut pairs = self.released.iter().zip(counted);
            if counted.len() != self.released.len() || pairs.any(|(run, known)| run > known) {
                return contradicts("it knows of fewer releases than the run says it made");
            }
        }
        match (self.finished, known.outcome) {
            (true, Some(Outcome::Stopped | Outcome::NothingReleased)) => {
                contradicts("it says that it stopped early, and the run says that it finished")
            }
            (true, None) if self.last.is_some() => {
                contradicts("it does not say that it ended, and the run says that it did")
            }
            (true, None) => Ok(Some("the ledger has no note of its end")),
            (false, _) if self.last.is_some() && self.last.as_ref() != known.entries.last() => Ok(
                Some("it was resumed after this was written, elsewhere or in this place"),
            ),
            _ => Ok(None),
        }
    }
}
