//! The result of an analysis.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::error::{Error, SaveError};
use super::files::{Parts, RunFiles};
use super::lengths::Lengths;
use super::prepare::Prepared;
use super::request::Analysis;
use crate::accounting::Event;
use crate::diagnostics::{Diagnosis, Summary};
use crate::output::{Draws, PrivateRun, RunLedger, private_report};
use crate::privacy::{Split, Vault};
use crate::sampler::{
    Algorithm, Beginning, Chain, DEFAULT_MAX_DEPTH, MetricForm, Plan, PlanRequest, Setting,
    Settings,
};

/// A finished analysis: released draws, and what they cost.
#[derive(Debug, Clone)]
pub struct Fit {
    plan: Plan,
    files: RunFiles,
    /// The result of the rounds before the chains, of samplers that learn.
    learnt: Option<Arc<dyn Beginning>>,
}

/// The parts of a fit.
pub(super) struct FitParts<'a> {
    pub analysis: &'a Analysis,
    pub vault: &'a Vault,
    pub prepared: &'a Prepared,
    pub chains: Vec<Chain>,
    pub learnt: Option<Arc<dyn Beginning>>,
    pub released: Vec<u64>,
    pub ledger: Option<RunLedger>,
    /// Whether the noise is the operating system's, and not made from a seed.
    pub secure_noise: bool,
}

impl Fit {
    pub(super) fn new(parts: FitParts) -> Result<Fit, Error> {
        let plan = &parts.prepared.plan;
        let settings = &plan.request.settings;
        let files = RunFiles::new(Parts {
            density: parts.vault.density(),
            algorithm: plan.request.algorithm,
            lengths: parts.prepared.lengths,
            thin: parts.analysis.thinning(),
            metric: settings.metric.unwrap_or(MetricForm::Unit),
            max_depth: walks_trees(plan.request.algorithm).then_some(DEFAULT_MAX_DEPTH),
            keys: keys(&parts),
            report: report(&parts),
            config: config(&parts),
            chains: parts.chains,
        })?;
        Ok(Fit {
            plan: plan.clone(),
            files,
            learnt: parts.learnt,
        })
    }

    /// The draws after warm-up.
    pub fn draws(&self) -> &Draws {
        &self.files.draws
    }

    /// Every iteration of every chain, warm-up included.
    pub fn chains(&self) -> &[Chain] {
        &self.files.chains
    }

    /// Mean, spread, quantiles, sample sizes and R-hat of every parameter.
    pub fn summary(&self) -> Summary {
        self.files.draws.summary()
    }

    /// Whether the draws can be used, whether the chains have converged, and what is wrong with
    /// them.
    pub fn diagnosis(&self) -> Diagnosis {
        self.files.diagnosis.clone()
    }

    /// Upper bound on what the analysis costs by itself, at the session's delta. The whole
    /// plan counts, however much of it was used.
    pub fn epsilon(&self) -> f64 {
        self.plan.epsilon()
    }

    /// The events that were charged.
    pub fn events(&self) -> &[Event] {
        &self.plan.events
    }

    /// Warnings of the plan: reasons why the draws may be less useful than hoped.
    pub fn warnings(&self) -> &[String] {
        &self.plan.warnings
    }

    /// The privacy report, as `dpm sample` writes it to `privacy.json`: what is promised, what
    /// was released, what is assumed to be public and what is not protected.
    pub fn report(&self) -> &Value {
        &self.files.report
    }

    /// The promise, in a sentence.
    pub fn statement(&self) -> &str {
        self.files.report["statement"].as_str().unwrap_or_default()
    }

    /// Whether chains were stopped before their last iteration.
    pub fn is_interrupted(&self) -> bool {
        self.files.is_unfinished()
    }

    /// Writes the directory of a run, as `dpm sample` does, for `dpm summary`, `dpm diagnose`
    /// and the others, and for [`Run::open`](crate::Run::open). It appears whole or not at all.
    ///
    /// # Errors
    ///
    /// Something is there already; it cannot be written; there are no draws.
    pub fn save(&self, place: impl AsRef<Path>) -> Result<PathBuf, SaveError> {
        if self.files.num_samples == 0 {
            return Err(SaveError::NoDraws);
        }
        let written = (self.files).write(place.as_ref(), false, true, &Value::Null)?;
        Ok(written.place)
    }

