//! How covariates are distributed, each by itself: released once, as a codebook of guesses.

use serde_json::{Map, Value, json};

use super::error::Error;
use super::once::Once;
use super::prepare::Promise;
use crate::accounting::Session;
use crate::density::made_up_values;
use crate::model::{Model, RecordColumn};
use crate::output::RunLedger;
use crate::privacy::marginals::{Cells, coordinates, length};
use crate::privacy::{Charge, GradientScale, PrivateRng, ReleaseError, Rows, half_distance};

/// Ints of so many values or fewer have a cell for each.
const MOST_VALUES: f64 = 100.0;
/// The least and the most ranges into which others are divided, and their number where that of records
/// is private.
const RANGES: [f64; 2] = [4.0, 64.0];
const USUAL_RANGES: usize = 16;
/// The noise of a cell's share is at most this part of an average cell's.
const NOISE: f64 = 0.25;
/// The standard deviation of a share's noise from which on the release says nothing.
const DROWNED: f64 = 0.05;
/// The share of each cell at least, so that the distribution function ascends.
const LEAST: f64 = 1e-9;
/// Values that a codebook's guess makes up, for ranges that hold as much of it each.
const MADE_UP: usize = 10_000;

/// The release of the distributions of a model's covariates.
#[derive(Debug)]
pub(crate) struct Marginals {
    columns: Vec<RecordColumn>,
    cells: Vec<Cells>,
    pub once: Once,
}

/// The released distributions of covariates.
#[derive(Debug)]
pub(crate) struct Released {
    /// Guesses of the covariates, which are those of the data but for the noise.
    pub codebook: Value,
    /// Standard deviation of the noise of the share of a cell.
    pub noise_of_share: f64,
    pub ledger: Option<RunLedger>,
}

impl Marginals {
    /// The columns as they are loaded: those that the model does not explain, and no others.
    pub fn columns_of(model: &Model) -> Vec<RecordColumn> {
        let mut columns = model.columns.clone();
        for (c, column) in columns.iter_mut().enumerate() {
            column.used = !model.outcomes.iter().any(|outcome| outcome.column == c);
        }
        columns
    }

    /// Cells and noise that the promise asks for.
    ///
    /// # Errors
    ///
    /// No covariates, or one without bounds; a budget that no noise keeps, or whose noise drowns
    /// everything.
    pub fn new(model: &Model, promise: &Promise) -> Result<Marginals, Error> {
        let columns = Marginals::columns_of(model);
        let covariates = || columns.iter().enumerate().filter(|(_, column)| column.used);
        if covariates().next().is_none() {
            return Err(Error::Settings(
                "the model explains all columns of its record, so that there are no covariates to release".into(),
            ));
        }
        let planned = |ranges: usize| -> Result<(Vec<Cells>, Once), Error> {
            let cells = covariates().map(|(c, column)| cells_of(c, column, ranges));
            let cells = cells.collect::<Result<Vec<_>, _>>()?;
            let (length, count) = (length(&cells), coordinates(&cells));
            let factor = promise.relation.factor();
            let once = Once::new("covariates", count, promise, |tau| {
                let scale = GradientScale::alike(length, factor, tau, count)?;
                Ok((scale, length * half_distance(factor)))
            })?;
            Ok((cells, once))
        };
        let (mut cells, mut once) = planned(USUAL_RANGES)?;
        if let Some(n) = promise.records {
            let sigma = once.scale.sigma();
            let noise = sigma / n.max(1) as f64;
            if noise > DROWNED {
                return Err(Error::Settings(format!(
                    "the noise would drown the covariates: a share of {n} records would have noise of {noise:.2}. It takes about {:.0} records, or `epsilon` {:.2}",
                    sigma / DROWNED,
                    promise.epsilon.to_f64() * noise / DROWNED,
                )));
            }
            let ranges = NOISE / noise;
            (cells, once) = planned(ranges.clamp(RANGES[0], RANGES[1]) as usize)?;
        }
        Ok(Marginals {
            columns,
            cells,
            once,
        })
    }

