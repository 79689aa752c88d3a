//! Calls: what functions and distributions accept, and what they give.

use super::builtin::constant_named;
use super::habits;
use super::scope::Checker;
use super::typed::*;
use crate::distribution;
use crate::function::{self, Builtin, Shaping};
use crate::syntax::{self, Diagnostic, Ident, Span, did_you_mean};

impl Checker {
    pub(super) fn call(
        &mut self,
        span: Span,
        name: &Ident,
        arguments: &[syntax::Expr],
        conditioned: bool,
    ) -> Option<Expr> {
        if let Some(called) = distribution::lookup_function(&name.name) {
            match called.function {
                distribution::Function::LogDensity => {
                    return self.density_call(span, name, called, arguments, conditioned);
                }
                distribution::Function::Draw => {
                    return self.draw_call(span, name, called.family, arguments);
                }
                _ => {}
            }
        }
        if self.is_user_call(&name.name) {
            return self.user_call(span, name, arguments, conditioned);
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
        if self.is_unread(&name.name) {
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
        let own = self.user_function_names();
        let suggestion = did_you_mean(&name.name, own.iter().map(String::as_str))
            .or_else(|| did_you_mean(&name.name, function::names()));
        let suggestion = suggestion.map(|meant| format!("did you mean `{meant}`?"));
        if let Some(help) = habits::called(&name.name).or(suggestion) {
            diagnostic = diagnostic.help(help);
        }
        self.report(diagnostic);
    }
}
