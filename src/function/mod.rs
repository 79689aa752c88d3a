//! The built-in functions of the language: names, signatures, values and
//! derivatives.
//!
//! This module deals only with numbers and types. The checker asks [`catalogue`] for signatures,
//! the model builds expression graphs from its entries, the density evaluates them and their
//! derivatives over blocks of rows. A scalar function is added by one entry in [`unary`]; any other
//! by one entry in [`catalogue`].

mod algebra;
pub mod catalogue;
mod composed;
mod elementary;
mod form;
mod kernel;
pub mod linear;
mod normal_tail;
mod saddle_point;
mod scaled_bessel;
pub mod signature;
pub mod special;
mod types;
pub mod unary;
#[cfg(test)]
mod unary_tests;
pub mod unrolled;

pub use algebra::{Algebra, Numbers, pick_by_comparison};
pub use catalogue::{Builtin, Function, Stages, lookup, names, overloads};
pub use composed::root;
pub(crate) use elementary::{asinh, exp, exp_m1, ln, ln_1p, sinh};
pub use form::Form;
pub use kernel::Kernel;
pub use signature::{Pattern, Signature};
pub use types::{Base, Type};
pub use unary::{DerivativeUses, Unary};

/// `log(2 pi)/2`
pub const HALF_LOG_TWO_PI: f64 = 0.918_938_533_204_672_8;
