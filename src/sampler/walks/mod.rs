//! Samplers that propose at random and accept or reject.

pub mod dp_barker;
pub mod dp_penalty;
pub mod rwmh;
