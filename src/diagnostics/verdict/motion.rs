//! How chains move.

use super::convergence::Grade;
use super::evidence::EvidenceView;
use super::{Kind, Severity, Verdict, chains_by_number, counted, figure, percent};
use crate::diagnostics::{ess_mean, mean, sd};

/// Mean acceptance. A random walk has lost two fifths of its efficiency at 5 %, by the
/// diffusion limit of Roberts, Gelman and Gilks (1997), and a run of 200 iterations makes
/// ten moves.
pub(super) const LOW_ACCEPTANCE: f64 = 0.05;
/// Mean acceptance, where chains have not converged. By the same limit a random walk that
/// accepts 95 % has one hundredth of its efficiency left.
pub(super) const SMALL_STEPS: f64 = 0.95;
/// The step after warm-up, in units of the first one. Ours: dual averaging that has decreased it a
/// thousandfold has found no step with the target acceptance.
pub(super) const STEP_COLLAPSED: f64 = 1e-3;
/// Distance of a chain's two halves in standard errors. Geweke (1992) compares means of an early
/// and a late part in this way, with 2 for one quantity; ours is larger since there are many, and
/// since errors of few effective draws are underestimated.
pub(super) const DRIFT_ERRORS: f64 = 4.0;
/// And in standard deviations of the second half, so that a long run is not blamed for an
/// unimportant drift.
pub(super) const DRIFT_DEVIATIONS: f64 = 1.0;
/// Distance of a chain's first quarter from its last, in standard deviations within
/// quarters, where the quarters' means go one way. Ours. On autoregressions with correlation 0.9
/// to 0.99 and 2 to 50 effective draws per chain, one parameter of stationary chains is called
/// drifting by this rule in at most 2 % of runs, and by both rules in 1 to 3 %, but in 10 % where a
/// chain has no more than two or three effective draws; a straight line over five times the noise
/// is detected in nine runs of ten.
pub(super) const TREND: f64 = 3.0;
/// The fewest draws of a half.
const LEAST_HALF: usize = 10;

pub(super) fn verdicts(view: &EvidenceView, grade: Grade) -> Vec<Verdict> {
    let rules = [
        never_moved(view),
        step_collapsed(view),
        low_acceptance(view),
        small_steps(view, grade),
        drift(view, grade),
    ];
    rules.into_iter().flatten().collect()
}

/// Chains in which every draw is the same point.
fn never_moved(view: &EvidenceView) -> Option<Verdict> {
    let of = view.chains.len();
    let first = view.chains.get(*view.stuck.first()?)?;
    let who = chains_by_number(&view.stuck, of);
    let draws = counted(first.draws.len(), "draw");
    let sentence = if view.facts.tests_proposals {
        format!(
            "{who} never moved: no proposal was accepted in {draws}{}. The draws are the starting point and say nothing about the data.",
            if view.stuck.len() > 1 { " each" } else { "" },
        )
    } else {
        format!("{who} never moved: {draws} of the same point say nothing about the data.")
    };
    let verdict = Verdict::new(Kind::NeverMoved, Severity::Problem, sentence);
    Some(
        verdict
            .measured(view.stuck.len() as f64, 0.0)
            .advise(shorter_steps(view)),
    )
}

fn step_collapsed(view: &EvidenceView) -> Option<Verdict> {
    let facts = view.facts;
    let first = facts.noise.first_step_size?;
    let step = view.step_size()?;
    // With a learnt metric, the step includes its scales.
    if !facts.adapts_step || !facts.unit_metric || step >= STEP_COLLAPSED * first {
        return None;
    }
    let sentence = format!(
        "The step size collapsed: warm-up began at {} and ended at {}, so that chains hardly leave their starting points.",
        figure(first),
        figure(step)
    );
    Some(
        Verdict::new(Kind::StepCollapsed, Severity::Warning, sentence)
            .advise("a better start (`init`), so that the first proposals are not all rejected; your own `step_size`; priors that keep parameters away from the ends of their ranges")
            .measured(step / first, STEP_COLLAPSED),
    )
}

fn low_acceptance(view: &EvidenceView) -> Option<Verdict> {
    let acceptance = view.acceptance()?;
    if acceptance >= LOW_ACCEPTANCE || view.stuck.len() == view.chains.len() {
        return None;
    }
    let sentence = format!(
        "Hardly any proposal is accepted ({}): the chains stand still most of the time.",
        percent(acceptance)
    );
    Some(
        Verdict::new(Kind::LowAcceptance, Severity::Warning, sentence)
            .advise(shorter_steps(view))
            .measured(acceptance, LOW_ACCEPTANCE),
    )
}

