//! Numbers that carry their derivatives, to test densities without a graph.

use super::Algebra;
use crate::function::Unary;

/// How many derivatives a number carries.
pub const SLOTS: usize = 20;

/// A value and its partial derivatives.
#[derive(Debug, Clone, Copy)]
pub struct Dual {
    pub value: f64,
    pub partials: [f64; SLOTS],
}

impl Dual {
    pub fn constant(value: f64) -> Self {
        Dual {
            value,
            partials: [0.0; SLOTS],
        }
    }

    pub fn variable(value: f64, slot: usize) -> Self {
        let mut dual = Dual::constant(value);
        dual.partials[slot] = 1.0;
        dual
    }
}

/// Forward-mode differentiation. As in the graphs, a branch that is not taken has no derivative,
/// even where it would be infinite.
pub struct Duals;

impl Duals {
    fn chain(value: f64, parts: &[(Dual, f64)]) -> Dual {
        let mut out = Dual::constant(value);
        for (part, slope) in parts {
            for (into, partial) in out.partials.iter_mut().zip(part.partials) {
                if partial != 0.0 && *slope != 0.0 {
                    *into += partial * slope;
                }
            }
        }
        out
    }
}

impl Algebra for Duals {
    type Scalar = Dual;

    fn constant(&mut self, value: f64) -> Dual {
        Dual::constant(value)
    }
    fn add(&mut self, a: Dual, b: Dual) -> Dual {
        Self::chain(a.value + b.value, &[(a, 1.0), (b, 1.0)])
    }
    fn subtract(&mut self, a: Dual, b: Dual) -> Dual {
        Self::chain(a.value - b.value, &[(a, 1.0), (b, -1.0)])
    }
    fn multiply(&mut self, a: Dual, b: Dual) -> Dual {
        Self::chain(a.value * b.value, &[(a, b.value), (b, a.value)])
    }
    fn divide(&mut self, a: Dual, b: Dual) -> Dual {
        let quotient = a.value / b.value;
        Self::chain(quotient, &[(a, 1.0 / b.value), (b, -quotient / b.value)])
    }
    fn unary(&mut self, function: Unary, a: Dual) -> Dual {
        let definition = function.definition();
        let value = (definition.value)(a.value);
        Self::chain(value, &[(a, (definition.derivative)(a.value, value))])
    }
    fn less(&mut self, a: Dual, b: Dual) -> Dual {
        Dual::constant(f64::from(a.value < b.value))
    }
    fn equal(&mut self, a: Dual, b: Dual) -> Dual {
        Dual::constant(f64::from(a.value == b.value))
    }
    fn select(&mut self, condition: Dual, a: Dual, b: Dual) -> Dual {
        if condition.value != 0.0 { a } else { b }
    }
}
