//! A budget over several analyses.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use rand::rand_core::TryRng;
use rand::rngs::SysRng;
use serde::Serialize;

use super::super::accountant::Accountant;
use super::super::budget::Meter;
use super::super::event::{Event, Relation};
use super::super::measure::Cost;
use super::super::real::Real;
use super::balance::{Balance, Quote};
use super::books::{Charged, RunRecord, Tally};
use super::chain::{Chain, Tail};
use super::entry::{Entry, FORMAT, Opening, Outcome, today};
use super::error::{Damage, LedgerError, figure};
use super::file::{HeadRule, LedgerFile, RunLock};
use super::hash::EntryHash;
use super::stored_event::StoredEvent;
use super::terms::Terms;

/// A budget of one data set, from which any number of analyses take, one after another
/// or at once, in this process or, with a ledger, in several.
///
/// A run is charged in whole before its first release: [`Session::reserve`] either
/// charges it or refuses, and the [`Reservation`] that it gives holds the [`Meter`] that
/// grants the releases.
///
/// ```
/// use dpm::accounting::{Accountant, Budget, Event, Relation, Request, Session, Terms};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let relation = Relation::Substitute;
/// let budget = Budget::new(2.0, "1e-6".parse::<dpm::Real>()?)?;
/// let terms = Terms::new(budget, relation, "record", Accountant::Gaussian)?;
/// let session = Session::in_memory(terms)?; // or Session::create("survey.ledger", terms)
///
/// let events = [Event::parse("gaussian:clip=1,sigma=55,count=100", relation)?];
/// let request = Request { run: "first look", events: &events, relation, unit: "record" };
/// let reservation = session.reserve(&request)?;
/// reservation.meter().charge(0)?; // before each release
/// reservation.complete()?;
///
/// assert!(session.statement()?.spent < 2.0);
/// assert!(session.reserve(&request).is_err()); // a second run would be too much
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Session {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    chain: Chain,
    file: Option<LedgerFile>,
}

/// A run that asks for its share.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// What it is, in a few words, for whoever reads the ledger.
    pub run: &'a str,
    /// The whole schedule: everything it may release.
    pub events: &'a [Event],
    pub relation: Relation,
    pub unit: &'a str,
}

/// What a budget's account looks like.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statement {
    /// The ledger's id, chosen at random.
    pub id: String,
    pub created: String,
    pub epsilon: f64,
    pub delta: f64,
    pub relation: Relation,
    pub unit: String,
    pub accountant: Accountant,
    /// The order, of `rdp`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<u64>,
    /// Upper bound on the epsilon of all runs together, at `delta`. Infinite if there
    /// is none.
    pub spent: f64,
    pub remaining: f64,
    /// The largest epsilon of one further run, by itself and at `delta`, that fits.
    pub room: f64,
    /// What the budget counts with, beside epsilons: whether it is kept.
    pub holds: bool,
    pub entries: u64,
    /// The hash of the last entry.
    pub head: EntryHash,
    pub runs: Tally,
    /// Whether the end of the file is a line that was cut short, to be marked by the
    /// next entry. Nothing was released on it.
    pub torn_tail: bool,
}

impl Session {
    /// A budget that lives as long as this value.
    ///
    /// # Errors
    ///
    /// None that a user can cause.
    pub fn in_memory(terms: Terms) -> Result<Session, LedgerError> {
        let mut line = Entry::Ledger(opening(&terms, "in memory".to_owned()))
            .line()
            .map_err(in_memory)?;
        line.push(b'\n');
        let chain = Chain::read(line.as_slice(), None, false).map_err(in_memory)?;
        Ok(Session::of(chain, None))
    }

    /// A new ledger at `path`.
    ///
    /// # Errors
    ///
    /// Something is there already, or it cannot be written.
    pub fn create(path: impl AsRef<Path>, terms: &Terms) -> Result<Session, LedgerError> {
        let path = path.as_ref();
        let mut id = [0; 16];
        SysRng
            .try_fill_bytes(&mut id)
            .map_err(|error| LedgerError::Write {
                path: path.to_path_buf(),
                source: std::io::Error::other(error),
            })?;
        let id = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let (file, chain) = LedgerFile::create(path, opening(terms, id))?;
        Ok(Session::of(chain, Some(file)))
    }

    /// A ledger that is there. All of it is read and checked.
    ///
    /// # Errors
    ///
    /// It is not there, cannot be read, or does not hold.
    pub fn open(path: impl AsRef<Path>) -> Result<Session, LedgerError> {
        let (file, chain) = LedgerFile::open(path.as_ref(), HeadRule::Required, false)?;
        Ok(Session::of(chain, Some(file)))
    }

