//! How a run went, in sentences.
//!
//! A [`Diagnosis`] is a function of draws, of the samplers' statistics of their iterations, and of
//! the run's settings: released values and public ones, so that it costs no privacy. Each rule is a
//! function in a file of this folder. Its threshold is a constant with its source in the comment;
//! `docs/diagnostics.md` explains them all.

mod convergence;
mod evidence;
mod hamiltonian;
mod likelihood;
mod limits;
mod motion;
mod noise;
mod prior;
mod search;
mod values;

#[cfg(test)]
mod likelihood_tests;
#[cfg(test)]
mod tests;

use serde::Serialize;
use serde_json::{Value, json};

pub use convergence::Grade;
use evidence::EvidenceView;
pub use evidence::{
    Certificate, ChainRecord, Conflict, Evidence, LikelihoodFacts, PriorRange, Pull, RunFacts,
    SearchFacts,
};

/// How bad it is; the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The draws do not describe the posterior.
    Problem,
    /// The draws may not describe the posterior, or less well than their number suggests.
    Warning,
    /// Something that a reader of the draws should know.
    Note,
    /// Nothing is wrong.
    Good,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Severity::Problem => "problem",
            Severity::Warning => "warning",
            Severity::Note => "note",
            Severity::Good => "good",
        }
    }
}

/// The advice to a reader of the draws; it follows from the worst verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Use,
    /// There is a warning.
    UseWithCare,
    /// There is a problem.
    DoNotUse,
}

impl Decision {
    fn of(verdicts: &[Verdict]) -> Decision {
        match verdicts.iter().map(|v| v.severity).min() {
            Some(Severity::Problem) => Decision::DoNotUse,
            Some(Severity::Warning) => Decision::UseWithCare,
            Some(Severity::Note | Severity::Good) | None => Decision::Use,
        }
    }

    pub fn sentence(self) -> &'static str {
        match self {
            Decision::Use => "These draws can be used.",
            Decision::UseWithCare => "Use these draws with care.",
            Decision::DoNotUse => "Do not use these draws.",
        }
    }
}

/// The rule of a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    SearchNotArrived,
    Certificate,
    Contradiction,
    HiddenTails,
    GradientsUnseen,
    CentreNoise,
    WidthUnknown,
    PriorWidth,
    BeyondPrior,
    PriorConflict,
    OneSided,
    Convergence,
    NeverMoved,
    NotFinite,
    Constant,
    FewDraws,
    LowAcceptance,
    SmallSteps,
    StepCollapsed,
    Drift,
    TestNoise,
    GradientNoise,
    PlannedNoise,
    Divergence,
    TreeDepth,
    Energy,
    Approximate,
    Clipping,
    Tempered,
}

/// One statement about a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    pub kind: Kind,
    pub severity: Severity,
    pub sentence: String,
    /// Advice on what would help.
    pub advice: Option<String>,
    /// The parameters (bracket form) it is about, the worst first; empty for all.
    pub parameters: Vec<String>,
    /// The figure behind it and the threshold of the rule, in the rule's own unit.
    pub value: Option<f64>,
    pub threshold: Option<f64>,
}

impl Verdict {
    fn new(kind: Kind, severity: Severity, sentence: String) -> Verdict {
        Verdict {
            kind,
            severity,
            sentence,
            advice: None,
            parameters: Vec::new(),
            value: None,
            threshold: None,
        }
    }

    fn advise(self, advice: impl Into<String>) -> Verdict {
        Verdict {
            advice: Some(advice.into()),
            ..self
        }
    }

    fn about(self, parameters: Vec<String>) -> Verdict {
        Verdict { parameters, ..self }
    }

    fn measured(self, value: f64, threshold: f64) -> Verdict {
        Verdict {
            value: Some(value),
            threshold: Some(threshold),
            ..self
        }
    }
}

/// All statements about a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnosis {
    pub decision: Decision,
    pub convergence: Grade,
    /// The worst first; among equals, the deciding ones before the explaining ones.
    pub verdicts: Vec<Verdict>,
}

