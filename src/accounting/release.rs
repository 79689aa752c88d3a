//! A sum over all rows with Gaussian noise, and the lattice that the noise is drawn on.

use serde::Serialize;

use super::event_error::EventError;
use super::real::Real;
use super::relation::Relation;

/// Sums over all rows of vectors of l2 norm at most `clip`, each with Gaussian noise.
///
/// Sensitivity, clip and sigma are absolute and in the same units. The numbers are checked at
/// construction.
#[derive(Clone, Debug, PartialEq)]
pub struct Gaussian {
    what: String,
    clip: Option<Real>,
    sensitivity: Real,
    sigma: Real,
    lattice: Option<Lattice>,
    count: u64,
}

/// The lattice of a discrete Gaussian, and how fine it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Lattice {
    ratio: Real,
    coordinates: u64,
}

impl Gaussian {
    /// One release of a sum of vectors of norm at most `clip`; the relation determines its
    /// sensitivity.
    pub fn of_clip(
        what: impl Into<String>,
        clip: impl Into<Real>,
        relation: Relation,
        sigma: impl Into<Real>,
    ) -> Result<Gaussian, EventError> {
        let clip = positive("clip", clip.into())?;
        let sensitivity = relation.sensitivity(clip);
        let release = Gaussian::of_sensitivity(what, sensitivity, sigma)?;
        Ok(Gaussian {
            clip: Some(clip),
            ..release
        })
    }

    /// One release that moves by at most `sensitivity` between neighbours, whatever the
    /// relation.
    pub fn of_sensitivity(
        what: impl Into<String>,
        sensitivity: impl Into<Real>,
        sigma: impl Into<Real>,
    ) -> Result<Gaussian, EventError> {
        let sensitivity = positive("sensitivity", sensitivity.into())?;
        let sigma = positive("sigma", sigma.into())?;
        // Within this range no square below under- or overflows.
        if !(1e-50..=1e15).contains(&(sensitivity / sigma).to_f64()) {
            return Err(EventError::RatioOutOfRange {
                sensitivity: sensitivity.to_f64(),
                sigma: sigma.to_f64(),
            });
        }
        Ok(Gaussian {
            what: what.into(),
            clip: None,
            sensitivity,
            sigma,
            lattice: None,
            count: 1,
        })
    }

    /// The same, with noise drawn on a lattice.
    pub fn on_lattice(self, lattice: Lattice) -> Gaussian {
        Gaussian {
            lattice: Some(lattice),
            ..self
        }
    }

    /// The same, with continuous noise.
    pub fn off_lattice(self) -> Gaussian {
        Gaussian {
            lattice: None,
            ..self
        }
    }

    /// The same release, `count` times in all.
    pub fn times(self, count: u64) -> Gaussian {
        Gaussian { count, ..self }
    }

    pub fn what(&self) -> &str {
        &self.what
    }

    /// The bound on one record's contribution, where it was what the user gave.
    pub fn clip(&self) -> Option<Real> {
        self.clip
    }

    pub fn sensitivity(&self) -> Real {
        self.sensitivity
    }

    /// The standard deviation of the noise.
    pub fn sigma(&self) -> Real {
        self.sigma
    }

    pub fn lattice(&self) -> Option<Lattice> {
        self.lattice
    }

    pub fn count(&self) -> u64 {
        self.count
    }
}

impl Lattice {
    /// `ratio` = spacing/sigma, at most 1; `coordinates` drawn at each release.
    pub fn new(ratio: impl Into<Real>, coordinates: u64) -> Result<Lattice, EventError> {
        let ratio = positive("the lattice's spacing over sigma", ratio.into())?;
        if ratio > Real::ONE {
            return Err(EventError::LatticeTooCoarse(ratio.to_f64()));
        }
        if coordinates == 0 {
            return Err(EventError::NoCoordinates);
        }
        Ok(Lattice { ratio, coordinates })
    }

    pub fn ratio(&self) -> Real {
        self.ratio
    }

    pub fn coordinates(&self) -> u64 {
        self.coordinates
    }
}

/// The value if it is finite, above zero, and far from the limits of `f64`.
fn positive(name: &'static str, value: Real) -> Result<Real, EventError> {
    if value.is_finite() && (1e-290..=1e290).contains(&value.to_f64()) {
        Ok(value)
    } else {
        Err(EventError::NotPositive {
            name,
            value: value.to_f64(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Wrong here: half the noise that substitute needs.
    #[test]
    fn the_relation_makes_the_sensitivity() {
        let gaussian = |relation| Gaussian::of_clip("gradient", 1.5, relation, 2.0).unwrap();
        assert_eq!(gaussian(Relation::Substitute).sensitivity().to_f64(), 3.0);
        assert_eq!(gaussian(Relation::AddRemove).sensitivity().to_f64(), 1.5);
        assert_eq!(gaussian(Relation::ZeroOut).sensitivity().to_f64(), 1.5);
        assert_eq!(gaussian(Relation::AddRemove).clip().unwrap().to_f64(), 1.5);
    }

    #[test]
    fn numbers_that_cannot_be_accounted_are_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300] {
            assert!(Gaussian::of_sensitivity("x", bad, 1.0).is_err());
            assert!(Gaussian::of_sensitivity("x", 1.0, bad).is_err());
            assert!(Gaussian::of_clip("x", bad, Relation::Substitute, 1.0).is_err());
            assert!(Lattice::new(bad, 3).is_err());
        }
        assert!(Gaussian::of_sensitivity("x", 1e-30, 1e30).is_err());
        assert!(Lattice::new(1.01, 3).is_err());
        assert!(Lattice::new(0.5, 0).is_err());
        assert_eq!(
            Gaussian::of_sensitivity("x", 1.0, -2.0)
                .unwrap_err()
                .to_string(),
            "sigma is -2; expected a finite number above 0"
        );
    }
}
