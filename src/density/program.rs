//! One record's log-likelihood and gradient, for a block of records at a time.
//!
//! The private half of a model is compiled to a straight list of instructions
//! over registers of [`BLOCK`] numbers. A forward sweep gives every record's
//! log-likelihood; a reverse sweep gives, per record, one number for each place
//! where parameters enter (the *interface*): a scalar shared by all records, a
//! linear predictor, or a gathered element. From these and the Jacobian of the
//! interface follow each record's own gradient, without a matrix of all records by all parameters.

mod binary;
mod compile;
mod products;

pub(super) use binary::{binary_values, pull_back_left, pull_back_right};

use binary::{select, select_pull_back};
use products::{Terms, add_index, add_scaled, dot, pick};

use serde::{Deserialize, Serialize};

use super::frame::Frame;
use crate::function::Unary;
use crate::model::{Binary, PrivateId, PublicId};

/// Records per block: registers of this length stay in the first-level cache.
pub const BLOCK: usize = 256;

/// Where an instruction reads from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Source {
    Register(usize),
    Column(usize),
}

#[derive(Debug, Clone)]
enum Operation {
    Unary(Unary, Source),
    Binary(Binary, Source, Source),
    Select(Source, Source, Source),
    Linear(Vec<LinearTerm>),
    Gather {
        /// Position of the table in the interface, and its length.
        table: usize,
        length: usize,
        offset: usize,
        strides: Vec<(usize, Source)>,
        /// A table of constants instead of a part of the interface.
        constants: Option<Vec<f64>>,
    },
}

#[derive(Debug, Clone)]
struct LinearTerm {
    scale: f64,
    /// Position in the interface.
    place: Option<usize>,
    column: Option<Source>,
}

#[derive(Debug, Clone)]
struct Instruction {
    operation: Operation,
    register: usize,
    /// Whether the reverse sweep, or an instruction that it needs, reads the
    /// value; if not, a gradient skips it.
    value_needed_for_gradient: bool,
}

/// A compiled private half.
#[derive(Debug, Clone)]
pub struct RowProgram {
    instructions: Vec<Instruction>,
    registers: usize,
    /// Registers that hold one number for the whole block.
    fixed: Vec<(usize, f64)>,
    /// Registers that hold one interface place for the whole block.
    shared: Vec<(usize, usize)>,
    /// Where the results are, one per root.
    outputs: Vec<Source>,
    /// Private nodes that must be passed in as columns.
    columns: Vec<PrivateId>,
    /// Public vectors that make up the interface, with their starts.
    interface: Vec<(PublicId, usize)>,
    interface_length: usize,
    /// Whether the adjoint of a register leads to a parameter.
    differentiable: Vec<bool>,
}

/// The rows of the Jacobian of the interface, dz/dtheta, without zeros.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Jacobian {
    pub dimension: usize,
    /// One list of `(coordinate, derivative)` per interface place.
    pub rows: Vec<Vec<(usize, f64)>>,
    /// `[coordinate][place]`, where there are few zeros.
    dense: Vec<f64>,
}

/// A Jacobian in two parts, where records pick places that have coordinates of their own, such as
/// the intercepts of groups: each record's gradient is 0 for most of these.
#[derive(Debug)]
pub struct Sparse {
    /// The derivatives by the coordinates that are nobody's own.
    common: Jacobian,
    /// These coordinates.
    coordinates: Vec<usize>,
    /// The coordinate that is a place's own, and its derivative.
    own: Vec<Option<(usize, f64)>>,
}

/// One coordinate of each record's gradient, and the derivative by it.
#[derive(Debug, Clone)]
pub struct Picked {
    pub coordinates: [usize; BLOCK],
    pub derivatives: [f64; BLOCK],
}

/// The fewest coordinates of their own for which two parts are quicker than one.
const SPARSE: usize = 16;

impl Sparse {
    /// The coordinates that are nobody's own.
    pub fn coordinates(&self) -> &[usize] {
        &self.coordinates
    }
}

