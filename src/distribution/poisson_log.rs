//! The Poisson distribution, by the logarithm of its rate.

use rand::Rng;

use super::draw::{self, DrawError, numbers};
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::Unary;

pub(super) static FAMILY: Family = Family {
    name: "poisson_log",
    documentation: "Poisson with rate exp(alpha): y alpha - exp(alpha) - lgamma(y + 1)",
    variate: Kind::Int,
    support: Domain::Counts,
    arguments: &[Argument::real("alpha", Domain::Real, "log rate")],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<A: Algebra>(
    a: &mut A,
    y: A::Scalar,
    arguments: &[A::Scalar],
) -> A::Scalar {
    let [alpha] = *arguments else {
        unreachable!("the checker counts arguments")
    };
    let (zero, one) = (a.constant(0.0), a.constant(1.0));
    let linear = a.multiply(y, alpha);
    let rate = a.unary(Unary::Exp, alpha);
    let kernel = a.subtract(linear, rate);
    let y1 = a.add(y, one);
    let lgamma = a.unary(Unary::Lgamma, y1);
    let normaliser = a.negate(lgamma);
    let support = a.support_from(y, zero);
    a.sum(&[kernel, normaliser, support])
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [alpha] = numbers(arguments);
    draw::poisson(FAMILY.name, rng, alpha.exp())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_matches, log_density_of};

    #[test]
    fn matches_statrs() {
        use statrs::distribution::{Discrete, Poisson};
        assert_matches(
            "poisson_log",
            &[(3.0, &[0.4]), (0.0, &[-2.0]), (120.0, &[4.5])],
            |y, a| Poisson::new(a[0].exp()).unwrap().ln_pmf(y as u64),
        );
    }

    #[test]
    fn negative_counts_are_impossible() {
        assert_eq!(
            log_density_of("poisson_log", -1.0, &[0.0]),
            f64::NEG_INFINITY
        );
    }
}
