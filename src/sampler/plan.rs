//! What a private run will release, and what that costs, before any data.

use crate::accounting::{
    AccountError, Budget, Event, EventError, Gaussian, Guarantee, GuaranteeBounds, Lattice, Query,
    Real, Relation, account, mu_for_budget, total_variation_of_draw,
};
use crate::privacy::{GradientScale, PenaltyError, PenaltyScale, ScaleError, penalty};

/// Chains of a private run that does not say how many.
pub const DEFAULT_CHAINS: u64 = 4;
/// Sampling iterations per chain; as many again are warm-up.
pub const DEFAULT_SAMPLES: u64 = 500;
pub const DEFAULT_LEAPFROG_STEPS: u64 = 5;
/// Clip bounds on gradients and on log-ratios per unit of distance: generous for
/// a regression with a handful of covariates of size one.
pub const DEFAULT_CLIP: f64 = 3.0;
/// Half of the budget for gradients.
pub const DEFAULT_SPLIT: f64 = 0.5;
/// Largest leapfrog step, unconstrained scale.
pub const DEFAULT_STEP_SIZE: f64 = 0.05;

/// How much noise there is to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoiseChoice {
    /// As much as the budget needs for the given number of iterations;
    /// `split` is the share of the budget that goes to gradients.
    FromBudget { split: f64 },
    /// These noise multipliers, in units of the sensitivity (the paper's tau).
    Multipliers { gradient: f64, log_ratio: f64 },
}

/// How many iterations one chain runs, warm-up included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Iterations {
    Fixed(u64),
    /// As many as the budget allows; needs [`NoiseChoice::Multipliers`].
    Max,
}

/// The settings that a plan follows from. None of them depends on a row.
#[derive(Debug, Clone)]
pub struct PlanRequest {
    pub epsilon: Real,
    pub delta: Real,
    pub relation: Relation,
    pub chains: u64,
    pub iterations: Iterations,
    /// L
    pub leapfrog_steps: u64,
    pub fresh_gradients: bool,
    /// b_g: bound on the l2 norm of one record's gradient.
    pub clip_gradient: f64,
    /// b_l: bound on one record's log-ratio per unit of distance.
    pub clip_log_ratio: f64,
    pub noise: NoiseChoice,
    /// Number of unconstrained coordinates.
    pub dimension: u64,
    /// T, the power of the likelihood: n0 / n, or 1.
    pub temperature: f64,
    /// eta: the largest step.
    pub step_size: f64,
}

impl PlanRequest {
    /// The defaults of `dpm sample` for a model with `dimension` unconstrained
    /// coordinates.
    pub fn new(epsilon: Real, delta: Real, dimension: usize) -> Self {
        PlanRequest {
            epsilon,
            delta,
            relation: Relation::Substitute,
            chains: DEFAULT_CHAINS,
            iterations: Iterations::Fixed(2 * DEFAULT_SAMPLES),
            leapfrog_steps: DEFAULT_LEAPFROG_STEPS,
            fresh_gradients: false,
            clip_gradient: DEFAULT_CLIP,
            clip_log_ratio: DEFAULT_CLIP,
            noise: NoiseChoice::FromBudget {
                split: DEFAULT_SPLIT,
            },
            dimension: dimension as u64,
            temperature: 1.0,
            step_size: DEFAULT_STEP_SIZE,
        }
    }
}

