//! The privacy loss distribution accountant.
//!
//! The losses of all releases, one after another, are a sum of independent ones, so
//! their distribution is a convolution. Each event's losses are put on a grid twice,
//! once worse and once better than the truth (`pmf.rs`); both are composed by Fourier
//! transforms (`compose.rs`), all events together with one inverse transform; and the
//! tails of the two sums enclose delta (`curve.rs`). Everything that is left out or
//! rounded is added to the upper bound and taken from the lower one.
//!
//! Under add/remove neighbours differ in two directions, and delta is the larger one.
//!
//! # Reference
//!
//! docs/proofs.md, sections 9 and 16. Koskela, Jälkö and Honkela (2020), "Computing tight differential privacy guarantees
//! using FFT"; Doroshenko, Ghazi, Kamath, Kumar and Manurangsi (2022), "Connect the dots";
//! Zhu, Dong and Wang (2022), "Optimal accounting of differential privacy via
//! characteristic function", for the dominating pairs. The lower bound by tangents and the
//! bound on the transform's error are worked out in `pmf.rs` and `compose.rs`.

mod aim;
mod cells;
mod compose;
mod curve;
mod fft;
mod normal;
mod pair;
mod plan;
mod pmf;
mod question;
mod rough;
mod single;
mod sketch;

use std::collections::BTreeMap;

use super::accountant::{AccountError, Accountant, Query};
use super::composition::Composition;
use super::gaussian::exp_down;
use super::gaussian_accountant;
use super::guarantee::{Found, Guarantee, PldDetails};
use super::rdp;
use super::real::Real;
use super::subsampled::{Scheme, Subsampled};
use curve::Curve;
use pair::{Kind, Pair};
use plan::Plan;
use question::Question;
use rough::Rough;
use single::Single;

/// How wide the bounds may be in epsilon.
const GAP: f64 = PldDetails::AIM;

/// 2 to this is the size of the largest transform.
const LARGEST_SIZE: u32 = 21;

/// The largest number of distinct events, and of releases.
const MOST_EVENTS: usize = 10_000;
const MOST_RELEASES: f64 = 1e12;

/// How often bounds that are too wide are recomputed, and how much work they are worth, in points
/// of transforms: a few seconds.
const MOST_ROUNDS: usize = 8;
const MOST_WORK: f64 = 6e7;

/// How often another aim may fail to improve the bounds.
const MOST_MISSES: usize = 4;

/// The bounds that the accountant found, and what they rest on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PldBounds {
    /// Bounds on epsilon, or on ln delta.
    lower: f64,
    upper: f64,
    details: PldDetails,
}

impl PldBounds {
    /// The intersection of two pairs of bounds.
    fn and(&self, other: &PldBounds) -> PldBounds {
        let (better, worse) = if self.details.gap <= other.details.gap {
            (self, other)
        } else {
            (other, self)
        };
        let (lower, upper) = (better.lower.max(worse.lower), better.upper.min(worse.upper));
        let narrowed = (upper - lower) / (better.upper - better.lower);
        let gap = better.details.gap * if narrowed < 1.0 { narrowed } else { 1.0 };
        PldBounds {
            lower,
            upper,
            details: PldDetails {
                gap,
                ..better.details
            },
        }
    }
}

impl PldBounds {
    /// Takes the upper bound of another accountant if it is lower.
    fn lower_upper_to(&mut self, query: Query, other: &Guarantee) {
        let upper = match query {
            Query::Epsilon { .. } => other.epsilon,
            Query::Delta { .. } => other.ln_delta,
        };
        if upper < self.upper {
            self.upper = upper.max(self.lower);
            if let Query::Epsilon { .. } = query {
                self.details.gap = self.upper - self.lower;
            }
        }
    }
}

impl PldDetails {
    /// No grid and no transform.
    const EXACT: PldDetails = PldDetails {
        grid: 0.0,
        points: 0,
        gap: 0.0,
        truncation: 0.0,
        round_off: 0.0,
    };
}

/// Releases of one pair.
#[derive(Clone, Copy, Debug)]
struct Part {
    pair: Pair,
    count: u64,
}

