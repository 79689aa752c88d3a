//! Types and stages of expressions.

use super::operators::{binary_type, elementwise_real};
use super::scope::Checker;
use super::typed::*;
use crate::distribution::{self, FAMILIES};
use crate::function::{self, Builtin, Reduction, Shaping};
use crate::syntax::{self, BinaryOperator, Diagnostic, Ident, Span, UnaryOperator, did_you_mean};

impl Checker {
    /// Checks an expression; `None` when an error in it has been reported.
    pub fn expression(&mut self, e: &syntax::Expr) -> Option<Expr> {
        let span = e.span;
        let constant = |kind, ty| {
            Some(Expr {
                kind,
                ty,
                stage: Stage::Constant,
                span,
            })
        };
        match &e.kind {
            syntax::ExprKind::Int(value) => constant(ExprKind::Int(*value), Type::INT),
            syntax::ExprKind::Real(value) => constant(ExprKind::Real(*value), Type::REAL),
            syntax::ExprKind::String(_) => {
                self.report(
                    Diagnostic::error("E0104", span, "text has no place in an expression")
                        .label("expected a number or a variable"),
                );
                None
            }
            syntax::ExprKind::Variable(name) => self.variable(&Ident {
                name: name.clone(),
                span,
            }),
            syntax::ExprKind::Paren(inner) => self.expression(inner).map(|x| Expr { span, ..x }),
            syntax::ExprKind::Call {
                name,
                arguments,
                conditioned,
            } => self.call(span, name, arguments, *conditioned),
            syntax::ExprKind::Index { base, indices } => self.index(span, base, indices),
            syntax::ExprKind::Unary { operator, operand } => self.unary(span, *operator, operand),
            syntax::ExprKind::Binary { .. } => {
                // Down the left side in a loop: a sum may have many terms.
                let mut first = e;
                let mut rest = Vec::new();
                while let syntax::ExprKind::Binary {
                    operator,
                    left,
                    right,
                } = &first.kind
                {
                    rest.push((first.span, *operator, right));
                    first = left;
                }
                let mut checked = self.expression(first);
                for (span, operator, right) in rest.into_iter().rev() {
                    let right = self.expression(right);
                    checked = match (checked, right) {
                        (Some(left), Some(right)) => self.binary(span, operator, left, right),
                        _ => None,
                    };
                }
                checked
            }
            syntax::ExprKind::Ternary {
                condition,
                then,
                otherwise,
            } => {
                let condition = self.expression(condition);
                let (then, otherwise) = (self.expression(then), self.expression(otherwise));
                self.ternary(span, condition?, then?, otherwise?)
            }
            syntax::ExprKind::Transpose(inner) => {
                let inner = self.expression(inner)?;
                let ty = match (inner.ty.array, inner.ty.base) {
                    (0, Base::Vector) => Type::ROW_VECTOR,
                    (0, Base::RowVector) => Type::VECTOR,
                    (0, Base::Matrix) => Type::MATRIX,
                    _ => {
                        return self.wrong_type(
                            &inner,
                            "only a vector, a row vector or a matrix can be transposed",
                            "vector, row_vector or matrix",
                        );
                    }
                };
                let stage = inner.stage;
                Some(Expr {
                    kind: ExprKind::Transpose(Box::new(inner)),
                    ty,
                    stage,
                    span,
                })
            }
            syntax::ExprKind::RowVectorLiteral(parts) => self.row_vector(span, parts),
            syntax::ExprKind::ArrayLiteral(parts) => self.array(span, parts),
        }
    }

    /// Checks every expression, so that each reports its own errors.
    pub fn expressions(&mut self, list: &[syntax::Expr]) -> Option<Vec<Expr>> {
        let checked: Vec<_> = list.iter().map(|e| self.expression(e)).collect();
        checked.into_iter().collect()
    }

