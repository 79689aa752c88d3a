//! Chains: their iterations, warm-up and checkpoints, and where answers come from.

pub mod adaptation;
pub mod barker_correction;
pub mod checkpoint;
pub mod exact_number;
pub mod private_oracle;
pub mod run;
pub mod warmup;
