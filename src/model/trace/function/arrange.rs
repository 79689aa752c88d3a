//! Functions that pick elements, or put containers together.

use super::super::super::BindError;
use super::super::super::value::{Data, Shape, Value};
use super::super::{Traced, Tracer, check_length};
use super::reduce::as_matrix;
use super::{argument, first, two};
use crate::check::{Base, Type};
use crate::function::catalogue::Arranging;
use crate::syntax::Span;

impl Tracer<'_> {
    pub(super) fn arrange(
        &mut self,
        span: Span,
        function: Arranging,
        arguments: &[Value],
        ty: Type,
    ) -> Traced<Value> {
        let x = first(span, arguments)?;
        let size = |k: usize| x.shape.sizes.get(k).copied().unwrap_or(1);
        let count = |k: usize| -> Traced<usize> {
            let value = argument(span, arguments, k)?;
            self.count(span, value)
        };
        match function {
            Arranging::Head => {
                let n = count(1)?;
                let from = slice(span, 1, n, size(0))?;
                Ok(self.steps(x, ty, from..from + n))
            }
            Arranging::Tail => {
                let n = count(1)?;
                slice(span, 1, n, size(0))?;
                Ok(self.steps(x, ty, size(0) - n..size(0)))
            }
            Arranging::Segment => {
                let (i, n) = (count(1)?, count(2)?);
                let from = slice(span, i, n, size(0))?;
                Ok(self.steps(x, ty, from..from + n))
            }
            Arranging::Reverse => Ok(self.steps(x, ty, (0..size(0)).rev())),
            Arranging::Row => {
                let i = slice(span, count(1)?, 1, size(0))?;
                Ok(self.part(x, ty, i..i + 1, 0..size(1)))
            }
            Arranging::Column => {
                let j = slice(span, count(1)?, 1, size(1))?;
                Ok(self.part(x, ty, 0..size(0), j..j + 1))
            }
            Arranging::SubRow => {
                let (i, j, n) = (count(1)?, count(2)?, count(3)?);
                let (i, j) = (slice(span, i, 1, size(0))?, slice(span, j, n, size(1))?);
                Ok(self.part(x, ty, i..i + 1, j..j + n))
            }
            Arranging::SubColumn => {
                let (i, j, n) = (count(1)?, count(2)?, count(3)?);
                let (i, j) = (slice(span, i, n, size(0))?, slice(span, j, 1, size(1))?);
                Ok(self.part(x, ty, i..i + n, j..j + 1))
            }
            Arranging::Block => {
                let (i, j, m, n) = (count(1)?, count(2)?, count(3)?, count(4)?);
                let (i, j) = (slice(span, i, m, size(0))?, slice(span, j, n, size(1))?);
                Ok(self.part(x, ty, i..i + m, j..j + n))
            }
            Arranging::Diagonal => Ok(self.diagonal(x)),
            Arranging::DiagonalMatrix => {
                let n = size(0);
                check_length(span, &[n, n])?;
                Ok(self.diagonal_matrix(x, n))
            }
            Arranging::AppendRow => {
                let (x, y) = two(span, arguments)?;
                self.append_row(span, x, y, ty)
            }
            Arranging::AppendColumn => {
                let (x, y) = two(span, arguments)?;
                self.append_column(span, x, y, ty)
            }
            Arranging::AppendArray => {
                let (x, y) = two(span, arguments)?;
                if x.shape.sizes[1..] != y.shape.sizes[1..] {
                    return Err(cannot_append(span, x, y));
                }
                let mut sizes = x.shape.sizes.clone();
                sizes[0] += y.shape.sizes[0];
                check_length(span, &sizes)?;
                Ok(self.joined(x, y, Shape { ty, sizes }))
            }
        }
    }

    /// The diagonal of a matrix, as a vector.
    pub(super) fn diagonal(&mut self, x: &Value) -> Value {
        let (rows, columns) = (x.shape.sizes[0], x.shape.sizes[1]);
        let positions: Vec<usize> = (0..rows.min(columns)).map(|k| k + k * rows).collect();
        let data = self.take(x, &positions);
        Value {
            shape: Shape {
                ty: Type::VECTOR,
                sizes: vec![positions.len()],
            },
            data,
        }
    }

    /// A matrix with this diagonal; a number is repeated in every place.
    pub(super) fn diagonal_matrix(&mut self, x: &Value, n: usize) -> Value {
        let single = x.shape.sizes.is_empty();
        let positions: Vec<Option<usize>> = (0..n * n)
            .map(|k| (k % n == k / n).then_some(if single { 0 } else { k % n }))
            .collect();
        Value {
            shape: Shape {
                ty: Type::MATRIX,
                sizes: vec![n, n],
            },
            data: self.scatter(x, &positions),
        }
    }

    /// Elements of the first dimension of a vector or array.
    fn steps(&mut self, x: &Value, ty: Type, picked: impl Iterator<Item = usize>) -> Value {
        let inner: usize = x.shape.sizes[1..].iter().product();
        let picked: Vec<usize> = picked.collect();
        let positions: Vec<usize> = picked
            .iter()
            .flat_map(|&k| k * inner..(k + 1) * inner)
            .collect();
        let mut sizes = x.shape.sizes.clone();
        sizes[0] = picked.len();
        let data = self.take(x, &positions);
        Value {
            shape: Shape { ty, sizes },
            data,
        }
    }

    /// Rows and columns of a matrix, as a value of this type.
    fn part(
        &mut self,
        x: &Value,
        ty: Type,
        rows: std::ops::Range<usize>,
        columns: std::ops::Range<usize>,
    ) -> Value {
        let height = x.shape.sizes[0];
        let sizes = match ty.base {
            Base::Vector => vec![rows.len()],
            Base::RowVector => vec![columns.len()],
            Base::Int | Base::Real | Base::Matrix => vec![rows.len(), columns.len()],
        };
        let positions: Vec<usize> = columns
            .flat_map(|j| rows.clone().map(move |i| i + j * height))
            .collect();
        let data = self.take(x, &positions);
        Value {
            shape: Shape { ty, sizes },
            data,
        }
    }

    fn append_row(&mut self, span: Span, x: &Value, y: &Value, ty: Type) -> Traced<Value> {
        if ty == Type::VECTOR {
            let n = x.shape.length() + y.shape.length();
            let shape = Shape { ty, sizes: vec![n] };
            return Ok(self.joined(x, y, shape));
        }
        let (x, y) = (as_matrix(x.clone()), as_matrix(y.clone()));
        let columns = x.shape.sizes[1];
        if columns != y.shape.sizes[1] {
            return Err(cannot_append(span, &x, &y));
        }
        let (above, below) = (x.shape.sizes[0], y.shape.sizes[0]);
        let rows = above + below;
        check_length(span, &[rows, columns])?;
        let both = self.joined(
            &x,
            &y,
            Shape {
                ty: Type::VECTOR,
                sizes: vec![rows * columns],
            },
        );
        let positions: Vec<usize> = (0..columns)
            .flat_map(|j| {
                let of_x = (0..above).map(move |i| i + j * above);
                let of_y = (0..below).map(move |i| above * columns + i + j * below);
                of_x.chain(of_y)
            })
            .collect();
        let data = self.take(&both, &positions);
        Ok(Value {
            shape: Shape {
                ty,
                sizes: vec![rows, columns],
            },
            data,
        })
    }

    fn append_column(&mut self, span: Span, x: &Value, y: &Value, ty: Type) -> Traced<Value> {
        if ty == Type::ROW_VECTOR {
            let n = x.shape.length() + y.shape.length();
            let shape = Shape { ty, sizes: vec![n] };
            return Ok(self.joined(x, y, shape));
        }
        let (x, y) = (as_matrix(x.clone()), as_matrix(y.clone()));
        let rows = x.shape.sizes[0];
        if rows != y.shape.sizes[0] {
            return Err(cannot_append(span, &x, &y));
        }
        let columns = x.shape.sizes[1] + y.shape.sizes[1];
        check_length(span, &[rows, columns])?;
        let sizes = vec![rows, columns];
        Ok(self.joined(&x, &y, Shape { ty, sizes }))
    }

    /// The elements of one after those of the other.
    fn joined(&mut self, x: &Value, y: &Value, shape: Shape) -> Value {
        let public = |v: &Value| !v.is_private() && !v.is_constant();
        let data = if (public(x) || public(y)) && !x.is_private() && !y.is_private() {
            let parts = [x, y].map(|v| v.public_node(&mut self.graphs));
            Data::Public(self.graphs.public.concatenate(&parts))
        } else {
            let mut elements = x.elements(&self.graphs).to_vec();
            elements.extend(y.elements(&self.graphs).iter());
            Data::of(elements)
        };
        Value { shape, data }
    }
}

fn cannot_append(span: Span, x: &Value, y: &Value) -> BindError {
    BindError::new(
        span,
        format!(
            "{} and {} do not fit together",
            x.shape.describe(),
            y.shape.describe()
        ),
    )
}

/// `n` of `size` elements from the 1-based `from` on: the first, from 0.
fn slice(span: Span, from: usize, n: usize, size: usize) -> Traced<usize> {
    if from >= 1 && from - 1 + n <= size {
        return Ok(from - 1);
    }
    Err(BindError::new(
        span,
        match n {
            1 => format!("position {from} is outside 1..{size}"),
            _ => format!("{n} elements from position {from} on, but there are {size}"),
        },
    ))
}
