//! Where chains begin.

use rand_chacha::ChaCha8Rng;

use crate::density::Density;
use crate::sampler::contract::oracle::SampleError;
use crate::sampler::random::random_point;

/// Where chains start, on the unconstrained scale.
#[derive(Debug, Clone)]
pub enum Initial {
    /// Uniform on (-2, 2), as Stan does, until the public part is finite.
    Random,
    /// One point for all chains, or one per chain.
    Points(Vec<Vec<f64>>),
}

/// The point at which a chain begins.
pub(crate) fn start(
    initial: &Initial,
    chain: usize,
    density: &Density,
    rng: &mut ChaCha8Rng,
) -> Result<Vec<f64>, SampleError> {
    match initial {
        Initial::Points(points) => {
            let expected = density.dimension();
            let point = points.get(chain % points.len().max(1));
            let Some(point) = point.filter(|point| point.len() == expected) else {
                let found = point.map_or(0, Vec::len);
                return Err(SampleError::InitialLength { found, expected });
            };
            if density.log_prior(point).is_finite() {
                Ok(point.clone())
            } else {
                Err(SampleError::BadInitialPoint)
            }
        }
        Initial::Random => {
            for _ in 0..100 {
                let point = random_point(density.dimension(), rng);
                if density.log_prior(&point).is_finite() {
                    return Ok(point);
                }
            }
            Err(SampleError::NoInitialPoint)
        }
    }
}
