//! From the typed tree to graphs: the program is run once with its constants
//! known, and whatever depends on a parameter or a record becomes a node.
//!
//! Loops over constants unroll, branches on constants are taken, sizes become
//! numbers. What is left is straight-line arithmetic.

use std::rc::Rc;

use super::BindError;
use super::private::{Graphs, Scalar};
use super::public::Binary;
use super::value::{Data, Shape, Value};
use crate::check::{
    Base, Checked, Expr, ExprKind, Index, Statement, StatementKind, Type, VariableId,
};
use crate::distribution::{self, Algebra};
use crate::function::{Builtin, Elementwise2, Reduction, Shaping, Unary};
use crate::syntax::{BinaryOperator, Span};

/// Unrolled loops longer than this are refused rather than left to fill the
/// memory.
const MAX_ITERATIONS: usize = 10_000_000;

/// Likewise containers with more elements, and programs with more operations
/// (each is some 200 bytes while the model is bound).
const MAX_ELEMENTS: usize = 10_000_000;
const MAX_OPERATIONS: usize = 2_000_000;

pub(super) struct Tracer<'a> {
    pub checked: &'a Checked,
    pub graphs: Graphs,
    pub variables: Vec<Option<Value>>,
    /// Terms of the log prior, each a public scalar.
    pub prior: Vec<Scalar>,
    /// Terms of one record's log-likelihood.
    pub likelihood: Vec<Scalar>,
    /// Bounds of record columns, for indices: `(lower, upper)` by variable.
    pub column_bounds: Vec<Option<(f64, f64)>>,
    iterations: usize,
}

type Traced<T> = Result<T, BindError>;

impl<'a> Tracer<'a> {
    pub fn new(checked: &'a Checked) -> Self {
        Tracer {
            checked,
            graphs: Graphs::default(),
            variables: vec![None; checked.variables.len()],
            prior: Vec::new(),
            likelihood: Vec::new(),
            column_bounds: vec![None; checked.variables.len()],
            iterations: 0,
        }
    }

    pub fn statements(&mut self, statements: &[Statement]) -> Traced<()> {
        statements.iter().try_for_each(|s| self.statement(s))
    }

    fn statement(&mut self, statement: &Statement) -> Traced<()> {
        let operations = self.graphs.public.nodes().len() + self.graphs.private.nodes().len();
        if operations > MAX_OPERATIONS {
            return Err(BindError::new(
                statement.span,
                format!(
                    "this program, with its loops unrolled, has more than {MAX_OPERATIONS} operations"
                ),
            ));
        }
        match &statement.kind {
            StatementKind::Declare { variable, value } => {
                let shape = self.declared_shape(*variable)?;
                let value = match value {
                    Some(e) => {
                        let value = self.expression(e)?;
                        check_sizes(e.span, &shape, &value)?;
                        Value { shape, ..value }
                    }
                    // Not a number until it is assigned, as in Stan.
                    None => Value {
                        data: Data::of(vec![Scalar::number(f64::NAN); shape.length()]),
                        shape,
                    },
                };
                self.variables[variable.0] = Some(value);
                Ok(())
            }
            StatementKind::Assign {
                variable,
                indices,
                operator,
                value,
            } => self.assign(statement.span, *variable, indices, *operator, value),
            StatementKind::Target { value } => {
                let private = value.stage.is_private();
                let value = self.expression(value)?;
                self.add_to_target(private, &value);
                Ok(())
            }
            StatementKind::Sampling {
                family,
                variate,
                arguments,
            } => {
                let private =
                    variate.stage.is_private() || arguments.iter().any(|a| a.stage.is_private());
                let value = self.log_density(statement.span, *family, variate, arguments)?;
                self.add_to_target(private, &value);
                Ok(())
            }
            StatementKind::ForRange {
                variable,
                from,
                to,
                body,
            } => {
                let (from, to) = (self.integer(from)?, self.integer(to)?);
                for k in from..=to {
                    self.count_iteration(statement.span)?;
                    self.variables[variable.0] = Some(Value::number(Type::INT, k as f64));
                    self.statement(body)?;
                }
                Ok(())
            }
            StatementKind::ForEach {
                variable,
                container,
                body,
            } => {
                let container = self.expression(container)?;
                let array = container.shape.ty.array;
                let steps = if array > 0 {
                    container.shape.sizes[0]
                } else {
                    container.shape.length()
                };
                let element = Shape {
                    ty: if array > 0 {
                        Type {
                            array: array - 1,
                            ..container.shape.ty
                        }
                    } else {
                        Type::REAL
                    },
                    sizes: if array > 0 {
                        container.shape.sizes[1..].to_vec()
                    } else {
                        Vec::new()
                    },
                };
                let elements = container.elements(&self.graphs);
                let length = element.length();
                for k in 0..steps {
                    self.count_iteration(statement.span)?;
                    self.variables[variable.0] = Some(Value {
                        shape: element.clone(),
                        data: Data::of(elements[k * length..(k + 1) * length].to_vec()),
                    });
                    self.statement(body)?;
                }
                Ok(())
            }
            StatementKind::If {
                condition,
                then,
                otherwise,
            } => {
                let value = self.expression(condition)?.only(&self.graphs);
                match (value.as_number(), otherwise) {
                    (Some(c), _) if c != 0.0 => self.statement(then),
                    (Some(_), Some(otherwise)) => self.statement(otherwise),
                    (Some(_), None) => Ok(()),
                    (None, _) => Err(BindError::new(
                        condition.span,
                        "the condition of `if` is not a constant",
                    )),
                }
            }
            StatementKind::Block(statements) => self.statements(statements),
        }
    }

