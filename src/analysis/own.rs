//! Samplers that are written outside of this crate.
//!
//! # Privacy
//!
//! Nothing leaves the vault here but releases such as any sampler of the crate makes: each is charged
//! to the meter of a reservation before a row is read, and one that was not planned is refused.
//! Everything else an [`Oracle`] says is public, or follows from what was released.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::error::Error;
use super::fit::{Fit, FitParts};
use super::lengths::{AskedLengths, Lengths};
use super::prepare::{Design, Prepared, Promise};
use super::request::Analysis;
use super::run::settle;
use crate::accounting::{Meter, Quote, Real, Session, Terms};
use crate::density::Density;
use crate::model::Model;
use crate::output::RunLedger;
use crate::privacy::{PrivateRng, Vault};
use crate::sampler::{
    Allowance, Chain, Draw, Initial, OWN, Oracle as _, Phase, Plan, PrivateOracle, Ratio,
    SampleError, Settings, public_rng, start,
};

/// The questions of a sampler of your own, and the share of a budget that it may take: so many
/// noisy gradients and so many noisy log-ratios in each chain. The noise follows from that.
///
/// ```
/// use dpm::{Constants, Model, PrivateData, Questions, Session};
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
/// // Random-walk Metropolis with a penalty test.
/// let fit = Questions::new("a walk of my own", 1.5)
///     .log_ratios(200)
///     .chains(2)
///     .ask(&vault, &session, |oracle| {
///         let mut theta = oracle.start()?;
///         for _ in 0..200 {
///             let proposal: Vec<f64> =
///                 theta.iter().map(|x| x + 0.1 * oracle.normal()).collect();
///             let prior = oracle.log_prior(&proposal)? - oracle.log_prior(&theta)?;
///             let log_a = prior + oracle.log_ratio(&theta, &proposal)?;
///             if oracle.accept(log_a) {
///                 theta = proposal;
///             }
///             oracle.keep(&theta)?;
///         }
///         Ok(())
///     })?;
/// assert_eq!(fit.draws().pooled("mu").map(|mu| mu.len()), Some(400));
/// # Ok::<(), dpm::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing happens until the questions are asked"]
pub struct Questions {
    /// Name, epsilon, chains and settings.
    analysis: Analysis,
    allowance: Allowance,
}

impl Questions {
    /// Questions that may cost so much epsilon by themselves, at the delta of the session's
    /// budget; none yet. `name`: their purpose, in a few words, for readers of the ledger.
    pub fn new(name: impl Into<String>, epsilon: impl Into<Real>) -> Questions {
        Questions {
            analysis: Analysis::new(name, epsilon).chains(1),
            allowance: Allowance::default(),
        }
    }

    /// How many gradients each chain may ask for.
    pub fn gradients(mut self, count: u64) -> Questions {
        self.allowance.gradients = count;
        self
    }

    /// How many log-ratios each chain may ask for.
    pub fn log_ratios(mut self, count: u64) -> Questions {
        self.allowance.log_ratios = count;
        self
    }

    /// Number of chains, which share the budget. Default: 1.
    pub fn chains(mut self, chains: u64) -> Questions {
        self.analysis = self.analysis.chains(chains);
        self
    }

    /// Clip bounds, the share of the budget that goes to gradients, and the rate of the batches
    /// that gradients are of; no others. Batches need a session of an accountant that counts them
    /// (`rdp`).
    pub fn settings(mut self, settings: Settings) -> Questions {
        self.analysis = self.analysis.settings(settings);
        self
    }

    /// Tempers: the likelihood counts for so many records. Needs a public number of them.
    pub fn temper_to(mut self, records: f64) -> Questions {
        self.analysis = self.analysis.temper_to(records);
        self
    }

    /// Fixes the public randomness: [`Oracle::start`], [`Oracle::normal`], [`Oracle::uniform`].
    pub fn seed(mut self, seed: u64) -> Questions {
        self.analysis = self.analysis.seed(seed);
        self
    }

    /// The releases and their cost by themselves, without any data; see
    /// [`Analysis::plan`](crate::Analysis::plan).
    ///
    /// # Errors
    ///
    /// No questions, settings that make no sense, or a share that is too small.
    pub fn plan(&self, model: &Model, terms: &Terms, records: Option<u64>) -> Result<Plan, Error> {
        let promise = Promise::under(terms, self.analysis.epsilon(), records);
        Ok(self.prepare(model, promise)?.plan)
    }

