//! A codebook's guesses of the distributions of covariates, checked against the model's columns.

use serde_json::{Map, json};

use crate::formula::{Codebook, CodebookError, Guess};
use crate::model::{Guessed, GuessedLaw, Model, RecordColumn, truth};

/// Ints of so many values or fewer can have shares.
const MOST_VALUES: f64 = 10_000.0;

/// The guess, if it fits the column.
fn guessed(guess: &Guess, column: &RecordColumn) -> Result<Guessed, String> {
    let zeros = guess.zeros.unwrap_or(0.0);
    if zeros > 0.0 {
        if !column.levels.is_empty() {
            return Err("it is a factor, which has no zeros: give `shares`".to_owned());
        }
        within(0.0, column, "`zeros`")?;
    }
    let law = if !guess.shares.is_empty() {
        GuessedLaw::Shares(shares(&guess.shares, column)?)
    } else if !guess.quantiles.is_empty() {
        GuessedLaw::Quantiles(quantiles(&guess.quantiles, column)?)
    } else if let Some(mean) = guess.mean {
        moments(mean, guess.sd, column)?
    } else {
        GuessedLaw::Unknown
    };
    Ok(Guessed { zeros, law })
}

fn shares(given: &[(String, f64)], column: &RecordColumn) -> Result<Vec<[f64; 2]>, String> {
    let (Some(low), Some(high)) = (column.lower, column.upper) else {
        return Err("it has no bounds, and `shares` need all values to be known".to_owned());
    };
    if !column.is_int || high - low >= MOST_VALUES {
        return Err(format!(
            "`shares` are for factors and ints of at most {MOST_VALUES} values: give `mean` and `sd`, or `quantiles`"
        ));
    }
    let mut shares: Vec<[f64; 2]> = (0..=(high - low) as usize)
        .map(|k| [low + k as f64, f64::NAN])
        .collect();
    for (word, share) in given {
        let level = column.levels.iter().position(|level| level == word);
        let value = match level {
            Some(level) => Some(level as f64 + 1.0),
            None if column.is_truth() && truth(word).is_some() => truth(word),
            None if column.levels.is_empty() => word.parse().ok(),
            None => None,
        };
        let place = value.and_then(|value| shares.iter_mut().find(|[x, _]| *x == value));
        let Some(place) = place else {
            return Err(format!("`{word}` is none of its values"));
        };
        place[1] = *share;
    }
    let named: f64 = given.iter().map(|(_, share)| share).sum();
    let unnamed = shares.iter().filter(|[_, share]| share.is_nan()).count();
    if unnamed == 0 && (named - 1.0).abs() > 1e-6 {
        return Err(format!(
            "the shares of all its values add up to {named}, and not to 1"
        ));
    }
    let others = (1.0 - named).max(0.0) / unnamed.max(1) as f64;
    for [_, share] in &mut shares {
        if share.is_nan() {
            *share = others;
        }
    }
    Ok(shares)
}

fn quantiles(given: &[[f64; 2]], column: &RecordColumn) -> Result<Vec<[f64; 2]>, String> {
    if !column.levels.is_empty() {
        return Err("it is a factor: give `shares`".to_owned());
    }
    let mut points = given.to_vec();
    let ends = [points[0][0], points[points.len() - 1][0]];
    let end = |p: f64, bound: Option<f64>, side: &str| match bound.filter(|b| b.is_finite()) {
        Some(bound) => Ok([p, bound]),
        None => Err(format!(
            "it has no {side} bound: give the quantile of {p}, too"
        )),
    };
    if ends[0] > 0.0 {
        points.insert(0, end(0.0, column.lower, "lower")?);
    }
    if ends[1] < 1.0 {
        points.push(end(1.0, column.upper, "upper")?);
    }
    for [_, value] in &points {
        within(*value, column, "a quantile")?;
    }
    Ok(points)
}

