//! The posterior's information from noisy products of gradients.

use crate::linear::eigen;

/// The information of the posterior, with eigenvalues above its noise.
pub(crate) struct Information {
    pub values: Vec<f64>,
    /// Eigenvectors in columns, by rows.
    pub vectors: Vec<f64>,
    /// The largest share of noise in an eigenvalue.
    pub unknown: f64,
}

/// The information from noisy products of gradients about their mean: the upper triangle by rows,
/// or the squares alone. `about`: the sum of the gradients about their mean.
pub(crate) fn information(
    products: &[f64],
    about: &[f64],
    n: f64,
    temperature: f64,
    curvature: Vec<f64>,
) -> Vec<f64> {
    let d = about.len();
    let mut matrix = curvature;
    let diagonal = products.len() == d && d > 1;
    let mut add = |i: usize, j: usize, product: f64| {
        let entry = temperature * (product - about[i] * about[j] / n);
        matrix[i * d + j] += entry;
        if i != j {
            matrix[j * d + i] += entry;
        }
    };
    let mut at = 0;
    for i in 0..d {
        for j in i..d {
            if diagonal && i != j {
                continue;
            }
            let weight = if i == j {
                1.0
            } else {
                std::f64::consts::SQRT_2
            };
            add(i, j, products[at] / weight);
            at += 1;
        }
    }
    matrix
}

impl Information {
    /// `spread`: sd of the noise of a squared coordinate.
    pub fn new(mut matrix: Vec<f64>, diagonal: bool, d: usize, spread: f64) -> Information {
        if matrix.iter().any(|x| !x.is_finite()) {
            matrix = (0..d * d)
                .map(|k| f64::from(u8::from(k % (d + 1) == 0)))
                .collect();
        }
        let (mut values, vectors) = eigen(&matrix, d);
        // The largest eigenvalue of a symmetric matrix of noise, whose entries off the diagonal
        // have the sd spread / sqrt(2), is about 2 sqrt(d) times that sd; it is less for a
        // diagonal matrix.
        let noise = if diagonal {
            2.0 * spread
        } else {
            (2.0 * d as f64).sqrt() * spread
        };
        let smallest = values.iter().fold(f64::INFINITY, |m, w| m.min(*w));
        let unknown = (noise / smallest.max(noise)).min(1.0);
        for w in &mut values {
            *w = w.max(noise).max(f64::MIN_POSITIVE.sqrt());
        }
        Information {
            values,
            vectors,
            unknown,
        }
    }
}
