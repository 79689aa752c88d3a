//! Functions of whole vectors and matrices, and how an adjoint is pulled back through them.
//!
//! A kernel is one operation where scalars would need hundreds. It works on plain numbers; matrices
//! are stored column by column. No kernel fails: a matrix that is not positive definite, or is
//! singular, gives NaN.

use super::linear::{self, Lower};

/// A function of one or two vectors that is differentiated as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// `log(sum(exp(x)))`; minus infinity without elements.
    LogSumExp,
    Softmax,
    Minimum,
    Maximum,
    Product,
    CumulativeSum,
    /// In ascending order.
    Sort,
    /// `left * right`
    MatrixProduct {
        rows: u32,
        inner: u32,
        columns: u32,
    },
    /// The lower Cholesky factor; reads the lower triangle only.
    Cholesky {
        size: u32,
    },
    /// `left^-1 * right`, or with the transpose of `left`, which is lower
    /// triangular (the entries above the diagonal are not read).
    SolveLower {
        size: u32,
        columns: u32,
        transposed: bool,
    },
    /// `left^-1 * right`
    Solve {
        size: u32,
        columns: u32,
    },
    Determinant {
        size: u32,
    },
    /// `log(abs(determinant))`
    LogDeterminant {
        size: u32,
    },
}

impl Kernel {
    /// Length of the result, for operands of these lengths.
    pub fn output_length(self, left: usize) -> usize {
        match self {
            Kernel::LogSumExp
            | Kernel::Minimum
            | Kernel::Maximum
            | Kernel::Product
            | Kernel::Determinant { .. }
            | Kernel::LogDeterminant { .. } => 1,
            Kernel::Softmax | Kernel::CumulativeSum | Kernel::Sort | Kernel::Cholesky { .. } => {
                left
            }
            Kernel::MatrixProduct { rows, columns, .. } => (rows * columns) as usize,
            Kernel::SolveLower { size, columns, .. } | Kernel::Solve { size, columns } => {
                (size * columns) as usize
            }
        }
    }

    /// Writes the value to `out`; `right` is empty for a function of one vector.
    pub fn value(self, left: &[f64], right: &[f64], out: &mut [f64]) {
        match self {
            Kernel::LogSumExp => out[0] = log_sum_exp(left),
            Kernel::Softmax => softmax(left, out),
            Kernel::Minimum => {
                out[0] = extreme(left, |a, b| a < b).map_or(f64::INFINITY, |k| left[k])
            }
            Kernel::Maximum => {
                out[0] = extreme(left, |a, b| a > b).map_or(f64::NEG_INFINITY, |k| left[k]);
            }
            Kernel::Product => out[0] = left.iter().product(),
            Kernel::CumulativeSum => {
                let mut sum = 0.0;
                for (o, x) in out.iter_mut().zip(left) {
                    sum += x;
                    *o = sum;
                }
            }
            Kernel::Sort => {
                out.copy_from_slice(left);
                out.sort_by(f64::total_cmp);
            }
            Kernel::MatrixProduct {
                rows,
                inner,
                columns,
            } => linear::product([rows, inner, columns].map(|n| n as usize), left, right, out),
            Kernel::Cholesky { size } => linear::cholesky(size as usize, left, out),
            Kernel::SolveLower {
                size, transposed, ..
            } => {
                out.copy_from_slice(right);
                Lower::new(size as usize, left, transposed).solve(out);
            }
            Kernel::Solve { size, .. } => {
                out.copy_from_slice(right);
                linear::Factors::new(size as usize, left).solve(out);
            }
            Kernel::Determinant { size } => {
                out[0] = linear::Factors::new(size as usize, left).determinant();
            }
            Kernel::LogDeterminant { size } => {
                out[0] = linear::Factors::new(size as usize, left).log_determinant();
            }
        }
    }

