//! Black-box audits of whole samplers: what the draws of a run tell about one record.

use dpm::PlanError;
use dpm::accounting::Relation;
use dpm::testing::sampler::ALGORITHMS;

use crate::attack::distinguisher::distinguish;
use crate::attack::samplers::{Audited, Spending, VARIANTS, Variant, ways};

/// Audits one way of one sampler; whether it can be planned so.
///
/// False alarm: 1e-8. Power: `share` of the claimed delta is seen at some epsilon.
fn check(variant: &Variant, spending: Spending, runs: u64, share: f64) -> bool {
    let Spending {
        mu,
        gradients,
        relation,
        chains,
        ..
    } = spending;
    let units = if spending.shared_units { ", units" } else { "" };
    let what = format!(
        "{}, {}, {relation}{units}, mu {mu}, {gradients} for gradients, {chains} chains",
        variant.algorithm, variant.what
    );
    let audited = match Audited::variant(variant, spending) {
        Ok(audited) => audited,
        Err(PlanError::Settings(_)) => return false,
        Err(error) => panic!("{what}: {error}"),
    };
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
    // Nothing was refused on public grounds: all of the plan was released. (A start that sees
    // nothing above its noise asks for less.)
    if audited.is_independent(0).is_none() {
        assert_eq!(audited.charged(), audited.plan.events, "{what}");
    }
    true
}

const ONE: Spending = Spending {
    mu: 1.0,
    gradients: 0.5,
    relation: Relation::Substitute,
    shared_units: false,
    chains: 1,
    iterations: 4,
};

const THREE: Spending = Spending { mu: 3.0, ..ONE };

#[test]
fn no_private_sampler_is_left_out() {
    let ways = ways();
    for algorithm in ALGORITHMS.iter().filter(|a| a.is_private()) {
        assert!(ways.iter().any(|way| way.algorithm == algorithm.name));
    }
}

/// Of what learns before it draws: chains where chains are audited, and independent draws.
#[test]
fn both_forms_of_what_learns_are_audited() {
    let form = |way: &Variant| {
        let audited = Audited::variant(way, THREE).unwrap_or_else(|e| panic!("{e}"));
        let gaussian = (0..20).filter(|&run| audited.is_independent(run) == Some(true));
        gaussian.count()
    };
    let forms = |what| {
        let named = |v: &&Variant| v.algorithm == "dp-langevin" && v.what == what;
        form(VARIANTS.iter().find(named).expect("a variant"))
    };
    assert!(forms("chains") < 3 && forms("the Gaussian") > 17);
}

/// Every way of every private sampler, in short.
#[test]
fn samplers_lose_no_more_than_they_claim() {
    for way in ways() {
        let runs = if way.learns() { 400 } else { 600 };
        assert!(check(&way, THREE, runs, way.seen[0]), "{}", way.what);
    }
}

#[test]
#[ignore = "300,000 runs of samplers: two minutes"]
fn samplers_lose_no_more_than_they_claim_and_not_much_less() {
    for way in &ways() {
        let runs = if way.learns() { 4_000 } else { 10_000 };
        check(way, ONE, runs, way.seen[1]);
    }
}

/// Every way of every private sampler that there is where a record is left blank, in short.
#[test]
fn samplers_lose_no_more_of_a_record_that_is_left_blank() {
    let relation = Relation::ZeroOut;
    let seen = ways().into_iter().filter(|way| {
        let runs = if way.learns() { 400 } else { 600 };
        let share = if way.learns() { 0.6 } else { 0.8 } * way.seen[0];
        check(way, Spending { relation, ..THREE }, runs, share)
    });
    let names: Vec<_> = seen.map(|way| way.algorithm).collect();
    let private = ALGORITHMS.iter().filter(|a| a.is_private());
    for algorithm in private.filter(|a| a.name != "dp-barker") {
        assert!(names.contains(&algorithm.name), "{}", algorithm.name);
    }
    assert!(!names.contains(&"dp-barker"));
}

/// Samplers that learn, under another relation and with units of several rows.
#[test]
fn what_learns_loses_no_more_with_units_that_come_and_go() {
    for way in ways().iter().filter(|way| way.learns()) {
        let spending = Spending {
            relation: Relation::AddRemove,
            shared_units: true,
            ..THREE
        };
        check(way, spending, 200, 0.6 * way.seen[0]);
    }
}

/// Every relation, and records and units. A claim about batches is seen less well in one relation
/// than in the other.
#[test]
#[ignore = "every way of every sampler, six times: minutes"]
fn samplers_lose_no_more_under_any_relation_and_with_units() {
    for way in ways() {
        for relation in Relation::ALL {
            for shared_units in [false, true] {
                let spending = Spending {
                    relation,
                    shared_units,
                    ..THREE
                };
                check(&way, spending, 1_000, 0.5 * way.seen[0]);
            }
        }
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
    for (spending, share) in [
        (Spending { mu: 0.3, ..ONE }, 0.18),
        (THREE, 0.78),
        (most_for_gradients, 0.62),
        (most_for_ratios, 0.54),
    ] {
        check(&VARIANTS[0], spending, 12_000, share);
    }
}
