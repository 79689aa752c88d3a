//! Discrete Gaussian noise and Bernoulli(exp(-x)), exactly, in integers.
//!
//! Between the random bits and what is returned there is no floating-point
//! number, so the distributions below are the true ones and not nearly so.
//! What the samplers take is time that depends on what they draw; the timing of
//! one query is outside the promise (docs/privacy.md).

use super::randomness::PrivateRng;
use std::num::NonZeroU64;

/// The discrete Gaussian on the integers: P(k) proportional to exp(-k^2 / (2 sigma^2)).
///
/// Units are lattice units: the caller multiplies by the lattice's gamma.
///
/// # Privacy
///
/// What must be shown: [`sample`](Self::sample) returns k with the probability
/// above. Then adding it to an integer with sensitivity D is
/// D^2 / (2 sigma^2)-zCDP (Canonne, Kamath and Steinke 2020, Theorem 4; docs/proofs.md,
/// sections 7 and 8).
///
/// Why it holds. With t a positive integer, U uniform on `0..t` kept with
/// probability exp(-U/t), V geometric with P(V >= v) = exp(-v), and a fair sign
/// with "minus zero" drawn again, y = +-(U + t V) is a discrete Laplace of scale
/// t: P(y) is proportional to exp(-|y|/t) (Algorithm 2). Keeping y with
/// probability exp(-(|y| - sigma^2/t)^2 / (2 sigma^2)) multiplies the weights to
/// exp(-|y|/t) exp(-y^2 / (2 sigma^2) + |y|/t) times a constant (Algorithm 3).
/// Any order of the independent trials gives the same law, and one failed trial
/// starts all of them again.
///
/// The draw is started again if V reaches 4096. So the law is exactly
/// the discrete Gaussian given |k| < 4096 t, where t >= sigma: within total
/// variation 2 exp(-4096^2 / 2) < 2^-12,000,000 of the whole one. (A draw of V gets
/// there with probability exp(-4096): it does not happen.)
///
/// # Reference
///
/// Canonne, Kamath and Steinke 2020, "The Discrete Gaussian for Differential
/// Privacy", arXiv:2004.00010, Algorithms 1 to 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiscreteGaussian {
    spread: Spread,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spread {
    /// sigma itself is an integer, and t = sigma: the case of every private run.
    Integer { sigma: u64 },
    /// sigma^2 = num / den, and t = floor(sigma) + 1.
    Rational { num: u64, den: u64, t: u64 },
}

/// The largest integer sigma, 2^50: a draw stays below 4096 * 2^50 = 2^62.
pub const MAX_SIGMA: u64 = 1 << 50;

/// The largest numerator and denominator of a rational sigma^2, 2^28.
pub const MAX_VARIANCE_PART: u64 = 1 << 28;

/// V is below this; see [`DiscreteGaussian`].
const TAIL: u64 = 4096;

/// Why there is no such noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoiseError {
    /// sigma is 0 or above [`MAX_SIGMA`].
    #[error(
        "noise of sigma = {sigma} lattice units was asked for; sigma must be from 1 to \
         {MAX_SIGMA} (2^50): choose a coarser lattice for more noise, a finer one for less"
    )]
    Sigma {
        /// The sigma asked for, in lattice units.
        sigma: u64,
    },
    /// A part of sigma^2 = num / den is 0 or above [`MAX_VARIANCE_PART`].
    #[error(
        "noise of sigma^2 = {num}/{den} was asked for; numerator and denominator must each be \
         from 1 to {MAX_VARIANCE_PART} (2^28): use an integer sigma for larger noise"
    )]
    Variance {
        /// The numerator asked for.
        num: u64,
        /// The denominator asked for.
        den: u64,
    },
}

impl DiscreteGaussian {
    /// Noise of standard parameter `sigma`, in lattice units.
    ///
    /// # Errors
    ///
    /// Unless `1 <= sigma <= 2^50`.
    pub fn new(sigma: u64) -> Result<Self, NoiseError> {
        if !(1..=MAX_SIGMA).contains(&sigma) {
            return Err(NoiseError::Sigma { sigma });
        }
        Ok(Self {
            spread: Spread::Integer { sigma },
        })
    }

