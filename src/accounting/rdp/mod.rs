//! Rényi differential privacy: a bound on the Rényi divergence at each order, which adds
//! up over releases, adaptive ones too.
//!
//! ```text
//! all rows:             a/(2 s^2), s = sigma over the sensitivity
//! Poisson, add/remove:  exact at integer orders (`poisson.rs`); zero-out likewise
//! Poisson, substitute:  an upper bound at integer orders (`poisson_substitute.rs`)
//! without replacement:  two upper bounds at integer orders (`part_of_rows.rs`)
//! DP-Barker's test:     the first of them, on its own divergence (`../barker.rs`)
//! ```
//!
//! The moments accountant of Abadi et al. (2016) is the second line at integer orders, its
//! log moment at lambda being (a - 1) times the divergence at a = lambda + 1. An order a
//! gives, for any delta,
//!
//! ```text
//! eps = R(a) + ln(1 - 1/a) - ln(a delta)/(a - 1)
//! ```
//!
//! and the best order is looked for.
//!
//! # Reference
//!
//! docs/proofs.md, sections 9 and 15. Mironov (2017) for the composition; Canonne, Kamath and Steinke (2020), Proposition 12,
//! for the conversion.

mod moments;
mod part_of_rows;
mod poisson;
mod poisson_substitute;
mod sum;

use std::collections::BTreeMap;

use super::accountant::{AccountError, Accountant, Query, delta_unreachable};
use super::composition::{Composition, total_variation_of, total_variation_of_draws};
use super::elementary::{exp, ln, ln_1p};
use super::event::Event;
use super::gaussian::{ln_bounds, smallest_accepted};
use super::guarantee::{Found, Guarantee};
use super::real::Real;
use super::relation::Relation;
use super::subsampled::{Scheme, Subsampled};
use part_of_rows::{Form, PartOfRows};
use poisson::Poisson;
use poisson_substitute::PoissonSubstitute;

/// The largest order; and the largest sum over distinct events of terms at one order.
pub(super) const LARGEST_ORDER: u64 = 1 << 14;
const MOST_TERMS: u64 = 400_000;

/// Covers the rounding of sums and products.
const ROUNDING_UP: Real = Real::exact(1e-24);

/// The Rényi divergence of some events at one order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RdpValue {
    pub order: u64,
    /// With Theorem 9 of Wang, Balle and Kasiviswanathan (2019) for sampling without
    /// replacement.
    pub value: Real,
    /// With their Theorem 27 in its place, where it is smaller.
    pub tightened: Real,
}

/// The Rényi divergence of all `events` together at each of `orders`, rounded up.
///
/// # Errors
///
/// Orders below 2 or above 16384, or events of another relation.
pub fn rdp_curve(
    events: &[Event],
    relation: Relation,
    orders: &[u64],
) -> Result<Vec<RdpValue>, AccountError> {
    let composition = Composition::new(events, relation)?;
    let mut curve = Curve::new(&composition);
    orders.iter().map(|&order| curve.at(order)).collect()
}

/// More than any budget, and a number that can be added up.
const BEYOND_ANY_BUDGET: Real = Real::exact(1e70);

/// The tightened divergence at each of these orders; more than any budget at those that have none.
///
/// # Errors
///
/// No order has one.
pub(super) fn divergences(
    composition: &Composition<'_>,
    orders: &[u64],
) -> Result<Vec<Real>, AccountError> {
    let mut curve = Curve::new(composition);
    let values: Result<Vec<Real>, AccountError> = orders
        .iter()
        .map(|&order| Ok(curve.at(order)?.tightened))
        .collect();
    let values = values?;
    if !values.iter().any(|value| value.is_finite()) {
        let order = orders.iter().copied().min().unwrap_or(2);
        return Err(AccountError::NoDivergence { order });
    }
    let finite = values.into_iter().map(|value| {
        if value.is_finite() {
            value
        } else {
            BEYOND_ANY_BUDGET
        }
    });
    Ok(finite.collect())
}

pub(super) fn account(
    composition: &Composition<'_>,
    query: Query,
) -> Result<Guarantee, AccountError> {
    let mut curve = Curve::new(composition);
    let total_variation = curve.total_variation;
    let (order, found) = match query {
        Query::Epsilon { delta } => {
            let ln_delta = ln_bounds(delta).lower;
            let (order, epsilon) = curve.best(|order, value| {
                epsilon_at(order, value, ln_delta, total_variation)
                    .unwrap_or(Real::exact(f64::INFINITY))
            })?;
            if !epsilon.is_finite() {
                return Err(delta_unreachable(
                    delta,
                    total_variation,
                    total_variation.times_power_of_two(1).to_f64_up(),
                ));
            }
            let upper = epsilon.to_f64_up();
            let found = Found::Epsilon {
                delta,
                lower: None,
                upper,
            };
            (order, found)
        }
        Query::Delta { epsilon } => {
            let (order, ln_upper) =
                curve.best(|order, value| ln_delta_at(order, value, epsilon, total_variation))?;
            let found = Found::Delta {
                epsilon,
                lower: None,
                ln_upper,
            };
            (order, found)
        }
    };
    Ok(Guarantee {
        order: Some(order),
        ..Guarantee::new(Accountant::Rdp, composition, found)
    })
}

