//! The quantities that a budget sums where releases are chosen one after another.
//!
//! Such releases compose *adaptively*: noise and sampling of the next one may depend on all
//! answers so far. Few quantities bound the whole under any such choice: a sum of mu for Gaussian
//! releases about all rows, a sum of rho, a sum of Rényi divergences at one order that was fixed
//! beforehand. So a [`Measure`] has no kind for privacy loss distributions: for parameters chosen
//! during the run, comparing the convolution of the losses so far with a budget does not bound the
//! privacy of the whole. `pld` takes a fixed list of events, not one that grows.
//!
//! # Several orders
//!
//! Which order is best depends on the releases: for samples with little noise the divergence of
//! an order too high is hundreds of times that of the best. So `rdp` keeps its sum at a main
//! order and at each of [`SIDE_ORDERS`], each with a share of delta, and what is released stays
//! within the budget as long as one of the sums does:
//!
//! Let E_i be the set of transcripts at whose end i is the first order, of a_i, whose sum is
//! within its bound B_i. A sum only grows, so on E_i it has been within B_i all along. The
//! process (P/Q)^a_i e^(-(a_i - 1) sum) is a supermartingale under Q, also when stopped where the
//! sum would pass B_i; hence E_Q (P/Q)^a_i 1_(E_i) <= e^((a_i - 1) B_i). And as
//! x - e^eps <= x^a e^(-(a-1) eps) (1-1/a)^a / (a-1), the part of delta from E_i is at most the
//! share that B_i was chosen for. The E_i are disjoint.
//!
//! # Reference
//!
//! docs/proofs.md, sections 14 and 15. Smith and Thakurta (2022), "Fully adaptive composition for Gaussian differential
//! privacy", Theorem 1; Feldman and Zrnic (2021), "Individual privacy accounting via a
//! Rényi filter", Theorem 4.5, for a fixed order, and so for rho, which bounds all of them.

use super::accountant::{AccountError, Accountant};
use super::budget::Budget;
use super::calibrate::mu_for_budget;
use super::composition::Composition;
use super::discrete::LatticeCurve;
use super::event::Event;
use super::gaussian::{GaussianCurve, ln_bounds, turning_point};
use super::rdp;
use super::real::Real;
use super::relation::Relation;
use super::zcdp::{Conversion, epsilon_of_rho, ln_delta_of_rho};

/// The quantity summed over releases that are chosen adaptively.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// mu = D^2/(2 sigma^2) of Gaussian releases about all rows.
    Gaussian,
    /// rho of releases about all rows.
    Zcdp,
    /// The Rényi divergence at this order, of any releases; and in addition, with 3/16 of delta, at
    /// twelve orders from 2 to 32, for samples that this order does not suit.
    Rdp { order: u64 },
}

/// Orders that have a sum of their own in addition to the main one.
const SIDE_ORDERS: [u64; 12] = [2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32];

/// The shares of delta, which add up to 1: that of the main order, and that of each side order.
const MAIN_SHARE: Real = Real::exact(13.0 / 16.0);
const SIDE_SHARE: Real = Real::exact(1.0 / 64.0);

const MOST_LANES: usize = 1 + SIDE_ORDERS.len();

/// A number for each lane of a measure, the main one first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Amounts([Real; MOST_LANES]);

/// The amounts that releases add to the sums, and to the total variation of discrete noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cost {
    pub amounts: Amounts,
    pub total_variation: Real,
}

/// One sum, and the share of delta that it is kept for.
#[derive(Clone, Copy, Debug)]
struct Lane {
    measure: Measure,
    share: Real,
}

impl Amounts {
    pub(super) const ZERO: Amounts = Amounts([Real::ZERO; MOST_LANES]);

    fn of(amounts: impl IntoIterator<Item = Real>) -> Amounts {
        let mut all = Amounts::ZERO;
        for (place, amount) in all.0.iter_mut().zip(amounts) {
            *place = amount;
        }
        all
    }

    pub(super) fn with(self, other: Amounts, both: impl Fn(Real, Real) -> Real) -> Amounts {
        Amounts::of(self.iter().zip(other.iter()).map(|(x, y)| both(x, y)))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Real> + '_ {
        self.0.iter().copied()
    }

    #[cfg(test)]
    pub(super) fn at(&self, lane: usize) -> Real {
        self.0.get(lane).copied().unwrap_or(Real::ZERO)
    }
}

