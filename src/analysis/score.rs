//! How well runs predict records that they did not learn from: released once, charged first.
//!
//! The score of a run is the mean over held-out records of the logarithm of the predictive density,
//! which is the mean over draws of the record's likelihood (Vehtari, Gelman and Gabry 2017), clipped
//! to public bounds. Bounds come from records that are made up at the draws, so nothing of them is
//! private.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::error::Error;
use super::initial::point_of_draw;
use super::once::Once;
use super::prepare::Promise;
use crate::accounting::{Relation, Session};
use crate::density::{Density, PublicSample, Simulator};
use crate::function::special::{student_t_beyond, student_t_quantile};
use crate::model::{Model, Scalar};
use crate::output::{Run, RunLedger};
use crate::privacy::{
    Bounds, Charge, GradientScale, Moments, PrivateRng, REPLICAS, Redrawn, ReleaseError, Rows,
    ScoreBounds, Scored, StatisticSums, Vault, log_mean_exp,
};
use crate::syntax::{BlockKind, parse};

/// Records that are made up at each of so many draws, for bounds.
const MADE_UP: usize = 100;
const POINTS: usize = 20;
/// The shares of made-up records beyond which their densities are left out, and how much further
/// than these from the middle one bounds are: real records are less like the model.
const TAIL: f64 = 0.002;
const ROOM: f64 = 1.5;
/// The noise of a mean, as a share of half the distance between its bounds, from which on it says
/// nothing.
const DROWNED: f64 = 0.1;
/// The mean square of the records' places in their bounds from which on many may have been clipped:
/// it is at least the share of those that were. Bounds from made-up records leave it below 0.1.
const FILLED: f64 = 0.25;
/// The standard normal's 95% quantile.
const Z_95: f64 = 1.6448536269514722;

/// A run's model and draws.
pub(crate) struct Predictor {
    density: Density,
    /// On the unconstrained scale.
    draws: Vec<Vec<f64>>,
    statistics: Vec<Statistic>,
}

/// A number of a record, for a posterior predictive check.
#[derive(Debug, Clone)]
struct Statistic {
    value: Scalar,
    bounds: Bounds,
}

/// The held-out records.
pub(crate) struct HeldOut<'a> {
    /// As each run's model reads them.
    pub vaults: &'a [Vault],
    /// As they are, for the statistics of the first one.
    pub rows: Option<Rows>,
}

/// The plan of a release of scores: its bounds and its noise.
#[derive(Debug)]
pub(crate) struct ScorePlan {
    pub bounds: ScoreBounds,
    pub once: Once,
}

/// A statistic of the held-out records, beside what a run predicts of it (Gelman, Meng and Stern 1996).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Check {
    /// Its mean over records, with noise.
    pub observed: f64,
    /// Its mean over replicas of these records: their outcomes drawn anew at draws of the run.
    pub predicted: f64,
    /// How much the replicas' means vary: with what is drawn and with the draws.
    pub predictive_sd: f64,
    /// Standard deviation of the noise of what the two differ by.
    pub noise_sd: f64,
    /// The probability that a prediction, with such noise, is as large as what was observed.
    pub p_value: f64,
    /// Where 90% of such predictions are.
    pub interval: [f64; 2],
}

/// A mean over records and how far it may be off.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Estimate {
    pub mean: f64,
    /// Standard deviation of the mean over tables of as many records.
    pub sampling_sd: f64,
    /// Standard deviation of the noise of privacy.
    pub noise_sd: f64,
    /// The bounds between which it lies in any case.
    within: [f64; 2],
    /// The mean square of the records' distances from the middle of these, which is 1 at the bounds:
    /// with noise of about `noise_sd` over half of the distance between them. 0 where it is not known.
    spread: f64,
}

