//! Ranks as threads.

use std::sync::{Arc, Barrier, Mutex};
use std::thread::scope;

use super::message::{gaps, numbers};
use super::*;
use crate::density::{Censored, Frame, Hazard, Law};
use crate::model::{Constants, Model};
use crate::privacy::question::Question;
use crate::privacy::statistic::{Look, Statistic};
use crate::privacy::subsampling::Batch;
use crate::privacy::tally::Tally;
use crate::privacy::{Expected, GradientScale, PrivateData, Spilling};

/// A link between threads.
struct Threads {
    rank: usize,
    shared: Arc<Shared>,
}

struct Shared {
    barrier: Barrier,
    slots: Mutex<Vec<Vec<u8>>>,
}

impl Threads {
    fn of(ranks: usize) -> Vec<Box<dyn Link>> {
        let shared = Arc::new(Shared {
            barrier: Barrier::new(ranks),
            slots: Mutex::new(vec![Vec::new(); ranks]),
        });
        let link = |rank| {
            let shared = Arc::clone(&shared);
            Box::new(Threads { rank, shared }) as Box<dyn Link>
        };
        (0..ranks).map(link).collect()
    }

    /// The messages of all ranks.
    fn exchanged(&self, message: Vec<u8>) -> Vec<Vec<u8>> {
        self.shared.slots.lock().unwrap()[self.rank] = message;
        self.shared.barrier.wait();
        let all = self.shared.slots.lock().unwrap().clone();
        self.shared.barrier.wait();
        all
    }
}

impl Link for Threads {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.shared.slots.lock().unwrap().len()
    }

    fn broadcast(&mut self, message: Vec<u8>) -> Result<Vec<u8>, LinkError> {
        Ok(self.exchanged(message).swap_remove(0))
    }

    fn gather(&mut self, message: Vec<u8>) -> Result<Vec<Vec<u8>>, LinkError> {
        Ok(self.exchanged(message))
    }

    fn sum(&mut self, numbers: Vec<u64>) -> Result<Vec<u64>, LinkError> {
        let all = self.exchanged(packed(&numbers)?);
        let mut sum = vec![0u64; numbers.len()];
        for one in all {
            for (sum, x) in sum.iter_mut().zip(unpacked::<Vec<u64>>(&one)?) {
                *sum = sum.wrapping_add(x);
            }
        }
        Ok(sum)
    }

    fn abort(&mut self) {
        panic!("rank {} has ended the run", self.rank);
    }
}

/// Runs `lead` with a vault over ranks that load what `load` gives each, and returns what it gives
/// and the errors of all ranks.
fn led<T>(
    ranks: usize,
    load: impl Fn(Share) -> Result<Vault, String> + Sync,
    lead: impl FnOnce(&Vault) -> T,
) -> (Option<T>, Vec<Option<RanksError>>) {
    let mut links = Threads::of(ranks).into_iter();
    let first = links.next().unwrap();
    let load = &load;
    scope(|scope| {
        let others: Vec<_> = links
            .map(|link| {
                scope.spawn(move || {
                    let mut follower = Follower::new(link);
                    let order = follower.order().unwrap();
                    assert_eq!(order.as_deref(), Some(&b"load"[..]));
                    let share = Share {
                        rank: follower.rank(),
                        ranks,
                    };
                    follower.serve(load(share)).err()
                })
            })
            .collect();
        let mut leader = Leader::new(first);
        leader.order(b"load").unwrap();
        let vault = leader.join(load(Share { rank: 0, ranks }));
        let (result, error) = match vault {
            Ok(vault) => (Some(lead(&vault)), None),
            Err(error) => (None, Some(error)),
        };
        let others = others.into_iter().map(|thread| thread.join().unwrap());
        (result, std::iter::once(error).chain(others).collect())
    })
}

const GROUPS: &str = "record { real<lower=-9, upper=9> y; real<lower=-9, upper=9> x; }
     parameters { vector[2] b; real<lower=0> s; }
     model { b ~ normal(0, 1); s ~ normal(0, 1); y ~ normal(b[1] + b[2] * x, s); }";

fn model(source: &str) -> Model {
    Model::from_source(source, &Constants::none()).unwrap()
}

