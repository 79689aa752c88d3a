//! Outcomes whose law is that of one standard variable, which each record moves and scales: a Student t
//! about a linear predictor, a gamma whose mean is one, a normal whose logarithm has a sd of its own.
//!
//! The standard variable t is a number of the model, such as `(y - mu) / sigma`: affine in a function u of the
//! outcome alone, t = a + b u, with a and b of the record. If t has the same law for all records, quantiles of y
//! are those of t brought back. The law of t is then searched for once, on a public record, and not for
//! each record again.
//!
//! Two things must hold. The log density reads records in such numbers alone, up to terms without the outcome: this
//! is seen in the model's graph. And the density of t is the same for public records, at public parameters: this
//! is computed. A gamma has both `beta * y` and `log(y) + log(beta)`, which are one variable; the predictors of
//! a mixture are two.

use std::sync::LazyLock;

use super::super::BLOCK;
use super::super::grid::{CELLS, Grid, finite};
use super::super::nodes::{NODES, Nodes, Rule};
use super::super::scale::Scale;
use super::super::support::Support;
use super::conditional::{Conditional, parts, search};
use super::{Law, RECORDS, Step, TOLERANCE, Work};
use crate::function::Unary;
use crate::model::{Binary, Model, PrivateId, PrivateOp, Scalar, operands};

/// The law of the standard variable is searched for on that one of so many public records at which it is
/// least moved, where least is lost to rounding.
pub(super) const REFERENCES: usize = 8;
/// By how much the log density of t may differ between records: rounding, and a numerical derivative.
const ALIKE: f64 = 1e-6;
/// Records that move t by more than this are not compared: rounding moves it, too.
const MOST_MOVED: f64 = 1e6;
/// The share of public records and places at which it must be known.
const JUDGED: f64 = 0.1;
/// The step of the numerical derivative.
const STEP: f64 = 1e-5;

/// The standard variable of an outcome.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Standard {
    /// Where it is among the program's roots.
    root: usize,
    /// From the outcome to u.
    scale: Scale,
}

impl Standard {
    /// The ends of the range of t = a + b u; `None` where they are not numbers.
    fn ends(&self, support: &Support, a: f64, b: f64) -> Option<[Option<f64>; 2]> {
        let mut ends = [f64::NEG_INFINITY, f64::INFINITY];
        for (end, own) in support.range?.into_iter().zip(&mut ends) {
            *own = end.map_or(*own, |end| self.scale.to(support.scale.back(end)));
            *own = a + b * *own;
        }
        let [low, high] = ends;
        let sorted = [low.min(high), low.max(high)];
        let are_numbers = !(low.is_nan() || high.is_nan());
        are_numbers.then(|| sorted.map(|end| finite(Some(end))))
    }
}

/// A number of a record's log density that may be its standard variable, by the graph alone.
pub(super) struct Candidate {
    pub scalar: Scalar,
    scale: Scale,
}

impl Candidate {
    /// The standard variable with this place among the roots.
    pub fn at(self, root: usize) -> Standard {
        Standard {
            root,
            scale: self.scale,
        }
    }
}

/// How a number depends on the outcome.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Reads {
    /// Not at all.
    Nothing,
    /// Only through the outcome itself, and numbers that may be its standard variable.
    Standard,
    /// The same up to terms without the outcome.
    StandardAndMore,
    Otherwise,
}

/// The numbers that may be the standard variable of an outcome with these terms; none for ints.
pub(super) fn candidates(model: &Model, column: usize, terms: &[Scalar]) -> Vec<Candidate> {
    if model.columns[column].is_int {
        return Vec::new();
    }
    let graph = &model.graphs.private;
    let order = model.needed_private_nodes(terms);
    let mut of_outcome = vec![false; graph.nodes().len()];
    for &id in &order {
        let op = &graph.node(id).op;
        let is_of = |s: &Scalar| matches!(s, Scalar::Private(p) if of_outcome[p.0 as usize]);
        let it_is = *op == PrivateOp::Column(column as u32) || operands(op).iter().any(is_of);
        of_outcome[id.0 as usize] = it_is;
    }
    let cone = Cone {
        model,
        column,
        order,
        of_outcome,
    };
    if !cone.is_standard(terms) {
        return Vec::new();
    }
    let found = cone.order.iter().rev().filter_map(|&id| {
        Some(Candidate {
            scalar: Scalar::Private(id),
            scale: cone.affine(id)?,
        })
    });
    found.collect()
}

