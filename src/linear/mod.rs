//! Small dense matrices, for tens of rows, and loops over long vectors.

mod eigen;
mod lanes;

use std::ops::{Add, Index, IndexMut, Mul, Sub};

use serde::{Deserialize, Serialize};

pub(crate) use eigen::eigen;
pub(crate) use lanes::vectorised;

/// Entries by rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Matrix {
    rows: usize,
    columns: usize,
    entries: Vec<f64>,
}

impl Matrix {
    pub fn new(rows: usize, columns: usize, mut entry: impl FnMut(usize, usize) -> f64) -> Matrix {
        let mut entries = Vec::with_capacity(rows * columns);
        for i in 0..rows {
            for j in 0..columns {
                entries.push(entry(i, j));
            }
        }
        Matrix {
            rows,
            columns,
            entries,
        }
    }

    pub fn diagonal(values: &[f64]) -> Matrix {
        let d = values.len();
        Matrix::new(d, d, |i, j| if i == j { values[i] } else { 0.0 })
    }

    pub fn identity(d: usize) -> Matrix {
        Matrix::diagonal(&vec![1.0; d])
    }

    /// x x'
    pub fn square_of(x: &[f64]) -> Matrix {
        Matrix::new(x.len(), x.len(), |i, j| x[i] * x[j])
    }

    /// The symmetric matrix whose upper triangle, by rows, is given with sqrt(2) times the
    /// entries off the diagonal: the length of the vector is the Frobenius norm of the matrix.
    pub fn of_triangle(triangle: &[f64], d: usize) -> Matrix {
        Matrix::new(d, d, |i, j| {
            let (low, high) = (i.min(j), i.max(j));
            let x = triangle[low * d - low * (low + 1) / 2 + high];
            if i == j {
                x
            } else {
                x * std::f64::consts::FRAC_1_SQRT_2
            }
        })
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn columns(&self) -> usize {
        self.columns
    }

    /// By rows.
    pub fn entries(&self) -> &[f64] {
        &self.entries
    }

    pub fn is_finite(&self) -> bool {
        self.entries.len() == self.rows * self.columns && self.entries.iter().all(|x| x.is_finite())
    }

    pub fn transposed(&self) -> Matrix {
        Matrix::new(self.columns, self.rows, |i, j| self[(j, i)])
    }

    pub fn scaled(&self, by: f64) -> Matrix {
        Matrix::new(self.rows, self.columns, |i, j| by * self[(i, j)])
    }

    /// M x
    pub fn times(&self, x: &[f64]) -> Vec<f64> {
        let row = |i: usize| (0..self.columns).map(|j| self[(i, j)] * x[j]).sum();
        (0..self.rows).map(row).collect()
    }

    /// B' M B
    pub fn between(&self, b: &Matrix) -> Matrix {
        &(&b.transposed() * self) * b
    }

    /// x' M x
    pub fn form(&self, x: &[f64]) -> f64 {
        dot(&self.times(x), x)
    }

    pub fn trace(&self) -> f64 {
        (0..self.rows).map(|i| self[(i, i)]).sum()
    }

    /// Of a symmetric matrix: eigenvalues, and the matrix whose columns are the eigenvectors.
    pub fn eigen(&self) -> (Vec<f64>, Matrix) {
        let d = self.rows;
        let symmetric = Matrix::new(d, d, |i, j| 0.5 * (self[(i, j)] + self[(j, i)]));
        let (values, entries) = eigen(&symmetric.entries, d);
        let vectors = Matrix {
            rows: d,
            columns: d,
            entries,
        };
        (values, vectors)
    }

    /// The symmetric matrix with the same eigenvectors and with eigenvalues `of` those of this
    /// one.
    pub fn with_eigenvalues(&self, of: impl Fn(f64) -> f64) -> Matrix {
        let (values, vectors) = self.eigen();
        let values: Vec<f64> = values.into_iter().map(of).collect();
        Matrix::diagonal(&values).between(&vectors.transposed())
    }

    /// The inverse of a symmetric positive definite matrix (of others: [`Matrix::general_inverse`]); eigenvalues below 1e-14 of the
    /// largest count as that.
    pub fn inverse(&self) -> Matrix {
        let (values, _) = self.eigen();
        let least = 1e-14 * values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        self.with_eigenvalues(|e| 1.0 / e.max(least))
    }

    /// The inverse of a matrix that need not be symmetric: (A'A)^-1 A'.
    pub fn general_inverse(&self) -> Matrix {
        let back = self.transposed();
        &(&back * self).inverse() * &back
    }

    /// The largest singular value.
    pub fn norm(&self) -> f64 {
        let (values, _) = (&self.transposed() * self).eigen();
        values.into_iter().fold(0.0, f64::max).sqrt()
    }
}

pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub(crate) fn length(x: &[f64]) -> f64 {
    dot(x, x).sqrt()
}

impl Index<(usize, usize)> for Matrix {
    type Output = f64;

    fn index(&self, (i, j): (usize, usize)) -> &f64 {
        &self.entries[i * self.columns + j]
    }
}

impl IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (i, j): (usize, usize)) -> &mut f64 {
        &mut self.entries[i * self.columns + j]
    }
}

impl Mul for &Matrix {
    type Output = Matrix;

    fn mul(self, other: &Matrix) -> Matrix {
        let mut product = Matrix::new(self.rows, other.columns, |_, _| 0.0);
        for i in 0..self.rows {
            for k in 0..self.columns {
                let x = self[(i, k)];
                for j in 0..other.columns {
                    product[(i, j)] += x * other[(k, j)];
                }
            }
        }
        product
    }
}

impl Add for &Matrix {
    type Output = Matrix;

    fn add(self, other: &Matrix) -> Matrix {
        Matrix::new(self.rows, self.columns, |i, j| self[(i, j)] + other[(i, j)])
    }
}

impl Sub for &Matrix {
    type Output = Matrix;

    fn sub(self, other: &Matrix) -> Matrix {
        Matrix::new(self.rows, self.columns, |i, j| self[(i, j)] - other[(i, j)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triangles_inverses_and_forms_agree() {
        let m = Matrix::new(3, 3, |i, j| {
            [[4.0, 1.0, -0.5], [1.0, 3.0, 0.2], [-0.5, 0.2, 2.0]][i][j]
        });
        let root = std::f64::consts::SQRT_2;
        let triangle = [4.0, root, -0.5 * root, 3.0, 0.2 * root, 2.0];
        let back = Matrix::of_triangle(&triangle, 3);
        let off = (&back - &m).norm();
        assert!(off < 1e-14, "{off}");
        let unit = &m * &m.inverse();
        assert!((&unit - &Matrix::identity(3)).norm() < 1e-13);
        let oblique = Matrix::new(3, 3, |i, j| {
            [[1.0, 0.3, -0.5], [0.0, 2.0, 0.4], [0.8, 0.0, 1.5]][i][j]
        });
        let unit = &oblique * &oblique.general_inverse();
        assert!((&unit - &Matrix::identity(3)).norm() < 1e-13);
        let x = [1.0, -2.0, 0.5];
        assert!((m.form(&x) - dot(&m.times(&x), &x)).abs() < 1e-14);
        assert!((Matrix::square_of(&x).norm() - dot(&x, &x)).abs() < 1e-13);
        assert_eq!(m.between(&Matrix::identity(3)), m);
    }
}
