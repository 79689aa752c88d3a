//! The uniform distribution.

use rand::Rng;

use super::draw::{DrawError, numbers, open_unit};
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::Unary;

pub(super) static FAMILY: Family = Family {
    name: "uniform",
    documentation: "Uniform: -log(beta - alpha)",
    variate: Kind::Real,
    support: Domain::Between(0, 1),
    arguments: &[
        Argument::real("alpha", Domain::Real, "lower end"),
        Argument::real("beta", Domain::Above(0), "upper end"),
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
    let width = a.subtract(beta, alpha);
    let log_width = a.unary(Unary::Log, width);
    let density = a.negate(log_width);
    let lower = a.support_from(y, alpha);
    let upper = a.support_to(y, beta);
    a.sum(&[density, lower, upper])
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [alpha, beta] = numbers(arguments);
    let u = open_unit(rng);
    Ok(vec![alpha * (1.0 - u) + beta * u])
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_matches, log_density_of};

    #[test]
    fn matches_statrs() {
        use statrs::distribution::{Continuous, Uniform};
        assert_matches(
            "uniform",
            &[(0.3, &[0.0, 1.0]), (-5.0, &[-7.0, 3.0]), (4.0, &[0.0, 1.0])],
            |y, a| Uniform::new(a[0], a[1]).unwrap().ln_pdf(y),
        );
    }

    #[test]
    fn an_empty_interval_is_undefined() {
        assert!(log_density_of("uniform", 0.5, &[1.0, 0.0]).is_nan());
    }
}
