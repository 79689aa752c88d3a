//! Types and stages of expressions: operators, literals, variables.

use super::operators::binary_type;
use super::scope::Checker;
use super::typed::*;
use crate::function;
use crate::syntax::{self, BinaryOperator, Diagnostic, Ident, Span, UnaryOperator};

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
                // The left operands in a loop, as a sum may have many terms.
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
            let arguments = if self.is_user_call(&ident.name) {
                Some("...")
            } else {
                function::lookup(&ident.name)
                    .filter(|_| !self.is_declared_somewhere(&ident.name))
                    .map(|f| if f.parameters.is_empty() { "" } else { "..." })
            };
            if let Some(arguments) = arguments {
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
        let (ty, mut stage, role) = (variable.ty, variable.stage, variable.role);
        if self.block == Role::GeneratedQuantity {
            if matches!(role, Role::Record | Role::TransformedRecord) {
                let declared = variable.span;
                return self.record_in_generated(ident, role, declared);
            }
            // The block is run draw by draw, so that a parameter is a number there.
            stage = Stage::Constant;
        }
        Some(Expr {
            kind: ExprKind::Variable(id),
            ty,
            stage,
            span: ident.span,
        })
    }

    fn record_in_generated(&mut self, ident: &Ident, role: Role, declared: Span) -> Option<Expr> {
        let name = &ident.name;
        self.report(
            Diagnostic::error(
                "E0211",
                ident.span,
                format!("`generated quantities` is public, and `{name}` is {}", role.description()),
            )
            .label("private")
            .note(declared, "declared here")
            .help("draw a hypothetical record with an `_rng` function, or declare public values in `constants` and give them with `dpm generate --data`"),
        );
        None
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
            } else if operator == BinaryOperator::Divide
                && (left.ty.is_number() || left.ty == right.ty)
            {
                diagnostic = diagnostic.help("write `./` to divide element by element");
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
                Diagnostic::warning(
                    "W0101",
                    span,
                    "the quotient of two ints is rounded towards zero",
                )
                .label("integer division")
                .help("write `1.0 * a / b` for a real quotient, or `%/%` if rounding is intended"),
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
        let source = if e.stage.is_private() {
            self.private_source(e)
        } else {
            self.parameter_source(e)
        };
        if let Some((span, text)) = source {
            diagnostic = diagnostic.note(span, text);
        }
        self.report(diagnostic.help("use a constant"));
        None
    }
}

/// The advice when an operator does not apply to these types.
fn combination_help(left: Type, right: Type) -> Option<&'static str> {
    let are = |a, b| (left, right) == (a, b) || (left, right) == (b, a);
    if are(Type::VECTOR, Type::ROW_VECTOR) {
        Some("transpose one of them with `'`")
    } else if left.array > 0 || right.array > 0 {
        Some("arrays have no arithmetic: declare a `vector`, or write `to_vector(...)`")
    } else {
        None
    }
}
