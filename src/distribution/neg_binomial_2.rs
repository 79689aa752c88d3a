//! The negative binomial distribution, by mean and precision.

use rand::Rng;

use super::deviance::{Outcome, log_poisson_at_mean, minus_deviance};
use super::draw::{self, DrawError, numbers};
use super::quantity::{Quantity, domain_not_negative};
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "neg_binomial_2",
    documentation: "Negative binomial: lchoose(y + phi - 1, y) + y log(mu/(mu + phi)) + phi log(phi/(mu + phi))",
    variate: Kind::Int,
    support: Domain::Counts,
    arguments: &[
        Argument::real("mu", Domain::NonNegative, "mean"),
        Argument::real("phi", Domain::Positive, "precision"),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [mu, phi]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    log_density_by_logs(y, mu, mu.ln(), (mu / phi).ln_1p(), phi) + domain_not_negative(mu)
}

/// The log density from the mean, its logarithm and `log(1 + mu/phi)`.
///
/// As Loader's: phi/(phi + y) times the binomial probability of y in y + phi
/// trials at chance mu/(mu + phi). Every quotient below is written so that its
/// derivative in phi survives as phi grows and the family becomes Poisson.
pub(super) fn log_density_by_logs<'a, A: Algebra>(
    y: Quantity<'a, A>,
    mu: Quantity<'a, A>,
    log_mu: Quantity<'a, A>,
    log_spread: Quantity<'a, A>,
    phi: Quantity<'a, A>,
) -> Quantity<'a, A> {
    let none = y.below(1.0);
    let count = y.at_least(1.0);
    let total = count + phi;
    let (spread, over) = (1.0 + mu / phi, count / phi);
    let log_over = over.ln_1p();
    // phi trials of y + phi failed: the ratio of the expected number to that, and the same for the
    // y others.
    let log_failures = log_over - log_spread;
    let failures = Outcome {
        times: phi,
        off: (count - mu) / (phi + mu),
        log_ratio: log_failures,
    };
    let successes = Outcome {
        times: count,
        off: (mu - count) / count / spread,
        log_ratio: log_mu - count.ln() + log_failures,
    };
    let some = (total.stirling_error() - phi.stirling_error()) - 0.5 * log_over
        + minus_deviance(&failures, &successes);
    // A count of zero: -phi log(1 + mu/phi).
    let few = mu / phi;
    let nothing = few
        .below(1.0)
        .choose(-mu - phi * few.ln_1p_minus(), -phi * log_spread);
    none.choose(nothing, some)
        + log_poisson_at_mean(count).unless(none, 0.0)
        + y.support_from(y.constant(0.0))
        + phi.domain_positive()
}

/// A Poisson count whose rate is the mean times a gamma variate of mean one.
pub(super) fn draw_by_log(
    family: &'static str,
    rng: &mut dyn Rng,
    log_mu: f64,
    phi: f64,
) -> Result<Vec<f64>, DrawError> {
    let log_rate = log_mu + draw::log_gamma(rng, phi) - phi.ln();
    draw::poisson(family, rng, log_rate.exp())
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [mu, phi] = numbers(arguments);
    draw_by_log(FAMILY.name, rng, mu.ln(), phi)
}
