//! DP-HMC on a one-dimensional target whose gradient and ratio noise we control.
//!
//! Target: standard normal, half of it prior and half likelihood. With 40 independent chains
//! of 5,000 iterations and a lag-1 autocorrelation below 0.95 the variance of
//! the pooled draws has a standard error below 0.02; tolerances are about 8 of
//! it (false alarm far below 1e-6). The mutants at the end show the power:
//! each planted error moves the variance by several times the tolerance.

use super::*;
use crate::sampler::invariance_tests::{ALLOWED, CAUGHT, MODELS, Planted, STEPS, Toy, deviation};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Normal, StandardNormal};

#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    PenaltyDropped,
    RatioSign,
    HalvedNoise,
}

struct Gaussian {
    sigma_gradient: f64,
    sigma_ratio_per_distance: f64,
    mutant: Mutant,
    rng: ChaCha8Rng,
    gradients: u64,
    ratios: u64,
}

impl Oracle for Gaussian {
    fn dimension(&self) -> usize {
        1
    }

    /// Half of the target is prior: a prior ratio dropped, or with the wrong
    /// sign, leaves another variance.
    fn log_prior(&mut self, theta: &[f64]) -> f64 {
        -0.25 * theta[0] * theta[0]
    }

    fn gradient(&mut self, _: usize, theta: &[f64]) -> Result<Vec<f64>, SampleError> {
        self.gradients += 1;
        let noise: f64 = StandardNormal.sample(&mut self.rng);
        Ok(vec![-theta[0] + self.sigma_gradient * noise])
    }

    fn log_ratio(&mut self, _: usize, from: &[f64], to: &[f64]) -> Result<Ratio, SampleError> {
        self.ratios += 1;
        let mut exact = 0.25 * (from[0] * from[0] - to[0] * to[0]);
        let sigma = self.sigma_ratio_per_distance * (from[0] - to[0]).abs();
        let drawn = if self.mutant == Mutant::HalvedNoise {
            sigma / 2.0
        } else {
            sigma
        };
        if self.mutant == Mutant::RatioSign {
            exact = -exact;
        }
        let noise = Normal::new(0.0, drawn).map_or(0.0, |n| n.sample(&mut self.rng));
        let penalty = if self.mutant == Mutant::PenaltyDropped {
            0.0
        } else {
            sigma * sigma / 2.0
        };
        Ok(Ratio::Penalised(exact + noise - penalty))
    }

    fn accept(&mut self, log_probability: f64) -> bool {
        self.rng.random::<f64>() < log_probability.exp()
    }
}

struct Moments {
    mean: f64,
    variance: f64,
    fourth: f64,
    acceptance: f64,
}

fn simulate(fresh: bool, mutant: Mutant) -> Moments {
    let settings = Settings {
        step_size: 1.2,
        leapfrog_steps: 3,
        fresh_gradients: fresh,
        fixed_steps: false,
        metric: Metric::Unit,
    };
    let (chains, iterations, warmup) = (40, 5000, 100);
    let (mut n, mut accepted) = (0.0, 0.0);
    let mut sums = [0.0; 3];
    for chain in 0..chains {
        let mut oracle = Gaussian {
            sigma_gradient: 2.0,
            sigma_ratio_per_distance: 1.5,
            mutant,
            rng: ChaCha8Rng::seed_from_u64(1000 + chain),
            gradients: 0,
            ratios: 0,
        };
        let mut rng = ChaCha8Rng::seed_from_u64(chain);
        let mut jitter = Jitter::new(&mut rng);
        let mut state = init(vec![0.5], &mut oracle);
        for i in 0..iterations {
            let (next, info) = step(&state, &mut oracle, &settings, &mut jitter, &mut rng).unwrap();
            state = next;
            if i >= warmup {
                let x = state.theta[0];
                sums[0] += x;
                sums[1] += x * x;
                sums[2] += x.powi(4);
                n += 1.0;
                accepted += f64::from(u8::from(info.accepted));
            }
        }
        // Cost: k L + 1 gradients when reused, k (L + 1) when fresh.
        let k = iterations;
        assert_eq!(oracle.ratios, k);
        assert_eq!(oracle.gradients, if fresh { k * 4 } else { k * 3 + 1 });
    }
    Moments {
        mean: sums[0] / n,
        variance: sums[1] / n,
        fourth: sums[2] / n,
        acceptance: accepted / n,
    }
}

