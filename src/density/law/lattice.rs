//! Counts whose law depends on the record through one number: a Poisson or negative binomial count with a linear
//! predictor, or with a rate.
//!
//! Given the parameters, the law is then a function of that number s. It is searched for at the points of a public
//! lattice, and a record has the nodes of the point that is nearest to its s, each weighted by how much more likely it
//! is at s than there. A point's nodes are the same whichever records are near it. So they can be kept, and the
//! result for a record is a function of that record alone. Only the time that this takes depends on the others.
//!
//! Points are at even steps of asinh(s), which is linear about 0 and logarithmic beyond. Where the law of
//! the middle of a step moves fast, the step is divided.

use std::collections::HashMap;

use super::super::nodes::NODES;
use super::super::{BLOCK, RowProgram};
use super::{Design, Law, Step, Work};
use crate::function::{asinh, exp};
use crate::linear::vectorised;
use crate::model::{Model, PrivateGraph, PrivateId, PrivateOp, Scalar, operands};

/// The longest step, in asinh(s).
const LONGEST: f64 = 0.125;
/// The law moves by at most this many of its standard deviations in a step.
const SHIFT: f64 = 0.25;
/// The most often that a step is halved.
const HALVED: u32 = 20;
/// The weights of a record's nodes sum to 1 within this, or else its law is searched for.
const OFF: f64 = 0.01;
/// The most points that are kept.
const KEPT: usize = 20_000;
/// Programs of more numbers than this are not looked through for a single one.
const LONGEST_PROGRAM: usize = 1000;

/// The number through which the terms of an outcome read the record; `None` where there is none, or the outcome is not
/// an int.
pub(super) fn single_number(model: &Model, column: usize, terms: &[Scalar]) -> Option<PrivateId> {
    let order = model.needed_private_nodes(terms);
    if !model.columns[column].is_int || order.len() > LONGEST_PROGRAM {
        return None;
    }
    let graph = &model.graphs.private;
    let mut reads = vec![Reads::default(); graph.nodes().len()];
    fill(&mut reads, graph, &order, column, None);
    let is_own = |id: &PrivateId| reads[id.0 as usize] == Reads::OWN;
    let mut own = order.iter().copied().filter(is_own);
    own.find(|&cut| {
        let mut graph = graph.clone();
        graph.refer_to(cut);
        let mut reads = vec![Reads::default(); graph.nodes().len()];
        fill(&mut reads, &graph, &order, column, Some(cut));
        let is_own = |s: &Scalar| matches!(s, Scalar::Private(p) if reads[p.0 as usize].own);
        !terms.iter().any(is_own)
    })
}

/// The quantities that a number depends on.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Reads {
    /// A column of the record other than the outcome.
    own: bool,
    outcome: bool,
}

impl Reads {
    const OWN: Reads = Reads {
        own: true,
        outcome: false,
    };
    const OUTCOME: Reads = Reads {
        own: false,
        outcome: true,
    };
}

/// The quantities that the numbers of `order` depend on, if `cut` depends on nothing.
fn fill(
    reads: &mut [Reads],
    graph: &PrivateGraph,
    order: &[PrivateId],
    column: usize,
    cut: Option<PrivateId>,
) {
    for &id in order.iter().filter(|&&id| Some(id) != cut) {
        let op = &graph.node(id).op;
        reads[id.0 as usize] = match *op {
            PrivateOp::Column(c) if c as usize == column => Reads::OUTCOME,
            PrivateOp::Column(_) => Reads::OWN,
            _ => {
                let mut all = Reads::default();
                for s in operands(op) {
                    if let Scalar::Private(p) = s {
                        all.own |= reads[p.0 as usize].own;
                        all.outcome |= reads[p.0 as usize].outcome;
                    }
                }
                all
            }
        };
    }
}

/// The law of an outcome as a function of a single number.
pub(super) struct Single<'a> {
    /// Where that number is among the roots of the law's program.
    root: usize,
    /// The law of the outcome where the number is a column.
    law: Box<Law<'a>>,
    /// The position of the number among the columns of that law.
    position: usize,
    /// Where its interface is in that of the whole law.
    interface: Vec<std::ops::Range<usize>>,
}

