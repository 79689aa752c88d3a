//! Chains: initial points, iterations, recorded draws.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use rand_chacha::ChaCha8Rng;

use crate::accounting::Meter;
use crate::density::Density;
use crate::privacy::{NotPrivate, PrivateRng, Vault};
use crate::sampler::chain::checkpoint::{
    Checkpoint, Keeping, Names, SavedChain, planned_releases, window,
};
use crate::sampler::chain::draw::{Draw, Phase};
use crate::sampler::chain::private_oracle::PrivateOracle;
use crate::sampler::chain::warmup::Warmup;
use crate::sampler::contract::beginning::{Beginning, Learner};
use crate::sampler::contract::initial::{Initial, start};
use crate::sampler::contract::metric::MetricForm;
use crate::sampler::contract::oracle::{Oracle, SampleError};
use crate::sampler::contract::plan::Plan;
use crate::sampler::contract::{Kind, Walker};
use crate::sampler::random::public_rng;

/// A chain that is complete, or was interrupted.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Chain {
    /// Kept iterations of the sampling phase (and of the warm-up if requested).
    pub draws: Vec<Draw>,
    /// Share of accepted proposals over all sampling iterations.
    pub acceptance: f64,
    /// Iterations that were made but lost when the run was killed; they have no draws.
    pub lost: u64,
    /// Whether the observer stopped it before its last iteration.
    pub interrupted: bool,
    /// The duration of warm-up and sampling, in seconds, for a run without privacy. The duration
    /// of a private run would reveal the number of records.
    pub seconds: Option<[f64; 2]>,
}

impl Chain {
    /// A chain of a run that was interrupted before any began.
    fn not_begun() -> Chain {
        Chain {
            draws: Vec::new(),
            acceptance: 0.0,
            lost: 0,
            interrupted: true,
            seconds: None,
        }
    }
}

/// Told about every iteration; may stop the run.
pub trait Observer: Sync {
    /// `chain` and `iteration` count from 0.
    fn iteration(&self, chain: usize, iteration: u64, draw: &Draw);

    /// Called before each round of a sampler that learns before its chains: `over` of about
    /// `rounds` rounds are over.
    fn learning(&self, over: u64, rounds: u64) {
        let _ = (over, rounds);
    }

    /// Called once with what a sampler learnt before its chains, before the first iteration, also
    /// when a run is resumed.
    fn learnt(&self, learnt: &Arc<dyn Beginning>) {
        let _ = learnt;
    }

    /// Whether to stop. Chains finish the current iteration, so that no release is lost, and are
    /// shorter than planned.
    fn interrupted(&self) -> bool {
        false
    }
}

/// An observer that does nothing.
impl Observer for () {
    fn iteration(&self, _: usize, _: u64, _: &Draw) {}
}

/// The settings of a private run in addition to its plan.
pub struct PrivateSettings {
    /// The first iterations of each chain, which are discarded.
    pub num_warmup: u64,
    pub initial: Initial,
    /// Fixes the public randomness: momenta, jitter, initial points.
    pub seed: u64,
    /// The root of the private randomness: noise and acceptance draws.
    pub noise: PrivateRng,
}

impl PrivateSettings {
    /// Settings with random initial points.
    pub fn new(num_warmup: u64, seed: u64, noise: PrivateRng) -> Self {
        PrivateSettings {
            num_warmup,
            initial: Initial::Random,
            seed,
            noise,
        }
    }
}

/// Runs the planned chains, each release charged to `meter`, which must have
/// been made from the plan's events. Draws do not depend on the number of
/// threads. Proof of privacy for the whole: docs/proofs.md, section 18.
///
/// Errors: the meter refuses (a bug, since the plan counted the releases), no
/// initial point.
pub fn sample_privately(
    vault: &Vault,
    plan: &Plan,
    meter: &Meter,
    run: &PrivateSettings,
    observer: &impl Observer,
) -> Result<Vec<Chain>, SampleError> {
    sample_with_checkpoints(vault, plan, meter, run, observer, None)
}

/// As [`sample_privately`], with checkpoints: a run that is killed or interrupted can be
/// resumed, on the same charge and with the same settings.
///
/// For a new run, `keeping.begun` is empty. To resume a run, give what the keeper has kept of
/// each chain, and new private randomness: noise that was used is never used again. `meter` is
/// that of `keeping.charge`, where there is one, and the ledger prevents a second resumption
/// from the same checkpoint. Without a ledger, `meter` must begin with
/// [`released_before`](crate::sampler::released_before), and preventing a second resumption is
/// up to the caller. Checkpoints do not change draws.
///
/// Errors: as of [`sample_privately`]; a checkpoint that cannot be kept, or is not of this
/// run. The chains then stop, and the run can be resumed from earlier checkpoints.
pub fn sample_with_checkpoints(
    vault: &Vault,
    plan: &Plan,
    meter: &Meter,
    run: &PrivateSettings,
    observer: &impl Observer,
    keeping: Option<&Keeping>,
) -> Result<Vec<Chain>, SampleError> {
    let oracles = |stream: usize| -> Result<Box<dyn Oracle + '_>, SampleError> {
        let noise = run.noise.fork(stream as u64)?;
        Ok(Box::new(PrivateOracle::new(vault, plan, meter, noise)))
    };
    sample_from(&oracles, vault.density(), plan, run, observer, keeping)
}

