//! Chains whose questions are watched: how many records each one clips.

use std::error::Error;
use std::time::Instant;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use dpm::diagnostics::r_hat;
use dpm::testing::privacy::{NotPrivate, PrivateRng};
use dpm::testing::sampler::{
    Initial, Kind, Metric, Oracle, PlanRequest, PrivateOracle, PrivateSettings, Ratio,
    sample_privately,
};
use dpm::{Plan, SampleError};

use crate::clipped::Clipping;
use crate::limit;
use crate::problem::{Problem, Start};
use crate::setting::Sampler;

/// A run, all its chains.
pub struct Run {
    /// By chains, without the first half of each.
    pub kept: Vec<Vec<Vec<f64>>>,
    /// Share of accepted proposals.
    pub acceptance: f64,
    /// Share of the records' log-ratios that were clipped, over all proposals; NaN where none
    /// was asked for or nobody looked.
    pub ratios_clipped: f64,
    /// The same of gradients.
    pub gradients_clipped: f64,
    pub seconds: f64,
}

impl Run {
    /// The last columns of a table of runs: acceptance, shares that were clipped, R-hat, seconds.
    pub fn columns(&self) -> [String; 5] {
        [
            format!("{:.4}", self.acceptance),
            format!("{:.4}", self.ratios_clipped),
            format!("{:.4}", self.gradients_clipped),
            format!("{:.3}", self.worst_r_hat()),
            format!("{:.1}", self.seconds),
        ]
    }

    /// Of the coordinate that has the largest.
    fn worst_r_hat(&self) -> f64 {
        let of_coordinate = |j: usize| {
            let coordinate = |chain: &Vec<Vec<f64>>| chain.iter().map(|p| p[j]).collect();
            r_hat(&self.kept.iter().map(coordinate).collect::<Vec<Vec<f64>>>())
        };
        let first = self.kept.first().and_then(|chain| chain.first());
        let d = first.map_or(0, Vec::len);
        (0..d).map(of_coordinate).fold(f64::NAN, f64::max)
    }
}

pub fn run(
    problem: &Problem,
    sampler: &Sampler,
    plan: &Plan,
    start: Start,
    repeat: u64,
) -> Result<Run, Box<dyn Error>> {
    let noise = PrivateRng::from_os()?;
    let started = Instant::now();
    let run = match sampler {
        Sampler::Automatic => automatic(problem, plan, repeat, noise)?,
        Sampler::Limit => limit::run(problem, plan, &noise)?,
        _ => watched(problem, plan, start, repeat, &noise)?,
    };
    Ok(Run {
        seconds: started.elapsed().as_secs_f64(),
        ..run
    })
}

/// As `dpm sample` without settings.
fn automatic(
    problem: &Problem,
    plan: &Plan,
    repeat: u64,
    noise: PrivateRng,
) -> Result<Run, Box<dyn Error>> {
    let meter = NotPrivate::acknowledged().meter(plan.events.clone());
    // As `dpm sample`: one iteration of warm-up for every two that are kept.
    let warmup = plan.iterations_per_chain / 3;
    let settings = PrivateSettings {
        initial: Initial::Random,
        ..PrivateSettings::new(warmup, repeat, noise)
    };
    let chains = sample_privately(&problem.vault, plan, &meter, &settings, &())?;
    let acceptance = chains.iter().map(|c| c.acceptance).sum::<f64>() / chains.len() as f64;
    let values = |draw: &dpm::Draw| draw.values.clone();
    Ok(Run {
        kept: chains
            .iter()
            .map(|c| c.draws[warmup as usize..].iter().map(values).collect())
            .collect(),
        acceptance,
        ratios_clipped: f64::NAN,
        gradients_clipped: f64::NAN,
        seconds: 0.0,
    })
}

/// The planned chains, without warm-up: steps are given, so that there is nothing to adapt.
fn watched(
    problem: &Problem,
    plan: &Plan,
    start: Start,
    repeat: u64,
    noise: &PrivateRng,
) -> Result<Run, Box<dyn Error>> {
    let Kind::Private(sampler) = plan.request.algorithm.kind else {
        return Err("not a private sampler".into());
    };
    let meter = &NotPrivate::acknowledged().meter(plan.events.clone());
    let starts = problem.starts(start, repeat, plan.request.chains as usize);
    let density = problem.vault.density();
    let chain = |chain: usize, start: Vec<f64>| -> Result<Watched, SampleError> {
        let mut rng = ChaCha8Rng::seed_from_u64(repeat);
        rng.set_stream(chain as u64 + 1);
        let inner = PrivateOracle::new(&problem.vault, plan, meter, noise.fork(chain as u64)?);
        let mut oracle = Watch::new(inner, problem.records.as_ref(), &plan.request);
        let mut walker = sampler.chain(plan, start, &mut oracle, &mut rng);
        if let (Metric::Diagonal(_), Some(step)) =
            (&problem.metric, plan.request.settings.step_size)
        {
            walker.tune(step, &problem.metric);
        }
        let (mut draws, mut accepted) = (Vec::new(), 0);
        for iteration in 0..plan.iterations_per_chain {
            accepted += u64::from(walker.step(&mut oracle, &mut rng)?.accepted);
            if iteration >= plan.iterations_per_chain / 2 {
                draws.push(density.outputs(walker.theta()));
            }
        }
        Ok(Watched {
            draws,
            accepted,
            ratios: oracle.ratios,
            gradients: oracle.gradients,
        })
    };
    let chains = in_threads(starts, chain)?;
    let proposals = plan.iterations_per_chain * plan.request.chains;
    Ok(Run {
        acceptance: chains.iter().map(|c| c.accepted).sum::<u64>() as f64 / proposals as f64,
        ratios_clipped: Shares::mean(chains.iter().map(|c| &c.ratios)),
        gradients_clipped: Shares::mean(chains.iter().map(|c| &c.gradients)),
        kept: chains.into_iter().map(|c| c.draws).collect(),
        seconds: 0.0,
    })
}

