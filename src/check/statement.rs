//! Statements and blocks: what may be declared, assigned and sampled where.

use super::index::index_stage;
use super::scope::Checker;
use super::typed::*;
use crate::syntax::{
    self, AssignOperator, Block, Diagnostic, Ident, Span, StatementKind as Syntax,
};

impl Checker {
    /// `transformed ...`: declarations and assignments.
    pub fn transformed(&mut self, block: &Block, role: Role) {
        self.block = role;
        let mut statements = Vec::new();
        for statement in &block.statements {
            if let Syntax::Declaration { ty, name, value } = &statement.kind {
                let Some(id) = self.declaration(ty, name, role) else {
                    continue;
                };
                if role == Role::TransformedParameter {
                    self.checked.transformed_parameters.push(id);
                }
                let value = value.as_ref().map(|v| self.initial_value(id, v));
                if let Some(None) = value {
                    continue;
                }
                statements.push(Statement {
                    kind: StatementKind::Declare {
                        variable: id,
                        value: value.flatten(),
                    },
                    span: statement.span,
                });
            } else if let Some(statement) = self.statement(statement) {
                statements.push(statement);
            }
        }
        match role {
            Role::TransformedConstant => self.checked.transformed_constants = statements,
            Role::TransformedRecord => self.checked.transformed_record = statements,
            _ => self.checked.transformed_parameter_statements = statements,
        }
    }

    pub fn model(&mut self, block: &Block) {
        self.block = Role::Local;
        self.in_model = true;
        self.enter_scope();
        let statements = block
            .statements
            .iter()
            .filter_map(|s| self.statement(s))
            .collect();
        self.leave_scope();
        self.checked.model = statements;
        self.checked.distributions.sort_unstable();
        self.checked.distributions.dedup();
    }

    fn statement(&mut self, statement: &syntax::Statement) -> Option<Statement> {
        let span = statement.span;
        let kind = match &statement.kind {
            Syntax::Empty => StatementKind::Block(Vec::new()),
            Syntax::Declaration { ty, name, value } => {
                let id = self.declaration(ty, name, Role::Local)?;
                let value = match value {
                    Some(v) => Some(self.initial_value(id, v)?),
                    None => None,
                };
                StatementKind::Declare {
                    variable: id,
                    value,
                }
            }
            Syntax::Assign {
                target,
                operator,
                value,
            } => self.assignment(span, target, *operator, value)?,
            Syntax::Target { value } => {
                let value = self.expression(value);
                self.only_in_model(span, "`target +=`")?;
                StatementKind::Target { value: value? }
            }
            Syntax::Sampling {
                variate,
                distribution,
                arguments,
                truncation,
            } => {
                if let Some(truncation) = truncation {
                    self.unsupported(truncation.span, "`T[a, b]` (truncation)", None);
                }
                self.sampling(span, variate, distribution, arguments)?
            }
            Syntax::ForRange {
                variable,
                from,
                to,
                body,
            } => {
                let (from, to) = (self.expression(from), self.expression(to));
                for end in from.iter().chain(&to) {
                    if end.ty != Type::INT {
                        self.wrong_type::<()>(end, "loop bounds must be ints", "int");
                    } else if end.stage != Stage::Constant {
                        self.not_constant::<()>(end, "loop bounds");
                    }
                }
                self.enter_scope();
                let id = self.loop_variable(variable, Type::INT, Stage::Constant);
                let body = self.statement(body);
                self.leave_scope();
                StatementKind::ForRange {
                    variable: id,
                    from: from?,
                    to: to?,
                    body: Box::new(body?),
                }
            }
            Syntax::ForEach {
                variable,
                container,
                body,
            } => {
                let container = self.expression(container)?;
                let ty = if container.ty.array > 0 {
                    Type {
                        array: container.ty.array - 1,
                        ..container.ty
                    }
                } else if container.ty.is_number() {
                    return self.wrong_type(
                        &container,
                        "`for (x in ...)` walks a container",
                        "a container",
                    );
                } else {
                    Type::REAL
                };
                self.enter_scope();
                let id = self.loop_variable(variable, ty, container.stage);
                let body = self.statement(body);
                self.leave_scope();
                StatementKind::ForEach {
                    variable: id,
                    container,
                    body: Box::new(body?),
                }
            }
            Syntax::If {
                condition,
                then,
                otherwise,
            } => {
                let condition = self.expression(condition);
                if let Some(c) = &condition {
                    self.condition(c);
                }
                self.enter_scope();
                let then = self.statement(then);
                self.leave_scope();
                self.enter_scope();
                let otherwise = otherwise.as_ref().map(|s| self.statement(s));
                self.leave_scope();
                StatementKind::If {
                    condition: condition?,
                    then: Box::new(then?),
                    otherwise: match otherwise {
                        None => None,
                        Some(checked) => Some(Box::new(checked?)),
                    },
                }
            }
            Syntax::Block(statements) => {
                self.enter_scope();
                let statements = statements
                    .iter()
                    .filter_map(|s| self.statement(s))
                    .collect();
                self.leave_scope();
                StatementKind::Block(statements)
            }
            Syntax::While { .. } => return self.unsupported_statement(span, "`while`"),
            Syntax::Break => return self.unsupported_statement(span, "`break`"),
            Syntax::Continue => return self.unsupported_statement(span, "`continue`"),
            Syntax::Return(_) => return self.unsupported_statement(span, "`return`"),
            Syntax::Print(_) => return self.unsupported_statement(span, "`print`"),
            Syntax::Reject(_) => return self.unsupported_statement(span, "`reject`"),
            Syntax::Call { name, arguments } => {
                self.expressions(arguments);
                if self.is_user_function(&name.name) {
                    return None;
                }
                self.report(
                    Diagnostic::error(
                        "E0112",
                        name.span,
                        format!("there is no procedure called `{}`", name.name),
                    )
                    .label("unknown"),
                );
                return None;
            }
        };
        Some(Statement { kind, span })
    }

