//! Whole analyses for programs: what `dpm sample` does for a person, in a few calls.
//!
//! Everything that reads records here is charged to a
//! [`Session`](crate::accounting::Session) first, in whole, and gives back released values
//! only.

mod charge;
mod clip;
mod error;
mod fit;
mod generated;
mod initial;
mod own;
mod sample;

pub use clip::Clip;
pub(crate) use clip::{ClipError, choose};
pub use error::Error;
pub use fit::{Fit, SaveError};
pub use generated::GeneratedQuantities;
pub(crate) use initial::unconstrained_point;
pub use own::{Oracle, Questions};
pub use sample::{Analysis, Progress};

#[cfg(test)]
mod tests;