impl Jacobian {
    pub fn new(dimension: usize, rows: Vec<Vec<(usize, f64)>>) -> Jacobian {
        let places = rows.len();
        let entries: usize = rows.iter().map(Vec::len).sum();
        let mut dense = Vec::new();
        if 2 * entries > dimension * places {
            dense.resize(dimension * places, 0.0);
            for (place, row) in rows.iter().enumerate() {
                for &(j, w) in row {
                    dense[j * places + place] += w;
                }
            }
        }
        Jacobian {
            dimension,
            rows,
            dense,
        }
    }

    /// dz/du of the frame's coordinates u.
    pub fn in_frame(&self, frame: &Frame) -> Jacobian {
        let row = |row: &Vec<(usize, f64)>| {
            let mut dense = vec![0.0; self.dimension];
            for &(j, w) in row {
                dense[j] = w;
            }
            let pulled = frame.pull_back(&dense).into_iter().enumerate();
            pulled.filter(|&(_, w)| w != 0.0).collect()
        };
        Jacobian::new(frame.coordinates(), self.rows.iter().map(row).collect())
    }

    /// Whether each place is a coordinate, or a constant.
    pub(super) fn is_constant(&self) -> bool {
        self.rows
            .iter()
            .all(|row| matches!(row[..], [] | [(_, 1.0)]))
    }

    /// Adds the gradients of records whose place has the adjoint that is given.
    fn add_picked(&self, places: &[usize], adjoint: &[f64], gradients: &mut [f64]) {
        if !self.dense.is_empty() {
            let of_coordinates = self.dense.chunks_exact(self.rows.len());
            for (table, into) in of_coordinates.zip(gradients.chunks_exact_mut(BLOCK)) {
                for ((g, &place), r) in into.iter_mut().zip(places).zip(adjoint) {
                    *g += table[place] * r;
                }
            }
            return;
        }
        for (i, (&place, r)) in places.iter().zip(adjoint).enumerate() {
            for &(j, w) in &self.rows[place] {
                gradients[j * BLOCK + i] += w * r;
            }
        }
    }

    /// The Jacobian for coordinates that are the `q` places of the interface themselves.
    pub fn identity(q: usize) -> Jacobian {
        Jacobian::new(q, (0..q).map(|k| vec![(k, 1.0)]).collect())
    }
}

/// Working memory of one thread.
pub struct Scratch {
    values: Vec<f64>,
    adjoints: Vec<f64>,
    /// `scale * z` of every linear term with a column, in program order.
    coefficients: Vec<f64>,
    /// The sum of the terms without a column, per linear instruction.
    offsets: Vec<f64>,
    z: Vec<f64>,
    gradients: Vec<f64>,
}

impl RowProgram {
    pub fn columns(&self) -> &[PrivateId] {
        &self.columns
    }

