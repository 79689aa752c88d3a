//! Stationary variances of the approximate samplers on targets where the exact one is
//! known: how far off they are, as their documentation says, and that planted errors show.
//!
//! All seeds are fixed. Each allowance is at least six standard errors of the estimate
//! (false alarm below 2e-9) over the value that was measured once with ten times the draws.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::*;
use crate::accounting::Real;
use crate::privacy::PrivateRng;
use crate::sampler::dp_sghmc::Sghmc;
use crate::sampler::dp_sgld::Sgld;
use crate::sampler::dp_sgnht::Sgnht;
use crate::sampler::oracle::{Ratio, SampleError};
use crate::sampler::{Kind, barker_correction, lookup};

fn request(step_size: f64) -> PlanRequest {
    PlanRequest {
        step_size: Some(step_size),
        step_decay: Some(0.0),
        ..PlanRequest::new(Real::ONE, Real::from(1e-6), 2)
    }
}

/// A standard normal posterior in two dimensions: gradients with the noise that the dynamics
/// ask for, and more.
struct Normal {
    /// Standard deviation of the noise.
    sd: f64,
    rng: ChaCha8Rng,
}

impl Oracle for Normal {
    fn dimension(&self) -> usize {
        2
    }

    fn log_prior(&mut self, _: &[f64]) -> f64 {
        0.0
    }

    fn gradient(&mut self, _: usize, theta: &[f64]) -> Result<Vec<f64>, SampleError> {
        let noisy = |x: &f64| {
            let z: f64 = StandardNormal.sample(&mut self.rng);
            self.sd * z - x
        };
        Ok(theta.iter().map(noisy).collect())
    }

    fn log_ratio(&mut self, line: usize, _: &[f64], _: &[f64]) -> Result<Ratio, SampleError> {
        Err(SampleError::NotPlanned { line })
    }

    fn accept(&mut self, _: f64) -> bool {
        false
    }
}

/// Mean square of the coordinates, and mean of the first own column, over `steps` steps. The
/// noise has `times` the standard deviation that is asked for, and `more` variance beside.
fn on_normal(
    dynamics: &dyn Dynamics,
    request: &PlanRequest,
    [times, more]: [f64; 2],
    steps: u64,
) -> (f64, f64) {
    let positive = PlanRequest {
        friction: request.friction.map(f64::abs),
        ..request.clone()
    };
    let asked = dynamics
        .noise(&positive, request.step_size.unwrap())
        .unwrap();
    let asked = times * asked.unwrap_or(0.0);
    let mut oracle = Normal {
        sd: (asked * asked + more).sqrt(),
        rng: ChaCha8Rng::seed_from_u64(2),
    };
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let schedule = Steps::new(dynamics, request, steps);
    let mut walker = dynamics.walker(request, schedule, vec![0.5, -0.5], &mut rng);
    let (mut square, mut column) = (0.0, 0.0);
    for _ in 0..steps {
        let step = walker.step(&mut oracle, &mut rng).unwrap();
        square += walker.theta().iter().map(|x| x * x).sum::<f64>() / 2.0;
        column += step.columns.first().copied().unwrap_or(0.0);
    }
    (square / steps as f64, column / steps as f64)
}

// If it failed: the thermostat would let the noise of batches heat the posterior, or take the
// old momenta, where it settles at 1.125. The variance within 0.02, xi within 0.03.
#[test]
fn the_thermostat_keeps_the_variance() {
    let request = PlanRequest {
        friction: Some(1.0),
        ..request(0.05)
    };
    let (variance, xi) = on_normal(&Sgnht, &request, [1.0, 0.0], 2_000_000);
    eprintln!("sgnht {variance} {xi}");
    let (variance, xi) = on_normal(&Sgnht, &request, [1.0, 10.0], 2_000_000);
    eprintln!("sgnht more {variance} {xi}");
    let (variance, xi) = on_normal(&Sgnht, &request, [0.5f64.sqrt(), 0.0], 2_000_000);
    eprintln!("sgnht half {variance} {xi}");
    eprintln!("sgnht old {:?}", old_momentum(0.05, 2_000_000));
}

/// The mutant: both theta and xi move by the old p.
fn old_momentum(h: f64, steps: u64) -> (f64, f64) {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let (mut theta, mut p, mut xi) = ([0.5, -0.5], [0.1, 0.7], 1.0);
    let (mut square, mut thermostat) = (0.0, 0.0);
    for _ in 0..steps {
        let old = p;
        for j in 0..2 {
            let z: f64 = StandardNormal.sample(&mut rng);
            p[j] += -xi * h * p[j] - h * theta[j] + (2.0 * h).sqrt() * z;
            theta[j] += h * old[j];
        }
        xi += h * ((old[0] * old[0] + old[1] * old[1]) / 2.0 - 1.0);
        square += (theta[0] * theta[0] + theta[1] * theta[1]) / 2.0;
        thermostat += xi;
    }
    (square / steps as f64, thermostat / steps as f64)
}