/// The nodes at a point.
#[derive(Debug, Clone, Copy)]
struct Anchor {
    values: [f64; NODES],
    weights: [f64; NODES],
    log_densities: [f64; NODES],
}

/// The findings at the points of one step's lattice, at some parameters.
#[derive(Default)]
pub(super) struct Lattice {
    /// The interface.
    z: Vec<f64>,
    work: Option<Box<Work>>,
    /// How often a longest step is halved; `None` where that is not known.
    halved: HashMap<i64, Option<u32>>,
    found: HashMap<(u32, i64), Option<Anchor>>,
}

/// The nodes of a block of records: values and weights, `[node][BLOCK]`.
pub(super) struct Near {
    pub values: Vec<f64>,
    pub weights: Vec<f64>,
    /// Whether a record has them.
    pub is_found: [bool; BLOCK],
}

/// The longest step in which s lies.
fn step_of(s: f64) -> i64 {
    (asinh(s) / LONGEST).round() as i64
}

/// The point that is nearest to s where steps were halved so often, and its place.
fn nearest(s: f64, halved: u32) -> i64 {
    (asinh(s) / LONGEST * f64::from(halved).exp2()).round() as i64
}

fn place(point: i64, halved: u32) -> f64 {
    (point as f64 * LONGEST * f64::from(halved).exp2().recip()).sinh()
}

impl<'a> Law<'a> {
    /// The law of a step as a function of the number `cut`, which is at `root` in the law's program.
    pub(super) fn as_single(
        &self,
        k: usize,
        (column, terms): (usize, &[Scalar]),
        (cut, root): (PrivateId, usize),
    ) -> Option<Single<'a>> {
        let step = &self.steps[k];
        let Design::Product(rules) = &self.design else {
            return None;
        };
        if step.support.range.is_none() || !step.given.is_empty() {
            return None;
        }
        let model = &self.density.model;
        let mut graphs = model.graphs.clone();
        graphs.private.refer_to(cut);
        let graph = &graphs.private;
        // What the terms need, but not what only the number needs.
        let mut needed = vec![false; graph.nodes().len()];
        let mut left: Vec<Scalar> = terms.to_vec();
        while let Some(s) = left.pop() {
            if let Scalar::Private(id) = s
                && !std::mem::replace(&mut needed[id.0 as usize], true)
                && id != cut
            {
                left.extend(operands(&graph.node(id).op));
            }
        }
        let order = model.needed_private_nodes(terms);
        let order: Vec<PrivateId> = (order.into_iter())
            .filter(|id| needed[id.0 as usize])
            .collect();
        let is_column = |id| {
            id == cut || matches!(graph.node(id).op, PrivateOp::Column(c) if c as usize == column)
        };
        let program = RowProgram::compile(&graphs, &order, terms, is_column);
        let position = program.columns().iter().position(|&id| id == cut)?;
        let of_outcome = program.columns().iter().position(|&id| id != cut)?;
        let length = |id| graphs.public.length(id);
        let interface = program.interface().map(|id| {
            let before = self.program.interface().take_while(|other| *other != id);
            let start: usize = before.map(length).sum();
            start..start + length(id)
        });
        let interface = interface.collect();
        let dependents = program.dependents(&[of_outcome]);
        let law = Law {
            density: self.density,
            made_at: self.made_at.clone(),
            sources: Vec::new(),
            steps: vec![Step {
                position: of_outcome,
                terms: (0..terms.len()).collect(),
                components: vec![(0..terms.len()).collect()],
                given: Vec::new(),
                standard: None,
                dependents: dependents.clone(),
                ..step.clone()
            }],
            of_outcomes: dependents,
            references: Vec::new(),
            joined_points: Vec::new(),
            design: Design::Product(vec![rules[k].clone()]),
            singles: Vec::new(),
            program,
        };
        Some(Single {
            root,
            law: Box::new(law),
            position,
            interface,
        })
    }

    /// The nodes of a step that sees records through a single number, for a block of records.
    pub(super) fn near(
        &self,
        (k, single): (usize, &Single),
        base: &[&[f64]],
        rows: usize,
        work: &mut Work,
    ) -> Near {
        let step = &self.steps[k];
        let any = [step.support.scale.back(1.0); BLOCK];
        let mut block = base.to_vec();
        block[step.position] = &any[..rows];
        self.program.forward(&block, rows, &mut work.program);
        let mut at = [f64::NAN; BLOCK];
        at[..rows].copy_from_slice((self.program).output(single.root, &block, rows, &work.program));
        let Work {
            program, lattices, ..
        } = work;
        let count = single.law.nodes();
        let mut near = Near {
            values: vec![0.0; count * BLOCK],
            weights: vec![0.0; count * BLOCK],
            is_found: [false; BLOCK],
        };
        let mut at_points = vec![0.0; count * BLOCK];
        let anchors = single.anchors(&at[..rows], &mut lattices[k]);
        for j in 0..count {
            for (i, anchor) in anchors.iter().enumerate() {
                if let Some(anchor) = anchor {
                    near.values[j * BLOCK + i] = anchor.values[j];
                    near.weights[j * BLOCK + i] = anchor.weights[j];
                    at_points[j * BLOCK + i] = anchor.log_densities[j];
                }
            }
        }
        let mut totals = [0.0; BLOCK];
        let mut log_densities = [0.0; BLOCK];
        for j in 0..count {
            let node = j * BLOCK..j * BLOCK + rows;
            let found = &mut log_densities[..rows];
            let again = (base, Some(&step.dependents));
            self.evaluate(step, again, &near.values[node.clone()], program, found);
            weigh_again(&mut near.weights[node.clone()], found, &at_points[node]);
            for (total, weight) in totals.iter_mut().zip(&near.weights[j * BLOCK..][..rows]) {
                *total += weight;
            }
        }
        for (is_found, total) in near.is_found.iter_mut().zip(&totals[..rows]) {
            *is_found = (total - 1.0).abs() < OFF;
        }
        for weights in near.weights.chunks_exact_mut(BLOCK) {
            for (weight, total) in weights.iter_mut().zip(&totals[..rows]) {
                *weight /= total;
            }
        }
        near
    }
}