/// The source of answers: an oracle for each chain, by its index, and one for learning before the
/// chains, whose index comes after the last chain.
pub type Oracles<'a> = dyn Fn(usize) -> Result<Box<dyn Oracle + 'a>, SampleError> + Sync + 'a;

/// As [`sample_with_checkpoints`], with answers from `oracles`, which determine how private the
/// draws are; `run.noise` is not used.
#[doc(hidden)]
pub fn sample_from(
    oracles: &Oracles,
    density: &Density,
    plan: &Plan,
    run: &PrivateSettings,
    observer: &impl Observer,
    keeping: Option<&Keeping>,
) -> Result<Vec<Chain>, SampleError> {
    let request = &plan.request;
    let Kind::Private(sampler) = request.algorithm.kind else {
        return Err(SampleError::NotPrivate(request.algorithm.name));
    };
    let chains = request.chains as usize;
    let learnt = match sampler.learner() {
        None => None,
        Some(learner) => {
            let mut oracle = oracles(chains)?;
            let planned = (density, plan, run);
            match learn(learner, oracle.as_mut(), planned, observer, keeping)? {
                Some(learnt) => Some(learnt),
                None => return Ok(vec![Chain::not_begun(); chains]),
            }
        }
    };
    if let Some(learnt) = &learnt {
        observer.learnt(learnt);
    }
    in_parallel(chains, observer, |chain, stop| {
        let mut rng = public_rng(run.seed, chain);
        let mut oracle = oracles(chain)?;
        let begun = keeping.and_then(|keeping| keeping.begun.get(chain)?.as_ref());
        let settled = request.settled();
        let warmup = Warmup::new(
            run.num_warmup,
            density.dimension(),
            sampler.step_size(request),
            settled.target_acceptance,
            settled.metric.unwrap_or(MetricForm::Unit),
        );
        let mut walker = match (&learnt, begun) {
            (Some(learnt), _) => learnt.chain(density, plan, &mut rng),
            (None, None) => {
                let theta = start(&run.initial, chain, density, &mut rng)?;
                sampler.chain(plan, theta, oracle.as_mut(), &mut rng)
            }
            // Its position comes from the checkpoint.
            (None, Some(_)) => {
                let anywhere = vec![0.0; density.dimension()];
                sampler.chain(plan, anywhere, oracle.as_mut(), &mut rng)
            }
        };
        let asks = learnt.as_ref().is_none_or(|l| l.chains_ask(plan));
        let mut runner = ChainRunner {
            walker: walker.as_mut(),
            oracle: oracle.as_mut(),
            density,
            warmup,
            recorder: Recorder::new(chain, run.num_warmup, observer),
            keeping,
            names: Names::default(),
            releases: &|iterations| {
                if asks {
                    Ok(planned_releases(sampler, plan, iterations)?)
                } else {
                    Ok(vec![0; plan.lines.len()])
                }
            },
            window: window(plan.iterations_per_chain),
            at: 0,
        };
        if let Some(begun) = begun {
            let released = begun.released(plan)?;
            runner.go_on_from(begun, released, plan.iterations_per_chain, &mut rng)?;
        }
        runner.run(plan.iterations_per_chain, &mut rng, stop)
    })
}

