//! DP-Barker's acceptance test in integers.
//!
//! For a batch of b out of n records, drawn without replacement, with log-likelihood ratios
//! x_i clipped to [-c, c], c = 0.99 sqrt(b)/(n T), the release is
//!
//! ```text
//! (n T/b) sum x_i + N(0, 2 - s2),   s2 = (n T)^2/b var(x)   (variance with 1/b)
//! ```
//!
//! With u_i = U x_i/c, an integer of at most U = 2^36, S = sum u_i and V = b sum u_i^2 - S^2,
//!
//! ```text
//! mean = 0.99 S/(U sqrt(b)),   s2 = 0.99^2 V/(b U)^2
//! ```
//!
//! # Privacy
//!
//! The assumptions of `accounting::Barker` (docs/proofs.md, section 12): one record moves the mean
//! by at most 2/sqrt(b) and s2 by at most 4(b-1)/b^2, and 2 - s2 is at least 1. S is an exact
//! integer that one record moves by at most 2U, V one that it moves by at most 4(b-1) U^2 (as only
//! b - 1 pairs have the record) and at most b^2 U^2. So mean and s2 move by at most 0.99 and 0.99^2
//! times the assumed bounds. The last hundredth covers the rounding: the mean is put on a lattice
//! of spacing 2^-40, with an error of at most 4 units, against 2^41/(100 sqrt(b)) >= 2^21 for b <=
//! 2^26; the standard deviation is an integer multiple of that spacing, which moves the variance by
//! at most 2^-38, and so do the roundings of V, against 0.0199 * 4(b-1)/b^2 >= 2^-30. The noise is
//! a discrete Gaussian of this standard deviation, at least 2^40 units.
//!
//! Its width depends on the rows, so that it is drawn after they were read, and the time taken
//! depends on it; timing is outside the promise (docs/privacy.md).
//!
//! # Reference
//!
//! Heikkilä, Jälkö, Dikmen and Honkela 2019, "Differentially private Markov chain Monte
//! Carlo".

use super::penalty::{J, MAX_CLIP_BOUND};
use super::tally::{Sums, Tally, UNITS_PER_BOUND, spread};

/// The lattice has this many steps per unit; the least standard deviation is 1.
const UNITS: f64 = (1u64 << 40) as f64;

const UNITS_PER_NAT: f64 = (1u64 << J) as f64;

/// The share that keeps s2 below 1 and leaves room for rounding.
const SHARE: f64 = 0.99;

const MAX_BATCH: u64 = 1 << 26;

/// The settings of all tests of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BarkerScale {
    size: u64,
    records: u64,
    /// c in the units of [`super::penalty`].
    clip_bound: i64,
}

/// Why the test cannot be set up.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BarkerError {
    #[error(
        "a batch of {size} out of {records} records; DP-Barker needs at least 3, and no more \
         than there are or 2^26"
    )]
    Size { size: u64, records: u64 },
    #[error(
        "the temperature is {0}; it must be a positive number, and not so large that clipped ratios are 0"
    )]
    Temperature(f64),
}

impl BarkerScale {
    /// Tests on batches of `size` out of `records` records, for the likelihood to the power
    /// `temperature`.
    ///
    /// # Errors
    ///
    /// A batch of fewer than 3 records or more than there are; a temperature that is not a positive
    /// number.
    pub fn new(size: u64, records: u64, temperature: f64) -> Result<BarkerScale, BarkerError> {
        if !(3..=records.min(MAX_BATCH)).contains(&size) {
            return Err(BarkerError::Size { size, records });
        }
        let clip = SHARE * (size as f64).sqrt() / (records as f64 * temperature);
        // The conversion truncates and saturates.
        let clip_bound = ((clip * UNITS_PER_NAT) as i64).min(MAX_CLIP_BOUND);
        if !(temperature > 0.0 && temperature.is_finite()) || clip_bound == 0 {
            return Err(BarkerError::Temperature(temperature));
        }
        Ok(BarkerScale {
            size,
            records,
            clip_bound,
        })
    }

    /// c, nats.
    #[cfg(test)]
    pub fn clip(&self) -> f64 {
        self.clip_bound as f64 / UNITS_PER_NAT
    }

