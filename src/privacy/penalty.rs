//! The penalty test's integers: per-record log-likelihoods on a lattice, clipped
//! log-ratios, and the noise parameter that makes detailed balance exact.
//!
//! In units of the lattice spacing gamma = 2^-J, one query of the test is
//!
//! ```text
//! a_i = quantise(l_i(theta)),  b_i = quantise(l_i(theta'))       per record
//! lambda = sum over i of clip(b_i, a_i, B)                        an integer
//! R = lambda + k,  k discrete Gaussian of parameter s = m 2^(J/2)
//! accept with probability min(1, exp(gamma (R - m^2 / 2)))
//! ```
//!
//! # Reference
//!
//! Ceperley and Dewing 1999, "The penalty method for random walks with uncertain
//! energies"; Yildirim and Ermis 2019, "Exact MCMC with differentially private
//! moves" (the private test); docs/proofs.md, section 6 (discrete noise).

use super::noise::DiscreteGaussian;
use super::tally::Tally;

/// The lattice of log-likelihoods has spacing gamma = 2^-44 nats.
///
/// J is even, so that sigma can be a multiple of 2^-(J/2) = 2^-22 and sigma^2 one
/// of gamma. At 44, an i64 holds a per-record log-likelihood of up to 2^17 nats
/// with the clamp at 2^61 units, so that a difference of two stays below 2^62;
/// and the least noise, 2^40 gamma, is sigma = 2^-4 nats: its penalty of 0.002
/// nats costs no acceptance, and on so fine a lattice the discrete noise is as
/// good as continuous at any sensible epsilon.
pub const J: u32 = 44;

const _: () = assert!(J.is_multiple_of(2), "sigma is a multiple of 2^-(J/2)");

/// Per-record log-likelihoods are clamped to this many lattice units: 2^17 nats.
pub const MAX_LOG_LIKELIHOOD: i64 = 1 << 61;

/// The largest clip bound B, 2^60 lattice units: 2^16 nats.
pub const MAX_CLIP_BOUND: i64 = 1 << 60;

/// s is at least 2 to this power, in lattice units.
const MIN_SIGMA_EXPONENT: u32 = 40;

/// The lattice spacing is at most this share of sigma.
pub const LATTICE_RATIO: f64 = 1.0 / (1u64 << MIN_SIGMA_EXPONENT) as f64;

/// s >= 2^40 lattice units, that is m >= 2^18.
const MIN_MULTIPLE: u64 = 1 << (MIN_SIGMA_EXPONENT - J / 2);

const UNITS_PER_NAT: f64 = (1u64 << J) as f64;

/// The settings of all penalty tests of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PenaltyScale {
    /// How often the clip bound one record's change can move the sum.
    sensitivity_factor: u8,
    /// tau = mantissa * 2^exponent, exactly.
    mantissa: u64,
    exponent: i32,
}

/// The action for one proposal, decided by public numbers alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PenaltyPlan {
    /// Ask the vault, at the cost of one release.
    Query(PenaltyQuery),
    /// The bound rounds to zero lattice units: every clipped ratio is 0, and so is
    /// the log-likelihood ratio, without noise and without looking.
    Skip,
    /// The noise would be above the sampler's 2^50 units, that is 64 nats, where the
    /// test accepts an equally likely point with probability below exp(-500):
    /// refuse the proposal without looking. As the bound is symmetric, both
    /// directions are refused, and detailed balance holds.
    Refuse,
}

/// One query: its clip bound and its noise, both functions of public numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PenaltyQuery {
    /// B.
    bound: i64,
    /// m.
    multiple: u64,
    /// Of parameter s = m 2^(J/2).
    noise: DiscreteGaussian,
    sensitivity_factor: u8,
}

/// Why a penalty test cannot be set up.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PenaltyError {
    /// The noise multiplier is not a positive finite number.
    #[error("the penalty test's noise multiplier tau is {tau}; it must be positive and finite")]
    NoiseMultiplier {
        /// The multiplier given.
        tau: f64,
    },
    /// The sensitivity factor is neither 1 nor 2.
    #[error(
        "the penalty test's sensitivity factor is {factor}; it must be 1 (add, remove or empty one \
         record) or 2 (substitute one record)"
    )]
    SensitivityFactor {
        /// The factor given.
        factor: u8,
    },
    /// The clip bound is negative or not a number.
    #[error(
        "the penalty test's clip bound is {bound} nats; it must be 0 or more: check the model's \
         likelihood bound and that the proposal is finite"
    )]
    ClipBound {
        /// The bound given, in nats.
        bound: f64,
    },
}

