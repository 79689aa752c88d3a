//! The private half of a bound model: one number per record and node.
//!
//! Nodes of stage `Record` are computed once, when the data is loaded; nodes of
//! stage `Likelihood` at every density evaluation. The place where parameters enter is narrow by
//! design (ARCHITECTURE.md, "The interface"): a scalar shared by all records, a linear predictor,
//! or an element of a vector picked by a record's index. With these three, one number per place
//! determines a record's gradient.

use std::collections::HashMap;
use std::ops::Range;

use super::public::{Binary, Bits, PublicGraph, PublicId, PublicOp};
use crate::distribution::Algebra;
use crate::function::{Form, Kernel, Unary, pick_by_comparison, unrolled};

/// Index of a node of the [`PrivateGraph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PrivateId(pub u32);

/// One number: known now, known once per density evaluation, or one per record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scalar {
    Number(Bits),
    /// An element of a public vector.
    Public(PublicId, u32),
    Private(PrivateId),
}

impl Scalar {
    pub fn number(value: f64) -> Self {
        Scalar::Number(Bits::new(value))
    }

    pub fn as_number(self) -> Option<f64> {
        match self {
            Scalar::Number(bits) => Some(bits.value()),
            _ => None,
        }
    }

    pub fn is_private(self) -> bool {
        matches!(self, Scalar::Private(_))
    }
}

/// One term of a linear predictor: `scale * parameter * column`, either of the
/// two left out meaning 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Term {
    pub scale: Bits,
    pub parameter: Option<(PublicId, u32)>,
    pub column: Option<PrivateId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PrivateOp {
    /// A column of the record, as loaded.
    Column(u32),
    Unary(Unary, Scalar),
    Binary(Binary, Scalar, Scalar),
    /// `condition != 0 ? a : b`
    Select(Scalar, Scalar, Scalar),
    /// A linear predictor: a sum of terms, at least one with a parameter.
    Linear(Vec<Term>),
    /// The element of a public vector at position
    /// `offset + sum of stride * (index - 1)`.
    Gather {
        table: PublicId,
        offset: u32,
        strides: Vec<(u32, PrivateId)>,
    },
}

/// A longer predictor becomes a sum of several, since every partial sum of one is
/// a node of its own: the memory would grow with the square of the length.
const LONGEST_PREDICTOR: usize = 256;

#[derive(Debug, Clone)]
pub struct PrivateNode {
    pub op: PrivateOp,
    /// Whether a parameter is involved (stage Likelihood, not Record).
    pub has_parameter: bool,
}

#[derive(Debug, Clone, Default)]
pub struct PrivateGraph {
    nodes: Vec<PrivateNode>,
    known: HashMap<PrivateOp, PrivateId>,
    forms: HashMap<PrivateId, (Form, Vec<Scalar>)>,
}

impl PrivateGraph {
    pub fn nodes(&self) -> &[PrivateNode] {
        &self.nodes
    }

    pub fn node(&self, id: PrivateId) -> &PrivateNode {
        &self.nodes[id.0 as usize]
    }

    /// The form that was noted for a node, and its arguments.
    pub fn form(&self, id: PrivateId) -> Option<(Form, &[Scalar])> {
        let (form, arguments) = self.forms.get(&id)?;
        Some((*form, arguments))
    }

    /// Writes linear predictors that contain the one at `id`, or its negative, as a sum of that and the rest. (As they
    /// were built, each has all of its terms.)
    pub(crate) fn refer_to(&mut self, id: PrivateId) {
        let PrivateOp::Linear(own) = self.node(id).op.clone() else {
            return;
        };
        for node in &mut self.nodes[id.0 as usize + 1..] {
            if let PrivateOp::Linear(terms) = &mut node.op
                && let Some(shorter) = [1.0, -1.0]
                    .iter()
                    .find_map(|by| within(id, &own, terms, *by))
            {
                *terms = shorter;
            }
        }
    }

    fn push(&mut self, op: PrivateOp, has_parameter: bool) -> Scalar {
        let id = *self.known.entry(op).or_insert_with_key(|op| {
            self.nodes.push(PrivateNode {
                op: op.clone(),
                has_parameter,
            });
            PrivateId(self.nodes.len() as u32 - 1)
        });
        Scalar::Private(id)
    }

