//! Runs without privacy: the exact samplers, and the private ones' dynamics without noise.

use serde_json::json;

use super::error::Error;
use super::files::{Parts, RunFiles};
use super::fit::with_settings;
use super::lengths::Lengths;
use super::prepare::Promise;
use super::request::Analysis;
use crate::accounting::{Real, Relation};
use crate::output::{RECORD, not_private_report};
use crate::privacy::{NotPrivate, Vault};
use crate::sampler::{
    Kind, MetricForm, NonPrivateRun, Observer, PlanRequest, Settings, exact_settings,
    sample_without_privacy,
};

/// Sampling iterations of each chain, unless more or fewer are asked for.
const SAMPLES: u64 = 1000;

/// A run without privacy, ready to go.
pub(crate) struct OpenJob<'a> {
    analysis: &'a Analysis,
    vault: &'a Vault,
    run: NonPrivateRun,
    pub lengths: Lengths,
    /// The column whose values tell units apart.
    unit: Option<String>,
}

impl<'a> OpenJob<'a> {
    /// # Errors
    ///
    /// Settings that make no sense for the sampler or the model.
    pub fn new(
        analysis: &'a Analysis,
        vault: &'a Vault,
        unit: Option<&str>,
        relation: Relation,
    ) -> Result<OpenJob<'a>, Error> {
        let model = vault.density().model();
        let algorithm = analysis.sampler()?;
        let design = analysis.design(algorithm, SAMPLES)?;
        let Some(lengths) = design.lengths else {
            return Err(Error::Settings(
                "`iterations` max asks how much a privacy budget allows; give a number".into(),
            ));
        };
        // There is no budget: what the promise says of one is not looked at.
        let promise = Promise {
            epsilon: Real::ONE,
            delta: Real::ONE,
            relation,
            unit: unit.map(str::to_owned),
            records: Some(vault.n() as u64),
            part: None,
        };
        let (request, _) = design.request(model, &promise)?;
        let settings = match algorithm.kind {
            // They clip where a bound is given.
            Kind::Open(_) if design.settings.clip_gradient.is_none() => Settings {
                clip_gradient: None,
                ..request.settings
            },
            Kind::Exact => exact_settings(&request),
            _ => request.settings,
        };
        Ok(OpenJob {
            run: NonPrivateRun {
                request: PlanRequest {
                    settings,
                    ..request
                },
                num_warmup: lengths.num_warmup,
                num_samples: lengths.num_samples,
                initial: analysis.initial(vault.density())?,
                seed: analysis.public_seed(),
            },
            analysis,
            vault,
            lengths,
            unit: promise.unit,
        })
    }

    /// How many chains there are, and iterations of each.
    pub fn size(&self) -> (usize, u64) {
        let Lengths {
            num_warmup,
            num_samples,
        } = self.lengths;
        (self.run.request.chains as usize, num_warmup + num_samples)
    }

    /// Runs. Everything that comes of it is NOT PRIVATE.
    ///
    /// # Errors
    ///
    /// No initial point with a finite density.
    pub fn sample(
        &self,
        permission: NotPrivate,
        observer: &impl Observer,
    ) -> Result<RunFiles, Error> {
        let request = &self.run.request;
        let settings = &request.settings;
        let chains = sample_without_privacy(self.vault, &self.run, permission, observer)?;
        let config = with_settings(
            json!({ "private": false }),
            self.analysis,
            self.vault,
            self.lengths,
            self.unit.as_deref().unwrap_or(RECORD),
            request,
            &request.settled(),
        );
        RunFiles::new(Parts {
            density: self.vault.density(),
            algorithm: request.algorithm,
            chains,
            lengths: self.lengths,
            thin: self.analysis.thinning(),
            metric: settings.metric.unwrap_or(MetricForm::Unit),
            max_depth: settings.max_depth.map(|depth| depth as u32),
            keys: vec![
                ("privacy_private", "false".to_owned()),
                ("privacy_note", "NOT_PRIVATE".to_owned()),
            ],
            report: not_private_report(request.algorithm.name),
            config,
        })
    }
}
