//! Outcomes whose density is a mixture: a sum of densities, each with a peak of its own.
//!
//! A grid finds one peak and may miss another, narrow one. So each component is searched for by itself; the
//! components' masses are their weights, and add up to that of the whole.
//!
//! Where components have parameters of their own, as the two means of `log_mix(w, normal_lpdf(y | mu[1], s),
//! normal_lpdf(y | mu[2], s))`, they may coincide. There the score says nothing about how far they are apart,
//! whatever the outcomes are, and a search by what the law expects stays there. Such a mixture has no law here.

use std::collections::BTreeSet;

use crate::function::{Form, Unary};
use crate::model::{Binary, Model, PrivateOp, PublicId, PublicOp, Scalar, operands};

/// The most components: each has nodes of its own.
const MOST: usize = 4;

/// A mixture among the terms of an outcome.
pub(super) struct Mixture {
    /// Which of the terms it is.
    pub term: usize,
    /// The log densities of its components, weights included.
    pub components: Vec<Scalar>,
}

/// The mixture among the terms of an outcome, as in `log_mix(...)`; `None` where there is none, or more than one.
pub(super) fn mixture(model: &Model, column: usize, terms: &[Scalar]) -> Option<Mixture> {
    let mut found = (terms.iter().enumerate()).filter_map(|(term, s)| {
        let mut components = Vec::new();
        add_components(model, *s, &mut components);
        let reads = |s: &Scalar| reads_outcome(model, column, *s);
        (components.iter().filter(|s| reads(s)).count() > 1).then_some(Mixture { term, components })
    });
    let mixture = found.next()?;
    found.next().is_none().then_some(mixture)
}

impl Mixture {
    /// Whether each component is searched for by itself. The values of an int are near each other: its components
    /// are not.
    pub fn is_searched_by_components(&self, model: &Model, column: usize) -> bool {
        let all_read = || {
            self.components
                .iter()
                .all(|s| reads_outcome(model, column, *s))
        };
        !model.columns[column].is_int && self.components.len() <= MOST && all_read()
    }
}

/// Whether there is a mixture anywhere in these terms of which two components differ in where they are by parameters of
/// their own, or each has parameters that the other has not.
pub(super) fn components_may_coincide(model: &Model, column: usize, terms: &[Scalar]) -> bool {
    let may = |a: &Shape, b: &Shape| {
        let is_part = a.all.is_subset(&b.all) || b.all.is_subset(&a.all);
        a.location != b.location || !is_part
    };
    let mut needed = model.needed_private_nodes(terms).into_iter();
    needed.any(|id| {
        let mut components = Vec::new();
        add_components(model, Scalar::Private(id), &mut components);
        if components.len() < 2 {
            return false;
        }
        let shapes = components.into_iter().map(|s| Shape::of(model, column, s));
        let shapes: Vec<Shape> = shapes.filter(|shape| !shape.all.is_empty()).collect();
        let mut others = shapes.iter().enumerate();
        others.any(|(k, a)| shapes[..k].iter().any(|b| may(a, b)))
    })
}

fn reads_outcome(model: &Model, column: usize, s: Scalar) -> bool {
    let mut columns = model.columns_under(&[s]).into_iter();
    columns.any(|(c, _)| c == column)
}

/// The numbers whose exponentials add up to that of `s`.
fn add_components(model: &Model, s: Scalar, into: &mut Vec<Scalar>) {
    let form = match s {
        Scalar::Private(id) => model.graphs.private.form(id),
        Scalar::Number(_) | Scalar::Public(..) => None,
    };
    match form {
        Some((Form::LogSumExp, parts)) => {
            (parts.iter()).for_each(|part| add_components(model, *part, into));
        }
        _ => into.push(s),
    }
}

/// A parameter and one of its elements, both by position.
type Element = (usize, usize);

/// The parameters that change the shape of a log density in the outcome, and not only its level.
#[derive(Default)]
struct Shape {
    all: BTreeSet<Element>,
    /// Those that are added to the outcome, or to a function of it.
    location: BTreeSet<Element>,
}

