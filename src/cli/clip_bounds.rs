//! Clip bounds: as given, derived from the model, or the default.

use serde_json::Value;

use super::failure::Failure;
use super::run_settings::RunSettings;
use crate::analysis::{Clip, ClipError, choose};
use crate::model::{Derived, Model};
use crate::output::{ClipReport, Clipping};
use crate::sampler::{Algorithm, Plan};

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
        let choices =
            [settings.clip_gradient, settings.clip_log_ratio].map(|choice| match choice {
                None => Clip::Automatic,
                Some(ClipChoice::Derived) => Clip::Derived,
                Some(ClipChoice::Bound(bound)) => Clip::At(bound),
            });
        let chosen = choose(model, unit.is_some(), algorithm, choices).map_err(failure)?;
        let [gradient, log_ratio] = chosen.bounds;
        Ok(ClipBounds {
            gradient,
            log_ratio,
            used: chosen.used,
            derived: chosen.derived,
        })
    }

    /// What the report of a run of this plan says of them.
    pub fn report(&self, plan: &Plan) -> Clipping {
        let learner = plan.request.algorithm.learner();
        Clipping {
            learnt: learner.map(|learner| learner.clipping(plan)),
            ..self.given()
        }
    }

    fn given(&self) -> Clipping {
        let derived = match &self.derived {
            Some(Ok(bound)) => Some(bound.clip()),
            _ => None,
        };
        let of = |bound: f64, used: bool| used.then_some(ClipReport { bound, derived });
        Clipping {
            gradient: of(self.gradient, self.used[0]),
            log_ratio: of(self.log_ratio, self.used[1]),
            learnt: None,
        }
    }

    /// The same for `dpm plan --format json`.
    pub fn json(&self, plan: &Plan) -> Value {
        self.report(plan).json()
    }

    /// Whether records are clipped, in words, for people.
    pub fn lines(&self) -> Vec<String> {
        if !self.used.contains(&true) {
            return Vec::new();
        }
        let report = self.given();
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

fn failure(error: ClipError) -> Failure {
    let flag = |which: usize| ["--clip-gradient", "--clip-log-ratio"][which.min(1)];
    Failure::input(match error {
        ClipError::NoBound { which, missing } => {
            let flag = flag(which);
            format!(
                "{flag} derived: there is no bound: {missing}; declare that, or give {flag} a number (`dpm check` shows each statement)"
            )
        }
        ClipError::OfUnits { which } => {
            let flag = flag(which);
            format!(
                "{flag} derived is a bound for one row, and with --unit the rows of a unit add up: give {flag} a number"
            )
        }
    })
}
