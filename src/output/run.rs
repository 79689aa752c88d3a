//! A run read back from its directory.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::draws::Draws;
use super::prior::prior_ranges;
use super::stan_csv::{ReadStanCsvError, StanCsv, read_stan_csv};
use super::unfinished::is_unfinished;
use crate::diagnostics::{
    Certificate, ChainRecord, Conflict, Diagnosis, Evidence, LikelihoodFacts, Pull, RunFacts,
    SearchFacts, Summary, bracket_name, diagnose,
};
use crate::sampler::{self, Algorithm, DEFAULT_MAX_DEPTH, Setting};

/// A run of `dpm sample` or [`Fit::save`](crate::Fit::save), read back from its directory.
///
/// ```no_run
/// let run = dpm::Run::open("adult_income-run")?;
/// print!("{}", run.summary().to_table());
/// println!("{}", run.statement());
/// # Ok::<(), dpm::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Run {
    place: PathBuf,
    chains: Vec<StanCsv>,
    draws: Draws,
    config: Value,
    report: Value,
}

/// A directory that cannot be read as a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    #[error(
        "`{place}` holds a run that is not finished, and no draws yet: resume it with `dpm sample --resume {place}`", place = place.display()
    )]
    NoDrawsYet { place: PathBuf },
    #[error("`{}` holds no chain-1.csv: expected the directory of a run of `dpm sample`", .0.display())]
    NoChains(PathBuf),
    #[error("`{}` holds no privacy.json: expected the directory of a run of `dpm sample`", .0.display())]
    NoReport(PathBuf),
    #[error(
        "chain-{chain}.csv of `{}` has other parameters than chain-1.csv: expected the files of one run", place.display()
    )]
    OtherParameters { place: PathBuf, chain: usize },
    #[error(
        "{0} has changed since the run began: a run can only be resumed with exactly what it was charged for. Restore it, or begin another run"
    )]
    Changed(String),
    #[error(transparent)]
    Chain(#[from] ReadStanCsvError),
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(
        "`{}` is not valid JSON: {source}; expected what `dpm sample` wrote there", path.display()
    )]
    Json {
        path: PathBuf,
        source: serde_json::Error,
    },
}

impl Run {
    /// Reads the chains, and `config.json` and `privacy.json` where they are.
    ///
    /// # Errors
    ///
    /// No chains, a file that is damaged, chains of different parameters.
    pub fn open(place: impl AsRef<Path>) -> Result<Run, RunError> {
        let place = place.as_ref();
        let chains = read_chains(place)?;
        let names = parameters(place, &chains)?;
        let values = chains.iter().map(StanCsv::parameter_draws).collect();
        Ok(Run {
            // Rows of a file are as wide as its header.
            draws: Draws::new(names, values)
                .map_err(|_| RunError::NoChains(place.to_path_buf()))?,
            config: read_json(&place.join("config.json"))?,
            report: read_json(&place.join("privacy.json"))?,
            chains,
            place: place.to_path_buf(),
        })
    }

    /// The directory of the run.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// The draws after warm-up.
    pub fn draws(&self) -> &Draws {
        &self.draws
    }

    /// The chains' files: all columns, including the sampler's, and the header.
    pub fn chains(&self) -> &[StanCsv] {
        &self.chains
    }

    /// `config.json`: the settings; null where there is none.
    pub fn config(&self) -> &Value {
        &self.config
    }

    /// `privacy.json`: the promise of the run; null where there is none.
    pub fn report(&self) -> &Value {
        &self.report
    }

    /// Whether the draws are differentially private. A file that does not say counts as private.
    pub fn is_private(&self) -> bool {
        self.chains.iter().all(is_private)
    }

    /// The promise of the run, in a sentence.
    pub fn statement(&self) -> &str {
        match self.report["statement"].as_str() {
            Some(statement) => statement,
            None if self.is_private() => "Nothing is known about the privacy of these draws.",
            None => "NOT PRIVATE: these draws come from a run without privacy.",
        }
    }

