//! The private generator: every bit that noise, subsampling and acceptance use.
//!
//! A ChaCha20 stream keyed by the operating system. `--seed` never reaches it;
//! only `--insecure-noise-seed` does, and then [`PrivateRng::is_secure`] says so.

use rand::rand_core::{Rng, SeedableRng, TryRng};
use rand::rngs::{SysError, SysRng};
use rand_chacha::ChaCha20Rng;
use std::fmt;

use super::not_private::NotPrivate;

/// A stream of private random bits.
///
/// # Privacy
///
/// Anyone who knows the state can subtract the noise. So the type has no `Clone` (two copies would
/// release two sums under one noise), no serialisation, and a `Debug` that shows only whether the
/// stream is secure.
///
/// Under an operating-system seed, the guarantees that the samplers prove for
/// truly uniform bits hold against anyone who cannot tell ChaCha20 from them.
/// Under [`insecure`](Self::insecure) there is no privacy.
pub struct PrivateRng {
    stream: ChaCha20Rng,
    secure: bool,
}

/// The error when no private random bits are available.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RandomnessError {
    /// The operating system provided no seed.
    #[error(
        "the operating system's random source did not answer, so no noise can be drawn; \
         check that this process may read it (getrandom, /dev/urandom) and run again"
    )]
    OperatingSystem(#[source] SysError),
}

impl PrivateRng {
    /// A stream under a new 256-bit key from the operating system.
    ///
    /// # Errors
    ///
    /// When the operating system's random source does not answer. There is no
    /// fallback: a weaker seed would be a silent loss of privacy.
    pub fn from_os() -> Result<Self, RandomnessError> {
        let mut key = [0u8; 32];
        SysRng
            .try_fill_bytes(&mut key)
            .map_err(RandomnessError::OperatingSystem)?;
        Ok(Self {
            stream: ChaCha20Rng::from_seed(key),
            secure: true,
        })
    }

    /// A stream that anyone who knows `seed` can repeat: **not private**.
    ///
    /// ```compile_fail
    /// let noise = dpm::testing::privacy::PrivateRng::insecure(1);
    /// ```
    /// ```
    /// # use dpm::testing::privacy::{NotPrivate, PrivateRng};
    /// let noise = PrivateRng::insecure(1, NotPrivate::acknowledged());
    /// assert!(!noise.is_secure());
    /// ```
    pub fn insecure(seed: u64, _: NotPrivate) -> Self {
        Self {
            stream: ChaCha20Rng::seed_from_u64(seed),
            secure: false,
        }
    }

    /// [`insecure`](Self::insecure), for the tests of this crate.
    #[cfg(test)]
    pub(crate) fn from_insecure_seed(seed: u64) -> Self {
        Self::insecure(seed, NotPrivate::acknowledged())
    }

    /// Whether the key came from the operating system. If not, whatever this
    /// stream touches must be marked NOT PRIVATE.
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// An independent stream, for chain or worker number `stream`.
    ///
    /// A secure stream's forks are keyed anew by the operating system, whatever
    /// the number. An insecure stream's fork depends on the seed and on the
    /// numbers of the forks that led to it, and not on how much was drawn before,
    /// so that a test run does not depend on how threads are scheduled. Forking
    /// an insecure stream twice by one number gives the same stream twice.
    ///
    /// # Errors
    ///
    /// As [`from_os`](Self::from_os), when this stream is secure.
    pub fn fork(&self, stream: u64) -> Result<Self, RandomnessError> {
        if self.secure {
            return Self::from_os();
        }
        // The fork's key is read from the parent's key at stream number `stream`,
        // from block 2^63 on: the parent itself stays on stream 0 and would have
        // to draw 2^69 bytes to get there. A fork has a key of its own, so forks
        // of forks do not meet either.
        let mut source = ChaCha20Rng::from_seed(self.stream.get_seed());
        source.set_stream(stream);
        source.set_word_pos(1 << 67);
        let mut key = [0u8; 32];
        source.fill_bytes(&mut key);
        Ok(Self {
            stream: ChaCha20Rng::from_seed(key),
            secure: false,
        })
    }

    /// A uniform integer in `0..n`, exactly; 0 when `n` is 0.
    ///
    /// Variable time: the number of words drawn depends on the words.
    ///
    /// # Reference
    ///
    /// Lemire 2019, "Fast random integer generation in an interval", Algorithm 5.
    /// Of the 2^64 products `word * n`, the ones with quotient q and remainder at
    /// least `2^64 mod n` (quotient and remainder of the division by 2^64) number
    /// floor(2^64 / n) for each q in `0..n`; the rest are drawn again.
    #[inline]
    pub(crate) fn uniform_below(&mut self, n: u64) -> u64 {
        if n == 0 {
            return 0;
        }
        loop {
            // At most (2^64 - 1)^2 < 2^128.
            let product = u128::from(self.next_u64()) * u128::from(n);
            let low = product as u64;
            // 2^64 mod n = (2^64 - n) mod n is below n, so a division is needed
            // only in the rare case that `low` is below n as well.
            if low >= n || low >= n.wrapping_neg() % n {
                return (product >> 64) as u64;
            }
        }
    }

