//! From declarations to values: constants from their file, record columns, parameters through their
//! transforms; and whether computed variables satisfy their declarations.

use super::blocks::Blocks;
use super::constraint::{block_name, conditions, element_name, violation};
use super::interval::{Interval, interval};
use super::private::{Graphs, Scalar};
use super::public::{Binary, PublicId};
use super::trace::Tracer;
use super::transform::{Affine, Bounds, Transform};
use super::value::{Data, Shape, Value};
use super::{BindError, Constants, Parameter, RecordColumn};
use crate::check::{Base, Expr, Joint, Role, Structure, Variable, VariableId};
use crate::function::Algebra;

type Bound<T> = Result<T, BindError>;

pub(super) fn bind_constants(tracer: &mut Tracer, constants: &Constants) -> Bound<()> {
    let checked = tracer.checked;
    for &id in &checked.constants {
        let variable = checked.variable(id);
        let shape = tracer.declared_shape(id)?;
        let value = constants.value(variable, shape)?;
        tracer.state.variables[id.0] = Some(value);
        tracer.keep_promise(id)?;
    }
    Ok(())
}

pub(super) fn bind_record(tracer: &mut Tracer) -> Bound<Vec<RecordColumn>> {
    let checked = tracer.checked;
    let mut columns = Vec::new();
    for &id in &checked.record {
        let variable = checked.variable(id);
        let shape = tracer.declared_shape(id)?;
        let lower = constant_bound(tracer, &variable.lower, &shape)?;
        let upper = constant_bound(tracer, &variable.upper, &shape)?;
        let mut elements = Vec::new();
        for (i, index) in shape.indices().iter().enumerate() {
            let mut name = variable.name.clone();
            for i in index {
                name.push_str(&format!(".{i}"));
            }
            let bound = |bounds: &Option<Vec<f64>>| bounds.as_ref().map(|b| b[i % b.len()]);
            let (lower, upper) = (bound(&lower), bound(&upper));
            if let (Some(a), Some(b)) = (lower, upper)
                && a > b
            {
                return Err(BindError::new(
                    variable.span,
                    format!(
                        "`{}` has lower bound {a} above its upper bound {b}",
                        element_name(&variable.name, &shape, i)
                    ),
                ));
            }
            elements.push(tracer.graphs.private.column(columns.len()));
            tracer.columns.push(Interval {
                low: lower.unwrap_or(f64::NEG_INFINITY),
                high: upper.unwrap_or(f64::INFINITY),
                whole: variable.ty.base == Base::Int,
            });
            tracer.column_names.push(name.clone());
            columns.push(RecordColumn {
                name,
                variable: variable.name.clone(),
                is_int: variable.ty.base == Base::Int,
                lower,
                upper,
                levels: checked.levels.get(&id).cloned().unwrap_or_default(),
                used: false,
                guess: None,
            });
        }
        tracer.state.variables[id.0] = Some(Value::of(shape, elements));
    }
    Ok(columns)
}

pub(super) fn bind_parameters(tracer: &mut Tracer) -> Bound<(Vec<Parameter>, Vec<PublicId>)> {
    let checked = tracer.checked;
    let mut parameters = Vec::new();
    let mut jacobians = Vec::new();
    let mut offset = 0;
    for &id in &checked.parameters {
        let variable = checked.variable(id);
        let shape = tracer.declared_shape(id)?;
        let transform = transform(tracer, variable, &shape)?;
        let free_length = transform.free_length(&shape);
        let node = if free_length == 0 {
            let only = transform.only_value(&shape);
            tracer.graphs.public.constants(&only)
        } else {
            let u = tracer.graphs.public.unconstrained(offset, free_length);
            let constrained = transform.constrain(&mut tracer.graphs.public, u);
            jacobians.extend(constrained.log_jacobian);
            constrained.value
        };
        tracer.state.variables[id.0] = Some(Value {
            shape: shape.clone(),
            data: Data::Public(node),
        });
        parameters.push(Parameter {
            name: variable.name.clone(),
            shape,
            transform,
            offset,
            free_length,
        });
        offset += free_length;
    }
    Ok((parameters, jacobians))
}