    /// Reports that `expression` has the wrong type.
    pub fn wrong_type<T>(&mut self, expression: &Expr, message: &str, expected: &str) -> Option<T> {
        let mut diagnostic = Diagnostic::error("E0105", expression.span, message)
            .label(format!("expected {expected}, found `{}`", expression.ty));
        if expression.ty == Type::MATRIX && expected.contains("array of real") {
            diagnostic = diagnostic.help("flatten the matrix: `to_vector(...)`");
        }
        self.report(diagnostic);
        None
    }

    fn variable(&mut self, ident: &Ident) -> Option<Expr> {
        let Some(id) = self.find(&ident.name) else {
            if let Some(builtin) = function::lookup(&ident.name) {
                let arguments = match builtin {
                    Builtin::Constant(_) => "",
                    _ => "...",
                };
                self.report(
                    Diagnostic::error(
                        "E0106",
                        ident.span,
                        format!("`{}` is a function", ident.name),
                    )
                    .label("expected a value")
                    .help(format!("call it: `{}({arguments})`", ident.name)),
                );
            } else {
                self.unknown_name(ident);
            }
            return None;
        };
        let variable = self.checked.variable(id);
        Some(Expr {
            kind: ExprKind::Variable(id),
            ty: variable.ty,
            stage: variable.stage,
            span: ident.span,
        })
    }

    fn unary(
        &mut self,
        span: Span,
        operator: UnaryOperator,
        operand: &syntax::Expr,
    ) -> Option<Expr> {
        let operand = self.expression(operand)?;
        let (stage, ty) = (operand.stage, operand.ty);
        match operator {
            UnaryOperator::Plus => Some(Expr { span, ..operand }),
            UnaryOperator::Minus => Some(Expr {
                kind: ExprKind::Negate(Box::new(operand)),
                ty,
                stage,
                span,
            }),
            UnaryOperator::Not if ty != Type::INT => {
                self.wrong_type(&operand, "`!` wants an int", "int")
            }
            UnaryOperator::Not => Some(Expr {
                kind: ExprKind::Not(Box::new(operand)),
                ty: Type::INT,
                stage,
                span,
            }),
        }
    }

    pub fn binary(
        &mut self,
        span: Span,
        operator: BinaryOperator,
        left: Expr,
        right: Expr,
    ) -> Option<Expr> {
        if operator == BinaryOperator::LeftDivide
            || (operator == BinaryOperator::Divide && !right.ty.is_number())
        {
            self.unsupported(span, "matrix division", None);
            return None;
        }
        let Some(ty) = binary_type(operator, left.ty, right.ty) else {
            let mut diagnostic = Diagnostic::error(
                "E0107",
                span,
                format!(
                    "`{}` does not apply to `{}` and `{}`",
                    operator.symbol(),
                    left.ty,
                    right.ty
                ),
            )
            .note(left.span, format!("this is `{}`", left.ty))
            .note(right.span, format!("this is `{}`", right.ty));
            if operator == BinaryOperator::Multiply && left.ty == right.ty {
                diagnostic = diagnostic.help(
                    "write `.*` for the element-wise product, or `dot_product(a, b)` for the sum of products",
                );
            } else if let Some(help) = combination_help(left.ty, right.ty) {
                diagnostic = diagnostic.help(help);
            }
            self.report(diagnostic);
            return None;
        };
        if operator == BinaryOperator::Divide
            && ty == Type::INT
            && !matches!(
                (&left.kind, &right.kind),
                (ExprKind::Int(_), ExprKind::Int(0))
            )
        {
            self.report(
                Diagnostic::warning("W0101", span, "the quotient of two ints is rounded towards zero")
                    .label("integer division")
                    .help("write `1.0 * a / b` for a real quotient, or `%/%` to say that rounding is meant"),
            );
        }
        let stage = left.stage.join(right.stage);
        Some(Expr {
            kind: ExprKind::Binary {
                operator,
                left: Box::new(left),
                right: Box::new(right),
            },
            ty,
            stage,
            span,
        })
    }

