//! Public guesses of the distributions of covariates, for records that are made up.

use serde_json::Value;

use super::Model;

/// A guess that fits its column.
#[derive(Debug, Clone, PartialEq)]
pub struct Guessed {
    /// The share of zeros beside the other values.
    pub zeros: f64,
    /// How the other values are distributed.
    pub law: GuessedLaw,
}

#[derive(Debug, Clone, PartialEq)]
pub enum GuessedLaw {
    /// As of a column without a guess.
    Unknown,
    /// Between the bounds, with this mean and standard deviation.
    Moments { mean: f64, sd: f64 },
    /// Straight lines between these points of the distribution function: probabilities with values.
    Quantiles(Vec<[f64; 2]>),
    /// Values with their shares, which add up to 1.
    Shares(Vec<[f64; 2]>),
}

impl Model {
    /// Whether there is a guess of a covariate.
    pub(crate) fn has_guesses(&self) -> bool {
        self.codebook.is_some()
    }

    /// The guesses of covariates, for `config.json`: null without any.
    pub(crate) fn guesses(&self) -> Value {
        let kept = self.codebook.as_deref().map(serde_json::from_str::<Value>);
        kept.and_then(Result::ok)
            .map_or(Value::Null, |mut kept| kept["columns"].take())
    }
}
