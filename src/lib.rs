
pub mod accounting;
pub mod check;
pub mod density;
pub mod diagnostics;
pub mod distribution;
pub mod function;
pub mod model;
pub mod output;
pub mod syntax;
