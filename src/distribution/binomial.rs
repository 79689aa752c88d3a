//! The binomial distribution, by the chance of success.

use rand::Rng;

use super::deviance::{Outcome, log_binomial_at_mean, minus_deviance, outcomes};
use super::draw::{self, DrawError, numbers};
use super::quantity::{Quantity, domain_unit};
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "binomial",
    documentation: "Binomial: lchoose(N, y) + y log theta + (N - y) log(1 - theta)",
    variate: Kind::Int,
    support: Domain::CountsTo(0),
    arguments: &[
        Argument::of("N", Kind::Int, Domain::Counts, "trials"),
        Argument::real("theta", Domain::Unit, "chance of success"),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [trials, theta]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    let [support, y, failures] = outcomes(y, trials);
    let (rest, log, log_rest) = (1.0 - theta, theta.ln(), theta.ln_1m());
    let (some, others, n) = (
        y.at_least(1.0),
        failures.at_least(1.0),
        trials.at_least(1.0),
    );
    // theta - y/N, computed from the nearer end.
    let apart = failures.less(y).choose(failures / n - rest, theta - y / n);
    let successes = Outcome {
        times: some,
        off: n * apart / some,
        log_ratio: log - (some / n).ln(),
    };
    let failed = Outcome {
        times: others,
        off: -(n * apart) / others,
        log_ratio: log_rest - (others / n).ln(),
    };
    let inside = minus_deviance(&successes, &failed);
    let all = failures.below(1.0).choose(trials * log, inside);
    let some_or_all = y.below(1.0).choose(trials * log_rest, all);
    some_or_all.unless(trials.below(1.0), 0.0)
        + log_binomial_at_mean(y, failures)
        + support
        + domain_unit(theta)
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [trials, theta] = numbers(arguments);
    draw::binomial(rng, trials, theta, 1.0 - theta)
}
