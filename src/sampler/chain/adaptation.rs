//! Warm-up of the samplers without privacy, as in Stan.
//!
//! Stan Reference Manual, "Automatic parameter tuning": an initial buffer for
//! the step size, windows of doubling length for the metric, a final buffer.

use serde::{Deserialize, Serialize};

use crate::sampler::chain::exact_number;
use crate::sampler::contract::metric::Metric;

/// Dual averaging of the step size (Hoffman and Gelman 2014, section 3.2).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DualAveraging {
    target: f64,
    #[serde(with = "exact_number")]
    mu: f64,
    iteration: f64,
    #[serde(with = "exact_number")]
    error: f64,
    #[serde(with = "exact_number")]
    log_average: f64,
    #[serde(with = "exact_number")]
    log_step: f64,
}

impl DualAveraging {
    /// `target`: the acceptance statistic to aim for.
    pub fn new(step: f64, target: f64) -> Self {
        DualAveraging {
            target,
            mu: (10.0 * step).ln(),
            iteration: 0.0,
            error: 0.0,
            log_average: step.ln(),
            log_step: step.ln(),
        }
    }

    pub fn update(&mut self, accept_stat: f64) {
        const GAMMA: f64 = 0.05;
        const T0: f64 = 10.0;
        const KAPPA: f64 = 0.75;
        let accept_stat = if accept_stat.is_finite() {
            accept_stat.min(1.0)
        } else {
            0.0
        };
        self.iteration += 1.0;
        let weight = 1.0 / (self.iteration + T0);
        self.error = (1.0 - weight) * self.error + weight * (self.target - accept_stat);
        self.log_step = self.mu - self.iteration.sqrt() / GAMMA * self.error;
        let forget = self.iteration.powf(-KAPPA);
        self.log_average = forget * self.log_step + (1.0 - forget) * self.log_average;
    }

    /// The step to try next.
    pub fn step(&self) -> f64 {
        self.log_step.exp()
    }

    /// The step to keep; before any update, the first one.
    pub fn average_step(&self) -> f64 {
        self.log_average.exp()
    }
}

/// Running mean and covariance (Welford 1962).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Covariance {
    n: f64,
    #[serde(with = "exact_number::list")]
    mean: Vec<f64>,
    /// Sums of products of deviations; only the diagonal unless `dense`.
    #[serde(with = "exact_number::list")]
    products: Vec<f64>,
    dense: bool,
}

impl Covariance {
    pub fn new(dimension: usize, dense: bool) -> Self {
        Covariance {
            n: 0.0,
            mean: vec![0.0; dimension],
            products: vec![
                0.0;
                if dense {
                    dimension * dimension
                } else {
                    dimension
                }
            ],
            dense,
        }
    }

    pub fn dimension(&self) -> usize {
        self.mean.len()
    }

    pub fn add(&mut self, x: &[f64]) {
        self.n += 1.0;
        let before: Vec<f64> = x.iter().zip(&self.mean).map(|(x, m)| x - m).collect();
        for (m, d) in self.mean.iter_mut().zip(&before) {
            *m += d / self.n;
        }
        let after: Vec<f64> = x.iter().zip(&self.mean).map(|(x, m)| x - m).collect();
        let d = x.len();
        for (i, &deviation) in before.iter().enumerate() {
            if self.dense {
                let row = &mut self.products[i * d..(i + 1) * d];
                for (p, &a) in row.iter_mut().zip(&after) {
                    *p += deviation * a;
                }
            } else {
                self.products[i] += deviation * after[i];
            }
        }
    }

    /// The metric, shrunk towards a small multiple of the identity as in Stan.
    pub fn metric(&self) -> Option<Metric> {
        if self.n < 3.0 {
            return None;
        }
        let d = self.mean.len();
        let share = self.n / (self.n + 5.0);
        let ridge = 1e-3 * 5.0 / (self.n + 5.0);
        let estimate = |p: f64| share * p / (self.n - 1.0);
        if !self.dense {
            let v: Vec<f64> = self.products.iter().map(|&p| estimate(p) + ridge).collect();
            return v
                .iter()
                .all(|v| v.is_finite())
                .then_some(Metric::Diagonal(v));
        }
        let mut covariance = vec![0.0; d * d];
        for i in 0..d {
            for j in 0..d {
                let symmetric = 0.5 * (self.products[i * d + j] + self.products[j * d + i]);
                covariance[i * d + j] = estimate(symmetric) + if i == j { ridge } else { 0.0 };
            }
        }
        Metric::dense(covariance, d)
    }
}

/// Where the metric is re-estimated during warm-up.
#[derive(Debug, Clone)]
pub(crate) struct Windows {
    start: usize,
    ends: Vec<usize>,
}

impl Windows {
    /// Buffers 75 and 50 and a first window of 25, or 15 %, 10 % and the rest
    /// for short warm-ups, as in Stan.
    pub fn new(num_warmup: usize) -> Self {
        if num_warmup < 20 {
            return Windows {
                start: num_warmup,
                ends: Vec::new(),
            };
        }
        let (start, last, first) = if num_warmup >= 150 {
            (75, num_warmup - 50, 25)
        } else {
            let start = (0.15 * num_warmup as f64) as usize;
            let last = num_warmup - (0.1 * num_warmup as f64) as usize;
            (start, last, last - start)
        };
        let mut ends = Vec::new();
        let (mut position, mut window) = (start, first);
        while position < last {
            let mut end = position + window;
            // A window takes the rest if the next one, twice as long, would not fit.
            if end + 2 * window > last {
                end = last;
            }
            ends.push(end);
            position = end;
            window *= 2;
        }
        Windows { start, ends }
    }

    /// Whether draws of this iteration (0-based) count for the metric.
    pub fn collects(&self, iteration: usize) -> bool {
        iteration >= self.start && self.ends.last().is_some_and(|&end| iteration < end)
    }

    /// Whether a window ends in these iterations.
    pub fn closes_within(&self, iterations: std::ops::Range<usize>) -> bool {
        iterations.into_iter().any(|i| self.closes(i))
    }

    /// Whether a window ends after this iteration.
    pub fn closes(&self, iteration: usize) -> bool {
        self.ends.contains(&(iteration + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_those_of_stan() {
        let windows = Windows::new(1000);
        assert_eq!(windows.start, 75);
        assert_eq!(windows.ends, [100, 150, 250, 450, 950]);
        assert!(!windows.collects(74) && windows.collects(75) && !windows.collects(950));
        assert!(Windows::new(10).ends.is_empty());
    }

    #[test]
    fn dual_averaging_finds_the_step_with_the_wanted_acceptance() {
        // Acceptance exp(-step): 0.8 at step 0.2231.
        let mut adaptation = DualAveraging::new(1.0, 0.8);
        for _ in 0..2000 {
            let step = adaptation.step();
            adaptation.update((-step).exp());
        }
        assert!((adaptation.average_step() - 0.2231).abs() < 0.01);
    }

    #[test]
    fn covariance_is_the_sample_covariance() {
        let mut c = Covariance::new(2, true);
        for x in [[1.0, 2.0], [2.0, 1.0], [4.0, 6.0], [3.0, 3.0]] {
            c.add(&x);
        }
        // numpy.cov: [[1.6667, 2.3333], [2.3333, 4.6667]], times n - 1 = 3.
        let expected = [5.0, 7.0, 7.0, 14.0];
        for (p, e) in c.products.iter().zip(expected) {
            assert!((p - e).abs() < 1e-12);
        }
    }
}
