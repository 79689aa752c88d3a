//! The acknowledgement that a run is not private.

/// Declares that exact values may leave the vault, or that noise may be known, because the user
/// asked for a run without privacy. Code that makes one must mark every output NOT PRIVATE.
#[derive(Debug, Clone, Copy)]
pub struct NotPrivate(());

impl NotPrivate {
    /// The user gave `--not-private` or `--insecure-noise-seed` (or an embedding program made this
    /// call).
    pub fn acknowledged() -> Self {
        NotPrivate(())
    }
}
