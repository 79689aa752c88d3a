//! From a budget back to mu and to sigma.

use super::accountant::{
    AccountError, Query, account, check_delta, check_epsilon, delta_unreachable,
};
use super::budget::Budget;
use super::composition::Composition;
use super::discrete::LatticeCurve;
use super::event::{EventError, Relation};
use super::event_text::Unscaled;
use super::gaussian::{GaussianCurve, exp_up, ln_bounds};
use super::real::Real;
use thiserror::Error;

/// Why no noise can be found.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum CalibrateError {
    #[error(transparent)]
    Account(#[from] AccountError),
    #[error(transparent)]
    Event(#[from] EventError),
    #[error("there is no event to find the noise for; give at least one `--event`")]
    NoEvents,
}

/// The largest mu with delta(epsilon) <= delta, rounded down to an `f64` that the
/// accountant accepts.
///
/// `total_variation` is the sum over all draws of discrete noise
/// ([`total_variation_of_draw`](super::total_variation_of_draw)), or 0.
///
/// # Errors
///
/// A budget out of range, or one that the discrete noise alone takes up.
pub fn mu_for_budget(
    epsilon: Real,
    delta: Real,
    total_variation: Real,
) -> Result<f64, AccountError> {
    check_epsilon(epsilon)?;
    check_delta(delta)?;
    let target = ln_bounds(delta).lower;
    let ln_delta = |mu: f64| {
        LatticeCurve::new(GaussianCurve::new(Real::exact(mu)), total_variation)
            .ln_delta_upper(epsilon)
    };
    let (mut accepted, mut refused) = (LEAST_MU, LEAST_MU);
    if ln_delta(accepted) > target {
        let least = exp_up(ln_delta(accepted));
        return Err(delta_unreachable(delta, total_variation, least));
    }
    while ln_delta(refused) <= target {
        accepted = refused;
        refused *= 16.0;
    }
    // Bisection over the bits, which order non-negative floats.
    let (mut below, mut above) = (accepted.to_bits(), refused.to_bits());
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        if ln_delta(f64::from_bits(middle)) <= target {
            below = middle;
        } else {
            above = middle;
        }
    }
    Ok(f64::from_bits(below))
}

/// The smallest sigma, common to all `events`, that keeps them within `budget`, rounded
/// up to an `f64` that the accountant accepts.
///
/// # Errors
///
/// No events, or a budget that no noise in range keeps.
pub fn sigma_for_budget(
    events: &[Unscaled],
    relation: Relation,
    budget: Budget,
) -> Result<f64, CalibrateError> {
    let with = |sigma: Real| -> Result<Vec<_>, EventError> {
        events.iter().map(|event| event.with_sigma(sigma)).collect()
    };
    let largest = events
        .iter()
        .map(Unscaled::sensitivity)
        .reduce(Real::max)
        .ok_or(CalibrateError::NoEvents)?;
    let mu = mu_for_budget(budget.epsilon(), budget.delta(), Real::ZERO)?;
    // mu is proportional to 1/sigma^2; sigma = the largest sensitivity is a unit.
    let unit_mu = Composition::new(&with(largest)?, relation)?.mu();
    let mut sigma = (largest * (unit_mu / Real::exact(mu)).sqrt()).to_f64_up();
    let query = Query::Epsilon {
        delta: budget.delta(),
    };
    loop {
        let guarantee = account(&with(Real::exact(sigma))?, relation, query)?;
        if Real::exact(guarantee.epsilon) <= budget.epsilon() {
            return Ok(sigma);
        }
        sigma = sigma.next_up();
    }
}

/// Less than any event's mu.
const LEAST_MU: f64 = 1e-101;

#[cfg(test)]
mod tests {
    use super::super::event::{Event, Gaussian};
    use super::*;

    fn real(text: &str) -> Real {
        text.parse().unwrap()
    }

