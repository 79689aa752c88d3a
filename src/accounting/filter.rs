//! Filters: a budget for releases that are chosen as the answers come in.
//!
//! A [`Meter`](super::Meter) grants what was planned. A filter is for runs without a plan:
//! each next release, with its noise and its sampling, may depend on all answers so far, and
//! the filter refuses the first one that would exceed the budget. It keeps the running sum
//! of a [`Measure`], so a charge takes constant time.

use thiserror::Error;

use super::accountant::AccountError;
use super::budget::Budget;
use super::event::{Event, Relation};
use super::measure::{Amounts, Measure};
use super::rdp::rdp_curve;
use super::real::Real;

/// A budget that is spent release by release, in any order and by any choice.
///
/// The noise of each batch may depend on what the ones before it showed; the orders of `rdp`
/// must not, and are part of the [`Measure`]. There is no measure for the `pld` accountant: its numbers
/// do not hold for adaptive choices.
///
/// ```
/// use dpm::accounting::{Accountant, Budget, Event, Filter, Measure, Real, Relation};
///
/// let budget = Budget::new(2.0, 1e-5)?;
/// let measure = Measure::of(Accountant::Rdp, budget).ok_or("pld has no filter")?;
/// let mut filter = Filter::new(measure, budget, Relation::AddRemove, Real::ZERO)?;
/// let mut sigma = 4.0;
/// let mut released = 0;
/// loop {
///     let text = format!("poisson:rate=0.01,clip=1,sigma={sigma},count=100");
///     let batches = Event::parse(&text, Relation::AddRemove)?;
///     if filter.charge(&batches).is_err() {
///         break;
///     }
///     released += 100;
///     // An answer was looked at here, and less noise seems to be worth its price.
///     sigma = f64::max(0.9 * sigma, 1.0);
/// }
/// assert!(released > 300 && filter.spent() <= filter.allowed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Filter {
    measure: Measure,
    relation: Relation,
    allowed: Amounts,
    spent: Amounts,
    /// What discrete noise may add in total variation, and has added.
    allowed_variation: Real,
    spent_variation: Real,
}

/// Why a filter refuses a release, or cannot be made.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum FilterError {
    #[error(transparent)]
    Account(#[from] AccountError),
    #[error(
        "the release `{what}` would exceed the budget: requested {requested} {unit}, spent {spent}, \
         remaining {remaining}, short by {short_by}; use more noise, or stop here"
    )]
    Exceeded {
        what: String,
        unit: &'static str,
        requested: f64,
        spent: f64,
        remaining: f64,
        short_by: f64,
    },
    #[error(
        "the discrete noise of `{what}` would add more total variation than was set aside; use a \
         finer lattice, or set more aside"
    )]
    TooCoarse { what: String },
    #[error(
        "nothing of the budget is left for a sum of {unit}: the discrete noise, or the order's \
         conversion, takes all of epsilon and delta; use a larger order or a finer lattice"
    )]
    NothingLeft { unit: &'static str },
}

impl Filter {
    /// The sum of `measure` stays below what keeps `budget`, of which `total_variation` is
    /// set aside for discrete noise: all of it that the releases will draw, as
    /// [`total_variation_of_draw`](super::total_variation_of_draw) says. `zcdp` needs none.
    ///
    /// # Errors
    ///
    /// An order that is out of range, or a budget that the order or the discrete noise alone
    /// takes up.
    pub fn new(
        measure: Measure,
        budget: Budget,
        relation: Relation,
        total_variation: Real,
    ) -> Result<Filter, FilterError> {
        if let Some(order) = measure.order() {
            rdp_curve(&[], relation, &[order])?;
        }
        let allowed = measure
            .most(budget, total_variation)
            .ok_or(FilterError::NothingLeft {
                unit: measure.unit(),
            })?;
        Ok(Filter {
            measure,
            relation,
            allowed,
            spent: Amounts::ZERO,
            allowed_variation: total_variation,
            spent_variation: Real::ZERO,
        })
    }

    /// Charges all releases of `event`, before a row is read.
    ///
    /// # Errors
    ///
    /// They would exceed the budget, or are of a kind that this filter has no bound for;
    /// nothing is charged then.
    pub fn charge(&mut self, event: &Event) -> Result<(), FilterError> {
        let cost = self
            .measure
            .cost(std::slice::from_ref(event), self.relation)?;
        let (cost, variation) = (cost.amounts, cost.total_variation);
        // The sums are rounded up, whatever the number of charges.
        let spent = self
            .spent
            .with(cost, |spent, cost| (spent + cost) * ROUNDING_UP);
        let lane = lane_with_most_left(&spent, &self.allowed);
        if spent.at(lane) > self.allowed.at(lane) {
            let (requested, spent) = (cost.at(lane), self.spent.at(lane));
            let remaining = (self.allowed.at(lane) - spent).max(Real::ZERO);
            return Err(FilterError::Exceeded {
                what: event.what().to_owned(),
                unit: self.measure.unit(),
                requested: requested.to_f64(),
                spent: spent.to_f64(),
                remaining: remaining.to_f64(),
                short_by: (requested - remaining).to_f64(),
            });
        }
        let spent_variation = (self.spent_variation + variation) * ROUNDING_UP;
        if spent_variation > self.allowed_variation {
            return Err(FilterError::TooCoarse {
                what: event.what().to_owned(),
            });
        }
        self.spent = spent;
        self.spent_variation = spent_variation;
        Ok(())
    }

