//! The checker's state: variables in scope, stages so far, diagnostics.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::flow::Flow;
use super::function::{Body, Definition, FirstCall, Instance};
use super::habits;
use super::stack::Stack;
use super::typed::*;
use crate::syntax::{BlockKind, Diagnostic, Ident, Program, Span, StatementKind, did_you_mean};

pub(super) type Scope = HashMap<String, VariableId>;

/// A place in the source; in a function, for the arguments of one instance.
pub(super) type Place = (Option<Rc<Instance>>, Span);

/// Stages found by the walks so far: of variables by the place of their declaration (an error may
/// drop one, which changes the numbers), of functions' results, and of the exits from loops.
pub(super) type Known = HashMap<Place, Stage>;

/// The state of a walk. The block being checked decides what may be named and done.
pub(super) struct Checker {
    pub checked: Checked,
    pub diagnostics: Vec<Diagnostic>,
    /// Innermost scope last.
    pub scopes: Vec<Scope>,
    known: Known,
    pub stages_changed: bool,
    /// The block whose statements are being checked.
    pub block: Role,
    pub in_model: bool,
    /// All declarations of the blocks, including those not yet walked.
    declared_somewhere: HashMap<String, (Role, Span)>,
    /// Names that have been reported already.
    unread: HashSet<String>,
    /// The place of the walk in the flow of control.
    pub flow: Flow,
    /// By variable, the number of conditions around its declaration.
    declared_at: Vec<usize>,
    pub definitions: Rc<Vec<Definition>>,
    pub instances: HashMap<Rc<Instance>, FunctionId>,
    /// By function, as `checked.functions`.
    pub instance_list: Vec<Rc<Instance>>,
    pub first_calls: Vec<Option<FirstCall>>,
    /// Functions whose bodies are still to be checked.
    pub pending: Vec<FunctionId>,
    /// The function whose body is being walked.
    pub body: Option<Body>,
    pub stack: Stack,
}

impl Checker {
    pub fn new(known: Known, program: &Program, definitions: &Rc<Vec<Definition>>) -> Self {
        Checker {
            checked: Checked::default(),
            diagnostics: Vec::new(),
            scopes: vec![HashMap::new()],
            known,
            stages_changed: false,
            block: Role::Constant,
            in_model: false,
            declared_somewhere: declarations(program),
            unread: program.unread.iter().cloned().collect(),
            flow: Flow::default(),
            declared_at: Vec::new(),
            definitions: Rc::clone(definitions),
            instances: HashMap::new(),
            instance_list: Vec::new(),
            first_calls: Vec::new(),
            pending: Vec::new(),
            body: None,
            stack: Stack::here(),
        }
    }

