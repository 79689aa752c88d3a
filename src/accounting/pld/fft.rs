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
        self.forward_from(0, re, im);
    }

    /// The inverse of [`Fft::forward`] but for the factor 1/n.
    pub(super) fn backward(&self, re: &mut [f64], im: &mut [f64]) {
        self.backward_from(0, re, im);
    }

    /// The stages from the `level`-th on, of one block; two at a time, and depth first, so
    /// that small blocks stay in the cache.
    fn forward_from(&self, level: usize, re: &mut [f64], im: &mut [f64]) {
        let (Some(outer), inner) = (self.stage(level), self.stage(level + 1)) else {
            sum_and_difference(re);
            sum_and_difference(im);
            return;
        };
        let Some(inner) = inner else {
            one_forward(re, im, outer);
            sum_and_difference(re);
            sum_and_difference(im);
            return;
        };
        let quarter = re.len() / 4;
        {
            let ([a, b, c, d], [e, f, g, h]) = (quarters(re), quarters(im));
            let (outer_re, outer_im) = (&outer.0[..quarter], &outer.1[..quarter]);
            let (inner_re, inner_im) = (&inner.0[..quarter], &inner.1[..quarter]);
            for j in 0..quarter {
                let (cos, sin) = (outer_re[j], outer_im[j]);
                let (s0, t0) = (a[j] + c[j], e[j] + g[j]);
                let (s1, t1) = (b[j] + d[j], f[j] + h[j]);
                let (x, y) = (a[j] - c[j], e[j] - g[j]);
                let (d0, e0) = (x * cos - y * sin, x * sin + y * cos);
                // The twiddle factor a quarter further on is -i times this one.
                let (x, y) = (b[j] - d[j], f[j] - h[j]);
                let (d1, e1) = (x * sin + y * cos, y * sin - x * cos);
                let (cos, sin) = (inner_re[j], inner_im[j]);
                a[j] = s0 + s1;
                e[j] = t0 + t1;
                let (x, y) = (s0 - s1, t0 - t1);
                b[j] = x * cos - y * sin;
                f[j] = x * sin + y * cos;
                c[j] = d0 + d1;
                g[j] = e0 + e1;
                let (x, y) = (d0 - d1, e0 - e1);
                d[j] = x * cos - y * sin;
                h[j] = x * sin + y * cos;
            }
        }
        for (re, im) in re
            .chunks_exact_mut(quarter)
            .zip(im.chunks_exact_mut(quarter))
        {
            self.forward_from(level + 2, re, im);
        }
    }

    fn backward_from(&self, level: usize, re: &mut [f64], im: &mut [f64]) {
        let (Some(outer), inner) = (self.stage(level), self.stage(level + 1)) else {
            sum_and_difference(re);
            sum_and_difference(im);
            return;
        };
        let Some(inner) = inner else {
            sum_and_difference(re);
            sum_and_difference(im);
            one_backward(re, im, outer);
            return;
        };
        let quarter = re.len() / 4;
        for (re, im) in re
            .chunks_exact_mut(quarter)
            .zip(im.chunks_exact_mut(quarter))
        {
            self.backward_from(level + 2, re, im);
        }
        let ([a, b, c, d], [e, f, g, h]) = (quarters(re), quarters(im));
        let (outer_re, outer_im) = (&outer.0[..quarter], &outer.1[..quarter]);
        let (inner_re, inner_im) = (&inner.0[..quarter], &inner.1[..quarter]);
        for j in 0..quarter {
            let (cos, sin) = (inner_re[j], inner_im[j]);
            let (x, y) = (b[j] * cos + f[j] * sin, f[j] * cos - b[j] * sin);
            let (s0, t0) = (a[j] + x, e[j] + y);
            let (s1, t1) = (a[j] - x, e[j] - y);
            let (x, y) = (d[j] * cos + h[j] * sin, h[j] * cos - d[j] * sin);
            let (d0, e0) = (c[j] + x, g[j] + y);
            let (d1, e1) = (c[j] - x, g[j] - y);
            let (cos, sin) = (outer_re[j], outer_im[j]);
            let (x, y) = (d0 * cos + e0 * sin, e0 * cos - d0 * sin);
            a[j] = s0 + x;
            e[j] = t0 + y;
            c[j] = s0 - x;
            g[j] = t0 - y;
            // Times the conjugate of -i times the factor.
            let (x, y) = (d1 * sin - e1 * cos, e1 * sin + d1 * cos);
            b[j] = s1 + x;
            f[j] = t1 + y;
            d[j] = s1 - x;
            h[j] = t1 - y;
        }
    }

    /// The twiddle factors of a stage.
    fn stage(&self, level: usize) -> Option<(&[f64], &[f64])> {
        Some((self.cosines.get(level)?, self.sines.get(level)?))
    }
}

/// The four quarters of a block.
fn quarters(values: &mut [f64]) -> [&mut [f64]; 4] {
    let quarter = values.len() / 4;
    let (low, high) = values.split_at_mut(2 * quarter);
    let (a, b) = low.split_at_mut(quarter);
    let (c, d) = high.split_at_mut(quarter);
    [a, b, &mut c[..quarter], &mut d[..quarter]]
}

/// One stage on a block of 4.
fn one_forward(re: &mut [f64], im: &mut [f64], (cosine, sine): (&[f64], &[f64])) {
    let half = re.len() / 2;
    for j in 0..half {
        let (x, y) = (re[j] - re[j + half], im[j] - im[j + half]);
        re[j] += re[j + half];
        im[j] += im[j + half];
        re[j + half] = x * cosine[j] - y * sine[j];
        im[j + half] = x * sine[j] + y * cosine[j];
    }
}

fn one_backward(re: &mut [f64], im: &mut [f64], (cosine, sine): (&[f64], &[f64])) {
    let half = re.len() / 2;
    for j in 0..half {
        let (c, d) = (re[j + half], im[j + half]);
        let (x, y) = (c * cosine[j] + d * sine[j], d * cosine[j] - c * sine[j]);
        re[j + half] = re[j] - x;
        im[j + half] = im[j] - y;
        re[j] += x;
        im[j] += y;
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
    let (folds, rest) = if n >= 8 {
        (j / eighth, j % eighth)
    } else {
        (0, j)
    };
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
                state = state
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
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
