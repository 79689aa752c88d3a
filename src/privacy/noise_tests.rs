//! The noise against its definition and against mutants; tests/oracles/opendp sets it
//! against another implementation.
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

/// Chi-square of `draws` against the law of variance `variance`.
fn goodness_of_fit(draws: impl Iterator<Item = i64>, count: usize, variance: f64) -> GoodnessOfFit {
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

/// A sigma of the test plan: the variance, the sampler, and the sampler whose
/// sigma is 1% too low.
struct Case {
    variance: f64,
    noise: DiscreteGaussian,
    mutant: DiscreteGaussian,
    quick_draws: usize,
}

fn cases() -> Vec<Case> {
    let rational = |num, den, quick_draws| Case {
        variance: num as f64 / den as f64,
        noise: DiscreteGaussian::from_variance(num, den).unwrap(),
        mutant: DiscreteGaussian::from_variance(num * 9801, den * 10_000).unwrap(),
        quick_draws,
    };
    vec![
        rational(9, 100, 2_000_000), // sigma = 0.3
        rational(441, 4, 1_000_000), // sigma = 10.5
        Case {
            variance: 1.0,
            noise: DiscreteGaussian::new(1).unwrap(),
            mutant: DiscreteGaussian::from_variance(9801, 10_000).unwrap(),
            quick_draws: 1_500_000,
        },
        Case {
            variance: 1e6,
            noise: DiscreteGaussian::new(1000).unwrap(),
            mutant: DiscreteGaussian::new(990).unwrap(),
            quick_draws: 1_000_000,
        },
        Case {
            variance: 2f64.powi(80),
            noise: DiscreteGaussian::new(1 << 40).unwrap(),
            mutant: DiscreteGaussian::new((1 << 40) / 100 * 99).unwrap(),
            quick_draws: 1_000_000,
        },
    ]
}

// If it failed: the noise would not be the discrete Gaussian that the accountants
// charge for. Power above 99.9% for a sigma 1% low, asserted as `margin`.
#[test]
fn draws_follow_the_discrete_gaussian() {
    for (seed, case) in cases().into_iter().enumerate() {
        let draws = draws_of(case.noise, 100 + seed as u64);
        let fit = goodness_of_fit(draws, case.quick_draws, case.variance);
        let sigma = case.variance.sqrt();
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
    for (seed, case) in cases().into_iter().enumerate() {
        let draws = draws_of(case.mutant, 200 + seed as u64);
        let fit = goodness_of_fit(draws, case.quick_draws, case.variance);
        let sigma = case.variance.sqrt();
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
    for (seed, case) in cases().into_iter().enumerate() {
        let draws = draws_of(case.noise, 300 + seed as u64);
        let fit = goodness_of_fit(draws, 10_000_000, case.variance);
        let sigma = case.variance.sqrt();
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
    let right = kolmogorov_smirnov(DiscreteGaussian::new(1 << 40).unwrap(), 400, 1_000_000);
    assert!(right < KOLMOGOROV_THRESHOLD, "{right}");
    let low = DiscreteGaussian::new((1 << 40) / 100 * 97).unwrap();
    let caught = kolmogorov_smirnov(low, 401, 1_000_000);
    assert!(caught > KOLMOGOROV_THRESHOLD, "{caught}");
}

// As above at 10^7 draws, where 1% low gives 7.7.
#[test]
#[ignore = "half a minute in release; run with: cargo test --release --lib noise -- --ignored"]
fn full_kolmogorov_smirnov() {
    let right = kolmogorov_smirnov(DiscreteGaussian::new(1 << 40).unwrap(), 402, 10_000_000);
    assert!(right < KOLMOGOROV_THRESHOLD, "{right}");
    let low = DiscreteGaussian::new((1 << 40) / 100 * 99).unwrap();
    let caught = kolmogorov_smirnov(low, 403, 10_000_000);
    assert!(caught > KOLMOGOROV_THRESHOLD, "{caught}");
}

// If it failed: the low bits of the noise would show the low bits of the sum, as
// in Mironov 2012. One class of the 64 that is 30% too rare has a non-centrality of
// 285: mean 348, deviation 36, against a threshold of 178.
#[test]
fn the_low_bits_are_uniform() {
    let noise = DiscreteGaussian::new(1 << 40).unwrap();
    let count = 200_000;
    let mut counts = [0u32; 64];
    for k in draws_of(noise, 500).take(count) {
        counts[k.rem_euclid(64) as usize] += 1;
    }
    let expected = count as f64 / 64.0;
    let statistic: f64 = counts
        .iter()
        .map(|&c| (f64::from(c) - expected).powi(2) / expected)
        .sum();
    assert!(statistic < chi_square_threshold(63), "{statistic}");
}

/// Asserts that `trial` succeeds with probability `p`, by 10^5 trials: what is
/// caught with 99% is an error of 8.5 standard deviations, 0.013 at p = 1/2.
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
fn both_acceptance_steps_have_their_probability() {
    let mut rng = PrivateRng::from_insecure_seed(700);
    let sigma = 1000;
    for v in 0..4 {
        for u in [0, 1, 250, 999] {
            let from_centre = (u + sigma * v) as f64 / sigma as f64 - 1.0;
            let p = (-from_centre * from_centre / 2.0).exp();
            let what = format!("u = {u}, v = {v}");
            assert_probability(&what, p, || keep_integer(u, v, sigma, &mut rng));
            assert_probability(&what, p, || {
                keep_rational(u, v, sigma * sigma, 1, sigma, &mut rng)
            });
        }
    }
}

// If it failed: exp(-x) would be wrong in some range of x.
#[test]
fn bernoulli_exp_neg_has_its_probability() {
    let mut rng = PrivateRng::from_insecure_seed(701);
    for (num, den) in [(0, 7), (1, 100), (1, 3), (1, 1), (7, 5), (2, 1), (19, 4)] {
        let den = NonZeroU64::new(den).unwrap();
        let x = num as f64 / den.get() as f64;
        assert_probability(&format!("x = {x}"), (-x).exp(), || {
            bernoulli_exp_neg(num, den, &mut rng)
        });
    }
    // The largest arguments do not overflow, and are a certain failure.
    let one = NonZeroU64::new(1).unwrap();
    assert!(!bernoulli_exp_neg(u128::MAX, one, &mut rng));
    assert!(!bernoulli_exp_neg(u128::MAX, NonZeroU64::MAX, &mut rng));
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
    let widest = DiscreteGaussian::new(MAX_SIGMA).unwrap();
    let top = MAX_VARIANCE_PART;
    let rationals = [(1, top), (top, 1), (top, top), (top - 1, top), (1, 1)];
    let rationals = rationals.map(|(n, d)| DiscreteGaussian::from_variance(n, d).unwrap());
    for _ in 0..10_000 {
        assert!(widest.sample(&mut rng).unsigned_abs() < 1 << 62);
        for noise in rationals {
            assert!(noise.sample(&mut rng).unsigned_abs() < 4096 * 16_385);
        }
    }
    assert_eq!(
        DiscreteGaussian::new(0),
        Err(NoiseError::Sigma { sigma: 0 })
    );
    assert!(DiscreteGaussian::new(MAX_SIGMA + 1).is_err());
    assert!(DiscreteGaussian::from_variance(0, 1).is_err());
    assert!(DiscreteGaussian::from_variance(1, 0).is_err());
    assert!(DiscreteGaussian::from_variance(top + 1, 1).is_err());
    assert!(DiscreteGaussian::from_variance(1, top + 1).is_err());
}

// If it failed: the far tail, u128 intermediate values included, would overflow.
#[test]
fn the_last_value_of_v_does_not_overflow() {
    let mut rng = PrivateRng::from_insecure_seed(706);
    for sigma in [1, 1000, MAX_SIGMA] {
        assert!(!keep_integer(sigma - 1, TAIL - 1, sigma, &mut rng));
    }
    let top = MAX_VARIANCE_PART;
    for (num, den) in [(top, 1), (1, top), (top, top)] {
        let t = (num / den).isqrt() + 1;
        assert!(!keep_rational(t - 1, TAIL - 1, num, den, t, &mut rng));
    }
}
