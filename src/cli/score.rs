//! `dpm score`: how well runs predict records that they did not learn from.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::charge;
use super::data_file::{DATA, DataSettings, Loaded, published_name};
use super::failure::Failure;
use super::format::Format;
use super::model_file::{Examined, ModelFile};
use super::public_data::sample_of;
use super::run_settings::{RelationChoice, promise};
use super::table_files::folder_of;
use super::words::in_flags;
use super::{Common, pretty, print, say_always};
use crate::accounting::{Real, Relation, Session, figure};
use crate::analysis::{
    Check, Error, Estimate, HeldOut, Predictor, Promise, ScorePlan, Scores, bounds_of,
    with_statistics,
};
use crate::output::{CODEBOOK, MODEL, RECORD, Run, RunLedger, check_files, write_files};
use crate::privacy::{LoadError, Portion, Rows, Split};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The score is the mean, over the held-out records, of the logarithm of the predictive density:
higher is better, and differences between runs matter, not the number. For binary outcomes it
also gives the share of correct predictions and the Brier score. Everything is released at once, with
noise, for the given epsilon; the intervals include the uncertainty of both sample and noise.

DATA is the table that the runs were made from, in the same order, unless --other-data is given:
the records that `dpm sample --hold-out` left out are found in it by a hash. Runs that are
compared need the same --hold-out and --split.

Example: dpm score wells-run wells.csv --epsilon 0.5
after dpm sample wells.dpm wells.csv --epsilon 1 --hold-out 0.2")]
pub(super) struct Arguments {
    /// The directory of a run of `dpm sample --hold-out`
    run: PathBuf,
    #[arg(required = true, help = DATA)]
    data: Vec<PathBuf>,
    /// Another run, to be compared with the first on the same records; may be given several times
    #[arg(long, value_name = "RUN")]
    against: Vec<PathBuf>,
    /// Privacy budget epsilon of the scores, all runs together
    #[arg(long, value_name = "E", allow_negative_numbers = true)]
    epsilon: Real,
    /// Privacy budget delta [default: 0.1 / held-out records (or units); required under add-remove]
    #[arg(long, value_name = "D", allow_negative_numbers = true)]
    delta: Option<Real>,
    /// How neighbouring data sets differ
    #[arg(long, value_enum, default_value_t = RelationChoice::Substitute)]
    relation: RelationChoice,
    /// Ledger of these data: the scores are charged to it, or refused
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    #[command(flatten)]
    reading: DataSettings,
    /// DATA are records that the runs did not learn from, and all are used; this is not checked
    #[arg(long)]
    other_data: bool,
    /// Check a statistic of each record, such as 'y == 0', against the first run's predictions; may be given several times
    #[arg(long, value_name = "EXPRESSION", allow_hyphen_values = true)]
    statistic: Vec<String>,
    /// Clip log predictive densities to these bounds, in nats [default: from records simulated at the draws]
    #[arg(long, value_name = "LOW,HIGH", value_parser = interval, allow_hyphen_values = true)]
    clip: Option<[f64; 2]>,
    /// Clip differences between runs at this many nats
    #[arg(long, value_name = "NATS")]
    clip_difference: Option<f64>,
    /// Simulate the records behind the bounds with covariates from the rows of this public table
    #[arg(long, value_name = "FILE.csv")]
    public_sample: Option<PathBuf>,
    /// Number of draws to use from each run
    #[arg(long, value_name = "N", default_value_t = 400, value_parser = clap::value_parser!(u64).range(1..))]
    draws: u64,
    /// Seed of the simulated records
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Seed of the noise, for tests: the output is then NOT PRIVATE
    #[arg(long, value_name = "S")]
    insecure_noise_seed: Option<u64>,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Also write the scores as JSON
    #[arg(long, value_name = "FILE.json")]
    out: Option<PathBuf>,
    /// Replace that file
    #[arg(long)]
    overwrite: bool,
}

