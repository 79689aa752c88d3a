//! Black-box audits of single releases.

use dpm::accounting::Relation;

use crate::attack::single::{Single, audit};

/// Each release alone, at mu 0.3, 1 and 3 under either relation.
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
/// accountant for subsampled releases.
///
/// False alarm: 1e-8. Power: delta is seen to come within 0.08 of the claim at some
/// epsilon.
#[test]
fn releases_about_batches_lose_no_more_than_they_claim() {
    for (single, relation, tau) in [
        (Single::PoissonGradient, Relation::AddRemove, 0.5),
        (Single::PoissonGradient, Relation::Substitute, 0.25),
        (Single::FixedSizeGradient, Relation::Substitute, 0.25),
    ] {
        let (claim, found) = audit(&[single], relation, tau, 10_000);
        let what = format!("{single:?}, {relation}");
        println!("{what}: within {:.3} in delta", -found.excess);
        let found = found
            .verdict(&claim)
            .unwrap_or_else(|broken| panic!("{what}: {broken}"));
        assert!(found.excess > -0.08, "{what}: {}", found.excess);
    }
}
