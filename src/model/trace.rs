//! From the typed tree to graphs: the program is run once with its constants
//! known, and whatever depends on a parameter or a record becomes a node.
//!
//! Loops over constants unroll, branches on constants are taken, functions are
//! traced at each call, sizes become numbers. What is left is straight-line
//! arithmetic.

mod density;
mod draw;
mod expression;
mod flow;
mod function;
mod index;
mod user;

use std::rc::Rc;

pub use flow::State;
use rand_chacha::ChaCha8Rng;

use super::interval::Interval;
use super::private::{Graphs, Scalar};
use super::value::{Data, Shape, Value};
use super::{BindError, LocationScale};
use crate::check::{Checked, Expr, Index, Role, Stack, Statement, StatementKind, Type, VariableId};
use crate::syntax::{BinaryOperator, Span};

/// The most rounds of loops and calls of functions; a program with more is refused before it fills
/// the memory.
const MAX_STEPS: usize = 10_000_000;

/// Likewise the most elements of a container, and the most operations of a program (each takes
/// about 200 bytes while the model is bound).
const MAX_ELEMENTS: usize = 10_000_000;
const MAX_OPERATIONS: usize = 2_000_000;

pub(super) struct Tracer<'a> {
    pub checked: &'a Checked,
    pub graphs: Graphs,
    pub state: State,
    /// Terms of the log prior, each a public scalar.
    pub prior: Vec<Scalar>,
    /// Terms of one record's log-likelihood.
    pub likelihood: Vec<Scalar>,
    /// The statements that add to it, each with all terms that it added.
    pub likelihood_statements: Vec<LikelihoodStatement>,
    /// The private variates of log densities.
    pub variates: Vec<Scalar>,
    /// The public ones that other parameters move and scale.
    pub location_scales: Vec<LocationScale>,
    /// The values that each record column may hold, for indices, and its name.
    pub columns: Vec<Interval>,
    pub column_names: Vec<String>,
    /// The output of `print`.
    pub printed: Vec<String>,
    /// The source of random numbers; none while the density is traced.
    pub random: Option<ChaCha8Rng>,
    steps: usize,
    /// Conditions on parameters and records around this place.
    conditions: usize,
    /// Of these, the conditions on a record.
    private_conditions: usize,
    /// Calls of user-defined functions around this place.
    calls: usize,
    stack: Stack,
}

/// A statement of the program that adds to each record's log-likelihood.
#[derive(Debug, Clone)]
pub(super) struct LikelihoodStatement {
    pub span: Span,
    /// The terms that it adds; `false` marks one that a condition may leave out.
    pub terms: Vec<(Scalar, bool)>,
}

type Traced<T> = Result<T, BindError>;

impl<'a> Tracer<'a> {
    pub fn new(checked: &'a Checked) -> Self {
        Tracer {
            checked,
            graphs: Graphs::default(),
            state: State::new(checked.variables.len()),
            prior: Vec::new(),
            likelihood: Vec::new(),
            likelihood_statements: Vec::new(),
            variates: Vec::new(),
            location_scales: Vec::new(),
            columns: Vec::new(),
            column_names: Vec::new(),
            printed: Vec::new(),
            random: None,
            steps: 0,
            conditions: 0,
            private_conditions: 0,
            calls: 0,
            stack: Stack::here(),
        }
    }