/// Runs the rounds of learning whose result the chains share. Their checkpoints are kept like
/// those of a chain, with the index after the last chain. `None` if it was interrupted.
fn learn(
    learner: &dyn Learner,
    oracle: &mut dyn Oracle,
    (density, plan, run): (&Density, &Plan, &PrivateSettings),
    observer: &impl Observer,
    keeping: Option<&Keeping>,
) -> Result<Option<Arc<dyn Beginning>>, SampleError> {
    let place = plan.request.chains as usize;
    let begun = keeping.and_then(|keeping| keeping.begun.get(place)?.as_ref());
    let mut names = Names::default();
    let (mut learnt, mut round, lost) = match begun {
        None => {
            let learnt = learner.begin(density, plan, &run.initial, run.seed)?;
            (learnt, 0, 0)
        }
        Some(begun) => {
            let last = &begun.last;
            oracle.count_from(begun.released(plan)?);
            names = Names::behind(last);
            let learnt = learner.restore(&last.walker, density, plan)?;
            if last.granted > learnt.most_rounds(plan) {
                return Err(SampleError::Unreadable);
            }
            (learnt, last.granted, last.lost + last.granted - last.done)
        }
    };
    let nothing = Warmup::new(0, 0, 0.0, None, MetricForm::Unit);
    let mut keep = |learnt: &dyn Beginning, oracle: &dyn Oracle, done: u64, granted: u64| {
        let Some(keeping) = keeping else {
            return Ok(());
        };
        let mut released = oracle.released();
        for (released, more) in released
            .iter_mut()
            .zip(learnt.releases(plan, done..granted))
        {
            *released += more;
        }
        let checkpoint = Checkpoint {
            grant: names.next(released)?,
            done,
            granted,
            lost,
            accepted: 0,
            sampled: 0,
            first_release: None,
            position: 0,
            walker: learnt.save(),
            warmup: nothing.learnt().clone(),
            draws: Vec::new(),
        };
        keeping.keep(place, &checkpoint)
    };
    while round < learnt.rounds(plan) {
        if observer.interrupted() {
            keep(learnt.as_ref(), oracle, round, round)?;
            return Ok(None);
        }
        keep(learnt.as_ref(), oracle, round, round + 1)?;
        observer.learning(round, learnt.rounds(plan));
        let mut rng = public_rng(run.seed, place + 1 + round as usize);
        learnt.round(round, density, plan, oracle, &mut rng)?;
        round += 1;
    }
    keep(learnt.as_ref(), oracle, round, round)?;
    Ok(Some(Arc::from(learnt)))
}

/// A chain that is ready to run.
pub(crate) struct ChainRunner<'a, O: Observer> {
    pub walker: &'a mut dyn Walker,
    pub oracle: &'a mut dyn Oracle,
    pub density: &'a Density,
    pub warmup: Warmup,
    pub recorder: Recorder<'a, O>,
    /// For a run that has checkpoints.
    pub keeping: Option<&'a Keeping<'a>>,
    pub names: Names,
    /// The largest number of releases of each line in these iterations, except for a walker's
    /// first release.
    pub releases: &'a dyn Fn(Range<u64>) -> Result<Vec<u64>, SampleError>,
    /// The number of iterations from one checkpoint to the next.
    pub window: u64,
    /// The number of iterations that are over.
    pub at: u64,
}

impl<O: Observer> ChainRunner<'_, O> {
    /// Resumes a chain that was interrupted, after the window that it lost. `released`: its
    /// releases so far, including that window.
    pub fn go_on_from(
        &mut self,
        begun: &SavedChain,
        released: Vec<u64>,
        iterations: u64,
        rng: &mut ChaCha8Rng,
    ) -> Result<(), SampleError> {
        let last = &begun.last;
        self.walker.restore(&last.walker)?;
        if self.walker.theta().len() != self.density.dimension() {
            return Err(SampleError::Unreadable);
        }
        self.warmup.restore(last.warmup.clone());
        rng.set_word_pos(last.position);
        self.oracle.count_from(released);
        self.names = Names::behind(last);
        self.at = last.granted;
        let mut lost = last.granted - last.done;
        if lost > 0 {
            // A first release that was lost has to be made again. The plan has room for one;
            // leaving out one iteration makes room for another.
            if last.first_release.is_some() && self.at < iterations {
                self.at += 1;
                lost += 1;
            }
            self.walker.skip(lost);
            if self.warmup.pass(last.done..self.at) {
                self.walker
                    .tune(self.warmup.step_size(), self.warmup.metric());
            }
        }
        self.recorder.go_on_from(begun, lost);
        Ok(())
    }

    pub fn run(
        mut self,
        iterations: u64,
        rng: &mut ChaCha8Rng,
        stop: &dyn Fn() -> bool,
    ) -> Result<Chain, SampleError> {
        let mut stopped = false;
        while self.at < iterations && !stopped {
            if stop() {
                stopped = true;
                break;
            }
            let end = self.at.saturating_add(self.window).min(iterations);
            self.keep(end, rng)?;
            while self.at < end {
                if stop() {
                    stopped = true;
                    break;
                }
                self.iteration(rng)?;
            }
        }
        // Closes the window: nothing is lost.
        self.keep(self.at, rng)?;
        Ok(self.recorder.finish(stopped))
    }

    fn iteration(&mut self, rng: &mut ChaCha8Rng) -> Result<(), SampleError> {
        let step = self.walker.step(self.oracle, rng)?;
        let stat = step.accept_stat;
        if self.warmup.learn(self.at, self.walker.theta(), stat) {
            self.walker
                .tune(self.warmup.step_size(), self.warmup.metric());
        }
        self.recorder.record(
            self.at,
            step.accepted,
            Draw {
                phase: Phase::Sampling,
                accept_stat: step.accept_stat,
                step_size: step.step_size,
                divergent: step.divergent && self.at >= self.recorder.num_warmup,
                sampler: step.columns,
                values: self.density.outputs(self.walker.theta()),
            },
        );
        self.at += 1;
        Ok(())
    }

    /// Grants the iterations up to `granted`.
    fn keep(&mut self, granted: u64, rng: &ChaCha8Rng) -> Result<(), SampleError> {
        let Some(keeping) = self.keeping else {
            return Ok(());
        };
        let done = self.at.min(granted);
        let first_release = self.walker.first_release();
        let mut released = self.oracle.released();
        for (released, more) in released.iter_mut().zip((self.releases)(done..granted)?) {
            *released += more;
        }
        // The plan includes it once, for the very first iteration.
        if let Some(line) = first_release
            && done > 0
            && granted > done
        {
            *released.get_mut(line).ok_or(SampleError::Unreadable)? += 1;
        }
        let recorder = &mut self.recorder;
        let checkpoint = Checkpoint {
            grant: self.names.next(released)?,
            done,
            granted,
            lost: recorder.lost,
            accepted: recorder.accepted,
            sampled: recorder.sampled,
            first_release,
            position: rng.get_word_pos(),
            walker: self.walker.save(),
            warmup: self.warmup.learnt().clone(),
            draws: recorder.draws[recorder.kept..].to_vec(),
        };
        keeping.keep(recorder.chain, &checkpoint)?;
        recorder.kept = recorder.draws.len();
        Ok(())
    }
}