fn transform(tracer: &mut Tracer, variable: &Variable, shape: &Shape) -> Bound<Transform> {
    match &variable.structure {
        Structure::Joint(joint) => Ok(Transform::Joint(*joint, blocks(variable, *joint, shape)?)),
        Structure::Affine { offset, multiplier } => {
            let node = |tracer: &mut Tracer, e: &Option<Expr>, positive: bool| {
                let Some(e) = e else { return Ok(None) };
                let node = bound_node(tracer, e, shape)?;
                let values = tracer
                    .graphs
                    .public
                    .constant_values(node)
                    .unwrap_or_default();
                let fits = |v: f64| v.is_finite() && (v > 0.0 || !positive);
                match values.into_iter().find(|&v| !fits(v)) {
                    None => Ok(Some(node)),
                    Some(bad) => Err(BindError::new(
                        e.span,
                        format!(
                            "this {} of `{}` is {bad}, but it must be {}",
                            if positive { "multiplier" } else { "offset" },
                            variable.name,
                            if positive {
                                "positive and finite"
                            } else {
                                "finite"
                            }
                        ),
                    )),
                }
            };
            Ok(Transform::Affine(Affine {
                offset: node(tracer, offset, false)?,
                multiplier: node(tracer, multiplier, true)?,
            }))
        }
        Structure::Free => {
            let node = |tracer: &mut Tracer, e: &Option<Expr>, none: f64| {
                let Some(e) = e else { return Ok(None) };
                let node = bound_node(tracer, e, shape)?;
                // An infinite bound is no bound.
                let values = tracer.graphs.public.constant_values(node);
                let present = !values.is_some_and(|v| v.iter().all(|&v| v == none));
                Ok(present.then_some(node))
            };
            let lower = node(tracer, &variable.lower, f64::NEG_INFINITY)?;
            let upper = node(tracer, &variable.upper, f64::INFINITY)?;
            something_between(tracer, variable, shape, lower, upper)?;
            Ok(match (lower, upper) {
                (None, None) => Transform::Identity,
                _ => Transform::Bounds(Bounds { lower, upper }),
            })
        }
    }
}

/// Constant bounds of a parameter must leave room.
fn something_between(
    tracer: &Tracer,
    variable: &Variable,
    shape: &Shape,
    lower: Option<PublicId>,
    upper: Option<PublicId>,
) -> Bound<()> {
    let values = |id: Option<PublicId>| tracer.graphs.public.constant_values(id?);
    let (Some(a), Some(b)) = (values(lower), values(upper)) else {
        return Ok(());
    };
    for i in 0..shape.length() {
        let (a, b) = (a[i % a.len()], b[i % b.len()]);
        if a >= b {
            return Err(BindError::new(
                variable.span,
                format!(
                    "`{}` has the lower bound {a} and the upper bound {b}: nothing lies between them",
                    element_name(&variable.name, shape, i)
                ),
            ));
        }
    }
    Ok(())
}

/// The sizes of a declared type whose elements depend on each other.
fn blocks(variable: &Variable, joint: Joint, shape: &Shape) -> Bound<Blocks> {
    let blocks = Blocks::of(shape);
    let fail = |message: String| Err(BindError::new(variable.span, message));
    let (name, keyword) = (&variable.name, joint.with_article());
    let needs_one = matches!(joint, Joint::Simplex | Joint::UnitVector | Joint::SumToZero);
    if needs_one && blocks.rows == 0 {
        return fail(format!(
            "`{name}` has size 0, but {keyword} has at least 1 element"
        ));
    }
    if joint == Joint::CholeskyFactorCov && blocks.rows < blocks.columns {
        return fail(format!(
            "`{name}` has {} rows and {} columns, but {keyword} has at least as many rows as columns",
            blocks.rows, blocks.columns
        ));
    }
    Ok(blocks)
}

