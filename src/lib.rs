//! Differentially private Bayesian modelling.
pub mod accounting;
pub mod check;
pub mod cli;
pub mod density;
pub mod diagnostics;
pub mod distribution;
pub mod function;
pub mod model;
pub mod output;
pub mod privacy;
pub mod sampler;
pub mod syntax;
