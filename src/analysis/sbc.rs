//! Whole runs on tables made up from a model, and what they say of the parameters that made these:
//! simulation-based calibration. No data are read, so that noise may come from a seed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::error::Error;
use super::files::RunFiles;
use super::initial::unconstrained_point;
use super::job::{Charge, Job};
use super::prepare::Promise;
use super::request::Analysis;
use super::run::{Watch, run};
use super::tables::{Table, Tables};
use super::without_privacy::OpenJob;
use crate::accounting::{Meter, Relation};
use crate::density::Density;
use crate::diagnostics::{Calibration, RANKED, Recovered, Severity, bracket_name, quantile};
use crate::model::Model;
use crate::privacy::{NotPrivate, PrivateData};
use crate::sampler::{Draw, MetricForm, Observer, Settings, draw_prior_margins, public_rng};

/// Iterations of the posterior without privacy: warm-up, and draws.
const REFERENCE: [u64; 2] = [300, 600];
/// Draws from the prior, for its width.
const PRIOR_DRAWS: usize = 500;
/// Coordinates up to which it learns all of a covariance.
const DENSE: usize = 20;

/// The runs of a calibration.
pub(crate) struct Sbc<'a> {
    /// Where tables come from: the model of the runs, or another one with its parameters.
    pub tables: &'a Tables,
    /// The model of the runs.
    pub model: &'a Model,
    pub analysis: &'a Analysis,
    /// The promise of each run; none of a run without privacy.
    pub promise: Option<Promise>,
    pub relation: Relation,
    /// Whether the posterior without privacy is sampled as well.
    pub reference: bool,
    pub seed: u64,
}

/// A run on a table, beside the truth.
struct Found {
    parameters: Vec<Recovered>,
    /// Whether it said that its draws are not to be used.
    is_problem: bool,
    ranked: usize,
}

/// All runs together.
pub(crate) struct Calibrated {
    pub calibration: Calibration,
    /// The numbers of the tables whose runs ended.
    pub tables: Vec<usize>,
    /// Runs that said that their draws are not to be used.
    pub problems: usize,
    /// Those that ended with an error, and the first of these.
    pub failed: usize,
    pub first_error: Option<Error>,
}

impl Sbc<'_> {
    /// Runs on `count` tables, some at a time, each in a thread. `stop` is asked all the time, `done` is
    /// told of each table that is over. `None` where it was stopped.
    ///
    /// # Errors
    ///
    /// All runs failed: the first one's error.
    pub fn run(
        &self,
        count: usize,
        threads: usize,
        stop: &(dyn Fn() -> bool + Sync),
        done: &(dyn Fn(usize) + Sync),
    ) -> Result<Option<Calibrated>, Error> {
        let density = Density::new(self.model.clone());
        let next = AtomicUsize::new(0);
        let found = Mutex::new(Vec::with_capacity(count));
        let work = || {
            while !stop() {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return;
                }
                let outcome = self.on_table(number, &density, stop);
                if let Ok(mut found) = found.lock() {
                    found.push((number, outcome));
                    // Under the lock, so that the counts come in order.
                    done(found.len());
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..threads.clamp(1, count.max(1)) {
                scope.spawn(work);
            }
        });
        if stop() {
            return Ok(None);
        }
        let mut found = found.into_inner().unwrap_or_default();
        found.sort_by_key(|(number, _)| *number);
        self.judge(&density, found)
    }

    fn judge(
        &self,
        density: &Density,
        found: Vec<(usize, Result<Option<Found>, Error>)>,
    ) -> Result<Option<Calibrated>, Error> {
        let (mut tables, mut runs, mut problems, mut ranked) = (Vec::new(), Vec::new(), 0, RANKED);
        let (mut failed, mut first_error) = (0, None);
        for (number, outcome) in found {
            match outcome {
                Ok(None) => return Ok(None),
                Ok(Some(found)) => {
                    tables.push(number);
                    problems += usize::from(found.is_problem);
                    ranked = found.ranked;
                    runs.push(found.parameters);
                }
                Err(error) => {
                    failed += 1;
                    first_error.get_or_insert(error);
                }
            }
        }
        if let (true, Some(error)) = (runs.is_empty(), first_error.take_if(|_| runs.is_empty())) {
            return Err(error);
        }
        let names: Vec<String> = density.output_names().map(bracket_name).collect();
        Ok(Some(Calibrated {
            calibration: Calibration::of(&names, &runs, &prior_widths(density), ranked),
            tables,
            problems,
            failed,
            first_error,
        }))
    }

    /// `None` where it was stopped.
    fn on_table(
        &self,
        number: usize,
        density: &Density,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Found>, Error> {
        let table = self.tables.table(number);
        let truth = unconstrained_point(density, table.parameters())
            .map_err(|e| Error::InitialPoint(format!("table {}: {e}", number + 1)))?;
        let truth = density.outputs(&truth);
        // Other random numbers than those of the table.
        let mut rng = public_rng(!self.seed, number);
        let seed = rand::RngExt::random(&mut rng);
        let Some(files) = self.sample(&table, seed, &Stop(stop))? else {
            return Ok(None);
        };
        let reference = if self.reference {
            match self.without_privacy(&table, seed, &Stop(stop))? {
                Some(files) => Some(files),
                None => return Ok(None),
            }
        } else {
            None
        };
        let pooled = |files: &RunFiles, name: &str| files.draws.pooled(name).unwrap_or_default();
        let names = files.draws.names();
        let mut ranked = RANKED;
        let parameters = names.iter().zip(truth).map(|(name, truth)| {
            let draws = pooled(&files, name);
            ranked = ranked.min(draws.len());
            let reference = reference.as_ref().map(|files| pooled(files, name));
            Recovered::of(&draws, truth, reference.as_deref(), &mut rng)
        });
        let parameters = parameters.collect();
        let verdicts = &files.diagnosis.verdicts;
        Ok(Some(Found {
            parameters,
            is_problem: verdicts.iter().any(|v| v.severity == Severity::Problem),
            ranked,
        }))
    }

    /// The run on a table.
    fn sample(&self, table: &Table, seed: u64, stop: &Stop) -> Result<Option<RunFiles>, Error> {
        let vault = PrivateData::from_columns(table.columns()).bind(self.model)?;
        let analysis = self.analysis.clone().seed(seed);
        let Some(promise) = &self.promise else {
            let job = OpenJob::new(&analysis, &vault, None, self.relation)?;
            let files = job.sample(NotPrivate::acknowledged(), stop)?;
            return Ok(Some(files).filter(|files| !files.is_unfinished()));
        };
        let analysis = analysis.insecure_noise_seed(seed);
        let job = Job {
            prepared: analysis.prepare(self.model, promise.clone())?,
            initial: analysis.initial(vault.density())?,
            analysis: &analysis,
            vault: &vault,
            charge: Charge::Nothing,
        };
        let fit = run(&job, None, stop)?.fit?;
        Ok((!fit.is_interrupted()).then(|| fit.files().clone()))
    }

    /// The no-U-turn sampler on the same table, from the truth.
    fn without_privacy(
        &self,
        table: &Table,
        seed: u64,
        stop: &Stop,
    ) -> Result<Option<RunFiles>, Error> {
        let metric = if self.model.dimension <= DENSE {
            MetricForm::Dense
        } else {
            MetricForm::Diagonal
        };
        let mut analysis = Analysis::new("reference", 1.0)
            .algorithm("nuts")
            .chains(1)
            .iterations(REFERENCE[0], REFERENCE[1])
            .settings(Settings::new().metric(metric))
            .start_at(table.parameters().clone());
        if let Some(records) = self.analysis.tempered_to() {
            analysis = analysis.temper_to(records);
        }
        let open = Sbc {
            analysis: &analysis,
            promise: None,
            ..*self
        };
        open.sample(table, seed, stop)
    }
}