/// A bound as a public vector: of length 1, or of the variable's.
fn bound_node(tracer: &mut Tracer, e: &Expr, shape: &Shape) -> Bound<PublicId> {
    let value = bound(tracer, e, shape)?;
    let node = value.public_node(&mut tracer.graphs);
    let values = tracer.graphs.public.constant_values(node);
    if values.is_some_and(|v| v.iter().any(|v| v.is_nan())) {
        return Err(BindError::new(e.span, "this bound is not a number"));
    }
    Ok(node)
}

/// A bound's value: a number, or as many numbers as the variable has elements. A bound for one
/// element of an array applies to all of its elements.
fn bound(tracer: &mut Tracer, e: &Expr, shape: &Shape) -> Bound<Value> {
    let value = tracer.expression(e)?;
    let inner = &shape.sizes[shape.ty.array..];
    if value.shape.sizes.is_empty() || value.shape.sizes == shape.sizes {
        return Ok(value);
    }
    if value.shape.ty.array == 0 && value.shape.sizes == inner {
        let copies = shape.sizes[..shape.ty.array].iter().product();
        let elements = value.elements(&tracer.graphs).repeat(copies);
        return Ok(Value::of(shape.clone(), elements));
    }
    Err(BindError::new(
        e.span,
        format!(
            "this bound is {}, but the variable is {}: their sizes must agree",
            value.shape.describe(),
            shape.describe()
        ),
    ))
}

fn constant_bound(tracer: &mut Tracer, e: &Option<Expr>, shape: &Shape) -> Bound<Option<Vec<f64>>> {
    let Some(e) = e else { return Ok(None) };
    let node = bound_node(tracer, e, shape)?;
    match tracer.graphs.public.constant_values(node) {
        Some(values) if !values.is_empty() || shape.length() == 0 => Ok(Some(values)),
        _ => Err(BindError::new(e.span, "this bound must be a number")),
    }
}

