//! Samplers that follow noisy gradients of batches and never reject: their steps, and the noise
//! that the steps need.

use rand_chacha::ChaCha8Rng;

use crate::sampler::contract::Walker;
use crate::sampler::contract::error::PlanError;
use crate::sampler::contract::request::PlanRequest;

/// A sampler of this kind. Its [`Sampler`] is [`Private`]; without privacy it is run by
/// `open`, on exact gradients of batches to which the same noise is added.
pub trait Dynamics: Sync + std::fmt::Debug {
    /// The default of the largest step (unconstrained scale) for a curvature of about
    /// `curvature`.
    fn default_step_size(&self, curvature: f64) -> f64;

    /// The number of gradients in one iteration.
    fn gradients(&self, _: &PlanRequest) -> u64 {
        1
    }

    /// Standard deviation of the noise that a gradient of the log posterior must have at
    /// step h, or `None` where the dynamics need none.
    fn noise(&self, request: &PlanRequest, h: f64) -> Result<Option<f64>, PlanError>;

    /// The effect on the draws, in words, of noise whose standard deviation is `times` that of
    /// [`noise`](Dynamics::noise).
    fn warning(&self, times: f64) -> String;

    fn walker(
        &self,
        request: &PlanRequest,
        steps: Steps,
        theta: Vec<f64>,
        rng: &mut ChaCha8Rng,
    ) -> Box<dyn Walker>;
}

/// Iterations with the same step, which form one line of the schedule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// First iteration, from 1.
    pub first: u64,
    pub iterations: u64,
    /// h
    pub step: f64,
    /// The noise drawn, as a multiple of what the dynamics need.
    pub noise: f64,
}

/// The steps of a chain, from the first iteration on.
#[derive(Debug, Clone)]
pub struct Steps {
    blocks: Vec<Block>,
    line: usize,
    iteration: u64,
}

impl Steps {
    /// h t^-decay for iterations t = 1, 2, ..., with t taken at the start of blocks whose
    /// ends are about sqrt(2) times their starts: each block has its own noise and its own
    /// event, and the step is at most a factor of 2^(decay/2) above its formula.
    pub fn new(dynamics: &(impl Dynamics + ?Sized), request: &PlanRequest, k: u64) -> Steps {
        let h = match request.settings.step_size {
            Some(h) => h,
            None => default_step_size(dynamics, request),
        };
        let decay = request.settled().step_decay.unwrap_or(0.0);
        let mut blocks = Vec::new();
        let mut first = 1u64;
        loop {
            let root = (first as f64 * std::f64::consts::SQRT_2).ceil() as u64;
            let end = match decay {
                0.0 => k + 1,
                _ => root.max(first + 1).min(k + 1),
            };
            blocks.push(Block {
                first,
                iterations: end - first,
                step: h * (first as f64).powf(-decay),
                noise: 1.0,
            });
            first = end;
            if first > k {
                break;
            }
        }
        Steps {
            blocks,
            line: 0,
            iteration: 0,
        }
    }

    /// The next iteration: its line, step and noise.
    pub fn next(&mut self) -> (usize, Block) {
        self.iteration += 1;
        while self.line + 1 < self.blocks.len()
            && self.blocks[self.line + 1].first <= self.iteration
        {
            self.line += 1;
        }
        (self.line, self.blocks[self.line])
    }

    /// The blocks of iterations with the same step, in order.
    pub(crate) fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// The number of iterations so far.
    pub fn iteration(&self) -> u64 {
        self.iteration
    }

    /// Goes to the state after `iteration` iterations.
    pub fn go_to(&mut self, iteration: u64) {
        self.line = 0;
        self.iteration = iteration;
    }

    /// The line, step and noise of the first iteration.
    pub fn first(&self) -> Block {
        self.blocks[0]
    }

    /// The same steps with the noise that was planned for each block.
    pub(crate) fn with_noise(mut self, noise: impl Fn(usize) -> f64) -> Steps {
        for (line, block) in self.blocks.iter_mut().enumerate() {
            block.noise = noise(line);
        }
        self
    }
}

/// A step for a posterior whose curvature is about what the clip bound allows. There is no
/// plan without either a step size or a number of records.
pub(crate) fn default_step_size(dynamics: &(impl Dynamics + ?Sized), request: &PlanRequest) -> f64 {
    let (clip, records) = (request.clip_gradient(), request.records.unwrap_or(1));
    dynamics.default_step_size(records as f64 * request.temperature * clip * clip)
}
