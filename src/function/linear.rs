//! Dense linear algebra on numbers, with matrices stored column by column.

/// `left * right` of sizes `[rows, inner, columns]`.
pub fn product([rows, inner, columns]: [usize; 3], left: &[f64], right: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    for j in 0..columns {
        let into = &mut out[j * rows..(j + 1) * rows];
        for k in 0..inner {
            let factor = right[k + j * inner];
            for (o, l) in into.iter_mut().zip(&left[k * rows..(k + 1) * rows]) {
                *o += l * factor;
            }
        }
    }
}

/// `into += adjoint * right^T`, where an adjoint of zero sends back zero.
pub fn product_pull_left(
    [rows, inner, columns]: [usize; 3],
    right: &[f64],
    adjoint: &[f64],
    into: &mut [f64],
) {
    for j in 0..columns {
        let a = &adjoint[j * rows..(j + 1) * rows];
        for k in 0..inner {
            let factor = right[k + j * inner];
            for (d, &a) in into[k * rows..(k + 1) * rows].iter_mut().zip(a) {
                *d += if a == 0.0 { 0.0 } else { a * factor };
            }
        }
    }
}

/// `into += left^T * adjoint`, likewise.
pub fn product_pull_right(
    [rows, inner, columns]: [usize; 3],
    left: &[f64],
    adjoint: &[f64],
    into: &mut [f64],
) {
    for j in 0..columns {
        let a = &adjoint[j * rows..(j + 1) * rows];
        for k in 0..inner {
            into[k + j * inner] += left[k * rows..(k + 1) * rows]
                .iter()
                .zip(a)
                .map(|(&l, &a)| if a == 0.0 { 0.0 } else { a * l })
                .sum::<f64>();
        }
    }
}

/// The lower Cholesky factor, zero above the diagonal; NaN where the matrix is not positive
/// definite. Reads the lower triangle.
pub fn cholesky(n: usize, matrix: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    for j in 0..n {
        for i in j..n {
            let dot: f64 = (0..j).map(|k| out[i + k * n] * out[j + k * n]).sum();
            let rest = matrix[i + j * n] - dot;
            out[i + j * n] = if i != j {
                rest / out[j + j * n]
            } else if rest > 0.0 {
                rest.sqrt()
            } else {
                f64::NAN
            };
        }
    }
    // If one entry is undefined, all are, including those before the failing column.
    if (0..n).any(|j| out[j + j * n].is_nan()) {
        out.fill(f64::NAN);
    }
}

/// Pulls the adjoint of the factor back to the lower triangle of the matrix: S. P. Smith (1995),
/// *Differentiation of the Cholesky algorithm*.
pub fn cholesky_pull_back(n: usize, factor: &[f64], adjoint: &[f64], into: &mut [f64]) {
    let mut f = adjoint.to_vec();
    for i in (0..n).rev() {
        for j in (0..=i).rev() {
            let pulled = if i == j {
                0.5 * f[i + i * n] / factor[i + i * n]
            } else {
                let pulled = f[i + j * n] / factor[j + j * n];
                f[j + j * n] -= pulled * factor[i + j * n];
                pulled
            };
            into[i + j * n] += pulled;
            for k in (0..j).rev() {
                f[i + k * n] -= pulled * factor[j + k * n];
                f[j + k * n] -= pulled * factor[i + k * n];
            }
        }
    }
}

/// A lower triangular matrix, or its transpose; nothing above the diagonal is
/// read.
pub struct Lower<'a> {
    n: usize,
    matrix: &'a [f64],
    transposed: bool,
}

impl<'a> Lower<'a> {
    pub fn new(n: usize, matrix: &'a [f64], transposed: bool) -> Self {
        Lower {
            n,
            matrix,
            transposed,
        }
    }

    /// Replaces every column of `right` by the solution for it.
    pub fn solve(&self, right: &mut [f64]) {
        let (n, a) = (self.n, self.matrix);
        if n == 0 {
            return;
        }
        for x in right.chunks_exact_mut(n) {
            if self.transposed {
                for i in (0..n).rev() {
                    let dot: f64 = (i + 1..n).map(|k| a[k + i * n] * x[k]).sum();
                    x[i] = (x[i] - dot) / a[i + i * n];
                }
            } else {
                for i in 0..n {
                    let dot: f64 = (0..i).map(|k| a[i + k * n] * x[k]).sum();
                    x[i] = (x[i] - dot) / a[i + i * n];
                }
            }
        }
    }
}

/// `P A = L U`, by elimination with the largest element of each column as pivot.
pub struct Factors {
    n: usize,
    /// `L` below the diagonal (of ones), `U` on it and above.
    lu: Vec<f64>,
    /// Row `i` of `P A` is this row of `A`.
    rows: Vec<usize>,
    odd: bool,
}

