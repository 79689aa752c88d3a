//! Log densities: a term per element, or one sum where all of them are public.

use super::super::interval::interval;
use super::super::private::{Graphs, Scalar};
use super::super::public::PublicId;
use super::super::value::{Shape, Value};
use super::super::{BindError, LocationScale};
use super::{Traced, Tracer};
use crate::check::{Base, Expr, ExprKind, StandsFor, Truncation, Type, stands_for};
use crate::distribution::{
    self, Algebra, Container, Domain, FAMILIES, Kind, Numbers, Tail, named_sizes,
};
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
        if values[0].is_private() {
            self.variates
                .extend(values[0].elements(&self.graphs).iter());
        }
        let mut ends = [None, None];
        for (end, e) in ends.iter_mut().zip([&truncation.lower, &truncation.upper]) {
            if let Some(e) = e {
                *end = Some(self.expression(e)?);
            }
        }
        let statements = self.statements_of(span, family, &values)?;
        self.check_categories(family, variate, &statements)?;
        if !FAMILIES[family].is_scalar() {
            return Ok(self.container_terms(family, &statements));
        }
        self.note_location_scale(family, &values, &statements);
        let [lower, upper] = ends;
        let ends = if distribution::sums_masses(family) {
            let known = |end: &Option<Value>| end.as_ref()?.only(&self.graphs).as_number();
            let (low, high) = (known(&lower), known(&upper));
            if !self.counts_are_summed(family, low, high) {
                return Err(too_many_counts(span, family));
            }
            Ends::Counts(low, high)
        } else {
            Ends::Given {
                lower: lower.is_some(),
                upper: upper.is_some(),
            }
        };
        let mut values = values;
        values.extend(lower.into_iter().chain(upper));
        self.scalar_terms(&statements, &values, &Density { family, ends })
    }

    /// Notes parameters that others move and scale.
    fn note_location_scale(&mut self, family: usize, values: &[Value], statements: &Statements) {
        let Some((location, scale)) = FAMILIES[family].location_and_scale() else {
            return;
        };
        let variates = &statements.given[0].elements;
        if values.iter().any(Value::is_private) || variates.len() != statements.count {
            return;
        }
        let coordinate = |&s: &Scalar| self.graphs.coordinate(s);
        let Some(coordinates) = variates.iter().map(coordinate).collect() else {
            return;
        };
        let [location, scale] =
            [location, scale].map(|argument| values[1 + argument].public_node(&mut self.graphs));
        let is_constant = |id| self.graphs.public.constant_values(id).is_some();
        if !(is_constant(location) && is_constant(scale)) {
            self.location_scales.push(LocationScale {
                coordinates,
                location,
                scale,
            });
        }
    }

    /// Whether the probability of a count between these ends can be computed.
    fn counts_are_summed(&self, family: usize, low: Option<f64>, high: Option<f64>) -> bool {
        let arguments = vec![f64::NAN; FAMILIES[family].arguments().len()];
        let ends = (low.unwrap_or(0.0), high);
        distribution::log_probability_of_counts(family, &mut Numbers, ends, &arguments).is_some()
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
        if !distribution::sums_masses(family) {
            return self.scalar_terms(&statements, &values, &Probability { family, tail });
        }
        let known = |s: &Scalar| s.as_number().unwrap_or(f64::NAN);
        for count in statements.given[0].elements.iter().map(known) {
            let fits = match tail {
                Tail::Lower => self.counts_are_summed(family, None, Some(count)),
                Tail::Upper => self.counts_are_summed(family, Some(count + 1.0), None),
            };
            if !fits {
                return Err(too_many_counts(span, family));
            }
        }
        Ok(self.each(&statements, |graphs, given| {
            let ends = match (tail, known(&given[0].elements[0])) {
                (Tail::Lower, count) => (0.0, Some(count)),
                (Tail::Upper, count) => (count + 1.0, None),
            };
            let arguments: Vec<_> = given[1..].iter().map(|c| c.elements[0]).collect();
            distribution::log_probability_of_counts(family, graphs, ends, &arguments)
                .unwrap_or(Scalar::number(f64::NAN))
        }))
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
        let node = term.of(&mut self.graphs.public, &nodes);
        Ok(self.public_sum(node, statements.count))
    }

    /// Terms of vectors and matrices. Where everything is public, each element is
    /// a vector over the statements.
    fn container_terms(&mut self, family: usize, statements: &Statements) -> Value {
        let density = |graphs: &mut Graphs, given: &[Container<'_, Scalar>]| {
            distribution::log_density(family, graphs, &given[0], &given[1..])
        };
        let mut elements = statements.given.iter().flat_map(|g| &g.elements);
        if statements.count < 2 || elements.any(|s| s.is_private()) {
            return self.each(statements, density);
        }
        let nodes: Vec<Vec<PublicId>> = statements
            .given
            .iter()
            .map(|g| {
                let element = |e| self.graphs.assemble(&g.of_each_statement(e));
                (0..g.rows * g.columns).map(element).collect()
            })
            .collect();
        let given: Vec<_> = statements
            .given
            .iter()
            .zip(&nodes)
            .map(|(g, elements)| Container {
                elements,
                rows: g.rows,
                columns: g.columns,
            })
            .collect();
        let graph = &mut self.graphs.public;
        let node = distribution::log_density(family, graph, &given[0], &given[1..]);
        self.public_sum(node, statements.count)
    }

    /// The sum of a term over this many statements.
    fn public_sum(&mut self, node: PublicId, count: usize) -> Value {
        let graph = &mut self.graphs.public;
        // The term does not depend on the statement: it is repeated.
        let node = if graph.length(node) < count {
            let times = graph.constant(count as f64);
            graph.multiply(node, times)
        } else {
            node
        };
        let sum = graph.sum_of(node);
        Value::scalar(Type::REAL, self.graphs.only_element(sum))
    }

    /// A record's category must exist, since it is looked up.
    fn check_categories(
        &self,
        family: usize,
        variate: &Expr,
        statements: &Statements,
    ) -> Traced<()> {
        let definition = FAMILIES[family];
        let Domain::Categories(letter, more) = definition.support() else {
            return Ok(());
        };
        let sized = definition.arguments().iter().zip(&statements.given[1..]);
        let size = sized.flat_map(|(a, g)| named_sizes(a.kind, &g.at(0)));
        let Some(size) = size.into_iter().find(|s| s.0 == letter) else {
            return Ok(());
        };
        let last = size.1 + more;
        for &scalar in &statements.given[0].elements {
            if !scalar.is_private() {
                continue;
            }
            let range = interval(&self.graphs, &self.columns, scalar);
            if range.low >= 1.0 && range.high <= last as f64 {
                continue;
            }
            let what = match variate.kind {
                ExprKind::Variable(id) => format!("`{}`", self.checked.variable(id).name),
                _ => "this variate".to_string(),
            };
            let reach = if range.low.is_finite() && range.high.is_finite() {
                format!("may be anything from {} to {}", range.low, range.high)
            } else {
                "is not bounded on both sides".to_string()
            };
            return Err(BindError::new(
                variate.span,
                format!(
                    "{what} {reach}, but `{}` has {last} categor{} here: declare it with `lower=1, upper={last}`",
                    definition.name(),
                    if last == 1 { "y" } else { "ies" },
                ),
            ));
        }
        Ok(())
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
        Value::of(
            Shape {
                ty: Type {
                    base: Base::Real,
                    array: 1,
                },
                sizes: vec![statements.count],
            },
            terms,
        )
    }

    /// Determines which values belong to one statement and which to many, and checks that sizes
    /// agree.
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
    /// The term for the variate, the arguments and any further values.
    fn of<A: Algebra>(&self, algebra: &mut A, given: &[A::Scalar]) -> A::Scalar;
}

