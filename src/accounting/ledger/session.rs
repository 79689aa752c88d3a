//! A budget over several analyses.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;

use super::super::accountant::Accountant;
use super::super::budget::Meter;
use super::super::event::Event;
use super::super::measure::Cost;
use super::super::real::Real;
use super::super::relation::Relation;
use super::balance::{Balance, Quote};
use super::books::{Charged, EntryRef, RunRecord, Tally};
use super::chain::{Chain, Tail};
use super::entry::{Entry, FORMAT, Opening, Outcome, today};
use super::error::{Damage, LedgerError, figure};
use super::evidence::Evidence;
use super::file::{HeadRule, LedgerFile};
use super::hash::EntryHash;
use super::part::Part;
use super::stored_event::StoredEvent;
use super::terms::Terms;
use super::watermark::{Grant, HeldWatermark, InMemory, random_id};

/// The budget of one data set, to which any number of analyses are charged, one after another or at
/// once, in this process or, with a ledger, in several.
///
/// A run is charged in whole before its first release: [`Session::reserve`] either
/// charges it or refuses, and the [`Reservation`] that it gives holds the [`Meter`] that grants the
/// releases.
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
/// let (unit, part) = ("record", None);
/// let request = Request { run: "first look", events: &events, relation, unit, part };
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
    /// Of a budget without a file.
    watermarks: InMemory,
}

/// A run that asks for its share.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// A description in a few words, for readers of the ledger.
    pub run: &'a str,
    /// The whole schedule: every release that it may make.
    pub events: &'a [Event],
    pub relation: Relation,
    pub unit: &'a str,
    /// The part of the data that it reads; `None` for all of it. Of two parts of one division the
    /// larger charge counts, where the unit is a column; records have no keys by which to divide
    /// them, and are charged as all of the data.
    pub part: Option<&'a Part>,
}

