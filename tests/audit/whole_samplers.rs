//! Black-box audits of whole samplers: what the draws of a run tell about one record.

use std::collections::BTreeSet;

use dpm::accounting::Relation;
use dpm::sampler::ALGORITHMS;

use crate::attack::distinguisher::distinguish;
use crate::attack::samplers::{Audited, Spending, VARIANTS, Variant};

/// What an audit has to see, or it would see nothing else either.
#[derive(Debug, Clone, Copy)]
enum Power {
    /// This share of the claimed mu, where all releases are about all records.
    Share(f64),
    /// Some delta that is less than this below the claimed curve.
    Within(f64),
    /// This mu.
    Mu(f64),
}

/// A sampler in an audit: its neighbours, its plan, and how often it runs.
///
/// False alarm: 1e-8. Power: as stated.
fn check(variant: &Variant, what: &str, spending: Spending, runs: u64, power: Power) {
    let what = format!("{}, {}{what}", variant.algorithm, variant.what);
    let audited = Audited::variant(variant, spending);
    let claim = audited.claim();
    let found = distinguish(&claim, runs, |other, run| audited.transcript(other, run));
    println!(
        "{what}: mu is at least {:.3} of {:.3}, and delta within {:.3}, after {runs} runs on each",
        found.mu_lower,
        claim.mu.unwrap_or(f64::NAN),
        -found.excess
    );
    let found = found
        .verdict(&claim)
        .unwrap_or_else(|broken| panic!("{what}: {broken}"));
    let seen = match power {
        Power::Share(share) => found.mu_lower > share * claim.mu.expect("all records"),
        Power::Within(delta) => found.excess > -delta,
        Power::Mu(mu) => found.mu_lower > mu,
    };
    assert!(seen, "{what}: the audit sees only {found:?}, not {power:?}");
    // Nothing was refused on public grounds: all of the plan was released.
    assert_eq!(audited.charged(), audited.plan.events, "{what}");
}

const ONE: Spending = Spending {
    mu: 1.0,
    gradients: 0.5,
    relation: Relation::Substitute,
    chains: 1,
    iterations: 4,
};

const THREE: Spending = Spending { mu: 3.0, ..ONE };

#[test]
fn every_private_sampler_is_audited() {
    let audited: BTreeSet<&str> = VARIANTS.iter().map(|v| v.algorithm).collect();
    let private = ALGORITHMS.iter().filter(|a| a.is_private());
    let private: BTreeSet<&str> = private.map(|a| a.name).collect();
    assert_eq!(audited, private, "give it a variant, or several");
}

/// Every way of every private sampler, in short.
#[test]
fn samplers_lose_no_more_than_they_claim() {
    for variant in &VARIANTS {
        check(variant, "", THREE, 1000, Power::Mu(-9.0));
    }
}

#[test]
#[ignore = "long"]
fn samplers_long() {
    for variant in &VARIANTS {
        let begun = std::time::Instant::now();
        check(variant, "", ONE, 20_000, Power::Mu(-9.0));
        println!("{:?}", begun.elapsed());
    }
}
