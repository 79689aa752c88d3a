//! Functions of small vectors and matrices written out in scalars, for values
//! that differ from record to record. Matrices are stored column by column.

use super::{Algebra, Form, Unary};

/// `log(sum(exp(x)))`, to a rounding of the largest entry or of 1: more is not needed for log
/// densities. An entry of minus infinity adds nothing and has derivative zero; where all are, so is
/// the result, with derivative zero.
pub fn log_sum_exp<A: Algebra>(a: &mut A, x: &[A::Scalar]) -> A::Scalar {
    let never = a.constant(f64::NEG_INFINITY);
    if let [x, y] = *x {
        return log_add_exp(a, x, y);
    }
    let Some((&first, rest)) = x.split_first() else {
        return never;
    };
    if rest.is_empty() {
        return first;
    }
    let largest = rest.iter().fold(first, |m, &x| larger(a, m, x));
    let (one, infinity) = (a.constant(1.0), a.constant(f64::INFINITY));
    let size = a.unary(Unary::Abs, largest);
    let finite = a.less(size, infinity);
    let shares: Vec<A::Scalar> = x
        .iter()
        .map(|&x| {
            let below = a.subtract(x, largest);
            a.unary(Unary::Exp, below)
        })
        .collect();
    let sum = a.sum(&shares);
    let sum = a.select(finite, sum, one);
    let rest = a.ln(sum);
    let total = a.add(largest, rest);
    let empty = a.equal(largest, never);
    let otherwise = a.select(finite, total, largest);
    let total = a.select(empty, never, otherwise);
    a.note(total, Form::LogSumExp, x);
    total
}

/// `log(exp(x) + exp(y))`: the larger one plus log1p(exp(smaller - larger)).
/// Its gradients are exact even where the two are equal, and there is no infinity minus infinity.
pub fn log_add_exp<A: Algebra>(a: &mut A, x: A::Scalar, y: A::Scalar) -> A::Scalar {
    let y_less_x = a.subtract(y, x);
    let x_less_y = a.subtract(x, y);
    let rest_of_x = a.unary(Unary::Log1pExp, y_less_x);
    let rest_of_y = a.unary(Unary::Log1pExp, x_less_y);
    let from_x = a.add(x, rest_of_x);
    let from_y = a.add(y, rest_of_y);
    let y_larger = a.less(x, y);
    let larger = a.select(y_larger, from_y, from_x);
    let nothing = a.constant(f64::NEG_INFINITY);
    let y_empty = a.equal(y, nothing);
    let total = a.select(y_empty, x, larger);
    a.note(total, Form::LogSumExp, &[x, y]);
    total
}

/// `exp(x) / sum(exp(x))`
pub fn softmax<A: Algebra>(a: &mut A, x: &[A::Scalar]) -> Vec<A::Scalar> {
    let Some((&first, rest)) = x.split_first() else {
        return Vec::new();
    };
    let largest = rest.iter().fold(first, |m, &x| larger(a, m, x));
    let shares: Vec<A::Scalar> = x
        .iter()
        .map(|&x| {
            let below = a.subtract(x, largest);
            a.unary(Unary::Exp, below)
        })
        .collect();
    let sum = a.sum(&shares);
    shares.iter().map(|&s| a.divide(s, sum)).collect()
}

/// In ascending order: an insertion for each element, by exchanges.
pub fn sort<A: Algebra>(a: &mut A, x: &[A::Scalar]) -> Vec<A::Scalar> {
    let mut sorted = x.to_vec();
    for end in 1..sorted.len() {
        for k in (0..end).rev() {
            let (x, y) = (sorted[k], sorted[k + 1]);
            let wrong = a.less(y, x);
            sorted[k] = a.select(wrong, y, x);
            sorted[k + 1] = a.select(wrong, x, y);
        }
    }
    sorted
}

/// `left * right` of sizes `[rows, inner, columns]`.
pub fn product<A: Algebra>(
    a: &mut A,
    [rows, inner, columns]: [usize; 3],
    left: &[A::Scalar],
    right: &[A::Scalar],
) -> Vec<A::Scalar> {
    let mut out = Vec::with_capacity(rows * columns);
    for j in 0..columns {
        for i in 0..rows {
            let mut sum = a.constant(0.0);
            for k in 0..inner {
                let product = a.multiply(left[i + k * rows], right[k + j * inner]);
                sum = a.add(sum, product);
            }
            out.push(sum);
        }
    }
    out
}

