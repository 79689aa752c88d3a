//! What an analysis gives back.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::charge;
use super::sample::Prepared;
use crate::accounting::Event;
use crate::density::Density;
use crate::diagnostics::{ChainRecord, Diagnosis, Evidence, Summary, SummaryError, diagnose};
use crate::output::stan_csv::{Metric, StanCsvHeader, WriteStanCsvError};
use crate::output::{
    ClipReport, Clipping, Draws, PrivateRun, RunDirectory, RunDirectoryError, RunLedger, chain_csv,
    facts, prior_ranges_of, private_report, sampled,
};
use crate::sampler::{Algorithm, Beginning, Chain, MetricForm, Plan, Question};

use super::error::Error;

/// A finished analysis: released draws, and what they cost.
#[derive(Debug, Clone)]
pub struct Fit {
    name: String,
    chains: Vec<Chain>,
    draws: Draws,
    diagnosis: Diagnosis,
    plan: Plan,
    report: Value,
    config: Value,
    metric: MetricForm,
    warmup: u64,
}

/// A fit that could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    #[error(transparent)]
    Directory(#[from] RunDirectoryError),
    #[error(transparent)]
    Chain(#[from] WriteStanCsvError),
    #[error("there are no draws to write: no chain kept any")]
    NoDraws,
}

/// What a fit is put together from.
pub(super) struct Made<'a> {
    pub name: String,
    pub density: &'a Density,
    pub prepared: Prepared,
    pub chains: Vec<Chain>,
    /// What was learnt before the chains, by samplers that learn.
    pub start: Option<Arc<dyn Beginning>>,
    pub released: Vec<u64>,
    pub ledger: Option<RunLedger>,
    pub warmup: u64,
    pub samples: u64,
    pub seed: u64,
    pub metric: MetricForm,
    pub target_acceptance: Option<f64>,
    pub temper_to: Option<f64>,
}

impl Fit {
    pub(super) fn new(made: Made) -> Result<Fit, Error> {
        let mut report = report(&made);
        let config = config(&made);
        let names = made.density.output_names().map(str::to_owned).collect();
        // Readers want chains alike; those that were cut short differ.
        let shortest = made.chains.iter().map(|c| sampled(c).count()).min();
        let of_chain = |chain: &Chain| -> Vec<Vec<f64>> {
            let draws = sampled(chain).take(shortest.unwrap_or(0));
            draws.map(|draw| draw.values.clone()).collect()
        };
        let draws = Draws::new(names, made.chains.iter().map(of_chain).collect());
        // The density gives every draw its names.
        let draws = draws.map_err(|e: SummaryError| Error::Settings(e.to_string()))?;
        let algorithm = made.prepared.plan.request.algorithm;
        let records = made.chains.iter().zip(draws.chains());
        let diagnosis = diagnose(&Evidence {
            names: draws.names().to_vec(),
            chains: records.map(|chain| record(chain, algorithm)).collect(),
            facts: facts(Some(algorithm.name), &config, &report),
            priors: prior_ranges_of(made.density),
        });
        if draws.chains().iter().any(|chain| !chain.is_empty())
            && let (Some(report), Value::Object(said)) =
                (report.as_object_mut(), diagnosis.to_report())
        {
            report.extend(said);
        }
        Ok(Fit {
            draws,
            diagnosis,
            name: made.name,
            chains: made.chains,
            plan: made.prepared.plan,
            report,
            config,
            metric: made.metric,
            warmup: made.warmup,
        })
    }

    /// The draws after warm-up.
    pub fn draws(&self) -> &Draws {
        &self.draws
    }

    /// Every iteration of every chain, warm-up included.
    pub fn chains(&self) -> &[Chain] {
        &self.chains
    }

    /// Mean, spread, quantiles, sample sizes and R-hat of every parameter.
    pub fn summary(&self) -> Summary {
        self.draws.summary()
    }

    /// Whether the chains have converged, and what is wrong with them.
    pub fn diagnosis(&self) -> Diagnosis {
        self.diagnosis.clone()
    }

    /// Upper bound on what the analysis costs by itself, at the session's delta. The whole
    /// plan counts, however much of it was used.
    pub fn epsilon(&self) -> f64 {
        self.plan.epsilon()
    }

    /// What was charged.
    pub fn events(&self) -> &[Event] {
        &self.plan.events
    }

    /// What planning found that makes the draws less useful than one may hope.
    pub fn warnings(&self) -> &[String] {
        &self.plan.warnings
    }

    /// The privacy report, as `dpm sample` writes it to `privacy.json`: what is promised, what
    /// was released, what is assumed to be public and what is not protected.
    pub fn report(&self) -> &Value {
        &self.report
    }

    /// What is promised, in a sentence.
    pub fn statement(&self) -> &str {
        self.report["statement"].as_str().unwrap_or_default()
    }

    /// Whether chains were stopped before their last iteration.
    pub fn is_interrupted(&self) -> bool {
        self.chains.iter().any(|chain| chain.interrupted)
    }

