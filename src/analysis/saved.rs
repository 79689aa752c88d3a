//! The state of a private run on the disk, from which it can be resumed.
//!
//! The state is made before the run is charged and names the token that the charge will
//! carry, so that a run that dies between the two finds out which of the two happened. From
//! then on the ledger knows the last state of each chain, and lets nobody resume from an
//! older one.

use std::path::Path;

use serde_json::{Value, json};

use super::error::{Error, SaveError};
use super::files::{RunFiles, Written};
use super::job::Job;
use super::request::Analysis;
use crate::accounting::{Grant, LedgerError, Meter, Reservation, Session, random_id};
use crate::model::Model;
use crate::output::{RunDirectory, RunError, RunLedger, RunState, Unfinished};
use crate::privacy::PrivateRng;
use crate::sampler::{Plan, SampleError, SavedChain, released_before};

/// The additions of the program that begins a run.
#[derive(Debug, Default)]
pub(crate) struct Caller {
    /// The data that it needs to resume the run.
    pub command: Value,
    /// Where the run came from, for `config.json`.
    pub origin: Value,
    pub no_report: bool,
}

/// The state of a run on the disk.
pub(crate) struct SavedRun {
    pub store: Unfinished,
    run_state: RunState,
    /// The states from which its chains continue.
    pub begun: Vec<Option<SavedChain>>,
    /// Whether it was begun before, by this process or another.
    pub is_resumed: bool,
}

impl SavedRun {
    /// Opens a run to resume it.
    ///
    /// # Errors
    ///
    /// There is none; another process is at it; its files are not as they were written.
    pub fn open(place: &Path) -> Result<SavedRun, Error> {
        let (store, run_state, begun) = Unfinished::open(place)?;
        Ok(SavedRun {
            store,
            run_state,
            begun,
            is_resumed: true,
        })
    }

    /// Writes down what a run is that is about to begin.
    ///
    /// # Errors
    ///
    /// A run may not, or cannot, be written there.
    pub fn create(
        place: &Path,
        overwrite: bool,
        job: &Job,
        caller: Caller,
    ) -> Result<SavedRun, Error> {
        let (model, plan) = (job.vault.density().model(), &job.prepared.plan);
        // What an interrupted run publishes: no more of a file than the model asks for.
        let analysis = job.analysis.clone().started_in(model);
        let mut run_state = RunState::new(json!(analysis), caller.command, model.source.clone());
        run_state.origin = caller.origin;
        run_state.no_report = caller.no_report;
        run_state.constants = model.constants.clone();
        run_state.codebook = model.codebook.clone();
        run_state.records = plan.request.records;
        run_state.events = json!(plan.events);
        run_state.chains = plan.request.chains;
        run_state.learns = plan.request.algorithm.learns();
        // Once more, since reading the data takes a while.
        RunDirectory::check(place, overwrite).map_err(Error::write)?;
        Ok(SavedRun {
            store: Unfinished::create(place, &run_state).map_err(Error::write)?,
            begun: Vec::new(),
            run_state,
            is_resumed: false,
        })
    }

    /// The analysis that the run was begun with.
    ///
    /// # Errors
    ///
    /// Its file does not say.
    pub fn analysis(&self) -> Result<Analysis, Error> {
        let analysis: Result<Analysis, _> = serde_json::from_value(self.run_state.analysis.clone());
        let analysis = analysis.map_err(|_| self.unknown())?;
        // Nothing is kept of other runs, so that somebody has changed the file.
        if analysis.sampler()?.is_private() {
            Ok(analysis)
        } else {
            Err(self.unknown())
        }
    }

    /// The notes of its program; null where the library began it.
    pub fn command(&self) -> &Value {
        &self.run_state.command
    }

    /// Writes the directory of the run, finished or not, in place of its state.
    ///
    /// # Errors
    ///
    /// It cannot be written; the state stays.
    pub fn write(&self, files: &RunFiles) -> Result<Written, SaveError> {
        let RunState {
            origin, no_report, ..
        } = &self.run_state;
        files.write_over(&self.store, !no_report, origin)
    }

    /// It does not say how it was begun.
    pub fn unknown(&self) -> Error {
        let place = self.store.place().display();
        Error::Settings(if self.run_state.command.is_null() {
            format!(
                "the run in `{place}` was begun by a program that embeds dpm, and only that program can resume it"
            )
        } else {
            format!("`{place}` does not say how the run was begun, so that it cannot be resumed")
        })
    }

    /// Whether model, constants and guesses of covariates, which are called so, are still those of
    /// the run.
    ///
    /// # Errors
    ///
    /// They are not.
    pub fn check_model(&self, model: &Model, names: [&str; 3]) -> Result<(), Error> {
        let changed = match (
            model.source == self.run_state.model,
            model.constants == self.run_state.constants,
            model.codebook == self.run_state.codebook,
        ) {
            (true, true, true) => return Ok(()),
            (false, _, _) => names[0],
            (_, false, _) => names[1],
            (_, _, false) => names[2],
        };
        Err(Error::Run(RunError::Changed(changed.to_owned())))
    }

