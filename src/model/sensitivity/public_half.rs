//! Ranges and adjoints of the public graph.
//!
//! A record that picks one element of a vector, as in `alpha[county]`, sends an
//! adjoint to that element alone. Such a *hot* adjoint is kept separately from the dense ones: one
//! range that holds for any element. Otherwise the bound would grow with the root of the vector's
//! length.

use std::collections::BTreeMap;

use super::adjoint::{Adjoint, binary_value, through_binary, through_form, through_unary, under};
use super::range::{Range, root_up, square_up, sum_up};
use super::slope;
use crate::function::{Form, Kernel};
use crate::model::{PublicGraph, PublicId, PublicOp};

/// The lookup from which a hot adjoint comes. Two with the same index and the same offset pick the
/// same element, two with different offsets different ones; otherwise either is possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lookup {
    pub index: usize,
    /// `None` where elements were rearranged since: then adjoints are symmetric around zero, so
    /// that their sum is bounded by the sum of their sizes.
    pub offset: Option<u32>,
}

/// The adjoint of one public vector.
#[derive(Debug, Clone, Default)]
pub struct VectorAdjoint {
    /// By element, or empty.
    dense: Vec<Adjoint>,
    hot: BTreeMap<Lookup, Adjoint>,
}

impl VectorAdjoint {
    pub fn add(&mut self, length: usize, element: usize, adjoint: Adjoint) {
        if adjoint.is_zero() {
            return;
        }
        self.dense.resize(length, Adjoint::ZERO);
        self.dense[element] = self.dense[element].add(adjoint);
    }

    /// Adds an adjoint of an unknown element of a vector of this length.
    pub fn add_hot(&mut self, length: usize, lookup: Lookup, adjoint: Adjoint) {
        if adjoint.is_zero() {
            return;
        }
        if length == 1 {
            return self.add(1, 0, adjoint);
        }
        let known = self.hot.entry(lookup).or_insert(Adjoint::ZERO);
        *known = known.add(adjoint);
    }

    /// An upper bound of the sum of squares.
    fn square(&self) -> f64 {
        let dense = self.dense.iter().map(|a| a.plain.magnitude());
        let largest = dense.clone().fold(0.0, f64::max);
        let squares = sum_up(dense.map(square_up));
        // Lookups with one index and known offsets: different elements.
        let mut apart: BTreeMap<usize, f64> = BTreeMap::new();
        let mut hot = 0.0;
        for (lookup, adjoint) in &self.hot {
            let size = adjoint.plain.magnitude();
            match lookup.offset {
                Some(_) => {
                    let sum = apart.entry(lookup.index).or_insert(0.0);
                    *sum = sum_up([*sum, square_up(size)]);
                }
                None => hot = sum_up([hot, size]),
            }
        }
        let hot = sum_up(apart.into_values().map(root_up).chain([hot]));
        // The largest dense element may be the hot one.
        let together = Range::point(2.0)
            .multiply(Range::point(hot))
            .multiply(Range::point(largest));
        sum_up([squares, square_up(hot), together.high])
    }
}

/// Public nodes that are needed, operands first; the values that depend on no cell are computed
/// once.
pub struct PublicHalf<'a> {
    graph: &'a PublicGraph,
    needed: Vec<PublicId>,
}

pub type Values = Vec<Vec<Range>>;

impl<'a> PublicHalf<'a> {
    pub fn new(graph: &'a PublicGraph, roots: impl Iterator<Item = PublicId>) -> Self {
        let mut is_needed = vec![false; graph.nodes().len()];
        for root in roots {
            is_needed[root.0 as usize] = true;
        }
        for i in (0..is_needed.len()).rev() {
            if is_needed[i] {
                for operand in operands(&graph.nodes()[i].op) {
                    is_needed[operand.0 as usize] = true;
                }
            }
        }
        let needed = (0..is_needed.len())
            .filter(|&i| is_needed[i])
            .map(|i| PublicId(i as u32))
            .collect();
        PublicHalf { graph, needed }
    }

    /// How many numbers an evaluation computes.
    pub fn size(&self) -> usize {
        self.needed.iter().map(|&id| self.graph.length(id)).sum()
    }

    /// The parameters' vectors that are needed: `(offset, length)`.
    pub fn leaves(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.needed
            .iter()
            .filter_map(|&id| match self.graph.node(id).op {
                PublicOp::Unconstrained { offset, length } => {
                    Some((offset as usize, length as usize))
                }
                _ => None,
            })
    }

