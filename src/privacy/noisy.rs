//! Values that have left the vault under a charged release.

/// A value that already contains its noise.
///
/// Only the vault can make one, so a function that takes `Noisy` values and
/// public numbers is post-processing: it costs nothing more, whatever it does
/// (docs/proofs.md, section 17).
#[derive(Debug, Clone)]
pub struct Noisy<T>(T);

impl<T> Noisy<T> {
    pub(super) fn new(value: T) -> Self {
        Noisy(value)
    }

    /// The released value.
    pub fn get(&self) -> &T {
        &self.0
    }

    pub fn into_inner(self) -> T {
        self.0
    }
}