impl PenaltyScale {
    /// Tests whose noise is at least `tau` times their sensitivity, where one
    /// record moves the clipped sum by at most `sensitivity_factor` clip bounds:
    /// 2 for substitute, 1 for add, remove or zero-out.
    ///
    /// # Errors
    ///
    /// Unless `sensitivity_factor` is 1 or 2 and `tau` positive and finite.
    pub fn new(sensitivity_factor: u8, tau: f64) -> Result<Self, PenaltyError> {
        if !matches!(sensitivity_factor, 1 | 2) {
            return Err(PenaltyError::SensitivityFactor {
                factor: sensitivity_factor,
            });
        }
        if !(tau > 0.0 && tau.is_finite()) {
            return Err(PenaltyError::NoiseMultiplier { tau });
        }
        let (mantissa, exponent) = exact_parts(tau);
        Ok(Self {
            sensitivity_factor,
            mantissa,
            exponent,
        })
    }

    /// The query for a clip bound of `bound` nats per record, a public number that
    /// must be symmetric in (theta, theta'), to the bit.
    ///
    /// # Sensitivity
    ///
    /// B = floor(bound / gamma), at most 2^60: exact, since scaling a float by 2^J
    /// is. A smaller B only clips more. One record moves the integer sum by at most
    /// `sensitivity_factor` B.
    ///
    /// # Privacy
    ///
    /// To be shown: s >= tau * factor * B, where s = m 2^(J/2) is the noise in lattice units; then
    /// one query has normalised sensitivity at most 1/tau. It holds because m is the ceiling of
    /// tau * factor * B / 2^(J/2), computed in integers from the exact mantissa of tau, or more.
    /// (docs/proofs.md, section 6.)
    ///
    /// sigma = s gamma = m 2^-(J/2) nats, so sigma^2 / gamma = m^2 2^-J 2^J = m^2:
    /// sigma^2 is a multiple of gamma, as the identity of docs/proofs.md, section 6, needs.
    ///
    /// # Errors
    ///
    /// When `bound` is negative or NaN.
    pub fn plan(&self, bound: f64) -> Result<PenaltyPlan, PenaltyError> {
        if bound.is_nan() || bound < 0.0 {
            return Err(PenaltyError::ClipBound { bound });
        }
        // The conversion truncates and saturates.
        let bound = ((bound * UNITS_PER_NAT) as i64).min(MAX_CLIP_BOUND);
        if bound == 0 {
            return Ok(PenaltyPlan::Skip);
        }
        let multiple = self.multiple(bound.unsigned_abs()).max(MIN_MULTIPLE);
        let noise = multiple
            .checked_mul(1 << (J / 2))
            .and_then(|sigma| DiscreteGaussian::new(sigma).ok());
        let Some(noise) = noise else {
            return Ok(PenaltyPlan::Refuse);
        };
        Ok(PenaltyPlan::Query(PenaltyQuery {
            bound,
            multiple,
            noise,
            sensitivity_factor: self.sensitivity_factor,
        }))
    }

    /// ceil(tau * factor * bound / 2^(J/2)), or `u64::MAX` if it is above.
    fn multiple(&self, bound: u64) -> u64 {
        // Below 2^53 * 2 * 2^60 = 2^114.
        let product =
            u128::from(self.mantissa) * u128::from(self.sensitivity_factor) * u128::from(bound);
        let shift = self.exponent - (J / 2) as i32;
        let ceiling = match shift {
            // product > 0, and 128 bits or more hold all of it: a fraction.
            ..=-128 => 1,
            -127..0 => {
                let down = shift.unsigned_abs();
                (product >> down) + u128::from(product.trailing_zeros() < down)
            }
            0.. if product.leading_zeros() >= shift.unsigned_abs() => product << shift,
            0.. => u128::MAX,
        };
        u64::try_from(ceiling).unwrap_or(u64::MAX)
    }
}

