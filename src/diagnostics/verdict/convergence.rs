//! Whether chains have converged.

use serde::Serialize;

use super::evidence::{Column, EvidenceView};
use super::{Kind, Severity, Verdict, counted, figure};
use crate::diagnostics::{ess_bulk, ess_tail, r_hat};

/// Vehtari et al. (2021), section 4: draws are used only where R-hat is below it.
pub(super) const R_HAT: f64 = 1.01;
/// Above it chains clearly disagree. 1.05 is between Vehtari et al.'s bound and the 1.1 of Gelman
/// et al. (2013, *Bayesian Data Analysis*, section 11.4), for chains so short that R-hat itself
/// varies by a few hundredths.
pub(super) const R_HAT_NEARLY: f64 = 1.05;
/// Per chain; Vehtari et al. (2021), section 4: 400 for four chains, so that the estimates
/// behind R-hat and ESS can be relied on.
pub(super) const ESS: f64 = 100.0;
/// Per chain; Gelman et al. (2013), section 11.5: ten independent draws per chain is the
/// least to work with.
pub(super) const ESS_NEARLY: f64 = 10.0;
/// Below it no half of a chain has a variance.
const LEAST_DRAWS: usize = 4;

/// Whether chains describe their target distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Grade {
    Converged,
    NearlyConverged,
    NotConverged,
    /// There is too little evidence.
    Unknown,
    /// There are no chains: draws are independent ones of a fitted distribution.
    Fitted,
    /// The chains do not matter: the search before them has not found the posterior, or only the
    /// prior.
    SearchFailed,
}

/// The worst figure over all columns and its column.
struct Worst<'a> {
    value: f64,
    name: &'a str,
}

/// `doubtful`: whether a search or the prior gives reasons for doubt.
pub(super) fn verdict(view: &EvidenceView, doubtful: bool) -> (Grade, Verdict) {
    let chains = view.chains.len();
    let unknown = |why: &str| {
        let sentence = format!("Whether the chains have converged cannot be determined: {why}.");
        let verdict = Verdict::new(Kind::Convergence, Severity::Problem, sentence);
        (Grade::Unknown, verdict.advise(more_draws(view)))
    };
    if !view.stuck.is_empty() {
        let stuck = view.stuck.len();
        let sentence = if chains == 1 {
            "The chain has not converged: it never moved. Its draws do not describe the posterior."
                .to_owned()
        } else {
            format!(
                "The chains have not converged: {stuck} of {chains} never moved. These draws do not describe the posterior."
            )
        };
        let verdict = Verdict::new(Kind::Convergence, Severity::Problem, sentence);
        return (Grade::NotConverged, verdict);
    }
    if let Some(noise) = view.gaussian() {
        return (Grade::Fitted, of_a_gaussian(noise, doubtful));
    }
    match view.draws_per_chain() {
        None => return unknown("they have different numbers of draws"),
        Some(draws) if draws < LEAST_DRAWS => {
            let has = counted(draws, "draw");
            return unknown(&format!(
                "each has {has}, and R-hat needs at least {LEAST_DRAWS}"
            ));
        }
        Some(_) => {}
    }
    if view.moving.is_empty() {
        return unknown("no column has finite draws that differ");
    }
    let figures = Figures::of(view);
    let least = figures.least_ess();
    // A figure that is NaN is within no bound.
    let ess = |per_chain: f64| least >= per_chain * chains as f64;
    let r_hat = figures.r_hat.as_ref().map(|r| r.value);
    let near = r_hat.is_none_or(|r| r <= R_HAT_NEARLY) && ess(ESS_NEARLY);
    let grade = match r_hat {
        _ if !near => Grade::NotConverged,
        None => Grade::Unknown,
        Some(r) if r <= R_HAT && ess(ESS) => Grade::Converged,
        Some(_) => Grade::NearlyConverged,
    };
    (grade, figures.verdict(view, grade))
}

/// The verdict on draws that come from no chain.
fn of_a_gaussian(noise: f64, doubtful: bool) -> Verdict {
    let sentence = format!(
        "There are no chains to converge: the budget was too small for them, and the draws are independent draws from a Gaussian fitted to the posterior. They are widened to include the noise in its centre, {} posterior standard deviations. R-hat and ESS do not show how well it fits.",
        figure(noise)
    );
    let usable = if doubtful {
        ""
    } else {
        "; intervals can be used as they are if the posterior is close to normal"
    };
    Verdict::new(Kind::Convergence, Severity::Warning, sentence).advise(format!(
        "more records, more epsilon or `temperature` would make chains possible{usable}"
    ))
}

struct Figures<'a> {
    /// None for a single chain.
    r_hat: Option<Worst<'a>>,
    bulk: Worst<'a>,
    tail: Worst<'a>,
}

