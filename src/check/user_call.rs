//! Calls of user-defined functions: which definition is meant, and whether it may be called here
//! and in this form.

use std::rc::Rc;

use super::function::{Definition, Kind};
use super::scope::Checker;
use super::typed::*;
use crate::syntax::{self, Diagnostic, Ident, Span};

impl Checker {
    /// Whether a call of that name is one of the program's own functions.
    pub fn is_user_call(&self, name: &str) -> bool {
        let wanted = defined_name(name);
        self.definitions.iter().any(|d| d.name() == wanted)
    }

    /// A call in an expression.
    pub fn user_call(
        &mut self,
        span: Span,
        name: &Ident,
        arguments: &[syntax::Expr],
        conditioned: bool,
    ) -> Option<Expr> {
        let arguments = self.expressions(arguments)?;
        let kind = Kind::of(&defined_name(&name.name));
        if kind.has_bar() && !conditioned {
            return self.wants_bar(span, name);
        }
        self.no_bar(span, name, conditioned && !kind.has_bar())?;
        let wanted = defined_name(&name.name);
        let definition = self.resolve(name, &|d| d == wanted, &arguments)?;
        let Some(ty) = self.definitions[definition].returns else {
            let defined = self.definitions[definition].syntax.name.span;
            self.report(
                Diagnostic::error("E0149", span, format!("`{}` gives no value", name.name))
                    .label("used as a value")
                    .note(defined, "defined as `void`")
                    .help("call it as a statement of its own"),
            );
            return None;
        };
        let (function, result) = self.instance_for(definition, name, &arguments)?;
        let of_arguments = joined(&arguments);
        Some(Expr {
            stage: if kind.has_bar() { of_arguments } else { result },
            kind: ExprKind::UserCall {
                function,
                arguments,
            },
            ty,
            span,
        })
    }

    /// Refuses a density without its bar.
    pub fn wants_bar<T>(&mut self, span: Span, name: &Ident) -> Option<T> {
        let message = format!("`{}` needs a bar after the variate", name.name);
        self.report(
            Diagnostic::error("E0114", span, message)
                .label("expected `|`")
                .help(format!("write `{}(y | ...)`", name.name)),
        );
        None
    }

    /// Refuses the bar of a density in another function's call.
    pub fn no_bar(&mut self, span: Span, name: &Ident, has_bar: bool) -> Option<()> {
        if !has_bar {
            return Some(());
        }
        self.report(
            Diagnostic::error(
                "E0114",
                span,
                format!(
                    "`{}` is not a density: its arguments have no bar",
                    name.name
                ),
            )
            .label("expected `,`"),
        );
        None
    }

    /// A call that is a statement.
    pub fn user_statement(
        &mut self,
        span: Span,
        name: &Ident,
        arguments: &[syntax::Expr],
    ) -> Option<StatementKind> {
        let arguments = self.expressions(arguments)?;
        let definition = self.resolve(name, &|d| d == name.name, &arguments)?;
        if let Some(ty) = self.definitions[definition].returns {
            self.report(
                Diagnostic::error(
                    "E0149",
                    span,
                    format!("the value of `{}` is not used", name.name),
                )
                .label(format!("gives `{ty}`"))
                .help("assign it to a variable, or define the function as `void`"),
            );
            return None;
        }
        let (function, _) = self.instance_for(definition, name, &arguments)?;
        Some(StatementKind::Call {
            function,
            arguments,
        })
    }

    /// `y ~ mine(a, b)`, which is `target += mine_lpdf(y | a, b)`.
    pub fn user_sampling(
        &mut self,
        span: Span,
        name: &Ident,
        variate: Expr,
        rest: Vec<Expr>,
    ) -> Option<StatementKind> {
        let mut arguments = vec![variate];
        arguments.extend(rest);
        let is_density = |d: &str| {
            d.strip_prefix(name.name.as_str())
                .is_some_and(|s| s == "_lpdf" || s == "_lpmf")
        };
        let definition = self.resolve(name, &is_density, &arguments)?;
        let (function, _) = self.instance_for(definition, name, &arguments)?;
        Some(StatementKind::Target {
            value: Expr {
                ty: Type::REAL,
                stage: joined(&arguments),
                kind: ExprKind::UserCall {
                    function,
                    arguments,
                },
                span,
            },
        })
    }