impl PenaltyQuery {
    /// B: the clip bound of one record's log-ratio, in lattice units.
    #[cfg(test)]
    pub fn clip_bound(&self) -> i64 {
        self.bound
    }

    /// How often the clip bound one record's change can move the sum: 2 or 1.
    pub(super) fn sensitivity_factor(&self) -> u8 {
        self.sensitivity_factor
    }

    /// How far one record can move the sum, in lattice units: B or 2B.
    pub fn sensitivity(&self) -> i64 {
        // At most 2^61.
        self.bound * i64::from(self.sensitivity_factor)
    }

    /// s: the noise parameter in lattice units, from 2^40 to 2^50.
    pub fn sigma_units(&self) -> u64 {
        // At most 2^50: `plan` made the noise with it.
        self.multiple << (J / 2)
    }

    /// sigma in nats; exact.
    pub fn sigma(&self) -> f64 {
        self.sigma_units() as f64 / UNITS_PER_NAT
    }

    /// The noise to add to the sum of clipped ratios, before it leaves the integers.
    pub fn noise(&self) -> DiscreteGaussian {
        self.noise
    }

    /// The summands: log-ratios, clipped at this query's bound.
    pub(super) fn tally(&self) -> Tally {
        Tally::Ratio { bound: self.bound }
    }

    /// R in nats: the noisy log-likelihood ratio, for the sum `lambda` of clipped
    /// ratios and the noise `k`, both in lattice units.
    pub fn ratio(&self, lambda: i128, k: i64) -> f64 {
        noisy_sum(lambda, k) as f64 / UNITS_PER_NAT
    }

    /// R - sigma^2 / 2 in nats, which replaces the log-likelihood ratio in the acceptance
    /// probability.
    ///
    /// # Reference
    ///
    /// docs/proofs.md, section 6. p(k) is proportional to exp(-gamma k^2 / (2 m^2)), so
    /// p(k) / p(m^2 - k) = exp(gamma (m^2/2 - k)) = exp(-z) with
    /// z = gamma (k - m^2/2), and k -> m^2 - k, which keeps integers integers, is
    /// z -> -z. So E min(1, e^(lambda + z)) = e^lambda E min(1, e^(-lambda + z)).
    pub fn penalised_ratio(&self, lambda: i128, k: i64) -> f64 {
        doubled_penalised(lambda, k, self.multiple) as f64 / (2.0 * UNITS_PER_NAT)
    }
}

/// One record's log-likelihood, in nats, on the lattice: `l / gamma` truncated
/// toward zero and clamped to +-2^61. NaN and -inf give -2^61.
///
/// Scaling by 2^J is exact (or overflows, and is clamped), so the result depends
/// on the bits of `l` alone. The ratio of a record between two points is then the
/// difference of two integers, each fixed by its point: antisymmetric to the bit, and summing to 0
/// around a cycle.
#[inline]
pub fn quantise(l: f64) -> i64 {
    if l.is_nan() {
        return -MAX_LOG_LIKELIHOOD;
    }
    // The conversion truncates toward zero and saturates.
    ((l * UNITS_PER_NAT) as i64).clamp(-MAX_LOG_LIKELIHOOD, MAX_LOG_LIKELIHOOD)
}

/// The log-likelihood of several rows, a sum of values of [`quantise`], clamped to
/// +-2^61 as one row's is.
#[inline]
pub fn within_lattice(sum: i128) -> i64 {
    let most = i128::from(MAX_LOG_LIKELIHOOD);
    sum.clamp(-most, most) as i64
}

/// lambda + k. Nothing saturates for fewer than 2^64 records: |lambda| is at most
/// 2^64 times 2^60, and |k| below 2^62.
fn noisy_sum(lambda: i128, k: i64) -> i128 {
    lambda.saturating_add(i128::from(k))
}

/// 2 (lambda + k) - m^2, in half lattice units: an integer, so that no rounding
/// comes before the one to f64, which is odd. m^2 <= 2^56.
fn doubled_penalised(lambda: i128, k: i64, m: u64) -> i128 {
    let square = i128::from(m).saturating_mul(i128::from(m));
    noisy_sum(lambda, k)
        .saturating_mul(2)
        .saturating_sub(square)
}

