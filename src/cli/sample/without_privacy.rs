//! Runs without privacy: the exact samplers, and the private ones' dynamics without noise.

use serde_json::{Value, json};

use super::{Job, Papers, failed_run, merge, metric_name};
use crate::cli::clip_bounds::ClipBounds;
use crate::cli::failure::Failure;
use crate::cli::progress::Progress;
use crate::cli::run_settings::Lengths;
use crate::cli::say_always;
use crate::output::not_private_report;
use crate::output::sampled;
use crate::privacy::NotPrivate;
use crate::sampler::{
    Algorithm, Chain, ClippedSettings, DEFAULT_MAX_DEPTH, Kind, MetricForm, NonPrivateSettings,
    OpenSettings, sample_clipped, sample_exactly, sample_openly,
};

impl Job<'_> {
    /// The exact samplers.
    pub(super) fn not_private(&self, algorithm: &'static Algorithm) -> Result<(), Failure> {
        let settings = &self.arguments.settings;
        let dimension = self.vault.density().dimension();
        let metric = self.arguments.metric.map_or_else(
            || MetricForm::default_of(algorithm, dimension),
            MetricForm::from,
        );
        let max_depth = self.arguments.max_depth.unwrap_or(DEFAULT_MAX_DEPTH);
        let leapfrog_steps = settings.leapfrog_steps.unwrap_or(10);
        if leapfrog_steps == 0 || settings.chains == 0 {
            return Err(Failure::input(
                "--leapfrog-steps and --chains must be at least 1",
            ));
        }
        let lengths = self.lengths_without_budget(algorithm)?;
        say_always("NOT PRIVATE: this run uses exact values of the data");
        let progress = Progress::new(
            settings.chains as usize,
            lengths.num_warmup + lengths.num_samples,
            &[],
            None,
            self.common,
        );
        let chains = sample_exactly(
            self.vault,
            &NonPrivateSettings {
                algorithm,
                max_depth,
                metric,
                target_acceptance: self.arguments.target_acceptance,
                chains: settings.chains as usize,
                num_warmup: lengths.num_warmup,
                num_samples: lengths.num_samples,
                leapfrog_steps: leapfrog_steps as usize,
                step_size: settings.step_size,
                temperature: settings.power(Some(self.vault.n() as u64))?,
            },
            &self.initial,
            self.arguments.seed,
            NotPrivate::acknowledged(),
            &progress,
        );
        progress.clear();
        let chains = chains.map_err(failed_run)?;
        let report = not_private_report(self.arguments.algorithm());
        let mut config = self.config(lengths, settings.chains);
        merge(
            &mut config,
            json!({
                "leapfrog_steps": leapfrog_steps,
                "step_size": settings.step_size,
                "metric": metric_name(metric),
                "max_depth": max_depth,
            }),
        );
        self.write_reference(&chains, lengths, &report, config, metric)?;
        say_always("NOT PRIVATE: do not publish these draws");
        Ok(())
    }

    /// A private sampler's dynamics without privacy.
    pub(super) fn reference(&self, algorithm: &'static Algorithm) -> Result<(), Failure> {
        let settings = &self.arguments.settings;
        let lengths = self.lengths_without_budget(algorithm)?;
        let Lengths {
            num_warmup,
            num_samples,
        } = lengths;
        let model = self.vault.density().model();
        let unit = self.arguments.reading.unit();
        let clips = ClipBounds::choose(settings, algorithm, model, unit)?;
        let n = self.vault.n() as u64;
        let request = settings.reference_request(algorithm, n, model.dimension, &clips)?;
        say_always("NOT PRIVATE: this run uses exact values of the data");
        let chains = request.chains as usize;
        let progress = Progress::new(chains, num_warmup + num_samples, &[], None, self.common);
        let (initial, seed) = (self.initial.clone(), self.arguments.seed);
        let permission = NotPrivate::acknowledged();
        let metric = self.adapted_metric();
        let used = |flag: &str| algorithm.settings.contains(&flag);
        // The stochastic-gradient samplers clip where a bound is given.
        let clipped =
            matches!(algorithm.kind, Kind::Clipped(_)) || settings.clip_gradient.is_some();
        let run = if let Kind::Clipped(_) = algorithm.kind {
            let run = ClippedSettings {
                request: request.clone(),
                num_warmup,
                num_samples,
                initial,
                metric,
                target_acceptance: self.arguments.target_acceptance,
                seed,
            };
            sample_clipped(self.vault, &run, permission, &progress)
        } else {
            let run = OpenSettings {
                request: request.clone(),
                clipped,
                num_warmup,
                num_samples,
                initial,
                seed,
            };
            sample_openly(self.vault, &run, permission, &progress)
        };
        progress.clear();
        let chains = run.map_err(failed_run)?;
        let report = not_private_report(self.arguments.algorithm());
        let mut config = self.config(lengths, settings.chains);
        merge(
            &mut config,
            json!({
                "leapfrog_steps": used("--leapfrog-steps").then_some(request.leapfrog_steps),
                "step_size": request.step_size,
                "step_decay": request.step_decay,
                "friction": request.friction,
                "noise_estimate": used("--noise-estimate").then_some(request.noise_estimate),
                "batch_rate": request.batch_rate,
                "clip_gradient": (used("--clip-gradient") && clipped)
                    .then_some(request.clip_gradient),
                "clip_log_ratio": used("--clip-log-ratio").then_some(request.clip_log_ratio),
                "one_component": request.one_component,
                "guided_walk": request.guided_walk,
            }),
        );
        self.write_reference(&chains, lengths, &report, config, metric)?;
        say_always("NOT PRIVATE: do not publish these draws");
        Ok(())
    }

    /// Writes the run's directory; of one that was interrupted with the draws so far.
    fn write_reference(
        &self,
        chains: &[Chain],
        lengths: Lengths,
        report: &Value,
        config: Value,
        metric: MetricForm,
    ) -> Result<(), Failure> {
        let interrupted = chains.iter().any(|chain| chain.interrupted);
        if interrupted && chains.iter().any(|chain| sampled(chain).next().is_none()) {
            return Err(Failure::interrupted(
                "interrupted before the end of warm-up: there are no draws, and nothing is written",
            ));
        }
        let papers = Papers {
            report,
            config,
            keys: not_private_keys(),
            metric,
            store: None,
        };
        let draws = self.write(chains, lengths, papers)?;
        if interrupted {
            say_always("NOT PRIVATE: do not publish these draws");
            return Err(Failure::interrupted(format!(
                "interrupted: the {draws} draws so far of each chain are written. Only private runs, whose releases cost budget, can be gone on with"
            )));
        }
        Ok(())
    }

    fn lengths_without_budget(&self, algorithm: &Algorithm) -> Result<Lengths, Failure> {
        self.arguments
            .settings
            .lengths(1000, algorithm)?
            .ok_or_else(|| {
                Failure::input(
                    "`--iterations max` asks how much a privacy budget allows; give a number",
                )
            })
    }
}

/// What stands in the comments of a chain's file.
fn not_private_keys() -> Vec<(String, String)> {
    vec![
        ("privacy_private".to_string(), "false".to_string()),
        ("privacy_note".into(), "NOT_PRIVATE".into()),
    ]
}
