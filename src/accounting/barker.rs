//! The acceptance test of DP-Barker: a normal draw whose *variance* also depends on rows.
//!
//! A batch of b out of n rows, drawn without replacement, gives log-ratios r_i clipped to
//! [-c, c] with c = 0.99 sqrt(b)/(n T). With s2 = (n T)^2/b var(r), the variance taken with
//! 1/b, the test compares (n T/b) sum r + N(0, 2 - s2) with a number that depends on no row.
//!
//! # Sensitivity
//!
//! In a batch of which one row is replaced, the mean moves by at most 2 c n T/b =
//! 1.98/sqrt(b), so its square by at most D = 4/b; the variance of b numbers in [-c, c]
//! moves by at most 4 c^2 (b-1)/b^2, so s2 by at most v = 4 (b-1)/b^2; and 2 - s2 is at least
//! 1, since s2 <= 0.99^2.
//!
//! # Privacy
//!
//! Between P = N(m, s1) and Q = N(0, s2), m^2 <= D, s1 and s2 >= 1 and |s1 - s2| <= v, the
//! Rényi divergence of order a is
//!
//! ```text
//! ln(s2/s1)/2 + ln(s2/s*)/(2(a-1)) + a m^2/(2 s*),   s* = s2 + (a-1)(s2 - s1) > 0
//! ```
//!
//! It grows with m^2. Adding the same normal noise to P and Q is post-processing, so it is
//! largest where the smaller variance is 1, and the other 1 + u with 0 <= u <= v. With
//! f(u) for s1 = 1 + u, s2 = 1 and g(u) for s1 = 1, s2 = 1 + u, where m = 0,
//!
//! ```text
//! f'(u) = a u / (2 (1+u) (1-(a-1)u)),   g'(u) = a u / (2 (1+u) (1+a u))
//! ```
//!
//! both are 0 at u = 0, so f >= g and f grows. So does the part with m, a m^2/(2 (1-(a-1)u)),
//! which is never below a m^2/(2 (1+a u)). Hence the largest divergence is at s1 = 1 + v,
//! s2 = 1:
//!
//! ```text
//! R(a) = -ln(1+v)/2 - ln(1-(a-1)v)/(2(a-1)) + a D/(2 (1-(a-1)v)),   (a-1) v < 1
//! ```
//!
//! The batch is amplified by Theorem 9 of Wang, Balle and Kasiviswanathan (2019), with
//! R(infinity) = infinity. (docs/proofs.md, section 12.)
//!
//! # Reference
//!
//! Heikkilä, Jälkö, Dikmen and Honkela (2019), "Differentially private Markov chain Monte
//! Carlo", for the test; their bound, 5/(2b) + ln(2b/(b-5a))/(2(a-1)) + 2a/(b-5a), is up to
//! ninety times this one.

use super::elementary::ln_1p;
use super::event_error::EventError;
use super::real::Real;
use super::release::Lattice;

/// Acceptance tests of DP-Barker, each on a new batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Barker {
    what: String,
    batch: u64,
    rows: u64,
    lattice: Option<Lattice>,
    count: u64,
}

impl Barker {
    /// One test on a batch of `batch` out of a public number of `rows`.
    ///
    /// # Errors
    ///
    /// A batch of fewer than 3 rows, for which there is no bound, or of more than there are.
    pub fn new(what: impl Into<String>, batch: u64, rows: u64) -> Result<Barker, EventError> {
        if batch < 3 || batch > rows {
            return Err(EventError::BarkerBatch { size: batch, rows });
        }
        Ok(Barker {
            what: what.into(),
            batch,
            rows,
            lattice: None,
            count: 1,
        })
    }

    /// The same, with noise drawn on a lattice: its ratio is the spacing over the least
    /// standard deviation, which is 1.
    pub fn on_lattice(self, lattice: Lattice) -> Barker {
        Barker {
            lattice: Some(lattice),
            ..self
        }
    }

    /// The same, with continuous noise.
    pub fn off_lattice(self) -> Barker {
        Barker {
            lattice: None,
            ..self
        }
    }

    /// The same test, `count` times in all.
    pub fn times(self, count: u64) -> Barker {
        Barker { count, ..self }
    }

    pub fn what(&self) -> &str {
        &self.what
    }

    pub fn batch(&self) -> u64 {
        self.batch
    }

    pub fn rows(&self) -> u64 {
        self.rows
    }