    /// Whether it was interrupted and can be resumed.
    pub fn is_unfinished(&self) -> bool {
        is_unfinished(&self.place)
    }

    /// Mean, spread, quantiles, sample sizes and R-hat of every parameter.
    pub fn summary(&self) -> Summary {
        self.draws.summary()
    }

    /// Whether the run has converged, and what is wrong with it.
    pub fn diagnosis(&self) -> Diagnosis {
        diagnose(&self.evidence())
    }

    /// The evidence for the diagnosis.
    pub fn evidence(&self) -> Evidence {
        evidence(
            &self.place,
            self.draws.names().to_vec(),
            &self.chains,
            &self.config,
            &self.report,
        )
    }
}

/// Reads `chain-1.csv`, `chain-2.csv`, ...: at least one.
pub(crate) fn read_chains(run: &Path) -> Result<Vec<StanCsv>, RunError> {
    let mut chains = Vec::new();
    loop {
        let path = run.join(format!("chain-{}.csv", chains.len() + 1));
        if !path.exists() {
            break;
        }
        chains.push(read_stan_csv(&path)?);
    }
    if !chains.is_empty() {
        return Ok(chains);
    }
    Err(if is_unfinished(run) {
        RunError::NoDrawsYet {
            place: run.to_path_buf(),
        }
    } else {
        RunError::NoChains(run.to_path_buf())
    })
}

/// The parameters' names, bracket form, which all chains of a run share.
pub(crate) fn parameters(run: &Path, chains: &[StanCsv]) -> Result<Vec<String>, RunError> {
    let names = chains.first().map(StanCsv::parameters).unwrap_or_default();
    match chains.iter().position(|chain| chain.parameters() != names) {
        None => Ok(names),
        Some(i) => Err(RunError::OtherParameters {
            place: run.to_path_buf(),
            chain: i + 1,
        }),
    }
}

/// Whether the draws came from a private run; a file that does not say counts as private.
pub(crate) fn is_private(chain: &StanCsv) -> bool {
    chain.key("privacy_private") != Some("false")
}

/// A missing file is null.
pub(crate) fn read_json(path: &Path) -> Result<Value, RunError> {
    if !path.exists() {
        return Ok(Value::Null);
    }
    let text = std::fs::read_to_string(path).map_err(|source| RunError::Read {
        path: path.to_path_buf(),
        source,
    })?;
    serde_json::from_str(&text).map_err(|source| RunError::Json {
        path: path.to_path_buf(),
        source,
    })
}

/// The evidence in a run's files for its diagnosis.
pub(crate) fn evidence(
    place: &Path,
    names: Vec<String>,
    files: &[StanCsv],
    config: &Value,
    report: &Value,
) -> Evidence {
    let algorithm = config["algorithm"]
        .as_str()
        .or_else(|| files.first()?.key("dpm_algorithm"));
    Evidence {
        priors: prior_ranges(place, &names),
        names,
        chains: files.iter().map(record).collect(),
        facts: facts(algorithm, config, report),
    }
}

fn record(file: &StanCsv) -> ChainRecord {
    let column = |name: &str| -> Vec<f64> {
        let Some(index) = file.columns.iter().position(|c| c == name) else {
            return Vec::new();
        };
        let value = |row: &Vec<f64>| row.get(index).copied();
        file.draws.iter().filter_map(value).collect()
    };
    ChainRecord {
        draws: file.parameter_draws(),
        accept_stat: column("accept_stat__"),
        step_size: column("stepsize__"),
        divergent: column("divergent__"),
        energy: column("energy__"),
        tree_depth: column("treedepth__"),
    }
}