    fn count_iteration(&mut self, span: Span) -> Traced<()> {
        self.iterations += 1;
        if self.iterations > MAX_ITERATIONS {
            return Err(BindError::new(
                span,
                format!("the loops of this program run more than {MAX_ITERATIONS} times"),
            ));
        }
        Ok(())
    }

    /// The shape of a variable, its sizes evaluated.
    pub fn declared_shape(&mut self, id: VariableId) -> Traced<Shape> {
        let checked = self.checked;
        let variable = checked.variable(id);
        let mut sizes = Vec::new();
        for size in &variable.sizes {
            let value = self.integer(size)?;
            let Ok(value) = usize::try_from(value) else {
                return Err(BindError::new(
                    size.span,
                    format!(
                        "the size of `{}` is {value}; a size must be 0 or more",
                        variable.name
                    ),
                ));
            };
            sizes.push(value);
        }
        check_length(variable.span, &sizes)?;
        Ok(Shape {
            ty: variable.ty,
            sizes,
        })
    }

    fn integer(&mut self, e: &Expr) -> Traced<i64> {
        let value = self.expression(e)?.only(&self.graphs).as_number();
        match value {
            Some(v) if v.fract() == 0.0 && v.abs() < 9e15 => Ok(v as i64),
            _ => Err(BindError::new(e.span, "expected a whole number")),
        }
    }

    /// `private` is the stage of the statement: it alone says whether the term
    /// counts once, or once per record. `for (x in [1, age]) target += b * x;`
    /// counts both of its terms once per record.
    fn add_to_target(&mut self, private: bool, value: &Value) {
        if private {
            let elements = value.elements(&self.graphs);
            self.likelihood.extend(elements.iter());
        } else if value.shape.length() > 0 {
            let node = value.public_node(&mut self.graphs);
            let sum = self.graphs.public.sum_of(node);
            let term = self.graphs.from_public(sum);
            self.prior.push(term);
        }
    }

    fn assign(
        &mut self,
        span: Span,
        variable: VariableId,
        indices: &[Index],
        operator: Option<BinaryOperator>,
        value: &Expr,
    ) -> Traced<()> {
        let new = self.expression(value)?;
        let Some(old) = self.variables[variable.0].clone() else {
            return Err(BindError::new(span, "this variable has no value yet"));
        };
        let (shape, positions) = self.positions(span, &old.shape, indices)?;
        let new = match operator {
            None => new,
            Some(operator) => {
                let current = Value {
                    shape: shape.clone(),
                    data: if indices.is_empty() {
                        old.data.clone()
                    } else {
                        self.take(&old, &positions)
                    },
                };
                self.binary(span, operator, &current, &new)?
            }
        };
        check_sizes(value.span, &shape, &new)?;
        let data = if indices.is_empty() {
            new.data
        } else {
            // In place, unless the elements are another variable's, too.
            self.variables[variable.0] = None;
            let mut elements = old.elements(&self.graphs);
            let shape = old.shape.clone();
            drop(old);
            let places = Rc::make_mut(&mut elements);
            for (p, &e) in positions.into_iter().zip(new.elements(&self.graphs).iter()) {
                places[p] = e;
            }
            self.variables[variable.0] = Some(Value {
                shape,
                data: Data::Elements(elements),
            });
            return Ok(());
        };
        self.variables[variable.0] = Some(Value {
            shape: old.shape,
            data,
        });
        Ok(())
    }

