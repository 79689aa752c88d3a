//! Releases about a random part of the rows, under substitute: batches drawn without
//! replacement, and Poisson samples.
//!
//! With rate q and e(j) the Rényi divergence of the release about a part that is known (for
//! a Gaussian one j/(2 s^2), s being sigma over the sensitivity, twice the clip bound), the
//! divergence at integer order a is at most
//!
//! ```text
//! 1/(a-1) ln(1 + sum over j = 2..a of C(a,j) q^j m_j)
//! plain:      m_2 = min(4 (e^e(2) - 1), 2 e^e(2)),  m_j = 2 e^((j-1) e(j))
//! tightened:  m_j = min(4 sqrt(B(2 floor(j/2)) B(2 ceil(j/2))), 2 e^((j-1) e(j))),  j > 2
//! ```
//!
//! where B(l) = sum over i of (-1)^(l-i) C(l,i) e^((i-1) e(i)) is the l-th moment of
//! dP/dQ - 1 under Q. The first is Theorem 9 of Wang, Balle and Kasiviswanathan (2019),
//! as the theses use it; the second is their Theorem 27, for which e(j) has to be exact. It
//! is so for Gaussian noise, and for a discrete Gaussian too, whose moments at shifts on its
//! lattice are the same. The divergence is also at most e(a), as that of a mixture never
//! exceeds the largest of its parts'; the tightened form takes the smaller.
//!
//! # Poisson samples
//!
//! The theorems are stated for batches of fixed size, and their proof holds for Poisson
//! samples under substitute. Let p, p' be the release given that the record, x or x', is in,
//! averaged over the other rows S that are, and r that given that it is not. The two
//! mixtures are P = (1-q) r + q p and Q = (1-q) r + q p', so
//!
//! ```text
//! E_Q (P/Q)^a = 1 + sum over j = 2..a of C(a,j) q^j E_Q ((p - p')/Q)^j
//! ```
//!
//! and since |x - y|^j / z^(j-1) is jointly convex, the j-th mean is at most the largest,
//! over S, of the mean under z of |(p_S - p'_S)/z|^j for z = p'_S and z = r_S. The means of
//! p_S, p'_S and r_S are pairwise no further apart than those of neighbours under
//! substitute, which is all that the bounds m_j use: where z lies between the other two,
//! |p - p'|/z is at most |p - p'| over the smaller of them, and elsewhere |p - p'| is at
//! most |p - z| or |p' - z|.

use super::super::barker::Barker;
use super::super::elementary::{exp, ln};
use super::super::real::Real;
use super::sum::{ln_binomials, ln_exp_m1, ln_one_plus_sum};

/// Beyond this j the alternating sums B are no longer worth their time.
const LAST_MOMENT: u64 = 256;

/// Relative to the sum of the sizes of its terms, the rounding of B as an alternating sum.
const MOMENT_ERROR: Real = Real::exact(1e-26);

/// Relative errors: of B as an alternating sum that is good enough, and of B as an integral.
const FEW_DIGITS_LOST: Real = Real::exact(1e-14);
const INTEGRAL_ERROR: Real = Real::exact(1e-9);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    Tightened,
}

pub(super) struct PartOfRows {
    ln_rate: Real,
    release: Release,
    /// ln B(2), ln B(4), ...
    ln_moments: Vec<Real>,
    /// ln m_j of both forms for j = 2, 3, ..., as far as they are finite.
    ln_factors: Vec<LnFactor>,
}

#[derive(Clone, Copy, Debug)]
struct LnFactor {
    plain: Real,
    tightened: Real,
}

/// The release about a part that is known.
enum Release {
    Gaussian {
        /// 1/(2 s^2)
        unit: Real,
    },
    Barker(Barker),
}

impl PartOfRows {
    /// `rate` lies strictly between 0 and 1, `ratio` is sigma over the sensitivity.
    pub(super) fn gaussian(rate: Real, ratio: Real) -> PartOfRows {
        let unit = (Real::ONE / ratio.square()).times_power_of_two(-1);
        PartOfRows {
            ln_rate: ln(rate),
            release: Release::Gaussian { unit },
            ln_moments: Vec::new(),
            ln_factors: Vec::new(),
        }
    }

    pub(super) fn barker(test: &Barker) -> PartOfRows {
        PartOfRows {
            ln_rate: ln(test.rate()),
            release: Release::Barker(test.clone()),
            ln_moments: Vec::new(),
            ln_factors: Vec::new(),
        }
    }

    /// The divergence, or none where there is no bound on it.
    pub(super) fn divergence(&mut self, order: u64, form: Form) -> Option<Real> {
        for j in self.ln_factors.len() as u64 + 2..=order {
            let plain = self.ln_plain(j)?;
            let tightened = if j > 2 {
                plain.min(self.ln_tightened(j))
            } else {
                plain
            };
            self.ln_factors.push(LnFactor { plain, tightened });
        }
        let binomials = (0..=order).zip(ln_binomials(order)).skip(2);
        let terms: Vec<Real> = binomials
            .zip(&self.ln_factors)
            .map(|((j, ln_binomial), factor)| {
                let ln_factor = match form {
                    Form::Plain => factor.plain,
                    Form::Tightened => factor.tightened,
                };
                ln_binomial + Real::from(j) * self.ln_rate + ln_factor
            })
            .collect();
        let amplified = ln_one_plus_sum(&terms) / Real::from(order - 1);
        Some(match form {
            Form::Plain => amplified,
            Form::Tightened => amplified.min(self.exponent(order)? / Real::from(order - 1)),
        })
    }

