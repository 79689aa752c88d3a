//! Covariance matrices of Gaussian processes: Stan Functions Reference, "Gaussian
//! Process Covariance Functions".

use std::f64::consts::PI;

use super::super::super::private::Scalar;
use super::super::super::public::Binary;
use super::super::super::value::{Data, Shape, Value};
use super::super::{BindError, Traced, Tracer, check_length};
use super::first;
use crate::check::Type;
use crate::function::catalogue::Covariance;
use crate::function::{Unary, root};
use crate::syntax::Span;

impl Tracer<'_> {
    pub(super) fn covariance(
        &mut self,
        span: Span,
        function: Covariance,
        arguments: &[Value],
    ) -> Traced<Value> {
        let x = first(span, arguments)?;
        let (between, scales) = match function {
            Covariance::ExponentiatedQuadraticBetween => (&arguments[1], &arguments[2..]),
            _ => (x, &arguments[1..]),
        };
        let sigma = &scales[0];
        let variance = self.unary(Unary::Square, sigma, Type::REAL);
        let scaled = |this: &mut Self, squares: &Value, factor: f64| {
            let length_scale = this.unary(Unary::Square, &scales[1], Type::REAL);
            let quotient =
                this.elementwise(span, Binary::Divide, squares, &length_scale, Type::MATRIX)?;
            let factor = Value::number(Type::REAL, factor);
            this.elementwise(span, Binary::Multiply, &quotient, &factor, Type::MATRIX)
        };
        let correlation = match function {
            Covariance::DotProduct => {
                let products = self.of_pairs(span, x, x, Binary::Multiply)?;
                return self.elementwise(span, Binary::Add, &products, &variance, Type::MATRIX);
            }
            Covariance::ExponentiatedQuadratic | Covariance::ExponentiatedQuadraticBetween => {
                let squares = self.of_pairs(span, x, between, Binary::Subtract)?;
                let exponent = scaled(self, &squares, -0.5)?;
                self.unary(Unary::Exp, &exponent, Type::MATRIX)
            }
            Covariance::Exponential | Covariance::Matern32 | Covariance::Matern52 => {
                let squares = self.of_pairs(span, x, between, Binary::Subtract)?;
                let factor = match function {
                    Covariance::Matern32 => 3.0,
                    Covariance::Matern52 => 5.0,
                    _ => 1.0,
                };
                let squares = scaled(self, &squares, factor)?;
                let steps = self.roots(&squares);
                let minus = self.unary(Unary::Negate, &steps, Type::MATRIX);
                let decay = self.unary(Unary::Exp, &minus, Type::MATRIX);
                let polynomial = match function {
                    Covariance::Matern52 => {
                        let third = Value::number(Type::REAL, 1.0 / 3.0);
                        let last = self.elementwise(
                            span,
                            Binary::Multiply,
                            &squares,
                            &third,
                            Type::MATRIX,
                        )?;
                        Some(self.elementwise(span, Binary::Add, &steps, &last, Type::MATRIX)?)
                    }
                    Covariance::Matern32 => Some(steps),
                    _ => None,
                };
                match polynomial {
                    None => decay,
                    Some(rest) => {
                        let one = Value::number(Type::REAL, 1.0);
                        let sum = self.elementwise(span, Binary::Add, &rest, &one, Type::MATRIX)?;
                        self.elementwise(span, Binary::Multiply, &sum, &decay, Type::MATRIX)?
                    }
                }
            }
            Covariance::Periodic => {
                let squares = self.of_pairs(span, x, between, Binary::Subtract)?;
                let distances = self.roots(&squares);
                let pi = Value::number(Type::REAL, PI);
                let angle =
                    self.elementwise(span, Binary::Multiply, &distances, &pi, Type::MATRIX)?;
                let angle =
                    self.elementwise(span, Binary::Divide, &angle, &scales[2], Type::MATRIX)?;
                let sine = self.unary(Unary::Sin, &angle, Type::MATRIX);
                let squares = self.unary(Unary::Square, &sine, Type::MATRIX);
                let exponent = scaled(self, &squares, -2.0)?;
                self.unary(Unary::Exp, &exponent, Type::MATRIX)
            }
        };
        self.elementwise(
            span,
            Binary::Multiply,
            &correlation,
            &variance,
            Type::MATRIX,
        )
    }

    /// For each pair of points, the sum over their coordinates of the squared
    /// difference, or of the product.
    fn of_pairs(&mut self, span: Span, x: &Value, y: &Value, op: Binary) -> Traced<Value> {
        let (rows, columns) = (x.shape.sizes[0], y.shape.sizes[0]);
        check_length(span, &[rows, columns])?;
        let dimension = |v: &Value| v.shape.sizes.get(1).copied().unwrap_or(1);
        let d = dimension(x);
        if d != dimension(y) {
            return Err(BindError::new(
                span,
                format!("points of {d} and of {} coordinates", dimension(y)),
            ));
        }
        let shape = Shape {
            ty: Type::MATRIX,
            sizes: vec![rows, columns],
        };
        let mut total: Option<Value> = None;
        for k in 0..d {
            let mut spread = |v: &Value, pick: &dyn Fn(usize) -> usize| {
                let positions: Vec<usize> = (0..rows * columns).map(|p| pick(p) * d + k).collect();
                Value {
                    shape: shape.clone(),
                    data: self.take(v, &positions),
                }
            };
            let left = spread(x, &|p| p % rows);
            let right = spread(y, &|p| p / rows);
            let mut term = self.elementwise(span, op, &left, &right, Type::MATRIX)?;
            if op == Binary::Subtract {
                term = self.unary(Unary::Square, &term, Type::MATRIX);
            }
            total = Some(match total {
                None => term,
                Some(sum) => self.elementwise(span, Binary::Add, &sum, &term, Type::MATRIX)?,
            });
        }
        Ok(total.unwrap_or_else(|| Value {
            data: Data::of(vec![Scalar::number(0.0); shape.length()]),
            shape,
        }))
    }

    /// Square roots whose derivative at zero is zero: there every path between
    /// two equal points cancels.
    fn roots(&mut self, squares: &Value) -> Value {
        let data = if squares.is_private() || squares.is_constant() {
            Data::of(
                squares
                    .elements(&self.graphs)
                    .iter()
                    .map(|&s| root(&mut self.graphs, s))
                    .collect(),
            )
        } else {
            let node = squares.public_node(&mut self.graphs);
            Data::Public(root(&mut self.graphs.public, node))
        };
        Value {
            shape: squares.shape.clone(),
            data,
        }
    }
}
