//! How many iterations each chain makes.

use serde::{Deserialize, Serialize};

use super::error::Error;
use crate::sampler::{Algorithm, Iterations, Plan};

/// Warm-up and sampling iterations of one chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lengths {
    pub num_warmup: u64,
    pub num_samples: u64,
}

/// The iterations that are asked for, as far as they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AskedLengths {
    /// Those that come first and are discarded.
    pub num_warmup: Option<u64>,
    pub num_samples: Option<u64>,
    /// All together, in place of `num_samples`.
    pub iterations: Option<AskedIterations>,
}

/// `--iterations N|max`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AskedIterations {
    Count(u64),
    /// As many as the budget allows.
    Max,
}

/// More than this cannot be counted.
const MOST: u64 = 1 << 50;

impl AskedLengths {
    /// The iterations of each chain; `None` where the budget decides.
    ///
    /// # Errors
    ///
    /// None are left to keep, or there are too many to be counted.
    pub fn settle(
        &self,
        default_samples: u64,
        algorithm: &Algorithm,
    ) -> Result<Option<Lengths>, Error> {
        let warmup = warmup_per_ten(algorithm);
        let lengths = match self.iterations {
            Some(AskedIterations::Max) => return Ok(None),
            Some(AskedIterations::Count(total)) => self.split(total, warmup)?,
            None => {
                let num_samples = self.num_samples.unwrap_or(default_samples);
                Lengths {
                    num_warmup: self.num_warmup.unwrap_or(part(num_samples, warmup, 10)),
                    num_samples,
                }
            }
        };
        if lengths.num_samples == 0 {
            return Err(Error::Settings("`num_samples` must be at least 1".into()));
        }
        if lengths.total() > MOST {
            return Err(Error::Settings(
                "`num_samples` and `num_warmup` are too large to be counted".into(),
            ));
        }
        Ok(Some(lengths))
    }

    /// The iterations of a plan whose number the budget has decided.
    pub fn of_plan(&self, plan: &Plan) -> Result<Lengths, Error> {
        self.split(plan.iterations_per_chain, 10)
    }

    fn split(&self, total: u64, warmup: u64) -> Result<Lengths, Error> {
        let num_warmup = self.num_warmup.unwrap_or(part(total, warmup, 10 + warmup));
        match total.checked_sub(num_warmup) {
            Some(num_samples) if num_samples > 0 => Ok(Lengths {
                num_warmup,
                num_samples,
            }),
            _ => Err(Error::Settings(format!(
                "{total} iterations leave nothing after a warm-up of {num_warmup}"
            ))),
        }
    }
}

impl Lengths {
    fn total(self) -> u64 {
        self.num_warmup.saturating_add(self.num_samples)
    }

    /// For the planner.
    pub fn planned(lengths: Option<Lengths>) -> Iterations {
        lengths.map_or(Iterations::Max, |lengths| {
            Iterations::Fixed(lengths.total())
        })
    }
}

/// Warm-up iterations for every ten that are kept.
fn warmup_per_ten(algorithm: &Algorithm) -> u64 {
    if !algorithm.learns() {
        10
    } else if algorithm.travels() {
        1
    } else {
        5
    }
}

/// `share` of every `of` iterations.
fn part(iterations: u64, share: u64, of: u64) -> u64 {
    (u128::from(iterations) * u128::from(share) / u128::from(of)) as u64
}