    fn ternary(
        &mut self,
        span: Span,
        condition: Expr,
        then: Expr,
        otherwise: Expr,
    ) -> Option<Expr> {
        if condition.ty != Type::INT {
            return self.wrong_type(&condition, "the condition of `? :` must be an int", "int");
        }
        let ty = if then.ty.accepts(otherwise.ty) {
            then.ty
        } else if otherwise.ty.accepts(then.ty) {
            otherwise.ty
        } else {
            self.report(
                Diagnostic::error(
                    "E0108",
                    span,
                    "the two branches of `? :` have different types",
                )
                .note(then.span, format!("this is `{}`", then.ty))
                .note(otherwise.span, format!("this is `{}`", otherwise.ty)),
            );
            return None;
        };
        let stage = condition.stage.join(then.stage).join(otherwise.stage);
        Some(Expr {
            kind: ExprKind::Ternary {
                condition: Box::new(condition),
                then: Box::new(then),
                otherwise: Box::new(otherwise),
            },
            ty,
            stage,
            span,
        })
    }

    fn row_vector(&mut self, span: Span, parts: &[syntax::Expr]) -> Option<Expr> {
        let parts = self.expressions(parts)?;
        let rows = parts.first().is_some_and(|p| p.ty == Type::ROW_VECTOR);
        for part in &parts {
            let fits = if rows {
                part.ty == Type::ROW_VECTOR
            } else {
                part.ty.is_number()
            };
            if !fits {
                return self.wrong_type(
                    part,
                    "`[...]` holds numbers (a row vector) or row vectors (a matrix)",
                    if rows { "row_vector" } else { "int or real" },
                );
            }
        }
        let stage = parts.iter().fold(Stage::Constant, |s, e| s.join(e.stage));
        Some(Expr {
            kind: ExprKind::RowVector(parts),
            ty: if rows { Type::MATRIX } else { Type::ROW_VECTOR },
            stage,
            span,
        })
    }

    fn array(&mut self, span: Span, parts: &[syntax::Expr]) -> Option<Expr> {
        let parts = self.expressions(parts)?;
        let Some(first) = parts.first() else {
            self.report(
                Diagnostic::error("E0109", span, "an array literal needs at least one element")
                    .label("empty"),
            );
            return None;
        };
        let element = parts
            .iter()
            .map(|p| p.ty)
            .fold(first.ty, |a, b| if b.accepts(a) { b } else { a });
        for part in &parts {
            if !element.accepts(part.ty) {
                return self.wrong_type(
                    part,
                    "the elements of an array have one type",
                    &format!("`{element}`"),
                );
            }
        }
        let stage = parts.iter().fold(Stage::Constant, |s, e| s.join(e.stage));
        Some(Expr {
            kind: ExprKind::Array(parts),
            ty: Type {
                base: element.base,
                array: element.array + 1,
            },
            stage,
            span,
        })
    }

    fn index(
        &mut self,
        span: Span,
        base: &syntax::Expr,
        indices: &[syntax::IndexExpr],
    ) -> Option<Expr> {
        let base = self.expression(base);
        let indices = self.indices(indices);
        let (base, indices) = (base?, indices?);
        let ty = self.indexed_type(span, base.ty, &indices)?;
        let mut stage = base.stage;
        for index in &indices {
            let index_stage = index_stage(index);
            if index_stage.is_private() {
                self.record_index(&base, index)?;
            }
            stage = stage.join(index_stage);
        }
        Some(Expr {
            kind: ExprKind::Index {
                base: Box::new(base),
                indices,
            },
            ty,
            stage,
            span,
        })
    }

    pub fn indices(&mut self, indices: &[syntax::IndexExpr]) -> Option<Vec<Index>> {
        let mut checked = Vec::new();
        let mut failed = false;
        for index in indices {
            match self.one_index(index) {
                Some(index) => checked.push(index),
                None => failed = true,
            }
        }
        (!failed).then_some(checked)
    }

