//! Chains: initial points, iterations, what is kept.

use std::sync::atomic::{AtomicBool, Ordering};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::metric::MetricForm;
use super::oracle::{Oracle, PrivateOracle, SampleError};
use super::plan::Plan;
use super::warmup::Warmup;
use super::{Kind, Walker};
use crate::accounting::Meter;
use crate::density::Density;
use crate::privacy::{PrivateRng, Vault};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Warmup,
    Sampling,
}

/// One iteration, as it happens.
#[derive(Debug, Clone)]
pub struct Draw {
    pub phase: Phase,
    pub accept_stat: f64,
    /// The step size of this iteration.
    pub step_size: f64,
    pub divergent: bool,
    /// The sampler's own columns ([`Algorithm::columns`](super::Algorithm)).
    pub sampler: Vec<f64>,
    /// Output columns, in the order of [`Density::output_names`].
    pub values: Vec<f64>,
}

/// A finished chain.
#[derive(Debug, Clone)]
pub struct Chain {
    /// Kept iterations of the sampling phase (and of the warm-up where asked).
    pub draws: Vec<Draw>,
    /// Share of accepted proposals over all sampling iterations.
    pub acceptance: f64,
    pub warmup_seconds: f64,
    pub sampling_seconds: f64,
}

/// Told about every iteration; may stop the run.
pub trait Observer: Sync {
    /// `chain` and `iteration` count from 0.
    fn iteration(&self, chain: usize, iteration: u64, draw: &Draw);

    /// Whether to stop after the current release.
    fn interrupted(&self) -> bool {
        false
    }
}

/// An observer that looks away.
impl Observer for () {
    fn iteration(&self, _: usize, _: u64, _: &Draw) {}
}

/// Where chains start, on the unconstrained scale.
#[derive(Debug, Clone)]
pub enum Initial {
    /// Uniform on (-2, 2), as Stan does, until the public part is finite.
    Random,
    /// One point for all chains, or one per chain.
    Points(Vec<Vec<f64>>),
}

/// What a private run needs beside its plan.
pub struct PrivateSettings {
    /// Iterations of each chain that come first and are discarded.
    pub num_warmup: u64,
    pub initial: Initial,
    /// Fixes the public randomness: momenta, jitter, initial points.
    pub seed: u64,
    /// The root of the private randomness: noise and accept draws.
    pub noise: PrivateRng,
    /// What warm-up estimates of the posterior's scales, from released draws.
    pub metric: MetricForm,
    /// The mean acceptance that warm-up aims at where no step size was given; `None`:
    /// the sampler's own.
    pub target_acceptance: Option<f64>,
}

impl PrivateSettings {
    /// Random initial points, a step size that is adapted, the identity as metric.
    pub fn new(num_warmup: u64, seed: u64, noise: PrivateRng) -> Self {
        PrivateSettings {
            num_warmup,
            initial: Initial::Random,
            seed,
            noise,
            metric: MetricForm::Unit,
            target_acceptance: None,
        }
    }
}

/// Runs the planned chains, each release charged to `meter`, which must have
/// been made from the plan's events. Draws do not depend on the number of
/// threads.
///
/// Errors: the meter refuses (a bug, since the plan counted the releases), no
/// initial point, an interrupt.
pub fn sample_privately(
    vault: &Vault,
    plan: &Plan,
    meter: &Meter,
    run: &PrivateSettings,
    observer: &impl Observer,
) -> Result<Vec<Chain>, SampleError> {
    let request = &plan.request;
    let Kind::Private(sampler) = request.algorithm.kind else {
        return Err(SampleError::NotPrivate(request.algorithm.name));
    };
    let chains = request.chains as usize;
    in_parallel(chains, observer, |chain, stop| {
        let mut rng = public_rng(run.seed, chain);
        let noise = run.noise.fork(chain as u64)?;
        let mut oracle = PrivateOracle::new(vault, plan, meter, noise);
        let theta = start(&run.initial, chain, vault.density(), &mut rng)?;
        let warmup = Warmup::new(
            run.num_warmup,
            theta.len(),
            request
                .step_size
                .unwrap_or_else(|| sampler.default_step_size(request)),
            match request.step_size {
                None => run.target_acceptance.or(sampler.target_acceptance()),
                Some(_) => None,
            },
            run.metric,
        );
        let mut walker = sampler.chain(plan, theta, &mut oracle, &mut rng);
        let recorder = Recorder::new(chain, run.num_warmup, observer);
        Course {
            walker: walker.as_mut(),
            oracle: &mut oracle,
            density: vault.density(),
            warmup,
            recorder,
        }
        .run(plan.iterations_per_chain, &mut rng, stop)
    })
}

