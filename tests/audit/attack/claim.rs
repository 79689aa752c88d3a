//! The claim: the largest delta at each epsilon, as the program's own accountant has it for the
//! events that were charged.

use dpm::accounting::{Event, Query, Real, Relation, account};

/// A bound on the privacy profile: for neighbours D and D', in either order,
/// sup over sets S of P(S) - e^eps P'(S).
pub struct Claim {
    /// (eps, delta) from eps = 0 upwards.
    curve: Vec<(f64, f64)>,
    /// sqrt(sum of sensitivity^2 / sigma^2), for releases that read all rows: the mu of
    /// Gaussian differential privacy (Dong, Roth and Su 2022). `None` for others.
    pub mu: Option<f64>,
}

/// Epsilons at which a claim is looked at, from 0 to `largest`.
fn grid(largest: f64) -> impl Iterator<Item = f64> {
    (0..=100).map(move |i| largest * f64::from(i) / 100.0)
}

impl Claim {
    /// The accountant's claim for `events`.
    pub fn of(events: &[Event], relation: Relation) -> Result<Claim, String> {
        let at = |epsilon: f64| {
            let query = Query::Delta {
                epsilon: Real::from(epsilon),
            };
            account(events, relation, query).map_err(|e| e.to_string())
        };
        let mu = at(0.0)?.mu.map(|mu| (2.0 * mu).sqrt());
        // Past this, delta is below 1e-6 for a Gaussian of this mu, and no number of
        // runs that a test can make sees it.
        let largest = mu.map_or(8.0, |mu| mu * mu / 2.0 + 5.0 * mu);
        let curve = grid(largest)
            .map(|epsilon| Ok((epsilon, at(epsilon)?.delta)))
            .collect::<Result<_, String>>()?;
        Ok(Claim { curve, mu })
    }

    /// By how much a test of "D" against "D'" with at most this false-positive and
    /// false-negative rate contradicts the claim; 0 or less if it does not.
    pub fn excess(&self, fpr: f64, fnr: f64) -> f64 {
        let seen = self.seen(fpr, fnr);
        seen.map(|(seen, delta)| seen - delta)
            .fold(f64::NEG_INFINITY, f64::max)
    }

    /// Which share of the claimed delta the test sees, at the epsilon where it is largest:
    /// above 1 where the claim is contradicted.
    pub fn share(&self, fpr: f64, fnr: f64) -> f64 {
        let seen = self.seen(fpr, fnr);
        seen.map(|(seen, delta)| seen / delta).fold(0.0, f64::max)
    }

    /// The delta that the test has seen, and the claimed one, at each epsilon.
    ///
    /// The set S on which the test says D has P(S) >= 1 - fnr and P'(S) <= fpr, and its
    /// complement P'(S^c) >= 1 - fpr and P(S^c) <= fnr.
    fn seen(&self, fpr: f64, fnr: f64) -> impl Iterator<Item = (f64, f64)> {
        self.curve.iter().map(move |(epsilon, delta)| {
            let one = 1.0 - fnr - epsilon.exp() * fpr;
            let other = 1.0 - fpr - epsilon.exp() * fnr;
            (one.max(other), *delta)
        })
    }
}
