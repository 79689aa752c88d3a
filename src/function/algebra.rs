//! The arithmetic in which log densities are written.

use super::{Unary, unrolled};

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

    /// `x * log(1 - y)` with 0 log 0 = 0.
    fn multiply_log1m(&mut self, x: Self::Scalar, y: Self::Scalar) -> Self::Scalar {
        let zero = self.constant(0.0);
        let none = self.equal(x, zero);
        let log = self.unary(Unary::Log1m, y);
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

    /// Zero where `lower <= variate`, else minus infinity. Support checks are
    /// *added* to a log density, so that those that concern only the record
    /// stand apart from the terms that change with the parameters.
    fn support_from(&mut self, variate: Self::Scalar, lower: Self::Scalar) -> Self::Scalar {
        let below = self.less(variate, lower);
        let never = self.constant(f64::NEG_INFINITY);
        let zero = self.constant(0.0);
        self.select(below, never, zero)
    }

    /// Zero where `variate <= upper`, else minus infinity.
    fn support_to(&mut self, variate: Self::Scalar, upper: Self::Scalar) -> Self::Scalar {
        self.support_from(upper, variate)
    }

    /// Zero where `variate` is 0 or 1, else minus infinity.
    fn support_binary(&mut self, variate: Self::Scalar) -> Self::Scalar {
        let (zero, one) = (self.constant(0.0), self.constant(1.0));
        let never = self.constant(f64::NEG_INFINITY);
        let is_zero = self.equal(variate, zero);
        let is_one = self.equal(variate, one);
        let unless_one = self.select(is_one, zero, never);
        self.select(is_zero, zero, unless_one)
    }

    /// Zero where `argument > 0`, else NaN: an argument outside its domain.
    fn domain_positive(&mut self, argument: Self::Scalar) -> Self::Scalar {
        let zero = self.constant(0.0);
        let positive = self.less(zero, argument);
        let undefined = self.constant(f64::NAN);
        self.select(positive, zero, undefined)
    }

    /// The number itself, where it is known already.
    fn known(&self, _a: Self::Scalar) -> Option<f64> {
        None
    }

    /// `table[first + index - 1]`, `index` being 1, 2, ...; some element of the
    /// table where it is not.
    fn pick(&mut self, table: &[Self::Scalar], first: usize, index: Self::Scalar) -> Self::Scalar {
        pick_by_comparison(self, table, first, index)
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

    /// `log(sum(exp(x)))`; of nothing, minus infinity.
    fn log_sum_exp(&mut self, x: &[Self::Scalar]) -> Self::Scalar
    where
        Self: Sized,
    {
        unrolled::log_sum_exp(self, x)
    }

    /// The lower Cholesky factor of an `n` by `n` matrix, both column by column;
    /// not a number where there is none. Reads the lower triangle.
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

/// `table[first + index - 1]`, one comparison per element.
pub fn pick_by_comparison<A: Algebra + ?Sized>(
    a: &mut A,
    table: &[A::Scalar],
    first: usize,
    index: A::Scalar,
) -> A::Scalar {
    let Some((&last, others)) = table.split_last() else {
        return a.constant(f64::NAN);
    };
    others
        .iter()
        .enumerate()
        .skip(first)
        .rev()
        .fold(last, |picked, (at, &element)| {
            let here = a.constant((at - first + 1) as f64);
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