#[test]
fn both_variants_leave_the_target_invariant() {
    for fresh in [false, true] {
        let m = simulate(fresh, Mutant::None);
        assert!(m.acceptance > 0.1 && m.acceptance < 0.9, "{}", m.acceptance);
        assert!(m.mean.abs() < 0.1, "fresh {fresh}: mean {}", m.mean);
        assert!(
            (m.variance - 1.0).abs() < 0.1,
            "fresh {fresh}: variance {}",
            m.variance
        );
        assert!(
            (m.fourth - 3.0).abs() < 0.9,
            "fresh {fresh}: fourth moment {}",
            m.fourth
        );
    }
}

#[test]
fn planted_errors_are_caught() {
    for mutant in [
        Mutant::PenaltyDropped,
        Mutant::RatioSign,
        Mutant::HalvedNoise,
    ] {
        let m = simulate(false, mutant);
        let caught = m.mean.abs() >= 0.1 || (m.variance - 1.0).abs() >= 0.1;
        assert!(caught, "mean {} variance {}", m.mean, m.variance);
    }
}

/// Steps are evenly spread between 0 and the step size, or equal to it.
#[test]
fn steps_are_jittered_unless_they_are_fixed() {
    let sizes = |fixed_steps| {
        let settings = Settings {
            step_size: 0.5,
            leapfrog_steps: 1,
            fresh_gradients: false,
            fixed_steps,
            metric: Metric::Unit,
        };
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        let mut jitter = Jitter::new(&mut rng);
        let mut oracle = Gaussian {
            sigma_gradient: 2.0,
            sigma_ratio_per_distance: 1.5,
            mutant: Mutant::None,
            rng: ChaCha8Rng::seed_from_u64(9),
            gradients: 0,
            ratios: 0,
        };
        let mut state = init(vec![0.0], &mut oracle);
        let mut size = || {
            let (next, info) = step(&state, &mut oracle, &settings, &mut jitter, &mut rng).unwrap();
            state = next;
            info.step_size
        };
        (0..64).map(|_| size()).collect::<Vec<f64>>()
    };
    assert!(sizes(true).iter().all(|&h| h == 0.5));
    let jittered = sizes(false);
    let mean = jittered.iter().sum::<f64>() / 64.0;
    assert!((mean - 0.25).abs() < 0.01, "{mean}");
    assert!(jittered.iter().all(|&h| h > 0.0 && h <= 0.5));
}

/// A chain that rejects must continue with the gradient at its own position. Planted: it
/// continues with the last one that it received, that of the rejected point.
#[test]
fn a_stale_gradient_after_rejection_is_caught() {
    let settings = Settings {
        step_size: 0.4,
        leapfrog_steps: 3,
        fresh_gradients: false,
        fixed_steps: false,
        metric: Metric::Unit,
    };
    let run = |stale: bool| {
        let settings = settings.clone();
        move |theta: Vec<f64>, toy: &mut Toy, rng: &mut ChaCha8Rng| {
            let mut jitter = Jitter::new(rng);
            let mut state = init(theta, toy);
            for _ in 0..STEPS {
                let (next, info) = step(&state, toy, &settings, &mut jitter, rng).unwrap();
                state = next;
                if stale && !info.accepted {
                    state.gradient = Some(toy.last_gradient.clone());
                }
            }
            state.theta
        }
    };
    let worst = |stale| {
        MODELS
            .map(|model| deviation(model, Planted::Nothing, 20_000, run(stale)))
            .into_iter()
            .fold(0.0, f64::max)
    };
    let (right, wrong) = (worst(false), worst(true));
    assert!(right < ALLOWED, "{right:.1}");
    assert!(wrong > CAUGHT, "{wrong:.1}");
}
