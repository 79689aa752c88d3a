//! Random draws, where the arguments are numbers.

use rand::Rng;

use super::super::BindError;
use super::super::private::Scalar;
use super::super::value::{Shape, Value};
use super::{Traced, Tracer};
use crate::check::{Expr, StandsFor, Type, stands_for};
use crate::distribution::{self, Container, FAMILIES};
use crate::syntax::Span;

impl Tracer<'_> {
    /// One draw, or as many as the containers among the arguments have elements.
    pub(super) fn draw(
        &mut self,
        span: Span,
        ty: Type,
        family: usize,
        arguments: &[Expr],
    ) -> Traced<Value> {
        let definition = FAMILIES[family];
        let mut given = Vec::new();
        for (argument, wanted) in arguments.iter().zip(definition.draw_arguments()) {
            let value = self.expression(argument)?;
            let stands = stands_for(wanted.kind, value.shape.ty);
            let mut numbers = Vec::with_capacity(value.shape.length());
            for element in value.elements(&self.graphs).iter() {
                numbers.push(element.as_number().ok_or_else(|| {
                    BindError::new(argument.span, "nothing can be drawn before this is known")
                })?);
            }
            given.push(Given {
                numbers,
                many: stands == Some(StandsFor::Many),
                sizes: value.shape.sizes,
            });
        }
        let mut count = None;
        for argument in given.iter().filter(|g| g.many) {
            let length = argument.sizes[0];
            if *count.get_or_insert(length) != length {
                return Err(BindError::new(
                    span,
                    format!(
                        "`{}_rng` is given containers of {} and of {length} elements: their sizes must agree",
                        definition.name(),
                        count.unwrap_or(length),
                    ),
                ));
            }
        }
        let Some(random) = self.random.as_mut() else {
            return Err(BindError::new(span, "nothing can be drawn here"));
        };
        let random: &mut dyn Rng = random;
        let mut elements = Vec::new();
        let mut sizes: Vec<usize> = count.into_iter().collect();
        for i in 0..count.unwrap_or(1) {
            let arguments: Vec<Container<'_, f64>> = given.iter().map(|g| g.at(i)).collect();
            let drawn = distribution::draw(family, random, &arguments)
                .map_err(|error| BindError::new(span, error.to_string()))?;
            if i == 0 {
                match ty.dimensions() - sizes.len() {
                    0 => {}
                    1 => sizes.push(drawn.len()),
                    // The matrices that are drawn are square.
                    _ => sizes.extend([drawn.len().isqrt(); 2]),
                }
            }
            elements.extend(drawn.into_iter().map(Scalar::number));
        }
        // Without draws, the sizes of one are not known.
        sizes.resize(ty.dimensions(), 0);
        Ok(Value::of(Shape { ty, sizes }, elements))
    }
}

/// The value of one argument.
struct Given {
    numbers: Vec<f64>,
    sizes: Vec<usize>,
    /// Whether it has one value for each draw.
    many: bool,
}

impl Given {
    /// The value for the `i`th draw.
    fn at(&self, i: usize) -> Container<'_, f64> {
        let sizes = &self.sizes[usize::from(self.many)..];
        let (rows, columns) = match *sizes {
            [] => (1, 1),
            [n] => (n, 1),
            [rows, columns, ..] => (rows, columns),
        };
        let start = if self.many { i * rows * columns } else { 0 };
        Container {
            elements: &self.numbers[start..start + rows * columns],
            rows,
            columns,
        }
    }
}
