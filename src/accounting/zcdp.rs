//! Zero-concentrated differential privacy.
//!
//! A Gaussian release of sensitivity D is rho-zCDP with rho = D^2/(2 sigma^2), and so is
//! one with discrete noise on a lattice that holds the sums, in any dimension and without
//! a further term (Canonne, Kamath and Steinke 2020, Theorem 4); rho adds up over releases.
//!
//! ```text
//! simple:  eps = rho + 2 sqrt(rho ln(1/delta)),  delta = e^(-(eps - rho)^2 / (4 rho))
//! tight:   eps = inf over a > 1 of  a rho + ln(1 - 1/a) - ln(a delta)/(a - 1)
//!          delta = inf over a > 1 of  e^((a-1)(a rho - eps)) (1 - 1/a)^a / (a - 1)
//! ```
//!
//! # Reference
//!
//! Bun and Steinke (2016), Proposition 1.3; Canonne, Kamath and Steinke (2020), "The
//! discrete Gaussian for differential privacy", Corollary 13.

use super::accountant::{AccountError, Accountant, Query, check_query};
use super::composition::Composition;
use super::elementary::{ln, ln_1p};
use super::event::Event;
use super::gaussian::ln_bounds;
use super::guarantee::{Found, Guarantee};
use super::real::Real;
use super::relation::Relation;

/// Covers the rounding of the few operations of a conversion.
const ROUNDING_UP: Real = Real::exact(1e-24);

/// How rho becomes epsilon and delta.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conversion {
    /// By the best order (Canonne, Kamath and Steinke 2020).
    #[default]
    Tight,
    /// In closed form (Bun and Steinke 2016).
    Simple,
}

/// The zCDP accountant with the tight conversion.
pub(super) fn account(
    composition: &Composition<'_>,
    query: Query,
) -> Result<Guarantee, AccountError> {
    account_by(composition, query, Conversion::Tight)
}

/// The privacy of all `events` together by zCDP, with this conversion.
///
/// # Errors
///
/// As [`Accountant::account`].
pub fn zcdp_by(
    conversion: Conversion,
    events: &[Event],
    relation: Relation,
    query: Query,
) -> Result<Guarantee, AccountError> {
    check_query(query)?;
    account_by(&Composition::new(events, relation)?, query, conversion)
}

fn account_by(
    composition: &Composition<'_>,
    query: Query,
    conversion: Conversion,
) -> Result<Guarantee, AccountError> {
    // It has no useful bound for a sample of the rows.
    composition.check_about_all_rows(Accountant::Zcdp)?;
    let rho = composition.mu();
    let rho = rho + rho * ROUNDING_UP;
    let found = match query {
        Query::Epsilon { delta } => Found::Epsilon {
            delta,
            lower: None,
            upper: epsilon_of_rho(rho, ln_bounds(delta).lower, conversion).to_f64_up(),
        },
        Query::Delta { epsilon } => Found::Delta {
            epsilon,
            lower: None,
            ln_upper: ln_delta_of_rho(rho, epsilon, conversion),
        },
    };
    Ok(Guarantee::new(Accountant::Zcdp, composition, found))
}

/// Epsilon of rho-zCDP, rounded up.
pub(super) fn epsilon_of_rho(rho: Real, ln_delta: Real, conversion: Conversion) -> Real {
    if rho <= Real::ZERO {
        return Real::ZERO;
    }
    let epsilon = match conversion {
        Conversion::Simple => rho + (rho * -ln_delta).sqrt().times_power_of_two(1),
        Conversion::Tight => {
            // With t = a - 1.
            let epsilon_at = |t: f64| {
                let (rho, ln_delta) = (rho.to_f64(), ln_delta.to_f64());
                (1.0 + t) * rho - (1.0 / t).ln_1p() - (ln_delta + t.ln_1p()) / t
            };
            let t = Real::exact(best(epsilon_at));
            rho + t * rho - ln_1p(Real::ONE / t) - (ln_delta + ln_1p(t)) / t
        }
    };
    let rounding = (epsilon.abs() + rho - ln_delta) * ROUNDING_UP;
    (epsilon + rounding).max(Real::ZERO)
}

/// ln delta of rho-zCDP, rounded up.
pub(super) fn ln_delta_of_rho(rho: Real, epsilon: Real, conversion: Conversion) -> Real {
    if rho <= Real::ZERO {
        return Real::exact(f64::NEG_INFINITY);
    }
    let (ln_delta, size) = match conversion {
        Conversion::Simple => {
            let excess = (epsilon - rho).max(Real::ZERO);
            let exponent = excess.square() / rho.times_power_of_two(2);
            (-exponent, exponent)
        }
        Conversion::Tight => {
            let ln_delta_at = |t: f64| {
                let (rho, epsilon) = (rho.to_f64(), epsilon.to_f64());
                t * ((1.0 + t) * rho - epsilon) - t.ln() - (1.0 + t) * (1.0 / t).ln_1p()
            };
            let t = Real::exact(best(ln_delta_at));
            let product = t * (rho + t * rho - epsilon);
            let power = (Real::ONE + t) * ln_1p(Real::ONE / t);
            let ln_t = ln(t);
            let size = t * (rho + t * rho + epsilon) + power + ln_t.abs();
            (product - ln_t - power, size)
        }
    };
    (ln_delta + size * ROUNDING_UP).min(Real::ZERO)
}

/// Near the minimum of `value_at` over t > 0: any t gives a bound, so a near miss costs tightness
/// in second order and never truth.
fn best(value_at: impl Fn(f64) -> f64) -> f64 {
    let value_at_exp = |x: f64| value_at(x.exp());
    // The best t is near sqrt(ln(1/delta)/rho).
    let (mut low, mut high) = (-70.0, 70.0);
    const STEPS: i32 = 140;
    let value = |i: i32| value_at_exp(low + (high - low) * f64::from(i) / f64::from(STEPS));
    let start = (0..=STEPS)
        .min_by(|&i, &j| value(i).total_cmp(&value(j)))
        .unwrap_or(0);
    let step = (high - low) / f64::from(STEPS);
    let middle = low + step * f64::from(start);
    (low, high) = (middle - step, middle + step);
    const GOLDEN: f64 = 0.618_033_988_749_894_8;
    for _ in 0..60 {
        let (a, b) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
        if value_at_exp(a) <= value_at_exp(b) {
            high = b;
        } else {
            low = a;
        }
    }
    (0.5 * (low + high)).exp()
}