    pub fn lattice(&self) -> Option<Lattice> {
        self.lattice
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    /// The share of rows in a batch.
    pub fn rate(&self) -> Real {
        Real::from(self.batch) / Real::from(self.rows)
    }

    /// R(a) of one test on a known batch; none where it is infinite.
    pub(super) fn divergence_of_batch(&self, order: u64) -> Option<Real> {
        let b = Real::from(self.batch);
        let (a, t) = (Real::from(order), Real::from(order - 1));
        let v = Real::exact(4.0) * (b - Real::ONE) / b.square();
        let least = Real::ONE - t * v;
        if least <= Real::ZERO {
            return None;
        }
        let of_variances = -ln_1p(v) - ln_1p(-(t * v)) / t;
        let of_means = Real::exact(4.0) * a / (b * least);
        Some((of_variances + of_means).times_power_of_two(-1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1/(a-1) ln E_Q (P/Q)^a for P = N(m, s1), Q = N(0, s2), by the trapezoidal rule.
    fn quadrature(order: f64, m: f64, s1: f64, s2: f64) -> f64 {
        let ln_p = |z: f64| -0.5 * (z - m).powi(2) / s1 - 0.5 * s1.ln();
        let ln_q = |z: f64| -0.5 * z * z / s2 - 0.5 * s2.ln();
        let step = 1e-3;
        let sum: f64 = (-60_000..=60_000)
            .map(|k| f64::from(k) * step)
            .map(|z| (order * ln_p(z) - (order - 1.0) * ln_q(z)).exp())
            .sum();
        (sum * step / std::f64::consts::TAU.sqrt()).ln() / (order - 1.0)
    }

    // Wrong here: a pair of batches that differ more than the claimed worst pair.
    #[test]
    fn no_pair_of_variances_exceeds_the_bound_and_the_worst_meets_it() {
        for batch in [50u64, 200, 1000] {
            let b = batch as f64;
            let (v, m) = (4.0 * (b - 1.0) / (b * b), (4.0 / b).sqrt());
            let test = Barker::new("accept", batch, 10_000).unwrap();
            for order in [2u64, 3, 5, 8] {
                let bound = test.divergence_of_batch(order).unwrap().to_f64();
                let a = order as f64;
                let worst = quadrature(a, m, 1.0 + v, 1.0);
                assert!(
                    (worst / bound - 1.0).abs() < 1e-9,
                    "{batch} {order} {worst} {bound}"
                );
                for i in 0..=10 {
                    for (s, t) in [(1.0, 0.1), (1.0, 0.0), (1.3, 0.0), (1.9, 0.0)] {
                        let other: f64 = s + v * (f64::from(i) / 10.0 - t).clamp(0.0, 1.0);
                        for (s1, s2) in [(s, other), (other, s)] {
                            let found = quadrature(a, m, s1, s2);
                            assert!(found <= bound * (1.0 + 1e-9), "{s1} {s2} {found} {bound}");
                        }
                    }
                }
            }
        }
    }

    // The bound on variance and mean: no batch in [-c, c] moves them further.
    #[test]
    fn one_row_moves_mean_and_variance_no_further_than_said() {
        let (b, c) = (50usize, 1.0);
        let moments = |batch: &[f64]| {
            let mean = batch.iter().sum::<f64>() / batch.len() as f64;
            let square = batch.iter().map(|r| (r - mean).powi(2)).sum::<f64>();
            (mean, square / batch.len() as f64)
        };
        let largest = 4.0 * c * c * (b as f64 - 1.0) / (b * b) as f64;
        let mut seen: f64 = 0.0;
        for ones in 0..b {
            let mut batch: Vec<f64> = (0..b).map(|i| if i < ones { c } else { -c }).collect();
            let before = moments(&batch);
            for other in [-c, 0.0, 0.5 * c, c] {
                let kept = std::mem::replace(&mut batch[b - 1], other);
                let after = moments(&batch);
                batch[b - 1] = kept;
                assert!((after.0 - before.0).abs() <= 2.0 * c / b as f64 + 1e-12);
                assert!((after.1 - before.1).abs() <= largest + 1e-12);
                seen = seen.max((after.1 - before.1).abs());
            }
        }
        assert!(seen > 0.999 * largest);
    }

    #[test]
    fn the_published_example_is_ninety_times_smaller() {
        let test = Barker::new("accept", 1000, 100_000).unwrap();
        let found = test.divergence_of_batch(2).unwrap().to_f64();
        assert!((found - 0.00402).abs() < 1e-5, "{found}");
        assert_eq!(test.divergence_of_batch(252), None);
        assert!(Barker::new("accept", 2, 10).is_err() && Barker::new("accept", 11, 10).is_err());
    }
}
