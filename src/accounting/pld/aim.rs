//! Where an answer is thought to be.

/// Where the answer is thought to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aim {
    pub(super) ln_delta: f64,
    pub(super) epsilon: f64,
}
