//! Maximum mean discrepancy between two samples of points.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::moments::median_of;

/// Pairs of points whose distances give the kernel's width.
const PAIRS: usize = 500;

/// MMD of two samples, kernel width [`median_distance`] with this seed.
///
/// Points are rows, all of the same dimension. As used by Räisä, Koskela and Honkela (2021),
/// section 5; see [`mmd_with_width`] for the estimate. Any two identical distributions give about
/// the same small positive number, determined by the sample sizes, so compare the result with that
/// of exact draws, not with zero. Time grows as the square of the number of points.
pub fn mmd<P: AsRef<[f64]>, Q: AsRef<[f64]>>(x: &[P], y: &[Q], seed: u64) -> f64 {
    mmd_with_width(x, y, median_distance(x, y, seed))
}

/// The square root of the absolute value of the unbiased estimate of MMD²,
///
///   1/(n(n-1)) Σ_{i≠j} k(xᵢ, xⱼ) + 1/(m(m-1)) Σ_{i≠j} k(yᵢ, yⱼ) - 2/(nm) Σ_{ij} k(xᵢ, yⱼ),
///
/// with k(x, y) = exp(-|x - y|² / (2 width²)) (Gretton et al. 2012, *A kernel two-sample
/// test*, eq. 3). The estimate itself may be negative, hence the absolute value.
///
/// NaN where it is undefined: fewer than two points in either sample, points of different
/// dimensions, a width that is not positive, or a coordinate that is NaN.
pub fn mmd_with_width<P: AsRef<[f64]>, Q: AsRef<[f64]>>(x: &[P], y: &[Q], width: f64) -> f64 {
    if x.len() < 2 || y.len() < 2 || width.is_nan() || width <= 0.0 || dimension(x, y).is_none() {
        return f64::NAN;
    }
    let kernel = |a: &[f64], b: &[f64]| (-squared_distance(a, b) / (2.0 * width * width)).exp();
    let mut across = 0.0;
    for a in x {
        across += y
            .iter()
            .map(|b| kernel(a.as_ref(), b.as_ref()))
            .sum::<f64>();
    }
    let (n, m) = (x.len() as f64, y.len() as f64);
    let squared = mean_within(x, kernel) + mean_within(y, kernel) - 2.0 * across / (n * m);
    squared.abs().sqrt()
}

/// The median of 500 distances between a point of `x` and a point of `y`, both drawn
/// uniformly with replacement; NaN if either is empty or dimensions differ.
pub fn median_distance<P: AsRef<[f64]>, Q: AsRef<[f64]>>(x: &[P], y: &[Q], seed: u64) -> f64 {
    if dimension(x, y).is_none() {
        return f64::NAN;
    }
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let distances: Vec<f64> = (0..PAIRS)
        .map(|_| {
            let a = &x[rng.random_range(0..x.len())];
            let b = &y[rng.random_range(0..y.len())];
            squared_distance(a.as_ref(), b.as_ref()).sqrt()
        })
        .collect();
    median_of(&distances)
}

/// Mean of `kernel` over pairs of different points, each unordered pair once: it is symmetric.
fn mean_within<P: AsRef<[f64]>>(points: &[P], kernel: impl Fn(&[f64], &[f64]) -> f64) -> f64 {
    let mut sum = 0.0;
    for (i, a) in points.iter().enumerate() {
        let later = points[i + 1..].iter();
        sum += later.map(|b| kernel(a.as_ref(), b.as_ref())).sum::<f64>();
    }
    let n = points.len() as f64;
    2.0 * sum / (n * (n - 1.0))
}

fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

/// The dimension of all points, if both samples have points and all have the same.
fn dimension<P: AsRef<[f64]>, Q: AsRef<[f64]>>(x: &[P], y: &[Q]) -> Option<usize> {
    let dimension = x.first()?.as_ref().len();
    y.first()?;
    let same = x.iter().all(|p| p.as_ref().len() == dimension)
        && y.iter().all(|p| p.as_ref().len() == dimension);
    same.then_some(dimension)
}

#[cfg(test)]
mod tests {
    use super::super::arviz_fixtures::{MmdFixture, mmd_fixture};
    use super::*;

    #[test]
    fn equals_numpy_on_stored_points() {
        let MmdFixture { x, y, by_width } = mmd_fixture();
        for (width, expected) in by_width {
            let value = mmd_with_width(&x, &y, width);
            assert!(
                (value - expected).abs() < 1e-12,
                "width {width}: {value} against {expected}"
            );
        }
    }

    /// Two points against two: 1/2 of each ordered pair, by hand.
    #[test]
    fn equals_the_formula_by_hand() {
        let (x, y) = ([[0.0], [1.0]], [[0.0], [2.0]]);
        let k = |d: f64| (-d * d / 2.0).exp();
        let across = (k(0.0) + k(2.0) + k(1.0) + k(1.0)) / 4.0;
        let expected = (k(1.0) + k(2.0) - 2.0 * across).abs().sqrt();
        assert!((mmd_with_width(&x, &y, 1.0) - expected).abs() < 1e-15);
    }

    #[test]
    fn the_width_is_a_seeded_median_of_distances() {
        let x: Vec<[f64; 2]> = (0..50).map(|i| [f64::from(i), 0.0]).collect();
        let y = [[0.0, 0.0]];
        let width = median_distance(&x, &y, 7);
        assert_eq!(width, median_distance(&x, &y, 7));
        // uniform on 0..49: the median of 500 has sd 1.1, so 8 is seven of them
        assert!((width - 24.5).abs() < 8.0, "{width}");
    }

    #[test]
    fn is_large_for_different_and_small_for_equal_distributions() {
        let wave = |i: u32, seed: u32| f64::from((i * 7919 + seed) % 1009) / 1009.0;
        let sample = |seed, shift| -> Vec<[f64; 1]> {
            (0..300).map(|i| [wave(i * 17, seed) + shift]).collect()
        };
        assert!(mmd(&sample(1, 0.0), &sample(500, 0.0), 1) < 0.1);
        assert!(mmd(&sample(1, 0.0), &sample(500, 1.0), 1) > 0.5);
    }

    #[test]
    fn undefined_is_nan() {
        let none: [[f64; 1]; 0] = [];
        let two = [[0.0], [1.0]];
        assert!(mmd(&none, &two, 0).is_nan() && mmd(&two, &none, 0).is_nan());
        assert!(mmd(&[[1.0]], &two, 0).is_nan());
        assert!(mmd(&two, &[[0.0, 1.0], [1.0, 1.0]], 0).is_nan());
        assert!(mmd(&[[3.0], [3.0]], &[[3.0], [3.0]], 0).is_nan());
        assert!(mmd(&[[f64::NAN], [3.0]], &two, 0).is_nan());
        assert!(mmd_with_width(&two, &two, f64::NAN).is_nan());
    }
}
