//! The noise compared with its definition and with mutants; tests/oracles/opendp compares it with
//! another implementation.
//!
//! Each statistical check below has a false-alarm rate of at most about 1e-9, and
//! there are about 80 of them: 1e-7 for this file. Chi-square thresholds are from
//! Laurent and Massart 2000, P(X >= d + 2 sqrt(d x) + 2 x) <= exp(-x) with
//! x = ln 1e9, on cells that expect at least 1000 draws; thresholds for counts are
//! 6.2 standard deviations; Kolmogorov's is from Massart 1990,
//! P(D > e) <= 2 exp(-2 N e^2). Power is computed for each, for a sigma 1% low.
//! Seeds are fixed.
//!
//! The full sizes:
//! `cargo test --release --lib noise -- --ignored`.

use super::*;

const MINUS_LOG_FALSE_ALARM: f64 = 20.8;

/// The law of a discrete Gaussian: P(K < edge), for tests.
struct Law {
    sigma: f64,
    /// P(K < first), P(K < first + 1), ...; empty where the continuous law serves.
    below: Vec<f64>,
    first: i64,
}

impl Law {
    fn new(variance: f64) -> Self {
        let sigma = variance.sqrt();
        if sigma > 1e5 {
            // Differs from the continuous law, at half-integers, by less than 1/sigma^2.
            return Self {
                sigma,
                below: Vec::new(),
                first: 0,
            };
        }
        let first = -(16.0 * sigma) as i64 - 16;
        let weight = |k: i64| (-(k as f64).powi(2) / (2.0 * variance)).exp();
        let total: f64 = (first..=-first).map(weight).sum();
        let mut sum = 0.0;
        let mut below = vec![0.0];
        for k in first..=-first {
            sum += weight(k) / total;
            below.push(sum);
        }
        Self {
            sigma,
            below,
            first,
        }
    }

    fn below(&self, edge: i64) -> f64 {
        if self.below.is_empty() {
            let z = (edge as f64 - 0.5) / self.sigma;
            return 0.5 * libm::erfc(-z / std::f64::consts::SQRT_2);
        }
        let last = self.below.len() as i64 - 1;
        self.below[(edge - self.first).clamp(0, last) as usize]
    }
}

/// Cells a quarter of sigma wide, the tails merged until they expect 1000 draws.
struct Cells {
    width: i64,
    low: i64,
    high: i64,
}

impl Cells {
    fn new(law: &Law, draws: usize) -> Self {
        let width = ((law.sigma / 4.0) as i64).max(1);
        let enough = 1000.0 / draws as f64;
        let low = (-60..).find(|low| law.below((low + 1) * width) >= enough);
        let high = (-60..).find(|high| 1.0 - law.below((high + 1) * width) < enough);
        Self {
            width,
            low: low.unwrap(),
            high: high.unwrap(),
        }
    }

    fn index(&self, k: i64) -> usize {
        (k.div_euclid(self.width).clamp(self.low, self.high) - self.low) as usize
    }

    fn probabilities(&self, law: &Law) -> Vec<f64> {
        (self.low..=self.high)
            .map(|cell| {
                let from = if cell == self.low {
                    0.0
                } else {
                    law.below(cell * self.width)
                };
                let to = if cell == self.high {
                    1.0
                } else {
                    law.below((cell + 1) * self.width)
                };
                to - from
            })
            .collect()
    }
}

fn chi_square_threshold(degrees: usize) -> f64 {
    let d = degrees as f64;
    d + 2.0 * (d * MINUS_LOG_FALSE_ALARM).sqrt() + 2.0 * MINUS_LOG_FALSE_ALARM
}

struct GoodnessOfFit {
    statistic: f64,
    threshold: f64,
    /// How many standard deviations the statistic's mean lies above the threshold
    /// when sigma is 1% low (non-central chi-square): 2.3 is a power of 99%.
    margin: f64,
}

/// Chi-square of `draws` against the law of `sigma`.
fn goodness_of_fit(draws: impl Iterator<Item = i64>, count: usize, sigma: u64) -> GoodnessOfFit {
    let variance = (sigma as f64).powi(2);
    let law = Law::new(variance);
    let cells = Cells::new(&law, count);
    let expected: Vec<f64> = cells.probabilities(&law);
    let mut counts = vec![0u32; expected.len()];
    for k in draws.take(count) {
        counts[cells.index(k)] += 1;
    }
    let n = count as f64;
    let statistic = counts
        .iter()
        .zip(&expected)
        .map(|(&c, &p)| (f64::from(c) - n * p).powi(2) / (n * p))
        .sum();
    let mutant = cells.probabilities(&Law::new(variance * 0.99 * 0.99));
    let noncentrality: f64 = mutant
        .iter()
        .zip(&expected)
        .map(|(q, p)| n * (q - p).powi(2) / p)
        .sum();
    let degrees = expected.len() - 1;
    let threshold = chi_square_threshold(degrees);
    let d = degrees as f64;
    GoodnessOfFit {
        statistic,
        threshold,
        margin: (d + noncentrality - threshold) / (2.0 * (d + 2.0 * noncentrality)).sqrt(),
    }
}

