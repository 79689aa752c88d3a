//! Log densities: a term per element, or one sum where all of them are public.

use super::super::BindError;
use super::super::private::{Graphs, Scalar};
use super::super::value::{Data, Shape, Value};
use super::{Traced, Tracer};
use crate::check::{Base, Expr, StandsFor, Type, stands_for};
use crate::distribution::{self, Algebra, Container, FAMILIES, Kind, named_sizes};
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
        let statements = self.statements_of(span, family, &values)?;
        let length = statements.count;
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
        if FAMILIES[family].is_scalar() && !values.iter().any(Value::is_private) {
            return Ok(self.public_log_density(family, &values, length));
        }
        let terms = (0..length)
            .map(|i| {
                let given = statements.at(i);
                let (variate, arguments) = (&given[0], &given[1..]);
                distribution::log_density(family, &mut self.graphs, variate, arguments)
            })
            .collect();
        Ok(Value {
            shape,
            data: Data::of(terms),
        })
    }

    /// All elements at once, as nodes of the public graph.
    fn public_log_density(&mut self, family: usize, values: &[Value], length: usize) -> Value {
        let nodes: Vec<_> = values
            .iter()
            .map(|v| v.public_node(&mut self.graphs))
            .collect();
        let given: Vec<_> = nodes.chunks(1).map(Container::vector).collect();
        let graph = &mut self.graphs.public;
        let node = distribution::log_density(family, graph, &given[0], &given[1..]);
        // Nothing depends on the element: the same term so many times.
        let node = if self.graphs.public.length(node) < length {
            let times = self.graphs.public.constant(length as f64);
            self.graphs.public.multiply(node, times)
        } else {
            node
        };
        let sum = self.graphs.public.sum_of(node);
        Value::scalar(Type::REAL, self.graphs.from_public(sum))
    }

    /// Sorts out which values stand for one and which for many statements, and
    /// checks that sizes agree.
    fn statements_of(&self, span: Span, family: usize, values: &[Value]) -> Traced<Statements> {
        let definition = FAMILIES[family];
        let kinds = std::iter::once(definition.variate())
            .chain(definition.arguments().iter().map(|a| a.kind));
        let given: Vec<Given> = values
            .iter()
            .zip(kinds)
            .map(|(value, kind)| Given::new(&self.graphs, kind, value))
            .collect();
        let mut count = None;
        for many in given.iter().filter_map(|g| g.many) {
            match count {
                Some(other) if other != many => {
                    return Err(BindError::new(
                        span,
                        format!(
                            "`{}` is given containers of {other} and of {many} elements: their sizes must agree",
                            definition.name(),
                        ),
                    ));
                }
                _ => count = Some(many),
            }
        }
        let statements = Statements {
            given,
            count: count.unwrap_or(1),
        };
        if statements.count > 0 {
            check_sizes(span, family, &statements)?;
        }
        Ok(statements)
    }
}

/// The statements that one vectorised statement stands for.
struct Statements {
    given: Vec<Given>,
    count: usize,
}

impl Statements {
    /// The variate and the arguments of one of them.
    fn at(&self, i: usize) -> Vec<Container<'_, Scalar>> {
        self.given.iter().map(|g| g.at(i)).collect()
    }
}

/// The value of a variate or an argument, statement by statement.
struct Given {
    kind: Kind,
    /// The elements of every statement, one after the other.
    elements: Vec<Scalar>,
    rows: usize,
    columns: usize,
    /// For how many statements it stands; `None` if for any number.
    many: Option<usize>,
}

impl Given {
    fn new(graphs: &Graphs, kind: Kind, value: &Value) -> Given {
        let elements = value.elements(graphs).to_vec();
        let sizes = &value.shape.sizes;
        let many = match stands_for(kind, value.shape.ty) {
            Some(StandsFor::Many) => Some(sizes[0]),
            _ => None,
        };
        let one = |sizes: &[usize]| match *sizes {
            [] => (1, 1),
            [n] => (n, 1),
            [rows, columns, ..] => (rows, columns),
        };
        // A matrix of predictors lies column by column: its rows are gathered.
        if many.is_some() && value.shape.ty == Type::MATRIX {
            let (rows, columns) = (sizes[0], sizes[1]);
            return Given {
                kind,
                elements: (0..rows * columns)
                    .map(|k| elements[k / columns + k % columns * rows])
                    .collect(),
                rows: columns,
                columns: 1,
                many,
            };
        }
        let (rows, columns) = one(&sizes[usize::from(many.is_some())..]);
        Given {
            kind,
            elements,
            rows,
            columns,
            many,
        }
    }

    fn at(&self, i: usize) -> Container<'_, Scalar> {
        let size = self.rows * self.columns;
        let start = if self.many.is_some() { i * size } else { 0 };
        Container {
            elements: &self.elements[start..start + size],
            rows: self.rows,
            columns: self.columns,
        }
    }
}

/// The letters in a family's signature must stand for one size each.
fn check_sizes(span: Span, family: usize, statements: &Statements) -> Traced<()> {
    let definition = FAMILIES[family];
    let names = std::iter::once("the variate".to_string()).chain(
        definition
            .arguments()
            .iter()
            .map(|a| format!("`{}`", a.name)),
    );
    let mut known: Vec<(&str, usize, String)> = Vec::new();
    for (given, name) in statements.given.iter().zip(names) {
        for (letter, size) in named_sizes(given.kind, &given.at(0)) {
            match known.iter().find(|k| k.0 == letter) {
                Some((_, other, first)) if *other != size => {
                    return Err(BindError::new(
                        span,
                        format!(
                            "sizes do not agree: {first} has {letter} = {other}, {name} has {letter} = {size}, in `{}` of {}",
                            definition.signature(),
                            definition.variate(),
                        ),
                    ));
                }
                Some(_) => {}
                None => known.push((letter, size, name.clone())),
            }
        }
    }
    Ok(())
}
