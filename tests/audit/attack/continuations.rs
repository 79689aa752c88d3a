//! Runs that are killed, interrupted, copied, put back from a backup and gone on with, in
//! any order, by processes that take turns: what all of them released together, against
//! what the ledger says is spent.

use std::collections::BTreeMap;
use std::path::Path;

use dpm::accounting::{
    Accountant, Budget, EntryRef, Event, Grant, LedgerError, Outcome, Relation, Request,
    Reservation, Session, Terms, random_id,
};

use super::{Broken, Lcg};

const CHAINS: usize = 2;
/// Sequences at a time: most of their time they wait a second for a lock that another holds.
const THREADS: usize = 32;
/// Releases of each line that a chain may come to.
const PER_CHAIN: u64 = 4;
const RELATION: Relation = Relation::Substitute;

/// A run's directory: what `cp -r` copies.
#[derive(Clone, Default)]
struct Directory {
    /// By which a charge is found that is not noted yet.
    token: Option<String>,
    charge: Option<EntryRef>,
    states: Vec<Option<Grant>>,
}

/// A process at a run. Dropped, it was killed.
struct Process {
    /// Its directory, by number.
    at: usize,
    reservation: Reservation<'static>,
    chains: Vec<Chain>,
}

#[derive(Clone, Default)]
struct Chain {
    /// The name of its last state.
    last: Option<String>,
    /// Releases made, or lost in windows that were open when it was killed.
    released: [u64; 2],
    granted: [u64; 2],
}

struct World {
    rng: Lcg,
    folder: tempfile::TempDir,
    events: Vec<Event>,
    directories: Vec<Directory>,
    processes: Vec<Process>,
    /// Releases of each line that were made on the charge of an entry, by anybody.
    made: BTreeMap<u64, [u64; 2]>,
}

/// The events in the sequences, to see that they were not idle.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    pub released: u64,
    pub resumed: u64,
    pub refused: u64,
    pub lifted: u64,
}

/// Makes so many sequences of so many steps, each on a ledger of its own.
///
/// # Errors
///
/// More was released on some charge than it covers, a charge was lifted that something was
/// released on, or the ledger's balance is below what all releases cost.
pub fn continuations_keep_to_their_charges(sequences: u64, steps: usize) -> Result<Tally, Broken> {
    let part = |first: usize| {
        let mut tally = Tally::default();
        for seed in (first as u64..sequences).step_by(THREADS) {
            let mut world = World::new(seed);
            for _ in 0..steps {
                world.step(&mut tally);
            }
            world
                .check()
                .map_err(|broken| Broken(format!("sequence {seed}: {broken}")))?;
        }
        Ok(tally)
    };
    let parts: Vec<Result<Tally, Broken>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|first| scope.spawn(move || part(first)))
            .collect();
        let ends = threads.into_iter().map(|thread| thread.join());
        ends.map(|end| end.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let mut tally = Tally::default();
    for part in parts {
        let part = part?;
        tally.released += part.released;
        tally.resumed += part.resumed;
        tally.refused += part.refused;
        tally.lifted += part.lifted;
    }
    Ok(tally)
}

fn events(count: [u64; 2]) -> Vec<Event> {
    let event = |sigma: u64, count: u64| {
        let text = format!("gaussian:clip=1,sigma={sigma},count={count}");
        Event::parse(&text, RELATION).expect("an event")
    };
    vec![event(60, count[0]), event(80, count[1])]
}

fn request(events: &[Event]) -> Request<'_> {
    Request {
        run: "a run",
        events,
        relation: RELATION,
        unit: "record",
        part: None,
    }
}

fn terms() -> Terms {
    let budget = Budget::new(50.0, 1e-6).expect("a budget");
    Terms::new(budget, RELATION, "record", Accountant::Gaussian).expect("terms")
}

