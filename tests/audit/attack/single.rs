//! The vault's releases one by one, or a few of them with one generator, under a
//! black-box audit.

use dpm::accounting::{Event, Relation};
use dpm::testing::privacy::{NotPrivate, PrivateRng};

use super::claim::Claim;
use super::distinguisher::{Found, distinguish};
use super::neighbours::{LINE, lone_pair, loud_pair, model, opposed_pair};
use super::releases::{Batch, Release};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Single {
    Gradient,
    /// At a point beyond the loud record, whose gradient has the other sign there.
    GradientBeyond,
    LogRatio,
    /// The same with the two points exchanged.
    LogRatioBack,
    /// About each record with probability 1/2.
    PoissonGradient,
    /// About one of two records.
    FixedSizeGradient,
    /// About each record with probability 1/2.
    PoissonLogRatio,
    /// About two of three records.
    FixedSizeLogRatio,
    /// DP-Barker's test on all of twelve records, or on twelve of sixteen. Its noise is what
    /// it is.
    Barker,
    BarkerBatch,
}

impl Single {
    fn release(self, tau: f64) -> Release {
        let (from, to) = (vec![0.1, 0.2, 0.3], vec![0.4, 0.1, 0.3]);
        let gradient = |at, batch| Release::Gradient {
            at,
            clip: 0.5,
            tau,
            batch,
        };
        let ratio = |from, to, batch| Release::BatchLogRatio {
            from,
            to,
            clip: 2.0,
            tau,
            temperature: 1.0,
            batch,
        };
        let barker = |from, to, records| Release::Barker {
            from,
            to,
            temperature: 1.0,
            size: 12,
            records,
        };
        match self {
            // In the direction in which the penalty for the batch's variance adds to what a
            // record does.
            Single::PoissonLogRatio => ratio(to, from, Batch::Poisson(0.5)),
            Single::FixedSizeLogRatio => ratio(to, from, Batch::FixedSize(2, 3)),
            Single::Barker => barker(from, to, 12),
            Single::BarkerBatch => barker(from, to, 16),
            Single::Gradient => gradient(from, Batch::All),
            Single::GradientBeyond => gradient(vec![1e5, 0.0, 0.0], Batch::All),
            Single::PoissonGradient => gradient(from, Batch::Poisson(0.5)),
            Single::FixedSizeGradient => gradient(from, Batch::FixedSize(1, 2)),
            Single::LogRatio | Single::LogRatioBack => Release::LogRatio {
                from: if self == Single::LogRatio {
                    from.clone()
                } else {
                    to.clone()
                },
                to: if self == Single::LogRatio { to } else { from },
                clip: 2.0,
                tau,
                temperature: 1.0,
            },
        }
    }
}

/// Audits `releases`, made one after another with noise multiplier `tau` each, about the
/// neighbours that are farthest apart.
pub fn audit(releases: &[Single], relation: Relation, tau: f64, runs: u64) -> (Claim, Found) {
    let model = model(LINE);
    let (one, other) = match releases {
        [Single::FixedSizeGradient, ..] => opposed_pair(&model, 1),
        [Single::FixedSizeLogRatio, ..] => opposed_pair(&model, 2),
        [Single::Barker, ..] => lone_pair(&model, 11),
        [Single::BarkerBatch, ..] => lone_pair(&model, 15),
        // Other rows that come and go would only hide the one.
        [Single::PoissonGradient | Single::PoissonLogRatio, ..] => loud_pair(&model, relation, 0),
        _ => loud_pair(&model, relation, 3),
    };
    let vaults = [one, other].map(|table| table.vault(&model));
    let releases: Vec<Release> = releases.iter().map(|single| single.release(tau)).collect();
    // The claim is about what is charged.
    let mut rng = PrivateRng::insecure(0, NotPrivate::acknowledged());
    let charged = releases.iter().filter_map(|release| {
        let answer = release.ask(&vaults[0], relation, &mut rng);
        let count = answer.ok().flatten().map_or(0, |answer| answer.charged[0]);
        (count > 0).then(|| release.event(relation).times(count))
    });
    let events: Vec<Event> = charged.collect();
    let claim = Claim::of(&events, relation).unwrap_or_else(|e| panic!("{e}"));
    let found = distinguish(&claim, runs, |other, run| {
        let mut rng = PrivateRng::insecure(run, NotPrivate::acknowledged());
        releases
            .iter()
            .flat_map(|release| {
                let answer = release.ask(&vaults[usize::from(other)], relation, &mut rng);
                let answer = answer.unwrap_or_else(|broken| panic!("{broken}"));
                let answer = answer.expect("the settings have it asked");
                answer.units.into_iter().map(|units| units as f64)
            })
            .collect()
    });
    (claim, found)
}
