//! Discrete Gaussian noise and Bernoulli(exp(-x)), exactly, in integers.
//!
//! No floating-point number is involved between the random bits and the result, so the
//! distributions below are exact. The time that the samplers take depends on what they draw; the
//! timing of one query is outside the promise (docs/privacy.md).

use serde::{Deserialize, Serialize};

use super::randomness::PrivateRng;

/// The discrete Gaussian on the integers: P(k) proportional to exp(-k^2 / (2 sigma^2)).
///
/// Units are lattice units: the caller multiplies by the lattice's gamma.
///
/// # Privacy
///
/// To be shown: [`sample`](Self::sample) returns k with the probability above. Then adding it to an
/// integer with sensitivity D is D^2 / (2 sigma^2)-zCDP (Canonne, Kamath and Steinke 2020, Theorem
/// 4; docs/proofs.md, sections 7 and 8).
///
/// Proof. With U uniform on `0..sigma` kept with probability exp(-U/sigma), V geometric with P(V >=
/// v) = exp(-v), and a fair sign with "minus zero" drawn again, y = +-(U + sigma V) is a discrete
/// Laplace of scale sigma: P(y) is proportional to exp(-|y|/sigma) (Algorithm 2). Keeping y with
/// probability exp(-(|y| - sigma)^2 / (2 sigma^2)) multiplies the weights to exp(-|y|/sigma)
/// exp(-y^2 / (2 sigma^2) + |y|/sigma) times a constant (Algorithm 3, with t = sigma). Any order of
/// the independent trials gives the same law, and one failed trial starts all of them again.
///
/// The draw is started again if V reaches 4096. So the law is exactly
/// the discrete Gaussian given |k| < 4096 sigma: within total
/// variation 2 exp(-4096^2 / 2) < 2^-12,000,000 of the whole one. (A draw of V gets
/// there with probability exp(-4096): it does not happen.)
///
/// # Reference
///
/// Canonne, Kamath and Steinke 2020, "The Discrete Gaussian for Differential
/// Privacy", arXiv:2004.00010, Algorithms 1 to 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiscreteGaussian {
    sigma: u64,
}

/// The largest sigma, 2^50: a draw stays below 4096 * 2^50 = 2^62.
pub const MAX_SIGMA: u64 = 1 << 50;

/// V is below this; see [`DiscreteGaussian`].
const TAIL: u64 = 4096;

/// The error for an invalid sigma.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoiseError {
    /// sigma is 0 or above [`MAX_SIGMA`].
    #[error(
        "the noise's sigma is {sigma} lattice units; it must be from 1 to \
         {MAX_SIGMA} (2^50): choose a coarser lattice for more noise, a finer one for less"
    )]
    Sigma {
        /// The sigma asked for, in lattice units.
        sigma: u64,
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
        Ok(Self { sigma })
    }

    /// One draw. `|k| < 2^62`.
    pub fn sample(&self, rng: &mut PrivateRng) -> i64 {
        let sigma = self.sigma;
        loop {
            let Some((u, v)) = laplace_magnitude(sigma, rng) else {
                continue;
            };
            if !keep(u, v, sigma, rng) {
                continue;
            }
            // v <= 4095, u < sigma <= 2^50: below 2^62.
            let magnitude = (u + sigma * v) as i64;
            match (rng.bit(), magnitude) {
                (true, 0) => {}
                (true, _) => return -magnitude,
                (false, _) => return magnitude,
            }
        }
    }
}

/// (u, v) with weight exp(-(u/sigma) - v) on `0..sigma` x `0..TAIL`, or `None` to start again.
///
/// The magnitude of Algorithm 2's discrete Laplace is u + sigma v.
#[inline]
fn laplace_magnitude(sigma: u64, rng: &mut PrivateRng) -> Option<(u64, u64)> {
    let u = rng.uniform_below(sigma);
    if !exp_neg(rng, |rng| ratio(u, sigma, rng)) {
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
fn keep(u: u64, v: u64, sigma: u64, rng: &mut PrivateRng) -> bool {
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

/// Metropolis acceptance: true with probability min(1, exp(`log_ratio`)).
///
/// True when `log_ratio` is 0 or more (or +inf); false when it is -inf or NaN,
/// which a density returns outside its support. Otherwise -`log_ratio`, which is
/// known to its last bit, is put on the grid of spacing 2^-64 by truncation (so
/// the probability is too large by a factor of less than 1 + 2^-63), and the
/// trial is an exact Bernoulli(exp(-x)): no uniform is ever
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
    exp_neg_times(whole as u64, rng) && exp_neg(rng, |rng| rng.next_u64() < fraction)
}

const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

/// Bernoulli(exp(-times)) by independent trials of exp(-1).
#[inline]
fn exp_neg_times(times: u64, rng: &mut PrivateRng) -> bool {
    (0..times).all(|_| exp_neg_one(rng))
}

/// Bernoulli(exp(-1)).
#[inline]
fn exp_neg_one(rng: &mut PrivateRng) -> bool {
    exp_neg(rng, |_| true)
}

/// Bernoulli(exp(-x)) from independent coins of probability x in [0, 1].
///
/// Algorithm 1 of CKS20: the trials K = 1, 2, ... of probability x/K continue while they succeed,
/// so P(the first failure is at K > n) = x^n / n!, and the probability that it is at an odd K is
/// sum over n of (-x)^n / n! = exp(-x). A trial of x/K is one of 1/K, which needs no product of
/// denominators, and a coin. K is at most n with probability 1 - 1/n!: it cannot come near 2^64.
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
/// Compares a uniform W = (w + W')/2^32 with num/den, where w is the word drawn and W' the uniform
/// of the words not drawn yet: W < num/den exactly when W' < (2^32 num - w den) / den, which is
/// settled unless that lies in (0, 1), and is then the same question again. The next word is needed
/// with probability 2^-32 at most. Everything is below 2^64 * 2^32 = 2^96.
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