    /// The definition that takes these arguments with the fewest ints used as reals.
    fn resolve(
        &mut self,
        name: &Ident,
        is_meant: &dyn Fn(&str) -> bool,
        arguments: &[Expr],
    ) -> Option<usize> {
        let definitions = Rc::clone(&self.definitions);
        let named: Vec<usize> = (0..definitions.len())
            .filter(|&i| is_meant(definitions[i].name()))
            .collect();
        let mut fitting: Vec<(usize, usize)> = named
            .iter()
            .filter_map(|&i| Some((promotions(&definitions[i].arguments, arguments)?, i)))
            .collect();
        fitting.sort_unstable();
        match fitting[..] {
            [] => {
                self.no_version(name, &definitions, &named, arguments);
                None
            }
            [(a, i), (b, j), ..]
                if a == b && definitions[i].arguments != definitions[j].arguments =>
            {
                self.report(
                    Diagnostic::error(
                        "E0142",
                        name.span,
                        format!("two versions of `{}` fit equally well", name.name),
                    )
                    .label(format!("called with {}", types_of(arguments)))
                    .note(definitions[i].syntax.name.span, "this one")
                    .note(definitions[j].syntax.name.span, "and this one")
                    .help("write the ints that should be reals as reals, for example `1.0`"),
                );
                None
            }
            [(_, i), ..] => Some(i),
        }
    }

    fn no_version(
        &mut self,
        name: &Ident,
        definitions: &[Definition],
        named: &[usize],
        arguments: &[Expr],
    ) {
        if let [only] = named {
            let definition = &definitions[*only];
            let wanted = definition.arguments.len();
            if wanted != arguments.len() {
                self.report(
                    Diagnostic::error(
                        "E0115",
                        name.span,
                        format!(
                            "`{}` takes {wanted} argument{}, not {}",
                            definition.name(),
                            if wanted == 1 { "" } else { "s" },
                            arguments.len()
                        ),
                    )
                    .label(format!("expected `{}`", definition.describe()))
                    .note(definition.syntax.name.span, "defined here"),
                );
                return;
            }
            for ((argument, &ty), declared) in arguments
                .iter()
                .zip(&definition.arguments)
                .zip(&definition.syntax.arguments)
            {
                if !ty.accepts(argument.ty) {
                    self.report(
                        Diagnostic::error(
                            "E0105",
                            argument.span,
                            format!(
                                "`{}` of `{}` must be `{ty}`",
                                declared.name.name,
                                definition.name()
                            ),
                        )
                        .label(format!("expected `{ty}`, found `{}`", argument.ty))
                        .note(declared.name.span, "declared here"),
                    );
                }
            }
            return;
        }
        let versions: Vec<String> = named
            .iter()
            .map(|&i| format!("`{}`", definitions[i].describe()))
            .collect();
        self.report(
            Diagnostic::error(
                "E0142",
                name.span,
                format!(
                    "no version of `{}` takes {}",
                    name.name,
                    types_of(arguments)
                ),
            )
            .label("called here")
            .help(format!("there are {}", versions.join(", "))),
        );
    }
}

/// The definition behind a name: `f_lupdf` is `f_lpdf`, whose value keeps its
/// constant terms here.
fn defined_name(name: &str) -> String {
    for (unnormalised, defined) in [("_lupdf", "_lpdf"), ("_lupmf", "_lpmf")] {
        if let Some(stem) = name.strip_suffix(unnormalised) {
            return format!("{stem}{defined}");
        }
    }
    name.to_string()
}

fn joined(arguments: &[Expr]) -> Stage {
    arguments
        .iter()
        .fold(Stage::Constant, |s, e| s.join(e.stage))
}

/// How many ints would be used as reals; `None` when the types do not fit.
fn promotions(wanted: &[Type], arguments: &[Expr]) -> Option<usize> {
    if wanted.len() != arguments.len() {
        return None;
    }
    wanted
        .iter()
        .zip(arguments)
        .try_fold(0, |count, (&ty, argument)| {
            ty.accepts(argument.ty)
                .then_some(count + usize::from(ty != argument.ty))
        })
}

fn types_of(arguments: &[Expr]) -> String {
    let types: Vec<String> = arguments.iter().map(|a| a.ty.to_string()).collect();
    format!("`({})`", types.join(", "))
}
