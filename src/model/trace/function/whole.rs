//! Functions of a whole vector.

use super::super::super::BindError;
use super::super::super::private::Scalar;
use super::super::super::public::Binary;
use super::super::super::value::{Shape, Value};
use super::super::{Traced, Tracer, same_sizes};
use super::{first, two};
use crate::check::Type;
use crate::distribution::Algebra;
use crate::function::catalogue::Whole;
use crate::function::{Kernel, Unary, unrolled};
use crate::syntax::Span;

impl Tracer<'_> {
    pub(super) fn whole(
        &mut self,
        span: Span,
        function: Whole,
        arguments: &[Value],
        ty: Type,
    ) -> Traced<Value> {
        let x = first(span, arguments)?;
        let shape = Shape {
            ty,
            sizes: x.shape.sizes.clone(),
        };
        match function {
            Whole::Softmax if x.is_private() => {
                let elements = x.elements(&self.graphs);
                let shares = unrolled::softmax(&mut self.graphs, &elements);
                Ok(Value::of(shape, shares))
            }
            Whole::Softmax => Ok(self.kernel(Kernel::Softmax, x, None, shape)),
            Whole::LogSoftmax => {
                let total = self.log_sum_exp(x);
                self.elementwise(span, Binary::Subtract, x, &total, ty)
            }
            Whole::LogMix => {
                let (theta, lp) = two(span, arguments)?;
                self.log_mix(span, theta, lp)
            }
            Whole::CumulativeSum if x.is_private() => {
                let mut sum = Scalar::number(0.0);
                let mut sums = Vec::new();
                for &element in x.elements(&self.graphs).iter() {
                    sum = self.graphs.add(sum, element);
                    sums.push(sum);
                }
                Ok(Value::of(shape, sums))
            }
            Whole::CumulativeSum => Ok(self.kernel(Kernel::CumulativeSum, x, None, shape)),
            Whole::SortAscending => self.sort(span, x, shape),
            Whole::SortDescending => {
                let sorted = self.sort(span, x, shape.clone())?;
                let backwards: Vec<usize> = (0..shape.length()).rev().collect();
                let data = self.take(&sorted, &backwards);
                Ok(Value { shape, data })
            }
            Whole::SortIndicesAscending | Whole::SortIndicesDescending => {
                let values = self.known_values(span, x)?;
                let mut order: Vec<usize> = (0..values.len()).collect();
                order.sort_by(|&a, &b| match function {
                    Whole::SortIndicesDescending => values[b].total_cmp(&values[a]),
                    _ => values[a].total_cmp(&values[b]),
                });
                let positions = order
                    .into_iter()
                    .map(|k| Scalar::number(k as f64 + 1.0))
                    .collect();
                Ok(Value::of(shape, positions))
            }
            Whole::Rank => {
                let (x, s) = two(span, arguments)?;
                let n = x.shape.length();
                let s = self.count(span, s)?;
                if s < 1 || s > n {
                    return Err(BindError::new(
                        span,
                        format!("position {s} is outside 1..{n}"),
                    ));
                }
                let data = self.take(x, &[s - 1]);
                let chosen = Value {
                    shape: Shape::scalar(Type::REAL),
                    data,
                };
                let less = self.elementwise(span, Binary::Less, x, &chosen, x.shape.ty)?;
                self.fold(&less, Binary::Add, 0.0, ty)
            }
            Whole::Quantile => {
                let (x, p) = two(span, arguments)?;
                let mut values = self.known_values(span, x)?;
                values.sort_by(f64::total_cmp);
                let quantiles = self
                    .known_values(span, p)?
                    .into_iter()
                    .map(|p| quantile(span, &values, p).map(Scalar::number))
                    .collect::<Traced<Vec<_>>>()?;
                Ok(Value::of(
                    Shape {
                        ty,
                        sizes: p.shape.sizes.clone(),
                    },
                    quantiles,
                ))
            }
        }
    }

    fn sort(&mut self, span: Span, x: &Value, shape: Shape) -> Traced<Value> {
        if !x.is_private() {
            return Ok(self.kernel(Kernel::Sort, x, None, shape));
        }
        let n = shape.length();
        self.check_unrolled(span, 3 * n * n / 2)?;
        let elements = x.elements(&self.graphs);
        let sorted = unrolled::sort(&mut self.graphs, &elements);
        Ok(Value::of(shape, sorted))
    }

    fn log_mix(&mut self, span: Span, theta: &Value, lp: &Value) -> Traced<Value> {
        let log_theta = self.unary(Unary::Log, theta, Type::VECTOR);
        let components = log_theta.shape.length();
        let mut total = Value::number(Type::REAL, 0.0);
        // One mixture, or an array of them.
        let several = lp.shape.sizes.len() > 1;
        let mixtures = if several { lp.shape.sizes[0] } else { 1 };
        for k in 0..mixtures {
            let one = if several {
                let n = lp.shape.sizes[1];
                let positions: Vec<usize> = (k * n..(k + 1) * n).collect();
                Value {
                    shape: Shape {
                        ty: Type::VECTOR,
                        sizes: vec![n],
                    },
                    data: self.take(lp, &positions),
                }
            } else {
                lp.clone()
            };
            if one.shape.length() != components {
                same_sizes(span, theta, &one)?;
            }
            let weighted = self.elementwise(span, Binary::Add, &log_theta, &one, Type::VECTOR)?;
            let mixture = self.log_sum_exp(&weighted);
            total = self.elementwise(span, Binary::Add, &total, &mixture, Type::REAL)?;
        }
        Ok(total)
    }
}

/// R's type 7: `h = (n - 1) p`, linear between the neighbours.
fn quantile(span: Span, sorted: &[f64], p: f64) -> Traced<f64> {
    if sorted.is_empty() || !(0.0..=1.0).contains(&p) {
        return Err(BindError::new(
            span,
            format!(
                "the {p}-quantile of {} numbers does not exist",
                sorted.len()
            ),
        ));
    }
    let h = (sorted.len() - 1) as f64 * p;
    let below = sorted[h.floor() as usize];
    let above = sorted[h.ceil() as usize];
    let share = h - h.floor();
    Ok(if share == 0.0 {
        below
    } else {
        below + share * (above - below)
    })
}
