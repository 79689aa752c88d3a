//! Statements and blocks: where variables may be declared, assigned and sampled.

use super::function::Kind;
use super::habits;
use super::index::index_stage;
use super::scope::{Checker, find_variable};
use super::typed::*;
use crate::syntax::{
    self, AssignOperator, Block, Diagnostic, Ident, Span, StatementKind as Syntax, did_you_mean,
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
                match role {
                    Role::TransformedParameter => self.checked.transformed_parameters.push(id),
                    Role::GeneratedQuantity => {
                        self.checked.generated_quantities.push(id);
                        self.sizes_before_draws(id);
                    }
                    _ => {}
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
                    conditions: Stage::Constant,
                });
            } else if let Some(statement) = self.statement(statement) {
                statements.push(statement);
            }
        }
        match role {
            Role::TransformedConstant => self.checked.transformed_constants = statements,
            Role::TransformedRecord => self.checked.transformed_record = statements,
            Role::GeneratedQuantity => self.checked.generated_statements = statements,
            _ => self.checked.transformed_parameter_statements = statements,
        }
    }

    /// Every draw has the same columns, so the sizes of variables in the output may depend on
    /// constants only. Those of local variables may differ.
    fn sizes_before_draws(&mut self, id: VariableId) {
        for size in self.checked.variable(id).sizes.clone() {
            let draws = |id: VariableId| {
                let role = self.checked.variable(id).role;
                !matches!(role, Role::Constant | Role::TransformedConstant)
            };
            if let Some(used) = find_variable(&size, &draws) {
                let used = self.checked.variable(used);
                let (name, declared, role) = (used.name.clone(), used.span, used.role);
                self.report(
                    Diagnostic::error(
                        "E0205",
                        size.span,
                        "the size of a generated quantity must be the same for every draw",
                    )
                    .label("differs from draw to draw")
                    .note(declared, format!("`{name}` is {}", role.description()))
                    .help("use a constant, or a local variable inside `{ ... }`"),
                );
            }
        }
    }

    pub fn model(&mut self, block: &Block) {
        self.block = Role::Local;
        self.in_model = true;
        self.enter_scope();
        let statements = self.statement_list(&block.statements);
        self.leave_scope();
        self.in_model = false;
        self.checked.model = statements;
        self.checked.distributions.sort_unstable();
        self.checked.distributions.dedup();
    }

    pub(super) fn statement(&mut self, statement: &syntax::Statement) -> Option<Statement> {
        let span = statement.span;
        let conditions = self.flow.since(0);
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
            } => {
                if let Some(diagnostic) = habits::equals_for_tilde(target, value) {
                    self.report(diagnostic);
                    return None;
                }
                self.assignment(span, target, *operator, value)?
            }
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
            } => self.sampling(span, variate, distribution, arguments, truncation.as_ref())?,
            Syntax::Block(statements) => {
                self.enter_scope();
                let statements = self.statement_list(statements);
                self.leave_scope();
                StatementKind::Block(statements)
            }
            Syntax::Call { name, arguments } if self.is_user_call(&name.name) => {
                self.user_statement(span, name, arguments)?
            }
            Syntax::Call { name, arguments } => {
                self.expressions(arguments);
                self.unknown_procedure(name);
                return None;
            }
            other => self.flow_statement(span, other)?,
        };
        Some(Statement {
            kind,
            span,
            conditions,
        })
    }

    fn unknown_procedure(&mut self, name: &Ident) {
        let mut diagnostic = Diagnostic::error(
            "E0112",
            name.span,
            format!("there is no procedure called `{}`", name.name),
        )
        .label("unknown");
        let own = self.user_function_names();
        if let Some(meant) = did_you_mean(&name.name, own.iter().map(String::as_str)) {
            diagnostic = diagnostic.help(format!("did you mean `{meant}`?"));
        }
        self.report(diagnostic);
    }

    pub(super) fn only_in_model(&mut self, span: Span, what: &str) -> Option<()> {
        let in_function = self.body.as_ref().map(|body| body.kind);
        if self.in_model || in_function == Some(Kind::Target) {
            return Some(());
        }
        self.report(
            Diagnostic::error(
                "E0122",
                span,
                format!("{what} belongs in the `model` block"),
            )
            .label("not here")
            .help(if in_function.is_some() {
                "give the function a name that ends in `_lp`, or let it return the term"
            } else {
                "move it to `model { ... }`"
            }),
        );
        None
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
        self.only_public(value, block_name)?;
        if block == Role::TransformedConstant && value.stage != Stage::Constant {
            return self.not_constant(value, "transformed constants");
        }
        Some(())
    }

    /// Refuses a private value where all values are public.
    pub(super) fn only_public(&mut self, value: &Expr, block_name: &str) -> Option<()> {
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
        Some(())
    }

    /// `x[i][j]` as `x[i, j]`; `groups` has the first one last.
    fn groups_of_indices(
        &mut self,
        span: Span,
        groups: &[&[syntax::IndexExpr]],
    ) -> Option<Vec<Index>> {
        let mut all: Vec<Index> = Vec::new();
        for group in groups.iter().rev() {
            if !all.iter().all(|i| matches!(i, Index::Single(_))) {
                self.report(
                    Diagnostic::error(
                        "E0153",
                        span,
                        "only the last brackets on the left of `=` may hold a range or many indices",
                    )
                    .label("indices of indices")
                    .help("write one pair of brackets: `x[2:4, 1] = ...`"),
                );
                return None;
            }
            all.extend(self.indices(group)?);
        }
        Some(all)
    }

    fn assignment(
        &mut self,
        span: Span,
        target: &syntax::Expr,
        operator: AssignOperator,
        value: &syntax::Expr,
    ) -> Option<StatementKind> {
        let value = self.expression(value);
        // `x[i][j]`: the groups of indices, the first one last.
        let mut groups = Vec::new();
        let mut base = target;
        while let syntax::ExprKind::Index {
            base: inner,
            indices,
        } = &base.kind
        {
            groups.push(&indices[..]);
            base = inner;
        }
        let syntax::ExprKind::Variable(name) = &base.kind else {
            self.report(
                Diagnostic::error("E0124", target.span, "this cannot be assigned to")
                    .label("expected a variable, or an element of one"),
            );
            return None;
        };
        let ident = Ident {
            name: name.clone(),
            span: target.span,
        };
        let Some(id) = self.find(name) else {
            self.unknown_name(&ident);
            return None;
        };
        let indices = self.groups_of_indices(target.span, &groups)?;
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
                    Role::Loop => "only the loop changes it: use another variable",
                    Role::Constant => "its value comes from the constants file: declare another variable in `transformed constants`",
                    Role::Record => "its value comes from the data: declare another variable in `transformed record`",
                    Role::Parameter => "its value comes from the sampler: declare another variable in `transformed parameters`",
                    Role::Argument => "its value comes from the call: use a variable of its own",
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