fn draws_of(noise: DiscreteGaussian, seed: u64) -> impl Iterator<Item = i64> {
    let mut rng = PrivateRng::from_insecure_seed(seed);
    std::iter::repeat_with(move || noise.sample(&mut rng))
}

/// Draws whose sigma is 1% too low.
fn low_draws(sigma: u64, seed: u64) -> Box<dyn Iterator<Item = i64>> {
    if sigma >= 100 {
        return Box::new(draws_of(noise(sigma / 100 * 99), seed));
    }
    // Not an integer: from the distribution function.
    let law = Law::new((0.99 * sigma as f64).powi(2));
    let mut rng = PrivateRng::from_insecure_seed(seed);
    Box::new(std::iter::repeat_with(move || {
        let uniform = rng.next_u64() as f64 / TWO_TO_64;
        law.first + law.below.partition_point(|&below| below <= uniform) as i64 - 1
    }))
}

fn noise(sigma: u64) -> DiscreteGaussian {
    DiscreteGaussian::new(sigma).unwrap()
}

/// Sigma, and how many draws a quick test takes.
const CASES: [(u64, usize); 5] = [
    (1, 1_500_000),
    (2, 1_500_000),
    (11, 1_000_000),
    (1000, 1_000_000),
    (1 << 40, 1_000_000),
];

// If it failed: the noise would not be the discrete Gaussian that the accountants
// charge for. Power above 99.9% for a sigma 1% low, asserted as `margin`.
#[test]
fn draws_follow_the_discrete_gaussian() {
    for (seed, (sigma, count)) in CASES.into_iter().enumerate() {
        let draws = draws_of(noise(sigma), 100 + seed as u64);
        let fit = goodness_of_fit(draws, count, sigma);
        assert!(fit.margin > 3.0, "sigma {sigma}: power {}", fit.margin);
        assert!(
            fit.statistic < fit.threshold,
            "sigma {sigma}: {}",
            fit.statistic
        );
    }
}

// If it failed: the test above would be blind.
#[test]
fn a_sigma_one_percent_low_is_caught() {
    for (seed, (sigma, count)) in CASES.into_iter().enumerate() {
        let fit = goodness_of_fit(low_draws(sigma, 200 + seed as u64), count, sigma);
        assert!(
            fit.statistic > fit.threshold,
            "sigma {sigma}: {}",
            fit.statistic
        );
    }
}

#[test]
#[ignore = "half a minute in release; run with: cargo test --release --lib noise -- --ignored"]
fn full_draws_follow_the_discrete_gaussian() {
    for (seed, (sigma, _)) in CASES.into_iter().enumerate() {
        let draws = draws_of(noise(sigma), 300 + seed as u64);
        let fit = goodness_of_fit(draws, 10_000_000, sigma);
        assert!(fit.margin > 6.0, "sigma {sigma}: power {}", fit.margin);
        assert!(
            fit.statistic < fit.threshold,
            "sigma {sigma}: {}",
            fit.statistic
        );
    }
}

/// sqrt(N) times the Kolmogorov-Smirnov distance of N draws from sigma = 2^40.
fn kolmogorov_smirnov(noise: DiscreteGaussian, seed: u64, count: usize) -> f64 {
    let law = Law::new(2f64.powi(80));
    let mut draws: Vec<i64> = draws_of(noise, seed).take(count).collect();
    draws.sort_unstable();
    let n = count as f64;
    // At this sigma ties are rare and worth 1/N at most.
    let distance = draws.iter().enumerate().fold(0.0f64, |worst, (i, &k)| {
        let at = law.below(k + 1);
        worst.max(at - i as f64 / n).max((i + 1) as f64 / n - at)
    });
    distance * n.sqrt()
}

/// 2 exp(-2 x^2) = 1e-9.
const KOLMOGOROV_THRESHOLD: f64 = 3.28;

// If it failed: the noise of a private run, on its own lattice, would have the
// wrong distribution function somewhere. sup |Phi(x) - Phi(x / 0.98)| = 0.0049,
// so at 10^6 draws a sigma 2% low gives 4.9 against 3.28 (deviation about 0.5); the
// mutant here is 3% low, at 7.3.
#[test]
fn full_size_lattice_passes_kolmogorov_smirnov() {
    let right = kolmogorov_smirnov(noise(1 << 40), 400, 1_000_000);
    assert!(right < KOLMOGOROV_THRESHOLD, "{right}");
    let low = noise((1 << 40) / 100 * 97);
    let caught = kolmogorov_smirnov(low, 401, 1_000_000);
    assert!(caught > KOLMOGOROV_THRESHOLD, "{caught}");
}

// As above at 10^7 draws, where 1% low gives 7.7.
#[test]
#[ignore = "half a minute in release; run with: cargo test --release --lib noise -- --ignored"]
fn full_kolmogorov_smirnov() {
    let right = kolmogorov_smirnov(noise(1 << 40), 402, 10_000_000);
    assert!(right < KOLMOGOROV_THRESHOLD, "{right}");
    let low = noise((1 << 40) / 100 * 99);
    let caught = kolmogorov_smirnov(low, 403, 10_000_000);
    assert!(caught > KOLMOGOROV_THRESHOLD, "{caught}");
}