    fn unsupported_statement(&mut self, span: Span, what: &str) -> Option<Statement> {
        self.unsupported(span, what, None);
        None
    }

    pub(super) fn only_in_model(&mut self, span: Span, what: &str) -> Option<()> {
        if self.in_model {
            return Some(());
        }
        self.report(
            Diagnostic::error(
                "E0122",
                span,
                format!("{what} belongs in the `model` block"),
            )
            .label("not here")
            .help("move it to `model { ... }`"),
        );
        None
    }

    fn condition(&mut self, condition: &Expr) {
        if condition.ty != Type::INT {
            self.wrong_type::<()>(condition, "a condition must be an int", "int");
        } else if condition.stage.is_private() {
            self.not_constant::<()>(condition, "the condition of `if`");
        } else if condition.stage == Stage::Parameter {
            self.unsupported(
                condition.span,
                "`if` on a parameter",
                Some("write `condition ? a : b`"),
            );
        }
    }

    fn loop_variable(&mut self, name: &Ident, ty: Type, stage: Stage) -> VariableId {
        self.declare(Variable {
            name: name.name.clone(),
            span: name.span,
            role: Role::Loop,
            ty,
            stage,
            sizes: Vec::new(),
            lower: None,
            upper: None,
            structure: Structure::Free,
        })
    }

    /// The value of `T x = value;`.
    fn initial_value(&mut self, id: VariableId, value: &syntax::Expr) -> Option<Expr> {
        let value = self.expression(value)?;
        let (name, span, ty) = {
            let v = self.checked.variable(id);
            (v.name.clone(), v.span, v.ty)
        };
        self.assignable(&name, false, span, ty, &value)?;
        self.stage_allowed(&value)?;
        self.raise_stage(id, value.stage);
        Some(value)
    }

    /// Whether the variable (or the indexed part of it) of type `ty` can hold
    /// the value.
    fn assignable(
        &mut self,
        name: &str,
        part: bool,
        declared: Span,
        ty: Type,
        value: &Expr,
    ) -> Option<()> {
        if ty.accepts(value.ty) {
            return Some(());
        }
        let what = if part { "this part of " } else { "" };
        let mut diagnostic = Diagnostic::error(
            "E0123",
            value.span,
            format!("{what}`{name}` is `{ty}` and cannot hold `{}`", value.ty),
        )
        .label(format!("this is `{}`", value.ty))
        .note(declared, "declared here");
        let help = match (ty, value.ty) {
            (Type::INT, Type::REAL) => Some("declare it `real`; a real is never rounded silently"),
            (Type::VECTOR, Type::ROW_VECTOR) | (Type::ROW_VECTOR, Type::VECTOR) => {
                Some("transpose the value with `'`")
            }
            (Type::VECTOR, v) if v.is_number() => Some("repeat the number: `rep_vector(x, K)`"),
            (Type::VECTOR, v) if v.array == 1 => Some("write `to_vector(...)`"),
            (Type::REAL, v) if v.dimensions() == 1 => {
                Some("pick an element, as in `x[1]`, or fold it, as in `sum(x)`")
            }
            _ => None,
        };
        if let Some(help) = help {
            diagnostic = diagnostic.help(help);
        }
        self.report(diagnostic);
        None
    }

