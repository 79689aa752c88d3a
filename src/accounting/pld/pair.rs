//! The pair of distributions that stands for all neighbouring data sets.
//!
//! In units of the noise, with a = clip/sigma (add/remove, Poisson with substitute) or
//! a = 2 clip/sigma (without replacement) and rate q, the privacy loss ln(dP/dQ) of
//!
//! ```text
//! Poisson, add/remove:        P = (1-q) N(0,1) + q N(a,1),  Q = N(0,1)       and swapped
//! Poisson, substitute:        P = (1-q) N(0,1) + q N(a,1),  Q = (1-q) N(0,1) + q N(-a,1)
//! without replacement,        the losses l > 0 of the first pair, each with its mirror
//!   substitute:               image -l of weight e^-l, and the rest of the mass at 0
//! all rows:                   the first pair with q = 1, which is its own mirror image
//! ```
//!
//! is the largest there is: no data and no neighbours have a larger delta(eps), for any
//! number of compositions. Proved for the first and third (Zhu, Dong and Wang 2022);
//! for the second it has been checked numerically only.
//!
//! Every loss grows with the point z, so a set of losses between two bounds is an
//! interval of z, whose mass is a sum of normal masses.

use super::normal::{ln_density, ln_interval, narrow_interval};

/// Which pair, in the direction "remove" where there are two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Also zero-out, and all rows, with rate 1.
    PoissonAddRemove,
    PoissonSubstitute,
    WithoutReplacementSubstitute,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pair {
    pub(super) kind: Kind,
    /// The sampling rate, above 0 and at most 1.
    pub(super) rate: f64,
    /// 1 - rate.
    pub(super) rest: f64,
    /// Distance of the means in units of the noise.
    pub(super) shift: f64,
}

/// How far points are looked at, in units of the noise: below the mean of N(0, 1), and
/// above that of N(a, 1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Reach {
    pub(super) below: f64,
    pub(super) above: f64,
}

/// Half of the losses that belong to a node of the grid: their mass under P and
/// the moment that says where between node and midpoint they lie.
///
/// Right of a node at l the moment is the integral of 1 - e^(l - loss) over P, left of
/// it that of e^(l - loss) - 1. Both are e^`ln_scale` times the number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Half {
    pub(super) ln_scale: f64,
    pub(super) mass: f64,
    pub(super) moment: f64,
}

/// On which side of its node a half lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// Masses of N(0,1) and of its shifted copies on one interval.
struct Masses {
    ln_scale: f64,
    /// The mass is `size` e^(`ln_scale` + `exponent`).
    base: Mass,
    up: Mass,
    down: Mass,
}

#[derive(Clone, Copy)]
struct Mass {
    size: f64,
    exponent: f64,
}

impl Mass {
    const NONE: Mass = Mass {
        size: 0.0,
        exponent: 0.0,
    };

    fn value(self) -> f64 {
        self.times_exp(0.0)
    }

    /// The mass times e^`exponent`, where neither alone need be a number.
    fn times_exp(self, exponent: f64) -> f64 {
        if self.size > 0.0 {
            self.size * (self.exponent + exponent).exp()
        } else {
            0.0
        }
    }
}

impl Half {
    pub(super) const NONE: Half = Half {
        ln_scale: f64::NEG_INFINITY,
        mass: 0.0,
        moment: 0.0,
    };

    /// The half of the pair (Q, P) that this one turns into; `side` and `loss` are this
    /// one's, and the other lies on the other side of a node at -`loss`.
    pub(super) fn mirrored(self, side: Side, loss: f64) -> Half {
        // Q = e^-loss (P -+ moment), and the moment keeps its form.
        let mass = match side {
            Side::Right => (self.mass - self.moment).max(0.0),
            Side::Left => self.mass + self.moment,
        };
        Half {
            ln_scale: self.ln_scale - loss,
            mass,
            moment: self.moment,
        }
    }
}

impl Pair {
    /// With 1 - rate rounded to the nearest.
    pub(super) fn of(kind: Kind, rate: f64, shift: f64) -> Pair {
        Pair {
            kind,
            rate,
            rest: 1.0 - rate,
            shift,
        }
    }

    /// The losses on both sides of 0 are mirror images of each other.
    pub(super) fn is_symmetric(&self) -> bool {
        match self.kind {
            Kind::PoissonAddRemove => false,
            Kind::PoissonSubstitute | Kind::WithoutReplacementSubstitute => true,
        }
    }