/// The state of a budget's account.
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
    /// Whether the budget is kept, by the measure that it sums.
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
    /// The path exists already, or cannot be written.
    pub fn create(path: impl AsRef<Path>, terms: &Terms) -> Result<Session, LedgerError> {
        let path = path.as_ref();
        let id = random_id().map_err(|source| LedgerError::Write {
            path: path.to_path_buf(),
            source,
        })?;
        let (file, chain) = LedgerFile::create(path, opening(terms, id))?;
        Ok(Session::of(chain, Some(file)))
    }

    /// Opens a ledger. All of it is read and checked.
    ///
    /// # Errors
    ///
    /// It does not exist, cannot be read, or does not hold.
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

    /// Continues with a ledger whose head is lost. An entry records this permanently, since nobody
    /// can then know whether entries are missing at its end.
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
            state: Mutex::new(State {
                chain,
                file,
                watermarks: InMemory::default(),
            }),
        }
    }

    /// The terms of the budget.
    pub fn terms(&self) -> Result<Terms, LedgerError> {
        self.with(|state| Ok(state.chain.books.terms.clone()))
    }

    /// The path of the ledger; `None` in memory.
    pub fn path(&self) -> Result<Option<PathBuf>, LedgerError> {
        let path = |file: &LedgerFile| file.path().to_path_buf();
        self.with(|state| Ok(state.file.as_ref().map(path)))
    }

    /// The amounts spent and left now, including other processes' runs.
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

    /// The cost of a run at this moment; nothing is charged.
    ///
    /// # Errors
    ///
    /// A relation or unit other than the budget's; invalid events.
    pub fn quote(&self, request: &Request) -> Result<Quote, LedgerError> {
        self.with(|state| {
            let cost = check(request, &state.chain.books.terms)?;
            state.refresh()?;
            let books = &state.chain.books;
            Ok(books.balance.quote(cost, books.terms.part(request.part)))
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

    /// As [`Session::reserve`], for a run of this many chains that can be resumed after it was cut
    /// short: [`Session::resume`]. Its meter grants nothing before [`Reservation::grant`]. `token`
    /// is 128 random bits by which [`Session::find_charge`] finds the charge of a process that died
    /// before it learned of the charge.
    pub fn reserve_resumable(
        &self,
        request: &Request,
        token: &str,
        chains: usize,
    ) -> Result<Reservation<'_>, LedgerError> {
        self.reserve_with(request, Some((token, chains)))
    }

    /// The charge of a run that was reserved with this token and has not been settled since. It may
    /// have been resumed, by a process that died before it could note the charge either.
    pub fn find_charge(&self, token: &str) -> Result<Option<EntryRef>, LedgerError> {
        self.with(|state| {
            state.refresh()?;
            Ok(state.chain.books.reserved(token))
        })
    }

    /// Whether the run with this charge is still open: it is under way, or was cut short and can be
    /// resumed.
    pub fn is_open(&self, charge: EntryRef) -> Result<bool, LedgerError> {
        self.with(|state| {
            state.refresh()?;
            Ok(state.chain.books.token(charge).is_some())
        })
    }

    /// Resumes a run that was cut short, on its existing charge. `states`: what the last state of
    /// each chain allowed it. The meter counts everything granted before as released.
    ///
    /// If several processes resume from one state, such as from a copy, only one can.
    ///
    /// # Errors
    ///
    /// The run is not open; these are not its last states; another process is running it; its
    /// events differ; the ledger does not hold or cannot be written.
    pub fn resume(
        &self,
        request: &Request,
        charge: EntryRef,
        states: &[Option<Grant>],
    ) -> Result<Reservation<'_>, LedgerError> {
        let next = new_token()?;
        self.with(|state| {
            let cost = check(request, &state.chain.books.terms)?;
            let (file, mut taken) = (state.file.clone(), None);
            let State {
                chain, watermarks, ..
            } = state;
            append(file.as_ref(), chain, |chain, entry, previous| {
                let books = &chain.books;
                let token = books.token(charge).ok_or(LedgerError::NotResumable)?;
                if !books.charges(charge.entry, (cost, request.part), request.events) {
                    return Err(LedgerError::OtherPlan);
                }
                let mut watermark = match &file {
                    Some(file) => HeldWatermark::open(file.path(), charge.entry)?,
                    None => watermarks.open(charge.entry)?,
                };
                if !watermark.has_token(token) {
                    return Err(LedgerError::OlderState);
                }
                watermark.follow(states)?;
                let released = watermark.released(request.events.len());
                let meter = Meter::watermarked(request.events.to_vec(), &released)?;
                watermark.announce(&next)?;
                let charged = books.charged(token).ok_or(LedgerError::NotResumable)?;
                taken = Some((charged.clone(), meter, watermark));
                Ok(Entry::Resumed {
                    entry,
                    previous,
                    date: today(),
                    of: charge.entry,
                    after: token.to_owned(),
                    token: next.clone(),
                })
            })?;
            let (charged, meter, mut watermark) = taken.ok_or(LedgerError::NotResumable)?;
            watermark.confirm()?;
            Ok(self.reservation(state, charged, meter, Some(watermark)))
        })
    }

    fn reservation(
        &self,
        state: &State,
        charged: Charged,
        meter: Meter,
        watermark: Option<HeldWatermark>,
    ) -> Reservation<'_> {
        Reservation {
            session: self,
            ledger: state.chain.books.opening.id.clone(),
            terms: state.chain.books.terms.clone(),
            charge: charged.at,
            balance: charged.balance,
            meter,
            watermark: watermark.map(Mutex::new),
        }
    }

    fn reserve_with(
        &self,
        request: &Request,
        resumable: Option<(&str, usize)>,
    ) -> Result<Reservation<'_>, LedgerError> {
        self.with(|state| {
            let relation = state.chain.books.terms.relation();
            let cost = check(request, &state.chain.books.terms)?;
            let stored = request.events.iter();
            let stored = stored.map(|event| StoredEvent::of(event, relation));
            let (file, events, mut watermark) = (state.file.clone(), stored.collect(), None);
            let State {
                chain, watermarks, ..
            } = state;
            let appended = append(file.as_ref(), chain, |chain, entry, previous| {
                let balance = &chain.books.balance;
                let part = chain.books.terms.part(request.part);
                if !balance.with(cost, part).holds() {
                    return Err(LedgerError::Refused(Box::new(balance.quote(cost, part))));
                }
                // Before the charge: a charge without a watermark could never be resumed.
                if let Some((token, chains)) = resumable {
                    watermark = Some(match &file {
                        Some(file) => HeldWatermark::create(
                            file.path(),
                            entry,
                            token,
                            chains,
                            request.events.len(),
                        )?,
                        None => watermarks.create(entry, token, chains),
                    });
                }
                Ok(Entry::Reserved {
                    entry,
                    previous,
                    date: today(),
                    run: request.run.to_owned(),
                    events,
                    part: part.cloned(),
                    token: resumable.map(|(token, _)| token.to_owned()),
                })
            });
            if let Err(error) = appended {
                if let Some(watermark) = watermark {
                    watermark.remove();
                }
                return Err(error);
            }
            let charged = Charged {
                at: state.last(),
                balance: state.chain.books.balance.clone(),
            };
            let events = request.events.to_vec();
            let meter = match &watermark {
                Some(_) => Meter::watermarked(events, &vec![0; request.events.len()])?,
                None => Meter::new(events),
            };
            Ok(self.reservation(state, charged, meter, watermark))
        })
    }

    /// Checks a run's report against this ledger, which must be open with its history: that no
    /// entry up to the run's was removed or changed since, that the run released no more than the
    /// ledger knows of, and that it ended as the ledger says.
    ///
    /// Returns a note, if there is one, about a run that agrees with the ledger.
    ///
    /// # Errors
    ///
    /// The report disagrees with the ledger.
    pub fn check_evidence(&self, run: &Evidence) -> Result<Option<&'static str>, LedgerError> {
        self.with(|state| {
            let checked = run.check(&state.chain.books);
            checked.map_err(|why| state.damaged(Damage::NotTheRuns(why)))
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
        append(self.file.as_ref(), &mut self.chain, decide)
    }

    /// The last entry.
    fn last(&self) -> EntryRef {
        EntryRef {
            entry: self.chain.entries,
            hash: self.chain.last,
        }
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
/// If it is dropped, the charge stays, as it does when the process dies.
#[derive(Debug)]
#[must_use = "a reservation is charged; say with `complete` or `stop` how the run ended"]
pub struct Reservation<'a> {
    session: &'a Session,
    ledger: String,
    terms: Terms,
    charge: EntryRef,
    balance: Balance,
    meter: Meter,
    /// The watermark of a resumable run.
    watermark: Option<Mutex<HeldWatermark>>,
}

/// How a run ended, and the entry that says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    pub outcome: Outcome,
    pub at: EntryRef,
}

