//! From the private graph to a list of instructions.

use std::collections::HashMap;

use super::{Instruction, LinearTerm, Operation, RowProgram, Source};
use crate::function::DerivativeUses;
use crate::model::{Binary, Bits, Graphs, PrivateId, PrivateOp, PublicId, Scalar, operands};

struct Compiler<'a> {
    graphs: &'a Graphs,
    /// Nodes that are passed in as columns.
    columns: HashMap<PrivateId, usize>,
    registers: HashMap<Key, usize>,
    program: RowProgram,
}

#[derive(PartialEq, Eq, Hash)]
enum Key {
    Node(PrivateId),
    Number(Bits),
    Place(usize),
}

impl RowProgram {
    /// Compiles the private nodes that the roots need. Nodes for which `is_column` holds are not
    /// computed but passed in.
    pub fn compile(
        graphs: &Graphs,
        order: &[PrivateId],
        roots: &[Scalar],
        is_column: impl Fn(PrivateId) -> bool,
    ) -> RowProgram {
        let mut compiler = Compiler {
            graphs,
            columns: HashMap::new(),
            registers: HashMap::new(),
            program: RowProgram {
                instructions: Vec::new(),
                registers: 0,
                gathers: 0,
                fixed: Vec::new(),
                shared: Vec::new(),
                outputs: Vec::new(),
                columns: Vec::new(),
                interface: Vec::new(),
                interface_length: 0,
                differentiable: Vec::new(),
            },
        };
        for &id in order {
            if !is_column(id) {
                compiler.instruction(id, &is_column);
            }
        }
        for &root in roots {
            let source = compiler.source(root, &is_column);
            compiler.program.outputs.push(source);
        }
        compiler.program.keep_reached();
        compiler.program.mark_needed_values();
        compiler.program
    }

    /// Leaves an adjoint to those registers only that the first root depends on.
    fn keep_reached(&mut self) {
        let mut reached = vec![false; self.registers];
        let root = self
            .outputs
            .first()
            .and_then(|&root| self.with_adjoint(root));
        root.into_iter().for_each(|r| reached[r] = true);
        for instruction in self.instructions.iter().rev() {
            if reached[instruction.register] {
                for operand in instruction.operation.differentiated() {
                    (self.with_adjoint(operand).into_iter()).for_each(|r| reached[r] = true);
                }
            }
        }
        self.differentiable = reached;
    }

    /// Works out which values the reverse sweep reads.
    fn mark_needed_values(&mut self) {
        let mut needed = vec![false; self.registers];
        let mut need = |source: Source| {
            if let Source::Register(r) = source {
                needed[r] = true;
            }
        };
        let is_differentiable = |source: Source| self.with_adjoint(source).is_some();
        let has_adjoint = |i: &&Instruction| self.differentiable[i.register];
        for instruction in self.instructions.iter().filter(has_adjoint) {
            let own = Source::Register(instruction.register);
            match &instruction.operation {
                Operation::Unary(f, a) => match f.definition().derivative_uses {
                    DerivativeUses::Nothing => {}
                    DerivativeUses::Input => need(*a),
                    DerivativeUses::Output => need(own),
                },
                Operation::Binary(op, a, b) => match op {
                    Binary::Add | Binary::Subtract => {}
                    Binary::Multiply => {
                        if is_differentiable(*b) {
                            need(*a);
                        }
                        if is_differentiable(*a) {
                            need(*b);
                        }
                    }
                    Binary::Divide => {
                        need(*b);
                        if is_differentiable(*b) {
                            need(own);
                        }
                    }
                    Binary::Power => {
                        need(*a);
                        need(*b);
                        need(own);
                    }
                    _ => {
                        need(*a);
                        need(*b);
                    }
                },
                Operation::Select(c, ..) => need(*c),
                Operation::Linear(terms) => {
                    let by_place = terms.iter().filter(|term| term.place.is_some());
                    by_place.filter_map(|term| term.column).for_each(&mut need);
                }
                Operation::Gather { strides, .. } => strides.iter().for_each(|s| need(s.1)),
            }
        }
        for instruction in self.instructions.iter_mut().rev() {
            if !needed[instruction.register] {
                continue;
            }
            instruction.value_needed_for_gradient = true;
            let mut need = |source: Source| {
                if let Source::Register(r) = source {
                    needed[r] = true;
                }
            };
            match &instruction.operation {
                Operation::Unary(_, a) => need(*a),
                Operation::Binary(_, a, b) => {
                    need(*a);
                    need(*b);
                }
                Operation::Select(c, a, b) => {
                    need(*c);
                    need(*a);
                    need(*b);
                }
                Operation::Linear(terms) => {
                    for term in terms {
                        if let Some(source) = term.column {
                            need(source);
                        }
                    }
                }
                Operation::Gather { strides, .. } => strides.iter().for_each(|s| need(s.1)),
            }
        }
    }
}

