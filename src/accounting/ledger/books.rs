//! The sums of a ledger's entries.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::super::accountant::AccountError;
use super::super::event::Event;
use super::super::measure::Cost;
use super::balance::Balance;
use super::entry::{Entry, FORMAT, Opening, Outcome};
use super::hash::EntryHash;
use super::part::Part;
use super::stored_event::StoredEventError;
use super::terms::{Terms, TermsError};

/// The state after some entries.
#[derive(Clone, Debug)]
pub(super) struct Books {
    pub terms: Terms,
    pub opening: Opening,
    pub balance: Balance,
    pub tally: Tally,
    open: HashMap<u64, OpenRun>,
    /// Open runs by their last token.
    tokens: HashMap<String, u64>,
    /// And by the token that they were reserved with.
    first_tokens: HashMap<String, u64>,
    /// Every run in order, if the history was asked for.
    history: Option<Vec<RunRecord>>,
}

/// How many entries there are of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// All runs that were charged.
    pub runs: u64,
    pub completed: u64,
    pub stopped: u64,
    pub nothing_released: u64,
    /// How often a run was interrupted and could then be resumed.
    pub interrupted: u64,
    /// How often a run that was cut short was resumed.
    pub resumed: u64,
    /// Repairs after a write that was cut short.
    pub recovered: u64,
    /// How often the file was accepted without its head.
    pub adopted: u64,
}

impl Tally {
    /// Runs that are under way, or died.
    pub fn unsettled(&self) -> u64 {
        self.runs - self.completed - self.stopped - self.nothing_released
    }
}

/// A run as the ledger knows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunRecord {
    /// The number of the entry that charged it.
    pub entry: u64,
    /// The hash of that entry.
    pub hash: EntryHash,
    pub date: String,
    pub run: String,
    pub events: Vec<Event>,
    /// The part of the data that it reads; all of it where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// How often it was cut short and resumed.
    pub resumed: u64,
    /// None while it is under way, and for ever if it died.
    pub outcome: Option<Outcome>,
    /// Releases that took place, by event, when it ended or was interrupted last; unknown before.
    pub released: Option<Vec<u64>>,
    /// All entries about it, beginning with the one that charged it.
    #[serde(skip)]
    pub entries: Vec<EntryRef>,
}

/// An entry, by its number and hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryRef {
    pub entry: u64,
    pub hash: EntryHash,
}

/// A run that has not been settled.
#[derive(Clone, Debug)]
struct OpenRun {
    cost: Cost,
    part: Option<Part>,
    counts: Box<[u64]>,
    /// Whether it was ever interrupted or resumed: then its last process does not know of all
    /// releases.
    went_on: bool,
    /// Of a run that can be resumed.
    token: Option<Box<Tokens>>,
}

#[derive(Clone, Debug)]
struct Tokens {
    /// The one that it was reserved with.
    first: String,
    last: String,
    charged: Charged,
}

/// An entry that charged a run.
#[derive(Clone, Debug)]
pub(super) struct Charged {
    pub at: EntryRef,
    /// The balance, including the run.
    pub balance: Balance,
}

