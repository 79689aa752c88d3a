//! Black-box audits of single releases.

use dpm::accounting::Relation;

use crate::attack::single::{Single, audit};

/// Each release alone, at mu 0.3, 1 and 3 under each relation.
///
/// False alarm: 1e-9 each. Power: the lower bound on mu reaches the stated share of the
/// claim, so a mechanism that loses as much more than it claims would be caught.
fn all(runs: u64, shares: [f64; 3]) {
    for single in [Single::Gradient, Single::LogRatio] {
        for relation in Relation::ALL {
            for (mu, share) in [0.3, 1.0, 3.0].into_iter().zip(shares) {
                let (claim, found) = audit(&[single], relation, 1.0 / mu, runs);
                let what = format!("{single:?}, {relation}, mu {mu}");
                println!("{what}: at least {:.4} of {mu}", found.mu_lower);
                let found = found
                    .verdict(&claim)
                    .unwrap_or_else(|broken| panic!("{what}: {broken}"));
                let claimed = claim.mu.expect("all rows");
                assert!((claimed / mu - 1.0).abs() < 1e-9, "{what}: {claimed}");
                assert!(
                    found.mu_lower > share * mu,
                    "{what}: the audit sees only {}",
                    found.mu_lower
                );
            }
        }
    }
}

#[test]
fn single_releases_lose_no_more_than_they_claim() {
    all(5_000, [-1.0, 0.65, 0.85]);
}

#[test]
#[ignore = "a million releases: a minute"]
fn single_releases_lose_no_more_than_they_claim_and_no_less() {
    all(50_000, [0.7, 0.9, 0.95]);
}

/// Two releases with one generator, at points where the loud record pulls either way:
/// what noise they shared would cancel, and the record would stand bare.
///
/// False alarm: 1e-8. Power: 0.65 of the claim.
#[test]
fn releases_share_no_noise() {
    for releases in [
        [Single::Gradient, Single::GradientBeyond],
        [Single::LogRatio, Single::LogRatioBack],
    ] {
        let (claim, found) = audit(&releases, Relation::AddRemove, 1.0, 5_000);
        let found = found
            .verdict(&claim)
            .unwrap_or_else(|broken| panic!("{releases:?}: {broken}"));
        let claimed = claim.mu.expect("all rows");
        assert!((claimed - 2f64.sqrt()).abs() < 1e-9, "{claimed}");
        assert!(found.mu_lower > 0.65 * claimed, "{}", found.mu_lower);
    }
}

/// Releases about batches, by each scheme and relation that there is, against the
/// accountant for subsampled releases, and DP-Barker's test against its own bound.
///
/// False alarm: 1e-8. Power: the stated share of the claimed delta is seen at some epsilon.
/// (For DP-Barker's test a Rényi divergence is claimed, and its delta is far above what can
/// be.)
#[test]
fn releases_about_batches_lose_no_more_than_they_claim() {
    use Relation::{AddRemove, Substitute, ZeroOut};
    for (single, relation, tau, share) in [
        (Single::PoissonGradient, AddRemove, 0.5, 0.75),
        (Single::PoissonGradient, ZeroOut, 0.5, 0.75),
        (Single::PoissonGradient, Substitute, 0.25, 0.8),
        (Single::FixedSizeGradient, Substitute, 0.25, 0.83),
        (Single::PoissonLogRatio, AddRemove, 0.5, 0.73),
        (Single::PoissonLogRatio, ZeroOut, 0.5, 0.73),
        (Single::PoissonLogRatio, Substitute, 0.25, 0.7),
        (Single::FixedSizeLogRatio, Substitute, 0.25, 0.83),
        (Single::Barker, Substitute, 1.0, 0.2),
        (Single::BarkerBatch, Substitute, 1.0, 0.1),
    ] {
        let (claim, found) = audit(&[single], relation, tau, 10_000);
        let what = format!("{single:?}, {relation}");
        println!("{what}: {:.3} of a claimed delta is seen", found.share);
        let found = found
            .verdict(&claim)
            .unwrap_or_else(|broken| panic!("{what}: {broken}"));
        assert!(found.share > share, "{what}: {}", found.share);
    }
}