    /// Writes the directory of a run, as `dpm sample` does, for `dpm summary`, `dpm diagnose`
    /// and the others, and for [`Run::open`](crate::Run::open). It appears whole or not at all.
    ///
    /// # Errors
    ///
    /// Something is there already; it cannot be written; there are no draws.
    pub fn save(&self, place: impl AsRef<Path>) -> Result<PathBuf, SaveError> {
        let num_samples = self.draws.chains().iter().map(Vec::len).min().unwrap_or(0);
        if num_samples == 0 {
            return Err(SaveError::NoDraws);
        }
        let names: Vec<String> = self.draws.names().to_vec();
        let run = RunDirectory::create(place.as_ref(), false)?;
        for (i, chain) in self.chains.iter().enumerate() {
            let header = StanCsvHeader {
                model: self.name.clone(),
                id: i as u32 + 1,
                num_samples,
                num_warmup: self.warmup as usize,
                thin: 1,
                algorithm: self.plan.request.algorithm.name.to_owned(),
                metric: match self.metric {
                    MetricForm::Unit => Metric::Unit,
                    MetricForm::Diagonal => Metric::Diagonal,
                    MetricForm::Dense => Metric::Dense,
                },
                max_depth: None,
                extra: self.keys(),
            };
            let (text, _) = chain_csv(chain, header, &names)?;
            run.write(&format!("chain-{}.csv", i + 1), &text)?;
        }
        run.write("summary.csv", &self.summary().to_csv())?;
        run.write("privacy.json", &pretty(&self.report))?;
        run.write("config.json", &pretty(&self.config))?;
        Ok(run.publish(false)?)
    }

    fn keys(&self) -> Vec<(String, String)> {
        let request = &self.plan.request;
        [
            ("privacy_private", "true".to_owned()),
            ("privacy_epsilon", request.epsilon.to_f64().to_string()),
            ("privacy_delta", request.delta.to_f64().to_string()),
            ("privacy_relation", request.relation.name().to_owned()),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .to_vec()
    }
}

fn record((chain, draws): (&Chain, &Vec<Vec<f64>>), algorithm: &'static Algorithm) -> ChainRecord {
    let kept = || sampled(chain).take(draws.len());
    let column = |name: &str| match algorithm.columns.iter().position(|c| *c == name) {
        Some(index) => kept()
            .filter_map(|d| d.sampler.get(index).copied())
            .collect(),
        None => Vec::new(),
    };
    ChainRecord {
        draws: draws.clone(),
        accept_stat: kept().map(|d| d.accept_stat).collect(),
        step_size: kept().map(|d| d.step_size).collect(),
        divergent: kept().map(|d| f64::from(d.divergent)).collect(),
        energy: column("energy__"),
        tree_depth: column("treedepth__"),
    }
}

fn report(made: &Made) -> Value {
    let plan = &made.prepared.plan;
    private_report(&PrivateRun {
        epsilon: plan.request.epsilon.to_f64(),
        delta: plan.request.delta.to_f64(),
        epsilon_spent: plan.epsilon(),
        relation: plan.request.relation,
        unit: charge::column(&made.prepared.unit),
        guarantee: &plan.guarantee,
        events: &plan.events,
        released: &made.released,
        ledger: made.ledger.as_ref(),
        secure_noise: true,
        unfinished: made.chains.iter().any(|chain| chain.interrupted),
        lost_iterations: 0,
        tempered: plan.request.temperature != 1.0,
        clipping: clipping(made),
    })
}

fn clipping(made: &Made) -> Clipping {
    let (clips, plan) = (&made.prepared.clips, &made.prepared.plan);
    let derived = match &clips.derived {
        Some(Ok(bound)) => Some(bound.clip()),
        _ => None,
    };
    let asks = |question| plan.tau(question).is_some();
    let of = |which: usize, question| {
        (clips.used[which] && asks(question)).then_some(ClipReport {
            bound: clips.bounds[which],
            derived,
        })
    };
    Clipping {
        gradient: of(0, Question::Gradient),
        log_ratio: of(1, Question::LogRatio),
        learnt: (plan.request.algorithm.learner()).map(|learner| learner.clipping(plan)),
    }
}

/// The settings, by the names of `dpm sample`'s.
fn config(made: &Made) -> Value {
    let plan = &made.prepared.plan;
    let request = &plan.request;
    let used = |flag: &str| request.algorithm.settings.contains(&flag);
    json!({
        "model": made.name,
        "algorithm": request.algorithm.name,
        "not_private": false,
        "private": true,
        "chains": request.chains,
        "num_warmup": made.warmup,
        "num_samples": made.samples,
        "thin": 1,
        "temperature": made.temper_to,
        "seed": made.seed,
        "unit": made.prepared.unit,
        "metric": match made.metric {
            MetricForm::Unit => "unit",
            MetricForm::Diagonal => "diag",
            MetricForm::Dense => "dense",
        },
        "target_acceptance": made.target_acceptance,
        "epsilon": request.epsilon.to_f64(),
        "delta": request.delta.to_f64(),
        "relation": request.relation.name(),
        "accountant": plan.guarantee.accountant.name(),
        "leapfrog_steps": used("--leapfrog-steps").then_some(request.leapfrog_steps),
        "step_size": plan.step_size().filter(|step| step.is_finite()),
        "clip_gradient": used("--clip-gradient").then_some(request.clip_gradient),
        "clip_log_ratio": used("--clip-log-ratio").then_some(request.clip_log_ratio),
        "tau_gradient": plan.tau(Question::Gradient),
        "tau_log_ratio": plan.tau(Question::LogRatio),
        "step_decay": request.step_decay,
        "friction": request.friction,
        "one_component": request.one_component,
        "guided_walk": request.guided_walk,
        "start": made.start.as_ref().map(|start| start.report(plan)),
        "noise": plan.noise_scales(),
        "plan_warnings": plan.warnings,
        "unfinished": made.chains.iter().any(|chain| chain.interrupted),
        "version": env!("CARGO_PKG_VERSION"),
    })
}

fn pretty(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string());
    text + "\n"
}
