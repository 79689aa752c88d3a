//! The built-in functions of the language: names, values and derivatives.
//!
//! This room knows numbers only. The checker asks it for signatures, the model
//! builds expression graphs from its entries, the density evaluates them and
//! their derivatives over blocks of rows. A scalar function is added by one
//! entry in [`unary`]; a function of containers by one entry in [`catalogue`].

mod algebra;
pub mod catalogue;
mod normal_tail;
mod saddle_point;
mod scaled_bessel;
pub mod special;
pub mod unary;
#[cfg(test)]
mod unary_tests;

pub use algebra::{Algebra, Numbers, pick_by_comparison};
pub use catalogue::{Builtin, Elementwise2, Reduction, Shaping, lookup, names};
pub use unary::{DerivativeUses, Unary, UnaryDefinition};

/// `log(2 pi)/2`
pub const HALF_LOG_TWO_PI: f64 = 0.918_938_533_204_672_8;
