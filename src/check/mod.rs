//! Names, types and stages: from a syntax tree to a typed one.
//!
//! The checker is where privacy typing happens. A program that passes has a
//! target of the form prior(theta) + a sum over records, because no statement
//! can mix the two and nothing in the language folds over records.
//! Every error of a program is reported, not only the first.

mod builtin;
mod call;
mod constraint;
mod declaration;
mod distribution;
mod draw;
mod expression;
mod factor;
mod flow;
mod function;
mod habits;
mod index;
mod latent;
mod lint;
mod operators;
mod scope;
mod stack;
mod statement;
mod typed;
mod user_call;

pub use distribution::{StandsFor, stands_for};
pub use stack::{Stack, on_deep_stack};
pub use typed::{
    Base, Checked, Expr, ExprKind, FunctionId, FunctionSignature, Index, Joint, Printed, Role,
    Stage, Statement, StatementKind, Structure, Truncation, Type, Variable, VariableId,
};

use std::rc::Rc;

use crate::syntax::{Block, BlockKind, Diagnostic, Program, Severity, not_a_program, parse};
use function::Definition;
use scope::{Checker, Known};

/// The result of the checker: the typed program and all diagnostics.
pub struct CheckResult {
    /// Present when there is no error among the diagnostics.
    pub checked: Option<Checked>,
    pub diagnostics: Vec<Diagnostic>,
    /// Every variable that was understood, in a program with errors, too.
    pub variables: Vec<Variable>,
}

/// A text, right or wrong, and everything that is said of it.
#[derive(Default)]
pub struct Examined {
    /// The parts that could be read.
    pub program: Option<Program>,
    /// Present when there is no error among the diagnostics.
    pub checked: Option<Checked>,
    /// As in [`CheckResult`].
    pub variables: Vec<Variable>,
    pub diagnostics: Vec<Diagnostic>,
    /// Whether the text does not begin like a program. It may be data, so that messages must not
    /// show it.
    pub is_foreign: bool,
}

/// Reads and checks a text.
pub fn examine(source: &str) -> Examined {
    if let Some(refusal) = not_a_program(source) {
        return Examined {
            diagnostics: vec![refusal],
            is_foreign: true,
            ..Examined::default()
        };
    }
    let parsed = parse(source);
    let mut examined = Examined {
        diagnostics: parsed.diagnostics,
        ..Examined::default()
    };
    if let Some(program) = &parsed.program {
        let result = check(program);
        examined.diagnostics.extend(result.diagnostics);
        examined.variables = result.variables;
        examined.checked = result.checked;
    }
    if examined.diagnostics.iter().any(Diagnostic::is_error) {
        examined.checked = None;
    }
    examined.program = parsed.program;
    examined
}

/// Checks a program.
///
/// Stages of local variables depend on every assignment to them, even later ones in a loop, and
/// those of functions on their results, even in recursion. So the program is walked until the
/// stages no longer change. Each can only rise, so that this ends; most programs take two or three
/// walks.
pub fn check(program: &Program) -> CheckResult {
    on_deep_stack(|| walk_until_settled(program))
}

fn walk_until_settled(program: &Program) -> CheckResult {
    let definitions = program.functions.iter().cloned().map(Definition::new);
    let definitions = Rc::new(definitions.collect());
    let mut known = Known::new();
    loop {
        let mut checker = Checker::new(known, program, &definitions);
        check_program(&mut checker, program);
        let settled = !checker.stages_changed;
        let (mut checked, mut diagnostics, found) = checker.finish();
        if settled {
            for &id in &checked.generated_quantities {
                checked.variables[id.0].stage = Stage::Parameter;
            }
            let failed = diagnostics.iter().any(|d| d.severity == Severity::Error);
            // In an incomplete program, unused names cannot be determined.
            if !failed && program.whole {
                diagnostics.extend(lint::lints(&checked));
            }
            return CheckResult {
                variables: checked.variables.clone(),
                checked: (!failed).then_some(checked),
                diagnostics,
            };
        }
        known = found;
    }
}

fn check_program(checker: &mut Checker, program: &Program) {
    checker.functions();
    for kind in BlockKind::ALL {
        if let Some(block) = program.blocks.iter().find(|b| b.kind == kind) {
            check_block(checker, block);
        }
    }
    checker.pending_functions();
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
        BlockKind::GeneratedQuantities => checker.transformed(block, Role::GeneratedQuantity),
    }
}
