//! One unit moves no answer by more than is charged.

use dpm::accounting::Relation;

use crate::attack::once;
use crate::attack::record_play::{Kind, Played, play};
use crate::attack::samplers::{Audited, Spending, VARIANTS};

const SPENDING: Spending = Spending {
    mu: 1.0,
    gradients: 0.5,
    relation: Relation::Substitute,
    shared_units: false,
    chains: 1,
    iterations: 2,
};

fn all(pairs: u64) {
    for kind in Kind::ALL {
        for &relation in kind.relations() {
            for shared_units in [false, true] {
                let found = play(kind, relation, shared_units, pairs);
                let what = format!("{kind:?}, {relation}, units of several rows: {shared_units}");
                let Played {
                    pairs: asked,
                    skipped,
                    closest,
                    gentle,
                } = found.unwrap_or_else(|broken| panic!("{what}: {broken}"));
                println!("{what}: {asked} pairs, closest {closest:.6}, {gentle} gentle");
                assert!(asked == pairs && skipped < pairs / 5, "{what}: {skipped}");
                if kind != Kind::Barker {
                    assert!(closest > 0.99, "{what}: {closest}");
                    assert!(gentle > pairs / 50, "{what}: {gentle}");
                }
            }
        }
    }
}

/// Releases outside of runs. Power: some pair comes to this share of what is charged.
/// Scores under substitute come to 0.9 of it at most, since only some of a vector's entries can be
/// opposite: of u and u^2 - 1/2 only u, so 2 of sqrt(5). A unit of several rows comes to that only if
/// all of its rows are at a bound; of 100 pairs of them the closest was seen at 0.78, of records at 0.89.
fn all_once(pairs: u64) {
    for kind in once::Kind::ALL {
        for relation in Relation::ALL {
            for shared_units in [false, true] {
                let what = format!("{kind:?}, {relation}, units of several rows: {shared_units}");
                let found = once::play(kind, relation, shared_units, pairs);
                let found = found.unwrap_or_else(|broken| panic!("{what}: {broken}"));
                println!("{what}: closest {:.6}", found.closest);
                let close = match (kind, relation) {
                    (once::Kind::Score, Relation::Substitute) if shared_units => 0.7,
                    (once::Kind::Score, Relation::Substitute) => 0.85,
                    _ => 0.99,
                };
                assert!(found.closest > close, "{what}: {}", found.closest);
            }
        }
    }
}

/// A sampler that releases something else is played as well.
#[test]
fn every_release_of_a_sampler_is_played() {
    for variant in &VARIANTS {
        let audited = Audited::variant(variant, SPENDING).unwrap_or_else(|e| panic!("{e}"));
        for planned in &audited.plan.lines {
            let Some(kind) = Kind::of(planned.line.question, planned.line.subsampling) else {
                continue;
            };
            assert!(Kind::ALL.contains(&kind), "{kind:?}");
            assert!(kind.relations().contains(&SPENDING.relation), "{kind:?}");
        }
    }
}

#[test]
fn neighbours_are_no_farther_apart_than_is_charged() {
    all(400);
}

#[test]
fn covariates_and_scores_move_by_no_more_than_is_charged() {
    all_once(100);
}

#[test]
#[ignore = "10,000 pairs per release, relation and kind of unit"]
fn ten_thousand_pairs_move_covariates_and_scores_by_no_more_than_is_charged() {
    all_once(10_000);
}

#[test]
#[ignore = "10,000 pairs per release, relation and kind of unit"]
fn ten_thousand_pairs_of_neighbours_are_no_farther_apart_than_is_charged() {
    all(10_000);
}
