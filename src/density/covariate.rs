//! Values of covariates that are made up: by the public guess of a codebook where there is one,
//! between the declared bounds else.

use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Beta, Distribution, Exp1, Gamma, StandardNormal};

use super::grid::finite;
use crate::model::{GuessedLaw, RecordColumn};

/// A value of a column.
pub(super) fn covariate(column: &RecordColumn, by_bounds: bool, rng: &mut impl Rng) -> f64 {
    let Some(guess) = column.guess.as_ref().filter(|_| !by_bounds) else {
        return between_bounds(column, rng);
    };
    if guess.zeros > 0.0 && rng.random::<f64>() < guess.zeros {
        return 0.0;
    }
    let value = match &guess.law {
        GuessedLaw::Unknown => return between_bounds(column, rng),
        GuessedLaw::Moments { mean, sd } => with_moments(*mean, *sd, column, rng),
        GuessedLaw::Quantiles(points) => at_share(points, rng.random()),
        GuessedLaw::Shares(shares) => {
            let mut left: f64 = rng.random();
            let drawn = shares.iter().find(|[_, share]| {
                left -= share;
                left < 0.0
            });
            // Rounding may leave a little of the shares' sum.
            drawn
                .or(shares.last())
                .map_or(f64::NAN, |[value, _]| *value)
        }
    };
    let value = if column.is_int { value.round() } else { value };
    let low = column.lower.unwrap_or(f64::NEG_INFINITY);
    value.max(low).min(column.upper.unwrap_or(f64::INFINITY))
}

/// So many values of a column that is made up.
pub(crate) fn made_up_values(column: &RecordColumn, n: usize, seed: u64) -> Vec<f64> {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    (0..n).map(|_| covariate(column, false, rng)).collect()
}

/// The distribution function's inverse, of which points are given: probabilities with values.
fn at_share(points: &[[f64; 2]], share: f64) -> f64 {
    let last = points.len() - 1;
    let next = points.partition_point(|[p, _]| *p <= share).clamp(1, last);
    let ([p, a], [q, b]) = (points[next - 1], points[next]);
    a + (b - a) * ((share - p) / (q - p)).clamp(0.0, 1.0)
}

/// A beta distribution between two bounds, a gamma distribution from one, a normal one without any.
fn with_moments(mean: f64, sd: f64, column: &RecordColumn, rng: &mut impl Rng) -> f64 {
    // Rounding moves ints by up to a half.
    let (room, variance) = if column.is_int {
        (0.5, (sd * sd - 1.0 / 12.0).max(sd * sd / 4.0))
    } else {
        (0.0, sd * sd)
    };
    let low = finite(column.lower).map(|low| low - room);
    let high = finite(column.upper).map(|high| high + room);
    let of_gamma = |distance: f64, rng: &mut _| {
        let law = Gamma::new(distance * distance / variance, variance / distance);
        law.map_or(distance, |law| law.sample(rng))
    };
    match (low, high) {
        (Some(low), Some(high)) => {
            let width = high - low;
            let share = (mean - low) / width;
            let weight = share * (1.0 - share) * width * width / variance - 1.0;
            let law = Beta::new(share * weight, (1.0 - share) * weight);
            law.map_or(mean, |law| low + width * law.sample(rng))
        }
        (Some(low), None) => low + of_gamma(mean - low, rng),
        (None, Some(high)) => high - of_gamma(high - mean, rng),
        (None, None) => mean + variance.sqrt() * Distribution::<f64>::sample(&StandardNormal, rng),
    }
}

