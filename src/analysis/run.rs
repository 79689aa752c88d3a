//! A private run: charged, sampled, settled; and, where it has a place on the disk, kept there as
//! it goes.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::error::Error;
use super::fit::{Fit, FitParts};
use super::job::{Charge, Job};
use super::request::Progress;
use super::saved::SavedRun;
use crate::accounting::{LedgerError, Meter, Outcome, Reservation};
use crate::output::RunLedger;
use crate::privacy::{NotPrivate, PrivateRng};
use crate::sampler::{
    Beginning, Draw, Keeping, Observer, PrivateSettings, SampleError, sample_with_checkpoints,
};

/// A private run that is over, or was interrupted.
pub(crate) struct EndedRun {
    pub fit: Result<Fit, Error>,
    /// Its state, while it has one: not of a run that released nothing, which is as if it had
    /// never begun.
    pub saved: Option<SavedRun>,
    /// How the session took down its end, where it ended.
    pub settled: Option<Result<Outcome, LedgerError>>,
}

/// Who watches a run.
pub(crate) trait Watch {
    /// The observer of the run that is about to begin: `meter` counts its releases, and `done`
    /// iterations of each chain were over before, none of a new run.
    fn observer<'m>(&'m self, meter: &'m Meter, done: &[u64]) -> Box<dyn Observer + 'm>;
}

/// Runs, or resumes the run that is `saved`.
///
/// # Errors
///
/// A budget that refuses, and nothing was done. A run that then cannot go on is in [`EndedRun::fit`],
/// as [`Error::Cut`] where it can be resumed.
pub(crate) fn run(
    job: &Job,
    mut saved: Option<SavedRun>,
    watch: &dyn Watch,
) -> Result<EndedRun, Error> {
    let analysis = job.analysis;
    let plan = &job.prepared.plan;
    if let (Some(_), Charge::Session(session)) = (analysis.noise_seed(), job.charge)
        && session.path()?.is_some()
    {
        return Err(Error::Settings(
            "noise from `insecure_noise_seed` is not private, so there is no charge that could cover it: leave it out, or use no ledger".into(),
        ));
    }
    let is_new = saved.as_ref().is_none_or(|saved| !saved.is_resumed);
    let mut settings = PrivateSettings {
        num_warmup: job.prepared.lengths.num_warmup,
        initial: job.initial.clone(),
        seed: analysis.public_seed(),
        noise: match analysis.noise_seed() {
            None => PrivateRng::from_os().map_err(SampleError::from)?,
            Some(seed) => PrivateRng::insecure(seed, NotPrivate::acknowledged()),
        },
    };
    let secure_noise = settings.noise.is_secure();
    if let Some(saved) = &mut saved {
        if saved.is_resumed {
            saved.goes_on()?;
        }
        settings.noise = saved.noise(settings.noise)?;
    }
    // Charged and on the disk before a row is asked about.
    let charged = reserve(job, saved.as_mut());
    let reservation = charged.inspect_err(|_| {
        if let Some(saved) = saved.as_ref().filter(|_| is_new) {
            saved.store.discard();
        }
    })?;
    let own_meter;
    let meter = match (&reservation, &saved) {
        (Some(reservation), _) => reservation.meter(),
        (None, Some(saved)) => {
            own_meter = saved.meter(plan)?;
            &own_meter
        }
        (None, None) => {
            own_meter = Meter::new(plan.events.clone());
            &own_meter
        }
    };
    let done = saved.as_ref().map(|saved| saved.done_and_lost().0);
    let watcher = Watcher {
        observer: watch.observer(meter, &done.unwrap_or_default()),
        learnt: OnceLock::new(),
    };
    let begun = saved.as_mut().map(|saved| std::mem::take(&mut saved.begun));
    let keeping = saved.as_ref().map(|saved| Keeping {
        keeper: &saved.store,
        begun: begun.unwrap_or_default(),
        charge: reservation.as_ref(),
    });
    let chains = sample_with_checkpoints(
        job.vault,
        plan,
        meter,
        &settings,
        &watcher,
        keeping.as_ref(),
    );
    drop(keeping);
    let learnt = watcher.into_learnt();
    let released = meter.counts();
    let unfinished = match &chains {
        Ok(chains) => chains.iter().any(|chain| chain.interrupted),
        Err(_) => true,
    };
    let nothing_released = released.iter().all(|&count| count == 0);
    let lifted = nothing_released && (is_new || reservation.is_none());
    let mut ledger = ledger_of(job, saved.as_mut(), reservation.as_ref())?;
    let mut settled = None;
    match (reservation, &chains) {
        (Some(reservation), _) if !unfinished || lifted || saved.is_none() => {
            settled = Some(settle(reservation, !unfinished, ledger.as_mut()));
        }
        // It stays open, to be resumed: from here, before anything is shown.
        (Some(reservation), Ok(_)) => match (reservation.interrupt(), &mut ledger) {
            (Ok(at), Some(ledger)) => ledger.ended(at),
            (Ok(_), None) => {}
            // Nothing of it is shown before the ledger knows.
            (Err(error), _) => {
                return Ok(EndedRun {
                    fit: Err(cut(error.into(), saved.as_ref())),
                    saved,
                    settled,
                });
            }
        },
        _ => {}
    }
    if let Some(saved) = saved.take_if(|_| unfinished && lifted) {
        saved.store.discard();
    }
    let fit = match chains {
        Err(error) => Err(cut(error.into(), saved.as_ref())),
        Ok(chains) => Fit::new(FitParts {
            analysis,
            vault: job.vault,
            prepared: &job.prepared,
            chains,
            learnt,
            released,
            ledger,
            secure_noise,
        }),
    };
    Ok(EndedRun {
        fit,
        saved,
        settled,
    })
}

