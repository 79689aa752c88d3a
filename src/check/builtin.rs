//! Built-in functions: the meaning of a name that the arguments select, and its type and stage.

use super::scope::Checker;
use super::typed::*;
use crate::function::{Builtin, Function, Pattern, Signature, Stages, overloads};
use crate::syntax::{Diagnostic, Ident, Span};

/// The most signatures shown; for longer lists see the reference.
const SHOWN_SIGNATURES: usize = 3;

/// A way to call a function.
type Candidate = (&'static Function, &'static Signature);

impl Checker {
    /// Resolves a call of a built-in function of that name.
    pub(super) fn builtin_call(
        &mut self,
        span: Span,
        name: &Ident,
        arguments: &[Expr],
    ) -> Option<(Builtin, Type, Stage)> {
        let types: Vec<Type> = arguments.iter().map(|a| a.ty).collect();
        let candidates: Vec<Candidate> = overloads(&name.name)
            .flat_map(|f| f.signatures.iter().map(move |s| (f, s)))
            .collect();
        let of_length: Vec<Candidate> = candidates
            .iter()
            .copied()
            .filter(|(_, s)| s.arguments.len() == types.len())
            .collect();
        if of_length.is_empty() {
            self.wrong_count(span, name, &candidates, types.len());
            return None;
        }
        let chosen = of_length
            .iter()
            .find_map(|&(f, s)| s.result(&types).ok().map(|ty| (f, s, ty)));
        let Some((function, signature, ty)) = chosen else {
            self.no_signature(name, &candidates, &of_length, arguments);
            return None;
        };
        for (pattern, argument) in signature.arguments.iter().zip(arguments) {
            let what = match pattern {
                Pattern::Size => format!("a size or position in `{}`", name.name),
                _ if function.stages == Stages::Constants => {
                    format!("an argument of `{}`", name.name)
                }
                _ => continue,
            };
            if argument.stage != Stage::Constant {
                return self.not_constant(argument, &what);
            }
        }
        let stage = match function.stages {
            // A size is always public.
            Stages::Shape => Stage::Constant,
            _ => arguments
                .iter()
                .fold(Stage::Constant, |s, e| s.join(e.stage)),
        };
        if function.stages == Stages::WithoutParameters
            && matches!(stage, Stage::Parameter | Stage::Likelihood)
        {
            self.report(
                Diagnostic::error(
                    "E0205",
                    span,
                    format!(
                        "`{}` has no derivative, and this depends on a parameter",
                        name.name
                    ),
                )
                .label(format!("stage {}", stage.name()))
                .help("use constants or record columns"),
            );
            return None;
        }
        Some((function.builtin, ty, stage))
    }

    fn wrong_count(&mut self, span: Span, name: &Ident, candidates: &[Candidate], found: usize) {
        let mut counts: Vec<usize> = candidates.iter().map(|(_, s)| s.arguments.len()).collect();
        counts.sort_unstable();
        counts.dedup();
        let listed = match &counts[..] {
            [one] => one.to_string(),
            [first @ .., last] => {
                let first: Vec<String> = first.iter().map(ToString::to_string).collect();
                format!("{} or {last}", first.join(", "))
            }
            [] => "no".to_string(),
        };
        let mut diagnostic = Diagnostic::error(
            "E0115",
            span,
            format!(
                "`{}` takes {listed} argument{}, not {found}",
                name.name,
                if counts == [1] { "" } else { "s" },
            ),
        )
        .label(format!("expected {listed}"));
        if let Some(help) = accepted(candidates) {
            diagnostic = diagnostic.help(help);
        }
        self.report(diagnostic);
    }

    /// The error where no signature fits: the type that the first wrong argument of the best one
    /// should have.
    fn no_signature(
        &mut self,
        name: &Ident,
        candidates: &[Candidate],
        of_length: &[Candidate],
        arguments: &[Expr],
    ) {
        let types: Vec<Type> = arguments.iter().map(|a| a.ty).collect();
        let failing = |s: &Signature| s.result(&types).err().unwrap_or(0);
        let at = of_length.iter().map(|(_, s)| failing(s)).max().unwrap_or(0);
        let mut wanted: Vec<String> = Vec::new();
        for (_, signature) in of_length.iter().filter(|(_, s)| failing(s) == at) {
            let words = signature.wanted(at, &types);
            if !wanted.contains(&words) {
                wanted.push(words);
            }
        }
        let wanted = match &wanted[..] {
            [first @ .., last] if !first.is_empty() => {
                format!("{} or {last}", first.join(", "))
            }
            _ => wanted.concat(),
        };
        let blamed = &arguments[at];
        let mut diagnostic = Diagnostic::error(
            "E0105",
            blamed.span,
            format!("`{}` does not accept `{}` here", name.name, blamed.ty),
        )
        .label(format!("expected {wanted}, found `{}`", blamed.ty));
        let both_numbers = types.len() == 2 && types.iter().all(|ty| ty.is_number());
        let folds_record = types.len() == 1 && blamed.ty.is_number() && blamed.stage.is_private();
        if folds_record && wanted.contains("`vector`") {
            diagnostic = diagnostic.help(
                "this is one record's own value, and nothing adds up over records: a mean, sum or size that is publicly known goes into `constants`",
            );
        } else if blamed.ty == Type::MATRIX && wanted.contains("`vector`") {
            diagnostic = diagnostic.help("flatten the matrix: `to_vector(...)`");
        } else if both_numbers && (name.name == "min" || name.name == "max") {
            diagnostic = diagnostic.help(format!("write `f{}` for two reals", name.name));
        } else if let (true, Some(help)) = (types.len() > 1, accepted(candidates)) {
            diagnostic = diagnostic.help(help);
        }
        self.report(diagnostic);
    }
}

/// The ways to call a function, if they are few.
fn accepted(candidates: &[Candidate]) -> Option<String> {
    if candidates.len() > SHOWN_SIGNATURES {
        return None;
    }
    let described: Vec<String> = candidates
        .iter()
        .map(|(f, s)| format!("`{}`", s.describe(f.name, f.parameters)))
        .collect();
    Some(match &described[..] {
        [one] => format!("there is {one}"),
        [first @ .., last] => format!("there are {} and {last}", first.join(", ")),
        [] => return None,
    })
}
