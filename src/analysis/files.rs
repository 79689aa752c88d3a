//! The files of a run.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::error::{Error, SaveError};
use super::lengths::Lengths;
use super::report;
use crate::density::Density;
use crate::diagnostics::{ChainRecord, Diagnosis, Evidence, Summary, bracket_name, diagnose};
use crate::model::Model;
use crate::output::stan_csv::{Metric, StanCsvHeader, WriteStanCsvError};
use crate::output::{
    CODEBOOK, CONSTANTS, Draws, MODEL, RunDirectory, Unfinished, chain_csv, facts, prior_ranges_of,
    sampled,
};
use crate::sampler::{Algorithm, Chain, MetricForm};

/// The contents of a run's directory, private or not.
#[derive(Debug, Clone)]
pub(crate) struct RunFiles {
    /// The model's name, its program and its constants.
    model: [String; 2],
    constants: Option<String>,
    codebook: Option<String>,
    algorithm: &'static Algorithm,
    pub chains: Vec<Chain>,
    /// The draws after warm-up, thinned. Chains that were interrupted end at different
    /// iterations; all count as far as the shortest, since readers want them alike.
    pub draws: Draws,
    /// Draws of each chain before thinning.
    pub num_samples: usize,
    lengths: Lengths,
    thin: u64,
    metric: MetricForm,
    max_depth: Option<u32>,
    /// For the comments of the chains' files.
    keys: Vec<(String, String)>,
    /// `privacy.json`
    pub report: Value,
    /// `config.json`
    pub config: Value,
    /// Of a run without draws it means nothing.
    pub diagnosis: Diagnosis,
}

/// The parts of [`RunFiles`].
pub(super) struct Parts<'a> {
    pub density: &'a Density,
    pub algorithm: &'static Algorithm,
    pub chains: Vec<Chain>,
    pub lengths: Lengths,
    pub thin: u64,
    pub metric: MetricForm,
    pub max_depth: Option<u32>,
    pub keys: Vec<(&'static str, String)>,
    pub report: Value,
    pub config: Value,
}

/// A run that was written.
pub(crate) struct Written {
    pub place: PathBuf,
    /// Whether a report was wanted and could not be made.
    pub lacks_report: bool,
}

