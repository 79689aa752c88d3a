//! What can be known of a run before the data is there, from records made up from the
//! model.
//!
//! Parameters come from the prior, or are a public guess; records are drawn from the model
//! at them. Nothing here has seen a row, so nothing here costs privacy.

mod simulation;

pub use simulation::{Prediction, Simulation};