    /// The cost of the questions on a session's budget now; nothing is charged.
    ///
    /// # Errors
    ///
    /// As of [`plan`](Questions::plan); another unit than the budget's.
    pub fn quote(&self, vault: &Vault, session: &Session) -> Result<Quote, Error> {
        let prepared = self.prepare_for(vault, session)?;
        let request = prepared
            .promise
            .request(self.analysis.name(), &prepared.plan);
        Ok(session.quote(&request)?)
    }

    /// Charges the session for all questions, and runs the sampler, once for each chain and
    /// each in a thread of its own. The draws that it [keeps](Oracle::keep) make the fit.
    ///
    /// # Errors
    ///
    /// As of [`plan`](Questions::plan); a budget that refuses; an error of the sampler, whose
    /// questions stay charged unless it asked none.
    pub fn ask(
        &self,
        vault: &Vault,
        session: &Session,
        sampler: impl Fn(&mut Oracle<'_>) -> Result<(), Error> + Sync,
    ) -> Result<Fit, Error> {
        let mut prepared = self.prepare_for(vault, session)?;
        let plan = &prepared.plan;
        let noise = PrivateRng::from_os().map_err(SampleError::from)?;
        let request = prepared.promise.request(self.analysis.name(), plan);
        let reservation = session.reserve(&request)?;
        // A session in memory leaves nothing to be looked up.
        let path = session.path()?;
        let mut ledger = path.map(|path| RunLedger::new(&path, &reservation));
        let chains = self.run(vault, plan, reservation.meter(), &noise, &sampler);
        let released = reservation.meter().counts();
        // What it could not take down changes no charge.
        let _ = settle(reservation, chains.is_ok(), ledger.as_mut());
        let chains = chains?;
        let samples = chains.iter().map(|chain| chain.draws.len() as u64).min();
        prepared.lengths.num_samples = samples.unwrap_or(0);
        Fit::new(FitParts {
            analysis: &self.analysis,
            vault,
            prepared: &prepared,
            chains,
            learnt: None,
            released,
            ledger,
            secure_noise: true,
        })
    }

    fn run(
        &self,
        vault: &Vault,
        plan: &Plan,
        meter: &Meter,
        noise: &PrivateRng,
        sampler: &(impl Fn(&mut Oracle<'_>) -> Result<(), Error> + Sync),
    ) -> Result<Vec<Chain>, Error> {
        let run_chain = |chain: usize| -> Result<Chain, Error> {
            let noise = noise.fork(chain as u64).map_err(SampleError::from)?;
            let mut oracle = Oracle {
                density: vault.density(),
                private: PrivateOracle::new(vault, plan, meter, noise),
                public: public_rng(self.analysis.public_seed(), chain),
                allowance: plan.request.allowance,
                chain,
                draws: Vec::new(),
                accept_stat: f64::NAN,
                tested: 0,
                accepted: 0,
            };
            sampler(&mut oracle)?;
            Ok(oracle.finish())
        };
        std::thread::scope(|scope| {
            let run_chain = &run_chain;
            let chains = 0..plan.request.chains as usize;
            let threads: Vec<_> = chains.map(|c| scope.spawn(move || run_chain(c))).collect();
            let outcomes = threads.into_iter().map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(SampleError::Lost.into()))
            });
            // All of them, so that none is left running.
            outcomes.collect::<Vec<_>>().into_iter().collect()
        })
    }

    fn prepare_for(&self, vault: &Vault, session: &Session) -> Result<Prepared, Error> {
        let promise = Promise::on(session, vault, self.analysis.epsilon())?;
        self.prepare(vault.density().model(), promise)
    }

    fn prepare(&self, model: &Model, promise: Promise) -> Result<Prepared, Error> {
        let design = Design {
            lengths: Some(ONCE),
            allowance: self.allowance,
            ..self.analysis.design(&OWN, 1)?
        };
        design.prepare(&AskedLengths::default(), model, promise)
    }
}

/// All questions of a chain are one iteration of the planner's.
const ONCE: Lengths = Lengths {
    num_warmup: 0,
    num_samples: 1,
};

/// The oracle of a sampler of your own: answers about private data, under the plan of [`Questions`].
///
/// Points are on the unconstrained scale, where each coordinate is any real number. Prior and
/// Jacobian are public and exact; the likelihood is clipped, tempered and noisy, and every
/// answer about it was paid for beforehand. Once the questions are used up the budget refuses
/// further ones.
pub struct Oracle<'a> {
    density: &'a Density,
    private: PrivateOracle<'a>,
    public: ChaCha8Rng,
    allowance: Allowance,
    chain: usize,
    draws: Vec<Draw>,
    accept_stat: f64,
    tested: u64,
    accepted: u64,
}