/// A chain that is about to go.
pub(super) struct Course<'a, O: Observer> {
    pub walker: &'a mut dyn Walker,
    pub oracle: &'a mut dyn Oracle,
    pub density: &'a Density,
    pub warmup: Warmup,
    pub recorder: Recorder<'a, O>,
}

impl<O: Observer> Course<'_, O> {
    pub fn run(
        self,
        iterations: u64,
        rng: &mut ChaCha8Rng,
        stop: &dyn Fn() -> bool,
    ) -> Result<Chain, SampleError> {
        let Course {
            walker,
            oracle,
            density,
            mut warmup,
            mut recorder,
        } = self;
        for iteration in 0..iterations {
            if stop() {
                return Err(SampleError::Interrupted);
            }
            let step = walker.step(oracle, rng)?;
            if warmup.is_needed() && iteration < recorder.num_warmup {
                warmup.learn(iteration as usize, walker.theta(), step.accept_stat);
                if iteration + 1 == recorder.num_warmup {
                    warmup.finish();
                }
                walker.tune(warmup.step_size(), warmup.metric());
            }
            recorder.record(
                iteration,
                step.accepted,
                Draw {
                    phase: Phase::Sampling,
                    accept_stat: step.accept_stat,
                    step_size: step.step_size,
                    divergent: false,
                    sampler: step.columns,
                    values: density.outputs(walker.theta()),
                },
            );
        }
        Ok(recorder.finish())
    }
}

/// One thread per chain; the first error wins, in order of chains.
pub(super) fn in_parallel(
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
            .map(|handle| handle.join().unwrap_or(Err(SampleError::Interrupted)))
            .collect()
    });
    // An error of its own says more than the interrupt it caused elsewhere.
    let mut chains = Vec::new();
    let mut interrupted = false;
    for result in results {
        match result {
            Ok(chain) => chains.push(chain),
            Err(SampleError::Interrupted) => interrupted = true,
            Err(error) => return Err(error),
        }
    }
    if interrupted {
        return Err(SampleError::Interrupted);
    }
    Ok(chains)
}

/// The public generator of a chain: its own stream of the seed's.
pub(super) fn public_rng(seed: u64, chain: usize) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(chain as u64 + 1);
    rng
}

pub(super) fn start(
    initial: &Initial,
    chain: usize,
    density: &Density,
    rng: &mut ChaCha8Rng,
) -> Result<Vec<f64>, SampleError> {
    match initial {
        Initial::Points(points) => {
            let point = points[chain % points.len()].clone();
            if density.log_prior(&point).is_finite() {
                Ok(point)
            } else {
                Err(SampleError::BadInitialPoint)
            }
        }
        Initial::Random => {
            for _ in 0..100 {
                let point = random_point(density.dimension(), rng);
                if density.log_prior(&point).is_finite() {
                    return Ok(point);
                }
            }
            Err(SampleError::NoInitialPoint)
        }
    }
}

pub(super) fn random_point(dimension: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
    (0..dimension)
        .map(|_| rng.random_range(-2.0..2.0))
        .collect()
}

pub(super) struct Recorder<'a, O: Observer> {
    chain: usize,
    num_warmup: u64,
    observer: &'a O,
    draws: Vec<Draw>,
    accepted: u64,
    sampled: u64,
    started: std::time::Instant,
    warmup_seconds: f64,
}

impl<'a, O: Observer> Recorder<'a, O> {
    pub(super) fn new(chain: usize, num_warmup: u64, observer: &'a O) -> Self {
        Recorder {
            chain,
            num_warmup,
            observer,
            draws: Vec::new(),
            accepted: 0,
            sampled: 0,
            started: std::time::Instant::now(),
            warmup_seconds: 0.0,
        }
    }

    pub(super) fn record(&mut self, iteration: u64, accepted: bool, mut draw: Draw) {
        if iteration < self.num_warmup {
            draw.phase = Phase::Warmup;
            self.warmup_seconds = self.started.elapsed().as_secs_f64();
        } else {
            self.sampled += 1;
            self.accepted += u64::from(accepted);
        }
        self.observer.iteration(self.chain, iteration, &draw);
        self.draws.push(draw);
    }

    pub(super) fn finish(self) -> Chain {
        Chain {
            acceptance: self.accepted as f64 / self.sampled.max(1) as f64,
            sampling_seconds: self.started.elapsed().as_secs_f64() - self.warmup_seconds,
            warmup_seconds: self.warmup_seconds,
            draws: self.draws,
        }
    }
}
