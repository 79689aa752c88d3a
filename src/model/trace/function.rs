//! Calls of built-in functions: element by element, folds, shapes.

use super::super::BindError;
use super::super::private::{Graphs, Scalar};
use super::super::public::Binary;
use super::super::value::{Data, Shape, Value};
use super::{Traced, Tracer, check_length, same_sizes};
use crate::check::{Base, Type};
use crate::distribution::Algebra;
use crate::function::{Builtin, Elementwise2, Reduction, Shaping, Unary};
use crate::syntax::Span;

impl Tracer<'_> {
    pub(super) fn call(
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

    pub(super) fn fold(&mut self, a: &Value, op: Binary, start: f64, ty: Type) -> Traced<Value> {
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