    pub fn column(&mut self, index: usize) -> Scalar {
        self.push(PrivateOp::Column(index as u32), false)
    }
}

/// A predictor with these terms as `by` times the predictor `own` at `id`, and the rest.
fn within(id: PrivateId, own: &[Term], terms: &[Term], by: f64) -> Option<Vec<Term>> {
    let mut rest = terms.to_vec();
    for term in own {
        let scale = Bits::new(by * term.scale.value());
        let wanted = Term { scale, ..*term };
        rest.swap_remove(rest.iter().position(|other| *other == wanted)?);
    }
    rest.push(Term {
        scale: Bits::new(by),
        parameter: None,
        column: Some(id),
    });
    Some(rest)
}

/// The operands of a private operation.
pub fn operands(op: &PrivateOp) -> Vec<Scalar> {
    match op {
        PrivateOp::Column(_) => Vec::new(),
        PrivateOp::Unary(_, a) => vec![*a],
        PrivateOp::Binary(_, a, b) => vec![*a, *b],
        PrivateOp::Select(c, a, b) => vec![*c, *a, *b],
        PrivateOp::Linear(terms) => terms
            .iter()
            .flat_map(|t| {
                let parameter = t.parameter.map(|(node, i)| Scalar::Public(node, i));
                parameter.into_iter().chain(t.column.map(Scalar::Private))
            })
            .collect(),
        PrivateOp::Gather { strides, .. } => {
            strides.iter().map(|&(_, i)| Scalar::Private(i)).collect()
        }
    }
}

/// Both graphs, and arithmetic on scalars of any stage.
#[derive(Debug, Clone, Default)]
pub struct Graphs {
    pub public: PublicGraph,
    pub private: PrivateGraph,
}

impl Graphs {
    /// A vector node that holds these (public) scalars.
    pub fn assemble(&mut self, scalars: &[Scalar]) -> PublicId {
        // Runs from one node (or of numbers) become one part.
        let mut parts = Vec::new();
        let mut start = 0;
        while start < scalars.len() {
            let source = source_of(scalars[start]);
            let length = scalars[start..]
                .iter()
                .take_while(|&&s| source_of(s) == source)
                .count();
            let run = &scalars[start..start + length];
            parts.push(match source {
                Some(node) => {
                    let positions: Vec<u32> = run.iter().map(|&s| position_of(s)).collect();
                    self.public.take(node, &positions)
                }
                None => {
                    let values: Vec<f64> = run
                        .iter()
                        .map(|s| s.as_number().unwrap_or(f64::NAN))
                        .collect();
                    self.public.constants(&values)
                }
            });
            start += length;
        }
        if parts.is_empty() {
            return self.public.constants(&[]);
        }
        self.public.concatenate(&parts)
    }

    fn public_scalar(&mut self, scalar: Scalar) -> PublicId {
        self.assemble(&[scalar])
    }

    /// The only element of a public vector of length 1.
    pub fn only_element(&self, id: PublicId) -> Scalar {
        match self.public.constant_values(id).as_deref() {
            Some([value]) => Scalar::number(*value),
            _ => Scalar::Public(id, 0),
        }
    }

    /// The unconstrained coordinate that the scalar is; `None` where it is computed.
    pub fn coordinate(&self, scalar: Scalar) -> Option<usize> {
        let Scalar::Public(mut node, position) = scalar else {
            return None;
        };
        let mut position = position as usize;
        loop {
            match &self.public.node(node).op {
                PublicOp::Unconstrained { offset, .. } => return Some(*offset as usize + position),
                PublicOp::Take(whole, positions) => {
                    position = positions[position] as usize;
                    node = *whole;
                }
                PublicOp::Concatenate(parts) => {
                    node = *parts.iter().find(|&&part| {
                        let length = self.public.length(part);
                        let is_here = position < length;
                        position -= if is_here { 0 } else { length };
                        is_here
                    })?;
                }
                _ => return None,
            }
        }
    }

    /// Whether the scalar depends on a parameter.
    pub fn has_parameter(&self, scalar: Scalar) -> bool {
        match scalar {
            Scalar::Number(_) => false,
            Scalar::Public(..) => true,
            Scalar::Private(id) => self.private.node(id).has_parameter,
        }
    }