/// The total variation of discrete noise that the divergence does not cover: none where the
/// divergence is known for that noise.
pub(super) fn total_variation_beside(composition: &Composition<'_>) -> Real {
    let sampled = composition.sampled().iter();
    let poisson = sampled.filter(|event| match event.scheme() {
        Scheme::PoissonAddRemove | Scheme::PoissonZeroOut => true,
        Scheme::PoissonSubstitute | Scheme::WithoutReplacementSubstitute => false,
    });
    let sum = poisson.fold(Real::ZERO, |sum, event| {
        sum + total_variation_of(event.release())
    });
    let tests = composition.barker().iter();
    tests.fold(sum, |sum, test| {
        sum + total_variation_of_draws(test.lattice(), test.count())
    })
}

/// The difference between epsilon and the divergence at `order`, rounded up; may be negative.
pub(super) fn epsilon_of_no_divergence(order: u64, ln_delta: Real) -> Real {
    let (a, t) = (Real::from(order), Real::from(order - 1));
    let epsilon = -ln_1p(Real::ONE / t) - (ln_delta + ln(a)) / t;
    epsilon + (ln_delta.abs() + a) * ROUNDING_UP
}

/// The smallest epsilon that order `order` gives for ln delta, rounded up.
pub(super) fn epsilon_at(
    order: u64,
    value: Real,
    ln_delta: Real,
    total_variation: Real,
) -> Option<Real> {
    if !value.is_finite() {
        return None;
    }
    if value <= Real::ZERO && total_variation <= Real::ZERO {
        return Some(Real::ZERO);
    }
    if total_variation <= Real::ZERO {
        let epsilon = value + value * ROUNDING_UP + epsilon_of_no_divergence(order, ln_delta);
        return Some(epsilon.max(Real::ZERO));
    }
    let accepts =
        |epsilon: f64| ln_delta_at(order, value, Real::exact(epsilon), total_variation) <= ln_delta;
    let best = epsilon_of_least_delta(order, value, total_variation).to_f64_up();
    accepts(best).then(|| Real::exact(smallest_accepted(best, accepts)))
}

/// ln delta that order `order` gives for epsilon, rounded up.
pub(super) fn ln_delta_at(order: u64, value: Real, epsilon: Real, total_variation: Real) -> Real {
    if !value.is_finite() {
        return Real::ZERO;
    }
    if total_variation <= Real::ZERO {
        return ln_delta_of_divergence(order, value, epsilon).min(Real::ZERO);
    }
    // The term of discrete noise grows with epsilon; what holds for a smaller one holds too.
    let epsilon = epsilon.min(epsilon_of_least_delta(order, value, total_variation));
    let ln_delta = ln_delta_of_divergence(order, value, epsilon);
    // (1 + e^eps) times the total variation
    let extra = ln_bounds(total_variation).upper + epsilon + ln_1p(exp(-epsilon));
    let (large, small) = (ln_delta.max(extra), ln_delta.min(extra));
    let sum = if small.is_finite() {
        large + ln_1p(exp(small - large))
    } else {
        large
    };
    (sum + (Real::ONE + sum.abs()) * ROUNDING_UP).min(Real::ZERO)
}

/// ln delta without discrete noise, rounded up.
fn ln_delta_of_divergence(order: u64, value: Real, epsilon: Real) -> Real {
    if value <= Real::ZERO {
        return Real::exact(f64::NEG_INFINITY);
    }
    let (a, t) = (Real::from(order), Real::from(order - 1));
    let product = t * (value - epsilon);
    let power = a * ln_1p(Real::ONE / t);
    let rounding = (t * (value + epsilon) + power + ln(a)) * ROUNDING_UP;
    product - power - ln(t) + rounding
}

/// Where e^(-(a-1) eps) A + (1 + e^eps) T, the bound on delta with discrete noise, is lowest:
/// ln((a-1) A / T) / a, or 0. Rounding costs tightness there, not truth.
fn epsilon_of_least_delta(order: u64, value: Real, total_variation: Real) -> Real {
    let ln_a = ln_delta_of_divergence(order, value, Real::ZERO);
    if !ln_a.is_finite() {
        return Real::ZERO;
    }
    let ln_ratio = ln_a + ln(Real::from(order - 1)) - ln(total_variation);
    (ln_ratio / Real::from(order)).max(Real::ZERO)
}

/// The Rényi divergence as a function of the order.
struct Curve {
    /// Sum of sensitivity^2 / (2 sigma^2) over the releases about all rows.
    full_data_mu: Real,
    parts: Vec<Part>,
    total_variation: Real,
    known: BTreeMap<u64, RdpValue>,
}

/// Releases of one kind.
struct Part {
    sampling: Sampling,
    count: Real,
}

enum Sampling {
    Poisson(Poisson),
    PoissonSubstitute(Box<PoissonSubstitute>),
    PartOfRows(Box<PartOfRows>),
}

