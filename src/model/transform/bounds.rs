//! `<lower=a, upper=b>`: each element separately.

use super::super::constraint::element_name;
use super::super::public::{Binary, PublicGraph, PublicId};
use super::super::running_sum::take;
use super::super::value::Shape;
use super::Constrained;
use crate::function::{Algebra, Unary};

/// Bounds of length 1, or of the parameter's. A constant infinite bound is no bound, as in Stan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub lower: Option<PublicId>,
    pub upper: Option<PublicId>,
}

impl Bounds {
    pub(super) fn constrain(self, g: &mut PublicGraph, u: PublicId) -> Constrained {
        let length = g.length(u);
        let lower = present(g, self.lower, f64::NEG_INFINITY, length);
        let upper = present(g, self.upper, f64::INFINITY, length);
        // Elements that are bounded on the same sides form one vector.
        let mut parts = Vec::new();
        let mut order = Vec::new();
        let mut log_jacobian = Vec::new();
        for sides in [(false, false), (true, false), (false, true), (true, true)] {
            let positions: Vec<usize> = (0..length)
                .filter(|&i| (lower[i], upper[i]) == sides)
                .collect();
            if positions.is_empty() {
                continue;
            }
            let mut pick = |bound: Option<PublicId>, wanted: bool| {
                let bound = bound.filter(|_| wanted)?;
                Some(if g.length(bound) == length {
                    take(g, bound, &positions)
                } else {
                    bound
                })
            };
            let (a, b) = (pick(self.lower, sides.0), pick(self.upper, sides.1));
            let u = take(g, u, &positions);
            parts.push(constrain_alike(g, u, a, b, &mut log_jacobian));
            order.extend(positions);
        }
        let joined = g.concatenate(&parts);
        let mut places = vec![0; length];
        for (place, &position) in order.iter().enumerate() {
            places[position] = place;
        }
        Constrained {
            value: take(g, joined, &places),
            log_jacobian,
        }
    }
}

/// Which elements have the bound.
fn present(g: &PublicGraph, bound: Option<PublicId>, none: f64, length: usize) -> Vec<bool> {
    match bound.map(|id| g.constant_values(id)) {
        None => vec![false; length],
        // A function of parameters: assumed to be finite.
        Some(None) => vec![true; length],
        Some(Some(values)) => (0..length)
            .map(|i| values[i % values.len()] != none)
            .collect(),
    }
}

fn constrain_alike(
    g: &mut PublicGraph,
    u: PublicId,
    lower: Option<PublicId>,
    upper: Option<PublicId>,
    log_jacobian: &mut Vec<PublicId>,
) -> PublicId {
    match (lower, upper) {
        (None, None) => u,
        // x = a + exp(u), log Jacobian u
        (Some(a), None) => {
            log_jacobian.push(g.sum_of(u));
            let exp = g.unary(Unary::PositiveExp, u);
            g.binary(Binary::Add, a, exp)
        }
        // x = b - exp(u), log Jacobian u
        (None, Some(b)) => {
            log_jacobian.push(g.sum_of(u));
            let exp = g.unary(Unary::PositiveExp, u);
            g.binary(Binary::Subtract, b, exp)
        }
        // x = a + (b - a) inv_logit(u), log Jacobian
        // log(b - a) + log inv_logit(u) + log inv_logit(-u)
        (Some(a), Some(b)) => {
            // Bounds that depend on parameters may cross, where there is no density.
            let ordered = g.less(a, b);
            let (zero, one) = (g.constant(0.0), g.constant(1.0));
            let never = g.constant(f64::NEG_INFINITY);
            let width = g.subtract(b, a);
            let width = g.select(ordered, width, one);
            let support = g.select(ordered, zero, never);
            let log_width = g.ln(width);
            let share = g.unary(Unary::OpenInvLogit, u);
            let part = g.multiply(width, share);
            let x = g.add(a, part);
            let left = g.unary(Unary::LogInvLogit, u);
            let right = g.unary(Unary::Log1mInvLogit, u);
            let terms = g.sum(&[left, right, log_width, support]);
            log_jacobian.push(g.sum_of(terms));
            x
        }
    }
}

/// The inverse, with bounds as numbers: none, one for all, or one for each element.
pub(super) fn unconstrain(
    name: &str,
    values: &[f64],
    lower: &[f64],
    upper: &[f64],
    shape: &Shape,
) -> Result<Vec<f64>, String> {
    let bound = |bounds: &[f64], i: usize, none: f64| match bounds.len() {
        0 => none,
        n => bounds[i % n],
    };
    values
        .iter()
        .enumerate()
        .map(|(i, &x)| {
            let a = bound(lower, i, f64::NEG_INFINITY);
            let b = bound(upper, i, f64::INFINITY);
            let (u, wanted) = match (a == f64::NEG_INFINITY, b == f64::INFINITY) {
                (true, true) => (x, "finite".to_string()),
                (false, true) => ((x - a).ln(), format!("above {a}")),
                (true, false) => ((b - x).ln(), format!("below {b}")),
                (false, false) => {
                    // logit of the share, without rounding it to 1 first
                    let u = (x - a).ln() - (b - x).ln();
                    (u, format!("strictly between {a} and {b}"))
                }
            };
            if u.is_finite() {
                return Ok(u);
            }
            Err(format!(
                "`{}` is {x}, but must be {wanted}",
                element_name(name, shape, i)
            ))
        })
        .collect()
}
