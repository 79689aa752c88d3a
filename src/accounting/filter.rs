//! Filters: a budget for releases that are chosen as the answers come in.
//!
//! A [`Meter`](super::Meter) grants what was planned. A filter is for runs without a plan:
//! each next release, with its noise and its sampling, may depend on all answers so far, and
//! the filter refuses the first one that would exceed the budget. What a sum over releases
//! bounds under any such choices is little: a sum of mu for Gaussian releases about all
//! rows, a sum of rho, a sum of Rényi divergences at one order that was fixed beforehand.
//! Each is a running sum, so a charge takes constant time.
//!
//! There is no filter of privacy loss distributions. For parameters chosen as the run goes,
//! comparing the convolution of the losses so far with a budget does not bound the privacy
//! of the whole; `pld` therefore takes a list of events and nothing that grows.
//!
//! # Reference
//!
//! Feldman and Zrnic (2021), "Individual privacy accounting via a Rényi filter",
//! for a fixed order and so for zCDP; Koskela, Tobaben and Honkela (2023), "Individual
//! privacy accounting with Gaussian differential privacy", for the Gaussian
//! filter.

use thiserror::Error;

use super::accountant::AccountError;
use super::budget::Budget;
use super::calibrate::mu_for_budget;
use super::composition::Composition;
use super::event::{Event, Relation};
use super::gaussian::ln_bounds;
use super::rdp::{epsilon_of_no_divergence, rdp_curve, total_variation_beside};
use super::real::Real;
use super::zcdp::{Conversion, epsilon_of_rho};

/// A budget that is spent release by release, in any order and by any choice.
#[derive(Clone, Debug)]
pub struct Filter {
    kind: Kind,
    relation: Relation,
    allowed: Real,
    spent: Real,
    /// What discrete noise may add in total variation, and has added.
    allowed_variation: Real,
    spent_variation: Real,
}

/// What is summed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Gaussian,
    Zcdp,
    Rdp { order: u64 },
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
    #[error("{0}")]
    NotForSampling(&'static str),
    #[error(
        "order {order} leaves nothing of the budget: its conversion alone costs more than epsilon; \
         use a larger order"
    )]
    NothingLeft { order: u64 },
}

impl Filter {
    /// For Gaussian releases about all rows: the sum of D^2/(2 sigma^2) stays below the mu
    /// of `budget`, of which `total_variation` is set aside for discrete noise.
    ///
    /// # Errors
    ///
    /// A budget that the discrete noise alone takes up.
    pub fn gaussian(
        budget: Budget,
        relation: Relation,
        total_variation: Real,
    ) -> Result<Filter, FilterError> {
        let mu = mu_for_budget(budget.epsilon(), budget.delta(), total_variation)?;
        let filter = Filter::new(Kind::Gaussian, relation, Real::exact(mu));
        Ok(Filter {
            allowed_variation: total_variation,
            ..filter
        })
    }

    /// For Gaussian releases about all rows, by zCDP; discrete noise costs nothing more.
    pub fn zcdp(budget: Budget, relation: Relation) -> Filter {
        let ln_delta = ln_bounds(budget.delta()).lower;
        let keeps = |rho: f64| {
            epsilon_of_rho(Real::exact(rho), ln_delta, Conversion::Tight) <= budget.epsilon()
        };
        let (mut below, mut above) = (0u64, 1e61f64.to_bits());
        while above - below > 1 {
            let middle = below + (above - below) / 2;
            if keeps(f64::from_bits(middle)) {
                below = middle;
            } else {
                above = middle;
            }
        }
        Filter::new(Kind::Zcdp, relation, Real::exact(f64::from_bits(below)))
    }