impl Shape {
    fn of(model: &Model, outcome: usize, s: Scalar) -> Shape {
        let graph = &model.graphs.private;
        let reads = |s: &Scalar| reads_outcome(model, outcome, *s);
        let mut shape = Shape::default();
        let mut sums = vec![s];
        while let Some(s) = sums.pop() {
            let Scalar::Private(id) = s else { continue };
            match &graph.node(id).op {
                _ if !reads(&s) => {}
                PrivateOp::Binary(Binary::Add | Binary::Subtract, a, b) => sums.extend([*a, *b]),
                PrivateOp::Unary(Unary::Negate, a) => sums.push(*a),
                PrivateOp::Linear(terms) => {
                    for term in terms {
                        if let Some(column) = term.column.map(Scalar::Private)
                            && reads(&column)
                        {
                            sums.push(column);
                            let parameter = term.parameter.map(|(id, k)| Scalar::Public(id, k));
                            shape
                                .all
                                .extend(parameter.iter().flat_map(|s| under(model, *s)));
                        }
                    }
                }
                _ => shape.add(model, outcome, s),
            }
        }
        shape
    }

    fn add(&mut self, model: &Model, outcome: usize, s: Scalar) {
        self.all.extend(under(model, s));
        for below in model.needed_private_nodes(&[s]) {
            let op = &model.graphs.private.node(below).op;
            let is_sum = matches!(
                op,
                PrivateOp::Binary(Binary::Add | Binary::Subtract, ..) | PrivateOp::Linear(_)
            );
            let (of_outcome, others): (Vec<Scalar>, Vec<Scalar>) =
                (operands(op).into_iter()).partition(|s| reads_outcome(model, outcome, *s));
            if is_sum && !of_outcome.is_empty() {
                self.location
                    .extend(others.iter().flat_map(|s| under(model, *s)));
            }
        }
    }
}

/// The parameters' elements that a number depends on.
fn under(model: &Model, s: Scalar) -> BTreeSet<Element> {
    let needed = model.needed_private_nodes(&[s]).into_iter();
    let read = needed.flat_map(|id| operands(&model.graphs.private.node(id).op));
    let mut found = BTreeSet::new();
    for s in read.chain([s]) {
        if let Scalar::Public(node, k) = s {
            found.extend(elements(model, (node, k as usize)));
        }
    }
    found
}

/// The parameters' elements that an element of a public vector depends on.
fn elements(model: &Model, at: (PublicId, usize)) -> BTreeSet<Element> {
    let graph = &model.graphs.public;
    let outputs = &model.outputs[..model.parameters.len()];
    let parameter = |id: PublicId| outputs.iter().position(|output| output.node == id);
    // A parameter may also be read before its transform, as the logarithm of a scale.
    let free_element = |coordinate: usize| -> Option<Element> {
        let mut each = model.parameters.iter().enumerate();
        each.find_map(|(p, parameter)| {
            let own = parameter.offset..parameter.offset + parameter.free_length;
            own.contains(&coordinate)
                .then(|| (p, coordinate - parameter.offset))
        })
    };
    let all = |id: PublicId| (0..graph.length(id)).map(move |k| (id, k));
    let mut seen = BTreeSet::new();
    let mut found = BTreeSet::new();
    let mut left = vec![at];
    while let Some((id, k)) = left.pop() {
        if !seen.insert((id, k)) {
            continue;
        }
        if let Some(p) = parameter(id) {
            found.insert((p, k));
            continue;
        }
        let op = &graph.node(id).op;
        match op {
            PublicOp::Constant(_) => {}
            PublicOp::Unconstrained { offset, .. } => {
                found.extend(free_element(*offset as usize + k));
            }
            PublicOp::Unary(..) | PublicOp::Binary(..) | PublicOp::Select(..) => {
                op.for_operands(|a| left.push((a, k.min(graph.length(a) - 1))));
            }
            PublicOp::Sum(_) | PublicOp::Kernel { .. } => op.for_operands(|a| left.extend(all(a))),
            PublicOp::Take(a, positions) => left.push((*a, positions[k] as usize)),
            PublicOp::Concatenate(parts) => {
                let mut each = parts.iter().flat_map(|&part| all(part));
                left.extend(each.nth(k));
            }
        }
    }
    found
}