fn interval(text: &str) -> Result<[f64; 2], String> {
    let ends: Vec<f64> = (text.split(','))
        .filter_map(|end| end.trim().parse().ok())
        .collect();
    match ends[..] {
        [low, high] if low < high && low.is_finite() && high.is_finite() => Ok([low, high]),
        _ => Err("expected two numbers, the lower one first, such as -6,0".to_owned()),
    }
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    arguments.check()?;
    let places: Vec<&Path> = std::iter::once(&arguments.run)
        .chain(&arguments.against)
        .map(PathBuf::as_path)
        .collect();
    let runs = (places.iter())
        .map(|place| Run::open(place).map_err(Failure::input))
        .collect::<Result<Vec<Run>, Failure>>()?;
    let portion = arguments.portion(&runs)?;
    arguments.same_terms(&runs)?;
    let predictors = (places.iter().zip(&runs).enumerate())
        .map(|(k, (place, run))| arguments.predictor(place, run, k == 0, common))
        .collect::<Result<Vec<_>, _>>()?;
    let (mut vaults, mut rows) = (Vec::with_capacity(predictors.len()), None);
    for predictor in &predictors {
        let loaded = arguments.load(predictor, &predictors, portion.as_ref())?;
        // Of the first run, as its statistics read them.
        if vaults.is_empty() && !arguments.statistic.is_empty() {
            rows = Some(loaded.copied().map_err(Failure::input)?);
        }
        vaults.push(predictor.vault(loaded)?);
    }
    let relation = Relation::from(arguments.relation);
    let n = vaults[0].n() as u64;
    if n == 0 && relation.n_is_public() {
        return Err(match portion {
            None => Failure::input(LoadError::no_rows()),
            Some(_) => Failure::input(
                "no record of this table is held out: sample with a larger --hold-out share",
            ),
        });
    }
    let asked = (arguments.epsilon, arguments.delta);
    let (promise, default_delta) = promise(asked, relation, arguments.reading.unit(), n)?;
    let promise = promise.about(&vaults[0])?;
    let plan = arguments.plan(&predictors, &promise)?;
    if default_delta {
        common.say(format!(
            "delta was not given: taking 0.1 / number of held-out records = {:.3e}",
            promise.delta.to_f64()
        ));
    }
    if let Some(n) = promise.records {
        common.say(format!(
            "{n} held-out records; log predictive densities are clipped to {:.2} .. {:.2}, and their mean gets noise of at least {} nats",
            plan.bounds.density.lower,
            plan.bounds.density.upper,
            figure(plan.noise_of_mean(n)),
        ));
    }
    let name = format!("score of {}", places_in_words(&places));
    let session = arguments.ledger.as_ref().map(Session::open).transpose()?;
    if let Some(session) = &session {
        let quote = charge::fitting(plan.once.quote(session, &name, &promise)?)?;
        common.say(charge::line(&quote));
    }
    let (scores, ledger) = plan.release(
        &predictors,
        HeldOut {
            vaults: &vaults,
            rows,
        },
        &name,
        &promise,
        session.as_ref(),
        arguments.insecure_noise_seed,
    )?;
    let outcome = Outcome {
        arguments,
        places: &places,
        split: portion.as_ref().map(|portion| &portion.split),
        promise: &promise,
        plan: &plan,
        scores: &scores,
        ledger,
        is_private: arguments.insecure_noise_seed.is_none() && runs.iter().all(Run::is_private),
    };
    outcome.show(common)
}

impl Arguments {
    fn check(&self) -> Result<(), Failure> {
        if self
            .clip_difference
            .is_some_and(|most| !(most > 0.0 && most.is_finite()))
        {
            return Err(Failure::input(
                "--clip-difference must be a positive number",
            ));
        }
        let is_pipe = |path: &PathBuf| path.as_os_str() == "-";
        if !self.against.is_empty() && self.data.iter().any(is_pipe) {
            return Err(Failure::input(
                "standard input can be read for one run only, and each of those that are compared reads the data: give a file",
            ));
        }
        if self.ledger.is_some() && self.insecure_noise_seed.is_some() {
            return Err(Failure::input(
                "noise from --insecure-noise-seed is not private, so there is no charge that could cover it: leave out either it or --ledger",
            ));
        }
        if let Some((place, name)) = self.out.as_deref().map(in_folder) {
            check_files(&place, &[name], self.overwrite).map_err(Failure::run)?;
        }
        Ok(())
    }

