//! Ranges and adjoints of the private graph, for one cell.

use std::collections::HashMap;

use super::adjoint::{Adjoint, binary_value, through_binary, through_form, through_unary, under};
use super::public_half::{Lookup, PublicHalf, Values, VectorAdjoint, truth};
use super::range::{Range, root_up, sum_up};
use super::slope;
use crate::function::{Form, Unary};
use crate::model::{Binary, Graphs, PrivateId, PrivateOp, PublicId, Scalar, operands};

/// A set of records and parameters for which a bound is computed.
#[derive(Debug, Clone)]
pub struct Cell {
    /// The record's columns.
    pub columns: Vec<Range>,
    /// The unconstrained coordinates.
    pub theta: Vec<Range>,
    /// Further limits of private nodes, in the order of [`Problem::places`].
    pub places: Vec<Range>,
}

/// A sum of terms of one record's log-likelihood.
pub struct Problem<'a> {
    graphs: &'a Graphs,
    /// Each term, and whether it is always in the sum.
    terms: Vec<(Scalar, bool)>,
    /// Private nodes, operands first.
    order: Vec<PrivateId>,
    public: PublicHalf<'a>,
    /// Linear predictors and lookups, where parameters enter; a cell may narrow them.
    pub places: Vec<PrivateId>,
    /// The distinct indices of lookups.
    indices: Vec<Vec<(u32, PrivateId)>>,
}

/// An upper bound of the gradient's norm in a cell.
#[derive(Debug, Clone)]
pub struct Norm {
    pub norm: f64,
    /// Per parameter's offset, the norm of its part.
    pub parts: Vec<(usize, f64)>,
    /// The ranges of the places in the cell.
    pub places: Vec<Range>,
}

/// The conditions under which an adjoint counts, outermost first.
type Path = Vec<(Scalar, bool)>;

/// Further conditions around a node are not distinguished.
const LONGEST_PATH: usize = 6;

type Paths = Vec<(Path, Adjoint)>;

impl<'a> Problem<'a> {
    pub fn new(graphs: &'a Graphs, terms: &[(Scalar, bool)]) -> Self {
        let graph = &graphs.private;
        let mut is_needed = vec![false; graph.nodes().len()];
        let need = |is_needed: &mut Vec<bool>, scalar: Scalar| {
            if let Scalar::Private(id) = scalar {
                is_needed[id.0 as usize] = true;
            }
        };
        for &(term, _) in terms {
            need(&mut is_needed, term);
        }
        for i in (0..is_needed.len()).rev() {
            if is_needed[i] {
                let id = PrivateId(i as u32);
                let of_form = graph.form(id).map_or(&[][..], |(_, arguments)| arguments);
                for &operand in operands(&graph.nodes()[i].op).iter().chain(of_form) {
                    need(&mut is_needed, operand);
                }
            }
        }
        let order: Vec<PrivateId> = (0..is_needed.len())
            .filter(|&i| is_needed[i])
            .map(|i| PrivateId(i as u32))
            .collect();
        let mut publics: Vec<PublicId> = Vec::new();
        let mut places = Vec::new();
        let mut indices: Vec<Vec<(u32, PrivateId)>> = Vec::new();
        let mut see = |scalar: &Scalar| {
            if let Scalar::Public(id, _) = scalar {
                publics.push(*id);
            }
        };
        terms.iter().for_each(|(term, _)| see(term));
        for &id in &order {
            let node = graph.node(id);
            operands(&node.op).iter().for_each(&mut see);
            if let Some((_, arguments)) = graph.form(id) {
                arguments.iter().for_each(&mut see);
            }
            let is_place = matches!(node.op, PrivateOp::Linear(_) | PrivateOp::Gather { .. });
            if is_place && node.has_parameter {
                places.push(id);
            }
            if let PrivateOp::Gather { strides, .. } = &node.op
                && !indices.contains(strides)
            {
                indices.push(strides.clone());
            }
        }
        for &id in &order {
            if let PrivateOp::Gather { table, .. } = graph.node(id).op {
                publics.push(table);
            }
        }
        Problem {
            graphs,
            terms: terms.to_vec(),
            order,
            public: PublicHalf::new(&graphs.public, publics.into_iter()),
            places,
            indices,
        }
    }

    /// About how many numbers an evaluation computes.
    pub fn size(&self) -> usize {
        self.order.len() + self.public.size()
    }