    pub fn expression(&mut self, e: &Expr) -> Traced<Value> {
        match &e.kind {
            ExprKind::Int(v) => Ok(Value::number(Type::INT, *v as f64)),
            ExprKind::Real(v) => Ok(Value::number(Type::REAL, *v)),
            ExprKind::Variable(id) => self.variables[id.0].clone().ok_or_else(|| {
                let name = &self.checked.variable(*id).name;
                BindError::new(e.span, format!("`{name}` has no value yet"))
            }),
            ExprKind::Call {
                function,
                arguments,
            } => {
                let arguments = arguments
                    .iter()
                    .map(|a| self.expression(a))
                    .collect::<Traced<Vec<_>>>()?;
                self.call(e.span, e.ty, *function, &arguments)
            }
            ExprKind::LogDensity {
                family,
                variate,
                arguments,
            } => {
                let terms = self.log_density(e.span, *family, variate, arguments)?;
                self.fold(&terms, Binary::Add, 0.0, Type::REAL)
            }
            ExprKind::Index { base, indices } => {
                let base = self.expression(base)?;
                self.index(e.span, &base, indices)
            }
            ExprKind::Negate(inner) => {
                let inner = self.expression(inner)?;
                Ok(self.unary(Unary::Negate, &inner, e.ty))
            }
            ExprKind::Not(inner) => {
                let inner = self.expression(inner)?;
                Ok(self.unary(Unary::Not, &inner, e.ty))
            }
            ExprKind::Binary { .. } => {
                // Down the left side in a loop: a sum may have many terms.
                let mut first = e;
                let mut rest = Vec::new();
                while let ExprKind::Binary {
                    operator,
                    left,
                    right,
                } = &first.kind
                {
                    rest.push((first.span, *operator, right));
                    first = left;
                }
                let mut value = self.expression(first)?;
                for (span, operator, right) in rest.into_iter().rev() {
                    let right = self.expression(right)?;
                    value = self.binary(span, operator, &value, &right)?;
                }
                Ok(value)
            }
            ExprKind::Ternary {
                condition,
                then,
                otherwise,
            } => {
                let c = self.expression(condition)?.only(&self.graphs);
                if let Some(c) = c.as_number() {
                    let branch = if c != 0.0 { then } else { otherwise };
                    let mut value = self.expression(branch)?;
                    value.shape.ty = e.ty;
                    return Ok(value);
                }
                let (a, b) = (self.expression(then)?, self.expression(otherwise)?);
                same_sizes(e.span, &a, &b)?;
                let elements = a
                    .elements(&self.graphs)
                    .iter()
                    .zip(b.elements(&self.graphs).iter())
                    .map(|(&a, &b)| self.graphs.select(c, a, b))
                    .collect();
                Ok(Value {
                    shape: Shape {
                        ty: e.ty,
                        sizes: a.shape.sizes,
                    },
                    data: Data::of(elements),
                })
            }
            ExprKind::Transpose(inner) => {
                let inner = self.expression(inner)?;
                self.transpose(inner, e.ty)
            }
            ExprKind::RowVector(parts) | ExprKind::Array(parts) => {
                self.literal(e.span, e.ty, parts)
            }
        }
    }

    fn literal(&mut self, span: Span, ty: Type, parts: &[Expr]) -> Traced<Value> {
        let values = parts
            .iter()
            .map(|p| self.expression(p))
            .collect::<Traced<Vec<_>>>()?;
        let mut sizes = vec![values.len()];
        if let Some(first) = values.first() {
            for other in &values[1..] {
                same_sizes(span, first, other)?;
            }
            sizes.extend(&first.shape.sizes);
        }
        let rows: Vec<_> = values.iter().map(|v| v.elements(&self.graphs)).collect();
        let elements = if ty == Type::MATRIX {
            // Row vectors stacked: stored column by column.
            let columns = sizes.get(1).copied().unwrap_or(0);
            (0..columns)
                .flat_map(|j| rows.iter().map(move |row| row[j]))
                .collect()
        } else {
            rows.iter().flat_map(|row| row.iter().copied()).collect()
        };
        if ty.base == Base::Matrix && sizes.len() == 1 {
            sizes.push(0);
        }
        Ok(Value {
            shape: Shape { ty, sizes },
            data: Data::of(elements),
        })
    }

    fn transpose(&mut self, value: Value, ty: Type) -> Traced<Value> {
        if ty != Type::MATRIX {
            return Ok(Value {
                shape: Shape {
                    ty,
                    sizes: value.shape.sizes,
                },
                data: value.data,
            });
        }
        let (rows, columns) = (value.shape.sizes[0], value.shape.sizes[1]);
        let positions: Vec<usize> = (0..rows)
            .flat_map(|i| (0..columns).map(move |j| i + j * rows))
            .collect();
        let data = self.take(&value, &positions);
        Ok(Value {
            shape: Shape {
                ty,
                sizes: vec![columns, rows],
            },
            data,
        })
    }

    fn take(&mut self, value: &Value, positions: &[usize]) -> Data {
        match &value.data {
            Data::Public(id) if positions.len() > 1 => {
                let positions: Vec<u32> = positions.iter().map(|&p| p as u32).collect();
                Data::Public(self.graphs.public.take(*id, &positions))
            }
            Data::Public(id) if self.graphs.public.constant_values(*id).is_none() => Data::of(
                positions
                    .iter()
                    .map(|&p| Scalar::Public(*id, p as u32))
                    .collect(),
            ),
            _ => {
                let elements = value.elements(&self.graphs);
                Data::of(positions.iter().map(|&p| elements[p]).collect())
            }
        }
    }

