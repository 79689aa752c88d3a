//! An analysis by one of the crate's samplers: what is asked for.

use std::ops::ControlFlow;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::Error;
use super::fit::Fit;
use super::initial::{element_names, unconstrained_point};
use super::lengths::{AskedIterations, AskedLengths};
use super::prepare::{Design, Prepared, Promise};
use super::run::{self, Charge, Job, PerIteration};
use super::saved::SavedRun;
use crate::accounting::{Quote, Real, Session, Terms, exact_real};
use crate::density::Density;
use crate::model::Model;
use crate::privacy::Vault;
use crate::sampler::{
    ALGORITHMS, Algorithm, Allowance, DEFAULT_CHAINS, DEFAULT_SAMPLES, Draw, Initial, Plan,
    PlanRequest, Settings, default_algorithm, lookup,
};
use crate::syntax::did_you_mean;

/// An analysis: a sampler, its settings, and the share of a budget that it may take. The
/// defaults are those of `dpm sample`, which makes one of these of its arguments: the same model,
/// data, settings and budget make the same run.
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
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[must_use = "an analysis does nothing until it samples"]
pub struct Analysis {
    name: String,
    #[serde(with = "exact_real")]
    epsilon: Real,
    /// `None`: what the settings call for.
    algorithm: Option<String>,
    settings: Settings,
    chains: u64,
    lengths: AskedLengths,
    thin: u64,
    temper_to: Option<f64>,
    seed: u64,
    start: Option<Value>,
    insecure_noise_seed: Option<u64>,
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

impl Analysis {
    /// An analysis that may cost so much epsilon by itself, at the delta of the session's budget.
    /// `name`: its purpose, in a few words, for readers of the ledger.
    pub fn new(name: impl Into<String>, epsilon: impl Into<Real>) -> Analysis {
        Analysis {
            name: name.into(),
            epsilon: epsilon.into(),
            algorithm: None,
            settings: Settings::new(),
            chains: DEFAULT_CHAINS,
            lengths: AskedLengths::default(),
            thin: 1,
            temper_to: None,
            seed: 1,
            start: None,
            insecure_noise_seed: None,
        }
    }

    /// The sampler, by its name. Default: `dp-laplace`, which needs no settings; `dp-langevin` or
    /// `dp-hmc` where settings of theirs are given.
    pub fn algorithm(mut self, name: impl Into<String>) -> Analysis {
        self.algorithm = Some(name.into());
        self
    }

    /// The settings of the sampler. Default: those that it finds by itself.
    pub fn settings(mut self, settings: Settings) -> Analysis {
        self.settings = settings;
        self
    }

    /// Number of chains, which share the budget. Default: 4.
    pub fn chains(mut self, chains: u64) -> Analysis {
        self.chains = chains;
        self
    }

    /// Iterations of each chain: those that come first and are discarded, and those that are
    /// kept. Default: 500 are kept; as many come first, half as many for `dp-laplace`, and a tenth
    /// for `dp-langevin`.
    pub fn iterations(mut self, warmup: u64, samples: u64) -> Analysis {
        self.lengths = AskedLengths {
            num_warmup: Some(warmup),
            num_samples: Some(samples),
            iterations: None,
        };
        self
    }

    /// As many iterations of each chain as the budget allows, for noise that does not depend on
    /// their number.
    pub fn most_iterations(mut self) -> Analysis {
        self.lengths.iterations = Some(AskedIterations::Max);
        self
    }

    pub(crate) fn asked_lengths(mut self, lengths: AskedLengths) -> Analysis {
        self.lengths = lengths;
        self
    }

    /// Keeps every n-th iteration. Default: 1.
    pub fn thin(mut self, thin: u64) -> Analysis {
        self.thin = thin;
        self
    }

    /// Tempers: the posterior that so many typical records would give, which is wider and far
    /// cheaper. Needs a public number of records.
    pub fn temper_to(mut self, records: f64) -> Analysis {
        self.temper_to = Some(records);
        self
    }

    /// Fixes the public randomness: momenta, initial values. Never that of the noise. Default: 1.
    pub fn seed(mut self, seed: u64) -> Analysis {
        self.seed = seed;
        self
    }

    /// Starts all chains at these values of the parameters, as in `{"mu": 0, "beta": [1, 2]}`,
    /// or each chain at its own object of a list. They must not come from the data. Default:
    /// random points.
    pub fn start_at(mut self, values: Value) -> Analysis {
        self.start = Some(values);
        self
    }

    /// Makes the noise from a seed, for tests: the draws are NOT PRIVATE, and everything that is
    /// written of them says so. A ledger on the disk is not charged for such a run.
    pub fn insecure_noise_seed(mut self, seed: u64) -> Analysis {
        self.insecure_noise_seed = Some(seed);
        self
    }