/// The widths of the prior's central 90%, for each output, where known.
fn prior_widths(density: &Density) -> Vec<Option<f64>> {
    let count = density.output_names().count();
    let Ok(prior) = draw_prior_margins(density, PRIOR_DRAWS, 1) else {
        return vec![None; count];
    };
    let outputs: Vec<Vec<f64>> = prior.draws.iter().map(|t| density.outputs(t)).collect();
    let width = |j: usize| {
        let column: Vec<f64> = outputs.iter().map(|values| values[j]).collect();
        let [low, high] = [0.05, 0.95].map(|p| quantile(&[&column], p));
        (!prior.unknown.contains(&j) && high > low).then_some(high - low)
    };
    (0..count).map(width).collect()
}

/// Watches a run only to stop it.
struct Stop<'a>(&'a (dyn Fn() -> bool + Sync));

impl Observer for &Stop<'_> {
    fn iteration(&self, _: usize, _: u64, _: &Draw) {}

    fn interrupted(&self) -> bool {
        (self.0)()
    }
}

impl Observer for Stop<'_> {
    fn iteration(&self, _: usize, _: u64, _: &Draw) {}

    fn interrupted(&self) -> bool {
        (self.0)()
    }
}

impl Watch for Stop<'_> {
    fn observer<'m>(&'m self, _: &'m Meter, _: &[u64]) -> Box<dyn Observer + 'm> {
        Box::new(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Constants;

    // If it failed: Ctrl-C would be followed by results of a part of the tables, as if they were all; or
    // one run that fails would take the others with it.
    #[test]
    fn what_is_stopped_gives_nothing_and_failures_are_counted() {
        let model = Model::from_source(
            "record { real<lower=-9, upper=9> y; } parameters { real mu; }
             model { mu ~ normal(0, 1); y ~ normal(mu, 1); }",
            &Constants::none(),
        )
        .unwrap();
        let tables = Tables::from_prior(&model, 20).unwrap();
        let analysis = Analysis::new("test", 1.0)
            .algorithm("nuts")
            .chains(1)
            .iterations(50, 50);
        let sbc = Sbc {
            tables: &tables,
            model: &model,
            analysis: &analysis,
            promise: None,
            relation: Relation::Substitute,
            reference: false,
            seed: 1,
        };
        let over = AtomicUsize::new(0);
        let stop = || over.load(Ordering::Relaxed) >= 2;
        let done = |tables: usize| over.store(tables, Ordering::Relaxed);
        assert!(sbc.run(50, 1, &stop, &done).unwrap().is_none());
        assert_eq!(over.load(Ordering::Relaxed), 2);
        let all = sbc.run(4, 2, &|| false, &|_| ()).unwrap().unwrap();
        assert_eq!((all.tables.as_slice(), all.failed), (&[0, 1, 2, 3][..], 0));
        // No run can begin.
        let nowhere = analysis.clone().start_at(serde_json::json!({}));
        let failing = Sbc {
            analysis: &nowhere,
            ..sbc
        };
        assert!(failing.run(2, 1, &|| false, &|_| ()).is_err());
    }
}