/// The scores of runs.
#[derive(Debug, Clone)]
pub(crate) struct Scores {
    /// The number of records that count, with noise.
    pub records: f64,
    /// The shares of records that were clipped from below and from above.
    pub clipped: [f64; 2],
    /// Standard deviation of the noise of these shares.
    pub noise_of_clipped: f64,
    /// The log predictive density of a record under the first run, nats.
    pub density: Estimate,
    /// How much larger that of each other run is, nats.
    pub differences: Vec<Estimate>,
    /// Of outcomes of two values: the share that had a probability above 1/2, and the Brier score.
    pub guesses: Option<[Estimate; 2]>,
    /// Of the first run.
    pub checks: Vec<Check>,
}

impl Predictor {
    /// At most `most` draws of a run, evenly spread over its chains.
    ///
    /// # Errors
    ///
    /// A draw that is no point of the model.
    pub fn new(model: Model, run: &Run, most: usize) -> Result<Predictor, Error> {
        let mut predictor = Predictor::at(model, Vec::new());
        let all: Vec<&Vec<f64>> = run.draws().chains().iter().flatten().collect();
        let count = all.len().min(most);
        predictor.draws = (0..count)
            .map(|k| {
                let draw = all[k * all.len() / count];
                point_of_draw(&predictor.density, run.draws().names(), draw)
                    .map_err(Error::InitialPoint)
            })
            .collect::<Result<_, Error>>()?;
        Ok(predictor)
    }

    /// With these draws, on the unconstrained scale.
    pub fn at(model: Model, draws: Vec<Vec<f64>>) -> Predictor {
        let density = Density::new(model.with_whole_likelihood());
        Predictor {
            density,
            draws,
            statistics: Vec::new(),
        }
    }

    /// With statistics of a record, of a model whose source [`with_statistics`] gave.
    ///
    /// # Errors
    ///
    /// One without bounds, or that the model predicts nothing of.
    pub fn checking(self, texts: &[String]) -> Result<Predictor, Error> {
        let Predictor { density, draws, .. } = self;
        if draws.is_empty() && !texts.is_empty() {
            return Err(Error::Settings(
                "the run has no draws, so that it predicts nothing of statistics".into(),
            ));
        }
        let model = density.model();
        let outcomes: Vec<usize> = model.outcomes.iter().map(|o| o.column).collect();
        let mut statistics = Vec::with_capacity(texts.len());
        for (k, text) in texts.iter().enumerate() {
            let wrong = |why: String| Error::Settings(format!("the statistic `{text}` {why}"));
            let Some((value, [lower, upper])) = model.of_record(&name_of_statistic(k)) else {
                return Err(wrong("is not one number of a record".into()));
            };
            let columns = model.columns_under(&[value]);
            if !columns.iter().any(|(column, _)| outcomes.contains(column)) {
                let names = outcomes.iter().map(|&c| model.columns[c].name.as_str());
                return Err(wrong(format!(
                    "reads no column that the model explains, so the model does not predict it: expected one of {}",
                    one_of(names)
                )));
            }
            if !(lower < upper && (upper - lower).is_finite()) {
                return Err(wrong(format!(
                    "lies between {lower} and {upper} according to the bounds of its columns, so one record could move its mean by any amount: bound it, as in `fmin(fmax({text}, 0), 100)`"
                )));
            }
            let bounds = Bounds { lower, upper };
            statistics.push(Statistic { value, bounds });
        }
        let values: Vec<Scalar> = statistics.iter().map(|s| s.value).collect();
        Ok(Predictor {
            density: Density::new(model.clone().reading(&values)),
            draws,
            statistics,
        })
    }

    pub fn bounds_of_statistics(&self) -> Vec<Bounds> {
        self.statistics.iter().map(|s| s.bounds).collect()
    }

    pub fn model(&self) -> &Model {
        self.density.model()
    }

    /// The held-out records, as this run's model reads them.
    ///
    /// # Errors
    ///
    /// There is no room for them.
    pub fn vault(&self, rows: Rows) -> Result<Vault, Error> {
        Ok(Vault::new(Density::new(self.model().clone()), rows)?)
    }

    fn interfaces(&self) -> Vec<Vec<f64>> {
        let interface = |theta: &Vec<f64>| self.density.interface(theta).z;
        self.draws.iter().map(interface).collect()
    }

