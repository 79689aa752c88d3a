//! Epsilon or delta, read off the curves of all directions.

use super::super::accountant::{AccountError, Query, delta_unreachable};
use super::super::gaussian::ln_bounds;
use super::super::real::Real;
use super::aim::Aim;
use super::curve::Curve;
use super::pair::ln_sum;
use super::rough::Rough;
use super::{GAP, PldBounds, PldDetails};

/// The question, in the accountant's own numbers.
pub(super) struct Question {
    pub(super) target: Target,
    rough: Rough,
}

/// The sought epsilon at a delta, or the sought delta at an epsilon.
pub(super) enum Target {
    Epsilon {
        delta: Real,
        /// ln delta, rounded down and up.
        ln_delta: f64,
        ln_delta_above: f64,
        total_variation: Real,
    },
    Delta {
        /// Epsilon, rounded down and up.
        epsilon: f64,
        epsilon_above: f64,
        total_variation: Real,
    },
}

impl Question {
    pub(super) fn new(query: Query, total_variation: Real, rough: Rough) -> Question {
        let target = match query {
            Query::Epsilon { delta } => {
                let ln_delta = ln_bounds(delta);
                Target::Epsilon {
                    delta,
                    ln_delta: ln_delta.lower.to_f64_down(),
                    ln_delta_above: ln_delta.upper.to_f64_up(),
                    total_variation,
                }
            }
            Query::Delta { epsilon } => Target::Delta {
                epsilon: epsilon.to_f64_down(),
                epsilon_above: epsilon.to_f64_up(),
                total_variation,
            },
        };
        Question { target, rough }
    }

    /// The bounds by these curves and those that hold without any; `details` says how the curves
    /// were made.
    pub(super) fn answer(
        &self,
        curves: &[&dyn Curve],
        details: &PldDetails,
    ) -> Result<PldBounds, AccountError> {
        self.answer_by(curves, Some(&self.rough), details)
    }

    /// The bounds by these curves alone, which is quicker: a search evaluates them hundreds of
    /// times.
    pub(super) fn answer_by_curves(
        &self,
        curves: &[&dyn Curve],
        details: &PldDetails,
    ) -> Result<PldBounds, AccountError> {
        self.answer_by(curves, None, details)
    }

    fn answer_by(
        &self,
        curves: &[&dyn Curve],
        rough: Option<&Rough>,
        details: &PldDetails,
    ) -> Result<PldBounds, AccountError> {
        let total_variation = match &self.target {
            Target::Epsilon {
                total_variation, ..
            }
            | Target::Delta {
                total_variation, ..
            } => *total_variation,
        };
        let both = Both {
            curves,
            rough,
            ln_total_variation: total_variation.to_f64_up().ln(),
        };
        match &self.target {
            Target::Epsilon {
                delta,
                ln_delta,
                ln_delta_above,
                ..
            } => {
                let Some(upper) = both.first_accepted(*ln_delta) else {
                    if total_variation <= Real::ZERO {
                        let width = both.end();
                        return Err(AccountError::LossesTooLarge { width });
                    }
                    return Err(delta_unreachable(
                        *delta,
                        total_variation,
                        both.least_delta(),
                    ));
                };
                let lower = both.last_refused(*ln_delta_above, upper);
                Ok(PldBounds {
                    lower,
                    upper,
                    details: both.details(details, upper, upper - lower),
                })
            }
            Target::Delta {
                epsilon,
                epsilon_above,
                ..
            } => {
                let (lower, upper) = (both.ln_lower(*epsilon_above), both.ln_upper(*epsilon));
                // As an equivalent change of epsilon.
                let fall = upper - both.ln_upper(epsilon + GAP);
                let gap = if upper - lower < 1e-9 {
                    0.0
                } else {
                    GAP * (upper - lower) / fall
                };
                Ok(PldBounds {
                    lower,
                    upper,
                    details: both.details(details, *epsilon, gap),
                })
            }
        }
    }
}

impl Question {
    /// Where to look next, if the bounds found show that the last aim was far off.
    pub(super) fn better_aim(&self, found: &PldBounds, last: Aim) -> Option<Aim> {
        match &self.target {
            Target::Epsilon { ln_delta, .. } => (found.details.gap > 30.0 * GAP).then_some(Aim {
                ln_delta: *ln_delta,
                epsilon: 0.5 * (found.lower + found.upper),
            }),
            Target::Delta { epsilon, .. } => {
                let nearer = found.upper < last.ln_delta - 0.5 && found.upper.is_finite();
                nearer.then_some(Aim {
                    ln_delta: found.upper,
                    epsilon: *epsilon,
                })
            }
        }
    }
}

