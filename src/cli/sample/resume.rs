//! `dpm sample --resume`: going on with a run that was cut short; and the state that every
//! private run keeps so that it can be.
//!
//! The state is made before the run is charged and names the token that the charge will
//! carry, so that a run that dies between the two finds out which of the two happened. From
//! then on the ledger knows the last state of each chain, and lets nobody go on from an
//! older one.

use std::path::Path;
use std::sync::Arc;

use clap::Parser;
use serde_json::{Value, json};

use super::{Arguments, Job, begin, failed_run};
use crate::accounting::{Grant, LedgerError, Meter, Reservation, random_id};
use crate::cli::failure::Failure;
use crate::cli::ledger::{self, Account};
use crate::cli::model_file::ModelFile;
use crate::cli::progress::{Progress, Spending};
use crate::cli::{Cli, Command, Common};
use crate::output::{Outset, RECORD, RunDirectory, RunLedger, Unfinished, UnfinishedError};
use crate::privacy::PrivateRng;
use crate::sampler::{
    Beginning, Begun, Chain, Keeping, Plan, PrivateSettings, released_before,
    sample_with_checkpoints,
};

impl From<UnfinishedError> for Failure {
    fn from(error: UnfinishedError) -> Failure {
        match error {
            UnfinishedError::Read { .. } | UnfinishedError::Directory(_) => Failure::run(error),
            _ => Failure::input(error),
        }
    }
}

/// What a run that goes on has settled before.
pub(super) const SETTLED: [&str; 18] = [
    "model",
    "data",
    "constants",
    "algorithm",
    "not_private",
    "RunSettings",
    "metric",
    "max_depth",
    "target_acceptance",
    "ledger",
    "thin",
    "init",
    "DataSettings",
    "seed",
    "insecure_noise_seed",
    "out",
    "overwrite",
    "no_report",
];

/// `dpm sample --resume PLACE`
pub(super) fn run(place: &Path, arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let kept = Kept::open(place)?;
    let mut first = kept.arguments()?;
    first.threads = arguments.threads.or(first.threads);
    let (done, lost) = kept.done_and_lost();
    let chains: Vec<String> = done.iter().map(u64::to_string).collect();
    common.say(format!(
        "going on with `{}`: iterations {} of its chains are over, {lost} of them lost in interruptions",
        place.display(),
        chains.join(" ")
    ));
    begin(&first, Some(kept), common)
}

/// What of a run is on the disk.
pub(super) struct Kept {
    pub store: Unfinished,
    outset: Outset,
    /// What its chains go on from.
    pub begun: Vec<Option<Begun>>,
}

impl Kept {
    fn open(place: &Path) -> Result<Kept, Failure> {
        let (store, outset, begun) = Unfinished::open(place)?;
        Ok(Kept {
            store,
            outset,
            begun,
        })
    }

    /// Writes down what a run is that is about to begin.
    pub fn create(job: &Job, plan: &Plan) -> Result<Kept, Failure> {
        let arguments = std::env::args_os().skip(1);
        let arguments = arguments.map(|a| a.to_string_lossy().into_owned());
        let mut outset = Outset::new(arguments.collect(), job.file.source.clone());
        outset.constants = constants(job.file, job.arguments)?;
        outset.records = plan.request.records;
        outset.events = json!(plan.events);
        outset.chains = plan.request.chains;
        outset.learns = plan.request.algorithm.learns();
        // Once more, since reading the data takes a while.
        RunDirectory::check(job.place, job.arguments.overwrite).map_err(Failure::run)?;
        Ok(Kept {
            store: Unfinished::create(job.place, &outset).map_err(Failure::run)?,
            begun: Vec::new(),
            outset,
        })
    }

    /// The command that began the run.
    fn arguments(&self) -> Result<Arguments, Failure> {
        let name = std::iter::once("dpm".to_owned());
        let command = name.chain(self.outset.arguments.iter().cloned());
        match Cli::try_parse_from(command).map(|cli| cli.command) {
            Ok(Command::Sample(arguments)) if arguments.resume.is_none() => Ok(*arguments),
            _ => Err(Failure::input(format!(
                "`{}` does not say how the run was begun, so that it cannot be gone on with",
                self.store.place().display()
            ))),
        }
    }

