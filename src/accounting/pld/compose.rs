//! Composition in the frequency domain: product of transforms, one inverse transform.
//!
//! The upper distribution is the real part of what is transformed and the lower one its
//! imaginary part, so one transform serves both.
//!
//! With sampling nearly all mass of an event is at one node. The event is turned so that this is
//! node 0, where the transform of it is its mass at every frequency; the others alone go through
//! a transform, and the composition is turned back.
//!
//! # Error
//!
//! Event i has pmf p_i, of which r_i is not at the largest node, count T_i, true transform z_i and
//! computed transform z_i', with ||z_i' - z_i|| <= E_i = gamma sqrt(n) ||r_i|| (`fft.rs`; Euclidean
//! norms, and so each component too), and what rounds the sum with the largest node's mass. At
//! frequency j let b_ij = max(|z_ij'| + E_i, 1/2), which bounds both, and B_j = product of
//! b_ij^T_i. Replacing the factors of the product one by one,
//!
//! ```text
//! |prod z'^T - prod z^T| at j  <=  sum_i T_i |z_ij' - z_ij| B_j / b_ij
//! ```
//!
//! whose mean over j is at most (2/n) ||B|| sum_i T_i E_i by Cauchy and Schwarz: a bound
//! on the error of each mass. Powers add a relative 3u per factor, (1/n) sum |prod| <=
//! ||B||/sqrt(n), and the inverse transform gamma ||prod||/sqrt(n). The square of a
//! number below [`ROOT_OF_VANISHING`] is taken for zero, which changes no mass by as much as
//! [`VANISHED`].

use super::fft::{Fft, UNIT_ROUNDOFF, partner};
use super::pmf::TiltedPmf;

/// Numbers smaller than this have squares that are taken for zero, and so have the powers
/// that those go into: most of a long schedule's do, and numbers that underflow are slow.
const ROOT_OF_VANISHING: f64 = 1e-80;
const VANISHED: f64 = 1e-150;

/// The composition of tilted distributions, around a circle of `size` nodes.
pub(super) struct Composed {
    pub(super) upper: Vec<f64>,
    pub(super) lower: Vec<f64>,
    /// How many nodes further up the circle everything belongs.
    pub(super) turn: i64,
    /// Bounds the absolute error of each mass.
    pub(super) error: f64,
}

/// Products over the events so far, at one frequency of each conjugate pair.
struct Product {
    upper: Vec<[f64; 2]>,
    lower: Vec<[f64; 2]>,
    /// B.
    bound: Vec<f64>,
    /// Sum of T_i E_i.
    transform_error: f64,
    /// Sum of T_i.
    factors: f64,
}

pub(super) struct Composer {
    fft: Fft,
    size: usize,
    turn: i64,
    product: Product,
    re: Vec<f64>,
    im: Vec<f64>,
}

impl Composer {
    pub(super) fn new(size: usize) -> Composer {
        let kept = size / 2 + 1;
        Composer {
            fft: Fft::new(size),
            size,
            turn: 0,
            product: Product {
                upper: vec![[1.0, 0.0]; kept],
                lower: vec![[1.0, 0.0]; kept],
                bound: vec![1.0; kept],
                transform_error: 0.0,
                factors: 0.0,
            },
            re: vec![0.0; size],
            im: vec![0.0; size],
        }
    }