impl Factors {
    pub fn new(n: usize, matrix: &[f64]) -> Self {
        let mut lu = matrix.to_vec();
        let mut rows: Vec<usize> = (0..n).collect();
        let mut odd = false;
        for k in 0..n {
            let pivot = (k..n)
                .max_by(|&a, &b| lu[a + k * n].abs().total_cmp(&lu[b + k * n].abs()))
                .unwrap_or(k);
            if pivot != k {
                rows.swap(k, pivot);
                odd = !odd;
                for j in 0..n {
                    lu.swap(k + j * n, pivot + j * n);
                }
            }
            let diagonal = lu[k + k * n];
            for i in k + 1..n {
                // A column of zeros: there is nothing to eliminate.
                let factor = if diagonal == 0.0 {
                    0.0
                } else {
                    lu[i + k * n] / diagonal
                };
                lu[i + k * n] = factor;
                for j in k + 1..n {
                    lu[i + j * n] -= factor * lu[k + j * n];
                }
            }
        }
        Factors { n, lu, rows, odd }
    }

    pub fn determinant(&self) -> f64 {
        let product: f64 = (0..self.n).map(|k| self.lu[k + k * self.n]).product();
        if self.odd { -product } else { product }
    }

    pub fn log_determinant(&self) -> f64 {
        (0..self.n)
            .map(|k| self.lu[k + k * self.n].abs().ln())
            .sum()
    }

    pub fn solve(&self, right: &mut [f64]) {
        let n = self.n;
        if n == 0 {
            return;
        }
        for x in right.chunks_exact_mut(n) {
            let mut y: Vec<f64> = self.rows.iter().map(|&r| x[r]).collect();
            for i in 0..n {
                let dot: f64 = (0..i).map(|k| self.lu[i + k * n] * y[k]).sum();
                y[i] -= dot;
            }
            for i in (0..n).rev() {
                let dot: f64 = (i + 1..n).map(|k| self.lu[i + k * n] * y[k]).sum();
                y[i] = (y[i] - dot) / self.lu[i + i * n];
            }
            x.copy_from_slice(&y);
        }
    }

    pub fn solve_transposed(&self, right: &mut [f64]) {
        let n = self.n;
        if n == 0 {
            return;
        }
        for x in right.chunks_exact_mut(n) {
            for i in 0..n {
                let dot: f64 = (0..i).map(|k| self.lu[k + i * n] * x[k]).sum();
                x[i] = (x[i] - dot) / self.lu[i + i * n];
            }
            for i in (0..n).rev() {
                let dot: f64 = (i + 1..n).map(|k| self.lu[k + i * n] * x[k]).sum();
                x[i] -= dot;
            }
            let y = x.to_vec();
            for (i, &row) in self.rows.iter().enumerate() {
                x[row] = y[i];
            }
        }
    }

    pub fn inverse_transposed(&self) -> Vec<f64> {
        let mut identity = vec![0.0; self.n * self.n];
        for k in 0..self.n {
            identity[k + k * self.n] = 1.0;
        }
        self.solve_transposed(&mut identity);
        identity
    }
}

/// The derivative of the determinant by each entry. Through the inverse, or, for a singular matrix,
/// minor by minor.
pub fn cofactors(n: usize, matrix: &[f64]) -> Vec<f64> {
    let factors = Factors::new(n, matrix);
    let determinant = factors.determinant();
    let inverse = factors.inverse_transposed();
    if inverse.iter().all(|w| w.is_finite()) {
        return inverse.iter().map(|w| w * determinant).collect();
    }
    let mut cofactors = Vec::with_capacity(n * n);
    for j in 0..n {
        for i in 0..n {
            let minor: Vec<f64> = (0..n * n)
                .filter(|p| p % n != i && p / n != j)
                .map(|p| matrix[p])
                .collect();
            let value = Factors::new(n - 1, &minor).determinant();
            cofactors.push(if (i + j) % 2 == 0 { value } else { -value });
        }
    }
    cofactors
}

/// The thin QR factors of a matrix with at least as many rows as columns, the
/// diagonal of R not negative: modified Gram-Schmidt, each column twice
/// (W. Kahan's "twice is enough").
pub fn thin_qr(rows: usize, columns: usize, matrix: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let mut q = matrix.to_vec();
    let mut r = vec![0.0; columns * columns];
    for j in 0..columns {
        for _ in 0..2 {
            for k in 0..j {
                let (before, after) = q.split_at_mut(j * rows);
                let (done, column) = (&before[k * rows..(k + 1) * rows], &mut after[..rows]);
                let dot: f64 = done.iter().zip(&*column).map(|(a, b)| a * b).sum();
                r[k + j * columns] += dot;
                for (c, d) in column.iter_mut().zip(done) {
                    *c -= dot * d;
                }
            }
        }
        let column = &mut q[j * rows..(j + 1) * rows];
        let norm = column.iter().map(|x| x * x).sum::<f64>().sqrt();
        r[j + j * columns] = norm;
        for c in column {
            *c /= norm;
        }
    }
    (q, r)
}
