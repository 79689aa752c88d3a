//! A black-box audit: which of two neighbouring data sets was it?
//!
//! The mechanism runs many times on each. From a fifth of the transcripts, a linear
//! statistic is learned; on the others, how often it errs is counted, and from the
//! counts a lower bound on the privacy loss follows that holds with a stated
//! probability whatever the statistic is. For a Gaussian mechanism the best linear
//! statistic is the likelihood ratio, so nothing is lost there.
//!
//! # Reference
//!
//! Nasr, Hayes, Steinke, Balle, Tramèr, Jagielski, Carlini and Terzis 2023, "Tight
//! auditing of differentially private machine learning" (both error rates against the
//! trade-off function); Clopper and Pearson 1934 for the counts; Fisher's discriminant
//! for the statistic.

use std::sync::atomic::{AtomicU64, Ordering};

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, Normal};

use super::Broken;
use super::claim::Claim;

/// The probability that an audit of a sound mechanism says that it is broken.
pub const FALSE_ALARM: f64 = 1e-8;

/// Where thresholds of the statistic are tried: in the middle, in the tails, and, for
/// mixtures, whose loss is only seen where the other side hardly ever is, far out.
const THRESHOLDS: [f64; 5] = [0.01, 0.1, 0.5, 0.9, 0.99];

/// Numbers farther than this from the median, in units of the spread, tell of something
/// else than noise (a rejected proposal, say) and are taken as missing.
const FAR: f64 = 8.0;

/// The findings of an audit.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// Lower bound on the mu of Gaussian differential privacy.
    pub mu_lower: f64,
    /// By how much the claim is contradicted, in delta; negative where it holds.
    pub excess: f64,
    /// The largest share of a claimed delta that is seen.
    pub share: f64,
}

impl Found {
    /// # Errors
    ///
    /// The claim is contradicted.
    pub fn verdict(self, claim: &Claim) -> Result<Found, Broken> {
        if self.excess > 0.0 {
            let claimed = claim.mu.map(|mu| format!(", and {mu:.4} is claimed"));
            return Err(Broken(format!(
                "the claim is exceeded by {:.4} in delta: mu is at least {:.4}{}",
                self.excess,
                self.mu_lower,
                claimed.unwrap_or_default()
            )));
        }
        Ok(self)
    }
}

/// Audits a mechanism: `transcript(side, run)` runs it on D (`false`) or D' (`true`)
/// with noise of its own for each `run`, and gives numbers, as many each time.
pub fn distinguish(
    claim: &Claim,
    runs: u64,
    transcript: impl Fn(bool, u64) -> Vec<f64> + Sync,
) -> Found {
    // No run shares its noise with another, on whichever side.
    let all = in_parallel(2 * runs, |run| transcript(run >= runs, run));
    let (d, other) = all.split_at(runs as usize);
    let training = d.len() / 5;
    let statistic = Statistic::learn(&d[..training], &other[..training]);
    let scores = |runs: &[Vec<f64>]| -> Vec<f64> {
        let mut scores: Vec<f64> = runs.iter().map(|run| statistic.score(run)).collect();
        scores.sort_by(f64::total_cmp);
        scores
    };
    let (learned_d, learned_other) = (scores(&d[..training]), scores(&other[..training]));
    let (d, other) = (scores(&d[training..]), scores(&other[training..]));
    let normal = Normal::standard();
    // Two error rates at each threshold.
    let alarm = FALSE_ALARM / (2 * THRESHOLDS.len()) as f64;
    let mut found = Found {
        mu_lower: f64::NEG_INFINITY,
        excess: f64::NEG_INFINITY,
        share: 0.0,
    };
    for share in THRESHOLDS {
        // Between the two, and seen in training alone.
        let (low, high) = (quantile(&learned_d, share), quantile(&learned_other, share));
        let threshold = match share {
            0.5 => (low + high) / 2.0,
            s if s < 0.5 => high,
            _ => low,
        };
        let above = |scores: &[f64]| scores.len() - scores.partition_point(|&s| s <= threshold);
        let false_positives = above(&d);
        let false_negatives = other.len() - above(&other);
        let fpr = rate_at_most(false_positives, d.len(), alarm);
        let fnr = rate_at_most(false_negatives, other.len(), alarm);
        found.mu_lower = found
            .mu_lower
            .max(-normal.inverse_cdf(fpr) - normal.inverse_cdf(fnr));
        found.excess = found.excess.max(claim.excess(fpr, fnr));
        found.share = found.share.max(claim.share(fpr, fnr));
    }
    found
}

