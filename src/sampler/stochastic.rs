//! What the stochastic-gradient samplers share: steps that follow noisy gradients of
//! Poisson batches, whose noise is both the privacy and the heat, and never reject.

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::checkpoint::{read, written};
use super::exact_number;
use super::oracle::{Oracle, SampleError};
use super::plan::{Plan, PlanError};
use super::request::PlanRequest;
use super::schedule::{Line, Noise, Question, factor, over_chains};
use super::{Sampler, Step, Walker};

/// A sampler of this kind. Its [`Sampler`] is [`Private`]; without privacy it is run by
/// `open`, on exact gradients of batches to which the same noise is added.
pub trait Dynamics: Sync + std::fmt::Debug {
    /// The largest step (unconstrained scale) of a run that gives none, for a curvature of
    /// about `curvature`.
    fn default_step_size(&self, curvature: f64) -> f64;

    /// The power of 1/t by which steps get smaller.
    fn default_decay(&self) -> f64 {
        0.0
    }

    /// Gradients of one iteration.
    fn gradients(&self, _: &PlanRequest) -> u64 {
        1
    }

    /// Standard deviation of the noise that a gradient of the log posterior has to carry at
    /// step h, or `None` where the dynamics want none.
    fn noise(&self, request: &PlanRequest, h: f64) -> Result<Option<f64>, PlanError>;

    /// What more noise than that does to the draws; `times` as much standard deviation.
    fn warning(&self, times: f64) -> String;

    fn walker(
        &self,
        request: &PlanRequest,
        steps: Steps,
        theta: Vec<f64>,
        rng: &mut ChaCha8Rng,
    ) -> Box<dyn Walker>;
}

/// Iterations of the same step, which are one line of the schedule.
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
    /// ends are about sqrt(2) times their starts: each block has noise, and an event, of its
    /// own, and the step is at most a factor of 2^(decay/2) above its formula.
    pub fn new(dynamics: &(impl Dynamics + ?Sized), request: &PlanRequest, k: u64) -> Steps {
        let h = match request.settings.step_size {
            Some(h) => h,
            None => default_step_size(dynamics, request),
        };
        let decay = request
            .settings
            .step_decay
            .unwrap_or(dynamics.default_decay());
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

    /// Iterations so far.
    pub fn iteration(&self) -> u64 {
        self.iteration
    }

    /// Goes to where so many iterations are over.
    pub fn go_to(&mut self, iteration: u64) {
        self.line = 0;
        self.iteration = iteration;
    }

    /// The line, step and noise of the first iteration.
    pub fn first(&self) -> Block {
        self.blocks[0]
    }

    /// With the noise of each block as it was planned.
    fn with_noise(mut self, noise: impl Fn(usize) -> f64) -> Steps {
        for (line, block) in self.blocks.iter_mut().enumerate() {
            block.noise = noise(line);
        }
        self
    }
}

/// What changes while a chain goes whose momenta, if any, are drawn anew.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    iteration: u64,
    #[serde(with = "exact_number::list")]
    theta: Vec<f64>,
}

/// [`Walker::save`] of a chain that is at `theta` and has no other state.
pub(super) fn save(steps: &Steps, theta: &[f64]) -> Value {
    written(&Saved {
        iteration: steps.iteration(),
        theta: theta.to_vec(),
    })
}

/// Takes over what [`save`] wrote.
pub(super) fn restore(
    saved: &Value,
    steps: &mut Steps,
    theta: &mut Vec<f64>,
) -> Result<(), SampleError> {
    let saved: Saved = read(saved)?;
    steps.go_to(saved.iteration);
    *theta = saved.theta;
    Ok(())
}

/// A step for a posterior whose curvature is about what the clip bound allows. There is no
/// plan without either a step size or a number of records.
fn default_step_size(dynamics: &(impl Dynamics + ?Sized), request: &PlanRequest) -> f64 {
    let (clip, records) = (request.clip_gradient(), request.records.unwrap_or(1));
    dynamics.default_step_size(records as f64 * request.temperature * clip * clip)
}

fn check(request: &PlanRequest) -> Result<(), PlanError> {
    let fail = |message: &str| Err(PlanError::Settings(message.to_string()));
    if request.settings.step_size.is_none() && request.records.is_none() {
        return fail(
            "`step_size` has a default where the number of records is public, and is private here: give one",
        );
    }
    Ok(())
}