/// The numbers behind an outcome's log density.
struct Cone<'a> {
    model: &'a Model,
    column: usize,
    order: Vec<PrivateId>,
    /// Whether a number depends on the outcome.
    of_outcome: Vec<bool>,
}

impl Cone<'_> {
    fn depends(&self, s: Scalar) -> bool {
        matches!(s, Scalar::Private(id) if self.of_outcome[id.0 as usize])
    }

    /// From the outcome to a function of it alone in which this number is affine and not itself such a function;
    /// `None` if there is none.
    fn affine(&self, id: PrivateId) -> Option<Scale> {
        if !self.of_outcome[id.0 as usize] {
            return None;
        }
        let inner = match &self.model.graphs.private.node(id).op {
            PrivateOp::Unary(Unary::Negate, a) => *a,
            PrivateOp::Binary(op, a, b) => match (op, self.depends(*a), self.depends(*b)) {
                (Binary::Add | Binary::Subtract | Binary::Multiply, true, false) => *a,
                (Binary::Add | Binary::Subtract | Binary::Multiply, false, true) => *b,
                (Binary::Divide, true, false) => *a,
                _ => return None,
            },
            PrivateOp::Linear(terms) => {
                let columns = terms.iter().filter_map(|t| t.column.map(Scalar::Private));
                let mut of_outcome = columns.filter(|&s| self.depends(s));
                let inner = of_outcome.next()?;
                of_outcome.next().is_none().then_some(inner)?
            }
            _ => return None,
        };
        let Scalar::Private(inner_id) = inner else {
            return None;
        };
        Scale::of(self.model, self.column, inner).or_else(|| self.affine(inner_id))
    }

    /// Whether the terms read the record only in numbers that may be a standard variable, up to terms without the
    /// outcome.
    fn is_standard(&self, terms: &[Scalar]) -> bool {
        let mut reads = vec![Reads::Nothing; self.of_outcome.len()];
        let read_of = |reads: &[Reads], s: Scalar| match s {
            Scalar::Private(id) => reads[id.0 as usize],
            Scalar::Number(_) | Scalar::Public(..) => Reads::Nothing,
        };
        for &id in self
            .order
            .iter()
            .filter(|id| self.of_outcome[id.0 as usize])
        {
            let op = &self.model.graphs.private.node(id).op;
            let all = operands(op);
            let at_worst = |worst: Reads| all.iter().all(|&s| read_of(&reads, s) <= worst);
            let is_standard = at_worst(Reads::Standard) && !all.iter().any(|s| self.is_own(*s));
            let keeps_sums = match *op {
                PrivateOp::Unary(Unary::Negate, _)
                | PrivateOp::Binary(Binary::Add | Binary::Subtract, ..)
                | PrivateOp::Linear(_) => true,
                PrivateOp::Binary(Binary::Multiply, a, b) => {
                    self.depends(a) != self.depends(b) && !self.is_own(a) && !self.is_own(b)
                }
                PrivateOp::Binary(Binary::Divide, _, b) => !b.is_private(),
                // The outcome alone says which, as where it is 0.
                PrivateOp::Select(condition, ..) => read_of(&reads, condition) == Reads::Standard,
                _ => false,
            };
            reads[id.0 as usize] = if is_standard || self.affine(id).is_some() {
                Reads::Standard
            } else if keeps_sums && at_worst(Reads::StandardAndMore) {
                Reads::StandardAndMore
            } else {
                Reads::Otherwise
            };
        }
        terms
            .iter()
            .all(|&s| read_of(&reads, s) != Reads::Otherwise)
    }

    /// Whether a number is the record's, and not the outcome's.
    fn is_own(&self, s: Scalar) -> bool {
        s.is_private() && !self.depends(s)
    }
}

/// The affine functions t = a + b u of a block of records.
struct Lines {
    a: [f64; BLOCK],
    b: [f64; BLOCK],
}

/// The law of a standard variable at some parameters.
struct StandardLaw {
    /// One for each component.
    grids: Vec<Grid>,
    log_mass: f64,
    /// The record on which it was searched for.
    record: usize,
}

impl StandardLaw {
    fn nodes(&self, rules: &[Rule]) -> Option<Nodes> {
        let mut nodes = Nodes {
            values: [0.0; NODES],
            weights: [0.0; NODES],
        };
        distribution(&self.grids)?.nodes(rules, &mut nodes);
        nodes.values.iter().all(|t| t.is_finite()).then_some(nodes)
    }
}