    /// Charges the session, where there is one, and releases the counts of the rows, loaded as
    /// [`columns_of`](Marginals::columns_of) says.
    ///
    /// # Errors
    ///
    /// A budget that refuses; rows that are lost.
    pub fn release(
        &self,
        rows: Rows,
        name: &str,
        promise: &Promise,
        session: Option<&Session>,
        noise_seed: Option<u64>,
    ) -> Result<Released, Error> {
        let (sums, ledger) =
            (self.once).release(name, promise, session, noise_seed, |charge, rng| {
                self.sums(rows, charge, rng)
            })?;
        let total = self.total(&sums);
        Ok(Released {
            codebook: self.codebook(&sums, total),
            noise_of_share: self.once.scale.sigma() / total,
            ledger,
        })
    }

    /// The noisy counts.
    pub fn sums(
        &self,
        rows: Rows,
        charge: Charge,
        rng: &mut PrivateRng,
    ) -> Result<Vec<f64>, ReleaseError> {
        let released = rows.noisy_marginals(&self.cells, &self.once.scale, charge, rng)?;
        Ok(released.into_inner())
    }

    /// The number of records, which each column's cells add up to but for the noise.
    fn total(&self, sums: &[f64]) -> f64 {
        (sums.iter().sum::<f64>() / self.cells.len() as f64).max(1.0)
    }

    fn codebook(&self, sums: &[f64], total: f64) -> Value {
        let mut columns = Map::new();
        let mut first = 0;
        for cells in &self.cells {
            let own = &sums[first..first + cells.count()];
            first += cells.count();
            let shares = on_simplex(&own.iter().map(|sum| sum / total).collect::<Vec<_>>());
            let least = LEAST * shares.len() as f64;
            let shares = shares.iter().map(|share| (1.0 - least) * share + LEAST);
            let column = &self.columns[cells.column];
            let guess = if cells.are_values {
                json!({ "shares": of_values(column, &cells.marks, shares) })
            } else {
                json!({ "quantiles": of_ranges(&cells.marks, shares) })
            };
            columns.insert(column.name.clone(), guess);
        }
        json!({ "columns": columns })
    }
}

/// The shares of an int's values, or of a factor's words.
fn of_values(
    column: &RecordColumn,
    values: &[f64],
    shares: impl Iterator<Item = f64>,
) -> Map<String, Value> {
    let named = values.iter().enumerate().map(|(k, value)| {
        let word = column.levels.get(k).cloned();
        word.unwrap_or_else(|| value.to_string())
    });
    named.zip(shares.map(|share| json!(share))).collect()
}

/// The distribution function's inverse, at the ends of ranges; steps at the first and the last.
fn of_ranges(marks: &[f64], mut shares: impl Iterator<Item = f64>) -> Map<String, Value> {
    let mut below = 0.0;
    let mut quantiles = Map::new();
    quantiles.insert("0".to_owned(), json!(marks[0]));
    for mark in marks {
        below += shares.next().unwrap_or(0.0);
        quantiles.insert(below.to_string(), json!(mark));
    }
    quantiles.insert("1".to_owned(), json!(marks[marks.len() - 1]));
    quantiles
}

/// The cells of a column.
fn cells_of(c: usize, column: &RecordColumn, ranges: usize) -> Result<Cells, Error> {
    let finite = |bound: Option<f64>| bound.filter(|bound| bound.is_finite());
    let (Some(low), Some(high)) = (finite(column.lower), finite(column.upper)) else {
        return Err(Error::Settings(format!(
            "`{}` has no bounds in the model, so that there are no cells to count its values in: covariates can be released where all have a lower and an upper bound",
            column.name
        )));
    };
    let is_listed = !column.levels.is_empty() || high - low < MOST_VALUES;
    if column.is_int && is_listed || high == low {
        let count = if high == low {
            1
        } else {
            (high - low) as usize + 1
        };
        return Ok(Cells {
            column: c,
            marks: (0..count).map(|k| low + k as f64).collect(),
            are_values: true,
        });
    }
    let mut marks: Vec<f64> = match &column.guess {
        None => {
            let share = |k: usize| k as f64 / ranges as f64;
            let mark = |k| low * (1.0 - share(k)) + high * share(k);
            (1..ranges).map(mark).collect()
        }
        Some(_) => {
            let mut values = made_up_values(column, MADE_UP, 1);
            values.sort_by(f64::total_cmp);
            (1..ranges).map(|k| values[k * MADE_UP / ranges]).collect()
        }
    };
    if column.is_int {
        marks.iter_mut().for_each(|mark| *mark = mark.round());
    }
    marks.retain(|mark| *mark > low && *mark < high);
    marks.dedup();
    marks.insert(0, low);
    marks.push(high);
    Ok(Cells {
        column: c,
        marks,
        are_values: false,
    })
}