    pub(crate) fn files(&self) -> &RunFiles {
        &self.files
    }

    /// The result of the rounds before the chains, in words.
    pub(crate) fn what_was_learnt(&self) -> Vec<String> {
        let learnt = self.learnt.iter();
        learnt
            .flat_map(|learnt| learnt.describe(&self.plan))
            .collect()
    }
}

/// Whether the draws are those of a no-U-turn sampler.
fn walks_trees(algorithm: &Algorithm) -> bool {
    algorithm.columns.contains(&"treedepth__")
}

fn keys(parts: &FitParts) -> Vec<(&'static str, String)> {
    let promise = &parts.prepared.promise;
    let mut keys = vec![
        ("privacy_private", parts.secure_noise.to_string()),
        ("privacy_epsilon", promise.epsilon.to_f64().to_string()),
        ("privacy_delta", promise.delta.to_f64().to_string()),
        ("privacy_relation", promise.relation.name().to_owned()),
    ];
    if !parts.secure_noise {
        keys.push(("privacy_note", "NOT_PRIVATE".to_owned()));
    }
    keys
}

fn report(parts: &FitParts) -> Value {
    let (plan, promise) = (&parts.prepared.plan, &parts.prepared.promise);
    private_report(&PrivateRun {
        epsilon: promise.epsilon.to_f64(),
        delta: promise.delta.to_f64(),
        // The schedule was fixed beforehand and is charged whole: how much of it
        // the chains happened to use depends on what was released.
        epsilon_spent: plan.epsilon(),
        relation: promise.relation,
        unit: promise.unit.as_deref(),
        guarantee: &plan.guarantee,
        events: &plan.events,
        released: &parts.released,
        ledger: parts.ledger.as_ref(),
        secure_noise: parts.secure_noise,
        unfinished: parts.chains.iter().any(|chain| chain.interrupted),
        lost_iterations: parts.chains.iter().map(|chain| chain.lost).sum(),
        tempered: plan.request.temperature != 1.0,
        guessed: parts.vault.model().has_guesses(),
        clipping: parts.prepared.clips.report(plan),
    })
}

fn config(parts: &FitParts) -> Value {
    let Prepared {
        plan,
        lengths,
        foreseen,
        promise,
        ..
    } = parts.prepared;
    let own = json!({
        "private": parts.secure_noise,
        "insecure_noise_seed": parts.analysis.noise_seed(),
        "epsilon": promise.epsilon.to_f64(),
        "delta": promise.delta.to_f64(),
        "relation": promise.relation.name(),
        "accountant": plan.guarantee.accountant.name(),
        "foreseen": foreseen.as_ref().map(super::foreseen::Foreseen::json),
        "start": parts.learnt.as_ref().map(|learnt| learnt.report(plan)),
        "noise": plan.noise_scales(),
        "plan_warnings": plan.warnings,
    });
    let (request, unit) = (&plan.request, promise.unit_name());
    with_settings(
        own,
        parts.analysis,
        parts.vault,
        *lengths,
        unit,
        request,
        &plan.settings(),
    )
}

/// What every `config.json` has, in addition to `own`; null for a setting that has no value, or that
/// the sampler does not have.
pub(super) fn with_settings(
    own: Value,
    analysis: &Analysis,
    vault: &Vault,
    lengths: Lengths,
    unit: &str,
    request: &PlanRequest,
    settings: &Settings,
) -> Value {
    let mut config = own;
    config["algorithm"] = request.algorithm.name.into();
    config["not_private"] = (!request.algorithm.is_private()).into();
    config["chains"] = request.chains.into();
    config["num_warmup"] = lengths.num_warmup.into();
    config["num_samples"] = lengths.num_samples.into();
    config["thin"] = analysis.thinning().into();
    config["temperature"] = analysis.tempered_to().into();
    config["seed"] = analysis.public_seed().into();
    config["unit"] = unit.into();
    let split = vault.held_out();
    config["hold_out"] = split.map(Split::held_out).into();
    config["split"] = split.map(Split::name).into();
    for setting in Setting::ALL.iter().copied() {
        config[setting.name()] = if setting.is_switch() && !settings.has(setting) {
            Value::Bool(false)
        } else {
            settings.json(setting)
        };
    }
    config["version"] = env!("CARGO_PKG_VERSION").into();
    config
}