// If it failed: the low bits of the noise would show the low bits of the sum, as
// in Mironov 2012. One class of the 64 that is 30% too rare has a non-centrality of
// 285: mean 348, deviation 36, against a threshold of 178.
#[test]
fn the_low_bits_are_uniform() {
    let count = 200_000;
    let mut counts = [0u32; 64];
    for k in draws_of(noise(1 << 40), 500).take(count) {
        counts[k.rem_euclid(64) as usize] += 1;
    }
    let expected = count as f64 / 64.0;
    let statistic: f64 = counts
        .iter()
        .map(|&c| (f64::from(c) - expected).powi(2) / expected)
        .sum();
    assert!(statistic < chi_square_threshold(63), "{statistic}");
}

/// Asserts that `trial` succeeds with probability `p`, by 10^5 trials, which detect with 99% an
/// error of 8.5 standard deviations, 0.013 at p = 1/2.
fn assert_probability(what: &str, p: f64, mut trial: impl FnMut() -> bool) {
    let count = 100_000;
    let successes = (0..count).filter(|_| trial()).count() as f64;
    let n = f64::from(count);
    let deviation = (n * p * (1.0 - p)).sqrt();
    let off = (successes - n * p).abs();
    assert!(
        off <= 6.2 * deviation + 1.0,
        "{what}: {successes} of {n}, p = {p}"
    );
}

// If it failed: a Bernoulli trial inside the sampler would be wrong where the
// whole sampler's chi-square has little power: v of 2 and more.
#[test]
fn the_acceptance_step_has_its_probability() {
    let mut rng = PrivateRng::from_insecure_seed(700);
    let sigma = 1000;
    for v in 0..4 {
        for u in [0, 1, 250, 999] {
            let from_centre = (u + sigma * v) as f64 / sigma as f64 - 1.0;
            let p = (-from_centre * from_centre / 2.0).exp();
            let what = format!("u = {u}, v = {v}");
            assert_probability(&what, p, || keep(u, v, sigma, &mut rng));
        }
    }
}

// If it failed: Metropolis chains would have the wrong stationary distribution.
#[test]
fn accept_has_its_probability() {
    let mut rng = PrivateRng::from_insecure_seed(702);
    for x in [-1e-3f64, -0.1, -0.5, -1.0, -1.5, -3.25, -5.0] {
        assert_probability(&format!("x = {x}"), x.exp(), || accept(x, &mut rng));
    }
}

// If it failed: a proposal outside the support could be accepted, or a certain one
// refused, or a number at the edge of f64 would panic.
#[test]
fn accept_at_the_edges() {
    let mut rng = PrivateRng::from_insecure_seed(703);
    for _ in 0..1000 {
        for x in [0.0, -0.0, 1e-300, 3.0, 1e308, f64::INFINITY] {
            assert!(accept(x, &mut rng), "{x}");
        }
        for x in [f64::NAN, f64::NEG_INFINITY, f64::MIN, -1e30, -2e19, -200.0] {
            assert!(!accept(x, &mut rng), "{x}");
        }
        // Below the grid: probability 1 - 1e-20 or more, taken as 1.
        for x in [-f64::MIN_POSITIVE, -5e-324, -1e-20] {
            assert!(accept(x, &mut rng), "{x}");
        }
    }
}

// If it failed: a coin of rational bias would be wrong at its ends, where the
// words drawn meet the fraction exactly.
#[test]
fn ratio_at_the_edges() {
    let mut rng = PrivateRng::from_insecure_seed(704);
    for den in [1, 2, 3, 1 << 32, (1 << 32) + 1, MAX_SIGMA, u64::MAX] {
        for _ in 0..1000 {
            assert!(!ratio(0, den, &mut rng));
            assert!(ratio(den, den, &mut rng));
        }
        let half = den / 2;
        let p = half as f64 / den as f64;
        assert_probability(&format!("den = {den}"), p, || ratio(half, den, &mut rng));
    }
}

// If it failed: the extreme settings would overflow, or wrong ones be let through.
#[test]
fn the_extremes_are_in_range_and_the_rest_refused() {
    let mut rng = PrivateRng::from_insecure_seed(705);
    for _ in 0..10_000 {
        assert!(noise(MAX_SIGMA).sample(&mut rng).unsigned_abs() < 1 << 62);
    }
    assert_eq!(
        DiscreteGaussian::new(0),
        Err(NoiseError::Sigma { sigma: 0 })
    );
    assert!(DiscreteGaussian::new(MAX_SIGMA + 1).is_err());
}

// If it failed: the far tail would overflow.
#[test]
fn the_last_value_of_v_does_not_overflow() {
    let mut rng = PrivateRng::from_insecure_seed(706);
    for sigma in [1, 1000, MAX_SIGMA] {
        assert!(!keep(sigma - 1, TAIL - 1, sigma, &mut rng));
    }
}