    /// No loss is as small as this.
    pub(super) fn least_loss(&self) -> f64 {
        match self.kind {
            Kind::PoissonAddRemove => self.rest.ln(),
            Kind::PoissonSubstitute | Kind::WithoutReplacementSubstitute => f64::NEG_INFINITY,
        }
    }

    /// The mass of losses of exactly 0.
    pub(super) fn atom(&self) -> f64 {
        match self.kind {
            Kind::PoissonAddRemove | Kind::PoissonSubstitute => 0.0,
            // 1 - P(z > a/2) - Q(z > a/2) = (1-q) (Phi(a/2) - Phi(-a/2))
            Kind::WithoutReplacementSubstitute => {
                self.rest * libm::erf(0.5 * self.shift * std::f64::consts::FRAC_1_SQRT_2)
            }
        }
    }

    /// The loss at the point z. For a symmetric pair z is where losses are positive.
    pub(super) fn loss(&self, z: f64) -> f64 {
        let up = self.ln_ratio(z);
        match self.kind {
            Kind::PoissonAddRemove | Kind::WithoutReplacementSubstitute => self.ln_mixture(up),
            Kind::PoissonSubstitute => self.ln_mixture(up) - self.ln_mixture(self.ln_ratio(-z)),
        }
    }

    /// The point where the loss is `loss`; minus infinity where no loss is as small.
    pub(super) fn point(&self, loss: f64) -> f64 {
        let a = self.shift;
        match self.kind {
            // 1 - q + q e^y = e^loss
            Kind::PoissonAddRemove | Kind::WithoutReplacementSubstitute => {
                let ln_ratio = if self.rest <= 0.0 {
                    loss
                } else if loss > 30.0 {
                    loss - self.rate.ln() + (-self.rest * (-loss).exp()).ln_1p()
                } else {
                    (self.above_least(loss).max(0.0) / self.rate).ln()
                };
                (ln_ratio + 0.5 * a * a) / a
            }
            // With v = e^(a z - loss/2) and c = e^(-a^2/2): v - 1/v = 2 (1-q) sinh(loss/2) / (q c)
            Kind::PoissonSubstitute => {
                let half = 0.5 * loss;
                (half + asinh_of_scaled_sinh(half, (self.rest / self.rate).ln() + 0.5 * a * a)) / a
            }
        }
    }

    /// Mass and moment of the points between `low` and `high`, on the given side of the
    /// node at `loss`.
    pub(super) fn half(&self, low: f64, high: f64, side: Side, loss: f64) -> Half {
        if high <= low {
            return Half::NONE;
        }
        let masses = self.masses(low, high);
        let (base, up, down) = (masses.base, masses.up, masses.down);
        let mass = self.rest * base.value() + self.rate * up.value();
        // P - e^loss Q, the part that both share being 1 - e^loss times its mass.
        let excess = |mass: Mass| {
            if loss.abs() <= 30.0 {
                loss.exp_m1() * mass.value()
            } else {
                mass.times_exp(loss) - mass.value()
            }
        };
        let difference = match self.kind {
            Kind::PoissonAddRemove | Kind::WithoutReplacementSubstitute => {
                self.rate * up.value()
                    - if loss <= 30.0 {
                        self.above_least(loss) * base.value()
                    } else {
                        base.times_exp(loss) - self.rest * base.value()
                    }
            }
            Kind::PoissonSubstitute => {
                self.rate * (up.value() - down.value())
                    - self.rate * excess(down)
                    - self.rest * excess(base)
            }
        };
        Half {
            ln_scale: masses.ln_scale,
            mass,
            moment: match side {
                Side::Right => difference.max(0.0),
                Side::Left => (-difference).max(0.0),
            },
        }
    }

    /// ln P and ln Q of the points above `low` (or below `high`).
    pub(super) fn ln_tails(&self, low: f64, high: f64) -> (f64, f64) {
        let a = self.shift;
        let (ln_rate, ln_rest) = (self.rate.ln(), self.rest.ln());
        let base = ln_interval(low, high);
        let p = ln_sum(ln_rest + base, ln_rate + ln_interval(low - a, high - a));
        let q = match self.kind {
            Kind::PoissonAddRemove | Kind::WithoutReplacementSubstitute => base,
            Kind::PoissonSubstitute => {
                ln_sum(ln_rest + base, ln_rate + ln_interval(low + a, high + a))
            }
        };
        (p, q)
    }

