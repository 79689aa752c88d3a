//! The Cauchy distribution.

use super::{Algebra, Argument, Family, Number};
use crate::function::Unary;

pub(super) static FAMILY: Family = Family {
    name: "cauchy",
    documentation: "Cauchy: -log(pi sigma) - log1p(((y - mu)/sigma)^2)",
    variate: Number::Real,
    support: "every real",
    arguments: &[
        Argument {
            name: "mu",
            number: Number::Real,
            domain: "real",
        },
        Argument {
            name: "sigma",
            number: Number::Real,
            domain: "positive",
        },
    ],
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