impl Oracle<'_> {
    /// Which chain this is, from 0.
    pub fn chain(&self) -> usize {
        self.chain
    }

    /// Number of coordinates.
    pub fn dimension(&self) -> usize {
        self.density.dimension()
    }

    /// A random point with a finite prior density, each coordinate between -2 and 2.
    ///
    /// # Errors
    ///
    /// There is none in 100 tries.
    pub fn start(&mut self) -> Result<Vec<f64>, Error> {
        let random = Initial::Random;
        Ok(start(&random, self.chain, self.density, &mut self.public)?)
    }

    /// A draw from the standard normal distribution: public.
    pub fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.public)
    }

    /// A draw from the uniform distribution on [0, 1): public.
    pub fn uniform(&mut self) -> f64 {
        self.public.random()
    }

    /// Log prior density plus log Jacobian, nats: public, exact and free.
    ///
    /// # Errors
    ///
    /// A point of another dimension, or with a coordinate that is not finite.
    pub fn log_prior(&mut self, theta: &[f64]) -> Result<f64, Error> {
        self.check(theta)?;
        Ok(self.private.log_prior(theta))
    }

    /// The gradient of the log posterior density: that of the prior, exact, plus that of the
    /// clipped, tempered likelihood with Gaussian noise on each coordinate.
    ///
    /// # Errors
    ///
    /// No gradient is left; a point of another dimension, or with a coordinate that is not finite.
    pub fn gradient(&mut self, theta: &[f64]) -> Result<Vec<f64>, Error> {
        self.check(theta)?;
        if self.allowance.gradients == 0 {
            return Err(not_planned("gradients"));
        }
        Ok(self.private.gradient(Allowance::GRADIENTS, theta)?)
    }

    /// The log-likelihood ratio T R from one point to another, nats, with noise whose standard
    /// deviation s is proportional to their distance, less s^2/2: a test of this, plus the
    /// difference of the [log priors](Oracle::log_prior), leaves the posterior as it is
    /// although it is noisy (the penalty method).
    ///
    /// Minus infinity, and nothing is asked, for points so far apart that the noise would
    /// drown everything.
    ///
    /// # Errors
    ///
    /// No log-ratio is left; a point of another dimension, or with a coordinate that is not finite.
    pub fn log_ratio(&mut self, from: &[f64], to: &[f64]) -> Result<f64, Error> {
        self.check(from)?;
        self.check(to)?;
        if self.allowance.log_ratios == 0 {
            return Err(not_planned("log-ratios"));
        }
        let line = self.allowance.line_of_log_ratios();
        Ok(match self.private.log_ratio(line, from, to)? {
            Ratio::Penalised(ratio) => ratio,
            Ratio::Refused => f64::NEG_INFINITY,
        })
    }

    /// True with probability min(1, e^`log_probability`); never for NaN.
    pub fn accept(&mut self, log_probability: f64) -> bool {
        let accepted = self.private.accept(log_probability);
        self.accept_stat = log_probability.exp().min(1.0);
        self.tested += 1;
        self.accepted += u64::from(accepted);
        accepted
    }

    /// The parameters' values at a point, in the order of the fit's names.
    ///
    /// # Errors
    ///
    /// A point of another dimension, or with a coordinate that is not finite.
    pub fn parameters(&self, theta: &[f64]) -> Result<Vec<f64>, Error> {
        self.check(theta)?;
        Ok(self.density.outputs(theta))
    }

    /// Keeps a point as the chain's next draw.
    ///
    /// # Errors
    ///
    /// A point of another dimension, or with a coordinate that is not finite.
    pub fn keep(&mut self, theta: &[f64]) -> Result<(), Error> {
        self.draws.push(Draw {
            phase: Phase::Sampling,
            accept_stat: self.accept_stat,
            step_size: f64::NAN,
            divergent: false,
            sampler: Vec::new(),
            values: self.parameters(theta)?,
        });
        self.accept_stat = f64::NAN;
        Ok(())
    }

    fn check(&self, theta: &[f64]) -> Result<(), Error> {
        let expected = self.dimension();
        if theta.len() != expected {
            return Err(Error::Settings(format!(
                "a point has {} coordinates, expected {expected}",
                theta.len()
            )));
        }
        if !theta.iter().all(|x| x.is_finite()) {
            return Err(Error::Settings(
                "a point has a coordinate that is not finite".into(),
            ));
        }
        Ok(())
    }

    fn finish(self) -> Chain {
        Chain {
            draws: self.draws,
            acceptance: self.accepted as f64 / self.tested.max(1) as f64,
            lost: 0,
            interrupted: false,
            seconds: None,
        }
    }
}

fn not_planned(what: &str) -> Error {
    Error::Settings(format!(
        "no {what} were planned: say beforehand how many a chain will request"
    ))
}
