//! The schedule of a sampler that is written outside of this crate: a number of gradients and
//! log-ratios in each chain, whatever it does with the answers.
//!
//! It takes its steps itself (`analysis/own.rs`), and none are taken here.

use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::sampler::contract::metric::Metric;
use crate::sampler::contract::oracle::{Oracle, SampleError};
use crate::sampler::contract::plan::{Plan, PlanError};
use crate::sampler::contract::request::Allowance;
use crate::sampler::contract::request::PlanRequest;
use crate::sampler::contract::schedule::{Line, Noise, Question, over_chains};
use crate::sampler::contract::settings::{Setting, Unset};
use crate::sampler::contract::{Algorithm, Kind, Sampler, Step, Walker};

/// Not among [`ALGORITHMS`](crate::sampler::ALGORITHMS): no command can run it.
pub static OWN: Algorithm = Algorithm {
    name: "own",
    summary: "a sampler of the embedding program, with the questions that it planned",
    kind: Kind::Private(&Own),
    columns: &[],
    settings: &[
        Setting::noise_split.or(Unset::Number(0.5)),
        Setting::batch_rate.or(Unset::ALL_RECORDS),
        Setting::clip_gradient.or(Unset::CLIP),
        Setting::clip_log_ratio.or(Unset::CLIP),
    ],
};

#[derive(Debug)]
struct Own;

impl Sampler for Own {
    fn lines(&self, request: &PlanRequest, iterations: u64) -> Result<Vec<Line>, PlanError> {
        let Allowance {
            gradients,
            log_ratios,
        } = request.allowance;
        let split = request.noise_split();
        let share = |other: u64, split: f64| Noise::Share(if other > 0 { split } else { 1.0 });
        let mut lines = Vec::new();
        if gradients > 0 {
            lines.push(Line {
                what: "gradient",
                question: Question::Gradient,
                noise: share(log_ratios, split),
                count: over_chains(gradients.checked_mul(iterations), request.chains)?,
                subsampling: request.batches()?,
            });
        }
        if log_ratios > 0 {
            let noise = share(gradients, 1.0 - split);
            lines.push(Line::log_ratios(noise, log_ratios, iterations, request)?);
        }
        if lines.is_empty() {
            return Err(PlanError::Settings(
                "no question is planned: say how many gradients or log-ratios a chain asks for"
                    .into(),
            ));
        }
        Ok(lines)
    }

    fn warnings(&self, _: &Plan) -> Vec<String> {
        Vec::new()
    }

    fn default_step_size(&self, _: &PlanRequest) -> f64 {
        f64::NAN
    }

    fn chain(
        &self,
        _: &Plan,
        theta: Vec<f64>,
        _: &mut dyn Oracle,
        _: &mut ChaCha8Rng,
    ) -> Box<dyn Walker> {
        Box::new(Still { theta })
    }
}

/// Stays where it is.
struct Still {
    theta: Vec<f64>,
}

impl Walker for Still {
    fn step(&mut self, _: &mut dyn Oracle, _: &mut ChaCha8Rng) -> Result<Step, SampleError> {
        Err(SampleError::NotOurs)
    }

    fn theta(&self) -> &[f64] {
        &self.theta
    }

    fn tune(&mut self, _: f64, _: &Metric) {}

    fn save(&self) -> Value {
        Value::Null
    }

    fn restore(&mut self, _: &Value) -> Result<(), SampleError> {
        Err(SampleError::NotOurs)
    }
}
