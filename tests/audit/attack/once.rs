//! Releases that are made once, outside of runs: the distributions of covariates (`dpm synth
//! --covariates`) and the scores of runs (`dpm score`), planned and asked as the commands do.

use dpm::Model;
use dpm::accounting::{Event, Relation};
use dpm::testing::analysis::{Covariates, Score};
use dpm::testing::privacy::{NotPrivate, PrivateRng};

use super::neighbours::{MODELS, Table, model, nothing, ugly_pair};
use super::record_play::Played;
use super::releases::{Answer, answers_are_noise};
use super::{Broken, Lcg};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Covariates,
    Score,
}

impl Kind {
    pub const ALL: [Kind; 2] = [Kind::Covariates, Kind::Score];

    fn models(self) -> Vec<Model> {
        // Of `MODELS`, those whose covariates have bounds.
        const BOUNDED: [&str; 3] = [
            "record { real<lower=-2, upper=3> x; int<lower=1, upper=3> k; real<lower=0, upper=1> z;
                int<lower=0, upper=1> y; }
             parameters { real a; real b; }
             model { a ~ normal(0, 1); y ~ bernoulli_logit(a + b * x + k * z); }",
            MODELS[1],
            MODELS[3],
        ];
        let sources = match self {
            Kind::Covariates => &BOUNDED[..],
            Kind::Score => &MODELS[..],
        };
        sources.iter().map(|source| model(source)).collect()
    }

    /// With random public numbers; `records`: their number where that is public.
    fn planned(
        self,
        rng: &mut Lcg,
        model: &Model,
        relation: Relation,
        records: Option<u64>,
    ) -> Planned {
        let epsilon = rng.of(&[0.3, 3.0, 50.0]);
        match self {
            Kind::Covariates => {
                Planned::Covariates(Covariates::new(model, epsilon, relation).expect("a plan"))
            }
            Kind::Score => {
                // Now and then far out, and about as often bounds that hardly any record is within.
                let width = rng.of(&[1.0, 4.0, 60.0]);
                let mut draws = || {
                    let point = |_| {
                        let coordinate = |_| width * (rng.uniform() - 0.5);
                        (0..model.dimension).map(coordinate).collect()
                    };
                    (0..3).map(point).collect::<Vec<Vec<f64>>>()
                };
                let mut runs = vec![draws()];
                runs.push(draws());
                runs.truncate(1 + rng.below(2));
                let clip = rng.of(&[[-3.0, 0.5], [-1.0, -0.999], [-700.0, 0.0]]);
                let bounds = (clip, rng.below(2) == 0);
                let budget = (epsilon, relation);
                // Replicas of a record's outcome take most of the time.
                let statistic = rng.of(&["fmin(fmax(y, -1), 2)", "y == 1"]).to_owned();
                let statistics = if rng.below(10) == 0 {
                    vec![statistic]
                } else {
                    Vec::new()
                };
                let score = Score::new(model, runs, &statistics, bounds, records, budget);
                Planned::Score(score.expect("a plan"), statistics.is_empty())
            }
        }
    }
}

enum Planned {
    Covariates(Covariates),
    /// And whether it depends in no way on the places of records: replicas have random bits by them.
    Score(Score, bool),
}

type Asks<'a> = Box<dyn Fn(&mut PrivateRng) -> Result<Answer, Broken> + 'a>;

impl Planned {
    fn event(&self) -> &Event {
        match self {
            Planned::Covariates(planned) => planned.event(),
            Planned::Score(planned, _) => planned.event(),
        }
    }

    /// A function that asks about a table.
    fn asks(&self, table: &Table, model: &Model) -> Asks<'_> {
        let (table, event) = (table.clone(), self.event());
        match self {
            Planned::Covariates(planned) => {
                let columns = Covariates::columns(model);
                Box::new(move |rng| {
                    Answer::planned(event, rng, |charge, rng| {
                        let sums = planned.sums(table.loaded(&columns), charge, rng);
                        sums.expect("a release")
                    })
                })
            }
            Planned::Score(planned, _) => {
                let table = table.clone();
                let columns = model.columns.clone();
                let vaults = planned.vaults(|| table.loaded(&columns));
                let vaults = vaults.expect("vaults");
                Box::new(move |rng| {
                    Answer::planned(event, rng, |charge, rng| {
                        let held_out = (&vaults[..], table.loaded(&columns));
                        planned.sums(held_out, charge, rng).expect("a release")
                    })
                })
            }
        }
    }
}

/// Record-play of `pairs` pairs of ugly neighbours.
///
/// # Errors
///
/// Of the first pair that moves an answer by more than is charged, or that shows in anything but the
/// answer.
pub fn play(
    kind: Kind,
    relation: Relation,
    shared_units: bool,
    pairs: u64,
) -> Result<Played, Broken> {
    let mut rng = Lcg::new(71 + 2 * kind as u64 + u64::from(shared_units));
    let models = kind.models();
    let mut played = Played::default();
    for pair in 0..pairs {
        let model = &models[pair as usize % models.len()];
        let (one, other) = ugly_pair(&mut rng, model, relation, shared_units);
        // Blanks are counted where all else is known.
        let known = relation == Relation::Substitute && rng.below(3) > 0;
        let records = known.then_some(one.records());
        let planned = kind.planned(&mut rng, model, relation, records);
        let broken = |why: Broken| Broken(format!("{kind:?}, pair {pair}: {why}"));
        // The rows of a unit may be in any order whatever is asked.
        let tables = match (&planned, shared_units) {
            (Planned::Score(_, false), false) => [one.clone(), other, one],
            _ => [
                one.clone(),
                other.shuffled(&mut rng),
                one.shuffled(&mut rng),
            ],
        };
        let mut answers = Vec::with_capacity(3);
        for table in &tables {
            // Identical randomness.
            let mut noise = PrivateRng::insecure(pair, NotPrivate::acknowledged());
            answers.push(planned.asks(table, model)(&mut noise).map_err(broken)?);
        }
        let [a, b, same] = &answers[..] else {
            unreachable!("three tables")
        };
        played.compare([a, b, same]).map_err(broken)?;
    }
    Ok(played)
}

/// Asks so often about rows of which none counts, for each model, and compares the variance of the
/// answers with what is charged: a false alarm has probability below 1e-9 for each, and with 10,000
/// numbers a sigma 10% off is 8 deviations farther ([`answers_are_noise`]).
///
/// # Errors
///
/// There is less noise than was charged, or more.
pub fn noise_is_as_charged(kind: Kind, relation: Relation, times: u64) -> Result<(), Broken> {
    let mut rng = Lcg::new(5);
    for model in kind.models() {
        let planned = kind.planned(&mut rng, &model, relation, None);
        answers_are_noise(times, planned.asks(&nothing(&model), &model))?;
    }
    Ok(())
}