    /// Whether model and constants are still those of the run.
    pub fn check_model(&self, file: &ModelFile, arguments: &Arguments) -> Result<(), Failure> {
        let changed = |what: &str, path: &Path| {
            Err(Failure::input(format!(
                "{what} `{}` has changed since the run began: a run goes on with what it was charged for. Put it back as it was, or begin another run",
                path.display()
            )))
        };
        if file.source != self.outset.model {
            return changed("the model", &file.path);
        }
        if constants(file, arguments)? != self.outset.constants {
            let path = file.constants_path(arguments.constants.as_deref());
            return changed("the file of constants", &path.unwrap_or_default());
        }
        Ok(())
    }

    /// Whether it is still the plan that was charged.
    pub fn check_plan(&self, plan: &Plan) -> Result<(), Failure> {
        if plan.request.records != self.outset.records {
            return Err(Failure::input(format!(
                "the data have {} records (or units), and {} when the run began: a run goes on with the data it was charged for",
                shown(plan.request.records),
                shown(self.outset.records)
            )));
        }
        // As JSON writes them, since that is how they were kept.
        let events: Value = serde_json::to_string(&plan.events)
            .and_then(|text| serde_json::from_str(&text))
            .map_err(Failure::run)?;
        if events != self.outset.events || plan.request.chains != self.outset.chains {
            return Err(Failure::input(
                "the settings of the run come to another plan than the one it was charged for: a file that it reads has changed, or the program has",
            ));
        }
        Ok(())
    }

    /// The run's own noise: new each time it goes on.
    pub fn noise(&self, root: PrivateRng) -> Result<PrivateRng, Failure> {
        match self.outset.resumed {
            0 => Ok(root),
            // With a seed, for tests, another stream; the chains' are the first.
            times => root.fork(u64::MAX - times).map_err(Failure::run),
        }
    }

    /// The releases that were made, or may have been.
    pub fn released(&self, plan: &Plan) -> Result<Vec<u64>, Failure> {
        released_before(plan, &self.begun).map_err(Failure::run)
    }

    /// Iterations of each chain that are over, and how many of all were lost.
    pub fn done_and_lost(&self) -> (Vec<u64>, u64) {
        let last = |begun: &Option<Begun>| begun.as_ref().map(|begun| begun.last.clone());
        let chains = || self.begun.iter().take(self.outset.chains as usize);
        let done = chains().map(|begun| last(begun).map_or(0, |c| c.granted));
        let lost = chains().map(|begun| last(begun).map_or(0, |c| c.lost + c.granted - c.done));
        (done.collect(), lost.sum())
    }

    /// Whether all iterations are over, so that nothing more will be released.
    fn is_over(&self, plan: &Plan) -> bool {
        let over = |begun: &Option<Begun>| {
            let last = begun.as_ref().map(|begun| &begun.last);
            last.is_some_and(|last| last.granted == plan.iterations_per_chain)
        };
        let mut chains = self.begun.iter().take(self.outset.chains as usize);
        !self.begun.is_empty() && chains.all(over)
    }

    /// What the report says about the charge.
    pub fn ledger(&self) -> Option<&RunLedger> {
        self.outset.ledger.as_ref()
    }

