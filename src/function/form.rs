//! Forms with tighter bounds on their derivatives than their parts give.

/// A function of several numbers that [`Algebra::note`](super::Algebra::note)
/// recognises. A bound on its derivatives from bounds on its parts would be far too wide: the parts
/// cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// `log(sum(exp(x)))` of all arguments.
    LogSumExp,
    /// Of `y` and `alpha`: `exp(alpha) - y alpha`, up to a term of y, for y >= 1;
    /// `exp(alpha)` for less.
    PoissonDevianceByLog,
    /// Of `y` and `rate`: `rate - y log(rate)`, up to a term of y, for y >= 1;
    /// `rate` for less.
    PoissonDeviance,
    /// Of `y`, `n` and `alpha`: `n log(1 + exp(alpha)) - y alpha`, up to a term of
    /// y and n, for 0 <= y <= n.
    BinomialDevianceByLogOdds,
    /// Of `nu` and `z2`: `(nu + 1)/2 log(1 + z2/nu)`.
    StudentKernel,
}
