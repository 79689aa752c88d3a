//! User-defined functions: their signatures, and their bodies, checked for the
//! stages of the arguments that they are called with.
//!
//! A body is checked once with constants for arguments, which finds the errors of every call, and
//! once more for each other combination of stages in some call. An error that occurs only then is
//! reported at its place in the body, with a note at the call.

use std::rc::Rc;

use super::flow::Flow;
use super::scope::Checker;
use super::typed::*;
use crate::syntax::{self, Diagnostic, Ident, Span, UnsizedBase, UnsizedType};

/// The most instances, in addition to one for each definition: a function of n arguments may have
/// 4^n.
const MAX_INSTANCES: usize = 4096;

const TOO_MANY: &str = "E0150";

/// How many of the calls that led to an error in a body a note shows.
const CALLS_SHOWN: usize = 4;

/// The kind of a function, by the ending of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Plain,
    /// `_lpdf`, `_lpmf`: also a distribution, for use after `~`.
    Density,
    /// `_cdf`, `_lcdf`, `_lccdf`.
    Cumulative,
    /// `_rng`: draws random numbers.
    Random,
    /// `_lp`: adds to the target.
    Target,
}

impl Kind {
    pub fn of(name: &str) -> Kind {
        let ends = |endings: &[&str]| endings.iter().any(|e| name.ends_with(e));
        if ends(&["_lpdf", "_lpmf"]) {
            Kind::Density
        } else if ends(&["_cdf", "_lcdf", "_lccdf"]) {
            Kind::Cumulative
        } else if ends(&["_rng"]) {
            Kind::Random
        } else if ends(&["_lp"]) {
            Kind::Target
        } else {
            Kind::Plain
        }
    }

    pub fn has_bar(self) -> bool {
        matches!(self, Kind::Density | Kind::Cumulative)
    }
}

pub(super) struct Definition {
    pub syntax: syntax::Function,
    pub arguments: Vec<Type>,
    pub returns: Option<Type>,
    pub kind: Kind,
}

impl Definition {
    pub fn new(syntax: syntax::Function) -> Definition {
        Definition {
            arguments: syntax.arguments.iter().map(|a| type_of(&a.ty)).collect(),
            returns: syntax.return_type.as_ref().map(type_of),
            kind: Kind::of(&syntax.name.name),
            syntax,
        }
    }

    pub fn name(&self) -> &str {
        &self.syntax.name.name
    }

    pub fn signature(&self) -> FunctionSignature {
        let names = self.syntax.arguments.iter().map(|a| a.name.name.clone());
        FunctionSignature {
            name: self.name().to_string(),
            returns: self.returns,
            arguments: names.zip(self.arguments.iter().copied()).collect(),
        }
    }

    /// `real f(real x, int n)`
    pub fn describe(&self) -> String {
        let returns = self
            .returns
            .map_or_else(|| "void".to_string(), |t| t.to_string());
        let arguments: Vec<String> = self
            .syntax
            .arguments
            .iter()
            .zip(&self.arguments)
            .map(|(a, t)| format!("{t} {}", a.name.name))
            .collect();
        format!("{returns} {}({})", self.name(), arguments.join(", "))
    }
}

/// A definition and the stages of its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Instance {
    definition: usize,
    stages: Vec<Stage>,
}

impl Instance {
    fn is_generic(&self) -> bool {
        self.stages.iter().all(|&s| s == Stage::Constant)
    }
}

/// The first call that asked for an instance.
pub(super) struct FirstCall {
    span: Span,
    /// The instance whose body contains the call.
    within: Option<FunctionId>,
    /// The arguments that are not constants, in words.
    stages: String,
}

/// The function whose body is being checked.
pub(super) struct Body {
    pub id: FunctionId,
    pub instance: Rc<Instance>,
    pub kind: Kind,
    pub returns: Option<Type>,
    pub variables: Vec<VariableId>,
}

impl Checker {
    /// Checks every definition for errors that do not depend on the stages of its arguments.
    pub fn functions(&mut self) {
        let definitions = Rc::clone(&self.definitions);
        self.checked.signatures = definitions.iter().map(Definition::signature).collect();
        for (i, definition) in definitions.iter().enumerate() {
            self.signature_rules(definition, &definitions[..i]);
            let stages = vec![Stage::Constant; definition.arguments.len()];
            self.instance(i, stages, None);
        }
    }