    /// Charges the run to its ledger, or goes on with the charge that it has; `None` if it
    /// has ended there and only its files were missing.
    pub fn reserve<'a>(
        &mut self,
        account: &'a Account,
        name: &str,
        plan: &Plan,
        unit: &str,
    ) -> Result<Option<Reservation<'a>>, Failure> {
        let charge = match (&self.outset.ledger, &self.outset.token) {
            (Some(ledger), _) => Some(ledger.charge()),
            (None, Some(token)) => account.find_charge(token)?,
            (None, None) => None,
        };
        let reservation = match charge {
            Some(charge) if account.is_open(charge)? => {
                account.resume(plan, unit, charge, &self.states())?
            }
            // It has ended there, and only its files are missing.
            Some(_) if self.is_over(plan) => return Ok(None),
            None if self.begun.iter().all(Option::is_none) => {
                let token = random_id().map_err(Failure::run)?;
                self.outset.token = Some(token.clone());
                self.note()?;
                account.reserve(name, plan, unit, &token, self.outset.courses() as usize)?
            }
            _ => return Err(LedgerError::NotResumable.into()),
        };
        self.outset.token = None;
        self.outset.ledger = Some(account.report(&reservation));
        self.note()?;
        Ok(Some(reservation))
    }

    /// What the last state of each chain, and of what is learnt before, allows it.
    fn states(&self) -> Vec<Option<Grant>> {
        let grant = |begun: &Option<Begun>| begun.as_ref().map(|b| b.last.grant.clone());
        let mut states: Vec<_> = self.begun.iter().map(grant).collect();
        states.resize(self.outset.courses() as usize, None);
        states
    }

    /// The meter of a run without a reservation: of one without a ledger, or of one that has
    /// ended in its ledger and releases nothing more.
    pub fn meter(&self, plan: &Plan) -> Result<Meter, Failure> {
        let (events, released) = (plan.events.clone(), self.released(plan)?);
        let meter = match self.outset.ledger {
            None => Meter::resumed(events, &released),
            Some(_) => Meter::watermarked(events, &released),
        };
        meter.map_err(Failure::run)
    }

    /// Counts that the run goes on once more.
    pub fn goes_on(&mut self) -> Result<(), Failure> {
        self.outset.resumed += 1;
        self.note()
    }

    fn note(&self) -> Result<(), Failure> {
        self.store.note(&self.outset).map_err(Failure::run)
    }

    /// How to go on, in words.
    pub fn advice(&self) -> String {
        let place = self.store.place();
        let quote = match place.as_os_str().to_string_lossy().contains(' ') {
            true => "'",
            false => "",
        };
        format!(
            "Go on with `dpm sample --resume {quote}{}{quote}`",
            place.display()
        )
    }
}

/// The text of the constants that a run reads.
fn constants(file: &ModelFile, arguments: &Arguments) -> Result<Option<String>, Failure> {
    let Some(path) = file.constants_path(arguments.constants.as_deref()) else {
        return Ok(None);
    };
    let text = std::fs::read_to_string(&path)
        .map_err(|e| Failure::input(format!("cannot read `{}`: {e}", path.display())))?;
    Ok(Some(text))
}

fn shown(records: Option<u64>) -> String {
    records.map_or("a private number of".to_owned(), |n| n.to_string())
}

/// A private run that is over, or was interrupted.
pub(super) struct Ran {
    pub kept: Kept,
    pub chains: Vec<Chain>,
    pub released: Vec<u64>,
    /// What was learnt before the chains began.
    pub start: Option<Arc<dyn Beginning>>,
}

