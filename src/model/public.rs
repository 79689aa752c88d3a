//! The public half of a bound model: vectors of constants and parameters.
//!
//! A node is a vector of fixed length, computed once per density evaluation.
//! Operations on constants are folded while the graph is built, and equal
//! operations share one node.

use std::collections::HashMap;

use crate::distribution::Algebra;
use crate::function::{Kernel, Unary};

/// An f64 that can be compared and hashed by its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bits(u64);

impl Bits {
    pub fn new(value: f64) -> Self {
        Bits(value.to_bits())
    }

    pub fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// Index of a node of the [`PublicGraph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PublicId(pub u32);

/// Element-wise functions of two numbers. Comparisons give 1 or 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Minimum,
    Maximum,
    /// `atan2(left, right)`
    ArcTangent,
    /// The remainder of `left / right`, with the sign of `left`.
    Modulus,
    Less,
    LessEqual,
    Equal,
    NotEqual,
    And,
    Or,
}

impl Binary {
    pub fn value(self, a: f64, b: f64) -> f64 {
        match self {
            Binary::Add => a + b,
            Binary::Subtract => a - b,
            Binary::Multiply => a * b,
            Binary::Divide => a / b,
            Binary::Power => a.powf(b),
            Binary::Minimum => {
                if b < a || b.is_nan() {
                    b
                } else {
                    a
                }
            }
            Binary::Maximum => {
                if b > a || b.is_nan() {
                    b
                } else {
                    a
                }
            }
            Binary::ArcTangent => a.atan2(b),
            Binary::Modulus => a % b,
            Binary::Less => f64::from(a < b),
            Binary::LessEqual => f64::from(a <= b),
            Binary::Equal => f64::from(a == b),
            Binary::NotEqual => f64::from(a != b),
            Binary::And => f64::from(a != 0.0 && b != 0.0),
            Binary::Or => f64::from(a != 0.0 || b != 0.0),
        }
    }