/// A run that fits its budget.
#[derive(Debug, Clone)]
pub struct Plan {
    pub request: PlanRequest,
    pub iterations_per_chain: u64,
    pub tau_gradient: f64,
    pub tau_log_ratio: f64,
    /// Gradients first, then log-ratios.
    pub events: Vec<Event>,
    pub guarantee: Guarantee,
    pub gradient_scale: GradientScale,
    pub penalty_scale: PenaltyScale,
    /// What makes the run less useful than its user may hope.
    pub warnings: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error(
        "this run needs epsilon {requested:.6} at delta {delta:e}, but the budget is {budget}: short by {short:.6}. Spent so far: 0, remaining: {budget}. Use larger noise multipliers, fewer iterations or chains, or `--iterations max`"
    )]
    Budget {
        requested: f64,
        budget: f64,
        delta: f64,
        short: f64,
    },
    #[error("not one iteration fits this budget: use larger noise multipliers or fewer chains")]
    NoIteration,
    #[error(
        "epsilon {epsilon} is more than can be accounted for at delta {delta:e}: noise on a lattice differs from a Gaussian by total variation {total_variation:.1e}, which adds (1 + e^epsilon) times that to delta. Give an epsilon of at most about {most} (or larger noise multipliers)"
    )]
    Lattice {
        epsilon: f64,
        delta: f64,
        total_variation: f64,
        most: f64,
    },
    #[error("{0}")]
    Settings(String),
    #[error(transparent)]
    Scale(#[from] ScaleError),
    #[error(transparent)]
    Penalty(#[from] PenaltyError),
    #[error(transparent)]
    Event(#[from] EventError),
    #[error(transparent)]
    Account(#[from] AccountError),
    #[error(transparent)]
    InvalidBudget(#[from] crate::accounting::BudgetError),
}

impl PlanError {
    /// Whether the budget refuses the run, rather than the settings being wrong.
    pub fn is_refusal(&self) -> bool {
        matches!(self, PlanError::Budget { .. } | PlanError::NoIteration)
    }
}

impl Plan {
    /// Makes the plan of a DP-HMC run.
    ///
    /// Cost of k iterations per chain over c chains (ALGORITHMS.md):
    /// mu = c (k / (2 tau_l^2) + (k L + 1) / (2 tau_g^2)), with k (L + 1)
    /// gradients when each trajectory starts from a fresh one.
    ///
    /// Errors: settings out of range; a budget that the run would exceed.
    pub fn new(request: PlanRequest) -> Result<Plan, PlanError> {
        check_settings(&request)?;
        Budget::new(request.epsilon, request.delta)?;
        match (request.noise, request.iterations) {
            (NoiseChoice::FromBudget { split }, Iterations::Fixed(k)) => {
                from_budget(request, split, k)
            }
            (NoiseChoice::FromBudget { .. }, Iterations::Max) => Err(PlanError::Settings(
                "`--iterations max` needs the noise multipliers: give --tau-gradient and --tau-log-ratio".into(),
            )),
            (
                NoiseChoice::Multipliers {
                    gradient,
                    log_ratio,
                },
                Iterations::Fixed(k),
            ) => match assemble(&request, gradient, log_ratio, k)? {
                Some(plan) => Ok(plan),
                None => Err(refusal(&request, gradient, log_ratio, k)?),
            },
            (
                NoiseChoice::Multipliers {
                    gradient,
                    log_ratio,
                },
                Iterations::Max,
            ) => most_iterations(request, gradient, log_ratio),
        }
    }

    /// Upper bound on epsilon at the plan's delta.
    pub fn epsilon(&self) -> f64 {
        upper_epsilon(&self.guarantee)
    }
}

/// Upper bound on epsilon of a guarantee that was asked for one.
pub(crate) fn upper_epsilon(guarantee: &Guarantee) -> f64 {
    match guarantee.bounds {
        GuaranteeBounds::Epsilon { epsilon_upper, .. } => epsilon_upper,
        GuaranteeBounds::Delta { .. } => guarantee.epsilon,
    }
}

fn check_settings(r: &PlanRequest) -> Result<(), PlanError> {
    let fail = |message: &str| Err(PlanError::Settings(message.to_string()));
    if r.chains == 0 {
        return fail("--chains must be at least 1");
    }
    if r.leapfrog_steps == 0 {
        return fail("--leapfrog-steps must be at least 1");
    }
    if r.iterations == Iterations::Fixed(0) {
        return fail("there must be at least one iteration");
    }
    if r.dimension == 0 {
        return fail("the model has no parameters to sample");
    }
    if !(r.step_size > 0.0 && r.step_size.is_finite()) {
        return fail("--step-size must be a positive number");
    }
    if !(r.temperature > 0.0 && r.temperature <= 1.0) {
        return fail("--temperature is a number of records between 0 and the number in the data");
    }
    Ok(())
}

fn gradients_per_chain(r: &PlanRequest, k: u64) -> Result<u64, PlanError> {
    let count = if r.fresh_gradients {
        r.leapfrog_steps
            .checked_add(1)
            .and_then(|l| l.checked_mul(k))
    } else {
        r.leapfrog_steps
            .checked_mul(k)
            .and_then(|n| n.checked_add(1))
    };
    count
        .and_then(|n| n.checked_mul(r.chains).map(|_| n))
        .filter(|&n| n < 1 << 50)
        .ok_or_else(|| PlanError::Settings("the run is too long to be counted".into()))
}

fn factor(relation: Relation) -> u8 {
    match relation {
        Relation::Substitute => 2,
        Relation::AddRemove => 1,
    }
}

fn from_budget(r: PlanRequest, split: f64, k: u64) -> Result<Plan, PlanError> {
    if !(split > 0.0 && split < 1.0) {
        return Err(PlanError::Settings(
            "--noise-split is a share of the budget, above 0 and below 1".into(),
        ));
    }
    let gradients = (gradients_per_chain(&r, k)? * r.chains) as f64;
    let ratios = (k * r.chains) as f64;
    let gradient_ratio =
        GradientScale::new(r.clip_gradient, factor(r.relation), 1.0)?.lattice_ratio();
    let total_variation = Real::from(gradients * r.dimension as f64)
        * total_variation_of_draw(Real::from(gradient_ratio))
        + Real::from(ratios) * total_variation_of_draw(Real::from(penalty::LATTICE_RATIO));
    let mu = mu_for_budget(r.epsilon, r.delta, total_variation)
        .map_err(|e| lattice_limit(e.into(), &r))?;
    let tau_gradient = (gradients / (2.0 * split * mu)).sqrt();
    let tau_log_ratio = (ratios / (2.0 * (1.0 - split) * mu)).sqrt();
    // Rounding may leave the plan a hair above its budget: widen the noise
    // until the accountant, which has the last word, agrees.
    for doubling in 0..20 {
        let widen = 1.0 + 1e-14 * f64::from(1 << doubling);
        if let Some(plan) = assemble(&r, tau_gradient * widen, tau_log_ratio * widen, k)? {
            return Ok(plan);
        }
    }
    Err(PlanError::NoIteration)
}

fn most_iterations(r: PlanRequest, gradient: f64, log_ratio: f64) -> Result<Plan, PlanError> {
    let plan_for = |k| assemble(&r, gradient, log_ratio, k);
    let Some(mut best) = plan_for(1)? else {
        return Err(refusal(&r, gradient, log_ratio, 1)?);
    };
    let mut too_many = 2u64;
    while too_many < 1 << 40 {
        match plan_for(too_many)? {
            Some(plan) => best = plan,
            None => break,
        }
        too_many *= 2;
    }
    while too_many - best.iterations_per_chain > 1 {
        let middle = best.iterations_per_chain.midpoint(too_many);
        match plan_for(middle)? {
            Some(plan) => best = plan,
            None => too_many = middle,
        }
    }
    Ok(best)
}

/// Why the budget refuses these iterations.
fn refusal(r: &PlanRequest, tau_g: f64, tau_l: f64, k: u64) -> Result<PlanError, PlanError> {
    // With continuous noise: the term for the lattice may be what makes every
    // epsilon too small, and this says how far off the budget is at least.
    let (_, _, events) = releases(r, tau_g, tau_l, k, false)?;
    let query = Query::Epsilon { delta: r.delta };
    let guarantee = account(&events, r.relation, query)?;
    let (requested, budget) = (upper_epsilon(&guarantee), r.epsilon.to_f64());
    if requested <= budget {
        let (_, _, events) = releases(r, tau_g, tau_l, k, true)?;
        return Ok(match account(&events, r.relation, query) {
            Err(error) => lattice_limit(error.into(), r),
            Ok(_) => PlanError::NoIteration,
        });
    }
    Ok(PlanError::Budget {
        requested,
        budget,
        delta: r.delta.to_f64(),
        short: requested - budget,
    })
}

/// Says which epsilon noise on a lattice can account for.
fn lattice_limit(error: PlanError, r: &PlanRequest) -> PlanError {
    let PlanError::Account(AccountError::DeltaUnreachable {
        total_variation, ..
    }) = error
    else {
        return error;
    };
    let delta = r.delta.to_f64();
    PlanError::Lattice {
        epsilon: r.epsilon.to_f64(),
        delta,
        total_variation,
        most: (delta / total_variation).ln().floor(),
    }
}

/// The plan, or `None` when it does not fit the budget.
fn assemble(r: &PlanRequest, tau_g: f64, tau_l: f64, k: u64) -> Result<Option<Plan>, PlanError> {
    let (gradient_scale, penalty_scale, events) = releases(r, tau_g, tau_l, k, true)?;
    let guarantee = match account(&events, r.relation, Query::Epsilon { delta: r.delta }) {
        Ok(guarantee) => guarantee,
        Err(AccountError::DeltaUnreachable { .. }) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if Real::from(upper_epsilon(&guarantee)) > r.epsilon {
        return Ok(None);
    }
    Ok(Some(Plan {
        iterations_per_chain: k,
        tau_gradient: tau_g,
        tau_log_ratio: tau_l,
        events,
        guarantee,
        gradient_scale,
        penalty_scale,
        warnings: warnings(r, tau_g, tau_l),
        request: r.clone(),
    }))
}

/// What k iterations per chain release: gradients, then log-ratios.
fn releases(
    r: &PlanRequest,
    tau_g: f64,
    tau_l: f64,
    k: u64,
    on_lattice: bool,
) -> Result<(GradientScale, PenaltyScale, Vec<Event>), PlanError> {
    let factor = factor(r.relation);
    let gradient_scale = GradientScale::new(r.clip_gradient, factor, tau_g)?;
    let penalty_scale = PenaltyScale::new(factor, tau_l)?;
    if !(r.clip_log_ratio > 0.0 && r.clip_log_ratio.is_finite()) {
        return Err(PlanError::Settings(
            "--clip-log-ratio must be a positive number".into(),
        ));
    }
    // sigma per unit of distance; the float product may round up, so take the
    // number below.
    let sigma = (f64::from(factor) * r.clip_log_ratio * tau_l).next_down();
    let mut gradient = Gaussian::of_clip(
        "gradient",
        r.clip_gradient,
        r.relation,
        gradient_scale.sigma(),
    )?;
    let mut log_ratio = Gaussian::of_clip(
        "log-ratio per unit of distance",
        r.clip_log_ratio,
        r.relation,
        sigma,
    )?;
    if on_lattice {
        gradient = gradient.on_lattice(Lattice::new(gradient_scale.lattice_ratio(), r.dimension)?);
        log_ratio = log_ratio.on_lattice(Lattice::new(penalty::LATTICE_RATIO, 1)?);
    }
    let events = vec![
        Event::Gaussian(gradient.times(gradients_per_chain(r, k)? * r.chains)),
        Event::Gaussian(log_ratio.times(k * r.chains)),
    ];
    Ok((gradient_scale, penalty_scale, events))
}

/// Says beforehand what cannot work.
fn warnings(r: &PlanRequest, tau_g: f64, tau_l: f64) -> Vec<String> {
    let mut warnings = Vec::new();
    // A trajectory driven by gradient noise alone is about this long: momenta
    // of size 1 over L steps, jittered to half the step on average.
    let d = r.dimension as f64;
    let typical = 0.5 * r.step_size * r.leapfrog_steps as f64 * d.sqrt();
    let factor = f64::from(factor(r.relation));
    let sigma = factor * r.temperature * r.clip_log_ratio * tau_l * typical;
    if sigma > 2.0 {
        warnings.push(format!(
            "for a proposal at distance {typical:.2e} the noise of the acceptance test has standard deviation {sigma:.1} nats; above 2 almost everything is rejected. Use a smaller --step-size, fewer iterations or chains, a larger epsilon, or --temperature"
        ));
    }
    let gradient_noise = factor * r.temperature * r.clip_gradient * tau_g;
    let kick = 0.5 * r.step_size * gradient_noise;
    if kick > 2.0 {
        warnings.push(format!(
            "gradient noise (standard deviation {gradient_noise:.1}) changes the momentum by about {kick:.1} per step, more than the momentum itself: the dynamics will be mostly noise"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paper_banana() -> PlanRequest {
        let root = 100_000f64.sqrt();
        PlanRequest {
            epsilon: Real::from(15.0),
            delta: "1e-6".parse().unwrap(),
            relation: Relation::Substitute,
            chains: 4,
            iterations: Iterations::Max,
            leapfrog_steps: 25,
            fresh_gradients: true,
            clip_gradient: 0.05,
            clip_log_ratio: 0.1,
            noise: NoiseChoice::Multipliers {
                gradient: 0.55 * root,
                log_ratio: 0.10 * root,
            },
            dimension: 2,
            temperature: 1.0,
            step_size: 0.006,
        }
    }

    /// ALGORITHMS.md: 892 iterations per chain at epsilon 15. A factor of two
    /// in the sensitivity, a forgotten chain or gradient would all change it.
    #[test]
    fn the_papers_banana_runs_892_iterations() {
        let plan = Plan::new(paper_banana()).unwrap();
        assert_eq!(plan.iterations_per_chain, 892);
        assert!(plan.epsilon() <= 15.0 && plan.epsilon() > 14.9);
        let gaussian = Plan::new(PlanRequest {
            leapfrog_steps: 12,
            noise: NoiseChoice::Multipliers {
                gradient: 0.25 * 100_000f64.sqrt(),
                log_ratio: 0.1 * 100_000f64.sqrt(),
            },
            clip_gradient: 10.0,
            clip_log_ratio: 6.0,
            dimension: 10,
            ..paper_banana()
        })
        .unwrap();
        assert_eq!(gaussian.iterations_per_chain, 538);
    }

    /// A plan so costly that noise on a lattice reaches no delta at all is refused
    /// like any other, and does not stop the search for the longest run.
    #[test]
    fn a_delta_out_of_reach_is_a_refusal() {
        let costly = PlanRequest {
            iterations: Iterations::Fixed(1000),
            noise: NoiseChoice::Multipliers {
                gradient: 1.0,
                log_ratio: 1.0,
            },
            ..paper_banana()
        };
        for iterations in [Iterations::Fixed(1000), Iterations::Max] {
            let error = Plan::new(PlanRequest {
                iterations,
                ..costly.clone()
            })
            .unwrap_err();
            assert!(error.is_refusal(), "{error}");
            assert!(error.to_string().contains("short by"), "{error}");
        }
        let generous = PlanRequest {
            epsilon: Real::from(30.0),
            ..paper_banana()
        };
        assert!(Plan::new(generous).unwrap().iterations_per_chain > 892);
        let absurd = PlanRequest {
            epsilon: Real::from(1000.0),
            iterations: Iterations::Fixed(10),
            noise: NoiseChoice::FromBudget { split: 0.5 },
            ..paper_banana()
        };
        let error = Plan::new(absurd).unwrap_err();
        assert!(!error.is_refusal(), "{error}");
        assert!(error.to_string().contains("at most about"), "{error}");
    }

    #[test]
    fn a_budget_is_used_but_not_exceeded() {
        for (epsilon, split) in [("0.1", 0.5), ("1", 0.3), ("8", 0.9)] {
            for relation in [Relation::Substitute, Relation::AddRemove] {
                let request = PlanRequest {
                    epsilon: epsilon.parse().unwrap(),
                    relation,
                    iterations: Iterations::Fixed(200),
                    fresh_gradients: false,
                    noise: NoiseChoice::FromBudget { split },
                    ..paper_banana()
                };
                let wanted = request.epsilon.to_f64();
                let plan = Plan::new(request).unwrap();
                assert!(Real::from(plan.epsilon()) <= plan.request.epsilon);
                assert!(plan.epsilon() > wanted * (1.0 - 1e-6), "{}", plan.epsilon());
                assert_eq!(plan.events[0].count(), 4 * (200 * 25 + 1));
                assert_eq!(plan.events[1].count(), 4 * 200);
            }
        }
    }

    #[test]
    fn too_much_for_the_budget_is_refused_with_numbers() {
        let request = PlanRequest {
            iterations: Iterations::Fixed(2000),
            ..paper_banana()
        };
        let error = Plan::new(request).unwrap_err();
        assert!(error.is_refusal());
        let text = error.to_string();
        for word in [
            "needs epsilon",
            "budget is 15",
            "short by",
            "remaining",
            "Spent",
        ] {
            assert!(text.contains(word), "{text}");
        }
        let one = PlanRequest {
            epsilon: "1e-6".parse().unwrap(),
            ..paper_banana()
        };
        assert!(Plan::new(one).unwrap_err().is_refusal());
    }
}
