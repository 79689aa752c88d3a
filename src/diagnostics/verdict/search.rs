//! Whether the search that precedes the chains of `dp-langevin` has found the posterior.
//!
//! Only its Newton steps show how well such a search went: a long last step means that it had not
//! arrived, but a short one does not mean that it had.

use super::evidence::{EvidenceView, SearchFacts};
use super::{Kind, Severity, Verdict, figure};

/// Standard deviations of the draws, the root mean square over coordinates. Ours. Noise makes up to
/// 1.9 of it in good runs (wells at epsilon 3), which is why it is compared with the draws, which
/// are widened by as much, and not with the posterior alone. The threshold was chosen on 75 runs,
/// which therefore do not measure it; docs/diagnostics.md has others.
pub(super) const LAST_STEP: f64 = 2.0;
/// Share of noise in the information about the least known direction: all of it. About half of the
/// runs with it are good nevertheless, and cannot be distinguished from the others by their
/// releases: cps1988 at epsilon 1 is good, wells often is not.
pub(super) const UNKNOWN: f64 = 1.0;
/// Noise in a Gaussian's centre, in posterior standard deviations: with more of it than this, the
/// draws' spread is mostly the noise's.
pub(super) const CENTRE_NOISE: f64 = 1.0;
/// The same, above which draws are widened by less than the noise in their centre: the sampler
/// widens them by at most this much.
pub(super) const MOST_CENTRE_NOISE: f64 = 10.0;

const HELP: &str = "more records or a larger epsilon; `temperature`, which needs less of both; a start near the posterior (`init`), from public knowledge; columns and parameters on a scale of about one; priors that match the scale of the outcome; fewer parameters. Another run has its own privacy cost";

/// Those of severity problem come first.
pub(super) fn verdicts(view: &EvidenceView) -> Vec<Verdict> {
    let Some(search) = &view.facts.search else {
        return Vec::new();
    };
    let rules = [
        unseen(search),
        on_its_way(search),
        width(search),
        centre(search),
    ];
    rules.into_iter().flatten().collect()
}

fn unseen(search: &SearchFacts) -> Option<Verdict> {
    if search.seen {
        return None;
    }
    let sentence = "The records' gradients never rose above the noise, or an interruption lost the last measurement of them: nothing shows that the search found the posterior.".to_owned();
    Some(Verdict::new(Kind::GradientsUnseen, Severity::Problem, sentence).advise(HELP))
}

fn on_its_way(search: &SearchFacts) -> Option<Verdict> {
    let widened = |noise: f64| noise.min(MOST_CENTRE_NOISE).hypot(1.0);
    let step = search.last_step / search.centre_sd.map_or(1.0, widened);
    if step <= LAST_STEP && !search.cut {
        return None;
    }
    let sentence = if search.last_step >= f64::MAX {
        "The search for the posterior took no step: the draws are around the starting point."
            .to_owned()
    } else {
        format!(
            "The search had not reached the posterior. Its last step was {} of the draws' standard deviations long{}, and at most {LAST_STEP} are expected on arrival. The posterior may be far outside these intervals.",
            figure(step),
            if search.cut { " and was cut short" } else { "" },
        )
    };
    let verdict = Verdict::new(Kind::SearchNotArrived, Severity::Problem, sentence);
    Some(verdict.advise(HELP).measured(step, LAST_STEP))
}

fn centre(search: &SearchFacts) -> Option<Verdict> {
    let noise = search.centre_sd?;
    if noise <= CENTRE_NOISE {
        return None;
    }
    if noise <= MOST_CENTRE_NOISE {
        let sentence = format!(
            "Most of the draws' spread is noise in their centre ({} posterior standard deviations). By design they are {} times as wide as the posterior, so that intervals include this noise.",
            figure(noise),
            figure(noise.hypot(1.0)),
        );
        let verdict = Verdict::new(Kind::CentreNoise, Severity::Note, sentence);
        return Some(
            verdict
                .advise("more records or a larger epsilon make intervals narrower")
                .measured(noise, CENTRE_NOISE),
        );
    }
    let sentence = format!(
        "The noise in the draws' centre, {} posterior standard deviations, is more than widening the draws can cover.",
        figure(noise)
    );
    let verdict = Verdict::new(Kind::CentreNoise, Severity::Problem, sentence);
    Some(verdict.advise(HELP).measured(noise, MOST_CENTRE_NOISE))
}

fn width(search: &SearchFacts) -> Option<Verdict> {
    if search.unknown < UNKNOWN {
        return None;
    }
    let sentence = "In at least one direction the measured information is all noise. There the draws' width reflects noise or the prior; neither width nor centre can be trusted.".to_owned();
    Some(
        Verdict::new(Kind::WidthUnknown, Severity::Problem, sentence)
            .advise(HELP)
            .measured(search.unknown, UNKNOWN),
    )
}
