//! Control flow: conditions on constants are decided here; conditions on a parameter or a record are
//! traced both ways, and the outcomes are merged.
//!
//! An exit from a loop or function under such a condition is a flag, 0 or 1, and the statements
//! after it are traced under the condition that no flag is set. No derivative flows through a branch
//! that is not taken, see [`crate::function::Algebra::select`].

use std::rc::Rc;

use super::super::BindError;
use super::super::private::{Graphs, Scalar};
use super::super::public::Binary;
use super::super::value::{Data, Shape, Value};
use super::{Traced, Tracer};
use crate::check::{Expr, Printed, Statement, Type, VariableId};
use crate::distribution::Algebra;
use crate::function::Unary;
use crate::syntax::Span;

/// The state that two branches may leave different.
#[derive(Clone)]
pub struct State {
    pub variables: Vec<Option<Value>>,
    pub ways_out: WaysOut,
    /// The return value of the function being traced.
    pub result: Option<Value>,
    /// 1 where `reject` was reached.
    pub rejected: Scalar,
}

/// Flags, 0 or 1: the exits taken by the statements before this one.
#[derive(Clone, Copy)]
pub struct WaysOut {
    pub function: Scalar,
    loop_: Scalar,
    iteration: Scalar,
}

impl WaysOut {
    pub fn none() -> WaysOut {
        let no = Scalar::number(0.0);
        WaysOut {
            function: no,
            loop_: no,
            iteration: no,
        }
    }
}

impl State {
    pub fn new(variables: usize) -> State {
        State {
            variables: vec![None; variables],
            ways_out: WaysOut::none(),
            result: None,
            rejected: Scalar::number(0.0),
        }
    }
}

/// Whether a place is reached.
enum Reached {
    Yes,
    No,
    /// Where this is 1.
    Where(Scalar),
}