    fn one_index(&mut self, index: &syntax::IndexExpr) -> Option<Index> {
        match index {
            syntax::IndexExpr::At(e) => {
                let e = self.expression(e)?;
                match (e.ty.base, e.ty.array) {
                    (Base::Int, 0) => Some(Index::Single(e)),
                    (Base::Int, 1) => Some(Index::Many(e)),
                    _ => self.wrong_type(&e, "an index must be an int", "int or array of int"),
                }
            }
            syntax::IndexExpr::Range { from, to, .. } => {
                let mut end = |e: &Option<syntax::Expr>| -> Option<Option<Expr>> {
                    match e {
                        None => Some(None),
                        Some(e) => {
                            let e = self.expression(e)?;
                            if e.ty != Type::INT {
                                return self.wrong_type(
                                    &e,
                                    "the ends of a range must be ints",
                                    "int",
                                );
                            }
                            if e.stage != Stage::Constant {
                                return self.not_constant(&e, "the ends of a range");
                            }
                            Some(Some(e))
                        }
                    }
                };
                let (from, to) = (end(from), end(to));
                Some(Index::Range {
                    from: from?,
                    to: to?,
                })
            }
        }
    }

    /// Reports that `e` should have been of stage Constant.
    pub fn not_constant<T>(&mut self, e: &Expr, what: &str) -> Option<T> {
        let mut diagnostic = Diagnostic::error(
            if e.stage.is_private() {
                "E0203"
            } else {
                "E0205"
            },
            e.span,
            if e.stage.is_private() {
                format!("{what} must be public, and this depends on a private record")
            } else {
                format!("{what} must be known before sampling, and this depends on a parameter")
            },
        )
        .label(format!("stage {}", e.stage.name()));
        if let Some((span, text)) = self.private_source(e) {
            diagnostic = diagnostic.note(span, text);
        }
        diagnostic = diagnostic.help(if what.contains("`if`") {
            "write `cond ? a : b`, whose condition may be private"
        } else {
            "use a constant"
        });
        self.report(diagnostic);
        None
    }

    /// An index that is read off the record must be a column whose declared
    /// bounds say that it cannot leave the container.
    fn record_index(&mut self, base: &Expr, index: &Index) -> Option<()> {
        let e = match index {
            Index::Single(e) => e,
            Index::Many(e) => {
                self.unsupported(e.span, "indexing by an array of record ints", None);
                return None;
            }
            Index::Range { .. } => return Some(()),
        };
        if base.stage.is_private() {
            self.unsupported(
                e.span,
                "indexing a private container by a private index",
                Some("index a parameter or a constant"),
            );
            return None;
        }
        let ExprKind::Variable(id) = e.kind else {
            self.unsupported(
                e.span,
                "indexing by an expression of record columns",
                Some("index by the record column itself"),
            );
            return None;
        };
        let variable = self.checked.variable(id);
        if variable.role != Role::Record || variable.lower.is_none() || variable.upper.is_none() {
            let (declared, name, role) = (variable.span, variable.name.clone(), variable.role);
            self.report(
                Diagnostic::error(
                    "E0206",
                    e.span,
                    format!(
                        "`{name}` is used as an index, but nothing says what values it may take"
                    ),
                )
                .label("an index read off the record")
                .note(declared, "declared here")
                .help(if role == Role::Record {
                    format!("declare its bounds, for example `int<lower=1, upper=J> {name};`")
                } else {
                    "index by a column that is declared in `record`, with both bounds".to_string()
                }),
            );
            return None;
        }
        Some(())
    }