/// (mantissa, exponent) with `x` = mantissa * 2^exponent, mantissa < 2^53, for a
/// positive finite `x`.
fn exact_parts(x: f64) -> (u64, i32) {
    let bits = x.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    // The sign bit of a positive number is 0, so this is the 11-bit exponent.
    match (bits >> 52) as i32 {
        0 => (fraction, -1074), // subnormal
        biased => (fraction | 1 << 52, biased - 1075),
    }
}

#[cfg(test)]
mod tests {
    use super::super::randomness::PrivateRng;
    use super::super::tally::clip;
    use super::*;

    /// E min(1, exp(lambda + z)) for lambda = `units` gamma and
    /// z = k gamma - `penalty`, k discrete Gaussian with sigma^2 = `variance` gamma.
    fn acceptance(units: i64, gamma: f64, variance: f64, z: impl Fn(i64) -> f64) -> f64 {
        // exp(-gamma k^2 / (2 variance)) is below 1e-300 at the ends.
        let reach = (38.0 * (variance / gamma).sqrt()).ceil() as i64;
        let weight = |k: i64| (-gamma * (k as f64).powi(2) / (2.0 * variance)).exp();
        let total: f64 = (-reach..=reach).map(weight).sum();
        (-reach..=reach)
            .map(|k| weight(k) * (units as f64 * gamma + z(k)).exp().min(1.0))
            .sum::<f64>()
            / total
    }

    /// The largest relative violation of detailed balance over 100 values of
    /// lambda from 0 to 5 nats or so.
    fn violation(gamma: f64, variance: f64, z: impl Fn(i64) -> f64) -> f64 {
        let step = (0.05 / gamma).ceil() as i64;
        (0..100)
            .map(|i| {
                let units = i * step;
                let forward = acceptance(units, gamma, variance, &z);
                let back = acceptance(-units, gamma, variance, &z);
                ((units as f64 * gamma).exp() * back / forward - 1.0).abs()
            })
            .fold(0.0, f64::max)
    }

    // If it failed: the penalty test would not leave the posterior
    // invariant. Exact enumeration, no randomness.
    #[test]
    fn the_penalty_identity_holds_exactly() {
        for (j, m) in [
            (2, 1u64),
            (2, 2),
            (4, 3),
            (4, 4),
            (6, 5),
            (6, 8),
            (6, 16),
            (8, 16),
        ] {
            let gamma = 0.5f64.powi(j);
            let z = |k| doubled_penalised(0, k, m) as f64 * gamma / 2.0;
            let off = violation(gamma, (m * m) as f64, z);
            assert!(off < 1e-12, "gamma = 2^-{j}, m = {m}: off by {off:e}");
        }
    }

    // If it failed: the test above would be blind, or the condition on sigma idle.
    #[test]
    fn the_penalty_identity_fails_without_its_conditions() {
        let gamma = 0.25;
        for extra in [0.2, 0.3, 0.7, 0.8] {
            let variance = 1.0 + extra;
            let off = violation(gamma, variance, |k| gamma * (k as f64 - variance / 2.0));
            assert!(
                off > 1e-4,
                "sigma^2 = {variance} gamma: off by only {off:e}"
            );
        }
        let dropped = violation(gamma, 4.0, |k| gamma * k as f64);
        assert!(dropped > 0.1, "penalty dropped: off by only {dropped:e}");
        // And a penalty of one lattice unit too much.
        let shifted = violation(gamma, 4.0, |k| gamma * (k as f64 - 3.0));
        assert!(
            shifted > 0.1,
            "penalty off by gamma: off by only {shifted:e}"
        );
    }

    fn query(scale: PenaltyScale, bound: f64) -> PenaltyQuery {
        match scale.plan(bound).unwrap() {
            PenaltyPlan::Query(query) => query,
            other => panic!("{bound}: {other:?}"),
        }
    }