    /// Noise of sigma^2 = `num / den`, in squared lattice units.
    ///
    /// # Errors
    ///
    /// Unless `num` and `den` are each in `1..=2^28`.
    pub fn from_variance(num: u64, den: u64) -> Result<Self, NoiseError> {
        let allowed = 1..=MAX_VARIANCE_PART;
        if !allowed.contains(&num) || !allowed.contains(&den) {
            return Err(NoiseError::Variance { num, den });
        }
        // floor(sqrt(num / den)) = isqrt(floor(num / den)).
        let t = (num / den).isqrt() + 1;
        Ok(Self {
            spread: Spread::Rational { num, den, t },
        })
    }

    /// One draw. `|k| < 2^62`.
    pub fn sample(&self, rng: &mut PrivateRng) -> i64 {
        let t = match self.spread {
            Spread::Integer { sigma } => sigma,
            Spread::Rational { t, .. } => t,
        };
        loop {
            let Some((u, v)) = laplace_magnitude(t, rng) else {
                continue;
            };
            let kept = match self.spread {
                Spread::Integer { sigma } => keep_integer(u, v, sigma, rng),
                Spread::Rational { num, den, t } => keep_rational(u, v, num, den, t, rng),
            };
            if !kept {
                continue;
            }
            // v <= 4095, u < t <= 2^50: below 2^62.
            let magnitude = (u + t * v) as i64;
            match (rng.bit(), magnitude) {
                (true, 0) => {}
                (true, _) => return -magnitude,
                (false, _) => return magnitude,
            }
        }
    }
}

/// (u, v) with weight exp(-(u/t) - v) on `0..t` x `0..TAIL`, or `None` to start again.
///
/// The magnitude of Algorithm 2's discrete Laplace is u + t v.
#[inline]
fn laplace_magnitude(t: u64, rng: &mut PrivateRng) -> Option<(u64, u64)> {
    let u = rng.uniform_below_u64(t);
    if !exp_neg(rng, |rng| ratio(u, t, rng)) {
        return None;
    }
    let mut v = 0;
    while exp_neg_one(rng) {
        v += 1;
        if v == TAIL {
            return None;
        }
    }
    Some((u, v))
}

/// Bernoulli(exp(-(y - sigma)^2 / (2 sigma^2))) for y = u + sigma v.
///
/// With r = u / sigma, the exponent is (r + v - 1)^2 / 2. At v = 0 that is
/// ((sigma - u) / sigma)^2 / 2. Otherwise it is
/// r^2 / 2 + (v - 1) r + (v - 1)^2 / 2, and the trials of exp(-(a + b)) are those
/// of exp(-a) and exp(-b). So every fraction has the denominator sigma <= 2^50.
#[inline]
fn keep_integer(u: u64, v: u64, sigma: u64, rng: &mut PrivateRng) -> bool {
    let from_centre = if v == 0 { sigma - u } else { u };
    // A fair bit and two trials of a/sigma all succeed with probability (a/sigma)^2 / 2.
    let half_square = |rng: &mut PrivateRng| {
        rng.bit() && ratio(from_centre, sigma, rng) && ratio(from_centre, sigma, rng)
    };
    let extra = v.saturating_sub(1);
    // extra <= 4094, so its square is below 2^24.
    exp_neg(rng, half_square)
        && (0..extra).all(|_| exp_neg(rng, |rng| ratio(u, sigma, rng)))
        && (0..extra * extra).all(|_| exp_neg(rng, PrivateRng::bit))
}

/// Bernoulli(exp(-(y - sigma^2/t)^2 / (2 sigma^2))) for y = u + t v, sigma^2 = num / den.
///
/// The exponent is (y t den - num)^2 / (2 t^2 den num). As t <= sigma + 1,
/// t^2 den <= 4 max(num, den) <= 2^30: the denominator is at most 2^59, and
/// y t den < 4096 t^2 den <= 2^42, so the numerator is below 2^85.
fn keep_rational(u: u64, v: u64, num: u64, den: u64, t: u64, rng: &mut PrivateRng) -> bool {
    let from_centre = u128::from(((u + t * v) * t * den).abs_diff(num));
    let Some(denominator) = NonZeroU64::new(2 * t * t * den * num) else {
        return false; // not reached: num, den and t are positive
    };
    bernoulli_exp_neg(from_centre * from_centre, denominator, rng)
}