impl Tracer<'_> {
    pub fn statements(&mut self, statements: &[Statement]) -> Traced<()> {
        let mut next = 0;
        while next < statements.len() {
            match self.reached() {
                Reached::No => return Ok(()),
                Reached::Yes => {
                    self.statement(&statements[next])?;
                    next += 1;
                }
                // Up to the next exit, under one condition.
                Reached::Where(live) => self.guarded(statements[next].span, live, |tracer| {
                    while next < statements.len() && matches!(tracer.reached(), Reached::Yes) {
                        tracer.statement(&statements[next])?;
                        next += 1;
                    }
                    if matches!(tracer.reached(), Reached::No) {
                        next = statements.len();
                    }
                    Ok(())
                })?,
            }
        }
        Ok(())
    }

    fn reached(&mut self) -> Reached {
        let ways = self.state.ways_out;
        let loop_ = either(&mut self.graphs, ways.loop_, ways.iteration);
        let left = either(&mut self.graphs, ways.function, loop_);
        self.unless(left)
    }

    fn unless(&mut self, left: Scalar) -> Reached {
        match left.as_number() {
            Some(0.0) => Reached::Yes,
            Some(_) => Reached::No,
            None => Reached::Where(self.graphs.unary(Unary::Not, left)),
        }
    }

    pub(super) fn if_statement(
        &mut self,
        condition: &Expr,
        then: &Statement,
        otherwise: Option<&Statement>,
    ) -> Traced<()> {
        let value = self.expression(condition)?.only(&self.graphs);
        match (value.as_number(), otherwise) {
            (Some(c), _) if c != 0.0 => self.statement(then),
            (Some(_), Some(otherwise)) => self.statement(otherwise),
            (Some(_), None) => Ok(()),
            (None, otherwise) => self.branch(
                condition.span,
                value,
                |tracer| tracer.statement(then),
                |tracer| otherwise.map_or(Ok(()), |s| tracer.statement(s)),
            ),
        }
    }

    /// Runs `body` in a loop, once for every element of `steps` that `enter` takes,
    /// until it is left.
    pub(super) fn loop_over<T>(
        &mut self,
        span: Span,
        steps: impl Iterator<Item = T>,
        mut enter: impl FnMut(&mut Self, T) -> Traced<bool>,
        body: &Statement,
    ) -> Traced<()> {
        let outer = self.state.ways_out;
        let no = Scalar::number(0.0);
        self.state.ways_out.loop_ = no;
        self.state.ways_out.iteration = no;
        for step in steps {
            self.count_step(span, "loops")?;
            if !enter(self, step)? {
                break;
            }
            match self.reached() {
                Reached::Yes => self.statement(body)?,
                Reached::No => break,
                Reached::Where(live) => {
                    self.guarded(span, live, |tracer| tracer.statement(body))?
                }
            }
            self.state.ways_out.iteration = no;
        }
        self.state.ways_out.loop_ = outer.loop_;
        self.state.ways_out.iteration = outer.iteration;
        Ok(())
    }

    pub(super) fn while_loop(
        &mut self,
        span: Span,
        condition: &Expr,
        body: &Statement,
    ) -> Traced<()> {
        let enter = |tracer: &mut Self, ()| {
            // Once the loop is certainly left, its condition is not evaluated again.
            if matches!(tracer.reached(), Reached::No) {
                return Ok(false);
            }
            match tracer
                .expression(condition)?
                .only(&tracer.graphs)
                .as_number()
            {
                Some(c) => Ok(c != 0.0),
                None => Err(BindError::new(
                    condition.span,
                    "the condition of `while` is not a constant",
                )),
            }
        };
        self.loop_over(span, std::iter::repeat(()), enter, body)
    }

    pub(super) fn leave_loop(&mut self) {
        self.state.ways_out.loop_ = Scalar::number(1.0);
    }

    pub(super) fn leave_iteration(&mut self) {
        self.state.ways_out.iteration = Scalar::number(1.0);
    }

    pub(super) fn leave_function(&mut self, value: Option<&Expr>) -> Traced<()> {
        if let Some(value) = value {
            self.state.result = Some(self.expression(value)?);
        }
        self.state.ways_out.function = Scalar::number(1.0);
        Ok(())
    }

    pub(super) fn print(&mut self, span: Span, parts: &[Printed]) -> Traced<()> {
        if self.conditions > 0 {
            return Err(BindError::new(
                span,
                "`print` is reached under a condition on a parameter or a record, which is not known yet",
            ));
        }
        let text = self.printed(parts)?;
        self.printed.push(text);
        Ok(())
    }

    /// Ends the program where only constants led here; makes the density zero
    /// where a parameter did.
    pub(super) fn reject(&mut self, span: Span, parts: &[Printed]) -> Traced<()> {
        if self.conditions == 0 {
            let text = self.printed(parts)?;
            return Err(BindError {
                rejected: true,
                ..BindError::new(span, format!("rejected: {text}"))
            });
        }
        if self.private_conditions > 0 {
            return Err(BindError::new(
                span,
                "whether `reject` is reached must not depend on a private record",
            ));
        }
        self.state.rejected = Scalar::number(1.0);
        if self.calls > 0 {
            self.state.ways_out.function = Scalar::number(1.0);
        }
        Ok(())
    }

    fn printed(&mut self, parts: &[Printed]) -> Traced<String> {
        let mut text = String::new();
        for part in parts {
            match part {
                Printed::Text(words) => text.push_str(words),
                Printed::Value(e) => {
                    let value = self.expression(e)?;
                    text.push_str(&self.describe(&value));
                }
            }
        }
        Ok(text)
    }

    /// A value as `print` shows it: `[1, 2.5]`, a matrix by rows.
    fn describe(&self, value: &Value) -> String {
        let elements = value.elements(&self.graphs);
        let number = |position: usize| match elements[position].as_number() {
            Some(v) => format!("{v}"),
            None => "(unknown)".to_string(),
        };
        let strides = value.shape.strides();
        nested(&value.shape.sizes, &strides, 0, &number)
    }

    /// Traces `body` under a condition: it has no effect elsewhere.
    fn guarded(
        &mut self,
        span: Span,
        live: Scalar,
        body: impl FnOnce(&mut Self) -> Traced<()>,
    ) -> Traced<()> {
        self.branch(
            span,
            live,
            |tracer| {
                tracer.state.ways_out = WaysOut::none();
                body(tracer)
            },
            |_| Ok(()),
        )
    }

    /// Traces both branches of a condition, and merges their effects.
    fn branch(
        &mut self,
        span: Span,
        condition: Scalar,
        then: impl FnOnce(&mut Self) -> Traced<()>,
        otherwise: impl FnOnce(&mut Self) -> Traced<()>,
    ) -> Traced<()> {
        let before = self.state.clone();
        let prior = std::mem::take(&mut self.prior);
        let likelihood = std::mem::take(&mut self.likelihood);
        let private = usize::from(condition.is_private());
        self.conditions += 1;
        self.private_conditions += private;
        then(self)?;
        let first = std::mem::replace(&mut self.state, before);
        let first_prior = std::mem::take(&mut self.prior);
        let first_likelihood = std::mem::take(&mut self.likelihood);
        otherwise(self)?;
        self.private_conditions -= private;
        self.conditions -= 1;
        let second_prior = std::mem::replace(&mut self.prior, prior);
        let second_likelihood = std::mem::replace(&mut self.likelihood, likelihood);
        self.prior.extend(
            self.graphs
                .either_sum(condition, &first_prior, &second_prior),
        );
        self.likelihood.extend(self.graphs.either_sum(
            condition,
            &first_likelihood,
            &second_likelihood,
        ));
        self.merge(span, condition, first)
    }

    fn merge(&mut self, span: Span, condition: Scalar, then: State) -> Traced<()> {
        let g = &mut self.graphs;
        let state = &mut self.state;
        for (then, otherwise) in then.variables.into_iter().zip(&mut state.variables) {
            // A variable that only one branch has, or has with other sizes, was declared in it and
            // is out of scope.
            match (then, &*otherwise) {
                (Some(a), Some(b)) if a.shape.sizes == b.shape.sizes => {
                    *otherwise = Some(g.select_values(condition, &a, b));
                }
                (Some(a), None) => *otherwise = Some(a),
                _ => {}
            }
        }
        state.result = match (then.result, state.result.take()) {
            (Some(a), Some(b)) => {
                if a.shape.sizes != b.shape.sizes {
                    return Err(BindError::new(
                        span,
                        format!(
                            "the function returns {} or {}, and which one depends on a parameter",
                            a.shape.describe(),
                            b.shape.describe()
                        ),
                    ));
                }
                Some(g.select_values(condition, &a, &b))
            }
            (a, b) => a.or(b),
        };
        let (a, b) = (then.ways_out, state.ways_out);
        state.ways_out = WaysOut {
            function: g.select(condition, a.function, b.function),
            loop_: g.select(condition, a.loop_, b.loop_),
            iteration: g.select(condition, a.iteration, b.iteration),
        };
        state.rejected = g.select(condition, then.rejected, state.rejected);
        Ok(())
    }

    pub(super) fn loop_variable(&mut self, variable: VariableId, value: Value) {
        self.state.variables[variable.0] = Some(value);
    }
}