/// The error of a run that can be resumed where it was saved.
fn cut(error: Error, saved: Option<&SavedRun>) -> Error {
    match saved {
        None => error,
        Some(saved) => Error::Cut {
            error: Box::new(error),
            place: saved.store.place().to_path_buf(),
        },
    }
}

fn reserve<'a>(
    job: &Job<'a>,
    saved: Option<&mut SavedRun>,
) -> Result<Option<Reservation<'a>>, Error> {
    match (job.charge, saved) {
        (Charge::Nothing, _) => Ok(None),
        (Charge::Session(session), Some(saved)) => saved.reserve(session, job),
        (Charge::Session(session), None) => {
            let plan = &job.prepared.plan;
            let request = job.prepared.promise.request(job.analysis.name(), plan);
            Ok(Some(session.reserve(&request)?))
        }
    }
}

/// The charge, for the report.
fn ledger_of(
    job: &Job,
    saved: Option<&mut SavedRun>,
    reservation: Option<&Reservation>,
) -> Result<Option<RunLedger>, Error> {
    match (job.charge, saved, reservation) {
        (_, Some(saved), _) => Ok(saved.ledger().cloned()),
        (Charge::Session(session), None, Some(reservation)) => {
            // A session in memory leaves nothing to be looked up.
            let path = session.path()?;
            Ok(path.map(|path| RunLedger::new(&path, reservation)))
        }
        _ => Ok(None),
    }
}

/// Notes how a run ended. That this fails changes no charge, and is no reason to lose draws.
pub(super) fn settle(
    reservation: Reservation,
    completed: bool,
    ledger: Option<&mut RunLedger>,
) -> Result<Outcome, LedgerError> {
    let settlement = if completed {
        reservation.complete()
    } else {
        reservation.stop()
    }?;
    if let Some(ledger) = ledger {
        ledger.ended(settlement.at);
    }
    Ok(settlement.outcome)
}

/// Keeps what was learnt, and passes everything on.
struct Watcher<'a> {
    observer: Box<dyn Observer + 'a>,
    learnt: OnceLock<Arc<dyn Beginning>>,
}

impl Watcher<'_> {
    fn into_learnt(self) -> Option<Arc<dyn Beginning>> {
        self.learnt.into_inner()
    }
}

impl Observer for Watcher<'_> {
    fn iteration(&self, chain: usize, iteration: u64, draw: &Draw) {
        self.observer.iteration(chain, iteration, draw);
    }

    fn learning(&self, over: u64, rounds: u64) {
        self.observer.learning(over, rounds);
    }

    fn learnt(&self, learnt: &Arc<dyn Beginning>) {
        let _ = self.learnt.set(learnt.clone());
        self.observer.learnt(learnt);
    }

    fn interrupted(&self) -> bool {
        self.observer.interrupted()
    }
}

/// An observer that asks a function.
pub(super) struct PerIteration<'a, F> {
    each: &'a F,
    stopped: AtomicBool,
}

impl<'a, F: Fn(Progress<'_>) -> ControlFlow<()> + Sync> PerIteration<'a, F> {
    pub(super) fn new(each: &'a F) -> Self {
        PerIteration {
            each,
            stopped: AtomicBool::new(false),
        }
    }
}

impl<F: Fn(Progress<'_>) -> ControlFlow<()> + Sync> Watch for PerIteration<'_, F> {
    fn observer<'m>(&'m self, _: &'m Meter, _: &[u64]) -> Box<dyn Observer + 'm> {
        Box::new(self)
    }
}

impl<F: Fn(Progress<'_>) -> ControlFlow<()> + Sync> Observer for &PerIteration<'_, F> {
    fn iteration(&self, chain: usize, iteration: u64, draw: &Draw) {
        let progress = Progress {
            chain,
            iteration,
            draw,
        };
        if (self.each)(progress).is_break() {
            self.stopped.store(true, Ordering::Relaxed);
        }
    }

    fn interrupted(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}
