//! Matrix products, decompositions, and the solution of linear systems.

use super::super::super::private::{Graphs, Scalar};
use super::super::super::public::Binary;
use super::super::super::value::{Shape, Value};
use super::super::{BindError, Traced, Tracer, check_length};
use super::shape::identity;
use super::{first, two};
use crate::check::{Base, Type};
use crate::distribution::Algebra;
use crate::function::catalogue::{Linear, Products};
use crate::function::{Kernel, Unary, linear, unrolled};
use crate::syntax::Span;

impl Tracer<'_> {
    pub(super) fn products(
        &mut self,
        span: Span,
        function: Products,
        arguments: &[Value],
        ty: Type,
    ) -> Traced<Value> {
        let x = first(span, arguments)?;
        match function {
            Products::DiagonalPreMultiply => {
                let (v, m) = two(span, arguments)?;
                let rows = self.spread(span, v, m, |i, _| i)?;
                self.elementwise(span, Binary::Multiply, &rows, m, ty)
            }
            Products::DiagonalPostMultiply => {
                let (m, v) = two(span, arguments)?;
                let columns = self.spread(span, v, m, |_, j| j)?;
                self.elementwise(span, Binary::Multiply, m, &columns, ty)
            }
            Products::AddDiagonal => {
                let (m, d) = two(span, arguments)?;
                let n = square(span, m)?;
                if !d.shape.sizes.is_empty() && d.shape.length() != n {
                    return Err(BindError::new(
                        span,
                        format!("{} on the diagonal of {n} elements", d.shape.describe()),
                    ));
                }
                let diagonal = self.diagonal_matrix(d, n);
                self.elementwise(span, Binary::Add, m, &diagonal, ty)
            }
            Products::CrossProduct => {
                let transposed = self.transpose(x.clone(), Type::MATRIX)?;
                self.matrix_product(span, &transposed, x)
            }
            Products::TransposedCrossProduct => {
                let transposed = self.transpose(x.clone(), Type::MATRIX)?;
                self.matrix_product(span, x, &transposed)
            }
            Products::LowerTimesTranspose => {
                let (rows, columns) = (x.shape.sizes[0], x.shape.sizes[1]);
                let kept: Vec<Option<usize>> = (0..rows * columns)
                    .map(|k| (k % rows >= k / rows).then_some(k))
                    .collect();
                let lower = Value {
                    shape: x.shape.clone(),
                    data: self.scatter(x, &kept),
                };
                let transposed = self.transpose(lower.clone(), Type::MATRIX)?;
                self.matrix_product(span, &lower, &transposed)
            }
            Products::QuadraticForm | Products::SymmetricQuadraticForm => {
                let (a, b) = two(span, arguments)?;
                square(span, a)?;
                let row = match b.shape.ty.base {
                    Base::Vector => Type::ROW_VECTOR,
                    _ => Type::MATRIX,
                };
                let transposed = self.transpose(b.clone(), row)?;
                let left = self.matrix_product(span, &transposed, a)?;
                self.matrix_product(span, &left, b)
            }
            Products::DiagonalQuadraticForm => {
                let (m, v) = two(span, arguments)?;
                square(span, m)?;
                let rows = self.spread(span, v, m, |i, _| i)?;
                let columns = self.spread(span, v, m, |_, j| j)?;
                let left = self.elementwise(span, Binary::Multiply, &rows, m, ty)?;
                self.elementwise(span, Binary::Multiply, &left, &columns, ty)
            }
            Products::TraceQuadraticForm => {
                let (a, b) = two(span, arguments)?;
                square(span, a)?;
                let product = self.matrix_product(span, a, b)?;
                let each = self.elementwise(span, Binary::Multiply, b, &product, b.shape.ty)?;
                self.fold(&each, Binary::Add, 0.0, ty)
            }
            Products::Trace => {
                square(span, x)?;
                let diagonal = self.diagonal(x);
                self.fold(&diagonal, Binary::Add, 0.0, ty)
            }
        }
    }

    /// For each element of a matrix, the element of `v` that `pick(row, column)`
    /// names.
    fn spread(
        &mut self,
        span: Span,
        v: &Value,
        m: &Value,
        pick: impl Fn(usize, usize) -> usize,
    ) -> Traced<Value> {
        let (rows, columns) = (m.shape.sizes[0], m.shape.sizes[1]);
        let positions: Vec<usize> = (0..rows * columns)
            .map(|k| pick(k % rows, k / rows))
            .collect();
        let wanted = pick(rows, columns);
        if v.shape.length() != wanted {
            return Err(BindError::new(
                span,
                format!(
                    "{} beside {}: expected {wanted} elements",
                    v.shape.describe(),
                    m.shape.describe()
                ),
            ));
        }
        let data = self.take(v, &positions);
        Ok(Value {
            shape: m.shape.clone(),
            data,
        })
    }

    pub(in super::super) fn matrix_product(
        &mut self,
        span: Span,
        left: &Value,
        right: &Value,
    ) -> Traced<Value> {
        let as_matrix = |v: &Value| match v.shape.ty.base {
            Base::Matrix => (v.shape.sizes[0], v.shape.sizes[1]),
            Base::Vector => (v.shape.sizes[0], 1),
            Base::RowVector | Base::Int | Base::Real => (1, v.shape.sizes[0]),
        };
        let (rows, inner) = as_matrix(left);
        let (inner_right, columns) = as_matrix(right);
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
        if left.is_private() || right.is_private() {
            self.check_unrolled(span, rows * inner * columns)?;
            let (a, b) = (left.elements(&self.graphs), right.elements(&self.graphs));
            let sizes = [rows, inner, columns];
            let elements = unrolled::product(&mut self.graphs, sizes, &a, &b);
            return Ok(Value::of(shape, elements));
        }
        let kernel = Kernel::MatrixProduct {
            rows: rows as u32,
            inner: inner as u32,
            columns: columns as u32,
        };
        Ok(self.kernel(kernel, left, Some(right), shape))
    }

    pub(super) fn linear_algebra(
        &mut self,
        span: Span,
        function: Linear,
        arguments: &[Value],
        ty: Type,
    ) -> Traced<Value> {
        let x = first(span, arguments)?;
        match function {
            Linear::Cholesky => self.cholesky(span, x),
            Linear::SolveLower => {
                let (a, b) = two(span, arguments)?;
                self.solve_lower(span, a, b, false)
            }
            Linear::SolveLowerRight => {
                // b a^-1 = (a^-T b^T)^T
                let (b, a) = two(span, arguments)?;
                self.on_the_right(b, ty, |this, b| this.solve_lower(span, a, b, true))
            }
            Linear::Solve => {
                let (a, b) = two(span, arguments)?;
                self.solve(span, a, b)
            }
            Linear::SolveRight => {
                let (b, a) = two(span, arguments)?;
                self.solve_right(span, b, a)
            }
            Linear::SolvePositive => {
                let (a, b) = two(span, arguments)?;
                self.solve_positive(span, a, b)
            }
            Linear::SolvePositiveRight => {
                let (b, a) = two(span, arguments)?;
                self.on_the_right(b, ty, |this, b| this.solve_positive(span, a, b))
            }
            Linear::Inverse => {
                let n = square(span, x)?;
                self.solve(span, x, &identity(n))
            }
            Linear::InversePositive => {
                let n = square(span, x)?;
                self.solve_positive(span, x, &identity(n))
            }
            Linear::InverseOfFactor => {
                let n = square(span, x)?;
                let half = self.solve_lower(span, x, &identity(n), false)?;
                let transposed = self.transpose(half.clone(), Type::MATRIX)?;
                self.matrix_product(span, &transposed, &half)
            }
            Linear::Determinant => {
                let n = square(span, x)?;
                let kernel = Kernel::Determinant { size: n as u32 };
                self.number_of_matrix(span, x, n, kernel, unrolled::determinant)
            }
            Linear::LogDeterminant => {
                let n = square(span, x)?;
                let kernel = Kernel::LogDeterminant { size: n as u32 };
                self.number_of_matrix(span, x, n, kernel, unrolled::log_determinant)
            }
            Linear::LogDeterminantPositive => {
                let factor = self.cholesky(span, x)?;
                let diagonal = self.diagonal(&factor);
                let logs = self.unary(Unary::Log, &diagonal, Type::VECTOR);
                let half = self.fold(&logs, Binary::Add, 0.0, ty)?.only(&self.graphs);
                let two = Scalar::number(2.0);
                Ok(Value::scalar(ty, self.graphs.multiply(two, half)))
            }
            Linear::ThinQ | Linear::ThinR => {
                let (rows, columns) = (x.shape.sizes[0], x.shape.sizes[1]);
                if rows < columns {
                    return Err(BindError::new(
                        span,
                        format!(
                            "the thin QR factors of {rows}x{columns}: there are fewer rows than columns"
                        ),
                    ));
                }
                let (q, r) = linear::thin_qr(rows, columns, &self.known_values(span, x)?);
                let (values, sizes) = match function {
                    Linear::ThinQ => (q, vec![rows, columns]),
                    _ => (r, vec![columns, columns]),
                };
                Ok(Value::of(
                    Shape { ty, sizes },
                    values.into_iter().map(Scalar::number).collect(),
                ))
            }
        }
    }

    fn number_of_matrix(
        &mut self,
        span: Span,
        x: &Value,
        n: usize,
        kernel: Kernel,
        written_out: impl Fn(&mut Graphs, usize, &[Scalar]) -> Scalar,
    ) -> Traced<Value> {
        if n == 0 {
            // The empty product of pivots, and the empty sum of logarithms.
            let value = f64::from(matches!(kernel, Kernel::Determinant { .. }));
            return Ok(Value::number(Type::REAL, value));
        }
        if !x.is_private() {
            return Ok(self.kernel(kernel, x, None, Shape::scalar(Type::REAL)));
        }
        self.check_unrolled(span, 2 * n * n * n)?;
        let elements = x.elements(&self.graphs);
        let value = written_out(&mut self.graphs, n, &elements);
        Ok(Value::scalar(Type::REAL, value))
    }

    pub(super) fn cholesky(&mut self, span: Span, a: &Value) -> Traced<Value> {
        let n = square(span, a)?;
        let shape = a.shape.clone();
        if a.is_private() {
            self.check_unrolled(span, n * n * n / 3)?;
            let elements = a.elements(&self.graphs);
            let factor = self.graphs.cholesky(n, &elements);
            return Ok(Value::of(shape, factor));
        }
        if let Ok(values) = self.known_values(span, a) {
            let asymmetric = (0..n * n).find(|&k| {
                let other = values[k / n + (k % n) * n];
                (values[k] - other).abs() > 1e-8 * values[k].abs().max(1.0)
            });
            if let Some(k) = asymmetric {
                let (i, j) = (k % n + 1, k / n + 1);
                return Err(BindError::new(
                    span,
                    format!("this matrix is not symmetric: [{i}, {j}] and [{j}, {i}] differ"),
                ));
            }
        }
        let factor = self.kernel(Kernel::Cholesky { size: n as u32 }, a, None, shape);
        self.defined(span, factor, "this matrix is not positive definite")
    }

    /// A constant result must be finite; one that depends on parameters may fail at some of their
    /// values.
    fn defined(&self, span: Span, value: Value, otherwise: &str) -> Traced<Value> {
        match self.known_values(span, &value) {
            Ok(values) if values.iter().any(|v| !v.is_finite()) => {
                Err(BindError::new(span, otherwise))
            }
            _ => Ok(value),
        }
    }

    fn solve_lower(&mut self, span: Span, a: &Value, b: &Value, transposed: bool) -> Traced<Value> {
        let (n, columns) = system(span, a, b)?;
        if a.is_private() || b.is_private() {
            self.check_unrolled(span, n * n * columns)?;
            let (l, r) = (a.elements(&self.graphs), b.elements(&self.graphs));
            let x = self.graphs.solve_lower(n, transposed, &l, &r);
            return Ok(Value::of(b.shape.clone(), x));
        }
        let kernel = Kernel::SolveLower {
            size: n as u32,
            columns: columns as u32,
            transposed,
        };
        let x = self.kernel(kernel, a, Some(b), b.shape.clone());
        self.defined(span, x, "this matrix has a zero on its diagonal")
    }

    pub(in super::super) fn solve(&mut self, span: Span, a: &Value, b: &Value) -> Traced<Value> {
        let (n, columns) = system(span, a, b)?;
        if a.is_private() || b.is_private() {
            self.check_unrolled(span, 2 * n * n * (n + columns))?;
            let (m, r) = (a.elements(&self.graphs), b.elements(&self.graphs));
            let x = unrolled::solve(&mut self.graphs, n, &m, &r);
            return Ok(Value::of(b.shape.clone(), x));
        }
        let kernel = Kernel::Solve {
            size: n as u32,
            columns: columns as u32,
        };
        let x = self.kernel(kernel, a, Some(b), b.shape.clone());
        self.defined(span, x, "this matrix is singular")
    }

    /// `b a^-1 = (a^-T b^T)^T`
    pub(in super::super) fn solve_right(
        &mut self,
        span: Span,
        b: &Value,
        a: &Value,
    ) -> Traced<Value> {
        let transposed = self.transpose(a.clone(), Type::MATRIX)?;
        self.on_the_right(b, b.shape.ty, |this, b| this.solve(span, &transposed, b))
    }

    fn solve_positive(&mut self, span: Span, a: &Value, b: &Value) -> Traced<Value> {
        let factor = self.cholesky(span, a)?;
        let half = self.solve_lower(span, &factor, b, false)?;
        self.solve_lower(span, &factor, &half, true)
    }

    /// Solves for the transpose of `b`, and transposes the solution.
    fn on_the_right(
        &mut self,
        b: &Value,
        ty: Type,
        solve: impl FnOnce(&mut Self, &Value) -> Traced<Value>,
    ) -> Traced<Value> {
        let (turned, back) = match ty.base {
            Base::RowVector => (Type::VECTOR, Type::ROW_VECTOR),
            _ => (Type::MATRIX, Type::MATRIX),
        };
        let turned = self.transpose(b.clone(), turned)?;
        let solution = solve(self, &turned)?;
        self.transpose(solution, back)
    }
}

/// The size of a square matrix.
fn square(span: Span, a: &Value) -> Traced<usize> {
    let (rows, columns) = (a.shape.sizes[0], a.shape.sizes[1]);
    if rows == columns {
        return Ok(rows);
    }
    Err(BindError::new(
        span,
        format!("this matrix is {rows}x{columns}, but must be square"),
    ))
}

/// The size of a system of equations, and how many right-hand sides it has.
fn system(span: Span, a: &Value, b: &Value) -> Traced<(usize, usize)> {
    let n = square(span, a)?;
    let rows = b.shape.sizes[0];
    if rows != n {
        return Err(BindError::new(
            span,
            format!("a {n}x{n} system with right-hand sides of {rows}"),
        ));
    }
    check_length(span, &[n, n])?;
    Ok((n, b.shape.sizes.get(1).copied().unwrap_or(1)))
}
