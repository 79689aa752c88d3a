//! Ranks that should be uniform: the difference between their distribution and the uniform one, and
//! a band that holds all of it at once.
//!
//! Source: Säilynoja, Bürkner and Vehtari (2022), *Graphical test for discrete uniformity and its
//! applications in goodness-of-fit evaluation and multiple sample comparison*, Statistics and
//! Computing 32. The limits at each point are quantiles of a binomial distribution; their level is
//! such that the probability of staying within all of them, by the recursion of their section 2.2,
//! is the one that is asked for.

use serde::Serialize;

/// Limits for the number of ranks, out of `samples`, below each of the ranks 1, 2, ..., `ranks`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EcdfBand {
    pub samples: usize,
    /// Ranks are 0 to this number.
    pub ranks: usize,
    /// The probability that uniform ranks stay within all limits: at least the one asked for.
    pub coverage: f64,
    /// Counts, inclusive, one pair for each point.
    #[serde(skip)]
    limits: Vec<[usize; 2]>,
}

/// Halvings of the interval in which the level of the limits is.
const HALVINGS: usize = 40;

impl EcdfBand {
    /// The band that holds all of the `samples` ranks' distribution with a probability of at least
    /// `level`, if each is uniform on 0, ..., `ranks` and independent of the others.
    pub fn new(samples: usize, ranks: usize, level: f64) -> EcdfBand {
        let logs = LogFactorials::up_to(samples);
        let share = |j: usize| j as f64 / (ranks + 1) as f64;
        let cumulative: Vec<Vec<f64>> = (1..=ranks)
            .map(|j| logs.cumulative(samples, share(j)))
            .collect();
        let limits = |gamma: f64| -> Vec<[usize; 2]> {
            let quantile = |below: &[f64], p: f64| below.partition_point(|&c| c < p).min(samples);
            let ends =
                |below: &Vec<f64>| [gamma / 2.0, 1.0 - gamma / 2.0].map(|p| quantile(below, p));
            cumulative.iter().map(ends).collect()
        };
        // The probability falls as gamma grows. At 0 the limits hold everything.
        let [mut narrow, mut wide] = [1.0, 0.0];
        let mut best = (vec![[0, samples]; ranks], 1.0);
        for _ in 0..HALVINGS {
            let gamma = 0.5 * (narrow + wide);
            let tried = limits(gamma);
            let coverage = logs.stays_within(samples, &tried);
            if coverage >= level {
                wide = gamma;
                best = (tried, coverage);
            } else {
                narrow = gamma;
            }
        }
        EcdfBand {
            samples,
            ranks,
            coverage: best.1,
            limits: best.0,
        }
    }

    /// The points: shares of the ranks below which ranks are counted.
    pub fn points(&self) -> Vec<f64> {
        let share = |j: usize| j as f64 / (self.ranks + 1) as f64;
        (1..=self.ranks).map(share).collect()
    }

    /// The lower and upper limit at each point, for the difference to the uniform distribution.
    pub fn differences(&self) -> Vec<[f64; 2]> {
        let off = |(limits, z): (&[usize; 2], f64)| {
            limits.map(|count| count as f64 / self.samples.max(1) as f64 - z)
        };
        self.limits.iter().zip(self.points()).map(off).collect()
    }

    /// The difference of these ranks' distribution to the uniform one, at each point.
    pub fn difference_of(&self, ranks: &[usize]) -> Vec<f64> {
        let off = |(count, z): (usize, f64)| count as f64 / ranks.len().max(1) as f64 - z;
        self.counts(ranks)
            .into_iter()
            .zip(self.points())
            .map(off)
            .collect()
    }

    /// Whether all of these ranks' distribution is within the band.
    pub fn holds(&self, ranks: &[usize]) -> bool {
        let inside =
            |(count, limits): (usize, &[usize; 2])| (limits[0]..=limits[1]).contains(&count);
        self.counts(ranks).into_iter().zip(&self.limits).all(inside)
    }

    fn counts(&self, ranks: &[usize]) -> Vec<usize> {
        let below = |j: usize| ranks.iter().filter(|&&rank| rank < j).count();
        (1..=self.ranks).map(below).collect()
    }
}

struct LogFactorials(Vec<f64>);