impl Measure {
    /// The measure of this accountant, for this budget; the order of `rdp` is the smallest whose
    /// conversion leaves half of epsilon. That is the best one where the divergence grows in
    /// proportion to the order and the budget is used up.
    ///
    /// None for `pld`.
    pub fn of(accountant: Accountant, budget: Budget) -> Option<Measure> {
        match accountant {
            Accountant::Gaussian => Some(Measure::Gaussian),
            Accountant::Zcdp => Some(Measure::Zcdp),
            Accountant::Rdp => Some(Measure::Rdp {
                order: order_for(budget),
            }),
            Accountant::Pld => None,
        }
    }

    pub fn accountant(self) -> Accountant {
        match self {
            Measure::Gaussian => Accountant::Gaussian,
            Measure::Zcdp => Accountant::Zcdp,
            Measure::Rdp { .. } => Accountant::Rdp,
        }
    }

    /// The order, of `rdp`.
    pub fn order(self) -> Option<u64> {
        match self {
            Measure::Gaussian | Measure::Zcdp => None,
            Measure::Rdp { order } => Some(order),
        }
    }

    /// The name of the quantity that is summed.
    pub fn unit(self) -> &'static str {
        match self {
            Measure::Gaussian => "mu",
            Measure::Zcdp => "rho",
            Measure::Rdp { .. } => "Rényi divergence",
        }
    }

    /// # Errors
    ///
    /// Events of another relation, or of a kind that this has no bound for.
    pub(super) fn cost(self, events: &[Event], relation: Relation) -> Result<Cost, AccountError> {
        let composition = Composition::new(events, relation)?;
        match self {
            Measure::Gaussian => {
                composition.check_about_all_rows(Accountant::Gaussian)?;
                Ok(Cost {
                    amounts: Amounts::of([composition.mu()]),
                    total_variation: composition.total_variation(),
                })
            }
            Measure::Zcdp => {
                composition.check_about_all_rows(Accountant::Zcdp)?;
                Ok(Cost {
                    amounts: Amounts::of([composition.mu()]),
                    total_variation: Real::ZERO,
                })
            }
            Measure::Rdp { .. } => {
                let orders: Vec<u64> = self.lanes().filter_map(|l| l.measure.order()).collect();
                Ok(Cost {
                    amounts: Amounts::of(rdp::divergences(&composition, &orders)?),
                    total_variation: rdp::total_variation_beside(&composition),
                })
            }
        }
    }

    /// The main lane alone has all of delta where there is no other.
    fn lanes(self) -> impl Iterator<Item = Lane> {
        let (share, sides) = match self {
            Measure::Gaussian | Measure::Zcdp => (Real::ONE, &[][..]),
            Measure::Rdp { .. } => (MAIN_SHARE, &SIDE_ORDERS[..]),
        };
        let main = Lane {
            measure: self,
            share,
        };
        let sides = sides.iter().map(|&order| Lane {
            measure: Measure::Rdp { order },
            share: SIDE_SHARE,
        });
        std::iter::once(main).chain(sides)
    }

    /// Whether sums up to these are (epsilon, delta)-private for the budget's.
    pub(super) fn keeps(self, cost: Cost, budget: Budget) -> bool {
        let mut lanes = self.lanes().zip(cost.amounts.iter());
        lanes.any(|(lane, amount)| lane.keeps(amount, cost.total_variation, budget))
    }

    /// Upper bound on the epsilon of sums up to these; none where no epsilon reaches delta.
    pub(super) fn epsilon(self, cost: Cost, delta: Real) -> Option<f64> {
        let lanes = self.lanes().zip(cost.amounts.iter());
        let epsilons =
            lanes.filter_map(|(lane, amount)| lane.epsilon(amount, cost.total_variation, delta));
        epsilons.reduce(f64::min)
    }

    /// Whether the main order leaves something of the budget.
    pub(super) fn suits(self, budget: Budget) -> bool {
        let mut lanes = self.lanes();
        lanes
            .next()
            .is_some_and(|lane| lane.most(budget, Real::ZERO).is_some())
    }

    /// The epsilon that remains after these sums and this total variation, in the lane that has the
    /// least epsilon so far; without the total variation, which all lanes share.
    pub(super) fn room(self, cost: Cost, budget: Budget) -> f64 {
        let Cost {
            amounts,
            total_variation,
        } = cost;
        let left = |(lane, amount): (Lane, Real)| {
            let left = lane.most(budget, total_variation)? - amount;
            let spent = lane.epsilon(amount, total_variation, budget.delta())?;
            (left > Real::ZERO).then_some((spent, lane, left))
        };
        let lanes = self.lanes().zip(amounts.iter()).filter_map(left);
        let Some((_, lane, left)) = lanes.reduce(|x, y| if y.0 < x.0 { y } else { x }) else {
            return 0.0;
        };
        lane.epsilon(left, Real::ZERO, budget.delta())
            .unwrap_or(f64::INFINITY)
    }
}