    /// Raw columns of records that are made up at its draws.
    fn make_up(&self, public: Option<&PublicSample>, rng: &mut ChaCha8Rng) -> Vec<Vec<f64>> {
        let simulator = Simulator::new(&self.density);
        let points = self.draws.len().min(POINTS);
        let mut columns = vec![Vec::new(); self.model().columns.len()];
        for k in 0..points {
            let theta = &self.draws[k * self.draws.len() / points];
            let records = simulator.records(theta, MADE_UP, public, rng);
            for (all, column) in columns.iter_mut().zip(records) {
                all.extend(column);
            }
        }
        columns
    }

    /// The log predictive densities of records, given by the columns that `of` declares.
    fn densities(&self, of: &Model, raw: &[Vec<f64>]) -> Vec<f64> {
        let n = raw.first().map_or(0, Vec::len);
        let column = |name: &str| {
            let place = of.columns.iter().position(|column| column.name == name);
            place.map_or_else(|| vec![0.0; n], |place| raw[place].clone())
        };
        let own = self.model().columns.iter();
        let raw: Vec<Vec<f64>> = own.map(|c| column(&c.name)).collect();
        let (columns, _) = self.density.load_columns(&raw, n);
        let of_draws: Vec<Vec<f64>> = (self.draws.iter())
            .map(|theta| self.density.record_log_likelihoods(theta, &columns, n))
            .collect();
        (0..n)
            .map(|i| log_mean_exp(of_draws.iter().map(|of_draw| of_draw[i])))
            .collect()
    }

    /// Whether it reads no column that `other` lacks.
    fn reads_what(&self, other: &Predictor) -> bool {
        let names: Vec<&str> = (other.model().columns.iter())
            .map(|column| column.name.as_str())
            .collect();
        let mut used = self.model().columns.iter().filter(|column| column.used);
        used.all(|column| names.contains(&column.name.as_str()))
    }
}

/// The name of a statistic in the program.
fn name_of_statistic(k: usize) -> String {
    format!("dpm_statistic_{}", k + 1)
}

fn one_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if quoted.is_empty() {
        "those on the left of `~`, of which there are none".to_owned()
    } else {
        quoted.join(", ")
    }
}

/// A program with these expressions, each as a number of `transformed record`.
///
/// # Errors
///
/// A text that cannot be an expression. Other mistakes in it are left to the checker.
pub(crate) fn with_statistics(source: &str, texts: &[String]) -> Result<String, Error> {
    let mut declared = String::new();
    for (k, text) in texts.iter().enumerate() {
        if text.trim().is_empty() || text.contains([';', '{', '}']) || text.contains("//") {
            return Err(Error::Settings(format!(
                "the statistic `{text}` is not an expression of a record's columns, such as `y == 0`"
            )));
        }
        let name = name_of_statistic(k);
        declared += &format!("  real {name} = {};\n", text.trim());
    }
    let program = parse(source).program;
    let end = |kind| {
        let blocks = &program.as_ref()?.blocks;
        Some(blocks.iter().find(|block| block.kind == kind)?.span.end)
    };
    let (at, text) = match (end(BlockKind::TransformedRecord), end(BlockKind::Record)) {
        // Before the brace.
        (Some(end), _) => (end - 1, declared),
        (None, Some(end)) => (end, format!("\ntransformed record {{\n{declared}}}")),
        (None, None) => (source.len(), declared),
    };
    Ok(format!("{}\n{text}{}", &source[..at], &source[at..]))
}

