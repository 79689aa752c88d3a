//! The rules of the language, as `grammar/dpm.pest` has them.

#[derive(pest_derive::Parser)]
#[grammar = "../grammar/dpm.pest"]
pub(super) struct Grammar;
