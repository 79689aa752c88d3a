//! A Kalman filter of the centre, which observes slopes: y = H v + noise, where v is the error of the
//! centre, with the prior belief N(0, K), and the noise is independent with the variances `noise`.

use crate::linear::Matrix;

/// Less noise than this counts as that.
const LEAST_NOISE: f64 = 1e-30;
/// The largest factor by which a contradicted filter widens its belief.
const LEAST_TRUST: f64 = 1e6;

/// y'(H K H + N)^-1 y
pub(super) fn unexpected(belief: &Matrix, slope: &Matrix, noise: &[f64], off: &[f64]) -> f64 {
    precision(belief, slope, noise).form(off)
}

/// (H K H + N)^-1
fn precision(belief: &Matrix, slope: &Matrix, noise: &[f64]) -> Matrix {
    let roots = roots_of(noise);
    let spread = belief.between(&(slope * &roots));
    let inverse = spread.with_eigenvalues(|e| 1.0 / (e.max(0.0) + 1.0));
    inverse.between(&roots)
}

/// N^-1/2
fn roots_of(noise: &[f64]) -> Matrix {
    let roots: Vec<f64> = (noise.iter())
        .map(|v| v.max(LEAST_NOISE).sqrt().recip())
        .collect();
    Matrix::diagonal(&roots)
}

/// The mean square of a slope, in units of its expectation, and the factor by which the belief is made wider: that of
/// maximum likelihood where the square is above 1, else 1.
///
/// The factor with which that mean square is 1 would be moved as much by directions in which nothing but noise is
/// seen, and be infinite where this is by chance a little more than expected.
pub(super) fn contradiction(
    belief: &mut Matrix,
    slope: &Matrix,
    noise: &[f64],
    off: &[f64],
) -> (f64, f64) {
    let m = off.len().max(1) as f64;
    let roots = roots_of(noise);
    let (values, vectors) = belief.between(&(slope * &roots)).eigen();
    let along = vectors.transposed().times(&roots.times(off));
    let seen = || along.iter().zip(&values).map(|(y, e)| (y * y, e.max(0.0)));
    let found = seen().map(|(square, e)| square / (e + 1.0)).sum::<f64>() / m;
    // Of the logarithm of the likelihood, by the factor.
    let derivative = |wider: f64| -> f64 {
        let of_direction = |(square, e): (f64, f64)| {
            let expected = wider * e + 1.0;
            e / expected * (square / expected - 1.0)
        };
        seen().map(of_direction).sum()
    };
    if found <= 1.0 {
        return (found, 1.0);
    }
    let (mut low, mut high) = (0.0, LEAST_TRUST.ln());
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if derivative(middle.exp()) > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    *belief = belief.scaled(high.exp());
    (found, high.exp())
}

/// The step, and the covariance of the remaining error, of a Kalman filter that observes the slope
/// `off` at the centre.
pub(super) fn step(
    belief: &Matrix,
    slope: &Matrix,
    noise: &[f64],
    off: &[f64],
) -> (Vec<f64>, Matrix) {
    let m = off.len();
    let gain = gain(belief, slope, noise);
    let left = &(&Matrix::identity(m) - &(&gain * slope)) * belief;
    let symmetric = (&left + &left.transposed()).scaled(0.5);
    (gain.times(off), symmetric)
}

/// K H (H K H + N)^-1
fn gain(belief: &Matrix, slope: &Matrix, noise: &[f64]) -> Matrix {
    &(belief * slope) * &precision(belief, slope, noise)
}

/// The part of the slope `off` that an error of the centre which is believed to be `mean` does not explain.
pub(super) fn unexplained(mean: &[f64], slope: &Matrix, off: &[f64]) -> Vec<f64> {
    let explained = slope.times(mean);
    off.iter().zip(explained).map(|(o, e)| o - e).collect()
}