    /// A function of whole vectors as one node; `None` where an element is
    /// private.
    fn public_kernel(
        &mut self,
        kernel: Kernel,
        left: &[Scalar],
        right: Option<&[Scalar]>,
    ) -> Option<Vec<Scalar>> {
        let all = left.iter().chain(right.unwrap_or_default());
        if all.copied().any(Scalar::is_private) {
            return None;
        }
        let left = self.assemble(left);
        let right = right.map(|r| self.assemble(r));
        let node = self.public.kernel(kernel, left, right);
        Some(match self.public.constant_values(node) {
            Some(values) => values.into_iter().map(Scalar::number).collect(),
            None => (0..self.public.length(node) as u32)
                .map(|i| Scalar::Public(node, i))
                .collect(),
        })
    }

    fn push_private(&mut self, op: PrivateOp) -> Scalar {
        let has_parameter = operands(&op).iter().any(|&s| self.has_parameter(s));
        self.private.push(op, has_parameter)
    }

    /// The element of a public vector picked by record ints.
    pub fn gather(
        &mut self,
        table: PublicId,
        offset: u32,
        strides: Vec<(u32, PrivateId)>,
    ) -> Scalar {
        let has_parameter = self.public.constant_values(table).is_none();
        self.private.push(
            PrivateOp::Gather {
                table,
                offset,
                strides,
            },
            has_parameter,
        )
    }

    pub fn binary(&mut self, op: Binary, a: Scalar, b: Scalar) -> Scalar {
        if let (Some(x), Some(y)) = (a.as_number(), b.as_number()) {
            return Scalar::number(op.value(x, y));
        }
        if !a.is_private() && !b.is_private() {
            let (a, b) = (self.public_scalar(a), self.public_scalar(b));
            let id = self.public.binary(op, a, b);
            return self.only_element(id);
        }
        match (op, a.as_number(), b.as_number()) {
            (Binary::Add, Some(0.0), _) | (Binary::Multiply, Some(1.0), _) => return b,
            (Binary::Add | Binary::Subtract, _, Some(0.0))
            | (Binary::Multiply | Binary::Divide | Binary::Power, _, Some(1.0)) => return a,
            (Binary::Power, _, Some(2.0)) => return self.unary(Unary::Square, a),
            (Binary::Power, _, Some(0.5)) => return self.unary(Unary::Sqrt, a),
            (Binary::Power, _, Some(-1.0)) => return self.unary(Unary::Inverse, a),
            _ => {}
        }
        if let Some(element) = self.element_of_whole(op, a, b) {
            return element;
        }
        if let Some((rest, last)) = self.last_predictor(op, a)
            && let Some(terms) = self.linear(op, last, b)
            && terms.len() <= LONGEST_PREDICTOR
        {
            let sum = self.push_private(PrivateOp::Linear(terms));
            return self.push_private(PrivateOp::Binary(Binary::Add, rest, sum));
        }
        if let Some(terms) = self.linear(op, a, b)
            && terms.len() <= LONGEST_PREDICTOR
        {
            return self.push_private(PrivateOp::Linear(terms));
        }
        self.push_private(PrivateOp::Binary(op, a, b))
    }

    /// `mu + tau * z[group]` as the element of `mu + tau * z`, which is computed once and not for each
    /// record; and searches then know that records see a vector, and not its parts.
    fn element_of_whole(&mut self, op: Binary, a: Scalar, b: Scalar) -> Option<Scalar> {
        // Functions with a domain might fail for elements that no record looks up.
        if !matches!(op, Binary::Add | Binary::Subtract | Binary::Multiply) {
            return None;
        }
        let looked_up = |scalar: Scalar| match scalar {
            Scalar::Private(id) => match &self.private.node(id).op {
                PrivateOp::Gather {
                    table,
                    offset,
                    strides,
                } if self.has_parameter(scalar) => Some((*table, *offset, strides.clone())),
                _ => None,
            },
            _ => None,
        };
        let is_public = |scalar: Scalar| matches!(scalar, Scalar::Public(..));
        let ((left, right), (offset, strides)) = match (looked_up(a), looked_up(b)) {
            (Some((table, offset, strides)), None) if is_public(b) => {
                ((table, self.public_scalar(b)), (offset, strides))
            }
            (None, Some((table, offset, strides))) if is_public(a) => {
                ((self.public_scalar(a), table), (offset, strides))
            }
            (Some((left, ..)), Some((right, offset, strides)))
                if looked_up(a)?.1 == offset
                    && looked_up(a)?.2 == strides
                    && self.public.length(left) == self.public.length(right) =>
            {
                ((left, right), (offset, strides))
            }
            _ => return None,
        };
        let whole = self.public.binary(op, left, right);
        Some(self.gather(whole, offset, strides))
    }

