//! Random numbers for records that are made up, by the arguments that the language's families
//! take.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, Gamma, Poisson, StandardNormal};

pub struct Random(ChaCha8Rng);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(ChaCha8Rng::seed_from_u64(seed))
    }

    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.0.random::<f64>()
    }

    pub fn normal(&mut self, mean: f64, sd: f64) -> f64 {
        let deviate: f64 = StandardNormal.sample(&mut self.0);
        mean + sd * deviate
    }

    pub fn normals<const K: usize>(&mut self, mean: f64, sd: f64) -> [f64; K] {
        std::array::from_fn(|_| self.normal(mean, sd))
    }

    pub fn lognormal(&mut self, mean: f64, sd: f64) -> f64 {
        self.normal(mean, sd).exp()
    }

    pub fn exponential(&mut self, rate: f64) -> f64 {
        let deviate: f64 = Exp1.sample(&mut self.0);
        deviate / rate
    }

    /// NaN where shape and rate are not above 0.
    pub fn gamma(&mut self, shape: f64, rate: f64) -> f64 {
        Gamma::new(shape, 1.0 / rate).map_or(f64::NAN, |law| law.sample(&mut self.0))
    }

    /// NaN where the mean is not above 0.
    pub fn poisson(&mut self, mean: f64) -> f64 {
        Poisson::new(mean).map_or(f64::NAN, |law| law.sample(&mut self.0))
    }

    pub fn student_t(&mut self, nu: f64) -> f64 {
        let scale = self.gamma(0.5 * nu, 0.5 * nu).sqrt();
        self.normal(0.0, 1.0) / scale
    }

    /// 1 with this probability, else 0.
    pub fn bernoulli(&mut self, probability: f64) -> f64 {
        f64::from(u8::from(self.uniform(0.0, 1.0) < probability))
    }

    pub fn bernoulli_logit(&mut self, logit: f64) -> f64 {
        self.bernoulli(inverse_logit(logit))
    }

    /// From 1, with these logits.
    pub fn categorical_logit(&mut self, logits: &[f64]) -> f64 {
        let top = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = logits.iter().map(|l| (l - top).exp()).sum();
        let mut left = self.uniform(0.0, total);
        for (k, logit) in logits.iter().enumerate() {
            left -= (logit - top).exp();
            if left < 0.0 {
                return (k + 1) as f64;
            }
        }
        logits.len() as f64
    }

    /// Covariates: standard normal within (-3, 3), the last one 0 or 1.
    pub fn covariates<const K: usize>(&mut self) -> [f64; K] {
        std::array::from_fn(|k| {
            if k + 1 == K {
                self.bernoulli(0.4)
            } else {
                self.normal(0.0, 1.0).clamp(-3.0, 3.0)
            }
        })
    }
}

pub fn inverse_logit(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