    /// What has been charged, in the filter's own unit; of the orders of `rdp`, at the one that
    /// has the largest part of its sum left.
    pub fn spent(&self) -> Real {
        self.spent.at(self.lane())
    }

    /// What may be charged in all, at that order.
    pub fn allowed(&self) -> Real {
        self.allowed.at(self.lane())
    }

    fn lane(&self) -> usize {
        lane_with_most_left(&self.spent, &self.allowed)
    }

    pub fn measure(&self) -> Measure {
        self.measure
    }
}

/// The lane with the largest part of what it allows left.
fn lane_with_most_left(spent: &Amounts, allowed: &Amounts) -> usize {
    let lanes = spent.iter().zip(allowed.iter()).enumerate();
    let allowing = lanes.filter(|(_, (_, allowed))| *allowed > Real::ZERO);
    // x/a < y/b without a division, which would round.
    let most_left = allowing.reduce(|most, next| {
        let ((x, a), (y, b)) = (most.1, next.1);
        if y * a < x * b { next } else { most }
    });
    most_left.map_or(0, |(lane, _)| lane)
}

/// More than the rounding of one sum.
const ROUNDING_UP: Real = Real::from_parts(1.0, 1e-31);

#[cfg(test)]
mod tests {
    use super::super::accountant::{Accountant, Query};
    use super::*;

    fn event(text: &str, relation: Relation) -> Event {
        Event::parse(text, relation).unwrap()
    }

    /// Charges releases whose noise follows a rule of the state so far, until refused.
    fn run(filter: &mut Filter, text: impl Fn(u64) -> String) -> Vec<Event> {
        let mut released = Vec::new();
        let mut state = 1u64;
        loop {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
            let next = event(&text(10 + (state >> 33) % 50), Relation::AddRemove);
            match filter.charge(&next) {
                Ok(()) => released.push(next),
                Err(error) => {
                    assert!(matches!(error, FilterError::Exceeded { .. }), "{error}");
                    return released;
                }
            }
        }
    }

    // Wrong here: an adaptive run that spends more than it says, or that stops far too soon.
    #[test]
    fn what_a_filter_grants_is_within_its_budget_and_uses_it() {
        let delta: Real = "1e-6".parse().unwrap();
        let budget = Budget::new(2.0, delta).unwrap();
        let relation = Relation::AddRemove;
        let epsilon = |accountant: Accountant, events: &[Event]| {
            let guarantee = accountant.account(events, relation, Query::Epsilon { delta });
            guarantee.unwrap().epsilon
        };
        let full = |sigma: u64| format!("gaussian:clip=1,sigma={sigma}");
        let sampled = |sigma: u64| format!("poisson:rate=0.05,clip=1,sigma=1.{sigma},count=3");
        let mut filter = Filter::new(Measure::Gaussian, budget, relation, Real::ZERO).unwrap();
        let spent = epsilon(Accountant::Gaussian, &run(&mut filter, full));
        assert!(spent <= 2.0 && spent > 1.8, "{spent}");
        let mut filter = Filter::new(Measure::Zcdp, budget, relation, Real::ZERO).unwrap();
        let spent = epsilon(Accountant::Zcdp, &run(&mut filter, full));
        assert!(spent <= 2.0 && spent > 1.8, "{spent}");
        let mut best: f64 = 0.0;
        for order in [8, 10, 12, 14, 16] {
            let mut filter =
                Filter::new(Measure::Rdp { order }, budget, relation, Real::ZERO).unwrap();
            let spent = epsilon(Accountant::Rdp, &run(&mut filter, sampled));
            assert!(spent <= 2.0 && filter.spent() <= filter.allowed());
            best = best.max(spent);
        }
        assert!(best > 1.5, "{best}");
    }

    #[test]
    fn a_filter_refuses_what_it_has_no_bound_for() {
        let budget = Budget::new(2.0, 1e-6).unwrap();
        let relation = Relation::AddRemove;
        let sampled = event("poisson:rate=0.05,clip=1,sigma=2", relation);
        let mut filter = Filter::new(Measure::Zcdp, budget, relation, Real::ZERO).unwrap();
        assert!(matches!(
            filter.charge(&sampled),
            Err(FilterError::Account(AccountError::NoBound { .. }))
        ));
        assert_eq!(filter.spent(), Real::ZERO);
        let other = event("gaussian:clip=1,sigma=2", Relation::Substitute);
        assert!(matches!(
            filter.charge(&other),
            Err(FilterError::Account(_))
        ));
        let little = Budget::new(0.05, 1e-6).unwrap();
        assert!(matches!(
            Filter::new(Measure::Rdp { order: 2 }, little, relation, Real::ZERO),
            Err(FilterError::NothingLeft { .. })
        ));
        assert!(Filter::new(Measure::Rdp { order: 1 }, budget, relation, Real::ZERO).is_err());
    }
}