    /// Lattice spacing over the least standard deviation.
    pub fn lattice_ratio(&self) -> f64 {
        1.0 / UNITS
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// The summands of the records of a batch.
    pub(super) fn tally(&self) -> Tally {
        Tally::moments(self.clip_bound)
    }

    /// The mean, and the standard deviation of its noise, in lattice units.
    pub(super) fn release(&self, sums: Sums) -> (i128, u64) {
        let b = self.size as f64;
        let mean = SHARE * UNITS / UNITS_PER_BOUND / b.sqrt() * sums[0] as f64;
        let per_bound = b * UNITS_PER_BOUND;
        let s2 = SHARE * SHARE * (spread(sums, self.size) as f64 / per_bound / per_bound);
        let sigma = (2.0 - s2).max(1.0).sqrt() * UNITS;
        (mean as i128, sigma as u64)
    }

    /// A mean with its noise as a number.
    pub(super) fn real(&self, units: i128) -> f64 {
        units as f64 / UNITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn release(scale: &BarkerScale, batch: &[f64]) -> (i128, u64) {
        let mut sums = [0; 2];
        for x in batch {
            scale.tally().add(&mut sums, (x * UNITS_PER_NAT) as i64, 0);
        }
        scale.release(sums)
    }

    // If it failed: the release would move further than its event says. For each size, batches of k
    // records at one end and the rest at the other, and one record anywhere: the extremes of mean
    // and variance are among them, and come within 2.1% (the square of 0.99) of the assumed bounds.
    // 1.02 instead of 0.99 would exceed them.
    #[test]
    fn one_record_moves_mean_and_variance_no_further_than_counted_on() {
        for size in [3u64, 4, 50, 301] {
            let (b, scale) = (size as f64, BarkerScale::new(size, 1000, 0.3).unwrap());
            let (mut furthest_mean, mut furthest_variance) = (0.0f64, 0.0f64);
            for ones in 0..size {
                let mut batch: Vec<f64> = (0..size)
                    .map(|i| if i < ones { 9.0 } else { -9.0 })
                    .collect();
                let (mean, sigma) = release(&scale, &batch);
                assert!((1 << 40..=1_554_944_255_988).contains(&sigma), "{sigma}");
                for other in [9.0, 0.0, f64::NAN, 0.3 * scale.clip(), -f64::INFINITY] {
                    batch[size as usize - 1] = other;
                    let (moved, other) = release(&scale, &batch);
                    let by = (mean - moved).unsigned_abs() as f64 / UNITS;
                    assert!(by <= 2.0 / b.sqrt());
                    furthest_mean = furthest_mean.max(by * b.sqrt() / 2.0);
                    let square = |sigma: u64| (sigma as f64 / UNITS).powi(2);
                    let by = (square(sigma) - square(other)).abs();
                    let most = 4.0 * (b - 1.0) / (b * b);
                    assert!(by <= most, "{size} {ones}: {by} {most}");
                    furthest_variance = furthest_variance.max(by / most);
                }
            }
            assert!((0.989..=0.9901).contains(&furthest_mean), "{furthest_mean}");
            assert!(
                (0.97..=0.981).contains(&furthest_variance),
                "{furthest_variance}"
            );
        }
    }

    // If it failed: the test would not be Barker's: another mean, or another variance.
    #[test]
    fn mean_and_variance_are_those_of_the_formula() {
        let (size, records, temperature) = (40u64, 5000u64, 0.02);
        let scale = BarkerScale::new(size, records, temperature).unwrap();
        let (b, nt) = (size as f64, records as f64 * temperature);
        let c = 0.99 * b.sqrt() / nt;
        assert!((scale.clip() / c - 1.0).abs() < 1e-12);
        let batch: Vec<f64> = (0..size)
            .map(|i| c * ((i * i % 23) as f64 / 10.0 - 0.9))
            .collect();
        let clipped: Vec<f64> = batch.iter().map(|x| x.clamp(-c, c)).collect();
        let mean = clipped.iter().sum::<f64>() / b;
        let variance = clipped.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / b;
        let (ours, sigma) = release(&scale, &batch);
        assert!(
            (scale.real(ours) - nt * mean).abs() < 1e-9,
            "{} {}",
            scale.real(ours),
            nt * mean
        );
        let s2 = nt * nt / b * variance;
        assert!(s2 > 0.2 && s2 < 0.9);
        assert!(((sigma as f64 / UNITS).powi(2) - (2.0 - s2)).abs() < 1e-9);
    }

    #[test]
    fn settings_without_a_test_are_refused() {
        for (size, records) in [(2, 10), (11, 10), (1 << 27, 1 << 30)] {
            assert!(BarkerScale::new(size, records, 1.0).is_err());
        }
        for temperature in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e20] {
            assert!(BarkerScale::new(5, 10, temperature).is_err());
        }
    }
}