    /// Whether s >= tau * sensitivity, decided exactly: s * 2^-exponent against
    /// mantissa * sensitivity, as (value, shift) pairs of at most 128 bits.
    fn noise_covers(s: u64, tau: f64, sensitivity: i64) -> bool {
        let (mantissa, exponent) = exact_parts(tau);
        let needed = u128::from(mantissa) * sensitivity.unsigned_abs() as u128;
        if exponent >= 0 {
            needed
                .checked_shl(exponent as u32)
                .is_some_and(|n| n <= u128::from(s))
        } else if exponent <= -128 {
            true
        } else {
            let down = exponent.unsigned_abs();
            let ceiling = (needed >> down) + u128::from(needed & ((1 << down) - 1) != 0);
            u128::from(s) >= ceiling
        }
    }

    // If it failed: a query would have less noise than was charged, or a sigma^2
    // off the lattice. 10^5 settings over the whole range.
    #[test]
    fn noise_covers_the_sensitivity_and_its_square_is_on_the_lattice() {
        let mut rng = PrivateRng::from_insecure_seed(800);
        let mut unit = || (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let mut queries = 0;
        for _ in 0..100_000 {
            let tau = (40.0 * (unit() - 0.5)).exp2();
            let bound = (60.0 * (unit() - 0.75)).exp2();
            for factor in [1, 2] {
                let scale = PenaltyScale::new(factor, tau).unwrap();
                let PenaltyPlan::Query(query) = scale.plan(bound).unwrap() else {
                    continue;
                };
                queries += 1;
                let (b, s) = (query.clip_bound(), query.sigma_units());
                assert!(b as f64 <= bound * UNITS_PER_NAT && b >= 1);
                assert_eq!(query.sensitivity(), b * i64::from(factor));
                assert!(
                    noise_covers(s, tau, query.sensitivity()),
                    "tau {tau}, b {b}, s {s}"
                );
                // No more than is needed: one multiple less is too little.
                let less = s - (1 << (J / 2));
                assert!(s == 1 << 40 || !noise_covers(less, tau, query.sensitivity()));
                assert!((1 << 40..=1 << 50).contains(&s));
                let square = u128::from(s) * u128::from(s);
                assert_eq!(square % (1 << J), 0, "sigma^2 is not a multiple of gamma");
                assert_eq!(square >> J, u128::from(query.multiple).pow(2));
                assert_eq!(query.noise(), DiscreteGaussian::new(s).unwrap());
            }
        }
        assert!(queries > 50_000, "{queries}");
    }

    // If it failed: an exact case would be rounded.
    #[test]
    fn worked_examples_of_the_noise() {
        // c = 1/4 nat, tau = 1, substitute: sigma = 1/2, m = 2^21.
        let half = query(PenaltyScale::new(2, 1.0).unwrap(), 0.25);
        assert_eq!(half.clip_bound(), 1 << 42);
        assert_eq!(half.sigma_units(), 1 << 43);
        assert_eq!(half.sigma(), 0.5);
        assert_eq!(half.ratio(3 << 44, 1 << 44), 4.0);
        assert_eq!(half.penalised_ratio(3 << 44, 1 << 44), 4.0 - 0.125);
        assert_eq!(half.penalised_ratio(-3 << 44, -1 << 44), -4.0 - 0.125);
        // Add or remove: half of it.
        let quarter = query(PenaltyScale::new(1, 1.0).unwrap(), 0.25);
        assert_eq!(quarter.sigma(), 0.25);
        // One more unit in the last place of tau is one more multiple of noise.
        let more = query(PenaltyScale::new(2, 1.0 + f64::EPSILON).unwrap(), 0.25);
        assert_eq!(more.sigma_units(), half.sigma_units() + (1 << 22));
        // The least and the most noise.
        let least = query(PenaltyScale::new(2, 1e-300).unwrap(), f64::MAX);
        assert_eq!(least.sigma_units(), 1 << 40);
        assert_eq!(least.clip_bound(), MAX_CLIP_BOUND);
        let most = PenaltyScale::new(2, 1.0).unwrap();
        assert_eq!(query(most, 32.0).sigma(), 64.0);
        assert_eq!(most.plan(32.0 + 1e-6).unwrap(), PenaltyPlan::Refuse);
        assert_eq!(most.plan(f64::INFINITY).unwrap(), PenaltyPlan::Refuse);
        let huge = PenaltyScale::new(2, f64::MAX).unwrap();
        assert_eq!(huge.plan(0.5f64.powi(44)).unwrap(), PenaltyPlan::Refuse);
        // Below one unit: nothing to ask.
        assert_eq!(most.plan(0.0).unwrap(), PenaltyPlan::Skip);
        assert_eq!(
            most.plan(0.99 * 0.5f64.powi(44)).unwrap(),
            PenaltyPlan::Skip
        );
        assert_eq!(query(most, 0.5f64.powi(44)).clip_bound(), 1);
    }

    // If it failed: an invalid setting would be accepted.
    #[test]
    fn wrong_settings_are_refused() {
        for factor in [0, 3, 255] {
            assert!(PenaltyScale::new(factor, 1.0).is_err());
        }
        for tau in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(PenaltyScale::new(1, tau).is_err());
        }
        let scale = PenaltyScale::new(1, 1.0).unwrap();
        for bound in [-1.0, -1e-300, f64::NAN, f64::NEG_INFINITY] {
            assert!(scale.plan(bound).is_err());
        }
    }

