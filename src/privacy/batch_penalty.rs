//! The penalty test on a batch: per-record integers for Poisson batches, and the
//! scalar of the thesis for batches of a fixed size.
//!
//! x_i is record i's log-likelihood ratio (nats, untempered) clipped to [-B, B], T the
//! temperature, tau the noise multiplier, r the rate or b of n records the batch.
//!
//! ```text
//! Poisson:  F = sum over the batch of f(x_i)
//!           f(x) = (T/r) x - (T^2/2) ((1 - r)/r^2) x^2
//! fixed:    F = w S - (w^2/2) (Q - S^2/b),  w = nT/b,  S = sum x_i,  Q = sum x_i^2
//! release   F + noise of sigma;  accept with probability min(1, exp(F + noise - sigma^2/2))
//! ```
//!
//! The first is lambda_hat - s^2/2 for the estimate lambda_hat = (T/r) sum x_i of the
//! tempered log-ratio and an unbiased estimate s^2 of its variance over the batches;
//! the second is the same with lambda_hat = w S and the variance b w^2 var(x) (population variance)
//! that treats the batch as drawn with replacement.
//!
//! # Sensitivity
//!
//! (docs/proofs.md, section 11.)
//!
//! *Poisson.* f is bounded by max |f| = |f(-B)| = T B/r + T^2 (1-r) B^2/(2 r^2). A
//! record's value is truncated to a lattice and clamped, as an integer, to that bound
//! D; so it moves the sum by at most D (add, remove or zero-out) or 2 D (substitute), whatever the
//! floats were.
//!
//! *Fixed size, substitute.* x_i is put on the lattice B 2^-36, so that |u_i| <= U =
//! 2^36 and S and V = bQ - S^2 = sum over pairs of (u_i - u_j)^2 are exact integers. One
//! record moves S by at most 2U, and V by at most 4 (b-1) U^2, as only b - 1 pairs have
//! it and each lies in [0, 4U^2]. In real numbers F moves by at most
//!
//! ```text
//! Delta = 2wB + 2(b-1) w^2 B^2 / b = 2nTB/b + 2(b-1)(nT)^2 B^2/b^3
//! ```
//!
//! Each of the two terms is computed with at most six roundings, of 2^-53 of its own size,
//! and that is at most b/2 times what one record moves it by (as V <= b^2 U^2, b >= 2).
//! With b <= 2^26 this is less than 2^-20 of Delta on both neighbours together, and
//! truncation to the lattice adds at most one unit. The lattice is made for a Delta that is
//! 2^-19 larger, which leaves room of 2^20/tau units.
//!
//! # One release or two
//!
//! The thesis releases lambda_hat and s^2 by themselves, with sensitivities D1 and D2 (of
//! s^2/2) and noises s1 and s2 whose variances add up in the test. At the cost rho =
//! (D1/s1)^2 + (D2/s2)^2 (in units of 2 rho) the least sum of variances is, by
//! Cauchy and Schwarz, (s1^2 + s2^2) rho >= (D1 + D2)^2, reached at s1^2 : s2^2 =
//! D1 : D2. One release of F with sensitivity D1 + D2 needs exactly that variance.
//!
//! # What it leaves invariant
//!
//! Nothing exactly: the penalty for the batch's own error is right for a normal error of
//! known variance, and this one is a sum of finitely many terms with its variance
//! estimated. It becomes exact as r goes to 1 (where F is the full-data ratio) and as the
//! error's variance goes to 0.
//!
//! # Reference
//!
//! Räisä 2021, "Differentially private Markov chain Monte Carlo", section 3.4.
//! Errata: the thesis prints 3(b-1) for 2(b-1) in the sensitivity of s^2/2, and its own
//! derivation gives 2.5; for batches whose records are in independently the variance
//! term is a sum over records, f, which it does not use.

use super::noise::DiscreteGaussian;
use super::penalty::{J, MAX_CLIP_BOUND};
use super::subsampling::{InclusionRate, Subsampling};
use super::tally::{Sums, Tally, UNITS_PER_BOUND, spread};

/// sigma in lattice units: the lattice follows the noise.
const SIGMA_UNITS: u64 = 1 << 40;

/// The largest batch of fixed size: b^2 U^2 stays below 2^125.
const MAX_BATCH: u64 = 1 << 26;

/// The most noise, nats; with more, the test would accept an equally likely point with
/// probability below exp(-500).
const MAX_SIGMA: f64 = 64.0;

/// The least bound on F, nats, for which a query is made.
const LEAST_BOUND: f64 = 1e-200;

const UNITS_PER_NAT: f64 = (1u64 << J) as f64;

