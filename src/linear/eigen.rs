//! Eigenvalues and eigenvectors of small symmetric matrices.

/// Rotations of all pairs at most; a dozen are enough.
const SWEEPS: usize = 60;
/// With more rows than this, rotations of all pairs take too long.
const FEW: usize = 48;
/// Steps for one eigenvalue of a tridiagonal matrix at most; two or three are enough.
const STEPS: usize = 60;

/// The eigenvalues of the symmetric `n` x `n` matrix `a` (by rows), and the matrix whose
/// *columns* are the eigenvectors (by rows).
pub(crate) fn eigen(a: &[f64], n: usize) -> (Vec<f64>, Vec<f64>) {
    if n <= FEW || !a.iter().all(|x| x.is_finite()) {
        by_rotations(a, n)
    } else {
        by_reflections(a, n)
    }
}

/// Householder's reflections to a tridiagonal matrix, and its eigenvalues by the QL algorithm with
/// implicit shifts (Golub and Van Loan, "Matrix Computations", sections 8.3.1 and 8.3.5).
fn by_reflections(a: &[f64], n: usize) -> (Vec<f64>, Vec<f64>) {
    let mut a = a.to_vec();
    // By rows: the transposed product of reflections, so that its rows become the eigenvectors.
    let mut q: Vec<f64> = (0..n * n)
        .map(|k| f64::from(u8::from(k % (n + 1) == 0)))
        .collect();
    for k in 0..n.saturating_sub(2) {
        let mut v: Vec<f64> = (k + 1..n).map(|i| a[i * n + k]).collect();
        let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt();
        if norm == 0.0 {
            continue;
        }
        v[0] += norm.copysign(v[0]);
        let square: f64 = v.iter().map(|x| x * x).sum();
        reflect_rows(&mut q, n, k + 1, &v, square);
        reflect_rows(&mut a, n, k + 1, &v, square);
        // The same from the right.
        for row in a.chunks_exact_mut(n) {
            let row = &mut row[k + 1..];
            let along: f64 = row.iter().zip(&v).map(|(x, v)| x * v).sum();
            for (x, v) in row.iter_mut().zip(&v) {
                *x -= 2.0 * along / square * v;
            }
        }
    }
    let mut d: Vec<f64> = (0..n).map(|i| a[i * n + i]).collect();
    let mut e: Vec<f64> = (0..n)
        .map(|i| if i + 1 < n { a[(i + 1) * n + i] } else { 0.0 })
        .collect();
    for l in 0..n {
        for _ in 0..STEPS {
            let small = |m: usize| e[m].abs() <= f64::EPSILON * (d[m].abs() + d[m + 1].abs());
            let m = (l..n - 1).find(|&m| small(m)).unwrap_or(n - 1);
            if m == l {
                break;
            }
            chase(&mut d, &mut e, &mut q, l, m);
        }
    }
    let vectors = (0..n * n).map(|k| q[(k % n) * n + k / n]).collect();
    (d, vectors)
}

/// Rows from `first` on, reflected at the plane that is perpendicular to `v`.
fn reflect_rows(a: &mut [f64], n: usize, first: usize, v: &[f64], square: f64) {
    let mut along = vec![0.0; n];
    for (row, v) in a.chunks_exact(n).skip(first).zip(v) {
        for (along, x) in along.iter_mut().zip(row) {
            *along += v * x;
        }
    }
    for (row, v) in a.chunks_exact_mut(n).skip(first).zip(v) {
        for (x, along) in row.iter_mut().zip(&along) {
            *x -= 2.0 * along / square * v;
        }
    }
}

/// A step of the QL algorithm on rows `l` to `m` of a tridiagonal matrix with this diagonal and this
/// subdiagonal; the rows of `q` turn with it.
fn chase(d: &mut [f64], e: &mut [f64], q: &mut [f64], l: usize, m: usize) {
    let n = d.len();
    let g = (d[l + 1] - d[l]) / (2.0 * e[l]);
    let mut g = d[m] - d[l] + e[l] / (g + g.hypot(1.0).copysign(g));
    let (mut s, mut c, mut p) = (1.0, 1.0, 0.0);
    for i in (l..m).rev() {
        let (f, b) = (s * e[i], c * e[i]);
        let r = f.hypot(g);
        e[i + 1] = r;
        if r == 0.0 {
            d[i + 1] -= p;
            e[m] = 0.0;
            return;
        }
        (s, c) = (f / r, g / r);
        g = d[i + 1] - p;
        let r = (d[i] - g) * s + 2.0 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
        let (above, below) = q.split_at_mut((i + 1) * n);
        for (x, y) in above[i * n..].iter_mut().zip(&mut below[..n]) {
            (*x, *y) = (c * *x - s * *y, s * *x + c * *y);
        }
    }
    d[l] -= p;
    e[l] = g;
    e[m] = 0.0;
}

/// Jacobi's rotations (Golub and Van Loan, section 8.5).
fn by_rotations(a: &[f64], n: usize) -> (Vec<f64>, Vec<f64>) {
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
        for n in [1, 2, 3, 7, 30, 60, 130] {
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
        // Equal values, and rows of zeros.
        let n = 90;
        let mut a = vec![0.0; n * n];
        for i in 0..60 {
            a[i * n + i] = 3.0;
        }
        (a[1], a[n]) = (4.0, 4.0);
        let mut values = eigen(&a, n).0;
        values.sort_by(f64::total_cmp);
        for (k, value) in values.iter().enumerate() {
            let expected = match k {
                0 => -1.0,
                89 => 7.0,
                1..31 => 0.0,
                _ => 3.0,
            };
            assert!((value - expected).abs() < 1e-13, "{k} {value}");
        }
    }
}