impl Job<'_> {
    /// Charges a private run, or goes on with one, and runs it. `settings` have fresh
    /// private randomness.
    pub(super) fn run_kept(
        &self,
        goes_on: Option<Kept>,
        mut settings: PrivateSettings,
        plan: &Plan,
    ) -> Result<Ran, Failure> {
        let is_new = goes_on.is_none();
        let mut kept = match goes_on {
            Some(mut kept) => {
                kept.goes_on()?;
                kept
            }
            None => Kept::create(self, plan)?,
        };
        settings.noise = kept.noise(settings.noise)?;
        let unit = self.arguments.reading.unit().unwrap_or(RECORD);
        // Charged and on the disk before a row is asked about.
        let reservation = match &self.account {
            Some(account) => {
                let name = format!("{} ({})", self.file.stem(), self.arguments.algorithm());
                let charged = kept.reserve(account, &name, plan, unit);
                charged.inspect_err(|_| {
                    if is_new {
                        kept.store.discard();
                    }
                })?
            }
            None => None,
        };
        let own_meter;
        let meter = match &reservation {
            Some(reservation) => reservation.meter(),
            None => {
                own_meter = kept.meter(plan)?;
                &own_meter
            }
        };
        let spending = Spending {
            meter,
            relation: plan.request.relation,
            total: plan.request.epsilon.to_f64(),
            delta: plan.request.delta,
        };
        let (done, _) = kept.done_and_lost();
        let progress = Progress::new(
            plan.request.chains as usize,
            plan.iterations_per_chain,
            &done,
            Some(spending),
            self.common,
        );
        let keeping = Keeping {
            keeper: &kept.store,
            begun: std::mem::take(&mut kept.begun),
            charge: reservation.as_ref(),
        };
        let chains = sample_with_checkpoints(
            self.vault,
            plan,
            meter,
            &settings,
            &progress,
            Some(&keeping),
        );
        progress.clear();
        let start = progress.into_start();
        let released = meter.counts();
        let nothing_released = released.iter().all(|&count| count == 0);
        let unfinished = match &chains {
            Ok(chains) => chains.iter().any(|chain| chain.interrupted),
            Err(_) => true,
        };
        let lifted = nothing_released && (is_new || reservation.is_none());
        let mut at = None;
        match (reservation, &chains) {
            (Some(reservation), _) if !unfinished || lifted => {
                let settled = ledger::settle(reservation, !unfinished, self.common);
                at = settled.map(|settled| settled.at);
            }
            // It stays open, to be gone on with: from here, before anything is shown.
            (Some(reservation), Ok(_)) => {
                let interrupted = reservation.interrupt().map_err(|error| {
                    Failure::run(format!(
                        "{error}. The run is interrupted, and nothing of it is written before the ledger knows. {}",
                        kept.advice()
                    ))
                })?;
                at = Some(interrupted);
            }
            _ => {}
        }
        if let (Some(ledger), Some(at)) = (&mut kept.outset.ledger, at) {
            ledger.ended(at);
        }
        if unfinished && lifted {
            kept.store.discard();
        }
        let chains = chains.map_err(|error| match lifted {
            true => failed_run(error),
            false => failed_run(error).and(format!(
                "What was released before is kept and stays charged. {}",
                kept.advice()
            )),
        })?;
        if unfinished && lifted {
            return Err(Failure::interrupted(
                "interrupted before the first release: nothing was charged, and nothing is written",
            ));
        }
        Ok(Ran {
            kept,
            chains,
            released,
            start,
        })
    }

    /// Says what a run lost, and how to go on with one that is not finished. `draws`: of
    /// each chain.
    ///
    /// # Errors
    ///
    /// The run is not finished, or has no draws.
    pub(super) fn tell_of_interruptions(
        &self,
        kept: &Kept,
        chains: &[Chain],
        plan: &Plan,
        draws: usize,
    ) -> Result<(), Failure> {
        let lost: u64 = chains.iter().map(|chain| chain.lost).sum();
        if lost > 0 {
            self.common.say(format!(
                "{lost} iterations, of all chains together, were lost in interruptions: they count as released, and have no draws"
            ));
        }
        if chains.iter().any(|chain| chain.interrupted) {
            let over = chains.iter().map(|c| c.draws.len() as u64 + c.lost).min();
            let over = over.unwrap_or(0);
            let so_far = match draws {
                // How far it came tells how long an iteration takes.
                _ if self.common.quiet => "interrupted".to_owned(),
                0 => format!(
                    "interrupted after {over} of {} iterations; there are no draws yet, since warm-up was not over",
                    plan.iterations_per_chain
                ),
                n => format!(
                    "interrupted after {over} of {} iterations; the {n} draws so far of each chain are written",
                    plan.iterations_per_chain
                ),
            };
            return Err(Failure::interrupted(format!("{so_far}. {}", kept.advice())));
        }
        if draws == 0 {
            return Err(Failure::run(
                "interruptions have taken all iterations after warm-up of some chain, so that there are no draws: begin another run, with a charge of its own",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    // Wrong here: a setting that a run has fixed before is taken beside --resume, and
    // nobody looks at it.
    #[test]
    fn whatever_a_run_has_settled_is_refused_beside_resume() {
        let program = Cli::command();
        let sample = program.find_subcommand("sample").unwrap();
        let in_group = |id: &clap::Id| {
            let of_settled = sample.get_groups().filter(|group| {
                let name = group.get_id().as_str();
                SETTLED.contains(&name)
            });
            of_settled
                .flat_map(|group| group.get_args())
                .any(|arg| arg == id)
        };
        let free = ["resume", "threads", "color", "quiet", "help"];
        for argument in sample.get_arguments() {
            let id = argument.get_id();
            let settled = SETTLED.contains(&id.as_str()) || in_group(id);
            assert_ne!(settled, free.contains(&id.as_str()), "{id}");
        }
    }
}