/// The curves of all directions; delta is the largest.
struct Both<'a> {
    curves: &'a [&'a dyn Curve],
    rough: Option<&'a Rough>,
    ln_total_variation: f64,
}

impl Both<'_> {
    fn ln_upper(&self, epsilon: f64) -> f64 {
        let curve = self.continuous_upper(epsilon);
        if self.ln_total_variation == f64::NEG_INFINITY {
            return curve;
        }
        // (1 + e^eps) times the total variation
        let extra = self.ln_total_variation + epsilon + (-epsilon).exp().ln_1p();
        (ln_sum(curve, extra) + 1e-14 * (1.0 + epsilon)).min(0.0)
    }

    fn continuous_upper(&self, epsilon: f64) -> f64 {
        let uppers = self
            .curves
            .iter()
            .map(|curve| curve.ln_delta_upper(epsilon));
        let upper = uppers.reduce(f64::max).unwrap_or(0.0);
        match self.rough {
            Some(rough) => upper.min(rough.ln_delta_upper(epsilon)),
            None => upper,
        }
    }

    fn ln_lower(&self, epsilon: f64) -> f64 {
        let lowers = self
            .curves
            .iter()
            .map(|curve| curve.ln_delta_lower(epsilon));
        let rough = self.rough.map(|rough| rough.ln_delta_lower(epsilon));
        lowers
            .fold(rough.unwrap_or(f64::NEG_INFINITY), f64::max)
            .min(0.0)
    }

    /// The smallest epsilon >= 0 whose bound on ln delta is at most this one.
    fn first_accepted(&self, ln_delta: f64) -> Option<f64> {
        let accepts = |epsilon: f64| self.ln_upper(epsilon) <= ln_delta;
        if accepts(0.0) {
            return Some(0.0);
        }
        // With discrete noise the bound rises again at some point, so it is not enough to
        // look at the far end.
        let end = self.end();
        let steps = if self.ln_total_variation == f64::NEG_INFINITY {
            1
        } else {
            2000
        };
        let near = (1..=steps).map(|i| end * f64::from(i) / f64::from(steps));
        // Beyond the grid the rough bound continues to fall.
        let far = (1..=200).map(|i| end.max(1e-9) * 2f64.powi(i));
        let mut above = near.chain(far).find(|epsilon| accepts(*epsilon))?;
        let mut below = 0.0;
        while let Some(middle) = between(below, above) {
            if accepts(middle) {
                above = middle;
            } else {
                below = middle;
            }
        }
        Some(above)
    }

    /// An epsilon from 0 to `end` that certainly has a larger ln delta, as large as can be
    /// found; 0 where there is none.
    fn last_refused(&self, ln_delta: f64, end: f64) -> f64 {
        let refuses = |epsilon: f64| self.ln_lower(epsilon) > ln_delta;
        // Far below the bulk of the tilted losses the lower bound is of no use, so the
        // search comes from above, with growing steps.
        let (mut above, mut step) = (end, (1e-9 * end).max(1e-12));
        let mut below = loop {
            let next = above - step;
            if next <= 0.0 {
                if refuses(0.0) {
                    break 0.0;
                }
                return 0.0;
            }
            if refuses(next) {
                break next;
            }
            above = next;
            step *= 2.0;
        };
        while let Some(middle) = between(below, above) {
            if refuses(middle) {
                below = middle;
            } else {
                above = middle;
            }
        }
        below
    }

    fn end(&self) -> f64 {
        self.curves
            .iter()
            .map(|curve| curve.end())
            .fold(0.0, f64::max)
    }

    fn least_delta(&self) -> f64 {
        let end = self.end();
        let deltas = (0..=2000).map(|i| self.ln_upper(end * f64::from(i) / 2000.0));
        deltas.fold(0.0, f64::min).exp()
    }

    fn details(&self, details: &PldDetails, epsilon: f64, gap: f64) -> PldDetails {
        let leading = self.curves.iter().max_by(|a, b| {
            a.ln_delta_upper(epsilon)
                .total_cmp(&b.ln_delta_upper(epsilon))
        });
        let shares = leading.map(|curve| curve.shares(epsilon));
        PldDetails {
            gap,
            truncation: shares.map_or(0.0, |shares| shares.truncation),
            round_off: shares.map_or(0.0, |shares| shares.round_off),
            ..*details
        }
    }
}

/// The middle, while there is a number between.
fn between(below: f64, above: f64) -> Option<f64> {
    let middle = 0.5 * (below + above);
    (middle > below && middle < above && above - below > 1e-14 * above).then_some(middle)
}