    /// ln m_j of the plain form.
    fn ln_plain(&self, j: u64) -> Option<Real> {
        let ln_2 = ln(Real::exact(2.0));
        let exponent = self.exponent(j)?;
        let twice = ln_2 + exponent;
        Some(if j == 2 {
            twice.min(ln_2.times_power_of_two(1) + ln_exp_m1(exponent))
        } else {
            twice
        })
    }

    /// ln of 4 sqrt(B(2 floor(j/2)) B(2 ceil(j/2))), infinite where it is not known.
    fn ln_tightened(&mut self, j: u64) -> Real {
        let unit = match self.release {
            Release::Gaussian { unit } if j <= LAST_MOMENT => unit,
            Release::Gaussian { .. } | Release::Barker(_) => {
                return Real::exact(f64::INFINITY);
            }
        };
        let ln_4 = ln(Real::exact(4.0));
        let (below, above) = (
            self.ln_moment(unit, j / 2),
            self.ln_moment(unit, j.div_ceil(2)),
        );
        ln_4 + (below + above).times_power_of_two(-1)
    }

    /// ln B(2 `half`), rounded up.
    fn ln_moment(&mut self, unit: Real, half: u64) -> Real {
        while (self.ln_moments.len() as u64) < half {
            let order = 2 * (self.ln_moments.len() as u64 + 1);
            let sum = ln_alternating_sum(unit, order);
            let ln_moment = sum.unwrap_or_else(|| ln_integral(unit, order));
            self.ln_moments.push(ln_moment);
        }
        let index = (half.max(1) - 1) as usize;
        self.ln_moments.get(index).copied().unwrap_or(Real::ZERO)
    }

    /// (j - 1) e(j), or none where that is infinite.
    fn exponent(&self, j: u64) -> Option<Real> {
        match &self.release {
            Release::Gaussian { unit } => Some(gaussian_exponent(*unit, j)),
            Release::Barker(test) => {
                let divergence = test.divergence_of_batch(j)?;
                Some(Real::from(j.saturating_sub(1)) * divergence)
            }
        }
    }
}

/// (j - 1) e(j) of Gaussian noise.
fn gaussian_exponent(unit: Real, j: u64) -> Real {
    Real::from(j * j.saturating_sub(1)) * unit
}

/// ln B as the alternating sum, unless its terms cancel.
fn ln_alternating_sum(unit: Real, order: u64) -> Option<Real> {
    let top = gaussian_exponent(unit, order);
    let (mut sum, mut size) = (Real::ZERO, Real::ZERO);
    for (i, ln_binomial) in (0..=order).zip(ln_binomials(order)) {
        let term = exp(ln_binomial + gaussian_exponent(unit, i) - top);
        size = size + term;
        sum = if i % 2 == 0 { sum + term } else { sum - term };
    }
    let error = size * MOMENT_ERROR;
    (error < sum * FEW_DIGITS_LOST).then(|| ln(sum + error) + top)
}

/// ln B as the mean of (e^(a z - a^2/2) - 1)^l over standard normal z, a = 1/s, whose
/// terms are positive for even l.
///
/// The trapezoidal rule of step h errs by the transform of the integrand at multiples
/// of 2 pi/h, which is no more than e^(-2 pi^2/h^2) times the sum of the sizes of the
/// alternating terms, at most 2^l e^((l-1) e(l)).
fn ln_integral(unit: Real, order: u64) -> Real {
    let shift = (2.0 * unit.to_f64()).sqrt();
    let l = order as f64;
    let ln_sizes = l * std::f64::consts::LN_2 + gaussian_exponent(unit, order).to_f64();
    let mut step: f64 = 0.25;
    loop {
        let ln_moment = trapezoidal(shift, l, step);
        let needed =
            (std::f64::consts::TAU * std::f64::consts::PI / (ln_sizes - ln_moment + 40.0)).sqrt();
        if step <= needed || step < 1e-3 {
            return Real::exact(ln_moment) + INTEGRAL_ERROR;
        }
        step = 0.9 * needed;
    }
}

/// ln of the sum over z = k h of h phi(z) |e^(a z - a^2/2) - 1|^l.
fn trapezoidal(shift: f64, l: f64, step: f64) -> f64 {
    // Beyond 12 deviations from 0 and from a l, where the powers peak, little is left.
    let reach = 12.0 + 2.0 * l.sqrt();
    let (from, to) = (-reach, shift * l + reach);
    let steps = ((to - from) / step).ceil() as u32;
    let ln_term = |k: u32| {
        let z = from + f64::from(k) * step;
        let excess = (shift * (z - 0.5 * shift)).exp_m1().abs();
        let ln_excess = if excess.is_finite() {
            excess.ln()
        } else {
            shift * (z - 0.5 * shift)
        };
        -0.5 * z * z + l * ln_excess
    };
    let top = (0..=steps).map(ln_term).fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = (0..=steps).map(|k| (ln_term(k) - top).exp()).sum();
    top + (sum * step).ln() - 0.5 * std::f64::consts::TAU.ln()
}