/// One line for each step size.
pub(super) fn lines(
    dynamics: &(impl Dynamics + ?Sized),
    request: &PlanRequest,
    iterations: u64,
) -> Result<Vec<Line>, PlanError> {
    check(request)?;
    let subsampling = request.poisson_batches()?;
    let steps = Steps::new(dynamics, request, iterations);
    let line = |block: &Block| {
        let count = block.iterations.checked_mul(dynamics.gradients(request));
        let mut line = Line {
            what: "minibatch gradient",
            question: Question::Gradient,
            noise: Noise::Fixed,
            count: over_chains(count, request.chains)?,
            subsampling,
        };
        if let Some(sd) = dynamics.noise(request, block.step)? {
            // Of the estimate T/r (sum + noise), in units of the sum's sensitivity.
            let sensitivity = f64::from(factor(request.relation)) * request.clip_gradient();
            let scale = request.temperature * line.weight(request) * sensitivity;
            line.noise = Noise::AtLeast(sd / scale);
        }
        Ok(line)
    };
    steps.blocks.iter().map(line).collect()
}

/// The dynamics on the vault's releases.
#[derive(Debug)]
pub(super) struct Private<D>(pub D);

impl<D: Dynamics> Private<D> {
    fn noise_of(plan: &Plan, line: usize) -> f64 {
        match plan
            .lines
            .get(line)
            .map(|planned| (planned.line.noise, planned.tau))
        {
            Some((Noise::AtLeast(least), tau)) => tau / least,
            _ => 1.0,
        }
    }
}

impl<D: Dynamics> Sampler for Private<D> {
    fn lines(&self, request: &PlanRequest, iterations: u64) -> Result<Vec<Line>, PlanError> {
        lines(&self.0, request, iterations)
    }

    fn warnings(&self, plan: &Plan) -> Vec<String> {
        let noise = |line| Self::noise_of(plan, line);
        let most = (0..plan.lines.len()).map(noise).fold(1.0, f64::max);
        if most > 1.0 + 1e-9 {
            vec![self.0.warning(most)]
        } else {
            Vec::new()
        }
    }

    fn default_step_size(&self, request: &PlanRequest) -> f64 {
        default_step_size(&self.0, request)
    }

    fn target_acceptance(&self) -> Option<f64> {
        None
    }

    fn chain(
        &self,
        plan: &Plan,
        theta: Vec<f64>,
        _: &mut dyn Oracle,
        rng: &mut ChaCha8Rng,
    ) -> Box<dyn Walker> {
        let request = &plan.request;
        // The plan was made from these very steps.
        let steps = Steps::new(&self.0, request, plan.iterations_per_chain)
            .with_noise(|line| Self::noise_of(plan, line));
        self.0.walker(request, steps, theta, rng)
    }
}

/// x + factor * y
pub(super) fn moved(x: &[f64], factor: f64, y: &[f64]) -> Vec<f64> {
    x.iter().zip(y).map(|(x, y)| x + factor * y).collect()
}

pub(super) fn all_finite(x: &[f64]) -> bool {
    x.iter().all(|x| x.is_finite())
}

/// What these samplers say of an iteration: nothing is ever rejected, except a step out of
/// the numbers.
pub(super) fn followed(finite: bool, h: f64, columns: Vec<f64>) -> Step {
    Step {
        accept_stat: f64::from(u8::from(finite)),
        accepted: finite,
        divergent: false,
        step_size: h,
        columns,
    }
}

#[cfg(test)]
mod tests {
    use super::super::dp_sghmc::Sghmc;
    use super::*;
    use crate::accounting::Real;
    use crate::sampler::settings::Settings;

    // If it failed: an iteration would have no step or two, or the noise of a step that it
    // does not make.
    #[test]
    fn blocks_cover_all_iterations_with_nearly_the_steps_of_the_formula() {
        for (decay, most) in [(1.0 / 3.0, 40), (1.0, 40), (0.0, 1)] {
            let request = PlanRequest {
                settings: Settings::new().step_size(0.1).step_decay(decay),
                ..PlanRequest::new(Real::ONE, Real::from(1e-6), 2)
            };
            let k = 100_000;
            let mut steps = Steps::new(&Sghmc, &request, k);
            assert!(steps.blocks.len() <= most, "{}", steps.blocks.len());
            let counted: u64 = steps.blocks.iter().map(|b| b.iterations).sum();
            assert_eq!(counted, k);
            for t in 1..=k {
                let (line, block) = steps.next();
                assert_eq!(block, steps.blocks[line]);
                assert!((block.first..block.first + block.iterations).contains(&t));
                let over = block.step / (0.1 * (t as f64).powf(-decay));
                assert!(
                    (1.0 - 1e-12..=2f64.powf(decay / 2.0)).contains(&over),
                    "{t} {over}"
                );
            }
        }
    }
}