/// Threads of our own, since a mechanism may use rayon's.
fn in_parallel(runs: u64, run: impl Fn(u64) -> Vec<f64> + Sync) -> Vec<Vec<f64>> {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    let next = AtomicU64::new(0);
    let mut all: Vec<Vec<f64>> = vec![Vec::new(); runs as usize];
    let parts: Vec<Vec<(u64, Vec<f64>)>> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut done = Vec::new();
                    loop {
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        if i >= runs {
                            return done;
                        }
                        done.push((i, run(i)));
                    }
                })
            })
            .collect();
        let joined = handles.into_iter().map(|handle| handle.join());
        joined
            .map(|part| part.expect("a run that does not panic"))
            .collect()
    });
    for (i, numbers) in parts.into_iter().flatten() {
        all[i as usize] = numbers;
    }
    all
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}

/// The largest p for which `count` of `n` or fewer has probability `alarm` or more.
pub fn rate_at_most(count: usize, n: usize, alarm: f64) -> f64 {
    let (mut low, mut high) = (count as f64 / n as f64, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        let seen = Binomial::new(middle, n as u64).map_or(1.0, |b| b.cdf(count as u64));
        if seen < alarm {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// Fisher's linear discriminant on numbers in units of their spread.
struct Statistic {
    centre: Vec<f64>,
    spread: Vec<f64>,
    weight: Vec<f64>,
}

impl Statistic {
    fn learn(d: &[Vec<f64>], other: &[Vec<f64>]) -> Statistic {
        let size = d[0].len();
        let mut statistic = Statistic {
            centre: vec![0.0; size],
            spread: vec![1.0; size],
            weight: vec![0.0; size],
        };
        for j in 0..size {
            let mut values: Vec<f64> = d.iter().chain(other).map(|run| run[j]).collect();
            values.sort_by(f64::total_cmp);
            let centre = quantile(&values, 0.5);
            for value in &mut values {
                *value = (*value - centre).abs();
            }
            values.sort_by(f64::total_cmp);
            let spread = quantile(&values, 0.68);
            statistic.centre[j] = centre;
            statistic.spread[j] = if spread > 0.0 {
                spread
            } else {
                // Nearly always the same number.
                values.iter().copied().find(|v| *v > 0.0).unwrap_or(1.0)
            };
        }
        let scaled = |runs: &[Vec<f64>]| -> Vec<Vec<f64>> {
            runs.iter().map(|run| statistic.scaled(run)).collect()
        };
        let (d, other) = (scaled(d), scaled(other));
        let (mean_d, mean_other) = (mean(&d), mean(&other));
        let mut covariance = vec![vec![0.0; size]; size];
        for (runs, mean) in [(&d, &mean_d), (&other, &mean_other)] {
            for run in runs {
                for (i, row) in covariance.iter_mut().enumerate() {
                    for (j, c) in row.iter_mut().enumerate() {
                        *c += (run[i] - mean[i]) * (run[j] - mean[j]);
                    }
                }
            }
        }
        let total = (d.len() + other.len()) as f64;
        for (i, row) in covariance.iter_mut().enumerate() {
            for c in row.iter_mut() {
                *c /= total;
            }
            // Numbers that follow from others leave it singular.
            row[i] += 1e-9;
        }
        let difference = mean_other.iter().zip(&mean_d).map(|(a, b)| a - b).collect();
        statistic.weight = solve(covariance, difference);
        statistic
    }

    fn scaled(&self, run: &[f64]) -> Vec<f64> {
        run.iter()
            .zip(&self.centre)
            .zip(&self.spread)
            .map(|((x, centre), spread)| {
                let z = (x - centre) / spread;
                if z.abs() <= FAR { z } else { 0.0 }
            })
            .collect()
    }

    fn score(&self, run: &[f64]) -> f64 {
        let scaled = self.scaled(run);
        scaled.iter().zip(&self.weight).map(|(z, w)| z * w).sum()
    }
}

fn mean(runs: &[Vec<f64>]) -> Vec<f64> {
    let mut mean = vec![0.0; runs[0].len()];
    for run in runs {
        for (m, x) in mean.iter_mut().zip(run) {
            *m += x / runs.len() as f64;
        }
    }
    mean
}

/// x with A x = b for a symmetric positive definite A: elimination without pivots.
fn solve(mut a: Vec<Vec<f64>>, mut b: Vec<f64>) -> Vec<f64> {
    for i in 0..b.len() {
        let (pivot, value) = (a[i].clone(), b[i]);
        for k in i + 1..b.len() {
            let factor = a[k][i] / pivot[i];
            for (x, p) in a[k].iter_mut().zip(&pivot) {
                *x -= factor * p;
            }
            b[k] -= factor * value;
        }
    }
    for i in (0..b.len()).rev() {
        let known: f64 = (i + 1..b.len()).map(|j| a[i][j] * b[j]).sum();
        b[i] = (b[i] - known) / a[i][i];
    }
    b
}
