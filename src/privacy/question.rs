//! The questions that the vault asks of its records: points and bounds go in, a vector of integers comes
//! out, a sum over records. Whoever holds some of the records can answer for these.

use serde::{Deserialize, Serialize};

use super::expectation::Expected;
use super::gradient::GradientScale;
use super::statistic::{Look, Statistic};
use super::tally::Tally;
use super::vault::Table;
use crate::density::{Censored, Density, Hazard, Law, Sight};

/// A question. It holds public numbers alone.
#[derive(Serialize)]
pub(super) enum Question<'a> {
    /// The sum of clipped vectors, in lattice units.
    Vectors {
        look: &'a Look<'a>,
        scale: GradientScale,
    },
    /// The sums of a tally over the log-ratios between two points.
    Ratios {
        points: [&'a [f64]; 2],
        temperature: f64,
        tally: Tally,
    },
}

impl Question<'_> {
    pub fn answer(&self, density: &Density, table: &Table) -> Vec<i128> {
        match self {
            Question::Vectors { look, scale } => table.clipped_sum(density, look, scale),
            Question::Ratios {
                points,
                temperature,
                tally,
            } => (table.tallied(density, *points, *temperature, *tally)).to_vec(),
        }
    }
}

/// A question as it is read: [`Question`], variant by variant and field by field.
#[derive(Deserialize)]
pub(super) enum Received {
    Vectors {
        look: ReceivedLook,
        scale: GradientScale,
    },
    Ratios {
        points: [Vec<f64>; 2],
        temperature: f64,
        tally: Tally,
    },
}

#[derive(Deserialize)]
pub(super) struct ReceivedLook {
    sight: Sight,
    statistic: Statistic,
    centre: Option<Vec<f64>>,
    expected: Option<ReceivedExpected>,
    inner_clip: f64,
    unit: f64,
}

#[derive(Deserialize)]
enum ReceivedExpected {
    Law { law: MadeAt, sight: Sight },
    Hazard { hazard: Censored, sight: Sight },
    Differences { sights: Vec<[Sight; 2]>, step: f64 },
}

/// The centre and the seed of a law.
type MadeAt = (Vec<f64>, u64);

/// The law that was asked about last: most questions are about the same.
#[derive(Default)]
pub(super) struct Laws<'a>(Option<(MadeAt, Law<'a>)>);

impl<'a> Laws<'a> {
    /// `None`: the model has no law there.
    fn at(&mut self, made_at: MadeAt, density: &'a Density) -> Option<&Law<'a>> {
        if self.0.as_ref().is_none_or(|(known, _)| *known != made_at) {
            let law = Law::of(density, &made_at.0, made_at.1).ok()?;
            self.0 = Some((made_at, law));
        }
        self.0.as_ref().map(|(_, law)| law)
    }
}

impl Received {
    /// `None`: the question is about a law that the model has not.
    pub fn answer<'a>(
        self,
        density: &'a Density,
        laws: &mut Laws<'a>,
        table: &Table,
    ) -> Option<Vec<i128>> {
        let (look, scale) = match self {
            Received::Ratios {
                points: [from, to],
                temperature,
                tally,
            } => {
                let question = Question::Ratios {
                    points: [&from, &to],
                    temperature,
                    tally,
                };
                return Some(question.answer(density, table));
            }
            Received::Vectors { look, scale } => (look, scale),
        };
        let expected = match look.expected {
            None => None,
            Some(ReceivedExpected::Differences { sights, step }) => {
                Some(Expected::Differences { sights, step })
            }
            Some(ReceivedExpected::Hazard { hazard, sight }) => Some(Expected::Hazard {
                hazard: Hazard::new(density, hazard),
                sight,
            }),
            Some(ReceivedExpected::Law { law, sight }) => Some(Expected::Law {
                law: laws.at(law, density)?,
                sight,
            }),
        };
        let look = Look {
            sight: look.sight,
            statistic: look.statistic,
            centre: look.centre.as_deref(),
            expected: expected.as_ref(),
            inner_clip: look.inner_clip,
            unit: look.unit,
        };
        let question = Question::Vectors { look: &look, scale };
        Some(question.answer(density, table))
    }
}
