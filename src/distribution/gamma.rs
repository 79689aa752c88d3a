//! The gamma distribution, by shape and inverse scale.

use rand::Rng;

use super::draw::{self, DrawError, numbers};
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::Unary;

pub(super) static FAMILY: Family = Family {
    name: "gamma",
    documentation: "Gamma: alpha log beta - lgamma alpha + (alpha - 1) log y - beta y",
    variate: Kind::Real,
    support: Domain::NonNegative,
    arguments: &[
        Argument::real("alpha", Domain::Positive, "shape"),
        Argument::real("beta", Domain::Positive, "inverse scale"),
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
    let log_rate = a.ln(beta);
    let rate = a.multiply(alpha, log_rate);
    let lgamma = a.unary(Unary::Lgamma, alpha);
    let normaliser = a.subtract(rate, lgamma);
    let shape = a.subtract(alpha, one);
    let power = a.multiply_log(shape, y);
    let product = a.multiply(beta, y);
    let kernel = a.subtract(power, product);
    let support = a.support_from(y, zero);
    let domain = a.domain_positive(alpha);
    a.sum(&[kernel, normaliser, domain, support])
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [alpha, beta] = numbers(arguments);
    Ok(vec![draw::log_gamma(rng, alpha).exp() / beta])
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_matches, log_density_of};

    #[test]
    fn matches_statrs() {
        use statrs::distribution::{Continuous, Gamma};
        assert_matches(
            "gamma",
            &[
                (0.3, &[2.0, 3.0]),
                (1e8, &[0.5, 1e-3]),
                (7.0, &[1.0, 0.2]),
                (1e-12, &[0.1, 1.0]),
            ],
            |y, a| Gamma::new(a[0], a[1]).unwrap().ln_pdf(y),
        );
    }

    #[test]
    fn a_negative_shape_is_undefined() {
        assert!(log_density_of("gamma", 1.0, &[-1.5, 1.0]).is_nan());
    }
}