/// Bounds for the scores of runs, from records that are made up at the draws: nothing private.
///
/// # Errors
///
/// Runs whose predictive densities of made-up records are not finite.
pub(crate) fn bounds_of(
    runs: &[Predictor],
    public: &[Option<PublicSample>],
    promise: &Promise,
    seed: u64,
) -> Result<ScoreBounds, Error> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let first = &runs[0];
    let made_up = first.make_up(public[0].as_ref(), &mut rng);
    let of_first = first.densities(first.model(), &made_up);
    let density = spread(&of_first)?;
    let mut differences = Vec::new();
    for (run, public) in runs.iter().zip(public).skip(1) {
        let mut found = Vec::new();
        // Made up by either, as far as the other can read it.
        if run.reads_what(first) {
            let densities = run.densities(first.model(), &made_up);
            found.extend(densities.iter().zip(&of_first).map(|(b, a)| b - a));
        }
        if first.reads_what(run) {
            let made_up = run.make_up(public.as_ref(), &mut rng);
            let own = run.densities(run.model(), &made_up);
            let of_first = first.densities(run.model(), &made_up);
            found.extend(own.iter().zip(of_first).map(|(b, a)| b - a));
        }
        let widest = if found.is_empty() {
            density.half_width()
        } else {
            let bounds = spread(&found)?;
            bounds.lower.abs().max(bounds.upper.abs())
        };
        let widest = widest.max(1e-3);
        differences.push(Bounds {
            lower: -widest,
            upper: widest,
        });
    }
    let is_binary = promise.unit.is_none() && is_binary(first.model());
    Ok(ScoreBounds {
        density: if is_binary {
            Bounds {
                upper: density.upper.min(0.0).max(density.lower / 2.0),
                ..density
            }
        } else {
            density
        },
        differences,
        is_binary,
        statistics: first.bounds_of_statistics(),
        records: promise
            .records
            .filter(|_| promise.relation == Relation::Substitute),
    })
}

/// Bounds that nearly all of these values are well within.
fn spread(values: &[f64]) -> Result<Bounds, Error> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    if sorted.len() < 10 {
        return Err(Error::Settings(
            "records that are made up at the draws have no finite predictive densities, so that there are no bounds: give `clip`".into(),
        ));
    }
    let at = |share: f64| sorted[(share * (sorted.len() - 1) as f64).round() as usize];
    let (middle, room) = (at(0.5), |x: f64, middle: f64| middle + ROOM * (x - middle));
    let (lower, upper) = (room(at(TAIL), middle), room(at(1.0 - TAIL), middle));
    let least = 1e-3 * middle.abs().max(1.0);
    Ok(Bounds {
        lower: lower.min(middle - least),
        upper: upper.max(middle + least),
    })
}

/// Whether a record has one outcome, of two values.
fn is_binary(model: &Model) -> bool {
    match model.outcomes.as_slice() {
        [outcome] => {
            let column = &model.columns[outcome.column];
            column.is_int
                && (column.upper.zip(column.lower)).is_some_and(|(high, low)| high - low == 1.0)
        }
        _ => false,
    }
}

impl ScorePlan {
    /// The noise that the promise asks for.
    ///
    /// # Errors
    ///
    /// A budget that no noise keeps, or whose noise drowns every score.
    pub fn new(bounds: ScoreBounds, promise: &Promise) -> Result<ScorePlan, Error> {
        let factor = promise.relation.factor();
        let once = Once::new("score", bounds.coordinates(), promise, |tau| {
            let scale = GradientScale::new(bounds.length(), factor, tau)?;
            Ok((scale, scale.clip()))
        })?;
        let plan = ScorePlan { bounds, once };
        let target = promise.epsilon.to_f64_down();
        if let Some(n) = promise.records {
            let noise = plan.once.scale.sigma() / n.max(1) as f64;
            if noise > DROWNED {
                return Err(Error::Settings(format!(
                    "the noise would drown the score: a mean over {n} records would have noise of {:.2} nats between bounds that are {:.2} nats apart. It takes about {:.0} records, or `epsilon` {:.2}",
                    noise * plan.bounds.density.half_width(),
                    2.0 * plan.bounds.density.half_width(),
                    (n as f64 * noise / DROWNED).ceil(),
                    target * noise / DROWNED,
                )));
            }
        }
        Ok(plan)
    }

