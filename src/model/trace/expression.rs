//! Expressions and operators: the value of each, its parts traced first.

use super::super::BindError;
use super::super::public::Binary;
use super::super::value::{Data, Shape, Value};
use super::{Traced, Tracer, same_sizes};
use crate::check::{Base, Expr, ExprKind, Truncation, Type};
use crate::distribution::Algebra;
use crate::function::Unary;
use crate::syntax::{BinaryOperator, Span};

impl Tracer<'_> {
    pub fn expression(&mut self, e: &Expr) -> Traced<Value> {
        match &e.kind {
            ExprKind::Int(v) => Ok(Value::number(Type::INT, *v as f64)),
            ExprKind::Real(v) => Ok(Value::number(Type::REAL, *v)),
            ExprKind::Variable(id) => self.state.variables[id.0].clone().ok_or_else(|| {
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
                let all = Truncation::default();
                let terms = self.log_density(e.span, *family, variate, arguments, &all)?;
                self.fold(&terms, Binary::Add, 0.0, Type::REAL)
            }
            ExprKind::LogTail {
                family,
                tail,
                variate,
                arguments,
            } => {
                let terms = self.log_tail(e.span, (*family, *tail), variate, arguments)?;
                self.fold(&terms, Binary::Add, 0.0, Type::REAL)
            }
            ExprKind::Draw { family, arguments } => self.draw(e.span, e.ty, *family, arguments),
            ExprKind::UserCall {
                function,
                arguments,
            } => {
                let value = self.user_call(e.span, *function, arguments)?;
                value.ok_or_else(|| BindError::new(e.span, "this function gives no value"))
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
                // The left operands in a loop, as a sum may have many terms.
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
                if !c.is_private() && !a.is_private() && !b.is_private() && a.shape.length() > 1 {
                    let condition = self.graphs.assemble(&[c]);
                    let (then, otherwise) = (
                        a.public_node(&mut self.graphs),
                        b.public_node(&mut self.graphs),
                    );
                    let node = self
                        .graphs
                        .public
                        .select_between(condition, then, otherwise);
                    return Ok(Value {
                        shape: Shape {
                            ty: e.ty,
                            sizes: a.shape.sizes,
                        },
                        data: Data::Public(node),
                    });
                }
                let elements = a
                    .elements(&self.graphs)
                    .iter()
                    .zip(b.elements(&self.graphs).iter())
                    .map(|(&a, &b)| self.graphs.select(c, a, b))
                    .collect();
                Ok(Value::of(
                    Shape {
                        ty: e.ty,
                        sizes: a.shape.sizes,
                    },
                    elements,
                ))
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
        Ok(Value::of(Shape { ty, sizes }, elements))
    }

    pub(super) fn transpose(&mut self, value: Value, ty: Type) -> Traced<Value> {
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

    pub(super) fn unary(&mut self, function: Unary, value: &Value, ty: Type) -> Value {
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
            Divide if !right.shape.ty.is_number() => return self.solve_right(span, left, right),
            LeftDivide => return self.solve(span, left, right),
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
            IntegerDivide => {
                return Err(BindError::new(span, "`%/%` divides two ints"));
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

    pub(super) fn elementwise(
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
}
