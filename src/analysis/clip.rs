//! Clip bounds: as given, derived from the model, or the default.

use super::error::Error;
use crate::model::{Derived, Model};
use crate::output::{ClipReport, Clipping};
use crate::sampler::{Algorithm, Clip, DEFAULT_CLIP, Plan, Setting, Settings};

/// The bounds of a run.
#[derive(Debug, Clone)]
pub(crate) struct Clips {
    /// On gradients, and on log-ratios per unit of distance.
    bounds: [f64; 2],
    /// Which of the two the sampler uses.
    used: [bool; 2],
    /// The bound that no record exceeds; none where rows share a unit, or nothing is clipped.
    derived: Option<Derived>,
}

const BOUNDS: [Setting; 2] = [Setting::clip_gradient, Setting::clip_log_ratio];

impl Clips {
    /// Settles the bounds on gradients and on log-ratios.
    ///
    /// # Errors
    ///
    /// `derived` is asked for, and there is no such bound.
    pub fn choose(
        settings: &Settings,
        algorithm: &Algorithm,
        model: &Model,
        shared_units: bool,
    ) -> Result<Clips, Error> {
        let used = BOUNDS.map(|setting| algorithm.has(setting));
        let wanted = !shared_units && used.contains(&true);
        let derived = wanted.then(|| model.record_sensitivity());
        let choices = [settings.clip_gradient, settings.clip_log_ratio];
        let bound = |which: usize| match (choices[which], &derived) {
            (Some(Clip::At(bound)), _) => Ok(bound),
            (Some(Clip::Derived), Some(Ok(bound))) => Ok(bound.clip()),
            (Some(Clip::Derived), Some(Err(missing))) => Err(Error::Settings(format!(
                "`{0}` derived: there is no bound: {missing}; declare that, or give `{0}` a number (`dpm check` shows each statement)",
                BOUNDS[which].name()
            ))),
            (Some(Clip::Derived), None) => Err(Error::Settings(format!(
                "`{0}` derived is a bound for one row, and with `unit` the rows of a unit add up: give `{0}` a number",
                BOUNDS[which].name()
            ))),
            (None, Some(Ok(bound))) if bound.clip() <= DEFAULT_CLIP => Ok(bound.clip()),
            (None, _) => Ok(DEFAULT_CLIP),
        };
        Ok(Clips {
            bounds: [bound(0)?, bound(1)?],
            used,
            derived,
        })
    }

    /// The settings with these bounds, where the sampler has them.
    pub fn settled(&self, settings: &Settings) -> Settings {
        let [gradient, log_ratio] = [0, 1].map(|i| self.used[i].then(|| Clip::At(self.bounds[i])));
        Settings {
            clip_gradient: gradient,
            clip_log_ratio: log_ratio,
            ..settings.clone()
        }
    }

    /// The bounds for the report of a run of this plan.
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
        let report = |which: usize| {
            self.used[which].then_some(ClipReport {
                bound: self.bounds[which],
                derived,
            })
        };
        Clipping {
            gradient: report(0),
            log_ratio: report(1),
            learnt: None,
        }
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
        let biting = BOUNDS.iter().zip([report.gradient, report.log_ratio]);
        let biting: Vec<String> = biting
            .filter_map(|(setting, clip)| {
                let clip = clip.filter(|c| !c.never_activates())?;
                Some(format!("`{}` {}", setting.name(), clip.bound))
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
