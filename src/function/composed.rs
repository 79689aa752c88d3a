//! Functions of several numbers that are composed of simpler ones.

use super::catalogue::Elementwise;
use super::{Algebra, Unary, unrolled};

impl Elementwise {
    /// The value, in any arithmetic. The number of `arguments` is the one that the function takes.
    pub fn compose<A: Algebra>(self, a: &mut A, arguments: &[A::Scalar]) -> A::Scalar {
        let argument = |k: usize| arguments[k.min(arguments.len() - 1)];
        let (x, y) = (argument(0), argument(1));
        match self {
            Elementwise::LogSumExp => unrolled::log_add_exp(a, x, y),
            Elementwise::LogDiffExp => {
                let difference = a.subtract(y, x);
                let rest = a.unary(Unary::Log1mExp, difference);
                let value = a.add(x, rest);
                // log(exp(x) - 0), even where x is minus infinity.
                let nothing = a.constant(f64::NEG_INFINITY);
                let none = a.equal(y, nothing);
                a.select(none, x, value)
            }
            Elementwise::LogInvLogitDiff => {
                // inv_logit(x) - inv_logit(y) =
                // (1 - exp(y - x)) inv_logit(x) inv_logit(-y)
                let difference = a.subtract(y, x);
                let ratio = a.unary(Unary::Log1mExp, difference);
                let left = a.unary(Unary::LogInvLogit, x);
                let right = a.unary(Unary::Log1mInvLogit, y);
                a.sum(&[ratio, left, right])
            }
            Elementwise::LogMix => {
                let from_first = a.ln(x);
                let from_second = a.unary(Unary::Log1m, x);
                let first = a.add(from_first, y);
                let second = a.add(from_second, argument(2));
                unrolled::log_add_exp(a, first, second)
            }
            Elementwise::MultiplyLog => a.multiply_log(x, y),
            Elementwise::LogBeta => a.log_beta(x, y),
            Elementwise::Beta => {
                let log = a.log_beta(x, y);
                a.unary(Unary::Exp, log)
            }
            Elementwise::LogChoose => a.log_choose(x, y),
            Elementwise::Choose => {
                let log = a.log_choose(x, y);
                let value = a.unary(Unary::Exp, log);
                a.unary(Unary::Round, value)
            }
            Elementwise::LogFallingFactorial => {
                let one = a.constant(1.0);
                let top = a.add(x, one);
                let bottom = a.subtract(top, y);
                difference_of_lgamma(a, top, bottom)
            }
            Elementwise::LogRisingFactorial => {
                let top = a.add(x, y);
                difference_of_lgamma(a, top, x)
            }
            Elementwise::Hypot => {
                let (x2, y2) = (a.square(x), a.square(y));
                let sum = a.add(x2, y2);
                root(a, sum)
            }
            Elementwise::PositiveDifference => {
                let difference = a.subtract(x, y);
                let zero = a.constant(0.0);
                let positive = a.less(zero, difference);
                a.select(positive, difference, zero)
            }
            Elementwise::MultiplyAdd => {
                let product = a.multiply(x, y);
                a.add(product, argument(2))
            }
        }
    }
}

fn difference_of_lgamma<A: Algebra>(a: &mut A, x: A::Scalar, y: A::Scalar) -> A::Scalar {
    let (x, y) = (a.unary(Unary::Lgamma, x), a.unary(Unary::Lgamma, y));
    a.subtract(x, y)
}

/// The square root of a sum of squares, whose derivative at zero is taken as
/// zero rather than infinite.
pub fn root<A: Algebra>(a: &mut A, sum: A::Scalar) -> A::Scalar {
    let (zero, one) = (a.constant(0.0), a.constant(1.0));
    let none = a.equal(sum, zero);
    let safe = a.select(none, one, sum);
    let root = a.unary(Unary::Sqrt, safe);
    a.select(none, zero, root)
}