fn moments(mean: f64, sd: Option<f64>, column: &RecordColumn) -> Result<GuessedLaw, String> {
    if !column.levels.is_empty() {
        return Err("it is a factor: give `shares`".to_owned());
    }
    within(mean, column, "`mean`")?;
    let two = column.is_int
        && column
            .upper
            .zip(column.lower)
            .is_some_and(|(b, a)| b - a == 1.0);
    let (Some(sd), false) = (sd, two) else {
        if let (true, Some(low)) = (two, column.lower) {
            let share = mean - low;
            return Ok(GuessedLaw::Shares(vec![
                [low, 1.0 - share],
                [low + 1.0, share],
            ]));
        }
        return Err("it has `mean` without `sd`".to_owned());
    };
    if let (Some(low), Some(high)) = (column.lower, column.upper) {
        let most = ((mean - low) * (high - mean)).sqrt();
        if sd >= most {
            return Err(format!(
                "values between its bounds with a mean of {mean} have an `sd` below {most:.4}"
            ));
        }
    } else if [column.lower, column.upper].contains(&Some(mean)) {
        return Err("its `mean` must lie inside of its bounds".to_owned());
    }
    Ok(GuessedLaw::Moments { mean, sd })
}

fn within(value: f64, column: &RecordColumn, what: &str) -> Result<(), String> {
    let low = column.lower.unwrap_or(f64::NEG_INFINITY);
    let high = column.upper.unwrap_or(f64::INFINITY);
    if (low..=high).contains(&value) {
        Ok(())
    } else {
        Err(format!(
            "{what} is {value}, and the model declares it from {low} to {high}"
        ))
    }
}