    /// Standard deviation of the noise of the mean log predictive density of `n` records, nats.
    pub fn noise_of_mean(&self, n: u64) -> f64 {
        self.bounds.density.half_width() * self.once.scale.sigma() / n.max(1) as f64
    }

    /// Charges the session, where there is one, and releases the scores. `noise_seed` makes noise
    /// that protects nothing, for tests.
    ///
    /// # Errors
    ///
    /// A budget that refuses; rows that are lost.
    pub fn release(
        &self,
        runs: &[Predictor],
        held_out: HeldOut,
        name: &str,
        promise: &Promise,
        session: Option<&Session>,
        noise_seed: Option<u64>,
    ) -> Result<(Scores, Option<RunLedger>), Error> {
        let mut promise = promise.clone();
        for vault in held_out.vaults {
            promise = promise.about(vault)?;
        }
        let (sums, ledger) =
            (self.once).release(name, &promise, session, noise_seed, |charge, rng| {
                self.sums(runs, held_out, charge, rng)
            })?;
        Ok((self.scores(&sums, promise.records), ledger))
    }

    /// The noisy sums.
    pub fn sums(
        &self,
        runs: &[Predictor],
        held_out: HeldOut,
        charge: Charge,
        rng: &mut PrivateRng,
    ) -> Result<Vec<f64>, ReleaseError> {
        let HeldOut { vaults, rows } = held_out;
        let interfaces: Vec<Vec<Vec<f64>>> = runs.iter().map(Predictor::interfaces).collect();
        let scored: Vec<Scored> = (vaults.iter().zip(&interfaces))
            .map(|(vault, draws)| Scored { vault, draws })
            .collect();
        let first = &runs[0];
        let (simulator, draws);
        let redrawn = if let Some(rows) = rows {
            let values: Vec<Scalar> = first.statistics.iter().map(|s| s.value).collect();
            simulator = Simulator::with(&first.density, &values).precise();
            draws = std::array::from_fn(|s| {
                simulator.interface(&first.draws[s * first.draws.len() / REPLICAS])
            });
            Some(Redrawn {
                rows,
                simulator: &simulator,
                draws: &draws,
            })
        } else {
            None
        };
        let (bounds, scale) = (&self.bounds, &self.once.scale);
        let released = Vault::noisy_scores((&scored, redrawn), bounds, scale, charge, rng)?;
        Ok(released.into_inner())
    }

    /// The scores that follow from the noisy sums.
    fn scores(&self, sums: &[f64], n: Option<u64>) -> Scores {
        let sums = self.bounds.named(sums);
        let sigma = self.once.scale.sigma();
        // Not cut at the number of records: where all count, that would make it too small on average,
        // and so the means too far from the middle of their bounds.
        let count = sums.count.max(1.0);
        let noise_of_count = self.bounds.noise_of_count() * sigma;
        // The mean of places whose count is noisy too.
        let noise_at = |place: f64| sigma.hypot(place * noise_of_count) / count;
        let estimate = |moments: &Moments| {
            let place = moments.sum / count;
            let spread = (moments.sum_of_squares / count).clamp(0.0, 1.0);
            let variance = (spread - place * place).clamp(0.0, 1.0);
            // The variance is noisy too, and rather taken too large.
            let variance = (variance + noise_at(1.0)).min(1.0);
            let half_width = moments.bounds.half_width();
            Estimate {
                mean: moments.bounds.middle() + half_width * place.clamp(-1.0, 1.0),
                sampling_sd: half_width * (variance / count).sqrt(),
                noise_sd: half_width * noise_at(place),
                within: [moments.bounds.lower, moments.bounds.upper],
                spread,
            }
        };
        let share = |sum: f64| {
            let share = (sum / count).clamp(0.0, 1.0);
            Estimate {
                mean: share,
                // A number between 0 and 1 varies by no more than this.
                sampling_sd: (share.max(1.0 / count) * (1.0 - share).max(1.0 / count) / count)
                    .sqrt(),
                noise_sd: noise_at(share - 0.5),
                within: [0.0, 1.0],
                spread: 0.0,
            }
        };
        Scores {
            records: n.map_or(count, |n| count.min(n as f64)),
            clipped: sums.clipped.map(|sum| (sum / count).clamp(0.0, 1.0)),
            noise_of_clipped: ScoreBounds::noise_of_clipped() * sigma / count,
            density: estimate(&sums.density),
            differences: sums.differences.iter().map(estimate).collect(),
            guesses: sums.guesses.map(|sums| sums.map(share)),
            checks: (sums.statistics.iter())
                .map(|sums| Check::of(sums, count, sigma, noise_at))
                .collect(),
        }
    }
}

