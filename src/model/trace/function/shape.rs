//! Functions about sizes, and those that make or reshape containers.

use super::super::super::BindError;
use super::super::super::private::Scalar;
use super::super::super::public::Binary;
use super::super::super::value::{Shape, Value};
use super::super::{Traced, Tracer, check_length};
use super::first;
use crate::check::{Base, Type};
use crate::function::Unary;
use crate::function::catalogue::{Conversion, Making, Sizes};
use crate::syntax::Span;

/// The value of a function of sizes, a constant.
pub(super) fn sizes_of(function: Sizes, x: &Value) -> Value {
    let int = |n: usize| Value::number(Type::INT, n as f64);
    let Shape { ty, sizes } = &x.shape;
    match function {
        Sizes::Size if ty.array > 0 => int(sizes[0]),
        Sizes::Size | Sizes::NumElements => int(x.shape.length()),
        Sizes::Dims => Value::of(
            Shape {
                ty: Type {
                    base: Base::Int,
                    array: 1,
                },
                sizes: vec![sizes.len()],
            },
            sizes.iter().map(|&n| Scalar::number(n as f64)).collect(),
        ),
        Sizes::Rows => int(match ty.base {
            Base::RowVector => 1,
            Base::Int | Base::Real | Base::Vector | Base::Matrix => sizes[0],
        }),
        Sizes::Columns => int(match ty.base {
            Base::RowVector => sizes[0],
            Base::Matrix => sizes[1],
            Base::Int | Base::Real | Base::Vector => 1,
        }),
    }
}

