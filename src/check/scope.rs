//! The checker's state: variables in scope, stages so far, diagnostics.

use std::collections::HashMap;

use super::typed::*;
use crate::syntax::{BlockKind, Diagnostic, Ident, Program, Span, StatementKind, did_you_mean};

/// Which block is being checked; it decides what may be named and done.
pub(super) struct Checker {
    pub checked: Checked,
    pub diagnostics: Vec<Diagnostic>,
    /// Innermost scope last.
    scopes: Vec<HashMap<String, VariableId>>,
    /// Stages found by the previous walk, by the place of the declaration: an
    /// error may leave a variable out, so that its number is not the same.
    known_stages: HashMap<Span, Stage>,
    pub stages_changed: bool,
    /// The block whose statements are being checked.
    pub block: Role,
    pub in_model: bool,
    /// Whatever the blocks declare, also those that are not yet walked.
    declared_somewhere: HashMap<String, (Role, Span)>,
    /// Names of user-defined functions, which are reported once, not at each use.
    user_functions: Vec<String>,
}

impl Checker {
    pub fn new(known_stages: HashMap<Span, Stage>, program: &Program) -> Self {
        Checker {
            checked: Checked::default(),
            diagnostics: Vec::new(),
            scopes: vec![HashMap::new()],
            known_stages,
            stages_changed: false,
            block: Role::Constant,
            in_model: false,
            declared_somewhere: declarations(program),
            user_functions: program
                .functions
                .iter()
                .map(|f| f.name.name.clone())
                .collect(),
        }
    }

    /// Whether the program defines a function of that name, or the density of a
    /// distribution of that name.
    pub fn is_user_function(&self, name: &str) -> bool {
        self.user_functions.iter().any(|f| {
            f == name
                || f.strip_prefix(name)
                    .is_some_and(|s| s == "_lpdf" || s == "_lpmf")
        })
    }

    pub fn finish(self) -> (Checked, Vec<Diagnostic>) {
        (self.checked, self.diagnostics)
    }

    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Says that something parses but is not computed by this version.
    pub fn unsupported(&mut self, span: Span, what: &str, instead: Option<&str>) {
        let plural = what.starts_with("bounds") || what.ends_with("functions");
        let verb = if plural { "are" } else { "is" };
        let mut diagnostic = Diagnostic::error(
            "E0900",
            span,
            format!("{what} {verb} part of the language but not supported yet"),
        )
        .label("not supported by this version");
        if let Some(instead) = instead {
            diagnostic = diagnostic.help(instead);
        }
        self.report(diagnostic);
    }

    pub fn enter_scope(&mut self) {
        self.scopes.push(HashMap::new());
    }

    pub fn leave_scope(&mut self) {
        self.scopes.pop();
    }

    pub fn find(&self, name: &str) -> Option<VariableId> {
        self.scopes.iter().rev().find_map(|s| s.get(name).copied())
    }

    /// Adds a variable. A name already in use anywhere in scope is an error, as
    /// in Stan: shadowing is not allowed.
    pub fn declare(&mut self, mut variable: Variable) -> VariableId {
        if let Some(previous) = self.find(&variable.name) {
            let first = self.checked.variable(previous).span;
            self.report(
                Diagnostic::error(
                    "E0102",
                    variable.span,
                    format!("`{}` is declared twice", variable.name),
                )
                .label("declared again here")
                .note(first, "first declared here")
                .help("give one of them another name"),
            );
        }
        let id = VariableId(self.checked.variables.len());
        if let Some(&known) = self.known_stages.get(&variable.span) {
            variable.stage = variable.stage.join(known);
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(variable.name.clone(), id);
        }
        self.checked.variables.push(variable);
        id
    }

    /// Raises a variable's stage to include `stage`; a change asks for another
    /// walk, since earlier uses may have seen the lower one.
    pub fn raise_stage(&mut self, id: VariableId, stage: Stage) {
        let variable = &mut self.checked.variables[id.0];
        let joined = variable.stage.join(stage);
        if joined != variable.stage {
            variable.stage = joined;
            self.stages_changed = true;
        }
    }

    /// Whether some block declares the name, if not before this place.
    pub fn is_declared_somewhere(&self, name: &str) -> bool {
        self.declared_somewhere.contains_key(name)
    }

    pub fn unknown_name(&mut self, ident: &Ident) {
        if let Some(&(role, declared)) = self.declared_somewhere.get(&ident.name) {
            return self.not_known_yet(ident, role, declared);
        }
        let names: Vec<String> = self.scopes.iter().flat_map(|s| s.keys().cloned()).collect();
        let mut diagnostic = Diagnostic::error(
            "E0101",
            ident.span,
            format!("nothing is called `{}` here", ident.name),
        )
        .label("unknown name");
        let suggestion = did_you_mean(&ident.name, names.iter().map(String::as_str));
        diagnostic = match suggestion {
            Some(name) => diagnostic.help(format!("did you mean `{name}`?")),
            None => diagnostic.help(
                "declare it in `constants` (public), `record` (a private column) or `parameters`",
            ),
        };
        self.report(diagnostic);
    }