impl Check {
    /// From sums over `count` records with noise of `sigma`; `noise_at`: that of a mean, whose count
    /// is noisy too.
    fn of(sums: &StatisticSums, count: f64, sigma: f64, noise_at: impl Fn(f64) -> f64) -> Check {
        const FREEDOM: f64 = (REPLICAS - 1) as f64;
        let (difference, predicted) = (sums.difference / count, sums.predicted / count);
        let noise = noise_at(difference);
        // Of the replicas' means, less what the noise adds to it, and rather taken too large.
        let mean = sums.replicas.iter().sum::<f64>() / REPLICAS as f64;
        let squares = sums.replicas.iter().map(|sum| (sum - mean).powi(2));
        let variance = squares.sum::<f64>() / FREEDOM / (count * count);
        let added = (ScoreBounds::noise_of_replica() * sigma / count).powi(2);
        let variance = (variance - added).max(0.0) + added * (2.0 / FREEDOM).sqrt();
        // The mean of the replicas is off too.
        let of_difference = variance * (1.0 + 1.0 / REPLICAS as f64);
        let total = of_difference + noise * noise;
        // Satterthwaite (1946): that of the noise is known.
        let freedom = FREEDOM * (total / of_difference).powi(2);
        let width = sums.bounds.upper - sums.bounds.lower;
        let value = |share: f64| sums.bounds.lower + width * share;
        let reach = student_t_quantile(0.95, freedom) * total.sqrt();
        Check {
            observed: value((predicted + difference).clamp(0.0, 1.0)),
            predicted: value(predicted.clamp(0.0, 1.0)),
            predictive_sd: width * variance.sqrt(),
            noise_sd: width * noise,
            p_value: student_t_beyond(difference / total.sqrt(), freedom),
            interval: [-reach, reach].map(|off| value((predicted + off).clamp(0.0, 1.0))),
        }
    }
}

impl Estimate {
    /// Sampling and noise together.
    pub fn sd(&self) -> f64 {
        self.sampling_sd.hypot(self.noise_sd)
    }

    /// Whether so many records are at the bounds, or near to them, that the mean may be far nearer to
    /// the middle than that of what was not clipped.
    pub fn fills_bounds(&self) -> bool {
        let [least, most] = self.within;
        let noise = 2.0 * self.noise_sd / (most - least);
        self.spread > FILLED + 2.0 * noise
    }

    /// The interval of 90%.
    pub fn interval(&self) -> [f64; 2] {
        let [least, most] = self.within;
        [-1.0, 1.0].map(|side| (self.mean + side * Z_95 * self.sd()).clamp(least, most))
    }
}

#[cfg(test)]
mod tests {
    use rand_distr::{Distribution, StandardNormal};

    use super::*;
    use crate::accounting::Real;
    use crate::model::Constants;
    use crate::privacy::PrivateData;

    const SOURCE: &str = "record { real<lower=-50, upper=50> y; } parameters { real m; }
        model { m ~ normal(0, 1); y ~ normal(m, 1); }";

    fn predictor(means: &[f64]) -> Predictor {
        let model = Model::from_source(SOURCE, &Constants::none()).unwrap();
        Predictor::at(model, means.iter().map(|&m| vec![m]).collect())
    }

    fn promise(epsilon: f64, n: u64) -> Promise {
        Promise {
            epsilon: Real::from(epsilon),
            delta: Real::from(1e-6),
            relation: Relation::Substitute,
            unit: None,
            records: Some(n),
            part: None,
        }
    }