/// `x` less the sum of products.
fn less_products<A: Algebra>(
    a: &mut A,
    x: A::Scalar,
    pairs: impl Iterator<Item = (A::Scalar, A::Scalar)>,
) -> A::Scalar {
    let mut rest = x;
    for (l, r) in pairs {
        let product = a.multiply(l, r);
        rest = a.subtract(rest, product);
    }
    rest
}

/// The lower Cholesky factor; NaN where the matrix is not positive definite. Reads the lower
/// triangle.
pub fn cholesky<A: Algebra>(a: &mut A, n: usize, matrix: &[A::Scalar]) -> Vec<A::Scalar> {
    let zero = a.constant(0.0);
    let undefined = a.constant(f64::NAN);
    let mut out = vec![zero; n * n];
    for j in 0..n {
        for i in j..n {
            let pairs: Vec<_> = (0..j).map(|k| (out[i + k * n], out[j + k * n])).collect();
            let rest = less_products(a, matrix[i + j * n], pairs.into_iter());
            out[i + j * n] = if i == j {
                let positive = a.less(zero, rest);
                let rest = a.select(positive, rest, undefined);
                a.unary(Unary::Sqrt, rest)
            } else {
                a.divide(rest, out[j + j * n])
            };
        }
    }
    out
}

/// `lower^-1 * right`, or with the transpose of `lower`; nothing above the
/// diagonal is read.
pub fn solve_lower<A: Algebra>(
    a: &mut A,
    n: usize,
    transposed: bool,
    lower: &[A::Scalar],
    right: &[A::Scalar],
) -> Vec<A::Scalar> {
    let mut x = right.to_vec();
    if n == 0 {
        return x;
    }
    for x in x.chunks_exact_mut(n) {
        for step in 0..n {
            let i = if transposed { n - 1 - step } else { step };
            let pairs: Vec<_> = if transposed {
                (i + 1..n).map(|k| (lower[k + i * n], x[k])).collect()
            } else {
                (0..i).map(|k| (lower[i + k * n], x[k])).collect()
            };
            let rest = less_products(a, x[i], pairs.into_iter());
            x[i] = a.divide(rest, lower[i + i * n]);
        }
    }
    x
}

/// A matrix and right-hand sides, reduced to upper triangular form.
struct Eliminated<S> {
    upper: Vec<S>,
    right: Vec<S>,
    /// 1 or -1: the sign of the row exchanges.
    sign: S,
}

/// Gaussian elimination. Which row is the pivot differs between records: each
/// row below is exchanged with the pivot row where its entry is larger.
fn eliminate<A: Algebra>(
    a: &mut A,
    n: usize,
    matrix: &[A::Scalar],
    right: &[A::Scalar],
) -> Eliminated<A::Scalar> {
    let zero = a.constant(0.0);
    let (mut m, mut b) = (matrix.to_vec(), right.to_vec());
    let mut sign = a.constant(1.0);
    for k in 0..n {
        for i in k + 1..n {
            let here = a.unary(Unary::Abs, m[k + k * n]);
            let there = a.unary(Unary::Abs, m[i + k * n]);
            let exchange = a.less(here, there);
            for j in k..n {
                swap_where(a, exchange, &mut m, k + j * n, i + j * n);
            }
            for j in 0..b.len().checked_div(n).unwrap_or(0) {
                swap_where(a, exchange, &mut b, k + j * n, i + j * n);
            }
            let minus = a.negate(sign);
            sign = a.select(exchange, minus, sign);
        }
        for i in k + 1..n {
            // A column of zeros has nothing to eliminate.
            let nothing = a.equal(m[k + k * n], zero);
            let quotient = a.divide(m[i + k * n], m[k + k * n]);
            let factor = a.select(nothing, zero, quotient);
            for j in k + 1..n {
                let product = a.multiply(factor, m[k + j * n]);
                m[i + j * n] = a.subtract(m[i + j * n], product);
            }
            for j in 0..b.len().checked_div(n).unwrap_or(0) {
                let product = a.multiply(factor, b[k + j * n]);
                b[i + j * n] = a.subtract(b[i + j * n], product);
            }
        }
    }
    Eliminated {
        upper: m,
        right: b,
        sign,
    }
}

fn swap_where<A: Algebra>(
    a: &mut A,
    condition: A::Scalar,
    values: &mut [A::Scalar],
    p: usize,
    q: usize,
) {
    let (x, y) = (values[p], values[q]);
    values[p] = a.select(condition, y, x);
    values[q] = a.select(condition, x, y);
}