    /// The releases of the analysis and their cost by themselves, without any data.
    ///
    /// `records`: their number, or that of units; public under substitution and zero-out, and
    /// `None` under add-remove.
    ///
    /// # Errors
    ///
    /// Settings that make no sense, or a share of the budget that is too small.
    pub fn plan(&self, model: &Model, terms: &Terms, records: Option<u64>) -> Result<Plan, Error> {
        let promise = Promise::under(terms, self.epsilon, records);
        Ok(self.prepare(model, promise)?.plan)
    }

    /// The cost of the analysis on a session's budget now; nothing is charged.
    ///
    /// # Errors
    ///
    /// As of [`plan`](Analysis::plan); another unit than the budget's.
    pub fn quote(&self, vault: &Vault, session: &Session) -> Result<Quote, Error> {
        let prepared = self.prepare_on(vault, session)?;
        let request = prepared.promise.request(&self.name, &prepared.plan);
        Ok(session.quote(&request)?)
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
        let job = self.job(vault, session)?;
        run::run(&job, None, &PerIteration::new(&each))?.fit
    }

    /// As [`sample_with`](Analysis::sample_with), and keeps the state of the run at `place` as it
    /// goes, so that a run that is interrupted or killed can be [resumed](Analysis::resume). In the
    /// end the directory that `dpm sample` writes stands there. Needs a session with a ledger on
    /// the disk, which outlives the process as the state does.
    ///
    /// # Errors
    ///
    /// As of [`sample`](Analysis::sample); a session in memory; something is at `place` already,
    /// or it cannot be written.
    pub fn sample_at(
        &self,
        place: impl AsRef<Path>,
        vault: &Vault,
        session: &Session,
        each: impl Fn(Progress<'_>) -> ControlFlow<()> + Sync,
    ) -> Result<Fit, Error> {
        let job = self.job(vault, on_disk(session)?)?;
        let saved = SavedRun::create(place.as_ref(), false, &job, Value::Null)?;
        run_at(&job, saved, each)
    }

    /// Goes on with a run of [`sample_at`](Analysis::sample_at), or of `dpm sample` with the
    /// ledger of the session, on the charge and with the settings that it has. `vault`: the same
    /// model and data.
    ///
    /// # Errors
    ///
    /// There is no unfinished run at `place`; another model, or number of records; a session that
    /// does not hold its charge; as of [`sample`](Analysis::sample).
    pub fn resume(
        place: impl AsRef<Path>,
        vault: &Vault,
        session: &Session,
        each: impl Fn(Progress<'_>) -> ControlFlow<()> + Sync,
    ) -> Result<Fit, Error> {
        on_disk(session)?;
        let saved = SavedRun::open(place.as_ref())?;
        saved.check_model(
            vault.density().model(),
            ["the model", "the object of constants", "the codebook"],
        )?;
        let analysis = saved.analysis()?;
        let job = analysis.job(vault, session)?;
        saved.check_plan(&job.prepared.plan)?;
        run_at(&job, saved, each)
    }

    fn job<'a>(&'a self, vault: &'a Vault, session: &'a Session) -> Result<Job<'a>, Error> {
        Ok(Job {
            analysis: self,
            vault,
            prepared: self.prepare_on(vault, session)?,
            initial: self.initial(vault.density())?,
            charge: Charge::Session(session),
        })
    }

    fn prepare_on(&self, vault: &Vault, session: &Session) -> Result<Prepared, Error> {
        let promise = Promise::on(session, vault, self.epsilon)?;
        self.prepare(vault.density().model(), promise)
    }

    pub(crate) fn prepare(&self, model: &Model, promise: Promise) -> Result<Prepared, Error> {
        let algorithm = self.sampler()?;
        if !algorithm.is_private() {
            return Err(Error::Settings(format!(
                "`{}` is not private; there is no budget to plan for",
                algorithm.name
            )));
        }
        (self.design(algorithm, DEFAULT_SAMPLES)?).prepare(&self.lengths, model, promise)
    }

    /// The design of the run, checked as far as neither model nor data matter.
    pub(super) fn design(
        &self,
        algorithm: &'static Algorithm,
        default_samples: u64,
    ) -> Result<Design<'_>, Error> {
        if self.chains == 0 {
            return Err(Error::Settings("`chains` must be at least 1".into()));
        }
        if self.thin == 0 {
            return Err(Error::Settings("`thin` must be at least 1".into()));
        }
        self.settings.check(algorithm)?;
        Ok(Design {
            algorithm,
            settings: &self.settings,
            chains: self.chains,
            lengths: self.lengths.settle(default_samples, algorithm)?,
            temper_to: self.temper_to,
            allowance: Allowance::default(),
        })
    }

