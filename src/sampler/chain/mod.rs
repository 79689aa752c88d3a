//! Chains: their iterations, warm-up and checkpoints, and the oracle that answers them.

pub mod adaptation;
pub mod barker_correction;
pub mod checkpoint;
pub mod draw;
pub mod exact_number;
pub mod private_oracle;
pub mod run;
pub mod warmup;
