//! Clip bounds: as given, derived from the model, or the default.

use crate::model::{Derived, Missing, Model};
use crate::sampler::{Algorithm, DEFAULT_CLIP};

/// A bound on what one record adds to a gradient, or to a log-ratio per unit of distance.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub enum Clip {
    /// The derived bound where there is one and it is at most 3, else 3.
    #[default]
    Automatic,
    /// What no record exceeds, by the model and its declared bounds, so that nothing is ever
    /// clipped.
    Derived,
    /// This number.
    At(f64),
}

impl From<f64> for Clip {
    fn from(bound: f64) -> Clip {
        Clip::At(bound)
    }
}

/// The bounds of a run.
#[derive(Debug, Clone)]
pub(crate) struct Chosen {
    /// Of gradients and of log-ratios.
    pub bounds: [f64; 2],
    /// Which of the two the sampler uses.
    pub used: [bool; 2],
    /// What no record exceeds; none where rows share a unit, or nothing is clipped.
    pub derived: Option<Derived>,
}

/// A derived bound that does not exist. `which`: 0 for gradients, 1 for log-ratios.
#[derive(Debug)]
pub(crate) enum ClipError {
    NoBound { which: usize, missing: Missing },
    OfUnits { which: usize },
}

/// Settles the bounds on gradients and on log-ratios.
pub(crate) fn choose(
    model: &Model,
    has_units: bool,
    algorithm: &Algorithm,
    choices: [Clip; 2],
) -> Result<Chosen, ClipError> {
    let used =
        ["--clip-gradient", "--clip-log-ratio"].map(|flag| algorithm.settings.contains(&flag));
    let wanted = !has_units && used.contains(&true);
    let derived = wanted.then(|| model.record_sensitivity());
    let bound = |which: usize| match (choices[which], &derived) {
        (Clip::At(bound), _) => Ok(bound),
        (Clip::Derived, Some(Ok(bound))) => Ok(bound.clip()),
        (Clip::Derived, Some(Err(missing))) => Err(ClipError::NoBound {
            which,
            missing: missing.clone(),
        }),
        (Clip::Derived, None) => Err(ClipError::OfUnits { which }),
        (Clip::Automatic, Some(Ok(bound))) if bound.clip() <= DEFAULT_CLIP => Ok(bound.clip()),
        (Clip::Automatic, _) => Ok(DEFAULT_CLIP),
    };
    Ok(Chosen {
        bounds: [bound(0)?, bound(1)?],
        used,
        derived,
    })
}
