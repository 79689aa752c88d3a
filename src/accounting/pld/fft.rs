//! A discrete Fourier transform whose error is known.
//!
//! Radix 2, with the frequencies left in bit-reversed order: forwards by decimation in
//! frequency, back by decimation in time, so that no permutation is needed. Pointwise
//! work does not mind the order; [`partner`] finds the conjugate frequency in it.
//!
//! # Reference
//!
//! Higham (2002), Accuracy and Stability of Numerical Algorithms, Theorem 24.2: with
//! twiddle factors good to mu, the computed transform of x is within a relative
//! log2(n) eta / (1 - log2(n) eta) of the true one in the Euclidean norm, where
//! eta = mu + gamma_4 (sqrt 2 + mu), gamma_4 = 4u/(1 - 4u) and u = 2^-53. A library
//! would be faster, and its error would be a guess.

use std::f64::consts::PI;

/// u = 2^-53.
pub(super) const UNIT_ROUNDOFF: f64 = f64::EPSILON / 2.0;

/// eta / u with mu = 4u: a sine or cosine of an angle up to pi/4 is good to 2u.
const STAGE_ERROR: f64 = 10.0;

/// The transform of one size, a power of two, at least 4.
pub(super) struct Fft {
    size: usize,
    /// For each block size m = size, size/2, ..., 4: e^(-2 pi i j / m) for j < m/2.
    cosines: Vec<Vec<f64>>,
    sines: Vec<Vec<f64>>,
}

impl Fft {
    pub(super) fn new(size: usize) -> Fft {
        let (mut cosines, mut sines) = (Vec::new(), Vec::new());
        let (mut cosine, mut sine): (Vec<f64>, Vec<f64>) =
            (0..size / 2).map(|j| unit_root(j, size)).unzip();
        while cosine.len() > 1 {
            let every_second = |all: &[f64]| all.iter().copied().step_by(2).collect::<Vec<_>>();
            let smaller = (every_second(&cosine), every_second(&sine));
            cosines.push(cosine);
            sines.push(sine);
            (cosine, sine) = smaller;
        }
        Fft {
            size,
            cosines,
            sines,
        }
    }

    /// A bound on the Euclidean norm of the error of either transform, relative to the
    /// norm of the true result.
    pub(super) fn relative_error(&self) -> f64 {
        1.01 * STAGE_ERROR * UNIT_ROUNDOFF * f64::from(self.size.trailing_zeros())
    }

    /// X_j = sum of x_k e^(-2 pi i j k / n), X in bit-reversed order.
    pub(super) fn forward(&self, re: &mut [f64], im: &mut [f64]) {
        let mut block = self.size;
        for (cosine, sine) in self.cosines.iter().zip(&self.sines) {
            for (re, im) in re.chunks_exact_mut(block).zip(im.chunks_exact_mut(block)) {
                let (re_low, re_high) = re.split_at_mut(block / 2);
                let (im_low, im_high) = im.split_at_mut(block / 2);
                let low = re_low.iter_mut().zip(im_low);
                let high = re_high.iter_mut().zip(im_high);
                for (((a, b), (c, d)), (cos, sin)) in low.zip(high).zip(cosine.iter().zip(sine)) {
                    let (x, y) = (*a - *c, *b - *d);
                    *a += *c;
                    *b += *d;
                    *c = x * cos - y * sin;
                    *d = x * sin + y * cos;
                }
            }
            block /= 2;
        }
        sum_and_difference(re);
        sum_and_difference(im);
    }