fn shorter_steps(view: &EvidenceView) -> &'static str {
    if view.facts.likelihood.is_some() {
        return "`target_acceptance` 0.95, a longer warm-up (`num_warmup`), or another parametrisation. Another run has its own privacy cost";
    }
    if view.draws_cost() {
        "a smaller `step_size` (or a longer warm-up that finds one), fewer `leapfrog_steps`, a larger epsilon or more records, which lower the noise of the test, and a better start (`init`)"
    } else {
        "a smaller `step_size`, or a longer warm-up that finds one, and a better start (`init`)"
    }
}

/// Trajectories that end by themselves take small steps for other reasons.
fn small_steps(view: &EvidenceView, grade: Grade) -> Option<Verdict> {
    let acceptance = view.acceptance()?;
    let ends_itself = view.chains.iter().any(|c| !c.tree_depth.is_empty());
    let moves_slowly = matches!(grade, Grade::NotConverged | Grade::NearlyConverged);
    if acceptance <= SMALL_STEPS || ends_itself || !moves_slowly || !view.stuck.is_empty() {
        return None;
    }
    let sentence = format!(
        "Nearly every proposal is accepted ({}), while the chains get nowhere: the steps are small compared with the posterior.",
        percent(acceptance)
    );
    let advice = if view.draws_cost() {
        "a larger `step_size` or more `leapfrog_steps`, as far as the noise of the test allows (`dpm plan` says what it would be)"
    } else {
        "a larger `step_size` or more `leapfrog_steps`"
    };
    Some(
        Verdict::new(Kind::SmallSteps, Severity::Warning, sentence)
            .advise(advice)
            .measured(acceptance, SMALL_STEPS),
    )
}

/// Whether in at least half of the chains a parameter's draws are still moving: away from the
/// start, or with a steady trend. A single chain apart from others is left to R-hat.
fn drift(view: &EvidenceView, grade: Grade) -> Option<Verdict> {
    if grade == Grade::Converged || view.gaussian().is_some() {
        return None;
    }
    let mut drifting: Vec<(f64, &str, usize)> = Vec::new();
    for column in &view.moving {
        let shifts = column.chains.iter().filter_map(|chain| shift(chain));
        let shifts: Vec<f64> = shifts.collect();
        let largest = shifts.iter().copied().fold(0.0, f64::max);
        if largest > 0.0 && 2 * shifts.len() >= view.chains.len() {
            drifting.push((largest, &column.name, shifts.len()));
        }
    }
    drifting.sort_by(|a, b| b.0.total_cmp(&a.0));
    let &(shift, name, chains) = drifting.first()?;
    let sentence = format!(
        "{} still drifting: for {name}, the two halves of the draws differ by {} standard deviations{}.",
        if view.chains.len() == 1 {
            "The chain is".to_owned()
        } else {
            format!("{chains} of {} chains are", view.chains.len())
        },
        figure(shift),
        match drifting.len() {
            1 => String::new(),
            n => format!("; {} likewise", counted(n - 1, "other parameter")),
        }
    );
    let advice = if view.draws_cost() {
        "a start nearer to where the chains are going (`init`), which costs no budget if it is public knowledge, or a longer warm-up (`num_warmup`), which does"
    } else {
        "a longer warm-up (`num_warmup`) or a start nearer to where the chains are going (`init`)"
    };
    Some(
        Verdict::new(Kind::Drift, Severity::Warning, sentence)
            .advise(advice)
            .about(drifting.iter().map(|d| d.1.to_owned()).collect())
            .measured(shift, DRIFT_DEVIATIONS),
    )
}

/// The distance of a chain's halves, in standard deviations of the second, where it is too large.
/// If the first were like the second, their means would differ by about sd sqrt(2 / ESS).
fn shift(chain: &[f64]) -> Option<f64> {
    let half = chain.len() / 2;
    if half < LEAST_HALF {
        return None;
    }
    let (early, late) = ([&chain[..half]], [&chain[chain.len() - half..]]);
    let spread = sd(&late);
    let shift = (mean(&late) - mean(&early)).abs() / spread;
    let errors = shift / (2.0 / ess_mean(&late)).sqrt();
    let leaves_start = shift > DRIFT_DEVIATIONS && errors > DRIFT_ERRORS;
    (spread > 0.0 && (leaves_start || trend(chain) > TREND)).then_some(shift)
}

/// The distance of the last quarter's mean from the first's, in standard deviations within
/// quarters; 0 where the means in between turn back.
fn trend(chain: &[f64]) -> f64 {
    let quarter = chain.len() / 4;
    let quarters = [
        &chain[..quarter],
        &chain[quarter..2 * quarter],
        &chain[2 * quarter..3 * quarter],
        &chain[chain.len() - quarter..],
    ];
    let means = quarters.map(|q| mean(&[q]));
    let rises = means.windows(2).all(|m| m[0] < m[1]);
    let falls = means.windows(2).all(|m| m[0] > m[1]);
    if !rises && !falls {
        return 0.0;
    }
    let variance = quarters.map(|q| sd(&[q]).powi(2)).iter().sum::<f64>() / 4.0;
    (means[3] - means[0]).abs() / variance.sqrt()
}