/// The proviso for Poisson sampling under substitute.
const NOT_PROVED: &str = "numerically verified: that the pair of distributions used for Poisson \
    sampling under substitute is the worst one has been checked numerically and is not proved";

pub(super) fn account(
    composition: &Composition<'_>,
    query: Query,
) -> Result<Guarantee, AccountError> {
    if composition.reads_all_rows() {
        // One Gaussian, whose curve is known without a grid.
        let found = gaussian_accountant::found(composition, query)?;
        return Ok(Guarantee::new(Accountant::Pld, composition, found));
    }
    if let Some(kind) = composition.not_gaussian() {
        return Err(AccountError::NoBound {
            accountant: Accountant::Pld,
            kind,
            relation: composition.relation(),
            instead: "`rdp`",
        });
    }
    let total_variation = composition.total_variation();
    let parts = parts(composition.sampled(), composition.mu())?;
    let mut bounds = bounds(&parts, query, total_variation)?;
    let wide = bounds.details.gap.is_nan() || bounds.details.gap > GAP;
    if wide && let Ok(other) = rdp::account(composition, query) {
        bounds.lower_upper_to(query, &other);
    }
    let continuous = total_variation <= Real::ZERO;
    let found = match query {
        Query::Epsilon { delta } => Found::Epsilon {
            delta,
            lower: continuous.then_some(bounds.lower),
            upper: bounds.upper,
        },
        Query::Delta { epsilon } => Found::Delta {
            epsilon,
            lower: continuous.then(|| exp_down(Real::exact(bounds.lower))),
            ln_upper: Real::exact(bounds.upper),
        },
    };
    let proved = composition
        .sampled()
        .iter()
        .all(|event| match event.scheme() {
            Scheme::PoissonAddRemove
            | Scheme::PoissonZeroOut
            | Scheme::WithoutReplacementSubstitute => true,
            Scheme::PoissonSubstitute => false,
        });
    Ok(Guarantee {
        proved,
        not_proved: (!proved).then_some(NOT_PROVED),
        pld: Some(bounds.details),
        ..Guarantee::new(Accountant::Pld, composition, found)
    })
}

/// Bounds for the losses of all `parts` together.
///
/// # Errors
///
/// Losses that cannot be put on a grid, or a delta that discrete noise does not reach.
fn bounds(parts: &[Part], query: Query, total_variation: Real) -> Result<PldBounds, AccountError> {
    let question = Question::new(query, total_variation, Rough::new(parts));
    if let [Part { pair, count: 1 }] = parts {
        let curves = Single::both(pair);
        #[cfg(test)]
        let curves = crate::planted::directions(curves);
        let curves: Vec<&dyn Curve> = curves.iter().map(|curve| curve as &dyn Curve).collect();
        return question.answer(&curves, &PldDetails::EXACT);
    }
    let found = on_grids(parts, &question);
    if let Ok(found) = found
        && found.details.gap <= GAP
    {
        return Ok(found);
    }
    // The bounds without a grid are the answer where no grid gives better ones.
    let rough = question.answer(&[], &PldDetails::EXACT);
    match found {
        Ok(found) => Ok(rough.map_or(found, |rough| found.and(&rough))),
        Err(error) => rough.map_err(|_| error),
    }
}

