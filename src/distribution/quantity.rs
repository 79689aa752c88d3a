//! Numbers with operators, so that densities are written as in a textbook.

use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Range, Sub};

use super::{Algebra, Container};
use crate::function::{Form, Unary};

/// A number in some [`Algebra`], with the operators of arithmetic.
pub(super) struct Quantity<'a, A: Algebra> {
    algebra: &'a RefCell<&'a mut A>,
    pub scalar: A::Scalar,
}

impl<A: Algebra> Clone for Quantity<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: Algebra> Copy for Quantity<'_, A> {}

impl<'a, A: Algebra> Quantity<'a, A> {
    pub fn new(algebra: &'a RefCell<&'a mut A>, scalar: A::Scalar) -> Self {
        Quantity { algebra, scalar }
    }

    fn with(self, f: impl FnOnce(&mut A) -> A::Scalar) -> Self {
        let scalar = f(&mut self.algebra.borrow_mut());
        Quantity { scalar, ..self }
    }

    /// A constant of the same algebra.
    pub fn constant(self, value: f64) -> Self {
        self.with(|a| a.constant(value))
    }

    /// The number itself, if it is already known.
    pub fn known(self) -> Option<f64> {
        self.algebra.borrow().known(self.scalar)
    }

    /// The same number, with a note of its form; see [`Algebra::note`].
    pub fn noted<const N: usize>(self, form: Form, arguments: [Self; N]) -> Self {
        let arguments = arguments.map(|a| a.scalar);
        self.algebra
            .borrow_mut()
            .note(self.scalar, form, &arguments);
        self
    }

    pub fn apply(self, function: Unary) -> Self {
        self.with(|a| a.unary(function, self.scalar))
    }

    pub fn ln(self) -> Self {
        self.apply(Unary::Log)
    }

    /// `log(1 + x)`
    pub fn ln_1p(self) -> Self {
        self.apply(Unary::Log1p)
    }

    /// `log(1 - x)`
    pub fn ln_1m(self) -> Self {
        self.apply(Unary::Log1m)
    }

    /// `log(1 + exp(x))`
    pub fn ln_1p_exp(self) -> Self {
        self.apply(Unary::Log1pExp)
    }

    /// `log(1 - exp(x))`, for x < 0.
    pub fn ln_1m_exp(self) -> Self {
        self.apply(Unary::Log1mExp)
    }

    /// `log(1 + x) - x`
    pub fn ln_1p_minus(self) -> Self {
        self.apply(Unary::Log1pMinus)
    }

    /// `exp(x) - 1 - x`
    pub fn exp_m1_minus(self) -> Self {
        self.apply(Unary::Expm1Minus)
    }

    /// The error of Stirling's formula for `lgamma(x + 1)`.
    pub fn stirling_error(self) -> Self {
        self.apply(Unary::StirlingError)
    }

    pub fn exp(self) -> Self {
        self.apply(Unary::Exp)
    }

    pub fn abs(self) -> Self {
        self.apply(Unary::Abs)
    }

    pub fn squared(self) -> Self {
        self.apply(Unary::Square)
    }

    /// 1 where it is below the other, else 0.
    pub fn less(self, other: Self) -> Self {
        self.with(|a| a.less(self.scalar, other.scalar))
    }

    pub fn below(self, limit: f64) -> Self {
        self.less(self.constant(limit))
    }

    pub fn above(self, limit: f64) -> Self {
        self.constant(limit).less(self)
    }

    pub fn equals(self, value: f64) -> Self {
        self.with(|a| {
            let value = a.constant(value);
            a.equal(self.scalar, value)
        })
    }

    /// `a` where this is not 0, else `b`.
    pub fn choose(self, a: Self, b: Self) -> Self {
        self.with(|algebra| algebra.select(self.scalar, a.scalar, b.scalar))
    }

    /// This, or `other` where the condition holds.
    pub fn unless(self, condition: Self, other: f64) -> Self {
        condition.choose(self.constant(other), self)
    }

    /// The larger of the two.
    pub fn at_least(self, limit: f64) -> Self {
        self.unless(self.below(limit), limit)
    }

    /// The element of this part of a table at this index, which is 1, 2, ...
    pub fn pick(self, table: &[Self], part: Range<usize>) -> Self {
        self.with(|a| a.pick(&scalars(table), part, self.scalar))
    }

    /// The sum of products of two vectors of one length, in this algebra.
    pub fn dot(self, left: &[Self], right: &[Self]) -> Self {
        self.with(|a| a.dot(&scalars(left), &scalars(right)))
    }

    /// The sum of numbers of this algebra.
    pub fn sum(self, terms: impl IntoIterator<Item = Self>) -> Self {
        let terms: Vec<_> = terms.into_iter().map(|q| q.scalar).collect();
        self.with(|a| a.sum(&terms))
    }

