//! The stochastic-gradient samplers and their common part: steps that follow noisy gradients of
//! Poisson batches, whose noise is both the privacy and the heat, and never reject.

pub mod dp_sghmc;
pub mod dp_sgld;
pub mod dp_sgnht;

use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::sampler::chain::checkpoint::{read, written};
use crate::sampler::chain::exact_number;
use crate::sampler::contract::dynamics::{Block, Dynamics, Steps, default_step_size};
use crate::sampler::contract::metric::Metric;
use crate::sampler::contract::oracle::{Oracle, SampleError};
use crate::sampler::contract::plan::{Plan, PlanError};
use crate::sampler::contract::request::PlanRequest;
use crate::sampler::contract::schedule::{Line, Noise, Question, factor, over_chains};
use crate::sampler::contract::{Sampler, Step, Walker};

/// Dynamics whose iterations depend on where the chain is and on nothing else: momenta, if there are
/// any, are drawn anew in each.
pub(crate) trait Motion {
    /// Where an iteration leads, or `None` if its trajectory is no longer finite.
    fn follow(
        &self,
        theta: &[f64],
        line: usize,
        block: Block,
        oracle: &mut dyn Oracle,
        rng: &mut ChaCha8Rng,
    ) -> Result<Option<Vec<f64>>, SampleError>;
}

/// A chain of such dynamics.
pub(crate) struct Follower<M> {
    pub steps: Steps,
    pub theta: Vec<f64>,
    pub motion: M,
}

/// The state of a chain.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    iteration: u64,
    #[serde(with = "exact_number::list")]
    theta: Vec<f64>,
}

impl<M: Motion> Walker for Follower<M> {
    fn step(&mut self, oracle: &mut dyn Oracle, rng: &mut ChaCha8Rng) -> Result<Step, SampleError> {
        let (line, block) = self.steps.next();
        let end = self.motion.follow(&self.theta, line, block, oracle, rng)?;
        let end = end.filter(|theta| all_finite(theta));
        let finite = end.is_some();
        if let Some(theta) = end {
            self.theta = theta;
        }
        Ok(followed(finite, block.step, Vec::new()))
    }

    fn theta(&self) -> &[f64] {
        &self.theta
    }

    /// Steps are planned, and with them the noise.
    fn tune(&mut self, _: f64, _: &Metric) {}

    fn save(&self) -> Value {
        written(&Saved {
            iteration: self.steps.iteration(),
            theta: self.theta.clone(),
        })
    }

    fn restore(&mut self, saved: &Value) -> Result<(), SampleError> {
        let saved: Saved = read(saved)?;
        self.steps.go_to(saved.iteration);
        self.theta = saved.theta;
        Ok(())
    }

    fn skip(&mut self, iterations: u64) {
        self.steps.go_to(self.steps.iteration() + iterations);
    }
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
pub(crate) fn lines(
    dynamics: &(impl Dynamics + ?Sized),
    request: &PlanRequest,
    iterations: u64,
) -> Result<Vec<Line>, PlanError> {
    check(request)?;
    let subsampling = request.batches()?;
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
            // The noise of the estimate T/r (sum + noise), in units of the sum's sensitivity.
            let sensitivity = f64::from(factor(request.relation)) * request.clip_gradient();
            let scale = request.temperature * line.weight(request) * sensitivity;
            line.noise = Noise::AtLeast(sd / scale);
        }
        Ok(line)
    };
    steps.blocks().iter().map(line).collect()
}

/// The dynamics on the vault's releases.
#[derive(Debug)]
pub(crate) struct Private<D>(pub D);

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
pub(crate) fn moved(x: &[f64], factor: f64, y: &[f64]) -> Vec<f64> {
    x.iter().zip(y).map(|(x, y)| x + factor * y).collect()
}

pub(crate) fn all_finite(x: &[f64]) -> bool {
    x.iter().all(|x| x.is_finite())
}

/// The statistics of an iteration: nothing is ever rejected, except a step to values that are not
/// finite.
pub(crate) fn followed(finite: bool, h: f64, columns: Vec<f64>) -> Step {
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
    use super::*;
    use crate::accounting::Real;
    use crate::sampler::contract::settings::Settings;
    use crate::sampler::stochastic::dp_sghmc::Sghmc;

    // If it failed: an iteration would have no step or two of them, or the noise of a step that
    // it does not make.
    #[test]
    fn blocks_cover_all_iterations_with_nearly_the_steps_of_the_formula() {
        for (decay, most) in [(1.0 / 3.0, 40), (1.0, 40), (0.0, 1)] {
            let request = PlanRequest {
                settings: Settings::new().step_size(0.1).step_decay(decay),
                ..PlanRequest::new(Real::ONE, Real::from(1e-6), 2)
            };
            let k = 100_000;
            let mut steps = Steps::new(&Sghmc::Damped, &request, k);
            assert!(steps.blocks().len() <= most, "{}", steps.blocks().len());
            let counted: u64 = steps.blocks().iter().map(|b| b.iterations).sum();
            assert_eq!(counted, k);
            for t in 1..=k {
                let (line, block) = steps.next();
                assert_eq!(block, steps.blocks()[line]);
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