    // Wrong here: intervals that leave the sample's or the noise's part out. Oracle: the integral of
    // the clipped log density, and of the difference of two, over the normal distribution that
    // records come from. 300 tables of 400 records; intervals of 90% hold the truth in at least 85%
    // of them. False alarms: 0.3% if they hold it in exactly 90%, and they are made a little wider.
    // Power: without the noise's part they hold it in less than 75%. On average they are less than 0.2
    // of their standard deviations off, which has a standard deviation of 0.06.
    #[test]
    fn intervals_hold_the_expected_density_as_often_as_they_say() {
        const TABLES: u64 = 300;
        const N: usize = 400;
        let runs = [predictor(&[-0.1, 0.0, 0.1]), predictor(&[0.5])];
        let bounds = bounds_of(&runs, &[None, None], &promise(1.0, N as u64), 1).unwrap();
        let plan = ScorePlan::new(bounds.clone(), &promise(1.0, N as u64)).unwrap();
        assert!(
            plan.once.epsilon <= 1.0 && plan.once.epsilon > 0.999,
            "{}",
            plan.once.epsilon
        );

        let log_density = |draws: &[f64], y: f64| {
            let terms = draws.iter().map(|m| -0.5 * (y - m) * (y - m));
            log_mean_exp(terms) - 0.5 * (2.0 * std::f64::consts::PI).ln()
        };
        let expected = |of: &dyn Fn(f64) -> f64| -> f64 {
            let step = 1e-3;
            let cells = (-8000..8000).map(|k| (f64::from(k) + 0.5) * step);
            let normal = |y: f64| (-0.5 * y * y).exp() / (2.0 * std::f64::consts::PI).sqrt();
            cells.map(|y| of(y) * normal(y) * step).sum()
        };
        let clipped = |x: f64, to: Bounds| x.clamp(to.lower, to.upper);
        let first = |y: f64| log_density(&[-0.1, 0.0, 0.1], y);
        let truths = [
            expected(&|y| clipped(first(y), bounds.density)),
            expected(&|y| clipped(log_density(&[0.5], y) - first(y), bounds.differences[0])),
        ];
        let mut rng = ChaCha8Rng::seed_from_u64(4);
        let (mut held, mut held_by_sample, mut bias) = ([0; 2], [0; 2], [0.0; 2]);
        for table in 0..TABLES {
            let y: Vec<f64> = (0..N).map(|_| StandardNormal.sample(&mut rng)).collect();
            let data = PrivateData::from_columns([("y", y)]);
            let vault = |run: &Predictor| data.bind(run.model()).unwrap();
            let vaults: Vec<Vault> = runs.iter().map(vault).collect();
            let held_out = HeldOut {
                vaults: &vaults,
                rows: None,
            };
            let released = plan.release(
                &runs,
                held_out,
                "test",
                &promise(1.0, N as u64),
                None,
                Some(table),
            );
            let scores = released.unwrap().0;
            let estimates = [scores.density, scores.differences[0]];
            for (k, (estimate, truth)) in estimates.iter().zip(truths).enumerate() {
                let [low, high] = estimate.interval();
                held[k] += u64::from(low <= truth && truth <= high);
                let off = estimate.mean - truth;
                held_by_sample[k] += u64::from(off.abs() <= Z_95 * estimate.sampling_sd);
                bias[k] += off / estimate.sd() / TABLES as f64;
            }
        }
        for k in 0..2 {
            assert!(held[k] >= TABLES * 85 / 100, "{held:?}");
            assert!(held_by_sample[k] < TABLES * 75 / 100, "{held_by_sample:?}");
            assert!(bias[k].abs() < 0.2, "{bias:?}");
        }
    }