    /// Ranges of all needed nodes, for unconstrained coordinates in `theta`; by
    /// the index of the node.
    pub fn values(&self, theta: &[Range]) -> Values {
        let mut values: Values = vec![Vec::new(); self.graph.nodes().len()];
        for &id in &self.needed {
            let node = self.graph.node(id);
            let values_of = |id: PublicId| &values[id.0 as usize];
            let element = |v: &Vec<Range>, i: usize| v[i % v.len()];
            let length = node.length;
            let found: Vec<Range> = match &node.op {
                PublicOp::Constant(bits) => {
                    bits.iter().map(|b| Range::constant(b.value())).collect()
                }
                PublicOp::Unconstrained { offset, length } => {
                    theta[*offset as usize..(*offset + *length) as usize].to_vec()
                }
                PublicOp::Unary(f, a) => {
                    values_of(*a).iter().map(|&x| slope::value(*f, x)).collect()
                }
                PublicOp::Binary(op, a, b) => (0..length)
                    .map(|i| {
                        binary_value(*op, element(values_of(*a), i), element(values_of(*b), i))
                    })
                    .collect(),
                PublicOp::Select(c, a, b) => (0..length)
                    .map(|i| {
                        let compared = || match self.graph.node(*c).op {
                            PublicOp::Binary(op, left, right) => Some((op, [left, right])),
                            _ => None,
                        };
                        let then = || under(compared(), true, a, |&n| element(values_of(n), i));
                        let otherwise =
                            || under(compared(), false, b, |&n| element(values_of(n), i));
                        match truth(element(values_of(*c), i)) {
                            Some(true) => then(),
                            Some(false) => otherwise(),
                            None => then().hull(otherwise()),
                        }
                    })
                    .collect(),
                PublicOp::Sum(a) => {
                    vec![values_of(*a).iter().fold(Range::ZERO, |sum, &x| sum.add(x))]
                }
                PublicOp::Take(a, positions) => positions
                    .iter()
                    .map(|&p| values_of(*a)[p as usize])
                    .collect(),
                PublicOp::Concatenate(parts) => {
                    parts.iter().flat_map(|&p| values_of(p)).copied().collect()
                }
                PublicOp::Kernel {
                    kernel,
                    left,
                    right,
                } => kernel_values(*kernel, values_of(*left), right.map(values_of), length),
            };
            values[id.0 as usize] = found;
        }
        values
    }

    /// Pulls the adjoints of public vectors back to the unconstrained parameters. Returns, by
    /// parameter's offset, an upper bound of the sum of squares of its part of the gradient.
    pub fn squares(&self, values: &Values, adjoints: &mut [VectorAdjoint]) -> Vec<(usize, f64)> {
        let mut squares = Vec::new();
        for &id in self.needed.iter().rev() {
            let mut own = std::mem::take(&mut adjoints[id.0 as usize]);
            if own.dense.is_empty() && own.hot.is_empty() {
                continue;
            }
            let y = &values[id.0 as usize];
            for (a, &y) in own.dense.iter_mut().zip(y) {
                *a = a.settled(y);
            }
            match &self.graph.node(id).op {
                PublicOp::Constant(_) => {}
                PublicOp::Unconstrained { offset, .. } => {
                    squares.push((*offset as usize, own.square()));
                }
                PublicOp::Kernel {
                    kernel,
                    left,
                    right,
                } => {
                    let dense = spread(own, y.len());
                    let values_of = |id: PublicId| values[id.0 as usize].as_slice();
                    let (to_left, to_right) =
                        through_kernel(*kernel, values_of(*left), right.map(values_of), y, &dense);
                    self.add_all(adjoints, *left, &to_left);
                    if let Some(right) = right {
                        self.add_all(adjoints, *right, &to_right);
                    }
                }
                _ => self.through_elements(id, values, &own, adjoints),
            }
        }
        squares
    }

    fn add_all(&self, adjoints: &mut [VectorAdjoint], to: PublicId, each: &[Adjoint]) {
        for (i, &a) in each.iter().enumerate() {
            adjoints[to.0 as usize].add(self.graph.length(to), i, a);
        }
    }

