//! The arithmetic in which log densities are written.

use std::ops::Range;

use super::{Form, Unary, unrolled};

/// Arithmetic on some kind of scalar: plain numbers, or nodes of a graph.
///
/// Implementations may fold constants and share common parts; they must not
/// change the value beyond rounding.
pub trait Algebra {
    type Scalar: Copy;

    fn constant(&mut self, value: f64) -> Self::Scalar;
    fn add(&mut self, a: Self::Scalar, b: Self::Scalar) -> Self::Scalar;
    fn subtract(&mut self, a: Self::Scalar, b: Self::Scalar) -> Self::Scalar;
    fn multiply(&mut self, a: Self::Scalar, b: Self::Scalar) -> Self::Scalar;
    fn divide(&mut self, a: Self::Scalar, b: Self::Scalar) -> Self::Scalar;
    fn unary(&mut self, function: Unary, a: Self::Scalar) -> Self::Scalar;
    /// 1 where `a < b`, else 0.
    fn less(&mut self, a: Self::Scalar, b: Self::Scalar) -> Self::Scalar;
    /// 1 where `a == b`, else 0.
    fn equal(&mut self, a: Self::Scalar, b: Self::Scalar) -> Self::Scalar;
    /// `a` where `condition` is not 0, else `b`. Only the chosen branch's
    /// derivative counts, so that the other may be infinite or NaN.
    fn select(&mut self, condition: Self::Scalar, a: Self::Scalar, b: Self::Scalar)
    -> Self::Scalar;

    fn negate(&mut self, a: Self::Scalar) -> Self::Scalar {
        self.unary(Unary::Negate, a)
    }

    fn ln(&mut self, a: Self::Scalar) -> Self::Scalar {
        self.unary(Unary::Log, a)
    }

    fn square(&mut self, a: Self::Scalar) -> Self::Scalar {
        self.unary(Unary::Square, a)
    }

    /// `x * log(y)` with 0 log 0 = 0 (and no NaN derivative there).
    fn multiply_log(&mut self, x: Self::Scalar, y: Self::Scalar) -> Self::Scalar {
        let zero = self.constant(0.0);
        let none = self.equal(x, zero);
        let log = self.ln(y);
        let product = self.multiply(x, log);
        self.select(none, zero, product)
    }

    /// Logarithm of the beta function.
    fn log_beta(&mut self, a: Self::Scalar, b: Self::Scalar) -> Self::Scalar {
        let lgamma_a = self.unary(Unary::Lgamma, a);
        let lgamma_b = self.unary(Unary::Lgamma, b);
        let sum = self.add(a, b);
        let lgamma_sum = self.unary(Unary::Lgamma, sum);
        let product = self.add(lgamma_a, lgamma_b);
        self.subtract(product, lgamma_sum)
    }

    /// Logarithm of the binomial coefficient `n` over `k`.
    fn log_choose(&mut self, n: Self::Scalar, k: Self::Scalar) -> Self::Scalar {
        let one = self.constant(1.0);
        let n1 = self.add(n, one);
        let k1 = self.add(k, one);
        let rest = self.subtract(n, k);
        let rest1 = self.add(rest, one);
        let top = self.unary(Unary::Lgamma, n1);
        let left = self.unary(Unary::Lgamma, k1);
        let right = self.unary(Unary::Lgamma, rest1);
        let bottom = self.add(left, right);
        self.subtract(top, bottom)
    }

    /// The number itself, if it is already known.
    fn known(&self, _a: Self::Scalar) -> Option<f64> {
        None
    }

    /// Notes that `value` is this form of `arguments`, for bounds on derivatives.
    fn note(&mut self, _value: Self::Scalar, _form: Form, _arguments: &[Self::Scalar]) {}

    /// The element of this part of a table at `index`, which is 1, 2, ...; the part's first element
    /// if there is no such index.
    fn pick(
        &mut self,
        table: &[Self::Scalar],
        part: Range<usize>,
        index: Self::Scalar,
    ) -> Self::Scalar {
        pick_by_comparison(self, &table[part], index)
    }

    /// The sum of products, of vectors of one length.
    fn dot(&mut self, a: &[Self::Scalar], b: &[Self::Scalar]) -> Self::Scalar {
        let products: Vec<_> = a
            .iter()
            .zip(b)
            .map(|(&a, &b)| self.multiply(a, b))
            .collect();
        self.sum(&products)
    }

    /// Sum of several terms, from the left.
    fn sum(&mut self, terms: &[Self::Scalar]) -> Self::Scalar {
        match terms.split_first() {
            None => self.constant(0.0),
            Some((&first, rest)) => rest.iter().fold(first, |sum, &term| self.add(sum, term)),
        }
    }

    /// `log(sum(exp(x)))`; minus infinity without elements.
    fn log_sum_exp(&mut self, x: &[Self::Scalar]) -> Self::Scalar
    where
        Self: Sized,
    {
        unrolled::log_sum_exp(self, x)
    }

    /// The lower Cholesky factor of an `n` by `n` matrix, both column by column;
    /// NaN where there is none. Reads the lower triangle.
    fn cholesky(&mut self, n: usize, matrix: &[Self::Scalar]) -> Vec<Self::Scalar>
    where
        Self: Sized,
    {
        unrolled::cholesky(self, n, matrix)
    }

    /// `lower^-1 * right`, or with the transpose of `lower`, for each column of
    /// `right`. Reads the lower triangle.
    fn solve_lower(
        &mut self,
        n: usize,
        transposed: bool,
        lower: &[Self::Scalar],
        right: &[Self::Scalar],
    ) -> Vec<Self::Scalar>
    where
        Self: Sized,
    {
        unrolled::solve_lower(self, n, transposed, lower, right)
    }
}

/// [`Algebra::pick`] from a whole table, by one comparison per element.
pub fn pick_by_comparison<A: Algebra + ?Sized>(
    a: &mut A,
    table: &[A::Scalar],
    index: A::Scalar,
) -> A::Scalar {
    let Some((&default, others)) = table.split_first() else {
        return a.constant(f64::NAN);
    };
    others
        .iter()
        .enumerate()
        .fold(default, |picked, (k, &element)| {
            let here = a.constant((k + 2) as f64);
            let is_here = a.equal(index, here);
            a.select(is_here, element, picked)
        })
}

/// Plain f64 arithmetic.
pub struct Numbers;

impl Algebra for Numbers {
    type Scalar = f64;

    fn constant(&mut self, value: f64) -> f64 {
        value
    }
    fn add(&mut self, a: f64, b: f64) -> f64 {
        a + b
    }
    fn subtract(&mut self, a: f64, b: f64) -> f64 {
        a - b
    }
    fn multiply(&mut self, a: f64, b: f64) -> f64 {
        a * b
    }
    fn divide(&mut self, a: f64, b: f64) -> f64 {
        a / b
    }
    fn unary(&mut self, function: Unary, a: f64) -> f64 {
        (function.definition().value)(a)
    }
    fn less(&mut self, a: f64, b: f64) -> f64 {
        f64::from(a < b)
    }
    fn equal(&mut self, a: f64, b: f64) -> f64 {
        f64::from(a == b)
    }
    fn select(&mut self, condition: f64, a: f64, b: f64) -> f64 {
        if condition != 0.0 { a } else { b }
    }
}