    fn statement(&mut self, statement: &Statement) -> Traced<()> {
        let operations = self.graphs.public.nodes().len() + self.graphs.private.nodes().len();
        if operations > MAX_OPERATIONS {
            return Err(BindError::new(
                statement.span,
                format!(
                    "this program, with its loops unrolled, has more than {MAX_OPERATIONS} operations"
                ),
            ));
        }
        match &statement.kind {
            StatementKind::Declare { variable, value } => {
                let shape = self.declared_shape(*variable)?;
                let given = value.is_some();
                let value = match value {
                    Some(e) => {
                        let value = self.expression(e)?;
                        check_sizes(e.span, &shape, &value)?;
                        Value { shape, ..value }
                    }
                    // Not a number until it is assigned, as in Stan.
                    None => Value {
                        data: Data::of(vec![Scalar::number(f64::NAN); shape.length()]),
                        shape,
                    },
                };
                self.state.variables[variable.0] = Some(value);
                // Immediately, so that its bounds are known for later indices.
                if given && self.checked.variable(*variable).role == Role::TransformedRecord {
                    self.keep_promise(*variable)?;
                }
                Ok(())
            }
            StatementKind::Assign {
                variable,
                indices,
                operator,
                value,
            } => self.assign(statement.span, *variable, indices, *operator, value),
            StatementKind::Target { value } => {
                let private = value.stage.is_private();
                let value = self.expression(value)?;
                self.add_to_target(statement.span, private, &value);
                Ok(())
            }
            StatementKind::Sampling {
                family,
                variate,
                arguments,
                truncation,
            } => {
                if !variate.stage.is_private() && self.private_conditions > 0 {
                    return Err(BindError::new(
                        statement.span,
                        "a prior under a condition on a record would count once for each record: write `target += ..._lpdf(... | ...);` if that is meant",
                    ));
                }
                let mut all = arguments.iter().chain(truncation.ends());
                let private = variate.stage.is_private() || all.any(|a| a.stage.is_private());
                let value =
                    self.log_density(statement.span, *family, variate, arguments, truncation)?;
                self.add_to_target(statement.span, private, &value);
                Ok(())
            }
            StatementKind::ForRange {
                variable,
                from,
                to,
                body,
            } => {
                let (from, to) = (self.integer(from)?, self.integer(to)?);
                let enter = |tracer: &mut Self, k: i64| {
                    tracer.loop_variable(*variable, Value::number(Type::INT, k as f64));
                    Ok(true)
                };
                self.loop_over(statement.span, from..=to, enter, body)
            }
            StatementKind::ForEach {
                variable,
                container,
                body,
            } => {
                let container = self.expression(container)?;
                let array = container.shape.ty.array;
                let steps = if array > 0 {
                    container.shape.sizes[0]
                } else {
                    container.shape.length()
                };
                let element = Shape {
                    ty: if array > 0 {
                        Type {
                            array: array - 1,
                            ..container.shape.ty
                        }
                    } else {
                        Type::REAL
                    },
                    sizes: if array > 0 {
                        container.shape.sizes[1..].to_vec()
                    } else {
                        Vec::new()
                    },
                };
                let elements = container.elements(&self.graphs);
                let length = element.length();
                let enter = |tracer: &mut Self, k: usize| {
                    let value = Value::of(
                        element.clone(),
                        elements[k * length..(k + 1) * length].to_vec(),
                    );
                    tracer.loop_variable(*variable, value);
                    Ok(true)
                };
                self.loop_over(statement.span, 0..steps, enter, body)
            }
            StatementKind::While { condition, body } => {
                self.while_loop(statement.span, condition, body)
            }
            StatementKind::If {
                condition,
                then,
                otherwise,
            } => self.if_statement(condition, then, otherwise.as_deref()),
            StatementKind::Break => {
                self.leave_loop();
                Ok(())
            }
            StatementKind::Continue => {
                self.leave_iteration();
                Ok(())
            }
            StatementKind::Return(value) => self.leave_function(value.as_ref()),
            StatementKind::Print(parts) => self.print(statement.span, parts),
            StatementKind::Reject(parts) => self.reject(statement.span, parts),
            StatementKind::Call {
                function,
                arguments,
            } => self
                .user_call(statement.span, *function, arguments)
                .map(|_| ()),
            StatementKind::Block(statements) => self.statements(statements),
        }
    }

