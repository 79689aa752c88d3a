//! Functions of containers that give numbers.

use super::super::super::private::Scalar;
use super::super::super::public::Binary;
use super::super::super::value::{Shape, Value};
use super::super::{BindError, Traced, Tracer, same_sizes};
use super::{first, two};
use crate::check::{Base, Type};
use crate::distribution::Algebra;
use crate::function::catalogue::{DotProducts, Reduction};
use crate::function::{Kernel, Unary, root};
use crate::syntax::Span;

impl Tracer<'_> {
    pub(super) fn reduce(
        &mut self,
        span: Span,
        reduction: Reduction,
        a: &Value,
        ty: Type,
    ) -> Traced<Value> {
        match reduction {
            Reduction::Sum => self.fold(a, Binary::Add, 0.0, ty),
            Reduction::Mean => self.mean(a),
            Reduction::Variance => self.variance(span, a),
            Reduction::StandardDeviation => {
                let variance = self.variance(span, a)?.only(&self.graphs);
                Ok(Value::scalar(ty, root(&mut self.graphs, variance)))
            }
            Reduction::DotSelf => self.sum_of_squares(a),
            Reduction::Norm1 => {
                let sizes = self.unary(Unary::Abs, a, a.shape.ty);
                self.fold(&sizes, Binary::Add, 0.0, ty)
            }
            Reduction::Norm2 => {
                let sum = self.sum_of_squares(a)?.only(&self.graphs);
                Ok(Value::scalar(ty, root(&mut self.graphs, sum)))
            }
            Reduction::Product => self.fold(a, Binary::Multiply, 1.0, ty),
            Reduction::Minimum => self.fold(a, Binary::Minimum, f64::INFINITY, ty),
            Reduction::Maximum => self.fold(a, Binary::Maximum, f64::NEG_INFINITY, ty),
            Reduction::LogSumExp => Ok(self.log_sum_exp(a)),
        }
    }

    /// The log-sum-exp of the elements of a container.
    pub(super) fn log_sum_exp(&mut self, a: &Value) -> Value {
        if !a.is_private() {
            return self.kernel(Kernel::LogSumExp, a, None, Shape::scalar(Type::REAL));
        }
        let elements = a.elements(&self.graphs);
        let total = self.graphs.log_sum_exp(&elements);
        Value::scalar(Type::REAL, total)
    }

    /// Folds the elements with an operation, from the left.
    pub(in super::super) fn fold(
        &mut self,
        a: &Value,
        op: Binary,
        start: f64,
        ty: Type,
    ) -> Traced<Value> {
        if a.shape.length() == 0 {
            return Ok(Value::number(ty, start));
        }
        if !a.is_private() && !a.is_constant() {
            let node = a.public_node(&mut self.graphs);
            let graph = &mut self.graphs.public;
            let node = match op {
                Binary::Add => Some(graph.sum_of(node)),
                Binary::Multiply => Some(graph.kernel(Kernel::Product, node, None)),
                Binary::Minimum => Some(graph.kernel(Kernel::Minimum, node, None)),
                Binary::Maximum => Some(graph.kernel(Kernel::Maximum, node, None)),
                _ => None,
            };
            if let Some(node) = node {
                return Ok(Value::scalar(ty, self.graphs.only_element(node)));
            }
        }
        let elements = a.elements(&self.graphs);
        let total = elements[1..]
            .iter()
            .fold(elements[0], |sum, &x| self.graphs.binary(op, sum, x));
        Ok(Value::scalar(ty, total))
    }

    fn mean(&mut self, a: &Value) -> Traced<Value> {
        let sum = self.fold(a, Binary::Add, 0.0, Type::REAL)?;
        let n = Scalar::number(a.shape.length() as f64);
        let mean = self
            .graphs
            .binary(Binary::Divide, sum.only(&self.graphs), n);
        Ok(Value::scalar(Type::REAL, mean))
    }

    fn variance(&mut self, span: Span, a: &Value) -> Traced<Value> {
        let n = a.shape.length();
        if n == 0 {
            return Err(BindError::new(span, "the variance of nothing"));
        }
        if n == 1 {
            return Ok(Value::number(Type::REAL, 0.0));
        }
        let mean = self.mean(a)?;
        let deviations = self.elementwise(span, Binary::Subtract, a, &mean, a.shape.ty)?;
        let sum = self.sum_of_squares(&deviations)?.only(&self.graphs);
        let divisor = Scalar::number(n as f64 - 1.0);
        let variance = self.graphs.binary(Binary::Divide, sum, divisor);
        Ok(Value::scalar(Type::REAL, variance))
    }

    fn sum_of_squares(&mut self, a: &Value) -> Traced<Value> {
        let squares = self.unary(Unary::Square, a, a.shape.ty);
        self.fold(&squares, Binary::Add, 0.0, Type::REAL)
    }

    pub(super) fn dot_products(
        &mut self,
        span: Span,
        function: DotProducts,
        arguments: &[Value],
        ty: Type,
    ) -> Traced<Value> {
        let x = first(span, arguments)?;
        match function {
            DotProducts::DotProduct => {
                let (x, y) = two(span, arguments)?;
                same_sizes(span, x, y)?;
                let product = self.elementwise(span, Binary::Multiply, x, y, x.shape.ty)?;
                self.fold(&product, Binary::Add, 0.0, ty)
            }
            DotProducts::SquaredDistance => self.squared_distance(span, arguments),
            DotProducts::Distance => {
                let square = self.squared_distance(span, arguments)?.only(&self.graphs);
                Ok(Value::scalar(ty, root(&mut self.graphs, square)))
            }
            DotProducts::ColumnsDotProduct => {
                let (x, y) = two(span, arguments)?;
                let product = self.elementwise(span, Binary::Multiply, x, y, x.shape.ty)?;
                self.column_sums(span, product)
            }
            DotProducts::RowsDotProduct => {
                let (x, y) = two(span, arguments)?;
                let product = self.elementwise(span, Binary::Multiply, x, y, x.shape.ty)?;
                self.row_sums(span, product)
            }
            DotProducts::ColumnsDotSelf => {
                let squares = self.unary(Unary::Square, x, x.shape.ty);
                self.column_sums(span, squares)
            }
            DotProducts::RowsDotSelf => {
                let squares = self.unary(Unary::Square, x, x.shape.ty);
                self.row_sums(span, squares)
            }
        }
    }

    fn squared_distance(&mut self, span: Span, arguments: &[Value]) -> Traced<Value> {
        let (x, y) = two(span, arguments)?;
        same_sizes(span, x, y)?;
        let difference = self.elementwise(span, Binary::Subtract, x, y, x.shape.ty)?;
        self.sum_of_squares(&difference)
    }

    fn column_sums(&mut self, span: Span, value: Value) -> Traced<Value> {
        let matrix = as_matrix(value);
        let ones = ones(Type::ROW_VECTOR, matrix.shape.sizes[0]);
        self.matrix_product(span, &ones, &matrix)
    }

    fn row_sums(&mut self, span: Span, value: Value) -> Traced<Value> {
        let matrix = as_matrix(value);
        let ones = ones(Type::VECTOR, matrix.shape.sizes[1]);
        self.matrix_product(span, &matrix, &ones)
    }
}

fn ones(ty: Type, n: usize) -> Value {
    Value::of(Shape { ty, sizes: vec![n] }, vec![Scalar::number(1.0); n])
}

/// A vector as the matrix of its one column, a row vector as that of its one
/// row.
pub(super) fn as_matrix(value: Value) -> Value {
    let sizes = match value.shape.ty.base {
        Base::Vector => vec![value.shape.sizes[0], 1],
        Base::RowVector => vec![1, value.shape.sizes[0]],
        Base::Matrix | Base::Int | Base::Real => value.shape.sizes,
    };
    Value {
        shape: Shape {
            ty: Type::MATRIX,
            sizes,
        },
        data: value.data,
    }
}