    /// As [`Session::open`], and keeps what is known of every run for
    /// [`Session::history`].
    pub fn open_with_history(path: impl AsRef<Path>) -> Result<Session, LedgerError> {
        let (file, chain) = LedgerFile::open(path.as_ref(), HeadRule::Required, true)?;
        Ok(Session::of(chain, Some(file)))
    }

    /// Goes on with a ledger whose head is lost. An entry says so for ever, since
    /// nobody knows then whether entries are missing at its end.
    pub fn adopt(path: impl AsRef<Path>) -> Result<Session, LedgerError> {
        LedgerFile::adopt(path.as_ref(), today())?;
        Session::open(path)
    }

    /// A budget of single records under substitution, for runs that read all of them, that
    /// lives as long as this value: [`Session::in_memory`] with [`Terms::of_records`].
    ///
    /// # Errors
    ///
    /// An epsilon or delta out of range.
    pub fn new(epsilon: impl Into<Real>, delta: impl Into<Real>) -> Result<Session, LedgerError> {
        Session::in_memory(Terms::of_records(epsilon, delta)?)
    }

    fn of(chain: Chain, file: Option<LedgerFile>) -> Session {
        Session {
            state: Mutex::new(State { chain, file }),
        }
    }

    /// What the budget is for.
    pub fn terms(&self) -> Result<Terms, LedgerError> {
        self.with(|state| Ok(state.chain.books.terms.clone()))
    }

    /// Where the ledger stands; `None` in memory.
    pub fn path(&self) -> Result<Option<PathBuf>, LedgerError> {
        let path = |file: &LedgerFile| file.path().to_path_buf();
        self.with(|state| Ok(state.file.as_ref().map(path)))
    }

    /// What is spent and what is left now, other processes' runs included.
    pub fn statement(&self) -> Result<Statement, LedgerError> {
        self.with(|state| {
            state.refresh()?;
            Ok(state.statement())
        })
    }

    /// The runs so far, if they were asked for when the ledger was opened.
    pub fn history(&self) -> Result<Vec<RunRecord>, LedgerError> {
        self.with(|state| Ok(state.chain.books.history().to_vec()))
    }

    /// What a run would cost now; nothing is charged.
    ///
    /// # Errors
    ///
    /// Another relation or unit than the budget's; events that make no sense.
    pub fn quote(&self, request: &Request) -> Result<Quote, LedgerError> {
        self.with(|state| {
            let cost = check(request, &state.chain.books.terms)?;
            state.refresh()?;
            Ok(state.chain.books.balance.quote(cost))
        })
    }