    /// The type that remains after indexing.
    pub fn indexed_type(&mut self, span: Span, ty: Type, indices: &[Index]) -> Option<Type> {
        if indices.len() > ty.dimensions() {
            self.report(
                Diagnostic::error(
                    "E0111",
                    span,
                    format!(
                        "too many indices: `{ty}` has {} dimension{}",
                        ty.dimensions(),
                        if ty.dimensions() == 1 { "" } else { "s" }
                    ),
                )
                .label(match indices.len() {
                    1 => "one index".to_string(),
                    n => format!("{n} indices"),
                }),
            );
            return None;
        }
        let keeps = |index: &Index| !matches!(index, Index::Single(_));
        let in_array = indices.len().min(ty.array);
        let array = ty.array - indices[..in_array].iter().filter(|i| !keeps(i)).count();
        let rest = &indices[in_array..];
        let base = match (ty.base, rest) {
            (base, []) => base,
            (Base::Vector | Base::RowVector, [i]) if keeps(i) => ty.base,
            (Base::Vector | Base::RowVector, [_]) => Base::Real,
            (Base::Matrix, [i]) => {
                if keeps(i) {
                    Base::Matrix
                } else {
                    Base::RowVector
                }
            }
            (Base::Matrix, [i, j]) => match (keeps(i), keeps(j)) {
                (true, true) => Base::Matrix,
                (true, false) => Base::Vector,
                (false, true) => Base::RowVector,
                (false, false) => Base::Real,
            },
            (base, _) => base,
        };
        Some(Type { base, array })
    }

    fn call(
        &mut self,
        span: Span,
        name: &Ident,
        arguments: &[syntax::Expr],
        conditioned: bool,
    ) -> Option<Expr> {
        if let Some((family, suffix_fits)) = distribution::lookup_density_function(&name.name) {
            return self.density_call(span, name, family, suffix_fits, arguments, conditioned);
        }
        let arguments = self.expressions(arguments);
        let Some(builtin) = self.builtin(name) else {
            self.unknown_function(name);
            return None;
        };
        let arguments = arguments?;
        // `log2()` is a constant, `log2(x)` a function.
        let builtin = match (builtin, arguments.is_empty()) {
            (Builtin::Unary(_), true) => match constant_named(&name.name) {
                Some(value) => Builtin::Constant(value),
                None => builtin,
            },
            _ => builtin,
        };
        let ty = self.call_type(span, name, builtin, &arguments)?;
        let stage = match builtin {
            // A size is public, whatever it is the size of.
            Builtin::Shaping(
                Shaping::Size | Shaping::NumElements | Shaping::Rows | Shaping::Cols,
            ) => Stage::Constant,
            _ => arguments
                .iter()
                .fold(Stage::Constant, |s, e| s.join(e.stage)),
        };
        Some(Expr {
            kind: ExprKind::Call {
                function: builtin,
                arguments,
            },
            ty,
            stage,
            span,
        })
    }

    fn builtin(&self, name: &Ident) -> Option<Builtin> {
        function::lookup(&name.name)
    }

    fn unknown_function(&mut self, name: &Ident) {
        if self.is_user_function(&name.name) {
            return;
        }
        let stem = [
            "_lpdf", "_lpmf", "_lcdf", "_lccdf", "_cdf", "_rng", "_lupdf", "_lupmf",
        ]
        .iter()
        .find_map(|suffix| name.name.strip_suffix(suffix));
        let known_family = |stem: &str| {
            distribution::lookup(stem).is_some() || distribution::NOT_SUPPORTED_YET.contains(&stem)
        };
        if function::catalogue::NOT_SUPPORTED_YET.contains(&name.name.as_str())
            || stem.is_some_and(known_family)
        {
            self.unsupported(name.span, &format!("`{}`", name.name), None);
            return;
        }
        let mut diagnostic = Diagnostic::error(
            "E0112",
            name.span,
            format!("there is no function called `{}`", name.name),
        )
        .label("unknown function");
        if let Some(suggestion) = did_you_mean(&name.name, function::names()) {
            diagnostic = diagnostic.help(format!("did you mean `{suggestion}`?"));
        }
        self.report(diagnostic);
    }