    fn epsilon_of(mu: f64, delta: Real) -> f64 {
        GaussianCurve::new(Real::exact(mu)).epsilon(delta).upper
    }

    // Oracle: the paper's mu at delta = 1e-6 (ALGORITHMS.md, "Budget").
    #[test]
    fn mu_is_the_papers() {
        for (epsilon, mu) in [
            ("1", 0.02801),
            ("2", 0.1005),
            ("4", 0.3510),
            ("6", 0.7156),
            ("8", 1.1728),
            ("10", 1.7078),
            ("12", 2.3094),
            ("15", 3.3184),
        ] {
            let found = mu_for_budget(real(epsilon), real("1e-6"), Real::ZERO).unwrap();
            assert!((found - mu).abs() < 5.1e-5, "{epsilon}: {found}");
        }
    }

    // Wrong here: a plan that the accountant refuses, or one that wastes its budget.
    #[test]
    fn the_accountant_accepts_mu_and_nothing_is_left_over() {
        for epsilon in ["1e-4", "0.1", "1", "15", "300", "1e4"] {
            for delta in ["1e-300", "1e-12", "1e-6", "0.01", "0.9"] {
                let (eps, delta) = (real(epsilon), real(delta));
                let mu = mu_for_budget(eps, delta, Real::ZERO).unwrap();
                assert!(Real::exact(epsilon_of(mu, delta).next_down()) <= eps);
                let query = Query::Epsilon { delta };
                let sigma = (Real::exact(0.5) / Real::exact(mu)).sqrt();
                let release = Gaussian::of_sensitivity("x", 1.0, sigma.to_f64_up()).unwrap();
                let events = [Event::Gaussian(release)];
                let guarantee = account(&events, Relation::Substitute, query).unwrap();
                assert!(Real::exact(guarantee.epsilon.next_down()) <= eps);
                assert!(epsilon_of(mu, delta) >= eps.to_f64() * (1.0 - 1e-9));
            }
        }
    }

    #[test]
    fn discrete_draws_leave_less_for_mu_and_may_leave_nothing() {
        let (epsilon, delta) = (Real::ONE, real("1e-6"));
        let mu = |total| mu_for_budget(epsilon, delta, real(total));
        let free = mu("0").unwrap();
        let dear = mu("1e-8").unwrap();
        assert!(mu("1e-20").unwrap() <= free && dear < 0.999 * free);
        let gaussian = GaussianCurve::new(Real::exact(dear));
        let back = LatticeCurve::new(gaussian, real("1e-8")).epsilon_upper(delta);
        let back = back.unwrap();
        assert!(back <= 1.0 && back > 1.0 - 1e-9, "{back}");
        assert!(matches!(
            mu("1e-6"),
            Err(AccountError::DeltaUnreachable { .. })
        ));
    }

    #[test]
    fn sigma_keeps_the_budget_and_one_step_less_would_hardly() {
        let budget = Budget::new(2.0, 1e-6).unwrap();
        let events = [
            Unscaled::parse("gaussian:clip=1,count=100", Relation::Substitute).unwrap(),
            Unscaled::parse("gaussian:sensitivity=0.5,count=7", Relation::Substitute).unwrap(),
        ];
        let sigma = sigma_for_budget(&events, Relation::Substitute, budget).unwrap();
        let epsilon = |sigma: f64| {
            let with = |event: &Unscaled| event.with_sigma(Real::exact(sigma)).unwrap();
            let events: Vec<Event> = events.iter().map(with).collect();
            let query = Query::Epsilon {
                delta: budget.delta(),
            };
            account(&events, Relation::Substitute, query)
                .unwrap()
                .epsilon
        };
        assert!(epsilon(sigma) <= 2.0 && epsilon(sigma * (1.0 - 1e-12)) > 2.0);
        assert_eq!(
            sigma_for_budget(&[], Relation::Substitute, budget),
            Err(CalibrateError::NoEvents)
        );
    }
}
