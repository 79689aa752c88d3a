//! The privacy of some events: an accountant's answer.

use serde::Serialize;

use super::accountant::Accountant;
use super::composition::Composition;
use super::gaussian::{GaussianCurve, exp_up, ln_bounds};
use super::real::Real;
use super::relation::Relation;

/// The privacy of some events, as `dpm account` shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Guarantee {
    /// The epsilon given, or the upper bound on the one asked for.
    pub epsilon: f64,
    /// The delta given, or the upper bound on the one asked for. Never zero once
    /// something is released.
    pub delta: f64,
    #[serde(flatten)]
    pub bounds: GuaranteeBounds,
    /// Natural logarithm of delta, rounded up: exact where `delta` underflows.
    pub ln_delta: f64,
    /// Sum of sensitivity^2 / (2 sigma^2), rounded up; where all releases read all rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mu: Option<f64>,
    pub accountant: Accountant,
    pub relation: Relation,
    /// Whether every step of the bound is proved.
    pub proved: bool,
    /// The step that is not proved, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_proved: Option<&'static str>,
    /// How the `pld` accountant found its bounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pld: Option<PldDetails>,
    /// The order that the `rdp` accountant found best.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<u64>,
}

/// Bounds on the number asked for. Upper is what a report may claim. Lower is missing
/// where the accountant only has an upper bound, as for discrete noise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum GuaranteeBounds {
    Epsilon {
        epsilon_lower: Option<f64>,
        epsilon_upper: f64,
    },
    Delta {
        delta_lower: Option<f64>,
        delta_upper: f64,
    },
}

/// The basis of the bounds of the privacy loss distribution accountant.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PldDetails {
    /// Distance of the losses on the grid.
    pub grid: f64,
    /// Size of the Fourier transforms.
    pub points: u64,
    /// Width of the bounds, in epsilon.
    pub gap: f64,
    /// The share of the upper bound on delta that stands for losses outside the grid and
    /// the window.
    pub truncation: f64,
    /// The share of it that stands for rounding, the transforms' included.
    pub round_off: f64,
}

impl PldDetails {
    /// The largest width of the bounds, in epsilon, where the grid can be made fine enough.
    pub const AIM: f64 = 1e-3;
}

/// The answer of an accountant to a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Found {
    Epsilon {
        delta: Real,
        lower: Option<f64>,
        upper: f64,
    },
    Delta {
        epsilon: Real,
        lower: Option<f64>,
        /// ln delta, rounded up.
        ln_upper: Real,
    },
}

impl Guarantee {
    /// The assumption that the bound depends on, as a clause to follow "provided": to be shown
    /// wherever the bound is. `None` where every step of the bound is proved.
    pub fn proviso(&self) -> Option<String> {
        let reason = self.not_proved?;
        Some(format!(
            "that a step of the bound holds which is not proved ({reason})"
        ))
    }

    pub(super) fn new(
        accountant: Accountant,
        composition: &Composition<'_>,
        found: Found,
    ) -> Guarantee {
        let (epsilon, delta, ln_delta, bounds) = match found {
            Found::Epsilon {
                delta,
                lower,
                upper,
            } => {
                let bounds = GuaranteeBounds::Epsilon {
                    epsilon_lower: lower,
                    epsilon_upper: upper,
                };
                (upper, delta.to_f64(), ln_bounds(delta).upper, bounds)
            }
            Found::Delta {
                epsilon,
                lower,
                ln_upper,
            } => {
                let upper = exp_up(ln_upper);
                let bounds = GuaranteeBounds::Delta {
                    delta_lower: lower,
                    delta_upper: upper,
                };
                (epsilon.to_f64(), upper, ln_upper, bounds)
            }
        };
        Guarantee {
            epsilon,
            delta,
            bounds,
            ln_delta: ln_delta.to_f64_up(),
            mu: composition
                .reads_all_rows()
                .then(|| GaussianCurve::new(composition.mu()).mu()),
            accountant,
            relation: composition.relation(),
            proved: true,
            not_proved: None,
            pld: None,
            order: None,
        }
    }
}
