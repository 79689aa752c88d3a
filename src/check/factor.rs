//! `factor("north", "south") region;`: a record column of words, read as an int
//! 1..K.
//!
//! The levels are in the model, since levels read from the data would reveal which of them occur.

use super::scope::Checker;
use super::typed::*;
use crate::syntax::{Diagnostic, SizedType, Span};

impl Checker {
    /// The bounds of a factor, 1 and K; reports errors in its levels and its place.
    pub(super) fn factor_bounds(&mut self, ty: &SizedType, role: Role) -> [Option<Expr>; 2] {
        let count = ty.levels.len();
        if role != Role::Record {
            self.report(
                Diagnostic::error("E0140", ty.span, "a `factor` is a column of `record`")
                    .label(format!("this would be {}", role.description()))
                    .help(format!("write `int<lower=1, upper={count}>`")),
            );
        }
        for (k, level) in ty.levels.iter().enumerate() {
            let name = level.value.as_str();
            if name.trim() != name || name.is_empty() {
                self.report(
                    Diagnostic::error("E0141", level.span, "no cell can hold this level")
                        .label("empty, or with white space around it")
                        .help("cells are read without the white space around them, and an empty one is a missing value"),
                );
            } else if let Some(first) = ty.levels[..k].iter().find(|l| l.value == name) {
                self.report(
                    Diagnostic::error("E0141", level.span, "a level is named once")
                        .label("again here")
                        .note(first.span, "named here first"),
                );
            }
        }
        [1, count].map(|level| (role == Role::Record).then(|| whole(level, ty.span)))
    }
}

fn whole(value: usize, span: Span) -> Expr {
    Expr {
        kind: ExprKind::Int(value as i64),
        ty: Type::INT,
        stage: Stage::Constant,
        span,
    }
}