    /// Operations in which an element depends on one element of each operand.
    fn through_elements(
        &self,
        id: PublicId,
        values: &Values,
        own: &VectorAdjoint,
        adjoints: &mut [VectorAdjoint],
    ) {
        let node = self.graph.node(id);
        for (i, &a) in own.dense.iter().enumerate() {
            if a.is_zero() {
                continue;
            }
            for (operand, element, a) in self.element(id, values, i, a) {
                let length = self.graph.length(operand);
                adjoints[operand.0 as usize].add(length, element, a);
            }
        }
        for (&lookup, &hot) in &own.hot {
            // The adjoint of each operand, for any element.
            let mut to: BTreeMap<PublicId, Adjoint> = BTreeMap::new();
            for i in 0..node.length {
                let hot = hot.settled(values[id.0 as usize][i]);
                for (operand, _, a) in self.element(id, values, i, hot) {
                    to.entry(operand)
                        .and_modify(|known| *known = known.hull(a))
                        .or_insert(a);
                }
            }
            let several = matches!(node.op, PublicOp::Concatenate(_));
            // The position in the operand differs: equal elements may come from different ones
            // there, and vice versa.
            let moved = several || matches!(node.op, PublicOp::Take(..));
            let lookup = if moved {
                Lookup {
                    offset: None,
                    ..lookup
                }
            } else {
                lookup
            };
            for (operand, a) in to {
                // It may have been an element of another part.
                let a = if several { a.hull(Adjoint::ZERO) } else { a };
                // Adjoints of different elements must not cancel when they are added.
                let a = if moved { a.hull(a.negate()) } else { a };
                let length = self.graph.length(operand);
                adjoints[operand.0 as usize].add_hot(length, lookup, a);
            }
        }
    }

    /// The targets of the adjoint of element `i`: operand, its element, adjoint.
    fn element(
        &self,
        id: PublicId,
        values: &Values,
        i: usize,
        a: Adjoint,
    ) -> Vec<(PublicId, usize, Adjoint)> {
        let values_of = |id: PublicId| &values[id.0 as usize];
        let place = |id: PublicId| i % self.graph.length(id);
        let value = |id: PublicId| values_of(id)[place(id)];
        let y = values_of(id)[i];
        match &self.graph.node(id).op {
            PublicOp::Unary(f, x) => vec![(*x, i, through_unary(*f, value(*x), y, a))],
            PublicOp::Binary(op, left, right) => {
                let [l, r] = through_binary(*op, value(*left), value(*right), y, a);
                // A square, for example: both at once.
                if left == right {
                    return vec![(*left, place(*left), l.add(r))];
                }
                vec![(*left, place(*left), l), (*right, place(*right), r)]
            }
            PublicOp::Select(c, left, right) => match truth(value(*c)) {
                Some(true) => vec![(*left, place(*left), a)],
                Some(false) => vec![(*right, place(*right), a)],
                None if left == right => vec![(*left, place(*left), a)],
                None => {
                    let half = a.hull(Adjoint::ZERO);
                    vec![(*left, place(*left), half), (*right, place(*right), half)]
                }
            },
            PublicOp::Sum(x) => {
                let elements = values_of(*x).iter().enumerate();
                elements
                    .map(|(k, &v)| (*x, k, Adjoint::of(a.plain, v)))
                    .collect()
            }
            PublicOp::Take(x, positions) => vec![(*x, positions[i] as usize, a)],
            PublicOp::Concatenate(parts) => {
                let mut start = 0;
                for &part in parts {
                    let length = self.graph.length(part);
                    if i < start + length {
                        return vec![(part, i - start, a)];
                    }
                    start += length;
                }
                Vec::new()
            }
            PublicOp::Constant(_) | PublicOp::Unconstrained { .. } | PublicOp::Kernel { .. } => {
                Vec::new()
            }
        }
    }
}

/// Whether a condition holds; `None` where it may or may not.
pub fn truth(condition: Range) -> Option<bool> {
    if condition.is_zero() {
        Some(false)
    } else {
        (!condition.contains(0.0)).then_some(true)
    }
}

/// The whole adjoint as a dense one: any element may be the hot one.
fn spread(own: VectorAdjoint, length: usize) -> Vec<Adjoint> {
    let mut dense = own.dense;
    dense.resize(length, Adjoint::ZERO);
    for hot in own.hot.into_values() {
        for d in &mut dense {
            *d = d.add(hot.hull(Adjoint::ZERO));
        }
    }
    dense
}

