//! A public guess of a column's distribution, as a codebook has it.

#![expect(
    clippy::result_large_err,
    reason = "there is one error, and it ends the command"
)]

use serde_json::{Map, Value, json};

use super::yaml::{Node, wrong};
use crate::syntax::Diagnostic;

/// A guess of how the values of a column are distributed. It comes from what is publicly known, as
/// bounds do, and not from the data.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Guess {
    pub(crate) mean: Option<f64>,
    pub(crate) sd: Option<f64>,
    /// Probabilities with their quantiles; both ascend.
    pub(crate) quantiles: Vec<[f64; 2]>,
    /// Values, or words of a factor, with their shares.
    pub(crate) shares: Vec<(String, f64)>,
    /// The share of zeros. The rest is about the other values then.
    pub(crate) zeros: Option<f64>,
}

/// The keys of a column that make up its guess.
pub(super) const KEYS: [&str; 5] = ["mean", "sd", "quantiles", "shares", "zeros"];

impl Guess {
    /// Takes in the value of one of the [`KEYS`].
    pub(super) fn read(&mut self, key: &str, value: &Node<'_>) -> Result<(), Diagnostic> {
        match key {
            "mean" => self.mean = Some(value.number()?),
            "sd" => {
                let sd = value.number()?;
                if sd <= 0.0 {
                    return Err(wrong(value.place(), "`sd` must be above 0"));
                }
                self.sd = Some(sd);
            }
            "zeros" => self.zeros = Some(share(value)?),
            "shares" => {
                for field in value.fields(&[])? {
                    self.shares.push((field.key, share(&field.value)?));
                }
                let sum: f64 = self.shares.iter().map(|(_, share)| share).sum();
                if sum > 1.0 + 1e-9 {
                    let message = format!("these shares add up to {sum}, which is more than 1");
                    return Err(wrong(value.place(), message));
                }
            }
            _ => {
                for field in value.fields(&[])? {
                    let probability = field.key.parse().ok();
                    let probability = probability.filter(|p| (0.0..=1.0).contains(p));
                    let Some(probability) = probability else {
                        let message = format!("`{}` is not a probability", field.key);
                        return Err(wrong(field.place, message)
                            .help("write `quantiles: {0.05: 20, 0.5: 38, 0.95: 65}`"));
                    };
                    self.quantiles.push([probability, field.value.number()?]);
                }
                let ascend = |w: &[[f64; 2]]| w[0][0] < w[1][0] && w[0][1] <= w[1][1];
                if self.quantiles.len() < 2 || !self.quantiles.windows(2).all(ascend) {
                    let message = "expected two quantiles or more, in ascending order";
                    return Err(wrong(value.place(), message));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Guess::default()
    }

    /// A part that is missing or too much, whatever the column is.
    pub(super) fn contradiction(&self) -> Option<String> {
        let forms = [
            self.mean.is_some() || self.sd.is_some(),
            !self.quantiles.is_empty(),
            !self.shares.is_empty(),
        ];
        if forms.iter().filter(|given| **given).count() > 1 {
            return Some(
                "its distribution is given twice: give `mean` and `sd`, or `quantiles`, or `shares`"
                    .to_owned(),
            );
        }
        if self.zeros.is_some() && !self.shares.is_empty() {
            return Some("it has `zeros` and `shares`: give the share of 0 among them".to_owned());
        }
        if self.sd.is_some() && self.mean.is_none() {
            return Some("it has `sd` without `mean`".to_owned());
        }
        let most = self.shares.iter().map(|(_, share)| *share);
        let most = most.chain(self.zeros).fold(0.0, f64::max);
        let [first, .., last] = self.quantiles.as_slice() else {
            return (most == 1.0).then(|| ONE_VALUE.to_owned());
        };
        (most == 1.0 || first[1] == last[1]).then(|| ONE_VALUE.to_owned())
    }

    /// Mean and standard deviation, where it gives those of all values.
    pub(super) fn moments(&self) -> Option<(f64, f64)> {
        self.mean.zip(self.sd).filter(|_| self.zeros.is_none())
    }

    /// As it stands in a codebook.
    pub(crate) fn json(&self) -> Value {
        let mut entry = Map::new();
        for (key, value) in [("mean", self.mean), ("sd", self.sd), ("zeros", self.zeros)] {
            if let Some(value) = value {
                entry.insert(key.to_owned(), json!(value));
            }
        }
        let quantiles = self.quantiles.iter();
        let quantiles: Map<_, _> = quantiles.map(|[p, x]| (p.to_string(), json!(x))).collect();
        let shares = self.shares.iter();
        let shares: Map<_, _> = shares
            .map(|(word, share)| (word.clone(), json!(share)))
            .collect();
        for (key, map) in [("quantiles", quantiles), ("shares", shares)] {
            if !map.is_empty() {
                entry.insert(key.to_owned(), Value::Object(map));
            }
        }
        Value::Object(entry)
    }
}

const ONE_VALUE: &str =
    "all its values would be the same: a guess is of how values differ, so leave it out";

fn share(value: &Node<'_>) -> Result<f64, Diagnostic> {
    let share = value.number()?;
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err(wrong(value.place(), "expected a share between 0 and 1"))
    }
}
