//! Student's t distribution with location and scale.

use rand::Rng;

use super::draw::{self, DrawError, numbers, standard_normal};
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::Unary;

pub(super) static FAMILY: Family = Family {
    name: "student_t",
    documentation: "Student t with nu degrees of freedom, location mu, scale sigma",
    variate: Kind::Real,
    support: Domain::Real,
    arguments: &[
        Argument::real("nu", Domain::Positive, "degrees of freedom"),
        Argument::real("mu", Domain::Real, "location"),
        Argument::real("sigma", Domain::Positive, "scale"),
    ],
    draw_arguments: None,
    draw,
};

/// `lgamma((nu+1)/2) - lgamma(nu/2) - log(nu pi)/2 - log sigma
///  - (nu+1)/2 * log1p(z^2/nu)`
pub(super) fn log_density<A: Algebra>(
    a: &mut A,
    y: A::Scalar,
    arguments: &[A::Scalar],
) -> A::Scalar {
    let [nu, mu, sigma] = *arguments else {
        unreachable!("the checker counts arguments")
    };
    let half = a.constant(0.5);
    let one = a.constant(1.0);
    let nu1 = a.add(nu, one);
    let half_nu1 = a.multiply(half, nu1);
    let half_nu = a.multiply(half, nu);
    let top = a.unary(Unary::Lgamma, half_nu1);
    let bottom = a.unary(Unary::Lgamma, half_nu);
    let gammas = a.subtract(top, bottom);
    let pi = a.constant(std::f64::consts::PI);
    let nu_pi = a.multiply(nu, pi);
    let log_nu_pi = a.ln(nu_pi);
    let root = a.multiply(half, log_nu_pi);
    let log_sigma = a.ln(sigma);
    let gammas_less_root = a.subtract(gammas, root);
    let normaliser = a.subtract(gammas_less_root, log_sigma);
    let deviation = a.subtract(y, mu);
    let z = a.divide(deviation, sigma);
    let z2 = a.square(z);
    let ratio = a.divide(z2, nu);
    let log = a.unary(Unary::Log1p, ratio);
    let tail = a.multiply(half_nu1, log);
    let kernel = a.negate(tail);
    a.sum(&[kernel, normaliser])
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [nu, mu, sigma] = numbers(arguments);
    // Normal / sqrt(chi-square / nu), the root taken of the logarithm.
    let log_scale = 0.5 * ((0.5 * nu).ln() - draw::log_gamma(rng, 0.5 * nu));
    Ok(vec![mu + sigma * standard_normal(rng) * log_scale.exp()])
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_matches, log_density_of};

    #[test]
    fn matches_statrs() {
        use statrs::distribution::{Continuous, StudentsT};
        assert_matches(
            "student_t",
            &[
                (0.3, &[4.0, 1.0, 2.0]),
                (-40.0, &[2.5, 3.0, 0.5]),
                (1e8, &[3.0, 0.0, 1.0]),
            ],
            |y, a| StudentsT::new(a[1], a[2], a[0]).unwrap().ln_pdf(y),
        );
    }

    #[test]
    fn negative_degrees_of_freedom_are_undefined() {
        assert!(log_density_of("student_t", 0.0, &[-1.0, 0.0, 1.0]).is_nan());
    }
}
