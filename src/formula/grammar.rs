//! The rules of formulas, as `grammar/formula.pest` has them.

#[derive(pest_derive::Parser)]
#[grammar = "../grammar/formula.pest"]
pub(super) struct Grammar;