/// `matrix^-1 * right`
pub fn solve<A: Algebra>(
    a: &mut A,
    n: usize,
    matrix: &[A::Scalar],
    right: &[A::Scalar],
) -> Vec<A::Scalar> {
    let Eliminated {
        upper,
        right: mut x,
        ..
    } = eliminate(a, n, matrix, right);
    if n == 0 {
        return x;
    }
    for x in x.chunks_exact_mut(n) {
        for i in (0..n).rev() {
            let pairs: Vec<_> = (i + 1..n).map(|k| (upper[i + k * n], x[k])).collect();
            let rest = less_products(a, x[i], pairs.into_iter());
            x[i] = a.divide(rest, upper[i + i * n]);
        }
    }
    x
}

pub fn determinant<A: Algebra>(a: &mut A, n: usize, matrix: &[A::Scalar]) -> A::Scalar {
    let eliminated = eliminate(a, n, matrix, &[]);
    (0..n).fold(eliminated.sign, |product, k| {
        a.multiply(product, eliminated.upper[k + k * n])
    })
}

/// `log(abs(determinant))`
pub fn log_determinant<A: Algebra>(a: &mut A, n: usize, matrix: &[A::Scalar]) -> A::Scalar {
    let eliminated = eliminate(a, n, matrix, &[]);
    let logs: Vec<A::Scalar> = (0..n)
        .map(|k| {
            let size = a.unary(Unary::Abs, eliminated.upper[k + k * n]);
            a.ln(size)
        })
        .collect();
    a.sum(&logs)
}

fn larger<A: Algebra>(a: &mut A, x: A::Scalar, y: A::Scalar) -> A::Scalar {
    let y_larger = a.less(x, y);
    a.select(y_larger, y, x)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::{Kernel, Numbers};

    const SPD: [f64; 9] = [4.0, 1.0, -0.5, 1.0, 3.0, 0.7, -0.5, 0.7, 2.0];
    const GENERAL: [f64; 9] = [0.0, 1.3, -0.5, 2.0, -0.4, 0.7, 0.6, 1.7, 2.0];
    const RIGHT: [f64; 6] = [1.0, -2.0, 0.3, 0.9, 0.1, -0.8];

    /// The functions written out in scalars agree with the kernels.
    #[test]
    fn scalars_agree_with_the_kernels() {
        let kernel = |k: Kernel, left: &[f64], right: &[f64]| {
            let mut out = vec![0.0; k.output_length(left.len())];
            k.value(left, right, &mut out);
            out
        };
        let near = |what: &str, ours: &[f64], theirs: &[f64]| {
            assert_eq!(ours.len(), theirs.len(), "{what}");
            for (a, b) in ours.iter().zip(theirs) {
                assert!((a - b).abs() < 1e-14, "{what}: {ours:?}, {theirs:?}");
            }
        };
        let a = &mut Numbers;
        let (size, columns) = (3, 2);
        near(
            "cholesky",
            &cholesky(a, 3, &SPD),
            &kernel(Kernel::Cholesky { size }, &SPD, &[]),
        );
        for transposed in [false, true] {
            near(
                "solve_lower",
                &solve_lower(a, 3, transposed, &SPD, &RIGHT),
                &kernel(
                    Kernel::SolveLower {
                        size,
                        columns,
                        transposed,
                    },
                    &SPD,
                    &RIGHT,
                ),
            );
        }
        near(
            "solve",
            &solve(a, 3, &GENERAL, &RIGHT),
            &kernel(Kernel::Solve { size, columns }, &GENERAL, &RIGHT),
        );
        near(
            "determinant",
            &[determinant(a, 3, &GENERAL)],
            &kernel(Kernel::Determinant { size }, &GENERAL, &[]),
        );
        near(
            "log_determinant",
            &[log_determinant(a, 3, &GENERAL)],
            &kernel(Kernel::LogDeterminant { size }, &GENERAL, &[]),
        );
        near("sort", &sort(a, &RIGHT), &kernel(Kernel::Sort, &RIGHT, &[]));
        near(
            "softmax",
            &softmax(a, &RIGHT),
            &kernel(Kernel::Softmax, &RIGHT, &[]),
        );
        let never = f64::NEG_INFINITY;
        for x in [
            &[][..],
            &[never],
            &[never, never],
            &[never, 1.0, 0.5],
            &[never, never, never],
            &[f64::INFINITY, 1.0, never],
            &RIGHT,
        ] {
            let (ours, theirs) = (log_sum_exp(a, x), kernel(Kernel::LogSumExp, x, &[])[0]);
            assert!(
                ours == theirs || (ours - theirs).abs() < 1e-15,
                "{x:?}: {ours}"
            );
        }
        assert!(cholesky(a, 2, &[1.0, 2.0, 2.0, 1.0])[3].is_nan());
    }
}
