//! The charges to a budget, and whether another run fits it.
//!
//! The runs on a budget are chosen one after another, each with the results of those
//! before it in view. That is adaptive composition, which not every accountant allows:
//! a *filter* is a rule, fixed beforehand, that says when to stop, such that what was
//! let through is (epsilon, delta)-private however it was chosen.
//!
//! # Privacy
//!
//! Full-data Gaussian releases have a filter without loss: as long as the sum of mu =
//! D^2/(2 sigma^2) never passes M, all releases together are as private as one Gaussian
//! mechanism with mu = M. The same holds for sums of rho, and of Rényi divergences at
//! orders that were fixed beforehand (`../measure.rs`). The noise actually drawn is within total
//! variation T of theirs, T being the sum over all draws, also where they are chosen adaptively.
//! So, with M and T fixed beforehand, everything is (eps, delta)-private for delta = delta_M(eps) +
//! (1 + e^eps) T.
//!
//! Both must be fixed: a rule that lets T grow on those paths where M does not could be exploited.
//! T is the *allowance*: the value that uses 2^-20 of delta at the budget's epsilon, or at
//! [`LARGE`] if that is less; or room for a thousand runs like the first if those need more; or
//! exactly what the first run needs if it fits only that way. The first run's schedule depends on
//! no release, so the choice is fixed as well. M is then the largest sum that keeps the budget, for
//! `rdp` at each order (`../measure.rs`).
//!
//! # Reference
//!
//! docs/proofs.md, section 20. Rogers, Roth, Ullman and Vadhan (2016) for filters as such; `measure` for ours;
//! `discrete` for the term of the noise.

use serde::Serialize;

use super::super::budget::Budget;
use super::super::elementary::exp;
use super::super::measure::{Amounts, Cost, Measure};
use super::super::real::Real;
use super::part::Part;

/// The share of delta that is set aside for noise on a lattice: 2^-20.
const ALLOWED_SHARE: i32 = -20;

/// An epsilon beyond which the allowance is not made smaller: with e^-eps for a larger one, no
/// lattice would be fine enough for any run.
const LARGE: Real = Real::exact(16.0);

/// The number of runs like the first for which the allowance has room, where they need more; plus
/// the rounding of their sum.
const LIKE_THE_FIRST: Real = Real::from_parts(1000.0, 1e-24);

/// The price of a run on a budget, in epsilon at the budget's delta. Epsilons do not add
/// up: `requested` is what the run adds to what is spent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quote {
    /// The budget's epsilon.
    pub total: f64,
    /// The budget's delta.
    pub delta: f64,
    /// The cost of all runs so far together.
    pub spent: f64,
    /// The cost that this run would add. Infinite where no epsilon reaches delta.
    pub requested: f64,
    /// The cost of this run by itself.
    pub alone: f64,
    /// total - spent
    pub remaining: f64,
    /// requested - remaining where that is positive, otherwise 0.
    pub short_by: f64,
    /// The cost of all runs together, including this one.
    pub spent_after: f64,
    /// The approximate largest cost, by itself, of a run that still fits.
    pub room: f64,
    /// Whether the run may take place.
    pub fits: bool,
}

/// The filter of a budget.
#[derive(Clone, Debug)]
pub(super) struct Balance {
    measure: Measure,
    budget: Budget,
    /// The sums of the measure, of runs on all of the data.
    whole: Amounts,
    /// Those of runs on parts: of each division, the sums of both.
    divided: Vec<(Part, [Amounts; 2])>,
    total_variation: Real,
    /// T, once a run has been charged.
    allowance: Option<Real>,
    /// Runs whose charge has not been lifted.
    charged: u64,
}

impl Balance {
    pub fn new(measure: Measure, budget: Budget) -> Balance {
        Balance {
            measure,
            budget,
            whole: Amounts::ZERO,
            divided: Vec::new(),
            total_variation: Real::ZERO,
            allowance: None,
            charged: 0,
        }
    }

    /// Bounds on the sums of any unit: a unit is in one part of each division, whichever that is.
    fn amounts(&self) -> Amounts {
        (self.divided.iter()).fold(self.whole, |sum, (_, [one, other])| {
            sum.with(one.with(*other, Real::max), sum_up)
        })
    }

    /// The sums to which a run on this part adds, or on all of the data.
    fn sums_of(&mut self, part: Option<&Part>) -> &mut Amounts {
        let Some(part) = part else {
            return &mut self.whole;
        };
        let known = self
            .divided
            .iter()
            .position(|(own, _)| own.divides_like(part));
        let place = known.unwrap_or_else(|| {
            self.divided.push((part.clone(), [Amounts::ZERO; 2]));
            self.divided.len() - 1
        });
        &mut self.divided[place].1[usize::from(part.is_held_out)]
    }

    /// Charges a run on all of the data, or on a part, whether it fits or not: what a ledger records
    /// has happened.
    pub fn charge(&mut self, cost: Cost, part: Option<&Part>) {
        self.allowance = Some(self.allowance_with(cost));
        let sums = self.sums_of(part);
        *sums = sums.with(cost.amounts, sum_up);
        self.total_variation = sum_up(self.total_variation, cost.total_variation);
        self.charged += 1;
    }