/// A value of a column of which only the declaration is known.
fn between_bounds(column: &RecordColumn, rng: &mut impl Rng) -> f64 {
    let value = match (finite(column.lower), finite(column.upper)) {
        (Some(low), Some(high)) if column.is_int => {
            return low
                + (rng.random::<f64>() * (high - low + 1.0))
                    .floor()
                    .min(high - low);
        }
        (Some(low), Some(high)) => {
            let share: f64 = rng.random();
            return low * (1.0 - share) + high * share;
        }
        (Some(low), None) => low + Distribution::<f64>::sample(&Exp1, rng),
        (None, Some(high)) => high - Distribution::<f64>::sample(&Exp1, rng),
        (None, None) => StandardNormal.sample(rng),
    };
    if column.is_int { value.round() } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formula::Codebook;
    use crate::model::{Constants, Model};

    const N: usize = 20_000;

    fn draws(declared: &str, guess: &str) -> Vec<f64> {
        let source = format!(
            "record {{ real y; {declared} x; }} parameters {{ real a; }}
             model {{ a ~ normal(0, 1); y ~ normal(a * x, 1); }}"
        );
        let book = Codebook::read(&format!("columns: {{x: {guess}}}")).unwrap();
        let model = Model::from_source(&source, &Constants::none()).unwrap();
        let model = model.with_codebook(&book).unwrap();
        let rng = &mut ChaCha8Rng::seed_from_u64(3);
        (0..N)
            .map(|_| covariate(&model.columns[1], false, rng))
            .collect()
    }

    fn share(values: &[f64], which: impl Fn(f64) -> bool) -> f64 {
        values.iter().filter(|x| which(**x)).count() as f64 / values.len() as f64
    }

    // If it failed: plans would be made for covariates that nobody guessed. Oracle: the guess.
    // 20,000 values: five standard errors of a mean and of a variance (kurtosis up to 30), below
    // 1e-5 in all; a tenth of a standard deviation is seen. Ints that lie at a bound are moved by
    // their rounding, so that they may be off by a tenth of the sd in addition.
    #[test]
    fn covariates_have_the_moments_of_their_guess() {
        for (declared, guess, mean, sd) in [
            ("real<lower=0, upper=10>", "{mean: 2, sd: 1}", 2.0, 1.0),
            (
                "real<lower=0, upper=1e5>",
                "{mean: 1000, sd: 3000}",
                1e3,
                3e3,
            ),
            ("real<lower=5>", "{mean: 7, sd: 2}", 7.0, 2.0),
            ("real<upper=5>", "{mean: 4, sd: 2}", 4.0, 2.0),
            ("real", "{mean: -3, sd: 0.1}", -3.0, 0.1),
            ("int<lower=0, upper=90>", "{mean: 40, sd: 12}", 40.0, 12.0),
            ("int<lower=0, upper=20>", "{mean: 1, sd: 1.5}", 1.0, 1.5),
            ("int<lower=0>", "{mean: 3, sd: 2}", 3.0, 2.0),
            ("int<lower=0, upper=1>", "{mean: 0.3}", 0.3, 0.21_f64.sqrt()),
        ] {
            let values = draws(declared, guess);
            let m = values.iter().sum::<f64>() / N as f64;
            let v = values.iter().map(|x| (x - m).powi(2)).sum::<f64>() / N as f64;
            let error = 5.0 / (N as f64).sqrt();
            let rounded = if declared.starts_with("int") {
                0.1
            } else {
                0.0
            };
            let told = format!("{declared} {guess}: mean {m}, sd {}", v.sqrt());
            assert!((m - mean).abs() < (error + rounded) * sd, "{told}");
            assert!(
                (v / (sd * sd) - 1.0).abs() < 6.0 * error + 2.0 * rounded,
                "{told}"
            );
            assert!(!declared.starts_with("int") || values.iter().all(|x| x.fract() == 0.0));
        }
    }

    // The same: five standard errors of a share are below 0.018.
    #[test]
    fn covariates_have_the_shares_of_their_guess() {
        let near = |found: f64, share: f64, what: &str| {
            assert!((found - share).abs() < 0.018, "{what}: {found} for {share}");
        };
        let values = draws(
            "real<lower=0, upper=99999>",
            "{zeros: 0.9, quantiles: {0.5: 5000, 0.9: 15000}}",
        );
        near(share(&values, |x| x == 0.0), 0.9, "zeros");
        near(share(&values, |x| x > 5000.0), 0.05, "above the median");
        near(share(&values, |x| x > 15_000.0), 0.01, "above .9");
        let values = draws("int<lower=1, upper=4>", "{shares: {1: 0.5, 2: 0.1}}");
        for (value, expected) in [(1.0, 0.5), (2.0, 0.1), (3.0, 0.2), (4.0, 0.2)] {
            near(share(&values, |x| x == value), expected, "a share");
        }
        let values = draws("real<lower=0, upper=10>", "{zeros: 0.25}");
        near(share(&values, |x| x == 0.0), 0.25, "zeros");
        near(share(&values, |x| x > 5.0), 0.375, "uniform beside zeros");
    }
}
