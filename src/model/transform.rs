//! Constrained parameters and the unconstrained space that samplers move in.
//!
//! The transforms and their log Jacobian determinants are those of the Stan
//! Reference Manual, "Constraint transforms".

use super::private::{Graphs, Scalar};
use super::public::{Binary, PublicId};
use crate::distribution::Algebra;
use crate::function::{Unary, special};

/// How one parameter's elements come from unconstrained ones `u`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Transform {
    /// x = u
    Identity,
    /// x = lower + exp(u), log Jacobian u
    Lower(Scalar),
    /// x = upper - exp(u), log Jacobian u
    Upper(Scalar),
    /// x = lower + (upper - lower) inv_logit(u), log Jacobian
    /// log(upper - lower) + log inv_logit(u) + log inv_logit(-u)
    Interval(Scalar, Scalar),
}

impl Transform {
    /// Chooses the transform for these bounds; an infinite bound is none, as in
    /// Stan.
    pub fn for_bounds(lower: Option<Scalar>, upper: Option<Scalar>) -> Self {
        let lower = lower.filter(|b| b.as_number() != Some(f64::NEG_INFINITY));
        let upper = upper.filter(|b| b.as_number() != Some(f64::INFINITY));
        match (lower, upper) {
            (None, None) => Transform::Identity,
            (Some(a), None) => Transform::Lower(a),
            (None, Some(b)) => Transform::Upper(b),
            (Some(a), Some(b)) => Transform::Interval(a, b),
        }
    }

    /// Adds the constrained value and the log Jacobian (a public scalar, `None`
    /// when it is zero) of unconstrained elements `u` to the graph.
    pub(super) fn constrain(
        self,
        graphs: &mut Graphs,
        u: PublicId,
    ) -> (PublicId, Option<PublicId>) {
        let bound = |graphs: &mut Graphs, s: Scalar| graphs.assemble(&[s]);
        match self {
            Transform::Identity => (u, None),
            Transform::Lower(a) => {
                let a = bound(graphs, a);
                let exp = graphs.public.apply(Unary::Exp, u);
                let x = graphs.public.binary(Binary::Add, a, exp);
                (x, Some(graphs.public.sum_of(u)))
            }
            Transform::Upper(b) => {
                let b = bound(graphs, b);
                let exp = graphs.public.apply(Unary::Exp, u);
                let x = graphs.public.binary(Binary::Subtract, b, exp);
                (x, Some(graphs.public.sum_of(u)))
            }
            Transform::Interval(a, b) => {
                let (a, b) = (bound(graphs, a), bound(graphs, b));
                let g = &mut graphs.public;
                let width = g.binary(Binary::Subtract, b, a);
                let share = g.apply(Unary::InvLogit, u);
                let part = g.binary(Binary::Multiply, width, share);
                let x = g.binary(Binary::Add, a, part);
                let left = g.apply(Unary::LogInvLogit, u);
                let right = g.apply(Unary::Log1mInvLogit, u);
                let log_width = g.ln(width);
                let jacobian = g.sum(&[left, right, log_width]);
                (x, Some(g.sum_of(jacobian)))
            }
        }
    }
}

/// Numbers of a transform whose bounds have been evaluated.
#[derive(Debug, Clone, Copy)]
pub enum NumericTransform {
    Identity,
    Lower(f64),
    Upper(f64),
    Interval(f64, f64),
}

impl NumericTransform {
    /// The unconstrained value of a constrained one; `None` when it violates
    /// the constraint.
    pub fn unconstrain(self, x: f64) -> Option<f64> {
        let u = match self {
            NumericTransform::Identity => x,
            NumericTransform::Lower(a) => (x - a).ln(),
            NumericTransform::Upper(b) => (b - x).ln(),
            NumericTransform::Interval(a, b) => {
                let share = (x - a) / (b - a);
                share.ln() - (-share).ln_1p()
            }
        };
        u.is_finite().then_some(u)
    }

    /// The constrained value of an unconstrained one.
    pub fn constrain(self, u: f64) -> f64 {
        match self {
            NumericTransform::Identity => u,
            NumericTransform::Lower(a) => a + u.exp(),
            NumericTransform::Upper(b) => b - u.exp(),
            NumericTransform::Interval(a, b) => a + (b - a) * special::inv_logit(u),
        }
    }

    /// The constraint in words.
    pub fn describe(self) -> String {
        match self {
            NumericTransform::Identity => "finite".into(),
            NumericTransform::Lower(a) => format!("above {a}"),
            NumericTransform::Upper(b) => format!("below {b}"),
            NumericTransform::Interval(a, b) => format!("strictly between {a} and {b}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_to_rounding() {
        for t in [
            NumericTransform::Identity,
            NumericTransform::Lower(-2.0),
            NumericTransform::Upper(7.5),
            NumericTransform::Interval(-1.0, 3.0),
        ] {
            for u in [-20.0, -3.0, -0.1, 0.0, 0.7, 5.0] {
                let back = t.unconstrain(t.constrain(u));
                assert!(
                    back.is_some_and(|b| (b - u).abs() < 1e-7 * (1.0 + u.abs())),
                    "{t:?} {u} -> {back:?}"
                );
            }
        }
        assert_eq!(NumericTransform::Lower(0.0).unconstrain(-1.0), None);
        assert_eq!(NumericTransform::Interval(0.0, 1.0).unconstrain(1.0), None);
    }
}