impl Compiler<'_> {
    fn instruction(&mut self, id: PrivateId, is_column: &dyn Fn(PrivateId) -> bool) {
        let node = self.graphs.private.node(id);
        // Operands first, so that a register comes after those that it reads.
        if !matches!(node.op, PrivateOp::Linear(_)) {
            for operand in operands(&node.op) {
                self.source(operand, is_column);
            }
        }
        let operation = match &node.op {
            PrivateOp::Column(_) => unreachable!("columns are passed in"),
            PrivateOp::Unary(f, a) => Operation::Unary(*f, self.source(*a, is_column)),
            PrivateOp::Binary(op, a, b) => {
                Operation::Binary(*op, self.source(*a, is_column), self.source(*b, is_column))
            }
            PrivateOp::Select(c, a, b) => Operation::Select(
                self.source(*c, is_column),
                self.source(*a, is_column),
                self.source(*b, is_column),
            ),
            PrivateOp::Linear(terms) => Operation::Linear(
                terms
                    .iter()
                    .map(|t| LinearTerm {
                        scale: t.scale.value(),
                        place: t.parameter.map(|(node, i)| self.place(node) + i as usize),
                        column: t.column.map(|c| self.source(Scalar::Private(c), is_column)),
                    })
                    .collect(),
            ),
            PrivateOp::Gather {
                table,
                offset,
                strides,
            } => {
                let constants = self.graphs.public.constant_values(*table);
                let picks = self.program.gathers;
                self.program.gathers += 1;
                Operation::Gather {
                    table: if constants.is_some() {
                        0
                    } else {
                        self.place(*table)
                    },
                    length: self.graphs.public.length(*table),
                    offset: *offset as usize,
                    strides: strides
                        .iter()
                        .map(|&(s, i)| (s as usize, self.source(Scalar::Private(i), is_column)))
                        .collect(),
                    constants,
                    picks,
                }
            }
        };
        let register = self.register(Key::Node(id), node.has_parameter);
        self.program.instructions.push(Instruction {
            operation,
            register,
            value_needed_for_gradient: false,
        });
    }

    fn register(&mut self, key: Key, differentiable: bool) -> usize {
        let register = self.program.registers;
        self.program.registers += 1;
        self.program.differentiable.push(differentiable);
        self.registers.insert(key, register);
        register
    }

    fn source(&mut self, scalar: Scalar, is_column: &dyn Fn(PrivateId) -> bool) -> Source {
        match scalar {
            Scalar::Private(id) if is_column(id) => {
                let next = self.program.columns.len();
                let column = *self.columns.entry(id).or_insert(next);
                if column == next {
                    self.program.columns.push(id);
                }
                Source::Column(column)
            }
            Scalar::Private(id) => match self.registers.get(&Key::Node(id)) {
                Some(&register) => Source::Register(register),
                None => unreachable!("operands come before their node"),
            },
            Scalar::Number(bits) => {
                if let Some(&register) = self.registers.get(&Key::Number(bits)) {
                    return Source::Register(register);
                }
                let register = self.register(Key::Number(bits), false);
                self.program.fixed.push((register, bits.value()));
                Source::Register(register)
            }
            Scalar::Public(node, i) => {
                let place = self.place(node) + i as usize;
                if let Some(&register) = self.registers.get(&Key::Place(place)) {
                    return Source::Register(register);
                }
                let register = self.register(Key::Place(place), true);
                self.program.shared.push((register, place));
                Source::Register(register)
            }
        }
    }

    /// Where a public vector starts in the interface.
    fn place(&mut self, node: PublicId) -> usize {
        if let Some(&(_, start)) = self.program.interface.iter().find(|(id, _)| *id == node) {
            return start;
        }
        let start = self.program.interface_length;
        self.program.interface.push((node, start));
        self.program.interface_length += self.graphs.public.length(node);
        start
    }
}
