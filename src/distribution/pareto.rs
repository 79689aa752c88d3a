//! The Pareto distribution.

use rand::Rng;

use super::draw::{DrawError, numbers, open_unit};
use super::quantity::{Quantity, is_not_positive, positive_or_one};
use super::{Algebra, Argument, Container, Domain, Family, Kind};

pub(super) static FAMILY: Family = Family {
    name: "pareto",
    documentation: "Pareto: log alpha + alpha log y_min - (alpha + 1) log y",
    variate: Kind::Real,
    support: Domain::From(0),
    arguments: &[
        Argument::real("y_min", Domain::Positive, "smallest value"),
        Argument::real("alpha", Domain::Positive, "shape"),
    ],
    draw_arguments: None,
    draw,
};

pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [y_min, alpha]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    let inside = positive_or_one(y);
    alpha.ln() - alpha * log_excess(inside, y_min) - inside.ln()
        + y.support_from(y_min)
        + y_min.domain_positive()
}

pub(super) fn log_cdf<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [y_min, alpha]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    let below = y.less(y_min).choose(y.constant(1.0), is_not_positive(y));
    let log = (-(alpha * log_excess(positive_or_one(y), y_min))).ln_1m_exp();
    log.unless(below, f64::NEG_INFINITY)
}

pub(super) fn log_ccdf<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [y_min, alpha]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    let below = y.less(y_min).choose(y.constant(1.0), is_not_positive(y));
    (-(alpha * log_excess(positive_or_one(y), y_min))).unless(below, 0.0)
}

/// `log(y/y_min)`, from the difference where it is small.
fn log_excess<'a, A: Algebra>(y: Quantity<'a, A>, y_min: Quantity<'a, A>) -> Quantity<'a, A> {
    let near = ((y - y_min) / y_min).ln_1p();
    (0.5 * y).less(y_min).choose(near, y.ln() - y_min.ln())
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [y_min, alpha] = numbers(arguments);
    Ok(vec![y_min * (-open_unit(rng).ln() / alpha).exp()])
}