    /// Checks the bodies that were left for later.
    pub fn pending_functions(&mut self) {
        while let Some(id) = self.pending.pop() {
            self.check_body(id);
        }
    }

    fn signature_rules(&mut self, definition: &Definition, earlier: &[Definition]) {
        let name = &definition.syntax.name;
        if crate::function::lookup(&name.name).is_some()
            || crate::distribution::lookup_function(&name.name).is_some()
        {
            self.report(
                Diagnostic::error(
                    "E0141",
                    name.span,
                    format!("`{}` is a function of the language", name.name),
                )
                .label("defined again here")
                .help("give it another name"),
            );
        }
        let same = |d: &&Definition| d.name() == name.name && d.arguments == definition.arguments;
        if let Some(first) = earlier.iter().find(same) {
            self.report(
                Diagnostic::error(
                    "E0141",
                    name.span,
                    format!("`{}` is defined twice for the same types", name.name),
                )
                .label("defined again here")
                .note(first.syntax.name.span, "first defined here")
                .help("give one of them another name, or arguments of other types"),
            );
        }
        let wrong = if name.name.ends_with("_lupdf") || name.name.ends_with("_lupmf") {
            Some("is never defined: define the one that ends in `_lpdf` or `_lpmf`")
        } else if definition.kind.has_bar() && definition.returns != Some(Type::REAL) {
            Some("must return `real`, a probability or density or its logarithm")
        } else if definition.kind.has_bar() && definition.arguments.is_empty() {
            Some("needs an argument: the variate, which comes first")
        } else if name.name.ends_with("_lpmf") && definition.arguments[0].base != Base::Int {
            Some(
                "is of ints: its first argument must be `int` or an array of them; a density of reals ends in `_lpdf`",
            )
        } else if name.name.ends_with("_lpdf") && definition.arguments[0].base == Base::Int {
            Some(
                "is of reals: its first argument cannot be `int`; the probability of ints ends in `_lpmf`",
            )
        } else {
            None
        };
        if let Some(wrong) = wrong {
            self.report(
                Diagnostic::error(
                    "E0143",
                    name.span,
                    format!("a function called `{}` {wrong}", name.name),
                )
                .label("the ending of the name says so"),
            );
        }
        if definition.returns.is_some() && !always_returns(&definition.syntax.body) {
            self.report(
                Diagnostic::error(
                    "E0144",
                    name.span,
                    format!("`{}` may end without a value", name.name),
                )
                .label("not every way through the function ends in `return`")
                .help("end it with `return ...;`, or with `reject(...);` where there is no value"),
            );
        }
    }

    /// Whether the program defines a function of that name, or the density of a
    /// distribution of that name.
    pub fn is_user_function(&self, name: &str) -> bool {
        self.definitions.iter().any(|d| {
            d.name() == name
                || d.name()
                    .strip_prefix(name)
                    .is_some_and(|s| s == "_lpdf" || s == "_lpmf")
        })
    }

    /// The names of the program's own functions, for "did you mean".
    pub fn user_function_names(&self) -> Vec<String> {
        self.definitions
            .iter()
            .map(|d| d.name().to_string())
            .collect()
    }

    /// The instance for a call, and the stage of its result.
    pub(super) fn instance_for(
        &mut self,
        definition: usize,
        name: &Ident,
        arguments: &[Expr],
    ) -> Option<(FunctionId, Stage)> {
        let definitions = Rc::clone(&self.definitions);
        let defined = &definitions[definition];
        match defined.kind {
            Kind::Random => self.only_where_random(name)?,
            Kind::Target => self.only_where_target(name)?,
            _ => {}
        }
        let public_block = self.body.is_none() && self.block == Role::TransformedParameter;
        if defined.kind == Kind::Target && public_block {
            for argument in arguments {
                self.only_public(argument, "transformed parameters")?;
            }
        }
        for (argument, declared) in arguments.iter().zip(&defined.syntax.arguments) {
            if declared.data_only && argument.stage != Stage::Constant {
                let mut diagnostic = Diagnostic::error(
                    "E0146",
                    argument.span,
                    format!(
                        "`{}` of `{}` is declared `data`: it takes constants only",
                        declared.name.name,
                        defined.name()
                    ),
                )
                .label(format!("stage {}", argument.stage.name()))
                .note(declared.name.span, "declared here")
                .help("give it a constant, or take `data` out of the declaration");
                if let Some((span, text)) = self.private_source(argument) {
                    diagnostic = diagnostic.note(span, text);
                }
                self.report(diagnostic);
                return None;
            }
        }
        let stages: Vec<Stage> = arguments.iter().map(|a| a.stage).collect();
        let described: Vec<String> = defined
            .syntax
            .arguments
            .iter()
            .zip(&stages)
            .filter(|(_, s)| **s != Stage::Constant)
            .map(|(a, s)| format!("`{}` of stage {}", a.name.name, s.name()))
            .collect();
        let call = FirstCall {
            span: name.span,
            within: self.body.as_ref().map(|b| b.id),
            stages: described.join(", "),
        };
        let id = self.instance(definition, stages, Some(call))?;
        Some((id, self.checked.function(id).stage))
    }