impl World {
    fn new(seed: u64) -> World {
        // Where there is memory for files, since what takes time is waiting for the disk.
        let shared = Path::new("/dev/shm");
        let folder = if shared.is_dir() {
            tempfile::tempdir_in(shared)
        } else {
            tempfile::tempdir()
        };
        let folder = folder.expect("a temporary directory");
        Session::create(folder.path().join("l"), &terms()).expect("a ledger");
        World {
            rng: Lcg::new(seed),
            events: events([CHAINS as u64 * PER_CHAIN; 2]),
            folder,
            directories: Vec::new(),
            processes: Vec::new(),
            made: BTreeMap::new(),
        }
    }

    fn ledger(&self) -> std::path::PathBuf {
        self.folder.path().join("l")
    }

    fn step(&mut self, tally: &mut Tally) {
        let process = match self.processes.len() {
            0 => None,
            n => Some(self.rng.below(n)),
        };
        let directory = match self.directories.len() {
            0 => None,
            n => Some(self.rng.below(n)),
        };
        match (self.rng.below(24), process, directory) {
            (_, _, None) => self.directories.push(Directory::default()),
            (0, _, _) if self.directories.len() < 4 => {
                self.directories.push(Directory::default());
            }
            (1..=3, _, Some(at)) => self.go_on(at, tally),
            (4..=7, Some(i), _) => self.grant(i),
            (8..=15, Some(i), _) => self.release(i, tally),
            (16, Some(i), _) => drop(self.processes.swap_remove(i)),
            (17 | 18, Some(i), _) => self.interrupt(i),
            (19, Some(i), _) => self.settle(i, tally),
            // A copy beside it, or in the place of another: a backup that is put back.
            (20 | 21, _, Some(at)) if self.directories.len() < 8 => {
                self.directories.push(self.directories[at].clone());
            }
            (22 | 23, _, Some(at)) => {
                let to = self.rng.below(self.directories.len());
                self.directories[to] = self.directories[at].clone();
            }
            _ => {}
        }
    }

    /// `dpm sample`, or `--resume`, as it finds out about its charge; killed at some moment
    /// of that now and then.
    fn go_on(&mut self, at: usize, tally: &mut Tally) {
        let session: &'static Session =
            Box::leak(Box::new(Session::open(self.ledger()).expect("the ledger")));
        let directory = self.directories[at].clone();
        let charge = directory.charge.or_else(|| {
            let token = directory.token.as_ref()?;
            session.find_charge(token).expect("the ledger")
        });
        let mut states = directory.states.clone();
        states.resize(CHAINS, None);
        let reservation = match charge {
            Some(charge) => session.resume(&request(&self.events), charge, &states),
            None if directory.states.is_empty() && directory.charge.is_none() => {
                let token = random_id().expect("random numbers");
                self.directories[at].token = Some(token.clone());
                if self.rng.below(8) == 0 {
                    return;
                }
                session.reserve_resumable(&request(&self.events), &token, CHAINS)
            }
            None => return,
        };
        let reservation = match reservation {
            Ok(reservation) => reservation,
            Err(
                LedgerError::NotResumable
                | LedgerError::OlderState
                | LedgerError::UnderWay { .. }
                | LedgerError::Refused(_),
            ) => {
                tally.refused += 1;
                return;
            }
            Err(error) => panic!("{error}"),
        };
        tally.resumed += u64::from(charge.is_some());
        if self.rng.below(8) == 0 {
            return; // killed before it is noted
        }
        self.directories[at].token = None;
        self.directories[at].charge = Some(reservation.charge());
        let chain = |state: &Option<Grant>| match state {
            // What was granted counts as released.
            Some(state) => {
                let released = [state.released[0], state.released[1]];
                Chain {
                    last: Some(state.id.clone()),
                    released,
                    granted: released,
                }
            }
            None => Chain::default(),
        };
        let chains = states.iter().map(chain).collect();
        self.processes.push(Process {
            at,
            reservation,
            chains,
        });
    }

    /// A state that opens a window; the process may die between its two halves.
    fn grant(&mut self, i: usize) {
        let (chain, more) = (self.rng.below(CHAINS), self.rng.below(4) as u64);
        let dies = self.rng.below(10) == 0;
        let process = &mut self.processes[i];
        let released = process.chains[chain].released;
        let granted = released.map(|count| (count + more).min(PER_CHAIN));
        if !Self::keep(&mut self.directories, process, chain, granted, dies) {
            drop(self.processes.swap_remove(i));
        }
    }