fn operands(op: &PublicOp) -> Vec<PublicId> {
    match op {
        PublicOp::Constant(_) | PublicOp::Unconstrained { .. } => Vec::new(),
        PublicOp::Unary(_, a) | PublicOp::Sum(a) | PublicOp::Take(a, _) => vec![*a],
        PublicOp::Binary(_, a, b) => vec![*a, *b],
        PublicOp::Select(c, a, b) => vec![*c, *a, *b],
        PublicOp::Concatenate(parts) => parts.clone(),
        PublicOp::Kernel { left, right, .. } => std::iter::once(*left).chain(*right).collect(),
    }
}

fn kernel_values(
    kernel: Kernel,
    left: &[Range],
    right: Option<&Vec<Range>>,
    length: usize,
) -> Vec<Range> {
    match (kernel, right) {
        (Kernel::LogSumExp, _) => {
            // It is increasing in every element.
            let end = |at: fn(&Range) -> f64| {
                let x: Vec<f64> = left.iter().map(at).collect();
                let mut out = [0.0];
                Kernel::LogSumExp.value(&x, &[], &mut out);
                out[0]
            };
            vec![Range::new(end(|r| r.low), end(|r| r.high)).outward()]
        }
        (Kernel::Softmax, _) => vec![Range::UNIT; length],
        (Kernel::CumulativeSum, _) => left
            .iter()
            .scan(Range::ZERO, |sum, &x| {
                *sum = sum.add(x);
                Some(*sum)
            })
            .collect(),
        (
            Kernel::MatrixProduct {
                rows,
                inner,
                columns,
            },
            Some(right),
        ) => {
            let (rows, inner) = (rows as usize, inner as usize);
            (0..rows * columns as usize)
                .map(|p| {
                    (0..inner).fold(Range::ZERO, |sum, k| {
                        let product =
                            left[p % rows + k * rows].multiply(right[k + p / rows * inner]);
                        sum.add(product)
                    })
                })
                .collect()
        }
        _ => vec![Range::ALL; length],
    }
}

/// The adjoints of the left and the right operand; unbounded for kernels without a rule.
fn through_kernel(
    kernel: Kernel,
    left: &[Range],
    right: Option<&[Range]>,
    y: &[Range],
    a: &[Adjoint],
) -> (Vec<Adjoint>, Vec<Adjoint>) {
    let unknown = |values: &[Range]| values.iter().map(|&v| Adjoint::of(Range::ALL, v)).collect();
    match (kernel, right) {
        (Kernel::LogSumExp, _) => (
            through_form(Form::LogSumExp, left, a[0]).unwrap_or_else(|| unknown(left)),
            Vec::new(),
        ),
        // y_k (a_k - sum of a_j y_j), where the sum is a mean of the a.
        (Kernel::Softmax, _) => {
            let mean = a.iter().fold(a[0].plain, |hull, a| hull.hull(a.plain));
            let each = a.iter().zip(y).zip(left);
            let to = each.map(|((a, &y), &x)| Adjoint::of(y.multiply(a.plain.subtract(mean)), x));
            (to.collect(), Vec::new())
        }
        (Kernel::CumulativeSum, _) => {
            let mut sum = Range::ZERO;
            let mut to = vec![Adjoint::ZERO; left.len()];
            for k in (0..left.len()).rev() {
                sum = sum.add(a[k].plain);
                to[k] = Adjoint::of(sum, left[k]);
            }
            (to, Vec::new())
        }
        (
            Kernel::MatrixProduct {
                rows,
                inner,
                columns,
            },
            Some(right),
        ) => {
            let [rows, inner, columns] = [rows, inner, columns].map(|n| n as usize);
            let (mut to_left, mut to_right) = (
                vec![Range::ZERO; left.len()],
                vec![Range::ZERO; right.len()],
            );
            for j in 0..columns {
                for i in 0..rows {
                    let a = a[i + j * rows].plain;
                    for k in 0..inner {
                        let (l, r) = (i + k * rows, k + j * inner);
                        to_left[l] = to_left[l].add(a.multiply(right[r]));
                        to_right[r] = to_right[r].add(a.multiply(left[l]));
                    }
                }
            }
            let adjoints = |to: Vec<Range>, values: &[Range]| {
                let each = to.into_iter().zip(values);
                each.map(|(a, &v)| Adjoint::of(a, v)).collect()
            };
            (adjoints(to_left, left), adjoints(to_right, right))
        }
        _ => (unknown(left), right.map(unknown).unwrap_or_default()),
    }
}