/// Bernoulli(exp(-num / den)), exactly.
///
/// # Reference
///
/// Canonne, Kamath and Steinke 2020, Algorithm 1: the integer part of x by
/// trials of exp(-1), which end at the first failure; the rest by one run of K.
pub fn bernoulli_exp_neg(num: u128, den: NonZeroU64, rng: &mut PrivateRng) -> bool {
    let wide = u128::from(den.get());
    // The remainder is below den < 2^64.
    let rest = (num % wide) as u64;
    exp_neg_times(num / wide, rng) && exp_neg(rng, |rng| ratio(rest, den.get(), rng))
}

/// Metropolis acceptance: true with probability min(1, exp(`log_ratio`)).
///
/// True when `log_ratio` is 0 or more (or +inf); false when it is -inf or NaN,
/// which a density returns outside its support. Otherwise -`log_ratio`, which is
/// known to its last bit, is put on the grid of spacing 2^-64 by truncation (so
/// the probability is too large by a factor of less than 1 + 2^-63), and the
/// trial is a [Bernoulli(exp(-x))](bernoulli_exp_neg): no uniform is ever
/// compared as a float. At and above 2^64 the grid value stays at 2^64 - 1, where
/// the probability is exp(-2^64): zero for any purpose.
pub fn accept(log_ratio: f64, rng: &mut PrivateRng) -> bool {
    if log_ratio >= 0.0 {
        return true;
    }
    if log_ratio.is_nan() || log_ratio == f64::NEG_INFINITY {
        return false;
    }
    let x = -log_ratio;
    let whole = x.floor();
    // Exact: subtracting the integer part only drops leading bits, and scaling by
    // 2^64 changes only the exponent. The fraction is below 1, hence fits.
    let fraction = ((x - whole) * TWO_TO_64) as u64;
    exp_neg_times(u128::from(whole as u64), rng) && exp_neg(rng, |rng| rng.next_u64() < fraction)
}

const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

/// Bernoulli(exp(-times)) by independent trials of exp(-1).
#[inline]
fn exp_neg_times(times: u128, rng: &mut PrivateRng) -> bool {
    (0..times).all(|_| exp_neg_one(rng))
}

/// Bernoulli(exp(-1)).
#[inline]
fn exp_neg_one(rng: &mut PrivateRng) -> bool {
    exp_neg(rng, |_| true)
}

/// Bernoulli(exp(-x)) from independent coins of probability x in [0, 1].
///
/// Algorithm 1 of CKS20: the trials K = 1, 2, ... of probability x/K go on while
/// they succeed, so P(the first failure is at K > n) = x^n / n!, and the
/// probability that it is at an odd K is sum over n of (-x)^n / n! = exp(-x).
/// A trial of x/K is one of 1/K, which needs no product of denominators, and a
/// coin. K is at most n with probability 1 - 1/n!: it cannot come near 2^64.
#[inline]
fn exp_neg(rng: &mut PrivateRng, mut coin: impl FnMut(&mut PrivateRng) -> bool) -> bool {
    if !coin(rng) {
        return true;
    }
    let mut k = 2u64;
    while ratio(1, k, rng) && coin(rng) {
        k += 1;
    }
    k % 2 == 1
}

/// Bernoulli(num / den) for num <= den, exactly; den > 0.
///
/// Compares a uniform W = (w + W')/2^32 with num/den, where w is the word drawn
/// and W' the uniform made of the words not drawn yet: W < num/den exactly when
/// W' < (2^32 num - w den) / den, which is settled unless that lies in (0, 1), and
/// is then the same question again. The next word is needed with probability
/// 2^-32 at most. Everything is below 2^64 * 2^32 = 2^96.
#[inline]
fn ratio(num: u64, den: u64, rng: &mut PrivateRng) -> bool {
    let den = u128::from(den);
    let mut num = u128::from(num);
    loop {
        let whole = num << 32;
        let drawn = u128::from(rng.next_u32()) * den;
        if drawn >= whole {
            return false;
        }
        num = whole - drawn;
        if num >= den {
            return true;
        }
    }
}

#[cfg(test)]
#[path = "noise_tests.rs"]
mod tests;
