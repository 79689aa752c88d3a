//! Releases about batches drawn without replacement, under substitute.
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
//! lattice are the same. The tightened form is at most
//!
//! ```text
//! 1/(a-1) ln(1 + q (e^((a-1) e(a)) - 1))
//! ```
//!
//! as x^a/y^(a-1) is jointly convex and the batches without the record, a share 1 - q, make the
//! same release on both sides.

use super::super::barker::Barker;
use super::super::elementary::ln;
use super::super::real::Real;
use super::moments::{Moments, Shifts, gaussian_exponent};
use super::sum::{ln_binomials, ln_exp_m1, ln_mixed, ln_one_plus_sum};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Plain,
    Tightened,
}

pub(super) struct PartOfRows {
    ln_rate: Real,
    release: Release,
    moments: Moments,
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
            moments: Moments::default(),
            ln_factors: Vec::new(),
        }
    }

    pub(super) fn barker(test: &Barker) -> PartOfRows {
        PartOfRows {
            ln_rate: ln(test.rate()),
            release: Release::Barker(test.clone()),
            moments: Moments::default(),
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
            Form::Tightened => {
                let of_part = ln_mixed(self.ln_rate, self.exponent(order)?);
                amplified.min(of_part / Real::from(order - 1))
            }
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
        match self.release {
            Release::Gaussian { unit } => {
                let ln_4 = ln(Real::exact(4.0));
                ln_4 + self.moments.ln_absolute(Shifts::One { unit }, j)
            }
            Release::Barker(_) => Real::exact(f64::INFINITY),
        }
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
