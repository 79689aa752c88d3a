//! The stochastic-gradient samplers without privacy: the same dynamics on exact gradients of
//! batches, with no more noise than they need.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::privacy::{GradientScale, NotPrivate, PrivateRng, Vault};
use crate::sampler::chain::draw::{Draw, Phase};
use crate::sampler::chain::run::{Chain, Observer, Recorder, in_parallel};
use crate::sampler::contract::dynamics::Dynamics;
use crate::sampler::contract::dynamics::Steps;
use crate::sampler::contract::initial::start;
use crate::sampler::contract::oracle::{Oracle, Ratio, SampleError};
use crate::sampler::contract::plan::{PlanError, check_settings};
use crate::sampler::contract::request::PlanRequest;
use crate::sampler::contract::schedule::{Line, Noise, factor};
use crate::sampler::random::public_rng;
use crate::sampler::reference::NonPrivateRun;
use crate::sampler::stochastic::lines;

/// Runs `sgld`, `sgnht`, `sghmc` or `naive-sghmc`. Gradients are clipped where a bound is given.
pub(crate) fn sample(
    vault: &Vault,
    dynamics: &dyn Dynamics,
    run: &NonPrivateRun,
    permission: NotPrivate,
    observer: &impl Observer,
) -> Result<Vec<Chain>, SampleError> {
    let (request, iterations) = (&run.request, run.iterations());
    let schedule = schedule(request, dynamics, iterations).map_err(Box::new)?;
    let clipped = request.settings.clip_gradient.is_some();
    let scale = clipped
        .then(|| GradientScale::new(request.clip_gradient(), 1, 1.0))
        .transpose()?;
    let batches = PrivateRng::insecure(run.seed, permission);
    in_parallel(request.chains as usize, observer, |chain, stop| {
        let mut rng = public_rng(run.seed, chain);
        let mut noise = ChaCha8Rng::seed_from_u64(run.seed);
        noise.set_stream(u64::MAX - chain as u64);
        let theta = start(&run.initial, chain, vault.density(), &mut rng)?;
        let mut oracle = OpenOracle {
            vault,
            permission,
            request,
            lines: &schedule,
            scale,
            batches: batches.fork(chain as u64)?,
            noise,
        };
        let steps = Steps::new(dynamics, request, iterations);
        let mut walker = dynamics.walker(request, steps, theta, &mut rng);
        let mut recorder = Recorder::new(chain, run.num_warmup, observer).timed(permission);
        for iteration in 0..iterations {
            if stop() {
                return Ok(recorder.finish(true));
            }
            let step = walker.step(&mut oracle, &mut rng)?;
            recorder.record(
                iteration,
                step.accepted,
                Draw {
                    phase: Phase::Sampling,
                    accept_stat: step.accept_stat,
                    step_size: step.step_size,
                    divergent: !step.accepted,
                    sampler: step.columns,
                    values: vault.density().outputs(walker.theta()),
                },
            );
        }
        Ok(recorder.finish(false))
    })
}

fn schedule(
    request: &PlanRequest,
    dynamics: &dyn Dynamics,
    iterations: u64,
) -> Result<Vec<Line>, PlanError> {
    check_settings(request)?;
    lines(dynamics, request, iterations)
}

/// Exact gradients of batches, with the lines' noise.
struct OpenOracle<'a> {
    vault: &'a Vault,
    permission: NotPrivate,
    request: &'a PlanRequest,
    lines: &'a [Line],
    /// Where gradients are clipped.
    scale: Option<GradientScale>,
    batches: PrivateRng,
    noise: ChaCha8Rng,
}

