//! Whether samplers leave the posterior invariant: a joint-distribution test on three
//! small models.
//!
//! Draw theta from the prior and data from the model: then theta is an exact draw from
//! the posterior given the data, and so must be the position of a chain that started there
//! and took k steps (Geweke 2004; Cook, Gelman and Rubin 2006). No burn-in, no reference
//! draws. Over independent repetitions the means of f(theta, data) before and after are
//! compared, for f each coordinate, its square, and the log-likelihood, in standard
//! errors of their paired difference.
//!
//! False alarms: a test looks at no more than 5 statistics and allows [`ALLOWED`]
//! standard errors, so that it fails by chance with probability below 1e-5 (and not at
//! all with the seeds that are fixed here). Power: each planted error must reach
//! [`CAUGHT`] on one of the models; see `planted_errors_are_caught` here, and the stale
//! gradient in `dp_hmc_tests`.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use crate::accounting::Real;
use crate::sampler::contract::oracle::{Oracle, Ratio, SampleError};
use crate::sampler::contract::plan::Plan;
use crate::sampler::contract::request::{Iterations, PlanRequest};
use crate::sampler::{Kind, lookup};

/// The largest deviation of a mean, in standard errors.
pub(crate) const ALLOWED: f64 = 5.0;

/// The least deviation under a planted error: three standard errors more, so that a run
/// with other seeds would miss it with a probability below 1%.
pub(crate) const CAUGHT: f64 = ALLOWED + 3.0;

/// Chains of this many steps.
pub(crate) const STEPS: usize = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Model {
    /// y ~ N(theta_1, e^theta_2), five records.
    Normal,
    /// y ~ Bernoulli(logit^-1(theta_1 + theta_2 x)), eight records.
    Logistic,
    /// y ~ N(theta_1 + theta_2^2, 1), four records: a banana.
    Banana,
}

pub(crate) const MODELS: [Model; 3] = [Model::Normal, Model::Logistic, Model::Banana];

/// An error planted in the oracle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Planted {
    Nothing,
    PenaltyDropped,
    RatioSign,
    HalvedNoise,
}

/// Predictors of the logistic regression.
const X: [f64; 8] = [-2.0, -1.5, -1.0, -0.5, 0.5, 1.0, 1.5, 2.0];

/// Exact sums plus Gaussian noise, for a model with data.
pub(crate) struct Toy {
    model: Model,
    data: Vec<f64>,
    planted: Planted,
    rng: ChaCha8Rng,
    /// The last gradient that was returned.
    pub last_gradient: Vec<f64>,
}

impl Toy {
    /// Standard deviation of the noise on gradients.
    const GRADIENT_NOISE: f64 = 2.5;
    /// Standard deviation of the noise on a log-ratio, per unit of distance.
    const RATIO_NOISE: f64 = 2.5;

