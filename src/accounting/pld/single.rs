//! A single release, whose delta is known in closed form.
//!
//! Losses grow with the point, so that delta(eps) = P(z > x) - e^eps Q(z > x) with x the
//! point whose loss is eps; under add/remove, in the other direction, Q(z < x) - e^eps
//! P(z < x) with x the point whose loss is -eps.

use super::super::gaussian::Bounds;
use super::curve::{Curve, Shares};
use super::fft::UNIT_ROUNDOFF;
use super::pair::{Pair, Side};

pub(super) struct Single {
    pair: Pair,
    mirrored: bool,
}

impl Single {
    /// The curves of all directions.
    pub(super) fn both(pair: &Pair) -> Vec<Single> {
        let single = |mirrored| Single {
            pair: *pair,
            mirrored,
        };
        if pair.is_symmetric() {
            vec![single(false)]
        } else {
            vec![single(false), single(true)]
        }
    }

    /// Bounds on ln delta, and their relative distance from what was computed.
    fn ln_delta(&self, epsilon: f64) -> (Bounds<f64>, f64) {
        let loss = if self.mirrored { -epsilon } else { epsilon };
        let point = self.pair.point(loss);
        if point == f64::NEG_INFINITY {
            let none = Bounds {
                lower: f64::NEG_INFINITY,
                upper: f64::NEG_INFINITY,
            };
            return (none, 0.0);
        }
        let half = if self.mirrored {
            let half = self.pair.half(f64::NEG_INFINITY, point, Side::Left, loss);
            half.mirrored(Side::Left, loss)
        } else {
            self.pair.half(point, f64::INFINITY, Side::Right, loss)
        };
        let reach = point.abs() + self.pair.shift;
        let exponents = 16.0 + 2.0 * reach * reach + epsilon - self.pair.rate.ln();
        let relative = 8.0 * UNIT_ROUNDOFF * exponents;
        // P and e^eps Q are of the same size, and lose digits in their difference.
        let error = relative * half.mass;
        let ln = |moment: f64| half.ln_scale + moment.max(0.0).ln();
        let rounding = relative * (1.0 + half.ln_scale.abs());
        let bounds = Bounds {
            lower: ln(half.moment - error) - rounding,
            upper: (ln(half.moment + error) + rounding).min(0.0),
        };
        (bounds, (error / half.moment).min(1.0))
    }
}

impl Curve for Single {
    fn ln_delta_upper(&self, epsilon: f64) -> f64 {
        self.ln_delta(epsilon).0.upper
    }

    fn ln_delta_lower(&self, epsilon: f64) -> f64 {
        self.ln_delta(epsilon).0.lower
    }

    fn end(&self) -> f64 {
        // Beyond 60 standard deviations delta is below e^-1800.
        self.pair.loss(60.0 + self.pair.shift)
    }

    fn shares(&self, epsilon: f64) -> Shares {
        Shares {
            truncation: 0.0,
            round_off: self.ln_delta(epsilon).1,
        }
    }
}