    /// A fair bit.
    #[inline]
    pub fn bit(&mut self) -> bool {
        self.next_u32() >> 31 == 1
    }

    /// 32 fair bits.
    #[inline]
    pub(crate) fn next_u32(&mut self) -> u32 {
        self.stream.next_u32()
    }

    /// 64 fair bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.stream.next_u64()
    }
}

impl fmt::Debug for PrivateRng {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateRng")
            .field("secure", &self.secure)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(rng: &mut PrivateRng) -> [u64; 8] {
        std::array::from_fn(|_| rng.next_u64())
    }

    // If it failed: insecure test runs could not be repeated, or two chains would
    // share noise.
    #[test]
    fn insecure_forks_repeat_and_differ() {
        let mut root = PrivateRng::from_insecure_seed(7);
        let before = words(&mut root.fork(3).unwrap());
        let own = words(&mut root);
        let after = words(&mut root.fork(3).unwrap());
        assert_eq!(before, after, "a fork depends on what the parent drew");

        let mut streams = vec![own, before];
        for fork in [0, 1, 2, u64::MAX] {
            streams.push(words(&mut root.fork(fork).unwrap()));
            for grandchild in [0, 1, 3] {
                let mut child = root.fork(fork).unwrap().fork(grandchild).unwrap();
                streams.push(words(&mut child));
            }
        }
        streams.push(words(&mut PrivateRng::from_insecure_seed(8)));
        let count = streams.len();
        streams.sort_unstable();
        streams.dedup();
        assert_eq!(streams.len(), count, "two streams are equal");
    }

    // If it failed: anyone who reads the code could repeat the noise, or an insecure run would not
    // be marked. False alarm: 2^-512.
    #[test]
    fn secure_streams_are_new_each_time_and_say_so() {
        let mut a = PrivateRng::from_os().unwrap();
        let mut b = PrivateRng::from_os().unwrap();
        let mut c = a.fork(0).unwrap();
        let mut d = a.fork(0).unwrap();
        assert!(a.is_secure() && b.is_secure() && c.is_secure());
        assert_ne!(words(&mut a), words(&mut b));
        assert_ne!(words(&mut c), words(&mut d));
        let insecure = PrivateRng::from_insecure_seed(1);
        assert!(!insecure.is_secure() && !insecure.fork(0).unwrap().is_secure());
        assert_eq!(format!("{insecure:?}"), "PrivateRng { secure: false, .. }");
    }

    // If it failed: the low end of the lattice noise would be biased. Chi-square
    // with 9 degrees of freedom; false alarm at most 1e-9 each (Laurent and
    // Massart 2000: P(X >= d + 2 sqrt(d x) + 2 x) <= e^-x, x = 20.8); power above
    // 0.999 against one value 10% too rare (non-centrality 300, threshold 78).
    #[test]
    fn uniform_below_is_uniform() {
        let mut rng = PrivateRng::from_insecure_seed(11);
        // n = 10 itself, and as the top digit of a number for which the rejection rate is high.
        let stride = (1u64 << 60) + 12_345;
        for n in [10, 10 * stride] {
            let mut counts = [0u32; 10];
            let draws = 300_000;
            for _ in 0..draws {
                let value = rng.uniform_below(n);
                assert!(value < n);
                counts[(value / (n / 10)) as usize] += 1;
            }
            let expected = f64::from(draws) / 10.0;
            let statistic: f64 = counts
                .iter()
                .map(|&c| (f64::from(c) - expected).powi(2) / expected)
                .sum();
            let threshold = 9.0 + 2.0 * (9.0f64 * 20.8).sqrt() + 2.0 * 20.8;
            assert!(statistic < threshold, "n = {n}: {statistic} >= {threshold}");
        }
    }

    // If it failed: words that must be drawn again would be used. At n = 3/4 2^64 they
    // are a quarter of all words, and residue 0 mod 3 would come half of the time.
    // False alarm 1e-9 (6.2 deviations); that error is 110 deviations.
    #[test]
    fn surplus_words_are_drawn_again() {
        let mut rng = PrivateRng::from_insecure_seed(13);
        let draws = 100_000;
        let zeros = (0..draws)
            .filter(|_| rng.uniform_below(3 << 62).is_multiple_of(3))
            .count();
        let n = f64::from(draws);
        let deviation = (n * 2.0 / 9.0).sqrt();
        assert!((zeros as f64 - n / 3.0).abs() < 6.2 * deviation, "{zeros}");
    }

    // If it failed: an edge of the range would panic, loop or leave the range.
    #[test]
    fn uniform_below_at_the_edges() {
        let mut rng = PrivateRng::from_insecure_seed(12);
        assert_eq!(rng.uniform_below(0), 0);
        assert_eq!(rng.uniform_below(1), 0);
        for n in [3, (1 << 32) + 1, (1 << 63) + 1, u64::MAX] {
            for _ in 0..1000 {
                assert!(rng.uniform_below(n) < n);
            }
        }
    }
}