/// The settings of all penalty tests on batches of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchPenaltyScale {
    form: Form,
    temperature: f64,
    tau: f64,
    noise: DiscreteGaussian,
    /// D: the most that one record adds, in lattice units of the release; for a batch of fixed
    /// size, half of the most that one record changes.
    limit: i64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Form {
    Poisson {
        rate: InclusionRate,
        sensitivity_factor: u8,
    },
    FixedSize {
        size: u64,
        records: u64,
    },
}

/// The action for one proposal, decided by public numbers alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BatchPenaltyPlan {
    /// Ask the vault, at the cost of one release.
    Query(BatchPenaltyQuery),
    /// The bound is zero: so is F, without noise and without looking.
    Skip,
    /// The noise would drown everything: refuse the proposal without looking.
    Refuse,
}

/// One query: clip bound, noise and formula, all functions of public numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchPenaltyQuery {
    scale: BatchPenaltyScale,
    /// B, in the units of [`super::penalty`].
    clip_bound: i64,
    /// The noise, in nats.
    sigma: f64,
    formula: Formula,
}

/// F in lattice units of the release, from x in the units of [`super::penalty`].
#[derive(Debug, Clone, Copy, PartialEq)]
enum Formula {
    /// The sum of x (slope - curvature x).
    Separable { slope: f64, curvature: f64 },
    /// mean S - variance V.
    Moments { mean: f64, variance: f64, size: u64 },
}

/// Why the test cannot be set up.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BatchPenaltyError {
    #[error("the penalty test's noise multiplier is {0}; it must lie between 0.001 and 10000")]
    Multiplier(f64),
    #[error("the temperature is {0}; it must be a positive number")]
    Temperature(f64),
    #[error(
        "the penalty test's sensitivity factor is {0}; it must be 1 (add, remove or empty one record) \
         or 2 (substitute one record)"
    )]
    SensitivityFactor(u8),
    #[error(
        "a batch of {size} out of {records} records; the penalty test needs at least 2, and no \
         more than there are or 2^26"
    )]
    Size { size: u64, records: u64 },
    #[error("the penalty test's clip bound is {0} nats; it must be 0 or more")]
    ClipBound(f64),
    #[error(transparent)]
    Noise(#[from] super::noise::NoiseError),
}

impl BatchPenaltyScale {
    /// Tests on Poisson batches, with noise of `tau` times the sensitivity;
    /// `sensitivity_factor` is 2 for substitution of one record and 1 for adding or
    /// removing one.
    ///
    /// # Errors
    ///
    /// Unless 0.001 <= `tau` <= 10000 and `temperature` is positive.
    pub fn poisson(
        rate: InclusionRate,
        temperature: f64,
        sensitivity_factor: u8,
        tau: f64,
    ) -> Result<BatchPenaltyScale, BatchPenaltyError> {
        if !matches!(sensitivity_factor, 1 | 2) {
            return Err(BatchPenaltyError::SensitivityFactor(sensitivity_factor));
        }
        let form = Form::Poisson {
            rate,
            sensitivity_factor,
        };
        BatchPenaltyScale::new(form, temperature, tau)
    }

    /// Tests on batches of `size` out of `records` records, under substitution of one
    /// record: the thesis's form.
    ///
    /// # Errors
    ///
    /// As [`poisson`](Self::poisson), or the size is below 2 or above the number of
    /// records.
    pub fn fixed_size(
        size: u64,
        records: u64,
        temperature: f64,
        tau: f64,
    ) -> Result<BatchPenaltyScale, BatchPenaltyError> {
        if !(2..=records.min(MAX_BATCH)).contains(&size) {
            return Err(BatchPenaltyError::Size { size, records });
        }
        BatchPenaltyScale::new(Form::FixedSize { size, records }, temperature, tau)
    }

    fn new(form: Form, temperature: f64, tau: f64) -> Result<BatchPenaltyScale, BatchPenaltyError> {
        if !(1e-3..=1e4).contains(&tau) {
            return Err(BatchPenaltyError::Multiplier(tau));
        }
        if !(temperature > 0.0 && temperature.is_finite()) {
            return Err(BatchPenaltyError::Temperature(temperature));
        }
        // Shrunk by more than the rounding of the quotient: factor D tau <= 2^40.
        let units = SIGMA_UNITS as f64 / (f64::from(form.sensitivity_factor()) * tau);
        Ok(BatchPenaltyScale {
            form,
            temperature,
            tau,
            noise: DiscreteGaussian::new(SIGMA_UNITS)?,
            limit: (units * (1.0 - 4.0 * f64::EPSILON)).floor() as i64,
        })
    }