    /// `a` as the sum of something and a linear predictor, if `a op b` can be added to the latter.
    fn last_predictor(&self, op: Binary, a: Scalar) -> Option<(Scalar, Scalar)> {
        let (Binary::Add | Binary::Subtract, Scalar::Private(id)) = (op, a) else {
            return None;
        };
        match self.private.node(id).op {
            PrivateOp::Binary(Binary::Add, rest, last) => {
                matches!(last, Scalar::Private(id) if matches!(self.private.node(id).op, PrivateOp::Linear(_)))
                    .then_some((rest, last))
            }
            _ => None,
        }
    }

    /// `a op b` as a linear predictor, where it is one.
    fn linear(&mut self, op: Binary, a: Scalar, b: Scalar) -> Option<Vec<Term>> {
        if !self.has_parameter(a) && !self.has_parameter(b) {
            return None; // stage Record: computed once, nothing to gain
        }
        match op {
            Binary::Add | Binary::Subtract => {
                let mut terms = self.terms(a)?;
                let sign = if op == Binary::Subtract { -1.0 } else { 1.0 };
                terms.extend(self.terms(b)?.into_iter().map(|t| t.scaled(sign)));
                Some(terms)
            }
            Binary::Multiply => {
                if let Some(number) = a.as_number() {
                    return Some(
                        self.linear_terms(b)?
                            .iter()
                            .map(|t| t.scaled(number))
                            .collect(),
                    );
                }
                if let Some(number) = b.as_number() {
                    return Some(
                        self.linear_terms(a)?
                            .iter()
                            .map(|t| t.scaled(number))
                            .collect(),
                    );
                }
                let (left, right) = (self.single_term(a)?, self.single_term(b)?);
                let parameter = match (left.parameter, right.parameter) {
                    (Some(p), None) | (None, Some(p)) => p,
                    _ => return None,
                };
                let column = match (left.column, right.column) {
                    (Some(x), Some(y)) => {
                        let product =
                            self.binary(Binary::Multiply, Scalar::Private(x), Scalar::Private(y));
                        match product {
                            Scalar::Private(id) => Some(id),
                            _ => return None,
                        }
                    }
                    (column, None) | (None, column) => column,
                };
                Some(vec![Term {
                    scale: Bits::new(left.scale.value() * right.scale.value()),
                    parameter: Some(parameter),
                    column,
                }])
            }
            Binary::Divide => {
                let number = b.as_number()?;
                Some(
                    self.linear_terms(a)?
                        .iter()
                        .map(|t| t.scaled(1.0 / number))
                        .collect(),
                )
            }
            _ => None,
        }
    }

    /// The scalar as terms of a sum: any scalar except an opaque one of the likelihood.
    fn terms(&self, scalar: Scalar) -> Option<Vec<Term>> {
        self.linear_terms(scalar)
            .or_else(|| self.single_term(scalar).map(|t| vec![t]))
    }

    fn linear_terms(&self, scalar: Scalar) -> Option<Vec<Term>> {
        let Scalar::Private(id) = scalar else {
            return None;
        };
        match &self.private.node(id).op {
            PrivateOp::Linear(terms) => Some(terms.clone()),
            _ => None,
        }
    }

    fn single_term(&self, scalar: Scalar) -> Option<Term> {
        let one = Bits::new(1.0);
        match scalar {
            Scalar::Number(value) => Some(Term {
                scale: value,
                parameter: None,
                column: None,
            }),
            Scalar::Public(node, i) => Some(Term {
                scale: one,
                parameter: Some((node, i)),
                column: None,
            }),
            Scalar::Private(id) => {
                let node = self.private.node(id);
                match &node.op {
                    PrivateOp::Linear(terms) if terms.len() == 1 => Some(terms[0]),
                    _ if !node.has_parameter => Some(Term {
                        scale: one,
                        parameter: None,
                        column: Some(id),
                    }),
                    _ => None,
                }
            }
        }
    }

