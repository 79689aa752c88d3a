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
mod predictors;
mod products;

pub(super) use binary::{binary_values, pull_back_left, pull_back_right};
pub use predictors::Predictors;

use binary::{select, select_pull_back};
use products::{QUAD, Terms, add_index, add_picked, add_scaled, dot, pick, sum};

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
        /// Where the places that records pick are kept.
        picks: usize,
    },
}

impl Operation {
    /// The values that its adjoint flows to. That of a condition is none, and that of places stays there.
    fn differentiated(&self) -> impl Iterator<Item = Source> {
        let operands = match self {
            Operation::Unary(_, a) => [Some(*a), None],
            Operation::Binary(_, a, b) | Operation::Select(_, a, b) => [Some(*a), Some(*b)],
            Operation::Linear(_) | Operation::Gather { .. } => [None, None],
        };
        operands.into_iter().flatten()
    }
}

#[derive(Debug, Clone, PartialEq)]
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
    /// The number of gathers.
    gathers: usize,
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
    /// Whether the first root depends on a parameter through a register, which then has an adjoint.
    differentiable: Vec<bool>,
}

/// The rows of the Jacobian of the interface, dz/dtheta, without zeros.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Jacobian {
    pub dimension: usize,
    /// One list of `(coordinate, derivative)` per interface place.
    pub rows: Vec<Vec<(usize, f64)>>,
    /// `[coordinates][place]`, where there are few zeros.
    dense: Vec<[f64; QUAD]>,
}

/// A Jacobian in two parts, where records pick places that have coordinates of their own, such as
/// the intercepts of groups: each record's gradient is 0 for most of these.
#[derive(Debug)]
pub struct Sparse {
    /// The derivatives by the coordinates that are nobody's own.
    common: Jacobian,
    /// These coordinates.
    coordinates: Vec<usize>,
    /// The coordinate that is a place's own, and its derivative; 0 without one.
    own: Vec<(usize, f64)>,
    /// The number of places that a record picks.
    picks: usize,
}

/// Some columns, and the instructions that read them, directly or not.
#[derive(Debug, Clone)]
pub struct Dependents {
    columns: Vec<usize>,
    instructions: Vec<bool>,
    /// The registers of these instructions.
    registers: Vec<bool>,
}

impl Dependents {
    fn reads(&self, source: Source) -> bool {
        match source {
            Source::Register(r) => self.registers[r],
            Source::Column(c) => self.columns.contains(&c),
        }
    }
}

/// The derivatives that records have.
#[derive(Debug, Clone, Copy)]
pub enum Pull<'a> {
    /// By all coordinates.
    Whole(&'a Jacobian),
    /// By those that each record picks, and then by those that are nobody's own.
    Parts(&'a Sparse),
    /// By the record's predictors.
    Predictors(&'a Predictors),
}

/// The coordinates of a block of records that are picked, `[pick][record]`.
pub type Picked = Vec<[usize; BLOCK]>;

/// The fewest coordinates of their own for which two parts are quicker than one.
const SPARSE: usize = 16;

impl Sparse {
    /// The coordinates that are nobody's own.
    pub fn coordinates(&self) -> &[usize] {
        &self.coordinates
    }
}

impl Pull<'_> {
    /// The number of derivatives of a record.
    pub fn width(&self) -> usize {
        match self {
            Pull::Whole(jacobian) => jacobian.dimension,
            Pull::Parts(sparse) => sparse.picks + sparse.coordinates.len(),
            Pull::Predictors(predictors) => predictors.count(),
        }
    }
}

/// Lets each record pick a coordinate once: a derivative by the same one is added to the first, and
/// is 0 itself. `derivatives` are `[pick][record]`.
pub fn merge_picks(picked: &[[usize; BLOCK]], derivatives: &mut [f64]) {
    for (later, coordinates) in picked.iter().enumerate().skip(1) {
        for (earlier, others) in picked[..later].iter().enumerate() {
            for (i, (own, other)) in coordinates.iter().zip(others).enumerate() {
                if own == other {
                    let moved = std::mem::take(&mut derivatives[later * BLOCK + i]);
                    derivatives[earlier * BLOCK + i] += moved;
                }
            }
        }
    }
}

/// Gradients of a block of records that are added up. A column is cleared before the first is
/// added to it, and not all of them at once, so that it is in the first-level cache.
struct Columns<'a> {
    values: &'a mut [f64],
    is_clear: Vec<bool>,
}

