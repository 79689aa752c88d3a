//! An analysis by one of the crate's samplers.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::charge;
use super::clip::{self, Chosen, Clip, ClipError};
use super::error::Error;
use super::fit::{Fit, Made};
use super::initial::unconstrained_point;
use crate::accounting::{Quote, Real, Session, Terms};
use crate::density::Density;
use crate::model::Model;
use crate::output::RECORD;
use crate::privacy::{PrivateRng, Vault};
use crate::sampler::{
    ALGORITHMS, Beginning, DEFAULT_SAMPLES, Draw, Initial, Iterations, MetricForm, NoiseChoice,
    Observer, Plan, PlanRequest, PrivateSettings, lookup, sample_privately,
};
use crate::syntax::did_you_mean;
use crate::tune::for_model;

/// An analysis: a sampler, its settings, and the share of a budget that it may take. The
/// defaults are those of `dpm sample`.
///
/// ```
/// use dpm::{Analysis, Constants, Model, PrivateData, Session};
///
/// let model = Model::from_source(
///     "record { real<lower=-5, upper=5> y; }
///      parameters { real mu; }
///      model { mu ~ normal(0, 10); y ~ normal(mu, 4); }",
///     &Constants::none(),
/// )?;
/// let y: Vec<f64> = (0..2000).map(|i| f64::from(i % 7) / 2.0 - 1.0).collect();
/// let vault = PrivateData::from_columns([("y", y)]).bind(&model)?;
/// let session = Session::new(2.0, 1e-6)?;
///
/// let fit = Analysis::new("mean of y", 1.5)
///     .chains(2)
///     .iterations(50, 100)
///     .sample(&vault, &session)?;
/// assert_eq!(fit.draws().pooled("mu").map(|mu| mu.len()), Some(200));
/// # Ok::<(), dpm::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "an analysis does nothing until it samples"]
pub struct Analysis {
    name: String,
    algorithm: String,
    /// Epsilon, chains and whatever has a place in it.
    request: PlanRequest,
    warmup: u64,
    samples: u64,
    clips: [Clip; 2],
    temper_to: Option<f64>,
    seed: u64,
    start: Option<Value>,
    metric: MetricForm,
    target_acceptance: Option<f64>,
}

/// One iteration, as it happens.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Progress<'a> {
    /// Counts from 0.
    pub chain: usize,
    /// Counts from 0; warm-up comes first.
    pub iteration: u64,
    pub draw: &'a Draw,
}

/// A plan with what it was made from.
pub(super) struct Prepared {
    pub plan: Plan,
    pub clips: Chosen,
    pub unit: String,
}

impl Analysis {
    /// An analysis by DP-HMC that may cost so much epsilon by itself, at the delta of the
    /// session's budget. `name`: what it is, in a few words, for whoever reads the ledger.
    pub fn new(name: impl Into<String>, epsilon: impl Into<Real>) -> Analysis {
        let request = PlanRequest::new(epsilon.into(), Real::ONE, 1);
        Analysis {
            name: name.into(),
            algorithm: request.algorithm.name.to_owned(),
            request,
            warmup: DEFAULT_SAMPLES,
            samples: DEFAULT_SAMPLES,
            clips: [Clip::Automatic; 2],
            temper_to: None,
            seed: 1,
            start: None,
            metric: MetricForm::Unit,
            target_acceptance: None,
        }
    }

    /// The sampler: `dp-hmc`, `dp-penalty`, `dp-barker`, `dp-sgld`, `dp-sgnht` or `dp-sghmc`.
    pub fn algorithm(mut self, name: impl Into<String>) -> Analysis {
        self.algorithm = name.into();
        self
    }

    /// Number of chains, which share the budget. [4]
    pub fn chains(mut self, chains: u64) -> Analysis {
        self.request.chains = chains;
        self
    }

    /// Iterations of each chain: those that come first and are discarded, and those that are
    /// kept. [500 each]
    pub fn iterations(mut self, warmup: u64, samples: u64) -> Analysis {
        (self.warmup, self.samples) = (warmup, samples);
        self
    }

