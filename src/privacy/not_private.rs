//! The word that opens the door.

/// Says that exact values may leave the vault, or that noise may be known, because the user asked
/// for a run without privacy. Whoever makes one must mark every output NOT PRIVATE.
#[derive(Debug, Clone, Copy)]
pub struct NotPrivate(());

impl NotPrivate {
    /// The user gave `--not-private` or `--insecure-noise-seed` (or the embedder this very call).
    pub fn acknowledged() -> Self {
        NotPrivate(())
    }
}
