//! An odometer: what releases chosen as the run went have cost so far.
//!
//! A filter answers yes or no to a budget fixed beforehand. To read off an epsilon at a
//! moment that itself depends on the answers is another matter: the bound has to hold at
//! all moments at once. So the budget is cut into levels, rho_f = 2^f rho_0 for f = 0, 1,
//! ..., each with its own share of delta, delta_f = 6 delta / (pi^2 (f+1)^2), which add up
//! to delta. While the sum of rho is within level f, the privacy loss is, but for
//! probability delta_f, at most
//!
//! ```text
//! eps_f = rho_f + 2 sqrt(rho_f ln(1/delta_f))
//! ```
//!
//! so that with probability 1 - delta the reading is never below the loss.
//!
//! # Reference
//!
//! Lécuyer (2021), "Practical privacy filters and odometers with Rényi differential
//! privacy", with the levels of zCDP in place of those of one Rényi order.

use super::accountant::AccountError;
use super::composition::Composition;
use super::event::{Event, Relation};
use super::gaussian::ln_bounds;
use super::real::Real;
use super::zcdp::{Conversion, epsilon_of_rho};

/// Counts what Gaussian releases about all rows, continuous or discrete, have cost.
///
/// ```
/// use dpm::accounting::{Event, Odometer, Relation};
///
/// let relation = Relation::Substitute;
/// let mut odometer = Odometer::new(relation, 1e-6, 1e-3)?;
/// assert_eq!(odometer.epsilon(), 0.0);
/// let release = Event::parse("gaussian:clip=1,sigma=40,count=10", relation)?;
/// odometer.count(&release)?;
/// let first = odometer.epsilon();
/// // More releases, chosen in view of the first: the reading still holds.
/// odometer.count(&release)?;
/// assert!(first > 0.0 && odometer.epsilon() > first);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Odometer {
    relation: Relation,
    delta: Real,
    first_level: Real,
    spent: Real,
}

/// pi^2/6, rounded up.
const SUM_OF_SHARES: Real = Real::exact(1.644_934_066_848_227);

impl Odometer {
    /// Readings hold together with probability 1 - `delta`; they are tightest where the
    /// sum of rho is a power of two times `first_level`.
    ///
    /// # Errors
    ///
    /// A delta outside (0, 1), or a first level that is not positive and finite.
    pub fn new(
        relation: Relation,
        delta: impl Into<Real>,
        first_level: impl Into<Real>,
    ) -> Result<Odometer, AccountError> {
        let (delta, first_level) = (delta.into(), first_level.into());
        super::accountant::check_delta(delta)?;
        if !(1e-100..=1e40).contains(&first_level.to_f64()) {
            return Err(AccountError::LevelOutOfRange(first_level.to_f64()));
        }
        Ok(Odometer {
            relation,
            delta,
            first_level,
            spent: Real::ZERO,
        })
    }

    /// Counts all releases of `event`.
    ///
    /// # Errors
    ///
    /// An event of another relation, or about a sample of the rows; nothing is counted.
    pub fn count(&mut self, event: &Event) -> Result<(), AccountError> {
        let composition = Composition::new(std::slice::from_ref(event), self.relation)?;
        super::zcdp::check_full_data(&composition)?;
        let rho = composition.mu();
        self.spent = (self.spent + rho) * Real::from_parts(1.0, 1e-31);
        Ok(())
    }

    /// The sum of rho.
    pub fn rho(&self) -> Real {
        self.spent
    }

    /// The epsilon so far, rounded up; 0 before the first release.
    pub fn epsilon(&self) -> f64 {
        if self.spent <= Real::ZERO {
            return 0.0;
        }
        let (mut level, mut number) = (self.first_level, 1.0);
        while level < self.spent {
            level = level.times_power_of_two(1);
            number += 1.0;
        }
        let share = self.delta / (SUM_OF_SHARES * Real::exact(number).square());
        epsilon_of_rho(level, ln_bounds(share).lower, Conversion::Simple).to_f64_up()
    }
}

#[cfg(test)]
mod tests {
    use super::super::zcdp::ln_delta_of_rho;
    use super::*;

    // Wrong here: a reading below what the releases cost even without adaptivity.
    #[test]
    fn readings_grow_and_are_never_below_the_bound_for_that_rho() {
        let relation = Relation::AddRemove;
        let mut odometer = Odometer::new(relation, 1e-6, 1e-3).unwrap();
        assert_eq!(odometer.epsilon(), 0.0);
        let release = Event::parse("gaussian:clip=1,sigma=20", relation).unwrap();
        let mut last = 0.0;
        for _ in 0..500 {
            odometer.count(&release).unwrap();
            let epsilon = odometer.epsilon();
            assert!(epsilon >= last);
            last = epsilon;
            let ln_delta =
                ln_delta_of_rho(odometer.rho(), Real::exact(epsilon), Conversion::Simple);
            assert!(ln_delta.to_f64() <= 1e-6f64.ln());
        }
        // 500 / (2 400) = 0.625 is in level 10, 1.024.
        assert!((odometer.rho().to_f64() - 0.625).abs() < 1e-12 && last < 12.0);
        let sampled = Event::parse("poisson:rate=0.1,clip=1,sigma=2", relation).unwrap();
        assert!(odometer.count(&sampled).is_err());
        assert!(Odometer::new(relation, 2.0, 1.0).is_err());
        assert!(Odometer::new(relation, 0.1, 0.0).is_err());
    }
}
