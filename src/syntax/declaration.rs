//! Declarations, types and function heads.

use pest::iterators::Pair;

use super::builder::{Builder, parts};
use super::diagnostic::Diagnostic;
use super::grammar::Rule;
use super::suggestion::did_you_mean;
use super::tree::{
    Argument, BaseType, Constraint, ConstraintKind, Expr, ExprKind, Function, SizedType, Span,
    Statement, StatementKind, UnsizedBase, UnsizedType,
};
use super::words;

const CONSTRAINTS: [ConstraintKind; 4] = [
    ConstraintKind::Lower,
    ConstraintKind::Upper,
    ConstraintKind::Offset,
    ConstraintKind::Multiplier,
];

impl Builder<'_> {
    /// One statement for each declared name; all have the span of the whole.
    pub(super) fn declaration(&mut self, pair: Pair<'_, Rule>) -> Option<Vec<Statement>> {
        let span = self.span(&pair);
        let mut children = parts(pair).peekable();
        let ty = children.next()?;
        let written = ty.as_str().trim_end().to_owned();
        let after_name = children.peek().and_then(|declarator| {
            parts(declarator.clone()).find(|child| child.as_rule() == Rule::old_sizes)
        });
        let ty = self.sized_type(ty, after_name)?;
        children
            .map(|declarator| {
                let kind = self.declarator(declarator, ty.clone(), &written)?;
                Some(Statement { kind, span })
            })
            .collect()
    }

    fn declarator(
        &mut self,
        pair: Pair<'_, Rule>,
        mut ty: SizedType,
        written: &str,
    ) -> Option<StatementKind> {
        let mut name = None;
        let mut value = None;
        for child in parts(pair) {
            match child.as_rule() {
                Rule::identifier => name = Some(self.ident(&child)),
                // `vector x[3]`: the type has taken them.
                Rule::old_sizes if self.is_size_of(&child, &ty) => {}
                Rule::old_sizes => {
                    let span = self.span(&child);
                    let sizes = child.as_str().trim_end().to_owned();
                    let known = name.as_ref().map_or("x", |name| name.name.as_str());
                    self.diagnostics.push(
                        Diagnostic::error("S007", span, "the sizes of an array go before its type")
                            .label("not after the name")
                            .help(format!("write `array{sizes} {written} {known};`")),
                    );
                    ty.array_sizes.extend(self.expressions(child)?);
                }
                _ => value = Some(self.expression(child)?),
            }
        }
        Some(StatementKind::Declaration {
            ty,
            name: name?,
            value,
        })
    }

    /// Whether sizes that were written after the name became those of the type.
    fn is_size_of(&self, after_name: &Pair<'_, Rule>, ty: &SizedType) -> bool {
        let written = self.span(after_name);
        let first = ty.sizes.first();
        first.is_some_and(|size| written.start < size.span.start && size.span.end < written.end)
    }

    /// `after_name` are the sizes behind the first declared name, where there are any: they become
    /// the type's own if it has none and needs them.
    fn sized_type(
        &mut self,
        pair: Pair<'_, Rule>,
        after_name: Option<Pair<'_, Rule>>,
    ) -> Option<SizedType> {
        let mut ty = SizedType {
            array_sizes: Vec::new(),
            base: BaseType::Real,
            sizes: Vec::new(),
            constraints: Vec::new(),
            levels: Vec::new(),
            span: self.span(&pair),
        };
        for child in parts(pair) {
            match child.as_rule() {
                Rule::array_sizes => ty.array_sizes = self.expressions(child)?,
                Rule::factor_type => {
                    ty.base = BaseType::Factor;
                    ty.levels = parts(child).map(|level| self.text(&level)).collect();
                }
                _ => self.plain_type(child, &mut ty, after_name.clone())?,
            }
        }
        Some(ty)
    }

    fn plain_type(
        &mut self,
        pair: Pair<'_, Rule>,
        ty: &mut SizedType,
        after_name: Option<Pair<'_, Rule>>,
    ) -> Option<()> {
        let mut keyword = Span::default();
        let mut sizes = None;
        for child in parts(pair) {
            match child.as_rule() {
                Rule::type_keyword => {
                    keyword = self.span(&child);
                    ty.base = words::base_type(child.as_str())?;
                }
                Rule::constraints => ty.constraints = self.constraints(child)?,
                _ => {
                    let span = self.span(&child);
                    sizes = Some((span, child.as_str().trim_end().to_owned()));
                    ty.sizes = self.expressions(child)?;
                }
            }
        }
        if let Some(misplaced) = after_name.filter(|_| sizes.is_none()) {
            let (_, most) = size_count(ty.base);
            if most > 0 && parts(misplaced.clone()).count() == most {
                let span = self.span(&misplaced);
                let name = ty.base.keyword();
                let text = misplaced.as_str().trim_end().to_owned();
                self.diagnostics.push(
                    Diagnostic::error(
                        "S007",
                        span,
                        format!("the size of a `{name}` goes after its type"),
                    )
                    .label("not after the name")
                    .help(format!("write `{name}{text}`")),
                );
                ty.sizes = self.expressions(misplaced)?;
            }
        }
        self.count_sizes(ty, keyword, sizes);
        Some(())
    }

    /// After this, every type has the sizes that it needs, so that one mistake causes one message.
    fn count_sizes(&mut self, ty: &mut SizedType, keyword: Span, written: Option<(Span, String)>) {
        let name = ty.base.keyword();
        let (least, most) = size_count(ty.base);
        if (least..=most).contains(&ty.sizes.len()) {
            return;
        }
        let count = |number| match number {
            1 => "one size",
            _ => "two sizes",
        };
        let needed = match (least, most) {
            (1, 2) => "one or two sizes",
            _ => count(least),
        };
        let example = match least {
            2 => format!("{name}[rows, columns]"),
            _ => format!("{name}[K]"),
        };
        let diagnostic = match written {
            None => Diagnostic::error("S010", keyword, format!("`{name}` has no size"))
                .label(format!("needs {needed} in brackets"))
                .help(format!("write `{example}`")),
            Some((span, text)) if most == 0 => {
                Diagnostic::error("S010", span, format!("`{name}` takes no size"))
                    .label("not for a single number")
                    .help(format!("for an array write `array{text} {name}`"))
            }
            Some((span, _)) => Diagnostic::error(
                "S010",
                span,
                format!("`{name}` takes {needed}, and {} are given", ty.sizes.len()),
            )
            .label(format!("expected {needed}"))
            .help(format!(
                "write `{example}`, or `array[...] {example}` for an array"
            )),
        };
        let diagnostic = if diagnostic.message.contains("and 1 are") {
            Diagnostic {
                message: diagnostic.message.replace("and 1 are", "and one is"),
                ..diagnostic
            }
        } else {
            diagnostic
        };
        self.diagnostics.push(diagnostic);
        if most == 0 {
            ty.array_sizes.append(&mut ty.sizes);
            return;
        }
        let filler = ty.sizes.last().cloned().unwrap_or(Expr {
            kind: ExprKind::Int(1),
            span: keyword,
        });
        ty.sizes.resize(least, filler);
    }

    fn constraints(&mut self, pair: Pair<'_, Rule>) -> Option<Vec<Constraint>> {
        let mut found: Vec<Constraint> = Vec::new();
        for child in parts(pair) {
            let span = self.span(&child);
            let mut children = parts(child);
            let name = children.next()?;
            let name_span = self.span(&name);
            let value = self.expression(children.next()?)?;
            let Some(kind) = self.constraint_kind(name.as_str(), name_span) else {
                continue;
            };
            if let Some(first) = found.iter().find(|earlier| earlier.kind == kind) {
                self.diagnostics.push(
                    Diagnostic::error("S010", span, format!("`{}` is given twice", kind.keyword()))
                        .label("again here")
                        .note(first.span, "given here first"),
                );
                continue;
            }
            found.push(Constraint { kind, value, span });
        }
        Some(found)
    }

    fn constraint_kind(&mut self, name: &str, span: Span) -> Option<ConstraintKind> {
        let exact = CONSTRAINTS.into_iter().find(|kind| kind.keyword() == name);
        if exact.is_some() {
            return exact;
        }
        let keywords = CONSTRAINTS.map(ConstraintKind::keyword);
        let meant = match name {
            "min" | "minimum" | "low" => Some("lower"),
            "max" | "maximum" | "high" => Some("upper"),
            _ => did_you_mean(name, &keywords),
        };
        let diagnostic = Diagnostic::error("S010", span, format!("`{name}` is not a constraint"));
        self.diagnostics.push(match meant {
            Some(meant) => diagnostic.label(format!("did you mean `{meant}`?")),
            None => diagnostic
                .label("unknown")
                .help("constraints are `lower`, `upper`, `offset` and `multiplier`"),
        });
        CONSTRAINTS
            .into_iter()
            .find(|kind| Some(kind.keyword()) == meant)
    }

    pub(super) fn function(&mut self, pair: Pair<'_, Rule>) -> Option<Function> {
        let span = self.span(&pair);
        let mut return_type = None;
        let mut name = None;
        let mut arguments = Vec::new();
        let mut body = None;
        for child in parts(pair) {
            match child.as_rule() {
                Rule::return_type => {
                    let ty = child.into_inner().next()?;
                    if ty.as_rule() == Rule::unsized_type {
                        return_type = Some(self.unsized_type(ty)?);
                    }
                }
                Rule::identifier => name = Some(self.ident(&child)),
                Rule::argument => arguments.push(self.argument(child)?),
                _ => body = Some(self.statements(parts(child))),
            }
        }
        let name = name?;
        if body.is_none() {
            self.diagnostics.push(
                Diagnostic::error(
                    "S007",
                    span,
                    format!("the function `{}` has no body", name.name),
                )
                .label("declared without a body")
                .help("write the body here: a function may call one that is defined after it"),
            );
        }
        Some(Function {
            return_type,
            name,
            arguments,
            body: body?,
            span,
        })
    }

    fn argument(&mut self, pair: Pair<'_, Rule>) -> Option<Argument> {
        let mut data_only = false;
        let mut ty = None;
        let mut name = None;
        for child in parts(pair) {
            match child.as_rule() {
                Rule::data_keyword => data_only = true,
                Rule::identifier => name = Some(self.ident(&child)),
                _ => ty = Some(self.unsized_type(child)?),
            }
        }
        Some(Argument {
            data_only,
            ty: ty?,
            name: name?,
        })
    }

    fn unsized_type(&mut self, pair: Pair<'_, Rule>) -> Option<UnsizedType> {
        let span = self.span(&pair);
        let mut base = None;
        let mut word = "real";
        let mut array_dimensions = 0;
        for child in parts(pair) {
            let commas = child.as_str().matches(',').count();
            match child.as_rule() {
                Rule::unsized_array => array_dimensions += commas + 1,
                Rule::old_unsized => {
                    array_dimensions += commas + 1;
                    let span = self.span(&child);
                    let commas = ",".repeat(commas);
                    self.diagnostics.push(
                        Diagnostic::error(
                            "S007",
                            span,
                            "the brackets of an array go before its type",
                        )
                        .label("not after the type")
                        .help(format!("write `array[{commas}] {word}`")),
                    );
                }
                _ => {
                    word = child.as_str();
                    base = Some(match word {
                        "int" => UnsizedBase::Int,
                        "vector" => UnsizedBase::Vector,
                        "row_vector" => UnsizedBase::RowVector,
                        "matrix" => UnsizedBase::Matrix,
                        _ => UnsizedBase::Real,
                    });
                }
            }
        }
        Some(UnsizedType {
            base: base?,
            array_dimensions,
            span,
        })
    }
}