    /// Log-likelihoods that a model can return, ordinary and extreme.
    fn nasty() -> Vec<f64> {
        let mut values = vec![0.0, 1e-320, 1e-14, 0.1, 1.0, 131_071.9, 131_072.0, 1e6];
        values.extend([1e308, f64::MAX, f64::INFINITY, f64::MIN_POSITIVE]);
        values.extend([0.5f64.powi(44), 1.5 * 0.5f64.powi(44), 3.7e4]);
        let mut both: Vec<f64> = values.iter().flat_map(|&v| [v, -v]).collect();
        both.push(f64::NAN);
        both
    }

    // If it failed: one record could move the sum by more than its bound, or
    // lambda(theta, theta') would not be minus lambda(theta', theta).
    #[test]
    fn ratios_are_bounded_and_odd_for_nasty_floats() {
        for &x in &nasty() {
            assert!(quantise(x).abs() <= MAX_LOG_LIKELIHOOD);
            if x.is_finite() && x.abs() < 131_072.0 {
                assert_eq!(quantise(-x), -quantise(x));
                let error = x - quantise(x) as f64 / UNITS_PER_NAT;
                assert!(error.abs() < 1.0 / UNITS_PER_NAT && error * x >= 0.0);
            }
            for &y in &nasty() {
                for bound in [0, 1, 1000, MAX_CLIP_BOUND, i64::MAX] {
                    let there = clip(quantise(x), quantise(y), bound);
                    let back = clip(quantise(y), quantise(x), bound);
                    assert_eq!(there, -back, "{x} {y} {bound}");
                    assert!(there.abs() <= bound);
                }
            }
        }
        for lost in [f64::NAN, f64::NEG_INFINITY, -1e308] {
            assert_eq!(quantise(lost), -MAX_LOG_LIKELIHOOD);
        }
        assert_eq!(quantise(f64::INFINITY), MAX_LOG_LIKELIHOOD);
        assert_eq!(clip(i64::MIN, i64::MAX, 5), -5);
        assert_eq!(clip(i64::MAX, i64::MIN, i64::MAX), i64::MAX);
        assert_eq!(clip(i64::MIN, i64::MAX, i64::MAX), -i64::MAX);
    }

    // If it failed: the chain would drift around cycles, and the posterior would not be a
    // stationary distribution. The cycle of the truncated *differences* does fail, which is why
    // each term is truncated first.
    #[test]
    fn unclipped_ratios_sum_to_zero_round_a_cycle() {
        let mut rng = PrivateRng::from_insecure_seed(801);
        let mut difference_first = 0;
        for _ in 0..10_000 {
            let mut point = || -50.0 * (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            let l = [point(), point(), point()];
            let q = l.map(quantise);
            let sum: i128 = [(0, 1), (1, 2), (2, 0)]
                .iter()
                .map(|&(from, to)| i128::from(clip(q[to], q[from], i64::MAX)))
                .sum();
            assert_eq!(sum, 0, "{l:?}");
            let mutant = quantise(l[1] - l[0]) + quantise(l[2] - l[1]) + quantise(l[0] - l[2]);
            difference_first += u32::from(mutant != 0);
        }
        assert!(difference_first > 1000, "{difference_first}");
    }
}