    /// Splits a sum into its addends; `false` marks a subtracted one.
    pub fn addends(&mut self, scalar: Scalar) -> Vec<(Scalar, bool)> {
        let mut out = Vec::new();
        // The scalars still to be split, the next one last.
        let mut rest = vec![(scalar, true)];
        while let Some((scalar, positive)) = rest.pop() {
            let Scalar::Private(id) = scalar else {
                out.push((scalar, positive));
                continue;
            };
            match self.private.node(id).op.clone() {
                PrivateOp::Binary(Binary::Add, a, b) => rest.extend([(b, positive), (a, positive)]),
                PrivateOp::Binary(Binary::Subtract, a, b) => {
                    rest.extend([(b, !positive), (a, positive)]);
                }
                PrivateOp::Unary(Unary::Negate, a) => rest.push((a, !positive)),
                PrivateOp::Linear(terms) => {
                    let (with, without): (Vec<_>, Vec<_>) =
                        terms.into_iter().partition(|t| t.parameter.is_some());
                    let rest = self.push_private(PrivateOp::Linear(with));
                    out.push((rest, positive));
                    for term in without {
                        let scale = Scalar::Number(term.scale);
                        let value = match term.column {
                            Some(column) => {
                                self.binary(Binary::Multiply, scale, Scalar::Private(column))
                            }
                            None => scale,
                        };
                        out.push((value, positive));
                    }
                }
                _ => out.push((scalar, positive)),
            }
        }
        out
    }
}

impl Term {
    fn scaled(&self, factor: f64) -> Term {
        Term {
            scale: Bits::new(self.scale.value() * factor),
            ..*self
        }
    }
}

fn source_of(scalar: Scalar) -> Option<PublicId> {
    match scalar {
        Scalar::Public(node, _) => Some(node),
        _ => None,
    }
}

fn position_of(scalar: Scalar) -> u32 {
    match scalar {
        Scalar::Public(_, position) => position,
        _ => 0,
    }
}

impl Algebra for Graphs {
    type Scalar = Scalar;

    fn constant(&mut self, value: f64) -> Scalar {
        Scalar::number(value)
    }
    fn add(&mut self, a: Scalar, b: Scalar) -> Scalar {
        self.binary(Binary::Add, a, b)
    }
    fn subtract(&mut self, a: Scalar, b: Scalar) -> Scalar {
        self.binary(Binary::Subtract, a, b)
    }
    fn multiply(&mut self, a: Scalar, b: Scalar) -> Scalar {
        self.binary(Binary::Multiply, a, b)
    }
    fn divide(&mut self, a: Scalar, b: Scalar) -> Scalar {
        self.binary(Binary::Divide, a, b)
    }
    fn less(&mut self, a: Scalar, b: Scalar) -> Scalar {
        self.binary(Binary::Less, a, b)
    }
    fn equal(&mut self, a: Scalar, b: Scalar) -> Scalar {
        self.binary(Binary::Equal, a, b)
    }

    fn known(&self, a: Scalar) -> Option<f64> {
        a.as_number()
    }

    fn note(&mut self, value: Scalar, form: Form, arguments: &[Scalar]) {
        let Scalar::Private(id) = value else { return };
        // Arguments come before the node made from them. A result that was simplified to an
        // argument, or to an operand of one, has no form.
        let before = arguments.iter().all(|a| match a {
            Scalar::Private(argument) => *argument < id,
            Scalar::Number(_) | Scalar::Public(..) => true,
        });
        if before {
            let noted = || (form, arguments.to_vec());
            self.private.forms.entry(id).or_insert_with(noted);
        }
    }

    fn sum(&mut self, terms: &[Scalar]) -> Scalar {
        if terms.len() < 4 || terms.iter().any(|s| s.is_private()) {
            let zero = Scalar::number(0.0);
            return terms.iter().fold(zero, |sum, &term| self.add(sum, term));
        }
        let all = self.assemble(terms);
        let sum = self.public.sum_of(all);
        self.only_element(sum)
    }

