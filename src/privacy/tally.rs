//! The integers that are added up of records' clipped log-ratios.

use serde::{Deserialize, Serialize};

/// U: the clip bound in the units in which moments are taken.
pub(super) const UNITS_PER_BOUND: f64 = (1u64 << 36) as f64;

/// The summand of a record, x being its log-ratio in the units of [`super::penalty`], clipped to
/// [-`bound`, `bound`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) enum Tally {
    /// x.
    Ratio { bound: i64 },
    /// x (`slope` - `curvature` x), an integer of at most `limit`.
    Curve {
        bound: i64,
        slope: f64,
        curvature: f64,
        limit: i64,
    },
    /// u = `unit` x, an integer of at most U, and its square.
    Moments { bound: i64, unit: f64 },
}

/// The sums over records; the second one of moments only.
pub(super) type Sums = [i128; 2];

impl Tally {
    /// Moments of log-ratios that are clipped at `bound`.
    pub fn moments(bound: i64) -> Tally {
        Tally::Moments {
            bound,
            unit: UNITS_PER_BOUND / bound as f64,
        }
    }

    /// Counts one record, from its two quantised log-likelihoods.
    #[inline(always)]
    pub fn add(self, sums: &mut Sums, at_proposal: i64, at_current: i64) {
        match self {
            Tally::Ratio { bound } => sums[0] += i128::from(clip(at_proposal, at_current, bound)),
            Tally::Curve {
                bound,
                slope,
                curvature,
                limit,
            } => {
                let x = clip(at_proposal, at_current, bound) as f64;
                // Truncation toward zero. NaN becomes 0.
                let value = (x * (slope - curvature * x)) as i64;
                sums[0] += i128::from(value.clamp(-limit, limit));
            }
            Tally::Moments { bound, unit } => {
                let most = UNITS_PER_BOUND as i64;
                let x = clip(at_proposal, at_current, bound) as f64;
                let u = i128::from(((x * unit) as i64).clamp(-most, most));
                sums[0] += u;
                sums[1] += u * u;
            }
        }
    }
}

/// `a - b` clipped to +-`bound`, for `bound` >= 0.
///
/// # Sensitivity
///
/// |clip| <= `bound` for every pair of integers. It is odd, clip(a, b) =
/// -clip(b, a): the difference of quantised values is at most 2^62 and exact, and
/// where two other integers' difference saturates, either end is past `bound`.
#[inline]
pub(super) fn clip(a: i64, b: i64, bound: i64) -> i64 {
    a.saturating_sub(b).min(bound).max(bound.saturating_neg())
}

/// V = bQ - S^2 of a batch of `size` records with these moments; the x of records that do not count
/// are zero.
pub(super) fn spread([sum, squares]: Sums, size: u64) -> i128 {
    i128::from(size) * squares - sum * sum
}
