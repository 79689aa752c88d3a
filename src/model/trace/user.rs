//! Calls of user-defined functions: the body is traced again for each call, with
//! variables of its own.

use super::super::BindError;
use super::super::value::{Shape, Value};
use super::flow::{WaysOut, undefined};
use super::{Traced, Tracer};
use crate::check::{Expr, FunctionId};
use crate::syntax::Span;

/// The deepest nesting of calls; a function that calls itself more often is assumed never to end.
const MAX_CALLS: usize = 1000;

/// How many of the calls that led to an error a message shows.
const CALLS_SHOWN: usize = 4;

impl Tracer<'_> {
    /// The value that the function returns, `None` for a `void` one.
    pub(super) fn user_call(
        &mut self,
        span: Span,
        function: FunctionId,
        arguments: &[Expr],
    ) -> Traced<Option<Value>> {
        let checked = self.checked;
        let function = checked.function(function);
        if self.calls >= MAX_CALLS || self.stack.is_used_up() {
            return Err(BindError::new(
                span,
                format!(
                    "the calls of `{}` go too deep, {} inside one another; only a condition on constants can end them",
                    function.name, self.calls
                ),
            ));
        }
        self.count_step(span, "functions")?;
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(self.expression(argument)?);
        }
        // The variate of the whole density counts, and not those of densities that it is made of.
        if let Some(variate) = values.first().filter(|v| v.is_private())
            && function.is_density()
        {
            self.variates.extend(variate.elements(&self.graphs).iter());
        }
        // A recursive function has its own variables for each call.
        let variables = &mut self.state.variables;
        let outer: Vec<Option<Value>> = function
            .variables
            .iter()
            .map(|id| variables[id.0].take())
            .collect();
        for (&id, value) in function.arguments.iter().zip(values) {
            variables[id.0] = Some(Value {
                shape: Shape {
                    ty: checked.variable(id).ty,
                    sizes: value.shape.sizes,
                },
                data: value.data,
            });
        }
        let ways_out = std::mem::replace(&mut self.state.ways_out, WaysOut::none());
        let result = self.state.result.take();
        self.calls += 1;
        self.statements(&function.body).map_err(|mut error| {
            let again = error.span == span || error.calls.contains(&span);
            if error.calls.len() < CALLS_SHOWN && !again {
                error.calls.push(span);
            }
            error
        })?;
        self.calls -= 1;
        self.state.ways_out = ways_out;
        let returned = std::mem::replace(&mut self.state.result, result);
        for (id, value) in function.variables.iter().zip(outer) {
            self.state.variables[id.0] = value;
        }
        match (function.returns, returned) {
            (None, _) => Ok(None),
            (Some(ty), Some(value)) => Ok(Some(Value {
                shape: Shape {
                    ty,
                    sizes: value.shape.sizes,
                },
                data: value.data,
            })),
            // Only if a parameter determines that `reject` is reached instead.
            (Some(ty), None) if ty.dimensions() == 0 => Ok(Some(undefined(ty))),
            (Some(_), None) => Err(BindError::new(
                span,
                format!("`{}` returns no value here", function.name),
            )),
        }
    }
}