    /// `log(sum(exp(x)))`
    pub fn log_sum_exp(self, x: &[Self]) -> Self {
        self.with(|a| a.log_sum_exp(&scalars(x)))
    }

    /// The lower Cholesky factor of a matrix, column by column; read from its lower triangle, and
    /// NaN unless positive definite.
    pub fn cholesky(self, matrix: Container<'_, Self>) -> Vec<Self> {
        let n = matrix.rows;
        self.all(|a| a.cholesky(n, &scalars(matrix.elements)))
    }

    /// `lower^-1 * right`
    pub fn solve_lower(self, lower: Container<'_, Self>, right: &[Self]) -> Vec<Self> {
        let n = lower.rows;
        self.all(|a| a.solve_lower(n, false, &scalars(lower.elements), &scalars(right)))
    }

    fn all(self, f: impl FnOnce(&mut A) -> Vec<A::Scalar>) -> Vec<Self> {
        let found = f(&mut self.algebra.borrow_mut());
        found
            .into_iter()
            .map(|scalar| Quantity { scalar, ..self })
            .collect()
    }

    /// Zero where it is at or above the limit, else minus infinity. Support
    /// checks are *added* to a log density, so that those that concern only the record stay
    /// separate from the terms that change with the parameters.
    pub fn support_from(self, limit: Self) -> Self {
        self.less(limit)
            .choose(self.constant(f64::NEG_INFINITY), self.constant(0.0))
    }

    /// Zero where it is at or below the limit, else minus infinity.
    pub fn support_to(self, limit: Self) -> Self {
        limit.support_from(self)
    }

    /// Zero where the condition holds, else minus infinity.
    pub fn support(self) -> Self {
        self.choose(self.constant(0.0), self.constant(f64::NEG_INFINITY))
    }

    /// Zero where the condition holds, else NaN: an argument outside its domain.
    pub fn domain(self) -> Self {
        self.choose(self.constant(0.0), self.constant(f64::NAN))
    }

    /// Zero where it is positive, else NaN.
    pub fn domain_positive(self) -> Self {
        self.above(0.0).domain()
    }
}

fn scalars<A: Algebra>(list: &[Quantity<'_, A>]) -> Vec<A::Scalar> {
    list.iter().map(|q| q.scalar).collect()
}

macro_rules! operators {
    ($($trait:ident $method:ident $of_algebra:ident;)*) => {$(
        impl<A: Algebra> $trait for Quantity<'_, A> {
            type Output = Self;
            fn $method(self, other: Self) -> Self {
                self.with(|a| a.$of_algebra(self.scalar, other.scalar))
            }
        }
        impl<A: Algebra> $trait<f64> for Quantity<'_, A> {
            type Output = Self;
            fn $method(self, other: f64) -> Self {
                self.$method(self.constant(other))
            }
        }
        impl<'a, A: Algebra> $trait<Quantity<'a, A>> for f64 {
            type Output = Quantity<'a, A>;
            fn $method(self, other: Quantity<'a, A>) -> Quantity<'a, A> {
                other.constant(self).$method(other)
            }
        }
    )*};
}

operators! {
    Add add add;
    Sub sub subtract;
    Mul mul multiply;
    Div div divide;
}

impl<A: Algebra> Neg for Quantity<'_, A> {
    type Output = Self;
    fn neg(self) -> Self {
        self.apply(Unary::Negate)
    }
}

/// 1 where y is not above zero: a density of positive numbers is not computed
/// there.
pub(super) fn is_not_positive<A: Algebra>(y: Quantity<'_, A>) -> Quantity<'_, A> {
    y.above(0.0).equals(0.0)
}

/// y where it is positive, else 1.
pub(super) fn positive_or_one<A: Algebra>(y: Quantity<'_, A>) -> Quantity<'_, A> {
    y.above(0.0).choose(y, y.constant(1.0))
}

/// 1 where y is 0 or 1.
pub(super) fn is_binary<A: Algebra>(y: Quantity<'_, A>) -> Quantity<'_, A> {
    y.equals(0.0).choose(y.constant(1.0), y.equals(1.0))
}

/// Zero where theta is in 0..1, else NaN.
pub(super) fn domain_unit<A: Algebra>(theta: Quantity<'_, A>) -> Quantity<'_, A> {
    domain_not_negative(theta) + domain_not_negative(1.0 - theta)
}

/// Zero where x is 0 or above, else NaN.
pub(super) fn domain_not_negative<A: Algebra>(x: Quantity<'_, A>) -> Quantity<'_, A> {
    x.below(0.0).choose(x.constant(f64::NAN), x.constant(0.0))
}