    /// `into += adjoint * derivative` for each requested operand. Where the adjoint is zero,
    /// nothing is added, whatever the value: a branch not taken may be infinite.
    pub fn pull_back(
        self,
        left: &[f64],
        right: &[f64],
        out: &[f64],
        adjoint: &[f64],
        into_left: Option<&mut [f64]>,
        into_right: Option<&mut [f64]>,
    ) {
        if adjoint.iter().all(|&a| a == 0.0) {
            return;
        }
        match self {
            Kernel::MatrixProduct {
                rows,
                inner,
                columns,
            } => {
                let sizes = [rows, inner, columns].map(|n| n as usize);
                if let Some(into) = into_left {
                    linear::product_pull_left(sizes, right, adjoint, into);
                }
                if let Some(into) = into_right {
                    linear::product_pull_right(sizes, left, adjoint, into);
                }
            }
            Kernel::SolveLower {
                size,
                columns,
                transposed,
            } => {
                let size = size as usize;
                // B' += A^-T X', A' -= (A^-T X') X^T, the lower triangle of it.
                let mut pulled = adjoint.to_vec();
                Lower::new(size, left, !transposed).solve(&mut pulled);
                if let Some(into) = into_left {
                    for c in 0..columns as usize {
                        let (p, x) = (&pulled[c * size..], &out[c * size..]);
                        for j in 0..size {
                            for i in j..size {
                                into[i + j * size] -=
                                    if transposed { p[j] * x[i] } else { p[i] * x[j] };
                            }
                        }
                    }
                }
                add(into_right, &pulled);
            }
            Kernel::Solve { size, columns } => {
                let size = size as usize;
                let mut pulled = adjoint.to_vec();
                linear::Factors::new(size, left).solve_transposed(&mut pulled);
                if let Some(into) = into_left {
                    for c in 0..columns as usize {
                        for j in 0..size {
                            for i in 0..size {
                                into[i + j * size] -= pulled[i + c * size] * out[j + c * size];
                            }
                        }
                    }
                }
                add(into_right, &pulled);
            }
            _ => {
                if let Some(into) = into_left {
                    self.pull_back_one(left, out, adjoint, into);
                }
            }
        }
    }

    fn pull_back_one(self, x: &[f64], out: &[f64], adjoint: &[f64], into: &mut [f64]) {
        match self {
            Kernel::LogSumExp => {
                let mut share = vec![0.0; x.len()];
                softmax(x, &mut share);
                for (d, s) in into.iter_mut().zip(share) {
                    // Minus infinity everywhere: the derivative is zero.
                    *d += if out[0] == f64::NEG_INFINITY {
                        0.0
                    } else {
                        adjoint[0] * s
                    };
                }
            }
            Kernel::Softmax => {
                let weighted: f64 = adjoint
                    .iter()
                    .zip(out)
                    .map(|(a, y)| if *y == 0.0 { 0.0 } else { a * y })
                    .sum();
                for ((d, a), y) in into.iter_mut().zip(adjoint).zip(out) {
                    *d += if *y == 0.0 { 0.0 } else { y * (a - weighted) };
                }
            }
            Kernel::Minimum => {
                if let Some(k) = extreme(x, |a, b| a < b) {
                    into[k] += adjoint[0];
                }
            }
            Kernel::Maximum => {
                if let Some(k) = extreme(x, |a, b| a > b) {
                    into[k] += adjoint[0];
                }
            }
            Kernel::Product => {
                // Products of the elements before and after: no division by zero.
                let mut after = vec![1.0; x.len() + 1];
                for k in (0..x.len()).rev() {
                    after[k] = after[k + 1] * x[k];
                }
                let mut before = adjoint[0];
                for k in 0..x.len() {
                    into[k] += before * after[k + 1];
                    before *= x[k];
                }
            }
            Kernel::CumulativeSum => {
                let mut sum = 0.0;
                for k in (0..x.len()).rev() {
                    sum += adjoint[k];
                    into[k] += sum;
                }
            }
            Kernel::Sort => {
                let mut order: Vec<usize> = (0..x.len()).collect();
                order.sort_by(|&a, &b| x[a].total_cmp(&x[b]));
                for (a, k) in adjoint.iter().zip(order) {
                    into[k] += a;
                }
            }
            Kernel::Cholesky { size } => {
                linear::cholesky_pull_back(size as usize, out, adjoint, into);
            }
            Kernel::Determinant { size } => {
                let cofactors = linear::cofactors(size as usize, x);
                for (d, c) in into.iter_mut().zip(cofactors) {
                    *d += adjoint[0] * c;
                }
            }
            Kernel::LogDeterminant { size } => {
                let inverse = linear::Factors::new(size as usize, x).inverse_transposed();
                for (d, w) in into.iter_mut().zip(inverse) {
                    *d += adjoint[0] * w;
                }
            }
            Kernel::MatrixProduct { .. } | Kernel::SolveLower { .. } | Kernel::Solve { .. } => {}
        }
    }
}