/// The point nearest to `x` whose entries are not negative and add up to 1 (Held, Wolfe and Crowder
/// 1974).
fn on_simplex(x: &[f64]) -> Vec<f64> {
    let mut sorted = x.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut less) = (0.0, 0.0);
    for (k, value) in sorted.iter().enumerate() {
        sum += value;
        let shift = (sum - 1.0) / (k + 1) as f64;
        if *value > shift {
            less = shift;
        }
    }
    x.iter().map(|value| (value - less).max(0.0)).collect()
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::accounting::{Real, Relation};
    use crate::formula::Codebook;
    use crate::model::Constants;
    use crate::privacy::OnBadRows;

    const SOURCE: &str = "record { int<lower=0, upper=1> y; real<lower=0, upper=100> x; int<lower=1, upper=4> k;
          factor(\"a\", \"b\") f; int<lower=0, upper=1000> c; }
        parameters { real a; } model { a ~ normal(0, 1); y ~ bernoulli_logit(a * (x + k + f + c)); }";

    fn model() -> Model {
        Model::from_source(SOURCE, &Constants::none()).unwrap()
    }

    fn promise(epsilon: f64, relation: Relation, n: u64) -> Promise {
        Promise {
            epsilon: Real::from(epsilon),
            delta: Real::from(1e-6),
            relation,
            unit: None,
            records: relation.n_is_public().then_some(n),
            part: None,
        }
    }

    /// Three in ten x are 0, the others about 20; k is 1 to 3.
    fn rows(model: &Model, n: usize, rng: &mut ChaCha8Rng) -> Rows {
        let mut draw = |of: &dyn Fn(f64, f64) -> f64| -> Vec<f64> {
            (0..n).map(|_| of(rng.random(), rng.random())).collect()
        };
        let columns = [
            ("y", draw(&|_, _| 0.0)),
            (
                "x",
                draw(&|u, v| if u < 0.3 { 0.0 } else { 10.0 + 20.0 * v }),
            ),
            (
                "k",
                draw(&|u, _| {
                    if u < 0.5 {
                        1.0
                    } else if u < 0.8 {
                        2.0
                    } else {
                        3.0
                    }
                }),
            ),
            ("f", draw(&|u, _| if u < 0.1 { 2.0 } else { 1.0 })),
            ("c", draw(&|u, v| (100.0 * u * v).round())),
        ];
        let named = columns.map(|(name, values)| (name.to_owned(), values));
        let columns = Marginals::columns_of(model);
        Rows::from_columns(&columns, named.into(), OnBadRows::Error).unwrap()
    }

    // Wrong here: synthetic covariates unlike the data, or noise other than is said. Oracle: the
    // distribution that rows come from. 60 tables of 1,000 records at epsilon 1: the shares that are
    // released are off by sampling and by the noise that is said; in units of both, the mean square of
    // 60 x 4 of them is 1 within five standard errors (sqrt(2 / 240) each). Left out, the noise alone
    // would make it 1.5 or more.
    #[test]
    fn marginals_are_those_of_the_data_within_what_is_said() {
        let model = model();
        let n = 1000;
        let promise = promise(1.0, Relation::Substitute, n as u64);
        let plan = Marginals::new(&model, &promise).unwrap();
        assert!(plan.once.epsilon <= 1.0 && plan.once.epsilon > 0.999);
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let (mut squares, mut by_sample) = (0.0, 0.0);
        for table in 0..60 {
            let rows = rows(&model, n, &mut rng);
            let released = plan
                .release(rows, "test", &promise, None, Some(table))
                .unwrap();
            let book = &released.codebook["columns"];
            let shares = &book["k"]["shares"];
            let found = [
                (&shares["1"], 0.5),
                (&shares["2"], 0.3),
                (&shares["3"], 0.2),
                (&book["f"]["shares"]["b"], 0.1),
            ];
            for (share, truth) in found {
                let off = share.as_f64().unwrap() - truth;
                let sampling = truth * (1.0 - truth) / n as f64;
                let noise = released.noise_of_share.powi(2);
                squares += off * off / (sampling + noise) / 240.0;
                by_sample += off * off / sampling / 240.0;
            }
            // The step at 0, and a range without values.
            let quantiles = book["x"]["quantiles"].as_object().unwrap();
            let at = |value: f64| -> f64 {
                let below = quantiles
                    .iter()
                    .filter(|(_, x)| x.as_f64().unwrap() <= value);
                below
                    .map(|(p, _)| p.parse::<f64>().unwrap())
                    .fold(0.0, f64::max)
            };
            let noise = 5.0 * (released.noise_of_share.powi(2) * 20.0 + 0.25 / n as f64).sqrt();
            assert!((at(0.0) - 0.3).abs() < noise, "{}", at(0.0));
            assert!((at(60.0) - 1.0).abs() < noise, "{}", at(60.0));
        }
        assert!(
            (squares - 1.0).abs() < 5.0 * (2.0f64 / 240.0).sqrt(),
            "{squares}"
        );
        assert!(by_sample > 1.5, "{by_sample}");
    }

    // Wrong here: a codebook that cannot be read, or covariates that are not as it says. Without
    // noise to speak of, means of 4,000 values within five standard errors, and what ranges hide.
    #[test]
    fn what_is_released_makes_covariates_up() {
        let model = model();
        let n = 100_000;
        for relation in [Relation::Substitute, Relation::AddRemove, Relation::ZeroOut] {
            let promise = promise(20.0, relation, n as u64);
            let plan = Marginals::new(&model, &promise).unwrap();
            let rows = rows(&model, n, &mut ChaCha8Rng::seed_from_u64(6));
            let released = plan.release(rows, "test", &promise, None, Some(1)).unwrap();
            let book = Codebook::read(&released.codebook.to_string()).unwrap();
            let model = model.clone().with_codebook(&book).unwrap();
            // Where n is private there are 16 ranges, else 64. Those of c are taken to be uniform,
            // but for the zeros; c is a product, with the distribution function t (1 - ln t).
            let ranges = match promise.records {
                None => USUAL_RANGES as f64,
                Some(_) => RANGES[1],
            };
            let below = |x: f64| {
                let t = ((x + 0.5) / 100.0).min(1.0);
                t * (1.0 - t.ln())
            };
            let width = 1000.0 / ranges;
            let mean_of_c: f64 = (0..ranges as usize)
                .map(|k| (k as f64 * width, (k + 1) as f64 * width))
                .map(|(a, b)| 0.5 * (a + b) * (below(b) - below(a)))
                .sum();
            for (c, mean, off) in [
                (1, 14.0, 1.0),
                (2, 1.7, 0.08),
                (3, 1.1, 0.03),
                (4, mean_of_c, 2.0),
            ] {
                let values = made_up_values(&model.columns[c], 4000, 3);
                let found = values.iter().sum::<f64>() / 4000.0;
                assert!((found - mean).abs() < off, "{c}: {found} for {mean}");
            }
        }
    }

    #[test]
    fn what_cannot_be_released_is_refused() {
        let few = Marginals::new(&model(), &promise(0.1, Relation::Substitute, 200)).unwrap_err();
        assert!(few.to_string().contains("would drown"), "{few}");
        let source = SOURCE.replace("<lower=0, upper=100>", "");
        let unbounded = Model::from_source(&source, &Constants::none()).unwrap();
        let promise = promise(1.0, Relation::Substitute, 10_000);
        let error = Marginals::new(&unbounded, &promise).unwrap_err();
        assert!(error.to_string().contains("`x` has no bounds"), "{error}");
        let none = "record { real<lower=0, upper=1> y; } parameters { real a; } model { a ~ normal(0, 1); y ~ normal(a, 1); }";
        let none = Model::from_source(none, &Constants::none()).unwrap();
        let error = Marginals::new(&none, &promise).unwrap_err();
        assert!(error.to_string().contains("no covariates"), "{error}");
    }

    #[test]
    fn shares_are_moved_onto_the_simplex() {
        for (x, expected) in [
            ([0.2, 0.3, 0.5], [0.2, 0.3, 0.5]),
            ([0.6, -0.1, 0.5], [0.55, 0.0, 0.45]),
            ([1.5, 0.2, -0.3], [1.0, 0.0, 0.0]),
            ([0.0, 0.0, 0.0], [1.0 / 3.0; 3]),
        ] {
            for (a, b) in on_simplex(&x).iter().zip(expected) {
                assert!((a - b).abs() < 1e-12, "{x:?}");
            }
        }
    }
}