    /// Whether the block of the variable may hold a value of that stage.
    fn stage_allowed(&mut self, value: &Expr) -> Option<()> {
        let block = self.block;
        let block_name = match block {
            Role::TransformedConstant => "transformed constants",
            Role::TransformedParameter => "transformed parameters",
            _ => return Some(()),
        };
        if value.stage.is_private() {
            let mut diagnostic = Diagnostic::error(
                "E0202",
                value.span,
                format!("`{block_name}` is public, and this depends on a private record"),
            )
            .label(format!("stage {}", value.stage.name()))
            .help("compute it in `transformed record` if it has no parameter in it, or in a local variable of `model`");
            if let Some((span, text)) = self.private_source(value) {
                diagnostic = diagnostic.note(span, text);
            }
            self.report(diagnostic);
            return None;
        }
        if block == Role::TransformedConstant && value.stage != Stage::Constant {
            return self.not_constant(value, "transformed constants");
        }
        Some(())
    }

    fn assignment(
        &mut self,
        span: Span,
        target: &syntax::Expr,
        operator: AssignOperator,
        value: &syntax::Expr,
    ) -> Option<StatementKind> {
        let value = self.expression(value);
        let (name, index_syntax) = match &target.kind {
            syntax::ExprKind::Variable(name) => (name, &[][..]),
            syntax::ExprKind::Index { base, indices } => match &base.kind {
                syntax::ExprKind::Variable(name) => (name, &indices[..]),
                _ => {
                    self.unsupported(
                        target.span,
                        "assignment to a chain of indices",
                        Some("write `x[i, j] = ...`"),
                    );
                    return None;
                }
            },
            _ => {
                self.report(
                    Diagnostic::error("E0124", target.span, "this cannot be assigned to")
                        .label("expected a variable, or an element of one"),
                );
                return None;
            }
        };
        let ident = Ident {
            name: name.clone(),
            span: target.span,
        };
        let Some(id) = self.find(name) else {
            self.unknown_name(&ident);
            return None;
        };
        let indices = self.indices(index_syntax)?;
        let (role, declared, declared_type) = {
            let v = self.checked.variable(id);
            (v.role, v.span, v.ty)
        };
        if role != Role::Local && role != self.block {
            self.report(
                Diagnostic::error(
                    "E0125",
                    target.span,
                    format!("`{name}` is {} and cannot be assigned to here", role.description()),
                )
                .label("read only here")
                .note(declared, "declared here")
                .help(match role {
                    Role::Loop => "the loop alone moves it: use a variable of its own",
                    Role::Constant => "its value comes from the constants file: declare another variable in `transformed constants`",
                    Role::Record => "its value comes from the data: declare another variable in `transformed record`",
                    Role::Parameter => "its value comes from the sampler: declare another variable in `transformed parameters`",
                    _ => "assign to it in the block that declares it, or use a variable of its own",
                }),
            );
            return None;
        }
        for index in &indices {
            if index_stage(index) != Stage::Constant {
                let (Index::Single(e) | Index::Many(e)) = index else {
                    continue;
                };
                return self.not_constant(e, "an index on the left of `=`");
            }
        }
        let ty = self.indexed_type(target.span, declared_type, &indices)?;
        let value = value?;
        let operator = match operator {
            AssignOperator::Set => {
                self.assignable(name, !indices.is_empty(), declared, ty, &value)?;
                None
            }
            AssignOperator::With(operator) => {
                // Types as for `target operator value`, put back into the target.
                let current = Expr {
                    kind: ExprKind::Variable(id),
                    ty,
                    stage: self.checked.variable(id).stage,
                    span: target.span,
                };
                let result = self.binary(span, operator, current, value.clone())?;
                self.assignable(name, !indices.is_empty(), declared, ty, &result)?;
                Some(operator)
            }
        };
        self.stage_allowed(&value)?;
        self.raise_stage(id, value.stage);
        Some(StatementKind::Assign {
            variable: id,
            indices,
            operator,
            value,
        })
    }
}
