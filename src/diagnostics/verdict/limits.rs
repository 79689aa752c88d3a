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
    let sentence = "This sampler accepts every step, so its chains converge to an approximation of the posterior. R-hat and ESS do not show how close it is.".to_owned();
    Some(
        note(Kind::Approximate, sentence).advise(
            "docs/samplers.md has the measured bias; a smaller `step_size`, if the sampler has one, reduces it",
        ),
    )
}

fn clipping(view: &EvidenceView) -> Option<Verdict> {
    if !view.facts.may_clip {
        return None;
    }
    let sentence = "The clip bounds are not derived from the model, so clipping may have shifted the posterior. How many records were clipped is private, and the draws do not show it.".to_owned();
    Some(note(Kind::Clipping, sentence).advise(
        "`dpm check` says which declared bounds would give derived clip bounds, with which no record is ever clipped",
    ))
}

fn tempered(view: &EvidenceView) -> Option<Verdict> {
    let records = view.facts.tempered?;
    let sentence = format!(
        "The posterior is tempered: the likelihood counts as that of {records} records, and the draws are as spread out as with that many records."
    );
    Some(
        note(Kind::Tempered, sentence)
            .advise("read the intervals as those of that many records, not of all the data"),
    )
}