    /// The records by which the runs are to be judged.
    fn portion(&self, runs: &[Run]) -> Result<Option<Portion>, Failure> {
        if self.other_data {
            return Ok(None);
        }
        let mut first: Option<Split> = None;
        for run in runs {
            let place = run.place().display();
            let config = run.config();
            let split = (config["hold_out"].as_f64().zip(config["split"].as_str()))
                .and_then(|(share, name)| Split::new(name, share).ok());
            let Some(split) = split else {
                return Err(Failure::input(format!(
                    "`{place}` held out none of its table's records, so none can be used to score it: sample again with `--hold-out 0.2`, or give --other-data if DATA has none of its records"
                )));
            };
            if first.as_ref().is_some_and(|first| *first != split) {
                return Err(Failure::input(format!(
                    "`{place}` holds out different records from `{}`, and learnt from some that would be used to score it: sample both with the same --hold-out and --split",
                    self.run.display()
                )));
            }
            first = Some(split);
        }
        Ok(first.as_ref().map(Split::rest))
    }

    /// Records are held out by their places, or by the keys of their units: it must be the same now.
    /// And what is promised of a run and its score together is under one relation.
    fn same_terms(&self, runs: &[Run]) -> Result<(), Failure> {
        for run in runs.iter().filter(|_| !self.other_data) {
            let relation = Relation::from(self.relation).name();
            let of_run = run.config()["relation"].as_str().unwrap_or(relation);
            if of_run != relation {
                return Err(Failure::input(format!(
                    "`{}` was made under {of_run}, and the score is to be under {relation}: give --relation {of_run}",
                    run.place().display()
                )));
            }
            let unit = run.config()["unit"].as_str().filter(|unit| *unit != RECORD);
            if unit != self.reading.unit() {
                let place = run.place().display();
                return Err(Failure::input(match unit {
                    Some(unit) => {
                        format!("`{place}` was made with --unit {unit}: give the same here")
                    }
                    None => format!("`{place}` was made without --unit: leave it out here"),
                }));
            }
        }
        Ok(())
    }

    fn predictor(
        &self,
        place: &Path,
        run: &Run,
        is_first: bool,
        common: &Common,
    ) -> Result<Predictor, Failure> {
        let statistics: &[String] = if is_first { &self.statistic } else { &[] };
        let mut file = ModelFile::read(&place.join(MODEL), common)?;
        if !statistics.is_empty() {
            let source = with_statistics(&file.source, statistics).map_err(in_words)?;
            file = Examined::of(&file.path, source).model_file(common)?;
        }
        let kept = std::fs::read_to_string(place.join(CODEBOOK)).ok();
        let model = file.bind(None, common)?.with_kept_codebook(kept.as_deref());
        let model =
            model.map_err(|error| Failure::input(format!("`{}`: {error}", place.display())))?;
        Predictor::new(model, run, self.draws as usize)
            .map_err(|error| Failure::input(format!("`{}`: {error}", place.display())))?
            .checking(statistics)
            .map_err(in_words)
    }

    /// The held-out records with the columns of a run's model. A row that lacks a value for any of
    /// the runs is left out for all: they are compared on the same rows of a unit.
    fn load(
        &self,
        predictor: &Predictor,
        all: &[Predictor],
        portion: Option<&Portion>,
    ) -> Result<Rows, Failure> {
        let part = Loaded {
            share: None,
            portion,
        };
        let mut columns = predictor.model().columns.clone();
        for other in all.iter().flat_map(|other| &other.model().columns) {
            match columns.iter_mut().find(|own| own.name == other.name) {
                Some(own) => own.used |= other.used,
                None => columns.push(other.clone()),
            }
        }
        self.reading.load(&self.data, &columns, part)
    }

