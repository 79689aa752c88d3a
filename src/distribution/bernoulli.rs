//! The Bernoulli distribution, by the chance of success.

use rand::Rng;

use super::draw::{DrawError, numbers, open_unit};
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::Unary;

pub(super) static FAMILY: Family = Family {
    name: "bernoulli",
    documentation: "Bernoulli: log theta if y = 1, log(1 - theta) if y = 0",
    variate: Kind::Int,
    support: Domain::Binary,
    arguments: &[Argument::real("theta", Domain::Unit, "chance of success")],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<A: Algebra>(
    a: &mut A,
    y: A::Scalar,
    arguments: &[A::Scalar],
) -> A::Scalar {
    let [theta] = *arguments else {
        unreachable!("the checker counts arguments")
    };
    let success = a.unary(Unary::Log, theta);
    let failure = a.unary(Unary::Log1m, theta);
    let log_probability = a.select(y, success, failure);
    let support = a.support_binary(y);
    a.sum(&[log_probability, support])
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [theta] = numbers(arguments);
    Ok(vec![f64::from(open_unit(rng) < theta)])
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_matches, log_density_of};

    #[test]
    fn matches_statrs() {
        use statrs::distribution::{Bernoulli, Discrete};
        assert_matches(
            "bernoulli",
            &[
                (0.0, &[0.3]),
                (1.0, &[0.3]),
                (1.0, &[1e-300]),
                (0.0, &[0.75]),
            ],
            |y, a| Bernoulli::new(a[0]).unwrap().ln_pmf(y as u64),
        );
    }

    #[test]
    fn keeps_small_probabilities_and_refuses_others() {
        assert_eq!(log_density_of("bernoulli", 0.0, &[1e-300]), -1e-300);
        assert!(log_density_of("bernoulli", 1.0, &[-0.5]).is_nan());
        assert_eq!(log_density_of("bernoulli", 2.0, &[0.5]), f64::NEG_INFINITY);
    }
}