/// Whether chains have converged, why not, and what would help.
pub fn diagnose(evidence: &Evidence) -> Diagnosis {
    let view = EvidenceView::of(evidence);
    let mut beforehand = search::verdicts(&view);
    beforehand.extend(likelihood::verdicts(&view));
    beforehand.extend(prior::verdicts(&view));
    let worst = beforehand.iter().map(|v| v.severity).min();
    let failed = worst == Some(Severity::Problem);
    let doubtful = worst.is_some_and(|worst| worst <= Severity::Warning);
    let (grade, convergence) = convergence::verdict(&view, doubtful);
    let mut verdicts = Vec::new();
    if failed {
        // Then agreement of the chains, or their absence, is of no interest.
        let praise = |v: &Verdict| v.severity == Severity::Good;
        verdicts.extend(beforehand.into_iter().filter(|v| !praise(v)));
        verdicts.extend((convergence.severity == Severity::Problem).then_some(convergence));
    } else {
        verdicts.push(convergence);
        verdicts.extend(beforehand);
    }
    verdicts.extend(values::verdicts(&view, grade));
    verdicts.extend(motion::verdicts(&view, grade));
    verdicts.extend(noise::verdicts(&view, grade));
    verdicts.extend(hamiltonian::verdicts(&view));
    verdicts.extend(limits::verdicts(&view));
    // Stable, so rules of one severity keep their order.
    verdicts.sort_by_key(|v| v.severity);
    Diagnosis {
        decision: Decision::of(&verdicts),
        convergence: if failed { Grade::SearchFailed } else { grade },
        verdicts,
    }
}

impl Diagnosis {
    /// The reason for the decision: the worst problem or warning, or else that chains have
    /// converged. Every diagnosis has one.
    pub fn headline(&self) -> &str {
        self.headline_and_rest().0.map_or("", |v| &v.sentence)
    }

    /// The decision, and the headline behind it.
    pub fn in_short(&self) -> String {
        format!("{} {}", self.decision.sentence(), self.headline())
    }

    /// The verdict that is the headline, and the others.
    pub(crate) fn headline_and_rest(&self) -> (Option<&Verdict>, Vec<&Verdict>) {
        let decides = |v: &Verdict| match self.decision {
            Decision::Use => v.kind == Kind::Convergence,
            Decision::UseWithCare | Decision::DoNotUse => true,
        };
        let mut rest: Vec<&Verdict> = self.verdicts.iter().collect();
        let place = rest.iter().position(|v| decides(v));
        (place.map(|place| rest.remove(place)), rest)
    }

    /// The decision, and kind, severity and sentence of each verdict, for `privacy.json`.
    pub(crate) fn to_report(&self) -> Value {
        let said = self
            .verdicts
            .iter()
            .map(|v| json!({ "kind": v.kind, "severity": v.severity, "sentence": v.sentence }));
        json!({ "decision": self.decision, "verdicts": said.collect::<Vec<_>>() })
    }

    /// The whole diagnosis for people, with advice under each sentence. Ends in a newline.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}\n", self.decision.sentence());
        for verdict in &self.verdicts {
            text.push_str(&format!(
                "{}: {}\n",
                verdict.severity.name(),
                verdict.sentence
            ));
            if let Some(advice) = &verdict.advice {
                text.push_str(&format!("    what helps: {advice}\n"));
            }
        }
        text
    }
}

/// `1 chain`, `3 chains`.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Chains by their numbers, from 1: `Chain 2`, `Chains 1, 2 and 4`; `The chain` and `All
/// chains` where there are no others.
fn chains_by_number(which: &[usize], of: usize) -> String {
    let numbers: Vec<String> = which.iter().map(|c| (c + 1).to_string()).collect();
    match (&numbers[..], of) {
        ([_], 1) => "The chain".to_owned(),
        (all, _) if all.len() == of => "All chains".to_owned(),
        ([one], _) => format!("Chain {one}"),
        ([first @ .., last], _) => format!("Chains {} and {last}", first.join(", ")),
        ([], _) => "No chain".to_owned(),
    }
}

/// Up to three names, and the number of the others.
fn some_of(names: &[String]) -> String {
    const SHOWN: usize = 3;
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>();
    let more = names.len() - shown.len();
    match more {
        0 => shown.join(", "),
        _ => format!("{} and {more} more", shown.join(", ")),
    }
}

/// A figure with two significant digits, or more if it is large.
fn figure(x: f64) -> String {
    if x.is_infinite() {
        return "infinite".to_owned();
    }
    if x == 0.0 || !x.is_finite() {
        return x.to_string();
    }
    match x.abs() {
        10.0..1e6 => format!("{x:.0}"),
        1.0..10.0 => format!("{x:.1}"),
        0.1..1.0 => format!("{x:.2}"),
        0.001..0.1 => format!("{x:.4}"),
        _ => format!("{x:.1e}"),
    }
}

/// A share as a percentage.
fn percent(share: f64) -> String {
    match 100.0 * share {
        p if p >= 10.0 || p == 0.0 => format!("{p:.0} %"),
        p if p >= 0.1 => format!("{p:.1} %"),
        p => format!("{p:.1e} %"),
    }
}
