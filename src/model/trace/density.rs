//! Log densities: a term per element, or one sum where all of them are public.

use super::super::BindError;
use super::super::private::{Graphs, Scalar};
use super::super::value::{Data, Shape, Value};
use super::{Traced, Tracer};
use crate::check::{Base, Expr, StandsFor, Truncation, Type, stands_for};
use crate::distribution::{self, Algebra, Container, FAMILIES, Kind, Tail, named_sizes};
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
        truncation: &Truncation,
    ) -> Traced<Value> {
        let values = self.values(variate, arguments)?;
        let mut ends = [None, None];
        for (end, e) in ends.iter_mut().zip([&truncation.lower, &truncation.upper]) {
            if let Some(e) = e {
                *end = Some(self.expression(e)?);
            }
        }
        let statements = self.statements_of(span, family, &values)?;
        if !FAMILIES[family].is_scalar() {
            return Ok(self.each(&statements, |graphs, given| {
                distribution::log_density(family, graphs, &given[0], &given[1..])
            }));
        }
        let term = Density {
            family,
            lower: ends[0].is_some(),
            upper: ends[1].is_some(),
        };
        let mut values = values;
        values.extend(ends.into_iter().flatten());
        self.scalar_terms(&statements, &values, &term)
    }

    /// The terms of a log probability of one side, likewise.
    pub(super) fn log_tail(
        &mut self,
        span: Span,
        (family, tail): (usize, Tail),
        variate: &Expr,
        arguments: &[Expr],
    ) -> Traced<Value> {
        let values = self.values(variate, arguments)?;
        let statements = self.statements_of(span, family, &values)?;
        self.scalar_terms(&statements, &values, &Probability { family, tail })
    }

    fn values(&mut self, variate: &Expr, arguments: &[Expr]) -> Traced<Vec<Value>> {
        std::iter::once(variate)
            .chain(arguments)
            .map(|e| self.expression(e))
            .collect()
    }

    /// Terms of numbers: all elements at once where everything is public.
    fn scalar_terms(
        &mut self,
        statements: &Statements,
        values: &[Value],
        term: &impl ScalarTerm,
    ) -> Traced<Value> {
        if values.iter().any(Value::is_private) || statements.count == 0 {
            let more: Vec<_> = values[statements.given.len()..]
                .iter()
                .map(|v| v.only(&self.graphs))
                .collect();
            return Ok(self.each(statements, |graphs, given| {
                let mut scalars: Vec<_> = given.iter().map(|c| c.elements[0]).collect();
                scalars.extend(&more);
                term.of(graphs, &scalars)
            }));
        }
        let nodes: Vec<_> = values
            .iter()
            .map(|v| v.public_node(&mut self.graphs))
            .collect();
        let graph = &mut self.graphs.public;
        let node = term.of(graph, &nodes);
        // Nothing depends on the element: the same term so many times.
        let node = if graph.length(node) < statements.count {
            let times = graph.constant(statements.count as f64);
            graph.multiply(node, times)
        } else {
            node
        };
        let sum = graph.sum_of(node);
        Ok(Value::scalar(Type::REAL, self.graphs.from_public(sum)))
    }

    /// One term per statement.
    fn each(
        &mut self,
        statements: &Statements,
        term: impl Fn(&mut Graphs, &[Container<'_, Scalar>]) -> Scalar,
    ) -> Value {
        let terms = (0..statements.count)
            .map(|i| term(&mut self.graphs, &statements.at(i)))
            .collect();
        Value {
            shape: Shape {
                ty: Type {
                    base: Base::Real,
                    array: 1,
                },
                sizes: vec![statements.count],
            },
            data: Data::of(terms),
        }
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

/// A term of a family of numbers, in any algebra.
trait ScalarTerm {
    /// From the variate, the arguments and whatever else was given.
    fn of<A: Algebra>(&self, algebra: &mut A, given: &[A::Scalar]) -> A::Scalar;
}

/// A log density, truncated at the ends that come after the arguments.
struct Density {
    family: usize,
    lower: bool,
    upper: bool,
}

impl ScalarTerm for Density {
    fn of<A: Algebra>(&self, algebra: &mut A, given: &[A::Scalar]) -> A::Scalar {
        let (arguments, mut ends) = given[1..].split_at(FAMILIES[self.family].arguments().len());
        let containers: Vec<_> = given.chunks(1).map(Container::vector).collect();
        let [variate, of_arguments @ ..] = &containers[..=arguments.len()] else {
            unreachable!("a variate is always given")
        };
        let density = distribution::log_density(self.family, algebra, variate, of_arguments);
        let mut next = |there: bool| {
            let (&end, rest) = ends.split_first().filter(|_| there)?;
            ends = rest;
            Some(end)
        };
        let ends = (next(self.lower), next(self.upper));
        if !self.lower && !self.upper {
            return density;
        }
        let truncation =
            distribution::log_truncation(self.family, algebra, given[0], arguments, ends);
        algebra.add(density, truncation)
    }
}

/// The log probability of one side of the variate.
struct Probability {
    family: usize,
    tail: Tail,
}

impl ScalarTerm for Probability {
    fn of<A: Algebra>(&self, algebra: &mut A, given: &[A::Scalar]) -> A::Scalar {
        distribution::log_tail(self.family, self.tail, algebra, given[0], &given[1..])
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