    /// The shape and storage positions that constant indices pick.
    fn positions(
        &mut self,
        span: Span,
        shape: &Shape,
        indices: &[Index],
    ) -> Traced<(Shape, Vec<usize>)> {
        let mut chosen: Vec<(Vec<usize>, bool)> = Vec::new();
        for (k, &size) in shape.sizes.iter().enumerate() {
            let all = || ((0..size).collect(), true);
            chosen.push(match indices.get(k) {
                None => all(),
                Some(Index::Single(e)) => {
                    let i = self.integer(e)?;
                    (vec![position(e.span, i, size)?], false)
                }
                Some(Index::Many(e)) => {
                    let list = self.expression(e)?;
                    let mut picked = Vec::new();
                    for &s in list.elements(&self.graphs).iter() {
                        let Some(v) = s.as_number() else {
                            return Err(BindError::new(e.span, "these indices are not constants"));
                        };
                        picked.push(position(e.span, v as i64, size)?);
                    }
                    (picked, true)
                }
                Some(Index::Range { from, to }) => {
                    let from = from.as_ref().map_or(Ok(1), |e| self.integer(e))?;
                    let to = to.as_ref().map_or(Ok(size as i64), |e| self.integer(e))?;
                    let mut picked = Vec::new();
                    for i in from..=to {
                        picked.push(position(span, i, size)?);
                    }
                    (picked, true)
                }
            });
        }
        let ty = indexed_type(shape.ty, &chosen);
        let result = Shape {
            ty,
            sizes: chosen.iter().filter(|c| c.1).map(|c| c.0.len()).collect(),
        };
        check_length(span, &result.sizes)?;
        let strides = shape.strides();
        // Visit in the storage order of the result.
        let kept: Vec<usize> = (0..chosen.len()).filter(|&k| chosen[k].1).collect();
        let fixed: usize = (0..chosen.len())
            .filter(|&k| !chosen[k].1)
            .map(|k| chosen[k].0[0] * strides[k])
            .sum();
        let positions = result
            .indices()
            .into_iter()
            .map(|index| {
                fixed
                    + kept
                        .iter()
                        .zip(&index)
                        .map(|(&k, &i)| chosen[k].0[i - 1] * strides[k])
                        .sum::<usize>()
            })
            .collect();
        Ok((result, positions))
    }

    fn index(&mut self, span: Span, base: &Value, indices: &[Index]) -> Traced<Value> {
        let private = |index: &Index| matches!(index, Index::Single(e) if e.stage.is_private());
        if !indices.iter().any(private) {
            let (shape, positions) = self.positions(span, &base.shape, indices)?;
            let data = self.take(base, &positions);
            return Ok(Value { shape, data });
        }
        // Indices read off the record: fix them at 1 to find the positions that
        // the public ones pick, and add a stride for each.
        let strides = base.shape.strides();
        let mut public = Vec::new();
        let mut moves = Vec::new();
        for (k, index) in indices.iter().enumerate() {
            match index {
                Index::Single(e) if e.stage.is_private() => {
                    self.check_index_bounds(e, base.shape.sizes[k])?;
                    let Scalar::Private(id) = self.expression(e)?.only(&self.graphs) else {
                        return Err(BindError::new(e.span, "expected a record column"));
                    };
                    moves.push((strides[k] as u32, id));
                    public.push(Index::Single(Expr {
                        kind: ExprKind::Int(1),
                        ..e.clone()
                    }));
                }
                other => public.push(other.clone()),
            }
        }
        let (shape, positions) = self.positions(span, &base.shape, &public)?;
        let table = base.public_node(&mut self.graphs);
        let elements = positions
            .iter()
            .map(|&p| self.graphs.gather(table, p as u32, moves.clone()))
            .collect();
        Ok(Value {
            shape,
            data: Data::of(elements),
        })
    }

    /// A record's index must not be able to leave the container.
    fn check_index_bounds(&self, e: &Expr, size: usize) -> Traced<()> {
        let ExprKind::Variable(id) = e.kind else {
            return Err(BindError::new(e.span, "expected a record column"));
        };
        let name = &self.checked.variable(id).name;
        match self.column_bounds[id.0] {
            Some((lower, upper)) if lower >= 1.0 && upper <= size as f64 => Ok(()),
            Some((lower, upper)) => Err(BindError::new(
                e.span,
                format!(
                    "`{name}` may be anything from {lower} to {upper}, but this dimension has {size} element{}: declare `{name}` with `lower=1, upper={size}`",
                    if size == 1 { "" } else { "s" }
                ),
            )),
            None => Err(BindError::new(
                e.span,
                format!("`{name}` is used as an index and needs `lower=1, upper={size}`"),
            )),
        }
    }

    fn unary(&mut self, function: Unary, value: &Value, ty: Type) -> Value {
        let shape = Shape {
            ty,
            sizes: value.shape.sizes.clone(),
        };
        let data = match &value.data {
            Data::Public(id) => Data::Public(self.graphs.public.apply(function, *id)),
            Data::Elements(elements) => Data::of(
                elements
                    .iter()
                    .map(|&s| self.graphs.unary(function, s))
                    .collect(),
            ),
        };
        Value { shape, data }
    }

