//! Black-box audits of whole samplers: what the draws of a run tell about one record.

use dpm::accounting::Relation;

use crate::attack::distinguisher::distinguish;
use crate::attack::samplers::{Audited, Spending};

/// A sampler in an audit: its neighbours, its plan, how often it runs, and which share of
/// the claimed mu the audit must reach.
struct Audit {
    what: &'static str,
    audited: Audited,
    runs: u64,
    share: f64,
}

impl Audit {
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
        println!(
            "{what}: mu is at least {:.3} of {:.3}, after {runs} runs on each",
            found.mu_lower, claim.mu
        );
        let found = found
            .verdict(&claim)
            .unwrap_or_else(|broken| panic!("{what}: {broken}"));
        assert!(
            found.mu_lower > share * claim.mu,
            "{what}: the audit sees only {} of {}",
            found.mu_lower,
            claim.mu
        );
        // Nothing was refused on public grounds: all of the plan was released.
        assert_eq!(audited.charged(), audited.plan.events, "{what}");
    }
}

const DP_HMC: Spending = Spending {
    mu: 1.0,
    gradients: 0.5,
    relation: Relation::Substitute,
    chains: 1,
    iterations: 4,
};

#[test]
fn dp_hmc_loses_no_more_than_it_claims() {
    Audit {
        what: "DP-HMC, mu 3",
        audited: Audited::dp_hmc(Spending { mu: 3.0, ..DP_HMC }),
        runs: 2500,
        share: 0.55,
    }
    .check();
}

#[test]
#[ignore = "200,000 runs of DP-HMC: a minute or two"]
fn samplers_lose_no_more_than_they_claim() {
    for (what, spending, share) in [
        ("DP-HMC, mu 0.3", Spending { mu: 0.3, ..DP_HMC }, 0.4),
        ("DP-HMC, mu 1", DP_HMC, 0.65),
        ("DP-HMC, mu 3", Spending { mu: 3.0, ..DP_HMC }, 0.7),
        (
            "DP-HMC, mu 1, add or remove, most of it for gradients",
            Spending {
                relation: Relation::AddRemove,
                gradients: 0.9,
                ..DP_HMC
            },
            0.7,
        ),
        (
            "DP-HMC, mu 1, most of it for ratios, two chains",
            Spending {
                gradients: 0.1,
                chains: 2,
                iterations: 2,
                ..DP_HMC
            },
            0.6,
        ),
    ] {
        Audit {
            what,
            audited: Audited::dp_hmc(spending),
            runs: 20_000,
            share,
        }
        .check();
    }
}