const ROWS: usize = 5000;

/// The rows that a rank has of all; the last of several has none. Every seventh row has no y, and
/// some units no other row.
fn part(share: Option<Share>, by_unit: bool) -> PrivateData {
    let rows = share.map_or(0..ROWS, |share| match share.ranks - 1 {
        0 => 0..ROWS,
        with_rows => {
            let end = |rank: usize| (ROWS / 5 * rank.min(with_rows) / with_rows) * 5;
            end(share.rank)..end(share.rank + 1)
        }
    });
    let number = |i: usize, by: usize| ((i * by) % 1009) as f64 / 100.0 - 5.0;
    let y: Vec<Option<f64>> = (rows.clone())
        .map(|i| (i % 7 > 0 && i / 5 % 3 > 0).then(|| number(i, 7919)))
        .collect();
    let x: Vec<f64> = rows.clone().map(|i| number(i, 104_729)).collect();
    let unit: Vec<i64> = rows.map(|i| (i / 5) as i64).collect();
    let data = PrivateData::from_columns([("y", y)]).column("x", x);
    let data = match share {
        Some(share) => data.share(share),
        None => data,
    };
    if by_unit {
        data.column("id", unit).by_unit("id")
    } else {
        data
    }
}

fn bound(data: &PrivateData) -> Result<Vault, String> {
    data.bind(&model(GROUPS)).map_err(|error| error.to_string())
}

/// The answers to questions of every kind, with all records and with batches.
fn answers(vault: &Vault) -> Vec<Vec<i128>> {
    let density = vault.density();
    let (from, to) = ([0.1, -0.2, 0.3], [0.2, 0.1, 0.0]);
    let law = Law::of(density, &[0.0; 3], 1).unwrap();
    let (space, frame) = (density.parameters(), Frame::about(from.to_vec()));
    let by_law = Expected::by_law(&law, &space, &from, &frame);
    let by_differences = Expected::by_differences(density, &space, &frame, 0.01);
    // No time and no status, but numbers all the same.
    let columns = Censored {
        time: 0,
        status: 1,
        event: 1,
    };
    let hazard = Hazard::new(density, columns);
    let by_hazard = Expected::by_hazard(hazard, &space, &from, &frame);
    let mut answers = Vec::new();
    let batch = Batch::of(&(0..vault.n()).filter(|i| i % 3 == 1).collect::<Vec<_>>());
    let batches = || [None, Some(Batch::of(&batch.members().collect::<Vec<_>>()))];
    for (statistic, expected) in [
        (Statistic::Gradient, None),
        (Statistic::Products, None),
        (Statistic::GradientLengths, None),
        (Statistic::Centred, Some(&by_law)),
        (Statistic::Slope, Some(&by_law)),
        (Statistic::Information, Some(&by_law)),
        (Statistic::Centred, Some(&by_hazard)),
        (Statistic::Information, Some(&by_hazard)),
        (Statistic::Curvature, Some(&by_differences)),
    ] {
        let look = Look {
            centre: (statistic == Statistic::Products).then_some(&to[..]),
            expected,
            inner_clip: 2.0,
            ..Look::new(density.sight(&space, &from, &frame), statistic)
        };
        let scale = statistic.scale(1.5, 2, 5.0, 3).unwrap();
        for batch in batches() {
            let look = &look;
            let question = Question::Vectors { look, scale };
            answers.push(vault.ask(&question, batch).unwrap());
        }
    }
    let bound = 1 << 50;
    for tally in [
        Tally::Ratio { bound },
        Tally::moments(bound),
        Tally::Curve {
            bound,
            slope: 1.0,
            curvature: 1e-3,
            limit: 1 << 60,
        },
    ] {
        for batch in batches() {
            let question = Question::Ratios {
                points: [&from, &to],
                temperature: 0.5,
                tally,
            };
            answers.push(vault.ask(&question, batch).unwrap());
        }
    }
    answers
}

