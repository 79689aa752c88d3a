//! Whether the draws are mostly the noise that pays for privacy.
//!
//! In a test with penalty (`privacy::penalty`), the log acceptance ratio at stationarity is about
//! N(-(v + s²)/2, v + s²), with s the noise's standard deviation and v the variance of the exact
//! ratio; the mean follows from the variance, since the ratio's exponential has mean 1. With such a
//! ratio a share 2 Φ(-sqrt(v + s²)/2) is accepted (Roberts, Gelman and Gilks 1997 for s = 0;
//! Ceperley and Dewing 1999 for the penalty). So the observed acceptance gives v + s², the settings
//! give s, and the difference gives the acceptance without noise.

use super::convergence::Grade;
use super::evidence::EvidenceView;
use super::{Kind, Severity, Verdict, figure, percent};
use crate::function::special::normal_quantile;

/// Nats: above it no more than 32 % can be accepted, whatever the data. `dpm plan` warns above it
/// as well. Doucet, Pitt, Deligiannidis and Kohn (2015) find chains best with 1.0 to 1.7 where less
/// noise costs more computing; here it costs more budget.
pub(super) const TEST_NOISE: f64 = 2.0;
/// The share of acceptance that noise may take. Ours.
pub(super) const LOST_TO_NOISE: f64 = 0.5;
/// The share of the variance of the test's log ratio that is noise, where chains have not
/// converged: above one half, the noise causes most rejections, and so determines how long steps
/// can be.
pub(super) const NOISE_SHARE: f64 = 0.5;
/// The factor by which warm-up made the step smaller because of the noise. Ours: a random walk of
/// steps a hundred times shorter needs ten thousand times the iterations.
pub(super) const SHRUNK: f64 = 100.0;
/// The effect of gradient noise on each momentum over a trajectory, in units of the momentum's own
/// standard deviation: at 1 it changes the momentum as much as drawing it anew.
pub(super) const GRADIENT_NOISE: f64 = 1.0;

pub(super) fn verdicts(view: &EvidenceView, grade: Grade) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = [test_noise(view, grade), gradient_noise(view)]
        .into_iter()
        .flatten()
        .collect();
    verdicts.extend(planned(view));
    verdicts
}

/// The share accepted of a log ratio N(-v/2, v).
pub(super) fn acceptance_at(variance: f64) -> f64 {
    libm::erfc((variance / 8.0).sqrt())
}

/// The v that gives this acceptance.
fn variance_at(acceptance: f64) -> f64 {
    let z = 2.0 * normal_quantile(acceptance.clamp(0.0, 1.0) / 2.0);
    z * z
}

fn test_noise(view: &EvidenceView, grade: Grade) -> Option<Verdict> {
    let facts = view.facts;
    let per_step = facts.noise.log_ratio_per_step?;
    if !facts.unit_metric {
        return None;
    }
    let noise = per_step * view.step_size()?;
    let best = acceptance_at(noise * noise);
    if noise > TEST_NOISE {
        let sentence = format!(
            "The noise dominates: the acceptance test of a typical proposal has noise of standard deviation {} nats, with which at most {} of proposals can be accepted, whatever the data are.",
            figure(noise),
            percent(best),
        );
        return Some(
            Verdict::new(Kind::TestNoise, Severity::Problem, sentence)
                .advise(LESS_NOISE)
                .measured(noise, TEST_NOISE),
        );
    }
    let acceptance = view.acceptance().filter(|a| *a > 0.0)?;
    let exact = acceptance_at((variance_at(acceptance) - noise * noise).max(0.0));
    let lost = 1.0 - acceptance / exact;
    if lost <= LOST_TO_NOISE {
        return if grade == Grade::Converged {
            None
        } else {
            limiting_noise(view, noise, acceptance)
        };
    }
    let sentence = format!(
        "The noise takes more than half of the moves: {} of proposals are accepted, compared with about {} without the noise of the test (standard deviation {} nats for a typical proposal).",
        percent(acceptance),
        percent(exact),
        figure(noise),
    );
    Some(
        Verdict::new(Kind::TestNoise, Severity::Warning, sentence)
            .advise(LESS_NOISE)
            .measured(lost, LOST_TO_NOISE),
    )
}

/// Noise that is bearable only because steps were made so short.
fn limiting_noise(view: &EvidenceView, noise: f64, acceptance: f64) -> Option<Verdict> {
    let share = noise * noise / variance_at(acceptance);
    if share.is_nan() || share <= NOISE_SHARE {
        return None;
    }
    let step = view.step_size()?;
    let first = view.facts.noise.first_step_size.unwrap_or(step);
    let shrunk = if view.facts.adapts_step {
        first / step
    } else {
        1.0
    };
    let behind = format!(
        "{} of the variance of the acceptance test is noise (standard deviation {} nats)",
        percent(share.min(1.0)),
        figure(noise)
    );
    let verdict = if shrunk > SHRUNK {
        let sentence = format!(
            "The noise dominates: to compensate, warm-up cut the step from {} by a factor of {}, and still {behind}. With such steps the chains hardly move.",
            figure(first),
            figure(shrunk),
        );
        Verdict::new(Kind::TestNoise, Severity::Problem, sentence).measured(shrunk, SHRUNK)
    } else {
        let sentence = format!(
            "The noise sets the length of steps, not the posterior: {behind}. With less noise the chains could take longer steps."
        );
        Verdict::new(Kind::TestNoise, Severity::Warning, sentence).measured(share, NOISE_SHARE)
    };
    Some(verdict.advise(LESS_NOISE))
}

const LESS_NOISE: &str = "a larger epsilon; more records at the same `temperature`, or a smaller `temperature`; fewer iterations or chains; a smaller `step_size`; tighter bounds of columns, from which `dpm check` derives smaller clip bounds; fewer parameters";

fn gradient_noise(view: &EvidenceView) -> Option<Verdict> {
    let facts = view.facts;
    let (noise, steps) = (facts.noise.gradient?, facts.leapfrog_steps?);
    if !facts.unit_metric {
        return None;
    }
    // Each step adds h times its noise, independently; jitter halves h on average.
    let kick = 0.5 * view.step_size()? * noise * (steps as f64).sqrt();
    if kick <= GRADIENT_NOISE {
        return None;
    }
    let sentence = format!(
        "The gradients are mostly noise: over a trajectory the noise changes each momentum by about {}, while the momentum itself has standard deviation 1, so the chains walk at random.",
        figure(kick)
    );
    Some(
        Verdict::new(Kind::GradientNoise, Severity::Warning, sentence)
            .advise("a larger epsilon, a larger `noise_split` (the gradients' share of it), fewer `leapfrog_steps`, a tighter `clip_gradient` (`dpm check` says what can be derived), or `dp-penalty`, which needs no gradients")
            .measured(kick, GRADIENT_NOISE),
    )
}

/// The warnings of the plan for samplers that never reject, whose noise does not show in the draws;
/// for the others, the rules above apply to the final steps.
fn planned(view: &EvidenceView) -> Vec<Verdict> {
    if view.facts.tests_proposals {
        return Vec::new();
    }
    let verdict = |warning: &String| {
        let sentence = format!("Planning warned: {warning}.");
        Verdict::new(Kind::PlannedNoise, Severity::Warning, sentence)
    };
    view.facts.plan_warnings.iter().map(verdict).collect()
}
