//! The bias of the approximate samplers, on normal posteriors where the exact answer is known:
//! it is as documented, and planted errors are detected.
//!
//! All seeds are fixed. Standard errors are those of 100 batch means; every allowance is six
//! of them, a false-alarm rate below 4e-8 for each comparison (Student's t with 99 degrees
//! of freedom), 2e-6 for the forty or so that are made here if seeds were drawn anew.

mod batches_tests;
mod dynamics_tests;

use crate::sampler::contract::settings::Settings;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::accounting::Real;
use crate::sampler::contract::oracle::Oracle;
use crate::sampler::contract::request::PlanRequest;
use crate::sampler::contract::{Step, Walker};

/// An estimate and its standard error.
#[derive(Debug, Clone, Copy)]
struct Measured {
    value: f64,
    error: f64,
}

impl Measured {
    /// The estimate of a mean from `values`, which are consecutive and not independent.
    fn mean_of(values: &[f64]) -> Measured {
        const BATCHES: usize = 100;
        let length = values.len() / BATCHES;
        let means: Vec<f64> = values
            .chunks_exact(length)
            .map(|batch| batch.iter().sum::<f64>() / length as f64)
            .collect();
        let n = means.len() as f64;
        let value = means.iter().sum::<f64>() / n;
        let squares: f64 = means.iter().map(|m| (m - value).powi(2)).sum();
        Measured {
            value,
            error: (squares / (n * (n - 1.0))).sqrt(),
        }
    }

    fn over(self, unit: f64) -> Measured {
        Measured {
            value: self.value / unit,
            error: self.error / unit,
        }
    }

    /// Six standard errors, plus the rounding in the documentation.
    fn is(self, expected: f64, rounding: f64) -> bool {
        (self.value - expected).abs() < 6.0 * self.error + rounding
    }

    /// The estimate is the exact value up to its standard error.
    #[track_caller]
    fn must_be(self, expected: f64) {
        assert!(self.is(expected, 0.0), "{self:?}, expected {expected}");
    }

    /// The estimate is as documented, with two digits after the point.
    #[track_caller]
    fn must_be_about(self, documented: f64) {
        assert!(
            self.is(documented, 0.005),
            "{self:?}, documented {documented}"
        );
    }

    /// A planted error is detected.
    #[track_caller]
    fn must_not_be(self, expected: f64) {
        assert!(!self.is(expected, 0.005), "{self:?} is {expected}");
    }
}

/// Constant steps.
fn request(step_size: f64) -> PlanRequest {
    PlanRequest {
        settings: Settings::new().step_size(step_size).step_decay(0.0),
        ..PlanRequest::new(Real::ONE, Real::from(1e-6), 2)
    }
}

/// The means of K statistics of (theta before, theta after, the step) over `steps` steps,
/// of which a twentieth comes first and is not counted.
fn run<const K: usize>(
    walker: &mut dyn Walker,
    oracle: &mut dyn Oracle,
    steps: usize,
    statistics: impl Fn(&[f64], &[f64], &Step) -> [f64; K],
) -> [Measured; K] {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut values: [Vec<f64>; K] = std::array::from_fn(|_| Vec::with_capacity(steps));
    for i in 0..steps + steps / 20 {
        let before = walker.theta().to_vec();
        let step = walker.step(oracle, &mut rng).unwrap();
        if i >= steps / 20 {
            let now = statistics(&before, walker.theta(), &step);
            values.iter_mut().zip(now).for_each(|(v, now)| v.push(now));
        }
    }
    values.map(|v| Measured::mean_of(&v))
}