// If it failed: a run on several machines would not be the run of one, or its sums not those that
// the proofs are about.
#[test]
fn answers_are_the_same_to_the_bit_for_any_number_of_ranks() {
    for by_unit in [false, true] {
        let alone = bound(&part(None, by_unit)).unwrap();
        assert_eq!(alone.n(), if by_unit { ROWS / 5 } else { ROWS });
        let expected = answers(&alone);
        assert!(expected.iter().all(|sum| sum.iter().any(|&x| x != 0)));
        for ranks in 1..=4 {
            let load = |share| bound(&part(Some(share), by_unit));
            let (found, errors) = led(ranks, load, |vault| (vault.n(), answers(vault)));
            assert_eq!(errors, vec![None; ranks]);
            assert_eq!(
                found,
                Some((alone.n(), expected.clone())),
                "{ranks} {by_unit}"
            );
        }
    }
}

#[test]
fn what_one_rank_cannot_do_stops_all_with_the_same_words() {
    let unit = RanksError::Unit {
        column: "id".to_owned(),
    };
    let message = "no room".to_owned();
    let load = |share: Share, wrong: usize| match (share.rank, wrong) {
        (2, 0) => Err("no room".to_owned()),
        (2, 1) => {
            let other = model(&GROUPS.replace("normal(0, 1)", "normal(0, 2)"));
            part(Some(share), true)
                .bind(&other)
                .map_err(|e| e.to_string())
        }
        (1, 2) => {
            // The last row of rank 0 and the first of this one.
            let ids: Vec<i64> = (0..ROWS as i64)
                .map(|i| i / 5 + 665 * i64::from(i > 4))
                .collect();
            let share = Share { rank: 1, ranks: 2 };
            let y = vec![0.0; ROWS];
            let data = PrivateData::from_columns([("y", y.clone())]).column("x", y);
            bound(&data.column("id", ids).by_unit("id").share(share))
        }
        _ => bound(&part(Some(share), true)),
    };
    for (wrong, expected) in [
        RanksError::Load { rank: 2, message },
        RanksError::Model { rank: 2 },
        unit,
    ]
    .into_iter()
    .enumerate()
    {
        let (found, errors) = led(3, |share| load(share, wrong), |_| ());
        assert_eq!(found, None);
        assert_eq!(errors, vec![Some(expected); 3]);
    }
}

#[test]
fn ranks_end_when_there_is_nothing_to_do() {
    let mut links = Threads::of(2);
    let follower = links.pop().unwrap();
    scope(|scope| {
        let follower = scope.spawn(|| Follower::new(follower).order());
        drop(Leader::new(links.pop().unwrap()));
        assert_eq!(follower.join().unwrap(), Ok(None));
    });
}

// Wrong here: zeros in the place of another rank's records, released as if they were their sum.
#[test]
fn rows_that_another_rank_has_lost_are_an_error() {
    let load = |share: Share| {
        let beside = Spilling {
            memory: 0,
            folder: Some(std::env::temp_dir()),
        };
        let vault = bound(&part(Some(share), false).spilling(beside))?;
        if share.rank == 1 {
            vault.table.columns.lose();
        }
        Ok(vault)
    };
    let ask = |vault: &Vault| {
        let look = Look::gradient(vault.density(), &[0.0; 3]);
        let scale = GradientScale::new(1.0, 2, 5.0).unwrap();
        let look = &look;
        let question = Question::Vectors { look, scale };
        vault
            .ask(&question, None)
            .map_err(|error| error.to_string())
    };
    let (found, errors) = led(3, load, ask);
    assert_eq!(errors, [None, None, None]);
    let said = found.unwrap().unwrap_err();
    assert!(said.contains("another rank"), "{said}");
}

#[test]
fn integers_survive_in_words() {
    let all = [
        0,
        1,
        -1,
        i128::MAX,
        i128::MIN,
        1 << 100,
        -(1 << 100) - 12345,
    ];
    assert_eq!(numbers(&words(&all)), all);
    let sum: Vec<u64> = (words(&all).iter().zip(words(&[-1; 7])))
        .map(|(a, b)| a + b)
        .collect();
    assert_eq!(numbers(&sum), all.map(|x: i128| x.wrapping_sub(1)));
    let batch = [0usize, 1, 7, 700_000];
    let back: Vec<u64> = members(&gaps(batch.into_iter())).collect();
    assert_eq!(back, [0, 1, 7, 700_000]);
}