    /// A name that some block declares, but not before this place.
    fn not_known_yet(&mut self, ident: &Ident, role: Role, declared: Span) {
        let name = &ident.name;
        let private = matches!(role, Role::Record | Role::TransformedRecord);
        let unknown = matches!(role, Role::Parameter | Role::TransformedParameter);
        let public_block = matches!(self.block, Role::Constant | Role::TransformedConstant);
        let diagnostic = if private && public_block {
            Diagnostic::error(
                "E0202",
                ident.span,
                format!(
                    "constants are public, and `{name}` is {}",
                    role.description()
                ),
            )
            .label("private")
            .help("compute it in `transformed record`")
        } else if unknown && matches!(self.block, Role::Record | Role::TransformedRecord) {
            Diagnostic::error(
                "E0204",
                ident.span,
                format!(
                    "`{name}` is {}, and records are prepared before any is known",
                    role.description()
                ),
            )
            .label("not known yet")
            .help("compute this in a local variable of `model`")
        } else {
            Diagnostic::error(
                "E0101",
                ident.span,
                format!("`{name}` is declared further down"),
            )
            .label("not known yet")
            .help("a name can be used after its declaration only")
        };
        self.report(diagnostic.note(declared, "declared here"));
    }

    /// A note that points at the declaration of some private variable used in
    /// `expression`, to show why it counts as private.
    pub fn private_source(&self, expression: &Expr) -> Option<(Span, String)> {
        let id = find_variable(expression, &|id| {
            self.checked.variable(id).stage.is_private()
        })?;
        let variable = self.checked.variable(id);
        let name = &variable.name;
        let text = match variable.role {
            Role::Local | Role::Loop => format!("`{name}` is computed from a record column"),
            role => format!("`{name}` is {}", role.description()),
        };
        Some((variable.span, text))
    }
}

/// What the blocks declare, apart from local variables.
fn declarations(program: &Program) -> HashMap<String, (Role, Span)> {
    let mut found = HashMap::new();
    for block in &program.blocks {
        let role = match block.kind {
            BlockKind::Constants => Role::Constant,
            BlockKind::TransformedConstants => Role::TransformedConstant,
            BlockKind::Record => Role::Record,
            BlockKind::TransformedRecord => Role::TransformedRecord,
            BlockKind::Parameters => Role::Parameter,
            BlockKind::TransformedParameters => Role::TransformedParameter,
            BlockKind::Model => Role::Local,
            BlockKind::Functions | BlockKind::GeneratedQuantities => continue,
        };
        for statement in &block.statements {
            if let StatementKind::Declaration { name, .. } = &statement.kind {
                found.entry(name.name.clone()).or_insert((role, name.span));
            }
        }
    }
    found
}

/// The first variable in the expression for which `wanted` holds.
pub(super) fn find_variable(
    expression: &Expr,
    wanted: &dyn Fn(VariableId) -> bool,
) -> Option<VariableId> {
    let first = |parts: &[Expr]| parts.iter().find_map(|e| find_variable(e, wanted));
    match &expression.kind {
        ExprKind::Int(_) | ExprKind::Real(_) => None,
        ExprKind::Variable(id) => wanted(*id).then_some(*id),
        ExprKind::Call { arguments, .. } => first(arguments),
        ExprKind::LogDensity {
            variate, arguments, ..
        } => find_variable(variate, wanted).or_else(|| first(arguments)),
        ExprKind::Index { base, indices } => find_variable(base, wanted).or_else(|| {
            indices.iter().find_map(|index| match index {
                Index::Single(e) | Index::Many(e) => find_variable(e, wanted),
                Index::Range { from, to } => {
                    from.iter().chain(to).find_map(|e| find_variable(e, wanted))
                }
            })
        }),
        ExprKind::Negate(e) | ExprKind::Not(e) | ExprKind::Transpose(e) => find_variable(e, wanted),
        ExprKind::Binary { .. } => {
            // Down the left side in a loop: a sum may have many terms.
            let mut leftmost = expression;
            let mut rest = Vec::new();
            while let ExprKind::Binary { left, right, .. } = &leftmost.kind {
                rest.push(right);
                leftmost = left;
            }
            find_variable(leftmost, wanted)
                .or_else(|| rest.iter().rev().find_map(|e| find_variable(e, wanted)))
        }
        ExprKind::Ternary {
            condition,
            then,
            otherwise,
        } => find_variable(condition, wanted)
            .or_else(|| find_variable(then, wanted))
            .or_else(|| find_variable(otherwise, wanted)),
        ExprKind::RowVector(parts) | ExprKind::Array(parts) => first(parts),
    }
}
