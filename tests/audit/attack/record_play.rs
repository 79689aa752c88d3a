//! Record-play: the same release, with identical randomness, on two neighbouring data
//! sets. The noise cancels, and what is left is how far one unit moved the sum.

use dpm::accounting::Relation;
use dpm::testing::privacy::{NotPrivate, PrivateRng, Subsampling};
use dpm::testing::sampler::Question;

use super::neighbours::{MODELS, model, ugly_pair};
use super::releases::{Answer, Batch, Release};
use super::{Broken, Lcg};

/// The findings of many pairs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Played {
    /// Pairs about which the vault was asked.
    pub pairs: u64,
    /// Pairs about which public numbers decided, without asking.
    pub skipped: u64,
    /// The largest distance, as a share of the charged sensitivity: near 1, or the pairs
    /// try too little.
    pub closest: f64,
    /// Pairs that moved the sum by less than a tenth of the sensitivity, though by
    /// something: no clip was active.
    pub gentle: u64,
}

/// The kind of a release in a record-play.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Gradient,
    LogRatio,
    PoissonGradient,
    FixedSizeGradient,
    PoissonLogRatio,
    FixedSizeLogRatio,
    Barker,
}

impl Kind {
    pub const ALL: [Kind; 7] = [
        Kind::Gradient,
        Kind::LogRatio,
        Kind::PoissonGradient,
        Kind::FixedSizeGradient,
        Kind::PoissonLogRatio,
        Kind::FixedSizeLogRatio,
        Kind::Barker,
    ];

    /// The kind of the releases of a line in a sampler's schedule; those that a start learns from are
    /// played through whole runs (`whole_play`).
    pub fn of(question: Question, subsampling: Subsampling) -> Option<Kind> {
        Some(match (question, subsampling) {
            (Question::Gradient, Subsampling::All) => Kind::Gradient,
            (Question::Gradient, Subsampling::Poisson(_)) => Kind::PoissonGradient,
            (Question::Gradient, Subsampling::FixedSize(_)) => Kind::FixedSizeGradient,
            (Question::LogRatio, Subsampling::All) => Kind::LogRatio,
            (Question::LogRatio, Subsampling::Poisson(_)) => Kind::PoissonLogRatio,
            (Question::LogRatio, Subsampling::FixedSize(_)) => Kind::FixedSizeLogRatio,
            (Question::Barker, _) => Kind::Barker,
            (Question::Learnt(_), _) => return None,
        })
    }

    /// Under which it can be released at all.
    pub fn relations(self) -> &'static [Relation] {
        match self {
            Kind::FixedSizeGradient | Kind::FixedSizeLogRatio | Kind::Barker => {
                &[Relation::Substitute]
            }
            _ => &Relation::ALL,
        }
    }

    /// Whether it is about records that are drawn by their places.
    fn is_of_batch(self) -> bool {
        !matches!(self, Kind::Gradient | Kind::LogRatio)
    }
}

/// Plays until `pairs` pairs of ugly neighbours have been asked about.
///
/// Batches are drawn by place. So the neighbours' other records stay in theirs, and the same
/// are drawn; the rows of a unit may be in any order nevertheless, and so may all rows where
/// all are read. DP-Barker's test has noise whose width is a function of rows, so that
/// answers cannot be compared; its charges are, and `vault::batch` compares its integers.
///
/// # Errors
///
/// Of the first pair that moves an answer by more than is charged, whose answers are off
/// the charged lattice, whose charges or whose use of the private generator differ, or
/// whose answer depends on the order of the rows.
pub fn play(
    kind: Kind,
    relation: Relation,
    shared_units: bool,
    pairs: u64,
) -> Result<Played, Broken> {
    let mut rng = Lcg::new(17 + 2 * kind as u64 + u64::from(shared_units));
    let models = MODELS.map(model);
    let mut played = Played::default();
    let mut pair = 0;
    while played.pairs < pairs {
        pair += 1;
        let model = &models[pair as usize % models.len()];
        let (one, mut other) = ugly_pair(&mut rng, model, relation, shared_units);
        let mut again = one.clone();
        if shared_units || !kind.is_of_batch() {
            other = other.shuffled(&mut rng);
            again = one.shuffled(&mut rng);
        }
        let vaults = [&one, &other, &again].map(|table| table.vault(model));
        let dimension = vaults[0].density().dimension();
        let Some(release) = random_release(kind, &mut rng, dimension, one.records()) else {
            continue;
        };
        let mut answers = Vec::with_capacity(3);
        for vault in &vaults {
            // Identical randomness.
            let mut noise = PrivateRng::insecure(pair, NotPrivate::acknowledged());
            answers.push(
                release
                    .ask(vault, relation, &mut noise)
                    .map_err(|broken| Broken(format!("pair {pair}, {release:?}: {broken}")))?,
            );
        }
        let broken = |why: String| Err(Broken(format!("pair {pair}, {release:?}: {why}")));
        let [Some(a), Some(b), Some(same)] = answers.as_slice() else {
            // Public numbers decided, so they decide for all.
            if answers.iter().any(Option::is_some) {
                return broken("whether it is asked depends on the rows".to_owned());
            }
            played.skipped += 1;
            continue;
        };
        if let Err(Broken(why)) = played.compare([a, b, same]) {
            return broken(why);
        }
    }
    Ok(played)
}

