//! Data and starting points of the paper's published code, made from its seeds.
//!
//! The code (github.com/DPBayes/DP-HMC-experiments) draws with JAX 0.2.13, whose generator is
//! Threefry-2x32 with 20 rounds (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2,
//! 3") under a counter. It is a dozen lines, and having it means that our runs are on the very
//! records that the published numbers are about.

use statrs::function::erf::erf_inv;

/// The seed of the banana's records.
const BANANA: u64 = 43_247;
/// The seed of the Gaussian's records. Its covariance has seed 43235667; its eigenvalues come
/// from that version's gamma variates, and it is kept as a file.
const GAUSS: u64 = 4_627_290;
/// The seed of the first starting point; the others' follow one by one.
const FIRST_START: u64 = 4_236_482;

/// Standard normal deviates of `n` records, one vector for each of the two columns.
pub fn banana(n: usize) -> [Vec<f64>; 2] {
    let keys = Key::new(BANANA).split(3);
    [keys[0].normals(n), keys[1].normals(n)]
}

/// Standard normal deviates of `n` records of `d` numbers each, by records.
pub fn gauss(n: usize, d: usize) -> Vec<Vec<f64>> {
    let all = Key::new(GAUSS).normals(n * d);
    all.chunks(d).map(<[f64]>::to_vec).collect()
}

/// Standard normal deviates of the starting point of a chain, counted from 0 over all repeats.
pub fn start(chain: u64, d: usize) -> Vec<f64> {
    Key::new(FIRST_START + chain).normals(d)
}

/// A key of the generator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key([u32; 2]);

impl Key {
    fn new(seed: u64) -> Key {
        Key(halves(seed))
    }

    fn split(self, n: usize) -> Vec<Key> {
        let words = self.words(2 * n);
        words
            .chunks(2)
            .map(|pair| Key([pair[0], pair[1]]))
            .collect()
    }

    fn normals(self, n: usize) -> Vec<f64> {
        let words = self.words(2 * n);
        let (high, low) = words.split_at(n);
        let bits = |(&high, &low): (&u32, &u32)| u64::from(high) << 32 | u64::from(low);
        let pairs = high.iter().zip(low).map(bits);
        pairs.map(|bits| normal(uniform(bits))).collect()
    }

    /// The first `n` words of the stream, `n` even: the counter's first half and its second go
    /// through the cipher in pairs.
    fn words(self, n: usize) -> Vec<u32> {
        let half = (n / 2) as u32;
        let pairs: Vec<[u32; 2]> = (0..half).map(|i| self.encrypt([i, half + i])).collect();
        let first = pairs.iter().map(|pair| pair[0]);
        first.chain(pairs.iter().map(|pair| pair[1])).collect()
    }

    fn encrypt(self, counter: [u32; 2]) -> [u32; 2] {
        const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
        let [k0, k1] = self.0;
        let keys = [k0, k1, k0 ^ k1 ^ 0x1BD1_1BDA];
        let mut x = [counter[0].wrapping_add(k0), counter[1].wrapping_add(k1)];
        for group in 0..5 {
            for rotation in ROTATIONS[group % 2] {
                x[0] = x[0].wrapping_add(x[1]);
                x[1] = x[1].rotate_left(rotation) ^ x[0];
            }
            x[0] = x[0].wrapping_add(keys[(group + 1) % 3]);
            let injected = keys[(group + 2) % 3].wrapping_add(group as u32 + 1);
            x[1] = x[1].wrapping_add(injected);
        }
        x
    }
}

/// The higher and the lower half.
fn halves(x: u64) -> [u32; 2] {
    [(x >> 32) as u32, x as u32]
}

/// On (-1, 1), from the upper 52 bits.
fn uniform(bits: u64) -> f64 {
    let lowest = (-1f64).next_up();
    let unit = f64::from_bits(bits >> 12 | 1f64.to_bits()) - 1.0;
    (unit * (1.0 - lowest) + lowest).max(lowest)
}

fn normal(uniform: f64) -> f64 {
    std::f64::consts::SQRT_2 * erf_inv(uniform)
}

#[cfg(test)]
mod tests {
    use super::*;

    // If it failed: another generator. Oracle: the known answers that come with Random123,
    // the generator's own code (threefry2x32, 20 rounds).
    #[test]
    fn known_answers_of_the_cipher() {
        let cases = [
            ([0; 2], [0; 2], [0x6b20_0159, 0x99ba_4efe]),
            ([u32::MAX; 2], [u32::MAX; 2], [0x1cb9_96fc, 0xbb00_2be7]),
            (
                [0x1319_8a2e, 0x0370_7344],
                [0x243f_6a88, 0x85a3_08d3],
                [0xc492_3a9c, 0x483d_f7a0],
            ),
        ];
        for (key, counter, answer) in cases {
            assert_eq!(Key(key).encrypt(counter), answer);
        }
    }

    // If it failed: other records or starts than the published code's. Oracle: JAX 0.10.2 in
    // double precision with `jax_threefry_partitionable` off, the same calls.
    #[test]
    fn the_numbers_of_the_published_code() {
        let [first, second] = banana(100_000);
        let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
        assert!((mean(&first) - 0.002_981_116_978_986_623_3).abs() < 1e-15);
        assert!((mean(&second) + 0.001_322_695_620_594_721_3).abs() < 1e-15);
        let near = |made: f64, of_jax: f64| assert!((made - of_jax).abs() < 1e-8, "{made}");
        near(first[0], 0.166_324_58);
        near(second[99_999], 0.665_923_49);
        let records = gauss(100_000, 10);
        near(records[0][0], -1.393_673_13);
        near(records[0][2], -0.448_887_91);
        near(records[99_999][9], 0.864_174_091_031_843);
        near(start(0, 2)[0], -0.284_761_55);
        near(start(39, 2)[1], -0.402_773_3);
        near(start(39, 10)[9], 1.301_364_73);
    }
}
