//! Black-box audits of whole samplers: what the draws of a run tell about one record.

use std::collections::BTreeSet;

use dpm::accounting::Relation;
use dpm::sampler::ALGORITHMS;

use crate::attack::distinguisher::distinguish;
use crate::attack::samplers::{Audited, Spending, VARIANTS, Variant};

/// Audits one way of one sampler.
///
/// False alarm: 1e-8. Power: `share` of the claimed delta is seen at some epsilon.
fn check(variant: &Variant, what: &str, spending: Spending, runs: u64, share: f64) {
    let what = format!("{}, {}{what}", variant.algorithm, variant.what);
    let audited = Audited::variant(variant, spending);
    let claim = audited.claim();
    let found = distinguish(&claim, runs, |other, run| audited.transcript(other, run));
    println!(
        "{what}: {:.3} of a claimed delta is seen, and mu {:.3}",
        found.share, found.mu_lower
    );
    let found = found
        .verdict(&claim)
        .unwrap_or_else(|broken| panic!("{what}: {broken}"));
    assert!(found.share > share, "{what}: {found:?}");
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

/// What the audits of `VARIANTS` see at least, in short and in long. Of DP-Barker's tests
/// only the outcomes are to be seen, and a Rényi divergence is claimed for them.
const SHARES: [[f64; 2]; VARIANTS.len()] = [
    [0.6, 0.6],
    [0.5, 0.5],
    [0.58, 0.62],
    [0.5, 0.57],
    [0.54, 0.56],
    [0.2, 0.46],
    [0.17, 0.49],
    [0.14, 0.36],
    [0.03, 0.26],
    [0.7, 0.78],
    [0.36, 0.57],
    [0.7, 0.78],
    [0.36, 0.57],
    [0.7, 0.78],
    [0.36, 0.57],
];

#[test]
fn every_private_sampler_is_audited() {
    let audited: BTreeSet<&str> = VARIANTS.iter().map(|v| v.algorithm).collect();
    // What one learns from before it samples is audited release by release: the noise of each
    // follows from the budget, and not from multipliers as `Variant` has them.
    let private = ALGORITHMS.iter().filter(|a| a.is_private() && !a.learns());
    let private: BTreeSet<&str> = private.map(|a| a.name).collect();
    assert_eq!(audited, private, "give it a line in VARIANTS, or several");
}

/// Every way of every private sampler, in short.
#[test]
fn samplers_lose_no_more_than_they_claim() {
    for (variant, [share, _]) in VARIANTS.iter().zip(SHARES) {
        check(variant, "", THREE, 600, share);
    }
}

#[test]
#[ignore = "300,000 runs of samplers: two minutes"]
fn samplers_lose_no_more_than_they_claim_and_not_much_less() {
    for (variant, [_, share]) in VARIANTS.iter().zip(SHARES) {
        check(variant, "", ONE, 10_000, share);
    }
}

/// DP-HMC in other proportions.
#[test]
#[ignore = "100,000 runs of DP-HMC: a minute"]
fn dp_hmc_loses_no_more_than_it_claims_whatever_it_spends_on() {
    let most_for_gradients = Spending {
        relation: Relation::AddRemove,
        gradients: 0.9,
        ..ONE
    };
    let most_for_ratios = Spending {
        gradients: 0.1,
        chains: 2,
        iterations: 2,
        ..ONE
    };
    for (what, spending, share) in [
        (", mu 0.3", Spending { mu: 0.3, ..ONE }, 0.18),
        (", mu 3", THREE, 0.78),
        (
            ", most for gradients, add or remove",
            most_for_gradients,
            0.62,
        ),
        (", most for ratios, two chains", most_for_ratios, 0.54),
    ] {
        check(&VARIANTS[0], what, spending, 12_000, share);
    }
}