impl Played {
    /// Compares the answers about two neighbours, and about the rows of the first in another order,
    /// with identical randomness.
    ///
    /// # Errors
    ///
    /// One is moved by more than is charged; charges, or uses of the private generator, differ; the
    /// order of rows shows.
    pub fn compare(&mut self, [a, b, same]: [&Answer; 3]) -> Result<(), Broken> {
        let broken = |why: String| Err(Broken(why));
        if (&a.units, a.next_bits) != (&same.units, same.next_bits) {
            return broken("the order of rows shows".to_owned());
        }
        if a.charged != b.charged {
            return broken("charges differ".to_owned());
        }
        if a.charged != [1] {
            return broken(format!("one release is charged as {:?}", a.charged));
        }
        self.pairs += 1;
        if a.noise != b.noise {
            return broken("noise or sensitivity depends on the rows".to_owned());
        }
        let Some(noise) = a.noise else {
            return Ok(());
        };
        if a.next_bits != b.next_bits {
            return broken("draws of the private generator differ".to_owned());
        }
        let square: i128 = a
            .units
            .iter()
            .zip(&b.units)
            .map(|(x, y)| (x - y) * (x - y))
            .sum();
        // Below 2^106, so exact to 2^-53 of itself: less than the last unit of the bound
        // matters only where the bound is met to a part in 10^15.
        let distance = (square as f64).sqrt();
        if distance > noise.sensitivity * (1.0 + 4.0 * f64::EPSILON) {
            return broken(format!(
                "one unit moves the sum by {distance} lattice units, and {} are charged",
                noise.sensitivity
            ));
        }
        let share = distance / noise.sensitivity;
        self.closest = self.closest.max(share);
        self.gentle += u64::from(square > 0 && share < 0.1);
        Ok(())
    }
}

/// `None` where there are too few `records` for it.
fn random_release(kind: Kind, rng: &mut Lcg, dimension: usize, records: u64) -> Option<Release> {
    // Now and then far out, where densities are at their ends.
    let width = rng.of(&[1.0, 4.0, 60.0]);
    let mut point = || -> Vec<f64> {
        (0..dimension)
            .map(|_| width * (rng.uniform() - 0.5))
            .collect()
    };
    let (from, to) = (point(), point());
    // Near and far, so that bounds from 1e-9 nats to some tens are tried; with more, sums
    // would not fit the digits of the answer.
    let mut step = || {
        let near = rng.of(&[1.0, 0.1, 1e-9]);
        let towards = |(a, b): (&f64, &f64)| a + near * (b - a) / width;
        from.iter().zip(&to).map(towards).collect::<Vec<f64>>()
    };
    Some(match kind {
        Kind::Gradient | Kind::PoissonGradient | Kind::FixedSizeGradient => Release::Gradient {
            at: from,
            clip: rng.of(&[1e-3, 1.0, 30.0, 1e6]),
            tau: rng.of(&[0.3, 3.0, 100.0]),
            batch: random_batch(kind, rng, records, 1),
        },
        Kind::LogRatio => Release::LogRatio {
            to: step(),
            from,
            clip: rng.of(&[1e-3, 1.0, 10.0]),
            tau: rng.of(&[0.01, 0.1]),
            temperature: rng.of(&[1.0, 0.03]),
        },
        Kind::PoissonLogRatio | Kind::FixedSizeLogRatio => Release::BatchLogRatio {
            to: step(),
            from,
            clip: rng.of(&[1e-3, 1.0, 10.0]),
            tau: rng.of(&[0.3, 1.0]),
            temperature: rng.of(&[1.0, 0.03]),
            batch: random_batch(kind, rng, records, 2),
        },
        Kind::Barker if records < 3 => return None,
        Kind::Barker => Release::Barker {
            to: step(),
            from,
            temperature: rng.of(&[1.0, 0.03]),
            size: 3 + rng.below(records as usize - 2) as u64,
            records,
        },
    })
}

/// With at least so many records, if it is of a fixed size.
fn random_batch(kind: Kind, rng: &mut Lcg, records: u64, least: u64) -> Batch {
    match kind {
        Kind::PoissonGradient | Kind::PoissonLogRatio => Batch::Poisson(rng.of(&[0.3, 0.7, 1.0])),
        Kind::FixedSizeGradient | Kind::FixedSizeLogRatio => {
            let room = (records + 1 - least) as usize;
            Batch::FixedSize(least + rng.below(room) as u64, records)
        }
        _ => Batch::All,
    }
}
