//! The Gaussian mechanism on a Poisson sample, under add/remove.
//!
//! With rate q and s = sigma over the clip bound, the divergence at integer order a is
//!
//! ```text
//! 1/(a-1) ln sum over j = 0..a of C(a,j) (1-q)^(a-j) q^j e^((j^2 - j)/(2 s^2))
//! ```
//!
//! in the direction "remove", and no larger in the other (Mironov, Talwar and Zhang 2019,
//! section 3). The weights sum to one, so taking one from each exponential leaves
//! 1 + a sum of positive terms from j = 2 on, which keeps its digits where q is small.

use super::super::elementary::ln;
use super::super::real::Real;
use super::sum::{ln_binomials, ln_exp_m1, ln_one_plus_sum};

pub(super) struct Poisson {
    ln_rate: Real,
    ln_rest: Real,
    /// s^2
    square: Real,
    /// ln(e^((j^2 - j)/(2 s^2)) - 1) for j = 2, 3, ...
    ln_excesses: Vec<Real>,
}

impl Poisson {
    /// `rate` lies strictly between 0 and 1, `ratio` is sigma over the sensitivity.
    pub(super) fn new(rate: Real, ratio: Real) -> Poisson {
        Poisson {
            ln_rate: ln(rate),
            ln_rest: ln(Real::ONE - rate),
            square: ratio.square(),
            ln_excesses: Vec::new(),
        }
    }

    pub(super) fn divergence(&mut self, order: u64) -> Real {
        for j in self.ln_excesses.len() as u64 + 2..=order {
            let pairs = Real::from(j * (j - 1)).times_power_of_two(-1);
            self.ln_excesses.push(ln_exp_m1(pairs / self.square));
        }
        let binomials = (0..=order).zip(ln_binomials(order)).skip(2);
        let terms: Vec<Real> = binomials
            .zip(&self.ln_excesses)
            .map(|((j, ln_binomial), &ln_excess)| {
                let weight = ln_binomial
                    + Real::from(order - j) * self.ln_rest
                    + Real::from(j) * self.ln_rate;
                weight + ln_excess
            })
            .collect();
        ln_one_plus_sum(&terms) / Real::from(order - 1)
    }
}
