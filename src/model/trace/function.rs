//! Calls of built-in functions.
//!
//! A function of public values becomes nodes of whole vectors; a function of private values is
//! written out in scalars. Each group of the catalogue has its own file.

mod arrange;
mod covariance;
mod elementwise;
mod linear;
mod reduce;
mod shape;
mod whole;

use super::super::BindError;
use super::super::private::Scalar;
use super::super::public::PublicId;
use super::super::value::{Data, Shape, Value};
use super::{MAX_OPERATIONS, Traced, Tracer};
use crate::check::Type;
use crate::function::{Builtin, Kernel};
use crate::syntax::Span;
use shape::sizes_of;

impl Tracer<'_> {
    pub(super) fn call(
        &mut self,
        span: Span,
        ty: Type,
        function: Builtin,
        arguments: &[Value],
    ) -> Traced<Value> {
        match function {
            Builtin::Constant(value) => Ok(Value::number(Type::REAL, value)),
            Builtin::Unary(f) => Ok(self.unary(f, first(span, arguments)?, ty)),
            Builtin::Operation(f) => self.operation(span, f, arguments, ty),
            Builtin::Elementwise(f) => self.composed(span, f, arguments, ty),
            Builtin::Counted(f) => self.counted(span, f, arguments),
            Builtin::Special(f) => self.special(span, f, arguments, ty),
            Builtin::Reduction(f) => self.reduce(span, f, first(span, arguments)?, ty),
            Builtin::DotProducts(f) => self.dot_products(span, f, arguments, ty),
            Builtin::Whole(f) => self.whole(span, f, arguments, ty),
            Builtin::Sizes(f) => Ok(sizes_of(f, first(span, arguments)?)),
            Builtin::Conversion(f) => self.convert(span, f, arguments, ty),
            Builtin::Making(f) => self.make(span, f, arguments, ty),
            Builtin::Arranging(f) => self.arrange(span, f, arguments, ty),
            Builtin::Products(f) => self.products(span, f, arguments, ty),
            Builtin::Linear(f) => self.linear_algebra(span, f, arguments, ty),
            Builtin::Covariance(f) => self.covariance(span, f, arguments),
        }
    }

    /// A function of whole public vectors, as one node.
    fn kernel(
        &mut self,
        kernel: Kernel,
        left: &Value,
        right: Option<&Value>,
        shape: Shape,
    ) -> Value {
        let left = left.public_node(&mut self.graphs);
        let right = right.map(|r| r.public_node(&mut self.graphs));
        let node = self.graphs.public.kernel(kernel, left, right);
        self.public_value(node, shape)
    }

    /// A public vector as a value; a number where it has only one element.
    fn public_value(&self, node: PublicId, shape: Shape) -> Value {
        let data = if shape.sizes.is_empty() {
            Data::of(vec![self.graphs.only_element(node)])
        } else {
            Data::Public(node)
        };
        Value { shape, data }
    }

    /// The elements at these positions, 0 where there is none.
    fn scatter(&mut self, value: &Value, positions: &[Option<usize>]) -> Data {
        if value.is_private() || value.is_constant() {
            let elements = value.elements(&self.graphs);
            let zero = Scalar::number(0.0);
            return Data::of(
                positions
                    .iter()
                    .map(|p| p.map_or(zero, |p| elements[p]))
                    .collect(),
            );
        }
        let node = value.public_node(&mut self.graphs);
        let zero = self.graphs.public.constants(&[0.0]);
        let with_zero = self.graphs.public.concatenate(&[node, zero]);
        let last = value.shape.length();
        let positions: Vec<u32> = positions.iter().map(|p| p.unwrap_or(last) as u32).collect();
        Data::Public(self.graphs.public.take(with_zero, &positions))
    }

    /// Refuses to write out too many operations per record.
    fn check_unrolled(&self, span: Span, operations: usize) -> Traced<()> {
        let so_far = self.graphs.private.nodes().len();
        if so_far.saturating_add(operations) <= MAX_OPERATIONS {
            return Ok(());
        }
        Err(BindError::new(
            span,
            format!(
                "for private values this is written out in about {operations} operations per record; the model may have {MAX_OPERATIONS}"
            ),
        ))
    }

    /// A known number: a size, a position, a probability.
    fn known(&self, span: Span, value: &Value) -> Traced<f64> {
        match value.only(&self.graphs).as_number() {
            Some(number) => Ok(number),
            None => Err(BindError::new(span, "expected a constant")),
        }
    }

    /// A size: 0 or more.
    fn count(&self, span: Span, value: &Value) -> Traced<usize> {
        let n = self.known(span, value)?;
        if !(0.0..=1e8).contains(&n) {
            return Err(BindError::new(
                span,
                format!("a size of {n}: it must be 0 or more"),
            ));
        }
        Ok(n as usize)
    }

    /// The values of a container of constants.
    fn known_values(&self, span: Span, value: &Value) -> Traced<Vec<f64>> {
        value
            .elements(&self.graphs)
            .iter()
            .map(|s| s.as_number())
            .collect::<Option<Vec<f64>>>()
            .ok_or_else(|| BindError::new(span, "expected constants"))
    }
}

/// The checker has counted the arguments.
fn first(span: Span, arguments: &[Value]) -> Traced<&Value> {
    argument(span, arguments, 0)
}

fn argument(span: Span, arguments: &[Value], k: usize) -> Traced<&Value> {
    arguments
        .get(k)
        .ok_or_else(|| BindError::new(span, "wrong number of arguments"))
}

fn two(span: Span, arguments: &[Value]) -> Traced<(&Value, &Value)> {
    Ok((argument(span, arguments, 0)?, argument(span, arguments, 1)?))
}

fn any_private(arguments: &[Value]) -> bool {
    arguments.iter().any(Value::is_private)
}
