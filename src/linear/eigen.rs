//! Eigenvalues and eigenvectors of small symmetric matrices.

/// Rotations of all pairs at most; a dozen are enough for hundreds of rows.
const SWEEPS: usize = 60;

/// The eigenvalues of the symmetric `n` x `n` matrix `a` (by rows), and the matrix whose
/// *columns* are the eigenvectors (by rows), by Jacobi's rotations (Golub and Van Loan,
/// "Matrix Computations", section 8.5).
pub(crate) fn eigen(a: &[f64], n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut a = a.to_vec();
    let mut v: Vec<f64> = (0..n * n)
        .map(|k| f64::from(u8::from(k % (n + 1) == 0)))
        .collect();
    let off = |a: &[f64]| -> f64 {
        let entries = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
        entries.map(|(i, j)| a[i * n + j] * a[i * n + j]).sum()
    };
    let whole: f64 = a.iter().map(|x| x * x).sum();
    for _ in 0..SWEEPS {
        // Not numbers end it too.
        if off(&a).partial_cmp(&(whole * 1e-32)) != Some(std::cmp::Ordering::Greater) {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                if a[p * n + q] != 0.0 {
                    rotate(&mut a, &mut v, n, p, q);
                }
            }
        }
    }
    ((0..n).map(|i| a[i * n + i]).collect(), v)
}

/// Makes the entry at (p, q) zero.
fn rotate(a: &mut [f64], v: &mut [f64], n: usize, p: usize, q: usize) {
    let tau = (a[q * n + q] - a[p * n + p]) / (2.0 * a[p * n + q]);
    let t = tau.signum() / (tau.abs() + (1.0 + tau * tau).sqrt());
    let c = 1.0 / (1.0 + t * t).sqrt();
    let s = t * c;
    for k in 0..n {
        let (x, y) = (a[k * n + p], a[k * n + q]);
        a[k * n + p] = c * x - s * y;
        a[k * n + q] = s * x + c * y;
    }
    for k in 0..n {
        let (x, y) = (a[p * n + k], a[q * n + k]);
        a[p * n + k] = c * x - s * y;
        a[q * n + k] = s * x + c * y;
    }
    for k in 0..n {
        let (x, y) = (v[k * n + p], v[k * n + q]);
        v[k * n + p] = c * x - s * y;
        v[k * n + q] = s * x + c * y;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    // Wrong here: axes of a start that are not those of the posterior.
    #[test]
    fn vectors_times_values_give_the_matrix_back() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for n in [1, 2, 3, 7, 30] {
            let mut a = vec![0.0; n * n];
            for i in 0..n {
                for j in 0..=i {
                    let x = rng.random_range(-1.0..1.0) * 10f64.powi(i as i32 % 4);
                    (a[i * n + j], a[j * n + i]) = (x, x);
                }
            }
            let (w, v) = eigen(&a, n);
            let scale = a.iter().fold(0.0f64, |m, x| m.max(x.abs()));
            for i in 0..n {
                for j in 0..n {
                    let back: f64 = (0..n).map(|k| v[i * n + k] * w[k] * v[j * n + k]).sum();
                    let unit: f64 = (0..n).map(|k| v[k * n + i] * v[k * n + j]).sum();
                    assert!((back - a[i * n + j]).abs() < 1e-12 * scale * n as f64);
                    assert!((unit - f64::from(u8::from(i == j))).abs() < 1e-12);
                }
            }
        }
        assert_eq!(eigen(&[2.0, 0.0, 0.0, 2.0], 2).0, [2.0, 2.0]);
    }
}