    fn dot(&mut self, a: &[Scalar], b: &[Scalar]) -> Scalar {
        if a.len() >= 4 && !a.iter().chain(b).any(|s| s.is_private()) {
            let (a, b) = (self.assemble(a), self.assemble(b));
            let products = self.public.multiply(a, b);
            let sum = self.public.sum_of(products);
            return self.only_element(sum);
        }
        let products: Vec<_> = a
            .iter()
            .zip(b)
            .map(|(&a, &b)| self.multiply(a, b))
            .collect();
        self.sum(&products)
    }

    /// One lookup where the table is public, however many elements it has: a record's
    /// index has been proven to stay in it.
    fn pick(&mut self, table: &[Scalar], part: Range<usize>, index: Scalar) -> Scalar {
        match (index, index.as_number()) {
            (_, Some(known)) => {
                let at = part.start + (known.max(1.0) as usize - 1);
                table[if part.contains(&at) { at } else { part.start }]
            }
            (Scalar::Private(id), None)
                if !self.has_parameter(index) && !table.iter().any(|s| s.is_private()) =>
            {
                let table = self.assemble(table);
                self.gather(table, part.start as u32, vec![(1, id)])
            }
            _ => pick_by_comparison(self, &table[part], index),
        }
    }

    fn unary(&mut self, function: Unary, a: Scalar) -> Scalar {
        if let Some(value) = a.as_number() {
            return Scalar::number((function.definition().value)(value));
        }
        if !a.is_private() {
            let a = self.public_scalar(a);
            let id = self.public.apply(function, a);
            return self.only_element(id);
        }
        if function == Unary::Negate
            && let Some(terms) = self.linear_terms(a)
        {
            return self.push_private(PrivateOp::Linear(
                terms.iter().map(|t| t.scaled(-1.0)).collect(),
            ));
        }
        self.push_private(PrivateOp::Unary(function, a))
    }

    fn select(&mut self, condition: Scalar, a: Scalar, b: Scalar) -> Scalar {
        if let Some(value) = condition.as_number() {
            return if value != 0.0 { a } else { b };
        }
        if a == b {
            return a;
        }
        if !condition.is_private() && !a.is_private() && !b.is_private() {
            let (c, a, b) = (
                self.public_scalar(condition),
                self.public_scalar(a),
                self.public_scalar(b),
            );
            let id = self.public.select_between(c, a, b);
            return self.only_element(id);
        }
        self.push_private(PrivateOp::Select(condition, a, b))
    }

    fn log_sum_exp(&mut self, x: &[Scalar]) -> Scalar {
        match self.public_kernel(Kernel::LogSumExp, x, None) {
            Some(total) => total[0],
            None => unrolled::log_sum_exp(self, x),
        }
    }

    fn cholesky(&mut self, n: usize, matrix: &[Scalar]) -> Vec<Scalar> {
        let kernel = Kernel::Cholesky { size: n as u32 };
        self.public_kernel(kernel, matrix, None)
            .unwrap_or_else(|| unrolled::cholesky(self, n, matrix))
    }