impl Oracle for OpenOracle<'_> {
    fn dimension(&self) -> usize {
        self.vault.density().dimension()
    }

    fn log_prior(&mut self, theta: &[f64]) -> f64 {
        self.vault.density().log_prior(theta)
    }

    fn gradient(&mut self, line: usize, theta: &[f64]) -> Result<Vec<f64>, SampleError> {
        let planned = self
            .lines
            .get(line)
            .ok_or(SampleError::NotPlanned { line })?;
        let (batches, rng) = (planned.subsampling, &mut self.batches);
        let sum = match &self.scale {
            None => self
                .vault
                .batch_gradient(theta, batches, self.permission, rng),
            Some(scale) => {
                self.vault
                    .clipped_batch_gradient(theta, scale, batches, self.permission, rng)
            }
        };
        let request = self.request;
        let weight = request.temperature * planned.weight(request);
        let sd = match planned.noise {
            Noise::AtLeast(tau) => {
                tau * f64::from(factor(request.relation)) * request.clip_gradient()
            }
            Noise::Share(_) | Noise::Fixed => 0.0,
        };
        let (_, prior) = self.vault.density().pull_back(theta, &[]);
        let mut gradient = Vec::with_capacity(prior.len());
        for (p, l) in prior.iter().zip(sum) {
            let z: f64 = StandardNormal.sample(&mut self.noise);
            gradient.push(p + weight * (l + sd * z));
        }
        Ok(gradient)
    }

    fn log_ratio(&mut self, line: usize, _: &[f64], _: &[f64]) -> Result<Ratio, SampleError> {
        Err(SampleError::NotPlanned { line })
    }

    fn accept(&mut self, _: f64) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounting::Real;
    use crate::density::Density;
    use crate::model::{Constants, Model};
    use crate::privacy::{OnBadRows, Rows};
    use crate::sampler::contract::settings::Settings;
    use crate::sampler::{Kind, lookup};

    // If it failed: without privacy, too, batches would not be scaled up to all records, or
    // tempered wrongly, or the prior would be missing. Oracle: the gradient of the tempered
    // posterior by hand. Six standard errors (false alarm 2e-9), against more than ten for a
    // rate, a temperature or the prior left out.
    #[test]
    fn gradients_of_batches_are_on_average_the_posteriors() {
        let source = "record { real y; }
            parameters { real mu; }
            model { mu ~ normal(0, 0.05); y ~ normal(mu, 1); }";
        let model = Model::from_source(source, &Constants::none()).unwrap();
        let ys: Vec<f64> = (0..100).map(|i| f64::from(i % 10) / 5.0).collect();
        let columns = vec![("y".into(), ys.clone())];
        let rows = Rows::from_columns(&model.columns, columns, OnBadRows::Error).unwrap();
        let vault = Vault::new(Density::new(model), rows).unwrap();
        let request = PlanRequest {
            algorithm: lookup("naive-sghmc").unwrap(),
            records: Some(100),
            temperature: 0.5,
            settings: Settings::new().batch_rate(Real::exact(0.25)).step_size(0.1),
            ..PlanRequest::new(Real::ONE, Real::ONE, 1)
        };
        let Kind::Open(dynamics) = request.algorithm.kind else {
            panic!("a sampler without privacy")
        };
        let theta = -0.4;
        let exact = 0.5 * ys.iter().map(|y| y - theta).sum::<f64>() - theta / 0.0025;
        for clipped in [false, true] {
            let lines = schedule(&request, dynamics, 10).unwrap();
            let mut oracle = OpenOracle {
                vault: &vault,
                permission: NotPrivate::acknowledged(),
                request: &request,
                lines: &lines,
                // Above every record's gradient.
                scale: clipped.then(|| GradientScale::new(4.0, 1, 1.0).unwrap()),
                batches: PrivateRng::from_insecure_seed(5),
                noise: ChaCha8Rng::seed_from_u64(6),
            };
            let draws = 3000;
            let gradients: Vec<f64> = (0..draws)
                .map(|_| oracle.gradient(0, &[theta]).unwrap()[0])
                .collect();
            let mean = gradients.iter().sum::<f64>() / f64::from(draws);
            let square = gradients.iter().map(|g| (g - mean).powi(2)).sum::<f64>();
            let error = square.sqrt() / f64::from(draws);
            assert!((mean - exact).abs() < 6.0 * error, "{mean} for {exact}");
            // The smallest factor that could be left out is T, which accounts for 65.
            assert!(65.0 > 16.0 * error, "{error}");
        }
    }
}