impl Curve {
    fn new(composition: &Composition<'_>) -> Curve {
        let mut counts: BTreeMap<[u64; 5], (&Subsampled, Real)> = BTreeMap::new();
        for &event in composition.sampled() {
            let release = event.release();
            let count = Real::from(release.count());
            let (ratio, rate) = (release.sigma() / release.sensitivity(), event.rate());
            let [a, b] = ratio.bits();
            let [c, d] = rate.bits();
            let entry = counts.entry([event.scheme() as u64, a, b, c, d]);
            let sum = entry.or_insert((event, Real::ZERO));
            sum.1 = sum.1 + count;
        }
        let mut parts: Vec<Part> = counts
            .into_values()
            .map(|(event, count)| Part {
                sampling: sampling_of(event),
                count,
            })
            .collect();
        for &test in composition.barker() {
            parts.push(Part {
                sampling: Sampling::PartOfRows(Box::new(PartOfRows::barker(test))),
                count: Real::from(test.count()),
            });
        }
        Curve {
            full_data_mu: composition.mu(),
            parts,
            total_variation: total_variation_beside(composition),
            known: BTreeMap::new(),
        }
    }

    fn at(&mut self, order: u64) -> Result<RdpValue, AccountError> {
        if let Some(known) = self.known.get(&order) {
            return Ok(*known);
        }
        if !(2..=LARGEST_ORDER).contains(&order) {
            return Err(AccountError::OrderOutOfRange {
                order,
                largest: LARGEST_ORDER,
            });
        }
        let all_rows = self.full_data_mu * Real::from(order);
        let (mut value, mut tightened) = (all_rows, all_rows);
        let mut known = true;
        for part in &mut self.parts {
            let one = match &mut part.sampling {
                Sampling::Poisson(poisson) => {
                    let one = poisson.divergence(order);
                    Some((one, one))
                }
                Sampling::PoissonSubstitute(poisson) => {
                    let one = poisson.divergence(order);
                    Some((one, one))
                }
                Sampling::PartOfRows(release) => {
                    let plain = release.divergence(order, Form::Plain);
                    plain.zip(release.divergence(order, Form::Tightened))
                }
            };
            if let Some((plain, smaller)) = one {
                value = value + part.count * plain;
                tightened = tightened + part.count * smaller.min(plain);
            } else {
                known = false;
            }
        }
        let up = |value: Real| {
            if known {
                value + value * ROUNDING_UP
            } else {
                Real::exact(f64::INFINITY)
            }
        };
        let found = RdpValue {
            order,
            value: up(value),
            tightened: up(tightened),
        };
        self.known.insert(order, found);
        Ok(found)
    }

    /// The order at which `cost` of the tightened divergence is lowest, and that cost.
    ///
    /// (a - 1) R(a) is convex for a true divergence, which makes the cost fall and then
    /// rise; for the bounds it need not be, and then the order found may not be the best.
    fn best(&mut self, cost: impl Fn(u64, Real) -> Real) -> Result<(u64, Real), AccountError> {
        let most = (MOST_TERMS / (self.parts.len() as u64).max(1)).clamp(256, LARGEST_ORDER);
        let mut cost_at = |order: u64| -> Result<(u64, Real), AccountError> {
            let value = self.at(order)?;
            Ok((order, cost(order, value.tightened)))
        };
        let mut best = cost_at(2)?;
        let mut step = 1;
        // Upwards with growing steps for as long as it gets better.
        let (mut low, mut high) = (2, most);
        let mut order = 2;
        while order < most {
            let next = (order + step).min(most);
            let found = cost_at(next)?;
            if found.1 >= best.1 && best.1.is_finite() {
                high = next;
                break;
            }
            low = order;
            if found.1 < best.1 {
                best = found;
            }
            order = next;
            step = step.saturating_mul(2);
        }
        while high - low > 3 {
            let third = (high - low) / 3;
            let (left, right) = (cost_at(low + third)?, cost_at(high - third)?);
            for found in [left, right] {
                if found.1 < best.1 {
                    best = found;
                }
            }
            if left.1 <= right.1 {
                high = right.0;
            } else {
                low = left.0;
            }
        }
        for order in low..=high {
            let found = cost_at(order)?;
            if found.1 < best.1 {
                best = found;
            }
        }
        Ok(best)
    }
}

fn sampling_of(event: &Subsampled) -> Sampling {
    let release = event.release();
    let ratio = release.sigma() / release.sensitivity();
    match event.scheme() {
        Scheme::PoissonAddRemove | Scheme::PoissonZeroOut => {
            Sampling::Poisson(Poisson::new(event.rate(), ratio))
        }
        Scheme::PoissonSubstitute => {
            Sampling::PoissonSubstitute(Box::new(PoissonSubstitute::new(event.rate(), ratio)))
        }
        Scheme::WithoutReplacementSubstitute => {
            Sampling::PartOfRows(Box::new(PartOfRows::gaussian(event.rate(), ratio)))
        }
    }
}
