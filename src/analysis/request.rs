//! An analysis by one of the crate's samplers: what is asked for.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::Error;
use super::initial::{element_names, unconstrained_point};
use super::lengths::{AskedIterations, AskedLengths};
use super::prepare::{Design, Prepared, Promise};
use crate::accounting::{Real, Terms, exact_real};
use crate::density::Density;
use crate::model::Model;
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
    /// `dp-hmc` where settings are given that `dp-laplace` does not have.
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
        self.lengths.num_warmup = Some(warmup);
        self.lengths.num_samples = Some(samples);
        self
    }

    /// As many iterations of each chain as the budget allows, in place of
    /// [`iterations`](Analysis::iterations), for noise that does not depend on their number.
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
        if let (Some(samples), Some(AskedIterations::Max)) =
            (self.lengths.num_samples, self.lengths.iterations)
        {
            return Err(Error::Settings(format!(
                "`iterations` asks for {samples} draws, and `most_iterations` for as many as the budget allows: use one of them"
            )));
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
