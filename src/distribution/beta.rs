//! The beta distribution.

use rand::Rng;

use super::draw::{self, DrawError, numbers};
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::Unary;

pub(super) static FAMILY: Family = Family {
    name: "beta",
    documentation: "Beta: (alpha - 1) log y + (beta - 1) log(1 - y) - lbeta(alpha, beta)",
    variate: Kind::Real,
    support: Domain::Unit,
    arguments: &[
        Argument::real("alpha", Domain::Positive, "prior successes"),
        Argument::real("beta", Domain::Positive, "prior failures"),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<A: Algebra>(
    a: &mut A,
    y: A::Scalar,
    arguments: &[A::Scalar],
) -> A::Scalar {
    let [alpha, beta] = *arguments else {
        unreachable!("the checker counts arguments")
    };
    let (zero, one) = (a.constant(0.0), a.constant(1.0));
    let left_power = a.subtract(alpha, one);
    let right_power = a.subtract(beta, one);
    let left = a.multiply_log(left_power, y);
    let right = a.multiply_log1m(right_power, y);
    let log_beta = a.log_beta(alpha, beta);
    let kernel = a.add(left, right);
    let normaliser = a.unary(Unary::Negate, log_beta);
    let lower = a.support_from(y, zero);
    let upper = a.support_to(y, one);
    let alpha_domain = a.domain_positive(alpha);
    let beta_domain = a.domain_positive(beta);
    a.sum(&[kernel, normaliser, alpha_domain, beta_domain, lower, upper])
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [alpha, beta] = numbers(arguments);
    Ok(vec![draw::beta(rng, alpha, beta).0])
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_matches, log_density_of};

    #[test]
    fn matches_statrs() {
        use statrs::distribution::{Beta, Continuous};
        assert_matches(
            "beta",
            &[
                (0.3, &[2.0, 3.0]),
                (1e-12, &[0.5, 4.0]),
                (0.999, &[1.0, 0.2]),
                (0.25, &[1.0, 1.0]),
            ],
            |y, a| Beta::new(a[0], a[1]).unwrap().ln_pdf(y),
        );
    }

    #[test]
    fn a_negative_shape_is_undefined() {
        assert!(log_density_of("beta", 0.5, &[-1.5, 1.0]).is_nan());
    }
}