    fn solve_lower(
        &mut self,
        n: usize,
        transposed: bool,
        lower: &[Scalar],
        right: &[Scalar],
    ) -> Vec<Scalar> {
        let kernel = Kernel::SolveLower {
            size: n as u32,
            columns: right.len().checked_div(n).unwrap_or(0) as u32,
            transposed,
        };
        self.public_kernel(kernel, lower, Some(right))
            .unwrap_or_else(|| unrolled::solve_lower(self, n, transposed, lower, right))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup() -> (Graphs, Scalar, Scalar, Scalar, Scalar) {
        let mut g = Graphs::default();
        let theta = g.public.unconstrained(0, 2);
        let (x, y) = (g.private.column(0), g.private.column(1));
        (g, Scalar::Public(theta, 0), Scalar::Public(theta, 1), x, y)
    }

    #[test]
    fn sums_of_coefficient_times_column_become_one_predictor() {
        let (mut g, alpha, beta, x, y) = setup();
        let bx = g.multiply(beta, x);
        let eta = g.add(alpha, bx);
        let residual = g.subtract(y, eta);
        let Scalar::Private(id) = residual else {
            panic!("private")
        };
        let PrivateOp::Linear(terms) = &g.private.node(id).op else {
            panic!("linear, found {:?}", g.private.node(id).op)
        };
        assert_eq!(terms.len(), 3);
        assert_eq!(terms[1].scale.value(), -1.0);
        assert!(g.has_parameter(residual));
    }

    // If it failed: the default would search among mu, tau and z, of which records see a curved
    // function, and its answer would be many standard deviations off.
    #[test]
    fn elements_of_sums_and_products_are_looked_up_in_the_whole() {
        let (mut g, mu, tau, x, index) = setup();
        let Scalar::Private(index) = index else {
            panic!("private")
        };
        let z = g.public.unconstrained(2, 5);
        let of_group = g.gather(z, 0, vec![(1, index)]);
        let scaled = g.multiply(tau, of_group);
        let moved = g.add(mu, scaled);
        let (mut found, mut vector) = (moved, false);
        if let Scalar::Private(id) = found
            && let PrivateOp::Gather { table, .. } = g.private.node(id).op
        {
            vector = g.public.length(table) == 5;
            found = Scalar::Public(table, 0);
        }
        assert!(vector && !found.is_private());
        // The same element of two vectors, but not a column's product or another record's element.
        let both = g.multiply(of_group, moved);
        let is_looked_up = |g: &Graphs, scalar| {
            let Scalar::Private(id) = scalar else {
                return false;
            };
            matches!(g.private.node(id).op, PrivateOp::Gather { .. })
        };
        assert!(is_looked_up(&g, both));
        let by_column = g.multiply(of_group, x);
        let other = g.gather(z, 0, vec![(2, index)]);
        let different = g.add(of_group, other);
        assert!(!is_looked_up(&g, by_column) && !is_looked_up(&g, different));
    }

    /// A function of whole vectors is a single node for public scalars, a number for constants, and
    /// written out for private scalars.
    #[test]
    fn functions_of_vectors_are_one_node_where_they_can_be() {
        let (mut g, alpha, beta, x, y) = setup();
        let nodes = g.public.nodes().len();
        let total = g.log_sum_exp(&[alpha, beta, alpha]);
        assert!(matches!(total, Scalar::Public(..)));
        assert!(g.public.nodes().len() <= nodes + 2);
        assert!(g.private.nodes().len() == 2);
        assert!(g.log_sum_exp(&[alpha, x, y]).is_private());
        let two = Scalar::number(2.0);
        let four = Scalar::number(4.0);
        assert_eq!(g.cholesky(1, &[four]), [two]);
        assert_eq!(g.solve_lower(1, false, &[two], &[four]), [two]);
        assert!(matches!(g.cholesky(1, &[alpha])[0], Scalar::Public(..)));
        assert!(g.solve_lower(1, true, &[alpha], &[x])[0].is_private());
    }

    #[test]
    fn record_expressions_stay_apart_from_parameters() {
        let (mut g, alpha, _, x, y) = setup();
        let product = g.multiply(x, y);
        assert!(!g.has_parameter(product));
        // (alpha * x) * y is alpha * (x * y), with x * y computed at load.
        let ax = g.multiply(alpha, x);
        let axy = g.multiply(ax, y);
        let Scalar::Private(id) = axy else { panic!() };
        let PrivateOp::Linear(terms) = &g.private.node(id).op else {
            panic!()
        };
        assert_eq!(Scalar::Private(terms[0].column.unwrap()), product);
    }

    #[test]
    fn addends_set_the_record_terms_aside() {
        let (mut g, alpha, _, x, y) = setup();
        let a = g.unary(Unary::Exp, x);
        let opaque = {
            let ax = g.multiply(alpha, x);
            g.unary(Unary::Exp, ax)
        };
        let sum = g.subtract(opaque, a);
        let sum = g.add(sum, y);
        let addends = g.addends(sum);
        let record: Vec<_> = addends
            .iter()
            .filter(|(s, _)| !g.has_parameter(*s))
            .collect();
        assert_eq!(addends.len(), 3);
        assert_eq!(record, [&(a, false), &(y, true)]);
    }
}