    /// The record's columns that have an effect.
    pub fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.order
            .iter()
            .filter_map(|&id| match self.graphs.private.node(id).op {
                PrivateOp::Column(c) => Some(c as usize),
                _ => None,
            })
    }

    /// The parameters that have an effect: `(offset, length)` of their coordinates.
    pub fn parameters(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.public.leaves()
    }

    /// Forms that were noted, and functions whose slopes are bounded everywhere.
    pub fn facts(&self) -> (Vec<Form>, Vec<Unary>) {
        let graph = &self.graphs.private;
        let (mut forms, mut functions) = (Vec::new(), Vec::new());
        for &id in &self.order {
            if !graph.node(id).has_parameter {
                continue;
            }
            if let Some((form, _)) = graph.form(id)
                && !forms.contains(&form)
            {
                forms.push(form);
            }
            if let PrivateOp::Unary(f, _) = graph.node(id).op
                && !functions.contains(&f)
            {
                functions.push(f);
            }
        }
        (forms, functions)
    }

    /// An upper bound of the gradient's norm over a cell; `None` where the cell is
    /// empty.
    pub fn norm(&self, cell: &Cell) -> Option<Norm> {
        let public = self.public.values(&cell.theta);
        let values = self.values(cell, &public)?;
        let mut to_public = vec![VectorAdjoint::default(); public.len()];
        self.sweep(&public, &values, &mut to_public);
        let squares = self.public.squares(&public, &mut to_public);
        Some(Norm {
            norm: root_up(sum_up(squares.iter().map(|s| s.1))),
            parts: squares
                .into_iter()
                .map(|(offset, square)| (offset, root_up(square)))
                .collect(),
            places: self.places.iter().map(|id| values[id.0 as usize]).collect(),
        })
    }

    fn lookup(&self, scalar: Scalar, public: &Values, values: &[Range]) -> Range {
        match scalar {
            Scalar::Number(bits) => Range::constant(bits.value()),
            Scalar::Public(id, i) => public[id.0 as usize][i as usize],
            Scalar::Private(id) => values[id.0 as usize],
        }
    }

    /// The comparison that a condition is.
    fn comparison(&self, condition: Scalar) -> Option<(Binary, [Scalar; 2])> {
        let Scalar::Private(id) = condition else {
            return None;
        };
        match self.graphs.private.node(id).op {
            PrivateOp::Binary(op, a, b) => Some((op, [a, b])),
            _ => None,
        }
    }

    fn values(&self, cell: &Cell, public: &Values) -> Option<Vec<Range>> {
        let graph = &self.graphs.private;
        let mut values = vec![Range::ALL; graph.nodes().len()];
        let mut place = 0;
        for &id in &self.order {
            let range_of = |scalar: Scalar| self.lookup(scalar, public, &values);
            let found = match &graph.node(id).op {
                PrivateOp::Column(c) => cell.columns[*c as usize],
                PrivateOp::Unary(f, a) => slope::value(*f, range_of(*a)),
                PrivateOp::Binary(op, a, b) => binary_value(*op, range_of(*a), range_of(*b)),
                PrivateOp::Select(c, a, b) => {
                    let compared = || self.comparison(*c);
                    let then = || under(compared(), true, a, |&s| range_of(s));
                    let otherwise = || under(compared(), false, b, |&s| range_of(s));
                    match truth(range_of(*c)) {
                        Some(true) => then(),
                        Some(false) => otherwise(),
                        None => then().hull(otherwise()),
                    }
                }
                PrivateOp::Linear(terms) => terms.iter().fold(Range::ZERO, |sum, term| {
                    let mut product = Range::constant(term.scale.value());
                    if let Some((node, i)) = term.parameter {
                        product = product.multiply(range_of(Scalar::Public(node, i)));
                    }
                    if let Some(column) = term.column {
                        product = product.multiply(range_of(Scalar::Private(column)));
                    }
                    sum.add(product)
                }),
                PrivateOp::Gather { table, .. } => {
                    let table = &public[table.0 as usize];
                    let first = table.first().copied().unwrap_or(Range::ALL);
                    table.iter().fold(first, |hull, &x| hull.hull(x))
                }
            };
            let found = if self.places.get(place) == Some(&id) {
                place += 1;
                let narrowed = found.intersection(cell.places[place - 1]);
                if narrowed.is_empty() {
                    return None;
                }
                narrowed
            } else {
                found
            };
            values[id.0 as usize] = found;
        }
        Some(values)
    }

    /// Pulls adjoints back from the terms to the places where parameters enter.
    fn sweep(&self, public: &Values, values: &[Range], to_public: &mut [VectorAdjoint]) {
        let graph = &self.graphs.private;
        let mut adjoints: Vec<Paths> = vec![Vec::new(); graph.nodes().len()];
        let one = Adjoint::of(Range::ONE, Range::ALL);
        // Public scalars, which all records share.
        let mut shared: HashMap<(PublicId, u32), Paths> = HashMap::new();
        let mut send = |adjoints: &mut Vec<Paths>, to: Scalar, path: &Path, a: Adjoint| match to {
            _ if a.is_zero() => {}
            Scalar::Number(_) => {}
            Scalar::Public(id, i) => add(shared.entry((id, i)).or_default(), path, a),
            Scalar::Private(id) if graph.node(id).has_parameter => {
                add(&mut adjoints[id.0 as usize], path, a);
            }
            Scalar::Private(_) => {}
        };
        for &(term, certain) in &self.terms {
            let a = if certain {
                one
            } else {
                one.hull(Adjoint::ZERO)
            };
            send(&mut adjoints, term, &Path::new(), a);
        }
        let mut entries = Vec::new();
        for &id in self.order.iter().rev() {
            let paths = std::mem::take(&mut adjoints[id.0 as usize]);
            if paths.is_empty() {
                continue;
            }
            let range_of = |scalar: Scalar| self.lookup(scalar, public, values);
            let y = values[id.0 as usize];
            let node = graph.node(id);
            if let PrivateOp::Linear(_) | PrivateOp::Gather { .. } = node.op {
                entries.push((id, total(&paths, 0).settled(y)));
                continue;
            }
            for (path, a) in &paths {
                let a = a.settled(y);
                if let Some((form, arguments)) = graph.form(id) {
                    let ranges: Vec<Range> = arguments.iter().map(|&x| range_of(x)).collect();
                    if let Some(to) = through_form(form, &ranges, a) {
                        for (&argument, a) in arguments.iter().zip(to) {
                            send(&mut adjoints, argument, path, a);
                        }
                        continue;
                    }
                }
                match &node.op {
                    PrivateOp::Unary(f, x) => {
                        send(
                            &mut adjoints,
                            *x,
                            path,
                            through_unary(*f, range_of(*x), y, a),
                        );
                    }
                    PrivateOp::Binary(op, left, right) => {
                        let [l, r] = through_binary(*op, range_of(*left), range_of(*right), y, a);
                        send(&mut adjoints, *left, path, l);
                        send(&mut adjoints, *right, path, r);
                    }
                    PrivateOp::Select(c, left, right) => {
                        let known = truth(range_of(*c));
                        for (branch, holds) in [(*left, true), (*right, false)] {
                            match known {
                                Some(known) if known == holds => {
                                    send(&mut adjoints, branch, path, a);
                                }
                                Some(_) => {}
                                // Decided by an outer condition.
                                None if path.contains(&(*c, holds)) => {
                                    send(&mut adjoints, branch, path, a);
                                }
                                None if path.contains(&(*c, !holds)) => {}
                                None if path.len() < LONGEST_PATH => {
                                    let mut path = path.clone();
                                    path.push((*c, holds));
                                    send(&mut adjoints, branch, &path, a);
                                }
                                None => {
                                    send(&mut adjoints, branch, path, a.hull(Adjoint::ZERO));
                                }
                            }
                        }
                    }
                    PrivateOp::Column(_) | PrivateOp::Linear(_) | PrivateOp::Gather { .. } => {}
                }
            }
        }
        for ((id, i), paths) in shared {
            let length = self.graphs.public.length(id);
            to_public[id.0 as usize].add(length, i as usize, total(&paths, 0));
        }
        for (id, a) in entries {
            self.enter(id, a, public, values, to_public);
        }
    }

    /// Pulls an adjoint from a linear predictor or a lookup into the public half.
    fn enter(
        &self,
        id: PrivateId,
        a: Adjoint,
        public: &Values,
        values: &[Range],
        to_public: &mut [VectorAdjoint],
    ) {
        match &self.graphs.private.node(id).op {
            PrivateOp::Linear(terms) => {
                for term in terms {
                    let Some((node, i)) = term.parameter else {
                        continue;
                    };
                    let mut slope = a.plain.multiply(Range::constant(term.scale.value()));
                    if let Some(column) = term.column {
                        slope = slope.multiply(values[column.0 as usize]);
                    }
                    let value = public[node.0 as usize][i as usize];
                    let length = self.graphs.public.length(node);
                    to_public[node.0 as usize].add(length, i as usize, Adjoint::of(slope, value));
                }
            }
            PrivateOp::Gather {
                table,
                offset,
                strides,
            } => {
                let index = self.indices.iter().position(|known| known == strides);
                let lookup = Lookup {
                    index: index.unwrap_or(0),
                    offset: Some(*offset),
                };
                let length = self.graphs.public.length(*table);
                to_public[table.0 as usize].add_hot(length, lookup, a);
            }
            _ => {}
        }
    }
}

fn add(paths: &mut Paths, path: &Path, a: Adjoint) {
    match paths.iter_mut().find(|(known, _)| known == path) {
        Some((_, sum)) => *sum = sum.add(a),
        None => paths.push((path.clone(), a)),
    }
}

/// The whole adjoint: the unconditional part, and for each condition either the part where it holds
/// or the part where it does not.
fn total(paths: &[(Path, Adjoint)], depth: usize) -> Adjoint {
    let always = paths.iter().filter(|(path, _)| path.len() == depth);
    let mut sum = always.fold(Adjoint::ZERO, |sum, (_, a)| sum.add(*a));
    let mut seen: Vec<Scalar> = Vec::new();
    for (path, _) in paths {
        let Some(&(condition, _)) = path.get(depth) else {
            continue;
        };
        if seen.contains(&condition) {
            continue;
        }
        seen.push(condition);
        let side = |holds: bool| {
            let own: Paths = paths
                .iter()
                .filter(|(path, _)| path.get(depth) == Some(&(condition, holds)))
                .cloned()
                .collect();
            total(&own, depth + 1)
        };
        sum = sum.add(side(true).hull(side(false)));
    }
    sum
}