    pub fn binary(
        &mut self,
        span: Span,
        operator: BinaryOperator,
        left: &Value,
        right: &Value,
    ) -> Traced<Value> {
        use BinaryOperator::*;
        let numbers = left.shape.ty.is_number() || right.shape.ty.is_number();
        let ints = left.shape.ty == Type::INT && right.shape.ty == Type::INT;
        let op = match operator {
            Add => Binary::Add,
            Subtract => Binary::Subtract,
            ElementMultiply => Binary::Multiply,
            Multiply if numbers => Binary::Multiply,
            Multiply => return self.matrix_product(span, left, right),
            Divide | IntegerDivide if ints => return self.integer_division(span, left, right),
            Divide | ElementDivide => Binary::Divide,
            Power | ElementPower => Binary::Power,
            Less => Binary::Less,
            LessEqual => Binary::LessEqual,
            Greater => return self.elementwise(span, Binary::Less, right, left, Type::INT),
            GreaterEqual => {
                return self.elementwise(span, Binary::LessEqual, right, left, Type::INT);
            }
            Equal => Binary::Equal,
            NotEqual => Binary::NotEqual,
            And => Binary::And,
            Or => Binary::Or,
            Modulo => {
                let quotient = self.integer_division(span, left, right)?;
                let product =
                    self.elementwise(span, Binary::Multiply, &quotient, right, Type::INT)?;
                return self.elementwise(span, Binary::Subtract, left, &product, Type::INT);
            }
            IntegerDivide | LeftDivide => {
                return Err(BindError::new(span, "this division is not supported"));
            }
        };
        let wider = if left.shape.ty.is_number() {
            right.shape.ty
        } else {
            left.shape.ty
        };
        let ty = match op {
            _ if op.is_step() => Type::INT,
            Binary::Power if wider.base == Base::Int => Type {
                base: Base::Real,
                ..wider
            },
            _ if left.shape.ty.is_number() && right.shape.ty.is_number() && !ints => Type::REAL,
            _ => wider,
        };
        self.elementwise(span, op, left, right, ty)
    }

    fn integer_division(&mut self, span: Span, left: &Value, right: &Value) -> Traced<Value> {
        if right.only(&self.graphs).as_number() == Some(0.0) {
            return Err(BindError::new(span, "division of an int by zero"));
        }
        let quotient = self.elementwise(span, Binary::Divide, left, right, Type::INT)?;
        Ok(self.unary(Unary::Trunc, &quotient, Type::INT))
    }

    fn elementwise(
        &mut self,
        span: Span,
        op: Binary,
        left: &Value,
        right: &Value,
        ty: Type,
    ) -> Traced<Value> {
        let (broadcast_left, broadcast_right) =
            (left.shape.sizes.is_empty(), right.shape.sizes.is_empty());
        if !broadcast_left && !broadcast_right {
            same_sizes(span, left, right)?;
        }
        let sizes = if broadcast_left {
            right.shape.sizes.clone()
        } else {
            left.shape.sizes.clone()
        };
        let shape = Shape { ty, sizes };
        let length = shape.length();
        let scalarwise = left.is_private()
            || right.is_private()
            || length <= 1
            || (left.is_constant() && right.is_constant());
        let data = if scalarwise {
            let (a, b) = (left.elements(&self.graphs), right.elements(&self.graphs));
            Data::of(
                (0..length)
                    .map(|i| {
                        let x = a[if broadcast_left { 0 } else { i }];
                        let y = b[if broadcast_right { 0 } else { i }];
                        self.graphs.binary(op, x, y)
                    })
                    .collect(),
            )
        } else {
            let a = left.public_node(&mut self.graphs);
            let b = right.public_node(&mut self.graphs);
            Data::Public(self.graphs.public.binary(op, a, b))
        };
        Ok(Value { shape, data })
    }

    fn matrix_product(&mut self, span: Span, left: &Value, right: &Value) -> Traced<Value> {
        let as_matrix = |v: &Value, column: bool| match v.shape.ty.base {
            Base::Matrix => (v.shape.sizes[0], v.shape.sizes[1]),
            _ if column => (v.shape.sizes[0], 1),
            _ => (1, v.shape.sizes[0]),
        };
        let (rows, inner) = as_matrix(left, left.shape.ty == Type::VECTOR);
        let (inner_right, columns) = as_matrix(right, right.shape.ty == Type::VECTOR);
        if inner != inner_right {
            return Err(BindError::new(
                span,
                format!("the product of {rows}x{inner} and {inner_right}x{columns} does not exist"),
            ));
        }
        check_length(span, &[rows, inner.max(1), columns])?;
        let shape = match (left.shape.ty.base, right.shape.ty.base) {
            (Base::RowVector, Base::Vector) => Shape::scalar(Type::REAL),
            (Base::Matrix, Base::Vector) => Shape {
                ty: Type::VECTOR,
                sizes: vec![rows],
            },
            (Base::RowVector, Base::Matrix) => Shape {
                ty: Type::ROW_VECTOR,
                sizes: vec![columns],
            },
            _ => Shape {
                ty: Type::MATRIX,
                sizes: vec![rows, columns],
            },
        };
        let scalarwise = left.is_private()
            || right.is_private()
            || (left.is_constant() && right.is_constant())
            || rows * inner * columns == 0;
        if !scalarwise {
            let a = left.public_node(&mut self.graphs);
            let b = right.public_node(&mut self.graphs);
            let node = self
                .graphs
                .public
                .matrix_product(a, b, (rows, inner, columns));
            return Ok(Value {
                shape,
                data: Data::Public(node),
            });
        }
        let (a, b) = (left.elements(&self.graphs), right.elements(&self.graphs));
        let mut elements = Vec::with_capacity(rows * columns);
        for j in 0..columns {
            for i in 0..rows {
                let mut sum = Scalar::number(0.0);
                for k in 0..inner {
                    let product =
                        self.graphs
                            .binary(Binary::Multiply, a[i + k * rows], b[k + j * inner]);
                    sum = self.graphs.binary(Binary::Add, sum, product);
                }
                elements.push(sum);
            }
        }
        Ok(Value {
            shape,
            data: Data::of(elements),
        })
    }