/// One thread per chain; the first error wins, in order of chains.
pub(crate) fn in_parallel(
    chains: usize,
    observer: &impl Observer,
    run: impl Fn(usize, &dyn Fn() -> bool) -> Result<Chain, SampleError> + Sync,
) -> Result<Vec<Chain>, SampleError> {
    let failed = AtomicBool::new(false);
    let stop = || failed.load(Ordering::Relaxed) || observer.interrupted();
    let results: Vec<Result<Chain, SampleError>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..chains)
            .map(|chain| {
                let (run, stop, failed) = (&run, &stop, &failed);
                scope.spawn(move || {
                    let result = run(chain, stop);
                    if result.is_err() {
                        failed.store(true, Ordering::Relaxed);
                    }
                    result
                })
            })
            .collect();
        handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or(Err(SampleError::Lost)))
            .collect()
    });
    results.into_iter().collect()
}

pub(crate) struct Recorder<'a, O: Observer> {
    chain: usize,
    num_warmup: u64,
    observer: &'a O,
    draws: Vec<Draw>,
    /// The number of draws that are in checkpoints.
    kept: usize,
    accepted: u64,
    sampled: u64,
    lost: u64,
    /// For a run whose duration may be published.
    clock: Option<Clock>,
}

struct Clock {
    started: Instant,
    warmup_seconds: f64,
}

impl<'a, O: Observer> Recorder<'a, O> {
    pub(crate) fn new(chain: usize, num_warmup: u64, observer: &'a O) -> Self {
        Recorder {
            chain,
            num_warmup,
            observer,
            draws: Vec::new(),
            kept: 0,
            accepted: 0,
            sampled: 0,
            lost: 0,
            clock: None,
        }
    }

    /// The same recorder, which also measures the time: for runs without privacy.
    pub(crate) fn timed(self, _: NotPrivate) -> Self {
        let clock = Some(Clock {
            started: Instant::now(),
            warmup_seconds: 0.0,
        });
        Recorder { clock, ..self }
    }

    /// Takes over what was recorded before, and counts what was lost since.
    fn go_on_from(&mut self, begun: &SavedChain, lost: u64) {
        self.draws = begun.draws.clone();
        self.kept = self.draws.len();
        self.accepted = begun.last.accepted;
        self.sampled = begun.last.sampled;
        self.lost = begun.last.lost + lost;
    }

    pub(crate) fn record(&mut self, iteration: u64, accepted: bool, mut draw: Draw) {
        if iteration < self.num_warmup {
            draw.phase = Phase::Warmup;
            if let Some(clock) = &mut self.clock {
                clock.warmup_seconds = clock.started.elapsed().as_secs_f64();
            }
        } else {
            self.sampled += 1;
            self.accepted += u64::from(accepted);
        }
        self.observer.iteration(self.chain, iteration, &draw);
        self.draws.push(draw);
    }

    /// `interrupted`: whether the chain was stopped before its last iteration.
    pub(crate) fn finish(self, interrupted: bool) -> Chain {
        Chain {
            lost: self.lost,
            interrupted,
            acceptance: self.accepted as f64 / self.sampled.max(1) as f64,
            seconds: self.clock.map(|clock| {
                let all = clock.started.elapsed().as_secs_f64();
                [clock.warmup_seconds, all - clock.warmup_seconds]
            }),
            draws: self.draws,
        }
    }
}