    /// The public vectors whose concatenation is the interface `z`.
    pub fn interface(&self) -> impl Iterator<Item = PublicId> + '_ {
        self.interface.iter().map(|&(id, _)| id)
    }

    pub fn interface_length(&self) -> usize {
        self.interface_length
    }

    /// The vectors of the interface from which a record looks up an element.
    pub(super) fn looked_up(&self) -> Vec<PublicId> {
        let is_table = |start: usize| {
            self.instructions.iter().any(|i| match &i.operation {
                Operation::Gather {
                    table, constants, ..
                } => constants.is_none() && *table == start,
                _ => false,
            })
        };
        let tables = self.interface.iter().filter(|(_, start)| is_table(*start));
        tables.map(|&(id, _)| id).collect()
    }

    /// Whether a column multiplies a place of the interface, or picks one.
    pub fn multiplies_columns(&self) -> bool {
        self.instructions.iter().any(|i| match &i.operation {
            Operation::Linear(terms) => {
                (terms.iter()).any(|t| t.place.is_some() && t.column.is_some())
            }
            Operation::Gather { constants, .. } => constants.is_none(),
            _ => false,
        })
    }

    /// Working memory for interface values `z`; `dimension` is the number of
    /// unconstrained coordinates, for gradients.
    pub fn scratch(&self, z: &[f64], dimension: usize) -> Scratch {
        let mut scratch = Scratch {
            values: vec![0.0; self.registers * BLOCK],
            adjoints: vec![0.0; self.registers * BLOCK],
            coefficients: Vec::new(),
            offsets: Vec::new(),
            z: vec![0.0; z.len()],
            gradients: vec![0.0; dimension * BLOCK],
        };
        for &(register, value) in &self.fixed {
            scratch.values[register * BLOCK..(register + 1) * BLOCK].fill(value);
        }
        self.set_interface(&mut scratch, z);
        scratch
    }

    /// Makes working memory of this program that for other interface values.
    pub fn set_interface(&self, scratch: &mut Scratch, z: &[f64]) {
        scratch.z.copy_from_slice(z);
        for &(register, place) in &self.shared {
            scratch.values[register * BLOCK..(register + 1) * BLOCK].fill(z[place]);
        }
        scratch.coefficients.clear();
        scratch.offsets.clear();
        for instruction in &self.instructions {
            if let Operation::Linear(terms) = &instruction.operation {
                let mut offset = 0.0;
                for term in terms {
                    let coefficient = term.scale * term.place.map_or(1.0, |p| z[p]);
                    match term.column {
                        Some(_) => scratch.coefficients.push(coefficient),
                        None => offset += coefficient,
                    }
                }
                scratch.offsets.push(offset);
            }
        }
    }

    /// Computes every root for `rows` records; `columns` are in the order of
    /// [`RowProgram::columns`].
    pub fn forward(&self, columns: &[&[f64]], rows: usize, scratch: &mut Scratch) {
        self.sweep(columns, rows, scratch, false);
    }

    /// The number of roots.
    pub fn outputs(&self) -> usize {
        self.outputs.len()
    }

    /// The values of a root after a forward sweep.
    pub fn output<'a>(
        &self,
        root: usize,
        columns: &[&'a [f64]],
        rows: usize,
        scratch: &'a Scratch,
    ) -> &'a [f64] {
        read(self.outputs[root], columns, &scratch.values, rows)
    }

    /// Every record's gradient of the first root with respect to the
    /// unconstrained parameters. Coordinate `j` of record `i` is at
    /// `j * BLOCK + i`.
    pub fn gradients<'a>(
        &self,
        columns: &[&[f64]],
        rows: usize,
        jacobian: &Jacobian,
        scratch: &'a mut Scratch,
    ) -> &'a [f64] {
        self.sweep(columns, rows, scratch, true);
        self.reverse(columns, rows, None, scratch);
        self.pulled_back(columns, rows, jacobian, scratch)
    }

    /// The two parts of a Jacobian; none where one is better.
    pub fn sparse(&self, jacobian: &Jacobian) -> Option<Sparse> {
        let mut looked_up = vec![false; jacobian.rows.len()];
        let mut seen_otherwise = looked_up.clone();
        for &(_, place) in &self.shared {
            seen_otherwise[place] = true;
        }
        for instruction in &self.instructions {
            match &instruction.operation {
                Operation::Gather {
                    table,
                    length,
                    constants: None,
                    ..
                } => looked_up[*table..table + length].fill(true),
                Operation::Linear(terms) => {
                    for place in terms.iter().filter_map(|t| t.place) {
                        seen_otherwise[place] = true;
                    }
                }
                _ => {}
            }
        }
        let mut places_of = vec![0; jacobian.dimension];
        for &(j, _) in jacobian.rows.iter().flatten() {
            places_of[j] += 1;
        }
        let own = |(place, row): (usize, &Vec<(usize, f64)>)| {
            let is_picked_only = looked_up[place] && !seen_otherwise[place];
            let mut of_place = row.iter().filter(|(j, _)| places_of[*j] == 1);
            of_place.next().copied().filter(|_| is_picked_only)
        };
        let own: Vec<_> = jacobian.rows.iter().enumerate().map(own).collect();
        let mut is_own = vec![false; jacobian.dimension];
        for (j, _) in own.iter().flatten() {
            is_own[*j] = true;
        }
        let coordinates: Vec<usize> = (0..jacobian.dimension).filter(|&j| !is_own[j]).collect();
        if own.iter().flatten().count() < coordinates.len().max(SPARSE) {
            return None;
        }
        let position = |j: usize| coordinates.binary_search(&j).ok();
        let row = |row: &Vec<(usize, f64)>| {
            let common = row.iter().filter_map(|&(j, w)| Some((position(j)?, w)));
            common.collect()
        };
        let rows = jacobian.rows.iter().map(row).collect();
        Some(Sparse {
            common: Jacobian::new(coordinates.len(), rows),
            coordinates,
            own,
        })
    }

    /// [`RowProgram::gradients`] in two parts: the coordinates that are nobody's own, and for each
    /// place that a record picks, its own. No coordinate is picked twice by a record, but with a
    /// derivative of zero.
    pub fn gradients_in_parts<'a>(
        &self,
        columns: &[&[f64]],
        rows: usize,
        sparse: &Sparse,
        scratch: &'a mut Scratch,
        picked: &mut Vec<Picked>,
    ) -> &'a [f64] {
        self.sweep(columns, rows, scratch, true);
        self.reverse(columns, rows, None, scratch);
        picked.clear();
        for instruction in &self.instructions {
            let Operation::Gather {
                constants: None, ..
            } = &instruction.operation
            else {
                continue;
            };
            let mut places = [0; BLOCK];
            gather_places(
                &instruction.operation,
                columns,
                &scratch.values,
                &mut places[..rows],
            );
            let adjoint = &scratch.adjoints[instruction.register * BLOCK..];
            let mut own = Picked {
                coordinates: [0; BLOCK],
                derivatives: [0.0; BLOCK],
            };
            for i in 0..rows {
                let Some((j, w)) = sparse.own[places[i]] else {
                    continue;
                };
                (own.coordinates[i], own.derivatives[i]) = (j, w * adjoint[i]);
                for earlier in picked.iter_mut() {
                    if earlier.coordinates[i] == j {
                        earlier.derivatives[i] += std::mem::take(&mut own.derivatives[i]);
                    }
                }
            }
            picked.push(own);
        }
        self.pulled_back(columns, rows, &sparse.common, scratch)
    }

    /// Every record's gradient, from the adjoints of a reverse sweep.
    fn pulled_back<'a>(
        &self,
        columns: &[&[f64]],
        rows: usize,
        jacobian: &Jacobian,
        scratch: &'a mut Scratch,
    ) -> &'a [f64] {
        let Scratch {
            values,
            adjoints,
            gradients,
            ..
        } = scratch;
        let gradients = &mut gradients[..jacobian.dimension * BLOCK];
        gradients.fill(0.0);
        let adjoint = |register: usize| &adjoints[register * BLOCK..register * BLOCK + rows];
        for &(register, place) in &self.shared {
            for &(j, w) in &jacobian.rows[place] {
                let into = &mut gradients[j * BLOCK..j * BLOCK + rows];
                add_scaled(w, adjoint(register), None, into);
            }
        }
        for instruction in &self.instructions {
            let r = adjoint(instruction.register);
            match &instruction.operation {
                Operation::Linear(terms) => {
                    let column = |term: &LinearTerm| {
                        (term.column).map(|source| read(source, columns, values, rows))
                    };
                    add_linear(terms, jacobian, column, r, gradients);
                }
                Operation::Gather {
                    constants: None, ..
                } => {
                    let mut places = [0; BLOCK];
                    let places = &mut places[..rows];
                    gather_places(&instruction.operation, columns, values, places);
                    jacobian.add_picked(places, r, gradients);
                }
                _ => {}
            }
        }
        gradients
    }

    /// Adds the gradient with respect to the interface, summed over the records
    /// that `counts` keeps, to `into`. Call after [`RowProgram::forward`].
    pub fn add_interface_gradient(
        &self,
        columns: &[&[f64]],
        counts: &[bool],
        scratch: &mut Scratch,
        into: &mut [f64],
    ) {
        let rows = counts.len();
        self.reverse(columns, rows, Some(counts), scratch);
        let Scratch {
            values, adjoints, ..
        } = scratch;
        let adjoint = |register: usize| &adjoints[register * BLOCK..register * BLOCK + rows];
        for &(register, place) in &self.shared {
            into[place] += dot(adjoint(register), None);
        }
        for instruction in &self.instructions {
            let r = adjoint(instruction.register);
            match &instruction.operation {
                Operation::Linear(terms) => {
                    for term in terms {
                        let Some(place) = term.place else { continue };
                        let column = term.column.map(|s| read(s, columns, values, rows));
                        into[place] += term.scale * dot(r, column);
                    }
                }
                Operation::Gather {
                    constants: None, ..
                } => {
                    let mut places = [0; BLOCK];
                    let places = &mut places[..rows];
                    gather_places(&instruction.operation, columns, values, places);
                    for (&place, r) in places.iter().zip(r) {
                        into[place] += r;
                    }
                }
                _ => {}
            }
        }
    }

    fn sweep(&self, columns: &[&[f64]], rows: usize, scratch: &mut Scratch, for_gradient: bool) {
        let (mut coefficient, mut linear) = (0, 0);
        let Scratch {
            values,
            coefficients,
            offsets,
            z,
            ..
        } = scratch;
        for instruction in &self.instructions {
            let skip = for_gradient && !instruction.value_needed_for_gradient;
            let start = instruction.register * BLOCK;
            // An instruction's register comes after those that it reads.
            let (before, after) = values.split_at_mut(start);
            let out = &mut after[..rows];
            if let Operation::Linear(terms) = &instruction.operation {
                let with_columns = terms.iter().filter(|t| t.column.is_some()).count();
                if !skip {
                    let sources = terms.iter().filter_map(|t| t.column);
                    let sum = Terms {
                        columns: sources.map(|s| read(s, columns, before, rows)).collect(),
                        constant: &offsets[linear..linear + 1],
                        weights: &coefficients[coefficient..coefficient + with_columns],
                    };
                    sum.sum(out);
                }
                coefficient += with_columns;
                linear += 1;
                continue;
            }
            if skip {
                continue;
            }
            match &instruction.operation {
                Operation::Unary(f, a) => {
                    (f.definition().map)(read(*a, columns, before, rows), out)
                }
                Operation::Binary(op, a, b) => binary_values(
                    *op,
                    read(*a, columns, before, rows),
                    read(*b, columns, before, rows),
                    out,
                ),
                Operation::Select(c, a, b) => {
                    let (c, a, b) = (
                        read(*c, columns, before, rows),
                        read(*a, columns, before, rows),
                        read(*b, columns, before, rows),
                    );
                    select(c, a, b, out);
                }
                Operation::Gather {
                    constants, table, ..
                } => {
                    let mut places = [0; BLOCK];
                    let places = &mut places[..rows];
                    gather_places(&instruction.operation, columns, before, places);
                    let (from, first) = match constants {
                        Some(values) => (values, *table),
                        None => (&*z, 0),
                    };
                    for (o, place) in out.iter_mut().zip(places) {
                        *o = from[*place - first];
                    }
                }
                Operation::Linear(_) => {}
            }
        }
    }

    /// Adjoints of all registers, for an adjoint of one at the first root; of zero for records that
    /// do not count.
    fn reverse(
        &self,
        columns: &[&[f64]],
        rows: usize,
        counts: Option<&[bool]>,
        scratch: &mut Scratch,
    ) {
        let Scratch {
            values, adjoints, ..
        } = scratch;
        for adjoints in adjoints.chunks_exact_mut(BLOCK) {
            adjoints[..rows].fill(0.0);
        }
        let Some(Source::Register(root)) = self.outputs.first().copied() else {
            return;
        };
        let seeds = &mut adjoints[root * BLOCK..root * BLOCK + rows];
        match counts {
            None => seeds.fill(1.0),
            Some(counts) => {
                for (seed, &counts) in seeds.iter_mut().zip(counts) {
                    *seed = f64::from(u8::from(counts));
                }
            }
        }
        for instruction in self.instructions.iter().rev() {
            if !self.differentiable[instruction.register] {
                continue;
            }
            let start = instruction.register * BLOCK;
            let (before, after) = adjoints.split_at_mut(start);
            let adjoint = &after[..rows];
            let value = &values[start..start + rows];
            let differentiable = |source: Source| match source {
                Source::Register(r) if self.differentiable[r] => Some(r * BLOCK),
                _ => None,
            };
            match &instruction.operation {
                Operation::Unary(f, a) => {
                    if let Some(into) = differentiable(*a) {
                        (f.definition().pull_back)(
                            read(*a, columns, values, rows),
                            value,
                            adjoint,
                            &mut before[into..into + rows],
                        );
                    }
                }
                Operation::Binary(op, a, b) => {
                    let (x, y) = (
                        read(*a, columns, values, rows),
                        read(*b, columns, values, rows),
                    );
                    if let Some(into) = differentiable(*a) {
                        let into = &mut before[into..into + rows];
                        pull_back_left(*op, x, y, adjoint, into);
                    }
                    if let Some(into) = differentiable(*b) {
                        let into = &mut before[into..into + rows];
                        pull_back_right(*op, x, y, value, adjoint, into);
                    }
                }
                Operation::Select(c, a, b) => {
                    let c = read(*c, columns, values, rows);
                    for (source, wanted) in [(*a, true), (*b, false)] {
                        if let Some(into) = differentiable(source) {
                            let into = &mut before[into..into + rows];
                            select_pull_back(c, wanted, adjoint, into);
                        }
                    }
                }
                // Places of the interface: the adjoint stays there.
                Operation::Linear(_) | Operation::Gather { .. } => {}
            }
        }
    }
}