impl Tracer<'_> {
    pub(super) fn convert(
        &mut self,
        span: Span,
        function: Conversion,
        arguments: &[Value],
        ty: Type,
    ) -> Traced<Value> {
        let x = first(span, arguments)?;
        let sizes = &x.shape.sizes;
        match function {
            Conversion::ToVector | Conversion::ToRowVector | Conversion::ToArray1d => Ok(Value {
                shape: Shape {
                    ty,
                    sizes: vec![x.shape.length()],
                },
                data: x.data.clone(),
            }),
            Conversion::ToInt => Ok(self.unary(Unary::Trunc, x, ty)),
            Conversion::ToArray2d => {
                let (rows, columns) = (sizes[0], sizes[1]);
                let by_rows = row_major(rows, columns);
                let data = self.take(x, &by_rows);
                Ok(Value {
                    shape: Shape {
                        ty,
                        sizes: vec![rows, columns],
                    },
                    data,
                })
            }
            Conversion::ToMatrix => self.reshaped(span, arguments),
        }
    }

    fn reshaped(&mut self, span: Span, arguments: &[Value]) -> Traced<Value> {
        let x = first(span, arguments)?;
        let sizes = &x.shape.sizes;
        let (rows, columns, by_columns) = match &arguments[1..] {
            [m, n] => (self.count(span, m)?, self.count(span, n)?, true),
            [m, n, order] => (
                self.count(span, m)?,
                self.count(span, n)?,
                self.known(span, order)? != 0.0,
            ),
            _ => match (x.shape.ty.array, x.shape.ty.base) {
                (0, Base::RowVector) => (1, sizes[0], true),
                (0, Base::Matrix) => (sizes[0], sizes[1], true),
                (0, _) => (sizes[0], 1, true),
                _ => (sizes[0], sizes[1], false),
            },
        };
        if rows * columns != x.shape.length() {
            return Err(BindError::new(
                span,
                format!(
                    "a {rows}x{columns} matrix has {} elements, not {}",
                    rows * columns,
                    x.shape.length()
                ),
            ));
        }
        let data = if by_columns {
            x.data.clone()
        } else {
            // Row by row: element (i, j) is at i * columns + j.
            let positions: Vec<usize> = (0..columns)
                .flat_map(|j| (0..rows).map(move |i| i * columns + j))
                .collect();
            self.take(x, &positions)
        };
        Ok(Value {
            shape: Shape {
                ty: Type::MATRIX,
                sizes: vec![rows, columns],
            },
            data,
        })
    }

    pub(super) fn make(
        &mut self,
        span: Span,
        function: Making,
        arguments: &[Value],
        ty: Type,
    ) -> Traced<Value> {
        use Making::*;
        let x = first(span, arguments)?;
        match function {
            RepVector | RepRowVector | RepMatrix | RepArray => {
                self.repeat(span, function, x, &arguments[1..], ty)
            }
            LinspacedArray | LinspacedVector | LinspacedRowVector => {
                let n = self.count(span, x)?;
                check_length(span, &[n])?;
                let (lower, upper) = (&arguments[1], &arguments[2]);
                // lower + (upper - lower) * k / (n - 1); a single one is upper.
                let shares = (0..n)
                    .map(|k| match n {
                        1 => 1.0,
                        _ => k as f64 / (n - 1) as f64,
                    })
                    .map(Scalar::number)
                    .collect();
                let shares = Value::of(Shape { ty, sizes: vec![n] }, shares);
                let width = self.elementwise(span, Binary::Subtract, upper, lower, Type::REAL)?;
                let steps = self.elementwise(span, Binary::Multiply, &shares, &width, ty)?;
                self.elementwise(span, Binary::Add, &steps, lower, ty)
            }
            LinspacedIntArray => {
                let n = self.count(span, x)?;
                let lower = self.known(span, &arguments[1])?;
                let upper = self.known(span, &arguments[2])?;
                if n > 1 && upper < lower {
                    return Err(BindError::new(
                        span,
                        format!("`linspaced_int_array` from {lower} up to {upper}"),
                    ));
                }
                // As in Stan: the range in equal whole steps.
                let steps = n.saturating_sub(1).max(1) as f64;
                let range = upper - lower;
                let value = |k: usize| match n {
                    1 => upper,
                    _ if range >= steps => lower + k as f64 * (range / steps).floor(),
                    _ => lower + (k as f64 * (range + 1.0) / n as f64).floor(),
                };
                self.numbers(span, ty, (0..n).map(value).collect())
            }
            OneHotArray | OneHotIntArray | OneHotVector | OneHotRowVector => {
                let n = self.count(span, x)?;
                let k = self.count(span, &arguments[1])?;
                if k < 1 || k > n {
                    return Err(BindError::new(
                        span,
                        format!("position {k} is outside 1..{n}"),
                    ));
                }
                let values = (1..=n).map(|i| f64::from(i == k)).collect();
                self.numbers(span, ty, values)
            }
            OnesArray | OnesIntArray | OnesVector | OnesRowVector => {
                self.filled(span, ty, x, |_| 1.0)
            }
            ZerosArray | ZerosIntArray | ZerosVector | ZerosRowVector => {
                self.filled(span, ty, x, |_| 0.0)
            }
            UniformSimplex => self.filled(span, ty, x, |n| 1.0 / n as f64),
            IdentityMatrix => {
                let n = self.count(span, x)?;
                check_length(span, &[n, n])?;
                Ok(identity(n))
            }
        }
    }

    fn filled(
        &mut self,
        span: Span,
        ty: Type,
        count: &Value,
        value: impl Fn(usize) -> f64,
    ) -> Traced<Value> {
        let n = self.count(span, count)?;
        check_length(span, &[n])?;
        self.numbers(span, ty, vec![value(n); n])
    }

    /// A container of one dimension.
    fn numbers(&mut self, span: Span, ty: Type, values: Vec<f64>) -> Traced<Value> {
        check_length(span, &[values.len()])?;
        Ok(Value::of(
            Shape {
                ty,
                sizes: vec![values.len()],
            },
            values.into_iter().map(Scalar::number).collect(),
        ))
    }

    fn repeat(
        &mut self,
        span: Span,
        function: Making,
        x: &Value,
        counts: &[Value],
        ty: Type,
    ) -> Traced<Value> {
        let mut sizes = counts
            .iter()
            .map(|n| self.count(span, n))
            .collect::<Traced<Vec<_>>>()?;
        check_length(span, &[&sizes[..], &x.shape.sizes].concat())?;
        let copies: usize = sizes.iter().product();
        let length = x.shape.length();
        let in_matrix = function == Making::RepMatrix;
        let positions: Vec<usize> = if in_matrix && x.shape.ty == Type::ROW_VECTOR {
            // The same row repeated: stored column by column.
            (0..length).flat_map(|j| vec![j; copies]).collect()
        } else {
            (0..copies).flat_map(|_| 0..length).collect()
        };
        if in_matrix && x.shape.ty == Type::VECTOR {
            sizes.insert(0, length);
        } else {
            sizes.extend(&x.shape.sizes);
        }
        let data = self.take(x, &positions);
        Ok(Value {
            shape: Shape { ty, sizes },
            data,
        })
    }
}

/// Storage positions of a matrix, read row by row.
pub(super) fn row_major(rows: usize, columns: usize) -> Vec<usize> {
    (0..rows)
        .flat_map(|i| (0..columns).map(move |j| i + j * rows))
        .collect()
}

pub(super) fn identity(n: usize) -> Value {
    let elements = (0..n * n)
        .map(|k| Scalar::number(f64::from(k % n == k / n)))
        .collect();
    Value::of(
        Shape {
            ty: Type::MATRIX,
            sizes: vec![n, n],
        },
        elements,
    )
}
