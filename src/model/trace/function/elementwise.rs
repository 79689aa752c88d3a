//! Functions of several numbers, applied element by element.

use super::super::super::BindError;
use super::super::super::private::{Graphs, Scalar};
use super::super::super::public::Binary;
use super::super::super::value::{Shape, Value};
use super::super::{Traced, Tracer, same_sizes};
use super::{any_private, argument, two};
use crate::check::Type;
use crate::distribution::Algebra;
use crate::function::Unary;
use crate::function::catalogue::{Counted, Elementwise, Operation, Special};
use crate::function::special as numbers;
use crate::syntax::Span;

/// More factors or terms than this are not written out.
const MOST_FACTORS: usize = 1000;

impl Tracer<'_> {
    pub(super) fn operation(
        &mut self,
        span: Span,
        function: Operation,
        arguments: &[Value],
        ty: Type,
    ) -> Traced<Value> {
        let (a, b) = two(span, arguments)?;
        let op = match function {
            Operation::Power => Binary::Power,
            Operation::Minimum | Operation::MinimumOfInts => Binary::Minimum,
            Operation::Maximum | Operation::MaximumOfInts => Binary::Maximum,
            Operation::ArcTangent => Binary::ArcTangent,
            Operation::Modulus => Binary::Modulus,
        };
        self.elementwise(span, op, a, b, ty)
    }

    pub(super) fn composed(
        &mut self,
        span: Span,
        function: Elementwise,
        arguments: &[Value],
        ty: Type,
    ) -> Traced<Value> {
        let shape = broadcast_shape(span, arguments, ty)?;
        let length = shape.length();
        if length > 1 && !any_private(arguments) {
            let nodes: Vec<_> = arguments
                .iter()
                .map(|v| v.public_node(&mut self.graphs))
                .collect();
            let node = function.compose(&mut self.graphs.public, &nodes);
            return Ok(self.public_value(node, shape));
        }
        let elements: Vec<_> = arguments.iter().map(|v| v.elements(&self.graphs)).collect();
        let values = (0..length)
            .map(|i| {
                let at: Vec<Scalar> = elements
                    .iter()
                    .zip(arguments)
                    .map(|(e, v)| e[if v.shape.sizes.is_empty() { 0 } else { i }])
                    .collect();
                function.compose(&mut self.graphs, &at)
            })
            .collect();
        Ok(Value::of(shape, values))
    }

    pub(super) fn counted(
        &mut self,
        span: Span,
        function: Counted,
        arguments: &[Value],
    ) -> Traced<Value> {
        let (x, n) = match function {
            Counted::LogMultivariateGamma => {
                (argument(span, arguments, 1)?, argument(span, arguments, 0)?)
            }
            Counted::FallingFactorial | Counted::RisingFactorial => two(span, arguments)?,
        };
        let (x, n) = (x.only(&self.graphs), self.count(span, n)?);
        if n > MOST_FACTORS {
            return Err(BindError::new(
                span,
                format!("{n} factors or terms are more than {MOST_FACTORS}"),
            ));
        }
        let g = &mut self.graphs;
        // x + step * j for each j below n
        let shifted = |g: &mut Graphs, step: f64| -> Vec<Scalar> {
            (0..n)
                .map(|j| {
                    let by = g.constant(step * j as f64);
                    g.add(x, by)
                })
                .collect()
        };
        let product = |g: &mut Graphs, factors: Vec<Scalar>| {
            let one = g.constant(1.0);
            factors.into_iter().fold(one, |p, f| g.multiply(p, f))
        };
        let value = match function {
            Counted::LogMultivariateGamma => {
                let k = n as f64;
                let constant = g.constant(0.25 * k * (k - 1.0) * std::f64::consts::PI.ln());
                let mut terms = vec![constant];
                for argument in shifted(g, -0.5) {
                    terms.push(g.unary(Unary::Lgamma, argument));
                }
                g.sum(&terms)
            }
            Counted::FallingFactorial => {
                let factors = shifted(g, -1.0);
                product(g, factors)
            }
            Counted::RisingFactorial => {
                let factors = shifted(g, 1.0);
                product(g, factors)
            }
        };
        Ok(Value::scalar(Type::REAL, value))
    }

    pub(super) fn special(
        &mut self,
        span: Span,
        function: Special,
        arguments: &[Value],
        ty: Type,
    ) -> Traced<Value> {
        let shape = broadcast_shape(span, arguments, ty)?;
        let values = arguments
            .iter()
            .map(|v| self.known_values(span, v))
            .collect::<Traced<Vec<_>>>()?;
        let elements = (0..shape.length())
            .map(|i| {
                let at: Vec<f64> = values
                    .iter()
                    .zip(arguments)
                    .map(|(e, v)| e[if v.shape.sizes.is_empty() { 0 } else { i }])
                    .collect();
                Scalar::number(special_value(function, &at))
            })
            .collect();
        Ok(Value::of(shape, elements))
    }
}

fn special_value(function: Special, x: &[f64]) -> f64 {
    let (a, b) = (x[0], x[1]);
    let order = a as i32;
    let whole = a == f64::from(order);
    match function {
        Special::LowerGamma => numbers::gamma_fractions(a, b).0,
        Special::UpperGamma => numbers::gamma_fractions(a, b).1,
        Special::IncompleteBeta => {
            numbers::beta_fraction(a, b, x.get(2).copied().unwrap_or(f64::NAN))
        }
        Special::OwensT => numbers::owens_t(a, b),
        Special::LogModifiedBesselFirst => numbers::log_modified_bessel_first_kind(a, b),
        Special::BesselFirst if whole => libm::jn(order, b),
        Special::BesselSecond if whole => libm::yn(order, b),
        Special::ModifiedBesselFirst if whole => numbers::modified_bessel_first_kind(a, b),
        Special::ModifiedBesselSecond if whole => numbers::modified_bessel_second_kind(a, b),
        Special::BesselFirst
        | Special::BesselSecond
        | Special::ModifiedBesselFirst
        | Special::ModifiedBesselSecond => f64::NAN,
    }
}

/// The shape of the result: that of the containers, which agree.
fn broadcast_shape(span: Span, arguments: &[Value], ty: Type) -> Traced<Shape> {
    let mut containers = arguments.iter().filter(|v| !v.shape.sizes.is_empty());
    let sizes = match containers.next() {
        None => Vec::new(),
        Some(first) => {
            for other in containers {
                same_sizes(span, first, other)?;
            }
            first.shape.sizes.clone()
        }
    };
    Ok(Shape { ty, sizes })
}