    // Wrong here: a p-value that calls right models wrong more often than it says, because it leaves out
    // the draws', the outcomes' or the noise's part, or wrong ones right. 200 tables of 400 records from
    // the prior, draws from the posterior of 100 others: p is below 0.05 or above 0.95 in 10% of them at
    // most. False alarms: more than 30 with probability 0.9% for either epsilon, if it is 10%, and they
    // are made to be fewer. Power: without the draws' part it is so in 20%, which is told with
    // probability 95%. Of 30 tables of records that are 1.6 times as wide as the model has them, most
    // are told.
    #[test]
    fn right_models_are_called_wrong_as_seldom_as_is_said() {
        const N: u64 = 400;
        let texts = ["y > 1".to_owned()];
        let source = with_statistics(SOURCE, &texts).unwrap();
        let model = Model::from_source(&source, &Constants::none()).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(8);
        let mut called_wrong = |width: f64, tables: u64, epsilon: f64| {
            let promise = promise(epsilon, N);
            let any = Predictor::at(model.clone(), vec![vec![0.0]; REPLICAS]);
            let any = [any.checking(&texts).unwrap()];
            let plan = ScorePlan::new(bounds_of(&any, &[None], &promise, 1).unwrap(), &promise);
            let plan = plan.unwrap();
            let mut count = 0;
            for table in 0..tables {
                let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
                let m = normal();
                let centre = (100.0 * m + 10.0 * normal()) / 101.0;
                let draws = (0..REPLICAS).map(|_| vec![centre + normal() / 101f64.sqrt()]);
                let run = Predictor::at(model.clone(), draws.collect())
                    .checking(&texts)
                    .unwrap();
                let y: Vec<f64> = (0..N).map(|_| m + width * normal()).collect();
                let data = PrivateData::from_columns([("y", y)]);
                let runs = [run];
                let vaults = [data.bind(runs[0].model()).unwrap()];
                let held_out = HeldOut {
                    vaults: &vaults,
                    rows: Some(data.rows(&runs[0].model().columns).unwrap()),
                };
                let released = plan.release(&runs, held_out, "test", &promise, None, Some(table));
                let check = released.unwrap().0.checks[0];
                count += u64::from(!(0.05..=0.95).contains(&check.p_value));
                let within =
                    check.interval[0] < check.observed && check.observed < check.interval[1];
                // But for what is clamped at 0 or 1.
                if check.interval[0] > 0.0 && check.interval[1] < 1.0 {
                    assert_eq!(within, (0.05..0.95).contains(&check.p_value), "{check:?}");
                }
            }
            count
        };
        for epsilon in [1.0, 20.0] {
            let count = called_wrong(1.0, 200, epsilon);
            println!("{count} of 200 at epsilon {epsilon}");
            assert!(count <= 30, "{epsilon}: {count}");
        }
        let count = called_wrong(1.6, 30, 20.0);
        println!("{count} of 30 that are too wide");
        assert!(count > 15, "{count}");
    }

    #[test]
    fn scores_that_the_noise_would_drown_are_refused() {
        let runs = [predictor(&[0.0])];
        let bounds = bounds_of(&runs, &[None], &promise(1.0, 100), 1).unwrap();
        let error = ScorePlan::new(bounds.clone(), &promise(0.01, 100)).unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains("would drown") && said.contains("records"),
            "{said}"
        );
        assert!(ScorePlan::new(bounds, &promise(1.0, 100_000)).is_ok());
    }

    // Wrong here: bounds that cut off records like the model's own.
    #[test]
    fn bounds_have_room_for_what_the_model_makes_up() {
        let run = predictor(&[0.0, 0.3]);
        let bounds = bounds_of(std::slice::from_ref(&run), &[None], &promise(1.0, 100), 1).unwrap();
        assert!(!bounds.is_binary && bounds.differences.is_empty());
        // The highest density, and that 3.5 standard deviations out.
        let highest = -0.5 * (2.0 * std::f64::consts::PI).ln();
        assert!(bounds.density.upper > highest - 0.05, "{bounds:?}");
        assert!(
            bounds.density.lower < highest - 0.5 * 3.5 * 3.5,
            "{bounds:?}"
        );
    }
}
