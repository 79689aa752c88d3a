//! The exponential distribution.

use rand::Rng;

use super::draw::{DrawError, numbers, open_unit};
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::Unary;

pub(super) static FAMILY: Family = Family {
    name: "exponential",
    documentation: "Exponential: log beta - beta y",
    variate: Kind::Real,
    support: Domain::NonNegative,
    arguments: &[Argument::real("beta", Domain::Positive, "inverse scale")],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<A: Algebra>(
    a: &mut A,
    y: A::Scalar,
    arguments: &[A::Scalar],
) -> A::Scalar {
    let [beta] = *arguments else {
        unreachable!("the checker counts arguments")
    };
    let zero = a.constant(0.0);
    let product = a.multiply(beta, y);
    let kernel = a.negate(product);
    let log_beta = a.unary(Unary::Log, beta);
    let support = a.support_from(y, zero);
    a.sum(&[kernel, log_beta, support])
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [beta] = numbers(arguments);
    Ok(vec![-open_unit(rng).ln() / beta])
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_matches, log_density_of};

    #[test]
    fn matches_statrs() {
        use statrs::distribution::{Continuous, Exp};
        assert_matches(
            "exponential",
            &[(0.0, &[2.0]), (0.3, &[2.0]), (1e8, &[1e-3]), (-0.1, &[1.0])],
            |y, a| Exp::new(a[0]).unwrap().ln_pdf(y),
        );
    }

    #[test]
    fn a_negative_rate_is_undefined() {
        assert!(log_density_of("exponential", 1.0, &[-1.0]).is_nan());
    }
}
