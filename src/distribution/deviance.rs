//! Saddle-point forms (Loader 2000, *Fast and accurate computation of binomial
//! probabilities*).
//!
//! The log densities of counts, and of gamma, beta, Dirichlet and t variates,
//! are differences of logarithms of gamma functions that are each far larger than the result: at
//! counts of 1e9 seven digits are lost. Written as Stirling's errors and deviances they lose none.

use super::quantity::Quantity;
use crate::function::{Algebra, Form, HALF_LOG_TWO_PI};

type Q<'a, A> = Quantity<'a, A>;

/// `rate - x + x log(x/rate)`, where `log_ratio` is log(rate/x). Never negative; zero where the two
/// are equal, and not a difference of large numbers near there.
pub(super) fn poisson_deviance<'a, A: Algebra>(
    x: Q<'a, A>,
    rate: Q<'a, A>,
    log_ratio: Q<'a, A>,
) -> Q<'a, A> {
    let off = (rate - x) / x;
    let near = -x * off.ln_1p_minus();
    off.abs().below(0.5).choose(near, rate - x - x * log_ratio)
}

/// Of a count of successes: its support, the count itself, moved into the support, and that of
/// failures.
pub(super) fn outcomes<'a, A: Algebra>(y: Q<'a, A>, trials: Q<'a, A>) -> [Q<'a, A>; 3] {
    let support = y.support_from(y.constant(0.0)) + y.support_to(trials);
    let y = y.at_least(0.0);
    let y = trials.less(y).choose(trials, y);
    [support, y, trials - y]
}

/// One of the two outcomes of a binomial probability: its count, and the ratio of the expected
/// count to that, minus one and as a logarithm.
pub(super) struct Outcome<'a, A: Algebra> {
    pub times: Q<'a, A>,
    pub off: Q<'a, A>,
    pub log_ratio: Q<'a, A>,
}

/// The sum of `times log_ratio` over both outcomes. It is minus a deviance: the
/// sum of `times off` is zero.
pub(super) fn minus_deviance<'a, A: Algebra>(
    one: &Outcome<'a, A>,
    other: &Outcome<'a, A>,
) -> Q<'a, A> {
    // Where both are far off, the logarithms themselves. Otherwise minus the `off`, which cancel in
    // the sum and would hide the rest where they are small.
    let far = |o: &Outcome<'a, A>| o.off.abs().above(0.5);
    let small = |o: &Outcome<'a, A>| o.off.below(-0.5);
    let plain = |o: &Outcome<'a, A>| o.times * small(o).choose(o.log_ratio, o.off.ln_1p());
    let less =
        |o: &Outcome<'a, A>| o.times * small(o).choose(o.log_ratio - o.off, o.off.ln_1p_minus());
    (far(one) * far(other)).choose(plain(one) + plain(other), less(one) + less(other))
}

/// `log(x^x exp(-x) / Gamma(x + 1))` of x > 0: a Poisson log density at its own mean.
pub(super) fn log_poisson_at_mean<A: Algebra>(x: Q<'_, A>) -> Q<'_, A> {
    -x.stirling_error() - 0.5 * x.ln() - HALF_LOG_TWO_PI
}

/// The log density of a Poisson count, by its rate. For a count of zero only the rate is left.
pub(super) fn log_poisson<'a, A: Algebra>(y: Q<'a, A>, rate: Q<'a, A>) -> Q<'a, A> {
    let none = y.below(1.0);
    let count = y.at_least(1.0);
    let deviance = poisson_deviance(count, rate, rate.ln() - count.ln());
    let deviance = none
        .choose(rate, deviance)
        .noted(Form::PoissonDeviance, [y, rate]);
    log_poisson_at_mean(count).unless(none, 0.0) - deviance
}

/// The log of a binomial coefficient times `p^y (1 - p)^m`, where p is y/(y + m): a binomial log
/// density at its own mean. Zero where y or m is.
pub(super) fn log_binomial_at_mean<'a, A: Algebra>(y: Q<'a, A>, m: Q<'a, A>) -> Q<'a, A> {
    let (some, others) = (y.at_least(1.0), m.at_least(1.0));
    let trials = some + others;
    let inside = trials.stirling_error()
        - some.stirling_error()
        - others.stirling_error()
        - 0.5 * (some.ln() + others.ln() - trials.ln())
        - HALF_LOG_TWO_PI;
    inside.unless(y.below(1.0), 0.0).unless(m.below(1.0), 0.0)
}

/// `lgamma(x + h) - lgamma(x)` for h >= 0.
///
/// With Stirling's formula for both, and `log(1 + h/x)` split where it is small.
pub(super) fn log_gamma_ratio<'a, A: Algebra>(x: Q<'a, A>, h: Q<'a, A>) -> Q<'a, A> {
    let part = h / x;
    let end = x + h;
    let small = (end - 0.5) * part.ln_1p_minus() + (h - 0.5) * part;
    let large = (end - 0.5) * part.ln_1p() - h;
    part.below(1.0).choose(small, large) + h * x.ln() + (end.stirling_error() - x.stirling_error())
}

/// The log density at y = 0 of a family that behaves as `y^(shape - 1)` there, with
/// this value where the shape is 1. Zero where y is below: the support handles that.
pub(super) fn at_zero<'a, A: Algebra>(y: Q<'a, A>, shape: Q<'a, A>, value: Q<'a, A>) -> Q<'a, A> {
    value
        .unless(shape.above(1.0), f64::NEG_INFINITY)
        .unless(shape.below(1.0), f64::INFINITY)
        .unless(y.below(0.0), 0.0)
}