    /// Counts a round of a loop or a call, so that a program that never ends is refused.
    fn count_step(&mut self, span: Span, what: &str) -> Traced<()> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(BindError::new(
                span,
                format!("the {what} of this program run more than {MAX_STEPS} times"),
            ));
        }
        Ok(())
    }

    /// The shape of a variable, its sizes evaluated.
    pub fn declared_shape(&mut self, id: VariableId) -> Traced<Shape> {
        let checked = self.checked;
        let variable = checked.variable(id);
        let mut sizes = Vec::new();
        for size in &variable.sizes {
            let value = self.integer(size)?;
            let Ok(value) = usize::try_from(value) else {
                return Err(BindError::new(
                    size.span,
                    format!(
                        "the size of `{}` is {value}; a size must be 0 or more",
                        variable.name
                    ),
                ));
            };
            sizes.push(value);
        }
        check_length(variable.span, &sizes)?;
        Ok(Shape {
            ty: variable.ty,
            sizes,
        })
    }

    fn integer(&mut self, e: &Expr) -> Traced<i64> {
        let value = self.expression(e)?.only(&self.graphs).as_number();
        match value {
            Some(v) if v.fract() == 0.0 && v.abs() < 9e15 => Ok(v as i64),
            _ => Err(BindError::new(e.span, "expected a whole number")),
        }
    }

    /// `private` is the stage of the statement. That and conditions on a record determine whether the
    /// term counts once or once per record. `for (x in [1, age]) target += b * x;` counts both of its
    /// terms once per record.
    fn add_to_target(&mut self, span: Span, private: bool, value: &Value) {
        if private || self.private_conditions > 0 {
            let elements = value.elements(&self.graphs);
            self.likelihood.extend(elements.iter());
            let certain = self.conditions == 0;
            let terms = elements.iter().map(|&term| (term, certain));
            match self
                .likelihood_statements
                .iter_mut()
                .find(|s| s.span == span)
            {
                Some(statement) => statement.terms.extend(terms),
                None => self.likelihood_statements.push(LikelihoodStatement {
                    span,
                    terms: terms.collect(),
                }),
            }
        } else if value.shape.length() > 0 {
            let node = value.public_node(&mut self.graphs);
            let sum = self.graphs.public.sum_of(node);
            let term = self.graphs.only_element(sum);
            self.prior.push(term);
        }
    }

    fn assign(
        &mut self,
        span: Span,
        variable: VariableId,
        indices: &[Index],
        operator: Option<BinaryOperator>,
        value: &Expr,
    ) -> Traced<()> {
        let new = self.expression(value)?;
        let Some(old) = self.state.variables[variable.0].clone() else {
            return Err(BindError::new(span, "this variable has no value yet"));
        };
        let (shape, positions) = self.positions(span, &old.shape, indices)?;
        let new = match operator {
            None => new,
            Some(operator) => {
                let current = Value {
                    shape: shape.clone(),
                    data: if indices.is_empty() {
                        old.data.clone()
                    } else {
                        self.take(&old, &positions)
                    },
                };
                self.binary(span, operator, &current, &new)?
            }
        };
        check_sizes(value.span, &shape, &new)?;
        let data = if indices.is_empty() {
            new.data
        } else {
            // In place, unless another variable shares the elements.
            self.state.variables[variable.0] = None;
            let mut elements = old.elements(&self.graphs);
            let shape = old.shape.clone();
            drop(old);
            let places = Rc::make_mut(&mut elements);
            for (p, &e) in positions.into_iter().zip(new.elements(&self.graphs).iter()) {
                places[p] = e;
            }
            self.state.variables[variable.0] = Some(Value {
                shape,
                data: Data::Elements(elements),
            });
            return Ok(());
        };
        self.state.variables[variable.0] = Some(Value {
            shape: old.shape,
            data,
        });
        Ok(())
    }
}

/// Refuses containers that would fill the memory.
fn check_length(span: Span, sizes: &[usize]) -> Traced<()> {
    let length = sizes.iter().try_fold(1usize, |a, &b| a.checked_mul(b));
    if length.is_some_and(|n| n <= MAX_ELEMENTS) {
        return Ok(());
    }
    let sizes: Vec<_> = sizes.iter().map(ToString::to_string).collect();
    Err(BindError::new(
        span,
        format!(
            "{} elements are more than {MAX_ELEMENTS}",
            sizes.join(" x ")
        ),
    ))
}

fn check_sizes(span: Span, declared: &Shape, value: &Value) -> Traced<()> {
    if declared.sizes == value.shape.sizes {
        return Ok(());
    }
    Err(BindError::new(
        span,
        format!(
            "expected {}, found {}",
            declared.describe(),
            value.shape.describe()
        ),
    ))
}

fn same_sizes(span: Span, a: &Value, b: &Value) -> Traced<()> {
    if a.shape.sizes == b.shape.sizes {
        return Ok(());
    }
    Err(BindError::new(
        span,
        format!(
            "sizes differ: {} and {}",
            a.shape.describe(),
            b.shape.describe()
        ),
    ))
}