    fn plan(&self, predictors: &[Predictor], promise: &Promise) -> Result<ScorePlan, Failure> {
        let sample = |predictor: &Predictor| match &self.public_sample {
            Some(path) => sample_of(path, &predictor.model().columns).map(Some),
            None => Ok(None),
        };
        let public = predictors
            .iter()
            .map(sample)
            .collect::<Result<Vec<_>, _>>()?;
        let mut bounds = bounds_of(predictors, &public, promise, self.seed)?;
        if let Some([lower, upper]) = self.clip {
            (bounds.density.lower, bounds.density.upper) = (lower, upper);
        }
        if let Some(most) = self.clip_difference {
            for bounds in &mut bounds.differences {
                (bounds.lower, bounds.upper) = (-most, most);
            }
        }
        ScorePlan::new(bounds, promise).map_err(in_words)
    }
}

/// An error, with its settings as flags.
fn in_words(error: Error) -> Failure {
    Failure::input(in_flags(&error.to_string()))
}

/// A file's folder and name.
fn in_folder(path: &Path) -> (PathBuf, String) {
    let name = path.file_name().unwrap_or_default();
    (folder_of(path), name.to_string_lossy().into_owned())
}

fn places_in_words(places: &[&Path]) -> String {
    let names: Vec<String> = places.iter().map(|p| p.display().to_string()).collect();
    names.join(" and ")
}

/// The results to print and to write.
struct Outcome<'a> {
    arguments: &'a Arguments,
    places: &'a [&'a Path],
    split: Option<&'a Split>,
    promise: &'a Promise,
    plan: &'a ScorePlan,
    scores: &'a Scores,
    ledger: Option<RunLedger>,
    is_private: bool,
}