/// That of a variable without atoms; `None` if some of its mass is nowhere or has no end.
fn distribution(grids: &[Grid]) -> Option<Conditional<'_>> {
    static PLAIN: LazyLock<Scale> = LazyLock::new(Scale::default);
    let (parts, leaves) = parts(grids.iter());
    let found = Conditional::new((&[], &PLAIN), std::iter::empty(), parts, false);
    found.ok().filter(|_| !leaves)
}

/// The nodes of a standard variable, brought back to the outcomes of a block of records.
pub(super) struct Moved<'a> {
    nodes: Nodes,
    lines: Lines,
    scale: &'a Scale,
    /// Whether a record has a law.
    is_found: [bool; BLOCK],
}

impl Moved<'_> {
    pub fn value(&self, node: usize, record: usize) -> f64 {
        let t = self.nodes.values[node];
        let u = (t - self.lines.a[record]) / self.lines.b[record];
        self.scale.back(u)
    }

    pub fn weight(&self, node: usize, record: usize) -> f64 {
        if self.is_found[record] {
            self.nodes.weights[node]
        } else {
            0.0
        }
    }
}

impl Law<'_> {
    /// The nodes of a step that has a standard variable, for a block of records; `None` where its law is not found
    /// at these parameters.
    pub(super) fn moved<'a>(
        &self,
        (k, standard): (usize, &'a Standard),
        rules: &[Rule],
        base: &[&[f64]],
        rows: usize,
        work: &mut Work,
    ) -> Option<Moved<'a>> {
        let step = &self.steps[k];
        if work.standards[k].is_none() {
            let base: Vec<&[f64]> = self.references.iter().map(Vec::as_slice).collect();
            let searched = self.search_standard((step, standard), &base, REFERENCES, work);
            work.standards[k] = Some(searched.and_then(|found| found.nodes(rules)));
        }
        let mut moved = Moved {
            nodes: work.standards[k].flatten()?,
            lines: self.lines(step, standard, base, rows, work),
            scale: &standard.scale,
            is_found: [false; BLOCK],
        };
        // Where the log density is not a number, there is no law, as with a scale below 0.
        let middle = rules.iter().map(Rule::len).sum::<usize>() / 2;
        let middle: Vec<f64> = (0..rows).map(|i| moved.value(middle, i)).collect();
        let mut log_densities = [0.0; BLOCK];
        let found = &mut log_densities[..rows];
        let again = (base, Some(&step.dependents));
        self.evaluate(step, again, &middle, &mut work.program, found);
        let is_found = found.iter().map(|x: &f64| x.is_finite());
        let own = moved.is_found.iter_mut().zip(is_found);
        own.for_each(|(own, it_is)| *own = it_is);
        Some(moved)
    }

    /// The distribution of the standard variable, by that one of these records that moves it least.
    fn search_standard(
        &self,
        (step, standard): (&Step, &Standard),
        base: &[&[f64]],
        rows: usize,
        work: &mut Work,
    ) -> Option<StandardLaw> {
        let lines = self.lines(step, standard, base, rows, work);
        let is_line = |&i: &usize| (lines.a[i] / lines.b[i]).is_finite();
        let size = |i: usize| lines.a[i].abs();
        let own = (0..rows).filter(is_line);
        let own = own.min_by(|&i, &j| size(i).total_cmp(&size(j)))?;
        let (a, b) = (lines.a[own], lines.b[own]);
        let columns: Vec<[f64; CELLS]> = base.iter().map(|column| [column[own]; CELLS]).collect();
        let base: Vec<&[f64]> = columns.iter().map(<[f64; CELLS]>::as_slice).collect();
        let [low, high] = standard.ends(&step.support, a, b)?;
        let mut grids = vec![Grid::over(false, low, high); step.components.len()];
        for (grid, terms) in grids.iter_mut().zip(&step.components) {
            search(std::slice::from_mut(grid), |grid| {
                let grid = &mut grid[0];
                let u: [f64; CELLS] = std::array::from_fn(|cell| (grid.middle(cell) - a) / b);
                let found = self.log_densities_of_t((step, standard, terms), &u, b, &base, work);
                for (cell, log_density) in found.into_iter().enumerate() {
                    grid.put(cell, log_density, grid.middle(cell));
                }
            });
        }
        let log_mass = distribution(&grids)?.log_mass;
        Some(StandardLaw {
            grids,
            log_mass,
            record: own,
        })
    }

    /// The log densities of t = a + b u at these u by these terms, each with a record of `base`.
    fn log_densities_of_t(
        &self,
        (step, standard, terms): (&Step, &Standard, &[usize]),
        u: &[f64],
        b: f64,
        base: &[&[f64]],
        work: &mut Work,
    ) -> Vec<f64> {
        let trial: Vec<f64> = u.iter().map(|&u| standard.scale.back(u)).collect();
        let mut found = vec![0.0; u.len()];
        let mut block = base.to_vec();
        block[step.position] = &trial;
        self.evaluate_block((terms, None), &block, &mut work.program, &mut found);
        // The density is that of a variate, which may be another function of the outcome than u.
        let scale = &step.support.scale;
        for (log_density, &u) in found.iter_mut().zip(u) {
            let slope = if *scale == standard.scale {
                1.0
            } else {
                let half = STEP * (1.0 + u.abs());
                let variate = |u: f64| scale.to(standard.scale.back(u));
                (variate(u + half) - variate(u - half)) / (2.0 * half)
            };
            *log_density += (slope / b).abs().ln();
        }
        found
    }

    /// t at two outcomes gives a and b.
    fn lines(
        &self,
        step: &Step,
        standard: &Standard,
        base: &[&[f64]],
        rows: usize,
        work: &mut Work,
    ) -> Lines {
        let mut at = |u: f64, is_again: bool| {
            let mut t = [0.0; BLOCK];
            let trial = [standard.scale.back(u); BLOCK];
            let mut block = base.to_vec();
            block[step.position] = &trial[..rows];
            if is_again {
                (self.program).forward_again(&step.dependents, &block, rows, &mut work.program);
            } else {
                self.program.forward(&block, rows, &mut work.program);
            }
            let of_root = (self.program).output(standard.root, &block, rows, &work.program);
            t[..rows].copy_from_slice(of_root);
            t
        };
        let (a, at_one) = (at(0.0, false), at(1.0, true));
        Lines {
            a,
            b: std::array::from_fn(|i| at_one[i] - a[i]),
        }
    }

    /// How far the log of the integral of a step's standard variable is from 0, on its support and at the worst of the
    /// public places; `None` unless it has the same law for all public records, at each of these, and that is a
    /// density.
    pub(super) fn standard_off_one(
        &self,
        step: &Step,
        records: &[Vec<f64>],
        places: &[Vec<f64>],
    ) -> Option<f64> {
        let is_continuous = step.support.range.is_some() && step.support.atoms.is_empty();
        let standard = step.standard.as_ref().filter(|_| is_continuous)?;
        let mut off_one = 0.0_f64;
        let rules = Rule::of_parts(step.components.len(), NODES);
        let base: Vec<&[f64]> = self.sources.iter().map(|&c| &records[c][..]).collect();
        let mut judged = 0;
        for theta in places {
            let mut work = self.work(&self.interface(theta), RECORDS);
            let searched = self.search_standard((step, standard), &base, RECORDS, &mut work);
            let Some(found) = searched else {
                continue;
            };
            let Some(nodes) = found.nodes(&rules) else {
                continue;
            };
            off_one = off_one.max(found.log_mass.abs());
            if off_one > TOLERANCE {
                return None;
            }
            let lines = self.lines(step, standard, &base, RECORDS, &mut work);
            let mut at_nodes = |i: usize| {
                let (a, b) = (lines.a[i], lines.b[i]);
                let columns: Vec<[f64; NODES]> = base.iter().map(|c| [c[i]; NODES]).collect();
                let base: Vec<&[f64]> = columns.iter().map(<[f64; NODES]>::as_slice).collect();
                let u = nodes.values.map(|t| (t - a) / b);
                self.log_densities_of_t((step, standard, &step.terms), &u, b, &base, &mut work)
            };
            let ends = |i: usize| standard.ends(&step.support, lines.a[i], lines.b[i]);
            let expected = at_nodes(found.record);
            let is_near = |i: &usize| lines.a[*i].abs() < MOST_MOVED;
            for i in (0..RECORDS).filter(is_near) {
                let own = at_nodes(i);
                if !own.iter().any(|x| x.is_finite()) {
                    continue;
                }
                let mut both = own.iter().zip(&expected);
                let are_alike = both.all(|(x, y)| (x - y).abs() <= ALIKE * (1.0 + y.abs()));
                if !are_alike || ends(i) != ends(found.record) {
                    return None;
                }
                judged += 1;
            }
        }
        let is_judged = judged as f64 > JUDGED * (RECORDS * places.len()) as f64;
        is_judged.then_some(off_one)
    }
}