/// A chain from each of the points, each in its own thread.
pub fn in_threads<T: Send>(
    starts: Vec<Vec<f64>>,
    chain: impl Fn(usize, Vec<f64>) -> Result<T, SampleError> + Sync,
) -> Result<Vec<T>, Box<dyn Error>> {
    let chain = &chain;
    std::thread::scope(|scope| {
        let starts = starts.into_iter().enumerate();
        let handles: Vec<_> = starts
            .map(|(i, start)| scope.spawn(move || chain(i, start)))
            .collect();
        let join = |handle: std::thread::ScopedJoinHandle<_>| {
            let result: Result<T, SampleError> = handle.join().map_err(|_| "a chain stopped")?;
            Ok(result?)
        };
        handles.into_iter().map(join).collect()
    })
}

struct Watched {
    draws: Vec<Vec<f64>>,
    accepted: u64,
    ratios: Shares,
    gradients: Shares,
}

#[derive(Default)]
pub struct Shares {
    sum: f64,
    questions: u64,
}

impl Shares {
    fn add(&mut self, share: f64) {
        self.sum += share;
        self.questions += 1;
    }

    pub fn mean<'a>(shares: impl Iterator<Item = &'a Shares>) -> f64 {
        let (sum, questions) = shares.fold((0.0, 0), |(s, q), x| (s + x.sum, q + x.questions));
        sum / questions as f64
    }
}

/// The private answers, and a look at what they clip.
pub struct Watch<'a, O> {
    inner: O,
    records: &'a dyn Clipping,
    /// b_l, b_g
    clip_log_ratio: f64,
    clip_gradient: f64,
    pub ratios: Shares,
    pub gradients: Shares,
    /// Gradients of batches are so cheap that only every so many-th is looked at.
    every: u64,
    asked: u64,
}

impl<'a, O: Oracle> Watch<'a, O> {
    pub fn new(inner: O, records: &'a dyn Clipping, request: &PlanRequest) -> Self {
        let batches =
            request.settings.batch_rate.is_some() || request.settings.batch_size.is_some();
        Watch {
            inner,
            records,
            clip_log_ratio: request.clip_log_ratio(),
            clip_gradient: request.clip_gradient(),
            ratios: Shares::default(),
            gradients: Shares::default(),
            every: if batches { 100 } else { 1 },
            asked: 0,
        }
    }

    fn looks(&mut self) -> bool {
        self.asked += 1;
        (self.asked - 1).is_multiple_of(self.every)
    }
}

impl<O: Oracle> Oracle for Watch<'_, O> {
    fn dimension(&self) -> usize {
        self.inner.dimension()
    }

    fn log_prior(&mut self, theta: &[f64]) -> f64 {
        self.inner.log_prior(theta)
    }

    fn gradient(&mut self, line: usize, theta: &[f64]) -> Result<Vec<f64>, SampleError> {
        if self.looks() {
            let share = self.records.gradients_beyond(theta, self.clip_gradient);
            self.gradients.add(share);
        }
        self.inner.gradient(line, theta)
    }

    fn log_ratio(&mut self, line: usize, from: &[f64], to: &[f64]) -> Result<Ratio, SampleError> {
        if self.looks() {
            let squares = from.iter().zip(to).map(|(a, b)| (a - b) * (a - b));
            let bound = self.clip_log_ratio * squares.sum::<f64>().sqrt();
            self.ratios.add(self.records.ratios_beyond(from, to, bound));
        }
        self.inner.log_ratio(line, from, to)
    }

    fn barker(
        &mut self,
        line: usize,
        from: &[f64],
        to: &[f64],
        prior_ratio: f64,
    ) -> Result<bool, SampleError> {
        self.inner.barker(line, from, to, prior_ratio)
    }

    fn accept(&mut self, log_probability: f64) -> bool {
        self.inner.accept(log_probability)
    }
}
