//! The terms of a budget.

use super::super::accountant::Accountant;
use super::super::budget::{Budget, BudgetError};
use super::super::measure::Measure;
use super::super::rdp::LARGEST_ORDER;
use super::super::real::{Real, RealError};
use super::super::relation::Relation;
use super::entry::Opening;
use super::part::Part;

/// The unit where each record is one.
const RECORD: &str = "record";

/// The budget of one data set: its size, and the neighbours for which it holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Terms {
    budget: Budget,
    relation: Relation,
    unit: String,
    measure: Measure,
}

/// Terms that make no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TermsError {
    #[error(transparent)]
    Budget(#[from] BudgetError),
    #[error(transparent)]
    Number(#[from] RealError),
    #[error(
        "the unit `{}` is not a name; write `record`, or the column that identifies units, in at \
         most 200 characters", .0.escape_debug()
    )]
    Unit(String),
    #[error(
        "the accountant `{0}` cannot keep a ledger: runs on a ledger are chosen one after another, \
         which needs a filter, and `pld` has none; use `gaussian` or `zcdp` where all runs read all \
         rows, or `rdp`"
    )]
    Accountant(String),
    #[error("order {order}; expected a whole order from 2 to {largest}, and only with `rdp`")]
    Order { order: u64, largest: u64 },
    #[error(
        "order {order} leaves nothing of this budget: its conversion alone takes all of epsilon; \
         use a larger order"
    )]
    NothingLeft { order: u64 },
}

impl Terms {
    /// `unit` says whose data are protected: `record`, or the column whose value identifies one
    /// unit's rows. The budget is taken to 17 digits, as a file keeps it.
    ///
    /// # Errors
    ///
    /// A unit that is not a name.
    pub fn new(
        budget: Budget,
        relation: Relation,
        unit: &str,
        accountant: Accountant,
    ) -> Result<Terms, TermsError> {
        let is_name = !unit.trim().is_empty()
            && unit.chars().count() <= 200
            && !unit.chars().any(char::is_control);
        if !is_name {
            return Err(TermsError::Unit(unit.to_owned()));
        }
        let budget = Budget::new(
            decimal(budget.epsilon().to_f64())?,
            decimal(budget.delta().to_f64())?,
        )?;
        let measure = Measure::of(accountant, budget)
            .ok_or_else(|| TermsError::Accountant(accountant.name().to_owned()))?;
        Ok(Terms {
            budget,
            relation,
            unit: unit.to_owned(),
            measure,
        })
    }

    /// Terms for single records under substitution and for runs that read all records, with the
    /// `gaussian` accountant, which is tight there. Samplers that draw batches need
    /// [`Accountant::Rdp`].
    ///
    /// # Errors
    ///
    /// An epsilon that is not above 0, or a delta that is not between 0 and 1.
    pub fn of_records(
        epsilon: impl Into<Real>,
        delta: impl Into<Real>,
    ) -> Result<Terms, TermsError> {
        let budget = Budget::new(epsilon, delta)?;
        Terms::new(budget, Relation::Substitute, RECORD, Accountant::Gaussian)
    }

    /// The same with another order of `rdp`, for all runs.
    ///
    /// # Errors
    ///
    /// Another accountant, an order out of range, or one that leaves nothing of the budget.
    pub fn with_order(self, order: u64) -> Result<Terms, TermsError> {
        let largest = LARGEST_ORDER;
        if self.accountant() != Accountant::Rdp || !(2..=largest).contains(&order) {
            return Err(TermsError::Order { order, largest });
        }
        let measure = Measure::Rdp { order };
        if !measure.suits(self.budget) {
            return Err(TermsError::NothingLeft { order });
        }
        Ok(Terms { measure, ..self })
    }

    pub(super) fn of(opening: &Opening) -> Result<Terms, TermsError> {
        let budget = Budget::new(decimal(opening.epsilon)?, decimal(opening.delta)?)?;
        let accountant = opening
            .accountant
            .parse()
            .map_err(|_| TermsError::Accountant(opening.accountant.clone()))?;
        let terms = Terms::new(budget, opening.relation, &opening.unit, accountant)?;
        match opening.order {
            Some(order) => terms.with_order(order),
            None => Ok(terms),
        }
    }

    pub fn budget(&self) -> Budget {
        self.budget
    }

    pub fn relation(&self) -> Relation {
        self.relation
    }

    pub fn unit(&self) -> &str {
        &self.unit
    }

    pub fn accountant(&self) -> Accountant {
        self.measure.accountant()
    }

    /// A part of the data, where units have keys by which they are divided. Records are divided by
    /// their places, and nothing tells whether those are the same for the next run: what a run reads
    /// of them counts as all of the data.
    pub(super) fn part<'a>(&self, part: Option<&'a Part>) -> Option<&'a Part> {
        part.filter(|_| self.unit != RECORD)
    }

    /// The quantity that the budget sums.
    pub fn measure(&self) -> Measure {
        self.measure
    }
}

/// The number that a person means by the shortest decimal of `value`: 0.1 is a tenth.
fn decimal(value: f64) -> Result<Real, RealError> {
    format!("{value:e}").parse()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Wrong here: records that are found by their places are charged as if they stayed there.
    #[test]
    fn only_units_with_keys_have_parts() {
        let part = Part {
            split: "a".to_owned(),
            held_out: 0.2,
            is_held_out: true,
        };
        for relation in Relation::ALL {
            let budget = Budget::new(1.0, 1e-6).unwrap();
            let terms = |unit| Terms::new(budget, relation, unit, Accountant::Gaussian).unwrap();
            assert_eq!(terms(RECORD).part(Some(&part)), None);
            assert_eq!(terms("id").part(Some(&part)), Some(&part));
            assert_eq!(terms("id").part(None), None);
        }
    }
}