/// How many sizes a type has in its own brackets: at least, and at most.
fn size_count(base: BaseType) -> (usize, usize) {
    match base {
        BaseType::Int | BaseType::Real | BaseType::Factor => (0, 0),
        BaseType::Matrix => (2, 2),
        BaseType::CholeskyFactorCov => (1, 2),
        _ => (1, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::*;

    fn declared(text: &str) -> (SizedType, Vec<String>) {
        let parsed = parse(&format!("parameters {{ {text} }}"));
        let messages = parsed.diagnostics.iter().map(|d| d.message.clone());
        let program = parsed.program.expect("it parses");
        match &program.blocks[0].statements[0].kind {
            StatementKind::Declaration { ty, .. } => (ty.clone(), messages.collect()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn types_carry_sizes_constraints_and_levels() {
        let (ty, messages) = declared("array[2, K] vector<lower=0, upper=K + 1>[K] x;");
        assert!(messages.is_empty());
        assert_eq!((ty.array_sizes.len(), ty.sizes.len()), (2, 1));
        assert_eq!(ty.constraints[1].kind, ConstraintKind::Upper);
        let (ty, _) = declared("factor(\"a\", \"b c\") f;");
        assert_eq!(ty.base, BaseType::Factor);
        assert_eq!(ty.levels[1].value, "b c");
    }

    #[test]
    fn every_type_leaves_with_the_sizes_it_needs() {
        for (text, sizes, arrays) in [
            ("vector x;", 1, 0),
            ("matrix[2] x;", 2, 0),
            ("vector[1, 2] x;", 1, 0),
            ("real[3] x;", 0, 1),
            ("real x[3];", 0, 1),
            ("vector x[3];", 1, 0),
            ("matrix x[3, 2];", 2, 0),
            ("cholesky_factor_cov[1, 2, 3] x;", 1, 0),
        ] {
            let (ty, messages) = declared(text);
            assert_eq!(messages.len(), 1, "{text}");
            assert_eq!(
                (ty.sizes.len(), ty.array_sizes.len()),
                (sizes, arrays),
                "{text}"
            );
        }
    }

    #[test]
    fn a_misspelt_constraint_is_taken_for_what_it_was_meant() {
        let (ty, messages) = declared("real<lowr=0, lower=1> x;");
        assert_eq!(
            messages,
            ["`lowr` is not a constraint", "`lower` is given twice"]
        );
        assert_eq!(ty.constraints.len(), 1);
    }

    #[test]
    fn functions_have_unsized_types() {
        let parsed = parse(
            "functions { array[,] int f(data vector x, array[] real y) { return x; } void g() { } }",
        );
        assert_eq!(parsed.diagnostics, []);
        let program = parsed.program.expect("it parses");
        let [f, g] = &program.functions[..] else {
            panic!("two functions");
        };
        assert_eq!(
            f.return_type.as_ref().map(|ty| ty.array_dimensions),
            Some(2)
        );
        assert!(f.arguments[0].data_only && !f.arguments[1].data_only);
        assert_eq!(f.arguments[0].ty.base, UnsizedBase::Vector);
        assert!(g.return_type.is_none() && g.arguments.is_empty());
    }
}