    /// Whether it is still the plan that was charged.
    ///
    /// # Errors
    ///
    /// It is not.
    pub fn check_plan(&self, plan: &Plan) -> Result<(), Error> {
        if plan.request.records != self.run_state.records {
            return Err(Error::Settings(format!(
                "the data have {} records (or units), but had {} when the run began: a run can only be resumed on the data it was charged for",
                shown(plan.request.records),
                shown(self.run_state.records)
            )));
        }
        // As JSON writes them, since that is how they were kept.
        let events = serde_json::to_string(&plan.events);
        let events = events.and_then(|text| serde_json::from_str::<Value>(&text));
        let same = events.is_ok_and(|events| events == self.run_state.events);
        if !same || plan.request.chains != self.run_state.chains {
            return Err(Error::Settings(
                "the settings of the run lead to another plan than the one it was charged for: a file that it reads has changed, or the program has".into(),
            ));
        }
        Ok(())
    }

    /// The run's own noise: new each time it is resumed.
    pub fn noise(&self, root: PrivateRng) -> Result<PrivateRng, Error> {
        match self.run_state.resumed {
            0 => Ok(root),
            // With a seed, for tests, another stream; the chains' are the first.
            times => Ok(root.fork(u64::MAX - times).map_err(SampleError::from)?),
        }
    }

    /// Iterations of each chain that are over, and how many of all were lost.
    pub fn done_and_lost(&self) -> (Vec<u64>, u64) {
        let last = |begun: &Option<SavedChain>| begun.as_ref().map(|begun| begun.last.clone());
        let chains = || self.begun.iter().take(self.run_state.chains as usize);
        let done = chains().map(|begun| last(begun).map_or(0, |c| c.granted));
        let lost = chains().map(|begun| last(begun).map_or(0, |c| c.lost + c.granted - c.done));
        (done.collect(), lost.sum())
    }

    /// Whether all iterations are over, so that nothing more will be released.
    fn is_over(&self, plan: &Plan) -> bool {
        let over = |begun: &Option<SavedChain>| {
            let last = begun.as_ref().map(|begun| &begun.last);
            last.is_some_and(|last| last.granted == plan.iterations_per_chain)
        };
        let mut chains = self.begun.iter().take(self.run_state.chains as usize);
        !self.begun.is_empty() && chains.all(over)
    }

    /// The charge, for the report.
    pub fn ledger(&mut self) -> Option<&mut RunLedger> {
        self.run_state.ledger.as_mut()
    }

    /// Charges the run to its session, or keeps the charge that it has; `None` if it
    /// has ended there and only its files were missing.
    ///
    /// # Errors
    ///
    /// The budget refuses; it is not the session that holds the charge; the state is not the last.
    pub fn reserve<'a>(
        &mut self,
        session: &'a Session,
        job: &Job,
    ) -> Result<Option<Reservation<'a>>, Error> {
        let plan = &job.prepared.plan;
        let request = job.prepared.promise.request(job.analysis.name(), plan);
        let charge = match (&self.run_state.ledger, &self.run_state.token) {
            (Some(ledger), _) => Some(ledger.charge()),
            (None, Some(token)) => session.find_charge(token)?,
            (None, None) => None,
        };
        let reservation = match charge {
            Some(charge) if session.is_open(charge)? => {
                session.resume(&request, charge, &self.states())?
            }
            // It has ended there, and only its files are missing.
            Some(_) if self.is_over(plan) => return Ok(None),
            None if self.begun.iter().all(Option::is_none) => {
                let token = random_id().map_err(Error::Randomness)?;
                self.run_state.token = Some(token.clone());
                self.note()?;
                session.reserve_resumable(&request, &token, self.run_state.parts() as usize)?
            }
            _ => return Err(LedgerError::NotResumable.into()),
        };
        self.run_state.token = None;
        // A session in memory leaves nothing to be looked up.
        let path = session.path()?;
        self.run_state.ledger = path.map(|path| RunLedger::new(&path, &reservation));
        self.note()?;
        Ok(Some(reservation))
    }

    /// The releases that the last state of each chain, and of the rounds before, allows it.
    fn states(&self) -> Vec<Option<Grant>> {
        let grant = |begun: &Option<SavedChain>| begun.as_ref().map(|b| b.last.grant.clone());
        let mut states: Vec<_> = self.begun.iter().map(grant).collect();
        states.resize(self.run_state.parts() as usize, None);
        states
    }

    /// The meter of a run without a reservation: of one without a ledger, or of one that has
    /// ended in its ledger and releases nothing more.
    ///
    /// # Errors
    ///
    /// The states say that more was released than was planned.
    pub fn meter(&self, plan: &Plan) -> Result<Meter, Error> {
        let released = released_before(plan, &self.begun)?;
        let events = plan.events.clone();
        let meter = match self.run_state.ledger {
            None => Meter::resumed(events, &released),
            Some(_) => Meter::watermarked(events, &released),
        };
        Ok(meter?)
    }

    /// Counts one more resumption.
    pub fn goes_on(&mut self) -> Result<(), Error> {
        self.run_state.resumed += 1;
        self.note()
    }

    fn note(&self) -> Result<(), Error> {
        self.store.note(&self.run_state).map_err(Error::write)
    }
}

fn shown(records: Option<u64>) -> String {
    records.map_or("a private number of".to_owned(), |n| n.to_string())
}