/// An entry that is invalid at its place.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum EntryError {
    #[error("it is of format {0}, and this version reads format {FORMAT}")]
    Format(u32),
    #[error(transparent)]
    Terms(#[from] TermsError),
    #[error("its event {number} is not valid: {source}")]
    Event {
        number: usize,
        source: StoredEventError,
    },
    #[error(transparent)]
    Account(#[from] AccountError),
    #[error("it is a second first line")]
    SecondOpening,
    #[error("it is about entry {0}, which is not a run under way")]
    NotOpen(u64),
    #[error("it is about the run of entry {0}, without the run's last token")]
    WrongToken(u64),
    #[error("its token was used before")]
    UsedToken,
    #[error("it reports more releases than entry {0} reserved")]
    TooManyReleased(u64),
    #[error("it lifts the charge of entry {0}, which released something")]
    ReleasedAfterAll(u64),
}

impl Books {
    pub fn open(opening: Opening, with_history: bool) -> Result<Books, EntryError> {
        if opening.format != FORMAT {
            return Err(EntryError::Format(opening.format));
        }
        let terms = Terms::of(&opening)?;
        Ok(Books {
            balance: Balance::new(terms.measure(), terms.budget()),
            terms,
            opening,
            tally: Tally::default(),
            open: HashMap::new(),
            tokens: HashMap::new(),
            first_tokens: HashMap::new(),
            history: with_history.then(Vec::new),
        })
    }

    /// Adds an entry, or leaves everything unchanged.
    pub fn apply(&mut self, hash: EntryHash, entry: &Entry) -> Result<(), EntryError> {
        match entry {
            Entry::Ledger(_) => return Err(EntryError::SecondOpening),
            Entry::Reserved {
                entry,
                date,
                run,
                events,
                part,
                token,
                ..
            } => {
                if token.as_ref().is_some_and(|t| self.charged(t).is_some()) {
                    return Err(EntryError::UsedToken);
                }
                let events = events
                    .iter()
                    .enumerate()
                    .map(|(i, stored)| {
                        stored
                            .event(self.terms.relation())
                            .map_err(|source| EntryError::Event {
                                number: i + 1,
                                source,
                            })
                    })
                    .collect::<Result<Vec<_>, _>>()?;
                let cost = self.terms.measure().cost(&events, self.terms.relation())?;
                let part = self.terms.part(part.as_ref()).cloned();
                self.balance.charge(cost, part.as_ref());
                self.tally.runs += 1;
                let counts = events.iter().map(Event::count).collect();
                let at = EntryRef {
                    entry: *entry,
                    hash,
                };
                let token = token.as_ref().map(|token| {
                    let charged = Charged {
                        at,
                        balance: self.balance.clone(),
                    };
                    self.tokens.insert(token.clone(), *entry);
                    self.first_tokens.insert(token.clone(), *entry);
                    Box::new(Tokens {
                        first: token.clone(),
                        last: token.clone(),
                        charged,
                    })
                });
                let open = OpenRun {
                    cost,
                    part: part.clone(),
                    counts,
                    went_on: false,
                    token,
                };
                self.open.insert(*entry, open);
                if let Some(history) = &mut self.history {
                    history.push(RunRecord {
                        entry: *entry,
                        hash,
                        date: date.clone(),
                        run: run.clone(),
                        events,
                        part,
                        resumed: 0,
                        outcome: None,
                        released: None,
                        entries: vec![at],
                    });
                }
            }
            Entry::Resumed {
                entry,
                of,
                after,
                token,
                ..
            } => {
                self.rotate(*of, after, token)?;
                self.tally.resumed += 1;
                self.record(*of, *entry, hash, |run| run.resumed += 1);
            }
            Entry::Interrupted {
                entry,
                of,
                after,
                token,
                released,
                ..
            } => {
                self.covers(*of, released)?;
                self.rotate(*of, after, token)?;
                self.tally.interrupted += 1;
                self.record(*of, *entry, hash, |run| {
                    run.released = Some(released.clone());
                });
            }
            Entry::Settled {
                entry,
                of,
                outcome,
                released,
                ..
            } => {
                self.settle(*of, *outcome, released)?;
                self.record(*of, *entry, hash, |run| {
                    run.outcome = Some(*outcome);
                    run.released = Some(released.clone());
                });
            }
            Entry::Recovered { .. } => self.tally.recovered += 1,
            Entry::Adopted { .. } => self.tally.adopted += 1,
        }
        Ok(())
    }

    /// The last token of the run that this entry charged, if it is under way or died, and can be
    /// resumed.
    pub fn token(&self, charge: EntryRef) -> Option<&str> {
        let known = self.open.get(&charge.entry)?.token.as_deref()?;
        (known.charged.at == charge).then_some(known.last.as_str())
    }

    /// Whether a run is under way, or died.
    pub fn is_open(&self, entry: u64) -> bool {
        self.open.contains_key(&entry)
    }

    /// Whether a run that is under way was ever interrupted or resumed.
    pub fn went_on(&self, entry: u64) -> bool {
        self.open.get(&entry).is_some_and(|run| run.went_on)
    }

    /// The charge of the open run whose last token this is.
    pub fn charged(&self, token: &str) -> Option<&Charged> {
        let run = self.open.get(self.tokens.get(token)?)?;
        run.token.as_ref().map(|known| &known.charged)
    }

    /// The charge of the open run that was reserved with this token, however often it went on since.
    pub fn reserved(&self, token: &str) -> Option<EntryRef> {
        let run = self.open.get(self.first_tokens.get(token)?)?;
        run.token.as_ref().map(|known| known.charged.at)
    }

    /// Whether the open run of that entry was charged this cost for these events on this part.
    pub fn charges(
        &self,
        entry: u64,
        (cost, part): (Cost, Option<&Part>),
        events: &[Event],
    ) -> bool {
        self.open.get(&entry).is_some_and(|run| {
            run.cost == cost
                && run.part.as_ref() == self.terms.part(part)
                && run
                    .counts
                    .iter()
                    .copied()
                    .eq(events.iter().map(Event::count))
        })
    }

    /// Replaces a run's last token.
    fn rotate(&mut self, of: u64, after: &str, token: &str) -> Result<(), EntryError> {
        if self.tokens.contains_key(token) {
            return Err(EntryError::UsedToken);
        }
        let run = self.open.get_mut(&of).ok_or(EntryError::NotOpen(of))?;
        let known = run.token.as_mut().filter(|known| known.last == after);
        let known = known.ok_or(EntryError::WrongToken(of))?;
        known.last = token.to_owned();
        run.went_on = true;
        self.tokens.remove(after);
        self.tokens.insert(token.to_owned(), of);
        Ok(())
    }

    /// Updates the history of the run of entry `of` for another entry about it.
    fn record(&mut self, of: u64, entry: u64, hash: EntryHash, change: impl Fn(&mut RunRecord)) {
        let Some(history) = &mut self.history else {
            return;
        };
        // Sorted by entry, as they were pushed in that order.
        if let Ok(i) = history.binary_search_by_key(&of, |run| run.entry) {
            history[i].entries.push(EntryRef { entry, hash });
            change(&mut history[i]);
        }
    }

    pub fn has_history(&self) -> bool {
        self.history.is_some()
    }

    pub fn history(&self) -> &[RunRecord] {
        self.history.as_deref().unwrap_or_default()
    }

    /// Refuses counts of releases that the run of this entry was not charged for.
    fn covers(&self, of: u64, released: &[u64]) -> Result<(), EntryError> {
        let run = self.open.get(&of).ok_or(EntryError::NotOpen(of))?;
        let covers = released.len() == run.counts.len()
            && released.iter().zip(&run.counts).all(|(r, c)| r <= c);
        if covers {
            Ok(())
        } else {
            Err(EntryError::TooManyReleased(of))
        }
    }

    fn settle(&mut self, of: u64, outcome: Outcome, released: &[u64]) -> Result<(), EntryError> {
        self.covers(of, released)?;
        let run = self.open.get(&of).ok_or(EntryError::NotOpen(of))?;
        match outcome {
            Outcome::NothingReleased => {
                if released.iter().any(|&count| count > 0) {
                    return Err(EntryError::ReleasedAfterAll(of));
                }
                // Earlier versions wrote this for runs that had been resumed from a copy: how much
                // the copy released is unknown.
                if !run.went_on {
                    self.balance.lift(run.cost, run.part.as_ref());
                }
                self.tally.nothing_released += 1;
            }
            Outcome::Completed => self.tally.completed += 1,
            Outcome::Stopped => self.tally.stopped += 1,
        }
        if let Some(known) = self.open.remove(&of).and_then(|run| run.token) {
            self.tokens.remove(&known.last);
            self.first_tokens.remove(&known.first);
        }
        Ok(())
    }
}