impl Model {
    /// Takes from a codebook its guesses of the distributions of covariates, the columns that the
    /// model does not explain. Records that are made up then have such covariates, and not ones that
    /// are uniform between their bounds: in [`Tables`](crate::Tables), in plans, and in what the
    /// default sampler works out before it asks. Guesses are public, as bounds are: they must not
    /// come from the data. A poor one costs precision and no privacy.
    ///
    /// # Errors
    ///
    /// A guess that does not fit its column; not one for the model's covariates.
    ///
    /// ```
    /// use dpm::{Codebook, Constants, Model, Tables};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("codebook.yaml");
    /// std::fs::write(&path, "columns: {gain: {zeros: 0.9, mean: 12000, sd: 9000}}")?;
    /// let model = Model::from_source(
    ///     "record { real<lower=0, upper=99999> gain; int<lower=0, upper=1> y; }
    ///      parameters { real a; }
    ///      model { a ~ normal(0, 1); y ~ bernoulli_logit(a * log1p(gain) / 10); }",
    ///     &Constants::none(),
    /// )?
    /// .with_codebook(&Codebook::from_file(&path)?)?;
    /// let table = Tables::from_prior(&model, 1000)?.table(0);
    /// let (_, gains) = table.columns().next().unwrap();
    /// assert!(gains.iter().filter(|gain| **gain == 0.0).count() > 850);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_codebook(mut self, codebook: &Codebook) -> Result<Model, CodebookError> {
        let mut found = Map::new();
        let outcomes: Vec<usize> = self.outcomes.iter().map(|o| o.column).collect();
        for (c, column) in self.columns.iter_mut().enumerate() {
            // `x.2` has the guess of `x` if it has none of its own.
            let guess = (codebook.guess(&column.name)).or(codebook.guess(&column.variable));
            let Some(guess) = guess.filter(|_| !outcomes.contains(&c)) else {
                continue;
            };
            let fitting = guessed(guess, column).map_err(|why| {
                CodebookError(format!(
                    "the codebook's guess of `{}` does not fit the model: {why}",
                    column.name
                ))
            })?;
            column.guess = Some(fitting);
            found.insert(column.name.clone(), guess.json());
        }
        if found.is_empty() {
            return Err(CodebookError(
                "the codebook has no guess (`mean` and `sd`, `quantiles`, `shares` or `zeros`) of a column that the model declares and does not explain".to_owned(),
            ));
        }
        self.codebook = Some(json!({ "columns": found }).to_string());
        Ok(self)
    }

    /// The same with the guesses that [`Model::codebook`] of a model like it has kept.
    pub(crate) fn with_kept_codebook(self, kept: Option<&str>) -> Result<Model, CodebookError> {
        let Some(text) = kept else {
            return Ok(self);
        };
        let codebook = Codebook::read(text).map_err(|wrong| CodebookError(wrong.message))?;
        self.with_codebook(&codebook)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Constants;

    fn guess_of(entry: &str) -> Result<Guessed, String> {
        let source = "record { int<lower=0, upper=1> y; real<lower=0, upper=10> x; real z;
              real<lower=0> w; int<lower=0, upper=4> k; int<lower=0, upper=1> b;
              factor(\"lo\", \"hi\") f; array[2] real<lower=-1, upper=1> v; }
            parameters { real a; }
            model { a ~ normal(0, 1);
              y ~ bernoulli_logit(a * (x + z + w + k + b + f + v[1] + v[2])); }";
        let model = Model::from_source(source, &Constants::none()).unwrap();
        let book = Codebook::read(&format!("columns: {{{entry}}}")).unwrap();
        let model = model.with_codebook(&book).map_err(|e| e.to_string())?;
        let kept = Model::from_source(source, &Constants::none()).unwrap();
        let kept = kept.with_kept_codebook(model.codebook.as_deref()).unwrap();
        assert_eq!(model.columns, kept.columns);
        Ok(model.columns.iter().find_map(|c| c.guess.clone()).unwrap())
    }

    fn law(entry: &str) -> GuessedLaw {
        guess_of(entry)
            .unwrap_or_else(|e| panic!("{entry}: {e}"))
            .law
    }

    #[test]
    fn guesses_fit_their_columns() {
        let moments = GuessedLaw::Moments { mean: 2.0, sd: 1.0 };
        assert_eq!(law("x: {mean: 2, sd: 1}"), moments);
        assert_eq!(
            law("v: {mean: 0.5, sd: 0.25}, v.1: {mean: 0, sd: 0.25}"),
            GuessedLaw::Moments {
                mean: 0.0,
                sd: 0.25
            }
        );
        assert_eq!(
            law("x: {quantiles: {0.5: 1, 0.9: 2}}"),
            GuessedLaw::Quantiles(vec![[0.0, 0.0], [0.5, 1.0], [0.9, 2.0], [1.0, 10.0]])
        );
        let two = GuessedLaw::Shares(vec![[0.0, 0.75], [1.0, 0.25]]);
        assert_eq!(law("b: {mean: 0.25}"), two);
        assert_eq!(law("b: {shares: {true: 0.25}}"), two);
        let factor = GuessedLaw::Shares(vec![[1.0, 0.75], [2.0, 0.25]]);
        assert_eq!(law("f: {shares: {hi: 0.25}}"), factor);
        let rest = law("k: {shares: {0: 0.5, 1: 0.2}}");
        let GuessedLaw::Shares(rest) = rest else {
            panic!("{rest:?}")
        };
        assert!((rest[4][1] - 0.1).abs() < 1e-12, "{rest:?}");
    }

    #[test]
    fn what_does_not_fit_is_said() {
        for (entry, said) in [
            ("x: {mean: 20, sd: 1}", "from 0 to 10"),
            ("x: {mean: 5, sd: 5}", "below 5.0"),
            ("x: {mean: 5}", "without `sd`"),
            ("w: {mean: 0, sd: 1}", "inside"),
            ("x: {shares: {1: 0.5}}", "factors and ints"),
            ("k: {shares: {9: 0.5}}", "`9` is none of its values"),
            ("f: {shares: {mid: 0.5}}", "`mid` is none of its values"),
            ("f: {mean: 1.5, sd: 0.2}", "give `shares`"),
            ("f: {zeros: 0.5}", "no zeros"),
            ("b: {shares: {0: 0.5, 1: 0.2}}", "and not to 1"),
            ("x: {quantiles: {0.1: 3, 0.5: 11}}", "from 0 to 10"),
            ("w: {quantiles: {0.1: 3, 0.5: 11}}", "no upper bound"),
            ("z: {quantiles: {0.1: 3, 1: 11}}", "no lower bound"),
            // The outcome is drawn from the model, and nothing else has a guess.
            ("y: {mean: 0.5}, q: {mean: 1, sd: 1}", "no guess"),
            ("x: {type: float, lower: 0}", "no guess"),
        ] {
            let answer = guess_of(entry);
            let right = answer.as_ref().is_err_and(|e| e.contains(said));
            assert!(right, "{entry}: {answer:?}");
        }
    }
}
