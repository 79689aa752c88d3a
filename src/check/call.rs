//! Calls: the arguments and results of functions and distributions.

use super::habits;
use super::scope::Checker;
use super::typed::*;
use crate::distribution;
use crate::function;
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
                distribution::Function::Draw => {
                    return self.draw_call(span, name, called.family, arguments, conditioned);
                }
                _ => return self.density_call(span, name, called, arguments, conditioned),
            }
        }
        if self.is_user_call(&name.name) {
            return self.user_call(span, name, arguments, conditioned);
        }
        let arguments = self.expressions(arguments);
        if function::lookup(&name.name).is_none() {
            self.unknown_function(name);
            return None;
        }
        let arguments = arguments?;
        let (builtin, ty, stage) = self.builtin_call(span, name, &arguments)?;
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

    fn unknown_function(&mut self, name: &Ident) {
        if self.is_unread(&name.name) {
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
            .or_else(|| did_you_mean(&name.name, function::names()))
            .map(str::to_string)
            .or_else(|| similar_family_function(&name.name))
            .map(|meant| format!("did you mean `{meant}`?"));
        if let Some(help) = habits::called(&name.name).or(suggestion) {
            diagnostic = diagnostic.help(help);
        }
        self.report(diagnostic);
    }
}

/// `normal_lpdf` for `norml_lpdf`.
fn similar_family_function(name: &str) -> Option<String> {
    let (stem, ending) = name.split_at(name.rfind('_')?);
    let families = distribution::FAMILIES.iter().map(|f| f.name());
    let similar = format!("{}{ending}", did_you_mean(stem, families)?);
    distribution::lookup_function(&similar).map(|_| similar)
}