    /// Composes with `count` releases of one event.
    pub(super) fn add(&mut self, pmf: &TiltedPmf, count: u64) {
        self.re.fill(0.0);
        self.im.fill(0.0);
        let largest = pmf.upper.iter().enumerate();
        let largest = largest.max_by(|x, y| x.1.total_cmp(y.1));
        let spike = largest.map_or(0, |(node, _)| node);
        let at_zero = -(spike as i64);
        let mass = |masses: &[f64]| masses.get(spike).copied().unwrap_or(0.0);
        let (spike_up, spike_down) = (mass(&pmf.upper), mass(&pmf.lower));
        for (circle, masses) in [(&mut self.re, &pmf.upper), (&mut self.im, &pmf.lower)] {
            wrap(circle, masses.get(..spike).unwrap_or(&[]), at_zero);
            wrap(circle, masses.get(spike + 1..).unwrap_or(&[]), 1);
        }
        let size = self.size as i128;
        let turned = i128::from(pmf.first + spike as i64).rem_euclid(size) * i128::from(count);
        self.turn = ((i128::from(self.turn) + turned) % size) as i64;
        let square = |values: &[f64]| values.iter().map(|x| x * x).sum::<f64>();
        let norm = (square(&self.re) + square(&self.im)).sqrt();
        self.fft.forward(&mut self.re, &mut self.im);
        // In addition to the error of the transform, that of the sums of the wrapped masses, of real and
        // imaginary parts, and of all that with the spike.
        let relative = self.fft.relative_error() + 6.0 * UNIT_ROUNDOFF;
        let rounding = relative * norm + 2.0 * UNIT_ROUNDOFF * (spike_up + spike_down);
        let error = rounding * (self.size as f64).sqrt();
        let product = &mut self.product;
        product.transform_error += count as f64 * error;
        product.factors += count as f64;
        let (re, im) = (&self.re, &self.im);
        for (at, place) in kept_places(self.size).enumerate() {
            let other = partner(place);
            let (a, b) = (re[place], im[place]);
            let (c, d) = (re[other], im[other]);
            let upper = [spike_up + 0.5 * (a + c), 0.5 * (b - d)];
            let lower = [spike_down + 0.5 * (b + d), 0.5 * (c - a)];
            let largest = square(&upper).max(square(&lower)).sqrt();
            product.bound[at] *= power((largest + error).max(0.5), count);
            product.upper[at] = times(product.upper[at], complex_power(upper, count));
            product.lower[at] = times(product.lower[at], complex_power(lower, count));
        }
    }

    pub(super) fn finish(mut self) -> Composed {
        let mut bound_square = 0.0;
        for (at, place) in kept_places(self.size).enumerate() {
            let ([a, b], [c, d]) = (self.product.upper[at], self.product.lower[at]);
            let other = partner(place);
            self.re[other] = a + d;
            self.im[other] = c - b;
            self.re[place] = a - d;
            self.im[place] = b + c;
            let weight = if other == place { 1.0 } else { 2.0 };
            bound_square += weight * self.product.bound[at] * self.product.bound[at];
        }
        let size = self.size as f64;
        self.fft.backward(&mut self.re, &mut self.im);
        for mass in self.re.iter_mut().chain(&mut self.im) {
            *mass /= size; // exact, a power of two
        }
        let Product {
            transform_error,
            factors,
            ..
        } = self.product;
        // B's own rounding, and its use for both distributions at once.
        let bound = bound_square.sqrt() * (1.0 + 8.0 * UNIT_ROUNDOFF * factors) * 2f64.sqrt();
        let transforms = 2.0 / size * transform_error;
        let powers = (3.0 * factors + 10.0) * UNIT_ROUNDOFF / size.sqrt();
        let inverse = self.fft.relative_error() / size.sqrt();
        Composed {
            upper: self.re,
            lower: self.im,
            turn: self.turn,
            error: bound * (transforms + powers + inverse) + VANISHED,
        }
    }
}

/// Adds masses of nodes `first`, `first` + 1, ... round the circle.
fn wrap(circle: &mut [f64], masses: &[f64], first: i64) {
    let start = first.rem_euclid(circle.len() as i64) as usize;
    let mut rest = masses;
    let mut from = start;
    while !rest.is_empty() {
        let (now, later) = rest.split_at(rest.len().min(circle.len() - from));
        for (sum, mass) in circle[from..].iter_mut().zip(now) {
            *sum += mass;
        }
        rest = later;
        from = 0;
    }
}

/// One place of each conjugate pair: 0, 1, 2, 4, 5, 8, ..., 11, 16, ...
fn kept_places(size: usize) -> impl Iterator<Item = usize> {
    let blocks = (1..size.trailing_zeros()).flat_map(|bit| {
        let start = 1usize << bit;
        start..start + start / 2
    });
    [0, 1].into_iter().chain(blocks)
}

fn times(x: [f64; 2], y: [f64; 2]) -> [f64; 2] {
    [x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]]
}

fn complex_power(base: [f64; 2], exponent: u64) -> [f64; 2] {
    let (mut base, mut left) = (base, exponent);
    let mut result = [1.0, 0.0];
    while left > 0 {
        if left & 1 == 1 {
            result = times(result, base);
        }
        left >>= 1;
        if left > 0 && base[0].abs().max(base[1].abs()) < ROOT_OF_VANISHING {
            return [0.0, 0.0];
        }
        base = times(base, base);
    }
    result
}

fn power(base: f64, exponent: u64) -> f64 {
    let (mut base, mut left) = (base, exponent);
    let mut result = 1.0;
    while left > 0 {
        if left & 1 == 1 {
            result *= base;
        }
        left >>= 1;
        if left > 0 && base < ROOT_OF_VANISHING {
            return 0.0;
        }
        base *= base;
    }
    result
}