    /// Charges a run, or refuses it. When this returns, the charge is on the disk.
    ///
    /// # Errors
    ///
    /// As [`Session::quote`]; a budget that the run would exceed; a ledger that does
    /// not hold or cannot be written.
    pub fn reserve(&self, request: &Request) -> Result<Reservation<'_>, LedgerError> {
        self.reserve_with(request, None)
    }

    /// As [`Session::reserve`], of a run that can be gone on with by whoever knows `token`,
    /// which must be random: [`Session::resume`].
    pub fn reserve_resumable(
        &self,
        request: &Request,
        token: &str,
    ) -> Result<Reservation<'_>, LedgerError> {
        self.reserve_with(request, Some(token))
    }

    /// Goes on with a run that was cut short, on the charge it has. `after`: the token of
    /// the run's entry before; `token`: what whoever goes on next must know, random and
    /// new; `released`: how many of each event's releases were made, or may have been.
    ///
    /// Of several who go on from one token, such as from a copy, one can.
    ///
    /// # Errors
    ///
    /// No open run has that last token; its events are others; more was released than
    /// was charged; a ledger that does not hold or cannot be written.
    pub fn resume(
        &self,
        request: &Request,
        after: &str,
        token: &str,
        released: &[u64],
    ) -> Result<Reservation<'_>, LedgerError> {
        self.with(|state| {
            let cost = check(request, &state.chain.books.terms)?;
            let meter = Meter::resumed(request.events.to_vec(), released)?;
            let (mut charged, mut lock) = (None, None);
            let file = state.file.clone();
            state.append(|chain, entry, previous| {
                let run = chain
                    .books
                    .charged(after)
                    .ok_or(LedgerError::NotResumable)?;
                if !chain.books.charges(run.entry, cost, request.events) {
                    return Err(LedgerError::OtherPlan);
                }
                lock = match &file {
                    Some(file) => Some(file.lock_run(run.entry)?),
                    None => None,
                };
                charged = Some(run.clone());
                Ok(Entry::Resumed {
                    entry,
                    previous,
                    date: today(),
                    of: run.entry,
                    after: after.to_owned(),
                    token: token.to_owned(),
                })
            })?;
            let charged = charged.ok_or(LedgerError::NotResumable)?;
            Ok(self.reservation(state, charged, meter, lock))
        })
    }

    /// Whether an open run's last token is this.
    pub fn knows(&self, token: &str) -> Result<bool, LedgerError> {
        self.with(|state| {
            state.refresh()?;
            Ok(state.chain.books.charged(token).is_some())
        })
    }

    fn reservation(
        &self,
        state: &State,
        charged: Charged,
        meter: Meter,
        lock: Option<RunLock>,
    ) -> Reservation<'_> {
        Reservation {
            session: self,
            ledger: state.chain.books.opening.id.clone(),
            terms: state.chain.books.terms.clone(),
            entry: charged.entry,
            hash: charged.hash,
            balance: charged.balance,
            meter,
            _lock: lock,
        }
    }

    fn reserve_with(
        &self,
        request: &Request,
        token: Option<&str>,
    ) -> Result<Reservation<'_>, LedgerError> {
        self.with(|state| {
            let relation = state.chain.books.terms.relation();
            let cost = check(request, &state.chain.books.terms)?;
            let events: Vec<StoredEvent> = request
                .events
                .iter()
                .map(|event| StoredEvent::of(event, relation))
                .collect();
            state.append(|chain, entry, previous| {
                let balance = &chain.books.balance;
                if !balance.with(cost).holds() {
                    return Err(LedgerError::Refused(Box::new(balance.quote(cost))));
                }
                Ok(Entry::Reserved {
                    entry,
                    previous,
                    date: today(),
                    run: request.run.to_owned(),
                    events,
                    token: token.map(str::to_owned),
                })
            })?;
            let charged = Charged {
                entry: state.chain.entries,
                hash: state.chain.last,
                balance: state.chain.books.balance.clone(),
            };
            let lock = match (&state.file, token) {
                (Some(file), Some(_)) => Some(file.lock_run(charged.entry)?),
                _ => None,
            };
            let meter = Meter::new(request.events.to_vec());
            Ok(self.reservation(state, charged, meter, lock))
        })
    }

    /// Checks that a run's report names an entry of this ledger, opened with its
    /// history: that nothing at or before that entry was taken out or changed since.
    ///
    /// # Errors
    ///
    /// The ledger is another one, or has no such entry.
    pub fn check_evidence(
        &self,
        ledger: &str,
        entry: u64,
        hash: EntryHash,
    ) -> Result<(), LedgerError> {
        self.with(|state| {
            let books = &state.chain.books;
            let runs = books.history();
            let known = runs.binary_search_by_key(&entry, |run| run.entry);
            let why = if ledger != books.opening.id {
                format!(
                    "the run was charged to another ledger, of id {}",
                    ledger.escape_debug()
                )
            } else if known.is_ok_and(|i| runs[i].hash == hash) {
                return Ok(());
            } else {
                format!(
                    "entry {entry}, to which the run was charged, is missing or was changed, or an entry before it was"
                )
            };
            Err(state.damaged(Damage::NotTheRuns(why)))
        })
    }

    /// Checks that what is charged keeps the budget.
    pub fn check_balance(&self) -> Result<(), LedgerError> {
        self.with(|state| {
            let balance = &state.chain.books.balance;
            if balance.holds() {
                return Ok(());
            }
            let total = state.chain.books.terms.budget().epsilon().to_f64();
            Err(state.damaged(Damage::Overspent {
                spent: figure(balance.spent()),
                total: figure(total),
            }))
        })
    }

    fn with<T>(
        &self,
        act: impl FnOnce(&mut State) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        // A thread that panicked here may have left half a change behind.
        let mut state = self.state.lock().map_err(|_| LedgerError::Poisoned)?;
        act(&mut state)
    }
}

impl State {
    fn refresh(&mut self) -> Result<(), LedgerError> {
        match &self.file {
            Some(file) => file.refresh(&mut self.chain),
            None => Ok(()),
        }
    }

    fn append(
        &mut self,
        decide: impl FnOnce(&Chain, u64, EntryHash) -> Result<Entry, LedgerError>,
    ) -> Result<(), LedgerError> {
        let chain = &mut self.chain;
        if let Some(file) = &self.file {
            return file.append(chain, decide);
        }
        let entry = decide(chain, chain.entries + 1, chain.last)?;
        let line = entry.line().map_err(in_memory)?;
        chain.read_line(&line).map_err(in_memory)
    }

    fn damaged(&self, damage: Damage) -> LedgerError {
        match &self.file {
            Some(file) => file.damaged(damage),
            None => in_memory(damage),
        }
    }

