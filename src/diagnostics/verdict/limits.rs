//! The limits that no diagnostic of draws can show.

use super::evidence::EvidenceView;
use super::{Kind, Severity, Verdict};

pub(super) fn verdicts(view: &EvidenceView) -> Vec<Verdict> {
    let rules = [approximate(view), clipping(view), tempered(view)];
    rules.into_iter().flatten().collect()
}

fn note(kind: Kind, sentence: String) -> Verdict {
    Verdict::new(kind, Severity::Note, sentence)
}

fn approximate(view: &EvidenceView) -> Option<Verdict> {
    // Draws from a Gaussian have their own verdict.
    if view.facts.tests_proposals || view.gaussian().is_some() {
        return None;
    }
    let sentence = "This sampler accepts every step, so that its chains converge to something near the posterior; how near, R-hat and ESS do not say.".to_owned();
    Some(
        note(Kind::Approximate, sentence).advise(
            "docs/samplers.md has the measured bias; a smaller --step-size, where the sampler has one, makes it smaller",
        ),
    )
}

fn clipping(view: &EvidenceView) -> Option<Verdict> {
    if !view.facts.may_clip {
        return None;
    }
    let sentence = "The clip bounds are not derived from the model, so that clipping may have moved the posterior; how many records were clipped is private, and nothing in the draws shows it.".to_owned();
    Some(note(Kind::Clipping, sentence).advise(
        "`dpm check` says which declared bounds would give derived clip bounds, with which no record is ever clipped",
    ))
}

fn tempered(view: &EvidenceView) -> Option<Verdict> {
    let records = view.facts.tempered?;
    let sentence = format!(
        "The posterior is tempered: the likelihood counts as that of {records} records, and the draws are spread as widely as those would leave it."
    );
    Some(
        note(Kind::Tempered, sentence)
            .advise("read intervals as those of so many records, not of the whole data"),
    )
}