    /// For releases about all rows and about samples, by their Rényi divergence at an order
    /// that is fixed now.
    ///
    /// # Errors
    ///
    /// An order that is out of range, or too small for this budget.
    pub fn rdp(budget: Budget, relation: Relation, order: u64) -> Result<Filter, FilterError> {
        rdp_curve(&[], relation, &[order])?;
        let ln_delta = ln_bounds(budget.delta()).lower;
        let allowed = budget.epsilon() - epsilon_of_no_divergence(order, ln_delta);
        if allowed <= Real::ZERO {
            return Err(FilterError::NothingLeft { order });
        }
        Ok(Filter::new(Kind::Rdp { order }, relation, allowed))
    }

    fn new(kind: Kind, relation: Relation, allowed: Real) -> Filter {
        Filter {
            kind,
            relation,
            allowed,
            spent: Real::ZERO,
            allowed_variation: Real::ZERO,
            spent_variation: Real::ZERO,
        }
    }

    /// Charges all releases of `event`, before a row is read.
    ///
    /// # Errors
    ///
    /// They would exceed the budget, or are of a kind that this filter has no bound for;
    /// nothing is charged then.
    pub fn charge(&mut self, event: &Event) -> Result<(), FilterError> {
        let events = std::slice::from_ref(event);
        let composition = Composition::new(events, self.relation)?;
        let (cost, variation) = match self.kind {
            Kind::Gaussian | Kind::Zcdp if !composition.reads_all_rows() => {
                return Err(FilterError::NotForSampling(
                    "this filter takes releases about all rows; for a sample of them use the \
                     Rényi filter",
                ));
            }
            Kind::Gaussian => (composition.mu(), composition.total_variation()),
            Kind::Zcdp => (composition.mu(), Real::ZERO),
            Kind::Rdp { order } => {
                let curve = rdp_curve(events, self.relation, &[order])?;
                let cost = curve.first().map_or(Real::ZERO, |value| value.tightened);
                (cost, total_variation_beside(&composition))
            }
        };
        // The sum is rounded up, whatever the number of charges.
        let spent = (self.spent + cost) * ROUNDING_UP;
        let remaining = self.allowed - self.spent;
        if spent > self.allowed {
            return Err(FilterError::Exceeded {
                what: event.what().to_owned(),
                unit: self.unit(),
                requested: cost.to_f64(),
                spent: self.spent.to_f64(),
                remaining: remaining.to_f64(),
                short_by: (cost - remaining).to_f64(),
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

    /// What has been charged, in the filter's own unit.
    pub fn spent(&self) -> Real {
        self.spent
    }

    /// What may be charged in all.
    pub fn allowed(&self) -> Real {
        self.allowed
    }

    /// The unit: mu, rho, or Rényi divergence.
    pub fn unit(&self) -> &'static str {
        match self.kind {
            Kind::Gaussian => "mu",
            Kind::Zcdp => "rho",
            Kind::Rdp { .. } => "Rényi divergence",
        }
    }
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
        let mut filter = Filter::gaussian(budget, relation, Real::ZERO).unwrap();
        let spent = epsilon(Accountant::Gaussian, &run(&mut filter, full));
        assert!(spent <= 2.0 && spent > 1.8, "{spent}");
        let mut filter = Filter::zcdp(budget, relation);
        let spent = epsilon(Accountant::Zcdp, &run(&mut filter, full));
        assert!(spent <= 2.0 && spent > 1.8, "{spent}");
        let mut best: f64 = 0.0;
        for order in [8, 10, 12, 14, 16] {
            let mut filter = Filter::rdp(budget, relation, order).unwrap();
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
        let mut filter = Filter::zcdp(budget, relation);
        assert!(matches!(
            filter.charge(&sampled),
            Err(FilterError::NotForSampling(_))
        ));
        assert_eq!(filter.spent(), Real::ZERO);
        let other = event("gaussian:clip=1,sigma=2", Relation::Substitute);
        assert!(matches!(
            filter.charge(&other),
            Err(FilterError::Account(_))
        ));
        assert!(matches!(
            Filter::rdp(budget, relation, 2),
            Err(FilterError::NothingLeft { order: 2 })
        ));
        assert!(Filter::rdp(budget, relation, 1).is_err());
    }
}