    /// The inverse of [`Fft::forward`] but for the factor 1/n.
    pub(super) fn backward(&self, re: &mut [f64], im: &mut [f64]) {
        sum_and_difference(re);
        sum_and_difference(im);
        let mut block = 4;
        for (cosine, sine) in self.cosines.iter().zip(&self.sines).rev() {
            for (re, im) in re.chunks_exact_mut(block).zip(im.chunks_exact_mut(block)) {
                let (re_low, re_high) = re.split_at_mut(block / 2);
                let (im_low, im_high) = im.split_at_mut(block / 2);
                let low = re_low.iter_mut().zip(im_low);
                let high = re_high.iter_mut().zip(im_high);
                for (((a, b), (c, d)), (cos, sin)) in low.zip(high).zip(cosine.iter().zip(sine)) {
                    let (x, y) = (*c * cos + *d * sin, *d * cos - *c * sin);
                    *c = *a - x;
                    *d = *b - y;
                    *a += x;
                    *b += y;
                }
            }
            block *= 2;
        }
    }
}

/// The place of frequency -j, where `place` is that of frequency j: the highest bit
/// set stays and those below it are flipped.
pub(super) fn partner(place: usize) -> usize {
    match place.checked_ilog2() {
        Some(bit) => place ^ ((1 << bit) - 1),
        None => place,
    }
}

/// The blocks of two, whose twiddle factor is 1.
fn sum_and_difference(values: &mut [f64]) {
    for pair in values.chunks_exact_mut(2) {
        if let [a, b] = pair {
            (*a, *b) = (*a + *b, *a - *b);
        }
    }
}

/// e^(-2 pi i j / n) for 0 <= j < n/2, from an angle of at most pi/4.
fn unit_root(j: usize, n: usize) -> (f64, f64) {
    let eighth = n / 8;
    let (folds, rest) = if n >= 8 { (j / eighth, j % eighth) } else { (0, j) };
    let angle = |k: usize| 2.0 * PI * (k as f64 / n as f64);
    let (sin, cos) = if folds % 2 == 0 {
        angle(rest).sin_cos()
    } else {
        let (sin, cos) = angle(eighth - rest).sin_cos();
        (cos, sin)
    };
    match folds / 2 {
        0 => (cos, -sin),
        _ => (-sin, -cos),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, from -1/2 to 1/2.
    fn noise(size: usize, seed: u64) -> Vec<f64> {
        let mut state = seed;
        (0..size)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
            })
            .collect()
    }

    // Wrong here: every pmf is composed wrongly.
    #[test]
    fn it_is_the_sum_that_defines_it() {
        for size in [4, 8, 16, 64] {
            let (re, im) = (noise(size, 1), noise(size, 2));
            let (mut a, mut b) = (re.clone(), im.clone());
            Fft::new(size).forward(&mut a, &mut b);
            let bits = size.trailing_zeros();
            for place in 0..size {
                let j = place.reverse_bits() >> (usize::BITS - bits);
                let (mut x, mut y) = (0.0, 0.0);
                for k in 0..size {
                    let (sin, cos) = (-2.0 * PI * (j * k % size) as f64 / size as f64).sin_cos();
                    x += re[k] * cos - im[k] * sin;
                    y += re[k] * sin + im[k] * cos;
                }
                assert!((x - a[place]).abs() + (y - b[place]).abs() < 1e-13);
                let partner = partner(place).reverse_bits() >> (usize::BITS - bits);
                assert_eq!((j + partner) % size, 0);
            }
        }
    }

    // There and back is two transforms: within twice the stated error.
    #[test]
    fn there_and_back_is_within_the_stated_error() {
        for size in [4, 1 << 10, 1 << 15] {
            let fft = Fft::new(size);
            let (re, im) = (noise(size, 3), noise(size, 4));
            let (mut a, mut b) = (re.clone(), im.clone());
            fft.forward(&mut a, &mut b);
            fft.backward(&mut a, &mut b);
            let square = |x: f64| x * x;
            let (mut error, mut norm) = (0.0, 0.0);
            for k in 0..size {
                error += square(a[k] / size as f64 - re[k]) + square(b[k] / size as f64 - im[k]);
                norm += square(re[k]) + square(im[k]);
            }
            let relative = (error / norm).sqrt();
            assert!(relative < 2.0 * fft.relative_error(), "{size} {relative:e}");
        }
    }
}
