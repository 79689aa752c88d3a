//! An analysis, sampled: charged to a session and run, or resumed.

use std::ops::ControlFlow;
use std::path::Path;

use super::error::Error;
use super::fit::Fit;
use super::job::{Charge, Job};
use super::prepare::{Prepared, Promise};
use super::request::{Analysis, Progress};
use super::run::{PerIteration, run};
use super::saved::{Caller, SavedRun};
use crate::accounting::{Quote, Session};
use crate::privacy::Vault;

impl Analysis {
    /// The cost of the analysis on a session's budget now; nothing is charged.
    ///
    /// # Errors
    ///
    /// As of [`plan`](Analysis::plan); another unit than the budget's.
    pub fn quote(&self, vault: &Vault, session: &Session) -> Result<Quote, Error> {
        let prepared = self.prepare_on(vault, session)?;
        let request = prepared.promise.request(self.name(), &prepared.plan);
        Ok(session.quote(&request)?)
    }

    /// Charges the session and draws from the posterior.
    ///
    /// # Errors
    ///
    /// As of [`plan`](Analysis::plan); a budget that refuses; a run that cannot go on. An
    /// analysis that fails after its first release stays charged.
    pub fn sample(&self, vault: &Vault, session: &Session) -> Result<Fit, Error> {
        self.sample_with(vault, session, |_| ControlFlow::Continue(()))
    }

    /// As [`sample`](Analysis::sample), and tells `each` of every iteration, from the chains'
    /// threads. When it answers with [`ControlFlow::Break`], all chains end after the
    /// iterations that they are in: [`Fit::is_interrupted`].
    ///
    /// # Errors
    ///
    /// As of [`sample`](Analysis::sample).
    pub fn sample_with(
        &self,
        vault: &Vault,
        session: &Session,
        each: impl Fn(Progress<'_>) -> ControlFlow<()> + Sync,
    ) -> Result<Fit, Error> {
        let job = self.job(vault, session)?;
        run(&job, None, &PerIteration::new(&each))?.fit
    }

    /// As [`sample_with`](Analysis::sample_with), and keeps the state of the run at `place` as it
    /// goes, so that a run that is interrupted or killed can be [resumed](Analysis::resume). In the
    /// end the directory that `dpm sample` writes stands there. Needs a session with a ledger on
    /// the disk, which outlives the process as the state does.
    ///
    /// # Errors
    ///
    /// As of [`sample`](Analysis::sample); a session in memory; something is at `place` already,
    /// or it cannot be written.
    pub fn sample_at(
        &self,
        place: impl AsRef<Path>,
        vault: &Vault,
        session: &Session,
        each: impl Fn(Progress<'_>) -> ControlFlow<()> + Sync,
    ) -> Result<Fit, Error> {
        let job = self.job(vault, on_disk(session)?)?;
        let saved = SavedRun::create(place.as_ref(), false, &job, Caller::default())?;
        run_at(&job, saved, each)
    }

    /// Goes on with a run of [`sample_at`](Analysis::sample_at), or of `dpm sample` with the
    /// ledger of the session, on the charge and with the settings that it has. `vault`: the same
    /// model and data.
    ///
    /// # Errors
    ///
    /// There is no unfinished run at `place`; another model, or number of records; a session that
    /// does not hold its charge; as of [`sample`](Analysis::sample).
    pub fn resume(
        place: impl AsRef<Path>,
        vault: &Vault,
        session: &Session,
        each: impl Fn(Progress<'_>) -> ControlFlow<()> + Sync,
    ) -> Result<Fit, Error> {
        on_disk(session)?;
        let saved = SavedRun::open(place.as_ref())?;
        saved.check_model(
            vault.density().model(),
            ["the model", "the object of constants", "the codebook"],
        )?;
        let analysis = saved.analysis()?;
        let job = analysis.job(vault, session)?;
        saved.check_plan(&job.prepared.plan)?;
        run_at(&job, saved, each)
    }

    fn job<'a>(&'a self, vault: &'a Vault, session: &'a Session) -> Result<Job<'a>, Error> {
        Ok(Job {
            analysis: self,
            vault,
            prepared: self.prepare_on(vault, session)?,
            initial: self.initial(vault.density())?,
            charge: Charge::Session(session),
        })
    }

    fn prepare_on(&self, vault: &Vault, session: &Session) -> Result<Prepared, Error> {
        let promise = Promise::on(session, vault, self.epsilon())?;
        self.prepare(vault.density().model(), promise)
    }
}

/// The session, unless it dies with the process.
fn on_disk(session: &Session) -> Result<&Session, Error> {
    match session.path()? {
        Some(_) => Ok(session),
        None => Err(Error::Settings(
            "a run can only be resumed with a ledger file, and this session is in memory: create a ledger, or sample without a place".into(),
        )),
    }
}

/// Runs or resumes at a place, and writes the directory there.
fn run_at(
    job: &Job,
    saved: SavedRun,
    each: impl Fn(Progress<'_>) -> ControlFlow<()> + Sync,
) -> Result<Fit, Error> {
    let ended = run(job, Some(saved), &PerIteration::new(&each))?;
    let fit = ended.fit?;
    if let Some(saved) = ended.saved {
        saved.write(fit.files())?;
    }
    Ok(fit)
}