impl<'a> Columns<'a> {
    fn new(values: &'a mut [f64]) -> Columns<'a> {
        let is_clear = vec![false; values.len() / BLOCK];
        Columns { values, is_clear }
    }

    /// The derivatives by coordinate `j`.
    fn of(&mut self, j: usize) -> &mut [f64] {
        let column = &mut self.values[j * BLOCK..(j + 1) * BLOCK];
        if !std::mem::replace(&mut self.is_clear[j], true) {
            column.fill(0.0);
        }
        column
    }

    fn all(&mut self) -> &mut [f64] {
        for j in 0..self.is_clear.len() {
            self.of(j);
        }
        self.values
    }
}

impl Jacobian {
    pub fn new(dimension: usize, rows: Vec<Vec<(usize, f64)>>) -> Jacobian {
        let places = rows.len();
        let entries: usize = rows.iter().map(Vec::len).sum();
        let mut dense = Vec::new();
        if 2 * entries > dimension * places {
            dense.resize(dimension.div_ceil(QUAD) * places, [0.0; QUAD]);
            for (place, row) in rows.iter().enumerate() {
                for &(j, w) in row {
                    dense[j / QUAD * places + place][j % QUAD] += w;
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
            let pulled = frame
                .pull_back_of(row.iter().copied())
                .into_iter()
                .enumerate();
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
            add_picked(&self.dense, self.rows.len(), places, adjoint, gradients);
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
    /// The places that records pick, per gather.
    places: Vec<[usize; BLOCK]>,
    /// As many columns as the most derivatives that were asked for.
    gradients: Vec<f64>,
}

impl Scratch {
    fn make_room(&mut self, derivatives: usize) {
        let length = derivatives * BLOCK;
        if self.gradients.len() < length {
            self.gradients.resize(length, 0.0);
        }
    }
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

    /// The vectors of the interface with elements that are terms of linear predictors.
    pub(super) fn coefficients(&self) -> Vec<PublicId> {
        let mut is_coefficient = vec![false; self.interface_length];
        for instruction in &self.instructions {
            if let Operation::Linear(terms) = &instruction.operation {
                for place in terms.iter().filter_map(|t| t.place) {
                    is_coefficient[place] = true;
                }
            }
        }
        let ends =
            (self.interface.iter().skip(1).map(|(_, start)| *start)).chain([self.interface_length]);
        let vectors = self.interface.iter().zip(ends);
        let with_some =
            vectors.filter(|((_, start), end)| is_coefficient[*start..*end].contains(&true));
        with_some.map(|((id, _), _)| *id).collect()
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

    /// Working memory for interface values `z`.
    pub fn scratch(&self, z: &[f64]) -> Scratch {
        let mut scratch = Scratch {
            values: vec![0.0; self.registers * BLOCK],
            adjoints: vec![0.0; self.registers * BLOCK],
            coefficients: Vec::new(),
            offsets: Vec::new(),
            z: vec![0.0; z.len()],
            places: vec![[0; BLOCK]; self.gathers],
            gradients: Vec::new(),
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
        self.sweep(columns, rows, scratch, (false, None));
    }

    /// The same after a sweep over the same records, of which only the columns of `changed` are others now.
    pub fn forward_again(
        &self,
        changed: &Dependents,
        columns: &[&[f64]],
        rows: usize,
        scratch: &mut Scratch,
    ) {
        self.sweep(columns, rows, scratch, (false, Some(changed)));
    }

    /// Those of these columns, by their positions.
    pub fn dependents(&self, columns: &[usize]) -> Dependents {
        let mut found = Dependents {
            columns: columns.to_vec(),
            instructions: Vec::with_capacity(self.instructions.len()),
            registers: vec![false; self.registers],
        };
        for instruction in &self.instructions {
            let is_read = |source: &Source| found.reads(*source);
            let it_is = match &instruction.operation {
                Operation::Unary(_, a) => is_read(a),
                Operation::Binary(_, a, b) => is_read(a) || is_read(b),
                Operation::Select(c, a, b) => is_read(c) || is_read(a) || is_read(b),
                Operation::Linear(terms) => {
                    terms.iter().filter_map(|t| t.column.as_ref()).any(is_read)
                }
                Operation::Gather { strides, .. } => strides.iter().any(|(_, s)| is_read(s)),
            };
            found.registers[instruction.register] = it_is;
            found.instructions.push(it_is);
        }
        found
    }

    /// The register of a source, if it has an adjoint.
    fn with_adjoint(&self, source: Source) -> Option<usize> {
        match source {
            Source::Register(r) if self.differentiable[r] => Some(r),
            _ => None,
        }
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
        self.gradients_by(columns, rows, jacobian, scratch, None)
    }

    fn gradients_by<'a>(
        &self,
        columns: &[&[f64]],
        rows: usize,
        jacobian: &Jacobian,
        scratch: &'a mut Scratch,
        changed: Option<&Dependents>,
    ) -> &'a [f64] {
        self.sweep(columns, rows, scratch, (true, changed));
        self.reverse(columns, rows, None, scratch);
        scratch.make_room(jacobian.dimension);
        self.pull_back(columns, rows, jacobian, scratch, 0);
        &scratch.gradients[..jacobian.dimension * BLOCK]
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
        let mut is_own = vec![false; jacobian.dimension];
        let own_entry = |(place, row): (usize, &Vec<(usize, f64)>)| {
            let is_picked_only = looked_up[place] && !seen_otherwise[place];
            let mut of_place = row.iter().filter(|(j, _)| places_of[*j] == 1);
            let own = of_place.next().filter(|_| is_picked_only);
            own.inspect(|(j, _)| is_own[*j] = true)
                .copied()
                .unwrap_or_default()
        };
        let own: Vec<_> = jacobian.rows.iter().enumerate().map(own_entry).collect();
        let coordinates: Vec<usize> = (0..jacobian.dimension).filter(|&j| !is_own[j]).collect();
        let picks = self.picks().count();
        let count = jacobian.dimension - coordinates.len();
        if count < coordinates.len().max(SPARSE).max(picks) {
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
            picks,
        })
    }

    /// The gathers of places: their registers, and where the places are kept.
    fn picks(&self) -> impl Iterator<Item = (usize, usize)> {
        let pick = |instruction: &Instruction| match &instruction.operation {
            Operation::Gather {
                constants: None,
                picks,
                ..
            } => Some((instruction.register, *picks)),
            _ => None,
        };
        self.instructions.iter().filter_map(pick)
    }

    /// Whether the places that records pick are those that these columns name, and no others.
    pub fn picks_by(&self, is_fixed: impl Fn(usize) -> bool) -> bool {
        self.instructions.iter().all(|i| match &i.operation {
            Operation::Gather {
                constants: None,
                strides,
                ..
            } => (strides.iter()).all(|(_, s)| matches!(s, Source::Column(c) if is_fixed(*c))),
            _ => true,
        })
    }

    /// [`RowProgram::gradients`]; or the derivatives in parts: first those by the coordinates that
    /// records pick, which `picked` will name, then those by the others; or those by predictors. No
    /// coordinate is picked twice by a record, but with a derivative of zero. `changed`: as in
    /// [`RowProgram::forward_again`], after derivatives of the same records.
    pub fn pulled<'a>(
        &self,
        columns: &[&[f64]],
        rows: usize,
        (pull, changed): (Pull, Option<&Dependents>),
        scratch: &'a mut Scratch,
        picked: &mut Picked,
    ) -> &'a [f64] {
        if let Pull::Whole(jacobian) = pull {
            return self.gradients_by(columns, rows, jacobian, scratch, changed);
        }
        self.sweep(columns, rows, scratch, (true, changed));
        self.reverse(columns, rows, None, scratch);
        scratch.make_room(pull.width());
        let Scratch {
            adjoints,
            places,
            gradients,
            ..
        } = scratch;
        let adjoint = |register: usize| &adjoints[register * BLOCK..register * BLOCK + rows];
        match pull {
            Pull::Whole(_) => {}
            Pull::Parts(sparse) => {
                let derivatives = &mut gradients[..sparse.picks * BLOCK];
                self.pick(sparse, places, |r| Some(adjoint(r)), picked, derivatives);
                self.pull_back(columns, rows, &sparse.common, scratch, sparse.picks);
            }
            Pull::Predictors(predictors) => predictors.derivatives(adjoint, gradients),
        }
        &scratch.gradients[..pull.width() * BLOCK]
    }

    /// The coordinates that records pick, and the derivatives by them, from adjoints of the gathers'
    /// registers; 0 where there is none.
    fn pick<'a>(
        &self,
        sparse: &Sparse,
        places: &[[usize; BLOCK]],
        adjoint: impl Fn(usize) -> Option<&'a [f64]>,
        picked: &mut Picked,
        derivatives: &mut [f64],
    ) {
        derivatives.fill(0.0);
        picked.resize(sparse.picks, [0; BLOCK]);
        let picks = self.picks().zip(derivatives.chunks_exact_mut(BLOCK));
        for (((register, picks), derivatives), coordinates) in picks.zip(&mut *picked) {
            for (coordinate, &place) in coordinates.iter_mut().zip(&places[picks]) {
                *coordinate = sparse.own[place].0;
            }
            let each = places[picks]
                .iter()
                .zip(adjoint(register).unwrap_or_default());
            for (derivative, (&place, adjoint)) in derivatives.iter_mut().zip(each) {
                let (_, w) = sparse.own[place];
                *derivative = if w == 0.0 { 0.0 } else { w * adjoint };
            }
        }
        merge_picks(picked, derivatives);
    }

