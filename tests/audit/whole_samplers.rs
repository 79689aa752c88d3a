//! Black-box audits of whole samplers: what the draws of a run tell about one record.

use dpm::accounting::Relation;

use crate::attack::distinguisher::distinguish;
use crate::attack::samplers::{Audited, Spending};

/// A sampler in an audit: its neighbours, its plan, how often it runs, and which share of
/// the claimed mu the audit must reach.
struct Audit<'a> {
    what: &'a str,
    audited: Audited,
    runs: u64,
    share: f64,
}

impl Audit<'_> {
    /// False alarm: 1e-8. Power: the share that is asserted.
    fn check(&self) {
        let Audit {
            what,
            audited,
            runs,
            share,
        } = self;
        let claim = audited.claim();
        let found = distinguish(&claim, *runs, |other, run| audited.transcript(other, run));
        let claimed = claim.mu.expect("releases about all rows");
        println!(
            "{what}: mu is at least {:.3} of {claimed:.3}, after {runs} runs on each",
            found.mu_lower
        );
        let found = found
            .verdict(&claim)
            .unwrap_or_else(|broken| panic!("{what}: {broken}"));
        assert!(
            found.mu_lower > share * claimed,
            "{what}: the audit sees only {} of {claimed}",
            found.mu_lower
        );
        // Nothing was refused on public grounds: all of the plan was released.
        assert_eq!(audited.charged(), audited.plan.events, "{what}");
    }
}

const ONE: Spending = Spending {
    mu: 1.0,
    gradients: 0.5,
    relation: Relation::Substitute,
    chains: 1,
    iterations: 4,
};

const THREE: Spending = Spending { mu: 3.0, ..ONE };

/// Every private sampler, in short. A new one is a line here, and in the long version.
#[test]
fn samplers_lose_no_more_than_they_claim() {
    for (algorithm, share) in [("dp-hmc", 0.55), ("dp-penalty", 0.55)] {
        Audit {
            what: algorithm,
            audited: Audited::of(algorithm, THREE),
            runs: 2500,
            share,
        }
        .check();
    }
}

#[test]
#[ignore = "320,000 runs of samplers: a minute or two"]
fn samplers_lose_no_more_than_they_claim_and_not_much_less() {
    for (what, algorithm, spending, share) in [
        ("mu 0.3", "dp-hmc", Spending { mu: 0.3, ..ONE }, 0.4),
        ("mu 1", "dp-hmc", ONE, 0.65),
        ("mu 3", "dp-hmc", THREE, 0.7),
        (
            "add or remove, most of it for gradients",
            "dp-hmc",
            Spending {
                relation: Relation::AddRemove,
                gradients: 0.9,
                ..ONE
            },
            0.7,
        ),
        (
            "most of it for ratios, two chains",
            "dp-hmc",
            Spending {
                gradients: 0.1,
                chains: 2,
                iterations: 2,
                ..ONE
            },
            0.6,
        ),
        ("mu 0.3", "dp-penalty", Spending { mu: 0.3, ..ONE }, 0.4),
        ("mu 1", "dp-penalty", ONE, 0.6),
        ("mu 3", "dp-penalty", THREE, 0.7),
    ] {
        Audit {
            what: &format!("{algorithm}, {what}"),
            audited: Audited::of(algorithm, spending),
            runs: 20_000,
            share,
        }
        .check();
    }
}
