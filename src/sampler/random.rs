//! Public randomness.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// The public generator of a chain: its own stream of the seed's generator.
pub(crate) fn public_rng(seed: u64, chain: usize) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(chain as u64 + 1);
    rng
}

/// Uniform on (-2, 2) in each coordinate, as Stan's initial points.
pub(crate) fn random_point(dimension: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
    (0..dimension)
        .map(|_| rng.random_range(-2.0..2.0))
        .collect()
}

/// Standard normal deviates.
pub(crate) fn normals(d: usize, rng: &mut ChaCha8Rng) -> Vec<f64> {
    (0..d).map(|_| StandardNormal.sample(rng)).collect()
}
