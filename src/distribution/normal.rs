//! The normal distribution.

use rand::Rng;

use super::draw::{DrawError, numbers, standard_normal};
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::Unary;

pub(super) static FAMILY: Family = Family {
    name: "normal",
    documentation: "Normal: -((y - mu)/sigma)^2/2 - log sigma - log(2 pi)/2",
    variate: Kind::Real,
    support: Domain::Real,
    arguments: &[
        Argument::real("mu", Domain::Real, "mean"),
        Argument::real("sigma", Domain::Positive, "standard deviation"),
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
    let minus_half = a.constant(-0.5);
    let kernel = a.multiply(minus_half, z2);
    let log_sigma = a.unary(Unary::Log, sigma);
    let constant = a.constant(-0.5 * (2.0 * std::f64::consts::PI).ln());
    let scale = a.negate(log_sigma);
    a.sum(&[kernel, scale, constant])
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [mu, sigma] = numbers(arguments);
    Ok(vec![mu + sigma * standard_normal(rng)])
}

#[cfg(test)]
mod tests {
    use super::super::tests::{assert_matches, log_density_of};

    #[test]
    fn matches_statrs() {
        use statrs::distribution::{Continuous, Normal};
        assert_matches(
            "normal",
            &[
                (0.3, &[1.0, 2.0]),
                (-40.0, &[3.0, 0.5]),
                (1e8, &[0.0, 1.0]),
                (1e8, &[1e8, 1e-3]),
            ],
            |y, a| Normal::new(a[0], a[1]).unwrap().ln_pdf(y),
        );
    }

    #[test]
    fn a_negative_scale_is_undefined() {
        assert!(log_density_of("normal", 0.0, &[0.0, -1.0]).is_nan());
    }
}
