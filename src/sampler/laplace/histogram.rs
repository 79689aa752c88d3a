//! A noisy histogram of lengths, with bins of half an octave around the expected lengths.

use crate::linear::dot;
use crate::privacy::Bins;

/// A bin that is this many sds above the noise counts as filled; so does one above [`AMONG`] sds in
/// a window (of [`WINDOWS`] bins) whose sum is above [`TOGETHER`] sds. Among fifty bins of noise
/// alone, the probability that any counts as filled is one in a hundred.
const ALONE: f64 = 3.7;
const AMONG: f64 = 1.0;
const TOGETHER: f64 = 4.2;
const WINDOWS: [usize; 2] = [2, 4];
/// A filled bin is kept if it is within this many bins of those that are kept, or [`FAR_OFF`] sds
/// above the noise.
const GAP: usize = 4;
const FAR_OFF: f64 = 5.5;
/// Counts below this many sds of the noise of a bin say nothing about a tail.
const HIDDEN: f64 = 1.5 * ALONE;
/// The number of bounds that are tried, a sixth of an octave apart.
const BOUNDS: i32 = 36;
/// A mean square that is too low by up to this share is no sign of hidden lengths.
const TOLERATED: f64 = 0.1;
/// The records that noise may hide: a third of the count that [`HIDDEN`] gives, at most a fiftieth
/// of all, with lengths of [`BEYOND`] times the longest that is visible.
const HIDDEN_SHARE: f64 = 1.0 / 3.0;
const MOST_HIDDEN: f64 = 0.02;
pub(super) const BEYOND: f64 = 1.4;

/// The part of a histogram that rises above its noise, scaled to the number of records.
#[derive(Debug)]
pub(super) struct Histogram {
    counts: Vec<f64>,
    /// Upper ends of bins.
    ends: Vec<f64>,
    records: f64,
    /// Counts below this say nothing about a tail.
    hidden: f64,
    last: usize,
    /// The sum of squares of lengths that are not visible, and their typical length.
    missing: f64,
    beyond: f64,
}

impl Histogram {
    /// From counts with noise of this sd, of bins in these units, of this number of records; `None`
    /// where nothing is visible.
    pub fn seen(
        counts: &[f64],
        sd: f64,
        (bins, unit): (Bins, f64),
        records: f64,
    ) -> Option<Histogram> {
        let mut filled: Vec<bool> = counts.iter().map(|c| *c > ALONE * sd).collect();
        for width in WINDOWS {
            for first in 0..(counts.len() + 1).saturating_sub(width) {
                let window = first..first + width;
                let sum: f64 = counts[window.clone()].iter().sum();
                if sum > TOGETHER * sd * (width as f64).sqrt() {
                    for bin in window {
                        filled[bin] |= counts[bin] > AMONG * sd;
                    }
                }
            }
        }
        if !filled.contains(&true) {
            return None;
        }
        let fullest = (0..counts.len()).max_by(|a, b| counts[*a].total_cmp(&counts[*b]))?;
        let (mut low, mut high) = (fullest, fullest);
        for bin in (0..fullest).rev() {
            if filled[bin] && (low - bin <= GAP || counts[bin] > FAR_OFF * sd) {
                low = bin;
            }
        }
        for bin in fullest + 1..counts.len() {
            if filled[bin] && (bin - high <= GAP || counts[bin] > FAR_OFF * sd) {
                high = bin;
            }
        }
        let kept = |(bin, c): (usize, &f64)| {
            if (low..=high).contains(&bin) {
                c.max(0.0)
            } else {
                0.0
            }
        };
        let mut kept: Vec<f64> = counts.iter().enumerate().map(kept).collect();
        let sum: f64 = kept.iter().sum();
        for count in &mut kept {
            *count *= records / sum.max(1.0);
        }
        Some(Histogram {
            ends: (0..counts.len())
                .map(|k| unit * bins.upper_end(k))
                .collect(),
            counts: kept,
            records,
            hidden: HIDDEN * sd,
            last: high,
            missing: 0.0,
            beyond: 0.0,
        })
    }

