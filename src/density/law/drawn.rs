//! What the model's graph says about outcomes that are drawn together.

use super::super::scale::Scale;
use super::super::simulate;
use super::super::support::Support;
use super::lattice::single_number;
use super::mixture::{components_may_coincide, mixture};
use super::standard::{Candidate, Standard, candidates};
use super::{Joined, Law, NoLaw, Step};
use crate::model::{Model, PrivateId, Scalar};

/// Outcomes that are drawn together, and what the model's graph says about them.
pub(super) struct Drawn {
    /// Positions among the model's outcomes.
    pub outcomes: Vec<usize>,
    /// The terms whose sum is their log density.
    pub scalars: Vec<Scalar>,
    /// The roots of these.
    terms: Vec<usize>,
    /// The forms of a single outcome's standard variable.
    pub standards: Vec<Standard>,
    /// The one number through which the density of a single outcome reads the record, and its root.
    pub single: Option<(PrivateId, usize)>,
    /// The terms of each component of a mixture that is searched for by these.
    pub components: Vec<Vec<usize>>,
}

impl Drawn {
    /// Appends the numbers that have to be roots to `others`.
    ///
    /// Errors: the outcome is a mixture of components that may coincide.
    pub fn of(
        model: &Model,
        step: simulate::Step,
        others: &mut Vec<Scalar>,
    ) -> Result<Drawn, NoLaw> {
        let likelihood_terms = model.likelihood_terms();
        let mut root = |s: Scalar| {
            others.push(s);
            likelihood_terms.len() + others.len()
        };
        let mut drawn = Drawn {
            scalars: step.terms.iter().map(|&t| likelihood_terms[t]).collect(),
            terms: step.terms.iter().map(|t| t + 1).collect(),
            outcomes: step.outcomes,
            standards: Vec::new(),
            single: None,
            components: Vec::new(),
        };
        if drawn.outcomes.len() > 1 {
            return Ok(drawn);
        }
        let column = drawn.column(model);
        if components_may_coincide(model, column, &drawn.scalars) {
            let outcome = model.columns[column].name.clone();
            return Err(NoLaw::Mixture { outcome });
        }
        let standard = |candidate: Candidate| {
            let at = root(candidate.scalar);
            candidate.at(at)
        };
        let candidates = candidates(model, column, &drawn.scalars).into_iter();
        drawn.standards = candidates.map(standard).collect();
        drawn.single =
            single_number(model, column, &drawn.scalars).map(|id| (id, root(Scalar::Private(id))));
        if let Some(mixture) = mixture(model, column, &drawn.scalars)
            && mixture.is_searched_by_components(model, column)
        {
            let component = |s: Scalar| {
                let mut terms = drawn.terms.clone();
                terms[mixture.term] = root(s);
                terms
            };
            drawn.components = mixture.components.into_iter().map(component).collect();
        }
        Ok(drawn)
    }

    /// The column of the first outcome.
    pub fn column(&self, model: &Model) -> usize {
        model.outcomes[self.outcomes[0]].column
    }
}

impl Law<'_> {
    /// The steps of outcomes that are drawn together, by the model's graph alone.
    pub(super) fn unchecked(&self, drawn: &Drawn) -> Vec<Step> {
        let model = &self.density.model;
        let columns = model.columns_under(&drawn.scalars);
        let given: Vec<usize> = (0..self.steps.len())
            .filter(|&k| {
                let earlier = self.sources[self.steps[k].position];
                columns.iter().any(|&(c, _)| c == earlier)
            })
            .collect();
        let own: Vec<usize> = (drawn.outcomes.iter())
            .map(|&outcome| model.outcomes[outcome].column)
            .collect();
        let positions: Vec<usize> = own.iter().map(|&c| self.position(c)).collect();
        let dependents = self.program.dependents(&positions);
        let joined = Joined {
            first: self.steps.len(),
            count: own.len(),
        };
        let each = own.iter().zip(&positions).map(|(&column, &position)| Step {
            position,
            dependents: dependents.clone(),
            name: model.columns[column].name.clone(),
            is_int: model.columns[column].is_int,
            terms: drawn.terms.clone(),
            components: vec![drawn.terms.clone()],
            support: Support {
                atoms: Vec::new(),
                range: None,
                scale: Scale::default(),
            },
            given: given.clone(),
            standard: None,
            joined: (own.len() > 1).then_some(joined),
        });
        each.collect()
    }
}