    fn call(
        &mut self,
        span: Span,
        ty: Type,
        function: Builtin,
        arguments: &[Value],
    ) -> Traced<Value> {
        match (function, arguments) {
            (Builtin::Constant(value), _) => Ok(Value::number(Type::REAL, value)),
            (Builtin::Unary(f), [a]) => Ok(self.unary(f, a, ty)),
            (Builtin::Elementwise2(f), [a, b]) => self.elementwise2(span, f, a, b, ty),
            (Builtin::Reduction(r), [a]) => self.reduce(r, a, ty),
            (Builtin::Reduction(r), [a, b]) => {
                let f = match r {
                    Reduction::Minimum => Elementwise2::Minimum,
                    Reduction::Maximum => Elementwise2::Maximum,
                    _ => Elementwise2::LogSumExp,
                };
                self.elementwise2(span, f, a, b, ty)
            }
            (Builtin::DotProduct, [a, b]) => {
                if a.shape.sizes != b.shape.sizes {
                    return Err(BindError::new(
                        span,
                        format!(
                            "`dot_product` of {} and {}",
                            a.shape.describe(),
                            b.shape.describe()
                        ),
                    ));
                }
                let product = self.elementwise(span, Binary::Multiply, a, b, a.shape.ty)?;
                self.fold(&product, Binary::Add, 0.0, Type::REAL)
            }
            (Builtin::Shaping(shaping), _) => self.shape_function(span, shaping, ty, arguments),
            _ => Err(BindError::new(span, "wrong number of arguments")),
        }
    }

    fn elementwise2(
        &mut self,
        span: Span,
        function: Elementwise2,
        a: &Value,
        b: &Value,
        ty: Type,
    ) -> Traced<Value> {
        let op = match function {
            Elementwise2::Power => Some(Binary::Power),
            Elementwise2::Minimum => Some(Binary::Minimum),
            Elementwise2::Maximum => Some(Binary::Maximum),
            _ => None,
        };
        if let Some(op) = op {
            return self.elementwise(span, op, a, b, ty);
        }
        let (single_a, single_b) = (a.shape.sizes.is_empty(), b.shape.sizes.is_empty());
        if !single_a && !single_b {
            same_sizes(span, a, b)?;
        }
        let sizes = if single_a {
            &b.shape.sizes
        } else {
            &a.shape.sizes
        };
        let shape = Shape {
            ty,
            sizes: sizes.clone(),
        };
        let (x, y) = (a.elements(&self.graphs), b.elements(&self.graphs));
        let elements = (0..shape.length())
            .map(|i| {
                let x = x[if single_a { 0 } else { i }];
                let y = y[if single_b { 0 } else { i }];
                scalar_function(&mut self.graphs, function, x, y)
            })
            .collect();
        Ok(Value {
            shape,
            data: Data::of(elements),
        })
    }

    fn reduce(&mut self, reduction: Reduction, a: &Value, ty: Type) -> Traced<Value> {
        let length = a.shape.length();
        match reduction {
            Reduction::Sum => self.fold(a, Binary::Add, 0.0, ty),
            Reduction::Mean => {
                let sum = self
                    .fold(a, Binary::Add, 0.0, Type::REAL)?
                    .only(&self.graphs);
                let n = Scalar::number(length as f64);
                let mean = self.graphs.binary(Binary::Divide, sum, n);
                Ok(Value::scalar(ty, mean))
            }
            Reduction::DotSelf => {
                let squares = self.unary(Unary::Square, a, a.shape.ty);
                self.fold(&squares, Binary::Add, 0.0, ty)
            }
            Reduction::Product => self.fold(a, Binary::Multiply, 1.0, ty),
            Reduction::Minimum => self.fold(a, Binary::Minimum, f64::INFINITY, ty),
            Reduction::Maximum => self.fold(a, Binary::Maximum, f64::NEG_INFINITY, ty),
            Reduction::LogSumExp => {
                let elements = a.elements(&self.graphs);
                let mut iter = elements.iter().copied();
                let first = iter.next().unwrap_or(Scalar::number(f64::NEG_INFINITY));
                let total = iter.fold(first, |sum, x| {
                    scalar_function(&mut self.graphs, Elementwise2::LogSumExp, sum, x)
                });
                Ok(Value::scalar(ty, total))
            }
        }
    }

