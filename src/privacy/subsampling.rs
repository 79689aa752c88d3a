//! Which records a release is about, and how they are drawn: exactly, from the
//! private generator. No code outside the vault learns a batch or its size.

use super::randomness::PrivateRng;
use crate::accounting::Real;

/// Which records (units, where rows share units) a release is about, drawn anew each
/// time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Subsampling {
    All,
    /// Each record independently.
    Poisson(InclusionRate),
    /// This many records, without replacement. Only under substitute: the size of the batch reveals
    /// something about the number of records.
    FixedSize(u64),
}

impl Subsampling {
    /// Whether every record is in, whatever is drawn and whatever their number.
    pub(super) fn is_all(&self) -> bool {
        match self {
            Subsampling::All => true,
            Subsampling::Poisson(rate) => rate.threshold.is_none(),
            Subsampling::FixedSize(_) => false,
        }
    }
}

/// The probability that a record is in a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InclusionRate {
    rate: Real,
    /// A record is in when a uniform integer below 2^64 is below this; `None` for
    /// rate 1.
    threshold: Option<u64>,
}

/// A rate that is not a probability.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("the batch rate is {0}; give a number above 0 and at most 1, such as 0.01")]
pub struct RateError(f64);

impl InclusionRate {
    /// # Privacy
    ///
    /// To be shown (docs/proofs.md, section 9): a record is in with probability at most `rate`. The
    /// threshold is floor(r 2^64) for the largest `f64` r that is not above `rate`; scaling r by
    /// 2^64 is exact.
    ///
    /// # Errors
    ///
    /// Unless 0 < `rate` <= 1.
    pub fn new(rate: impl Into<Real>) -> Result<InclusionRate, RateError> {
        let rate = rate.into();
        if !(rate > Real::ZERO && rate <= Real::ONE) {
            return Err(RateError(rate.to_f64()));
        }
        let threshold = (rate < Real::ONE).then(|| (rate.to_f64_down() * TWO_TO_64) as u64);
        Ok(InclusionRate { rate, threshold })
    }

    pub fn rate(&self) -> Real {
        self.rate
    }
}

const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

/// A set of records: bit i % 64 of word i / 64 is record i.
pub(super) struct Batch {
    words: Vec<u64>,
}

impl Batch {
    /// Each of `records` records independently with this probability.
    pub(super) fn poisson(rate: InclusionRate, records: usize, rng: &mut PrivateRng) -> Batch {
        let mut words: Vec<u64> = (0..records.div_ceil(64))
            .map(|_| match rate.threshold {
                None => u64::MAX,
                Some(threshold) => coins(threshold, rng),
            })
            .collect();
        if let (Some(last), used @ 1..) = (words.last_mut(), records % 64) {
            *last &= (1 << used) - 1;
        }
        Batch { words }
    }

    /// `size` of `records` records, every subset of that size equally likely.
    ///
    /// # Reference
    ///
    /// Floyd's algorithm: Bentley and Floyd 1987, "A sample of brilliance",
    /// Communications of the ACM 30.
    pub(super) fn fixed_size(size: usize, records: usize, rng: &mut PrivateRng) -> Batch {
        let mut batch = Batch {
            words: vec![0; records.div_ceil(64)],
        };
        for last in records.saturating_sub(size)..records {
            let drawn = rng.uniform_below(last as u64 + 1) as usize;
            let taken = batch.words[drawn / 64] >> (drawn % 64) & 1 == 1;
            let record = if taken { last } else { drawn };
            batch.words[record / 64] |= 1 << (record % 64);
        }
        batch
    }

    #[cfg(test)]
    pub(super) fn of(members: &[usize]) -> Batch {
        let records = members.iter().max().map_or(0, |last| last + 1);
        let mut words = vec![0; records.div_ceil(64)];
        for member in members {
            words[member / 64] |= 1 << (member % 64);
        }
        Batch { words }
    }

    /// The records, in ascending order.
    pub(super) fn members(&self) -> impl Iterator<Item = usize> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &word)| {
            std::iter::successors((word != 0).then_some(word), |rest| {
                let rest = rest & (rest - 1);
                (rest != 0).then_some(rest)
            })
            .map(move |rest| i * 64 + rest.trailing_zeros() as usize)
        })
    }
}