    /// Whether the process lives on.
    fn keep(
        directories: &mut [Directory],
        process: &mut Process,
        chain: usize,
        granted: [u64; 2],
        dies: bool,
    ) -> bool {
        let state = Grant {
            id: random_id().expect("random numbers"),
            after: process.chains[chain].last.clone(),
            released: granted.to_vec(),
        };
        if process.reservation.prepare(chain, &state).is_err() {
            return false;
        }
        let directory = &mut directories[process.at];
        directory.states.resize(CHAINS, None);
        directory.states[chain] = Some(state.clone());
        if dies || process.reservation.grant(chain, &state).is_err() {
            return false;
        }
        process.chains[chain].last = Some(state.id);
        process.chains[chain].granted = granted;
        true
    }

    fn release(&mut self, i: usize, tally: &mut Tally) {
        for _ in 0..2 {
            for (chain, line) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                self.release_one(i, chain, line, tally);
            }
        }
    }

    fn release_one(&mut self, i: usize, chain: usize, line: usize, tally: &mut Tally) {
        let process = &mut self.processes[i];
        let own = &mut process.chains[chain];
        let asks = own.released[line] < own.granted[line];
        // A process with an error of its own asks for what no window covers.
        if !asks && self.rng.below(9) > 0 {
            return;
        }
        if process.reservation.meter().charge(line).is_ok() {
            let entry = process.reservation.charge().entry;
            self.made.entry(entry).or_default()[line] += 1;
            tally.released += 1;
            if asks {
                own.released[line] += 1;
            }
        }
    }

    /// Ctrl-C: windows are closed, the ledger is told; or it dies on the way.
    fn interrupt(&mut self, i: usize) {
        let mut process = self.processes.swap_remove(i);
        for chain in 0..CHAINS {
            let dies = self.rng.below(10) == 0;
            let released = process.chains[chain].released;
            if !Self::keep(&mut self.directories, &mut process, chain, released, dies) {
                return;
            }
        }
        if self.rng.below(10) > 0 {
            process.reservation.interrupt().expect("the ledger");
        }
    }

    fn settle(&mut self, i: usize, tally: &mut Tally) {
        let process = self.processes.swap_remove(i);
        let settled = match self.rng.below(2) {
            0 => process.reservation.complete(),
            _ => process.reservation.stop(),
        };
        let outcome = settled.expect("the ledger").outcome;
        tally.lifted += u64::from(outcome == Outcome::NothingReleased);
    }

    fn check(&self) -> Result<(), Broken> {
        let path: &Path = &self.ledger();
        let session = Session::open_with_history(path).expect("the ledger");
        let statement = session.statement().expect("the ledger");
        let history = session.history().expect("the ledger");
        let reference = Session::in_memory(terms()).expect("a budget");
        for (entry, made) in &self.made {
            if made.iter().any(|&count| count > CHAINS as u64 * PER_CHAIN) {
                return Err(Broken(format!(
                    "{made:?} releases were made on the charge of entry {entry}"
                )));
            }
            let known = history.iter().find(|run| run.entry == *entry);
            let outcome = known.and_then(|run| run.outcome);
            if known.is_none() || outcome == Some(Outcome::NothingReleased) {
                return Err(Broken(format!(
                    "{made:?} releases were made on entry {entry}, which is {outcome:?}"
                )));
            }
            let used = events([1; 2])
                .into_iter()
                .zip(made)
                .filter(|(_, made)| **made > 0);
            let events: Vec<Event> = used.map(|(event, &made)| event.times(made)).collect();
            drop(reference.reserve(&request(&events)).expect("a budget"));
        }
        let cost = reference.statement().expect("a budget").spent;
        if statement.spent >= cost {
            Ok(())
        } else {
            Err(Broken(format!(
                "all releases cost epsilon {cost}, and the ledger says {}",
                statement.spent
            )))
        }
    }
}
