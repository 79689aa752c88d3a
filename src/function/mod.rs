//! The built-in functions of the language: names, values and derivatives.
//!
//! This room knows numbers only. The checker asks it for signatures, the model
//! builds expression graphs from its entries, the density evaluates them and
//! their derivatives over blocks of rows. A scalar function is added by one
//! entry in [`unary`]; a function of containers by one entry in [`catalogue`].

mod algebra;
pub mod catalogue;
pub mod special;
pub mod unary;

pub use algebra::{Algebra, Numbers};
pub use catalogue::{Builtin, Elementwise2, Reduction, Shaping, lookup, names};
pub use unary::{DerivativeUses, Unary, UnaryDefinition};