impl<'a> Figures<'a> {
    fn of(view: &'a EvidenceView) -> Figures<'a> {
        let worst = |figure: &dyn Fn(&Column) -> f64, sign: f64| {
            let mut worst = Worst {
                value: f64::NAN,
                name: "",
            };
            for column in &view.moving {
                let value = figure(column);
                if worst.name.is_empty() || value.is_nan() || sign * value > sign * worst.value {
                    worst = Worst {
                        value,
                        name: &column.name,
                    };
                }
            }
            worst
        };
        Figures {
            r_hat: (view.chains.len() > 1).then(|| worst(&|c| r_hat(&c.chains), 1.0)),
            bulk: worst(&|c| ess_bulk(&c.chains), -1.0),
            tail: worst(&|c| ess_tail(&c.chains), -1.0),
        }
    }

    /// NaN where either is.
    fn least_ess(&self) -> f64 {
        match (self.bulk.value, self.tail.value) {
            (bulk, tail) if bulk.is_nan() || tail.is_nan() => f64::NAN,
            (bulk, tail) => bulk.min(tail),
        }
    }

    fn verdict(&self, view: &EvidenceView, grade: Grade) -> Verdict {
        let chains = view.chains.len();
        let (said, severity) = match (grade, chains) {
            (Grade::Converged, _) => ("The chains have converged", Severity::Good),
            (Grade::NearlyConverged, _) => ("The chains have nearly converged", Severity::Warning),
            (Grade::NotConverged, 1) => ("The chain has not converged", Severity::Problem),
            (Grade::NotConverged, _) => ("The chains have not converged", Severity::Problem),
            (Grade::Unknown | Grade::Fitted | Grade::SearchFailed, _) => (
                "Whether the chain has converged cannot be determined, since R-hat compares chains and there is only one",
                Severity::Warning,
            ),
        };
        let wanted = ESS * chains as f64;
        let enough = |ess: f64| ess >= wanted;
        let agree = |r: f64| r <= R_HAT;
        let mut sentence = format!("{said}: ");
        if let Some(r) = &self.r_hat {
            sentence.push_str(&format!(
                "the largest R-hat is {} ({}{}), ",
                r_hat_figure(r.value),
                r.name,
                wants(!agree(r.value), &format!("at most {R_HAT}")),
            ));
        }
        sentence.push_str(&format!(
            "the smallest bulk ESS {:.0} ({}{}), the smallest tail ESS {:.0} ({}{}), of {}.",
            self.bulk.value,
            self.bulk.name,
            wants(!enough(self.bulk.value), &format!("{wanted:.0}")),
            self.tail.value,
            self.tail.name,
            wants(!enough(self.tail.value), &format!("{wanted:.0}")),
            counted(view.moving[0].draws(), "draw"),
        ));
        if grade == Grade::NotConverged {
            sentence.push_str(" These draws do not describe the posterior yet.");
        }
        let mut parameters: Vec<String> = Vec::new();
        let worst = self.r_hat.iter().chain([&self.bulk, &self.tail]);
        for name in worst.map(|w| w.name.to_owned()) {
            if !parameters.contains(&name) {
                parameters.push(name);
            }
        }
        let verdict = Verdict::new(Kind::Convergence, severity, sentence).about(parameters);
        let verdict = match &self.r_hat {
            Some(r) => verdict.measured(r.value, R_HAT),
            None => verdict.measured(self.least_ess(), wanted),
        };
        match grade {
            Grade::Converged => verdict,
            Grade::Unknown | Grade::Fitted | Grade::SearchFailed => {
                verdict.advise("at least two chains, better four (`chains`)")
            }
            _ => verdict.advise(more_draws(view)),
        }
    }
}

fn wants(missed: bool, what: &str) -> String {
    if missed {
        format!("; {what} is wanted")
    } else {
        String::new()
    }
}

/// Two decimals, and three where R-hat is close to 1.
fn r_hat_figure(r: f64) -> String {
    match r {
        r if r.is_infinite() => "infinite".to_owned(),
        r if r < 1.1 => format!("{r:.3}"),
        _ => format!("{r:.2}"),
    }
}

fn more_draws(view: &EvidenceView) -> &'static str {
    if view.facts.likelihood.is_some() {
        "more iterations (`num_samples`, `num_warmup`), which cost nothing extra within a run, or another parametrisation (for a hierarchy, the non-centred one). Another run has its own privacy cost"
    } else if view.facts.has_budget {
        "more records or a larger epsilon, which both make the noise of a longer run tolerable; fewer parameters; bounds from which `dpm check` derives clip bounds; a better start (`init`) or, where the noise allows it, more iterations. Another run has its own privacy cost"
    } else {
        "more iterations (`num_samples`), a longer warm-up (`num_warmup`), a better start (`init`), or another parametrisation"
    }
}
