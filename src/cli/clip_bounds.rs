//! Clip bounds: as given, derived from the model, or the default.

use serde_json::Value;

use super::failure::Failure;
use super::run_settings::RunSettings;
use crate::model::{Derived, Model};
use crate::output::{ClipReport, Clipping};
use crate::sampler::{Algorithm, DEFAULT_CLIP};

/// `--clip-gradient B|derived`
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ClipChoice {
    Bound(f64),
    Derived,
}

impl std::str::FromStr for ClipChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "derived" {
            return Ok(ClipChoice::Derived);
        }
        text.parse()
            .map(ClipChoice::Bound)
            .map_err(|_| "expected a number, or `derived`: the bound that `dpm check` shows".into())
    }
}

/// The bounds of a run.
#[derive(Debug, Clone)]
pub(super) struct ClipBounds {
    pub gradient: f64,
    pub log_ratio: f64,
    /// Which of the two the sampler uses.
    used: [bool; 2],
    /// What no record exceeds; none where rows share a unit.
    derived: Option<Derived>,
    /// Whether the sampler learns its bounds.
    learns: bool,
}

impl ClipBounds {
    /// From the settings and the model; `unit` is the column of `--unit`.
    ///
    /// Errors: `derived` is asked for, and there is no such bound.
    pub fn choose(
        settings: &RunSettings,
        algorithm: &Algorithm,
        model: &Model,
        unit: Option<&str>,
    ) -> Result<ClipBounds, Failure> {
        let used =
            ["--clip-gradient", "--clip-log-ratio"].map(|flag| algorithm.settings.contains(&flag));
        let wanted = unit.is_none() && used.contains(&true);
        let derived = wanted.then(|| model.record_sensitivity());
        let choose = |flag: &str, choice: Option<ClipChoice>| match (choice, &derived) {
            (Some(ClipChoice::Bound(bound)), _) => Ok(bound),
            (Some(ClipChoice::Derived), Some(Ok(bound))) => Ok(bound.clip()),
            (Some(ClipChoice::Derived), Some(Err(missing))) => Err(Failure::input(format!(
                "{flag} derived: there is no bound: {missing}; declare that, or give {flag} a number (`dpm check` shows each statement)"
            ))),
            (Some(ClipChoice::Derived), None) => Err(Failure::input(format!(
                "{flag} derived is a bound for one row, and with --unit the rows of a unit add up: give {flag} a number"
            ))),
            (None, Some(Ok(bound))) if bound.clip() <= DEFAULT_CLIP => Ok(bound.clip()),
            (None, _) => Ok(DEFAULT_CLIP),
        };
        Ok(ClipBounds {
            gradient: choose("--clip-gradient", settings.clip_gradient)?,
            log_ratio: choose("--clip-log-ratio", settings.clip_log_ratio)?,
            used,
            derived,
            learns: algorithm.learns(),
        })
    }

    /// What the report says of them.
    pub fn report(&self) -> Clipping {
        let derived = match &self.derived {
            Some(Ok(bound)) => Some(bound.clip()),
            _ => None,
        };
        let of = |bound: f64, used: bool| used.then_some(ClipReport { bound, derived });
        Clipping {
            gradient: of(self.gradient, self.used[0]),
            log_ratio: of(self.log_ratio, self.used[1]),
            learns: self.learns,
        }
    }

    /// The same for `dpm plan --format json`.
    pub fn json(&self) -> Value {
        self.report().json()
    }

    /// Whether records are clipped, in words, for people.
    pub fn lines(&self) -> Vec<String> {
        if !self.used.contains(&true) {
            return Vec::new();
        }
        let report = self.report();
        if report.never_activates() {
            return vec![format!("clipping: {}", report.statement())];
        }
        let flags = [
            ("--clip-gradient", report.gradient),
            ("--clip-log-ratio", report.log_ratio),
        ];
        let biting: Vec<String> = flags
            .iter()
            .filter_map(|(flag, clip)| {
                let clip = clip.filter(|c| !c.never_activates())?;
                Some(format!("{flag} {}", clip.bound))
            })
            .collect();
        let why = match &self.derived {
            Some(Ok(bound)) => format!(
                "the bound that no record exceeds is {:.4}, which `derived` takes",
                bound.clip()
            ),
            Some(Err(_)) => {
                "there is no bound that no record exceeds: `dpm check` says what would give one"
                    .to_string()
            }
            None => "no bound is derived for units, whose rows add up".to_string(),
        };
        vec![format!(
            "clipping may activate at {}: {why}",
            biting.join(" and ")
        )]
    }
}
