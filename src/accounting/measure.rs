//! What a budget adds up where releases are chosen one after another.
//!
//! Such releases compose *adaptively*: noise and sampling of the next one may depend on all
//! answers so far. What bounds the whole under any such choice is little: a sum of mu for
//! Gaussian releases about all rows, a sum of rho, a sum of Rényi divergences at one order
//! that was fixed beforehand. So a [`Measure`] has no kind for privacy loss distributions:
//! for parameters chosen as the run goes, comparing the convolution of the losses so far
//! with a budget does not bound the privacy of the whole. `pld` takes a list of events that
//! is fixed, and nothing that grows.
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
use super::event::{Event, Relation};
use super::gaussian::{GaussianCurve, ln_bounds};
use super::gaussian_accountant;
use super::rdp;
use super::real::Real;
use super::zcdp::{self, Conversion, epsilon_of_rho, ln_delta_of_rho};

/// What is summed over releases that are chosen as one goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// mu = D^2/(2 sigma^2) of Gaussian releases about all rows.
    Gaussian,
    /// rho of releases about all rows.
    Zcdp,
    /// The Rényi divergence at this order, of any releases.
    Rdp { order: u64 },
}

/// What some releases add to the sum, and to the total variation of discrete noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cost {
    pub amount: Real,
    pub total_variation: Real,
}

impl Measure {
    /// Of this accountant, for this budget; the order of `rdp` is the smallest whose
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

    /// What is summed, by name.
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
                gaussian_accountant::check(&composition)?;
                Ok(Cost {
                    amount: composition.mu(),
                    total_variation: composition.total_variation(),
                })
            }
            Measure::Zcdp => {
                zcdp::check_full_data(&composition)?;
                Ok(Cost {
                    amount: composition.mu(),
                    total_variation: Real::ZERO,
                })
            }
            Measure::Rdp { order } => Ok(Cost {
                amount: rdp::divergence(&composition, order)?,
                total_variation: rdp::total_variation_beside(&composition),
            }),
        }
    }

    /// Whether sums up to these are (epsilon, delta)-private for the budget's.
    pub(super) fn keeps(self, cost: Cost, budget: Budget) -> bool {
        let target = ln_bounds(budget.delta()).lower;
        let epsilon = budget.epsilon();
        match self {
            Measure::Gaussian => {
                let curve = curve(cost);
                if curve.ln_delta_upper(epsilon) <= target {
                    return true;
                }
                // The bound rises again where the noise's term dominates; a smaller epsilon
                // does as well.
                let best = Real::exact(curve.epsilon_of_smallest_delta());
                best < epsilon && curve.ln_delta_upper(best) <= target
            }
            Measure::Zcdp => ln_delta_of_rho(cost.amount, epsilon, Conversion::Tight) <= target,
            Measure::Rdp { order } => {
                rdp::ln_delta_at(order, cost.amount, epsilon, cost.total_variation) <= target
            }
        }
    }

    /// Upper bound on the epsilon of sums up to these; none where no epsilon reaches delta.
    pub(super) fn epsilon(self, cost: Cost, delta: Real) -> Option<f64> {
        let ln_delta = ln_bounds(delta).lower;
        match self {
            Measure::Gaussian => curve(cost).epsilon_upper(delta),
            Measure::Zcdp => {
                Some(epsilon_of_rho(cost.amount, ln_delta, Conversion::Tight).to_f64_up())
            }
            Measure::Rdp { order } => {
                rdp::epsilon_at(order, cost.amount, ln_delta, cost.total_variation)
                    .map(Real::to_f64_up)
            }
        }
    }

    /// The largest sum that keeps the budget beside this total variation; none where the
    /// noise or the order alone takes it up.
    pub(super) fn most(self, budget: Budget, total_variation: Real) -> Option<Real> {
        if self == Measure::Gaussian {
            let most = mu_for_budget(budget.epsilon(), budget.delta(), total_variation);
            return most.ok().map(Real::exact);
        }
        let keeps = |amount: f64| {
            let amount = Real::exact(amount);
            self.keeps(
                Cost {
                    amount,
                    total_variation,
                },
                budget,
            )
        };
        let (mut below, mut above) = (LEAST_AMOUNT.to_bits(), 1e61f64.to_bits());
        if !keeps(LEAST_AMOUNT) {
            return None;
        }
        while above - below > 1 {
            let middle = below + (above - below) / 2;
            if keeps(f64::from_bits(middle)) {
                below = middle;
            } else {
                above = middle;
            }
        }
        Some(Real::exact(f64::from_bits(below)))
    }
}

/// Less than any event's.
const LEAST_AMOUNT: f64 = 1e-101;

fn curve(cost: Cost) -> LatticeCurve {
    LatticeCurve::new(GaussianCurve::new(cost.amount), cost.total_variation)
}

fn order_for(budget: Budget) -> u64 {
    let ln_delta = ln_bounds(budget.delta()).lower;
    let half = budget.epsilon().times_power_of_two(-1);
    let leaves_half = |order: u64| rdp::epsilon_of_no_divergence(order, ln_delta) <= half;
    let (mut below, mut above) = (1, rdp::LARGEST_ORDER);
    while above - below > 1 {
        let middle = below + (above - below) / 2;
        if leaves_half(middle) {
            above = middle;
        } else {
            below = middle;
        }
    }
    above
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
            let most = measure.most(budget, Real::ZERO).unwrap();
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