    /// The lengths of a sum in axes that make their mean `mean`. Where less is visible, the noise hides
    /// longer ones: a group that few records belong to, and that has some directions to itself. If its
    /// information were clipped as if it did not exist, the next axes would make it longer still.
    pub fn with_mean(&self, mean: f64) -> Completed<'_> {
        let seen = dot(&self.counts, &self.lengths());
        let missing = ((1.0 - TOLERATED) * self.records * mean - seen).max(0.0);
        let if_hidden = missing / (HIDDEN_SHARE * self.hidden).max(1.0);
        Completed {
            seen: self,
            missing,
            beyond: if_hidden.max(self.top()),
        }
    }

    /// Completes the histogram where the mean square is known to be `square`: the missing squares
    /// are in bins that the noise hides. Their lengths are at most those that they would have if
    /// they were as many as the noise can hide, and at most `reach`.
    pub fn with_mean_square(mut self, square: f64, reach: f64) -> Histogram {
        let seen = self.squares();
        let expected = self.records * square;
        if seen < (1.0 - TOLERATED) * expected {
            self.missing = expected - seen;
            let if_hidden = (self.missing / (HIDDEN_SHARE * self.hidden).max(1.0)).sqrt();
            self.beyond = if_hidden.min(reach).max(self.top());
        }
        self
    }

    /// The upper end of the last visible bin.
    pub fn top(&self) -> f64 {
        self.ends[self.last]
    }

    /// The standard deviation of the noise in [`missing_share`](Histogram::missing_share).
    pub fn noise_of_share(&self) -> f64 {
        let fourths: f64 = (self.lengths().iter().zip(&self.counts))
            .map(|(x, c)| if *c > 0.0 { x.powi(4) } else { 0.0 })
            .sum();
        let squares = (self.squares() + self.missing).max(f64::MIN_POSITIVE);
        self.hidden / HIDDEN * fourths.sqrt() / squares
    }

    /// The share of the squares that is not visible.
    pub fn missing_share(&self) -> f64 {
        self.missing / (self.squares() + self.missing).max(f64::MIN_POSITIVE)
    }

    /// The sum of squares of the visible lengths.
    fn squares(&self) -> f64 {
        let seen = self.counts.iter().zip(self.lengths());
        seen.map(|(c, x)| c * x * x).sum()
    }

    /// The length that about `records` records exceed. Below the noise, the tail is extrapolated
    /// from its visible part.
    pub fn exceeded_by(&self, records: f64) -> f64 {
        if records < self.hidden && self.hidden < 0.1 * self.records {
            let (near, far) = (self.within(self.hidden), self.within(3.0 * self.hidden));
            let index = ((near / far).max(1.0001).ln() / 3f64.ln()).clamp(0.03, 0.4);
            return near * (self.hidden / records).powf(index);
        }
        self.within(records)
    }

    fn within(&self, records: f64) -> f64 {
        let mut above = 0.0;
        for (bin, count) in self.counts.iter().enumerate().rev() {
            if above + count > records {
                let share = ((above + count - records) / count).clamp(0.0, 1.0);
                return self.ends[bin] * (0.5 * (share - 1.0)).exp2();
            }
            above += count;
        }
        let first = self.counts.iter().position(|c| *c > 0.0).unwrap_or(0);
        self.ends[first] * 0.5f64.sqrt()
    }

    /// The middles of the bins.
    fn lengths(&self) -> Vec<f64> {
        self.ends
            .iter()
            .map(|end| end * 0.5f64.powf(0.25))
            .collect()
    }

    /// The sum of lengths over that of lengths clipped at `bound`.
    pub fn lost_factor(&self, bound: f64) -> f64 {
        let lengths = self.lengths();
        let clipped: Vec<f64> = lengths.iter().map(|x| x.min(bound)).collect();
        dot(&self.counts, &lengths) / dot(&self.counts, &clipped).max(f64::MIN_POSITIVE)
    }

    /// The slope of a sum of vectors clipped at `bound`, as a share of that of unclipped ones.
    pub fn efficiency(&self, bound: f64) -> f64 {
        let shorter = (bound / self.beyond).min(1.0);
        let (mut clipped, mut whole) = if self.missing > 0.0 {
            (self.missing * shorter, self.missing)
        } else {
            (0.0, 0.0)
        };
        for (count, x) in self.counts.iter().zip(self.lengths()) {
            clipped += count * x * x.min(bound);
            whole += count * x * x;
        }
        clipped / whole.max(f64::MIN_POSITIVE)
    }

    /// How far clipping at `bound` can move the sum of the vectors: the clipped parts may all lie in
    /// one direction.
    pub fn lost_sum(&self, bound: f64) -> f64 {
        let hidden = (HIDDEN_SHARE * self.hidden).min(MOST_HIDDEN * self.records);
        let seen = self.counts.iter().zip(self.lengths());
        let seen: f64 = seen.map(|(c, x)| c * (x - bound).max(0.0)).sum();
        let missing = if self.missing > 0.0 {
            self.missing / self.beyond.powi(2) * (self.beyond - bound).max(0.0)
        } else {
            0.0
        };
        seen + missing.max(hidden * (BEYOND * self.top() - bound).max(0.0))
    }

    /// The clip bound that minimises the squares of the noise (`noise` for a bound of 1) and of the
    /// loss by clipping (weighted by `weight`), in units of the remaining slope.
    pub fn best_clip(&self, noise: f64, weight: f64) -> f64 {
        let longest = self.top().max(self.beyond);
        let cost = |bound: f64| {
            let efficiency = self.efficiency(bound);
            (noise * bound / efficiency).powi(2)
                + (weight * self.lost_sum(bound) / efficiency).powi(2)
        };
        bounds_below(longest)
            .min_by(|a, b| cost(*a).total_cmp(&cost(*b)))
            .unwrap_or(self.top())
    }
}