    /// Sets every record's gradient, from the adjoints of a reverse sweep, behind so many columns.
    fn pull_back(
        &self,
        columns: &[&[f64]],
        rows: usize,
        jacobian: &Jacobian,
        scratch: &mut Scratch,
        behind: usize,
    ) {
        let Scratch {
            values,
            adjoints,
            places,
            gradients,
            ..
        } = scratch;
        let gradients = &mut gradients[behind * BLOCK..][..jacobian.dimension * BLOCK];
        let mut gradients = Columns::new(gradients);
        let adjoint = |register: usize| &adjoints[register * BLOCK..register * BLOCK + rows];
        for &(register, place) in &self.shared {
            for &(j, w) in &jacobian.rows[place] {
                add_scaled(w, adjoint(register), None, &mut gradients.of(j)[..rows]);
            }
        }
        for instruction in &self.instructions {
            let r = adjoint(instruction.register);
            match &instruction.operation {
                Operation::Linear(terms) => {
                    let column = |term: &LinearTerm| {
                        (term.column).map(|source| read(source, columns, values, rows))
                    };
                    add_linear(terms, jacobian, column, r, &mut gradients);
                }
                Operation::Gather {
                    constants: None,
                    picks,
                    ..
                } => jacobian.add_picked(&places[*picks][..rows], r, gradients.all()),
                _ => {}
            }
        }
        gradients.all();
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
            values,
            adjoints,
            places,
            ..
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
                    constants: None,
                    picks,
                    ..
                } => {
                    for (&place, r) in places[*picks].iter().zip(r) {
                        into[place] += r;
                    }
                }
                _ => {}
            }
        }
    }

    /// Values of registers: those of `changed` alone where that is given, as others have theirs already.
    fn sweep(
        &self,
        columns: &[&[f64]],
        rows: usize,
        scratch: &mut Scratch,
        (for_gradient, changed): (bool, Option<&Dependents>),
    ) {
        let (mut coefficient, mut linear) = (0, 0);
        let Scratch {
            values,
            coefficients,
            offsets,
            z,
            places,
            ..
        } = scratch;
        for (i, instruction) in self.instructions.iter().enumerate() {
            let has_value = changed.is_some_and(|changed| !changed.instructions[i]);
            let skip = has_value || for_gradient && !instruction.value_needed_for_gradient;
            let start = instruction.register * BLOCK;
            // An instruction's register comes after those that it reads.
            let (before, after) = values.split_at_mut(start);
            let out = &mut after[..rows];
            if let Operation::Linear(terms) = &instruction.operation {
                let with_columns = terms.iter().filter(|t| t.column.is_some()).count();
                if !skip {
                    let sources = terms.iter().filter_map(|t| t.column);
                    let columns: Vec<_> = sources.map(|s| read(s, columns, before, rows)).collect();
                    let weights = &coefficients[coefficient..coefficient + with_columns];
                    sum(&columns, weights, offsets[linear], out);
                }
                coefficient += with_columns;
                linear += 1;
                continue;
            }
            if let Operation::Gather {
                constants,
                table,
                picks,
                ..
            } = &instruction.operation
            {
                let places = &mut places[*picks][..rows];
                if !has_value {
                    gather_places(&instruction.operation, columns, before, places);
                }
                if !skip {
                    let (from, first) = match constants {
                        Some(values) => (values, *table),
                        None => (&*z, 0),
                    };
                    for (o, place) in out.iter_mut().zip(places) {
                        *o = from[*place - first];
                    }
                }
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
                Operation::Linear(_) | Operation::Gather { .. } => {}
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
        let each = adjoints.chunks_exact_mut(BLOCK).zip(&self.differentiable);
        for (adjoints, _) in each.filter(|(_, has_one)| **has_one) {
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
            let differentiable = |source| self.with_adjoint(source).map(|r| r * BLOCK);
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
    gradients: &mut Columns,
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
                let into = &mut gradients.of(j)[..adjoint.len()];
                add_scaled(term.scale * w, adjoint, column(term), into);
            }
        }
        return;
    }
    let columns: Vec<_> = places().filter_map(|(term, _)| column(term)).collect();
    let mut sum = Terms::new(columns, d);
    let mut next = 0;
    for (term, row) in places() {
        let own = term.column.map(|_| next);
        next += usize::from(own.is_some());
        for &(j, w) in row {
            sum.add_weight(own, j, term.scale * w);
        }
    }
    sum.add_times(adjoint, gradients.all());
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