    /// Bound on the l2 norm of one record's gradient.
    pub fn clip_gradient(mut self, clip: impl Into<Clip>) -> Analysis {
        self.clips[0] = clip.into();
        self
    }

    /// Bound on one record's log-likelihood ratio per unit of distance, unconstrained scale.
    pub fn clip_log_ratio(mut self, clip: impl Into<Clip>) -> Analysis {
        self.clips[1] = clip.into();
        self
    }

    /// Tempers: the posterior that so many typical records would give, which is wider and far
    /// cheaper. Needs a public number of records.
    pub fn temper_to(mut self, records: f64) -> Analysis {
        self.temper_to = Some(records);
        self
    }

    /// A step size that is kept, in place of one that warm-up finds; unconstrained scale.
    pub fn step_size(mut self, step_size: f64) -> Analysis {
        self.request.step_size = Some(step_size);
        self
    }

    /// Leapfrog steps per iteration. [5]
    pub fn leapfrog_steps(mut self, steps: u64) -> Analysis {
        self.request.leapfrog_steps = steps;
        self
    }

    /// The share of the budget that goes to gradients, the rest to log-ratios. [0.5]
    pub fn noise_split(mut self, share: f64) -> Analysis {
        self.request.noise = NoiseChoice::FromBudget { split: share };
        self
    }

    /// Noise multipliers in units of the sensitivity, in place of what the share of the budget
    /// comes to. A run that would then cost more is refused.
    pub fn noise_multipliers(mut self, gradient: Option<f64>, log_ratio: Option<f64>) -> Analysis {
        self.request.noise = NoiseChoice::Multipliers {
            gradient,
            log_ratio,
        };
        self
    }

    /// Batches that each record is in with this probability, for samplers that draw some.
    pub fn batch_rate(mut self, rate: impl Into<Real>) -> Analysis {
        self.request.batch_rate = Some(rate.into());
        self
    }

    /// Batches of this many records, for samplers that draw some.
    pub fn batch_size(mut self, records: u64) -> Analysis {
        self.request.batch_size = Some(records);
        self
    }

    /// Of `dp-penalty`: proposes a change of one coordinate at a time.
    pub fn one_component(mut self) -> Analysis {
        self.request.one_component = true;
        self
    }

    /// Of `dp-penalty`: one coordinate at a time, in the direction that was accepted last.
    pub fn guided_walk(mut self) -> Analysis {
        self.request.guided_walk = true;
        self
    }

    /// Of the stochastic-gradient samplers: steps fall like 1 / iteration^`power`.
    pub fn step_decay(mut self, power: f64) -> Analysis {
        self.request.step_decay = Some(power);
        self
    }

    /// Of the stochastic-gradient samplers with momentum: friction per unit of time.
    pub fn friction(mut self, friction: f64) -> Analysis {
        self.request.friction = Some(friction);
        self
    }

    /// What warm-up estimates of the posterior's scales. [nothing]
    pub fn metric(mut self, form: MetricForm) -> Analysis {
        self.metric = form;
        self
    }

    /// The mean acceptance that warm-up aims at.
    pub fn target_acceptance(mut self, probability: f64) -> Analysis {
        self.target_acceptance = Some(probability);
        self
    }

    /// Fixes the public randomness: momenta, initial values. Never that of the noise. [1]
    pub fn seed(mut self, seed: u64) -> Analysis {
        self.seed = seed;
        self
    }

    /// Starts all chains at these values of the parameters, as in `{"mu": 0, "beta": [1, 2]}`,
    /// or each chain at its own object of a list. They must not come from the data. [random]
    pub fn start_at(mut self, values: Value) -> Analysis {
        self.start = Some(values);
        self
    }

    /// What the analysis will release and what it costs by itself, without any data.
    ///
    /// `records`: their number, or that of units; public under substitution and zero-out, and
    /// `None` under add-remove.
    ///
    /// # Errors
    ///
    /// Settings that make no sense, or a share of the budget that is too small.
    pub fn plan(&self, model: &Model, terms: &Terms, records: Option<u64>) -> Result<Plan, Error> {
        Ok(self.prepare(model, terms, terms.unit(), records)?.plan)
    }