/// Bounds by transforms, on finer grids until they are close.
fn on_grids(parts: &[Part], question: &Question) -> Result<PldBounds, AccountError> {
    let mut plan = Plan::new(parts, question)?;
    let mut log_size = plan.first_log_size();
    let mut best: Option<PldBounds> = None;
    let (mut widened, mut missed, mut work) = (0, 0, 0.0);
    for _ in 0..MOST_ROUNDS {
        work += plan.work(log_size);
        if best.is_some() && work > MOST_WORK {
            break;
        }
        let found = plan.curves(parts, log_size).and_then(|curves| {
            #[cfg(test)]
            let curves = crate::planted::directions(curves);
            let curves: Vec<&dyn Curve> = curves.iter().map(|curve| curve as &dyn Curve).collect();
            question.answer_by_curves(&curves, &plan.details(log_size))
        });
        let found = match (found, best) {
            (Ok(found), _) => found,
            (Err(_), Some(best)) => return Ok(best),
            (Err(error), None) => return Err(error),
        };
        let improved = best.is_none_or(|best| found.details.gap < 0.7 * best.details.gap);
        let narrowest = best.map_or(found, |best| best.and(&found));
        best = Some(narrowest);
        let missing = narrowest.details.gap / GAP;
        if missing <= 1.0 {
            break;
        }
        missed += usize::from(!improved);
        let aim = question.better_aim(&found, plan.aim());
        let less_room = plan.less_room(&found.details);
        if (aim.is_some() || less_room.is_some()) && missed < MOST_MISSES {
            let ln_room = less_room.unwrap_or(plan.ln_room());
            plan = match Plan::near(parts, aim.unwrap_or(plan.aim()), ln_room) {
                Ok(plan) => plan,
                Err(_) => break,
            };
            log_size = if aim.is_some() {
                plan.first_log_size()
            } else {
                plan.first_log_size().max(log_size)
            };
        } else if log_size >= LARGEST_SIZE {
            break;
        } else if improved {
            // The gap falls with the square of the step.
            log_size = (log_size + if missing < 3.5 { 1 } else { 2 }).min(LARGEST_SIZE);
        } else if widened < 2 {
            // Then the grid is not the reason: losses that wrap around the window hide the answer.
            plan.widen();
            widened += 1;
            log_size += 1;
        } else {
            break;
        }
    }
    best.ok_or(AccountError::LossesTooLarge {
        width: f64::INFINITY,
    })
}

/// The releases by their pairs, equal ones together.
fn parts(sampled: &[&Subsampled], full_data_mu: Real) -> Result<Vec<Part>, AccountError> {
    let mut counts: BTreeMap<(u8, u64, u64), Part> = BTreeMap::new();
    let mut total = 1.0;
    for event in sampled {
        let pair = pair_of(event);
        let count = event.release().count();
        total += count as f64;
        let key = (pair.kind as u8, pair.rate.to_bits(), pair.shift.to_bits());
        let part = counts.entry(key).or_insert(Part { pair, count: 0 });
        part.count = part.count.saturating_add(count);
    }
    if total > MOST_RELEASES || counts.len() > MOST_EVENTS {
        return Err(AccountError::TooMany {
            releases: total,
            most_releases: MOST_RELEASES,
            events: counts.len(),
            most_events: MOST_EVENTS,
        });
    }
    let mut parts: Vec<Part> = counts.into_values().collect();
    if full_data_mu > Real::ZERO {
        parts.push(Part {
            pair: Pair::of(
                Kind::PoissonAddRemove,
                1.0,
                full_data_mu.times_power_of_two(1).sqrt().to_f64_up(),
            ),
            count: 1,
        });
    }
    Ok(parts)
}