fn read<'a>(source: Source, columns: &[&'a [f64]], values: &'a [f64], rows: usize) -> &'a [f64] {
    match source {
        Source::Register(r) => &values[r * BLOCK..r * BLOCK + rows],
        Source::Column(c) => &columns[c][..rows],
    }
}

/// Adds to each record's gradient what its linear predictor contributes, whose adjoint is given.
fn add_linear<'a>(
    terms: &[LinearTerm],
    jacobian: &Jacobian,
    column: impl Fn(&LinearTerm) -> Option<&'a [f64]>,
    adjoint: &[f64],
    gradients: &mut [f64],
) {
    let d = jacobian.dimension;
    let places = || {
        terms
            .iter()
            .filter_map(|t| Some((t, &jacobian.rows[t.place?])))
    };
    let entries: usize = places().map(|(_, row)| row.len()).sum();
    if 2 * entries <= d * places().count() {
        for (term, row) in places() {
            for &(j, w) in row {
                let into = &mut gradients[j * BLOCK..j * BLOCK + adjoint.len()];
                add_scaled(term.scale * w, adjoint, column(term), into);
            }
        }
        return;
    }
    let (mut constant, mut weights) = (vec![0.0; d], Vec::with_capacity(d * terms.len()));
    let mut columns = Vec::with_capacity(terms.len());
    for (term, row) in places() {
        let into = match column(term) {
            Some(column) => {
                columns.push(column);
                weights.resize(columns.len() * d, 0.0);
                &mut weights[(columns.len() - 1) * d..]
            }
            None => &mut constant[..],
        };
        for &(j, w) in row {
            into[j] += term.scale * w;
        }
    }
    let sum = Terms {
        columns,
        constant: &constant,
        weights: &weights,
    };
    sum.add_times(adjoint, d, gradients);
}

/// The interface places (or table positions) that records pick. An index that is not a number, as
/// in a record with missing values, picks the first.
fn gather_places(operation: &Operation, columns: &[&[f64]], values: &[f64], places: &mut [usize]) {
    let Operation::Gather {
        table,
        length,
        offset,
        strides,
        ..
    } = operation
    else {
        return;
    };
    let mut positions = [*offset as f64; BLOCK];
    let positions = &mut positions[..places.len()];
    for &(stride, source) in strides {
        let indices = read(source, columns, values, places.len());
        add_index(stride as f64, indices, positions);
    }
    pick(positions, *table, *length, places);
}