impl Tracer<'_> {
    /// Checks every computed variable of a block after it has run.
    pub fn keep_promises(&mut self, role: Role) -> Bound<()> {
        let checked = self.checked;
        for (k, variable) in checked.variables.iter().enumerate() {
            if variable.role == role {
                self.keep_promise(VariableId(k))?;
            }
        }
        Ok(())
    }

    /// Checks a variable against its declaration: known values at once; values that depend on
    /// parameters by a term that is minus infinity where they fail (where Stan rejects); values of
    /// a record by such a term for that record alone.
    pub fn keep_promise(&mut self, id: VariableId) -> Bound<()> {
        let checked = self.checked;
        let variable = checked.variable(id);
        let Some(value) = self.state.variables[id.0].clone() else {
            return Ok(());
        };
        if let Structure::Joint(joint) = variable.structure {
            let blocks = blocks(variable, joint, &value.shape)?;
            if value.shape.length() > 0 {
                self.keep_joint(variable, joint, blocks, &value)?;
            }
            return Ok(());
        }
        let mut kept = value.clone();
        for (e, is_lower) in [(&variable.lower, true), (&variable.upper, false)] {
            let Some(e) = e else { continue };
            let bound = bound(self, e, &value.shape)?;
            self.keep_bound(variable, &value, &bound, is_lower, &mut kept)?;
        }
        self.state.variables[id.0] = Some(kept);
        Ok(())
    }

    fn keep_joint(
        &mut self,
        variable: &Variable,
        joint: Joint,
        blocks: Blocks,
        value: &Value,
    ) -> Bound<()> {
        if let Some(numbers) = constant_values(value, &self.graphs) {
            for (k, block) in numbers.chunks(blocks.length()).enumerate() {
                if let Some(problem) = violation(joint, blocks, block) {
                    return Err(BindError::new(
                        variable.span,
                        format!(
                            "`{}` is not {}: {problem}",
                            block_name(&variable.name, &value.shape, k),
                            joint.with_article()
                        ),
                    ));
                }
            }
            return Ok(());
        }
        let node = value.public_node(&mut self.graphs);
        for condition in conditions(&mut self.graphs.public, joint, blocks, node) {
            self.require(condition);
        }
        Ok(())
    }

    /// Minus infinity in the prior unless every element of `condition` is 1.
    fn require(&mut self, condition: PublicId) {
        let g = &mut self.graphs.public;
        let wanted = g.constant(g.length(condition) as f64);
        let count = g.sum_of(condition);
        let (zero, never) = (g.constant(0.0), g.constant(f64::NEG_INFINITY));
        let fewer = g.less(count, wanted);
        let term = g.select(fewer, never, zero);
        let term = self.graphs.only_element(term);
        self.prior.push(term);
    }

    fn keep_bound(
        &mut self,
        variable: &Variable,
        value: &Value,
        bound: &Value,
        is_lower: bool,
        kept: &mut Value,
    ) -> Bound<()> {
        let elements = value.elements(&self.graphs);
        let limits = bound.elements(&self.graphs);
        let limit = |i: usize| limits[i % limits.len().max(1)];
        if elements.is_empty() {
            return Ok(());
        }
        let mut open = false;
        for (i, element) in elements.iter().enumerate() {
            let (Some(v), Some(limit)) = (element.as_number(), limit(i).as_number()) else {
                open = true;
                continue;
            };
            let fits = if is_lower { v >= limit } else { v <= limit };
            if !fits {
                let what = match variable.role {
                    Role::Constant => "the constant ",
                    _ => "",
                };
                return Err(BindError::new(
                    variable.span,
                    format!(
                        "{what}`{}` is {v}, but its declared {} bound is {limit}",
                        element_name(&variable.name, &value.shape, i),
                        if is_lower { "lower" } else { "upper" }
                    ),
                ));
            }
        }
        if !open {
            return Ok(());
        }
        if !value.is_private() {
            let x = value.public_node(&mut self.graphs);
            let limit = bound.public_node(&mut self.graphs);
            let g = &mut self.graphs.public;
            let fits = if is_lower {
                g.binary(Binary::LessEqual, limit, x)
            } else {
                g.binary(Binary::LessEqual, x, limit)
            };
            self.require(fits);
            return Ok(());
        }
        let mut inside = kept.elements(&self.graphs).to_vec();
        for (i, &x) in elements.iter().enumerate() {
            let limit = limit(i);
            let range = interval(&self.graphs, &self.columns, x);
            let proven = limit.as_number().is_some_and(|limit| {
                (is_lower && range.low >= limit) || (!is_lower && range.high <= limit)
            });
            if proven {
                continue;
            }
            let g = &mut self.graphs;
            let fits = if is_lower {
                g.binary(Binary::LessEqual, limit, x)
            } else {
                g.binary(Binary::LessEqual, x, limit)
            };
            let (zero, never) = (g.constant(0.0), g.constant(f64::NEG_INFINITY));
            let term = g.select(fits, zero, never);
            self.likelihood.push(term);
            if variable.ty.base == Base::Int {
                // Such a record adds nothing, but its ints remain valid as indices.
                let op = if is_lower {
                    Binary::Maximum
                } else {
                    Binary::Minimum
                };
                inside[i] = g.binary(op, inside[i], limit);
            }
        }
        kept.data = Data::of(inside);
        Ok(())
    }
}

/// The numbers of a value that is entirely known.
fn constant_values(value: &Value, graphs: &Graphs) -> Option<Vec<f64>> {
    value
        .elements(graphs)
        .iter()
        .map(|s: &Scalar| s.as_number())
        .collect()
}