    fn draw(model: Model, planted: Planted, seed: u64) -> (Toy, Vec<f64>) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let normal = |rng: &mut ChaCha8Rng| -> f64 { StandardNormal.sample(rng) };
        let theta = vec![normal(&mut rng), normal(&mut rng)];
        let data = match model {
            Model::Normal => (0..5)
                .map(|_| theta[0] + theta[1].exp() * normal(&mut rng))
                .collect(),
            Model::Logistic => X
                .iter()
                .map(|x| {
                    let p = 1.0 / (1.0 + (-(theta[0] + theta[1] * x)).exp());
                    f64::from(u8::from(rng.random::<f64>() < p))
                })
                .collect(),
            Model::Banana => (0..4)
                .map(|_| theta[0] + theta[1] * theta[1] + normal(&mut rng))
                .collect(),
        };
        let toy = Toy {
            model,
            data,
            planted,
            rng,
            last_gradient: Vec::new(),
        };
        (toy, theta)
    }

    fn log_likelihood(&self, theta: &[f64]) -> f64 {
        let (a, b) = (theta[0], theta[1]);
        let normal = |y: f64, mean: f64, log_sd: f64| {
            let z = (y - mean) * (-log_sd).exp();
            -0.5 * z * z - log_sd
        };
        match self.model {
            Model::Normal => self.data.iter().map(|&y| normal(y, a, b)).sum(),
            Model::Logistic => X
                .iter()
                .zip(&self.data)
                .map(|(x, y)| {
                    let eta = (2.0 * y - 1.0) * (a + b * x);
                    -(-eta).exp().ln_1p()
                })
                .sum(),
            Model::Banana => self.data.iter().map(|&y| normal(y, a + b * b, 0.0)).sum(),
        }
    }

    fn log_likelihood_gradient(&self, theta: &[f64]) -> Vec<f64> {
        let (a, b) = (theta[0], theta[1]);
        let mut gradient = vec![0.0; 2];
        for (i, &y) in self.data.iter().enumerate() {
            let (first, second) = match self.model {
                Model::Normal => {
                    let z = (y - a) * (-b).exp();
                    (z * (-b).exp(), z * z - 1.0)
                }
                Model::Logistic => {
                    let residual = y - 1.0 / (1.0 + (-(a + b * X[i])).exp());
                    (residual, residual * X[i])
                }
                Model::Banana => (y - a - b * b, 2.0 * b * (y - a - b * b)),
            };
            gradient[0] += first;
            gradient[1] += second;
        }
        gradient
    }

    /// The statistics that are compared: coordinates, their squares, the log-likelihood.
    /// Squashed where heavy tails would leave no finite variance.
    fn statistics(&self, theta: &[f64]) -> [f64; 5] {
        [
            theta[0],
            theta[1],
            theta[0] * theta[0],
            theta[1] * theta[1],
            (self.log_likelihood(theta) / 20.0).tanh(),
        ]
    }

    fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.rng)
    }
}

impl Oracle for Toy {
    fn dimension(&self) -> usize {
        2
    }

    fn log_prior(&mut self, theta: &[f64]) -> f64 {
        -0.5 * (theta[0] * theta[0] + theta[1] * theta[1])
    }

    fn gradient(&mut self, _: usize, theta: &[f64]) -> Result<Vec<f64>, SampleError> {
        let exact = self.log_likelihood_gradient(theta);
        let noisy: Vec<f64> = exact
            .iter()
            .zip(theta)
            .map(|(g, t)| g - t + Toy::GRADIENT_NOISE * self.normal())
            .collect();
        self.last_gradient.clone_from(&noisy);
        Ok(noisy)
    }

    fn log_ratio(&mut self, _: usize, from: &[f64], to: &[f64]) -> Result<Ratio, SampleError> {
        let distance = (from[0] - to[0]).hypot(from[1] - to[1]);
        let sigma = Toy::RATIO_NOISE * distance;
        let exact = self.log_likelihood(to) - self.log_likelihood(from);
        let noise = self.normal();
        let (sign, noise_scale, penalty) = match self.planted {
            Planted::Nothing => (1.0, 1.0, 1.0),
            Planted::PenaltyDropped => (1.0, 1.0, 0.0),
            Planted::RatioSign => (-1.0, 1.0, 1.0),
            Planted::HalvedNoise => (1.0, 0.5, 1.0),
        };
        Ok(Ratio::Penalised(
            sign * exact + noise_scale * sigma * noise - penalty * sigma * sigma / 2.0,
        ))
    }

    fn accept(&mut self, log_probability: f64) -> bool {
        self.rng.random::<f64>() < log_probability.exp()
    }
}

/// The largest of the five deviations, in standard errors. `step` makes the steps: it
/// takes the start of the chain and returns its end.
pub(crate) fn deviation(
    model: Model,
    planted: Planted,
    repetitions: u64,
    run: impl Fn(Vec<f64>, &mut Toy, &mut ChaCha8Rng) -> Vec<f64>,
) -> f64 {
    let mut sums = [0.0; 5];
    let mut squares = [0.0; 5];
    for repetition in 0..repetitions {
        let (mut toy, theta) = Toy::draw(model, planted, 1_000_000 + repetition);
        let before = toy.statistics(&theta);
        let mut rng = ChaCha8Rng::seed_from_u64(repetition);
        let end = run(theta, &mut toy, &mut rng);
        let after = toy.statistics(&end);
        for i in 0..5 {
            let difference = after[i] - before[i];
            sums[i] += difference;
            squares[i] += difference * difference;
        }
    }
    let n = repetitions as f64;
    (0..5)
        .map(|i| {
            let mean = sums[i] / n;
            let variance = squares[i] / n - mean * mean;
            mean.abs() / (variance / n).sqrt()
        })
        .fold(0.0, f64::max)
}