    /// The instance of a definition for these stages; created if there is none.
    fn instance(
        &mut self,
        definition: usize,
        stages: Vec<Stage>,
        call: Option<FirstCall>,
    ) -> Option<FunctionId> {
        let instance = Rc::new(Instance { definition, stages });
        if let Some(&id) = self.instances.get(&instance) {
            return Some(id);
        }
        let definitions = Rc::clone(&self.definitions);
        let defined = &definitions[definition];
        if self.instances.len() >= definitions.len() + MAX_INSTANCES {
            if let Some(call) = call {
                self.report(
                    Diagnostic::error(
                        TOO_MANY,
                        call.span,
                        format!(
                            "the functions of this program are called with more than {MAX_INSTANCES} combinations of stages"
                        ),
                    )
                    .label("one too many")
                    .help("give the functions fewer arguments"),
                );
            }
            return None;
        }
        let id = FunctionId(self.checked.functions.len());
        let place = (Some(Rc::clone(&instance)), defined.syntax.span);
        self.checked.functions.push(Function {
            name: defined.name().to_string(),
            arguments: Vec::new(),
            variables: Vec::new(),
            returns: defined.returns,
            stage: self.known_stage(&place),
            body: Vec::new(),
        });
        self.first_calls.push(call);
        self.instance_list.push(Rc::clone(&instance));
        self.instances.insert(instance, id);
        // Checked at the call, so that the stage of its result is known there at once; or after the
        // walk of the program, where that would be too deep.
        if self.stack.is_half_used_up() {
            self.pending.push(id);
        } else {
            self.check_body(id);
        }
        Some(id)
    }

    fn check_body(&mut self, id: FunctionId) {
        let instance = Rc::clone(&self.instance_list[id.0]);
        let definitions = Rc::clone(&self.definitions);
        let defined = &definitions[instance.definition];
        let outside = self.leave_for_body(Body {
            id,
            instance: Rc::clone(&instance),
            kind: defined.kind,
            returns: defined.returns,
            variables: Vec::new(),
        });
        let arguments = defined
            .syntax
            .arguments
            .iter()
            .zip(&defined.arguments)
            .zip(&instance.stages)
            .map(|((argument, &ty), &stage)| {
                self.declare(Variable {
                    name: argument.name.name.clone(),
                    span: argument.name.span,
                    role: Role::Argument,
                    ty,
                    stage,
                    sizes: Vec::new(),
                    lower: None,
                    upper: None,
                    structure: Structure::Free,
                })
            })
            .collect();
        let body = self.statement_list(&defined.syntax.body);
        if let Some(finished) = self.return_from_body(outside) {
            let function = &mut self.checked.functions[id.0];
            function.arguments = arguments;
            function.variables = finished.variables;
            function.body = body;
        }
    }

    /// Enters a body, which sees nothing but the functions of the outside.
    fn leave_for_body(&mut self, body: Body) -> Outside {
        Outside {
            scopes: std::mem::replace(&mut self.scopes, vec![Default::default()]),
            block: std::mem::replace(&mut self.block, Role::Local),
            in_model: std::mem::replace(&mut self.in_model, false),
            flow: std::mem::take(&mut self.flow),
            body: self.body.replace(body),
        }
    }

    fn return_from_body(&mut self, outside: Outside) -> Option<Body> {
        self.scopes = outside.scopes;
        self.block = outside.block;
        self.in_model = outside.in_model;
        self.flow = outside.flow;
        std::mem::replace(&mut self.body, outside.body)
    }