/// The facts in a run's settings and report that are needed to understand its draws.
pub(crate) fn facts(algorithm: Option<&str>, config: &Value, report: &Value) -> RunFacts {
    let own = sampler::OWN.name;
    let algorithm = match algorithm {
        Some(name) if name == own => Some(&sampler::OWN),
        other => other.and_then(sampler::lookup),
    };
    let tests_proposals = algorithm.is_none_or(|a| a.has(Setting::target_acceptance));
    let start = &config["start"];
    let likelihood = likelihood(start);
    let clips = |what: &str| report["clipping"][what]["never_activates"] == Value::Bool(false);
    RunFacts {
        has_budget: algorithm.is_some_and(Algorithm::is_private),
        tests_proposals,
        adapts_step: tests_proposals && config["step_size"].is_null(),
        // Draws from a released likelihood use its metric.
        unit_metric: likelihood.is_none() && config["metric"].as_str().is_none_or(|m| m == "unit"),
        noise: serde_json::from_value(config["noise"].clone()).unwrap_or_default(),
        leapfrog_steps: config["leapfrog_steps"].as_u64(),
        max_depth: match likelihood {
            Some(_) => Some(DEFAULT_MAX_DEPTH),
            None => config["max_depth"].as_u64().map(|d| d as u32),
        },
        plan_warnings: serde_json::from_value(config["plan_warnings"].clone()).unwrap_or_default(),
        search: search(start),
        likelihood,
        may_clip: clips("gradient") || clips("log_ratio"),
        tempered: config["temperature"].as_f64(),
    }
}

/// Whether `start` comes from a sampler that releases the likelihood.
fn is_of_likelihood(start: &Value) -> bool {
    start["information"].is_string()
}

/// The outcome of the search, recorded in `config.json` as `start`. Missing values were not
/// numbers.
fn search(start: &Value) -> Option<SearchFacts> {
    (start.is_object() && !is_of_likelihood(start)).then(|| SearchFacts {
        last_step: start["last_step"].as_f64().unwrap_or(f64::MAX),
        cut: start["cut"] == Value::Bool(true),
        unknown: start["unknown"].as_f64().unwrap_or(1.0),
        seen: start["seen"] == Value::Bool(true),
        centre_sd: (start["gaussian"] == Value::Bool(true))
            .then(|| start["centre_sd"].as_f64().unwrap_or(f64::MAX)),
    })
}

/// How the likelihood was learnt, recorded in `config.json` as `start`. Missing values were not
/// numbers.
fn likelihood(start: &Value) -> Option<LikelihoodFacts> {
    let number = |value: &Value, otherwise: f64| value.as_f64().unwrap_or(otherwise);
    let figure = |key: &str, otherwise: f64| number(&start[key], otherwise);
    let surprises = start["surprise"].as_array().into_iter().flatten();
    let names = |key: &str| {
        let names = start[key].as_array().into_iter().flatten();
        names.filter_map(Value::as_str).map(bracket_name).collect()
    };
    let (certificate, clipped) = (&start["certificate"], &start["clipped"]);
    let conflicts = start["conflicts"].as_array().into_iter().flatten();
    let conflict = |conflict: &Value| Conflict {
        name: bracket_name(conflict["name"].as_str().unwrap_or_default()),
        sds: number(&conflict["sds"], f64::INFINITY),
        prior_sds: number(&conflict["prior_sds"], f64::INFINITY),
        moved: number(&conflict["moved"], f64::INFINITY),
    };
    is_of_likelihood(start).then(|| LikelihoodFacts {
        coordinates: start["coordinates"].as_u64().unwrap_or(0),
        last_step: figure("last_step", f64::MAX),
        cut: start["cut"] == Value::Bool(true),
        surprise: surprises.map(|s| number(s, f64::MAX)).collect(),
        unknown: figure("unknown", 1.0),
        untold: figure("untold", 1.0),
        clipped: clipped.is_object().then(|| Pull {
            sds: number(&clipped["sds"], f64::INFINITY),
            noise: number(&clipped["noise"], 0.0),
        }),
        seen: start["seen"] == Value::Bool(true),
        has_law: start["information"] != "second derivatives",
        centre_sd: figure("centre_sd", f64::INFINITY),
        open: [names("open_below"), names("open_above")],
        conflicts: conflicts.map(conflict).collect(),
        certificate: certificate.is_object().then(|| Certificate {
            p: number(&certificate["p"], 0.0),
            noise: number(&certificate["noise"], f64::INFINITY),
        }),
    })
}
