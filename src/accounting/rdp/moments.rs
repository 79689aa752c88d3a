//! Moments of likelihood ratios of Gaussian releases.
//!
//! With r the standard normal density, x_b(z) = e^(b z - b^2/2) the ratio of N(b, 1) to it,
//! and s = sigma over the distance of the means that one record makes,
//!
//! ```text
//! one shift:      E_r |x_a - 1|^l,       a = 1/s
//! opposite ones:  E_r |x_a - x_-a|^l
//! ```
//!
//! For even l both are alternating sums of moments E_r x^i x'^k, which are powers of e, and
//! integrals of positive functions; for odd l the geometric mean of its two neighbours is above it
//! (Cauchy and Schwarz).

use super::super::elementary::{exp, ln};
use super::super::real::Real;
use super::sum::ln_binomials;

/// The largest l whose moments are worth their time.
const LAST_MOMENT: u64 = 256;

/// Relative to the sum of the sizes of its terms, the rounding of an alternating sum.
const SUM_ERROR: Real = Real::exact(1e-26);

/// Relative errors: of an alternating sum that is good enough, and of an integral.
const FEW_DIGITS_LOST: Real = Real::exact(1e-14);
const INTEGRAL_ERROR: Real = Real::exact(1e-9);

/// The shifts that are compared; `unit` is a^2/2.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shifts {
    One { unit: Real },
    Opposite { unit: Real },
}

/// ln of the moments for l = 2, 4, ..., of one kind of shifts.
#[derive(Clone, Debug, Default)]
pub(super) struct Moments {
    ln_even: Vec<Real>,
}

impl Moments {
    /// ln of the moment, rounded up, for l > 1; infinite where it is not known.
    pub(super) fn ln_absolute(&mut self, shifts: Shifts, l: u64) -> Real {
        if l > LAST_MOMENT {
            return Real::exact(f64::INFINITY);
        }
        let (below, above) = (
            self.ln_even(shifts, l / 2),
            self.ln_even(shifts, l.div_ceil(2)),
        );
        (below + above).times_power_of_two(-1)
    }

    /// ln of the moment for l = 2 `half`.
    fn ln_even(&mut self, shifts: Shifts, half: u64) -> Real {
        while (self.ln_even.len() as u64) < half {
            let order = 2 * (self.ln_even.len() as u64 + 1);
            let sum = shifts.ln_alternating_sum(order);
            self.ln_even
                .push(sum.unwrap_or_else(|| shifts.ln_integral(order)));
        }
        let index = (half.max(1) - 1) as usize;
        self.ln_even.get(index).copied().unwrap_or(Real::ZERO)
    }
}

/// ln E_r x_a^j = (j - 1) times the divergence of order j.
pub(super) fn gaussian_exponent(unit: Real, j: u64) -> Real {
    Real::from(j * j.saturating_sub(1)) * unit
}

impl Shifts {
    fn unit(self) -> Real {
        match self {
            Shifts::One { unit } | Shifts::Opposite { unit } => unit,
        }
    }

    /// ln of the i-th mean, E_r x_a^i or E_r x_a^i x_-a^(l-i) = e^(((2i - l)^2 - l) a^2/2).
    fn exponent(self, l: u64, i: u64) -> Real {
        match self {
            Shifts::One { unit } => gaussian_exponent(unit, i),
            Shifts::Opposite { unit } => {
                let square = (2 * i).abs_diff(l).pow(2);
                (Real::from(square) - Real::from(l)) * unit
            }
        }
    }

    /// ln of the moment of even order as the alternating sum, unless its terms cancel.
    fn ln_alternating_sum(self, order: u64) -> Option<Real> {
        let top = gaussian_exponent(self.unit(), order);
        let (mut sum, mut size) = (Real::ZERO, Real::ZERO);
        for (i, ln_binomial) in (0..=order).zip(ln_binomials(order)) {
            let term = exp(ln_binomial + self.exponent(order, i) - top);
            size = size + term;
            sum = if i % 2 == 0 { sum + term } else { sum - term };
        }
        let error = size * SUM_ERROR;
        (error < sum * FEW_DIGITS_LOST).then(|| ln(sum + error) + top)
    }

    /// ln of the moment of even order as the mean over standard normal z.
    ///
    /// The trapezoidal rule of step h errs by the transform of the integrand at multiples
    /// of 2 pi/h, which is no more than e^(-2 pi^2/h^2) times the sum of the sizes of the
    /// alternating terms, at most 2^l e^(l (l-1) a^2/2).
    fn ln_integral(self, order: u64) -> Real {
        let l = order as f64;
        let ln_sizes = l * std::f64::consts::LN_2 + gaussian_exponent(self.unit(), order).to_f64();
        let mut step: f64 = 0.25;
        loop {
            let ln_moment = self.trapezoidal(l, step);
            let needed = (std::f64::consts::TAU * std::f64::consts::PI
                / (ln_sizes - ln_moment + 40.0))
                .sqrt();
            if step <= needed || step < 1e-3 {
                return Real::exact(ln_moment) + INTEGRAL_ERROR;
            }
            step = 0.9 * needed;
        }
    }

    /// ln of the sum over z = k h of h phi(z) |x_a - 1|^l, or |x_a - x_-a|^l.
    fn trapezoidal(self, l: f64, step: f64) -> f64 {
        let shift = (2.0 * self.unit().to_f64()).sqrt();
        // Beyond 12 deviations from 0 and from a l, where the powers peak, little is left.
        let reach = 12.0 + 2.0 * l.sqrt();
        let to = shift * l + reach;
        let from = match self {
            Shifts::One { .. } => -reach,
            Shifts::Opposite { .. } => -to,
        };
        let steps = ((to - from) / step).ceil() as u32;
        let ln_difference = |z: f64| {
            let (difference, ln_large) = match self {
                Shifts::One { .. } => {
                    let exponent = shift * (z - 0.5 * shift);
                    (exponent.exp_m1().abs(), exponent)
                }
                Shifts::Opposite { .. } => {
                    let exponent = shift * (z.abs() - 0.5 * shift);
                    let of_larger = -(-2.0 * shift * z.abs()).exp_m1();
                    (exponent.exp() * of_larger, exponent)
                }
            };
            if difference.is_finite() {
                difference.ln()
            } else {
                ln_large
            }
        };
        let ln_term = |k: u32| {
            let z = from + f64::from(k) * step;
            -0.5 * z * z + l * ln_difference(z)
        };
        let top = (0..=steps).map(ln_term).fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = (0..=steps).map(|k| (ln_term(k) - top).exp()).sum();
        top + (sum * step).ln() - 0.5 * std::f64::consts::TAU.ln()
    }
}
