//! The von Mises distribution of an angle.

use rand::Rng;

use super::draw::{DrawError, numbers, open_unit};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::{HALF_LOG_TWO_PI, Unary};
use std::f64::consts::PI;

pub(super) static FAMILY: Family = Family {
    name: "von_mises",
    documentation: "Von Mises: kappa cos(y - mu) - log(2 pi I0(kappa))",
    variate: Kind::Real,
    support: Domain::Real,
    arguments: &[
        Argument::real("mu", Domain::Real, "mean direction"),
        Argument::real("kappa", Domain::Positive, "concentration"),
    ],
    draw_arguments: None,
    draw,
};

/// `cos d = 1 - 2 sin(d/2)^2`: for a large kappa the largest parts of the cosine and of the Bessel
/// function are subtracted from both.
pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [mu, kappa]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    let half_sine = (0.5 * (y - mu)).apply(Unary::Sin);
    -2.0 * kappa * half_sine.squared()
        - kappa.apply(Unary::LogScaledBesselI0)
        - 2.0 * HALF_LOG_TWO_PI
        + kappa.domain_positive()
}

/// Best and Fisher (1979), *Efficient simulation of the von Mises distribution*,
/// with one minus each cosine carried along instead of the cosine.
fn angle(rng: &mut dyn Rng, kappa: f64) -> f64 {
    let less_one = if kappa < 1e-5 {
        1.0 / kappa + kappa - 1.0
    } else {
        let tau = 1.0 + 1.0f64.hypot(2.0 * kappa);
        let root = (2.0 * tau).sqrt();
        let rho = (tau - root) / (2.0 * kappa);
        let rest = (2.0 * kappa - tau + root) / (2.0 * kappa);
        rest * rest / (2.0 * rho)
    };
    loop {
        // 1 - z for z = cos(pi u), and 1 - f for f = (1 + r z)/(r + z).
        let half = (0.5 * PI * open_unit(rng)).sin();
        let from_one = 2.0 * half * half;
        let fall = less_one * from_one / (less_one + 2.0 - from_one);
        let c = kappa * (less_one + fall);
        let u = open_unit(rng);
        if c * (2.0 - c) > u || (c / u).ln() + 1.0 - c >= 0.0 {
            let angle = 2.0 * (0.5 * fall).sqrt().min(1.0).asin();
            return if open_unit(rng) < 0.5 { -angle } else { angle };
        }
    }
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [mu, kappa] = numbers(arguments);
    let angle = mu + angle(rng, kappa);
    // Back into -pi..pi.
    Ok(vec![angle - 2.0 * PI * (angle / (2.0 * PI)).round()])
}
