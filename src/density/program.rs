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

pub(super) use binary::{binary_values, pull_back_left, pull_back_right};

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
#[derive(Debug, Clone, Default)]
pub struct Jacobian {
    pub dimension: usize,
    /// One list of `(coordinate, derivative)` per interface place.
    pub rows: Vec<Vec<(usize, f64)>>,
}

impl Jacobian {
    /// dz/du of the frame's coordinates u.
    pub fn in_frame(&self, frame: &Frame) -> Jacobian {
        let row = |row: &Vec<(usize, f64)>| {
            let mut dense = vec![0.0; self.dimension];
            for &(j, w) in row {
                dense[j] = w;
            }
            frame.pull_back(&dense).into_iter().enumerate().collect()
        };
        Jacobian {
            dimension: frame.coordinates(),
            rows: self.rows.iter().map(row).collect(),
        }
    }

    /// Whether each place is a coordinate, or a constant.
    pub(super) fn is_constant(&self) -> bool {
        self.rows
            .iter()
            .all(|row| matches!(row[..], [] | [(_, 1.0)]))
    }

    /// The Jacobian for coordinates that are the `q` places of the interface themselves.
    pub fn identity(q: usize) -> Jacobian {
        Jacobian {
            dimension: q,
            rows: (0..q).map(|k| vec![(k, 1.0)]).collect(),
        }
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
    temporary: Vec<f64>,
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
            z: z.to_vec(),
            gradients: vec![0.0; dimension * BLOCK],
            temporary: vec![0.0; BLOCK],
        };
        for &(register, value) in &self.fixed {
            scratch.values[register * BLOCK..(register + 1) * BLOCK].fill(value);
        }
        for &(register, place) in &self.shared {
            scratch.values[register * BLOCK..(register + 1) * BLOCK].fill(z[place]);
        }
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
        scratch
    }

    /// Computes every root for `rows` records; `columns` are in the order of
    /// [`RowProgram::columns`].
    pub fn forward(&self, columns: &[&[f64]], rows: usize, scratch: &mut Scratch) {
        self.sweep(columns, rows, scratch, false);
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
        self.reverse(columns, rows, scratch);
        scratch.gradients.fill(0.0);
        let Scratch {
            values,
            adjoints,
            gradients,
            ..
        } = scratch;
        let adjoint = |register: usize| &adjoints[register * BLOCK..register * BLOCK + rows];
        for &(register, place) in &self.shared {
            for &(j, w) in &jacobian.rows[place] {
                let into = &mut gradients[j * BLOCK..j * BLOCK + rows];
                for (g, r) in into.iter_mut().zip(adjoint(register)) {
                    *g += w * r;
                }
            }
        }
        for instruction in &self.instructions {
            let r = adjoint(instruction.register);
            match &instruction.operation {
                Operation::Linear(terms) => {
                    for term in terms {
                        let Some(place) = term.place else { continue };
                        for &(j, w) in &jacobian.rows[place] {
                            let s = term.scale * w;
                            let into = &mut gradients[j * BLOCK..j * BLOCK + rows];
                            match term.column {
                                Some(source) => {
                                    let x = read(source, columns, values, rows);
                                    // A branch that is not taken may have any value.
                                    for ((g, r), x) in into.iter_mut().zip(r).zip(x) {
                                        *g += if *r == 0.0 { 0.0 } else { s * r * x };
                                    }
                                }
                                None => {
                                    for (g, r) in into.iter_mut().zip(r) {
                                        *g += s * r;
                                    }
                                }
                            }
                        }
                    }
                }
                Operation::Gather {
                    constants: None, ..
                } => {
                    for (i, r) in r.iter().enumerate() {
                        let place = gather_place(&instruction.operation, i, columns, values, rows);
                        for &(j, w) in &jacobian.rows[place] {
                            gradients[j * BLOCK + i] += w * r;
                        }
                    }
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
        self.reverse(columns, rows, scratch);
        let Scratch {
            values, adjoints, ..
        } = scratch;
        // Records that do not count may have adjoints that are not numbers.
        for register in 0..self.registers {
            let adjoint = &mut adjoints[register * BLOCK..register * BLOCK + rows];
            for (a, &keep) in adjoint.iter_mut().zip(counts) {
                if !keep {
                    *a = 0.0;
                }
            }
        }
        let adjoint = |register: usize| &adjoints[register * BLOCK..register * BLOCK + rows];
        for &(register, place) in &self.shared {
            into[place] += adjoint(register).iter().sum::<f64>();
        }
        for instruction in &self.instructions {
            let r = adjoint(instruction.register);
            match &instruction.operation {
                Operation::Linear(terms) => {
                    for term in terms {
                        let Some(place) = term.place else { continue };
                        let sum: f64 = match term.column {
                            None => r.iter().sum(),
                            Some(source) => read(source, columns, values, rows)
                                .iter()
                                .zip(r)
                                .map(|(x, r)| if *r == 0.0 { 0.0 } else { x * r })
                                .sum(),
                        };
                        into[place] += term.scale * sum;
                    }
                }
                Operation::Gather {
                    constants: None, ..
                } => {
                    for (i, r) in r.iter().enumerate() {
                        let place = gather_place(&instruction.operation, i, columns, values, rows);
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
            temporary,
            ..
        } = scratch;
        for instruction in &self.instructions {
            let skip = for_gradient && !instruction.value_needed_for_gradient;
            if let Operation::Linear(terms) = &instruction.operation {
                let with_columns = terms.iter().filter(|t| t.column.is_some()).count();
                if !skip {
                    let offset = offsets[linear];
                    temporary[..rows].fill(offset);
                    for (term, &c) in terms
                        .iter()
                        .filter(|t| t.column.is_some())
                        .zip(&coefficients[coefficient..])
                    {
                        let Some(source) = term.column else { continue };
                        let x = read(source, columns, values, rows);
                        for (t, x) in temporary.iter_mut().zip(x) {
                            *t += c * x;
                        }
                    }
                    let start = instruction.register * BLOCK;
                    values[start..start + rows].copy_from_slice(&temporary[..rows]);
                }
                coefficient += with_columns;
                linear += 1;
                continue;
            }
            if skip {
                continue;
            }
            let start = instruction.register * BLOCK;
            // An instruction's register comes after those that it reads.
            let (before, after) = values.split_at_mut(start);
            let out = &mut after[..rows];
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
                    for (i, o) in out.iter_mut().enumerate() {
                        *o = if c[i] != 0.0 { a[i] } else { b[i] };
                    }
                }
                Operation::Gather {
                    constants, table, ..
                } => {
                    for (i, o) in out.iter_mut().enumerate() {
                        let place = gather_place(&instruction.operation, i, columns, before, rows);
                        *o = match constants {
                            Some(values) => values[place - table],
                            None => z[place],
                        };
                    }
                }
                Operation::Linear(_) => {}
            }
        }
    }

    /// Adjoints of all registers, for an adjoint of one at the first root.
    fn reverse(&self, columns: &[&[f64]], rows: usize, scratch: &mut Scratch) {
        let Scratch {
            values, adjoints, ..
        } = scratch;
        adjoints.fill(0.0);
        let Some(Source::Register(root)) = self.outputs.first().copied() else {
            return;
        };
        adjoints[root * BLOCK..root * BLOCK + rows].fill(1.0);
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
                            for i in 0..rows {
                                if (c[i] != 0.0) == wanted {
                                    before[into + i] += adjoint[i];
                                }
                            }
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

/// The interface place (or table position) that record `i` picks. An index that
/// is not a number, as in a record with missing values, picks the first.
fn gather_place(
    operation: &Operation,
    i: usize,
    columns: &[&[f64]],
    values: &[f64],
    rows: usize,
) -> usize {
    let Operation::Gather {
        table,
        length,
        offset,
        strides,
        ..
    } = operation
    else {
        return 0;
    };
    let mut position = *offset;
    for &(stride, source) in strides {
        let index = read(source, columns, values, rows)[i];
        position += stride * (index.max(1.0) as usize - 1);
    }
    table + position.min(length - 1)
}
