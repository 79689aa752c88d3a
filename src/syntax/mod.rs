//! Text to syntax tree.
//!
//! [`parse`] reads a whole program, reports all its errors, and returns the tree of the parts that
//! it understood, so that the checker can continue. Every node knows its [`Span`]. [`render`] shows
//! diagnostics as a compiler does.
//!
//! How it works, in the order of the files: [`tree`] is the result.
//! `grammar/dpm.pest` reads; `expression`, `declaration`, `statement` and `block` turn its parse
//! into the tree. When it cannot continue, `tokens` and `brackets` know the surroundings, `explain`
//! says what is wrong and how to repair it in the `draft`, and `parse` tries again with the
//! repaired draft. `format` writes a program in its canonical form, and `highlight` classifies its
//! words for display. `opening` distinguishes programs from data that were given in place of one.

mod block;
mod brackets;
mod builder;
mod declaration;
mod diagnostic;
mod draft;
mod expected;
mod explain;
mod expression;
mod format;
mod grammar;
mod highlight;
mod opening;
mod parse;
mod render;
mod statement;
mod suggestion;
mod tokens;
pub mod tree;
mod unread;
mod words;

pub use diagnostic::{Diagnostic, Severity, line_column};
pub use format::{LINE_WIDTH, format};
pub use highlight::{Piece, pieces};
pub use opening::not_a_program;
pub use parse::{Parsed, parse};
pub use render::render;
pub use suggestion::did_you_mean;
pub use tree::*;
pub use words::{OPENING, is_name};