    fn statement(&self) -> Statement {
        let chain = &self.chain;
        let (terms, balance) = (&chain.books.terms, &chain.books.balance);
        let epsilon = terms.budget().epsilon().to_f64();
        let spent = balance.spent();
        Statement {
            id: chain.books.opening.id.clone(),
            created: chain.books.opening.date.clone(),
            epsilon,
            delta: terms.budget().delta().to_f64(),
            relation: terms.relation(),
            unit: terms.unit().to_owned(),
            accountant: terms.accountant(),
            order: terms.measure().order(),
            spent,
            remaining: (epsilon - spent).max(0.0),
            room: balance.room(),
            holds: balance.holds(),
            entries: chain.entries,
            head: chain.last,
            runs: chain.books.tally,
            torn_tail: matches!(chain.tail, Tail::Torn { .. }),
        }
    }
}

/// A run that has been charged. Its [`Meter`] grants what was charged and no more.
///
/// Dropped without a word, the charge stays, as it does when the process dies.
#[derive(Debug)]
#[must_use = "a reservation is charged; say with `complete` or `stop` how the run ended"]
pub struct Reservation<'a> {
    session: &'a Session,
    ledger: String,
    terms: Terms,
    entry: u64,
    hash: EntryHash,
    balance: Balance,
    meter: Meter,
    /// Of a run that can be gone on with.
    _lock: Option<RunLock>,
}

impl Reservation<'_> {
    /// Where the run's releases are charged, one by one.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// The ledger's id.
    pub fn ledger(&self) -> &str {
        &self.ledger
    }

    /// The budget that was charged.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The number of the entry.
    pub fn entry(&self) -> u64 {
        self.entry
    }

    /// The hash of the entry, which a report should name: with it, whoever holds the
    /// report can tell that the ledger has lost nothing up to there.
    pub fn hash(&self) -> EntryHash {
        self.hash
    }

    /// Upper bound on the epsilon of everything charged when this was, at the budget's
    /// delta.
    pub fn spent(&self) -> f64 {
        self.balance.spent()
    }

    /// The run is over.
    pub fn complete(self) -> Result<Outcome, LedgerError> {
        self.settle(Outcome::Completed)
    }

    /// The run ended early. The whole schedule stays charged, unless the meter has
    /// granted nothing: then nothing was released, and the charge is lifted.
    pub fn stop(self) -> Result<Outcome, LedgerError> {
        self.settle(Outcome::Stopped)
    }

    fn settle(self, outcome: Outcome) -> Result<Outcome, LedgerError> {
        let released = self.meter.counts();
        let outcome = if released.iter().all(|&count| count == 0) {
            Outcome::NothingReleased
        } else {
            outcome
        };
        self.session.with(|state| {
            state.append(|chain, entry, previous| {
                if !chain.books.is_open(self.entry) {
                    return Err(LedgerError::NotOpen);
                }
                Ok(Entry::Settled {
                    entry,
                    previous,
                    of: self.entry,
                    outcome,
                    released,
                })
            })
        })?;
        Ok(outcome)
    }
}

/// What a request costs, if it is one for this budget.
fn check(request: &Request, terms: &Terms) -> Result<Cost, LedgerError> {
    if request.relation != terms.relation() {
        return Err(LedgerError::Relation {
            run: request.relation,
            ledger: terms.relation(),
        });
    }
    if request.unit != terms.unit() {
        return Err(LedgerError::Unit {
            run: request.unit.to_owned(),
            ledger: terms.unit().to_owned(),
        });
    }
    let relation = terms.relation();
    terms.measure().cost(request.events, relation)?;
    // What is charged is what the file will say, which may be a hair more.
    let stored: Result<Vec<Event>, _> = request
        .events
        .iter()
        .map(|event| StoredEvent::of(event, relation).event(relation))
        .collect();
    let stored = stored.map_err(LedgerError::Event)?;
    Ok(terms.measure().cost(&stored, relation)?)
}

pub(super) fn opening(terms: &Terms, id: String) -> Opening {
    Opening {
        format: FORMAT,
        id,
        date: today(),
        epsilon: terms.budget().epsilon().to_f64(),
        delta: terms.budget().delta().to_f64(),
        relation: terms.relation(),
        unit: terms.unit().to_owned(),
        accountant: terms.accountant().name().to_owned(),
        order: terms.measure().order(),
        software: format!("dpm {}", env!("CARGO_PKG_VERSION")),
    }
}

/// Without a file no error comes from outside.
fn in_memory(error: impl std::fmt::Display) -> LedgerError {
    LedgerError::Internal(error.to_string())
}