    fn density_call(
        &mut self,
        span: Span,
        name: &Ident,
        family: usize,
        suffix_fits: bool,
        arguments: &[syntax::Expr],
        conditioned: bool,
    ) -> Option<Expr> {
        let checked = self.expressions(arguments);
        let definition = FAMILIES[family];
        if !suffix_fits {
            let right = match definition.variate() {
                distribution::Number::Int => "lpmf",
                distribution::Number::Real => "lpdf",
            };
            self.report(
                Diagnostic::error(
                    "E0113",
                    name.span,
                    format!(
                        "the log density of `{}` ends in `_{right}`",
                        definition.name()
                    ),
                )
                .label("wrong ending")
                .help(format!("write `{}_{right}`", definition.name())),
            );
            return None;
        }
        let mut checked = checked?;
        if !conditioned || checked.is_empty() {
            self.report(
                Diagnostic::error(
                    "E0114",
                    span,
                    format!("`{}` wants a bar after the variate", name.name),
                )
                .label("expected `|`")
                .help(format!("write `{}(y | ...)`", name.name)),
            );
            return None;
        }
        let variate = checked.remove(0);
        self.distribution_arguments(name, family, &variate, &checked)?;
        let stage = checked.iter().fold(variate.stage, |s, e| s.join(e.stage));
        Some(Expr {
            kind: ExprKind::LogDensity {
                family,
                variate: Box::new(variate),
                arguments: checked,
            },
            ty: Type::REAL,
            stage,
            span,
        })
    }

    /// Checks the variate and the arguments of a distribution against its
    /// signature.
    pub fn distribution_arguments(
        &mut self,
        name: &Ident,
        family: usize,
        variate: &Expr,
        arguments: &[Expr],
    ) -> Option<()> {
        let definition = FAMILIES[family];
        let signature = definition.arguments();
        if signature.len() != arguments.len() {
            let names: Vec<_> = signature.iter().map(|a| a.name).collect();
            self.report(
                Diagnostic::error(
                    "E0115",
                    name.span,
                    format!(
                        "`{}` takes {} argument{}, not {}",
                        definition.name(),
                        signature.len(),
                        if signature.len() == 1 { "" } else { "s" },
                        arguments.len()
                    ),
                )
                .label(format!(
                    "expected `{}({})`",
                    definition.name(),
                    names.join(", ")
                )),
            );
            return None;
        }
        let mut fits = true;
        if !vectorises(variate.ty, definition.variate()) {
            let wanted = wanted_number(definition.variate());
            self.wrong_type::<()>(
                variate,
                &format!(
                    "the variate of `{}` must be {}",
                    definition.name(),
                    wanted.0
                ),
                wanted.1,
            );
            fits = false;
        }
        for (argument, wanted) in arguments.iter().zip(signature) {
            if !vectorises(argument.ty, wanted.number) {
                let words = wanted_number(wanted.number);
                self.wrong_type::<()>(
                    argument,
                    &format!(
                        "`{}` of `{}` must be {}",
                        wanted.name,
                        definition.name(),
                        words.0
                    ),
                    words.1,
                );
                fits = false;
            }
        }
        fits.then_some(())
    }

