//! A program with its constants: whether they fit, and how far a record can move each statement of
//! the likelihood.

use std::collections::HashSet;
use std::path::Path;

use crate::check::examine;
use crate::model::{Constants, Model, in_words};
use crate::syntax::{Diagnostic, Span};

/// The program bound to its constants, which are in the file next to it; `None` where it has errors,
/// or where there is no such file and it declares some.
pub(super) fn bind(source: &str, path: Option<&Path>) -> Option<Result<Model, Diagnostic>> {
    let checked = examine(source).checked?;
    let beside = path.map(Constants::beside).filter(|file| file.exists());
    let constants = match beside {
        Some(file) => match Constants::from_file(&file) {
            Ok(constants) => constants,
            Err(error) => {
                let first = checked.constants.first();
                let place = first.map_or(Span::new(0, 0), |&id| checked.variable(id).span);
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                let message = format!("the constants `{name}`: {error}");
                return Some(Err(Diagnostic::error("E0300", place, message)));
            }
        },
        None if checked.constants.is_empty() => Constants::none(),
        None => return None,
    };
    Some(Model::bind(&checked, &constants).map_err(|e| e.diagnostic()))
}

/// The hint that an editor shows behind a statement.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hint {
    /// The end of the statement.
    pub at: usize,
    pub label: String,
    pub lines: Vec<String>,
}

/// The derived sensitivity of each statement of the likelihood.
pub(super) fn hints(model: &Model) -> Vec<Hint> {
    let mut seen: HashSet<Span> = HashSet::new();
    let statements = model.sensitivity().statements.into_iter();
    statements
        .filter(|s| seen.insert(s.span))
        .map(|s| Hint {
            at: s.span.end,
            label: match &s.derived {
                Ok(bound) => format!("sensitivity \u{2264} {:.4}", bound.norm),
                Err(_) => "no bound".to_owned(),
            },
            lines: in_words(&s.derived),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "\
constants { real s; }
record { int<lower=0, upper=1> y; real<lower=-1, upper=1> x; }
parameters { real a; real b; }
model { a ~ normal(0, s); b ~ normal(0, s); y ~ bernoulli_logit(a + b * x); x ~ normal(a, 1); }
";

    #[test]
    fn statements_of_the_likelihood_have_bounds_where_constants_are_known() {
        assert!(bind(PROGRAM, None).is_none() && bind("model {", None).is_none());
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("m.dpm");
        std::fs::write(folder.path().join("m.constants.json"), "{\"s\": 2}").expect("a file");
        let model = bind(PROGRAM, Some(&path))
            .expect("constants")
            .expect("they fit");
        let hints = hints(&model);
        let labels: Vec<&str> = hints.iter().map(|h| h.label.as_str()).collect();
        assert_eq!(labels, ["sensitivity \u{2264} 1.4142", "no bound"]);
        assert!(PROGRAM[..hints[0].at].ends_with("b * x);"));
        std::fs::write(folder.path().join("m.constants.json"), "{}").expect("a file");
        let said = bind(PROGRAM, Some(&path))
            .expect("constants")
            .expect_err("one is missing");
        assert_eq!(said.code, "E0300");
        std::fs::write(folder.path().join("m.constants.json"), "{\"s\": ").expect("a file");
        let said = bind(PROGRAM, Some(&path))
            .expect("constants")
            .expect_err("they cannot be read");
        assert!(
            said.message.contains("m.constants.json"),
            "{}",
            said.message
        );
        assert_eq!(&PROGRAM[said.span.range()], "s");
    }
}
