//! dpm's noise sampler, from its own sources, without the rest of dpm.

#[path = "../../../../src/privacy/noise.rs"]
pub mod noise;
#[path = "../../../../src/privacy/not_private.rs"]
pub mod not_private;
#[path = "../../../../src/privacy/randomness.rs"]
pub mod randomness;