impl LogFactorials {
    fn up_to(n: usize) -> LogFactorials {
        let mut logs = vec![0.0];
        for k in 1..=n {
            logs.push(logs[k - 1] + (k as f64).ln());
        }
        LogFactorials(logs)
    }

    /// The probability of `k` successes in `n` trials.
    fn binomial(&self, n: usize, k: usize, p: f64) -> f64 {
        if p >= 1.0 {
            return f64::from(u8::from(k == n));
        }
        let choose = self.0[n] - self.0[k] - self.0[n - k];
        (choose + k as f64 * p.ln() + (n - k) as f64 * (-p).ln_1p()).exp()
    }

    fn cumulative(&self, n: usize, p: f64) -> Vec<f64> {
        let mut sum = 0.0;
        let next = |k: usize| {
            sum += self.binomial(n, k, p);
            sum
        };
        (0..=n).map(next).collect()
    }

    /// The probability that the counts of `n` uniform ranks stay within the limits: given the count
    /// at a point, the increase to the next one is binomial.
    fn stays_within(&self, n: usize, limits: &[[usize; 2]]) -> f64 {
        let cells = (limits.len() + 1) as f64;
        let mut first = 0;
        let mut here = vec![1.0];
        for (i, &[low, high]) in limits.iter().enumerate() {
            let p = 1.0 / (cells - i as f64);
            let mut next = vec![0.0; (high + 1).saturating_sub(low)];
            for (count, probability) in (first..).zip(&here) {
                for to in count.max(low)..=high {
                    next[to - low] += probability * self.binomial(n - count, to - count, p);
                }
            }
            (first, here) = (low, next);
        }
        here.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    // If it failed: right samplers would be called wrong more often than is said, or wrong ones
    // never. 4000 sets of uniform ranks for each size: the share within the band is compared with
    // what the recursion says of it, to 5 standard errors (false alarm 2e-6 in all); limits for
    // each point alone hold about 60% of them.
    #[test]
    fn the_band_holds_uniform_ranks_as_often_as_it_says() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        for (samples, ranks, level) in [(20, 99, 0.95), (100, 99, 0.95), (50, 9, 0.99)] {
            let band = EcdfBand::new(samples, ranks, level);
            assert!(
                (level..level + 0.03).contains(&band.coverage),
                "{}",
                band.coverage
            );
            let sets = 4000;
            let mut held = 0;
            for _ in 0..sets {
                let drawn: Vec<usize> = (0..samples).map(|_| rng.random_range(0..=ranks)).collect();
                held += usize::from(band.holds(&drawn));
            }
            let share = f64::from(held as u32) / f64::from(sets);
            let error = (band.coverage * (1.0 - band.coverage) / f64::from(sets)).sqrt();
            assert!(
                (share - band.coverage).abs() < 5.0 * error,
                "{samples} ranks of {ranks}: {share} for {}",
                band.coverage
            );
        }
    }

    // Oracle: of one point the probability is binomial, and of two multinomial, by hand.
    #[test]
    fn the_recursion_is_right_by_hand() {
        let logs = LogFactorials::up_to(3);
        // Three fair coins, one or two heads.
        assert!((logs.stays_within(3, &[[1, 2]]) - 0.75).abs() < 1e-12);
        // One ball in each of three boxes: 3! / 27.
        assert!((logs.stays_within(3, &[[1, 1], [2, 2]]) - 6.0 / 27.0).abs() < 1e-12);
    }

    #[test]
    fn ranks_that_lean_leave_the_band() {
        let band = EcdfBand::new(100, 99, 0.95);
        let even: Vec<usize> = (0..100).collect();
        assert!(band.holds(&even));
        assert!(band.difference_of(&even).iter().all(|d| d.abs() < 1e-12));
        // A posterior that is too narrow has ranks at both ends.
        let ends: Vec<usize> = (0..100)
            .map(|i| if i % 2 == 0 { i / 5 } else { 99 - i / 5 })
            .collect();
        assert!(!band.holds(&ends));
        let low: Vec<usize> = (0..100).map(|i| i * i / 100).collect();
        assert!(!band.holds(&low));
        // One sample says nothing, unless it is at an end.
        assert!((10..90).all(|rank| EcdfBand::new(1, 99, 0.95).holds(&[rank])));
        assert_eq!(band.differences().len(), band.points().len());
    }
}
