//! The evidence of Hamiltonian trajectories about the posterior's shape, as in Stan.

use super::evidence::{ChainRecord, EvidenceView};
use super::{Kind, Severity, Verdict, chains_by_number, figure, percent};
use crate::diagnostics::mean;

/// Betancourt (2016), "Diagnosing suboptimal cotangent disintegrations in Hamiltonian Monte
/// Carlo": below it, momenta drawn anew do not reach all energies.
pub(super) const E_BFMI: f64 = 0.3;

pub(super) fn verdicts(view: &EvidenceView) -> Vec<Verdict> {
    let rules = [divergences(view), energies(view), tree_depth(view)];
    rules.into_iter().flatten().collect()
}

/// Any divergence is reported, as in Stan: where integration fails, the posterior is cut off
/// (Betancourt 2017, "A conceptual introduction to Hamiltonian Monte Carlo").
fn divergences(view: &EvidenceView) -> Option<Verdict> {
    let all = view.chains.iter().flat_map(|c| &c.divergent);
    let count = all.filter(|&&d| d != 0.0).count();
    if count == 0 {
        return None;
    }
    let draws: usize = view.chains.iter().map(|c| c.divergent.len()).sum();
    let sentence = format!(
        "{count} of {draws} trajectories diverged: the steps are too large for some region, and the draws may leave it out.",
    );
    Some(
        Verdict::new(Kind::Divergence, Severity::Warning, sentence)
            .advise(match view.facts.likelihood {
                Some(_) => "`target_acceptance` 0.95, or another parametrisation (for a hierarchy, the non-centred one). Another run has its own privacy cost",
                None => "a larger `target_acceptance` (such as 0.95) or a smaller `step_size`, or another parametrisation (for a hierarchy, the non-centred one)",
            })
            .measured(count as f64, 0.0),
    )
}

fn energies(view: &EvidenceView) -> Option<Verdict> {
    let low = |(_, e): &(usize, f64)| *e < E_BFMI;
    let values = view.chains.iter().map(e_bfmi).enumerate();
    let low: Vec<(usize, f64)> = values.filter(low).collect();
    let worst = low.iter().map(|(_, e)| *e).reduce(f64::min)?;
    let chains: Vec<usize> = low.iter().map(|(c, _)| *c).collect();
    let sentence = format!(
        "{} {} low E-BFMI ({}; {E_BFMI} is wanted): fresh momenta change the energy too little to explore the tails.",
        chains_by_number(&chains, view.chains.len()),
        if chains.len() == 1 { "has a" } else { "have a" },
        figure(worst),
    );
    Some(
        Verdict::new(Kind::Energy, Severity::Warning, sentence)
            .advise(match view.facts.likelihood {
                Some(_) => "another parametrisation, or tighter priors on what the records say little about",
                None => "another parametrisation, a dense `metric`, or a longer warm-up",
            })
            .measured(worst, E_BFMI),
    )
}

/// Σ (Eₙ - Eₙ₋₁)² / Σ (Eₙ - Ē)² (Betancourt 2016); NaN without energies that vary.
pub(super) fn e_bfmi(chain: &ChainRecord) -> f64 {
    let energy = &chain.energy;
    let centre = mean(std::slice::from_ref(energy));
    let changes: f64 = energy.windows(2).map(|e| (e[1] - e[0]).powi(2)).sum();
    let spread: f64 = energy.iter().map(|e| (e - centre).powi(2)).sum();
    changes / spread
}

/// Any trajectory at the limit is reported, as in Stan: it costs efficiency, not exactness.
fn tree_depth(view: &EvidenceView) -> Option<Verdict> {
    let most = f64::from(view.facts.max_depth?);
    let depths = || view.chains.iter().flat_map(|c| &c.tree_depth);
    let (cut, all) = (depths().filter(|&&d| d >= most).count(), depths().count());
    if cut == 0 {
        return None;
    }
    let share = cut as f64 / all as f64;
    let sentence = format!(
        "{} of the trajectories ended at the largest depth of {most} before they turned back: the chains move less than they could.",
        percent(share)
    );
    Some(
        Verdict::new(Kind::TreeDepth, Severity::Note, sentence)
            .advise(match view.facts.likelihood {
                Some(_) => "another parametrisation",
                None => "a larger `max_depth`, or another `metric` or parametrisation",
            })
            .measured(share, 0.0),
    )
}