fn either(g: &mut Graphs, a: Scalar, b: Scalar) -> Scalar {
    match (a.as_number(), b.as_number()) {
        (Some(0.0), _) => b,
        (_, Some(0.0)) => a,
        (Some(_), _) | (_, Some(_)) => Scalar::number(1.0),
        _ => g.binary(Binary::Or, a, b),
    }
}

impl Graphs {
    /// The sum of the first terms where the condition holds, else of the second;
    /// `None` when there are neither.
    fn either_sum(&mut self, condition: Scalar, a: &[Scalar], b: &[Scalar]) -> Option<Scalar> {
        if a.is_empty() && b.is_empty() {
            return None;
        }
        let (a, b) = (self.sum(a), self.sum(b));
        Some(self.select(condition, a, b))
    }

    /// `condition ? a : b` for values of the same sizes.
    fn select_values(&mut self, condition: Scalar, a: &Value, b: &Value) -> Value {
        let value = |data| Value {
            shape: b.shape.clone(),
            data,
        };
        match (&a.data, &b.data) {
            (Data::Public(x), Data::Public(y)) if x == y => return b.clone(),
            (Data::Elements(x), Data::Elements(y)) if Rc::ptr_eq(x, y) => return b.clone(),
            (Data::Public(x), Data::Public(y)) if !condition.is_private() => {
                let condition = self.assemble(&[condition]);
                return value(Data::Public(self.public.select_between(condition, *x, *y)));
            }
            _ => {}
        }
        let (x, y) = (a.elements(self), b.elements(self));
        let mut merged = y.to_vec();
        let differing: Vec<usize> = (0..merged.len()).filter(|&i| x[i] != y[i]).collect();
        let private = |&i: &usize| x[i].is_private() || y[i].is_private();
        if differing.len() > 1 && !condition.is_private() && !differing.iter().any(private) {
            // As one vector, since one node each would be too many.
            let pick = |from: &[Scalar]| differing.iter().map(|&i| from[i]).collect::<Vec<_>>();
            let (x, y) = (self.assemble(&pick(&x)), self.assemble(&pick(&y)));
            let condition = self.assemble(&[condition]);
            let chosen = self.public.select_between(condition, x, y);
            for (k, &i) in differing.iter().enumerate() {
                merged[i] = Scalar::Public(chosen, k as u32);
            }
        } else {
            for i in differing {
                merged[i] = self.select(condition, x[i], y[i]);
            }
        }
        value(Data::of(merged))
    }
}

fn nested(
    sizes: &[usize],
    strides: &[usize],
    position: usize,
    number: &dyn Fn(usize) -> String,
) -> String {
    let Some((&size, rest)) = sizes.split_first() else {
        return number(position);
    };
    let parts: Vec<String> = (0..size)
        .map(|i| nested(rest, &strides[1..], position + i * strides[0], number))
        .collect();
    format!("[{}]", parts.join(", "))
}

/// A number without an assigned value.
pub(super) fn undefined(ty: Type) -> Value {
    Value::of(Shape::scalar(ty), vec![Scalar::number(f64::NAN)])
}