    fn call_type(
        &mut self,
        span: Span,
        name: &Ident,
        builtin: Builtin,
        arguments: &[Expr],
    ) -> Option<Type> {
        let wanted = match builtin {
            Builtin::Constant(_) => 0,
            Builtin::Unary(_) | Builtin::Reduction(_) => 1,
            Builtin::Elementwise2(_) | Builtin::DotProduct => 2,
            Builtin::Shaping(shaping) => match shaping {
                Shaping::RepVector | Shaping::RepRowVector => 2,
                Shaping::RepMatrix => arguments.len().clamp(2, 3),
                Shaping::RepArray => arguments.len().clamp(2, 4),
                _ => 1,
            },
        };
        // `min` and `max` also exist for two ints, `log_sum_exp` for whatever goes
        // together element by element.
        if let (Builtin::Reduction(reduction), [a, b]) = (builtin, arguments) {
            match reduction {
                Reduction::LogSumExp => return self.elementwise_call(name, arguments),
                Reduction::Minimum | Reduction::Maximum
                    if a.ty == Type::INT && b.ty == Type::INT =>
                {
                    return Some(Type::INT);
                }
                Reduction::Minimum | Reduction::Maximum if a.ty.is_number() && b.ty.is_number() => {
                    self.report(
                        Diagnostic::error(
                            "E0105",
                            span,
                            format!("`{}` of two numbers is for ints", name.name),
                        )
                        .label("expected two ints, or a container")
                        .help(format!("write `f{}` for reals", name.name)),
                    );
                    return None;
                }
                _ => {}
            }
        }
        if arguments.len() != wanted {
            self.report(
                Diagnostic::error(
                    "E0115",
                    span,
                    format!(
                        "`{}` takes {wanted} argument{}, not {}",
                        name.name,
                        if wanted == 1 { "" } else { "s" },
                        arguments.len()
                    ),
                )
                .label(format!("expected {wanted}")),
            );
            return None;
        }
        match builtin {
            Builtin::Constant(_) => Some(Type::REAL),
            Builtin::Unary(_) => {
                let ty = arguments[0].ty;
                if ty == Type::INT && ["abs"].contains(&name.name.as_str()) {
                    return Some(Type::INT);
                }
                Some(Type {
                    base: if ty.base == Base::Int {
                        Base::Real
                    } else {
                        ty.base
                    },
                    array: ty.array,
                })
            }
            Builtin::Elementwise2(_) => self.elementwise_call(name, arguments),
            Builtin::Reduction(reduction) => {
                let ty = arguments[0].ty;
                let fits = match reduction {
                    Reduction::DotSelf => ty == Type::VECTOR || ty == Type::ROW_VECTOR,
                    _ => ty.dimensions() >= 1 && (ty.array == 0 || ty.dimensions() == 1),
                };
                if !fits {
                    return self.wrong_type(
                        &arguments[0],
                        &format!("`{}` folds a container into a number", name.name),
                        if reduction == Reduction::DotSelf {
                            "vector or row_vector"
                        } else {
                            "vector, row_vector, matrix or an array of numbers"
                        },
                    );
                }
                let ints = arguments[0].ty.base == Base::Int;
                Some(match name.name.as_str() {
                    "sum" | "min" | "max" | "prod" if ints => Type::INT,
                    _ => Type::REAL,
                })
            }
            Builtin::DotProduct => {
                for argument in arguments {
                    let same_kind = argument.ty.array == arguments[0].ty.array;
                    if argument.ty.dimensions() != 1 || !same_kind {
                        return self.wrong_type(
                            argument,
                            "`dot_product` multiplies two vectors (or two arrays) element by element and sums",
                            if same_kind {
                                "vector, row_vector or array of real"
                            } else {
                                "the same kind as the first"
                            },
                        );
                    }
                }
                Some(Type::REAL)
            }
            Builtin::Shaping(shaping) => self.shaping_type(shaping, name, arguments),
        }
    }

    /// The type of a function of two numbers applied element by element.
    fn elementwise_call(&mut self, name: &Ident, arguments: &[Expr]) -> Option<Type> {
        let (a, b) = (&arguments[0], &arguments[1]);
        elementwise_real(a.ty, b.ty).or_else(|| {
            self.wrong_type(
                b,
                &format!("the arguments of `{}` have different shapes", name.name),
                &format!("`{}` or a number", a.ty),
            )
        })
    }