    /// The query for ratios clipped to `bound` nats, a public number that is symmetric in
    /// the two points.
    ///
    /// # Errors
    ///
    /// When `bound` is negative or NaN.
    pub fn plan(&self, bound: f64) -> Result<BatchPenaltyPlan, BatchPenaltyError> {
        if bound.is_nan() || bound < 0.0 {
            return Err(BatchPenaltyError::ClipBound(bound));
        }
        // The conversion truncates and saturates.
        let clip_bound = ((bound * UNITS_PER_NAT) as i64).min(MAX_CLIP_BOUND);
        let nats = clip_bound as f64 / UNITS_PER_NAT;
        // F = linear S - quadratic (Q or V) for x in nats, and the bound behind D.
        let (linear, quadratic, bound) = match self.form {
            Form::Poisson { rate, .. } => {
                let r = rate.rate().to_f64();
                let scale = self.temperature / r;
                let quadratic = 0.5 * scale * scale * (1.0 - r);
                (scale, quadratic, (scale + quadratic * nats) * nats)
            }
            Form::FixedSize { size, records } => {
                let b = size as f64;
                let w = records as f64 * self.temperature / b;
                let bound = w * nats * (1.0 + (b - 1.0) / b * w * nats);
                (w, 0.5 * w * w / b, bound * (1.0 + 0.5f64.powi(19)))
            }
        };
        if clip_bound == 0 || bound < LEAST_BOUND {
            return Ok(BatchPenaltyPlan::Skip);
        }
        let sigma = f64::from(self.form.sensitivity_factor()) * bound * self.tau;
        if sigma.is_nan() || sigma > MAX_SIGMA {
            return Ok(BatchPenaltyPlan::Refuse);
        }
        let per_nat = SIGMA_UNITS as f64 / sigma;
        let formula = match self.form {
            Form::Poisson { .. } => Formula::Separable {
                slope: per_nat * linear / UNITS_PER_NAT,
                curvature: per_nat * quadratic / UNITS_PER_NAT / UNITS_PER_NAT,
            },
            Form::FixedSize { size, .. } => {
                let step = nats / UNITS_PER_BOUND;
                Formula::Moments {
                    mean: per_nat * linear * step,
                    variance: per_nat * quadratic * step * step,
                    size,
                }
            }
        };
        Ok(BatchPenaltyPlan::Query(BatchPenaltyQuery {
            scale: *self,
            clip_bound,
            sigma,
            formula,
        }))
    }

    /// Which records a test is about.
    pub fn subsampling(&self) -> Subsampling {
        match self.form {
            Form::Poisson { rate, .. } => Subsampling::Poisson(rate),
            Form::FixedSize { size, .. } => Subsampling::FixedSize(size),
        }
    }

    /// Lattice spacing over sigma.
    pub fn lattice_ratio(&self) -> f64 {
        1.0 / SIGMA_UNITS as f64
    }
}

impl Form {
    fn sensitivity_factor(&self) -> u8 {
        match self {
            Form::Poisson {
                sensitivity_factor, ..
            } => *sensitivity_factor,
            Form::FixedSize { .. } => 2,
        }
    }
}

impl BatchPenaltyQuery {
    /// Standard deviation of the noise, nats.
    pub fn sigma(&self) -> f64 {
        self.sigma
    }

    pub(super) fn subsampling(&self) -> Subsampling {
        self.scale.subsampling()
    }

    /// How often D one record's change can move F: 2 or 1.
    pub(super) fn sensitivity_factor(&self) -> u8 {
        self.scale.form.sensitivity_factor()
    }

    /// How far one record can move F, in lattice units.
    pub(super) fn sensitivity(&self) -> u64 {
        self.scale.limit.unsigned_abs() * u64::from(self.sensitivity_factor())
    }

    /// sigma in lattice units.
    pub(super) fn sigma_units(&self) -> u64 {
        SIGMA_UNITS
    }

    pub(super) fn noise(&self) -> DiscreteGaussian {
        self.scale.noise
    }

    /// The summands of the records of a batch.
    pub(super) fn tally(&self) -> Tally {
        match self.formula {
            Formula::Separable { slope, curvature } => Tally::Curve {
                bound: self.clip_bound,
                slope,
                curvature,
                limit: self.scale.limit,
            },
            Formula::Moments { .. } => Tally::moments(self.clip_bound),
        }
    }

    /// F in lattice units, from the sums of the tally.
    pub(super) fn value(&self, sums: Sums) -> i128 {
        match self.formula {
            Formula::Separable { .. } => sums[0],
            Formula::Moments {
                mean,
                variance,
                size,
            } => (mean * sums[0] as f64 - variance * spread(sums, size) as f64) as i128,
        }
    }

    /// F + noise - sigma^2/2 in nats.
    pub(super) fn penalised(&self, sum: i128, noise: i64) -> f64 {
        let noisy = sum.saturating_add(i128::from(noise)) as f64;
        noisy * (self.sigma / SIGMA_UNITS as f64) - 0.5 * self.sigma * self.sigma
    }
}

#[cfg(test)]
#[path = "batch_penalty_tests.rs"]
mod tests;