/// 64 independent coins of probability `threshold` / 2^64, exactly: 64 uniform
/// integers compared with the threshold at once, bit by bit from the highest, until
/// none of them has all its bits so far equal to the threshold's.
fn coins(threshold: u64, rng: &mut PrivateRng) -> u64 {
    let (mut below, mut equal) = (0, u64::MAX);
    for bit in (0..64).rev() {
        if equal == 0 {
            break;
        }
        let drawn = rng.next_u64();
        if threshold >> bit & 1 == 1 {
            below |= equal & !drawn;
            equal &= drawn;
        } else {
            equal &= !drawn;
        }
    }
    below
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(batch: &Batch) -> usize {
        batch.members().count()
    }

    // If it failed: a record would be in a batch more often than was charged. Rates
    // whose binary digits stop late and early; at each, 1.28 10^6 coins within 6.5 sd
    // (false alarm 1e-10 each), and each of 64 places within 6.5 sd of its own. At
    // 0.001 the first sees an error of 18% of the rate, at 0.3 one of 0.9%.
    #[test]
    fn records_are_in_at_the_rate() {
        let mut rng = PrivateRng::from_insecure_seed(900);
        for rate in [0.001, 0.01, 1.0 / 3.0, 0.3, 0.5, 0.75, 0.999] {
            let law = InclusionRate::new(rate).unwrap();
            let rounds = 20_000;
            let mut places = [0u32; 64];
            for _ in 0..rounds {
                for member in Batch::poisson(law, 64, &mut rng).members() {
                    places[member] += 1;
                }
            }
            let off = |hits: u32, coins: f64| {
                (f64::from(hits) - coins * rate) / (coins * rate * (1.0 - rate)).sqrt()
            };
            let all = off(places.iter().sum(), 64.0 * f64::from(rounds));
            assert!(all.abs() < 6.5, "rate {rate}: {all}");
            for hits in places {
                let one = off(hits, f64::from(rounds));
                assert!(one.abs() < 7.5, "rate {rate}: {one}");
            }
        }
    }

    // If it failed: the records of a batch would attract or repel each other, and the batches would
    // not follow the accountants' law. The variance of the size of 20,000 batches of 640 records at
    // 0.1, within 6.5 sd of binomial (false alarm 1e-10); perfectly paired records would double it,
    // 100 sd off.
    #[test]
    fn poisson_batches_have_binomial_sizes() {
        let mut rng = PrivateRng::from_insecure_seed(901);
        let law = InclusionRate::new(0.1).unwrap();
        let rounds = 20_000;
        let sum: f64 = (0..rounds)
            .map(|_| (count(&Batch::poisson(law, 640, &mut rng)) as f64 - 64.0).powi(2))
            .sum();
        let ratio = sum / f64::from(rounds) / (640.0 * 0.09);
        assert!((ratio - 1.0).abs() < 6.5 * (2.0 / f64::from(rounds)).sqrt() * 1.02);
    }

    // If it failed: a rate would be exceeded by rounding, or all would not be all.
    #[test]
    fn the_threshold_is_never_above_the_rate() {
        let mut rng = PrivateRng::from_insecure_seed(902);
        for rate in ["0.1", "0.3", "0.01", "1e-3", "0.7", "1e-25"] {
            let law = InclusionRate::new(rate.parse::<Real>().unwrap()).unwrap();
            let threshold = law.threshold.unwrap();
            assert!(Real::from(threshold) / Real::exact(TWO_TO_64) <= law.rate());
            assert!(Real::from(threshold + 4096) / Real::exact(TWO_TO_64) > law.rate());
        }
        let one = InclusionRate::new(1.0).unwrap();
        for records in [0, 1, 63, 64, 65, 1000] {
            let all: Vec<usize> = Batch::poisson(one, records, &mut rng).members().collect();
            assert_eq!(all, (0..records).collect::<Vec<_>>());
        }
        for wrong in [0.0, -0.1, 1.0 + f64::EPSILON, f64::NAN] {
            assert!(InclusionRate::new(wrong).is_err());
        }
    }

    // If it failed: batches would have the wrong size, a record twice, or favourites.
    // All 35 batches of 3 out of 7 in 350,000 draws: chi-square with 34 degrees of
    // freedom, false alarm 1e-9 (Laurent and Massart, x = 20.8); one batch 5% too
    // frequent adds 25 to it and a record that is never moved to the end thousands.
    #[test]
    fn every_batch_of_a_size_is_equally_likely() {
        let mut rng = PrivateRng::from_insecure_seed(903);
        let mut counts = std::collections::BTreeMap::new();
        let draws = 350_000;
        for _ in 0..draws {
            let batch: Vec<usize> = Batch::fixed_size(3, 7, &mut rng).members().collect();
            assert_eq!(batch.len(), 3);
            *counts.entry(batch).or_insert(0u32) += 1;
        }
        assert_eq!(counts.len(), 35);
        let expected = f64::from(draws) / 35.0;
        let statistic: f64 = counts
            .values()
            .map(|&c| (f64::from(c) - expected).powi(2) / expected)
            .sum();
        assert!(statistic < 34.0 + 2.0 * (34.0f64 * 20.8).sqrt() + 41.6);
        assert_eq!(count(&Batch::fixed_size(130, 130, &mut rng)), 130);
        assert_eq!(count(&Batch::fixed_size(0, 5, &mut rng)), 0);
    }
}