impl Outcome<'_> {
    fn show(&self, common: &Common) -> Result<(), Failure> {
        let json = pretty(&self.json());
        if let Some(path) = &self.arguments.out {
            let (place, name) = in_folder(path);
            write_files(&place, &[(name, json.clone())], self.arguments.overwrite)
                .map_err(Failure::run)?;
        }
        print(&match self.arguments.format {
            Format::Text => self.text(),
            Format::Json => json,
        })?;
        for line in self.warnings() {
            say_always(format!("warning: {line}"));
        }
        if !self.is_private {
            say_always("NOT PRIVATE: the noise, or a run, does not protect anybody");
        } else {
            common.say(self.statement());
        }
        Ok(())
    }

    fn warnings(&self) -> Vec<String> {
        let scores = self.scores;
        let mut warnings = Vec::new();
        for (share, side) in scores.clipped.iter().zip(["lower", "upper"]) {
            if *share > 0.05 + 2.0 * scores.noise_of_clipped {
                warnings.push(format!(
                    "about {:.0}% of the records are beyond the {side} bound, where they all score the same: the model does not expect such records. Give other bounds with --clip",
                    100.0 * share
                ));
            }
        }
        for (place, difference) in self.places[1..].iter().zip(&scores.differences) {
            if difference.fills_bounds() {
                warnings.push(format!(
                    "differences from `{}` are large, and many of them are clipped: their true mean may be further from 0, or have the other sign. Give a wider --clip-difference",
                    place.display()
                ));
            }
        }
        warnings
    }

    fn statement(&self) -> String {
        let promise = self.promise;
        let parts = match self.split {
            Some(_) => {
                ". Each record is in one part only, so of what a run and this score reveal of it, only one of the two counts"
            }
            None => "",
        };
        format!(
            "The scores are ({}, {:e})-differentially private for the held-out records ({}){parts}",
            figure(self.plan.once.epsilon),
            promise.delta.to_f64(),
            promise.relation,
        )
    }

    fn text(&self) -> String {
        let scores = self.scores;
        let mut text = String::new();
        let mut row = |name: &str, e: &Estimate| {
            let [low, high] = e.interval();
            let _ = writeln!(
                text,
                "{name:<32}{:>9.4}{:>11.4}{:>9.4}   {low:.4} .. {high:.4}",
                e.mean, e.sampling_sd, e.noise_sd
            );
        };
        row("log predictive density", &scores.density);
        for (place, difference) in self.places[1..].iter().zip(&scores.differences) {
            row(&format!("{} is better by", place.display()), difference);
        }
        if let Some([right, brier]) = &scores.guesses {
            row("share of right guesses", right);
            row("Brier score", brier);
        }
        let unit = match self.promise.unit {
            None => "record",
            Some(_) => "unit",
        };
        let checks = self.arguments.statistic.iter().zip(&scores.checks);
        let checks: String = checks
            .map(|(statistic, check)| {
                let Check { observed, predicted, predictive_sd, noise_sd, p_value, .. } = check;
                format!("{statistic:<32}{observed:>9.4}{predicted:>11.4}{predictive_sd:>9.4}{noise_sd:>9.4}{p_value:>8.3}\n")
            })
            .collect();
        let checks = if checks.is_empty() {
            checks
        } else {
            format!(
                "\n{:<32}{:>9}{:>11}{:>9}{:>9}{:>8}\n{checks}",
                format!("mean of a {unit}'s"),
                "observed",
                "predicted",
                "sd",
                "noise",
                "p"
            )
        };
        format!(
            "per held-out {unit:<19}{:>9}{:>11}{:>9}   90% interval\n{text}about {:.0} {unit}s; clipped from below {:.1}%, from above {:.1}%\n{checks}",
            "mean",
            "sampling",
            "noise",
            scores.records,
            100.0 * scores.clipped[0],
            100.0 * scores.clipped[1],
        )
    }

    fn json(&self) -> Value {
        let (scores, promise, bounds) = (self.scores, self.promise, &self.plan.bounds);
        let estimate = |e: &Estimate| {
            json!({
                "mean": e.mean,
                "sampling_sd": e.sampling_sd,
                "noise_sd": e.noise_sd,
                "interval_90": e.interval(),
            })
        };
        let compared = self.places[1..].iter().zip(&scores.differences);
        let compared = compared
            .zip(&bounds.differences)
            .map(|((place, difference), bounds)| {
                json!({
                    "run": place.display().to_string(),
                    "log_predictive_density": estimate(difference),
                    "clip": [bounds.lower, bounds.upper],
                })
            });
        let checks = self.arguments.statistic.iter().zip(&scores.checks);
        let checks = checks
            .zip(&bounds.statistics)
            .map(|((statistic, check), bounds)| {
                json!({
                    "statistic": statistic,
                    "bounds": [bounds.lower, bounds.upper],
                    "observed": check.observed,
                    "predicted": check.predicted,
                    "predictive_sd": check.predictive_sd,
                    "noise_sd": check.noise_sd,
                    "interval_90": check.interval,
                    "p_value": check.p_value,
                })
            });
        let [guesses, brier] = match &scores.guesses {
            Some(both) => both.each_ref().map(estimate),
            None => [Value::Null, Value::Null],
        };
        json!({
            "private": self.is_private,
            "statement": if self.is_private { self.statement() } else { "NOT PRIVATE".to_owned() },
            "run": self.places[0].display().to_string(),
            "data": published_name(&self.arguments.data),
            "hold_out": self.split.map(Split::held_out),
            "split": self.split.map(Split::name),
            "epsilon": self.plan.once.epsilon,
            "delta": promise.delta.to_f64(),
            "relation": promise.relation,
            "unit": promise.unit_name(),
            "events": [self.plan.once.event],
            "ledger": self.ledger,
            "records": scores.records,
            "clip": [bounds.density.lower, bounds.density.upper],
            "clipped": { "below": scores.clipped[0], "above": scores.clipped[1] },
            "log_predictive_density": estimate(&scores.density),
            "differences": compared.collect::<Vec<_>>(),
            "right_guesses": guesses,
            "brier_score": brier,
            "statistics": checks.collect::<Vec<_>>(),
        })
    }
}