fn add(into: Option<&mut [f64]>, pulled: &[f64]) {
    if let Some(into) = into {
        for (d, p) in into.iter_mut().zip(pulled) {
            *d += p;
        }
    }
}

/// The first best position; NaN beats all other numbers.
fn extreme(x: &[f64], better: impl Fn(f64, f64) -> bool) -> Option<usize> {
    let mut best = None;
    for (k, &v) in x.iter().enumerate() {
        let replaces =
            best.is_none_or(|b: usize| !x[b].is_nan() && (v.is_nan() || better(v, x[b])));
        if replaces {
            best = Some(k);
        }
    }
    best
}

/// The largest separately, and the rest relative to it.
fn log_sum_exp(x: &[f64]) -> f64 {
    let Some(largest) = extreme(x, |a, b| a > b) else {
        return f64::NEG_INFINITY;
    };
    let m = x[largest];
    if !m.is_finite() {
        return m;
    }
    let rest: f64 = x
        .iter()
        .enumerate()
        .filter(|&(k, _)| k != largest)
        .map(|(_, v)| (v - m).exp())
        .sum();
    m + rest.ln_1p()
}

fn softmax(x: &[f64], out: &mut [f64]) {
    let m = extreme(x, |a, b| a > b).map_or(0.0, |k| x[k]);
    let mut sum = 0.0;
    for (o, v) in out.iter_mut().zip(x) {
        *o = (v - m).exp();
        sum += *o;
    }
    for o in out {
        *o /= sum;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: u32 = 3;

    /// Column by column, symmetric positive definite.
    const SPD: [f64; 9] = [4.0, 1.0, -0.5, 1.0, 3.0, 0.7, -0.5, 0.7, 2.0];
    const GENERAL: [f64; 9] = [0.2, 1.3, -0.5, 2.0, -0.4, 0.7, 0.6, 1.7, 2.0];
    const TALL: [f64; 6] = [1.0, -2.0, 0.3, 0.9, 0.1, -0.8];

    /// Every pull-back against central differences in every coordinate.
    #[test]
    fn pull_backs_agree_with_differences() {
        let cases: [(Kernel, &[f64], &[f64]); 16] = [
            (Kernel::LogSumExp, &TALL, &[]),
            (Kernel::Softmax, &TALL, &[]),
            (Kernel::Minimum, &TALL, &[]),
            (Kernel::Maximum, &TALL, &[]),
            (Kernel::Product, &TALL, &[]),
            (Kernel::Product, &[2.0, 0.0, 3.0], &[]),
            (Kernel::CumulativeSum, &TALL, &[]),
            (Kernel::Sort, &TALL, &[]),
            (
                Kernel::MatrixProduct {
                    rows: 3,
                    inner: 3,
                    columns: 2,
                },
                &GENERAL,
                &TALL,
            ),
            (Kernel::Cholesky { size: N }, &SPD, &[]),
            (
                Kernel::SolveLower {
                    size: N,
                    columns: 2,
                    transposed: false,
                },
                &GENERAL,
                &TALL,
            ),
            (
                Kernel::SolveLower {
                    size: N,
                    columns: 2,
                    transposed: true,
                },
                &GENERAL,
                &TALL,
            ),
            (
                Kernel::Solve {
                    size: N,
                    columns: 2,
                },
                &GENERAL,
                &TALL,
            ),
            (Kernel::Determinant { size: N }, &GENERAL, &[]),
            (
                Kernel::Determinant { size: N },
                &[1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 1.0, -1.0, 0.5],
                &[],
            ),
            (Kernel::LogDeterminant { size: N }, &GENERAL, &[]),
        ];
        for (kernel, left, right) in cases {
            let weight = |k: usize| [1.0, -0.7, 0.4, 0.0, 2.1][k % 5];
            let value = |left: &[f64], right: &[f64]| -> f64 {
                let mut out = vec![0.0; kernel.output_length(left.len())];
                kernel.value(left, right, &mut out);
                out.iter().enumerate().map(|(k, y)| weight(k) * y).sum()
            };
            let mut out = vec![0.0; kernel.output_length(left.len())];
            kernel.value(left, right, &mut out);
            let adjoint: Vec<f64> = (0..out.len()).map(weight).collect();
            let (mut by_left, mut by_right) = (vec![0.0; left.len()], vec![0.0; right.len()]);
            kernel.pull_back(
                left,
                right,
                &out,
                &adjoint,
                Some(&mut by_left),
                Some(&mut by_right),
            );
            for (k, own) in by_left.iter().chain(&by_right).enumerate() {
                let at = |h: f64| {
                    let (mut l, mut r) = (left.to_vec(), right.to_vec());
                    match l.len() {
                        n if k < n => l[k] += h,
                        n => r[k - n] += h,
                    }
                    value(&l, &r)
                };
                let h = 1e-3;
                let numeric = (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
                assert!(
                    (own - numeric).abs() < 1e-8 * (1.0 + numeric.abs()),
                    "{kernel:?} at {k}: {own}, difference {numeric}"
                );
            }
        }
    }

    #[test]
    fn what_is_infinite_or_undefined_stays_so_without_a_panic() {
        let value = |kernel: Kernel, x: &[f64]| {
            let mut out = vec![0.0; kernel.output_length(x.len())];
            kernel.value(x, &[], &mut out);
            out
        };
        let never = f64::NEG_INFINITY;
        assert_eq!(value(Kernel::LogSumExp, &[never, never]), [never]);
        assert_eq!(value(Kernel::LogSumExp, &[]), [never]);
        assert_eq!(value(Kernel::LogSumExp, &[never, 2.0]), [2.0]);
        assert_eq!(
            value(Kernel::LogSumExp, &[f64::INFINITY, 2.0]),
            [f64::INFINITY]
        );
        assert_eq!(value(Kernel::LogSumExp, &[1e4, 1e4]), [1e4 + 2f64.ln()]);
        let small = [-45f64, -46.0].map(f64::exp).iter().sum::<f64>();
        assert_eq!(value(Kernel::LogSumExp, &[0.0, -45.0, -46.0]), [small]);
        assert_eq!(value(Kernel::Softmax, &[never, 0.0, 0.0]), [0.0, 0.5, 0.5]);
        assert!(value(Kernel::Maximum, &[1.0, f64::NAN, 2.0])[0].is_nan());
        let mut into = [0.0; 2];
        Kernel::LogSumExp.pull_back(
            &[never, never],
            &[],
            &[never],
            &[1.0],
            Some(&mut into),
            None,
        );
        assert_eq!(into, [0.0, 0.0]);
        let indefinite = [1.0, 2.0, 2.0, 1.0];
        assert!(value(Kernel::Cholesky { size: 2 }, &indefinite)[0].is_nan());
        let singular = [1.0, 2.0, 2.0, 4.0];
        assert_eq!(value(Kernel::Determinant { size: 2 }, &singular), [0.0]);
        assert_eq!(
            value(Kernel::LogDeterminant { size: 2 }, &singular),
            [never]
        );
    }
}