/// Runs a registered sampler for [`STEPS`] steps through its public interface.
fn registered(
    algorithm: &str,
    request: impl Fn(PlanRequest) -> PlanRequest,
) -> impl Fn(Vec<f64>, &mut Toy, &mut ChaCha8Rng) -> Vec<f64> {
    let algorithm = lookup(algorithm).unwrap();
    let Kind::Private(sampler) = algorithm.kind else {
        panic!("a private sampler")
    };
    let plan = Plan::new(request(PlanRequest {
        algorithm,
        iterations: Iterations::Fixed(STEPS as u64),
        ..PlanRequest::new(Real::from(1.0), Real::from(1e-6), 2)
    }))
    .unwrap();
    move |theta, toy, rng| {
        let mut walker = sampler.chain(&plan, theta, toy, rng);
        for _ in 0..STEPS {
            walker.step(toy, rng).unwrap();
        }
        walker.theta().to_vec()
    }
}

/// A function from the start of a chain to its end.
type Run = Box<dyn Fn(Vec<f64>, &mut Toy, &mut ChaCha8Rng) -> Vec<f64>>;

/// The samplers whose target is exact, with steps for which the noise of a test is of
/// the order of a nat.
fn exact_samplers() -> Vec<(&'static str, Run)> {
    let hmc = |fresh_gradients, fixed_steps| {
        registered("dp-hmc", move |request| PlanRequest {
            settings: request
                .settings
                .step_size(0.4)
                .leapfrog_steps(3)
                .fresh_gradients(fresh_gradients)
                .fixed_steps(fixed_steps),
            ..request
        })
    };
    let penalty = |one_component, guided_walk| {
        registered("dp-penalty", move |request| PlanRequest {
            settings: request
                .settings
                .step_size(0.5)
                .one_component(one_component)
                .guided_walk(guided_walk),
            ..request
        })
    };
    let amagold = |friction| {
        registered("dp-amagold", move |request| PlanRequest {
            settings: (request.settings.step_size(0.4))
                .leapfrog_steps(3)
                .friction(friction),
            ..request
        })
    };
    vec![
        ("dp-hmc", Box::new(hmc(false, false))),
        ("dp-hmc --fresh-gradients", Box::new(hmc(true, false))),
        ("dp-hmc --fixed-steps", Box::new(hmc(false, true))),
        ("dp-penalty", Box::new(penalty(false, false))),
        ("dp-penalty --one-component", Box::new(penalty(true, false))),
        ("dp-penalty --guided-walk", Box::new(penalty(false, true))),
        ("dp-amagold", Box::new(amagold(0.25))),
        ("dp-amagold --friction 2", Box::new(amagold(2.0))),
    ]
}

const REPETITIONS: u64 = 40_000;

#[test]
fn exact_samplers_leave_the_posterior_invariant() {
    for (name, run) in exact_samplers() {
        for model in MODELS {
            let z = deviation(model, Planted::Nothing, REPETITIONS, &run);
            assert!(z < ALLOWED, "{name} on {model:?}: {z:.1} standard errors");
        }
    }
}

#[test]
fn planted_errors_are_caught() {
    for (name, run) in exact_samplers() {
        for planted in [
            Planted::PenaltyDropped,
            Planted::RatioSign,
            Planted::HalvedNoise,
        ] {
            let caught = MODELS
                .map(|model| deviation(model, planted, REPETITIONS, &run))
                .into_iter()
                .fold(0.0, f64::max);
            assert!(
                caught > CAUGHT,
                "{name} with {planted:?}: {caught:.1} standard errors"
            );
        }
    }
}