/// A log density, truncated.
struct Density {
    family: usize,
    ends: Ends,
}

/// The ends of a truncation.
enum Ends {
    /// Values that follow the arguments, if present.
    Given { lower: bool, upper: bool },
    /// Numbers, of a count.
    Counts(Option<f64>, Option<f64>),
}

impl ScalarTerm for Density {
    fn of<A: Algebra>(&self, algebra: &mut A, given: &[A::Scalar]) -> A::Scalar {
        let family = self.family;
        let (arguments, ends) = given[1..].split_at(FAMILIES[family].arguments().len());
        let containers: Vec<_> = given.chunks(1).map(Container::vector).collect();
        let of_arguments = &containers[1..=arguments.len()];
        let density = distribution::log_density(family, algebra, &containers[0], of_arguments);
        let truncation = match self.ends {
            Ends::Given {
                lower: false,
                upper: false,
            } => return density,
            Ends::Given { lower, upper } => {
                let first = ends.first().copied();
                let last = ends.last().copied();
                let ends = (first.filter(|_| lower), last.filter(|_| upper));
                distribution::log_truncation(family, algebra, given[0], arguments, ends)
            }
            Ends::Counts(None, None) => return density,
            Ends::Counts(low, high) => distribution::log_count_truncation(
                family,
                algebra,
                given[0],
                arguments,
                (low, high),
            ),
        };
        algebra.add(density, truncation)
    }
}

fn too_many_counts(span: Span, family: usize) -> BindError {
    let name = FAMILIES[family].name();
    let most = distribution::MOST_MASSES;
    BindError::new(
        span,
        format!(
            "a probability of `{name}` is a sum over counts: it can be had above zero, as in `T[1, ]`, or between two ends with at most {most} counts, as in `T[2, 100]`"
        ),
    )
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

/// The single statements in one vectorised statement.
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
    /// The number of statements; `None` if any.
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
        let rows_and_columns = |sizes: &[usize]| match *sizes {
            [] => (1, 1),
            [n] => (n, 1),
            [rows, columns, ..] => (rows, columns),
        };
        // A matrix of predictors is stored column by column: its rows are gathered.
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
        let (rows, columns) = rows_and_columns(&sizes[usize::from(many.is_some())..]);
        Given {
            kind,
            elements,
            rows,
            columns,
            many,
        }
    }

    /// One element of the value, in every statement.
    fn of_each_statement(&self, element: usize) -> Vec<Scalar> {
        let size = self.rows * self.columns;
        let each = self.elements.iter().skip(element).step_by(size);
        each.copied().collect()
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
                None if letter == "K" && size == 0 => {
                    return Err(BindError::new(
                        span,
                        format!(
                            "{name} of `{}` is empty: it needs at least one element",
                            definition.name()
                        ),
                    ));
                }
                None => known.push((letter, size, name.clone())),
            }
        }
    }
    Ok(())
}