impl RunFiles {
    /// # Errors
    ///
    /// None that a user can cause.
    pub(super) fn new(parts: Parts) -> Result<RunFiles, Error> {
        let Parts {
            density,
            algorithm,
            chains,
            thin,
            mut report,
            mut config,
            ..
        } = parts;
        let shortest = chains.iter().map(|c| sampled(c).count()).min();
        let num_samples = shortest.unwrap_or(0);
        let kept = |chain: &Chain| -> Vec<Vec<f64>> {
            let draws = sampled(chain).take(num_samples).step_by(thin as usize);
            draws.map(|draw| draw.values.clone()).collect()
        };
        let names = density.output_names().map(bracket_name).collect();
        // The density gives every draw its names.
        let draws = Draws::new(names, chains.iter().map(kept).collect());
        let draws = draws.map_err(|e| Error::Settings(e.to_string()))?;
        let unfinished = chains.iter().any(|chain| chain.interrupted);
        let covariates = density.model().guesses();
        merge(
            &mut config,
            json!({ "covariates": covariates, "unfinished": unfinished }),
        );
        let records = chains.iter().zip(draws.chains());
        let record = |(chain, draws): (&Chain, &Vec<_>)| record(chain, draws, algorithm, thin);
        let diagnosis = diagnose(&Evidence {
            names: draws.names().to_vec(),
            chains: records.map(record).collect(),
            facts: facts(Some(algorithm.name), &config, &report),
            priors: prior_ranges_of(density),
        });
        if num_samples > 0 {
            merge(&mut report, diagnosis.to_report());
        }
        let Model {
            name,
            source,
            constants,
            codebook,
            ..
        } = density.model();
        let keys = parts
            .keys
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value));
        Ok(RunFiles {
            model: [name.clone(), source.clone()],
            constants: constants.clone(),
            codebook: codebook.clone(),
            algorithm,
            chains,
            draws,
            num_samples,
            lengths: parts.lengths,
            thin,
            metric: parts.metric,
            max_depth: parts.max_depth,
            keys: keys.collect(),
            report,
            config,
            diagnosis,
        })
    }

    /// Whether chains were stopped before their last iteration.
    pub fn is_unfinished(&self) -> bool {
        self.chains.iter().any(|chain| chain.interrupted)
    }

    /// Writes a new directory, which appears whole or not at all. `origin`: where the run came
    /// from, for `config.json`.
    ///
    /// # Errors
    ///
    /// Something is there and is not to be replaced; it cannot be written.
    pub fn write(
        &self,
        place: &Path,
        overwrite: bool,
        with_report: bool,
        origin: &Value,
    ) -> Result<Written, SaveError> {
        let directory = RunDirectory::create(place, overwrite)?;
        let lacks_report = self.fill(&directory, place, with_report, origin)?;
        let place = directory.publish(overwrite)?;
        Ok(Written {
            place,
            lacks_report,
        })
    }

    /// Writes the directory in place of the run's own state, which stays in it while the run is
    /// not finished.
    ///
    /// # Errors
    ///
    /// It cannot be written; the state stays.
    pub(super) fn write_over(
        &self,
        store: &Unfinished,
        with_report: bool,
        origin: &Value,
    ) -> Result<Written, SaveError> {
        let directory = RunDirectory::of_unfinished(store)?;
        let lacks_report = self.fill(&directory, store.place(), with_report, origin)?;
        if self.is_unfinished() {
            store.copy_into(directory.path())?;
        }
        // The state stands there, and nothing else that was not to be replaced.
        let place = directory.publish(true)?;
        Ok(Written {
            place,
            lacks_report,
        })
    }

    /// Whether the report that is wanted is missing. Without draws there are no chains, and no
    /// summary.
    fn fill(
        &self,
        directory: &RunDirectory,
        place: &Path,
        with_report: bool,
        origin: &Value,
    ) -> Result<bool, SaveError> {
        let chains = match self.num_samples {
            0 => &[],
            _ => self.chains.as_slice(),
        };
        for (i, chain) in chains.iter().enumerate() {
            let text = self.chain(i, chain)?;
            directory.write(&format!("chain-{}.csv", i + 1), &text)?;
        }
        if self.num_samples > 0 {
            directory.write("summary.csv", &self.summary_csv())?;
        }
        let mut config = json!({});
        merge(&mut config, origin.clone());
        merge(&mut config, self.config.clone());
        directory.write("config.json", &pretty(&config))?;
        let [_, source] = &self.model;
        if !source.is_empty() {
            directory.write(MODEL, source)?;
        }
        for (name, text) in [(CONSTANTS, &self.constants), (CODEBOOK, &self.codebook)] {
            if let Some(text) = text {
                directory.write(name, text)?;
            }
        }
        directory.write("privacy.json", &pretty(&self.report))?;
        if !with_report {
            return Ok(false);
        }
        match report::of_directory(directory.path(), report::name_of(place)) {
            Ok(page) => {
                directory.write(report::REPORT, &page.to_html())?;
                Ok(false)
            }
            // That is no failure of the run.
            Err(_) => Ok(true),
        }
    }

    fn chain(&self, i: usize, chain: &Chain) -> Result<String, WriteStanCsvError> {
        let header = StanCsvHeader {
            model: self.model[0].clone(),
            id: i as u32 + 1,
            num_samples: self.num_samples,
            num_warmup: self.lengths.num_warmup as usize,
            thin: self.thin as usize,
            algorithm: self.algorithm.name.to_owned(),
            metric: match self.metric {
                MetricForm::Unit => Metric::Unit,
                MetricForm::Diagonal => Metric::Diagonal,
                MetricForm::Dense => Metric::Dense,
            },
            max_depth: self.max_depth,
            nuts_step_size: match (self.max_depth, self.metric) {
                (Some(_), MetricForm::Unit) => chain.draws.last().map(|draw| draw.step_size),
                _ => None,
            },
            extra: self.keys.clone(),
        };
        Ok(chain_csv(chain, header, self.draws.names())?.0)
    }

    /// The summary; of a run without privacy every row says so.
    fn summary_csv(&self) -> String {
        marked_csv(
            &self.draws.summary(),
            self.report["private"] == Value::Bool(true),
        )
    }
}

/// The summary as CSV; one of a run without privacy says so in every row.
pub(crate) fn marked_csv(summary: &Summary, private: bool) -> String {
    let csv = summary.to_csv();
    if private {
        return csv;
    }
    let marks = std::iter::once(",privacy\n").chain(std::iter::repeat(",NOT_PRIVATE\n"));
    let lines = csv.lines().zip(marks);
    lines.map(|(line, mark)| format!("{line}{mark}")).collect()
}

fn record(
    chain: &Chain,
    draws: &[Vec<f64>],
    algorithm: &'static Algorithm,
    thin: u64,
) -> ChainRecord {
    let kept = || sampled(chain).step_by(thin as usize).take(draws.len());
    let column = |name: &str| match algorithm.columns.iter().position(|c| *c == name) {
        Some(index) => kept()
            .filter_map(|d| d.sampler.get(index).copied())
            .collect(),
        None => Vec::new(),
    };
    ChainRecord {
        draws: draws.to_vec(),
        accept_stat: kept().map(|d| d.accept_stat).collect(),
        step_size: kept().map(|d| d.step_size).collect(),
        divergent: kept().map(|d| f64::from(d.divergent)).collect(),
        energy: column("energy__"),
        tree_depth: column("treedepth__"),
    }
}

/// Adds the entries of one object to another.
pub(crate) fn merge(into: &mut Value, more: Value) {
    if let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) {
        into.extend(more);
    }
}

/// JSON for people.
pub(crate) fn pretty(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string());
    text + "\n"
}
