//! Text to syntax tree.
//!
//! [`parse`] reads a whole program, says everything that is wrong with it, and
//! gives the tree of what it understood, so that the checker can go on. Every
//! node knows its [`Span`]. [`render`] shows diagnostics as a compiler does.
//!
//! How it works, in the order of the files: [`tree`] is the result.
//! `grammar/dpm.pest` reads; `expression`, `declaration`, `statement` and `block`
//! turn what it read into the tree. When it cannot read on, `tokens` and
//! `brackets` know the surroundings, `explain` says what is wrong and how to
//! mend it in the `draft`, and `parse` tries again with the mended draft. `format`
//! writes a program that was read in the one form that all have, and `highlight` tells
//! its words apart for whoever shows them. `opening` tells programs from data that were given
//! in the place of one.

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