    /// What the analysis would cost on a session's budget now; nothing is charged.
    ///
    /// # Errors
    ///
    /// As of [`plan`](Analysis::plan); another unit than the budget's.
    pub fn quote(&self, vault: &Vault, session: &Session) -> Result<Quote, Error> {
        let prepared = self.prepare_for(vault, session)?;
        charge::quote(session, &self.name, &prepared.plan, &prepared.unit)
    }

    /// Charges the session and draws from the posterior.
    ///
    /// # Errors
    ///
    /// As of [`plan`](Analysis::plan); a budget that refuses; a run that cannot go on. An
    /// analysis that fails after its first release stays charged.
    pub fn sample(&self, vault: &Vault, session: &Session) -> Result<Fit, Error> {
        self.sample_with(vault, session, |_| ControlFlow::Continue(()))
    }

    /// As [`sample`](Analysis::sample), and tells `each` of every iteration, from the chains'
    /// threads. When it answers with [`ControlFlow::Break`], all chains end after the
    /// iterations that they are in: [`Fit::is_interrupted`].
    ///
    /// # Errors
    ///
    /// As of [`sample`](Analysis::sample).
    pub fn sample_with(
        &self,
        vault: &Vault,
        session: &Session,
        each: impl Fn(Progress<'_>) -> ControlFlow<()> + Sync,
    ) -> Result<Fit, Error> {
        let prepared = self.prepare_for(vault, session)?;
        let plan = &prepared.plan;
        let settings = PrivateSettings {
            num_warmup: self.warmup,
            initial: self.initial(vault.density())?,
            seed: self.seed,
            noise: PrivateRng::from_os().map_err(crate::sampler::SampleError::from)?,
            metric: self.metric,
            target_acceptance: self.target_acceptance,
        };
        let observer = PerDraw {
            each,
            stopped: AtomicBool::new(false),
            start: OnceLock::new(),
        };
        let (chains, released, ledger) = charge::charged(
            session,
            &self.name,
            plan,
            &prepared.unit,
            |meter| Ok(sample_privately(vault, plan, meter, &settings, &observer)?),
            |chains| !chains.iter().any(|chain| chain.interrupted),
        )?;
        Fit::new(Made {
            name: self.name.clone(),
            density: vault.density(),
            prepared,
            chains,
            start: observer.start.into_inner(),
            released,
            ledger,
            warmup: self.warmup,
            samples: self.samples,
            seed: self.seed,
            metric: self.metric,
            target_acceptance: self.target_acceptance,
            temper_to: self.temper_to,
        })
    }

    fn prepare_for(&self, vault: &Vault, session: &Session) -> Result<Prepared, Error> {
        let terms = session.terms()?;
        let unit = charge::unit_of(vault, &terms)?;
        let records = charge::public_n(vault, &terms)?;
        self.prepare(vault.density().model(), &terms, &unit, records)
    }

    fn prepare(
        &self,
        model: &Model,
        terms: &Terms,
        unit: &str,
        records: Option<u64>,
    ) -> Result<Prepared, Error> {
        let algorithm = lookup(&self.algorithm).ok_or_else(|| self.unknown())?;
        if self.samples == 0 {
            return Err(Error::Settings(
                "an analysis keeps at least one iteration of each chain: give more samples".into(),
            ));
        }
        if self
            .target_acceptance
            .is_some_and(|p| !(p > 0.0 && p < 1.0))
        {
            return Err(Error::Settings(
                "the target acceptance is a number between 0 and 1".into(),
            ));
        }
        let request = PlanRequest {
            algorithm,
            iterations: Iterations::Fixed(self.warmup.saturating_add(self.samples)),
            ..self.request.clone()
        };
        prepare(
            request,
            model,
            terms,
            unit,
            records,
            self.clips,
            self.temper_to,
        )
    }

    fn unknown(&self) -> Error {
        let private = || ALGORITHMS.iter().filter(|a| a.is_private()).map(|a| a.name);
        let hint = did_you_mean(&self.algorithm, private())
            .map(|name| format!(" (did you mean `{name}`?)"))
            .unwrap_or_default();
        let names: Vec<&str> = private().collect();
        Error::Settings(format!(
            "there is no sampler `{}`{hint}; there are {}",
            self.algorithm,
            names.join(", ")
        ))
    }

    fn initial(&self, density: &Density) -> Result<Initial, Error> {
        let list = match &self.start {
            None => return Ok(Initial::Random),
            Some(Value::Array(list)) => list.as_slice(),
            Some(one) => std::slice::from_ref(one),
        };
        if list.is_empty() || list.len() > 1 && list.len() as u64 != self.request.chains {
            return Err(Error::Settings(format!(
                "there are {} initial points for {} chains: give one for all, or one per chain",
                list.len(),
                self.request.chains
            )));
        }
        let point = |value: &Value| match value.as_object() {
            Some(values) => unconstrained_point(density, values).map_err(Error::Settings),
            None => Err(Error::Settings(
                "an initial point is an object of parameter values".into(),
            )),
        };
        Ok(Initial::Points(
            list.iter().map(point).collect::<Result<_, _>>()?,
        ))
    }
}

/// Threads that any system has.
const MOST_CHAINS: u64 = 1024;

/// Makes the plan of a request, with what follows from the model, the data's public side
/// and the budget filled in.
pub(super) fn prepare(
    request: PlanRequest,
    model: &Model,
    terms: &Terms,
    unit: &str,
    records: Option<u64>,
    clips: [Clip; 2],
    temper_to: Option<f64>,
) -> Result<Prepared, Error> {
    if request.chains > MOST_CHAINS {
        return Err(Error::Settings(format!(
            "{} chains are more than an analysis may have, which is {MOST_CHAINS}: each has a thread",
            request.chains
        )));
    }
    let records = records.filter(|_| terms.relation().n_is_public());
    let clips = clip::choose(model, unit != RECORD, request.algorithm, clips).map_err(no_bound)?;
    let request = PlanRequest {
        delta: terms.budget().delta(),
        relation: terms.relation(),
        dimension: model.dimension as u64,
        temperature: temperature(temper_to, records)?,
        clip_gradient: clips.bounds[0],
        clip_log_ratio: clips.bounds[1],
        records,
        shared_units: unit != RECORD,
        ..request
    };
    let plan = Plan::new(for_model(request, model)?)?;
    Ok(Prepared {
        plan,
        clips,
        unit: unit.to_owned(),
    })
}

fn no_bound(error: ClipError) -> Error {
    let of = |which: usize| ["gradients", "log-ratios"][which.min(1)];
    Error::Settings(match error {
        ClipError::NoBound { which, missing } => format!(
            "there is no derived bound on {}: {missing}; declare that, or give a number",
            of(which)
        ),
        ClipError::OfUnits { which } => format!(
            "a derived bound on {} is one for a single row, and the rows of a unit add up: give a number",
            of(which)
        ),
    })
}

/// T = n0 / n.
fn temperature(temper_to: Option<f64>, records: Option<u64>) -> Result<f64, Error> {
    match (temper_to, records) {
        (None, _) => Ok(1.0),
        (Some(_), None) => Err(Error::Settings(
            "tempering needs a public number of records; under add-remove it is private".into(),
        )),
        (Some(n0), Some(n)) if n0 > 0.0 && n0 <= n as f64 => Ok(n0 / n as f64),
        (Some(n0), Some(n)) => Err(Error::Settings(format!(
            "the data are to be tempered to {n0} records, but that must be above 0 and at most their number, {n}"
        ))),
    }
}

/// An observer that asks a function.
struct PerDraw<F> {
    each: F,
    stopped: AtomicBool,
    start: OnceLock<Arc<dyn Beginning>>,
}

impl<F: Fn(Progress<'_>) -> ControlFlow<()> + Sync> Observer for PerDraw<F> {
    fn iteration(&self, chain: usize, iteration: u64, draw: &Draw) {
        let progress = Progress {
            chain,
            iteration,
            draw,
        };
        if (self.each)(progress).is_break() {
            self.stopped.store(true, Ordering::Relaxed);
        }
    }

    fn learnt(&self, learnt: &Arc<dyn Beginning>) {
        let _ = self.start.set(learnt.clone());
    }

    fn interrupted(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}