fn pair_of(event: &Subsampled) -> Pair {
    let release = event.release();
    // The distance of the pair's means is a clip bound for Poisson sampling, and what one
    // record of the batch can move the sum by without replacement.
    let (kind, distance) = match event.scheme() {
        Scheme::PoissonAddRemove | Scheme::PoissonZeroOut => {
            (Kind::PoissonAddRemove, release.sensitivity())
        }
        Scheme::PoissonSubstitute => (
            Kind::PoissonSubstitute,
            release.sensitivity().times_power_of_two(-1),
        ),
        #[cfg(test)]
        Scheme::WithoutReplacementSubstitute
            if crate::planted::is(crate::planted::Planted::PoissonForBatch) =>
        {
            (
                Kind::PoissonSubstitute,
                release.sensitivity().times_power_of_two(-1),
            )
        }
        Scheme::WithoutReplacementSubstitute => {
            (Kind::WithoutReplacementSubstitute, release.sensitivity())
        }
    };
    // Rounded up, all three: the pair is then worse than the event's.
    Pair {
        kind,
        rate: event.rate().to_f64_up(),
        rest: (Real::ONE - event.rate()).to_f64_up(),
        shift: (distance / release.sigma()).to_f64_up(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::gaussian::GaussianCurve;
    use super::*;

    fn real(text: &str) -> Real {
        text.parse().unwrap()
    }

    /// `count` releases about all rows, as one pair: what the Gaussian curve knows exactly.
    fn gaussians(shift: f64, count: u64) -> (Vec<Part>, GaussianCurve) {
        let part = Part {
            pair: Pair::of(Kind::PoissonAddRemove, 1.0, shift),
            count,
        };
        let shift = Real::exact(shift);
        let mu = shift.square() * Real::from(count);
        (vec![part], GaussianCurve::new(mu.times_power_of_two(-1)))
    }

    // Wrong here: the claim of the whole accountant, from grid to transform to tilt.
    #[test]
    fn composed_gaussians_are_enclosed_at_every_size_of_delta() {
        for (shift, count) in [(1.0, 3), (0.05, 400), (0.3, 30), (2.0, 10), (0.01, 100_000)] {
            let (parts, curve) = gaussians(shift, count);
            for delta in [
                "1e-300", "1e-100", "1e-20", "1e-9", "1e-5", "0.01", "0.3", "0.9", "0.999",
            ] {
                let delta = real(delta);
                let found = bounds(&parts, Query::Epsilon { delta }, Real::ZERO).unwrap();
                let truth = curve.epsilon(delta);
                assert!(
                    found.lower <= truth.upper,
                    "{shift} {count} {delta} {found:?} {truth:?}"
                );
                assert!(
                    found.upper >= truth.lower,
                    "{shift} {count} {delta} {found:?} {truth:?}"
                );
                assert!(
                    found.upper - found.lower <= GAP,
                    "{shift} {count} {delta} {found:?}"
                );
                let epsilon = Real::exact(truth.upper);
                let found = bounds(&parts, Query::Delta { epsilon }, Real::ZERO).unwrap();
                let truth = curve.ln_delta(epsilon);
                assert!(
                    found.lower <= truth.upper.to_f64_up(),
                    "{shift} {count} {delta} {found:?}"
                );
                assert!(
                    found.upper >= truth.lower.to_f64_down(),
                    "{shift} {count} {delta} {found:?}"
                );
                assert!(
                    found.details.gap <= GAP,
                    "{shift} {count} {delta} {found:?}"
                );
            }
        }
    }

    // Rate 1 - 1e-12 is nearly all rows, whose curve is known: the bounds meet there.
    #[test]
    fn a_rate_of_nearly_one_is_nearly_all_rows() {
        let (mut parts, curve) = gaussians(0.2, 25);
        for part in &mut parts {
            part.pair.rate = 1.0 - 1e-12;
            part.pair.rest = 1e-12;
        }
        let delta = real("1e-5");
        let found = bounds(&parts, Query::Epsilon { delta }, Real::ZERO).unwrap();
        let truth = curve.epsilon(delta);
        assert!(found.lower <= truth.upper && found.upper >= truth.lower - 1e-9);
        assert!(found.upper - found.lower <= GAP);
    }

    // Wrong here: a mixture of events composed as if they were one.
    #[test]
    fn the_order_and_grouping_of_events_do_not_matter() {
        let part = |rate: f64, shift: f64, count: u64| Part {
            pair: Pair::of(Kind::PoissonAddRemove, rate, shift),
            count,
        };
        let query = Query::Epsilon {
            delta: real("1e-6"),
        };
        let answer = |parts: &[Part]| bounds(parts, query, Real::ZERO).unwrap();
        let one = answer(&[part(0.02, 0.8, 300), part(0.1, 0.3, 50)]);
        let other = answer(&[part(0.1, 0.3, 20), part(0.02, 0.8, 300), part(0.1, 0.3, 30)]);
        assert!(one.lower <= other.upper && other.lower <= one.upper);
        let alone = answer(&[part(0.02, 0.8, 300)]);
        assert!(alone.upper < one.lower);
    }

    // Wrong here: discrete noise accounted as if it were continuous.
    #[test]
    fn total_variation_raises_the_upper_bound_and_may_leave_none() {
        let (parts, _) = gaussians(0.3, 30);
        let query = Query::Epsilon {
            delta: real("1e-6"),
        };
        let plain = bounds(&parts, query, Real::ZERO).unwrap().upper;
        let dear = bounds(&parts, query, real("1e-12")).unwrap().upper;
        assert!(dear > plain && dear < plain + 0.1, "{plain} {dear}");
        assert!(matches!(
            bounds(&parts, query, real("1e-6")),
            Err(AccountError::DeltaUnreachable { .. })
        ));
    }
}