    /// Takes back the charge of a run that released nothing.
    pub fn lift(&mut self, cost: Cost, part: Option<&Part>) {
        self.charged -= 1;
        if self.charged == 0 {
            *self = Balance::new(self.measure, self.budget);
            return;
        }
        // A difference may be rounded below the truth, by less than this.
        let less = |sum: Real, part: Real| (sum - part).max(Real::ZERO) + sum * Real::exact(1e-30);
        let sums = self.sums_of(part);
        *sums = sums.with(cost.amounts, less);
        self.total_variation = less(self.total_variation, cost.total_variation);
    }

    /// Upper bound on the epsilon of everything charged, at the budget's delta. Beyond the budget
    /// there may be no epsilon for the allowance; then this is that of the noise actually drawn.
    pub fn spent(&self) -> f64 {
        let Some(allowance) = self.allowance else {
            return 0.0;
        };
        let spent = self.epsilon(self.amounts(), allowance);
        if spent.is_finite() {
            spent
        } else {
            self.epsilon(self.amounts(), self.total_variation)
        }
    }

    /// Whether what is charged keeps the budget.
    pub fn holds(&self) -> bool {
        self.allowance.is_none_or(|allowance| {
            self.total_variation <= allowance && self.keeps(self.amounts(), allowance)
        })
    }

    /// The balance with a further run.
    pub fn with(&self, cost: Cost, part: Option<&Part>) -> Balance {
        let mut after = self.clone();
        after.charge(cost, part);
        after
    }

    /// The price of `cost`. Expensive, as it computes four epsilons; to grant a run it is enough
    /// that [`Balance::with`] it [holds](Balance::holds).
    pub fn quote(&self, cost: Cost, part: Option<&Part>) -> Quote {
        let after = self.with(cost, part);
        let total = self.budget.epsilon().to_f64();
        let alone = Balance::new(self.measure, self.budget)
            .with(cost, part)
            .spent();
        let (spent, fits) = (self.spent(), after.holds());
        let spent_after = if after.passes_allowance() {
            f64::INFINITY
        } else {
            after.spent()
        };
        let requested = if spent.is_finite() {
            spent_after - spent
        } else {
            alone
        };
        let remaining = (total - spent).max(0.0);
        Quote {
            total,
            delta: self.budget.delta().to_f64(),
            spent,
            requested,
            alone,
            remaining,
            short_by: if fits {
                0.0
            } else {
                (requested - remaining).max(total * f64::EPSILON)
            },
            spent_after,
            room: self.room(),
            fits,
        }
    }

    /// The largest epsilon of one run on all of the data, by itself and at the budget's delta, that still
    /// fits; to about 1e-6.
    pub fn room(&self) -> f64 {
        let allowance = self.allowance.unwrap_or(self.least_allowance());
        if self.total_variation > allowance {
            return 0.0;
        }
        let cost = Cost {
            amounts: self.amounts(),
            total_variation: allowance,
        };
        self.measure.room(cost, self.budget)
    }

    /// Whether the draws were more, or coarser, than T has room for.
    fn passes_allowance(&self) -> bool {
        self.allowance
            .is_some_and(|allowance| self.total_variation > allowance)
    }

    /// T when a run of this cost is charged.
    fn allowance_with(&self, cost: Cost) -> Real {
        if let Some(allowance) = self.allowance {
            return allowance;
        }
        let like = cost.total_variation * LIKE_THE_FIRST;
        let usual = self.least_allowance().max(like);
        if !self.keeps(cost.amounts, usual) && self.keeps(cost.amounts, cost.total_variation) {
            cost.total_variation
        } else {
            usual
        }
    }

    fn least_allowance(&self) -> Real {
        let share = self.budget.delta().times_power_of_two(ALLOWED_SHARE);
        // (1 + e^eps)^-1, without overflow.
        let decay = exp(-self.budget.epsilon().min(LARGE));
        share * decay / (Real::ONE + decay)
    }

    /// Whether sums up to these, and T, are (epsilon, delta)-private for the budget's.
    fn keeps(&self, amounts: Amounts, allowance: Real) -> bool {
        let cost = Cost {
            amounts,
            total_variation: allowance,
        };
        self.measure.keeps(cost, self.budget)
    }

    fn epsilon(&self, amounts: Amounts, allowance: Real) -> f64 {
        let cost = Cost {
            amounts,
            total_variation: allowance,
        };
        self.measure
            .epsilon(cost, self.budget.delta())
            .unwrap_or(f64::INFINITY)
    }
}

/// A sum rounded up. Adding to zero is not rounded, so that a first run that fits exactly fits.
fn sum_up(sum: Real, part: Real) -> Real {
    if sum <= Real::ZERO {
        return part;
    }
    (sum + part) * ROUNDING_UP
}

/// More than the rounding of one sum.
const ROUNDING_UP: Real = Real::from_parts(1.0, 1e-31);

#[cfg(test)]
#[path = "balance_tests.rs"]
mod tests;