    fn shaping_type(&mut self, shaping: Shaping, name: &Ident, arguments: &[Expr]) -> Option<Type> {
        use Shaping::*;
        let sizes = match shaping {
            RepVector | RepRowVector | RepArray | RepMatrix => &arguments[1..],
            _ => &[],
        };
        for size in sizes {
            if size.ty != Type::INT {
                return self.wrong_type(
                    size,
                    &format!("a size in `{}` must be an int", name.name),
                    "int",
                );
            }
            if size.stage != Stage::Constant {
                return self.not_constant(size, "a size");
            }
        }
        let first = &arguments[0];
        match shaping {
            Size => Some(Type::INT),
            NumElements if first.ty.dimensions() == 0 => self.wrong_type(
                first,
                "`num_elements` counts the elements of a container",
                "vector, row_vector, matrix or array",
            ),
            NumElements => Some(Type::INT),
            Rows | Cols => {
                if first.ty.array > 0 || first.ty.is_number() {
                    return self.wrong_type(
                        first,
                        &format!("`{}` is about vectors and matrices", name.name),
                        "vector, row_vector or matrix",
                    );
                }
                Some(Type::INT)
            }
            RepMatrix if sizes.len() == 1 => {
                if first.ty != Type::VECTOR && first.ty != Type::ROW_VECTOR {
                    return self.wrong_type(
                        first,
                        "`rep_matrix` with one size repeats a vector",
                        "vector or row_vector",
                    );
                }
                Some(Type::MATRIX)
            }
            RepVector | RepRowVector | RepMatrix => {
                if !first.ty.is_number() {
                    return self.wrong_type(
                        first,
                        &format!("`{}` repeats a number", name.name),
                        "real",
                    );
                }
                Some(match shaping {
                    RepVector => Type::VECTOR,
                    RepRowVector => Type::ROW_VECTOR,
                    _ => Type::MATRIX,
                })
            }
            RepArray => Some(Type {
                base: first.ty.base,
                array: first.ty.array + sizes.len(),
            }),
            ToVector | ToRowVector | ToArray1d
                if first.ty.dimensions() == 0
                    || (first.ty.array > 0 && first.ty.dimensions() > first.ty.array)
                    || (first.ty.array > 1 && shaping != ToArray1d) =>
            {
                self.wrong_type(
                    first,
                    &format!("`{}` flattens one container of numbers", name.name),
                    "vector, row_vector, matrix or array of numbers",
                )
            }
            ToVector => Some(Type::VECTOR),
            ToRowVector => Some(Type::ROW_VECTOR),
            ToArray1d => Some(Type {
                base: if first.ty.base == Base::Int {
                    Base::Int
                } else {
                    Base::Real
                },
                array: 1,
            }),
        }
    }
}

/// What to write when an operator does not apply to these types.
fn combination_help(left: Type, right: Type) -> Option<&'static str> {
    let is = |a, b| (left, right) == (a, b) || (left, right) == (b, a);
    if is(Type::VECTOR, Type::ROW_VECTOR) {
        Some("transpose one of them with `'`")
    } else if left.array > 0 || right.array > 0 {
        Some("arrays have no arithmetic: declare a `vector`, or write `to_vector(...)`")
    } else {
        None
    }
}

/// The stage of what an index is computed from.
pub(super) fn index_stage(index: &Index) -> Stage {
    match index {
        Index::Single(e) | Index::Many(e) => e.stage,
        Index::Range { from, to } => from
            .iter()
            .chain(to)
            .fold(Stage::Constant, |s, e| s.join(e.stage)),
    }
}

/// Mathematical constants that share a name with a function.
fn constant_named(name: &str) -> Option<f64> {
    match name {
        "log2" => Some(std::f64::consts::LN_2),
        "log10" => Some(std::f64::consts::LN_10),
        _ => None,
    }
}

/// Whether a value of this type can stand for one or many numbers of the kind.
fn vectorises(ty: Type, number: distribution::Number) -> bool {
    ty.dimensions() <= 1
        && match number {
            distribution::Number::Int => ty.base == Base::Int,
            distribution::Number::Real => true,
        }
}

fn wanted_number(number: distribution::Number) -> (&'static str, &'static str) {
    match number {
        distribution::Number::Int => ("an int, or an array of them", "int or array of int"),
        distribution::Number::Real => (
            "a number, or a vector or array of them",
            "real, vector, row_vector or array of real",
        ),
    }
}
