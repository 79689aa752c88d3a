//! Log densities: a term per element, or one sum where all of them are public.

use super::super::BindError;
use super::super::private::Scalar;
use super::super::value::{Data, Shape, Value};
use super::{Traced, Tracer};
use crate::check::{Base, Expr, Type};
use crate::distribution::{self, Algebra};
use crate::syntax::Span;

impl Tracer<'_> {
    /// The terms of a log density: one per element, or already summed where
    /// they are public.
    pub(super) fn log_density(
        &mut self,
        span: Span,
        family: usize,
        variate: &Expr,
        arguments: &[Expr],
    ) -> Traced<Value> {
        let mut values = vec![self.expression(variate)?];
        for argument in arguments {
            values.push(self.expression(argument)?);
        }
        let length = values
            .iter()
            .find(|v| !v.shape.sizes.is_empty())
            .map(|v| v.shape.length());
        for v in &values {
            if !v.shape.sizes.is_empty() && Some(v.shape.length()) != length {
                return Err(BindError::new(
                    span,
                    format!(
                        "`{}` is given containers of {} and of {} elements: their sizes must agree",
                        distribution::FAMILIES[family].name(),
                        length.unwrap_or(1),
                        v.shape.length()
                    ),
                ));
            }
        }
        let length = length.unwrap_or(1);
        let shape = Shape {
            ty: Type {
                base: Base::Real,
                array: 1,
            },
            sizes: vec![length],
        };
        if length == 0 {
            return Ok(Value {
                shape,
                data: Data::of(Vec::new()),
            });
        }
        if !values.iter().any(Value::is_private) {
            let nodes: Vec<_> = values
                .iter()
                .map(|v| v.public_node(&mut self.graphs))
                .collect();
            let node =
                distribution::log_density(family, &mut self.graphs.public, nodes[0], &nodes[1..]);
            // Nothing depends on the element: the same term so many times.
            let node = if self.graphs.public.length(node) < length {
                let times = self.graphs.public.constant(length as f64);
                self.graphs.public.multiply(node, times)
            } else {
                node
            };
            let sum = self.graphs.public.sum_of(node);
            return Ok(Value::scalar(Type::REAL, self.graphs.from_public(sum)));
        }
        let elements: Vec<_> = values.iter().map(|v| v.elements(&self.graphs)).collect();
        let terms = (0..length)
            .map(|i| {
                let at = |k: usize| {
                    let e = &elements[k];
                    e[if values[k].shape.sizes.is_empty() {
                        0
                    } else {
                        i
                    }]
                };
                let arguments: Vec<Scalar> = (1..values.len()).map(at).collect();
                distribution::log_density(family, &mut self.graphs, at(0), &arguments)
            })
            .collect();
        Ok(Value {
            shape,
            data: Data::of(terms),
        })
    }
}