impl Reservation<'_> {
    /// The meter on which the run's releases are counted, one by one.
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

    /// The entry that charged it, which a report should name: its hash shows a reader of the report
    /// that the ledger has lost nothing up to that entry.
    pub fn charge(&self) -> EntryRef {
        self.charge
    }

    /// Upper bound, at the budget's delta, on the epsilon of everything charged up to and including
    /// this run.
    pub fn spent(&self) -> f64 {
        self.balance.spent()
    }

    /// Announces a state of a chain that is about to be written: from now on the meter grants no
    /// more than that state and those of the other chains say, so that a process that resumes from
    /// the state begins after all releases that were made.
    ///
    /// # Errors
    ///
    /// The run is not resumable; the state does not follow the chain's last; more releases were
    /// made than the states of all chains say.
    pub fn prepare(&self, chain: usize, state: &Grant) -> Result<(), LedgerError> {
        self.prepared(&*self.held()?, chain, state).map(|_| ())
    }

    /// Grants a chain of a resumable run the releases that one of its states allows; the state was
    /// [prepared](Reservation::prepare) and is on the disk. When this returns, the ledger knows of
    /// the grant, and the meter grants the releases.
    ///
    /// # Errors
    ///
    /// As of [`Reservation::prepare`]; the watermark was replaced or cannot be written.
    /// Nothing is granted then.
    pub fn grant(&self, chain: usize, state: &Grant) -> Result<(), LedgerError> {
        let mut watermark = self.held()?;
        let released = self.prepared(&watermark, chain, state)?;
        watermark.grant(chain, state)?;
        self.meter.grant(&released);
        Ok(())
    }

    fn held(&self) -> Result<MutexGuard<'_, HeldWatermark>, LedgerError> {
        let watermark = self.watermark.as_ref().ok_or(LedgerError::NotResumable)?;
        watermark.lock().map_err(|_| LedgerError::Poisoned)
    }

    /// The releases that all chains may reach with this state.
    fn prepared(
        &self,
        watermark: &HeldWatermark,
        chain: usize,
        state: &Grant,
    ) -> Result<Vec<u64>, LedgerError> {
        if state.released.len() != self.meter.planned().len() {
            return Err(LedgerError::OtherPlan);
        }
        let released = watermark.with(chain, state)?;
        if self.meter.narrow(&released) {
            Ok(released)
        } else {
            Err(LedgerError::MoreThanGranted)
        }
    }

    /// The run is over.
    pub fn complete(self) -> Result<Settlement, LedgerError> {
        self.settle(Outcome::Completed)
    }

    /// The run ended early, for good. The whole schedule stays charged, unless the meter has
    /// granted nothing and the run was never resumed: then nothing was released, and the charge is
    /// lifted.
    pub fn stop(self) -> Result<Settlement, LedgerError> {
        self.settle(Outcome::Stopped)
    }

    /// A resumable run was interrupted, and can be resumed from its last states, but not from a
    /// copy of earlier ones. Call this before any release of the run is shown to anyone.
    ///
    /// # Errors
    ///
    /// The run is not resumable; the ledger cannot be written. The run stays open.
    pub fn interrupt(self) -> Result<EntryRef, LedgerError> {
        let mut watermark = self.held()?;
        let next = new_token()?;
        let after = watermark.token().to_owned();
        watermark.announce(&next)?;
        let at = self.session.with(|state| {
            state.append(|chain, entry, previous| {
                if chain.books.token(self.charge) != Some(after.as_str()) {
                    return Err(LedgerError::NotOpen);
                }
                Ok(Entry::Interrupted {
                    entry,
                    previous,
                    of: self.charge.entry,
                    after,
                    token: next,
                    released: self.meter.counts(),
                })
            })?;
            Ok(state.last())
        })?;
        watermark.confirm()?;
        Ok(at)
    }

    fn settle(self, outcome: Outcome) -> Result<Settlement, LedgerError> {
        let released = self.meter.counts();
        let nothing = released.iter().all(|&count| count == 0);
        let of = self.charge.entry;
        let settlement = self.session.with(|state| {
            let mut outcome = outcome;
            state.append(|chain, entry, previous| {
                if !chain.books.is_open(of) {
                    return Err(LedgerError::NotOpen);
                }
                if nothing && !chain.books.went_on(of) {
                    outcome = Outcome::NothingReleased;
                }
                Ok(Entry::Settled {
                    entry,
                    previous,
                    of,
                    outcome,
                    released,
                })
            })?;
            Ok(Settlement {
                outcome,
                at: state.last(),
            })
        })?;
        if let Some(watermark) = self.watermark {
            let watermark = watermark.into_inner();
            watermark.unwrap_or_else(PoisonError::into_inner).remove();
        }
        Ok(settlement)
    }
}

/// Adds an entry to a ledger, or to a budget without a file.
fn append(
    file: Option<&LedgerFile>,
    chain: &mut Chain,
    decide: impl FnOnce(&Chain, u64, EntryHash) -> Result<Entry, LedgerError>,
) -> Result<(), LedgerError> {
    if let Some(file) = file {
        return file.append(chain, decide);
    }
    let entry = decide(chain, chain.entries + 1, chain.last)?;
    let line = entry.line().map_err(in_memory)?;
    chain.read_line(&line).map_err(in_memory)
}

fn new_token() -> Result<String, LedgerError> {
    random_id().map_err(in_memory)
}

/// The cost of a request, if it is one for this budget.
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
    // The charge is that of the events as stored in the file, which may cost slightly more.
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