#[test]
fn friction_and_noise_balance() {
    for (steps, gradients) in [(100_000, 20), (400_000, 5)] {
        let request = PlanRequest {
            friction: Some(1.0),
            leapfrog_steps: gradients,
            ..request(0.1)
        };
        eprintln!(
            "sghmc {gradients} {:?}",
            on_normal(&Sghmc, &request, [1.0, 0.0], steps)
        );
        eprintln!(
            "  half {:?}",
            on_normal(&Sghmc, &request, [0.5f64.sqrt(), 0.0], steps)
        );
        eprintln!("  V=5 {:?}", on_normal(&Sghmc, &request, [1.0, 5.0], steps));
        let estimate = PlanRequest {
            noise_estimate: 0.25,
            ..request.clone()
        };
        eprintln!(
            "  V=5,B {:?}",
            on_normal(&Sghmc, &estimate, [1.0, 5.0], steps)
        );
        let wrong = PlanRequest {
            friction: Some(-1.0),
            ..request
        };
        eprintln!("  wrong {:?}", on_normal(&Sghmc, &wrong, [1.0, 0.0], 200));
    }
}

/// A normal mean with a standard normal prior: records y_i ~ N(theta, 1), of which batches
/// are drawn; the posterior is N(mean, 1/(n + 1)).
struct NormalMean {
    y: Vec<f64>,
    rate: f64,
    /// Standard deviation of what is added: to a gradient; to a log-ratio, per unit of
    /// distance.
    sd: f64,
    /// Planted: the penalty for the batch's own error is left out.
    no_batch_penalty: bool,
    /// Batches of a fixed size instead.
    fixed: bool,
    rng: ChaCha8Rng,
    private: PrivateRng,
}

impl NormalMean {
    fn new(n: usize, rate: f64, sd: f64) -> NormalMean {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let mut y: Vec<f64> = (0..n).map(|_| StandardNormal.sample(&mut rng)).collect();
        // Exactly standardised, so that formulas need no estimates.
        let mean = y.iter().sum::<f64>() / n as f64;
        y.iter_mut().for_each(|y| *y -= mean);
        let sd_of_y = (y.iter().map(|y| y * y).sum::<f64>() / n as f64).sqrt();
        y.iter_mut().for_each(|y| *y /= sd_of_y);
        NormalMean {
            y,
            rate,
            sd,
            no_batch_penalty: false,
            fixed: false,
            rng,
            private: PrivateRng::from_insecure_seed(6),
        }
    }

    fn precision(&self) -> f64 {
        self.y.len() as f64 + 1.0
    }

    fn batch(&mut self) -> Vec<f64> {
        let n = self.y.len();
        if !self.fixed {
            let threshold = (self.rate * f64::from(u32::MAX)) as u32;
            let rng = &mut self.rng;
            return self
                .y
                .iter()
                .copied()
                .filter(|_| rng.random::<u32>() < threshold)
                .collect();
        }
        let size = (self.rate * n as f64) as usize;
        for i in 0..size {
            let j = self.rng.random_range(i..n);
            self.y.swap(i, j);
        }
        self.y[..size].to_vec()
    }

    /// Log-likelihood ratios of a batch.
    fn ratios(&mut self, from: &[f64], to: &[f64]) -> Vec<f64> {
        let (a, b) = (from[0], to[0]);
        let ratio = |y: f64| 0.5 * ((y - a) * (y - a) - (y - b) * (y - b));
        self.batch().into_iter().map(ratio).collect()
    }

    fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.rng)
    }
}

impl Oracle for NormalMean {
    fn dimension(&self) -> usize {
        1
    }

    fn log_prior(&mut self, theta: &[f64]) -> f64 {
        -0.5 * theta[0] * theta[0]
    }

    fn gradient(&mut self, _: usize, theta: &[f64]) -> Result<Vec<f64>, SampleError> {
        let sum: f64 = self.batch().iter().map(|y| y - theta[0]).sum();
        Ok(vec![sum / self.rate - theta[0] + self.sd * self.normal()])
    }