    pub fn finish(self) -> (Checked, Vec<Diagnostic>, Known) {
        (self.checked, self.diagnostics, self.known)
    }

    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.extend(self.with_calls(diagnostic));
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
        let first = match self.find(&variable.name) {
            Some(first) => Some((self.checked.variable(first).span, "first declared here")),
            None => (self.function_called(&variable.name))
                .map(|function| (function, "a function of that name is defined here")),
        };
        if let Some((first, note)) = first {
            self.report(
                Diagnostic::error(
                    "E0102",
                    variable.span,
                    format!("`{}` is declared twice", variable.name),
                )
                .label("declared again here")
                .note(first, note)
                .help("give one of them another name"),
            );
        }
        let id = VariableId(self.checked.variables.len());
        let known = self.known_stage(&self.place(variable.span));
        variable.stage = variable.stage.join(known);
        self.declared_at.push(self.flow.depth());
        if let Some(body) = &mut self.body {
            body.variables.push(id);
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(variable.name.clone(), id);
        }
        self.checked.variables.push(variable);
        id
    }

    fn function_called(&self, name: &str) -> Option<Span> {
        let mut definitions = self.definitions.iter();
        let definition = definitions.find(|d| d.syntax.name.name == name)?;
        Some(definition.syntax.name.span)
    }

    /// That place in the source, as it is being walked.
    pub fn place(&self, span: Span) -> Place {
        let instance = self.body.as_ref().map(|body| Rc::clone(&body.instance));
        (instance, span)
    }

    pub fn known_stage(&self, place: &Place) -> Stage {
        self.known.get(place).copied().unwrap_or_default()
    }

    /// Raises the known stage of a place to include `stage`; a change requires another walk, since
    /// earlier uses may have seen the lower one.
    pub fn rise(&mut self, place: Place, stage: Stage) {
        let known = self.known.entry(place).or_default();
        let joined = known.join(stage);
        if joined != *known {
            *known = joined;
            self.stages_changed = true;
        }
    }

    /// Raises a variable's stage to include that of a value assigned to it here,
    /// and of the conditions under which this is done.
    pub fn raise_stage(&mut self, id: VariableId, stage: Stage) {
        let stage = stage.join(self.flow.since(self.declared_at[id.0]));
        let variable = &mut self.checked.variables[id.0];
        let joined = variable.stage.join(stage);
        if joined != variable.stage {
            variable.stage = joined;
            let place = self.place(self.checked.variables[id.0].span);
            self.rise(place, joined);
        }
    }

    /// Whether some block declares the name, even if after this place.
    pub fn is_declared_somewhere(&self, name: &str) -> bool {
        self.declared_somewhere.contains_key(name)
    }

    /// Whether the parser has reported this name, so that it is unknown here and need not be
    /// reported again.
    pub fn is_unread(&self, name: &str) -> bool {
        self.unread.contains(name) || name.ends_with("__")
    }

    pub fn unknown_name(&mut self, ident: &Ident) {
        if self.is_unread(&ident.name) {
            return;
        }
        if let Some(&(role, declared)) = self.declared_somewhere.get(&ident.name) {
            return self.not_known_yet(ident, role, declared);
        }
        let names: Vec<String> = self.scopes.iter().flat_map(|s| s.keys().cloned()).collect();
        let mut diagnostic = Diagnostic::error(
            "E0101",
            ident.span,
            format!("`{}` is not declared here", ident.name),
        )
        .label("unknown name");
        let suggestion = did_you_mean(&ident.name, names.iter().map(String::as_str));
        diagnostic = match suggestion {
            _ if habits::name(&ident.name).is_some() => {
                diagnostic.help(habits::name(&ident.name).unwrap_or_default())
            }
            Some(name) => diagnostic.help(format!("did you mean `{name}`?")),
            None => diagnostic.help(
                "declare it in `constants` (public), `record` (a private column) or `parameters`",
            ),
        };
        self.report(diagnostic);
    }

    /// The error for a name that some block declares, but not before this place.
    fn not_known_yet(&mut self, ident: &Ident, role: Role, declared: Span) {
        let name = &ident.name;
        if self.body.is_some() {
            return self.report(
                Diagnostic::error(
                    "E0101",
                    ident.span,
                    format!(
                        "`{name}` is {}, and a function sees its arguments only",
                        role.description()
                    ),
                )
                .label("not known here")
                .note(declared, "declared here")
                .help(format!(
                    "add an argument to the function, and call it with `{name}`"
                )),
            );
        }
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
            Role::Argument => format!(
                "`{name}` is given a value of stage {}",
                variable.stage.name()
            ),
            role => format!("`{name}` is {}", role.description()),
        };
        Some((variable.span, text))
    }
}

impl Checker {
    /// Likewise for a local variable that depends on a parameter; a parameter itself needs no note.
    pub fn parameter_source(&self, expression: &Expr) -> Option<(Span, String)> {
        let id = find_variable(expression, &|id| {
            let variable = self.checked.variable(id);
            let local = matches!(variable.role, Role::Local | Role::Argument | Role::Loop);
            local && variable.stage == Stage::Parameter
        })?;
        let variable = self.checked.variable(id);
        let name = &variable.name;
        let text = match variable.role {
            Role::Argument => format!("`{name}` is given a value of stage parameter"),
            _ => format!("what is assigned to `{name}`, or whether it is, depends on a parameter"),
        };
        Some((variable.span, text))
    }
}

/// The declarations of the blocks, except local variables.
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
        ExprKind::Call { arguments, .. }
        | ExprKind::Draw { arguments, .. }
        | ExprKind::UserCall { arguments, .. } => first(arguments),
        ExprKind::LogDensity {
            variate, arguments, ..
        }
        | ExprKind::LogTail {
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
            // The left operands in a loop, as a sum may have many terms.
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
