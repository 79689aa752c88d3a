//! Synthetic tables: records drawn from the model at released draws of a run.
//!
//! Each table has one draw of its own, so that several of them differ as much as the posterior
//! says: multiple imputation of a whole table (Raghunathan, Reiter and Rubin 2003). What is read
//! is what the run has released, so that a table costs no privacy.

mod about;

pub(crate) use about::{About, OfCovariates};

use rand::RngExt;
use serde::Serialize;

use super::initial::point_of_draw;
use crate::density::{Density, PublicSample, Simulator};
use crate::model::RecordColumn;
use crate::output::Run;
use crate::sampler::public_rng;

/// The sources of synthetic tables.
pub(crate) struct Synthesis<'a> {
    pub run: &'a Run,
    /// The run's own model.
    pub density: &'a Density,
    pub public: Option<&'a PublicSample>,
    /// Whether guesses of covariates come from a private release of the data's.
    pub released: bool,
    /// Rows of each table.
    pub rows: usize,
    pub seed: u64,
}

/// The draw that a table comes from: chain and draw are counted from 1.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Drawn {
    pub chain: usize,
    pub draw: usize,
    #[serde(skip)]
    theta: Vec<f64>,
}

/// Where the values of a column come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Origin {
    /// Drawn from the likelihood at the released draw.
    PosteriorPredictive,
    /// Whole rows of the public sample.
    PublicSample,
    /// The guess of a codebook.
    Guess,
    /// The column's own distribution, released with noise.
    PrivateMarginal,
    /// Between the declared bounds.
    Uniform,
    /// A normal or an exponential distribution, where a bound is missing.
    StandIn,
}

impl Synthesis<'_> {
    /// Where the values of each column of the record come from.
    pub fn origins(&self) -> Vec<Origin> {
        let model = self.density.model();
        let from_sample = |c: usize| {
            let columns = self.public.map(|public| &public.columns);
            columns.is_some_and(|columns| columns.get(c).is_some_and(Option::is_some))
        };
        let finite = |bound: Option<f64>| bound.is_some_and(f64::is_finite);
        let origin = |(c, column): (usize, &RecordColumn)| {
            if model.outcomes.iter().any(|outcome| outcome.column == c) {
                Origin::PosteriorPredictive
            } else if from_sample(c) {
                Origin::PublicSample
            } else if column.guess.is_some() {
                if self.released {
                    Origin::PrivateMarginal
                } else {
                    Origin::Guess
                }
            } else if finite(column.lower) && finite(column.upper) {
                Origin::Uniform
            } else {
                Origin::StandIn
            }
        };
        model.columns.iter().enumerate().map(origin).collect()
    }

    /// One draw for each of `tables` tables: of all draws, chain after chain, one at random from
    /// each of as many equal parts.
    ///
    /// # Errors
    ///
    /// Fewer draws than tables; a draw that is no point of the model.
    pub fn draws(&self, tables: usize) -> Result<Vec<Drawn>, String> {
        let chains = self.run.draws().chains();
        let places: Vec<(usize, usize)> = (0..chains.len())
            .flat_map(|chain| (0..chains[chain].len()).map(move |draw| (chain, draw)))
            .collect();
        if places.len() < tables {
            return Err(format!(
                "each table needs a draw of its own, and the run has {} of the {tables} draws: ask for fewer --tables",
                places.len()
            ));
        }
        let mut rng = public_rng(self.seed, 0);
        let part =
            |table: usize| table * places.len() / tables..(table + 1) * places.len() / tables;
        (0..tables)
            .map(|table| {
                let (chain, draw) = places[rng.random_range(part(table))];
                Ok(Drawn {
                    chain: chain + 1,
                    draw: draw + 1,
                    theta: point_of_draw(
                        self.density,
                        self.run.draws().names(),
                        &chains[chain][draw],
                    )
                    .map_err(|e| {
                        format!(
                            "draw {} of chain {} does not fit the run's model: {e}",
                            draw + 1,
                            chain + 1
                        )
                    })?,
                })
            })
            .collect()
    }

    /// The values of table `number` (counted from 0), column by column as the record declares them.
    pub fn table(&self, number: usize, drawn: &Drawn) -> Vec<Vec<f64>> {
        let simulator = Simulator::new(self.density).precise();
        let mut rng = public_rng(self.seed, number + 1);
        simulator.table(&drawn.theta, self.rows, self.public, &mut rng)
    }
}