/// A histogram and the sum of the lengths that it does not show, with their typical length.
#[derive(Debug)]
pub(super) struct Completed<'a> {
    seen: &'a Histogram,
    missing: f64,
    beyond: f64,
}

impl Completed<'_> {
    /// The clip bound that minimises the squares of the noise in a sum (`noise` for a bound of 1) and
    /// of the loss by clipping (weighted by `weight`).
    pub fn bound_of_least_error(&self, noise: f64, weight: f64) -> f64 {
        let lengths = self.seen.lengths();
        let lost = |bound: f64| {
            let seen = self.seen.counts.iter().zip(&lengths);
            let seen: f64 = seen.map(|(c, x)| c * (x - bound).max(0.0)).sum();
            seen + self.missing * (1.0 - bound / self.beyond).max(0.0)
        };
        let cost = |bound: f64| (noise * bound).hypot(weight * lost(bound));
        bounds_below(self.beyond)
            .min_by(|a, b| cost(*a).total_cmp(&cost(*b)))
            .unwrap_or(self.beyond)
    }
}

/// The bounds that are tried where lengths are up to about `longest`.
fn bounds_below(longest: f64) -> impl Iterator<Item = f64> {
    (0..BOUNDS).map(move |k| 1.25 * longest * (-f64::from(k) / 6.0).exp2())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;
    use rand_distr::{Distribution, StandardNormal};

    const BINS: (Bins, f64) = (Bins::GRADIENT, 2.0);

    fn counts(filled: &[(usize, f64)]) -> Vec<f64> {
        let mut counts = vec![0.0; Bins::GRADIENT.count()];
        for (bin, count) in filled {
            counts[*bin] = *count;
        }
        counts
    }

    #[test]
    fn faint_bins_count_beside_others_and_loud_ones_far_off() {
        let faint = counts(&[
            (3, 20.0),
            (9, 300.0),
            (10, 900.0),
            (12, 25.0),
            (13, 35.0),
            (25, 60.0),
        ]);
        let seen = Histogram::seen(&faint, 10.0, BINS, 1260.0).unwrap();
        // 20 stands alone below 3.7 sds, 60 far off above 5.5.
        assert_eq!(seen.counts[3], 0.0);
        assert!(seen.counts[12] > 0.0 && seen.counts[13] > 0.0 && seen.counts[25] > 0.0);
        assert_eq!(seen.top(), 2.0 * Bins::GRADIENT.upper_end(25));
        assert!((seen.counts.iter().sum::<f64>() - 1260.0).abs() < 1e-9);
        assert!(Histogram::seen(&counts(&[(5, 36.0)]), 10.0, BINS, 100.0).is_none());
    }

    // If it failed: a bin of noise would be mistaken for the longest gradients, and clip bounds
    // be thousands of times too long. The false-alarm rate is one in a hundred; 2,000 histograms
    // of 29 bins of noise next to a full one have 20, and 40 are 4.5 sds above that.
    #[test]
    fn noise_is_rarely_taken_for_lengths() {
        let rng = &mut ChaCha8Rng::seed_from_u64(5);
        let mut wrong = 0;
        for _ in 0..2000 {
            let mut noisy = counts(&[(9, 1000.0)]);
            for count in &mut noisy {
                let noise: f64 = StandardNormal.sample(rng);
                *count += 10.0 * noise;
            }
            let seen = Histogram::seen(&noisy, 10.0, BINS, 1000.0).unwrap();
            wrong += u64::from(seen.last > 9 + GAP);
        }
        assert!(wrong <= 40, "{wrong}");
    }

    // If it failed: where one record in twelve has nearly all of the information, and these are lost
    // in the noise, clipping would seem to cost nothing, and intervals would be far too narrow.
    #[test]
    fn what_the_noise_hides_is_told_by_the_mean_square() {
        let rare = counts(&[(3, 4600.0), (11, 100.0)]);
        let [short, long] = [3, 11].map(|k| 2.0 * Bins::GRADIENT.upper_end(k) * 0.5f64.powf(0.25));
        let square = (4600.0 * short * short + 400.0 * long * long) / 5000.0;
        let seen = Histogram::seen(&rare, 40.0, BINS, 5000.0).unwrap();
        assert_eq!(seen.efficiency(short), 1.0);
        let told = seen.with_mean_square(square, 1.1 * long);
        let efficiency = told.efficiency(short);
        let truth = (4600.0 * short * short + 400.0 * long * short) / (5000.0 * square);
        assert!(
            (efficiency / truth - 1.0).abs() < 0.15,
            "{efficiency} {truth}"
        );
        // Everything is visible.
        let whole = counts(&[(3, 4600.0), (11, 400.0)]);
        let seen = Histogram::seen(&whole, 1.0, BINS, 5000.0).unwrap();
        let before = seen.efficiency(short);
        assert_eq!(
            seen.with_mean_square(square, long).efficiency(short),
            before
        );
    }

    // If it failed: the information of a group of one in ten with directions to itself would be
    // clipped to a fifth, the next axes would make it longer, and so on, until steps overshoot.
    #[test]
    fn what_the_noise_hides_is_told_by_the_mean() {
        let [short, long] = [3, 9].map(|k| 2.0 * Bins::GRADIENT.upper_end(k) * 0.5f64.powf(0.25));
        let mean = 0.9 * short + 0.1 * long;
        let rare = counts(&[(3, 3600.0), (9, 80.0)]);
        let seen = Histogram::seen(&rare, 60.0, BINS, 4000.0).unwrap();
        let bound = seen.with_mean(mean).bound_of_least_error(50.0, 0.25);
        assert!(
            (1.5 * short..=long).contains(&bound),
            "{bound} {short} {long}"
        );
        // Where nothing is missing, nothing is assumed, and without noise nothing is clipped.
        let bound = seen.with_mean(short).bound_of_least_error(50.0, 0.25);
        assert!(bound <= 1.2 * short, "{bound} {short}");
        assert!(seen.with_mean(short).bound_of_least_error(1e-9, 0.25) >= short);
    }

    #[test]
    fn quantiles_and_what_clipping_takes_are_those_of_the_bins() {
        let seen = counts(&[(8, 500.0), (10, 500.0)]);
        let seen = Histogram::seen(&seen, 1.0, BINS, 1000.0).unwrap();
        let [short, long] = [8, 10].map(|k| 2.0 * Bins::GRADIENT.upper_end(k));
        assert!((seen.exceeded_by(499.999) / long - 0.5f64.sqrt()).abs() < 1e-5);
        assert!((seen.exceeded_by(250.0) / long - 0.5f64.powf(0.25)).abs() < 1e-12);
        assert!(seen.exceeded_by(600.0) <= short);
        let middle = |end: f64| end * 0.5f64.powf(0.25);
        let lost = (middle(short) + middle(long)) / (2.0 * middle(short));
        assert!((seen.lost_factor(middle(short)) - lost).abs() < 1e-12);
        assert_eq!(seen.lost_factor(2.0 * long), 1.0);
        assert_eq!(seen.efficiency(2.0 * long), 1.0);
        // Without noise nothing is clipped; with much of it everything, and no more than that.
        assert!(seen.best_clip(1e-9, 1.0) >= long);
        let most = seen.best_clip(1e6, 1.0);
        assert!((0.5 * short..=short).contains(&most), "{most} {short}");
    }
}
