//! `<offset=a, multiplier=b>`: the sampler's scale of an unbounded parameter.

use super::super::constraint::element_name;
use super::super::public::{PublicGraph, PublicId};
use super::super::value::Shape;
use super::Constrained;
use crate::function::{Algebra, Unary};

/// x = offset + multiplier u, log Jacobian the sum of log multiplier.
///
/// Each is of length 1, or of the parameter's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Affine {
    pub offset: Option<PublicId>,
    pub multiplier: Option<PublicId>,
}

impl Affine {
    pub(super) fn constrain(self, g: &mut PublicGraph, u: PublicId) -> Constrained {
        let mut value = u;
        let mut log_jacobian = Vec::new();
        if let Some(multiplier) = self.multiplier {
            value = g.multiply(multiplier, value);
            // A multiplier that depends on parameters may not be positive: such a point has no
            // density.
            let zero = g.constant(0.0);
            let positive = g.less(zero, multiplier);
            let one = g.constant(1.0);
            let never = g.constant(f64::NEG_INFINITY);
            let defined = g.select(positive, multiplier, one);
            let log = g.unary(Unary::Log, defined);
            let support = g.select(positive, zero, never);
            let log = g.add(log, support);
            let sum = g.sum_of(log);
            let copies = g.constant((g.length(u) / g.length(multiplier)) as f64);
            log_jacobian.push(g.multiply(copies, sum));
        }
        if let Some(offset) = self.offset {
            value = g.add(offset, value);
        }
        Constrained {
            value,
            log_jacobian,
        }
    }

    /// u = (x - offset) / multiplier
    pub(super) fn unconstrain(
        self,
        name: &str,
        values: &[f64],
        shape: &Shape,
        number: &dyn Fn(PublicId) -> Vec<f64>,
    ) -> Result<Vec<f64>, String> {
        let offset = self.offset.map_or_else(|| vec![0.0], number);
        let multiplier = self.multiplier.map_or_else(|| vec![1.0], number);
        values
            .iter()
            .enumerate()
            .map(|(i, &x)| {
                let (a, b) = (offset[i % offset.len()], multiplier[i % multiplier.len()]);
                if !(b > 0.0 && b.is_finite() && a.is_finite()) {
                    return Err(format!(
                        "`{name}` has the offset {a} and the multiplier {b}, but they must be finite, and the multiplier positive"
                    ));
                }
                let u = (x - a) / b;
                if u.is_finite() {
                    return Ok(u);
                }
                Err(format!(
                    "`{}` is {x}, but must be finite",
                    element_name(name, shape, i)
                ))
            })
            .collect()
    }
}
