//! Chains whose questions are watched: how many records' log-ratios each one clips.

use std::error::Error;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use dpm::sampler::{Kind, Oracle, PrivateOracle, Ratio, SampleError};
use dpm::{Meter, Plan, PrivateRng};

use crate::posterior::{Problem, Records};

pub struct Chain {
    pub draws: Vec<Vec<f64>>,
    pub accepted: u64,
    /// Log-ratios clipped, over all proposals and records.
    pub clipped: u64,
}

/// The planned chains, without warm-up: steps are given, so that there is nothing to adapt.
pub fn run_chains(
    problem: &Problem,
    plan: &Plan,
    meter: &Meter,
    seed: u64,
    noise: &PrivateRng,
) -> Result<Vec<Chain>, Box<dyn Error>> {
    let Kind::Private(sampler) = plan.request.algorithm.kind else {
        return Err("not a private sampler".into());
    };
    let run = |chain: usize| -> Result<Chain, SampleError> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(chain as u64 + 1);
        let mut oracle = Watched {
            inner: PrivateOracle::new(&problem.vault, plan, meter, noise.fork(chain as u64)?),
            records: &problem.records,
            clip: plan.request.clip_log_ratio,
            clipped: 0,
        };
        let start = problem.starts[chain].clone();
        let mut walker = sampler.chain(plan, start, &mut oracle, &mut rng);
        let (mut draws, mut accepted) = (Vec::new(), 0);
        for _ in 0..plan.iterations_per_chain {
            accepted += u64::from(walker.step(&mut oracle, &mut rng)?.accepted);
            draws.push(walker.theta().to_vec());
        }
        Ok(Chain {
            draws,
            accepted,
            clipped: oracle.clipped,
        })
    };
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..problem.starts.len())
            .map(|chain| scope.spawn(move || run(chain)))
            .collect();
        let join = |handle: std::thread::ScopedJoinHandle<_>| {
            let result: Result<Chain, SampleError> =
                handle.join().map_err(|_| "a chain stopped")?;
            Ok(result?)
        };
        handles.into_iter().map(join).collect()
    })
}

/// The private answers, and a look at what they clip.
struct Watched<'a> {
    inner: PrivateOracle<'a>,
    records: &'a Records,
    /// b_l
    clip: f64,
    clipped: u64,
}

impl Oracle for Watched<'_> {
    fn dimension(&self) -> usize {
        self.inner.dimension()
    }

    fn log_prior(&mut self, theta: &[f64]) -> f64 {
        self.inner.log_prior(theta)
    }

    fn gradient(&mut self, line: usize, theta: &[f64]) -> Result<Vec<f64>, SampleError> {
        self.inner.gradient(line, theta)
    }

    fn log_ratio(&mut self, line: usize, from: &[f64], to: &[f64]) -> Result<Ratio, SampleError> {
        let squares = from.iter().zip(to).map(|(a, b)| (a - b) * (a - b));
        let bound = self.clip * squares.sum::<f64>().sqrt();
        self.clipped += self.records.beyond(from, to, bound) as u64;
        self.inner.log_ratio(line, from, to)
    }

    fn accept(&mut self, log_probability: f64) -> bool {
        self.inner.accept(log_probability)
    }
}
