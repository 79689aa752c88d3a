//! The binomial distribution, by the log-odds of success.

use rand::Rng;

use super::draw::{self, DrawError, numbers};
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::Unary;
use crate::function::special::inv_logit;

pub(super) static FAMILY: Family = Family {
    name: "binomial_logit",
    documentation: "Binomial with N trials and success probability inv_logit(alpha)",
    variate: Kind::Int,
    support: Domain::CountsTo(0),
    arguments: &[
        Argument::of("N", Kind::Int, Domain::Counts, "trials"),
        Argument::real("alpha", Domain::Real, "log-odds of success"),
    ],
    draw_arguments: None,
    draw,
};

/// `lchoose(N, y) + y log inv_logit(alpha) + (N - y) log inv_logit(-alpha)`
pub(super) fn log_density<A: Algebra>(
    a: &mut A,
    y: A::Scalar,
    arguments: &[A::Scalar],
) -> A::Scalar {
    let [trials, alpha] = *arguments else {
        unreachable!("the checker counts arguments")
    };
    let zero = a.constant(0.0);
    let failures = a.subtract(trials, y);
    let log_success = a.unary(Unary::LogInvLogit, alpha);
    let log_failure = a.unary(Unary::Log1mInvLogit, alpha);
    let successes = a.multiply(y, log_success);
    let misses = a.multiply(failures, log_failure);
    let kernel = a.add(successes, misses);
    let choose = a.log_choose(trials, y);
    let lower = a.support_from(y, zero);
    let upper = a.support_to(y, trials);
    a.sum(&[kernel, choose, lower, upper])
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [trials, alpha] = numbers(arguments);
    draw::binomial(rng, trials, inv_logit(alpha), inv_logit(-alpha))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_matches, log_density_of};

    #[test]
    fn matches_statrs() {
        use statrs::distribution::{Binomial, Discrete};
        assert_matches(
            "binomial_logit",
            &[(3.0, &[10.0, 0.4]), (0.0, &[5.0, -2.0]), (7.0, &[7.0, 1.0])],
            |y, a| {
                Binomial::new(1.0 / (1.0 + (-a[1]).exp()), a[0] as u64)
                    .unwrap()
                    .ln_pmf(y as u64)
            },
        );
    }

    #[test]
    fn keeps_the_tails() {
        assert!((log_density_of("binomial_logit", 2.0, &[2.0, -500.0]) + 1000.0).abs() < 1e-9);
        assert!(log_density_of("binomial_logit", 3.0, &[2.0, 0.0]).is_infinite());
    }
}
