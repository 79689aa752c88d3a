//! Control flow: loops, conditions, and exits from them.
//!
//! A condition may depend on a parameter or a record. Then so does every value assigned under it:
//! after `if (sigma > 1) k = 2;` the variable `k` is of stage Parameter. The same holds for
//! statements after a `break` or `return` under such a condition, and in a loop also for those
//! before it, since the loop is repeated. What a statement under a condition on a record adds to the
//! target, it adds for each record.

use super::scope::Checker;
use super::typed::*;
use crate::syntax::{self, Diagnostic, Ident, Span, StatementKind as Syntax};

/// The place of a statement in the flow of control.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// Stages of the surrounding conditions, and of those under which an earlier statement may have
    /// left; outermost first.
    path: Vec<Stage>,
    /// The stage of the conditions under which the innermost loop may have been left.
    left_loop: Stage,
    /// The same for the function.
    left_function: Stage,
    /// Places of the surrounding loops, and the length of the path there.
    loops: Vec<(Span, usize)>,
}

impl Flow {
    pub fn depth(&self) -> usize {
        self.path.len()
    }

    /// The stage of the conditions that decide whether this place is reached, given that the place
    /// at `depth` was.
    pub fn since(&self, depth: usize) -> Stage {
        self.path
            .iter()
            .skip(depth)
            .fold(Stage::Constant, |a, &b| a.join(b))
    }
}

impl Checker {
    /// Statements in order; those with an error are left out.
    pub fn statement_list(&mut self, statements: &[syntax::Statement]) -> Vec<Statement> {
        statements
            .iter()
            .filter_map(|s| self.statement(s))
            .collect()
    }

