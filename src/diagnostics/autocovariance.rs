//! Autocovariances of several chains, averaged over the chains.

use std::f64::consts::TAU;

use super::moments::mean_of;

/// Lags below this are summed directly: a well-mixed chain needs only a few. The first lag past it
/// causes one transform, which then gives all the others.
const DIRECT_LAGS: usize = 64;

/// Mean over chains of the biased autocovariance
/// γ(t) = (1/n) Σᵢ (xᵢ - x̄)(xᵢ₊ₜ - x̄), each chain about its own mean.
pub(super) struct MeanAutocovariance {
    centred: Vec<Vec<f64>>,
    /// γ at every lag below n; empty until a far lag is needed.
    transformed: Vec<f64>,
}

impl MeanAutocovariance {
    /// The autocovariances of chains of equal length.
    pub(super) fn of(chains: &[Vec<f64>]) -> Self {
        let centre = |chain: &Vec<f64>| {
            let mean = mean_of(chain);
            chain.iter().map(|x| x - mean).collect()
        };
        let centred = chains.iter().map(centre).collect();
        Self {
            centred,
            transformed: Vec::new(),
        }
    }

    /// γ(`lag`); zero at and past the length of a chain.
    pub(super) fn at(&mut self, lag: usize) -> f64 {
        if lag < DIRECT_LAGS {
            return self.direct(lag);
        }
        if self.transformed.is_empty() {
            self.transformed = by_transform(&self.centred);
        }
        self.transformed.get(lag).copied().unwrap_or(0.0)
    }

    fn direct(&self, lag: usize) -> f64 {
        let of_chain = |chain: &Vec<f64>| {
            let later = chain.get(lag..).unwrap_or_default();
            chain.iter().zip(later).map(|(x, y)| x * y).sum::<f64>() / chain.len() as f64
        };
        self.centred.iter().map(of_chain).sum::<f64>() / self.centred.len() as f64
    }
}

/// Wiener-Khinchin: γ is the inverse transform of the power spectrum, of chains padded
/// with as many zeros so that lags do not wrap around. Two chains share a transform as
/// real and imaginary part: the real part of the complex autocovariance is the sum of theirs.
fn by_transform(centred: &[Vec<f64>]) -> Vec<f64> {
    let n = centred.first().map_or(0, Vec::len);
    let size = (2 * n).next_power_of_two();
    let mut power = vec![Complex::default(); size];
    for pair in centred.chunks(2) {
        let mut z = vec![Complex::default(); size];
        for (z, &x) in z.iter_mut().zip(&pair[0]) {
            z.re = x;
        }
        for (z, &x) in z.iter_mut().zip(pair.get(1).into_iter().flatten()) {
            z.im = x;
        }
        fourier_transform(&mut z);
        for (sum, z) in power.iter_mut().zip(&z) {
            sum.re += z.re * z.re + z.im * z.im;
        }
    }
    // A forward transform in place of the inverse one conjugates the result: its real part is the same.
    fourier_transform(&mut power);
    let scale = 1.0 / (size as f64 * n as f64 * centred.len() as f64);
    power.iter().take(n).map(|z| z.re * scale).collect()
}

#[derive(Clone, Copy, Default)]
struct Complex {
    re: f64,
    im: f64,
}

/// In-place radix-2 transform X_k = Σ_j x_j exp(-2πi jk/N), for N a power of two
/// (Cooley and Tukey 1965), with each root of unity computed directly so that errors stay near
/// rounding.
fn fourier_transform(x: &mut [Complex]) {
    let size = x.len();
    if size < 2 {
        return;
    }
    let shift = usize::BITS - size.trailing_zeros();
    for i in 0..size {
        let j = i.reverse_bits() >> shift;
        if i < j {
            x.swap(i, j);
        }
    }
    let root = |k: usize| {
        let (sin, cos) = (-TAU * k as f64 / size as f64).sin_cos();
        Complex { re: cos, im: sin }
    };
    let roots: Vec<Complex> = (0..size / 2).map(root).collect();
    let mut half = 1;
    while half < size {
        let stride = size / (2 * half);
        for block in x.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for (k, (a, b)) in low.iter_mut().zip(high).enumerate() {
                let w = roots[k * stride];
                let turned = Complex {
                    re: w.re * b.re - w.im * b.im,
                    im: w.re * b.im + w.im * b.re,
                };
                *b = Complex {
                    re: a.re - turned.re,
                    im: a.im - turned.im,
                };
                *a = Complex {
                    re: a.re + turned.re,
                    im: a.im + turned.im,
                };
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums and the transform must agree, for even and odd numbers of chains and lengths that are
    /// not a power of two.
    #[test]
    fn transform_and_sum_agree_at_every_lag() {
        for (chains, n) in [(1, 3), (2, 64), (3, 101), (4, 250)] {
            let draw = |c: usize, i: usize| ((c * 31 + i * i * 7) % 97) as f64 + i as f64 * 0.01;
            let chains: Vec<Vec<f64>> = (0..chains)
                .map(|c| (0..n).map(|i| draw(c, i)).collect())
                .collect();
            let sums = MeanAutocovariance::of(&chains);
            let transformed = by_transform(&sums.centred);
            assert_eq!(transformed.len(), n);
            for (lag, value) in transformed.iter().enumerate() {
                let direct = sums.direct(lag);
                assert!(
                    (value - direct).abs() < 1e-12 * sums.direct(0),
                    "lag {lag} of {n}"
                );
            }
        }
    }

    #[test]
    fn past_the_end_it_is_zero() {
        let mut short = MeanAutocovariance::of(&[vec![1.0, 2.0, 4.0]]);
        assert_eq!((short.at(3), short.at(1000)), (0.0, 0.0));
    }
}