vectorised! {
    /// Multiplies weights by how much more likely their nodes are than they were; what is 0 stays.
    fn weigh_again(weights: &mut [f64], log_densities: &[f64], before: &[f64]) {
        for ((weight, now), before) in weights.iter_mut().zip(log_densities).zip(before) {
            let weighed = *weight * exp(now - before);
            *weight = if *weight > 0.0 { weighed } else { 0.0 };
        }
    }
}

impl Single<'_> {
    /// The part of the whole law's interface that this one reads.
    pub fn lattice(&self, z: &[f64]) -> Lattice {
        let each = self.interface.iter().flat_map(|range| &z[range.clone()]);
        Lattice {
            z: each.copied().collect(),
            ..Lattice::default()
        }
    }

    /// The points nearest to these numbers.
    fn anchors<'l>(&self, numbers: &[f64], lattice: &'l mut Lattice) -> Vec<Option<&'l Anchor>> {
        if lattice.found.len() > KEPT {
            lattice.found.clear();
            lattice.halved.clear();
        }
        let is_number = |s: &&f64| s.is_finite();
        let mut new: Vec<i64> = (numbers.iter().filter(is_number))
            .map(|s| step_of(*s))
            .filter(|step| !lattice.halved.contains_key(step))
            .collect();
        new.sort_unstable();
        new.dedup();
        let wanted: Vec<(u32, i64)> = new.iter().map(|&step| (0, step)).collect();
        self.find(&wanted, lattice);
        for step in new {
            let middle = lattice.found[&(0, step)];
            let halved = middle.and_then(|middle| self.halved(step, &middle, lattice));
            lattice.halved.insert(step, halved);
        }
        let key = |s: &f64| {
            let halved = (*lattice.halved.get(&step_of(*s))?)?;
            s.is_finite().then(|| (halved, nearest(*s, halved)))
        };
        let keys: Vec<Option<(u32, i64)>> = numbers.iter().map(key).collect();
        let mut wanted: Vec<(u32, i64)> = (keys.iter().flatten())
            .filter(|key| !lattice.found.contains_key(key))
            .copied()
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        self.find(&wanted, lattice);
        let anchor = |key: Option<(u32, i64)>| lattice.found[&key?].as_ref();
        keys.into_iter().map(anchor).collect()
    }

    /// How often a step is halved, by how fast the law moves with s at its middle.
    fn halved(&self, step: i64, middle: &Anchor, lattice: &mut Lattice) -> Option<u32> {
        let ends = [-0.5, 0.5].map(|half| ((step as f64 + half) * LONGEST).sinh());
        let at_ends = ends.map(|s| self.log_densities(s, &middle.values, lattice));
        let moved = (middle.weights.iter().zip(&at_ends[0])).zip(&at_ends[1]);
        let moved = moved.filter(|((weight, _), _)| **weight > 0.0);
        let [mut mean, mut square] = [0.0; 2];
        for ((weight, low), high) in moved {
            mean += weight * (high - low);
            square += weight * (high - low).powi(2);
        }
        let sds = (square - mean * mean).max(0.0).sqrt();
        let halved = (sds / SHIFT).log2().ceil().max(0.0);
        (halved <= f64::from(HALVED)).then_some(halved as u32)
    }

    /// The log densities at these outcomes.
    fn log_densities(
        &self,
        s: f64,
        outcomes: &[f64; NODES],
        lattice: &mut Lattice,
    ) -> [f64; NODES] {
        let work = self.work(lattice);
        let column = [s; NODES];
        let mut base = vec![&outcomes[..]; 2];
        base[self.position] = &column;
        let mut found = [0.0; NODES];
        let step = &self.law.steps[0];
        (self.law).evaluate(step, (&base, None), outcomes, &mut work.program, &mut found);
        found
    }

    fn work<'w>(&self, lattice: &'w mut Lattice) -> &'w mut Work {
        let Lattice { z, work, .. } = lattice;
        work.get_or_insert_with(|| Box::new(self.law.work(z, BLOCK)))
    }

    /// Searches for the law at these points.
    fn find(&self, points: &[(u32, i64)], lattice: &mut Lattice) {
        let count = self.law.nodes();
        let mut values = vec![0.0; count * BLOCK];
        let mut weights = vec![0.0; count * BLOCK];
        for chunk in points.chunks(BLOCK) {
            let rows = chunk.len();
            let own: Vec<f64> = (chunk.iter())
                .map(|&(halved, point)| place(point, halved))
                .collect();
            let any = vec![0.0; rows];
            let mut base = vec![&any[..]; 2];
            base[self.position] = &own;
            let work = self.work(lattice);
            (self.law).find_nodes(&base, rows, work, &mut values, &mut weights);
            let mut found = vec![
                Anchor {
                    values: [0.0; NODES],
                    weights: [0.0; NODES],
                    log_densities: [0.0; NODES],
                };
                rows
            ];
            let mut log_densities = [0.0; BLOCK];
            let step = &self.law.steps[0];
            for j in 0..count {
                let trial = &values[j * BLOCK..][..rows];
                let into = &mut log_densities[..rows];
                (self.law).evaluate(step, (&base, None), trial, &mut work.program, into);
                for (i, anchor) in found.iter_mut().enumerate() {
                    anchor.values[j] = trial[i];
                    anchor.weights[j] = weights[j * BLOCK + i];
                    anchor.log_densities[j] = into[i];
                }
            }
            for (&point, anchor) in chunk.iter().zip(found) {
                let is_found = anchor.weights.iter().any(|w| *w > 0.0)
                    && (anchor.weights.iter().zip(&anchor.log_densities))
                        .all(|(w, l)| *w == 0.0 || l.is_finite());
                lattice.found.insert(point, is_found.then_some(anchor));
            }
        }
    }
}