    /// `if`, loops, and the statements that leave them.
    pub(super) fn flow_statement(
        &mut self,
        span: Span,
        statement: &Syntax,
    ) -> Option<StatementKind> {
        match statement {
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
                let body = self.loop_body(span, body);
                self.leave_scope();
                Some(StatementKind::ForRange {
                    variable: id,
                    from: from?,
                    to: to?,
                    body: Box::new(body?),
                })
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
                let body = self.loop_body(span, body);
                self.leave_scope();
                Some(StatementKind::ForEach {
                    variable: id,
                    container,
                    body: Box::new(body?),
                })
            }
            Syntax::While { condition, body } => {
                // Assignments in the body determine whether it is run again.
                let condition = self.expression(condition);
                if let Some(c) = &condition {
                    if c.ty != Type::INT {
                        self.wrong_type::<()>(c, "a condition must be an int", "int");
                    } else if c.stage != Stage::Constant {
                        self.not_constant::<()>(c, "the condition of `while`");
                    }
                }
                self.enter_scope();
                let body = self.loop_body(span, body);
                self.leave_scope();
                Some(StatementKind::While {
                    condition: condition?,
                    body: Box::new(body?),
                })
            }
            Syntax::If {
                condition,
                then,
                otherwise,
            } => self.if_statement(condition, then, otherwise.as_deref()),
            Syntax::Break => self.leave_loop(span, "break", StatementKind::Break),
            Syntax::Continue => self.leave_loop(span, "continue", StatementKind::Continue),
            Syntax::Return(value) => self.return_statement(span, value.as_ref()),
            Syntax::Print(parts) => {
                let parts = self.printed(parts);
                let path = self.flow.since(0);
                if path != Stage::Constant {
                    self.report(
                        Diagnostic::error(
                            "E0205",
                            span,
                            format!("what `print` shows must be known before sampling, and whether it is reached depends on a {}", depends_on(path)),
                        )
                        .label(format!("under a condition on a {}", depends_on(path)))
                        .help("print in `generated quantities`, where every value is known"),
                    );
                    return None;
                }
                let parts = parts?;
                for part in &parts {
                    if let Printed::Value(e) = part
                        && e.stage != Stage::Constant
                    {
                        return self.not_constant(e, "what `print` shows");
                    }
                }
                Some(StatementKind::Print(parts))
            }
            Syntax::Reject(parts) => {
                let parts = self.printed(parts)?;
                if self.flow.since(0).is_private() {
                    self.report(
                        Diagnostic::error(
                            "E0203",
                            span,
                            "whether `reject` is reached must not depend on a private record",
                        )
                        .label("under a condition on a record")
                        .help("declare the allowed range of the column in `record`"),
                    );
                    return None;
                }
                for part in &parts {
                    if let Printed::Value(e) = part
                        && e.stage.is_private()
                    {
                        return self.not_constant(e, "what `reject` shows");
                    }
                }
                Some(StatementKind::Reject(parts))
            }
            _ => None,
        }
    }

    fn if_statement(
        &mut self,
        condition: &syntax::Expr,
        then: &syntax::Statement,
        otherwise: Option<&syntax::Statement>,
    ) -> Option<StatementKind> {
        let condition = self.expression(condition);
        let mut stage = Stage::Constant;
        if let Some(c) = &condition {
            if c.ty != Type::INT {
                self.wrong_type::<()>(c, "a condition must be an int", "int");
            } else if self.block == Role::TransformedParameter {
                self.only_public(c, "transformed parameters");
            }
            stage = c.stage;
        }
        let depth = self.flow.depth();
        self.flow.path.push(stage);
        self.enter_scope();
        let then = self.statement(then);
        self.leave_scope();
        self.flow.path.truncate(depth + 1);
        self.enter_scope();
        let otherwise = otherwise.map(|s| self.statement(s));
        self.leave_scope();
        self.flow.path.truncate(depth);
        self.after_leaving();
        Some(StatementKind::If {
            condition: condition?,
            then: Box::new(then?),
            otherwise: match otherwise {
                None => None,
                Some(checked) => Some(Box::new(checked?)),
            },
        })
    }

    /// The rest is reached only if no earlier statement left.
    fn after_leaving(&mut self) {
        let left = self.flow.left_loop.join(self.flow.left_function);
        if left != Stage::Constant {
            self.flow.path.push(left);
        }
    }

    fn loop_body(&mut self, span: Span, body: &syntax::Statement) -> Option<Statement> {
        let depth = self.flow.depth();
        let outer = std::mem::take(&mut self.flow.left_loop);
        self.flow.loops.push((span, depth));
        let place = self.place(span);
        let known = self.known_stage(&place);
        if known != Stage::Constant {
            self.flow.path.push(known);
        }
        let body = self.statement(body);
        self.flow.loops.pop();
        self.flow.left_loop = outer;
        self.flow.path.truncate(depth);
        self.after_leaving();
        body
    }

    fn leave_loop(&mut self, span: Span, word: &str, kind: StatementKind) -> Option<StatementKind> {
        let Some(&(around, depth)) = self.flow.loops.last() else {
            self.report(
                Diagnostic::error("E0148", span, format!("`{word}` is not inside a loop"))
                    .label("not in a loop")
                    .help("it leaves or continues the `for` or `while` around it"),
            );
            return None;
        };
        let stage = self.flow.since(depth);
        self.flow.left_loop = self.flow.left_loop.join(stage);
        let place = self.place(around);
        self.rise(place, stage);
        Some(kind)
    }

    fn return_statement(
        &mut self,
        span: Span,
        value: Option<&syntax::Expr>,
    ) -> Option<StatementKind> {
        let value = match value {
            Some(v) => Some(self.expression(v)?),
            None => None,
        };
        let Some(body) = &self.body else {
            self.report(
                Diagnostic::error("E0147", span, "`return` is not inside a function")
                    .label("not in a function")
                    .help("use `if` to leave statements out"),
            );
            return None;
        };
        let returns = body.returns;
        let stage = self.flow.since(0);
        self.flow.left_function = self.flow.left_function.join(stage);
        for (around, _) in self.flow.loops.clone() {
            let place = self.place(around);
            self.rise(place, stage);
        }
        match (returns, &value) {
            (None, None) => {}
            (Some(ty), Some(v)) if ty.accepts(v.ty) => self.raise_result(stage.join(v.stage)),
            (Some(ty), Some(v)) => {
                let v = v.clone();
                return self.wrong_type(
                    &v,
                    "the function is defined to return another type",
                    &format!("`{ty}`"),
                );
            }
            (None, Some(v)) => {
                self.report(
                    Diagnostic::error("E0147", v.span, "a `void` function returns no value")
                        .label("a value")
                        .help("write `return;`, or define the function with a type"),
                );
                return None;
            }
            (Some(ty), None) => {
                self.report(
                    Diagnostic::error("E0147", span, "this `return` gives no value")
                        .label(format!("expected a `{ty}`")),
                );
                return None;
            }
        }
        Some(StatementKind::Return(value))
    }

    fn printed(&mut self, parts: &[syntax::Expr]) -> Option<Vec<Printed>> {
        let checked: Vec<_> = parts
            .iter()
            .map(|part| match &part.kind {
                syntax::ExprKind::String(text) => Some(Printed::Text(text.clone())),
                _ => self.expression(part).map(Printed::Value),
            })
            .collect();
        checked.into_iter().collect()
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
}

/// That on which a place at this stage depends.
fn depends_on(stage: Stage) -> &'static str {
    if stage.is_private() {
        "record"
    } else {
        "parameter"
    }
}