    /// Records the stage of a returned value in the body being checked.
    pub fn raise_result(&mut self, stage: Stage) {
        let Some(body) = &self.body else { return };
        let definition = &self.definitions[body.instance.definition];
        let place = (Some(Rc::clone(&body.instance)), definition.syntax.span);
        let id = body.id;
        self.rise(place, stage);
        let function = &mut self.checked.functions[id.0];
        function.stage = function.stage.join(stage);
    }

    /// `diagnostic`, with the calls that led there if the body is being checked for stages other
    /// than constants; `None` if it was reported for the body in general.
    pub fn with_calls(&self, mut diagnostic: Diagnostic) -> Option<Diagnostic> {
        let Some(body) = self.body.as_ref().filter(|b| !b.instance.is_generic()) else {
            return Some(diagnostic);
        };
        // Too many combinations: no single call led there.
        if diagnostic.code == TOO_MANY {
            return Some(diagnostic);
        }
        let again = |d: &&Diagnostic| {
            d.code == diagnostic.code
                && d.span == diagnostic.span
                && d.message == diagnostic.message
        };
        if self.diagnostics.iter().any(|d| again(&d)) {
            return None;
        }
        let mut within = Some(body.id);
        for _ in 0..CALLS_SHOWN {
            let Some(call) = within.and_then(|id| self.first_calls[id.0].as_ref()) else {
                break;
            };
            let text = if call.stages.is_empty() {
                "called here".to_string()
            } else {
                format!("called here, with {}", call.stages)
            };
            diagnostic = diagnostic.note(call.span, text);
            within = call.within;
        }
        Some(diagnostic)
    }

    /// Random numbers are drawn only where a program is run on numbers.
    pub fn only_where_random(&mut self, name: &Ident) -> Option<()> {
        let allowed = match &self.body {
            Some(body) => body.kind == Kind::Random,
            None => matches!(
                self.block,
                Role::TransformedConstant | Role::GeneratedQuantity
            ),
        };
        if allowed {
            return Some(());
        }
        self.report(
            Diagnostic::error(
                "E0145",
                name.span,
                format!(
                    "`{}` draws random numbers, which is not allowed here",
                    name.name
                ),
            )
            .label("not here")
            .help(if self.body.is_some() {
                "give the function around it a name that ends in `_rng`"
            } else {
                "draw in `generated quantities`, or in `transformed constants`"
            }),
        );
        None
    }

    fn only_where_target(&mut self, name: &Ident) -> Option<()> {
        let allowed = match &self.body {
            Some(body) => body.kind == Kind::Target,
            None => self.in_model || self.block == Role::TransformedParameter,
        };
        if allowed {
            return Some(());
        }
        self.report(
            Diagnostic::error(
                "E0122",
                name.span,
                format!(
                    "`{}` adds to the target, which belongs in the `model` block",
                    name.name
                ),
            )
            .label("not here")
            .help(if self.body.is_some() {
                "give the function around it a name that ends in `_lp`"
            } else {
                "move it to `model { ... }`"
            }),
        );
        None
    }
}

/// The state to which the checker returns after a body.
struct Outside {
    scopes: Vec<super::scope::Scope>,
    block: Role,
    in_model: bool,
    flow: Flow,
    body: Option<Body>,
}

fn type_of(ty: &UnsizedType) -> Type {
    Type {
        base: match ty.base {
            UnsizedBase::Int => Base::Int,
            UnsizedBase::Real => Base::Real,
            UnsizedBase::Vector => Base::Vector,
            UnsizedBase::RowVector => Base::RowVector,
            UnsizedBase::Matrix => Base::Matrix,
        },
        array: ty.array_dimensions,
    }
}

/// Whether every way through the statements ends in `return` or `reject`.
fn always_returns(statements: &[syntax::Statement]) -> bool {
    use syntax::StatementKind as Syntax;
    statements.iter().any(|s| match &s.kind {
        Syntax::Return(_) | Syntax::Reject(_) => true,
        Syntax::Block(inner) => always_returns(inner),
        Syntax::If {
            then,
            otherwise: Some(otherwise),
            ..
        } => {
            always_returns(std::slice::from_ref(then))
                && always_returns(std::slice::from_ref(otherwise))
        }
        _ => false,
    })
}
