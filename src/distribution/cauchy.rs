//! The Cauchy distribution.

use rand::Rng;

use super::draw::{DrawError, numbers, open_unit};
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::Unary;

pub(super) static FAMILY: Family = Family {
    name: "cauchy",
    documentation: "Cauchy: -log(pi sigma) - log1p(((y - mu)/sigma)^2)",
    variate: Kind::Real,
    support: Domain::Real,
    arguments: &[
        Argument::real("mu", Domain::Real, "location"),
        Argument::real("sigma", Domain::Positive, "scale"),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<A: Algebra>(
    a: &mut A,
    y: A::Scalar,
    arguments: &[A::Scalar],
) -> A::Scalar {
    let [mu, sigma] = *arguments else {
        unreachable!("the checker counts arguments")
    };
    let deviation = a.subtract(y, mu);
    let z = a.divide(deviation, sigma);
    let z2 = a.square(z);
    let log = a.unary(Unary::Log1p, z2);
    let kernel = a.negate(log);
    let log_sigma = a.ln(sigma);
    let scale = a.negate(log_sigma);
    let constant = a.constant(-std::f64::consts::PI.ln());
    a.sum(&[kernel, scale, constant])
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [mu, sigma] = numbers(arguments);
    // From the median outwards, so that both tails are drawn to the end.
    let tail = 1.0 / (std::f64::consts::FRAC_PI_2 * open_unit(rng)).tan();
    let sign = if open_unit(rng) < 0.5 { -1.0 } else { 1.0 };
    Ok(vec![mu + sign * sigma * tail])
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_matches, log_density_of};

    #[test]
    fn matches_statrs() {
        use statrs::distribution::{Cauchy, Continuous};
        assert_matches(
            "cauchy",
            &[(0.3, &[1.0, 2.0]), (-40.0, &[3.0, 0.5]), (1e8, &[0.0, 1.0])],
            |y, a| Cauchy::new(a[0], a[1]).unwrap().ln_pdf(y),
        );
    }

    #[test]
    fn a_negative_scale_is_undefined() {
        assert!(log_density_of("cauchy", 0.0, &[0.0, -1.0]).is_nan());
    }
}
