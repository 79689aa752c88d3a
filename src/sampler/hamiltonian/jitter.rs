//! Step-size jitter from a randomised Halton sequence.

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

/// Values in (0, 1], evenly spread, that do not depend on the chain.
///
/// Without jitter a Hamiltonian trajectory can keep returning to where it
/// started. The sequence is van der Corput's (Halton's in base 2), shifted by a
/// random amount (Owen 2017, "A randomized Halton algorithm in R").
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Jitter {
    shift: f64,
    index: u64,
}

impl Jitter {
    pub fn new(rng: &mut impl Rng) -> Self {
        Jitter {
            shift: rng.random(),
            index: 0,
        }
    }

    pub fn next(&mut self) -> f64 {
        let radical_inverse = self.index.reverse_bits() as f64 / 2f64.powi(64);
        self.index += 1;
        1.0 - (radical_inverse + self.shift).fract()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    #[test]
    fn fills_the_unit_interval_evenly() {
        let mut jitter = Jitter::new(&mut ChaCha8Rng::seed_from_u64(1));
        let values: Vec<f64> = (0..64).map(|_| jitter.next()).collect();
        assert!(values.iter().all(|&v| v > 0.0 && v <= 1.0));
        let mut cells = [0; 16];
        for v in values {
            cells[((v * 16.0).ceil() as usize - 1).min(15)] += 1;
        }
        assert!(cells.iter().all(|&c| c == 4), "{cells:?}");
    }
}
