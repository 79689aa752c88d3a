//! The values in the columns of draws.

use super::convergence::{ESS, Grade};
use super::evidence::{Column, EvidenceView};
use super::{Kind, Severity, Verdict, counted, some_of};

pub(super) fn verdicts(view: &EvidenceView, grade: Grade) -> Vec<Verdict> {
    let rules = [not_finite(view), few_draws(view, grade), constant(view)];
    rules.into_iter().flatten().collect()
}

fn names(columns: &[Column]) -> Vec<String> {
    columns.iter().map(|c| c.name.clone()).collect()
}

/// Any draw that is NaN or infinite: no mean, quantile or diagnostic is defined with it.
fn not_finite(view: &EvidenceView) -> Option<Verdict> {
    let worst = view.not_finite.iter().max_by_key(|c| c.not_finite())?;
    let names = names(&view.not_finite);
    let sentence = format!(
        "{} not a number in {} of {}; the other verdicts leave {} out.",
        match &names[..] {
            [one] => format!("{one} is infinite or"),
            _ => format!("{} are infinite or", some_of(&names)),
        },
        match names.len() {
            1 => worst.not_finite().to_string(),
            _ => format!("up to {}", worst.not_finite()),
        },
        counted(worst.draws(), "draw"),
        if names.len() == 1 { "it" } else { "them" },
    );
    let share = worst.not_finite() as f64 / worst.draws().max(1) as f64;
    Some(
        Verdict::new(Kind::NotFinite, Severity::Problem, sentence)
            .advise("look in `transformed parameters` for something that overflows or is undefined, such as a logarithm of 0 or 0/0; `dpm log-prob` on public data shows where")
            .about(names)
            .measured(share, 0.0),
    )
}

/// Chains with fewer draws than the ESS that Vehtari et al. (2021) ask of each.
fn few_draws(view: &EvidenceView, grade: Grade) -> Option<Verdict> {
    let shortest = view.chains.iter().map(|c| c.draws.len()).min()?;
    if shortest as f64 >= ESS || view.gaussian().is_some() {
        return None;
    }
    let severity = match grade {
        Grade::Converged => Severity::Note,
        _ => Severity::Warning,
    };
    let sentence = format!(
        "The chains are short: {} each. R-hat and ESS are reliable from {ESS} independent draws per chain.",
        counted(shortest, "draw"),
    );
    let advice = if view.draws_cost() {
        "fewer chains (`chains`), which share the budget, and more iterations each, as long as the noise allows it (`dpm plan` says what it would be)"
    } else {
        "more iterations (`num_samples`)"
    };
    Some(
        Verdict::new(Kind::FewDraws, severity, sentence)
            .advise(advice)
            .measured(shortest as f64, ESS),
    )
}

/// Columns that are one number in all chains while others move, such as the 1s and 0s of a Cholesky
/// factor.
fn constant(view: &EvidenceView) -> Option<Verdict> {
    if view.constant.is_empty() || view.stuck.len() == view.chains.len() {
        return None;
    }
    let names = names(&view.constant);
    let sentence = format!(
        "{} the same in all draws, so R-hat says nothing about {}.",
        match &names[..] {
            [one] => format!("{one} is"),
            _ => format!("{} are", some_of(&names)),
        },
        if names.len() == 1 { "it" } else { "them" },
    );
    Some(
        Verdict::new(Kind::Constant, Severity::Note, sentence)
            .advise("no change is needed if the model fixes it (such as the diagonal of a Cholesky factor); otherwise check that the parameter depends on something")
            .about(names),
    )
}