    /// Whether the result is piecewise constant, so that it has no derivative.
    pub fn is_step(self) -> bool {
        matches!(
            self,
            Binary::Less
                | Binary::LessEqual
                | Binary::Equal
                | Binary::NotEqual
                | Binary::And
                | Binary::Or
        )
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PublicOp {
    Constant(Vec<Bits>),
    /// Coordinates `offset .. offset + length` of the unconstrained vector.
    Unconstrained {
        offset: u32,
        length: u32,
    },
    Unary(Unary, PublicId),
    /// Lengths are equal, or one of them is 1.
    Binary(Binary, PublicId, PublicId),
    /// `condition != 0 ? a : b`, element by element.
    Select(PublicId, PublicId, PublicId),
    /// Sum of all elements.
    Sum(PublicId),
    /// The elements at these positions.
    Take(PublicId, Vec<u32>),
    Concatenate(Vec<PublicId>),
    /// A function of one or two whole vectors.
    Kernel {
        kernel: Kernel,
        left: PublicId,
        right: Option<PublicId>,
    },
}

impl PublicOp {
    /// Calls `each` with the nodes that it reads.
    pub fn for_operands(&self, mut each: impl FnMut(PublicId)) {
        match self {
            PublicOp::Constant(_) | PublicOp::Unconstrained { .. } => {}
            PublicOp::Unary(_, a) | PublicOp::Sum(a) | PublicOp::Take(a, _) => each(*a),
            PublicOp::Binary(_, a, b) => {
                each(*a);
                each(*b);
            }
            PublicOp::Select(c, a, b) => {
                each(*c);
                each(*a);
                each(*b);
            }
            PublicOp::Concatenate(parts) => parts.iter().for_each(|&p| each(p)),
            PublicOp::Kernel { left, right, .. } => {
                each(*left);
                right.iter().for_each(|&r| each(r));
            }
        }
    }
}

#[derive(Debug, Clone)]
pub struct PublicNode {
    pub op: PublicOp,
    pub length: usize,
}

/// Nodes in an order in which every node comes after its operands.
#[derive(Debug, Clone, Default)]
pub struct PublicGraph {
    nodes: Vec<PublicNode>,
    known: HashMap<PublicOp, PublicId>,
}

impl PublicGraph {
    pub fn nodes(&self) -> &[PublicNode] {
        &self.nodes
    }

    pub fn node(&self, id: PublicId) -> &PublicNode {
        &self.nodes[id.0 as usize]
    }

    pub fn length(&self, id: PublicId) -> usize {
        self.node(id).length
    }

    /// Which of the unconstrained coordinates, of which there are `dimension`, these nodes are computed from.
    pub fn coordinates_under(&self, roots: &[PublicId], dimension: usize) -> Vec<bool> {
        let mut found = vec![false; dimension];
        let mut needed = vec![false; self.nodes.len()];
        for root in roots {
            needed[root.0 as usize] = true;
        }
        let leaf = |id: PublicId| match self.node(id).op {
            PublicOp::Unconstrained { offset, .. } => Some(offset as usize),
            _ => None,
        };
        for i in (0..needed.len()).rev() {
            if !needed[i] {
                continue;
            }
            match &self.nodes[i].op {
                PublicOp::Unconstrained { offset, length } => {
                    found[*offset as usize..][..*length as usize].fill(true);
                }
                PublicOp::Take(a, positions) if leaf(*a).is_some() => {
                    let offset = leaf(*a).unwrap_or_default();
                    for &position in positions {
                        found[offset + position as usize] = true;
                    }
                }
                op => op.for_operands(|id| needed[id.0 as usize] = true),
            }
        }
        found
    }

    fn push(&mut self, op: PublicOp, length: usize) -> PublicId {
        if let Some(&id) = self.known.get(&op) {
            return id;
        }
        let id = PublicId(self.nodes.len() as u32);
        self.known.insert(op.clone(), id);
        self.nodes.push(PublicNode { op, length });
        id
    }

    pub fn constants(&mut self, values: &[f64]) -> PublicId {
        let bits = values.iter().map(|&v| Bits::new(v)).collect();
        self.push(PublicOp::Constant(bits), values.len())
    }

    /// The values of a constant node.
    pub fn constant_values(&self, id: PublicId) -> Option<Vec<f64>> {
        match &self.node(id).op {
            PublicOp::Constant(bits) => Some(bits.iter().map(|b| b.value()).collect()),
            _ => None,
        }
    }

    fn single_constant(&self, id: PublicId) -> Option<f64> {
        match &self.node(id).op {
            PublicOp::Constant(bits) if bits.len() == 1 => Some(bits[0].value()),
            _ => None,
        }
    }

    pub fn unconstrained(&mut self, offset: usize, length: usize) -> PublicId {
        let op = PublicOp::Unconstrained {
            offset: offset as u32,
            length: length as u32,
        };
        self.push(op, length)
    }

    pub fn apply(&mut self, function: Unary, a: PublicId) -> PublicId {
        if let Some(values) = self.constant_values(a) {
            let f = function.definition().value;
            let values: Vec<f64> = values.into_iter().map(f).collect();
            return self.constants(&values);
        }
        let length = self.length(a);
        self.push(PublicOp::Unary(function, a), length)
    }

    pub fn binary(&mut self, op: Binary, a: PublicId, b: PublicId) -> PublicId {
        let length = self.broadcast_length(&[a, b]);
        if let (Some(x), Some(y)) = (self.constant_values(a), self.constant_values(b)) {
            let values: Vec<f64> = (0..length)
                .map(|i| op.value(x[i % x.len()], y[i % y.len()]))
                .collect();
            return self.constants(&values);
        }
        let (left, right) = (self.single_constant(a), self.single_constant(b));
        match (op, left, right) {
            (Binary::Add, Some(0.0), _) | (Binary::Multiply, Some(1.0), _)
                if self.length(b) == length =>
            {
                return b;
            }
            (Binary::Add | Binary::Subtract, _, Some(0.0))
            | (Binary::Multiply | Binary::Divide | Binary::Power, _, Some(1.0))
                if self.length(a) == length =>
            {
                return a;
            }
            (Binary::Power, _, Some(2.0)) => return self.apply(Unary::Square, a),
            (Binary::Power, _, Some(0.5)) => return self.apply(Unary::Sqrt, a),
            (Binary::Power, _, Some(-1.0)) => return self.apply(Unary::Inverse, a),
            _ => {}
        }
        self.push(PublicOp::Binary(op, a, b), length)
    }

    pub fn select_between(&mut self, condition: PublicId, a: PublicId, b: PublicId) -> PublicId {
        if let Some(c) = self.constant_values(condition) {
            if c.iter().all(|&c| c != 0.0) && self.length(a) >= c.len() {
                return a;
            }
            if c.iter().all(|&c| c == 0.0) && self.length(b) >= c.len() {
                return b;
            }
        }
        let length = self.broadcast_length(&[condition, a, b]);
        if let (Some(c), Some(x), Some(y)) = (
            self.constant_values(condition),
            self.constant_values(a),
            self.constant_values(b),
        ) {
            let element = |v: &[f64], i: usize| v[i % v.len()];
            let values: Vec<f64> = (0..length)
                .map(|i| element(if element(&c, i) != 0.0 { &x } else { &y }, i))
                .collect();
            return self.constants(&values);
        }
        self.push(PublicOp::Select(condition, a, b), length)
    }

    pub fn sum_of(&mut self, a: PublicId) -> PublicId {
        if self.length(a) == 1 {
            return a;
        }
        if let Some(values) = self.constant_values(a) {
            return self.constants(&[values.iter().sum()]);
        }
        self.push(PublicOp::Sum(a), 1)
    }

    pub fn take(&mut self, a: PublicId, positions: &[u32]) -> PublicId {
        if positions.len() == self.length(a)
            && positions.iter().enumerate().all(|(i, &p)| i == p as usize)
        {
            return a;
        }
        if let Some(values) = self.constant_values(a) {
            let values: Vec<f64> = positions.iter().map(|&p| values[p as usize]).collect();
            return self.constants(&values);
        }
        self.push(PublicOp::Take(a, positions.to_vec()), positions.len())
    }

    pub fn concatenate(&mut self, parts: &[PublicId]) -> PublicId {
        if let [one] = parts {
            return *one;
        }
        let known: Option<Vec<_>> = parts.iter().map(|&p| self.constant_values(p)).collect();
        if let Some(known) = known {
            return self.constants(&known.concat());
        }
        let length = parts.iter().map(|&p| self.length(p)).sum();
        self.push(PublicOp::Concatenate(parts.to_vec()), length)
    }

    pub fn kernel(&mut self, kernel: Kernel, left: PublicId, right: Option<PublicId>) -> PublicId {
        let length = kernel.output_length(self.length(left));
        // The length of the other operand does not matter if one is empty.
        let empty = self.length(left) == 0 || right.is_some_and(|r| self.length(r) == 0);
        let known = |graph: &Self, id: PublicId| match graph.constant_values(id) {
            None if empty => Some(vec![0.0; graph.length(id)]),
            values => values,
        };
        let operands = (
            known(self, left),
            right.map_or(Some(Vec::new()), |r| known(self, r)),
        );
        if let (Some(left), Some(right)) = operands {
            let mut out = vec![0.0; length];
            kernel.value(&left, &right, &mut out);
            return self.constants(&out);
        }
        self.push(
            PublicOp::Kernel {
                kernel,
                left,
                right,
            },
            length,
        )
    }

    fn broadcast_length(&self, operands: &[PublicId]) -> usize {
        operands
            .iter()
            .map(|&id| self.length(id))
            .fold(1, |a, b| if a == 1 { b } else { a })
    }
}

impl Algebra for PublicGraph {
    type Scalar = PublicId;

    fn constant(&mut self, value: f64) -> PublicId {
        self.constants(&[value])
    }
    fn add(&mut self, a: PublicId, b: PublicId) -> PublicId {
        self.binary(Binary::Add, a, b)
    }
    fn subtract(&mut self, a: PublicId, b: PublicId) -> PublicId {
        self.binary(Binary::Subtract, a, b)
    }
    fn multiply(&mut self, a: PublicId, b: PublicId) -> PublicId {
        self.binary(Binary::Multiply, a, b)
    }
    fn divide(&mut self, a: PublicId, b: PublicId) -> PublicId {
        self.binary(Binary::Divide, a, b)
    }
    fn unary(&mut self, function: Unary, a: PublicId) -> PublicId {
        self.apply(function, a)
    }
    fn less(&mut self, a: PublicId, b: PublicId) -> PublicId {
        self.binary(Binary::Less, a, b)
    }
    fn equal(&mut self, a: PublicId, b: PublicId) -> PublicId {
        self.binary(Binary::Equal, a, b)
    }
    fn select(&mut self, condition: PublicId, a: PublicId, b: PublicId) -> PublicId {
        self.select_between(condition, a, b)
    }
    fn known(&self, a: PublicId) -> Option<f64> {
        self.single_constant(a)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_fold_and_equal_nodes_are_shared() {
        let mut g = PublicGraph::default();
        let theta = g.unconstrained(0, 3);
        let two = g.constant(2.0);
        let three = g.constant(3.0);
        let six = g.multiply(two, three);
        assert_eq!(g.constant_values(six), Some(vec![6.0]));
        let a = g.multiply(two, theta);
        let b = g.multiply(two, theta);
        assert_eq!(a, b);
        assert_eq!(g.length(a), 3);
        let zero = g.constant(0.0);
        assert_eq!(g.add(theta, zero), theta);
        let sum = g.sum_of(a);
        assert_eq!(g.length(sum), 1);
    }
}