    fn fold(&mut self, a: &Value, op: Binary, start: f64, ty: Type) -> Traced<Value> {
        if a.shape.length() == 0 {
            return Ok(Value::number(ty, start));
        }
        if op == Binary::Add && !a.is_private() && !a.is_constant() {
            let node = a.public_node(&mut self.graphs);
            let sum = self.graphs.public.sum_of(node);
            return Ok(Value::scalar(ty, self.graphs.from_public(sum)));
        }
        let elements = a.elements(&self.graphs);
        let total = elements[1..]
            .iter()
            .fold(elements[0], |sum, &x| self.graphs.binary(op, sum, x));
        Ok(Value::scalar(ty, total))
    }

    fn shape_function(
        &mut self,
        span: Span,
        shaping: Shaping,
        ty: Type,
        arguments: &[Value],
    ) -> Traced<Value> {
        let int = |n: usize| Ok(Value::number(Type::INT, n as f64));
        let first = &arguments[0];
        let sizes = &first.shape.sizes;
        match shaping {
            Shaping::Size if first.shape.ty.array > 0 => int(sizes[0]),
            Shaping::Size | Shaping::NumElements => int(first.shape.length()),
            Shaping::Rows => int(match first.shape.ty.base {
                Base::RowVector => 1,
                _ => sizes[0],
            }),
            Shaping::Cols => int(match first.shape.ty.base {
                Base::RowVector => sizes[0],
                Base::Matrix => sizes[1],
                _ => 1,
            }),
            Shaping::ToVector | Shaping::ToRowVector | Shaping::ToArray1d => Ok(Value {
                shape: Shape {
                    ty,
                    sizes: vec![first.shape.length()],
                },
                data: first.data.clone(),
            }),
            Shaping::RepVector | Shaping::RepRowVector | Shaping::RepMatrix | Shaping::RepArray => {
                let mut counts = Vec::new();
                for size in &arguments[1..] {
                    let n = size.only(&self.graphs).as_number().unwrap_or(-1.0);
                    if !(0.0..=1e8).contains(&n) {
                        return Err(BindError::new(span, format!("cannot repeat {n} times")));
                    }
                    counts.push(n as usize);
                }
                check_length(span, &[&counts[..], sizes].concat())?;
                let copies: usize = counts.iter().product();
                let elements = first.elements(&self.graphs);
                let elements =
                    if first.shape.ty == Type::ROW_VECTOR && shaping == Shaping::RepMatrix {
                        // So many rows: stored column by column.
                        elements.iter().flat_map(|&e| vec![e; copies]).collect()
                    } else {
                        elements.repeat(copies)
                    };
                if first.shape.ty == Type::VECTOR && shaping == Shaping::RepMatrix {
                    counts.insert(0, sizes[0]);
                } else {
                    counts.extend(sizes);
                }
                Ok(Value {
                    shape: Shape { ty, sizes: counts },
                    data: Data::of(elements),
                })
            }
        }
    }

    /// The terms of a log density: one per element, or already summed where
    /// they are public.
    fn log_density(
        &mut self,
        span: Span,
        family: usize,
        variate: &Expr,
        arguments: &[Expr],
    ) -> Traced<Value> {
        let mut values = vec![self.expression(variate)?];
        for argument in arguments {
            values.push(self.expression(argument)?);
        }
        let length = values
            .iter()
            .find(|v| !v.shape.sizes.is_empty())
            .map(|v| v.shape.length());
        for v in &values {
            if !v.shape.sizes.is_empty() && Some(v.shape.length()) != length {
                return Err(BindError::new(
                    span,
                    format!(
                        "`{}` is given containers of {} and of {} elements: their sizes must agree",
                        distribution::FAMILIES[family].name(),
                        length.unwrap_or(1),
                        v.shape.length()
                    ),
                ));
            }
        }
        let length = length.unwrap_or(1);
        let shape = Shape {
            ty: Type {
                base: Base::Real,
                array: 1,
            },
            sizes: vec![length],
        };
        if length == 0 {
            return Ok(Value {
                shape,
                data: Data::of(Vec::new()),
            });
        }
        if !values.iter().any(Value::is_private) {
            let nodes: Vec<_> = values
                .iter()
                .map(|v| v.public_node(&mut self.graphs))
                .collect();
            let node =
                distribution::log_density(family, &mut self.graphs.public, nodes[0], &nodes[1..]);
            // Nothing depends on the element: the same term so many times.
            let node = if self.graphs.public.length(node) < length {
                let times = self.graphs.public.constant(length as f64);
                self.graphs.public.multiply(node, times)
            } else {
                node
            };
            let sum = self.graphs.public.sum_of(node);
            return Ok(Value::scalar(Type::REAL, self.graphs.from_public(sum)));
        }
        let elements: Vec<_> = values.iter().map(|v| v.elements(&self.graphs)).collect();
        let terms = (0..length)
            .map(|i| {
                let at = |k: usize| {
                    let e = &elements[k];
                    e[if values[k].shape.sizes.is_empty() {
                        0
                    } else {
                        i
                    }]
                };
                let arguments: Vec<Scalar> = (1..values.len()).map(at).collect();
                distribution::log_density(family, &mut self.graphs, at(0), &arguments)
            })
            .collect();
        Ok(Value {
            shape,
            data: Data::of(terms),
        })
    }
}