impl Lane {
    fn keeps(self, amount: Real, total_variation: Real, budget: Budget) -> bool {
        let target = ln_bounds(budget.delta() * self.share).lower;
        let epsilon = budget.epsilon();
        match self.measure {
            Measure::Gaussian => {
                let curve = LatticeCurve::new(GaussianCurve::new(amount), total_variation);
                if curve.ln_delta_upper(epsilon) <= target {
                    return true;
                }
                // The bound rises again where the noise's term dominates; a smaller epsilon is as
                // good.
                let best = Real::exact(curve.epsilon_of_smallest_delta());
                best < epsilon && curve.ln_delta_upper(best) <= target
            }
            Measure::Zcdp => ln_delta_of_rho(amount, epsilon, Conversion::Tight) <= target,
            Measure::Rdp { order } => {
                rdp::ln_delta_at(order, amount, epsilon, total_variation) <= target
            }
        }
    }

    fn epsilon(self, amount: Real, total_variation: Real, delta: Real) -> Option<f64> {
        let delta = delta * self.share;
        let ln_delta = ln_bounds(delta).lower;
        match self.measure {
            Measure::Gaussian => {
                LatticeCurve::new(GaussianCurve::new(amount), total_variation).epsilon_upper(delta)
            }
            Measure::Zcdp => Some(epsilon_of_rho(amount, ln_delta, Conversion::Tight).to_f64_up()),
            Measure::Rdp { order } => {
                rdp::epsilon_at(order, amount, ln_delta, total_variation).map(Real::to_f64_up)
            }
        }
    }

    /// The largest sum that keeps the budget with this total variation; none where the noise or the
    /// order alone uses it up.
    fn most(self, budget: Budget, total_variation: Real) -> Option<Real> {
        if self.measure == Measure::Gaussian {
            let most = mu_for_budget(budget.epsilon(), budget.delta(), total_variation);
            return most.ok().map(Real::exact);
        }
        let keeps = |amount: f64| self.keeps(Real::exact(amount), total_variation, budget);
        if !keeps(LEAST_AMOUNT) {
            return None;
        }
        let exceeds = |bits| !keeps(f64::from_bits(bits));
        let first = turning_point(LEAST_AMOUNT.to_bits(), 1e61f64.to_bits(), exceeds);
        Some(Real::exact(f64::from_bits(first - 1)))
    }
}

/// Less than any event's.
const LEAST_AMOUNT: f64 = 1e-101;

fn order_for(budget: Budget) -> u64 {
    let ln_delta = ln_bounds(budget.delta()).lower;
    let half = budget.epsilon().times_power_of_two(-1);
    let leaves_half = |order: u64| rdp::epsilon_of_no_divergence(order, ln_delta) <= half;
    turning_point(1, rdp::LARGEST_ORDER, leaves_half)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Wrong here: a default order that wastes the budget. Oracle: the accountant with the
    // best order, on as many releases as the sum allows.
    #[test]
    fn the_default_order_is_nearly_the_best_where_the_budget_is_used_up() {
        let relation = Relation::Substitute;
        for (epsilon, delta) in [(0.5, 1e-6), (2.0, 1e-6), (8.0, 1e-9)] {
            let budget = Budget::new(epsilon, delta).unwrap();
            let measure = Measure::of(Accountant::Rdp, budget).unwrap();
            let main = measure.lanes().next().unwrap();
            let most = main.most(budget, Real::ZERO).unwrap();
            let sigma = (Real::from(measure.order().unwrap()) / most).sqrt();
            let text = format!(
                "gaussian:sensitivity=1,sigma={}",
                sigma.to_f64() / 2f64.sqrt()
            );
            let events = [Event::parse(&text, relation).unwrap()];
            let query = super::super::accountant::Query::Epsilon {
                delta: budget.delta(),
            };
            let best = Accountant::Rdp.account(&events, relation, query).unwrap();
            assert!(best.epsilon <= epsilon * (1.0 + 1e-9), "{best:?}");
            assert!(best.epsilon > 0.98 * epsilon, "{best:?} {measure:?}");
        }
        assert_eq!(
            Measure::of(Accountant::Pld, Budget::new(1.0, 1e-6).unwrap()),
            None
        );
    }
}
