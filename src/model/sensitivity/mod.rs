//! Derived sensitivity: how far one record can move the log-likelihood.
//!
//! For a record x inside the declared bounds of its columns, and any parameters,
//!
//! ```text
//! |grad l(x, theta)| <= G,   |l(x, theta') - l(x, theta)| <= G |theta' - theta|
//! ```
//!
//! on the unconstrained scale. The second follows from the first by the mean value
//! theorem, as every segment lies in the unconstrained space. With G as clip bound
//! nothing is ever clipped.
//!
//! G comes from ranges of all values (interval arithmetic with outward rounding) and
//! of all adjoints (reverse mode), over cells of records and parameters that are
//! halved where the bound is largest. Rules: `slope.rs` for scalar functions,
//! `adjoint.rs` for operations of two numbers and for noted forms,
//! `public_half.rs` for functions of vectors. docs/sensitivity.md says how it
//! works for users.

mod adjoint;
mod missing;
mod private_half;
mod public_half;
mod range;
mod search;
mod slope;
#[cfg(test)]
mod tests;

pub use missing::{Missing, NeedKind};

use super::Model;
use super::private::Scalar;
use crate::function::{Form, Unary};
use crate::syntax::Span;
use private_half::{Cell, Norm, Problem};
use range::Range;
use search::{Effort, largest_norm};

/// Rounding of the vault's arithmetic stays below this share: floating-point
/// gradients have relative errors of about 1e-13, log-ratios that and a lattice step of 2^-44 nats.
const ROOM_FOR_ROUNDING: f64 = 1.0 / (1u64 << 20) as f64;

/// A bound on one record's gradient norm, and its parts.
#[derive(Debug, Clone, PartialEq)]
pub struct Bound {
    /// The gradient's norm on the unconstrained scale is never above this, nor the
    /// slope of the log-ratio, nats per unit of distance.
    pub norm: f64,
    /// Each parameter's part of the gradient: the norm that it may have where the whole bound is
    /// largest.
    pub parts: Vec<(String, f64)>,
    /// Known facts about the functions in it.
    pub facts: Vec<&'static str>,
    /// Columns and parameters on whose declared bounds it depends.
    pub rests_on: Vec<String>,
}

impl Bound {
    /// The bound as a clip bound, with room for rounding of the clipped gradients.
    pub fn clip(&self) -> f64 {
        (self.norm * (1.0 + ROOM_FOR_ROUNDING)).next_up()
    }
}

/// The bound of one statement, or of the whole, or the reason why there is none.
pub type Derived = Result<Bound, Missing>;

/// The bounds that were derived for a statement, in lines for people.
pub fn in_words(derived: &Derived) -> Vec<String> {
    let bound = match derived {
        Ok(bound) => bound,
        Err(missing) => return vec![format!("no bound: {missing}")],
    };
    let parts: Vec<String> = bound
        .parts
        .iter()
        .map(|(name, norm)| format!("{name} {norm:.4}"))
        .collect();
    let mut lines = vec![format!(
        "a record's gradient is at most {:.4} long ({})",
        bound.norm,
        parts.join(", ")
    )];
    if !bound.facts.is_empty() {
        lines.push(format!("since {}", bound.facts.join("; ")));
    }
    if !bound.rests_on.is_empty() {
        lines.push(format!("by the bounds of {}", bound.rests_on.join(", ")));
    }
    lines
}

/// A statement that adds to each record's log-likelihood.
#[derive(Debug, Clone, PartialEq)]
pub struct StatementSensitivity {
    pub span: Span,
    pub derived: Derived,
}

/// The result of [`Model::sensitivity`].
#[derive(Debug, Clone, PartialEq)]
pub struct Sensitivity {
    pub statements: Vec<StatementSensitivity>,
    /// The bound of a whole record: at most the sum over statements, and less where they cannot all
    /// be largest at once.
    pub record: Derived,
}