/// Functions of two scalars that are composed of simpler ones.
fn scalar_function(g: &mut Graphs, function: Elementwise2, x: Scalar, y: Scalar) -> Scalar {
    match function {
        Elementwise2::Power => g.binary(Binary::Power, x, y),
        Elementwise2::Minimum => g.binary(Binary::Minimum, x, y),
        Elementwise2::Maximum => g.binary(Binary::Maximum, x, y),
        Elementwise2::LogSumExp => {
            // The larger one plus log1p(exp(smaller - larger)): exact gradients
            // also where the two are equal, and no infinity minus infinity.
            let y_less_x = g.subtract(y, x);
            let x_less_y = g.subtract(x, y);
            let rest_of_x = g.unary(Unary::Log1pExp, y_less_x);
            let rest_of_y = g.unary(Unary::Log1pExp, x_less_y);
            let from_x = g.add(x, rest_of_x);
            let from_y = g.add(y, rest_of_y);
            let y_larger = g.less(x, y);
            let larger = g.select(y_larger, from_y, from_x);
            let nothing = g.constant(f64::NEG_INFINITY);
            let y_empty = g.equal(y, nothing);
            g.select(y_empty, x, larger)
        }
        Elementwise2::LogDiffExp => {
            let difference = g.subtract(y, x);
            let rest = g.unary(Unary::Log1mExp, difference);
            g.add(x, rest)
        }
        Elementwise2::MultiplyLog => g.multiply_log(x, y),
        Elementwise2::LogBeta => g.log_beta(x, y),
        Elementwise2::LogChoose => g.log_choose(x, y),
        Elementwise2::Hypot => {
            let (x2, y2) = (g.square(x), g.square(y));
            let sum = g.add(x2, y2);
            g.unary(Unary::Sqrt, sum)
        }
        Elementwise2::PositiveDifference => {
            let difference = g.subtract(x, y);
            let zero = g.constant(0.0);
            g.binary(Binary::Maximum, difference, zero)
        }
    }
}

fn position(span: Span, index: i64, size: usize) -> Traced<usize> {
    if index >= 1 && index as usize <= size {
        return Ok(index as usize - 1);
    }
    Err(BindError::new(
        span,
        format!("index {index} is outside 1..{size}"),
    ))
}

fn indexed_type(ty: Type, chosen: &[(Vec<usize>, bool)]) -> Type {
    let array = chosen[..ty.array].iter().filter(|c| c.1).count();
    let base = match (ty.base, &chosen[ty.array..]) {
        (Base::Vector | Base::RowVector, [c]) if !c.1 => Base::Real,
        (Base::Matrix, [i, j]) => match (i.1, j.1) {
            (true, true) => Base::Matrix,
            (true, false) => Base::Vector,
            (false, true) => Base::RowVector,
            (false, false) => Base::Real,
        },
        (base, _) => base,
    };
    Type { base, array }
}

/// Refuses containers that would fill the memory.
fn check_length(span: Span, sizes: &[usize]) -> Traced<()> {
    let length = sizes.iter().try_fold(1usize, |a, &b| a.checked_mul(b));
    if length.is_some_and(|n| n <= MAX_ELEMENTS) {
        return Ok(());
    }
    let sizes: Vec<_> = sizes.iter().map(ToString::to_string).collect();
    Err(BindError::new(
        span,
        format!(
            "{} elements are more than {MAX_ELEMENTS}",
            sizes.join(" x ")
        ),
    ))
}

fn check_sizes(span: Span, declared: &Shape, value: &Value) -> Traced<()> {
    if declared.sizes == value.shape.sizes {
        return Ok(());
    }
    Err(BindError::new(
        span,
        format!(
            "expected {}, found {}",
            declared.describe(),
            value.shape.describe()
        ),
    ))
}

fn same_sizes(span: Span, a: &Value, b: &Value) -> Traced<()> {
    if a.shape.sizes == b.shape.sizes {
        return Ok(());
    }
    Err(BindError::new(
        span,
        format!(
            "sizes differ: {} and {}",
            a.shape.describe(),
            b.shape.describe()
        ),
    ))
}
