//! Names, types and stages: from a syntax tree to a typed one.
//!
//! The checker is where privacy typing happens. A program that passes has a
//! target of the form prior(theta) + a sum over records, because no statement
//! can mix the two and nothing in the language folds over records.
//! Every error of a program is reported, not only the first.

mod builtin;
mod call;
mod declaration;
mod distribution;
mod expression;
mod factor;
mod index;
mod operators;
mod scope;
mod statement;
mod typed;

pub use distribution::{StandsFor, stands_for};
pub use typed::{
    Base, Checked, Expr, ExprKind, Index, Role, Stage, Statement, StatementKind, Type, Variable,
    VariableId,
};

use std::collections::HashMap;

use crate::syntax::{Block, BlockKind, Diagnostic, Program, Severity};
use scope::Checker;

/// What the checker understood, and everything it has to say about it.
pub struct CheckResult {
    /// Present when there is no error among the diagnostics.
    pub checked: Option<Checked>,
    pub diagnostics: Vec<Diagnostic>,
}

/// Checks a program.
///
/// Stages of local variables depend on every assignment to them, also on later
/// ones in a loop, so the program is walked until the stages no longer change:
/// at most three times per variable, since a stage can only rise.
pub fn check(program: &Program) -> CheckResult {
    let mut stages = HashMap::new();
    loop {
        let mut checker = Checker::new(std::mem::take(&mut stages), program);
        check_program(&mut checker, program);
        let settled = !checker.stages_changed;
        let (checked, diagnostics) = checker.finish();
        if settled {
            let failed = diagnostics.iter().any(|d| d.severity == Severity::Error);
            return CheckResult {
                checked: (!failed).then_some(checked),
                diagnostics,
            };
        }
        stages = checked
            .variables
            .iter()
            .map(|v| (v.span, v.stage))
            .collect();
    }
}

fn check_program(checker: &mut Checker, program: &Program) {
    if let Some(span) = program
        .functions_span
        .filter(|_| !program.functions.is_empty())
    {
        checker.unsupported(span, "user-defined functions", None);
    }
    for kind in BlockKind::ALL {
        if let Some(block) = program.blocks.iter().find(|b| b.kind == kind) {
            check_block(checker, block);
        }
    }
    for (kind, contents) in [
        (BlockKind::Parameters, "the unknowns to be sampled"),
        (
            BlockKind::Model,
            "the prior and the likelihood of one record",
        ),
    ] {
        if !program.blocks.iter().any(|b| b.kind == kind) {
            let keyword = kind.keyword();
            checker.report(
                Diagnostic::error(
                    "E0110",
                    crate::syntax::Span::new(program.span.end, program.span.end),
                    format!("this program has no `{keyword}` block"),
                )
                .label(format!("expected a `{keyword}` block"))
                .help(format!("add `{keyword} {{ ... }}` with {contents}")),
            );
        }
    }
}

fn check_block(checker: &mut Checker, block: &Block) {
    match block.kind {
        BlockKind::Functions => {}
        BlockKind::Constants => checker.declarations_only(block, Role::Constant),
        BlockKind::TransformedConstants => checker.transformed(block, Role::TransformedConstant),
        BlockKind::Record => checker.declarations_only(block, Role::Record),
        BlockKind::TransformedRecord => checker.transformed(block, Role::TransformedRecord),
        BlockKind::Parameters => checker.declarations_only(block, Role::Parameter),
        BlockKind::TransformedParameters => {
            checker.transformed(block, Role::TransformedParameter);
        }
        BlockKind::Model => checker.model(block),
        BlockKind::GeneratedQuantities => {
            checker.unsupported(
                block.keyword_span,
                "`generated quantities`",
                Some("leave the block out; compute it from the draws"),
            );
        }
    }
}