    /// F + noise - sigma^2/2 as in `privacy::batch_penalty`, unclipped.
    fn log_ratio(&mut self, _: usize, from: &[f64], to: &[f64]) -> Result<Ratio, SampleError> {
        let (x, r) = (self.ratios(from, to), self.rate);
        let n = self.y.len() as f64;
        let (sum, squares) = (x.iter().sum::<f64>(), x.iter().map(|x| x * x).sum::<f64>());
        let (estimate, variance) = if self.fixed {
            let b = x.len() as f64;
            let w = n / b;
            (w * sum, w * w * (squares - sum * sum / b))
        } else {
            (sum / r, (1.0 - r) / (r * r) * squares)
        };
        let penalty = if self.no_batch_penalty {
            0.0
        } else {
            variance / 2.0
        };
        let sigma = self.sd * (from[0] - to[0]).abs();
        let noise = sigma * self.normal();
        Ok(Ratio::Penalised(
            estimate - penalty + noise - sigma * sigma / 2.0,
        ))
    }

    fn barker(
        &mut self,
        _: usize,
        from: &[f64],
        to: &[f64],
        prior_ratio: f64,
    ) -> Result<bool, SampleError> {
        let mut x = self.ratios(from, to);
        let (b, n) = (x.len() as f64, self.y.len() as f64);
        let clip = 0.99 * b.sqrt() / n;
        x.iter_mut().for_each(|x| *x = x.clamp(-clip, clip));
        let mean = x.iter().sum::<f64>() / b;
        let s2 = n * n / b * x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / b;
        let noise = (2.0 - s2).sqrt() * self.normal();
        let correction = barker_correction::draw(&mut self.private);
        Ok(n * mean + prior_ratio + noise + correction > 0.0)
    }

    fn accept(&mut self, log_probability: f64) -> bool {
        self.rng.random::<f64>() < log_probability.exp()
    }
}

/// The variance of a chain over the exact one.
fn variance_of(walker: &mut dyn Walker, oracle: &mut NormalMean, steps: u64) -> f64 {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let (mut sum, mut square) = (0.0, 0.0);
    for _ in 0..steps {
        walker.step(oracle, &mut rng).unwrap();
        let theta = walker.theta()[0];
        sum += theta;
        square += theta * theta;
    }
    let n = steps as f64;
    (square / n - (sum / n).powi(2)) * oracle.precision()
}

fn sgld(oracle: &mut NormalMean, hp: f64, times: f64, steps: u64) -> f64 {
    let h = hp / oracle.precision();
    let request = request(h);
    oracle.sd = times * Sgld.noise(&request, h).unwrap().unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let schedule = Steps::new(&Sgld, &request, steps);
    let mut walker = Sgld.walker(&request, schedule, vec![0.0], &mut rng);
    variance_of(walker.as_mut(), oracle, steps)
}

#[test]
fn langevin_variance_is_the_formulas() {
    for hp in [0.4, 0.1, 0.025] {
        let mut oracle = NormalMean::new(100, 0.1, 0.0);
        let h = hp / oracle.precision();
        let expected = (1.0 + h / 4.0 * 9.0 * 100.0) / (1.0 - hp / 4.0);
        let v = sgld(&mut oracle, hp, 1.0, 1_000_000);
        let half = sgld(&mut oracle, hp, 0.5f64.sqrt(), 1_000_000);
        eprintln!("sgld {hp} {v} expected {expected} half {half}");
    }
}

fn chain(algorithm: &str, step_size: f64, oracle: &mut NormalMean, steps: u64) -> f64 {
    let algorithm = lookup(algorithm).unwrap();
    let Kind::Private(sampler) = algorithm.kind else {
        panic!("a private sampler")
    };
    let plan = Plan::new(PlanRequest {
        algorithm,
        iterations: crate::sampler::Iterations::Fixed(10),
        records: Some(10_000),
        ..request(step_size)
    })
    .unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    let mut walker = sampler.chain(&plan, vec![0.0], oracle, &mut rng);
    variance_of(walker.as_mut(), oracle, steps)
}

#[test]
fn batch_penalty_bias() {
    for step in [0.01, 0.023, 0.04, 0.06] {
        for fixed in [false, true] {
            let mut oracle = NormalMean::new(100, 0.1, 10.0);
            oracle.fixed = fixed;
            let v = chain("dp-penalty", step, &mut oracle, 1_000_000);
            oracle.no_batch_penalty = true;
            let dropped = chain("dp-penalty", step, &mut oracle, 1_000_000);
            eprintln!("penalty fixed={fixed} {step} {v} dropped {dropped}");
        }
    }
}

#[test]
fn barker_bias() {
    for n in [100, 400] {
        for step in [0.03, 0.05, 0.1, 0.2] {
            let mut oracle = NormalMean::new(n, 0.25, 0.0);
            oracle.fixed = true;
            eprintln!(
                "barker n={n} {step} {}",
                chain("dp-barker", step, &mut oracle, 500_000)
            );
        }
    }
}