    /// The request to the planner.
    pub(crate) fn request(&self, model: &Model, promise: &Promise) -> Result<PlanRequest, Error> {
        let design = self.design(self.sampler()?, DEFAULT_SAMPLES)?;
        Ok(design.request(model, promise)?.0)
    }

    /// Checks the settings, whatever the model and the data.
    pub(crate) fn check(&self, algorithm: &'static Algorithm) -> Result<(), Error> {
        self.design(algorithm, DEFAULT_SAMPLES).map(|_| ())
    }

    /// The sampler that is named, or that the settings call for.
    pub(crate) fn sampler(&self) -> Result<&'static Algorithm, Error> {
        match &self.algorithm {
            Some(name) => known_algorithm(name),
            None => Ok(default_algorithm(
                &self.settings,
                self.lengths.iterations == Some(AskedIterations::Max),
            )),
        }
    }

    /// Where chains begin, on the unconstrained scale.
    pub(crate) fn initial(&self, density: &Density) -> Result<Initial, Error> {
        let list = match &self.start {
            None => return Ok(Initial::Random),
            Some(Value::Array(list)) => list.as_slice(),
            Some(one) => std::slice::from_ref(one),
        };
        if list.is_empty() || list.len() > 1 && list.len() as u64 != self.chains {
            return Err(Error::Settings(format!(
                "there are {} initial points for {} chains: give one for all, or one per chain",
                list.len(),
                self.chains
            )));
        }
        let point = |(i, value): (usize, &Value)| {
            unconstrained_point(density, value)
                .map_err(|e| Error::InitialPoint(format!("initial point {}: {e}", i + 1)))
        };
        let points = list.iter().enumerate().map(point);
        Ok(Initial::Points(points.collect::<Result<_, _>>()?))
    }

    /// The same with the values of the model's parameters alone in where chains begin.
    pub(super) fn started_in(mut self, model: &Model) -> Analysis {
        let only = |point: &Value| {
            let given = |name: &String| {
                Some((
                    name.clone(),
                    point.get("params").unwrap_or(point).get(name)?.clone(),
                ))
            };
            let own = model.parameters.iter().flat_map(|parameter| {
                // As `unconstrained_point` reads them.
                match given(&parameter.name) {
                    Some(whole) => vec![whole],
                    None => element_names(parameter).iter().filter_map(given).collect(),
                }
            });
            Value::Object(own.collect())
        };
        self.start = self.start.map(|start| match start {
            Value::Array(points) => points.iter().map(only).collect(),
            one => only(&one),
        });
        self
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn epsilon(&self) -> Real {
        self.epsilon
    }

    pub(crate) fn thinning(&self) -> u64 {
        self.thin
    }

    pub(crate) fn public_seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn noise_seed(&self) -> Option<u64> {
        self.insecure_noise_seed
    }

    pub(crate) fn tempered_to(&self) -> Option<f64> {
        self.temper_to
    }
}

/// The session, unless it dies with the process.
fn on_disk(session: &Session) -> Result<&Session, Error> {
    match session.path()? {
        Some(_) => Ok(session),
        None => Err(Error::Settings(
            "a run can only be resumed with a ledger file, and this session is in memory: create a ledger, or sample without a place".into(),
        )),
    }
}

/// Runs or resumes at a place, and writes the directory there.
fn run_at(
    job: &Job,
    saved: SavedRun,
    each: impl Fn(Progress<'_>) -> ControlFlow<()> + Sync,
) -> Result<Fit, Error> {
    let ended = run::run(job, Some(saved), &PerIteration::new(&each))?;
    let fit = ended.fit?;
    if let Some(saved) = ended.saved {
        fit.files().write_over(&saved, true, &Value::Null)?;
    }
    Ok(fit)
}

/// The sampler of that name.
///
/// # Errors
///
/// There is none.
fn known_algorithm(name: &str) -> Result<&'static Algorithm, Error> {
    if let Some(algorithm) = lookup(name) {
        return Ok(algorithm);
    }
    let hint = did_you_mean(name, ALGORITHMS.iter().map(|a| a.name))
        .map(|s| format!(" (did you mean `{s}`?)"))
        .unwrap_or_default();
    let names: Vec<String> = ALGORITHMS.iter().map(|a| format!("`{}`", a.name)).collect();
    Err(Error::Settings(format!(
        "there is no sampler `{name}`{hint}; there are {}",
        names.join(", ")
    )))
}