impl Model {
    /// Bounds on one record's gradient norm, per likelihood statement and in all.
    pub fn sensitivity(&self) -> Sensitivity {
        let statements: Vec<StatementSensitivity> = self
            .likelihood_statements
            .iter()
            .map(|s| StatementSensitivity {
                span: s.span,
                derived: self.derive(&s.terms),
            })
            .collect();
        let record = match statements.as_slice() {
            // A single statement is the whole, unless conditions surround it.
            [only] => only.derived.clone(),
            _ => self.record_sensitivity(),
        };
        Sensitivity { statements, record }
    }

    /// The bound of a whole record alone.
    pub fn record_sensitivity(&self) -> Derived {
        let terms: Vec<_> = self.likelihood_terms.iter().map(|&t| (t, true)).collect();
        self.derive(&terms)
    }

    fn derive(&self, terms: &[(Scalar, bool)]) -> Derived {
        let problem = Problem::new(&self.graphs, terms);
        let Norm { norm, parts, .. } = largest_norm(
            &problem,
            &self.whole(),
            self.all(&problem),
            Effort::full(&problem),
        );
        if !norm.is_finite() {
            return Err(missing::missing(self, &problem));
        }
        let named = parts.into_iter().map(|(offset, part)| {
            let name = self.parameter_at(offset).map_or("", |p| p.name.as_str());
            (name.to_string(), part)
        });
        let mut parts: Vec<(String, f64)> = named.collect();
        parts.reverse();
        Ok(Bound {
            norm,
            parts,
            facts: facts(&problem),
            rests_on: self.rests_on(&problem),
        })
    }

    /// Every record and all parameters.
    fn all(&self, problem: &Problem<'_>) -> Cell {
        Cell {
            columns: self
                .columns
                .iter()
                .map(|c| {
                    Range::new(
                        c.lower.unwrap_or(f64::NEG_INFINITY),
                        c.upper.unwrap_or(f64::INFINITY),
                    )
                })
                .collect(),
            theta: vec![Range::ALL; self.dimension],
            places: vec![Range::ALL; problem.places.len()],
        }
    }

    fn whole(&self) -> Vec<bool> {
        self.columns.iter().map(|c| c.is_int).collect()
    }

    fn parameter_at(&self, offset: usize) -> Option<&super::Parameter> {
        self.parameters
            .iter()
            .find(|p| p.offset == offset && p.free_length > 0)
    }

    fn rests_on(&self, problem: &Problem<'_>) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for c in problem.columns() {
            let column = &self.columns[c];
            let bounded = column.lower.is_some() || column.upper.is_some();
            if bounded && !names.contains(&column.variable) {
                names.push(column.variable.clone());
            }
        }
        for (offset, _) in problem.parameters() {
            if let Some(parameter) = self.parameter_at(offset)
                && matches!(parameter.transform, super::Transform::Bounds(_))
            {
                names.push(parameter.name.clone());
            }
        }
        names
    }
}

/// Facts for users about the functions in a bound.
fn facts(problem: &Problem<'_>) -> Vec<&'static str> {
    let (forms, functions) = problem.facts();
    let of_forms = forms.into_iter().map(|form| match form {
        Form::LogSumExp => "the slopes of log_sum_exp are chances, between 0 and 1",
        Form::PoissonDevianceByLog | Form::PoissonDeviance => {
            "the residual of a count is at most the larger of the count and its mean"
        }
        Form::BinomialDevianceByLogOdds => {
            "the residual of a binomial count is at most the number of trials"
        }
        Form::StudentKernel => "the slope of a Student t log density falls beyond its scale",
    });
    let of_functions = functions.into_iter().filter_map(|f| match f {
        Unary::Log1pExp | Unary::LogInvLogit | Unary::Log1mInvLogit => {
            Some("the residual of a logistic outcome is at most 1")
        }
        Unary::Square => Some("the slope of a square is twice its root"),
        Unary::InvLogit | Unary::OpenInvLogit => Some("the slope of inv_logit is at most 1/4"),
        _ => None,
    });
    let mut all: Vec<&'static str> = Vec::new();
    for fact in of_forms.chain(of_functions) {
        if !all.contains(&fact) {
            all.push(fact);
        }
    }
    all
}
