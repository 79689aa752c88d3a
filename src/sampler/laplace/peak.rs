//! Newton's method towards the highest value of a function.

use crate::linear::{Matrix, dot, length};

/// The largest number of steps, the length in sds at which they end, and the largest number of
/// halvings of a step.
const STEPS: usize = 50;
const ARRIVED: f64 = 1e-3;
const HALVINGS: usize = 30;
/// The step of numerical differences of gradients.
const STEP: f64 = 1e-4;

/// Approximately the point at which a log density is highest, and the inverse of minus its second
/// derivatives there: by Newton's method from `start`, with steps that never decrease the density. The
/// function gives the log density and its gradient.
pub(super) fn peak(
    log_density: impl Fn(&[f64]) -> (f64, Vec<f64>),
    start: Vec<f64>,
) -> (Vec<f64>, Matrix) {
    let mut theta = start;
    let (mut value, mut gradient) = log_density(&theta);
    let mut covariance = covariance(&log_density, &theta);
    for _ in 0..STEPS {
        let step = covariance.times(&gradient);
        let decrement = dot(&step, &gradient).max(0.0).sqrt();
        if decrement.is_nan() || decrement <= ARRIVED {
            break;
        }
        let mut share = 1.0;
        let found = (0..HALVINGS).find_map(|_| {
            let moved: Vec<f64> = theta
                .iter()
                .zip(&step)
                .map(|(t, s)| t + share * s)
                .collect();
            share *= 0.5;
            let (at, gradient) = log_density(&moved);
            (at > value).then_some((moved, at, gradient))
        });
        let Some((moved, at, slope)) = found else {
            break;
        };
        (theta, value, gradient) = (moved, at, slope);
        covariance = self::covariance(&log_density, &theta);
    }
    (theta, covariance)
}

/// The inverse of minus the second derivatives of a log density, made positive.
pub(super) fn covariance(log_density: impl Fn(&[f64]) -> (f64, Vec<f64>), theta: &[f64]) -> Matrix {
    let d = theta.len();
    let side = |j: usize, by: f64| {
        let mut moved = theta.to_vec();
        moved[j] += by;
        log_density(&moved).1
    };
    let rows: Vec<Vec<f64>> = (0..d)
        .map(|j| {
            let step = STEP * (1.0 + 0.01 * length(&theta[j..=j]));
            let (above, below) = (side(j, step), side(j, -step));
            let differences = below.iter().zip(above);
            differences.map(|(b, a)| (b - a) / (2.0 * step)).collect()
        })
        .collect();
    let curvature = Matrix::new(d, d, |i, j| {
        let entry = 0.5 * (rows[i][j] + rows[j][i]);
        if entry.is_finite() {
            entry
        } else {
            f64::from(u8::from(i == j))
        }
    });
    // A direction in which the density is flat or convex is treated as one of sd 1; scales are
    // those of the diagonal.
    let scales: Vec<f64> = (0..d)
        .map(|j| {
            if curvature[(j, j)] > 0.0 {
                curvature[(j, j)].sqrt().recip()
            } else {
                1.0
            }
        })
        .collect();
    let scaled = Matrix::new(d, d, |i, j| scales[i] * curvature[(i, j)] * scales[j]);
    let inverse = scaled.with_eigenvalues(|e| 1.0 / e.abs().max(1e-8));
    Matrix::new(d, d, |i, j| scales[i] * inverse[(i, j)] * scales[j])
}