/// The share of an error that the same step takes away.
pub(super) fn taken(belief: &Matrix, slope: &Matrix, noise: &[f64]) -> Matrix {
    &gain(belief, slope, noise) * slope
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagonal(values: &[f64]) -> Matrix {
        Matrix::diagonal(values)
    }

    // If it failed: with a wrong sign the search would walk away, and with a factor off intervals
    // would be too narrow. K = 4, H = 2, v = 1: the gain is 8/17, and 4/17 is left.
    #[test]
    fn a_step_is_that_of_the_normal_posterior() {
        let (belief, slope) = (diagonal(&[4.0, 1.0]), diagonal(&[2.0, 3.0]));
        let (found, left) = step(&belief, &slope, &[1.0; 2], &[17.0, -10.0]);
        assert!((found[0] - 8.0).abs() < 1e-12 && (found[1] + 3.0).abs() < 1e-12);
        assert!((left[(0, 0)] - 4.0 / 17.0).abs() < 1e-12);
        assert!((left[(1, 1)] - 0.1).abs() < 1e-12 && left[(0, 1)].abs() < 1e-12);
        // 17^2 / 17 + 10^2 / 10
        let chi_square = unexpected(&belief, &slope, &[1.0; 2], &[17.0, -10.0]);
        assert!((chi_square - 27.0).abs() < 1e-9);
    }

    // Oracle: the normal posterior of each coordinate. If it failed: the noise of one coordinate would
    // count as that of another.
    #[test]
    fn each_coordinate_has_its_own_noise() {
        let (belief, slope) = (diagonal(&[4.0, 1.0]), diagonal(&[2.0, 3.0]));
        let (found, left) = step(&belief, &slope, &[1.0, 7.0], &[17.0, -16.0]);
        assert!((found[0] - 8.0).abs() < 1e-12 && (found[1] + 3.0).abs() < 1e-12);
        assert!((left[(0, 0)] - 4.0 / 17.0).abs() < 1e-12);
        assert!((left[(1, 1)] - 7.0 / 16.0).abs() < 1e-12);
        // 17^2 / 17 + 16^2 / 16
        let chi_square = unexpected(&belief, &slope, &[1.0, 7.0], &[17.0, -16.0]);
        assert!((chi_square - 33.0).abs() < 1e-9);
    }

    // Oracle: the normal posterior of an error with the prior N(1.5, 4), observed as 2 v + noise = 17: precision 4 + 1/4,
    // and (34 + 1.5/4) / (4 + 1/4). If it failed: a search would walk away from where it believes a scale to be.
    #[test]
    fn what_is_believed_is_where_the_step_begins() {
        let (belief, slope) = (diagonal(&[4.0]), diagonal(&[2.0]));
        let unexplained = unexplained(&[1.5], &slope, &[17.0]);
        let (found, left) = step(&belief, &slope, &[1.0], &unexplained);
        assert!((1.5 + found[0] - 34.375 / 4.25).abs() < 1e-12, "{found:?}");
        assert!((left[(0, 0)] - 1.0 / 4.25).abs() < 1e-12);
    }

    #[test]
    fn a_belief_that_is_contradicted_becomes_as_wide_as_what_is_seen() {
        let slope = diagonal(&[2.0, 3.0]);
        let mut belief = diagonal(&[4.0, 1.0]);
        let (surprise, factor) = contradiction(&mut belief, &slope, &[1.0; 2], &[17.0, -10.0]);
        assert!((surprise - 13.5).abs() < 1e-9);
        // 16 w + 1 and 9 w + 1 are expected of squares of 289 and 100; the derivative is zero at w.
        let wider = belief[(0, 0)] / 4.0;
        assert!((factor - wider).abs() < 1e-9);
        let [a, b] = [16.0 * wider + 1.0, 9.0 * wider + 1.0];
        let derivative = 16.0 / a * (289.0 / a - 1.0) + 9.0 / b * (100.0 / b - 1.0);
        assert!(derivative.abs() < 1e-6, "{derivative}");
        assert!((belief[(1, 1)] - wider).abs() < 1e-9);
        // What is expected changes nothing.
        let mut belief = diagonal(&[4.0, 1.0]);
        let (surprise, factor) = contradiction(&mut belief, &slope, &[1.0; 2], &[1.0, 1.0]);
        assert!(surprise < 1.0);
        assert_eq!(factor, 1.0);
        assert_eq!(belief, diagonal(&[4.0, 1.0]));
    }
}
