//! The multinomial distribution.

use rand::Rng;

use super::deviance::{log_poisson_at_mean, poisson_deviance};
use super::draw::{self, DrawError};
use super::quantity::Quantity;
use super::vector::domain_simplex;
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "multinomial",
    documentation: "Multinomial: lgamma(n + 1) + sum of y log theta - lgamma(y + 1), n = sum(y)",
    variate: Kind::Ints("K"),
    support: Domain::Counts,
    arguments: &[Argument::of(
        "theta",
        Kind::Vector("K"),
        Domain::Simplex,
        "chances of the categories",
    )],
    draw_arguments: Some(&[
        Argument::of(
            "theta",
            Kind::Vector("K"),
            Domain::Simplex,
            "chances of the categories",
        ),
        Argument::of("N", Kind::Int, Domain::Counts, "trials"),
    ]),
    draw,
};

/// Poisson counts given their sum. On the simplex the rates add up to the trials, and
/// derivatives agree along it: the density is that of theta/sum(theta).
pub(super) fn log_density<'a, A: Algebra>(
    y: Container<'_, Quantity<'a, A>>,
    [theta]: [Container<'_, Quantity<'a, A>>; 1],
) -> Quantity<'a, A> {
    let Some(&first) = y.elements.first() else {
        unreachable!("a simplex has an element")
    };
    let trials = first.sum(y.elements.iter().copied());
    let log_trials = trials.at_least(1.0).ln();
    let terms = y.elements.iter().zip(theta.elements).map(|(&y, &theta)| {
        let none = y.below(1.0);
        let count = y.at_least(1.0);
        let rate = trials * theta;
        let log_ratio = theta.ln() + log_trials - count.ln();
        let deviance = poisson_deviance(count, rate, log_ratio);
        log_poisson_at_mean(count).unless(none, 0.0) - none.choose(rate, deviance)
            + y.support_from(y.constant(0.0))
    });
    let all = -log_poisson_at_mean(trials.at_least(1.0));
    first.sum(terms) + all.unless(trials.below(1.0), 0.0) + domain_simplex(theta.elements)
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let theta = arguments[0].elements;
    let mut trials = arguments[1].number();
    let mut rest: f64 = theta.iter().sum();
    let mut counts = Vec::new();
    for &chance in theta {
        let others = (rest - chance).max(0.0);
        let total = chance + others;
        let drawn = if total > 0.0 {
            draw::binomial(rng, trials, chance / total, others / total)?[0]
        } else {
            0.0
        };
        counts.push(drawn);
        trials -= drawn;
        rest = others;
    }
    Ok(counts)
}
