//! The beta-binomial distribution.

use rand::Rng;

use super::deviance::{Outcome, log_binomial_at_mean, minus_deviance, outcomes};
use super::draw::{self, DrawError, numbers};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "beta_binomial",
    documentation: "Beta-binomial: lchoose(N, y) + lbeta(y + alpha, N - y + beta) - lbeta(alpha, beta)",
    variate: Kind::Int,
    support: Domain::CountsTo(0),
    arguments: &[
        Argument::of("N", Kind::Int, Domain::Counts, "trials"),
        Argument::real("alpha", Domain::Positive, "shape at one"),
        Argument::real("beta", Domain::Positive, "shape at zero"),
    ],
    draw_arguments: None,
    draw,
};

/// As a quotient of three binomial probabilities (as in Loader's hypergeometric): y
/// of N, alpha of alpha + beta, and the sums of both, all at the chance
/// p = (y + alpha)/(N + alpha + beta), at which the last has no deviance.
pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [trials, alpha, beta]: [Quantity<'a, A>; 3],
) -> Quantity<'a, A> {
    let [support, y, failures] = outcomes(y, trials);
    let (some, others, n) = (
        y.at_least(1.0),
        failures.at_least(1.0),
        trials.at_least(1.0),
    );
    let prior = alpha + beta;
    let total = trials + prior;
    let (left, right) = (y + alpha, failures + beta);
    let (p, q) = (left / total, right / total);
    let apart = (alpha * failures - beta * y) / total;
    let outcome = |times, expected: Quantity<'a, A>, apart| Outcome {
        times,
        off: apart / times,
        log_ratio: (expected / times).ln(),
    };
    let trial_kernel = minus_deviance(
        &outcome(some, n * p, apart),
        &outcome(others, n * q, -apart),
    );
    let all = failures.below(1.0).choose(trials * q.ln_1m(), trial_kernel);
    let trial_kernel = y.below(1.0).choose(trials * p.ln_1m(), all);
    let prior_kernel = minus_deviance(
        &outcome(alpha, prior * p, -apart),
        &outcome(beta, prior * q, apart),
    );
    let normaliser = (prior.stirling_error() - alpha.stirling_error() - beta.stirling_error())
        - (total.stirling_error() - left.stirling_error() - right.stirling_error())
        + 0.5 * ((alpha / left).ln() + (beta / right).ln() - (prior / total).ln());
    normaliser
        + trial_kernel
        + prior_kernel
        + log_binomial_at_mean(y, failures)
        + support
        + alpha.domain_positive()
        + beta.domain_positive()
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [trials, alpha, beta] = numbers(arguments);
    let (success, failure) = draw::beta(rng, alpha, beta);
    draw::binomial(rng, trials, success, failure)
}