    /// ln of the density of Q of the two-sided pair at z.
    pub(super) fn ln_density_down(&self, z: f64) -> f64 {
        ln_density(z) + self.ln_mixture(self.ln_ratio(-z))
    }

    /// A bound on how far rounding may move a loss or the ratio of two masses.
    pub(super) fn slip(&self, reach: Reach) -> f64 {
        let (a, reach) = (self.shift, reach.below.max(reach.above));
        let exponents = a * (reach + a) + 0.5 * reach * reach - self.rate.ln();
        super::fft::UNIT_ROUNDOFF * (256.0 + 8.0 * exponents)
    }

    /// e^loss - (1 - q), from terms no larger than it takes.
    fn above_least(&self, loss: f64) -> f64 {
        if loss < -0.5 {
            loss.exp() - self.rest
        } else {
            loss.exp_m1() + self.rate
        }
    }

    /// y = ln of the density of N(a, 1) over that of N(0, 1).
    fn ln_ratio(&self, z: f64) -> f64 {
        self.shift * (z - 0.5 * self.shift)
    }

    /// ln(1 - q + q e^y).
    fn ln_mixture(&self, y: f64) -> f64 {
        if self.rest <= 0.0 {
            y
        } else if y > 30.0 {
            y + self.rate.ln() + (self.rest / self.rate * (-y).exp()).ln_1p()
        } else if y < -0.5 {
            self.ln_rest_and_rate_times(y.exp())
        } else {
            (self.rate * y.exp_m1()).ln_1p()
        }
    }

    /// ln(1 - q + q x) for 0 <= x <= 1.
    pub(super) fn ln_rest_and_rate_times(&self, x: f64) -> f64 {
        if self.rate * (1.0 - x) > 0.5 {
            (self.rest + self.rate * x).ln()
        } else {
            (self.rate * (x - 1.0)).ln_1p()
        }
    }

    fn masses(&self, low: f64, high: f64) -> Masses {
        let a = self.shift;
        let two_sided = self.kind == Kind::PoissonSubstitute;
        let (m, w) = (0.5 * (low + high), high - low);
        let narrow = (
            narrow_interval(m, w),
            narrow_interval(m - a, w),
            if two_sided {
                narrow_interval(m + a, w)
            } else {
                Some(0.0)
            },
        );
        if let (Some(base), Some(up), Some(down)) = narrow {
            let (y, y_down) = (self.ln_ratio(m), self.ln_ratio(-m));
            let top = y.max(0.0);
            let mass = |size, exponent| Mass { size, exponent };
            return Masses {
                ln_scale: ln_density(m) + top,
                base: mass(base, -top),
                up: mass(up, y - top),
                down: mass(down, y_down - top),
            };
        }
        let base = ln_interval(low, high);
        let up = ln_interval(low - a, high - a);
        let top = base.max(up);
        let mass = |ln: f64| Mass {
            size: 1.0,
            exponent: ln - top,
        };
        Masses {
            ln_scale: top,
            base: mass(base),
            up: mass(up),
            down: if two_sided {
                mass(ln_interval(low + a, high + a))
            } else {
                Mass::NONE
            },
        }
    }
}

/// asinh(e^`ln_factor` sinh(x)).
fn asinh_of_scaled_sinh(x: f64, ln_factor: f64) -> f64 {
    let size = x.abs();
    if size == 0.0 || ln_factor == f64::NEG_INFINITY {
        return 0.0;
    }
    // ln of e^f sinh|x|
    let ln_argument = if size > 20.0 {
        ln_factor + size - std::f64::consts::LN_2
    } else {
        ln_factor + size.sinh().ln()
    };
    let value = if ln_argument > 40.0 {
        ln_argument + std::f64::consts::LN_2
    } else {
        let t = ln_argument.exp();
        (t + t * t / (1.0 + (1.0 + t * t).sqrt())).ln_1p()
    };
    value.copysign(x)
}

/// ln(e^x + e^y).
pub(super) fn ln_sum(x: f64, y: f64) -> f64 {
    let (large, small) = (x.max(y), x.min(y));
    if small == f64::NEG_INFINITY {
        large
    } else {
        large + (small - large).exp().ln_1p()
    }
}
