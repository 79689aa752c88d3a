//! The Bernoulli distribution, by the log-odds of success.

use rand::Rng;

use super::draw::{DrawError, numbers, open_unit};
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::Unary;

pub(super) static FAMILY: Family = Family {
    name: "bernoulli_logit",
    documentation: "Bernoulli with success probability inv_logit(alpha)",
    variate: Kind::Int,
    support: Domain::Binary,
    arguments: &[Argument::real("alpha", Domain::Real, "log-odds of success")],
    draw_arguments: None,
    draw,
};

/// `-log1p_exp(-(2y - 1) alpha)`: one term for both outcomes, without
/// cancellation in either tail.
pub(super) fn log_density<A: Algebra>(
    a: &mut A,
    y: A::Scalar,
    arguments: &[A::Scalar],
) -> A::Scalar {
    let [alpha] = *arguments else {
        unreachable!("the checker counts arguments")
    };
    let (one, two) = (a.constant(1.0), a.constant(2.0));
    let doubled = a.multiply(two, y);
    let sign = a.subtract(doubled, one);
    let signed = a.multiply(sign, alpha);
    let log_probability = a.unary(Unary::LogInvLogit, signed);
    let support = a.support_binary(y);
    a.sum(&[log_probability, support])
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [alpha] = numbers(arguments);
    let log_odds = open_unit(rng);
    let log_odds = log_odds.ln() - (-log_odds).ln_1p();
    Ok(vec![f64::from(log_odds < alpha)])
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_matches, log_density_of};

    /// log p computed with mpmath at 40 digits.
    #[test]
    fn matches_mpmath_tails_included() {
        assert_matches(
            "bernoulli_logit",
            &[
                (1.0, &[0.7]),
                (0.0, &[0.7]),
                (1.0, &[-800.0]),
                (1.0, &[800.0]),
                (0.0, &[40.0]),
            ],
            |y, a| match (y as i32, a[0]) {
                (1, 0.7) => -0.403_186_048_885_458_7,
                (0, 0.7) => -1.103_186_048_885_458_7,
                (1, -800.0) => -800.0,
                (1, 800.0) => 0.0,
                _ => -40.0,
            },
        );
    }

    #[test]
    fn other_outcomes_are_impossible() {
        assert_eq!(
            log_density_of("bernoulli_logit", 0.5, &[1.0]),
            f64::NEG_INFINITY
        );
    }
}
